"""Days that differ by chance, and levels that change for good.

Levels and coverages are within 4 standard errors of a share of so many logs, but where another bound is said.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.data.day_levels import (
    _gamma_shares,
    change_points,
    day_counts,
    day_factor,
    local_day_cv,
    slot_dispersion,
    split_statistics,
)
from queueing_ucrl.data.rates import step_pattern


def test_days_are_cut_at_midnight() -> None:
    days, counts, expected = day_counts([5.0, 20.0, 25.0, 47.0, 49.0], [(4.0, 30.0), (40.0, 50.0)], 24.0)
    assert days.tolist() == [0, 1, 2]
    assert counts.tolist() == [2, 2, 1]
    assert expected.tolist() == [20.0, 14.0, 2.0]


def test_expected_of_a_day_are_those_of_the_pattern() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.tile(np.repeat([2.0, 8.0], 12), 10))
    times = np.sort(np.repeat(np.arange(240.0), counts) + rng.random(counts.sum()))
    pattern = step_pattern(times, (0, 240), 24.0)
    _, n, e = day_counts(times, (0, 240), 24.0, pattern)
    assert e.sum() == pytest.approx(n.sum())
    assert e == pytest.approx(np.full(10, n.sum() / 10))


# ---- the factor of the day


def test_alike_days_keep_the_level_of_the_test() -> None:
    """500 arrivals over 25 days, 1000 logs: within 1.5 points of 5 %."""
    rng = np.random.default_rng(2)
    e = rng.uniform(10, 30, 25)
    p = [day_factor(rng.multinomial(500, e / e.sum()), e).p_value for _ in range(1000)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("cv", [0.0, 0.06, 0.3])
def test_the_interval_of_the_cv_holds_the_truth(cv: float) -> None:
    """400 logs of 40 days of 100 arrivals each: at least 95 % less 4 standard errors; 0 is inside if it is the end."""
    rng = np.random.default_rng(3)
    e = rng.uniform(50, 150, 40)
    found = []
    for _ in range(400):
        factors = rng.gamma(1 / cv**2, cv**2, 40) if cv else np.ones(40)
        found.append(day_factor(rng.poisson(e * factors), e))
    assert np.mean([one.low <= cv <= one.high for one in found]) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 400)
    if cv:
        squares = np.array([one.cv**2 for one in found])
        assert squares.mean() == pytest.approx(cv**2, abs=4 * squares.std() / 20 + 0.05 * cv**2)


def test_few_days_tell_nothing() -> None:
    assert math.isnan(day_factor([5.0], [5.0]).cv)
    assert math.isnan(day_factor([0.0, 0.0], [5.0, 5.0]).cv)
    assert day_factor([0.0, 90.0], [5.0, 5.0]).high > 10  # two days hardly bound it
    assert local_day_cv([4.0, 4.0], [1.0, 1.0]) == 0.0


def test_neighbours_do_not_take_a_change_for_chance() -> None:
    rng = np.random.default_rng(4)
    e = np.full(60, 200.0)
    levels = np.repeat([1.0, 2.0], 30)
    steady = rng.poisson(e * levels)
    assert day_factor(steady, e).cv > 0.25
    assert local_day_cv(steady, e) < 0.1
    found = [local_day_cv(rng.poisson(e * levels * rng.gamma(25, 1 / 25, 60)), e) ** 2 for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.04, rel=0.15)  # the jump itself counts for one pair in 59


def test_dispersion_falls_when_the_day_is_known() -> None:
    """Counts by day and hour with a factor for each day: far from 1 given the hour, 1 given hour and day."""
    rng = np.random.default_rng(5)
    e = np.tile(np.repeat([20.0, 50.0], 12), (60, 1))
    counts = rng.poisson(e * rng.gamma(25, 1 / 25, (60, 1)))
    given_slot, given_both = slot_dispersion(counts, e)
    assert given_slot.low > 1.5
    assert given_both.low < 1.0 < given_both.high


# ---- change points


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.5, 1.0, 2.0])), min_size=2, max_size=9))
def test_the_split_statistic_is_twice_the_likelihood_ratio(bins: list[tuple[int, float]]) -> None:
    n, e = (np.array(x, dtype=float) for x in zip(*bins, strict=True))
    if not n.sum():
        return

    def part(a: slice) -> float:
        return float(n[a].sum() * math.log(n[a].sum() / e[a].sum())) if n[a].sum() else 0.0

    expected = [2 * (part(slice(k)) + part(slice(k, None)) - part(slice(None))) for k in range(1, n.size)]
    assert split_statistics(n, e) == pytest.approx(expected, abs=1e-9)


def test_a_constant_level_raises_a_false_alarm_in_one_log_of_twenty() -> None:
    """500 arrivals in 30 bins of different length; 1000 logs."""
    rng = np.random.default_rng(6)
    e = rng.uniform(0.2, 2.0, 30)
    found = [change_points(rng.multinomial(500, e / e.sum()), e, simulations=199) for _ in range(1000)]
    assert np.mean([bool(one.points) for one in found]) == pytest.approx(0.05, abs=0.015)


def test_days_that_differ_raise_no_more_alarms_when_their_cv_is_known() -> None:
    rng = np.random.default_rng(7)
    e = np.full(40, 100.0)
    alarms, naive = [], []
    for _ in range(400):
        n = rng.poisson(e * rng.gamma(100, 0.01, 40))
        alarms.append(bool(change_points(n, e, cv=local_day_cv(n, e), simulations=199).points))
        naive.append(bool(change_points(n, e, simulations=199).points))
    assert np.mean(alarms) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)
    assert np.mean(naive) > 0.15


def test_changes_are_found_where_they_are() -> None:
    rng = np.random.default_rng(8)
    level = np.repeat([1.0, 1.6, 0.7], [30, 20, 40])
    e = rng.uniform(40, 60, 90)
    found = change_points(rng.poisson(e * level), e)
    assert [point.index for point in found.points] == pytest.approx([30, 50], abs=1)
    assert [one.rate for one in found.levels] == pytest.approx([1.0, 1.6, 0.7], rel=0.1)
    assert found.points[0].before == found.levels[0].rate
    assert found.points[1].after == found.levels[2].rate


def test_a_constant_part_beside_a_change_is_left_whole() -> None:
    """False splits beside a true one, in 5 % of logs at most (400 logs)."""
    rng = np.random.default_rng(9)
    e = np.full(30, 60.0)
    level = np.repeat([1.0, 2.0], [15, 15])
    found = [change_points(rng.poisson(e * level), e, simulations=399) for _ in range(400)]
    assert all(one.points for one in found)
    assert np.mean([len(one.points) > 1 for one in found]) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)


def test_the_same_log_gives_the_same_answer() -> None:
    n = np.random.default_rng(10).poisson(20, 50)
    assert change_points(n, np.ones(50)) == change_points(n, np.ones(50))
    assert change_points(n, np.ones(50)).p_value == change_points(n, np.full(50, 2.0**9)).p_value


@pytest.mark.parametrize("counts", [[], [0, 0, 0], [7]])
def test_nothing_to_split(counts: list[int]) -> None:
    found = change_points(counts, np.ones(len(counts)))
    assert (found.points, found.p_value) == ((), 1.0)


@pytest.mark.parametrize("cv", [0.3, 3.0, 1e4])
def test_shares_with_gamma_factors_are_shares(cv: float) -> None:
    """Even where all factors are 0 to double precision; each bin's mean share is its own."""
    shares = np.array([0.5, 0.3, 0.2])
    found = _gamma_shares(shares, cv, 4000, np.random.default_rng(1))
    assert found.sum(axis=1) == pytest.approx(1.0)
    if cv == 1e4:  # 4 standard errors of 4000 draws of one bin
        assert found.mean(axis=0) == pytest.approx(shares, abs=4 * math.sqrt(0.25 / 4000))
