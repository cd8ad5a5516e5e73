"""The files that a fit gives: the scenario, the trace beside it, a figure and a page; all of them or none."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from queueing_ucrl.files import naming, part_of, same_file
from queueing_ucrl.messages import shown_path

if TYPE_CHECKING:
    from queueing_ucrl.data.fit import Fit


@dataclass(frozen=True)
class FitFiles:
    """Where a fit is written: calls.toml, calls.trace.parquet, calls.fit.png, calls.report.html."""

    scenario: Path

    @property
    def trace(self) -> Path:
        return self.scenario.with_name(f"{self.scenario.stem}.trace.parquet")

    @property
    def figure(self) -> Path:
        return self.scenario.with_name(f"{self.scenario.stem}.fit.png")

    @property
    def page(self) -> Path:
        return self.scenario.with_name(f"{self.scenario.stem}.report.html")

    def check(self, force: bool, figure: bool, sources: Sequence[Path] = (), *, page: bool = False) -> None:
        """Refuse names that cannot be written to, the log's own, and files that are there already unless `force`."""
        if self.scenario.suffix != ".toml":
            raise ValueError(f"{shown_path(self.scenario)}: a scenario file's name must end in .toml")
        if not self.scenario.parent.is_dir():
            raise ValueError(f"{shown_path(self.scenario)}: there is no folder {shown_path(self.scenario.parent)}")
        wanted = {self.scenario: True, self.trace: True, self.figure: figure, self.page: page}
        for path in (path for path, is_wanted in wanted.items() if is_wanted):
            if path.is_dir():
                raise ValueError(f"{shown_path(path)}: is a folder")
            if any(same_file(path, source) for source in sources):
                raise ValueError(f"{shown_path(path)}: is the log itself, and would be written over; --out elsewhere")
            if os.path.lexists(path) and not force:
                raise ValueError(f"{shown_path(path)}: is there already; --force writes over it, --out elsewhere")


def files_for(sources: Sequence[Path], out: Path | None) -> FitFiles:
    """calls.csv gives calls.toml, beside it."""
    if out is not None:
        return FitFiles(out)
    if len(sources) != 1:
        raise ValueError("several files are fitted together: name the scenario file to write (--out FILE.toml)")
    return FitFiles(sources[0].with_name(f"{sources[0].name.split('.')[0] or 'log'}.toml"))


def trace_bytes(fit: Fit) -> bytes:
    """The trace as Parquet: time, job_class, work and decision, null where not known."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = fit.trace
    work = pa.array(frame["work"].to_numpy(), mask=frame["work"].isna().to_numpy(), type=pa.float64())
    columns = {
        "time": pa.array(frame["time"].to_numpy(), type=pa.float64()),
        "job_class": pa.array(frame["job_class"].tolist(), type=pa.string()),
        "work": work,
        "decision": pa.array(frame["decision"].tolist(), type=pa.string(), from_pandas=True),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One fit at a time gives files of a folder their names, where the system can see to that."""
    try:
        import fcntl

        place = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):  # some disks over a network have no locks
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def write_fit(
    fit: Fit, files: FitFiles, figure: bytes | None = None, page: bytes | None = None, *, force: bool = False
) -> list[Path]:
    """Write all of them under other names first, then give them theirs, the scenario last; its schema beside it.

    Two fits at once do not mix their files; without `force`, what came to be there meanwhile is left as it is.
    """
    from queueing_ucrl.scenario.json_schema import put_schema_beside

    contents = {files.trace: trace_bytes(fit)}
    contents |= {path: made for path, made in ((files.figure, figure), (files.page, page)) if made is not None}
    contents[files.scenario] = fit.to_toml(files.trace.name).encode()
    parts: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            parts[path] = part_of(path)
            with naming(path), parts[path].open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        with _alone_in(files.scenario.parent):
            files.check(force, figure is not None, page=page is not None)
            for path, part in parts.items():
                with naming(path):
                    part.replace(path)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
    put_schema_beside(files.scenario)
    return [files.scenario, *(path for path in contents if path != files.scenario)]
