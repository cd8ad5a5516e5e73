"""Servers that come and go: shifts, breakdowns, and set-up after idling.

All of it is by the clock or drawn before anybody decides: who is on duty does not depend on the jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed, not_negative, number, positive, whole
from queueing_ucrl.model.laws import Law

LEAVING = ("finish", "hand-over")
INTERRUPTED = ("resume", "restart")


def _one_of(value: object, words: Sequence[str], name: str) -> str:
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {shown(value)}")
    return str(value)


def _law(value: object, name: str) -> Law:
    if not isinstance(value, Law):
        raise TypeError(f"{name} must be a law such as Exponential(0.3), got {shown(value)}")
    positive(getattr(value, "mean", None), f"the mean of {name}")
    return value


@dataclass(frozen=True)
class Shifts:
    """c(t) servers on duty: counts[0] until times[0], then counts[1] until times[1], ..; again after `period`.

    Times that begin with 0 and are as many as the counts say the same: counts[j] from times[j] on. What a server does
    that leaves with a job: "finish" it (and nobody starts while c(t) or more are busy), or "hand-over": the job goes
    back to the head of the line with what is left of its work, so that min(s, c(t)) are busy at all times.
    """

    kind: ClassVar[str] = "shifts"
    times: Sequence[float]
    counts: Sequence[int]
    period: float = math.inf
    leaving: str = "finish"

    def __post_init__(self) -> None:
        times = tuple(number(t, "shifts need numbers: a time") for t in listed(self.times, "shifts: times"))
        counts = tuple(whole(c, "shifts: a count", 0) for c in listed(self.counts, "shifts: counts"))
        if times and times[0] == 0.0 and len(times) == len(counts):
            times = times[1:]
        if self.period != math.inf:
            object.__setattr__(self, "period", positive(self.period, "shifts: period"))
        if len(counts) != len(times) + 1:
            raise ValueError(
                f"shifts need one count more than times (or times that begin with 0 and a count for each), "
                f"got {len(counts)} counts and {len(times)} times"
            )
        if not all(a < b for a, b in pairwise((0.0, *times, self.period))):
            raise ValueError("shifts need times that increase from 0 to below the period")
        if max(counts) == 0 or (self.period == math.inf and counts[-1] == 0):
            raise ValueError(f"shifts need servers: the counts {shown(list(counts))} leave nobody on duty for ever")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "counts", counts)
        _one_of(self.leaving, LEAVING, "shifts: leaving")

    @property
    def most(self) -> int:
        """The largest count."""
        return max(self.counts)

    @property
    def mean(self) -> float:
        """Servers on duty on average over a period; of shifts that do not come again, the last count."""
        if self.period == math.inf:
            return float(self.counts[-1])
        edges = pairwise((0.0, *self.times, self.period))
        return sum(c * (end - start) for c, (start, end) in zip(self.counts, edges, strict=True)) / self.period

    def at(self, time: float) -> int:
        """c(t)."""
        if self.period < math.inf:
            time -= self.period * math.floor(time / self.period)
        return self.counts[sum(time >= t for t in self.times)]


@dataclass(frozen=True)
class Breakdowns:
    """Each server works for an `uptime`, is down for a `downtime`, and so on, idle or busy.

    The job at a server that breaks down goes back to the head of the line and takes the next free server: to "resume",
    with what is left of its work, or to "restart", with all of it.
    """

    kind: ClassVar[str] = "breakdowns"
    uptime: Law
    downtime: Law
    interrupted: str = "resume"

    def __post_init__(self) -> None:
        _law(self.uptime, "breakdowns: uptime")
        _law(self.downtime, "breakdowns: downtime")
        _one_of(self.interrupted, INTERRUPTED, "breakdowns: interrupted")

    @property
    def availability(self) -> float:
        """E[uptime] / (E[uptime] + E[downtime]): the share of time a server is up."""
        return self.uptime.mean / (self.uptime.mean + self.downtime.mean)


@dataclass(frozen=True)
class Setup:
    """A server that was idle for longer than `after` first needs a set-up `time` before it serves the next job."""

    kind: ClassVar[str] = "setup"
    time: Law
    after: float = 0.0

    def __post_init__(self) -> None:
        _law(self.time, "setup: time")
        object.__setattr__(self, "after", not_negative(self.after, "setup: after"))
