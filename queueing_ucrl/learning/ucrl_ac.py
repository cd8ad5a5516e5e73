"""UCRL-AC (Alg. 3): optimism about the arrival rates, reviewed when the time elapsed has doubled.

`UcrlAc` is the paper's; `UcrlAcStates` is what its conclusion conjectures for arrival rates that depend on the number
of jobs; `UcrlAcExact` and `UcrlAcClasswise` use the whole of what was seen, by exact intervals instead
of the truncated mean's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.beliefs import UpperLimits
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import ClasswiseLimits, Interval, PooledInterval, ShareSet, TruncatedMean
from queueing_ucrl.learning.option_checks import (
    SOLVERS,
    balking_cautions,
    check_choice,
    checked_rate_bounds,
    rate_bounds_cautions,
)
from queueing_ucrl.learning.planners import ConfidenceOptimism, LimitOptimism, PlannedRates
from queueing_ucrl.learning.rate_learner import RateLearner, ServiceRate
from queueing_ucrl.learning.schedules import DOUBLING, Clock, DeltaSchedule
from queueing_ucrl.learning.session import LearningSession
from queueing_ucrl.learning.state_rates import LimitsByState, Shape, StateLimits, best_plausible_rates
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.system import Queue
from queueing_ucrl.solvers.service import SolveRequest


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

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> LearningSession[ConfidenceSet]:
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
        found = [*rate_bounds_cautions(self.arrival_rate_bounds, queue), *balking_cautions(queue)]
        if self.arrival_rate_bounds[0] == 0:
            found.append("a lower bound of 0 on the arrival rate: the rate is never learned, only the classes' shares")
        return found


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

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> LearningSession[ConfidenceSet]:
        classes, delta = knowledge.class_count, self.delta_schedule(knowledge)
        estimator = PooledInterval(classes, delta, self.arrival_rate_bounds, self.interval, self.share_set)
        return self.session(knowledge, estimator, ConfidenceOptimism(knowledge))

    def cautions(self, queue: Queue) -> list[str]:
        found = [] if self.arrival_rate_bounds is None else rate_bounds_cautions(self.arrival_rate_bounds, queue)
        return [*found, *balking_cautions(queue)]


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

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> LearningSession[UpperLimits]:
        delta = self.delta_schedule(knowledge) if self.knows_service_rate else None
        estimator = ClasswiseLimits(knowledge.class_count, delta, self.interval)
        return self.session(knowledge, estimator, LimitOptimism(knowledge))

    def cautions(self, queue: Queue) -> list[str]:
        return balking_cautions(queue)


@dataclass(frozen=True)
class UcrlAcStates(Controller):
    """UCRL-AC for arrival rates that depend on the number of jobs, as the paper's conclusion conjectures it.

    A confidence set for each state, optimism, and an episode that ends when the visits of a state have doubled: a visit
    is a request or a departure that finds so many jobs. Rates that do not grow with the number of jobs
    ("non-increasing") are the paper's; where they may ("any"), states where nobody has been are hoped to be as busy as
    arrival_rate_bounds allow, and so are tried. delta = 1 / (mu T) at the review at T, but at most 1/2.

    Options:
        arrival_rate_bounds: what is known of the arrival rate of all classes together, in any state; for example
            [0.0, 4.0]
        by_state: whether rates never grow with the number of jobs (non-increasing), or may (any)
        solver: the method that finds the policies: pi-b, pi, vi, vi-ae or lp
    """

    name: ClassVar[str] = "ucrl-ac-states"
    counts_visits: ClassVar[bool] = True
    arrival_rate_bounds: tuple[float, float]  # of which the upper one is made use of
    by_state: Shape = "non-increasing"
    solver: str = "pi-b"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrival_rate_bounds", checked_rate_bounds(self.arrival_rate_bounds))
        check_choice("by_state", self.by_state, "non-increasing", "any")
        check_choice("solver", self.solver, *SOLVERS)

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> StatesSession:
        schedule = DeltaSchedule(1.0 / knowledge.service_rate)
        limits = LimitsByState(knowledge, schedule, self.arrival_rate_bounds[1], self.by_state)
        return StatesSession(knowledge, limits, self.solver)

    def cautions(self, queue: Queue) -> list[str]:
        rates = queue.rates_by_state[:-1]
        found = []
        if rates.sum(axis=1).max() > self.arrival_rate_bounds[1]:
            found.append(
                f"up to {rates.sum(axis=1).max():g} jobs a unit of time ask, more than arrival_rate_bounds "
                f"[{self.arrival_rate_bounds[0]:g}, {self.arrival_rate_bounds[1]:g}] allow: nothing is promised"
            )
        if self.by_state == "non-increasing" and np.any(np.diff(rates, axis=0) > 0.0):
            found.append('arrival rates grow with the number of jobs: by_state = "any" is for those')
        return found


class StatesSession:
    """The limits by state, and the visits, in one run."""

    def __init__(self, knowledge: Knowledge, limits: LimitsByState, solver: str) -> None:
        self.knowledge = knowledge
        self.limits = limits
        self.solver = solver
        self.priorities = np.argsort(-knowledge.rewards, axis=1, kind="stable")
        self.visits = np.zeros(knowledge.capacity + 1, dtype=np.int64)

    def first(self) -> Plan:
        return self._plan(self.limits.prior(), 1.0 / self.knowledge.service_rate)

    def review(self, tally: Tally) -> Plan:
        assert tally.ticks is not None
        self.visits += tally.ticks.visits
        return self._plan(self.limits.update(tally), tally.now)

    def _plan(self, belief: StateLimits, time: float) -> Plan:
        known, largest = self.knowledge, self.limits.largest
        rates = best_plausible_rates(belief.limits, self.priorities, largest)
        request = SolveRequest(
            AdmissionModel(rates, known.rewards, known.service_rates),
            self.solver,
            epsilon=known.max_reward / time,
            uniformization=largest + known.max_service_rate,
        )
        # an episode ends with as many visits of a state in it as there were before it
        return Plan(request=request, visit_limits=np.maximum(1, self.visits), belief=PlannedRates(belief, rates))
