"""UCRL-AC with the whole of what was seen: optimism over exact intervals instead of the truncated mean's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.estimators import ClasswiseLimits, Interval, PooledInterval, ShareSet, UpperLimits
from queueing_ucrl.learning.planning import ConfidenceOptimism, LearningSession, LimitOptimism
from queueing_ucrl.learning.rate_learner import RateLearner, ServiceRate, check_choice
from queueing_ucrl.learning.ucrl_ac import checked_rate_bounds
from queueing_ucrl.model.queue import Queue


@dataclass(frozen=True)
class UcrlAcExact(RateLearner):
    """UCRL-AC with an interval for Lambda from the arrivals of all episodes; the paper's set for p, optimism, doubling.

    interval: "exact" (Garwood) or "anytime" (valid at all reviews at once). delta = 1 / (mu T) at the review at T,
    but at most 1/2. share_set: the radius of the l1 ball for p, "paper" or "weissman" (smaller: its source's own).

    Options:
        arrival_rate_bounds: what is known of the arrival rate of all classes together, if anything is
        interval: exact (Garwood), or anytime (wider: valid at all reviews at once)
        share_set: how far the shares of the classes may be off: as in the paper, or weissman (smaller)
    """

    name: ClassVar[str] = "ucrl-ac-exact"
    review_ratio: float = 2.0
    arrival_rate_bounds: tuple[float, float] | None = None  # Lambda_min, Lambda_max, where the operator knows any
    interval: Interval = "exact"
    share_set: ShareSet = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("interval", self.interval, "exact", "anytime")
        check_choice("share_set", self.share_set, "paper", "weissman")
        if self.arrival_rate_bounds is not None:
            object.__setattr__(self, "arrival_rate_bounds", checked_rate_bounds(self.arrival_rate_bounds))

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> LearningSession[ConfidenceSet]:
        estimator = PooledInterval(
            knowledge.class_count, self.confidence(knowledge), self.arrival_rate_bounds, self.interval, self.share_set
        )
        return self.session(knowledge, estimator, ConfidenceOptimism(knowledge))

    def cautions(self, queue: Queue) -> list[str]:
        if self.arrival_rate_bounds is None:
            return []
        low, high = self.arrival_rate_bounds
        if low <= queue.total_arrival_rate <= high:
            return []
        return [
            f"the total arrival rate {queue.total_arrival_rate:g} is outside arrival_rate_bounds "
            f"[{low:g}, {high:g}]: the regret guarantee is void"
        ]


@dataclass(frozen=True)
class UcrlAcClasswise(RateLearner):
    """UCRL-AC with an upper limit for each class's rate: nothing need be known of the rates, nor of the service rate.

    All classes at their limits is the best plausible model, in every state the same: its best policy is trunk
    reservation. interval as for ucrl-ac-exact; delta is shared evenly by the classes. service_rate "unknown": the upper
    limit of mu too, from departures over busy time, since the optimal gain grows with mu. It reviews first when two
    jobs have left, takes the unit of delta from that, and begins to count anew.

    Options:
        interval: exact (Garwood), or anytime (wider: valid at all reviews at once)
        service_rate: whether the speed of service is known, or learned from the departures
    """

    name: ClassVar[str] = "ucrl-ac-classwise"
    review_ratio: float = 2.0
    interval: Interval = "exact"
    service_rate: ServiceRate = "known"

    def __post_init__(self) -> None:
        check_choice("service_rate", self.service_rate, "known", "unknown")
        check_choice("interval", self.interval, "exact", "anytime")
        super().__post_init__()

    @property
    def knows_service_rate(self) -> bool:
        return self.service_rate == "known"

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> LearningSession[UpperLimits]:
        estimator = ClasswiseLimits(
            knowledge.class_count, self.confidence(knowledge) if self.knows_service_rate else None, self.interval
        )
        return self.session(knowledge, estimator, LimitOptimism(knowledge))
