r"""The diameter of the uniformized queue: how long the slowest of the best journeys between two states takes (App. A).

On a birth-death chain it is the larger of 0 -> S with everybody admitted and S -> 0 with nobody, in steps of the chain
uniformized at U = Lambda + mu(S). First-step analysis: with t(s) the mean time from s to s + 1,

    t(s) = (1 + mu(s) t(s-1)) / Lambda(s),    E[T(0 -> S)] = U sum_s t(s),    E[T(S -> 0)] = U sum_s 1 / mu(s),

sums of positive terms, so every digit holds even where the diameter is 1e30. It grows so fast with S that it leaves
the range of a double; `log10_diameter` does not. Where jobs balk Lambda(s) = sum_i lambda_i(s) (Lambda otherwise), and
a state s < S in which nobody asks makes it infinite. Ticks come at U all the same: a job that balks is one of them.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.system import Queue

_BLOCK = 2.0**500


@compiled
def _climb(arrival_rates: FloatArray, service_rates: FloatArray) -> tuple[float, int]:
    """sum_{s<S} t(s) = total * 2^(500 exponent). O(S)."""
    step = 0.0
    total = 0.0
    exponent = 0
    one = 1.0
    for s in range(service_rates.size - 1):
        if arrival_rates[s] == 0.0:
            return math.inf, 0
        step = (one + service_rates[s] * step) / arrival_rates[s]
        total += step
        if total > _BLOCK:
            step /= _BLOCK
            total /= _BLOCK
            one /= _BLOCK
            exponent += 1
    return total, exponent


def rates_of_all(queue: Queue) -> FloatArray:
    """Lambda(s) for s = 0 .. S - 1, of those who ask."""
    if queue.balks:
        return queue.rates_by_state[:-1].sum(axis=1)
    return np.full(queue.capacity, queue.total_arrival_rate)


def uniformization(queue: Queue) -> float:
    """U = Lambda + mu(S), the smallest rate at which a queue can be uniformized."""
    return queue.total_arrival_rate + queue.max_service_rate


def _parts(queue: Queue) -> tuple[float, int]:
    """The diameter as x * 2^(500 e)."""
    queue.must_be_steady()
    total, exponent = _climb(rates_of_all(queue), queue.service_rates)
    descent = math.fsum(1.0 / queue.service_rates[1:])
    if exponent == 0 and descent > total:
        total = descent
    return uniformization(queue) * total, exponent


def diameter(queue: Queue) -> float:
    """The exact diameter, in steps of the chain uniformized at U = Lambda + mu(S).

    Raises OverflowError where it is above 1e308: `log10_diameter` still tells it.
    """
    value, exponent = _parts(queue)
    try:
        return math.ldexp(value, 500 * exponent)
    except OverflowError:
        raise OverflowError(
            f"the diameter is about 1e{log10_diameter(queue):.0f}, too large for a double: use log10_diameter"
        ) from None


def log10_diameter(queue: Queue) -> float:
    """The decimal logarithm of the diameter, of whatever size."""
    value, exponent = _parts(queue)
    return math.log10(value) + 500 * exponent * math.log10(2.0)


def _geometric_sum(ratio: float, terms: int) -> float:
    """1 + x + .. + x^(n-1) = (x^n - 1) / (x - 1), also near x = 1, where it is n."""
    if ratio == 1.0:
        return float(terms)
    logarithm = math.log(ratio)
    return math.expm1(terms * logarithm) / math.expm1(logarithm)


def _partial_exponential(load: float, terms: int, log_factor: float) -> float:
    """e^log_factor * sum_{s<terms} load^s / s!, the factor taken into each term."""
    return math.fsum(math.exp(log_factor + s * math.log(load) - math.lgamma(s + 1)) for s in range(terms))


def _lower_bound_sum(rate: float, death: FloatArray) -> float:
    """mu(S) / (Lambda + mu(S)) sum_{s<S} prod_{s<x<S} mu(x) / Lambda, from the innermost product outward."""
    total = 1.0
    for x in range(1, death.size - 1):
        total = 1.0 + float(death[x]) / rate * total
    if total == math.inf:
        raise OverflowError("the bound is too large for a double")
    return float(death[-1]) / (rate + float(death[-1])) * total


def diameter_lower_bound(queue: Queue) -> float:
    """The paper's closed-form lower bound for this kind of queue: M/M/1/S, M/M/S/S or M/M/c/S with c < S (App. A).

    i)   mu / (Lambda + mu) * ((mu/Lambda)^S - 1) / (mu/Lambda - 1)
    ii)  S mu / (Lambda + S mu) * (mu/Lambda)^(S-1) (S-1)! sum_{s<S} (Lambda/mu)^s / s!
    iii) c mu / (Lambda + c mu) * [ ((c mu/Lambda)^(S-c) - 1) / (c mu/Lambda - 1)
                                    + c^(S-c-1) c! (mu/Lambda)^(S-1) sum_{s<c} (Lambda/mu)^s / s! ]

    With c mu = Lambda the quotient in i) and iii) is its limit, S and S - c. Where jobs give up there is no closed
    form, and it is the sum that these are of: mu(S) / (Lambda + mu(S)) sum_{s<S} prod_{s<x<S} mu(x) / Lambda.
    """
    queue.must_be_steady()
    queue.must_not_balk("diameter_lower_bound")
    if queue.patience_rate:
        return _lower_bound_sum(queue.total_arrival_rate, queue.service_rates)
    S, c = queue.capacity, min(queue.servers, queue.capacity)
    rate, mu = queue.total_arrival_rate, queue.service_rate
    share = c * mu / (rate + c * mu)
    log_ratio = math.log(mu / rate)
    if c == 1:
        return share * _geometric_sum(mu / rate, S)
    if c == S:
        return share * _partial_exponential(rate / mu, S, (S - 1) * log_ratio + math.lgamma(S))
    log_factor = (S - c - 1) * math.log(c) + math.lgamma(c + 1) + (S - 1) * log_ratio
    return share * (_geometric_sum(c * mu / rate, S - c) + _partial_exponential(rate / mu, c, log_factor))
