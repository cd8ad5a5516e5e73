"""A study's folder: who it belongs to, and each trial's result as it ends.

    manifest.json                               what the study is; whatever determines its numbers is in `identity`
    trials/<point>/<controller>/<n>.parquet     one file a replication, written whole or not at all, and last; where
                                                there is an event log also <n>.json, which knows the log's digest
    episodes/<point>/<controller>/<n>.parquet   its episodes
    events/<point>/<controller>/<n>.parquet     its event log, where asked for

`campaign` says what the manifest holds. `runner.run_study` asks here, trial by trial, for what is done already: the
same command run again, after a kill too, only makes what is missing. A folder of another study, seed or version is
refused, if anything was computed in it. Everything is looked at and written under the folder's lock.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from queueing_ucrl.errors import DamagedFile, DamageWarning, FolderError
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.trial import Place, Trial, TrialResult
from queueing_ucrl.files import (
    digest_of,
    is_part,
    is_plain_file,
    naming,
    part_of,
    plain_data,
    put_in_place,
    write_atomically,
)
from queueing_ucrl.messages import shown_path

if TYPE_CHECKING:
    import pyarrow as pa

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

MANIFEST, LOCK = "manifest.json", ".lock"
KINDS = ("trials", "episodes", "events")
LARGEST_MANIFEST = 100_000_000  # bytes
ROW_GROUP = 100_000  # rows, at least
SHOWN_VALUE = 200  # characters
NO_FAULT_OF_THE_USER = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENFILE, errno.EMFILE)


def _shown(value: Any) -> str:
    words = json.dumps(value)
    return words if len(words) <= SHOWN_VALUE else words[:SHOWN_VALUE] + " ..."


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
    return [f"{place.lstrip('.')}: {_shown(old)} there, {_shown(new)} now"]


def _refused(place: str | Path, why: str) -> FolderError:
    return FolderError(f"{shown_path(place)}: {why}")


def identity_key(identity: dict[str, Any]) -> str:
    """A short name for all that determines a study's numbers."""
    return hashlib.sha256(json.dumps(plain_data(identity), sort_keys=True).encode()).hexdigest()


def file_in(folder: Path, kind: str, place: Place, suffix: str = "parquet") -> Path:
    """Where a study's folder has a trial's result, its episodes or its event log: `kind` is one of KINDS."""
    point, name, replication = place
    return _cell_folder(folder, kind, point, name) / f"{replication:06d}.{suffix}"


@lru_cache(maxsize=64)  # it is asked for at every trial
def _cell_folder(folder: Path, kind: str, point: int, name: str) -> Path:
    safe = name
    if not re.fullmatch("[a-z0-9][a-z0-9_-]{0,40}", name):  # two names must not share a folder
        slug = re.sub("[^A-Za-z0-9_-]+", "_", name)[:40]
        safe = f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return folder / kind / f"{point:04d}" / safe


class StudyFolder:
    """A folder for one study; only one process at a time writes to it."""

    def __init__(self, path: Path, identity: dict[str, Any], facts: dict[str, Any]) -> None:
        self.path = path
        self.identity = plain_data(identity)
        self.key = identity_key(self.identity)
        self._made: list[Path] = []  # folders that were not there
        try:
            self._check_names()
            self._check_owner()  # of a folder of something else not even the lock is touched
            self._lock = self._locked()
            self._check_owner()
            self.tidy()
            self.write_manifest(facts)
        except BaseException as error:
            self._unmake()
            if isinstance(error, OSError) and error.errno not in NO_FAULT_OF_THE_USER:
                place, reason = error.filename or self.path, error.strerror or str(error)
                raise _refused(place, f"cannot be used ({reason}); name another folder with --out") from None
            raise

    def _check_names(self) -> None:
        """The longest name of a file in it must be one that the system allows."""
        longest = self.path.absolute() / "episodes" / "0000" / ("n" * 60) / ("000000.parquet." + 12 * "0" + ".part")
        try:
            str(longest).encode()  # what writes the tables knows names in UTF-8 only
            longest.lstat()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except ValueError:
            raise _refused(self.path, "cannot be a folder's name; name another with --out") from None

    def _make(self) -> None:
        """Make the folder and those above it; one after the other, for they may be thousands."""
        missing, folder = [], self.path
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _unmake(self) -> None:
        """Leave nothing behind where nothing was."""
        for folder in reversed(self._made):
            with suppress(OSError):
                if os.listdir(folder) == [LOCK]:
                    (folder / LOCK).unlink()
                folder.rmdir()

    def _locked(self) -> IO[bytes] | None:
        """Keep other processes out of the folder for as long as the file is open; the system lets go when we die.

        A lock of the process, which worker processes do not inherit; None where the system knows no such locks.
        """
        lock = self.path / LOCK
        while True:
            self._make()
            if fcntl is None:
                return None
            is_plain_file(lock)
            try:
                file = lock.open("ab")
            except FileNotFoundError:  # another run gave up, and took the folder with it
                continue
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                    file.truncate(0)
                    return file
                file.close()
            except OSError:
                file.close()
                self._made = []  # whoever has the lock uses the folder
                raise _refused(
                    self.path, "another run is using this folder; wait for it, or name another with --out"
                ) from None

    def _check_owner(self) -> None:
        """Whether the folder is free or ours; else say whose it is."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise _refused(self.path, "is not a folder; name another with --out")
        manifest = self.path / MANIFEST
        if not manifest.exists():
            if not self._is_empty():
                raise _refused(self.path, "holds files of something else; name another folder with --out")
            return
        try:
            if not is_plain_file(manifest) or manifest.stat().st_size > LARGEST_MANIFEST:
                raise ValueError
            old = json.loads(manifest.read_text(encoding="utf-8"))["identity"]
            found = _differences(old, self.identity)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
            raise _refused(manifest, "is not a study's manifest; name another folder with --out") from None
        if found and not self._is_empty():
            shown = "\n  ".join(found[:5] + ([f"and {len(found) - 5} more"] if len(found) > 5 else []))
            raise _refused(self.path, f"belongs to another study; name another folder with --out\n  {shown}")

    def _is_empty(self) -> bool:
        """Whether nothing was computed here: at most a manifest, a lock and what a killed run left half written."""
        for item in self.path.iterdir():
            if item.name in KINDS and item.is_dir() and not item.is_symlink():
                for _, _, files in os.walk(item):
                    if not all(map(is_part, files)):
                        return False
            elif not is_part(item.name) and item.name not in (LOCK, MANIFEST):
                return False
        return True

    def tidy(self) -> None:
        """Remove what a run that was killed left half written."""
        for folder in (self.path, *(self.path / kind for kind in KINDS)):
            walk = os.walk(folder) if folder != self.path else [(str(folder), [], os.listdir(folder))]
            for place, _, files in walk:
                for name in files:
                    if is_part(name):
                        with suppress(IsADirectoryError, FileNotFoundError, PermissionError):
                            (Path(place) / name).unlink()

    def write_manifest(self, facts: dict[str, Any]) -> None:
        """What the study is, and facts about how it was run."""
        self.write_json(MANIFEST, {"identity": self.identity, "key": self.key, **facts})

    # --- trials ------------------------------------------------------------------------------------------------------

    def _file(self, kind: str, place: Place, suffix: str = "parquet") -> Path:
        return file_in(self.path, kind, place, suffix)

    def _made_file(self, kind: str, place: Place) -> Path:
        """A file in a folder that is there, by a name that holds wherever the process that writes it works."""
        path = self._file(kind, place).absolute()
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def trial(self, cell: Cell, replication: int, *, log: bool, shares_disk: bool) -> Trial:
        """A trial with its files in this folder; one that runs where it does not reach brings its episodes back."""
        place = (cell.point, cell.name, replication)
        event_log = self._made_file("events", place) if log else None
        return Trial(cell, replication, event_log, self._made_file("episodes", place) if shares_disk else None)

    def load(self, place: Place, *, log: bool = False) -> TrialResult | None:
        """A finished trial's result; None if there is none. One that cannot be used is told, and is as none.

        log: its event log is wanted too.
        """
        try:
            result = self._read(place)
            return None if result is None or (log and not self._log_is_whole(place)) else result
        except DamagedFile as error:
            warnings.warn(f"{error}; the trial is made again", DamageWarning, stacklevel=2)
            return None

    def read(self, place: Place) -> TrialResult:
        """The result of a trial that is known to be finished."""
        result = self._read(place)
        if result is None:
            raise DamagedFile(self._file("trials", place), "it was there, and is gone")
        return result

    def _read(self, place: Place) -> TrialResult | None:
        path = self._file("trials", place)
        result = TrialResult.read(path, self.key, self._file("episodes", place))
        if result is not None and result.place != place:
            raise DamagedFile(path, "it is of another trial")
        return result

    def _about_log(self, place: Place, digest: str | None) -> dict[str, Any]:
        point, name, replication = place
        return {"key": self.key, "point": point, "name": name, "replication": replication, "sha256": digest}

    def _log_is_whole(self, place: Place) -> bool:
        """Whether a trial's event log is as it was written; False if there is none."""
        log, about = self._file("events", place).absolute(), self._file("trials", place, "json")
        try:
            if not is_plain_file(about) and not is_plain_file(log):
                return False
            if not is_plain_file(about) or about.stat().st_size > LARGEST_MANIFEST:
                raise DamagedFile(about, "it is not what was written, or missing")
            known = json.loads(about.read_text(encoding="utf-8"))
            if not is_plain_file(log) or known != self._about_log(place, digest_of(log)):
                raise DamagedFile(log, "it is not what was written, or missing")
        except OSError as error:
            raise DamagedFile(error.filename or log, error.strerror or str(error)) from None
        except (ValueError, RecursionError):
            raise DamagedFile(about, "it is not what was written") from None
        return True

    def save(self, result: TrialResult) -> TrialResult:
        """Keep a trial's result; the same, with its episodes in their file."""
        own = self._made_file("trials", result.place)
        if isinstance(result.episodes, bytes):
            path = self._made_file("episodes", result.place)
            write_atomically(path, result.episodes)
            result = replace(result, episodes=path)
        if result.log_digest is not None:
            text = json.dumps(self._about_log(result.place, result.log_digest), indent=2) + "\n"
            write_atomically(self._file("trials", result.place, "json"), text.encode())
        result.write(own, self.key)
        return result

    # --- tables ------------------------------------------------------------------------------------------------------

    def write_json(self, name: str, data: Any) -> None:
        """A JSON file of the folder, whole or not at all."""
        text = json.dumps(plain_data(data), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
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

    def write_tables(self, name: str, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
        """Tables one after the other in row groups of a Parquet file, whole or not at all; memory stays flat."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.path / name
        part = part_of(path)
        try:
            with naming(path):
                with pq.ParquetWriter(part.absolute(), schema) as writer:
                    waiting: list[pa.Table] = []
                    rows = 0
                    for table in tables:
                        waiting.append(table)
                        rows += len(table)
                        if rows >= ROW_GROUP:
                            writer.write_table(pa.concat_tables(waiting))
                            waiting, rows = [], 0
                    if waiting:
                        writer.write_table(pa.concat_tables(waiting))
                put_in_place(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
