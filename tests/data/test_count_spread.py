"""Intervals of rates from the spread of counts, against processes whose long-run variance is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, t

from queueing_ucrl.data.count_spread import count_spread


def test_against_the_textbook() -> None:
    """Equal windows whose neighbours do not agree: Student's interval of a mean, and the index of dispersion."""
    n = np.array([4.0, 9.0, 3.0, 8.0, 5.0, 10.0])
    found = count_spread(n, np.full(6, 7.0))
    assert found.neighbours == 0.0
    error = float(t.isf(0.025, 5)) * n.std(ddof=1) / math.sqrt(6)
    assert found.half_width * n.mean() == pytest.approx(error, rel=1e-12)
    assert found.index == pytest.approx(n.var(ddof=1) / n.mean(), rel=1e-12)
    assert found.p_value == pytest.approx(chi2.sf(5 * found.index, 5), rel=1e-12)


def test_expected_counts_matter_up_to_a_factor() -> None:
    rng = np.random.default_rng(1)
    m = rng.uniform(5.0, 50.0, 20)
    n = rng.poisson(m).astype(float)
    one, other = count_spread(n, m), count_spread(n, 7.0 * m)
    assert one.plain_data() == pytest.approx(other.plain_data(), rel=1e-9)


def test_too_little_is_no_interval() -> None:
    for n in (np.zeros(20), np.array([3.0, 4.0])):
        assert count_spread(n, np.ones(n.size)).half_width == math.inf


def test_a_trend_is_no_interval() -> None:
    n = np.linspace(50.0, 150.0, 20)
    found = count_spread(n, np.ones(20))
    assert found.half_width == math.inf
    assert found.p_value < 1e-6


def autoregressive(rng: np.random.Generator, windows: int, together: float) -> np.ndarray:
    """Counts of mean 1000 whose levels are an autoregression of standard deviation 100."""
    level = np.empty(windows)
    level[0] = rng.standard_normal()
    for k in range(1, windows):
        level[k] = together * level[k - 1] + math.sqrt(1.0 - together**2) * rng.standard_normal()
    return rng.poisson(np.maximum(1000.0 + 100.0 * level, 0.0)).astype(float)


@pytest.mark.parametrize(("together", "least"), [(0.0, 0.95), (0.3, 0.90)])
def test_coverage(together: float, least: float) -> None:
    """The truth inside as often as said, of the logs with an interval; fails once in a thousand times.

    20 windows cannot see all of a correlation of 0.3: without minding it at all, coverage is 0.86.
    """
    rng, held, given = np.random.default_rng(7), 0, 0
    for _ in range(1000):
        n = autoregressive(rng, 20, together)
        found = count_spread(n, np.ones(20))
        if math.isfinite(found.half_width):
            given += 1
            held += abs(n.mean() - 1000.0) <= found.half_width * n.mean()
    assert given > 800
    assert held >= binom.ppf(0.001, given, least), held / given
