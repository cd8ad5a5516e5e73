r"""Quantiles of the Gamma and of Student's law, in the plain arithmetic of `elementary`: no last bit of a library's.

With Q(a, x) = P(Gamma(a, 1) > x), and D(a, x) = x^a e^{-x} / Gamma(a + 1) by the saddle-point form of `waits`,

    1 - Q = D sum_n x^n / ((a + 1) .. (a + n)),                                      x <= a + 1
    Q     = D a / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ..)))    x >  a + 1

and every quantile is by Newton's method along a concave function, so from the second step on it comes from one side
and ends at the first step that does not go on. Where the first step goes so far that the tail there is too small for
a double, it is halved until it is not.
"""

from __future__ import annotations

import math

from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, log, log1p, stirling_error
from queueing_ucrl.model.waits import deviance

NEWTON_STEPS = 200  # never reached: ten are many
SMALLEST = 1e-306  # of tails: below it digits are lost, and then all


@compiled
def _gamma_weight(a: float, x: float) -> float:
    """x^a e^{-x} / Gamma(a + 1)."""
    return exp(-stirling_error(a) - deviance(a, x)) / math.sqrt(2.0 * math.pi * a)


@compiled
def _lower_series(a: float, x: float) -> float:
    """sum_n x^n / ((a + 1) .. (a + n))."""
    total = 1.0
    term = 1.0
    n = a
    while True:
        n += 1.0
        term *= x / n
        larger = total + term
        if larger == total:
            return total
        total = larger


@compiled
def _upper_fraction(a: float, x: float) -> float:
    """x + 1 - a - 1 (1 - a) / (x + 3 - a - ..), by Lentz's method."""
    b = x + 1.0 - a
    value = b
    c = b
    d = 0.0
    for i in range(1, 100_000):
        numerator = i * (a - i)
        b += 2.0
        d = 1.0 / (b + numerator * d)
        c = b + numerator / c
        change = c * d
        value *= change
        if abs(change - 1.0) < 2e-16:
            break
    return value


@compiled
def gamma_tails(a: float, x: float) -> tuple[float, float]:
    """(P(Gamma(a, 1) <= x), P(Gamma(a, 1) > x)) for a, x > 0; the smaller one keeps its relative accuracy."""
    weight = _gamma_weight(a, x)
    if x <= a + 1.0:
        lower = weight * _lower_series(a, x)
        return lower, 1.0 - lower
    upper = weight * a / _upper_fraction(a, x)
    return 1.0 - upper, upper


@compiled
def gamma_upper_quantile(a: float, tail: float) -> float:
    """x with P(Gamma(a, 1) > x) = tail, a >= 1, 0 < tail < 1: Newton on log Q, which is concave, in x."""
    target = log(tail)
    x = before = a
    came_down = False
    for _ in range(NEWTON_STEPS):
        _, upper = gamma_tails(a, x)
        density = _gamma_weight(a, x) * a / x
        if upper < SMALLEST or density < SMALLEST:
            x = 0.5 * (x + before)
            came_down = False
            continue
        after = x + (log(upper) - target) * upper / density
        if came_down and not after < x:
            return x
        if after <= 0.0:
            after = 0.5 * x
        else:
            came_down = True  # to the right of the root, wherever it came from
        before, x = x, after
    return x


@compiled
def gamma_quantile(a: float, share: float) -> float:
    """x with P(Gamma(a, 1) <= x) = share, a > 0, 0 < share < 1: Newton on log P, which is concave, in log x."""
    target = log(share)
    x = before = a
    came_up = False
    for _ in range(NEWTON_STEPS):
        lower, _ = gamma_tails(a, x)
        if lower < SMALLEST:
            x = math.sqrt(x * before) if x > 0.0 else 1e-8 * before
            came_up = False
            continue
        after = x * exp((target - log(lower)) * lower / (_gamma_weight(a, x) * a))
        if came_up and not after > x:
            return x
        came_up = True  # to the left of the root, wherever it came from
        before, x = x, after
    return x


@compiled
def _student_constant(dof: float) -> float:
    """Gamma((v + 1) / 2) / (Gamma(v / 2) sqrt(pi))."""
    a = 0.5 * dof
    ratio = a * log1p(0.5 / a) - 0.5 + (stirling_error(a + 0.5) - stirling_error(a))
    return math.sqrt(a / math.pi) * exp(ratio)


@compiled
def _student_series(first: float, second: float, y: float) -> float:
    """sum_n y^n first (first + 1) .. / (second (second + 1) ..), 0 <= y < 1."""
    total = 1.0
    term = 1.0
    while True:
        term *= y * first / second
        first += 1.0
        second += 1.0
        larger = total + term
        if larger == total:
            return total
        total = larger


@compiled
def student_central(t: float, dof: float) -> float:
    """P(|T| <= t) for Student's T of `dof` = v degrees of freedom, t > 0: the incomplete beta function, by the series
    of its smaller part; y = t^2 / (v + t^2).
    """
    y = t * t / (dof + t * t)
    weight = _student_constant(dof) * math.sqrt(y) * exp(-0.5 * dof * log1p(t * t / dof))
    if y < 0.5 or dof > 60.0:
        return 2.0 * weight * _student_series(0.5 * (dof + 1.0), 1.5, y)
    return 1.0 - weight * 2.0 / dof * _student_series(0.5 * (dof + 1.0), 0.5 * dof + 1.0, 1.0 - y)


@compiled
def student_quantile(level: float, dof: float) -> float:
    """t with P(|T| <= t) = level, 0 < level < 1: Newton from t = 0, where the probability is concave in t."""
    t = 0.0
    for _ in range(NEWTON_STEPS):
        density = 2.0 * _student_constant(dof) / math.sqrt(dof) * exp(-0.5 * (dof + 1.0) * log1p(t * t / dof))
        after = t + (level - (student_central(t, dof) if t > 0.0 else 0.0)) / density
        if not after > t:
            return t
        t = after
    return t
