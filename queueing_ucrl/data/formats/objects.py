"""The objects of an event log, for object-centric formats (OCEL 2.0), and which events they take part in.

    job        a job, with its class and its time of arrival; related to its class, which takes part in its first event
    server     a server, by its number
    class      a class of jobs, by its name
    episode    a stretch between two reviews of the policy: admissions and rejections are decided in it
    queue      the whole, for what concerns no job and no server: reviews, shifts, the environment

At least one object takes part in every event. Ids begin with the replication where the log has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queueing_ucrl.data.formats.source import LEAVES, LogSource

if TYPE_CHECKING:
    import pyarrow as pa

# attributes of the objects of each type
OBJECT_TYPES: dict[str, dict[str, str]] = {
    "job": {"job_class": "string", "arrival": "float"},
    "server": {"number": "integer"},
    "class": {"name": "string"},
    "episode": {"number": "integer"},
    "queue": {},
}
DECIDED = ("admit", "reject", "review")  # by the policy of the episode
ARRIVALS = ("admit", "reject", "block", "initial")


@dataclass(frozen=True, slots=True)
class LogObject:
    """An object, its attributes, and the objects it is related to (with what they are to it)."""

    id: str
    type: str
    attributes: dict[str, Any]
    related: tuple[tuple[str, str], ...] = ()


@dataclass
class Objects:
    """Tells of each row which objects are new in it, and which take part; jobs that have left are forgotten."""

    replicated: bool
    classes: set[str] = field(default_factory=set)  # the same in all replications
    replication: int | None = None
    jobs: set[int] = field(default_factory=set)  # in the system
    others: set[str] = field(default_factory=set)  # ids of servers, episodes and the queue

    @classmethod
    def of(cls, log: LogSource) -> Objects:
        """Of a log, before its first row."""
        return cls("replication" in log.columns)

    def rows(self, piece: pa.Table) -> Iterator[tuple[list[LogObject], list[tuple[str, str]]]]:
        """(new objects, (id, qualifier) of those that take part) of each row."""
        names = ("time", "event", "job", "job_class", "server", "episode", "replication")
        missing = [None] * piece.num_rows
        columns = [piece.column(name).to_pylist() if name in piece.column_names else missing for name in names]
        for row in zip(*columns, strict=True):
            yield self._row(*row)

    def _row(
        self,
        time: float,
        event: str,
        job: int | None,
        job_class: str | None,
        server: int | None,
        episode: int | None,
        replication: int | None,
    ) -> tuple[list[LogObject], list[tuple[str, str]]]:
        if replication != self.replication:
            self.replication, self.jobs, self.others = replication, set(), set()
        prefix = f"{replication}/" if self.replicated else ""
        new: list[LogObject] = []
        part: list[tuple[str, str]] = []

        def add(kind: str, name: str, **attributes: Any) -> None:
            part.append((name, kind))
            if name not in self.others:
                new.append(LogObject(name, kind, attributes))
                self.others.add(name)

        if job is not None:
            part.append((f"{prefix}job/{job}", "job"))
            if job not in self.jobs:
                self.jobs.add(job)
                new += self._job(f"{prefix}job/{job}", job_class, time if event in ARRIVALS else None)
                part += [(f"class/{job_class}", "class")] if job_class is not None else []
            if event in LEAVES:
                self.jobs.discard(job)
        if server is not None:
            add("server", f"{prefix}server/{server}", number=server)
        if episode is not None and event in DECIDED:
            add("episode", f"{prefix}episode/{episode}", number=episode)
        if job is None and server is None:
            add("queue", f"{prefix}queue")
        return new, part

    def _job(self, name: str, job_class: str | None, arrival: float | None) -> list[LogObject]:
        """A job that is new, after its class if that is new too."""
        found = []
        if job_class is not None and job_class not in self.classes:
            self.classes.add(job_class)
            found.append(LogObject(f"class/{job_class}", "class", {"name": job_class}))
        related = ((f"class/{job_class}", "class"),) if job_class is not None else ()
        return [*found, LogObject(name, "job", {"job_class": job_class, "arrival": arrival}, related)]
