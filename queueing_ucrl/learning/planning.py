"""What is done with a belief about the rates, and the session that joins it to an estimator and a schedule.

A use takes a belief and answers with the model to plan for, or None where the belief will not do to plan with:

- `ConfidenceOptimism`: the best model of a confidence set (Thm 4.3), its class shares different from state to state;
- `LimitOptimism`: each class at its upper limit. The optimal gain grows with every rate, so this is the best model
  too, and its rates are the same in all states, so trunk reservation is optimal;
- `PosteriorDraw`: rates drawn from the posterior;
- `CertaintyEquivalence`: the estimate as if it were the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Belief, Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import PRIOR_SHAPE, Estimator, GammaPosterior, PointEstimate, UpperLimits
from queueing_ucrl.learning.optimism import optimistic_shares, shares_where_they_change
from queueing_ucrl.learning.schedules import Clock
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import AdmissionModel
from queueing_ucrl.model.waits import ErlangWaits, FloatArray
from queueing_ucrl.solvers.service import SolveRequest
from queueing_ucrl.variates import standard_gamma

B = TypeVar("B", bound=Belief)

NEGLIGIBLE = 1e-50  # of the fastest rate; forgotten arrivals fade to numbers that no model can hold beside others


@dataclass(frozen=True)
class Decision:
    """The model to plan for, and the belief it came from as the episode table shows it."""

    model: AdmissionModel
    belief: Belief


@dataclass(frozen=True)
class OptimisticBelief:
    """A confidence set together with the mix of classes that optimism made of it."""

    plausible: ConfidenceSet
    shares: FloatArray  # p~(s)

    def contains(self, arrival_rates: FloatArray) -> bool:
        return self.plausible.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        return {**self.plausible.columns(), "optimistic_shares": shares_where_they_change(self.shares)}


@dataclass(frozen=True)
class PlannedBelief:
    """A belief together with the rates that were planned for."""

    belief: Belief
    arrival_rates: FloatArray
    service_rate: float | None  # where it is not known

    def contains(self, arrival_rates: FloatArray) -> bool | None:
        return self.belief.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        found = {**self.belief.columns(), "planned_rates": self.arrival_rates.tolist()}
        return found if self.service_rate is None else {**found, "planned_service_rate": self.service_rate}


def expected_rewards(knowledge: Knowledge, service_rate: float) -> FloatArray:
    """r_i(s) = R_i - E[C_i(W(s))] at a service rate that is believed in."""
    c, capacity = knowledge.servers, knowledge.capacity
    waits = ErlangWaits(c, service_rate, max(0, capacity - c))
    table = np.tile(knowledge.job_rewards, (capacity, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, cost in enumerate(knowledge.holding_costs):
            table[c:, i] -= cost.expected(waits)
    return table


def model_at(knowledge: Knowledge, arrival_rates: FloatArray, service_rate: float | None) -> AdmissionModel | None:
    """The queue with these rates in all states; service_rate None: as known.

    None where nothing can be planned: nobody comes, the service rate is not a positive number, or the expected costs
    at it are infinite.
    """
    fastest = float(arrival_rates.max())
    if not 0.0 < fastest < math.inf:
        return None
    if service_rate is None:
        rewards, service_rates = knowledge.rewards, knowledge.service_rates
    else:
        if not 0.0 < service_rate < math.inf:
            return None
        try:
            rewards = expected_rewards(knowledge, service_rate)
        except (ValueError, OverflowError):  # a custom cost that grows faster than such waits allow
            return None
        if not np.all(np.isfinite(rewards)):
            return None
        service_rates = np.minimum(np.arange(knowledge.capacity + 1), knowledge.servers) * service_rate
    rates = np.empty((knowledge.capacity, knowledge.class_count))
    rates[:] = np.where(arrival_rates >= NEGLIGIBLE * max(fastest, float(service_rates[-1])), arrival_rates, 0.0)
    return AdmissionModel(rates, rewards, service_rates)


def _decide(
    knowledge: Knowledge, belief: Belief, arrival_rates: FloatArray, service_rate: float | None
) -> Decision | None:
    model = model_at(knowledge, arrival_rates, service_rate)
    return None if model is None else Decision(model, PlannedBelief(belief, arrival_rates, service_rate))


class ConfidenceOptimism:
    """The model of a confidence set with the largest gain: rates Lambda~ p~_i(s). O(mS)."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.priorities = np.argsort(-knowledge.rewards, axis=1, kind="stable")

    def __call__(self, plausible: ConfidenceSet) -> Decision:
        shares = optimistic_shares(plausible.shares, plausible.share_radius, self.priorities)
        model = AdmissionModel(plausible.optimistic_rate * shares, self.knowledge.rewards, self.knowledge.service_rates)
        return Decision(model, OptimisticBelief(plausible, shares))


@dataclass(frozen=True)
class LimitOptimism:
    """Every rate at its upper limit."""

    knowledge: Knowledge

    def __call__(self, belief: UpperLimits) -> Decision | None:
        service_rate = None
        if belief.service_rate is not None:
            estimate, service_rate = belief.service_rate
            if math.isnan(estimate):  # no departure counted yet: a limit from luck alone
                return None
        return _decide(self.knowledge, belief, belief.limits, service_rate)


@dataclass(frozen=True)
class PosteriorDraw:
    """Rates drawn from the posterior, all anew at each review."""

    knowledge: Knowledge
    chance: np.random.Generator

    def __call__(self, belief: GammaPosterior) -> Decision | None:
        rates = standard_gamma(self.chance, belief.shapes) / belief.time
        service_rate = None
        if belief.service is not None:
            shape, busy_time = belief.service
            if shape <= PRIOR_SHAPE:  # too few departures yet
                return None
            service_rate = float(standard_gamma(self.chance, shape)) / busy_time
        return _decide(self.knowledge, belief, rates, service_rate)


@dataclass(frozen=True)
class CertaintyEquivalence:
    """The estimate as if it were the truth."""

    knowledge: Knowledge

    def __call__(self, belief: PointEstimate) -> Decision | None:
        return _decide(self.knowledge, belief, belief.arrival_rates, belief.service_rate)


def initial_policy(knowledge: Knowledge) -> Policy:
    """With nothing known: admit whatever pays by itself; while a server is free, where not even waits are known."""
    if math.isnan(knowledge.service_rate):
        free = np.arange(knowledge.capacity) < knowledge.servers
        return Policy(np.tile(free[:, None], (1, knowledge.class_count)))
    return Policy(knowledge.rewards >= 0.0)


class LearningSession(Generic[B]):
    """An estimator, a use of its beliefs and a schedule, at work in one run."""

    def __init__(
        self,
        knowledge: Knowledge,
        estimator: Estimator[B],
        use: Callable[[B], Decision | None],
        clock: Clock,
        solver: str = "pi-b",
        uniformization: float | None = None,
        departures: int = 0,
    ) -> None:
        """departures: also review once so many jobs have left, the first of all reviews or not."""
        self.knowledge = knowledge
        self.estimator = estimator
        self.use = use
        self.clock = clock
        self.solver = solver
        self.uniformization = uniformization
        self.departures = departures  # still to be seen

    def first(self) -> Plan:
        return self._plan(self.estimator.prior())

    def review(self, tally: Tally) -> Plan:
        belief = self.estimator.update(tally, self.clock.length)
        self.departures = max(0, self.departures - tally.departures)
        self.clock.advance(tally.now)
        return self._plan(belief)

    def _plan(self, belief: B | None) -> Plan:
        decision = None if belief is None else self.use(belief)
        until, truncation = self.clock.end, self.estimator.truncation(self.clock.length)
        limit = self.departures or None
        if decision is None:
            policy = initial_policy(self.knowledge)
            return Plan(until, policy=policy, departure_limit=limit, truncation=truncation, belief=belief)
        request = SolveRequest(
            decision.model,
            self.solver,
            epsilon=self.knowledge.max_reward / self.clock.length,  # eps_k = R_max / t_k
            uniformization=self.uniformization,
        )
        return Plan(until, request=request, departure_limit=limit, truncation=truncation, belief=decision.belief)
