"""Tests of Poisson arrivals: exact levels, what they see, windows left out, rounded stamps.

The issue asks for a level of 5 % within 1.5 points over 1000 logs of 500 arrivals: an exact test is outside of that for
3 seeds in 100. Seeds are fixed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from queueing_ucrl.data.poisson_tests import (
    TRANSFORMS,
    dispersion,
    durbin_numbers,
    find_rounding,
    jitter,
    ks_uniform,
    local_dispersion,
    log_numbers,
    poisson_test,
    poisson_tests,
    window_lengths,
)

ARRIVALS, LOGS = 500, 1000


def share_rejected(p_values: list[float]) -> float:
    return float(np.mean(np.array(p_values) < 0.05))


@pytest.mark.parametrize("test", sorted(TRANSFORMS))
@pytest.mark.parametrize("length", [5.0, 40.0])
def test_poisson_arrivals_fail_in_one_log_of_twenty(test: str, length: float) -> None:
    rng = np.random.default_rng(11)
    p = [poisson_test(np.sort(rng.random(ARRIVALS) * 500), length, (0, 500), test=test).p_value for _ in range(LOGS)]
    assert share_rejected(p) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("test", sorted(TRANSFORMS))
def test_rates_that_change_from_window_to_window_keep_the_level(test: str) -> None:
    """Given the counts the pooled numbers are exactly uniform, however different the rates of the windows are."""
    rng = np.random.default_rng(12)
    levels = rng.lognormal(0.0, 1.0, 40)
    p = []
    for _ in range(LOGS):
        counts = rng.multinomial(ARRIVALS, levels / levels.sum())
        times = np.sort(np.repeat(np.arange(40.0), counts) + rng.random(ARRIVALS))
        p.append(poisson_test(times, 1.0, (0, 40), test=test).p_value)
    assert share_rejected(p) == pytest.approx(0.05, abs=0.015)


def test_erlang_arrivals_pass_the_uniform_test_and_fail_these() -> None:
    """Arrivals that are far too regular: given their number they are spread evenly, so that alone is no test."""
    times = np.cumsum(np.random.default_rng(5).gamma(2.0, 0.5, 1000))
    end = times[-1] + 0.5
    assert ks_uniform(times / end)[1] > 0.2
    for found in poisson_tests(times, window_lengths(times, (0, end)), (0, end)):
        if found.name == "lewis" or found.window > 20:
            assert found.p_value < 1e-3, found


@given(st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), min_size=1, max_size=12).map(sorted))
def test_transforms_as_their_formulas_say(uniforms: list[float]) -> None:
    n = len(uniforms)
    gaps = sorted(b - a for a, b in zip([0.0, *uniforms], [*uniforms, 1.0], strict=True))
    steps = [(n + 2 - j) * (gaps[j - 1] - (gaps[j - 2] if j > 1 else 0.0)) for j in range(1, n + 1)]
    durbin = [sum(steps[:k]) for k in range(1, n + 1)]
    assert durbin_numbers(np.array(uniforms)) == pytest.approx(durbin, abs=1e-12)
    exponential = [
        -(n + 1 - j) * math.log((1 - uniforms[j - 1]) / (1 - ([0.0, *uniforms][j - 1]))) for j in range(1, n + 1)
    ]
    assert log_numbers(np.array(uniforms)) == pytest.approx([-math.expm1(-x) for x in exponential], abs=1e-9)


def test_the_distance_is_the_one_of_scipy() -> None:
    numbers = np.random.default_rng(3).random(57) ** 1.1
    expected = stats.kstest(numbers, "uniform")
    assert ks_uniform(numbers) == pytest.approx((expected.statistic, expected.pvalue))


def test_windows_with_few_arrivals_are_left_out_and_counted() -> None:
    times = [0.1, 0.2, 0.5, 1.5, 2.1, 2.2, 2.3, 2.9]
    found = poisson_test(times, 1.0, (0.0, 4.0))
    assert (found.points, found.windows_used, found.windows_dropped, found.points_dropped) == (7, 2, 2, 1)
    assert found.note == "7 arrivals in 2 windows; 2 windows with fewer than 3 arrivals left out (1 arrivals)"
    nothing = poisson_test([0.5], 1.0, (0.0, 4.0))
    assert math.isnan(nothing.p_value)
    assert not nothing.rejected


@given(st.integers(-20, 20), st.integers(0, 2**32 - 1))
def test_nothing_depends_on_the_unit_of_time(power: int, seed: int) -> None:
    times = np.sort(np.random.default_rng(seed).random(200) * 100)
    unit = 2.0**power
    for test in TRANSFORMS:
        one = poisson_test(times, 7.0, (0, 100), test=test)
        other = poisson_test(times * unit, 7.0 * unit, (0, 100 * unit), test=test)
        assert (one.statistic, one.p_value, one.points) == (other.statistic, other.p_value, other.points)
    for index in (dispersion, local_dispersion):
        first, second = index(times, 3.0, (0, 100)), index(times * unit, 3.0 * unit, (0, 100 * unit))
        assert (first.index, first.low, first.p_value) == (second.index, second.low, second.p_value)


# ---- dispersion


def test_dispersion_is_variance_over_mean() -> None:
    times = [0.1, 0.2, 0.9, 1.5, 3.1, 3.2]
    counts = np.array([3, 1, 0, 2])
    found = dispersion(times, 1.0, (0.0, 4.5))
    assert found.windows == 4  # the last one is not whole
    assert found.index == pytest.approx(counts.var(ddof=1) / counts.mean())
    pairs = local_dispersion(times, 1.0, (0.0, 4.5))
    assert pairs.windows == 2
    assert pairs.index == pytest.approx(((3 - 1) ** 2 / 4 + (0 - 2) ** 2 / 2) / 2)


@pytest.mark.parametrize("index", [dispersion, local_dispersion])
@pytest.mark.parametrize("length", [5.0, 20.0])
def test_poisson_counts_keep_the_level_of_dispersion(index: object, length: float) -> None:
    rng = np.random.default_rng(13)
    p = [index(np.sort(rng.random(ARRIVALS) * 500), length, (0, 500)).p_value for _ in range(LOGS)]  # type: ignore[operator]
    assert share_rejected(p) == pytest.approx(0.05, abs=0.015)


def test_neighbours_do_not_see_a_slow_change() -> None:
    """Its level holds, and its mean is 1 exactly: within 4 standard errors."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(LOGS):
        counts = rng.poisson(np.repeat([2.0, 20.0], 50))
        times = np.sort(np.repeat(np.arange(100.0), counts) + rng.random(counts.sum()))
        found.append(local_dispersion(times, 1.0, (0, 100)))
    assert dispersion(times, 1.0, (0, 100)).p_value < 1e-10
    assert share_rejected([one.p_value for one in found]) == pytest.approx(0.05, abs=0.015)
    indices = np.array([one.index for one in found])
    assert indices.mean() == pytest.approx(1.0, abs=4 * indices.std() / math.sqrt(LOGS))


def test_neighbours_see_batches() -> None:
    batches = np.repeat(np.sort(np.random.default_rng(4).random(400) * 200), 3)
    found = local_dispersion(batches, 1.0, (0, 200))
    assert found.low < 3.0 < found.high
    assert found.p_value < 1e-10


# ---- rounded stamps


@given(
    st.sampled_from([1.0, 60.0, 0.001, 0.1, 1 / 3600, 1 / 86400]),
    st.sampled_from([0.02, 0.5, 20.0]),
    st.floats(0, 1e5),
    st.integers(0, 2**32 - 1),
)
def test_the_resolution_is_found(resolution: float, gap: float, start: float, seed: int) -> None:
    """`gap`: resolutions between two arrivals. Stamps of any origin, the grid's own last bits apart."""
    multiples = np.floor(np.cumsum(np.random.default_rng(seed).exponential(gap, 400)))
    found = find_rounding(start * resolution + multiples * resolution)
    assert found.resolution == pytest.approx(resolution, rel=1e-6)
    assert found.ties == 400 - np.unique(multiples).size


@given(st.integers(10, 500), st.integers(0, 2**32 - 1))
def test_no_resolution_is_made_up(count: int, seed: int) -> None:
    times = np.cumsum(np.random.default_rng(seed).exponential(1.0, count))
    assert not find_rounding(times).rounded


def test_few_or_equal_stamps_tell_nothing() -> None:
    assert find_rounding([]).resolution == 0.0
    assert find_rounding([1.0, 2.0, 3.0]).resolution == 0.0
    assert find_rounding(np.ones(100)).ties == 99


@given(st.lists(st.integers(0, 30), max_size=60), st.sampled_from(["truncated", "rounded"]), st.integers(0, 99))
def test_jitter_stays_within_the_resolution_and_keeps_the_order(stamps: list[int], kind: str, seed: int) -> None:
    times = np.array(stamps, dtype=float) * 0.25
    moved = jitter(times, 0.25, np.random.default_rng(seed), stamps=kind)
    low = 0.0 if kind == "truncated" else -0.125
    assert np.all(moved - times >= low)
    assert np.all(moved - times <= low + 0.25)
    for i in range(times.size):
        for j in range(i):
            assert (moved[j] <= moved[i]) if times[j] <= times[i] else (moved[i] <= moved[j])


def test_rounded_stamps_fail_and_jittered_ones_pass() -> None:
    rng = np.random.default_rng(6)
    p_rounded, p_moved = [], []
    for _ in range(200):
        times = np.floor(np.sort(rng.random(ARRIVALS) * 500))
        p_rounded.append(poisson_test(times, 20.0, (0, 500)).p_value)
        found = find_rounding(times)
        assert found.resolution == 1.0
        p_moved.append(poisson_test(jitter(times, found.resolution, rng), 20.0, (0, 500)).p_value)
    assert share_rejected(p_rounded) == 1.0
    assert share_rejected(p_moved) < stats.binom.ppf(0.999, 200, 0.05) / 200


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="there is no test 'uniform'; there are lewis and log"):
        poisson_test([1.0], 1.0, (0, 2), test="uniform")
    with pytest.raises(ValueError, match="expected needs a number for each of the 2 whole windows, got 3"):
        dispersion([1.0], 1.0, (0, 2), expected=[1, 1, 1])
    with pytest.raises(ValueError, match="a resolution must be a positive finite number"):
        jitter([1.0], 0.0, np.random.default_rng(1))
