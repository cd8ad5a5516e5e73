"""UCRL-AC (Alg. 3): optimism about the arrival rates, reviewed when the time elapsed has doubled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Controller, Knowledge
from queueing_ucrl.learning.estimators import TruncatedMean
from queueing_ucrl.learning.planning import ConfidenceOptimism, LearningSession
from queueing_ucrl.learning.schedules import DOUBLING, Clock
from queueing_ucrl.model.queue import Queue

SOLVERS = ("pi-b", "pi", "vi", "vi-ae", "lp")
LARGEST_RATE = 1e100  # its square is a number too


def checked_rate_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Lambda_min and Lambda_max as an option gives them."""
    low, high = (float(b) for b in bounds) if len(bounds) == 2 else (math.nan, math.nan)
    if not (0 <= low <= high <= LARGEST_RATE and high > 0) or 0 < low < 1 / LARGEST_RATE:
        raise ValueError(
            f"arrival_rate_bounds must be two numbers 0 <= low <= high with high positive, got {tuple(bounds)}"
        )
    return low, high


@dataclass(frozen=True)
class UcrlAc(Controller):
    """The paper's algorithm; all it needs are bounds on the total arrival rate and the first episode's length.

    Truncated mean and l1 set, optimism, doubling.

    t_k = 2^(k-2) t_1 and T_k = 2^(k-1) t_1; delta_k = 1 / (mu t_k), so mu t_1 must be above 1.
    learn_upper_bound: also use the upper end of Prop. 7.1, as the paper's experiments do.

    Options:
        arrival_rate_bounds: what is known of the arrival rate of all classes together; for example [1.0, 4.0]
        first_episode: the length of the first episode, above 1 / service_rate; for example 10.0
        solver: the method that finds the policies: pi-b, pi, vi, vi-ae or lp
        learn_upper_bound: lower the upper bound too as arrivals are seen, as the paper's experiments do
    """

    name: ClassVar[str] = "ucrl-ac"
    arrival_rate_bounds: tuple[float, float]  # Lambda_min, Lambda_max
    first_episode: float  # t_1
    solver: str = "pi-b"
    learn_upper_bound: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrival_rate_bounds", checked_rate_bounds(self.arrival_rate_bounds))
        if not 0 < self.first_episode < math.inf:
            raise ValueError(f"first_episode must be a positive number, got {self.first_episode}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> LearningSession[ConfidenceSet]:
        if not knowledge.service_rate * self.first_episode > 1:
            raise ValueError(
                f"first_episode must be longer than 1 / service_rate = {1 / knowledge.service_rate:g}, "
                f"got {self.first_episode:g}: the confidence 1 / (mu t_1) must be below 1"
            )
        estimator = TruncatedMean(
            knowledge.class_count,
            knowledge.service_rate,
            self.arrival_rate_bounds,
            learn_upper_bound=self.learn_upper_bound,
        )
        return LearningSession(
            knowledge,
            estimator,
            ConfidenceOptimism(knowledge),
            Clock(DOUBLING, self.first_episode),
            self.solver,
            uniformization=self.arrival_rate_bounds[1] + knowledge.max_service_rate,
        )

    def cautions(self, queue: Queue) -> list[str]:
        low, high = self.arrival_rate_bounds
        found = []
        if not low <= queue.total_arrival_rate <= high:
            found.append(
                f"the total arrival rate {queue.total_arrival_rate:g} is outside arrival_rate_bounds "
                f"[{low:g}, {high:g}]: the regret guarantee is void"
            )
        if low == 0:
            found.append("a lower bound of 0 on the arrival rate: the rate is never learned, only the classes' shares")
        return found
