"""Logs from XES files: our own back as they were, anybody's as a table of jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl.accounts.jobs import DECISIONS, OUTCOMES, jobs
from queueing_ucrl.data.formats.csv import categories
from queueing_ucrl.data.formats.dates import in_units, microseconds, midnight, seconds_of, stamp
from queueing_ucrl.data.formats.xes import ABOUT, OF_TRACE
from queueing_ucrl.data.formats.xes_parser import Trace, XesFile
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.simulation.event_log import EVENTS, as_frame

if TYPE_CHECKING:
    import pandas as pd

TYPES = (
    *("double", "float", "bool", "string", "null", "timestamp[us]", "timestamp[ns]", "timestamp[ms]", "timestamp[s]"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
GIVEN_UP = ("withdraw", "pi_abort", "ate_abort")  # lifecycle:transition of what is not carried on with


def opened(path: str | Path) -> XesFile:
    """The file, if it is one."""
    file = Path(path)
    try:
        there = is_plain_file(file)
    except OSError as error:
        raise ValueError(f"{shown_path(file)} cannot be read ({error.strerror})") from None
    if not there:
        raise ValueError(f"{shown_path(file)} is not there")
    return XesFile(file)


def read_xes(path: str | Path) -> pd.DataFrame:
    """The event log of a file that `export_log` wrote: the same rows, in the same order, with the same types."""
    import pyarrow as pa

    file = opened(path)
    words = shown_path(file.path)
    columns: list[tuple[str, Any, str]] = []
    values: list[list[Any]] = []
    rows: list[int] = []
    for trace, event in file:
        if not columns:
            columns = _columns(file.about, words)
            values = [[] for _ in columns]
        if not event:
            continue
        rows.append(event.get("row", len(rows)))
        for (name, _, key), cells in zip(columns, values, strict=True):
            cells.append(trace.attributes.get(name) if name in OF_TRACE else event.get(key))
    columns = columns or _columns(file.about, words)
    try:
        arrays = [
            _array(cells, kind) for cells, (_, kind, _) in zip(values or [[] for _ in columns], columns, strict=True)
        ]
        order = pa.array(rows, pa.int64())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"{words} cannot be read back as an event log ({shown(str(error))})") from None
    table = pa.table(arrays, names=[name for name, _, _ in columns])
    table = table.take(pa.compute.sort_indices(order))
    table = categories(table, "event", EVENTS, words)
    return as_frame(categories(table, "job_class", _classes(file.about), words))


def _said(about: dict[str, Any]) -> dict[str, Any]:
    try:
        found = json.loads(about.get(ABOUT, ""))
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _classes(about: dict[str, Any]) -> list[str]:
    found = _said(about).get("classes", [])
    return [str(name) for name in found] if isinstance(found, list) else []


def _columns(about: dict[str, Any], words: str) -> list[tuple[str, Any, str]]:
    """(name, type, key) of the log's columns."""
    import pyarrow as pa

    listed = _said(about).get("columns")
    entries = listed if isinstance(listed, list) else []
    right = all(
        isinstance(entry, list)
        and len(entry) == 3
        and all(isinstance(part, str) for part in entry)
        and entry[1] in TYPES
        for entry in entries
    )
    names = [entry[0] for entry in entries] if right else []
    if not {"time", "event", "job", "job_class"} <= set(names):
        raise ValueError(
            f"{words} is not an event log that `export_log` wrote: `xes_jobs` reads the jobs of any XES file"
        )
    return [(name, pa.null() if kind == "null" else pa.type_for_alias(kind), key) for name, kind, key in entries]


def _array(cells: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        cells = [None if cell is None else datetime.fromisoformat(cell) for cell in cells]
    return pa.array(cells, kind)


# ---- anybody's


@dataclass
class _Job:
    """What the events of a trace tell, as they come; times in microseconds from 1970."""

    name: str
    job_class: str | None = None
    first: int | None = None
    scheduled: int | None = None
    start: int | None = None
    end: int | None = None
    gone: int | None = None
    server: str | None = None
    events: int = 0


@dataclass(frozen=True)
class _Labels:
    """How the events of a log are called that count; "" where the standard's transitions say it."""

    arrival: str
    start: str
    end: str
    abandoned: str

    def tell(self, job: _Job, event: dict[str, Any], when: int) -> None:
        """Add what an event says."""
        transition = str(event.get("lifecycle:transition", "complete")).lower()
        activity = str(event.get("concept:name", ""))

        def is_it(label: str, *transitions: str) -> bool:
            return label in (activity, f"{activity}+{transition}") if label else transition in transitions

        job.events += 1
        job.first = when if job.first is None else min(job.first, when)
        if is_it(self.arrival, "schedule"):
            job.scheduled = when if job.scheduled is None else min(job.scheduled, when)
        resource = event.get("org:resource")
        if is_it(self.start, "start") and (job.start is None or when < job.start):
            job.start = when
            job.server = job.server if resource is None else str(resource)
        if is_it(self.end, "complete") and (job.end is None or when >= job.end):
            job.end = when
            job.server = str(resource) if job.server is None and resource is not None else job.server
        if is_it(self.abandoned, *GIVEN_UP):
            job.gone = when if job.gone is None else max(job.gone, when)


def xes_jobs(
    path: str | Path,
    *,
    arrival: str = "",
    start: str = "",
    end: str = "",
    abandoned: str = "",
    job_class: str = "job_class",
    unit: str | float | None = None,
    epoch: str | datetime | None = None,
) -> pd.DataFrame:  # long: an option a line, and what each does
    """The jobs of any XES file (.xes, .xes.gz), one a trace, with the columns of `qu.jobs`; in order of arrival.

    A job is a trace. It arrives with its first event of the transition `schedule`, else with its first event; its
    service starts with the first event of the transition `start` and ends with the last `complete` (events without a
    transition are complete). `withdraw`, `ate_abort` or `pi_abort` without a service says that it gave up. Logs that
    call things otherwise: `arrival`, `start`, `end` and `abandoned` take the name of an activity ("Triage") or of an
    activity's transition ("Triage+start"). The server is `org:resource`; the class is the attribute `job_class` of the
    trace, else of its first event that has it, else "job". What a foreign log cannot tell is missing: decision, reward,
    cost, episode, replication. Of a job with one event only the arrival is known.

    Times are in `unit` (seconds), from `epoch` on: by default from midnight of the first event's day, in its time zone;
    the table's `attrs` say which (`epoch`, `unit`). Dates without a time zone are taken for UTC.

    A file that `export_log` wrote is known as such: its table is that of `qu.jobs`, with the log's own times.
    """
    file = opened(path)
    next(iter(file), None)
    if ABOUT in file.about:
        if arrival or start or end or abandoned or unit is not None or epoch is not None:
            raise ValueError(f"{shown_path(file.path)} is a log of ours, whose times and events are known: no options")
        return jobs(read_xes(path))
    words = shown_path(file.path)
    labels = _Labels(arrival, start, end, abandoned)
    seconds = seconds_of("seconds" if unit is None else unit)
    found: dict[int, _Job] = {}
    earliest: tuple[int, datetime] | None = None
    for trace, event in file:
        if trace.number < 0:
            continue
        job = found.setdefault(trace.number, _Job(_name(trace)))
        if not event:
            continue
        date = _date(event, words, job.name)
        when = microseconds(date)
        earliest = (when, date) if earliest is None or when < earliest[0] else earliest
        if job.job_class is None:
            said = trace.attributes.get(job_class, event.get(job_class))
            job.job_class = None if said is None else str(said)
        labels.tell(job, event, when)
    seen = [job for job in found.values() if job.events]
    if not seen or earliest is None:
        raise ValueError(f"{words} has no trace with an event")
    for option, label, times in (
        ("arrival", arrival, [job.scheduled for job in seen]),
        ("start", start, [job.start for job in seen]),
        ("end", end, [job.end for job in seen]),
        ("abandoned", abandoned, [job.gone for job in seen]),
    ):
        if label and not any(time is not None for time in times):
            raise ValueError(f"{words} has no event {shown(label)} ({option})")
    zero = microseconds(midnight(earliest[1]))
    if epoch is not None:
        zero = microseconds(datetime.fromisoformat(epoch) if isinstance(epoch, str) else epoch)
    return _job_table(seen, zero, seconds)


def _name(trace: Trace) -> str:
    return str(trace.attributes.get("concept:name", trace.number))


def _date(event: dict[str, Any], words: str, job: str) -> datetime:
    text = event.get("time:timestamp")
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError(
            f"{words}: an event of the trace {shown(job)} must have a date as time:timestamp, got {shown(text)}"
        ) from None


def _job_table(seen: list[_Job], zero: int, unit: float) -> pd.DataFrame:
    """The table of `qu.jobs`."""
    import pandas as pd

    rows = []
    for job in seen:
        came = job.first if job.scheduled is None else job.scheduled
        ended = job.end if job.start is not None or job.events > 1 else None
        outcome = "unfinished"
        if job.gone is not None and job.start is None:
            ended, outcome = job.gone, "abandoned"
        elif ended is not None:
            outcome = "served"
        arrival, start, end = (in_units(micros, zero, unit) for micros in (came, job.start, ended))
        row = {"job": job.name, "job_class": job.job_class or "job", "arrival": arrival, "decision": None}
        row |= {"start": start, "end": end, "outcome": outcome}
        row |= {"wait": (end if outcome == "abandoned" else start) - arrival, "sojourn": end - arrival}
        row |= {
            "server": job.server,
            "reward": float("nan"),
            "cost": float("nan"),
            "episode": None,
            "replication": None,
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    names = sorted({str(name) for name in table["job_class"]})
    table["job_class"] = pd.Categorical(table["job_class"], categories=names)
    table["decision"] = pd.Categorical(table["decision"], categories=DECISIONS)
    table["outcome"] = pd.Categorical(table["outcome"], categories=OUTCOMES)
    table[["job", "server"]] = table[["job", "server"]].astype("string")
    table[["episode", "replication"]] = table[["episode", "replication"]].astype("Int64")
    table = table.sort_values("arrival", kind="stable", ignore_index=True)
    table.attrs = {"epoch": stamp(zero), "unit": unit}
    return table
