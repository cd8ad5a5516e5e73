"""Exact intervals of rates, and patterns of steps against brute force."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from queueing_ucrl.data.observed import slot_exposure
from queueing_ucrl.data.rates import best_segmentations, log_likelihood, rate_interval, step_pattern
from queueing_ucrl.model.rate_patterns import Steps


def arrivals(rng: np.random.Generator, rates: np.ndarray, width: float = 1.0) -> np.ndarray:
    """A Poisson process with these rates in slots of this width, from 0 on."""
    counts = rng.poisson(rates * width)
    return np.sort((np.repeat(np.arange(rates.size), counts) + rng.random(counts.sum())) * width)


# ---- intervals


@given(st.integers(0, 400), st.floats(1e-3, 1e3), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_garwood_ends_are_where_the_tails_are(count: int, exposure: float, level: float) -> None:
    found = rate_interval(count, exposure, level)
    tail = (1 - level) / 2
    assert stats.poisson.cdf(count, found.high * exposure) == pytest.approx(tail, rel=1e-6)
    if count:
        assert stats.poisson.sf(count - 1, found.low * exposure) == pytest.approx(tail, rel=1e-6)
    else:
        assert found.low == 0.0


@settings(max_examples=30)
@given(st.floats(0.05, 60.0))
def test_garwood_covers_at_least_as_often_as_promised(mean: float) -> None:
    """Exactly: the sum of Poisson probabilities of the counts whose interval holds the mean."""
    counts = np.arange(200)
    inside = [(f := rate_interval(int(n), 1.0)).low <= mean <= f.high for n in counts]
    assert stats.poisson.pmf(counts, mean)[inside].sum() >= 0.95


def test_without_exposure_nothing_is_known() -> None:
    found = rate_interval(0, 0.0)
    assert math.isnan(found.rate)
    assert (found.low, found.high) == (0.0, math.inf)
    with pytest.raises(ValueError, match="got 3 in 0"):
        rate_interval(3, 0.0)


# ---- segmentation


def likelihood_of(cuts: tuple[int, ...], n: np.ndarray, e: np.ndarray) -> float:
    m, total = n.size, 0.0
    for a, b in pairwise([*cuts, cuts[0] + m]):
        slots = np.arange(a, b) % m
        total += float(log_likelihood(n[slots].sum(), e[slots].sum()))
    return total


@given(st.data())
def test_segmentation_is_the_best_of_all(data: st.DataObject) -> None:
    m = data.draw(st.integers(2, 8))
    e = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=m, max_size=m)))
    n = np.array(data.draw(st.lists(st.integers(0, 12), min_size=m, max_size=m)), dtype=float) * (e > 0)
    if not e.sum() > 0:
        with pytest.raises(ValueError, match="nothing was observed"):
            best_segmentations(n, e)
        return
    found = best_segmentations(n, e, m)
    assert len(found) == max(1, np.count_nonzero(e))
    assert found[0].log_likelihood == pytest.approx(float(log_likelihood(n.sum(), e.sum())))
    for k, one in enumerate(found[1:], start=2):
        best = max(likelihood_of(cuts, n, e) for cuts in combinations(range(m), k))
        assert one.steps == k
        assert one.log_likelihood == pytest.approx(best, abs=1e-9)
        assert likelihood_of(one.cuts, n, e) == pytest.approx(best, abs=1e-9)


# ---- patterns


def test_a_constant_rate_gets_no_steps() -> None:
    """In 100 logs of 14 days not more than 5 %: the penalty is meant to be stricter than a test."""
    rng = np.random.default_rng(1)
    logs = [arrivals(rng, np.full(336, 3.0)) for _ in range(100)]
    steps = [len(step_pattern(times, (0, 336), 24.0, first_weekday=2).times) for times in logs]
    assert np.mean(np.array(steps) > 0) <= 0.05


def test_steps_of_the_day_are_found() -> None:
    rng = np.random.default_rng(2)
    day = np.repeat([2.0, 10.0, 5.0], [8, 4, 12])
    found = step_pattern(arrivals(rng, np.tile(day, 10)), (0, 240), 24.0)
    assert (found.name, found.period, found.times) == ("steps of the day", 24.0, (8.0, 12.0))
    for step, truth in zip(found.rates, (2.0, 10.0, 5.0), strict=True):
        assert step.low < truth < step.high
    assert found.mean_rate == pytest.approx(np.sum(np.tile(day, 10)) / 240, rel=0.05)
    assert Steps(found.times, found.factors, found.period).mean == pytest.approx(1.0)


def test_a_step_over_midnight_is_one_step() -> None:
    rng = np.random.default_rng(3)
    day = np.repeat([8.0, 1.0, 8.0], [6, 12, 6])
    found = step_pattern(arrivals(rng, np.tile(day, 20)), (0, 480), 24.0)
    assert found.times == (6.0, 18.0)
    assert found.rates[0] == found.rates[2]
    assert found.rates[0].exposure == 240.0


@pytest.mark.parametrize("first", [0, 3, 6])
def test_weekends_are_found_whatever_day_comes_first(first: int) -> None:
    rng = np.random.default_rng(4)
    weekday = (np.arange(35) + first) % 7
    day = np.repeat([2.0, 12.0], [8, 16])
    rates = (day[None, :] * np.where(weekday >= 5, 0.4, 1.0)[:, None]).ravel()
    found = step_pattern(arrivals(rng, rates), (0, rates.size), 24.0, first_weekday=first)
    assert found.name == "steps of the week: Monday to Friday, weekend, same steps"
    seen = found.expected(np.arange(168.0), np.arange(168.0) + 1)
    assert seen == pytest.approx(rates[:168], rel=0.15)
    assert found.candidates[0].criterion == 0.0
    assert {c.name for c in found.candidates} >= {"all days alike", "each weekday"}


def test_days_with_steps_of_their_own_are_found() -> None:
    rng = np.random.default_rng(5)
    work, rest = np.repeat([2.0, 12.0], [8, 16]), np.repeat([6.0, 1.0], [12, 12])
    rates = np.concatenate([work if d % 7 < 5 else rest for d in range(35)])
    found = step_pattern(arrivals(rng, rates), (0, rates.size), 24.0, first_weekday=0, level=0.999)
    assert found.name == "steps of the week: Monday to Friday, weekend"
    for hour in range(168):
        step = found.rates[int(np.searchsorted(found.times, hour, side="right"))]
        assert step.low < rates[hour] < step.high


def test_observed_hours_only_count() -> None:
    """Open from 8 to 18: the rate of an hour is over the time that was looked on; the night is said to be unseen."""
    rng = np.random.default_rng(6)
    open_hours = [(24.0 * d + 8, 24.0 * d + 18) for d in range(20)]
    times = arrivals(rng, np.tile(np.where((np.arange(24) >= 8) & (np.arange(24) < 18), 5.0, 0.0), 20))
    found = step_pattern(times, open_hours, 24.0)
    assert found.name == "constant"
    assert found.rates[0].exposure == pytest.approx(200.0)
    assert found.rates[0].low < 5.0 < found.rates[0].high
    assert found.unobserved == 14.0


def test_more_dispersion_needs_more_evidence() -> None:
    rng = np.random.default_rng(7)
    times = arrivals(rng, np.tile(np.repeat([3.0, 4.2], 12), 14))
    assert step_pattern(times, (0, 336), 24.0).name == "steps of the day"
    assert step_pattern(times, (0, 336), 24.0, dispersion=10.0).name == "constant"


@settings(max_examples=20)
@given(st.integers(-12, 12), st.integers(0, 50))
def test_patterns_do_not_depend_on_the_unit_of_time(power: int, seed: int) -> None:
    times = arrivals(np.random.default_rng(seed), np.tile(np.repeat([1.0, 4.0, 2.0], 8), 15))
    unit = 2.0**power
    one = step_pattern(times, (0.0, 360.0), 24.0, first_weekday=1)
    other = step_pattern(times * unit, (0.0, 360.0 * unit), 24.0 * unit, first_weekday=1)
    assert [t * unit for t in one.times] == list(other.times)
    assert [r.rate for r in one.rates] == [r.rate * unit for r in other.rates]
    assert one.candidates == other.candidates


@given(st.integers(0, 99))
def test_expected_counts_integrate_the_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = step_pattern(arrivals(rng, np.tile(np.repeat([1.0, 6.0], 12), 10)), (0, 240), 24.0)
    edges = np.sort(rng.random(30) * 200 - 50)
    fine = np.linspace(-50, 150, 200_001)
    middle = 0.5 * (fine[1:] + fine[:-1])
    steps = np.array([r.rate for r in found.rates])
    rate = steps[np.searchsorted(np.array(found.times), middle % 24.0, side="right")]
    integral = np.concatenate([[0.0], np.cumsum(rate * np.diff(fine))])
    expected = np.diff(np.interp(edges, fine, integral))
    assert found.expected(edges[:-1], edges[1:]) == pytest.approx(expected, abs=0.02)
    assert found.expected(0.0, 240.0) == pytest.approx(found.mean_rate * 240.0)


def test_exposure_weighs_the_pattern_of_a_log_that_starts_at_noon() -> None:
    assert slot_exposure((12.0, 36.0 + 6.0), 24.0, 4).tolist() == [6.0, 6.0, 12.0, 6.0]
