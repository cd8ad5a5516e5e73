r"""Arrival rates that depend on the number of jobs: estimates and limits of lambda_i(s), a class at a time.

In the clock of the time spent in s the requests of class i there are a Poisson process of rate lambda_i(s), whatever
the policy did: N_i(s) requests over t(s) are all there is to know. Where rates do not grow with s, neighbours whose
estimates do are pooled (pool adjacent violators, the maximum likelihood of such rates), and neighbours that can hardly
be told apart are merged: while the smallest

    2 [ n1 ln(n1/e1) + n2 ln(n2/e2) - (n1 + n2) ln((n1 + n2) / (e1 + e2)) ]

of all pairs of neighbours is below a penalty. A state that was never visited is believed to be like the last below it
that was (below none, like the first above).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import log
from queueing_ucrl.learning.controller import Knowledge, Tally
from queueing_ucrl.learning.intervals import PRIOR_SHAPE, anytime_interval
from queueing_ucrl.learning.schedules import DeltaSchedule
from queueing_ucrl.model.quantiles import gamma_upper_quantile

ByState = Literal["merged", "merged-log", "isotonic", "plain", "optimistic", "optimistic-any"]
Shape = Literal["non-increasing", "any"]

PENALTY = 3.0


@compiled
def _likelihood_ratio(n1: float, e1: float, n2: float, e2: float) -> float:
    """Twice the log of the likelihood ratio of two rates against one."""
    rate = (n1 + n2) / (e1 + e2)
    total = 0.0
    if n1 > 0.0:
        total += n1 * log(n1 / e1 / rate)
    if n2 > 0.0:
        total += n2 * log(n2 / e2 / rate)
    return 2.0 * total


@compiled
def _blocks(counts: FloatArray, times: FloatArray, monotone: bool, penalty: float, rates: FloatArray) -> None:
    """The estimates of one class into `rates`: see the head of this file. O(S^2) at worst, O(S) without merging."""
    states = times.size
    n, e, end = np.zeros(states), np.zeros(states), np.zeros(states, dtype=np.int64)
    used = 0
    for s in range(states):
        if times[s] > 0.0:
            n[used], e[used], end[used] = counts[s], times[s], s
            used += 1
            while monotone and used > 1 and n[used - 2] * e[used - 1] < n[used - 1] * e[used - 2]:
                n[used - 2] += n[used - 1]
                e[used - 2] += e[used - 1]
                end[used - 2] = s
                used -= 1
    while penalty > 0.0 and used > 1:
        nearest, least = -1, penalty
        for k in range(used - 1):
            distance = _likelihood_ratio(n[k], e[k], n[k + 1], e[k + 1])
            if distance < least:
                nearest, least = k, distance
        if nearest < 0:
            break
        n[nearest] += n[nearest + 1]
        e[nearest] += e[nearest + 1]
        end[nearest] = end[nearest + 1]
        for k in range(nearest + 1, used - 1):
            n[k], e[k], end[k] = n[k + 1], e[k + 1], end[k + 1]
        used -= 1
    block = 0
    for s in range(states):
        while block < used - 1 and (s > end[block] and times[s] > 0.0):
            block += 1
        rates[s] = n[block] / e[block] if used else math.nan


def rate_estimates(requests: FloatArray, times: FloatArray, by_state: ByState = "merged") -> FloatArray:
    """lambda_i(s) by state and class; nan where nothing was seen at all.

    "plain": N_i(s) / t(s). "isotonic": the likeliest rates that do not grow with s. "merged": of these, neighbours with
    a likelihood ratio below 3 become one; "merged-log": below 2 ln N_i, N_i all requests of the class.
    """
    rates = np.empty(requests.shape)
    for i in range(requests.shape[1]):
        counts = np.ascontiguousarray(requests[:, i], dtype=np.float64)
        penalty = PENALTY if by_state == "merged" else 0.0
        if by_state == "merged-log":
            penalty = 2.0 * log(max(2.0, float(counts.sum())))
        column = np.empty(len(times))
        _blocks(counts, times, by_state != "plain", penalty, column)
        rates[:, i] = column
    return rates


@compiled
def _upper_rates(requests: FloatArray, times: FloatArray, share: float, least: float, limits: FloatArray) -> None:
    for s in range(limits.shape[0]):
        for i in range(limits.shape[1]):
            limits[s, i] = gamma_upper_quantile(requests[s, i] + 1.0, share) / (times[s] + least)


def upper_rates(requests: FloatArray, times: FloatArray, share: float, least: float, shape: Shape) -> FloatArray:
    """The rate at which as few requests as were seen, or fewer, have the probability `share`; by state and class.

    Garwood's upper limit, over the time spent in s and `least` more, so that a state where nobody has been has a limit
    too: -ln(share) / least. Where rates do not grow with s, a limit of s holds for all states above it too.
    """
    limits = np.empty(requests.shape)
    _upper_rates(np.ascontiguousarray(requests, dtype=np.float64), times, share, least, limits)
    return np.minimum.accumulate(limits, axis=0) if shape == "non-increasing" else limits


@compiled
def non_increasing(values: FloatArray, weights: FloatArray) -> None:
    """The nearest (weighted least squares) columns that do not grow with s, in place, by pool adjacent violators."""
    states = weights.size
    total, weight, size = np.zeros(states), np.zeros(states), np.zeros(states, dtype=np.int64)
    for i in range(values.shape[1]):
        used = 0
        for s in range(states):
            total[used], weight[used], size[used] = weights[s] * values[s, i], weights[s], 1
            used += 1
            while used > 1 and total[used - 2] * weight[used - 1] < total[used - 1] * weight[used - 2]:
                total[used - 2] += total[used - 1]
                weight[used - 2] += weight[used - 1]
                size[used - 2] += size[used - 1]
                used -= 1
        s = 0
        for k in range(used):
            for _ in range(size[k]):
                values[s, i] = total[k] / weight[k]
                s += 1


class StateCounts:
    """N_i(s) and t(s), s = 0 .. S, so far."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.requests = np.zeros((knowledge.capacity + 1, knowledge.class_count))
        self.times = np.zeros(knowledge.capacity + 1)

    def add(self, tally: Tally) -> None:
        """What was seen since the last time."""
        self.requests += tally.requests
        self.times += tally.time_in_state


# ---- beliefs


def rows_where_they_change(table: FloatArray) -> list[dict[str, Any]]:
    """lambda_i(s) at each state where it differs from the state before: [{"from_state": 0, "rates": [..]}, ..]."""
    changes = np.flatnonzero(np.any(table[1:] != table[:-1], axis=1)) + 1
    return [{"from_state": int(s), "rates": table[s].tolist()} for s in (0, *changes)]


@dataclass(frozen=True)
class StateEstimate:
    """A rate for each state and class."""

    by_state: ClassVar[bool] = True
    rates: FloatArray  # lambda_i(s), s = 0 .. S - 1

    def contains(self, arrival_rates: FloatArray) -> None:
        """A point claims nothing about how far off it is."""

    def columns(self) -> dict[str, Any]:
        return {"rate_estimates_by_state": rows_where_they_change(self.rates)}


@dataclass(frozen=True)
class StatePosterior:
    """lambda_i(s) ~ Gamma(N_i(s) + 1/2, t(s) + m / (2 mu_max)), independent (shape, rate).

    Before anything was seen in a state it is half a job of each class in the time in which m/2 jobs leave a full house:
    a mean load of 1, and a long tail.
    """

    by_state: ClassVar[bool] = True
    shapes: FloatArray  # by state s = 0 .. S and class
    times: FloatArray  # by state

    def contains(self, arrival_rates: FloatArray) -> None:
        """A law excludes nothing."""

    def columns(self) -> dict[str, Any]:
        return {"rate_estimates_by_state": rows_where_they_change((self.shapes / self.times[:, None])[:-1])}


@dataclass(frozen=True)
class StateLimits:
    """Each class's rate in each state is at most its limit."""

    by_state: ClassVar[bool] = True
    limits: FloatArray  # by state s = 0 .. S - 1 and class
    delta: float  # the chance that any of the limits is exceeded

    def contains(self, arrival_rates: FloatArray) -> bool:
        """Whether these rates by state are plausible."""
        return bool(np.all(arrival_rates <= self.limits))

    def columns(self) -> dict[str, Any]:
        return {"rate_limits_by_state": rows_where_they_change(self.limits), "delta": self.delta}


# ---- estimators


class _ByState:
    def __init__(self, knowledge: Knowledge) -> None:
        self.seen = StateCounts(knowledge)

    def prior(self) -> None:
        """Nothing to plan with."""

    def truncation(self, length: float) -> float:
        return math.inf


class EstimateByState(_ByState):
    """What was counted in each state, over the time spent there."""

    def __init__(self, knowledge: Knowledge, by_state: ByState) -> None:
        super().__init__(knowledge)
        self.by_state = by_state

    def update(self, tally: Tally, length: float) -> StateEstimate | None:
        self.seen.add(tally)
        rates = rate_estimates(self.seen.requests, self.seen.times, self.by_state)
        return StateEstimate(rates[:-1])


class OptimismByState(_ByState):
    """The upper limit of each rate, at delta / (m S): what has hardly been tried is hoped to be busy, and so is tried.

    delta = 1 / (mu t) at time t. The time spent in a state is not fixed in advance, so that nothing is promised; the
    limits of `LimitsByState`, which hold at all exposures at once, are wider and need a bound on the rates.
    """

    def __init__(self, knowledge: Knowledge, schedule: DeltaSchedule, shape: Shape) -> None:
        super().__init__(knowledge)
        self.delta, self.shape = schedule, shape
        self.least = PRIOR_SHAPE * knowledge.class_count / knowledge.max_service_rate

    def update(self, tally: Tally, length: float) -> StateEstimate:
        self.seen.add(tally)
        requests = self.seen.requests[:-1]
        share = self.delta(tally.now) / requests.size
        return StateEstimate(upper_rates(requests, self.seen.times[:-1], share, self.least, self.shape))


class PosteriorByState(_ByState):
    """A Gamma posterior for each state and class."""

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(knowledge)
        self.least = PRIOR_SHAPE * knowledge.class_count / knowledge.max_service_rate

    def prior(self) -> StatePosterior:  # type: ignore[override]
        return StatePosterior(self.seen.requests + PRIOR_SHAPE, self.seen.times + self.least)

    def update(self, tally: Tally, length: float) -> StatePosterior:
        self.seen.add(tally)
        return self.prior()


class LimitsByState:
    """An upper limit for each state and class, each at delta / (m S), valid at random exposures; at most `largest`.

    The time spent in a state is random and depends on what came, so the limits are those of `anytime_interval`, which
    hold at all exposures at once. Where rates do not grow with s, a limit of s holds for all states above it too.
    """

    def __init__(self, knowledge: Knowledge, schedule: DeltaSchedule, largest: float, shape: Shape) -> None:
        self.seen = StateCounts(knowledge)
        self.delta = schedule
        self.largest = largest
        self.shape = shape

    def prior(self) -> StateLimits:
        """Before anything was seen."""
        return StateLimits(np.full((len(self.seen.times) - 1, self.seen.requests.shape[1]), self.largest), 1.0)

    def update(self, tally: Tally) -> StateLimits:
        """With what was seen since the last time."""
        self.seen.add(tally)
        delta, unit = self.delta(tally.now), self.delta.unit
        requests, times = self.seen.requests[:-1], self.seen.times[:-1]
        limits = np.full(requests.shape, self.largest)
        for s, i in np.ndindex(*requests.shape):
            if times[s] > 0.0:
                top = anytime_interval(float(requests[s, i]), float(times[s]), delta / requests.size, unit)[1]
                limits[s, i] = min(self.largest, top)
        if self.shape == "non-increasing":
            limits = np.minimum.accumulate(limits, axis=0)
        return StateLimits(limits, delta)


@compiled
def _fill_up(limits: FloatArray, priorities: IntArray, largest: float, table: FloatArray) -> None:
    for s in range(limits.shape[0]):
        room = largest
        for i in priorities[s]:
            table[s, i] = min(limits[s, i], room)
            room -= table[s, i]


def best_plausible_rates(limits: FloatArray, priorities: IntArray, largest: float) -> FloatArray:
    """The rates within the limits, and of a total of at most `largest` in each state, with the largest gain. O(mS).

    Where more of a class comes some can be turned away, so the optimal gain grows with every lambda_i(s); and of a
    total that is limited, in every state the classes that pay best there come first (as in Thm 4.3).
    """
    table = np.empty(limits.shape)
    _fill_up(limits, priorities, largest, table)
    return table
