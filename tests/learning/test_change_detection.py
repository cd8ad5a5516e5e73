"""Change detection: the test's promise of few false alarms, what it forgets, both engines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from synthetic import drive, tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.memories import MOST_BLOCKS, ChangeDetection, log_ratio


def seen(memory: ChangeDetection, rates, reviews, rng, begin=0.0):
    """Evidence after each review; rates(time) of the classes."""
    now, found = begin, []
    for length in reviews:
        arrivals = rng.poisson(np.asarray(rates(now)) * length)
        now += length
        found.append(memory.add(tally(now, length, arrivals, 0, 0.0, 20)))
    return found


@given(st.integers(0, 500), st.integers(0, 500), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_the_ratio_is_that_of_the_likelihoods(before, after, early, late):
    """Of two Poisson counts: two rates, each at its best, against one; never below 0 but by rounding."""
    rate = (before + after) / (early + late)
    poisson = stats.poisson.logpmf
    two = poisson(before, before) + poisson(after, after)
    one = poisson(before, rate * early) + poisson(after, rate * late)
    assert log_ratio(before, early, after, late) == pytest.approx(two - one, rel=1e-8, abs=1e-8)
    assert log_ratio(before, early, after, late) >= -1e-9 * (before + after)


@given(st.integers(1, 200), st.floats(0.01, 0.99), st.floats(0.5, 20.0))
@settings(max_examples=60, deadline=None)
def test_the_ratio_is_large_no_more_often_than_promised(count, share, level):
    """P(log_ratio >= x | n) <= 2 exp(-x) if the rate did not change: the binomial law, summed."""
    law = stats.binom(count, share)
    ratios = np.array([log_ratio(k, share, count - k, 1.0 - share) for k in range(count + 1)])
    assert law.pmf(np.arange(count + 1))[ratios >= level].sum() <= 2.0 * math.exp(-level) * (1.0 + 1e-9)


def test_false_alarms_come_no_more_often_than_promised():
    """200 runs of constant rates to t = A / 2: at most half of them may have a false alarm. (One-sided: error 1e-6.)

    The bound is far from tight: fewer than a tenth have one.
    """
    alarmed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        memory = ChangeDetection(400.0, 2)
        seen(memory, lambda t: [3.0, 0.4], [2.0] * 100, rng)
        alarmed += bool(memory.alarms)
    assert alarmed < stats.binom.ppf(1e-6, 200, 0.5)
    assert alarmed < 20


def test_a_tighter_promise_is_kept_too():
    """The promise t / A = 1/50 over 500 runs of 80 reviews; error 1e-6."""
    alarmed = 0
    for seed in range(500):
        memory = ChangeDetection(2000.0, 1)
        seen(memory, lambda t: [5.0], [0.5] * 80, np.random.default_rng(seed))
        alarmed += bool(memory.alarms)
    assert alarmed <= stats.binom.isf(1e-6, 500, 40.0 / 2000.0)


def test_a_jump_is_found_and_the_past_forgotten():
    """From 1 and 1 to 3 and 0.2 at 2000: found within 60, nothing of the past left but a block, no alarm elsewhere.

    After a time d the log-ratio is near 3d ln 3 - 2d = 1.3 d by the first class alone, and 17 is asked for.
    """
    for seed in range(5):
        memory = ChangeDetection(1e6, 2)
        rates = lambda t: [1.0, 1.0] if t < 2000.0 else [3.0, 0.2]  # noqa: E731
        found = seen(memory, rates, [10.0] * 400, np.random.default_rng(seed))
        assert len(memory.alarms) == 1
        assert 2000.0 < memory.alarms[0] <= 2060.0
        assert found[199].time == pytest.approx(2000.0)
        last = found[-1]
        assert 1990.0 - 1e-6 <= last.time <= 2030.0
        assert np.all(
            np.abs(last.arrivals / last.time - [3.0, 0.2]) < 5 * np.sqrt(np.array([3.0, 0.2]) / 2000.0) + 0.02
        )


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=300), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_without_an_alarm_nothing_is_lost_by_merging(lengths, seed):
    memory, rng = ChangeDetection(1e300, 2), np.random.default_rng(seed)
    total = np.zeros(2)
    now = 0.0
    for length in lengths:
        now += length
        arrivals = rng.poisson(length, 2)
        total += arrivals
        evidence = memory.add(tally(now, length, arrivals, 3, 1.0, 20))
    assert len(memory.blocks) <= MOST_BLOCKS
    assert not memory.alarms
    np.testing.assert_array_equal(evidence.arrivals, total)
    assert evidence.time == pytest.approx(math.fsum(lengths))
    assert evidence.departures == 3 * len(lengths)


def test_blocks_are_short_of_late_and_long_before():
    memory = ChangeDetection(1e300, 1)
    seen(memory, lambda t: [1.0], [1.0] * 5000, np.random.default_rng(1))
    lengths = [block.time for block in memory.blocks]
    assert lengths[-5:] == [1.0] * 5
    since = np.cumsum(lengths[::-1])[::-1]
    assert np.all(np.array(lengths[:-1]) <= 0.35 * since[:-1] + 1.0)


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
def test_a_learner_follows_a_jump_by_it(kind):
    controller = kind(memory=1e5, forgetting="changes", review_period=10.0)
    rates = lambda t: [1.0, 1.0] if t < 2000.0 else [3.0, 0.2]  # noqa: E731
    plans = drive(controller, Knowledge.of(paper_queue()), rates, 4000.0, np.random.default_rng(0))
    estimates = np.array(plans[-1][1].belief.columns()["rate_estimates"])
    assert np.all(np.abs(estimates - [3.0, 0.2]) < 0.25)


def test_both_engines_to_the_bit():
    gold, basic = paper_queue().classes
    steps = qu.Steps([150.0, 300.0], [1.0, 4.0, 0.2])
    classes = [qu.JobClass(c.name, 1.0, c.reward, c.holding_cost, pattern=steps) for c in (gold, basic)]
    queue = qu.Queue(5, 20, 0.3, classes)
    controller = qu.CertaintyEquivalent(memory=1e4, forgetting="changes", review_period=5.0)
    runs = [qu.simulate(queue, controller, horizon=500.0, seed=3, engine=e, log=True) for e in ("simpy", "compiled")]
    assert runs[0].events.equals(runs[1].events)
    assert [e.belief for e in runs[0].ledger.episodes] == [e.belief for e in runs[1].ledger.episodes]
    never = qu.simulate(queue, qu.CertaintyEquivalent(review_period=5.0), horizon=500.0, seed=3)
    assert [e.belief for e in never.ledger.episodes] != [e.belief for e in runs[0].ledger.episodes]


def test_it_needs_a_known_service_rate():
    with pytest.raises(ValueError, match='forgetting "changes" is for a known service_rate'):
        qu.CertaintyEquivalent(memory=10.0, forgetting="changes", service_rate="unknown")
