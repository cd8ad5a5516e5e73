"""Elementary functions against mpmath: less than an ulp off on every kind of argument, and right at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest

from queueing_ucrl import elementary
from queueing_ucrl.model.waits import gauss_legendre

COUNT = 2500  # arguments of each function
LIMIT = {"sin": 0.8, "exp": 0.8}  # ulps; 0.52 for the others, and for exp where its value is not subnormal
PRECISION = {"sin": 1300}  # bits; an argument of 2^1023 has to be reduced by a multiple of pi


def doubles(random: np.random.Generator, low: int, high: int) -> float:
    """Any double of an exponent from low to high, of either sign."""
    return float(np.ldexp(random.uniform(1.0, 2.0), random.integers(low, high + 1)) * random.choice([-1.0, 1.0]))


def one_of(random: np.random.Generator, *makers: Callable[[], float]) -> Iterator[float]:
    for k in range(COUNT):
        yield makers[k % len(makers)]()


def arguments(name: str) -> Iterator[float]:
    """A wide and nasty sample: every magnitude, subnormal numbers, near 0, 1 and the ends of the range."""
    r = np.random.default_rng([3, len(name)])
    u = r.uniform
    if name == "exp":
        return one_of(
            r,
            lambda: doubles(r, -60, 8),
            lambda: u(-745.13, 709.78),
            lambda: u(-745.13, -708.0),
            lambda: u(-1.0, 1.0),
            lambda: r.integers(-60_000, 60_000) * math.log(2.0) / 64,
        )
    if name == "expm1":
        return one_of(
            r, lambda: doubles(r, -1074, 4), lambda: u(-41.0, 709.78), lambda: u(-1, 1), lambda: u(-0.02, 0.02)
        )
    if name == "log":
        return one_of(r, lambda: abs(doubles(r, -1074, 1023)), lambda: 1.0 + doubles(r, -52, -2), lambda: u(0.3, 3.0))
    if name == "log1p":
        return one_of(
            r,
            lambda: abs(doubles(r, -1074, 1023)),
            lambda: doubles(r, -40, -2),
            lambda: u(-1.0, 1.0),
            lambda: doubles(r, -12, -6),
            lambda: -1.0 + abs(doubles(r, -50, -2)),
        )
    return one_of(
        r,
        lambda: doubles(r, -1000, 1023),
        lambda: doubles(r, -10, 25),
        lambda: u(-1.0, 1.0),
        lambda: float(r.integers(1, 10**9) * math.pi / 2),
        lambda: u(0.9e6, 1.1e6),
    )


def off(found: float, exact: mpmath.mpf) -> float:
    """How many units in the last place."""
    if found == float(exact):
        return 0.0 if math.isinf(found) else float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(math.ulp(found)))
    return float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(math.ulp(float(exact))))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sin"])
def test_less_than_an_ulp_off(name: str) -> None:
    function, reference = getattr(elementary, name), getattr(mpmath, name)
    with mpmath.workprec(PRECISION.get(name, 300)):
        errors = {x: off(function(x), reference(mpmath.mpf(x))) for x in arguments(name)}
    worst = max(errors, key=errors.__getitem__)
    assert errors[worst] < LIMIT.get(name, 0.52), f"{name}({worst!r})"


def test_power_is_less_than_an_ulp_off() -> None:
    r = np.random.default_rng(4)
    bases = one_of(
        r, lambda: abs(doubles(r, -1074, 1023)), lambda: 1.0 + doubles(r, -40, -2), lambda: r.uniform(0.0, 100.0)
    )
    with mpmath.workprec(300):
        for x in bases:
            if x in (0.0, 1.0):
                continue
            y = float(r.uniform(-745.0, 709.0) / math.log(x) * r.choice([1.0, r.random()]))
            assert off(elementary.power(x, y), mpmath.mpf(x) ** mpmath.mpf(y)) < 0.8, f"power({x!r}, {y!r})"


def test_powers_that_are_doubles_are_exact() -> None:
    for x in range(1, 60):
        for y in range(1, 12):
            if x**y < 2**53:
                assert elementary.power(float(x), float(y)) == x**y
    for m in range(-1074, 1024):
        assert elementary.power(2.0, float(m)) == math.ldexp(1.0, m)
    for x in np.random.default_rng(5).uniform(0.0, 1e9, 500).tolist():
        assert elementary.power(x, 1.0) == x


def test_the_edges_of_the_range() -> None:
    inf, nan, least = math.inf, math.nan, 5e-324
    ends = {709.782712893384: 1.797693134862273e308, 709.7827128933841: inf, -745.1332191019411: least}
    table = {
        "exp": {-inf: 0.0, inf: inf, 0.0: 1.0, least: 1.0, 1e300: inf, -1e300: 0.0, -745.1332191019412: 0.0},
        "expm1": {-inf: -1.0, inf: inf, 0.0: 0.0, least: least, -least: -least, 710.0: inf, -38.0: -1.0, -1e300: -1.0},
        "log": {0.0: -inf, inf: inf, 1.0: 0.0, -1.0: nan, -inf: nan, least: -744.4400719213812},
        "log1p": {0.0: 0.0, -1.0: -inf, inf: inf, -1.5: nan, -inf: nan, least: least, -least: -least},
        "sin": {0.0: 0.0, inf: nan, -inf: nan, least: least, -least: -least},
    }
    table["exp"] |= ends
    for name, values in table.items():
        function = getattr(elementary, name)
        assert math.isnan(function(nan)), name
        for x, y in values.items():
            found = function(x)
            assert found == pytest.approx(y, rel=1e-15, abs=0.0, nan_ok=True), f"{name}({x})"
    small = [(0.0, 2.0), (0.0, inf), (inf, -2.0), (inf, -inf), (0.5, inf), (2.0, -inf), (2.0, -1075.0), (0.5, 1e300)]
    large = [(0.0, -1.0), (inf, 2.0), (2.0, inf), (0.5, -inf), (2.0, 1024.0), (1.0 + 2e-16, 1e300)]
    ones, none = [(nan, 0.0), (1.0, nan), (1e300, 1e-300)], [(nan, 2.0), (2.0, nan), (-1.0, 2.0)]
    for z, pairs in ((0.0, small), (inf, large), (1.0, ones), (nan, none)):
        for x, y in pairs:
            assert elementary.power(x, y) == pytest.approx(z, abs=0.0, nan_ok=True), f"power({x}, {y})"


def test_arrays_are_the_numbers_one_by_one() -> None:
    x = np.random.default_rng(6).uniform(-3.0, 30.0, (7, 11))[:, ::2]
    for over, one in ((elementary.exps, elementary.exp), (elementary.expm1s, elementary.expm1)):
        np.testing.assert_array_equal(over(x), [[one(float(v)) for v in row] for row in x])
    np.testing.assert_array_equal(
        elementary.logs(np.abs(x)), [[elementary.log(abs(float(v))) for v in row] for row in x]
    )
    powers = [[elementary.power(abs(float(v)), 1.7) for v in row] for row in x]
    np.testing.assert_array_equal(elementary.powers(np.abs(x), 1.7), powers)
    assert elementary.powers(2.0, 3.0).shape == ()
    assert elementary.exps([]).shape == (0,)


def test_log_gamma_and_its_stirling_error() -> None:
    r = np.random.default_rng(7)
    arguments = one_of(
        r, lambda: abs(doubles(r, -20, 100)), lambda: r.uniform(0.01, 30.0), lambda: float(r.integers(1, 40)) / 2
    )
    with mpmath.workprec(600):
        for x in arguments:
            z = mpmath.mpf(x)
            exact = mpmath.loggamma(z)
            error = exact - (z - 0.5) * mpmath.log(z) + z - mpmath.log(2 * mpmath.pi) / 2
            assert float(abs(elementary.log_gamma(x) - exact)) <= 2.3e-16 * max(1.0, abs(float(exact))), x
            assert float(abs(elementary.stirling_error(x) / error - 1)) < 2e-15, x


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_gauss_and_legendre_integrate_polynomials_exactly(count: int) -> None:
    nodes, weights = gauss_legendre(count)
    assert np.all(np.diff(nodes) > 0)
    for degree in range(2 * count):
        exact = 0.0 if degree % 2 else 2.0 / (degree + 1)
        assert math.fsum(weights * nodes**degree) == pytest.approx(exact, abs=1e-15)
