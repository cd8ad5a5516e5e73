"""Planners: what is done with a belief about the rates, the second part of a learning controller.

A planner takes a belief and answers with the model to plan for, or None where the belief will not do to plan with:

- `ConfidenceOptimism`: the best model of a confidence set (Thm 4.3): the largest rate, in each state the best mix of
  classes;
- `LimitOptimism`: each class at its upper limit. The optimal gain grows with every rate, so this is the best model
  too, and its rates are the same in all states, so trunk reservation is optimal;
- `PosteriorSampling`: rates drawn from the posterior;
- `CertaintyEquivalence`: the estimate as if it were the truth.

`StateSampling` and `StateCertaintyEquivalence` are the last two for rates that depend on the number of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.beliefs import (
    GammaPosterior,
    OptimisticBelief,
    PlannedBelief,
    PointEstimate,
    UpperLimits,
    per_time,
)
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Belief, Knowledge
from queueing_ucrl.learning.intervals import PRIOR_SHAPE
from queueing_ucrl.learning.l1_ball import raise_best, take_from_worst
from queueing_ucrl.learning.state_rates import (
    Shape,
    StateEstimate,
    StatePosterior,
    non_increasing,
    rows_where_they_change,
)
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.checks import read_only
from queueing_ucrl.model.costs import expected_rewards
from queueing_ucrl.model.impatience import death_rates, waits_of
from queueing_ucrl.variates import standard_gamma

B = TypeVar("B", bound=Belief)

NEGLIGIBLE = 1e-50  # of the fastest rate; forgotten arrivals fade to numbers that no model can hold beside others


class PlanningModel(NamedTuple):
    """The model to plan for, and the belief it came from as the episode table shows it."""

    model: AdmissionModel
    belief: Belief


Planner = Callable[[B], PlanningModel | None]


@compiled
def _in_all_states(arrival_rates: FloatArray, fastest_service: float, table: FloatArray) -> bool:
    """The same rates in each row, the negligible ones 0; False where nobody comes or a rate is no finite number."""
    fastest = 0.0
    for rate in arrival_rates:
        if not rate < math.inf:
            return False
        fastest = max(fastest, rate)
    least = NEGLIGIBLE * max(fastest, fastest_service)
    for s in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[s, i] = arrival_rates[i] if arrival_rates[i] >= least else 0.0
    return fastest > 0.0


def model_at(
    knowledge: Knowledge, arrival_rates: FloatArray, service_rate: float | None, patience_rate: float | None = None
) -> AdmissionModel | None:
    """The queue with these rates in all states; service_rate None, patience_rate None: as known.

    None where nothing can be planned: nobody comes, the service rate is not a positive number, or the expected costs
    at it are infinite. Where classes are seen only once jobs are let in, every job is worth the mean over the classes.
    """
    if service_rate is None and patience_rate is None:
        rewards, service_rates = knowledge.rewards, knowledge.service_rates
    else:
        mu = knowledge.service_rate if service_rate is None else service_rate
        theta = knowledge.patience_rate if patience_rate is None else patience_rate
        if not (0.0 < mu < math.inf and 0.0 <= theta < math.inf):
            return None
        c, capacity = knowledge.servers, knowledge.capacity
        try:
            rewards = expected_rewards(knowledge.payments, waits_of(c, mu, theta, capacity), capacity)
        except ValueError:  # infinite, or of a custom cost that grows faster than such waits allow
            return None
        service_rates = death_rates(c, mu, theta, capacity)
    rates = np.empty((knowledge.capacity, knowledge.class_count))
    comes = _in_all_states(arrival_rates, float(service_rates[-1]), rates)
    if comes and not knowledge.sees_classes:
        rewards = _alike(rewards, rates[0])
    return AdmissionModel(read_only(rates), rewards, service_rates) if comes else None


def _alike(rewards: FloatArray, rates: FloatArray) -> FloatArray:
    """sum_i p_i r_i(s) in each column: the best policy for these treats all classes alike."""
    total, mean = sum(rates.tolist()), np.zeros(len(rewards))
    for i, rate in enumerate(rates.tolist()):
        mean += rewards[:, i] * (rate / total)
    return read_only(np.tile(mean[:, None], (1, rates.size)))


def _at_rates(
    knowledge: Knowledge,
    belief: Belief,
    arrival_rates: FloatArray,
    service_rate: float | None,
    patience_rate: float | None = None,
) -> PlanningModel | None:
    model = model_at(knowledge, arrival_rates, service_rate, patience_rate)
    if model is None:
        return None
    return PlanningModel(model, PlannedBelief(belief, arrival_rates, service_rate, patience_rate))


@compiled
def _optimistic_shares(shares: FloatArray, radius: float, priorities: IntArray, table: FloatArray) -> None:
    for s in range(priorities.shape[0]):
        raise_best(shares, radius, priorities[s], table[s])
        total = 0.0
        for i in range(shares.size):
            total += table[s, i]
        take_from_worst(table[s], priorities[s], total - 1.0)


def optimistic_shares(shares: FloatArray, radius: float, priorities: IntArray) -> FloatArray:
    """p~(s), a row a state: the distribution in the l1 ball around `shares` that favours its first classes. O(mS).

    The first of the state's priorities gains radius / 2 at most; the excess is taken from the last upward (Thm 4.3). A
    radius of 2 or more, or no estimate at all (shares of 0), puts all mass on the first class.
    """
    table = np.empty(priorities.shape)
    _optimistic_shares(shares, radius, priorities, table)
    return table


class ConfidenceOptimism:
    """The model of a confidence set with the largest gain: rates Lambda~ p~_i(s). O(mS)."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.priorities = np.argsort(-knowledge.rewards, axis=1, kind="stable")

    def __call__(self, plausible: ConfidenceSet) -> PlanningModel:
        shares = optimistic_shares(plausible.shares, plausible.share_radius, self.priorities)
        model = AdmissionModel(plausible.optimistic_rate * shares, self.knowledge.rewards, self.knowledge.service_rates)
        return PlanningModel(model, OptimisticBelief(plausible, shares))


@dataclass(frozen=True)
class LimitOptimism:
    """Every rate at its upper limit."""

    knowledge: Knowledge

    def __call__(self, belief: UpperLimits) -> PlanningModel | None:
        service_rate = None
        if belief.service_rate is not None:
            estimate, service_rate = belief.service_rate
            if math.isnan(estimate):  # no departure counted yet: a limit from luck alone
                return None
        return _at_rates(self.knowledge, belief, belief.limits, service_rate)


@dataclass(frozen=True)
class PosteriorSampling:
    """Rates drawn from the posterior, all anew at each review."""

    knowledge: Knowledge
    rng: np.random.Generator

    def __call__(self, belief: GammaPosterior) -> PlanningModel | None:
        rates = per_time(standard_gamma(self.rng, belief.shapes), belief.time)
        service_rate = None
        if belief.service is not None:
            shape, busy_time = belief.service
            if shape <= PRIOR_SHAPE:  # too few departures yet
                return None
            service_rate = float(standard_gamma(self.rng, shape)) / busy_time
        patience_rate = None
        if belief.impatience is not None:
            exposure = belief.impatience.rate(service_rate or self.knowledge.service_rate)
            patience_rate = float(standard_gamma(self.rng, belief.impatience.shape())) / exposure
        return _at_rates(self.knowledge, belief, rates, service_rate, patience_rate)


@dataclass(frozen=True)
class CertaintyEquivalence:
    """The estimate as if it were the truth."""

    knowledge: Knowledge

    def __call__(self, belief: PointEstimate) -> PlanningModel | None:
        patience_rate = None
        if belief.impatience is not None:
            patience_rate = belief.impatience.estimate(belief.service_rate or self.knowledge.service_rate)
        return _at_rates(self.knowledge, belief, belief.arrival_rates, belief.service_rate, patience_rate)


# ---- rates by state


@dataclass(frozen=True)
class PlannedRates:
    """A belief about rates by state, together with those that were planned for."""

    by_state: ClassVar[bool] = True
    belief: Belief
    rates: FloatArray  # lambda_i(s), s = 0 .. S - 1

    def contains(self, arrival_rates: FloatArray) -> bool | None:
        return self.belief.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        return {**self.belief.columns(), "planned_rates_by_state": rows_where_they_change(self.rates)}


def plan_by_state(knowledge: Knowledge, belief: Belief, rates: FloatArray) -> PlanningModel | None:
    """The queue with these rates by state; None where nobody comes, or a rate is no finite number."""
    fastest = float(rates.max())
    if not 0.0 < fastest < math.inf:  # nan: nothing was seen
        return None
    rates = np.where(rates >= NEGLIGIBLE * max(fastest, float(knowledge.service_rates[-1])), rates, 0.0)
    model = AdmissionModel(read_only(rates), knowledge.rewards, knowledge.service_rates)
    return PlanningModel(model, PlannedRates(belief, rates))


@dataclass(frozen=True)
class StateCertaintyEquivalence:
    """The estimates by state as if they were the truth."""

    knowledge: Knowledge

    def __call__(self, belief: StateEstimate) -> PlanningModel | None:
        return plan_by_state(self.knowledge, belief, belief.rates)


@dataclass(frozen=True)
class StateSampling:
    """Rates by state drawn from the posterior; where they are known not to grow with s, the nearest such ones."""

    knowledge: Knowledge
    rng: np.random.Generator
    shape: Shape

    def __call__(self, belief: StatePosterior) -> PlanningModel | None:
        rates = standard_gamma(self.rng, belief.shapes.ravel()).reshape(belief.shapes.shape) / belief.times[:, None]
        if self.shape == "non-increasing":
            non_increasing(rates, belief.times)
        return plan_by_state(self.knowledge, belief, rates[:-1])
