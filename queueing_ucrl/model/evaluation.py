r"""What a policy earns: gain, relative bias and stationary law of a birth-death chain.

With birth rate Lambda(s), death rate mu(s) and reward rate R(s) under the policy, gain rho and relative bias
g(s) = h(s) - h(s+1) solve (eq. 3 of the paper)

    rho = R(s) - Lambda(s) g(s) + mu(s) g(s-1),    s = 0 .. S.

The paper's recursions run through these equations from one end, and lose all digits in ordinary settings; so does its
closed form (Prop. 5.1). A dense solve keeps them, at O(S^3). `evaluate` runs from both ends to the median of the
stationary law: each recursion then goes in the direction in which errors shrink. docs/numerics.md shows the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System

_HUGE = 2.0**500
_TINY = 2.0**-500


@dataclass(frozen=True)
class Evaluation(ReadOnlyArrays):
    """The worth of a policy in a model."""

    gain: float  # rho, reward per unit of time
    relative_bias: FloatArray  # g(s) = h(s) - h(s+1), s = 0 .. S - 1
    stationary: FloatArray  # probability of s = 0 .. S


@compiled
def policy_rates(
    admits: BoolArray, arrival_rates: FloatArray, rewards: FloatArray, birth: FloatArray, reward_rate: FloatArray
) -> None:
    """Lambda(s) = sum_{i admitted} lambda_i(s) and R(s) = sum_{i admitted} lambda_i(s) r_i(s); 0 in S. O(mS)."""
    states, classes = admits.shape
    for s in range(states):
        total = 0.0
        earned = 0.0
        for i in range(classes):
            if admits[s, i]:
                total += arrival_rates[s, i]
                earned += arrival_rates[s, i] * rewards[s, i]
        birth[s] = total
        reward_rate[s] = earned
    birth[states] = 0.0
    reward_rate[states] = 0.0


@compiled
def stationary_weights(birth: FloatArray, death: FloatArray, law: FloatArray, exponents: IntArray) -> tuple[float, int]:
    """Weights proportional to the stationary law, the largest 1; their sum and the mode. O(S).

    p(s+1) = p(s) Lambda(s) / mu(s+1), carried as w * 2^(500 e) with 1 <= w < 2^500: only what is below 1e-150 of the
    largest weight is lost, even behind a deep valley of the law. States above the first closed one are transient.
    """
    states = birth.size
    weight = 1.0
    exponent = 0
    law[0] = 1.0
    exponents[0] = 0
    mode = 0
    last = 0
    for s in range(states - 1):
        if birth[s] == 0.0:
            break
        weight *= birth[s] / death[s + 1]
        if weight >= _HUGE:
            weight *= _TINY
            exponent += 1
        elif weight < 1.0:
            weight *= _HUGE
            exponent -= 1
        last = s + 1
        law[last] = weight
        exponents[last] = exponent
        if exponent > exponents[mode] or (exponent == exponents[mode] and weight > law[mode]):
            mode = last
    largest = law[mode]
    top = exponents[mode]
    total = 0.0
    for s in range(states):
        if s > last or exponents[s] < top - 1:
            law[s] = 0.0
        elif exponents[s] == top:
            law[s] /= largest
        else:
            law[s] = law[s] / largest * _TINY
        total += law[s]
    return total, mode


@compiled
def _rescaled(flow: float, exponent: int) -> tuple[float, int]:
    """The same flow * 2^(500 exponent), exponent >= 0, with |flow| within 2^500 and above 1 once it is scaled."""
    if abs(flow) > _HUGE:
        return flow * _TINY, exponent + 1
    if exponent > 0 and abs(flow) < 1.0:  # 0 where nobody is admitted: nothing is carried on
        return flow * _HUGE, exponent - 1 if flow != 0.0 else 0
    return flow, exponent


@compiled
def _scaled_step(drift: float, flow: float, exponent: int, rate: float) -> tuple[float, float]:
    """g = (drift + flow * 2^(500 exponent)) / rate: without the power, and as a double (inf beyond its range)."""
    if exponent == 0:
        g = (drift + flow) / rate
        return g, g
    g = ((drift * _TINY if exponent == 1 else 0.0) + flow) / rate
    value = g
    for _ in range(exponent):
        value *= _HUGE
    return g, value


@compiled
def median(law: FloatArray, total: float) -> int:
    """The first state up to which more than half of the mass lies: where the recursions from both ends meet.

    The median, not the mode: on each side of it less than half of the mass has been summed, so the partial sums that
    the recursions carry cannot have cancelled.
    """
    below = 0.0
    for s in range(law.size):
        below += law[s]
        if below > 0.5 * total:
            return s
    return 0


@compiled
def evaluate_chain(
    birth: FloatArray,
    death: FloatArray,
    reward_rate: FloatArray,
    law: FloatArray,
    exponents: IntArray,
    bias: FloatArray,
) -> float:
    """Fill `law` and `bias`, return the gain: the two-sided scheme. O(S).

    The gain is kept as a + d with a = R(mode), and (R(s) - a) - d stands for R(s) - rho: where the chain lives
    R(s) is near rho, and rounding rho first would lose the digits of the difference. Behind a deep valley of the law
    g leaves the range of a double and comes back: what is carried from state to state is scaled by powers of two.
    """
    states = birth.size
    total, mode = stationary_weights(birth, death, law, exponents)
    anchor = reward_rate[mode]
    excess = 0.0
    for s in range(states):
        excess += law[s] * (reward_rate[s] - anchor)
    excess /= total
    middle = median(law, total)
    flow = 0.0  # mu(s) g(s-1)
    exponent = 0
    for s in range(middle):
        g, bias[s] = _scaled_step((reward_rate[s] - anchor) - excess, flow, exponent, birth[s])
        flow, exponent = _rescaled(death[s + 1] * g, exponent)
    flow = 0.0  # Lambda(s) g(s)
    exponent = 0
    for s in range(states - 1, middle, -1):
        g, bias[s - 1] = _scaled_step(excess - (reward_rate[s] - anchor), flow, exponent, death[s])
        flow, exponent = _rescaled(birth[s - 1] * g, exponent)
    for s in range(states):
        law[s] /= total
    return anchor + excess


def as_model(queue: System | AdmissionModel) -> AdmissionModel:
    """The decision model behind either."""
    return queue.model if isinstance(queue, System) else queue


def _rates(model: AdmissionModel, policy: Policy) -> tuple[FloatArray, FloatArray]:
    if policy.admits.shape != model.arrival_rates.shape:
        raise ValueError(
            f"the policy is for {policy.capacity} states and {policy.class_count} classes, "
            f"the queue has {model.capacity} and {model.class_count}"
        )
    birth, reward_rate = np.empty(model.capacity + 1), np.empty(model.capacity + 1)
    policy_rates(policy.admits, model.arrival_rates, model.rewards, birth, reward_rate)
    return birth, reward_rate


def _two_sided(birth: FloatArray, death: FloatArray, reward_rate: FloatArray) -> Evaluation:
    law, bias = np.empty(birth.size), np.empty(birth.size - 1)
    gain = evaluate_chain(birth, death, reward_rate, law, np.empty(birth.size, dtype=np.int64), bias)
    return Evaluation(float(gain), bias, law)


def _law(birth: FloatArray, death: FloatArray) -> FloatArray:
    law = np.empty(birth.size)
    total, _ = stationary_weights(birth, death, law, np.empty(birth.size, dtype=np.int64))
    return law / total


def _dense(birth: FloatArray, death: FloatArray, reward_rate: FloatArray) -> Evaluation:
    """Solve the S + 1 equations in (g(0), .., g(S-1), rho) by LAPACK: O(S^3)."""
    states = birth.size
    matrix = np.zeros((states, states))
    matrix[:, -1] = 1.0
    s = np.arange(states - 1)
    matrix[s, s] = birth[:-1]
    matrix[s + 1, s] -= death[1:]
    solution = np.linalg.solve(matrix, reward_rate).astype(np.float64)
    return Evaluation(float(solution[-1]), solution[:-1], _law(birth, death))


def _closed_form(birth: FloatArray, death: FloatArray, reward_rate: FloatArray) -> Evaluation:
    """Prop. 5.1: g = U^pi (rho e - R), U^pi[s, q] = 1{q > s} prod_{s<p<q} Lambda(p)/mu(p+1) / mu(s+1). O(S^2)."""
    law = _law(birth, death)
    gain = float(law @ reward_rate)
    states = birth.size
    matrix = np.zeros((states - 1, states))
    for s in range(states - 1):
        matrix[s, s + 1 :] = np.cumprod(np.concatenate([[1.0], birth[s + 1 : -1] / death[s + 2 :]])) / death[s + 1]
    return Evaluation(gain, matrix @ (gain - reward_rate), law)


def _forward(birth: FloatArray, death: FloatArray, reward_rate: FloatArray) -> Evaluation:
    """The paper's recursion from s = 0 upward: g(s) = (R(s) - rho + mu(s) g(s-1)) / Lambda(s). O(S)."""
    law = _law(birth, death)
    gain = float(law @ reward_rate)
    bias = np.empty(birth.size - 1)
    before = 0.0
    for s in range(bias.size):
        before = bias[s] = (reward_rate[s] - gain + death[s] * before) / birth[s]
    return Evaluation(gain, bias, law)


def _backward(birth: FloatArray, death: FloatArray, reward_rate: FloatArray) -> Evaluation:
    """The paper's recursion from s = S downward: g(s-1) = (rho - R(s) + Lambda(s) g(s)) / mu(s). O(S)."""
    law = _law(birth, death)
    gain = float(law @ reward_rate)
    bias = np.empty(birth.size - 1)
    after = 0.0
    for s in range(bias.size, 0, -1):
        after = bias[s - 1] = (gain - reward_rate[s] + birth[s] * after) / death[s]
    return Evaluation(gain, bias, law)


EVALUATIONS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], Evaluation]] = {
    "two-sided": _two_sided,
    "dense": _dense,
    "closed-form": _closed_form,
    "forward": _forward,
    "backward": _backward,
}


def evaluate(queue: System | AdmissionModel, policy: Policy, method: str = "two-sided") -> Evaluation:
    """Gain, relative bias and stationary law of `policy`.

    `method` is for teaching and tests: "two-sided" (the one to use), "dense", "closed-form" (Prop. 5.1), "forward"
    and "backward" (the paper's one-sided recursions). The last three lose digits or overflow on ordinary queues.
    """
    if method not in EVALUATIONS:
        raise ValueError(f"method must be one of {', '.join(EVALUATIONS)}, got {method!r}")
    model = as_model(queue)
    birth, reward_rate = _rates(model, policy)
    with np.errstate(all="ignore"):
        return EVALUATIONS[method](birth, model.service_rates, reward_rate)
