r"""The optimality equation by shooting at rho: where policy iteration would take many steps, a start next to the end.

For a given rho the equation rho = sum_i lambda_i(s) (r_i(s) - g(s))^+ + mu(s) g(s-1) can be followed upward from state
0 and downward from state S. Upward g(s) falls as rho grows, downward it rises: where the two meet, their difference
grows with rho, and its root, found by bisection, is rho*. Upward errors shrink while more jobs are let in than are
served, downward above; so the two meet at the first state where they balance.
"""

from __future__ import annotations

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.admission_model import AdmissionModel

PRECISION = 1e-15  # of rho, relative: the last bits decide where classes are turned away


@compiled
def inverse_gain(arrival_rates: FloatArray, rewards: FloatArray, order: IntArray, s: int, target: float) -> float:
    """The g with sum_i lambda_i(s) (r_i(s) - g)^+ = target; inf if target <= 0 (every large enough g does). O(m)."""
    if target <= 0.0:
        return np.inf
    rate = 0.0
    earned = 0.0
    for j in range(order.shape[1]):
        i = order[s, j]
        rate += arrival_rates[s, i]
        earned += arrival_rates[s, i] * rewards[s, i]
        if rate > 0.0:
            g = (earned - target) / rate
            if j + 1 == order.shape[1] or g >= rewards[s, order[s, j + 1]]:
                return g
    return -np.inf


@compiled
def _meet(
    rho: float,
    arrival_rates: FloatArray,
    rewards: FloatArray,
    service_rates: FloatArray,
    order: IntArray,
    bias: FloatArray,
) -> float:
    """Fill `bias` upward to the meeting state and downward to it; the difference there. O(mS)."""
    states: int
    states, classes = arrival_rates.shape
    last = -1  # the last state filled upward
    g = 0.0
    for s in range(states):
        following = inverse_gain(arrival_rates, rewards, order, s, rho - service_rates[s] * g)
        if not np.isfinite(following):
            break
        g = bias[s] = following
        last = s
        admitted = 0.0
        for i in range(classes):
            if rewards[s, i] >= g:
                admitted += arrival_rates[s, i]
        if admitted <= service_rates[s + 1]:
            break
    upward = g
    stuck = last < 0 or not np.isfinite(following)
    g = rho / service_rates[states]
    for s in range(states - 1, last, -1):
        bias[s] = g
        earned = 0.0
        for i in range(classes):
            if arrival_rates[s, i] > 0.0:  # g may have fallen beyond a double, and 0 * inf is no number
                earned += arrival_rates[s, i] * max(rewards[s, i] - g, 0.0)
        g = (rho - earned) / service_rates[s] if s > 0 else g
    if stuck:  # a closed state (rho is too small), or one where no class comes (too large)
        return -1.0 if following == np.inf else 1.0
    return g - upward


@compiled
def _shoot(
    arrival_rates: FloatArray, rewards: FloatArray, service_rates: FloatArray, order: IntArray, bias: FloatArray
) -> None:
    """Fill `bias` with (nearly) g*, by bisection on rho."""
    states, classes = arrival_rates.shape
    low = 0.0
    high = 0.0
    for s in range(states):
        earned = 0.0
        for i in range(classes):
            earned += arrival_rates[s, i] * max(rewards[s, i], 0.0)
        high = max(high, earned)
    while high - low > PRECISION * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if _meet(middle, arrival_rates, rewards, service_rates, order, bias) > 0.0:
            high = middle
        else:
            low = middle
    # at the lower end a state that is closed for good is seen as such
    _meet(low, arrival_rates, rewards, service_rates, order, bias)


def shooting_table(model: AdmissionModel) -> BoolArray:
    """An admission table at or next to the best one. O(mS) times the bits of rho."""
    order = np.argsort(-model.rewards, axis=1, kind="stable")
    bias = np.empty(model.capacity)
    _shoot(model.arrival_rates, model.rewards, model.service_rates, order, bias)
    table: BoolArray = model.rewards >= bias[:, None]
    return table
