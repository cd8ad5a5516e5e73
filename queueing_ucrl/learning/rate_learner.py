"""What controllers that learn rates have in common: when they review, and by which solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from queueing_ucrl.learning.controller import Belief, Controller, Knowledge
from queueing_ucrl.learning.estimators import ENOUGH, Confidence, Discount, Estimator, Everything, Memory, Window
from queueing_ucrl.learning.planning import Decision, LearningSession
from queueing_ucrl.learning.schedules import Clock, Geometric
from queueing_ucrl.learning.ucrl_ac import SOLVERS

ServiceRate = Literal["known", "unknown"]
Forgetting = Literal["window", "discount"]

B = TypeVar("B", bound=Belief)

REVIEWS_A_MEMORY = 20
LARGEST_NUMBER = 1e100
LEAST_RATIO = 1.0001  # ten thousand reviews while the time elapsed grows e-fold
SHORTEST_PERIOD = 1e-4  # of the mean time between departures of a full house
SHORTEST_FIRST = 1e-9  # likewise
LONGEST_WINDOW = 10_000  # reviews: each is kept


def check_choice(name: str, value: str, *choices: str) -> None:
    """An option that must be one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(choices)}, got {value!r}")


def check_positive(name: str, value: float | None) -> None:
    """An option that must be a positive number, if it is given; of a size that can be multiplied and divided by."""
    if value is not None and (isinstance(value, bool) or not 1 / LARGEST_NUMBER <= value <= LARGEST_NUMBER):
        raise ValueError(f"{name} must be a positive number from 1e-100 to 1e100, got {value}")


def check_period(name: str, value: float, knowledge: Knowledge, least: float = SHORTEST_PERIOD) -> None:
    """A time between reviews that would let nothing else happen is refused, where the operator can know."""
    shortest = least / knowledge.max_service_rate
    if value < shortest:  # never where it is not known
        raise ValueError(
            f"{name} must be at least {least:g} of 1 / mu_max, the mean time between departures of a full house: "
            f"{shortest:g} here, got {value:g}"
        )


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
    def longest_stretch(self) -> float:
        """The longest time between reviews."""
        return math.inf if self.review_period is None else self.review_period

    def first_time(self, knowledge: Knowledge) -> float:
        """T_1; infinite where a departure says when.

        By 1 / mu an overloaded house of many servers would be full of whoever came first.
        """
        if self.first_review is not None:
            return self.first_review
        return 1.0 / knowledge.max_service_rate if self.knows_service_rate else math.inf

    def clock(self, knowledge: Knowledge) -> Clock:
        """At the start of a run."""
        first = self.first_time(knowledge)
        check_period("first_review", first, knowledge, SHORTEST_FIRST)
        name = "review_period" if self.review_period is not None else f"memory / {REVIEWS_A_MEMORY}"
        check_period(name, self.longest_stretch, knowledge)
        return Clock(Geometric(self.review_ratio, self.longest_stretch), min(first, self.longest_stretch))

    def confidence(self, knowledge: Knowledge) -> Confidence:
        """delta at each time: the paper's 1 / (mu t)."""
        return Confidence(1.0 / knowledge.service_rate)

    def session(
        self, knowledge: Knowledge, estimator: Estimator[B], use: Callable[[B], Decision | None]
    ) -> LearningSession[B]:
        """The parts, joined for one run."""
        departures = ENOUGH if not self.knows_service_rate and self.first_review is None else 0
        return LearningSession(knowledge, estimator, use, self.clock(knowledge), self.solver, departures=departures)


@dataclass(frozen=True)
class DirectLearner(RateLearner):
    """A learner that plans for rates it holds likely, not for the best it holds possible.

    service_rate "unknown": it is learned from the departures, and the expected rewards with it; until two jobs have
    left, whoever finds a server free is admitted. memory: the time after which what was seen is forgotten, all at once
    ("window") or exponentially ("discount"); the default is never. With a memory, reviews are at most a twentieth of
    it apart unless review_period says otherwise.

    Options:
        service_rate: whether the speed of service is known, or learned from the departures
        memory: the time after which what was seen is forgotten; without it, never
        forgetting: all at once (window) or little by little (discount)
    """

    service_rate: ServiceRate = "known"
    memory: float | None = None
    forgetting: Forgetting = "discount"

    def __post_init__(self) -> None:
        check_choice("service_rate", self.service_rate, "known", "unknown")
        check_positive("memory", self.memory)
        check_choice("forgetting", self.forgetting, "window", "discount")
        super().__post_init__()
        if self.memory is not None and self.forgetting == "window":
            reviews = self.memory / self.longest_stretch
            if reviews > LONGEST_WINDOW:
                raise ValueError(
                    f"memory must be at most {LONGEST_WINDOW:,} times review_period for a window, which keeps what "
                    f"every review saw; got {reviews:g} times"
                )

    @property
    def knows_service_rate(self) -> bool:
        return self.service_rate == "known"

    @property
    def longest_stretch(self) -> float:
        if self.review_period is None and self.memory is not None:
            return self.memory / REVIEWS_A_MEMORY
        return super().longest_stretch

    def new_memory(self, classes: int) -> Memory:
        """For one run."""
        if self.memory is None:
            return Everything(classes)
        return Window(self.memory) if self.forgetting == "window" else Discount(self.memory, classes)
