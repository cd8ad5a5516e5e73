"""Days that differ: the usual day is known, the level of today is followed within the day.

Class i comes at rate F_i lambda_i(t), its factor F_i drawn anew for each day: gamma, of mean 1 and a known cv. With N_i
jobs seen today where n_i were to be expected, F_i ~ Gamma(1 / cv^2 + N_i, 1 / cv^2 + n_i): the ratio N_i / n_i, shrunk
towards 1 by as many jobs as the cv says. At each review the policy is the best one for the rates of the moment times
these levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Session, Tally
from queueing_ucrl.model.arrivals import Poisson
from queueing_ucrl.model.random_rates import DayFactor
from queueing_ucrl.model.system import JobClass, Queue, System
from queueing_ucrl.solvers.service import SolveRequest

MOST_REVIEWS = 10_000  # a day
PARTS = 8  # of a stretch between reviews, at whose middles the usual rates are taken
RAREST = 1e-9  # of a class's usual rate: what it counts for while it does not come


@dataclass(frozen=True)
class UsualDay:
    """How jobs of a class come on a usual day, and how much days differ."""

    arrivals: Poisson
    cv: float  # of the day's factor; 0: all days are alike

    @classmethod
    def of(cls, job_class: JobClass) -> UsualDay:
        """A ValueError where the jobs of a class come in another way."""
        process = job_class.arrival_process
        arrivals, cv = (process.arrivals, process.cv) if isinstance(process, DayFactor) else (process, 0.0)
        if not isinstance(arrivals, Poisson):
            raise ValueError(
                f"class {job_class.name!r}: day-following knows Poisson arrivals, with a day factor or without"
            )
        return cls(arrivals, cv)

    def expected(self, start: float, end: float) -> float:
        """Jobs to be expected from start to end, of a day with factor 1."""
        step = (end - start) / PARTS
        factors = [self.arrivals.pattern.factor(start + (k + 0.5) * step) for k in range(PARTS)]
        return self.arrivals.base_rate * step * math.fsum(factors)

    def level(self, seen: float, expected: float) -> float:
        """The mean of today's factor, given how many jobs were seen and expected today."""
        if self.cv == 0.0:
            return 1.0
        prior = 1.0 / self.cv**2
        return (prior + seen) / (prior + expected)


@dataclass(frozen=True)
class DayFollowing(Controller):
    """Knows the usual day and follows the level of today, with the best policy for the rates of the moment.

    For classes with a day factor (`DayFactor`); it does not look ahead.

    Options:
        reviews: how often a day it thinks again
    """

    name: ClassVar[str] = "day-following"
    knows_truth: ClassVar[bool] = True
    reviews: int = 48

    def __post_init__(self) -> None:
        if isinstance(self.reviews, bool) or not 1 <= self.reviews <= MOST_REVIEWS:
            raise ValueError(f"reviews must be a whole number from 1 to {MOST_REVIEWS:,}, got {self.reviews!r}")

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        assert knowledge.truth is not None
        assert knowledge.system is not None
        classes = knowledge.system.classes
        periods = {c.arrivals.period for c in classes if isinstance(c.arrivals, DayFactor)}
        if len(periods) > 1:
            raise ValueError(f"day-following needs days of one length, got {', '.join(map(str, sorted(periods)))}")
        day = periods.pop() if periods else 100.0 / knowledge.service_rate
        return DaySession(knowledge.truth, [UsualDay.of(c) for c in classes], day, self.reviews)

    def model_gap(self, system: System) -> str:
        """Days that differ are what it is for."""
        alike = [replace(c, arrivals=None) if isinstance(c.arrivals, DayFactor) else c for c in system.classes]
        return replace(system, classes=alike).not_markov if not isinstance(system, Queue) else ""


class DaySession:
    """The levels of one day after the other."""

    def __init__(self, truth: Queue, days: list[UsualDay], length: float, reviews: int) -> None:
        self.truth, self.days, self.length, self.reviews = truth, days, length, reviews
        self.today = 0
        self.last = 0.0
        self.seen = np.zeros(len(days))
        self.expected = np.zeros(len(days))

    def levels(self) -> FloatArray:
        """The mean of each class's factor today."""
        pairs = zip(self.days, self.seen.tolist(), self.expected.tolist(), strict=True)
        return np.array([day.level(seen, expected) for day, seen, expected in pairs])

    def _plan(self, now: float) -> Plan:
        piece = self.length / self.reviews
        until = piece * (math.floor(now / piece + 1e-9) + 1)
        rates = [
            level * max(day.expected(now, until) / (until - now), RAREST * day.arrivals.base_rate)
            for day, level in zip(self.days, self.levels().tolist(), strict=True)
        ]
        return Plan(until=until, request=SolveRequest(self.truth.with_arrival_rates(rates).model))

    def first(self) -> Plan:
        return self._plan(0.0)

    def review(self, tally: Tally) -> Plan:
        self.seen += tally.arrivals
        self.expected += [day.expected(self.last, tally.now) for day in self.days]
        today = math.floor(tally.now / self.length + 1e-9)
        if today > self.today:
            self.today = today
            self.seen[:] = 0.0
            self.expected[:] = 0.0
        self.last = tally.now
        return self._plan(tally.now)
