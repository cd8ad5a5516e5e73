"""What controllers that learn rates have in common: when they review, and by which solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeVar

from queueing_ucrl.learning.controller import Belief, Controller, Knowledge
from queueing_ucrl.learning.estimators import LEAST_DEPARTURES, Estimator
from queueing_ucrl.learning.option_checks import SOLVERS, check_choice, check_period, check_positive
from queueing_ucrl.learning.payments import PaymentsLearner
from queueing_ucrl.learning.planners import Planner
from queueing_ucrl.learning.schedules import ArrivalGrid, Clock, DeltaSchedule, Geometric
from queueing_ucrl.learning.session import LearningSession

ServiceRate = Literal["known", "unknown"]
Patience = Literal["known", "unknown"]

B = TypeVar("B", bound=Belief)

REVIEWS_A_MEMORY = 20
LEAST_RATIO = 1.0001  # ten thousand reviews while the time elapsed grows e-fold
SHORTEST_FIRST = 1e-9  # of the mean time between departures of a full house


@dataclass(frozen=True)
class RateLearner(Controller):
    """A first review, later ones at ratios of the time elapsed, but never more than a period apart.

    review_ratio = 2 is the paper's doubling; with a review_period, a large ratio means every period from the start.
    Where the service rate is not known there is no time to go by, and the first review comes with the second departure.

    Options:
        first_review: when the policy is first reviewed; without it, after the mean time between departures of a full
            house, or at the second departure where the service rate is not known
        review_ratio: each review is at so many times the time of the one before (2 is the paper's doubling)
        review_period: reviews are never more than this time apart; without it there is no limit
        solver: the method that finds the policies: pi-b, pi, vi, vi-ae or lp
    """

    first_review: float | None = None  # default: 1 / mu_max, the mean time between departures of a full house
    review_ratio: float = 1.1
    review_period: float | None = None  # default: no limit
    solver: str = "pi-b"

    def __post_init__(self) -> None:
        check_positive("first_review", self.first_review)
        check_positive("review_period", self.review_period)
        check_choice("solver", self.solver, *SOLVERS)
        if isinstance(self.review_ratio, bool) or not LEAST_RATIO <= self.review_ratio < math.inf:
            raise ValueError(f"review_ratio must be a number of at least {LEAST_RATIO}, got {self.review_ratio}")

    @property
    def longest_episode(self) -> float:
        """The longest time between reviews."""
        return math.inf if self.review_period is None else self.review_period

    def first_time(self, knowledge: Knowledge) -> float:
        """T_1; infinite where a departure says when.

        By 1 / mu an overloaded house of many servers would be full of whoever came first.
        """
        if self.first_review is not None:
            return self.first_review
        return 1.0 / knowledge.max_service_rate if self.knows_service_rate else math.inf

    @property
    def first_departures(self) -> int:
        """After how many departures the first review comes; 0: at a time."""
        return LEAST_DEPARTURES if not self.knows_service_rate and self.first_review is None else 0

    def clock(self, knowledge: Knowledge) -> Clock:
        """At the start of a run."""
        first = self.first_time(knowledge)
        check_period("first_review", first, knowledge, SHORTEST_FIRST)
        name = "review_period" if self.review_period is not None else f"memory / {REVIEWS_A_MEMORY}"
        check_period(name, self.longest_episode, knowledge)
        return Clock(Geometric(self.review_ratio, self.longest_episode), min(first, self.longest_episode))

    def delta_schedule(self, knowledge: Knowledge) -> DeltaSchedule:
        """delta at each time: the paper's 1 / (mu t)."""
        return DeltaSchedule(1.0 / knowledge.service_rate)

    def session(
        self,
        knowledge: Knowledge,
        estimator: Estimator[B],
        planner: Planner[B],
        payments: PaymentsLearner | None = None,
        arrivals: ArrivalGrid | None = None,
    ) -> LearningSession[B]:
        """The parts, joined for one run."""
        parts = (knowledge, estimator, planner, self.clock(knowledge), self.solver)
        return LearningSession(*parts, departures=self.first_departures, payments=payments, arrivals=arrivals)
