"""Arrivals that depend on the number in the system, and those that only seem to."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_paths import rush, served_jobs, shy, steady
from scipy.stats import binom

import queueing_ucrl as qu
from queueing_ucrl.data.balking import balking, state_table


@settings(max_examples=30)
@given(st.integers(0, 999), st.booleans())
def test_the_table_by_looking_at_every_moment(seed: int, hours: bool) -> None:
    """Arrivals and time by hour and state, added up job by job over a fine cut of the time."""
    rng = np.random.default_rng(seed)
    entries = np.sort(rng.integers(0, 40, 12) / 2.0)
    exits = entries + rng.integers(1, 12, 12) / 2.0
    exits[rng.integers(12)] = math.inf
    arrivals = np.sort(rng.integers(2, 38, 15) / 2.0)
    arrivals = arrivals[(arrivals < 8.0) | (arrivals >= 9.0)]
    table = state_table(arrivals, entries, exits, [(1.0, 8.0), (9.0, 19.0)], day=6.0 if hours else None, slots=3)
    counts, exposures = np.zeros_like(table.counts), np.zeros_like(table.exposures)
    for t in arrivals:
        state = int(np.sum((entries < t) & (exits > t)))
        counts[int(t % 6.0 // 2.0) if hours else 0, state] += 1
    for t in np.arange(1.25, 19.0, 0.5):
        if t < 8.0 or t > 9.0:
            state = int(np.sum((entries < t) & (exits > t)))
            exposures[int(t % 6.0 // 2.0) if hours else 0, state] += 0.5
    assert table.exposures == pytest.approx(exposures)
    assert table.counts == pytest.approx(counts)
    assert table.exposures.sum() == pytest.approx(17.0)


@pytest.mark.parametrize("slope", [0.0, -0.06, 0.03])
def test_the_slope_is_found_and_its_interval_holds_it(slope: float) -> None:
    """1500 arrivals, 150 logs, within 4 standard errors of 95 % (a little too often outside is allowed: 93 %)."""
    rng = np.random.default_rng(1)
    rate, ceiling = shy(1.0, slope), max(1.0, math.exp(10 * slope))
    logs = [served_jobs(rng, 1500, rate, ceiling, 4, 3.0 if slope < 0 else 2.4) for _ in range(150)]
    found = [balking(jobs[:, 0], jobs[:, 0], jobs[:, 2], (0.0, jobs[-1, 0])) for jobs in logs]
    if slope <= 0:  # above ten jobs the crowd attracts no more: there the straight line is a summary
        slopes = np.array([one.slope for one in found])
        assert slopes.mean() == pytest.approx(slope, abs=4 * slopes.std() / math.sqrt(150) + 0.003)
        assert np.mean([one.low <= slope <= one.high for one in found]) > 0.93 - 4 * math.sqrt(0.05 * 0.95 / 150)
    directions = [one.direction for one in found]
    if slope:
        assert directions.count("balking" if slope < 0 else "attraction") > 100
    else:
        assert directions.count("none") > 150 * (0.95 - 4 * math.sqrt(0.05 * 0.95 / 150))


def test_rush_hours_look_like_attraction_unless_hours_are_compared() -> None:
    rng = np.random.default_rng(2)
    logs = [served_jobs(rng, 1500, rush(0.4, 1.6), 1.6, 8, 4.0) for _ in range(60)]
    naive = [balking(jobs[:, 0], jobs[:, 0], jobs[:, 2], (0.0, jobs[-1, 0])).direction for jobs in logs]
    by_hour = [balking(jobs[:, 0], jobs[:, 0], jobs[:, 2], (0.0, jobs[-1, 0]), day=24.0).direction for jobs in logs]
    assert naive.count("attraction") == 60
    assert by_hour.count("none") >= 60 * 0.95 - 4 * math.sqrt(60 * 0.05 * 0.95)


def test_a_slope_is_found_by_the_hour_as_well() -> None:
    rng = np.random.default_rng(3)

    def rate(time: float, number: int) -> float:
        return rush(0.6, 1.8)(time, number) * math.exp(-0.1 * number)

    jobs = served_jobs(rng, 4000, rate, 1.8, 5, 3.0)
    found = balking(jobs[:, 0], jobs[:, 0], jobs[:, 2], (0.0, jobs[-1, 0]), day=24.0)
    assert found.low < -0.1 < found.high
    assert found.direction == "balking"
    assert found.per_job == pytest.approx(math.expm1(found.slope))
    assert found.crowded == pytest.approx(math.exp(found.slope * (found.crowded_state - found.quiet_state)))
    assert sum(found.counts) == 4000
    assert sum(found.expected) == pytest.approx(4000)


def test_nothing_is_said_where_the_state_never_varies() -> None:
    found = balking([1.0, 2.0, 3.0], [], [], (0.0, 4.0))
    assert math.isnan(found.p_value)
    assert found.direction == "none"
    once = balking([1.0, 30.0], [1.0, 30.0], [5.0, 31.0], (0.0, 32.0), day=1000.0)
    assert math.isnan(once.slope)  # no hour came again


def test_nobody_comes_while_somebody_is_there() -> None:
    entries = np.arange(0.0, 100.0, 2.0)
    found = balking(entries, entries, entries + 1.0, (0.0, 100.0))
    assert found.direction == "balking"
    assert found.slope == -math.inf


@settings(max_examples=10)
@given(st.integers(-12, 12))
def test_nothing_depends_on_the_unit_of_time(power: int) -> None:
    jobs = served_jobs(np.random.default_rng(5), 300, steady(1.5), 1.5, 2, 1.0)
    unit, end = 2.0**power, jobs[-1, 0]
    one = balking(jobs[:, 0], jobs[:, 0], jobs[:, 2], (0.0, end), day=24.0)
    other = balking(*(jobs[:, k] * unit for k in (0, 0, 2)), (0.0, end * unit), day=24.0 * unit)
    assert (one.slope, one.low, one.p_value, one.counts) == (other.slope, other.low, other.p_value, other.counts)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="each entry needs an exit"):
        balking([1.0], [1.0], [], (0.0, 2.0))
    with pytest.raises(ValueError, match="must not leave before they enter"):
        balking([1.0], [1.5], [0.5], (0.0, 2.0))


def renewal_log(rng: np.random.Generator, shape: float, jobs: int, slope: float = 0.0) -> np.ndarray:
    """(arrival, end) at four servers with services of mean 3: gamma gaps, of which each job there sends some away."""
    free, found, time = [0.0] * 4, [], 0.0
    while len(found) < jobs:
        time += rng.gamma(shape, 1.0 / shape)
        there = sum(end > time for _, end in found[-60:])
        if rng.random() < np.exp(slope * there):
            k = int(np.argmin(free))
            free[k] = max(time, free[k]) + rng.exponential(3.0)
            found.append((time, free[k]))
    return np.array(found)


@pytest.mark.parametrize(("shape", "as_poisson"), [(2.0, 0.3), (0.4, 0.3), (1.0, 0.0)])
def test_at_the_same_age_gaps_that_are_not_exponential_are_no_balking(shape: float, as_poisson: float) -> None:
    """5 % of 100 logs, at most what is as rare as 0.001; without the age the test fails in many of them."""
    rng = np.random.default_rng(3)
    logs = [renewal_log(rng, shape, 400) for _ in range(100)]
    at_age = [balking(a, a, b, (0.0, a[-1]), by_age=[a]).p_value < 0.05 for a, b in map(np.transpose, logs)]
    assert sum(at_age) <= binom.isf(0.001, 100, 0.05)
    whatever = [balking(a, a, b, (0.0, a[-1])).p_value < 0.05 for a, b in map(np.transpose, logs)]
    assert np.mean(whatever) >= as_poisson


def test_at_the_same_age_who_balks_is_found() -> None:
    a, b = renewal_log(np.random.default_rng(4), 2.0, 3000, -0.1).T
    found = balking(a, a, b, (0.0, a[-1]), by_age=[a])
    assert found.low < -0.1 < found.high < 0.0
    halves = balking(a, a, b, (0.0, a[-1]), by_age=[a[::2], a[1::2]])
    assert sum(halves.counts) == a.size
    assert sum(halves.exposures) == pytest.approx(a[-1])


def test_a_fit_does_not_say_that_people_balk_where_gaps_are_regular() -> None:
    """Erlang-2 gaps: most logs were told to balk, and many were modelled so."""
    rng = np.random.default_rng(6)
    said = 0
    for _ in range(12):
        jobs = renewal_log(rng, 2.0, 800)
        log = pd.DataFrame({"t": jobs[:, 0], "b": jobs[:, 0], "e": jobs[:, 1]})
        found = qu.fit(log, "t", start="b", end="e")
        assert found.balking is not None
        said += found.balks or found.balking.direction == "balking"
    assert said <= binom.isf(0.001, 12, 0.05)
