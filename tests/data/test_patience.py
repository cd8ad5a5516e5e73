"""Patience that is censored by service: rates, laws by likelihood, Kaplan and Meier, a test of the exponential law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from queueing_ucrl.data.patience import censored_fits, fit_patience, kaplan_meier
from queueing_ucrl.data.service_laws import law_fits
from queueing_ucrl.model.laws import Exponential, Gamma, Law, LogNormal, Weibull


def seen(rng: np.random.Generator, patience: np.ndarray, offered: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Times in queue and who gave up, where service would begin after exponential times of this mean."""
    service = offered * rng.standard_exponential(patience.size)
    return np.minimum(patience, service), patience < service


def censored_likelihood(law: Law, x: np.ndarray, events: np.ndarray) -> float:
    """By scipy's distributions: an independent computation."""
    match law:
        case Exponential():
            made = stats.expon(scale=law.mean)
        case Gamma():
            made = stats.gamma(law.shape, scale=law.scale)
        case LogNormal():
            made = stats.lognorm(law.sigma, scale=law.median)
        case Weibull():
            made = stats.weibull_min(law.shape, scale=law.scale)
        case _:
            raise TypeError(law)
    return float(made.logpdf(x[events]).sum() + made.logsf(x[~events]).sum())


# ---- rates


def test_the_rate_is_abandonments_over_time_in_queue() -> None:
    found = fit_patience([1.0, 2.0, 0.0, 4.0, 0.0], [True, False, False, True, True])
    assert found.rate.rate == pytest.approx(3 / 7)
    assert (found.waited, found.at_once, found.no_wait) == (3, 1, 1)
    assert found.law == Exponential(3 / 7)
    assert found.fits == ()
    assert math.isnan(found.p_value)


def test_nobody_gave_up() -> None:
    found = fit_patience([1.0, 2.0], [False, False])
    assert found.law is None
    assert (found.rate.low, found.rate.count) == (0.0, 0)
    assert found.rate.high == pytest.approx(-math.log(0.025) / 3)
    assert kaplan_meier([1.0, 2.0], [False, False]).times == ()


def test_the_interval_of_the_rate_holds_the_truth() -> None:
    """Waits of 100 jobs, a third of which give up; 300 logs, at least 95 % less 4 standard errors."""
    rng = np.random.default_rng(1)
    found = [fit_patience(*seen(rng, 2.0 * rng.standard_exponential(100))).rate for _ in range(300)]
    assert np.mean([one.low <= 0.5 <= one.high for one in found]) > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 300)


# ---- laws


@pytest.mark.parametrize(
    "law", [Exponential(0.5), Weibull(2.0, 0.6), LogNormal(2.0, 0.8), Gamma(2.0, 1.5)], ids=lambda law: law.kind
)
def test_likelihoods_are_those_of_the_laws_and_the_largest(law: Law) -> None:
    rng = np.random.default_rng(2)
    patience = np.empty(1500)
    law.stream(np.random.Generator(np.random.PCG64(5))).fill(patience)
    x, events = seen(rng, patience)
    found, refused = censored_fits(x, events)
    assert not refused
    for fit in found:
        value = censored_likelihood(fit.law, x, events)
        assert fit.log_likelihood == pytest.approx(value, abs=1e-5)
        for factor in (0.98, 1.02):
            if isinstance(fit.law, Exponential):
                others: list[Law] = [Exponential(fit.law.rate * factor)]
            else:
                kind = type(fit.law)
                others = [kind(fit.law.mean * factor, fit.law.cv), kind(fit.law.mean, fit.law.cv * factor)]  # type: ignore[call-arg]
            assert all(censored_likelihood(other, x, events) < value for other in others)
    own = next(fit for fit in found if fit.kind == law.kind)
    assert own.delta_aic < 6.0
    assert own.law.mean == pytest.approx(law.mean, rel=0.25)


def test_without_censoring_they_are_the_laws_of_service() -> None:
    x = np.random.default_rng(3).gamma(2.0, size=400)
    plain = {fit.kind: fit for fit in law_fits(x)[0]}
    for fit in censored_fits(x, np.ones(400, dtype=bool))[0]:
        assert fit.log_likelihood == pytest.approx(plain[fit.kind].log_likelihood, abs=1e-6)
        assert fit.law.mean == pytest.approx(plain[fit.kind].law.mean, rel=1e-4)


def test_weibull_by_another_optimiser() -> None:
    rng = np.random.default_rng(4)
    x, events = seen(rng, rng.weibull(1.7, 300) * 2)
    found = next(fit for fit in censored_fits(x, events)[0] if fit.kind == "weibull")

    def loss(p: np.ndarray) -> float:
        made = stats.weibull_min(math.exp(p[0]), scale=math.exp(p[1]))
        return -float(made.logpdf(x[events]).sum() + made.logsf(x[~events]).sum())

    other = optimize.minimize(loss, [0.0, 0.0], method="Powell", tol=1e-9)
    assert found.log_likelihood == pytest.approx(-other.fun, abs=1e-5)


# ---- the test


def test_exponential_patience_fails_in_one_log_of_twenty() -> None:
    """500 waits, 1000 logs: within 1.5 points of 5 %, which a test of that level misses for 3 seeds in 100."""
    from queueing_ucrl.data.patience import exponential_p_value

    rng = np.random.default_rng(5)
    p = [exponential_p_value(*seen(rng, 2.0 * rng.standard_exponential(500))) for _ in range(1000)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.015)
    x, events = seen(rng, 2.0 * rng.standard_exponential(500))
    assert fit_patience(x, events).p_value == pytest.approx(exponential_p_value(x, events), rel=1e-9)


def test_regular_patience_fails() -> None:
    rng = np.random.default_rng(6)
    x, events = seen(rng, rng.gamma(4.0, 0.5, 1000))
    found = fit_patience(x, events)
    assert found.p_value < 1e-6
    assert found.law == found.fits[0].law
    assert found.fits[0].kind in ("gamma", "weibull", "lognormal")


@settings(max_examples=15)
@given(st.integers(-30, 30), st.integers(0, 99))
def test_nothing_depends_on_the_unit_of_time(power: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, events = seen(rng, rng.gamma(1.5, size=200))
    one, other = fit_patience(x, events), fit_patience(x * 2.0**power, events)
    assert one.p_value == other.p_value
    assert [(f.kind, f.delta_aic) for f in one.fits] == [(f.kind, f.delta_aic) for f in other.fits]
    assert [f.law.mean * 2.0**power for f in one.fits] == [f.law.mean for f in other.fits]
    assert one.rate.high == other.rate.high * 2.0**power


# ---- Kaplan and Meier


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=40))
def test_kaplan_meier_is_the_one_of_scipy(jobs: list[tuple[int, bool]]) -> None:
    x, events = (np.array(column) for column in zip(*jobs, strict=True))
    found = kaplan_meier(x, events)
    if not events.any():
        assert found.times == ()
        return
    expected = stats.ecdf(stats.CensoredData.right_censored(x.astype(float), ~events)).sf
    assert found.survival == pytest.approx(expected.evaluate(np.array(found.times)), abs=1e-12)
    assert found.times == tuple(np.unique(x[events]))


def test_kaplan_meier_without_censoring_is_the_share_that_is_left() -> None:
    found = kaplan_meier([1.0, 2.0, 2.0, 5.0], [True] * 4)
    assert found.survival == pytest.approx((0.75, 0.25, 0.0))
    assert found.median == 2.0
    assert math.isnan(found.low[-1])


def test_the_interval_of_kaplan_meier_holds_the_truth() -> None:
    """P(X > 1) of 200 jobs, half of them censored by then; 1000 logs, within 4 standard errors of 95 %."""
    rng = np.random.default_rng(7)
    inside = []
    for _ in range(1000):
        found = kaplan_meier(*seen(rng, rng.weibull(1.5, 200), 1.5))
        k = int(np.searchsorted(found.times, 1.0, side="right")) - 1
        inside.append(found.low[k] <= math.exp(-1.0) <= found.high[k])
    assert np.mean(inside) == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / 1000))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="finite and at least 0"):
        fit_patience([-1.0], [True])
    with pytest.raises(ValueError, match="needs a mark"):
        fit_patience([1.0, 2.0], [True])
    with pytest.raises(ValueError, match="2 jobs gave up, and none of them waited"):
        fit_patience([0.0, 0.0], [True, True])
