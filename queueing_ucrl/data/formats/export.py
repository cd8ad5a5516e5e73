"""Writing an event log in another program's format."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from gzip import GzipFile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from queueing_ucrl.data.formats.ciw_records import write_ciw
from queueing_ucrl.data.formats.csv import write_csv
from queueing_ucrl.data.formats.dates import Calendar
from queueing_ucrl.data.formats.ocel import write_ocel_text
from queueing_ucrl.data.formats.ocel_sqlite import write_sqlite
from queueing_ucrl.data.formats.read import read_log
from queueing_ucrl.data.formats.source import LogSource, open_log
from queueing_ucrl.data.formats.xes import write_xes
from queueing_ucrl.files import naming, part_of, put_in_place
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = {  # longer ones before those that they end in
    ".records.csv": "ciw",
    ".csv": "csv",
    ".xes": "xes",
    ".xes.gz": "xes",
    ".jsonocel": "ocel-json",
    ".json": "ocel-json",
    ".xmlocel": "ocel-xml",
    ".sqlite": "ocel-sqlite",
}
DATED = ("xes", "ocel-json", "ocel-xml", "ocel-sqlite")  # formats that know time as dates
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))


def export_log(
    source: pd.DataFrame | Run | str | Path,
    out: str | Path,
    *,
    format: str | None = None,
    epoch: str | datetime | None = None,
    unit: str | float | None = None,
    jobs_only: bool = False,
    overwrite: bool = False,
) -> Path:  # long: an option a line, and what each does
    """Write an event log in another program's format, and give the path of the file.

    source: a pandas frame of events, a `Run` that kept them, a CSV log as `read_log` reads it, or a Parquet log, which
    is read piece by piece, so memory does not grow with it. out: its suffix says the format, unless `format` does: .csv
    ("csv"), .xes and .xes.gz ("xes"), .jsonocel and .json ("ocel-json"), .xmlocel ("ocel-xml"), .sqlite
    ("ocel-sqlite"), .records.csv ("ciw").
    The file is there whole or not at all; one that is there already is refused, unless `overwrite`. The same log gives
    the same bytes.

    XES and OCEL have dates: time 0 is `epoch` (1970-01-01T00:00:00Z), and a unit of time is `unit`: "seconds",
    "minutes", "hours", .. or a number of seconds (default: as the log's metadata say, else seconds). jobs_only, of XES:
    without the events that belong to no job.
    """
    path = Path(out)
    kind = format_of(path, format)
    if path.is_dir() or (os.path.lexists(path) and not overwrite):
        raise ValueError(f"{shown_path(path)} is there already: give another name (from Python also overwrite=True)")
    if kind not in DATED and (epoch is not None or unit is not None):
        raise ValueError(f"the format {kind} has no dates: `epoch` and `unit` are for {', '.join(DATED)}")
    if kind != "xes" and jobs_only:
        raise ValueError(f"jobs_only is for the format xes, not for {kind}")
    log = _opened(source)
    calendar = Calendar.of(epoch, unit, log.metadata if kind in DATED else {})
    part = part_of(path)
    try:
        with naming(path):
            _write(log, part, kind, calendar, jobs_only, packed=path.name.lower().endswith(".gz"))
            put_in_place(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return path


export = export_log


def _opened(source: object) -> LogSource:
    """The log that is to be written; one in CSV is read whole."""
    if isinstance(source, (str, Path)) and Path(source).name.lower().endswith(".csv"):
        return replace(open_log(read_log(source)), name=shown_path(Path(source)))
    return open_log(source)


def _write(log: LogSource, part: Path, kind: str, calendar: Calendar, jobs_only: bool, packed: bool) -> None:
    with part.open("wb") as file:
        if kind == "csv":
            write_csv(log, file)
        elif kind == "ciw":
            write_ciw(log, file)
        elif kind == "xes" and packed:
            with GzipFile("", "wb", fileobj=file, mtime=0) as packing:  # neither name nor date: always the same bytes
                write_xes(log, cast(BinaryIO, packing), calendar, jobs_only)
        elif kind == "xes":
            write_xes(log, file, calendar, jobs_only)
        elif kind in ("ocel-json", "ocel-xml"):
            write_ocel_text(log, file, calendar, kind)
    if kind == "ocel-sqlite":
        write_sqlite(log, part, calendar)


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
