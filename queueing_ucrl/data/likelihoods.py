"""The parameters that make durations likeliest, law by law.

Durations are positive, in order, and of a mean near 1 (`service_laws.unit_of`). A law that cannot be is refused by a
ValueError that says why. The search for a maximum also serves where patience is censored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.shape_equations import gamma_shape, weibull_law, weibull_shape
from queueing_ucrl.model.laws import (
    SMALLEST_CV,
    Deterministic,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Pareto,
    Uniform,
)

LARGEST_STAGES = 10_000

# the law, its log-likelihood, how many parameters were fitted, and its distribution function
Fitted = tuple[Law, float, int, Callable[[FloatArray], FloatArray]]


def _exponential(y: FloatArray) -> Fitted:
    mean = math.fsum(y.tolist()) / y.size
    return Exponential(1.0 / mean), -y.size * (math.log(mean) + 1.0), 1, lambda t: -np.expm1(-t / mean)


def _alike(y: FloatArray) -> bool:
    """Whether durations differ by less than laws given by their cv can: so do ends less starts of equal ones."""
    return bool(y[-1] - y[0] <= SMALLEST_CV * y[0])


def _not_alike(y: FloatArray) -> None:
    if _alike(y):
        raise ValueError("all durations are equal")


def _gamma_value(y: FloatArray, shape: float) -> float:
    """The log-likelihood of the gamma law of this shape and the mean of y."""
    from scipy.special import gammaln

    mean, logs = math.fsum(y.tolist()) / y.size, math.fsum(np.log(y).tolist())
    rest = float(gammaln(shape)) + shape * (math.log(mean / shape) + 1.0)
    return (shape - 1.0) * logs - y.size * rest


def _gamma_shape(y: FloatArray) -> float:
    _not_alike(y)
    return gamma_shape(y)


def _gamma(y: FloatArray) -> Fitted:
    from scipy.special import gammainc

    shape, mean = _gamma_shape(y), math.fsum(y.tolist()) / y.size
    law = Gamma(mean, 1.0 / math.sqrt(shape))
    return law, _gamma_value(y, shape), 2, lambda t: gammainc(shape, t * (shape / mean))


def _erlang(y: FloatArray) -> Fitted:
    from scipy.special import gammainc

    shape, mean = _gamma_shape(y), math.fsum(y.tolist()) / y.size
    if shape > LARGEST_STAGES:
        raise ValueError(f"it would need more than {LARGEST_STAGES} stages")
    # the likelihood falls on both sides of the best shape
    stages = max({max(1, math.floor(shape)), math.ceil(shape)}, key=lambda k: _gamma_value(y, k))
    return Erlang(mean, stages), _gamma_value(y, stages), 2, lambda t: gammainc(stages, t * (stages / mean))


def _lognormal(y: FloatArray) -> Fitted:
    from scipy.special import ndtr

    _not_alike(y)
    logs = np.log(y)
    mu = math.fsum(logs.tolist()) / y.size
    variance = math.fsum(((logs - mu) ** 2).tolist()) / y.size
    value = -y.size * (mu + 0.5 * math.log(2.0 * math.pi * variance) + 0.5)
    law = LogNormal(math.exp(mu + 0.5 * variance), math.sqrt(math.expm1(variance)))
    return law, value, 2, lambda t: ndtr((np.log(t) - mu) / math.sqrt(variance))


def nelder_mead(function: Callable[[FloatArray], float], start: list[float]) -> tuple[FloatArray, float]:
    """(where, value) of a function's smallest value, from this start."""
    from scipy.optimize import minimize

    least: Any = minimize
    options = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000, "maxfev": 4000}
    found = least(function, np.array(start), method="Nelder-Mead", options=options)
    if not found.success or not math.isfinite(found.fun):
        raise ValueError("its likelihood has no maximum that could be found")
    return found.x, float(found.fun)


def _weibull(y: FloatArray) -> Fitted:
    _not_alike(y)
    logs = np.log(y)
    k = weibull_shape(y)
    top = float(logs.max())
    log_scale = top + math.log(float(np.mean(np.exp(k * (logs - top))))) / k
    value = y.size * (math.log(k) - k * log_scale - 1.0) + (k - 1.0) * math.fsum(logs.tolist())
    return weibull_law(k, math.exp(log_scale)), value, 2, lambda t: -np.expm1(-np.exp(k * (np.log(t) - log_scale)))


def _hyperexponential(y: FloatArray) -> Fitted:
    """Balanced means: phases of probability p_j and rate 2 p_j / mean; p_1 = (1 + spread) / 2, cv^2 from the spread."""
    _not_alike(y)

    def phases(p: FloatArray) -> tuple[float, float, float]:
        mean, rare = math.exp(min(max(p[0], -30.0), 30.0)), 0.5 / (1.0 + math.exp(min(max(p[1], -30.0), 30.0)))
        return mean, 1.0 - rare, rare

    def loss(p: FloatArray) -> float:
        mean, likely, rare = phases(p)
        a, b = 2.0 * likely / mean, 2.0 * rare / mean
        # rate b is the smaller one: taken out, nothing underflows
        return float(np.sum(b * y) - np.sum(np.log(likely * a * np.exp(-(a - b) * y) + rare * b)))

    log_mean = math.log(math.fsum(y.tolist()) / y.size)
    starts = [[log_mean, start] for start in (-1.0, 1.0, 4.0)]
    best, value = min((nelder_mead(loss, start) for start in starts), key=lambda one: one[1])
    mean, likely, rare = phases(best)
    spread = likely - rare
    law = HyperExponential(mean, math.sqrt((1.0 + spread * spread) / (1.0 - spread * spread)))
    rates = 2.0 * likely / mean, 2.0 * rare / mean
    return law, -value, 2, lambda t: -likely * np.expm1(-rates[0] * t) - rare * np.expm1(-rates[1] * t)


def _pareto(y: FloatArray) -> Fitted:
    _not_alike(y)
    least = float(y[0])
    logs = math.fsum(np.log(y / least).tolist())
    shape = y.size / logs
    if not shape > 1.0:
        raise ValueError(f"its shape would be {shape:.3g}, at most 1: it has no mean")
    value = y.size * (math.log(shape) - math.log(least)) - (shape + 1.0) * logs
    return Pareto(least * shape / (shape - 1.0), shape), value, 2, lambda t: -np.expm1(-shape * np.log(t / least))


def _uniform(y: FloatArray) -> Fitted:
    _not_alike(y)
    low, high = float(y[0]), float(y[-1])
    return Uniform(low, high), -y.size * math.log(high - low), 2, lambda t: (t - low) / (high - low)


def _deterministic(y: FloatArray) -> Fitted:
    if not _alike(y):
        raise ValueError("the durations are not all equal")
    return Deterministic(float(y[y.size // 2])), math.inf, 1, lambda t: np.ones(t.size)


MAKERS: dict[str, Callable[[FloatArray], Fitted]] = {
    "exponential": _exponential,
    "erlang": _erlang,
    "gamma": _gamma,
    "hyperexponential": _hyperexponential,
    "lognormal": _lognormal,
    "weibull": _weibull,
    "pareto": _pareto,
    "uniform": _uniform,
    "deterministic": _deterministic,
}
