"""Event logs as records in the manner of Ciw: a row for each visit of a job to a server, or for its being turned away.

The columns are those of Ciw's data records. record_type is

    service                 the job was served; service_start_date is when it last joined a server
    interrupted service     its server broke down or left; another record follows when it comes back to a server
    renege                  it gave up: waiting_time is how long it had waited
    rejection               there was no room
    baulk                   the policy turned it away (in Ciw a baulking function does this)
    incomplete              it was still there when the log ended

in the order in which these things happened. id_number is the job's number and server_id the server's, both counted from
0 as in the log. There is one node, 1; destination -1 is the way out; nobody changes class, and nobody is blocked after
service. The columns end with the replication, where the log has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from queueing_ucrl.data.formats.csv import safe_text
from queueing_ucrl.data.formats.objects import ARRIVALS
from queueing_ucrl.data.formats.source import LogSource

if TYPE_CHECKING:
    import pyarrow as pa

TURNED_AWAY = {"block": "rejection", "reject": "baulk"}
FIELDS = {
    "id_number": "int64",
    "customer_class": "string",
    "original_customer_class": "string",
    "node": "int32",
    "arrival_date": "double",
    "waiting_time": "double",
    "service_start_date": "double",
    "service_time": "double",
    "service_end_date": "double",
    "time_blocked": "double",
    "exit_date": "double",
    "destination": "int32",
    "queue_size_at_arrival": "int32",
    "queue_size_at_departure": "int32",
    "server_id": "int32",
    "record_type": "string",
}


@dataclass(slots=True)
class _Visit:
    """What is known of a job that is in the system."""

    job_class: str | None
    arrival: float | None = None
    found: int | None = None  # jobs in the system when it came
    start: float | None = None
    server: int | None = None


@dataclass
class _Records:
    """Turns rows into records; holds the jobs that are in the system."""

    replication: int | None = None
    there: dict[int, _Visit] = field(default_factory=dict)
    done: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        time: float,
        event: str,
        job: int | None,
        job_class: str | None,
        server: int | None,
        in_system: int | None,
        replication: int | None,
    ) -> None:  # long: a field of the record a line
        """The next row."""
        if replication != self.replication:
            self.finish()
            self.replication = replication
        if job is None:
            return
        visit = self.there.setdefault(job, _Visit(job_class))
        after = None if in_system is None else in_system - 1
        if event in ARRIVALS:
            visit.arrival, visit.found = time, in_system
        if event in ("start", "resume"):
            visit.start, visit.server = time, server
        elif event in TURNED_AWAY:
            self._write(job, TURNED_AWAY[event], exit_date=time)
        elif event == "abandon":
            waited = _less(time, visit.arrival)
            self._write(
                job, "renege", waiting_time=waited, exit_date=time, destination=-1, queue_size_at_departure=after
            )
        elif event == "depart":
            self._write(
                job,
                "service",
                **_served(visit),
                service_time=_less(time, visit.start),
                service_end_date=time,
                time_blocked=0.0,
                exit_date=time,
                destination=-1,
                queue_size_at_departure=after,
                server_id=server if server is not None else visit.server,
            )
        elif event in ("breakdown", "hand-over"):
            self._write(job, "interrupted service", **_served(visit), exit_date=time, server_id=server)
            self.there[job] = _Visit(visit.job_class, visit.arrival, visit.found)

    def finish(self) -> None:
        """The jobs that are still there, in the order of their numbers."""
        for job in sorted(self.there):
            self._write(job, "incomplete", **_served(self.there[job]), server_id=self.there[job].server)

    def _write(self, job: int, kind: str, **known: Any) -> None:
        visit = self.there.pop(job)
        name = None if visit.job_class is None else safe_text(visit.job_class)
        self.done.append(
            {
                "id_number": job,
                "customer_class": name,
                "original_customer_class": name,
                "node": 1,
                "arrival_date": visit.arrival,
                "queue_size_at_arrival": visit.found,
                "record_type": kind,
                "replication": self.replication,
                **known,
            }
        )


def _served(visit: _Visit) -> dict[str, Any]:
    return {"waiting_time": _less(visit.start, visit.arrival), "service_start_date": visit.start}


def _less(end: float | None, begin: float | None) -> float | None:
    return None if end is None or begin is None else end - begin


def write_ciw(log: LogSource, file: BinaryIO) -> None:
    """The log's jobs as a CSV file of records."""
    import pyarrow as pa
    import pyarrow.csv

    fields = FIELDS | ({"replication": "int32"} if "replication" in log.columns else {})
    schema: pa.Schema = pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in fields.items()])
    records = _Records()
    names = ("time", "event", "job", "job_class", "server", "in_system", "replication")

    def write_done(writer: Any) -> None:
        writer.write_table(pa.Table.from_pylist(records.done, schema))
        records.done = []

    with pa.csv.CSVWriter(file, schema) as writer:
        for piece in log:
            missing = [None] * piece.num_rows
            columns = [piece.column(name).to_pylist() if name in log.columns else missing for name in names]
            for row in zip(*columns, strict=True):
                records.add(*row)
            write_done(writer)
        records.finish()
        write_done(writer)
