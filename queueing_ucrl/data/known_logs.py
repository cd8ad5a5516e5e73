"""Logs whose columns need not be named: event logs of this project, XES files, and tables that `qu.jobs` gives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.data.interruptions import interrupted_works
from queueing_ucrl.data.sources import checked_path
from queueing_ucrl.data.tables import DEFAULT_UNIT, Columns
from queueing_ucrl.messages import shown_path
from queueing_ucrl.scenario.columns import UNITS

if TYPE_CHECKING:
    import pandas as pd

OF_JOBS = Columns(
    "arrival", "job_class", service="work", patience="wait", abandoned="abandoned", decision="decision", least="least"
)
_NEEDED = ("arrival", "job_class", "start", "end", "outcome", "decision")
_TOLD_APART = ("job", "replication")  # what jobs that came at once, alike in all else, differ in
_EVENTS = ("time", "event", "job", "job_class")


def known_jobs(source: Any, time_unit: str | None) -> tuple[pd.DataFrame, list[str]]:
    """(jobs, notes) of a log that says itself what its columns are; a ValueError if it does not.

    work: of services that were seen to their end; least: how long the others had lasted.
    """
    import pandas as pd

    interrupted, words = None, ""
    if not isinstance(source, pd.DataFrame):
        paths = [source] if isinstance(source, (str, Path)) else list(source)
        if len(paths) != 1:
            raise ValueError("several files are read by named columns: name that of the times (time, --time)")
        source, interrupted, words = _read(Path(paths[0]))
    elif set(_EVENTS) <= set(source.columns):
        from queueing_ucrl.accounts.jobs import jobs

        interrupted, words = interrupted_works(source)
        source = jobs(source)
    lacking = [name for name in _NEEDED if name not in source.columns]
    if lacking:
        raise ValueError("name the column that holds when each job came (time, --time): the table does not tell")
    works = _works(source, interrupted)
    came = source["arrival"].notna() & (source["decision"].astype(object) != "initial")
    found = works.loc[came].astype({"job_class": str, "decision": object, "outcome": object})
    found = found.assign(abandoned=found["outcome"] == "abandoned").sort_values("arrival", kind="stable")
    notes = [words] if words else []
    if {"epoch", "unit"} <= set(source.attrs):
        found = _dated(found, source.attrs, time_unit or DEFAULT_UNIT)
        if time_unit is None:
            notes.append(f"times are counted in {DEFAULT_UNIT}, since no time unit was named")
    return found, notes


def _dated(found: pd.DataFrame, about: Mapping[Any, Any], unit: str) -> pd.DataFrame:
    """Jobs of a log with dates (XES), whose times count from its epoch: arrivals as dates in the zone at whose midnight
    the epoch is, and durations in the unit.
    """
    import pandas as pd

    micros = pd.to_timedelta(np.rint(found["arrival"] * (1e6 * about["unit"])).astype("int64"), unit="us")
    epoch = pd.Timestamp(about["epoch"])
    ahead = -(epoch - epoch.normalize()) % pd.Timedelta(days=1)
    ahead = ahead - pd.Timedelta(days=1) if ahead > pd.Timedelta(hours=13) else ahead
    arrival = (epoch + micros).dt.tz_convert(timezone(ahead.to_pytimedelta()))
    durations = {name: found[name] * about["unit"] / UNITS[unit] for name in ("wait", "work", "least")}
    return found.assign(arrival=arrival, **durations)


def told_unit(source: Any) -> str | None:
    """What an event log's time is counted in, where its file says so in a word that is known."""
    from queueing_ucrl.accounts.log_rows import open_logs

    paths = [source] if isinstance(source, (str, Path)) else list(source) if isinstance(source, (list, tuple)) else []
    if len(paths) != 1 or not checked_path(Path(paths[0])).startswith(b"PAR1"):
        return None
    try:
        unit = open_logs(Path(paths[0]))[0].units.time
    except ValueError:  # no event log: whoever reads it says so
        return None
    return unit if unit in UNITS else None


def _works(table: pd.DataFrame, interrupted: pd.DataFrame | None) -> pd.DataFrame:
    """The columns that are needed, with wait, work and least; interrupted jobs have theirs from the events."""
    outcome, start, end = (table[name] for name in ("outcome", "start", "end"))
    wait = start.fillna(end.where(outcome == "abandoned")) - table["arrival"]
    last = max(float(table[name].max()) for name in ("arrival", "start", "end") if table[name].notna().any())
    work = (end - start).where(outcome == "served")
    least = (last - start).where(outcome == "unfinished")
    if interrupted is not None:
        of = table[["replication", "job"]].merge(interrupted, how="left", on=["replication", "job"], indicator=True)
        apart = (of["_merge"] == "both").to_numpy()
        work = work.mask(apart, of["work"].to_numpy())
        least = least.mask(apart, of["least"].to_numpy())
    names = [*_NEEDED, *(name for name in _TOLD_APART if name in table.columns)]
    return table[names].assign(wait=wait, work=work, least=least)


def _read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame | None, str]:
    head = checked_path(path)
    if path.name.lower().endswith((".xes", ".xes.gz")):
        return _xes(path), None, ""
    if head.startswith(b"PAR1"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        from queueing_ucrl.accounts.jobs import jobs

        try:
            names = pq.read_schema(path).names
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{shown_path(path)}: cannot be read as Parquet ({error})") from None
        if set(_EVENTS) <= set(names):
            return jobs(path), *interrupted_works(path)
    raise ValueError(f"{shown_path(path)}: name the column that holds when each job came (time, --time)")


def _xes(path: Path) -> pd.DataFrame:
    from queueing_ucrl.data.formats.xes import ABOUT
    from queueing_ucrl.data.formats.xes_import import opened, xes_jobs

    file = opened(path)
    next(iter(file), None)
    return xes_jobs(path) if ABOUT in file.about else xes_jobs(path, unit=1e-6)  # to which dates are known
