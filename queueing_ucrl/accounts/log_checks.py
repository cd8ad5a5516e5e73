r"""Laws that every event log keeps, whatever the world; a log that breaks one is told so with the first row that does.

    columns in order   time does not run backwards
    jobs               a job's rows follow one another: it comes, starts (or gives up), is served to the end, leaves;
                       an interrupted one (breakdown, hand-over) resumes
    conservation       in_system, before a row, is the number of jobs that came in and have not left
    capacity           nobody is let in when the system is full, and nobody is blocked when it is not
    servers            a server has one job at a time; no more jobs are at servers at a start than are on duty
    first in first out first starts come in the order of arrivals (a job that resumes is no first start)
    waits              wait = start - arrival, or the time of giving up less it
    Little's law       int_0^T N(t) dt = sum of the times that jobs were in the system until T, the last row's time:
                       the left side from in_system, the right side from the rows of the jobs, unfinished ones until T

What a law needs and the log does not hold (in_system, capacity, servers on duty, which its metadata may tell) leaves it
unchecked, and this is said too. Equal means equal to rounding: a billionth. Memory is flat, so a job's number that is
used again after the job's end is seen only where both are in the same row group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.job_rows import ARRIVES, NEW, Before, JobRows
from queueing_ucrl.accounts.log_rows import (
    ABANDON,
    ADMIT,
    BLOCK,
    BREAKDOWN,
    DEPART,
    EVENTS,
    HAND_OVER,
    INITIAL,
    REPAIR,
    RESUME,
    SHIFT,
    START,
    EventLog,
    Rows,
    open_logs,
)
from queueing_ucrl.accounts.log_runs import split
from queueing_ucrl.accounts.log_sums import LEVELS
from queueing_ucrl.arrays import IntArray
from queueing_ucrl.messages import shown

if TYPE_CHECKING:
    import pandas as pd

LAWS = ("time", "jobs", "conservation", "capacity", "servers", "fifo", "waits", "little")
READ = ("server", "in_system", "wait", "replication", "on_duty")  # the columns that are needed
CLOSE = 1e-9  # relative

# which event of a job may follow which
_FOLLOWS = np.zeros((NEW + 1, NEW), dtype=bool)
_FOLLOWS[NEW] = ARRIVES
for _before, _after in (
    *((ADMIT, START), (INITIAL, START), (ADMIT, ABANDON), (INITIAL, ABANDON), (START, DEPART), (RESUME, DEPART)),
    *((START, BREAKDOWN), (RESUME, BREAKDOWN), (START, HAND_OVER), (RESUME, HAND_OVER)),
    *((BREAKDOWN, RESUME), (HAND_OVER, RESUME)),
):
    _FOLLOWS[_before, _after] = True


@dataclass(frozen=True)
class Law:
    """Whether a log keeps a law."""

    name: str
    holds: bool | None  # None: it cannot be checked
    words: str  # what is wrong, or why it cannot be checked
    row: int | None = None  # the first row that breaks it; the log's first row is 1
    time: float | None = None
    job: Any = None
    log: str = ""  # the file, where there are several
    replication: int | None = None

    def __str__(self) -> str:
        where = "" if self.row is None else f"row {self.row}, time {self.time:.12g}: "
        return f"{self.log}: {where}{self.words}" if self.log else f"{where}{self.words}"


@dataclass
class RunChecks:
    """Reads the rows of one run."""

    log: EventLog
    capacity: int | None = None
    servers: int | None = None  # on duty; None: not known, or they come and go
    shared: bool = False  # processor sharing: nobody has a server
    whole: bool = True  # the log begins with the run: at first the system is empty
    broken: dict[str, Law] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = JobRows()
        self.begun = False
        self.count = 0  # jobs in the system
        self.strangers = 0  # jobs that were there before the log began and have not shown up yet
        self.now = -math.inf
        self.first_time = 0.0
        self.at_servers = 0
        self.down: set[int] = set()
        self.job_of: dict[int, Any] = {}  # server -> its job
        self.seen: set[int] = set()  # servers
        self.last_started = -1  # the arrival's row of the job that started last
        self.area = 0.0  # int N dt, by in_system
        self.time_inside = 0.0  # of jobs that have left, less the arrivals of those that have not
        self.tells_count = "in_system" in self.log.columns
        self.posts = self.servers

    def _break(self, law: str, rows: Rows, k: int, words: str) -> None:
        before = self.broken.get(law)
        if before is None or (before.row is not None and rows.number(k) < before.row):
            job = rows.job[k] if rows.has_job[k] else None
            job = job.item() if isinstance(job, np.generic) else job
            self.broken[law] = Law(law, False, words, rows.number(k), float(rows.time[k]), job)

    def take(self, rows: Rows) -> None:
        """The next rows."""
        before = self.jobs.take(rows)
        if not self.begun:
            self.begun = True
            self.first_time = float(rows.time[0])
            known = self.tells_count and not self.whole and rows.in_system[0] >= 0
            self.count = self.strangers = int(rows.in_system[0]) if known else 0
        self._time(rows)
        self._order(rows, before)
        count = self._conservation(rows)
        self._capacity(rows, count)
        if not self.shared:
            self._servers(rows)
        self._fifo(rows, before)
        self._waits(rows, before)
        self._little(rows, before)
        self.now = float(rows.time[-1])

    def _time(self, rows: Rows) -> None:
        steps = np.diff(rows.time, prepend=self.now)
        if (steps < 0).any():
            k = int(np.argmax(steps < 0))
            last = rows.time[k - 1] if k else self.now
            self._break("time", rows, k, f"time runs backwards, from {last:.12g}")

    def _order(self, rows: Rows, before: Before) -> None:
        event = rows.event[before.at]
        wrong = ~_FOLLOWS[before.event, event]
        # of jobs that were there before the log began, anything may come first
        unknown = np.flatnonzero(wrong & (before.event == NEW))[: self.strangers]
        wrong[unknown] = False
        self.strangers -= unknown.size
        if wrong.any():
            j = int(np.argmax(wrong))
            k, last = int(before.at[j]), int(before.event[j])
            after = "without having come" if last == NEW else f"after its {EVENTS[last]!r}"
            self._break("jobs", rows, k, f"job {shown(rows.job[k])} has {EVENTS[event[j]]!r} {after}")

    def _conservation(self, rows: Rows) -> IntArray:
        """The number of jobs in the system before each row."""
        moves = np.where(rows.has_job, LEVELS["in_system"][rows.event], 0)
        after = self.count + np.cumsum(moves)
        count: IntArray = after - moves
        self.count = int(after[-1])
        if self.tells_count:
            wrong = (rows.in_system != count) & (rows.in_system >= 0)
            if wrong.any():
                k = int(np.argmax(wrong))
                words = f"in_system is {rows.in_system[k]}, but {count[k]} came in and have not left"
                self._break("conservation", rows, k, words)
        elif (after < 0).any():
            k = int(np.argmax(after < 0))
            self._break("conservation", rows, k, "more jobs have left than came in")
        return count

    def _capacity(self, rows: Rows, count: IntArray) -> None:
        if self.capacity is None:
            return
        entered = ((rows.event == ADMIT) | (rows.event == INITIAL)) & (count >= self.capacity)
        blocked = (rows.event == BLOCK) & (count < self.capacity)
        wrong = entered | blocked
        if wrong.any():
            k = int(np.argmax(wrong))
            what = "let in" if entered[k] else "blocked"
            words = f"job {shown(rows.job[k])} is {what} with {count[k]} in the system, which has room for"
            self._break("capacity", rows, k, f"{words} {self.capacity}")

    def _servers(self, rows: Rows) -> None:
        joins = np.isin(rows.event, [START, RESUME])
        leaves = np.isin(rows.event, [DEPART, BREAKDOWN, HAND_OVER]) & rows.has_job
        busy = self.at_servers + np.cumsum(joins.astype(np.int64) - leaves.astype(np.int64))
        duty = self._on_duty(rows)
        if duty is not None:
            wrong = joins & (busy > duty)
            if wrong.any():
                k = int(np.argmax(wrong))
                words = f"{busy[k]} jobs are at servers, of which {duty[k]} are on duty"
                self._break("servers", rows, k, words)
        self.at_servers = int(busy[-1])
        self._one_at_a_time(rows, joins, leaves)

    def _on_duty(self, rows: Rows) -> IntArray | None:
        """The servers on duty and up, after each row; None: not known."""
        changes = np.flatnonzero(np.isin(rows.event, [SHIFT, BREAKDOWN, REPAIR]))
        duty = np.zeros(len(rows), dtype=np.int64)
        known, begin = self.posts is not None, 0
        for k in changes.tolist():
            duty[begin:k], begin = self._up(), k
            if rows.event[k] == SHIFT:
                self.posts = int(rows.on_duty[k]) if rows.on_duty[k] >= 0 else None
            elif rows.event[k] == BREAKDOWN:
                self.down.add(int(rows.server[k]))
            else:
                self.down.discard(int(rows.server[k]))
            known &= self.posts is not None
        duty[begin:] = self._up()
        return duty if known else None

    def _up(self) -> int:
        return 0 if self.posts is None else self.posts - sum(server < self.posts for server in self.down)

    def _one_at_a_time(self, rows: Rows, joins: Any, leaves: Any) -> None:
        """A job joins a server that has none, and leaves the one it joined."""
        at = np.flatnonzero((joins | leaves) & (rows.server >= 0))
        order = at[np.argsort(rows.server[at], kind="stable")]
        if not order.size:
            return
        server, job = rows.server[order], rows.job[order]
        first = np.concatenate([[True], server[1:] != server[:-1]])
        last = np.concatenate([first[1:], [True]])
        holds = np.concatenate([[False], joins[order][:-1]])  # a job, by the row before at the same server
        whose = np.concatenate([job[:1], job[:-1]])
        whose = whose.copy()
        for j in np.flatnonzero(first).tolist():
            holds[j] = int(server[j]) in self.job_of
            if holds[j]:
                whose[j] = self.job_of[int(server[j])]
        wrong = np.where(joins[order], holds, ~holds | (whose != job))
        if not self.whole:  # it may have begun before the log
            seen = np.array([int(k) in self.seen for k in server[first].tolist()])[np.cumsum(first) - 1]
            wrong &= joins[order] | ~(first & ~seen)
        if wrong.any():
            k = int(order[wrong].min())
            j = int(np.flatnonzero(order == k)[0])
            words = f"job {shown(rows.job[k])} joins server {rows.server[k]}, which has job {shown(whose[j])}"
            if not joins[k]:
                words = f"job {shown(rows.job[k])} leaves server {rows.server[k]}, where it is not"
            self._break("servers", rows, k, words)
        for j in np.flatnonzero(last).tolist():
            self.seen.add(int(server[j]))
            if joins[order[j]]:
                self.job_of[int(server[j])] = job[j]
            else:
                self.job_of.pop(int(server[j]), None)

    def _fifo(self, rows: Rows, before: Before) -> None:
        j = np.flatnonzero((rows.event[before.at] == START) & (before.arrival_row >= 0))
        arrivals = before.arrival_row[j]
        ahead = np.maximum.accumulate(np.concatenate([[self.last_started], arrivals]))[:-1]
        wrong = arrivals < ahead
        if wrong.any():
            k = int(before.at[j[np.argmax(wrong)]])
            self._break("fifo", rows, k, f"job {shown(rows.job[k])} starts after one that came later")
        if arrivals.size:
            self.last_started = max(self.last_started, int(arrivals.max()))

    def _waits(self, rows: Rows, before: Before) -> None:
        at = before.at
        told = np.isin(rows.event[at], [START, ABANDON]) & ~np.isnan(rows.wait[at]) & ~np.isnan(before.arrival)
        wait, true = rows.wait[at], rows.time[at] - before.arrival
        with np.errstate(invalid="ignore"):
            wrong = told & ~(np.abs(wait - true) <= CLOSE * np.maximum(1.0, np.abs(rows.time[at])))
        if wrong.any():
            j = int(np.argmax(wrong))
            k = int(at[j])
            words = f"job {shown(rows.job[k])} came at {before.arrival[j]:.12g}, so its wait is {true[j]:.6g}"
            self._break("waits", rows, k, f"{words}, not {wait[j]:.6g}")

    def _little(self, rows: Rows, before: Before) -> None:
        if not self.tells_count:
            return
        steps = np.diff(rows.time, prepend=self.now if math.isfinite(self.now) else self.first_time)
        self.area += float(np.sum(np.where(rows.in_system >= 0, rows.in_system, 0) * steps))
        moves = LEVELS["in_system"][rows.event[before.at]]
        since = rows.time[before.at] - self.first_time
        self.time_inside -= float(np.sum(moves * since))

    def laws(self) -> list[Law]:
        """What was found, in the order of LAWS."""
        found = {name: Law(name, True, "") for name in LAWS} | self.broken
        if not self.tells_count:
            found["little"] = Law("little", None, "the log has no column 'in_system'")
        else:
            # those that have not left count until the last row
            inside = self.time_inside + self.count * ((self.now if self.begun else 0.0) - self.first_time)
            if not abs(inside - self.area) <= CLOSE * max(1.0, abs(self.area), abs(inside)):
                words = f"the number in the system adds up to {self.area:.9g} over time, the jobs' times in it to"
                found["little"] = Law("little", False, f"{words} {inside:.9g}")
        if self.capacity is None:
            found["capacity"] = Law("capacity", None, "the log does not say how many the system has room for")
        if "servers" not in self.broken:
            if self.shared:
                found["servers"] = Law("servers", None, "all jobs share the servers")
            elif "server" not in self.log.columns and self.servers is None:
                found["servers"] = Law("servers", None, "the log does not say which server, or how many there are")
        if "wait" not in self.log.columns:
            found["waits"] = Law("waits", None, "the log has no column 'wait'")
        return [found[name] for name in LAWS]


def checks_of(log: EventLog, capacity: int | None = None, servers: int | None = None) -> RunChecks:
    """Checks for a run of this log, with what its metadata tell."""
    queue = log.metadata.get("queue")
    queue = queue if isinstance(queue, dict) else {}
    told, room = queue.get("servers"), queue.get("capacity")
    environment = queue.get("environment")
    by_environment = isinstance(environment, dict) and environment.get("servers") is not None
    if servers is None and isinstance(told, int) and not by_environment:
        servers = told
    capacity = room if capacity is None and isinstance(room, int) else capacity
    shared = queue.get("discipline") == "processor-sharing"
    return RunChecks(log, capacity, servers, shared, whole=bool(queue))


def verdict(checks: dict[tuple[int, int], RunChecks], logs: Sequence[EventLog]) -> list[Law]:
    """Of several runs: of each law the first breach, or why it was nowhere checked, or that it holds."""
    found = []
    each = {key: checks[key].laws() for key in sorted(checks)}
    for k, name in enumerate(LAWS):
        told = [(key, laws[k]) for key, laws in each.items()]
        (place, replication), law = min(told, key=lambda entry: (entry[1].holds is not False, entry[1].holds is None))
        where = logs[place].name if len(logs) > 1 and law.holds is False else ""
        number = replication if len(each) > 1 and replication >= 0 and law.holds is False else None
        found.append(Law(name, law.holds, law.words, law.row, law.time, law.job, where, number))
    return found


def check_log(
    events: pd.DataFrame | str | Path, *, capacity: int | None = None, servers: int | None = None
) -> list[Law]:
    """Whether a log keeps the laws that every log keeps, one answer a law, in the order of this module's docstring.

    events: a frame, a Parquet or CSV log, or a folder of logs, read in flat memory. capacity, servers: what the log's
    metadata do not tell.
    """
    logs = open_logs(events)
    found: dict[tuple[int, int], RunChecks] = {}
    for place, log in enumerate(logs):
        for rows in log.rows(READ):
            for value, mine in split(rows):
                if (place, value) not in found:
                    found[place, value] = checks_of(log, capacity, servers)
                found[place, value].take(mine)
        if not any(key[0] == place for key in found):
            found[place, -1] = checks_of(log, capacity, servers)
    return verdict(found, logs)
