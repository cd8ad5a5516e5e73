"""Moments, the test of the exponential law, laws by likelihood, and classes that differ."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from queueing_ucrl.data.service_laws import (
    anderson_darling,
    exponential_p_values,
    exponential_test,
    fit_service,
    jitter_durations,
    law_fits,
    moments,
    same_law,
    scaled,
)
from queueing_ucrl.model.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Pareto,
    Uniform,
    Weibull,
)


def drawn(law: Law, count: int, seed: int) -> np.ndarray:
    numbers = np.empty(count)
    law.stream(np.random.Generator(np.random.PCG64(seed))).fill(numbers)
    return numbers


def log_density(law: Law, x: np.ndarray) -> np.ndarray:
    """From scipy's formulas: an independent computation."""
    match law:
        case Exponential():
            return stats.expon.logpdf(x, scale=law.mean)
        case Erlang():
            return stats.erlang.logpdf(x, law.stages, scale=law.scale)
        case Gamma():
            return stats.gamma.logpdf(x, law.shape, scale=law.scale)
        case LogNormal():
            return stats.lognorm.logpdf(x, law.sigma, scale=law.median)
        case Weibull():
            return stats.weibull_min.logpdf(x, law.shape, scale=law.scale)
        case Pareto():
            return stats.pareto.logpdf(x, law.shape, scale=law.least)
        case Uniform():
            return stats.uniform.logpdf(x, law.low, law.width)
        case HyperExponential():
            parts = [math.log(p) + stats.expon.logpdf(x, scale=mean) for p, mean in law.phases]
            return np.logaddexp(*parts)
    raise TypeError(law)


def varied(law: Law) -> list[Law]:
    """Laws of the same kind, a little to every side."""
    by = (0.99, 1.01)
    match law:
        case Exponential():
            return [Exponential(law.rate * f) for f in by]
        case Erlang():
            return [Erlang(law.mean, law.stages + 1), *(Erlang(law.mean * f, law.stages) for f in by)] + (
                [Erlang(law.mean, law.stages - 1)] if law.stages > 1 else []
            )
        case Gamma() | LogNormal() | Weibull():
            kind = type(law)
            return [kind(law.mean * f, law.cv) for f in by] + [kind(law.mean, law.cv * f) for f in by]
        case HyperExponential():
            return [HyperExponential(law.mean * f, law.cv) for f in by] + [
                HyperExponential(law.mean, max(1.0, law.cv * f)) for f in by
            ]
    return []


LAWS = [
    Exponential(0.25),
    Erlang(3.0, 4),
    Gamma(2.0, 0.6),
    HyperExponential(5.0, 2.5),
    LogNormal(0.3, 1.2),
    Weibull(40.0, 0.5),
    Pareto(7.0, 2.5),
    Uniform(1.0, 5.0),
]


# ---- laws


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_the_law_that_made_them_is_the_best_and_its_parameters_come_back(law: Law) -> None:
    """3000 numbers: mean and cv within 8 %; its AIC at most 6 above the best, which may be a law that holds it."""
    found, _ = law_fits(drawn(law, 3000, 7))
    own = next(fit for fit in found if fit.kind == law.kind)
    assert own.delta_aic < 6.0
    assert own.ks < 1.95 / math.sqrt(3000)
    assert own.law.mean == pytest.approx(law.mean, rel=0.08)
    if law.cv < 1.5 or isinstance(law, HyperExponential):
        assert own.law.cv == pytest.approx(law.cv, rel=0.08)
    far = {fit.kind for fit in found if fit.delta_aic > 50}
    assert far >= ({"uniform"} if law.kind != "uniform" else {"exponential", "lognormal"})


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_likelihoods_are_those_of_the_laws_and_the_largest(law: Law) -> None:
    x = drawn(law, 400, 3)
    found, _ = law_fits(x)
    for fit in found:
        value = float(log_density(fit.law, x).sum()) if fit.kind != "uniform" else -400 * math.log(np.ptp(x))
        assert fit.log_likelihood == pytest.approx(value, abs=1e-5), fit
        assert fit.aic == pytest.approx(2 * fit.parameters - 2 * value, abs=2e-5)
        for other in varied(fit.law):
            assert float(log_density(other, x).sum()) <= value + 1e-6, other


def test_the_distance_is_the_one_of_scipy() -> None:
    x = drawn(Gamma(2.0, 0.6), 300, 5)
    for fit in law_fits(x)[0]:
        survival = np.vectorize(fit.law.survival)
        assert fit.ks == pytest.approx(stats.kstest(x, lambda t, s=survival: 1 - s(t)).statistic, abs=1e-6), fit


def test_hyperexponential_by_another_optimiser() -> None:
    x = drawn(HyperExponential(2.0, 3.0), 800, 2)
    found = next(fit for fit in law_fits(x)[0] if fit.kind == "hyperexponential")
    other = optimize.differential_evolution(
        lambda p: -float(log_density(HyperExponential(p[0], p[1]), x).sum()),
        [(0.5, 8.0), (1.0, 10.0)],
        seed=1,
        tol=1e-10,
    )
    assert found.log_likelihood == pytest.approx(-other.fun, abs=1e-4)


def test_laws_that_cannot_be_are_refused_with_a_reason() -> None:
    found, refused = law_fits(np.full(20, 3.0))
    assert found[0].law == Deterministic(3.0)
    assert refused["gamma"] == "all durations are equal"
    found, refused = law_fits(drawn(Exponential(1.0), 200, 1))
    assert "it has no mean" in refused["pareto"]
    assert refused["deterministic"] == "the durations are not all equal"
    with pytest.raises(ValueError, match="2 durations are 0"):
        law_fits([0.0, 1.0, 0.0])


@settings(max_examples=15)
@given(st.sampled_from(LAWS), st.integers(-30, 30), st.integers(0, 99))
def test_nothing_depends_on_the_unit_of_time(law: Law, power: int, seed: int) -> None:
    x, unit = drawn(law, 60, seed), 2.0**power
    one, other = fit_service(x), fit_service(x * unit)
    assert one.exponential == other.exponential
    assert [(f.kind, f.delta_aic, f.ks) for f in one.fits] == [(f.kind, f.delta_aic, f.ks) for f in other.fits]
    assert [scaled(f.law, unit) for f in one.fits] == [f.law for f in other.fits]
    assert (one.moments.mean_low * unit, one.moments.cv2_high) == (other.moments.mean_low, other.moments.cv2_high)
    minutes = fit_service(x * 60.0)
    assert minutes.best.kind == one.best.kind
    assert minutes.best.law.mean == pytest.approx(60.0 * one.best.law.mean, rel=1e-6)


# ---- exponential or not


def test_the_statistic_is_the_one_of_scipy() -> None:
    x = drawn(Gamma(2.0, 0.6), 80, 5)
    expected = stats.goodness_of_fit(stats.expon, x, known_params={"loc": 0}, statistic="ad", n_mc_samples=1)
    assert anderson_darling(x) == pytest.approx(expected.statistic)


@pytest.mark.parametrize("count", [20, 500])
def test_exponential_numbers_fail_in_one_log_of_twenty(count: int) -> None:
    """1000 logs, within 1.5 points: an exact test is outside for 3 seeds in 100."""
    samples = np.random.default_rng(1).standard_exponential((1000, count)) * 7.0
    p = exponential_p_values(anderson_darling(samples), count)
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.015)
    assert exponential_test(samples[0]).p_value == p[0]


def test_many_numbers_have_the_law_of_a_thousand() -> None:
    samples = np.random.default_rng(2).standard_exponential((1000, 3000))
    p = exponential_p_values(anderson_darling(samples), 3000)
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.015)
    assert stats.kstest(p, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    "law", [Erlang(1.0, 2), HyperExponential(1.0, 1.5), LogNormal(1.0, 1.0)], ids=lambda law: law.kind
)
def test_other_laws_fail(law: Law) -> None:
    found = fit_service(drawn(law, 500, 4))
    assert found.exponential.rejected
    assert found.law == found.best.law


def test_the_exponential_law_is_kept_unless_it_fails() -> None:
    """AIC alone would take a law with a parameter more in a log of six or so."""
    kept = [fit_service(drawn(Exponential(2.0), 200, seed)).law.kind == "exponential" for seed in range(40)]
    assert np.mean(kept) >= 0.85


# ---- zeros and rounding


def test_zeros_of_exact_durations_are_set_aside_and_counted() -> None:
    x = np.concatenate([np.zeros(5), drawn(Exponential(1.0), 200, 3)])
    found = fit_service(x)
    assert (found.zeros, found.zeros_set_aside, found.ties, found.resolution) == (5, 5, 4, 0.0)
    assert found.moments.count == 205
    assert found.moments.mean == pytest.approx(x.mean())
    assert found.exponential.count == 200
    with pytest.raises(ValueError, match="must not all be 0"):
        fit_service(np.zeros(4))


@pytest.mark.parametrize("resolution", [0.05, 0.5])
def test_rounded_exponential_durations_keep_the_level(resolution: float) -> None:
    """Rounded to half of their mean, zeros and all: 400 logs, within 4 standard errors of 5 %."""
    rng = np.random.default_rng(6)
    p = []
    for _ in range(400):
        x = np.rint(rng.standard_exponential(500) / resolution) * resolution
        p.append(exponential_test(jitter_durations(x, resolution, rng, exponential=True)).p_value)
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 400))
    found = fit_service(x)
    assert found.resolution == pytest.approx(resolution)
    assert found.zeros == np.sum(x == 0) > 0
    assert found.zeros_set_aside == 0


@given(st.integers(0, 99), st.booleans())
def test_jittered_durations_stay_within_their_resolution(seed: int, exponential: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.rint(rng.standard_exponential(50) * 3)
    moved = jitter_durations(x, 1.0, rng, exponential=exponential)
    assert np.all(moved > 0)
    assert np.all(np.abs(moved - x) <= 0.5 + 1e-12)


# ---- moments


@pytest.mark.parametrize("shape", [1.0, 4.0])
def test_intervals_of_moments_hold_the_truth(shape: float) -> None:
    """500 gamma numbers, 1000 logs, within 4 standard errors: of 95 % for the mean, of at least 93 % for cv^2."""
    rng = np.random.default_rng(8)
    found = [moments(rng.gamma(shape, size=500)) for _ in range(1000)]
    error = math.sqrt(0.05 * 0.95 / 1000)
    assert np.mean([one.mean_low <= shape <= one.mean_high for one in found]) == pytest.approx(0.95, abs=4 * error)
    assert np.mean([one.cv2_low <= 1 / shape <= one.cv2_high for one in found]) > 0.93 - 4 * error


def test_moments_of_few() -> None:
    assert math.isnan(moments([3.0]).mean_low)
    assert moments([3.0, 3.0]).cv2 == 0.0
    assert moments([1.0, 3.0]).mean == 2.0
    with pytest.raises(ValueError, match="at least 0, got -1"):
        moments([1.0, -1.0])


# ---- classes


def test_classes_of_one_law_differ_in_one_log_of_twenty() -> None:
    """Exact by permutation: 400 logs, 199 permutations, within 4 standard errors."""
    rng = np.random.default_rng(9)
    logs = [{name: rng.lognormal(size=size) for name, size in (("a", 60), ("b", 30), ("c", 20))} for _ in range(400)]
    p = [same_law(samples, permutations=199).p_value for samples in logs]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 400))


def test_classes_that_differ_in_mean_or_only_in_spread_are_seen() -> None:
    rng = np.random.default_rng(10)
    longer = same_law({"a": rng.standard_exponential(300), "b": 1.5 * rng.standard_exponential(300)})
    assert longer.rejected
    assert longer.largest_ratio == pytest.approx(1.5, rel=0.2)
    assert same_law({"a": rng.standard_exponential(300), "b": rng.gamma(4.0, 0.25, 300)}).rejected


def test_the_statistic_of_classes_is_the_one_of_scipy() -> None:
    rng = np.random.default_rng(11)
    a, b, c = rng.random(20), rng.random(31), rng.random(13) * 1.2
    own = same_law({"a": a, "b": b, "c": c}, permutations=1).statistic
    k, sizes = 3, [20, 31, 13]
    total = sum(sizes)
    # scipy gives it in standard units: (A^2 - (k - 1)) / sigma, the variance by Scholz and Stephens
    h_big, h = sum(1 / n for n in sizes), sum(1 / i for i in range(1, total))
    g = sum(1 / ((total - i) * j) for i in range(1, total - 1) for j in range(i + 1, total))
    p = (4 * g - 6) * (k - 1) + (10 - 6 * g) * h_big
    q = (2 * g - 4) * k**2 + 8 * h * k + (2 * g - 14 * h - 4) * h_big - 8 * h + 4 * g - 6
    r = (6 * h + 2 * g - 2) * k**2 + (4 * h - 4 * g + 6) * k + (2 * h - 6) * h_big + 4 * h
    s = (2 * h + 6) * k**2 - 4 * h * k
    variance = (p * total**3 + q * total**2 + r * total + s) / ((total - 1) * (total - 2) * (total - 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions have another word for midrank
        method = stats.PermutationMethod(n_resamples=9)
        expected = stats.anderson_ksamp([a, b, c], method=method, midrank=False)
    assert (own - (k - 1)) / math.sqrt(variance) == pytest.approx(expected.statistic)


def test_one_class_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="two classes or more"):
        same_law({"a": [1.0, 2.0]})
