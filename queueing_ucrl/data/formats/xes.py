"""Event logs as XES (IEEE 1849): a trace for each job, for process mining.

A job's trace is called `replication/job` and says its class and outcome. Services are the activity `service`, whose
`lifecycle:transition` is start, suspend (a breakdown, a hand-over), resume and complete; what happens in no time is an
activity of its own, complete at once: admit, reject, block, abandon, initial. `org:resource` is the server. What
belongs to no job (reviews, shifts, repairs, the environment) is in a last trace, `replication/system`.

`time:timestamp` is a date; every column of the log stands beside it under its own name, numbers in all their digits,
so that `read_log` gives the same log back. Traces are in the order in which jobs leave: only jobs that are in the
system are in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO

from queueing_ucrl.data.formats.dates import Calendar
from queueing_ucrl.data.formats.source import LEAVES, LogSource
from queueing_ucrl.data.formats.xml_text import double, escaped, is_name, kind_of
from queueing_ucrl.messages import shown
from queueing_ucrl.simulation.event_log import EVENTS

if TYPE_CHECKING:
    import pyarrow as pa

SERVICE = {"start": "start", "depart": "complete", "resume": "resume", "hand-over": "suspend", "breakdown": "suspend"}
ABOUT = "queueing_ucrl"  # the log's attribute that tells how to read it back
OF_TRACE = ("job", "replication")  # the same for all events of a trace
STANDARD = ("concept", "lifecycle", "org", "time")  # prefixes of the standard's own attributes
IN_MEMORY = 4_000_000  # bytes of the last trace; more goes to a temporary file


def write_xes(log: LogSource, file: BinaryIO, calendar: Calendar, jobs_only: bool = False) -> None:
    """The log's rows; jobs_only: without those that belong to no job."""
    keys = _keys(log)
    file.write(_head(log, keys, calendar).encode())
    with SpooledTemporaryFile(IN_MEMORY) as system:
        traces = _Traces(file, system, jobs_only)
        row = 0
        for piece in log:
            columns = [
                piece.column(name).to_pylist() if name in log.columns else [None] * piece.num_rows
                for name in ("replication", "job", "job_class", "event")
            ]
            for entry in zip(*columns, _events(piece, keys, calendar, row), strict=True):
                traces.add(*entry)
            row += piece.num_rows
        traces.finish()
    file.write(b"</log>\n")


def _keys(log: LogSource) -> dict[str, tuple[str, str]]:
    """(type, key) of the attribute of each column: its name, where that is a name in XML too."""
    found = {}
    for k, entry in enumerate(log.schema):
        kind = kind_of(entry.type)
        if kind is None:
            raise ValueError(
                f"{log.name}: the column {shown(entry.name)} holds {entry.type}: XES has no such attribute"
            )
        own = is_name(entry.name) and entry.name not in ("row", "outcome") and not entry.name.startswith("column-")
        found[entry.name] = (kind, entry.name if own else f"column-{k}")
    return found


def _head(log: LogSource, keys: dict[str, tuple[str, str]], calendar: Calendar) -> str:
    columns = [[entry.name, str(entry.type), keys[entry.name][1]] for entry in log.schema]
    about = {"columns": columns, "classes": log.classes(), "epoch": calendar.epoch, "unit": calendar.unit}
    told = escaped(json.dumps(about, sort_keys=True), "job_class")
    extensions = [("Concept", "concept"), ("Lifecycle", "lifecycle"), ("Organizational", "org"), ("Time", "time")]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines += ['<log xes.version="1849.2016" xes.features="" xmlns="http://www.xes-standard.org/">']
    for name, prefix in extensions:
        lines.append(f'<extension name="{name}" prefix="{prefix}" uri="http://www.xes-standard.org/{prefix}.xesext"/>')
    lines += ['<global scope="trace">', '<string key="concept:name" value="unknown"/>', "</global>"]
    lines += ['<global scope="event">', '<string key="concept:name" value="unknown"/>']
    lines += ['<string key="lifecycle:transition" value="complete"/>']
    lines += [f'<date key="time:timestamp" value="{calendar.epoch}"/>', "</global>"]
    lines += ['<classifier name="activity" scope="event" keys="concept:name"/>']
    lines += ['<classifier name="activity and transition" scope="event" keys="concept:name lifecycle:transition"/>']
    lines += ['<string key="concept:name" value="event log"/>', '<string key="lifecycle:model" value="standard"/>']
    lines += [f'<string key="{ABOUT}" value="{told}"/>', ""]
    return "\n".join(lines)


def _events(piece: pa.Table, keys: dict[str, tuple[str, str]], calendar: Calendar, row: int) -> Iterator[str]:
    """Each row as an event, in order."""
    labels: dict[tuple[str, bool], str] = {}  # of an event and whether there is a job in it
    for event in EVENTS:
        activity, transition = ("service", SERVICE[event]) if event in SERVICE else (event, "complete")
        labels[event, True] = (
            f'<event>\n<string key="concept:name" value="{activity}"/>\n'
            f'<string key="lifecycle:transition" value="{transition}"/>\n'
        )
        # a server may break down with nobody at it: then no service is suspended
        labels[event, False] = labels[event, True].replace('"service"', f'"{event}"').replace('"suspend"', '"complete"')
    jobs, kinds = piece.column("job").to_pylist(), piece.column("event").to_pylist()
    texts = [[labels[kind, job is not None] for kind, job in zip(kinds, jobs, strict=True)]]
    dates = calendar.stamps(piece.column("time").to_numpy(zero_copy_only=False))
    texts.append([f'<date key="time:timestamp" value="{date}"/>\n' for date in dates])
    if "server" in keys:
        servers = piece.column("server").to_pylist()
        texts.append([f'<string key="org:resource" value="{k}"/>\n' if k is not None else "" for k in servers])
    texts.append([f'<int key="row" value="{k}"/>\n' for k in range(row, row + piece.num_rows)])
    for name, (kind, key) in keys.items():
        if name not in OF_TRACE:
            texts.append([_attribute(kind, key, value, name) for value in piece.column(name).to_pylist()])
    return ("".join(parts) + "</event>\n" for parts in zip(*texts, strict=True))


def _attribute(kind: str, key: str, value: Any, column: str) -> str:
    """An attribute of this type; nothing where nothing is known."""
    if value is None:
        return ""
    if kind == "float":
        text = double(value)
    elif kind == "boolean":
        text = "true" if value else "false"
    elif kind == "date":
        text = value.isoformat()
    else:
        text = escaped(str(value), column)
    return f'<{kind} key="{key}" value="{text}"/>\n'


class _Traces:
    """Events of the jobs in the system, until they leave; those of no job go to the end of the file."""

    def __init__(self, file: BinaryIO, system: Any, jobs_only: bool) -> None:
        self.file, self.system, self.jobs_only = file, system, jobs_only
        self.replication: int | None = None
        self.open: dict[int, list[str]] = {}  # job -> the head of its trace, and its events
        self.begun = False  # whether the system has had an event in this replication

    def add(self, replication: int | None, job: int | None, job_class: str | None, event: str, text: str) -> None:
        """The next row."""
        if replication != self.replication:
            self.finish_replication()
            self.replication = replication
        if job is None:
            if not self.jobs_only:
                self.begun = self.begun or self._begin_system()
                self.system.write(text.encode())
            return
        if job not in self.open:
            head = _attribute("string", "job_class", job_class, "job_class")
            self.open[job] = [self._head(str(job)) + f'<int key="job" value="{job}"/>\n' + head]
        self.open[job].append(text)
        if event in LEAVES:
            self._close(job, LEAVES[event])

    def _head(self, name: str) -> str:
        known = self.replication is not None
        prefix = f"{self.replication}/" if known else ""
        number = f'<int key="replication" value="{self.replication}"/>\n' if known else ""
        return f'<trace>\n<string key="concept:name" value="{prefix}{name}"/>\n{number}'

    def _begin_system(self) -> bool:
        self.system.write(self._head("system").encode())
        return True

    def _close(self, job: int, outcome: str) -> None:
        head, *events = self.open.pop(job)
        said = f'<string key="outcome" value="{outcome}"/>\n'
        self.file.write("".join([head, said, *events, "</trace>\n"]).encode())

    def finish_replication(self) -> None:
        """The jobs still in the system, in the order of their numbers."""
        for job in sorted(self.open):
            self._close(job, "unfinished")
        if self.begun:
            self.system.write(b"</trace>\n")
        self.begun = False

    def finish(self) -> None:
        """All that is left, and the traces of no job."""
        self.finish_replication()
        self.system.seek(0)
        while block := self.system.read(1_000_000):
            self.file.write(block)
