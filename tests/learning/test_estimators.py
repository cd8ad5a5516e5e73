"""Intervals, memories and posteriors: what is believed about the rates."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import gamma, kstest, poisson, spearmanr
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.confidence import ConfidenceSet, share_radius, weissman_radius
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.estimators import (
    ClasswiseLimits,
    Interval,
    PlainEstimate,
    PooledInterval,
    Posterior,
    ShareSet,
)
from queueing_ucrl.learning.intervals import anytime_interval, exact_interval, log_mixture, upper_limit
from queueing_ucrl.learning.memories import Discounting, FullHistory, SlidingWindow
from queueing_ucrl.learning.planners import ConfidenceOptimism, PosteriorSampling
from queueing_ucrl.learning.schedules import DeltaSchedule

counts = st.integers(0, 10**9)
deltas = st.floats(1e-12, 0.5)


# --- the exact interval ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.01, 0.3, 1.0, 2.7, 10.0, 48.3, 300.0])
@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01, 1e-4])
def test_exact_intervals_cover_by_summation(mean: float, delta: float) -> None:
    n = np.arange(int(mean + 12 * math.sqrt(mean) + 40))
    law = poisson.pmf(n, mean)
    exposure = 7.0
    inside = [low <= mean / exposure <= high for low, high in (exact_interval(k, exposure, delta) for k in n)]
    below = [mean / exposure <= upper_limit(k, exposure, delta) for k in n]
    assert law[inside].sum() >= 1 - delta - 1e-13
    assert law[below].sum() >= 1 - delta - 1e-13


@given(st.integers(0, 3000), deltas)
def test_the_limits_are_where_the_tails_are_delta(count: int, delta: float) -> None:
    low, high = exact_interval(count, 1.0, delta)
    assert poisson.cdf(count, high) == pytest.approx(0.5 * delta, rel=1e-9)
    if count:
        assert poisson.sf(count - 1, low) == pytest.approx(0.5 * delta, rel=1e-9)
    else:
        assert low == 0.0
    assert low <= count <= high


def test_without_exposure_everything_is_possible() -> None:
    assert upper_limit(0, 0.0, 0.1) == math.inf
    assert anytime_interval(0, 0.0, 0.1, 1.0) == (0.0, math.inf)


# --- the anytime interval --------------------------------------------------------------------------------------------


def _exact_log_mixture(count: int, exposure: float, rate: mp.mpf, prior_exposure: float, shape: float) -> mp.mpf:
    n, t, a, b = mp.mpf(count), mp.mpf(exposure), mp.mpf(shape), mp.mpf(prior_exposure)
    prior = a * mp.log(b) - mp.loggamma(a)
    posterior = (a + n) * mp.log(b + t) - mp.loggamma(a + n)
    return prior - posterior - (n * mp.log(rate) if n else 0) + rate * t


@pytest.mark.parametrize("count", [0, 1, 4, 30])
@pytest.mark.parametrize(("shape", "prior_exposure"), [(0.5, 3.0), (2.0, 0.1)])
def test_the_mixture_is_the_integral_it_stands_for(count: int, shape: float, prior_exposure: float) -> None:
    exposure, rate = 9.0, max(count, 1) / 9.0

    def integrand(theta: mp.mpf) -> mp.mpf:
        prior = prior_exposure**shape / mp.gamma(shape) * theta ** (shape - 1) * mp.exp(-prior_exposure * theta)
        return prior * (theta / rate) ** count * mp.exp(-(theta - rate) * exposure)

    integral = mp.quad(integrand, [0, 0.001, 0.01, 0.1, 0.3, 1, 2, 4, 8, 20])
    assert mp.log(integral) == pytest.approx(
        float(_exact_log_mixture(count, exposure, mp.mpf(rate), prior_exposure, shape)), abs=1e-6
    )


@given(counts, st.floats(1e-6, 1e9), deltas, st.floats(1e-6, 1e6), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_ends_are_where_the_mixture_reaches_one_over_delta(
    count: int, exposure: float, delta: float, prior_exposure: float, shape: float
) -> None:
    low, high = anytime_interval(count, exposure, delta, prior_exposure, shape)
    with mp.workdps(60):
        target = -mp.log(delta)
        n, t = mp.mpf(count), mp.mpf(exposure)
        if count:
            at_estimate = _exact_log_mixture(count, exposure, n / t, prior_exposure, shape)
            assert log_mixture(count, exposure, prior_exposure, shape) == pytest.approx(
                float(at_estimate), rel=1e-11, abs=1e-9
            )
            assert at_estimate <= 0

        def excess(rate: float) -> mp.mpf:
            return _exact_log_mixture(count, exposure, mp.mpf(rate), prior_exposure, shape) - target

        # the mixture's slope times a relative error of 1e-12 in the end, and what log_mixture may be off
        for end in (low, high):
            if end > 0.0:
                slope = abs(t - n / mp.mpf(end)) * mp.mpf(end)
                assert abs(excess(end)) <= 1e-12 * slope + 1e-9 * max(1, abs(target))
            else:
                assert count == 0 or excess(5e-324) > 0
    assert low <= count / exposure * (1 + 1e-12)
    assert high >= count / exposure * (1 - 1e-12)


@given(st.integers(0, 10**6), st.floats(1e-3, 1e6), deltas)
def test_valid_at_all_times_costs_width(count: int, exposure: float, delta: float) -> None:
    low, high = anytime_interval(count, exposure, delta, 1.0)
    assert high > upper_limit(count, exposure, delta)
    narrower = anytime_interval(count, exposure, min(0.9, 2 * delta), 1.0)
    assert low <= narrower[0]
    assert narrower[1] <= high


def test_anytime_intervals_hold_at_all_times_at_once_and_exact_ones_do_not() -> None:
    """Poisson paths looked at 100 times each; nominal error 0.1 for the whole path (three standard errors)."""
    random, delta, rate = np.random.default_rng(5), 0.1, 2.0
    times = np.geomspace(0.2, 2000.0, 100)

    def missed(interval: Callable[[int, float], tuple[float, float]], paths: int) -> float:
        count = 0
        for _ in range(paths):
            seen = np.cumsum(random.poisson(rate * np.diff(times, prepend=0.0))).tolist()
            ends = (interval(n, t) for n, t in zip(seen, times.tolist(), strict=True))
            count += any(not low <= rate <= high for low, high in ends)
        return count / paths

    assert missed(lambda n, t: anytime_interval(n, t, delta, 1.0), 1000) <= delta + 3 * math.sqrt(0.09 / 1000)
    assert missed(lambda n, t: exact_interval(n, t, delta), 100) > 2 * delta


def _ever_below(rate: float, delta: float, counts: int) -> float:
    """P(the upper limit of the rate is ever below it), for prior exposure 1; at least that of the first so many counts.

    The limit at count n falls with the exposure t and meets the rate at t_n: it is ever below it iff some count is n or
    less at t_n. A forward recursion over the counts at t_0 < t_1 < ..
    """

    def meets(n: int) -> float:
        def above(t: float) -> float:
            return anytime_interval(n, t, delta, 1.0)[1] - rate

        last = 2.0 * (n + 10.0) / rate
        while above(last) > 0:
            last *= 2.0
        return float(brentq(above, max(n / rate, 1e-9), last, xtol=1e-13))

    law, time, below = np.array([1.0]), 0.0, 0.0
    for n in range(counts):
        step = meets(n) - time
        reach = int(poisson.isf(1e-12, rate * step)) + 1
        law = np.convolve(law, poisson.pmf(np.arange(reach), rate * step))
        below += float(law[: n + 1].sum())
        law[: n + 1] = 0.0
        time += step
    return below


def test_the_upper_end_alone_may_fail_as_often_as_both_ends() -> None:
    """Ville's delta is of both ends together, and must not be halved for one of them (docs/guarantees.md)."""
    delta = 0.05
    assert 0.999 * delta <= _ever_below(10.0, delta, 300) <= delta
    assert 0.75 * delta < _ever_below(1.0, delta, 300) < 0.9 * delta


# --- memories --------------------------------------------------------------------------------------------------------


def test_everything_counts() -> None:
    memory = FullHistory(2)
    memory.add(tally(3.0, 3.0, [4, 1], departures=2, busy_time=1.5))
    seen = memory.add(tally(5.0, 2.0, [0, 7], departures=1, busy_time=2.0))
    assert seen.arrivals.tolist() == [4, 8]
    assert (seen.time, seen.departures, seen.busy_time) == (5.0, 3, 3.5)


def test_a_window_forgets_all_at_once() -> None:
    memory = SlidingWindow(10.0)
    for k in range(1, 31):
        seen = memory.add(tally(1.0 * k, 1.0, [k, 1], departures=k, busy_time=0.5))
    assert seen.arrivals.tolist() == [sum(range(21, 31)), 10]
    assert (seen.time, seen.departures, seen.busy_time) == (10.0, sum(range(21, 31)), 5.0)


def test_a_window_of_twenty_periods_holds_twenty_whatever_rounding_does() -> None:
    memory, period, now = SlidingWindow(2.0), 0.1, 0.0
    for _ in range(1000):
        now += period
        seen = memory.add(tally(now, period, [1]))
    assert seen.arrivals[0] == 20


def test_a_window_keeps_the_newest_tally_however_long() -> None:
    memory = SlidingWindow(1.0)
    memory.add(tally(5.0, 5.0, [3]))
    seen = memory.add(tally(50.0, 45.0, [9]))
    assert (seen.arrivals.tolist(), seen.time) == ([9], 45.0)


def test_discounting_weighs_by_age() -> None:
    memory, scale = Discounting(4.0, 1), 4.0
    durations, arrivals = [1.0, 2.5, 0.5, 3.0], [5, 0, 2, 9]
    now = 0.0
    for duration, count in zip(durations, arrivals, strict=True):
        now += duration
        seen = memory.add(tally(now, duration, [count], departures=count, busy_time=duration))
    ends = np.cumsum(durations)
    weights = np.exp(-(ends[-1] - ends) / scale)
    assert seen.arrivals[0] == pytest.approx(weights @ arrivals)
    assert seen.time == pytest.approx(weights @ durations)
    assert seen.departures == pytest.approx(weights @ arrivals)
    assert seen.busy_time == pytest.approx(weights @ durations)


def test_discounted_time_tends_to_the_memory() -> None:
    memory, period = Discounting(10.0, 1), 0.5
    for k in range(1, 400):
        seen = memory.add(tally(period * k, period, [1]))
    assert seen.time == pytest.approx(10.0, rel=0.03)
    assert seen.arrivals[0] / seen.time == pytest.approx(2.0)


# --- beliefs ---------------------------------------------------------------------------------------------------------


def test_the_pooled_interval_is_cut_to_bounds_where_there_are_any() -> None:
    delta = DeltaSchedule(1.0)
    free = PooledInterval(2, delta, None)
    cut = PooledInterval(2, delta, (1.0, 3.0))
    assert free.prior() is None
    assert cut.prior().rate_interval == (1.0, 3.0)
    few = tally(2.0, 2.0, [3, 2])
    low, high = exact_interval(5, 2.0, delta(2.0))
    assert free.update(few, 2.0).rate_interval == (low, high)
    assert 1.0 < low < 3.0 < high
    assert cut.update(few, 2.0).rate_interval == (low, 3.0)


def test_an_interval_beyond_the_bounds_is_the_bound() -> None:
    for bounds in ((1.0, 4.0), (30.0, 40.0)):
        plausible = PooledInterval(1, DeltaSchedule(1.0), bounds).update(tally(1e4, 1e4, [10**5]), 1e4)
        assert plausible.rate_interval == ((4.0, 4.0) if bounds[1] == 4.0 else (30.0, 30.0))


def test_nothing_arrived_leaves_all_shares_open() -> None:
    plausible = PooledInterval(3, DeltaSchedule(1.0), None).update(tally(2.0, 2.0, [0, 0, 0]), 2.0)
    assert isinstance(plausible, ConfidenceSet)
    assert plausible.share_radius == 2.0
    assert plausible.rate_interval == (0.0, pytest.approx(-math.log(0.5 * plausible.delta) / 2.0))
    assert plausible.contains(np.array([0.1, 0.1, 0.1]))


@pytest.mark.parametrize("share_set", ["paper", "weissman"])
@pytest.mark.parametrize("arrivals", [0, 3])
def test_the_share_of_a_single_class_is_one_whether_it_came_or_not(share_set: ShareSet, arrivals: int) -> None:
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("only", 1.0, 5.0, qu.Linear(0.5))])
    plausible = PooledInterval(1, DeltaSchedule(1.0), None, share_set=share_set).update(
        tally(2.0, 2.0, [arrivals]), 2.0
    )
    model = ConfidenceOptimism(Knowledge.of(queue))(plausible).model
    assert np.all(model.arrival_rates == plausible.optimistic_rate)
    assert plausible.optimistic_rate > 0


@pytest.mark.parametrize("share_set", ["paper", "weissman"])
def test_a_single_class_that_has_not_come_yet_is_let_in(share_set: ShareSet) -> None:
    """The first job of a quiet queue comes long after the first review: it is worth its reward, and is admitted."""
    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("only", 0.01, 5.0, qu.Linear(0.5))])
    for replication in range(10):
        run = qu.simulate(
            queue, qu.UcrlAcExact(share_set=share_set), horizon=500.0, seed=3, replication=replication, log=True
        )
        jobs = run.events[run.events["event"].isin(["admit", "reject"])]
        assert jobs["event"].iloc[:1].tolist() in ([], ["admit"])


@given(st.integers(0, 10**6), st.integers(1, 20), deltas)
def test_weissmans_radius_is_never_above_the_papers(count: int, classes: int, delta: float) -> None:
    assert weissman_radius(count, classes, delta) <= share_radius(count, classes, delta)


def test_weissmans_ball_covers_as_promised() -> None:
    """20,000 multinomial samples; two classes, where the l1 distance has the fewest ways to be large, and five."""
    random, delta, count, samples = np.random.default_rng(4), 0.1, 50, 20_000
    for p in ([0.5, 0.5], [0.1, 0.9], [0.2] * 5):
        distance = np.abs(random.multinomial(count, p, samples) / count - p).sum(axis=1)
        assert np.mean(distance > weissman_radius(count, len(p), delta)) <= delta


def test_each_class_has_its_limit_at_its_share_of_delta() -> None:
    delta = DeltaSchedule(2.0)
    belief = ClasswiseLimits(3, delta).update(tally(10.0, 10.0, [0, 4, 90]), 10.0)
    assert belief.delta == delta(10.0) == 0.2
    assert delta(1.0) == 0.5
    assert belief.limits.tolist() == [upper_limit(n, 10.0, belief.delta / 3) for n in (0, 4, 90)]
    assert belief.contains(belief.limits)
    assert not belief.contains(belief.limits * [1, 1.01, 1])


@pytest.mark.parametrize("interval", ["exact", "anytime"])
def test_limits_with_a_unit_from_the_data_cover_as_promised(interval: Interval) -> None:
    """Two servers always busy, mu unknown; the unit from the busy time up to the second departure, exposures fixed from
    there on. 2,000 sequences: at each review any limit is exceeded with probability delta at most (3 standard errors).
    """
    random, count, rates, mu = np.random.default_rng(12), 2000, np.array([0.3, 1.0]), 0.5
    outside, promised = np.zeros(6), np.zeros(6)
    for _ in range(count):
        estimator = ClasswiseLimits(2, None, interval)
        first = float(random.gamma(2.0, 1.0 / (2 * mu)))
        assert estimator.update(tally(0.5 * first, 0.5 * first, [0, 0], 1, first), first) is None
        estimator.update(tally(first, 0.5 * first, random.poisson(rates * first), 1, first), first)
        assert estimator.delta == DeltaSchedule(first)
        now = first
        for k in range(6):
            stretch = now
            now += stretch
            seen = tally(
                now, stretch, random.poisson(rates * stretch), int(random.poisson(2 * mu * stretch)), 2 * stretch
            )
            belief = estimator.update(seen, stretch)
            assert belief.delta == min(0.5, first / (now - first))
            promised[k] += belief.delta / count
            outside[k] += not (belief.contains(rates) and mu <= belief.service_rate[1])
    assert np.all(outside / count <= promised + 3 * np.sqrt(promised / count))
    assert outside.sum() > 0


def test_the_plain_estimate_is_count_over_time() -> None:
    belief = PlainEstimate(FullHistory(2), learn_service_rate=True).update(
        tally(4.0, 4.0, [6, 2], departures=3, busy_time=12.0), 4.0
    )
    assert belief.arrival_rates.tolist() == [1.5, 0.5]
    assert belief.service_rate == (3 - 1) / 12
    assert belief.contains(np.ones(2)) is None


def test_the_draw_has_the_posterior_law() -> None:
    """Kolmogorov-Smirnov on 2,000 draws a class, and no correlation between classes. Error rate 1e-6."""
    knowledge = Knowledge.of(paper_queue(), service_rate=False)
    belief = Posterior(FullHistory(2), learn_service_rate=True).update(
        tally(20.0, 20.0, [0, 31], departures=17, busy_time=60.0), 20.0
    )
    planner = PosteriorSampling(knowledge, np.random.default_rng(8))
    shown = [planner(belief).belief.columns() for _ in range(2000)]
    rates = np.array([row["planned_rates"] for row in shown])
    service = np.array([row["planned_service_rate"] for row in shown])
    p_values = [
        kstest(rates[:, 0], gamma(0.5, scale=1 / 20).cdf).pvalue,
        kstest(rates[:, 1], gamma(31.5, scale=1 / 20).cdf).pvalue,
        kstest(service, gamma(17.5, scale=1 / 60).cdf).pvalue,
        spearmanr(*rates.T).pvalue,
    ]
    assert len(p_values) * min(p_values) > 1e-6
