r"""The Weibull law of a given coefficient of variation, in decimals: doubles would lose half of its digits.

X = scale E^v with E exponential of mean 1 and v = 1 / shape has E[X^p] = scale^p Gamma(1 + p v), so

    log(1 + cv^2) = log Gamma(1 + 2v) - 2 log Gamma(1 + v),        scale = mean / Gamma(1 + v)

The right side is convex and increases from 0; near v = 0 it is pi^2 v^2 / 6, a difference of numbers of the size of v.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import comb

DIGITS = 60
SHIFT = 40  # from where Stirling's series has 60 digits
TERMS = 30  # of it


@lru_cache(maxsize=1)
def _stirling_terms() -> tuple[Decimal, ...]:
    """B_2k / (2k (2k - 1)), k = 1, 2, ..: Bernoulli's numbers by sum_j C(n + 1, j) B_j = 0."""
    bernoulli = [Fraction(1)]
    for n in range(1, 2 * TERMS + 1):
        bernoulli.append(-sum((comb(n + 1, j) * bernoulli[j] for j in range(n)), Fraction(0)) / (n + 1))
    terms = (bernoulli[2 * k] / (2 * k * (2 * k - 1)) for k in range(1, TERMS + 1))
    return tuple(Decimal(term.numerator) / Decimal(term.denominator) for term in terms)


def _log_gamma(x: Decimal) -> Decimal:
    """log Gamma(x) without its constant log(2 pi) / 2: by Stirling's series at x + SHIFT, and a product."""
    product = Decimal(1)
    for j in range(SHIFT):
        product *= x + j
    x += SHIFT
    series, inverse = Decimal(0), 1 / (x * x)
    for term in reversed(_stirling_terms()):
        series = series * inverse + term
    return (x - Decimal("0.5")) * x.ln() - x + series / x - product.ln()


@lru_cache(maxsize=256)
def weibull_numbers(cv: float) -> tuple[float, float, float]:
    """(1 / shape, shape, Gamma(1 + 1 / shape)) of the Weibull law with this coefficient of variation."""
    if cv == 1.0:
        return 1.0, 1.0, 1.0
    with localcontext(Context(prec=DIGITS)):
        at_one = _log_gamma(Decimal(1))  # minus the constant that is left out
        target = (1 + Decimal(cv) * Decimal(cv)).ln()

        def above(v: Decimal) -> Decimal:
            return _log_gamma(1 + 2 * v) - 2 * _log_gamma(1 + v) + at_one - target

        before, v = Decimal(cv) / 2, Decimal(cv)  # secant steps, from below and above where cv is small
        value_before, value = above(before), above(v)
        while abs(v - before) > Decimal("1e-25") * v and value != value_before:
            step = value * (v - before) / (value - value_before)
            before, value_before = v, value
            v = v - step if v > step else v / 2
            value = above(v)
        return float(v), float(1 / v), float((_log_gamma(1 + v) - at_one).exp())


def weibull_moments(shape: float) -> tuple[float, float]:
    """(mean, cv) of the Weibull law of this shape and scale 1; infinite where a double cannot hold them."""
    with localcontext(Context(prec=DIGITS)):
        v, at_one = 1 / Decimal(shape), _log_gamma(Decimal(1))
        one, two = _log_gamma(1 + v) - at_one, _log_gamma(1 + 2 * v) - at_one
        return float(one.exp()), float(((two - 2 * one).exp() - 1).sqrt())
