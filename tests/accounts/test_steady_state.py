"""Warm-up, batch means and intervals against brute force, and their coverage on AR(1) and M/M/1.

Coverage tests have a stated error rate: with N intervals of level p the number that cover is binomial.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.accounts.steady_state import (
    Estimate,
    batch_means,
    batch_sums,
    estimate,
    mser5,
    ratio_estimate,
)

ERROR = 1e-4  # of each coverage test, were its intervals exact
FINITE = st.floats(-1e6, 1e6)


def ar1(random: np.random.Generator, count: int, correlation: float, start: float) -> np.ndarray:
    """x_0 = start, x_t = correlation x_{t-1} + noise: mean 0 in the long run."""
    noise = random.standard_normal(count)
    noise[0] += correlation * start
    return scipy.signal.lfilter([1.0], [1.0, -correlation], noise)


def brute_force_mser(series: list[float], group: int) -> int:
    """The definition, place by place."""
    means = [np.mean(series[j * group : (j + 1) * group]) for j in range(len(series) // group)]
    errors = []
    for d in range(len(means) // 2 + 1):
        rest = np.array(means[d:])
        errors.append(np.sum((rest - rest.mean()) ** 2) / rest.size**2)
    return group * int(np.argmin(errors))


@given(st.lists(st.integers(-50, 50).map(float), min_size=10, max_size=120), st.integers(1, 7))
def test_mser_drops_what_its_definition_says(series: list[float], group: int) -> None:
    if len(series) // group < 2:
        return
    found, expected = mser5(series, group).count, brute_force_mser(series, group)
    if found != expected:  # two places of equal error, to rounding
        values = []
        for count in (found, expected):
            d = count // group
            means = np.array([np.mean(series[j * group : (j + 1) * group]) for j in range(len(series) // group)])[d:]
            values.append(np.sum((means - means.mean()) ** 2) / means.size**2)
        assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-9)
    assert found % group == 0
    assert found <= len(series) / 2


def test_mser_finds_a_transient_and_says_where_there_is_no_end_to_it() -> None:
    random = np.random.default_rng(3)
    steady = random.standard_normal(2000)
    for length in (100, 300, 600):
        shifted = steady + 8.0 * np.maximum(0.0, 1.0 - np.arange(2000) / length)
        found = mser5(shifted)
        assert found.settled
        assert 0.5 * length <= found.count <= 1.5 * length
    assert mser5(steady).count <= 400
    assert not mser5(np.arange(2000.0)).settled
    assert mser5(np.arange(2000.0)).count == 1000
    assert mser5([1.0] * 100) == mser5([7.5] * 100)  # nothing to drop from a constant
    assert mser5([1.0] * 100).count == 0
    assert not mser5([1.0, 2.0, 3.0]).settled


@given(st.lists(FINITE, min_size=2, max_size=40), st.floats(0.5, 0.999))
def test_the_interval_is_students(values: list[float], level: float) -> None:
    found = estimate(values, level)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-6)
    half = scipy.stats.t.ppf((1 + level) / 2, len(values) - 1) * scipy.stats.sem(values)
    assert found.half_width == pytest.approx(half, rel=1e-9, abs=1e-6)
    assert (found.low, found.high) == (found.mean - found.half_width, found.mean + found.half_width)


def test_a_ratio_is_estimated_as_the_delta_method_says() -> None:
    random = np.random.default_rng(1)
    y = random.uniform(5.0, 9.0, 30)
    x = 2.0 * y + random.standard_normal(30)
    found = ratio_estimate(x, y)
    ratio = x.sum() / y.sum()
    gradient = np.array([1 / y.mean(), -ratio / y.mean()])  # of x / y at the means
    variance = gradient @ np.cov(x, y) @ gradient / 30
    assert found.mean == pytest.approx(ratio, rel=1e-13)
    assert found.half_width == pytest.approx(scipy.stats.t.ppf(0.975, 29) * math.sqrt(variance), rel=1e-9)
    assert math.isnan(ratio_estimate([0.0, 0.0], [0.0, 0.0]).mean)
    assert ratio_estimate([3.0], [2.0]).mean == 1.5
    assert math.isnan(ratio_estimate([3.0], [2.0]).half_width)


def test_batches_are_of_equal_length_and_leave_out_the_front() -> None:
    assert batch_sums(np.arange(10.0), 3).tolist() == [1 + 2 + 3, 4 + 5 + 6, 7 + 8 + 9]
    assert batch_means(np.arange(10.0), 3).mean == 5.0
    assert batch_means(np.arange(10.0), 3).count == 3
    with pytest.raises(ValueError, match="a series of 10 numbers is too short for 20 batches"):
        batch_means(np.arange(10.0))
    with pytest.raises(ValueError, match="batches must be a whole number of at least 2, got 1"):
        batch_means(np.arange(10.0), 1)


def test_mistakes_are_told() -> None:
    for wrong in ([1.0, math.nan], [math.inf]):
        with pytest.raises(ValueError, match="finite"):
            estimate(wrong)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        estimate([1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="as many denominators"):
        ratio_estimate([1.0, 2.0], [1.0])


def test_the_relative_half_width() -> None:
    assert Estimate(-4.0, 1.0, 9).relative_half_width == 0.25
    assert Estimate(0.0, 0.0, 9).relative_half_width == 0.0
    assert Estimate(0.0, 1.0, 9).relative_half_width == math.inf
    assert Estimate(4.0, math.nan, 1).relative_half_width == math.inf
    assert Estimate(4.0, math.nan, 1).plain_data() == {"mean": 4.0, "low": None, "high": None, "level": 0.95}


def covered(found: list[Estimate], truth: float) -> int:
    return sum(one.low <= truth <= one.high for one in found)


def test_batch_means_cover_the_mean_of_an_autoregression_and_plain_intervals_do_not() -> None:
    """AR(1) with correlation 0.9: 20 batches of 500 are nearly independent; as if all were independent it fails."""
    random = np.random.default_rng(11)
    runs = [ar1(random, 10_000, 0.9, start=random.standard_normal() / math.sqrt(1 - 0.81)) for _ in range(400)]
    hits = covered([batch_means(run) for run in runs], 0.0)
    low, high = scipy.stats.binom.ppf([ERROR / 2, 1 - ERROR / 2], 400, 0.95)
    assert low <= hits <= high
    assert covered([estimate(run) for run in runs], 0.0) < 0.6 * 400


def test_mser_and_batch_means_cover_where_a_run_starts_far_away() -> None:
    """AR(1) from 60 standard deviations above its mean: without its warm-up it is unbiased, and known far better."""
    random = np.random.default_rng(12)
    runs = [ar1(random, 10_000, 0.95, start=60 / math.sqrt(1 - 0.95**2)) for _ in range(300)]
    cut, whole = [batch_means(run[mser5(run).count :]) for run in runs], [batch_means(run) for run in runs]
    assert covered(cut, 0.0) >= scipy.stats.binom.ppf(ERROR, 300, 0.92)  # MSER leaves a little of it
    assert np.mean([one.half_width for one in cut]) < 0.6 * np.mean([one.half_width for one in whole])
    assert abs(np.mean([one.mean for one in cut])) < 0.1 * np.mean([one.mean for one in whole])


def test_batch_means_cover_the_mean_wait_of_an_mm1_queue() -> None:
    """Lindley's recursion at load 0.7 from empty: W = rho / (mu - lambda) = 7 / 3 with mu = 1."""
    random, load, jobs = np.random.default_rng(13), 0.7, 30_000
    truth, found = load / (1 - load), []
    for _ in range(200):
        steps = random.standard_exponential(jobs) - random.standard_exponential(jobs) / load
        walk = np.concatenate([[0.0], np.cumsum(steps)])
        waits = (walk - np.minimum.accumulate(walk))[1:]
        found.append(batch_means(waits[mser5(waits).count :]))
    hits = covered(found, truth)
    assert scipy.stats.binom.ppf(ERROR / 2, 200, 0.93) <= hits <= scipy.stats.binom.ppf(1 - ERROR / 2, 200, 0.95)
