"""Quantiles against the laws' own integrals in mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from queueing_ucrl.model.quantiles import gamma_quantile, gamma_tails, gamma_upper_quantile, student_quantile


def lower_tail(a: float, x: float) -> mpmath.mpf:
    """P(Gamma(a, 1) <= x) by its series, all terms positive."""
    z, n = mpmath.mpf(x), mpmath.mpf(a)
    term = total = mpmath.exp(n * mpmath.log(z) - z - mpmath.loggamma(n + 1))
    while term > total * mpmath.mpf(10) ** -35:
        n += 1
        term *= z / n
        total += term
    return total


def shapes_and_tails(count: int, largest: float) -> list[tuple[float, float]]:
    r = np.random.default_rng(8)
    whole = np.floor(np.exp(r.uniform(0.0, np.log(largest), count)))
    shapes = np.where(r.random(count) < 0.7, whole, r.uniform(1.0, 50.0, count))
    return list(zip(shapes.tolist(), np.exp(r.uniform(np.log(1e-14), np.log(0.6), count)).tolist(), strict=True))


@pytest.mark.parametrize(("a", "tail"), shapes_and_tails(60, 1e5))
def test_gamma_quantiles_have_their_tails(a: float, tail: float) -> None:
    """An error e of x moves the tail by e times the density: the tails are right as far as x can say it."""
    with mpmath.workdps(60):
        for x, probability in (
            (gamma_quantile(a, tail), lambda x: lower_tail(a, x)),
            (gamma_upper_quantile(a, tail), lambda x: 1 - lower_tail(a, x)),
        ):
            z = mpmath.mpf(x)
            density = mpmath.exp((a - 1) * mpmath.log(z) - z - mpmath.loggamma(a))
            assert float(abs(probability(x) - tail)) <= 2e-15 * float(density) * x + 2e-13 * tail


@pytest.mark.parametrize("a", [0.01, 0.3, 0.5, 0.93])
@pytest.mark.parametrize("share", [1e-3, 0.025, 0.5])
def test_gamma_quantiles_of_shapes_below_one(a: float, share: float) -> None:
    """What a rate that shares its steps with other days is worth in arrivals may be less than one."""
    with mpmath.workdps(60):
        x = gamma_quantile(a, share)
        assert float(lower_tail(a, x) / share) == pytest.approx(1.0, rel=1e-12)


def test_a_count_of_ten_million_is_no_exception() -> None:
    """scipy's gammaincinv misses the tail by 2 % there."""
    with mpmath.workdps(40):
        assert float(lower_tail(8097326.0, gamma_quantile(8097326.0, 7.25e-8)) / mpmath.mpf(7.25e-8)) == pytest.approx(
            1.0, rel=1e-11
        )


def test_gamma_quantiles_where_they_are_elementary() -> None:
    for tail in (1e-300, 1e-20, 0.01, 0.5):
        assert gamma_upper_quantile(1.0, tail) == pytest.approx(-np.log(tail), rel=1e-14)
        assert gamma_quantile(1.0, tail) == pytest.approx(-np.log1p(-tail), rel=1e-14)


def test_both_tails_add_up_to_one() -> None:
    for a, x in ((0.5, 0.1), (0.5, 3.0), (7.0, 7.0), (1e6, 1e6 + 1e3), (3.0, 200.0)):
        lower, upper = gamma_tails(a, x)
        assert lower + upper == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("dof", [1, 2, 3, 4, 7, 19, 59, 60, 61, 99, 1000, 10**6])
@pytest.mark.parametrize("level", [0.01, 0.5, 0.95, 0.999])
def test_student_quantiles_have_their_level(dof: int, level: float) -> None:
    t = student_quantile(level, float(dof))
    with mpmath.workdps(30):
        z = mpmath.mpf(t) ** 2
        exact = mpmath.betainc(mpmath.mpf(1) / 2, mpmath.mpf(dof) / 2, 0, z / (dof + z), regularized=True)
        assert float(exact) == pytest.approx(level, rel=2e-14)


def test_student_quantiles_of_textbooks() -> None:
    for dof, value in ((1, 12.706), (4, 2.776), (9, 2.262), (19, 2.093), (99, 1.984)):
        assert round(student_quantile(0.95, float(dof)), 3) == value


@pytest.mark.parametrize("tail", [1e-14, 1e-20, 1e-50, 1e-100, 1e-200])
@pytest.mark.parametrize("a", [1.0, 1.5, 7.0, 100.0, 1e4, 1e6])
def test_tails_far_out_are_reached(a: float, tail: float) -> None:
    """Newton's first step goes to where the tail is 0 in a double: that is not the end."""
    with mpmath.workdps(300):
        for x, upper in ((gamma_quantile(a, tail), False), (gamma_upper_quantile(a, tail), True)):
            lower = lower_tail_to_the_end(a, x)
            assert float(mpmath.log((1 - lower if upper else lower) / mpmath.mpf(tail))) == pytest.approx(
                0.0, abs=1e-13 * max(abs(x - a), a, 1.0)
            )


def lower_tail_to_the_end(a: float, x: float) -> mpmath.mpf:
    """The same with as many digits as are asked for."""
    z, n = mpmath.mpf(x), mpmath.mpf(a)
    term = total = mpmath.exp(n * mpmath.log(z) - z - mpmath.loggamma(n + 1))
    while term > total * mpmath.eps:
        n += 1
        term *= z / n
        total += term
    return total
