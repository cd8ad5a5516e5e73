"""A study's folder: who it belongs to, and each trial's result as it ends.

    manifest.json                       what the study is; whatever determines its numbers is in `identity`
    trials/<point>/<controller>/<n>.parquet   one file a replication, written whole or not at all
    events/<point>/<controller>/<n>.parquet   event logs, where asked for

The same command run again takes finished trials from here. A folder of another study, seed or version is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import IO, Any

from queueing_ucrl.errors import FolderError
from queueing_ucrl.experiments.files import write_atomically
from queueing_ucrl.experiments.trial import Trial, TrialResult
from queueing_ucrl.simulation.event_log import is_whole

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

MANIFEST = "manifest.json"


def _differences(old: Any, new: Any, place: str = "") -> list[str]:
    """The places where two identities differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [d for key in sorted({*old, *new}) for d in _differences(old.get(key), new.get(key), f"{place}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            d for k, (a, b) in enumerate(zip(old, new, strict=True)) for d in _differences(a, b, f"{place}[{k + 1}]")
        ]
    if old == new:
        return []
    return [f"{place.lstrip('.')}: {json.dumps(old)} there, {json.dumps(new)} now"]


def identity_key(identity: dict[str, Any]) -> str:
    """A short name for all that determines a study's numbers."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _lock(path: Path) -> IO[bytes] | None:
    """Keep other processes out of the folder for as long as the file is open; the system lets go when we die.

    A lock of the process, which worker processes do not inherit; None where the system knows no such locks.
    """
    if fcntl is None:
        return None
    file = (path / ".lock").open("ab")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise FolderError(
            f"{path}: another run is using this folder; wait for it, or name another with --out"
        ) from None
    return file


class StudyFolder:
    """A folder for one study; only one process at a time writes to it."""

    def __init__(self, path: Path, identity: dict[str, Any], facts: dict[str, Any]) -> None:
        self.path = path
        self.identity = json.loads(json.dumps(identity))
        self.key = identity_key(self.identity)
        self._claim()
        self._lock = _lock(path)
        self.write_json(MANIFEST, {"identity": self.identity, "key": self.key, **facts})

    def _claim(self) -> None:
        """Make the folder ours, or say whose it is."""
        manifest = self.path / MANIFEST
        if not self.path.exists():
            self.path.mkdir(parents=True)
            return
        if not self.path.is_dir():
            raise FolderError(f"{self.path}: is not a folder; name another with --out")
        if not manifest.exists():
            if any(item.suffix != ".part" and item.name != ".lock" for item in self.path.iterdir()):
                raise FolderError(f"{self.path}: holds files of something else; name another folder with --out")
            return
        try:
            old = json.loads(manifest.read_text(encoding="utf-8"))["identity"]
        except (ValueError, KeyError, TypeError):
            raise FolderError(f"{manifest}: is not a study's manifest; name another folder with --out") from None
        if old != self.identity:
            found = _differences(old, self.identity)
            shown = "\n  ".join(found[:5] + ([f"and {len(found) - 5} more"] if len(found) > 5 else []))
            raise FolderError(f"{self.path}: belongs to another study; name another folder with --out\n  {shown}")

    def _file(self, kind: str, point: int, name: str, replication: int) -> Path:
        safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name) or "_"
        if safe != name:  # two names must not share a folder
            safe += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
        return self.path / kind / f"{point:04d}" / safe / f"{replication:06d}.parquet"

    def event_log(self, point: int, name: str, replication: int) -> Path:
        """Where a trial's event log goes, wherever the process that writes it works."""
        path = self._file("events", point, name, replication).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def load(self, trial: Trial) -> TrialResult | None:
        """A finished trial's result; None if there is none that is whole and of this study."""
        if trial.log is not None and not is_whole(trial.log):
            return None
        result = TrialResult.read(self._file("trials", trial.point, trial.name, trial.replication), self.key)
        if result is None or (result.point, result.name, result.replication) != (
            trial.point, trial.name, trial.replication,
        ):  # fmt: skip
            return None
        return result

    def save(self, result: TrialResult) -> None:
        """Keep a trial's result."""
        path = self._file("trials", result.point, result.name, result.replication)
        path.parent.mkdir(parents=True, exist_ok=True)
        result.write(path, self.key)

    def write_json(self, name: str, data: Any) -> None:
        """A JSON file of the folder, whole or not at all."""
        text = json.dumps(data, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
        self.write_bytes(name, (text + "\n").encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Any file of the folder, whole or not at all."""
        write_atomically(self.path / name, content)

    def write_table(self, name: str, frame: Any) -> None:
        """A pandas frame as a Parquet file of the folder, whole or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), sink, compression="zstd")
        self.write_bytes(name, sink.getvalue().to_pybytes())
