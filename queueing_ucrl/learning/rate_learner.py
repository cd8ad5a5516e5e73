"""What controllers that learn rates have in common: when they review, and by which solver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from queueing_ucrl.learning.controller import Controller, Knowledge
from queueing_ucrl.learning.estimators import Confidence, Discount, Everything, Memory, Window
from queueing_ucrl.learning.schedules import Clock, Geometric
from queueing_ucrl.learning.ucrl_ac import SOLVERS

ServiceRate = Literal["known", "unknown"]
Forgetting = Literal["window", "discount"]

UNKNOWN_SCALE = 1e-3  # in units of time: the first review where not even the speed of service is known
REVIEWS_A_MEMORY = 20


def check_choice(name: str, value: str, *choices: str) -> None:
    """An option that must be one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(choices)}, got {value!r}")


def check_positive(name: str, value: float | None) -> None:
    """An option that must be a positive number, if it is given."""
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value}")


@dataclass(frozen=True)
class RateLearner(Controller):
    """A first review, later ones at ratios of the time elapsed, but never more than a period apart.

    review_ratio = 2 is the paper's doubling; with a review_period, an infinite ratio means every period from the start.

    Options:
        first_review: when the policy is first reviewed; without it, after the mean time between departures of a full
            house
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
        if not self.review_ratio > 1:
            raise ValueError(f"review_ratio must be above 1, got {self.review_ratio}")
        if math.isinf(self.review_ratio) and self.longest_stretch == math.inf:
            raise ValueError("an infinite review_ratio needs a review_period")

    @property
    def longest_stretch(self) -> float:
        """The longest time between reviews."""
        return math.inf if self.review_period is None else self.review_period

    def first_time(self, knowledge: Knowledge) -> float:
        """T_1. By 1 / mu an overloaded house of many servers would be full of whoever came first."""
        if self.first_review is not None:
            return self.first_review
        return 1.0 / knowledge.max_service_rate if self.knows_service_rate else UNKNOWN_SCALE

    def clock(self, knowledge: Knowledge) -> Clock:
        """At the start of a run."""
        first = min(self.first_time(knowledge), self.longest_stretch)
        return Clock(Geometric(self.review_ratio, self.longest_stretch), first)

    def confidence(self, knowledge: Knowledge) -> Confidence:
        """delta at each time: the paper's 1 / (mu t), or T_1 / t where mu is not known."""
        return Confidence(1.0 / knowledge.service_rate if self.knows_service_rate else self.first_time(knowledge))


@dataclass(frozen=True)
class DirectLearner(RateLearner):
    """A learner that plans for rates it holds likely, not for the best it holds possible.

    service_rate "unknown": it is learned from the departures, and the expected rewards with it. memory: the time after
    which what was seen is forgotten, all at once ("window") or exponentially ("discount"); the default is never. With a
    memory, reviews are at most a twentieth of it apart unless review_period says otherwise.

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
