"""Logs whose columns need not be named: event logs of this project, XES files, and tables that `qu.jobs` gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl.data.sources import checked_path
from queueing_ucrl.data.tables import DEFAULT_UNIT, Columns
from queueing_ucrl.messages import shown_path

if TYPE_CHECKING:
    import pandas as pd

OF_JOBS = Columns("arrival", "job_class", start="start", end="end", abandoned="abandoned", decision="decision")
_NEEDED = ("arrival", "job_class", "start", "end", "outcome", "decision")
_EVENTS = ("time", "event", "job", "job_class")


def known_jobs(source: Any, time_unit: str | None) -> pd.DataFrame:
    """The jobs of a log that says itself what its columns are; a ValueError if it does not."""
    import pandas as pd

    if not isinstance(source, pd.DataFrame):
        paths = [source] if isinstance(source, (str, Path)) else list(source)
        if len(paths) != 1:
            raise ValueError("several files are read by named columns: name that of the times (time, --time)")
        source = _read(Path(paths[0]), time_unit)
    elif set(_EVENTS) <= set(source.columns):
        from queueing_ucrl.accounts.jobs import jobs

        source = jobs(source)
    lacking = [name for name in _NEEDED if name not in source.columns]
    if lacking:
        raise ValueError("name the column that holds when each job came (time, --time): the table does not tell")
    came = source["arrival"].notna() & (source["decision"].astype(object) != "initial")
    found = source.loc[came, list(_NEEDED)].astype({"job_class": str, "decision": object, "outcome": object})
    return found.assign(abandoned=found["outcome"] == "abandoned").sort_values("arrival", kind="stable")


def _read(path: Path, time_unit: str | None) -> pd.DataFrame:
    head = checked_path(path)
    if path.name.lower().endswith((".xes", ".xes.gz")):
        return _xes(path, time_unit)
    if head.startswith(b"PAR1"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        from queueing_ucrl.accounts.jobs import jobs

        try:
            names = pq.read_schema(path).names
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{shown_path(path)}: cannot be read as Parquet ({error})") from None
        if set(_EVENTS) <= set(names):
            return jobs(path)
    raise ValueError(f"{shown_path(path)}: name the column that holds when each job came (time, --time)")


def _xes(path: Path, time_unit: str | None) -> pd.DataFrame:
    from queueing_ucrl.data.formats.xes import ABOUT
    from queueing_ucrl.data.formats.xes_import import opened, xes_jobs

    file = opened(path)
    next(iter(file), None)
    return xes_jobs(path) if ABOUT in file.about else xes_jobs(path, unit=time_unit or DEFAULT_UNIT)
