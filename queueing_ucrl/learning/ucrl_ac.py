"""UCRL-AC (Alg. 3): optimism about the arrival rates, reviewed when the time elapsed has doubled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.learning.confidence import ConfidenceSet, truncation
from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Tally
from queueing_ucrl.learning.optimism import optimistic_model, optimistic_shares, shares_where_they_change
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.solvers.service import SolveRequest

SOLVERS = ("pi-b", "pi", "vi", "vi-ae", "lp")


@dataclass(frozen=True)
class UcrlAc(Controller):
    """The paper's algorithm; all it needs are bounds on the total arrival rate and the first episode's length.

    t_k = 2^(k-2) t_1 and T_k = 2^(k-1) t_1; delta_k = 1 / (mu t_k), so mu t_1 must be above 1.
    learn_upper_bound: also use the upper end of Prop. 7.1, as the paper's experiments do.
    """

    name: ClassVar[str] = "ucrl-ac"
    arrival_rate_bounds: tuple[float, float]  # Lambda_min, Lambda_max
    first_episode: float  # t_1
    solver: str = "pi-b"
    learn_upper_bound: bool = True

    def __post_init__(self) -> None:
        bounds = tuple(float(b) for b in self.arrival_rate_bounds)
        if len(bounds) != 2 or not (0 <= bounds[0] <= bounds[1] < math.inf and bounds[1] > 0):
            raise ValueError(
                f"arrival_rate_bounds must be two numbers 0 <= low <= high with high positive, got {bounds}"
            )
        object.__setattr__(self, "arrival_rate_bounds", bounds)
        if not 0 < self.first_episode < math.inf:
            raise ValueError(f"first_episode must be a positive number, got {self.first_episode}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}")

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> UcrlAcSession:
        if not knowledge.service_rate * self.first_episode > 1:
            raise ValueError(
                f"first_episode must be longer than 1 / service_rate = {1 / knowledge.service_rate:g}, "
                f"got {self.first_episode:g}: the confidence 1 / (mu t_1) must be below 1"
            )
        return UcrlAcSession(self, knowledge)

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


@dataclass(frozen=True)
class OptimisticBelief:
    """A confidence set together with the mix of classes that optimism made of it."""

    plausible: ConfidenceSet
    shares: FloatArray  # p~(s)

    def contains(self, arrival_rates: FloatArray) -> bool:
        return self.plausible.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        return {**self.plausible.columns(), "optimistic_shares": shares_where_they_change(self.shares)}


class UcrlAcSession:
    """UCRL-AC in one run."""

    def __init__(self, options: UcrlAc, knowledge: Knowledge) -> None:
        self.options = options
        self.knowledge = knowledge
        self.priorities = np.argsort(-knowledge.rewards, axis=1, kind="stable")
        self.class_totals = np.zeros(knowledge.class_count, dtype=np.int64)
        self.episode_end = options.first_episode  # T_k
        self.episode_length = options.first_episode  # t_k

    @property
    def delta(self) -> float:
        """delta_k = 1 / (mu t_k) of the current episode."""
        return 1.0 / (self.knowledge.service_rate * self.episode_length)

    def first(self) -> Plan:
        bounds = self.options.arrival_rate_bounds
        return self._plan(ConfidenceSet.everything(self.knowledge.class_count, bounds))

    def review(self, tally: Tally) -> Plan:
        self.class_totals += tally.arrivals
        plausible = ConfidenceSet.from_episode(
            tally.arrival_count,
            tally.truncated_gap_sum,
            self.class_totals,
            self.delta,
            self.options.arrival_rate_bounds,
            learn_upper_bound=self.options.learn_upper_bound,
        )
        while self.episode_end <= tally.now:  # once, unless the solver's answer took longer than an episode
            self.episode_length = self.episode_end
            self.episode_end *= 2.0
        return self._plan(plausible)

    def _plan(self, plausible: ConfidenceSet) -> Plan:
        knowledge, options = self.knowledge, self.options
        request = SolveRequest(
            optimistic_model(knowledge, plausible, self.priorities),
            options.solver,
            epsilon=knowledge.max_reward / self.episode_length,
            uniformization=options.arrival_rate_bounds[1] + knowledge.max_service_rate,
        )
        shares = optimistic_shares(plausible.shares, plausible.share_radius, self.priorities)
        return Plan(
            until=self.episode_end,
            request=request,
            truncation=truncation(options.arrival_rate_bounds[0], self.delta),
            belief=OptimisticBelief(plausible, shares),
        )
