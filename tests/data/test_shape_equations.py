"""The shapes that make numbers likeliest, against the same equations in fifty digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.likelihoods import MAKERS
from queueing_ucrl.data.refit import refitted
from queueing_ucrl.data.shape_equations import gamma_shape, log_less_digamma, weibull_law, weibull_shape
from queueing_ucrl.model.weibull import weibull_moments

SHAPES = [0.04, 0.3, 1.0, 60.0, 200.0]


def sample(shape: float, count: int = 200) -> np.ndarray:
    return np.random.default_rng(7).weibull(shape, count)


def exact_weibull_shape(values: np.ndarray, events: np.ndarray, near: float) -> float:
    with mp.workdps(50):
        x = [mp.mpf(value) for value in values.tolist()]
        logs = [mp.log(value) for value in x]
        of_events = mp.fsum(log for log, seen in zip(logs, events, strict=True) if seen) / int(events.sum())

        def excess(k: mp.mpf) -> mp.mpf:
            weights = [mp.exp(k * log) for log in logs]
            weighted = mp.fsum(w * log for w, log in zip(weights, logs, strict=True)) / mp.fsum(weights)
            return weighted - 1 / k - of_events

        return float(mp.findroot(excess, (0.9 * near, 1.1 * near)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("censored", [False, True])
def test_the_weibull_shape_solves_its_equation(shape, censored) -> None:
    values = sample(shape)
    events = np.arange(values.size) % 3 > 0 if censored else np.ones(values.size, dtype=bool)
    found = weibull_shape(values, events if censored else None)
    assert found == pytest.approx(exact_weibull_shape(values, events, found), rel=1e-10)


def test_shapes_beyond_what_durations_can_tell_are_refused() -> None:
    with pytest.raises(ValueError, match="hardly differ"):
        weibull_shape(1.0 + 1e-6 * np.arange(10.0))
    with pytest.raises(ValueError, match=r"below 0\.001"):
        weibull_shape(np.array([1e-300, 1e-300, 1e300, 1e-300]))


@pytest.mark.parametrize("shape", [0.01, 0.5, 1.0, 3.0, 14.9, 15.0, 80.0, 1e6])
def test_log_less_digamma(shape) -> None:
    with mp.workdps(50):
        exact = mp.log(mp.mpf(shape)) - mp.digamma(mp.mpf(shape))
    assert log_less_digamma(shape) == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gamma_shape_solves_its_equation(shape) -> None:
    values = np.random.default_rng(8).gamma(shape, size=200)
    found = gamma_shape(values)
    with mp.workdps(50):
        x = [mp.mpf(value) for value in values.tolist()]
        apart = mp.log(mp.fsum(x) / len(x)) - mp.fsum(mp.log(value) for value in x) / len(x)
        exact = mp.findroot(lambda k: mp.log(k) - mp.digamma(k) - apart, (0.9 * found, 1.1 * found))
    assert found == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("shape", [0.001, *SHAPES, 1e4, 1e6])
def test_moments_of_a_weibull_law_to_the_last_digit(shape) -> None:
    with mp.workdps(3000):
        one, two = mp.gamma(1 + 1 / mp.mpf(shape)), mp.gamma(1 + 2 / mp.mpf(shape))
        exact = float(one), float(mp.sqrt(two / one**2 - 1))
    assert weibull_moments(shape) == pytest.approx(exact, rel=2e-16)


def test_a_law_wider_than_laws_of_the_package_is_refused() -> None:
    with pytest.raises(ValueError, match="cv must lie between"):
        weibull_law(0.04, 1.0)


@pytest.mark.parametrize("shape", [0.1, 60.0, 200.0, 2000.0])
def test_hardly_varying_services_are_fitted_again(shape) -> None:
    """The likeliest shape of n numbers has the standard error sqrt(6) / pi k / sqrt(n) = 0.780 k / sqrt(n)."""
    again = refitted(weibull_law(shape, 3.0), 500, np.random.default_rng(11))
    assert isinstance(again, qu.Weibull)
    assert abs(again.shape - shape) < 5.0 * math.sqrt(6.0) / math.pi * shape / math.sqrt(500)


@pytest.mark.parametrize("law", [qu.Weibull(1.0, 0.01), qu.Gamma(1.0, 0.01), qu.Gamma(1.0, 3.0)])
def test_a_fit_and_its_refit_find_the_same_law(law) -> None:
    """Both of the same numbers: those that `refitted` draws."""
    values = np.empty(300)
    law.stream(np.random.default_rng(5)).fill(values)
    fitted, again = MAKERS[law.kind](np.sort(values))[0], refitted(law, 300, np.random.default_rng(5))
    assert (again.mean, again.cv) == pytest.approx((fitted.mean, fitted.cv), rel=1e-11)
