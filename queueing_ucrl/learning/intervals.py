r"""Intervals for the rate of a Poisson process, from a count and the exposure in which it was counted: pure functions.

Every arrival is seen, admitted or not, so N_i, the arrivals of class i up to time t, is Poisson of mean lambda_i t
whatever the policy did. Departures D over busy-server time B are a Poisson process of rate mu in the clock B.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.elementary import exp, expm1, log, log1p, log_gamma, stirling_error
from queueing_ucrl.model.quantiles import gamma_quantile, gamma_upper_quantile

PRIOR_SHAPE = 0.5  # of Gamma laws: Jeffreys' prior for a Poisson rate


def upper_limit(count: float, exposure: float, delta: float) -> float:
    """The exact upper limit of a Poisson rate: the rate at which P(N <= count) = delta. Infinite without exposure.

    P(rate <= limit) >= 1 - delta at any fixed exposure; x with Q(count + 1, x) = delta, over the exposure.
    """
    return float(gamma_upper_quantile(count + 1.0, delta)) / exposure if exposure > 0.0 else math.inf


def upper_limits(counts: FloatArray, exposure: float, delta: float) -> FloatArray:
    """The same for several counts, the exposure positive."""
    return np.array([upper_limit(float(count), exposure, delta) for count in counts])


def exact_interval(count: float, exposure: float, delta: float) -> tuple[float, float]:
    """Garwood's interval of a Poisson rate: each tail delta / 2. Coverage at least 1 - delta at any fixed exposure."""
    low = float(gamma_quantile(count, 0.5 * delta)) / exposure if count > 0.0 else 0.0
    return low, upper_limit(count, exposure, 0.5 * delta)


def log_mixture(count: float, exposure: float, prior_exposure: float, shape: float = PRIOR_SHAPE) -> float:
    r"""log M at the estimate N / t, where M(lambda) is the mixture likelihood ratio against the rate lambda.

    M(lambda) = integral of (theta / lambda)^N e^{-(theta - lambda) t} over theta ~ Gamma(a, b)
              = b^a Gamma(a + N) / (Gamma(a) (b + t)^{a + N}) lambda^{-N} e^{lambda t},
    a = shape, b = prior_exposure.
    At N / t by Stirling's formula, so that the terms of the size of N log N, which cancel, are never formed.
    """
    a, b, n, t = shape, prior_exposure, count, exposure
    if n == 0.0:
        return -a * log1p(t / b)
    total = a + n
    return (
        a * log(b * total / (b + t))
        + n * (log1p(a / n) - log1p(b / t))
        - a
        - 0.5 * log(total)
        + 0.5 * log(2.0 * math.pi)
        + stirling_error(total)
        - log_gamma(a)
    )


def anytime_interval(
    count: float, exposure: float, delta: float, prior_exposure: float, shape: float = PRIOR_SHAPE
) -> tuple[float, float]:
    r"""The rates lambda with M(lambda) < 1 / delta: valid at all exposures at once, and at random ones.

    Under the rate lambda, M(lambda) is a martingale that starts at 1, so by Ville's inequality it ever reaches
    1 / delta with probability delta at most. With x = lambda t / N the ends solve
    N (x - 1 - log x) = log(1 / delta) - log M(N / t): Newton's method from beyond the root, where it is monotone.
    """
    if not exposure > 0.0:
        return 0.0, math.inf
    excess = -log(delta) - log_mixture(count, exposure, prior_exposure, shape)
    if count == 0.0:
        return 0.0, excess / exposure
    depth = excess / count
    estimate = count / exposure
    return estimate * exp(-_root_below(depth)), estimate * (1.0 + _root_above(depth))


def _root_above(depth: float) -> float:
    """u >= 0 with u - log(1 + u) = depth."""
    if not depth > 0.0:
        return 0.0
    u = depth + math.sqrt(2.0 * depth)  # too large by a third of the depth or less
    while True:
        smaller = u - (u - log1p(u) - depth) * (1.0 + u) / u
        if not smaller < u:
            return u
        u = smaller


def _root_below(depth: float) -> float:
    """v >= 0 with e^{-v} - 1 + v = depth; 1 + u = e^{-v} is the other root."""
    if not depth > 0.0:
        return 0.0
    v = depth + math.sqrt(2.0 * depth)
    while True:
        smaller = v + (expm1(-v) + v - depth) / expm1(-v)
        if not smaller < v:
            return v
        v = smaller
