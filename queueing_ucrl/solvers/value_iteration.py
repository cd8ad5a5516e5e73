r"""Value iteration (Alg. 2) on the uniformized chain, and value iteration with action elimination.

One sweep, O(mS) because the chain only moves to neighbours, with U = max Lambda + max mu and d(s) = u(s) - u(s+1):

    u'(s) = u(s) + (1/U) [ sum_i lambda_i(s) (r_i(s) - d(s))^+ + mu(s) d(s-1) ].

U min(u' - u) <= rho* <= U max(u' - u), and both ends close in; the span stop at eps / U gives a policy within eps.

Action elimination goes on until a best policy is proved. For a given rho the optimality equation
rho = sum_i lambda_i(s) (r_i(s) - g(s))^+ + mu(s) g(s-1) can be solved for g upward from state 0 and downward from
state S. Upward g(s) falls as rho grows, downward it rises, so the bounds on rho* bound g*(s) from both sides in both
directions; class i is settled in s once r_i(s) lies outside these bounds (Puterman, 8.5.6, gives the idea; the
birth-death chain makes the bounds this tight). Rewards so near to g* that rounding comes before the bounds are left to
the two phases of PI-B, which also admit the ties.

A sweep takes the chain 1/U further in time: where rates lie many decades apart it would take more sweeps than anybody
can wait for. After MOST_WORK updates both say so.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.policy_iteration import TIE, policy_iteration
from queueing_ucrl.solvers.shooting import inverse_gain

Marks = npt.NDArray[np.int8]  # of a class in a state: UNSETTLED, ADMIT or REJECT

SWEEP_WORK = 50_000_000  # state updates between two returns to Python, so that Ctrl-C is heard
MOST_WORK = 1_000_000_000  # updates of a class in a state: about ten seconds
UNSETTLED, ADMIT, REJECT = 0, 1, 2


@compiled
def _sweep(
    u: FloatArray,
    fresh: FloatArray,
    arrival_rates: FloatArray,
    rewards: FloatArray,
    service_rates: FloatArray,
    settled: Marks,
    uniformization: float,
) -> tuple[float, float]:
    """One sweep from u to fresh, minus fresh(0) so that values stay small; (min, max) of the change. O(mS)."""
    states, classes = arrival_rates.shape
    lowest = np.inf
    highest = -np.inf
    for s in range(states + 1):
        change = service_rates[s] * (u[s - 1] - u[s]) if s > 0 else 0.0
        if s < states:
            d = u[s] - u[s + 1]
            for i in range(classes):
                gained = rewards[s, i] - d
                mark = settled[s, i]
                if mark == ADMIT or (mark == UNSETTLED and gained > 0.0):
                    change += arrival_rates[s, i] * gained
        change /= uniformization
        fresh[s] = u[s] + change
        lowest = min(lowest, change)
        highest = max(highest, change)
    offset = fresh[0]
    for s in range(states + 1):
        fresh[s] -= offset
    return lowest, highest


@compiled
def _sweeps(
    u: FloatArray,
    arrival_rates: FloatArray,
    rewards: FloatArray,
    service_rates: FloatArray,
    settled: Marks,
    uniformization: float,
    target: float,
    limit: int,
) -> tuple[int, float, float, float]:
    """Sweep until the span is below `target` or `limit` sweeps are done; (sweeps, min, max, largest |u|)."""
    fresh = np.empty_like(u)
    done = 0
    lowest = -np.inf
    highest = np.inf
    while done < limit and highest - lowest >= target:
        lowest, highest = _sweep(u, fresh, arrival_rates, rewards, service_rates, settled, uniformization)
        u[:] = fresh
        done += 1
    return done, lowest, highest, np.abs(u).max()


@compiled
def _bounds_on_bias(
    low: float,
    high: float,
    arrival_rates: FloatArray,
    rewards: FloatArray,
    service_rates: FloatArray,
    order: IntArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Bounds on g*(s) from low <= rho* <= high, upward and downward, the tighter of the two. O(mS)."""
    states: int
    states, classes = arrival_rates.shape
    below = 0.0  # the upward solution at `high`: a lower bound
    above = 0.0  # at `low`: an upper bound
    for s in range(states):
        below = inverse_gain(arrival_rates, rewards, order, s, high - service_rates[s] * below)
        above = inverse_gain(arrival_rates, rewards, order, s, low - service_rates[s] * above)
        lower[s] = below
        upper[s] = above
        if not np.isfinite(below) or not np.isfinite(above):
            for q in range(s, states):
                lower[q] = -np.inf if q > s or not np.isfinite(below) else below
                upper[q] = np.inf
            break
    below = low / service_rates[states]
    above = high / service_rates[states]
    for s in range(states - 1, -1, -1):
        lower[s] = max(lower[s], below)
        upper[s] = min(upper[s], above)
        gain_below = 0.0
        gain_above = 0.0
        for i in range(classes):
            gain_below += arrival_rates[s, i] * max(rewards[s, i] - below, 0.0)
            gain_above += arrival_rates[s, i] * max(rewards[s, i] - above, 0.0)
        if s > 0:
            below = (low - gain_below) / service_rates[s]
            above = (high - gain_above) / service_rates[s]


@compiled
def _settle(rewards: FloatArray, lower: FloatArray, upper: FloatArray, settled: Marks) -> int:
    """Settle the classes whose reward lies outside the bounds, and ties within TIE (admitted). How many are left."""
    states, classes = rewards.shape
    left = 0
    for s in range(states):
        allowance = TIE * abs(lower[s])
        for i in range(classes):
            r = rewards[s, i]
            if r >= upper[s]:
                settled[s, i] = ADMIT
            elif r < lower[s] - allowance:
                settled[s, i] = REJECT
            elif upper[s] - lower[s] <= allowance:
                settled[s, i] = ADMIT  # a tie as far as double precision can tell
            elif settled[s, i] == UNSETTLED:
                left += 1
    return left


def _uniformization(model: AdmissionModel, asked: float | None) -> float:
    if asked is None:
        return model.uniformization_rate
    if not asked >= model.uniformization_rate * (1 - 1e-12):
        raise ValueError(f"uniformization must be at least {model.uniformization_rate}, got {asked}")
    return asked


def _first_values(model: AdmissionModel, start: Policy | None) -> FloatArray:
    """u_0(s) = - sum_{x<s} g(x), g from evaluating the start under this model's rates; 0 without a start."""
    values = np.zeros(model.capacity + 1)
    if start is not None:
        warm = -np.cumsum(evaluate(model, start).relative_bias)
        if np.all(np.isfinite(warm)):
            values[1:] = warm
    return values


def _greedy(model: AdmissionModel, values: FloatArray) -> Policy:
    return Policy._trusted(model.rewards >= (values[:-1] - values[1:])[:, None])


def _stalled(span: float, target: float, largest: float, uniformization: float) -> None:
    floor = 4.0 * np.finfo(float).eps * largest
    if target <= span <= floor:
        raise SolverError(
            f"value iteration cannot reach epsilon = {target * uniformization:.3g}: at this size rounding alone "
            f"moves the values by {floor * uniformization:.3g}; ask for a larger epsilon, or use pi-b"
        )


def _check_work(model: AdmissionModel, sweeps: int, span: float, uniformization: float) -> None:
    if sweeps * model.rewards.size >= MOST_WORK:
        rates = np.concatenate([model.service_rates[1:], model.arrival_rates.ravel()])
        raise SolverError(
            f"value iteration has not ended after {sweeps} sweeps: the gain is known to {span * uniformization:.3g} "
            f"only. A sweep goes 1 / {uniformization:.3g} further in time, and the slowest of the rates is "
            f"{rates[rates > 0].min():.3g}: use pi-b"
        )


def value_iteration(
    model: AdmissionModel, start: Policy | None, *, epsilon: float, uniformization: float | None
) -> tuple[Policy, int]:
    """A policy whose gain is within epsilon of the best, and the sweeps it took."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be a positive number, got {epsilon}")
    rate = _uniformization(model, uniformization)
    problem = (model.arrival_rates, model.rewards, model.service_rates)
    values = _first_values(model, start)
    settled = np.zeros(model.rewards.shape, dtype=np.int8)
    limit = max(1, SWEEP_WORK // model.rewards.size)
    sweeps = 0
    while True:
        done, lowest, highest, largest = _sweeps(values, *problem, settled, rate, epsilon / rate, limit)
        sweeps += done
        if highest - lowest < epsilon / rate:
            return _greedy(model, values), sweeps
        _stalled(highest - lowest, epsilon / rate, largest, rate)
        _check_work(model, sweeps, highest - lowest, rate)


def value_iteration_with_elimination(
    model: AdmissionModel, start: Policy | None, *, uniformization: float | None
) -> tuple[Policy, int]:
    """A best policy, proved as far as double precision goes, ties admitted, and the sweeps it took."""
    rate = _uniformization(model, uniformization)
    problem = (model.arrival_rates, model.rewards, model.service_rates)
    values = _first_values(model, start)
    settled = np.zeros(model.rewards.shape, dtype=np.int8)
    order = np.argsort(-model.rewards, axis=1, kind="stable")
    lower, upper = np.empty(model.capacity), np.empty(model.capacity)
    limit = max(1, SWEEP_WORK // model.rewards.size)
    sweeps, batch = 0, 4
    while True:
        done, lowest, highest, largest = _sweeps(values, *problem, settled, rate, 0.0, min(batch, limit))
        sweeps += done
        batch = max(4, sweeps // 4)
        rounding = 2.0 * np.finfo(float).eps * largest
        _bounds_on_bias(rate * (lowest - rounding), rate * (highest + rounding), *problem, order, lower, upper)
        left = _settle(model.rewards, lower, upper, settled)
        if left == 0 or highest - lowest <= rounding:
            proved = np.where(settled == UNSETTLED, _greedy(model, values).admits, settled == ADMIT)
            return policy_iteration(model, Policy(proved), ties=True)[0], sweeps
        _check_work(model, sweeps, highest - lowest, rate)
