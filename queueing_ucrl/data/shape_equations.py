r"""The equations that likeliest shapes solve, in the logarithms of `elementary`: the same bits on every processor.

gamma      log k - digamma(k) = log(mean) - mean(log),       between 1 / 2k and 1 / k, and falling in k
Weibull    sum x^k log x / sum x^k - 1 / k = mean of log x over those that are not censored; growing in k
"""

from __future__ import annotations

import math

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.elementary import exps, log, log1p, logs
from queueing_ucrl.model.laws import Weibull
from queueing_ucrl.model.weibull import weibull_moments

LEAST_SHAPE, LARGEST_SHAPE = 1e-3, 1e4  # of Weibull laws
ACCURACY = 1e-13  # of a shape, relative
LEAST_APART = 1e-10  # log(mean) - mean(log): below it rounding decides


def log_less_digamma(x: float) -> float:
    """log x - digamma(x) for x > 0: by its asymptotic series above 15, below by steps of 1 of 1/x - log(1 + 1/x)."""
    total = 0.0
    while x < 15.0:
        total += 1.0 / x - log1p(1.0 / x)
        x += 1.0
    q = 1.0 / (x * x)
    series = 1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - (1 / 132 - q * 691 / 32760) * q) * q) * q) * q
    return total + 0.5 / x + series * q


def gamma_shape(values: FloatArray) -> float:
    """The likeliest shape of a gamma law; a ValueError where the values hardly differ."""
    from scipy.optimize import brentq

    mean = math.fsum(values.tolist()) / values.size
    apart = log(mean) - math.fsum(logs(values).tolist()) / values.size
    if not apart > LEAST_APART:
        raise ValueError("the durations hardly differ")
    low, high = 0.4 / apart, 1.1 / apart
    return float(brentq(lambda k: log_less_digamma(k) - apart, low, high, xtol=ACCURACY * low, rtol=ACCURACY))


def weibull_shape(values: FloatArray, events: BoolArray | None = None) -> float:
    """The likeliest shape of a Weibull law; events: which values are not censored, None for all of them."""
    from scipy.optimize import brentq

    of_values = logs(values)
    seen = of_values if events is None else of_values[events]
    of_events = math.fsum(seen.tolist()) / seen.size
    below = of_values - of_values.max()

    def excess(k: float) -> float:
        weights = exps(k * below)  # at most 1: nothing overflows
        weighted = math.fsum((weights * of_values).tolist()) / math.fsum(weights.tolist())
        return weighted - 1.0 / k - of_events

    low, high = 0.5, 2.0
    while excess(low) > 0.0:
        low *= 0.5
        if low < LEAST_SHAPE:
            raise ValueError(f"its shape would be below {LEAST_SHAPE:g}")
    while excess(high) < 0.0:
        high *= 2.0
        if high > LARGEST_SHAPE:
            raise ValueError(f"its shape would be above {LARGEST_SHAPE:,.0f}: the times hardly differ")
    return float(brentq(excess, low, high, xtol=ACCURACY * low, rtol=ACCURACY))


def weibull_law(shape: float, scale: float) -> Weibull:
    """The package's Weibull law of this shape: by its mean and cv."""
    mean, cv = weibull_moments(shape)
    return Weibull(scale * mean, cv)
