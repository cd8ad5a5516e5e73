"""Writing an event log in another program's format."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from queueing_ucrl.data.formats.csv import write_csv
from queueing_ucrl.data.formats.source import LogSource, open_log
from queueing_ucrl.files import naming, part_of, put_in_place
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {".csv": "csv"}  # longer ones before those they end in
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


def export_log(
    source: pd.DataFrame | Run | str | Path, out: str | Path, *, format: str | None = None, overwrite: bool = False
) -> Path:
    """Write an event log in another program's format, and give the path of the file.

    source: a pandas frame of events, a `Run` that kept them, or a Parquet log, which is read piece by piece, so memory
    does not grow with it. out: its suffix says the format, unless `format` does. The file is there whole or not at all;
    one that is there already is refused, unless `overwrite`. The same log gives the same bytes.
    """
    path = Path(out)
    kind = format_of(path, format)
    if path.is_dir() or (path.exists() and not overwrite):
        raise ValueError(f"{shown_path(path)} is there already: give another name (or overwrite=True)")
    log = open_log(source)
    part = part_of(path)
    try:
        with naming(path):
            file = part.open("wb")
        with file:
            _writer(kind)(log, file)
        with naming(path):
            put_in_place(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return path


export = export_log


def format_of(path: Path, format: str | None = None) -> str:
    """The format's name: as asked for, or by the end of the file's name."""
    if format is not None:
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {shown(format)}")
        return format
    for suffix, kind in SUFFIXES.items():
        if path.name.lower().endswith(suffix):
            return kind
    raise ValueError(f"{shown_path(path)}: the name must end in one of {', '.join(SUFFIXES)}, or give a format")


def _writer(kind: str) -> Callable[[LogSource, BinaryIO], None]:
    return {"csv": write_csv}[kind]
