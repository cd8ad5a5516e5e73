"""When a controller reviews its policy: parts that any learning controller can be built from.

A schedule says which review follows one at time T; a `Clock` walks along it in one run. `DeltaSchedule` says how
surely a belief is to hold the truth at each of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """The times of reviews."""

    def after(self, time: float) -> float:
        """The review that follows one at `time`; later than it."""
        ...


@dataclass(frozen=True)
class Geometric:
    """T, ratio T, ratio^2 T, .., but never further apart than `longest`.

    An episode as long as all before it (ratio 2) is the paper's doubling. A ratio r makes log T / log r reviews up to
    T, and a policy is at most a share r - 1 of the time elapsed out of date.
    """

    ratio: float = 1.1
    longest: float = math.inf

    def __post_init__(self) -> None:
        if not self.ratio > 1.0:
            raise ValueError(f"ratio must be above 1, got {self.ratio}")
        if not self.longest > 0.0:
            raise ValueError(f"longest must be positive, got {self.longest}")

    def after(self, time: float) -> float:
        return max(min(self.ratio * time, time + self.longest), math.nextafter(time, math.inf))


DOUBLING = Geometric(2.0)  # Alg. 3


@dataclass(frozen=True)
class Periodic:
    """A review every `period`."""

    period: float

    def __post_init__(self) -> None:
        if not 0.0 < self.period < math.inf:
            raise ValueError(f"period must be a positive number, got {self.period}")

    def after(self, time: float) -> float:
        return max(time + self.period, math.nextafter(time, math.inf))


class Clock:
    """Where one run is on its schedule: in the episode from `start` to `end`, at whose end it reviews.

    first = inf: the first review is not at a time but at an event, and the schedule starts with it.
    """

    def __init__(self, schedule: Schedule, first: float) -> None:
        self.schedule = schedule
        self.start = 0.0
        self.end = first  # T_k

    @property
    def length(self) -> float:
        """t_k: of the current episode."""
        return self.end - self.start

    def advance(self, now: float) -> None:
        """On to the episode that `now` is in: the next one, unless the solver's answer took longer than an episode.

        A review before its time (a plan's departure limit was reached) starts a new episode then and there.
        """
        self.end = min(self.end, now)
        while self.end <= now:
            self.start, self.end = self.end, self.schedule.after(self.end)


class ArrivalGrid:
    """Reviews before arrivals: after N of them the next one is before the first that comes after (ratio - 1) N more.

    Up to 1 / (ratio - 1) arrivals that is before each but the first. A review then sees N arrivals in the time up to
    arrival N + 1, so that N / t has the mean lambda; right after an arrival it would be too large.
    """

    def __init__(self, ratio: float, longest: float = math.inf) -> None:
        self.ratio, self.longest = ratio, longest  # longest: the longest time between reviews
        self.seen = 0

    def add(self, count: int) -> None:
        """So many more have come."""
        self.seen += count

    @property
    def limit(self) -> int:
        """After how many more the next review is due."""
        return max(1, int((self.ratio - 1.0) * self.seen))


@dataclass(frozen=True)
class DeltaSchedule:
    """delta = unit / t at time t, but never above 1/2; with unit = 1 / mu the paper's 1 / (mu t)."""

    unit: float

    def __call__(self, time: float) -> float:
        return min(0.5, self.unit / time)
