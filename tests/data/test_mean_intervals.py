"""Means of durations that are skewed, or cut off at the end of a log."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from queueing_ucrl.data.mean_intervals import mean_interval

NONE = np.empty(0)


def by_hand(ended: list[float], running: list[float]) -> float:
    """The area below Kaplan and Meier's curve, one step after the other."""
    area, survival, before = 0.0, 1.0, 0.0
    for x in sorted(set(ended)):
        area += survival * (x - before)
        lasting = sum(one >= x for one in ended) + sum(one >= x for one in running)
        survival *= 1.0 - ended.count(x) / lasting
        before = x
    return area


DURATIONS = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=30)


@given(DURATIONS, st.lists(st.floats(0.01, 100.0), max_size=10))
def test_the_mean_is_the_area_below_the_survival_curve(ended: list[float], running: list[float]) -> None:
    shorter = [one for one in running if one <= max(ended)]
    found = mean_interval(np.array(ended), np.array(shorter))
    assert found.mean == pytest.approx(by_hand(ended, shorter), rel=1e-9)
    assert 0.0 <= found.low <= found.mean * (1 + 1e-9)
    assert found.high >= found.low


@given(DURATIONS)
def test_without_censoring_it_is_the_mean_and_the_usual_error(ended: list[float]) -> None:
    x = np.array(ended)
    found = mean_interval(x, NONE)
    assert found.mean == pytest.approx(x.mean(), rel=1e-9)
    # g(T) is antisymmetric but for a / 6 and a T^2 / 3: of numbers that mirror each other it is Student's interval
    mirrored = np.concatenate([x, 200.0 - x])
    from scipy.stats import ttest_1samp

    known = ttest_1samp(mirrored, 0.0).confidence_interval(0.95)
    both = mean_interval(mirrored, NONE)
    assert (both.low, both.high) == pytest.approx((max(0.0, known.low), known.high), rel=1e-5, abs=1e-5)


def test_a_single_duration_cannot_tell() -> None:
    assert mean_interval(np.array([2.0]), NONE).high == math.inf


def lognormal(rng: np.random.Generator, size: int, cv: float) -> np.ndarray:
    s = math.sqrt(math.log(1.0 + cv * cv))
    return rng.lognormal(-0.5 * s * s, s, size)


def test_coverage_of_skewed_durations() -> None:
    """600 lognormal ones of cv 1.8, mean 1: Hall's interval is within a point of the 95 %. Fails once in a thousand."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(2000):
        found = mean_interval(lognormal(rng, 600, 1.8), NONE)
        held += found.low <= 1.0 <= found.high
    assert held >= binom.ppf(0.001, 2000, 0.94), held


def test_coverage_of_durations_that_the_end_cuts_off() -> None:
    """64 servers that are never idle, until time 12: the means of those that ended alone are too small by 8 %."""
    rng, held, naive = np.random.default_rng(5), 0, 0
    for _ in range(500):
        x = rng.gamma(2.0, 0.5, (64, 60))
        ends = np.cumsum(x, axis=1)
        starts = ends - x
        ended, running = x[ends <= 12.0], (12.0 - starts)[(starts < 12.0) & (ends > 12.0)]
        found = mean_interval(ended, running[running <= ended.max()])
        held += found.low <= 1.0 <= found.high
        alone = mean_interval(ended, NONE)
        naive += alone.low <= 1.0 <= alone.high
    assert held >= binom.ppf(0.001, 500, 0.95), held
    assert naive < 0.8 * 500
