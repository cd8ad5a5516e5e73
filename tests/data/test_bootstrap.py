"""The uncertainty of a fit: worlds drawn again, laws fitted again, and intervals that hold what they promise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from made_traces import QUEUE, as_jobs, logged
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.data.bootstrap import _point, gain_interval
from queueing_ucrl.data.recommend import FOUND, OPTIMUM, STATIONARY, Recommendation, exact_gain, recommend
from queueing_ucrl.data.refit import SampleSizes, _by_likelihood, _counts, _pieces, dispersion, redrawn, refitted
from queueing_ucrl.data.replay import replay
from queueing_ucrl.simulation.seeding import Randomness

STEPS = qu.Steps((8.0, 17.0), (0.2, 1.5, 0.8), 24.0)


def numbers(law: qu.Law, count: int, seed: int = 1) -> np.ndarray:
    values = np.empty(count)
    law.stream(np.random.default_rng(seed)).fill(values)
    return values


# Laws


LAWS = [
    qu.Exponential(0.5),
    qu.Erlang(2.0, 3),
    qu.Gamma(2.0, 0.5),
    qu.HyperExponential(2.0, 1.5),
    qu.LogNormal(2.0, 1.0),
    qu.Weibull(2.0, 0.7),
    qu.Pareto(2.0, 4.0),
    qu.Uniform(1.0, 3.0),
    qu.Empirical([1.0, 2.0, 3.0] * 2000),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_a_law_that_is_fitted_to_its_own_numbers_is_found_again(law) -> None:
    """Of 6000 numbers; a mean beyond six standard errors is no chance."""
    again = refitted(law, 6000, np.random.default_rng(3))
    assert type(again) is type(law)
    assert again != law
    assert abs(again.mean - law.mean) < 6.0 * law.cv * law.mean / math.sqrt(6000)
    assert again.cv == pytest.approx(law.cv, rel=0.25)


def test_likelihood_agrees_with_another_computation() -> None:
    values = numbers(qu.Gamma(2.0, 0.5), 500)
    shape, _, scale = stats.gamma.fit(values, floc=0)
    fitted = _by_likelihood(qu.Gamma(1.0, 1.0), values)
    assert (fitted.mean, fitted.cv) == (pytest.approx(shape * scale, rel=1e-5), pytest.approx(shape**-0.5, rel=1e-5))
    values = numbers(qu.Weibull(2.0, 0.7), 500)
    shape, _, scale = stats.weibull_min.fit(values, floc=0)
    fitted, known = _by_likelihood(qu.Weibull(1.0, 1.0), values), stats.weibull_min(shape, scale=scale)
    assert (fitted.mean, fitted.cv) == (
        pytest.approx(known.mean(), rel=1e-4),
        pytest.approx(known.std() / known.mean(), rel=1e-4),
    )
    values = numbers(qu.LogNormal(2.0, 1.0), 500)
    sigma, _, scale = stats.lognorm.fit(values, floc=0)
    fitted, known = _by_likelihood(qu.LogNormal(1.0, 1.0), values), stats.lognorm(sigma, scale=scale)
    assert (fitted.mean, fitted.cv) == (pytest.approx(known.mean()), pytest.approx(known.std() / known.mean()))
    values = numbers(qu.Pareto(2.0, 3.0), 500)
    shape, _, scale = stats.pareto.fit(values, floc=0)
    fitted = _by_likelihood(qu.Pareto(2.0, 3.0), values)
    assert (fitted.shape, fitted.mean) == (pytest.approx(shape), pytest.approx(scale * shape / (shape - 1)))


def test_a_law_of_no_family_and_one_without_data_stay_as_they_are() -> None:
    fixed = qu.Deterministic(2.0)
    assert refitted(fixed, 50, np.random.default_rng(0)) is fixed
    world = redrawn(QUEUE, SampleSizes(0.0, 100.0, (0, 0), (0, 0)), Randomness(1, 1).rng)
    assert world.service_rate == QUEUE.service_rate


# Arrivals


def test_counts_are_poisson_and_independent() -> None:
    """Chi-squared statistics of 4000 draws of three means, each beyond 1e-6 of its law only by a mistake."""
    means = np.array([0.4, 3.0, 50.0])
    found = np.array([_counts(means, np.random.default_rng([7, k])) for k in range(4000)])
    for k, mean in enumerate(means):
        dispersion = np.sum((found[:, k] - mean) ** 2) / mean
        assert stats.chi2.sf(dispersion, 4000) > 1e-6
        assert stats.chi2.cdf(dispersion, 4000) > 1e-6
    assert abs(np.corrcoef(found.T)[np.triu_indices(3, 1)]).max() < 5.0 / math.sqrt(4000)


def test_the_time_in_each_slot_is_counted() -> None:
    for begin, end in ((0.0, 24.0), (5.0, 100.0), (30.0, 33.0), (0.0, 8.0)):
        pieces = _pieces(begin, end, STEPS, 24.0)
        fine = np.linspace(begin, end, 200_001)
        middles = 0.5 * (fine[1:] + fine[:-1])
        slots = np.searchsorted(STEPS.times, middles % 24.0, side="right")
        expected = np.bincount(slots, minlength=3) * (end - begin) / 200_000
        assert np.allclose(np.bincount(pieces.slots, pieces.lengths, 3), expected, atol=1e-2)
        assert math.fsum(pieces.lengths) == pytest.approx(end - begin)
        days = np.bincount(np.floor(middles / 24.0).astype(int) - int(begin // 24)) * (end - begin) / 200_000
        assert np.allclose(np.bincount(pieces.days, pieces.lengths), days, atol=1e-2)


def drawn_rates(system: qu.System, sizes: SampleSizes, draws: int) -> list[qu.System]:
    return [redrawn(system, sizes, Randomness(3, k).rng) for k in range(draws)]


def test_drawn_rates_have_the_spread_of_their_counts() -> None:
    """lambda = N / T and mu = n / sum: variances lambda / T and about mu^2 / n. 500 draws: limits at five errors."""
    sizes = SampleSizes(10.0, 60.0, (120, 80), (0, 0))
    worlds = drawn_rates(QUEUE, sizes, 500)
    for i in (0, 1):
        rates = np.array([world.classes[i].arrival_rate for world in worlds])
        known = QUEUE.classes[i].arrival_rate
        assert abs(rates.mean() - known) < 5.0 * math.sqrt(known / 50.0 / 500)
        assert rates.var(ddof=1) == pytest.approx(known / 50.0, rel=5.0 * math.sqrt(2.0 / 500))
    service = np.array([world.service_rate for world in worlds])
    assert service.var(ddof=1) == pytest.approx(1.0 / 200, rel=5.0 * math.sqrt(2.0 / 500) + 0.03)
    assert all(type(world) is qu.Queue for world in worlds)


def test_a_pattern_is_fitted_slot_by_slot_and_a_shared_one_together() -> None:
    one = qu.Queue(3, 8, 1.0, [replace(QUEUE.classes[0], pattern=STEPS), replace(QUEUE.classes[1], pattern=STEPS)])
    other = replace(STEPS, factors=(0.3, 1.4, 0.8))
    two = qu.Queue(3, 8, 1.0, [replace(QUEUE.classes[0], pattern=STEPS), replace(QUEUE.classes[1], pattern=other)])
    sizes = SampleSizes(0.0, 240.0, (100, 100), (0, 0))
    for system, shared in ((one, True), (two, False)):
        worlds = drawn_rates(system, sizes, 300)
        assert all((w.classes[0].pattern == w.classes[1].pattern) is shared for w in worlds)
        for i, c in enumerate(system.classes):
            hours = np.array([80.0, 90.0, 70.0])
            rates = np.array([w.classes[i].arrival_rate * np.array(w.classes[i].pattern.factors) for w in worlds])
            known = c.arrival_rate * np.array(c.pattern.factors)
            assert np.all(np.abs(rates.mean(axis=0) - known) < 5.0 * np.sqrt(known / hours / 300))
            if not shared:
                assert np.allclose(rates.var(axis=0, ddof=1), known / hours, rtol=5.0 * math.sqrt(2.0 / 300))


def test_slots_that_the_log_has_not_seen_keep_their_rates() -> None:
    system = qu.Queue(3, 8, 1.0, [replace(QUEUE.classes[0], pattern=STEPS)])
    for world in drawn_rates(system, SampleSizes(0.0, 8.0, (50,), (0,)), 5):
        assert world.classes[0].pattern.factors[1:] == STEPS.factors[1:]


def test_days_that_differ_widen_the_rates_and_are_fitted_again() -> None:
    days = qu.DayFactor(qu.Poisson(10.0), 0.3, 24.0)
    system = qu.System(3, 8, [qu.JobClass("a", reward=1.0, arrivals=days, service=qu.Exponential(1.0))])
    worlds = drawn_rates(system, SampleSizes(0.0, 50 * 24.0, (100,), (0,)), 300)
    rates = np.array([world.classes[0].arrival_rate for world in worlds])
    variance = 10.0 / 1200.0 + 10.0**2 * 0.3**2 / 50
    assert rates.var(ddof=1) == pytest.approx(variance, rel=5.0 * math.sqrt(2.0 / 300))
    cvs = np.array([world.classes[0].arrivals.cv for world in worlds])
    assert abs(cvs.mean() - 0.3) < 0.02  # its spread is 0.3 / sqrt(100) a draw; the estimate is biased by about 1 %


def test_counts_that_vary_more_than_poisson_are_seen_and_widen_the_rates() -> None:
    """D of the log is that of its counts; the drawn rates then have D times the variance. 500 draws: five errors."""
    rng = np.random.default_rng(5)
    counts = rng.negative_binomial(100.0, 0.2, 40)  # mean 400, variance 5 times the mean
    times = np.concatenate([10.0 * k + np.sort(rng.uniform(0.0, 10.0, n)) for k, n in enumerate(counts)])
    starts = [10.0 * k for k in range(40)]
    known = dispersion(QUEUE.classes[0], times, starts, 10.0)
    assert known == pytest.approx(counts.var(ddof=1) / counts.mean(), rel=1e-9)
    plain = np.sort(rng.uniform(0.0, 400.0, 4000))
    assert dispersion(QUEUE.classes[0], plain, starts, 10.0) == 1.0
    hours = np.concatenate([24.0 * d + rng.uniform(8.0, 17.0, 300) for d in range(20)])
    patterned = replace(QUEUE.classes[0], pattern=qu.Steps((8.0, 17.0), (0.0, 1.0, 0.0), 24.0))
    halves = [12.0 * k for k in range(40)]
    assert dispersion(patterned, np.sort(hours), halves, 12.0) == 1.0
    assert dispersion(QUEUE.classes[0], np.sort(hours), [8.5 * k for k in range(56)], 8.5) > 10.0
    worlds = drawn_rates(QUEUE, SampleSizes(0.0, 500.0, (100, 100), (0, 0), (9.0, 1.0)), 500)
    for i, factor in ((0, 9.0), (1, 1.0)):
        rates = np.array([world.classes[i].arrival_rate for world in worlds])
        variance = factor * QUEUE.classes[i].arrival_rate / 500.0
        assert rates.var(ddof=1) == pytest.approx(variance, rel=5.0 * math.sqrt(2.0 / 500))


def test_other_processes_keep_their_shape() -> None:
    ways = [
        qu.Renewal(qu.Gamma(0.5, 0.7)),
        qu.Batches(qu.Poisson(1.0), qu.FixedSizes(2)),
        qu.Modulated(2.0, [[0, 1], [3, 0]], [0.5, 4.0]),
        qu.Trace([1.0, 2.0, 5.0], None, 10.0),
    ]
    classes = [qu.JobClass(str(k), reward=1.0, arrivals=way, service=qu.Exponential(1.0)) for k, way in enumerate(ways)]
    (world,) = drawn_rates(qu.System(3, 8, classes), SampleSizes(0.0, 2000.0, (9,) * 4, (0,) * 4), 1)
    for before, after in zip(classes[:3], world.classes[:3], strict=True):
        assert type(after.arrivals) is type(before.arrivals)
        assert after.arrival_rate != before.arrival_rate
        assert after.arrival_rate == pytest.approx(before.arrival_rate, rel=0.25)
    assert world.classes[3].arrivals == ways[3]


def test_patience_and_services_by_class_are_drawn_by_class() -> None:
    classes = [
        qu.JobClass("a", 1.0, 1.0, service=qu.LogNormal(1.0, 0.5), patience=qu.Exponential(0.3)),
        qu.JobClass("b", 1.0, 1.0, service=qu.Gamma(2.0, 0.5)),
        qu.JobClass("c", 1.0, 1.0, service=qu.Gamma(2.0, 0.5)),
    ]
    system = qu.System(3, 8, classes, patience=qu.Weibull(4.0, 0.8))
    (world,) = drawn_rates(system, SampleSizes(0.0, 100.0, (50, 50, 50), (40, 40, 40)), 1)
    assert world.law(1) == world.law(2) != classes[1].service
    assert world.law(0) != classes[0].service
    assert world.patience_of(1) == world.patience_of(2) != system.patience
    assert world.patience_of(0) not in (classes[0].patience, world.patience)


# What is recommended


def test_an_optimum_is_recommended_where_there_is_one() -> None:
    best = recommend(QUEUE, horizon=100.0)
    assert (best.kind, best.exact) == (OPTIMUM, True)
    assert (best.policy, best.gain.mean) == (qu.solve(QUEUE).policy, qu.solve(QUEUE).gain)
    assert (
        best.words == "turn enquiries away when 3 or more are in the system; let everybody else in while there is room"
    )
    assert Recommendation.from_plain(best.plain_data(QUEUE.class_names)).policy == best.policy


def test_where_rates_change_it_is_the_best_table_that_never_does() -> None:
    queue = qu.Queue(3, 8, 1.0, [replace(c, pattern=STEPS) for c in QUEUE.classes])
    found = recommend(queue, horizon=100.0)
    assert found.kind == STATIONARY
    assert found.gain.mean == qu.best_stationary(queue)[1]
    assert found.anticipating >= found.gain.mean
    assert exact_gain(queue, found.policy) == found.gain.mean


def test_else_a_short_search_finds_one_that_is_not_below_the_plan() -> None:
    system = qu.System(3, 8, [replace(c, service=qu.LogNormal(1.0, 1.5)) for c in QUEUE.classes])
    found = recommend(system, horizon=100.0, seed=2)
    assert found.kind == FOUND
    assert found.gain.half_width > 0.0
    assert found.tables > 1
    assert exact_gain(system, found.policy) is None
    again = Recommendation.from_plain(found.plain_data(system.class_names))
    assert again.policy == found.policy
    assert again.gain.half_width == pytest.approx(found.gain.half_width)


# Intervals


def test_points_of_a_sample_are_those_of_its_order() -> None:
    values = [float(k) for k in range(1, 100)]
    assert _point(values, 0.025) == pytest.approx(2.5)
    assert _point(values, 0.975) == pytest.approx(97.5)
    assert _point([1.0, 2.0], 0.001) == 1.0
    assert _point([1.0, 2.0], 0.999) == 2.0


def test_the_interval_is_as_wide_as_the_delta_method_says() -> None:
    """M/M/1/1: g = R lambda mu / (lambda + mu), Var lambda = lambda / T, Var mu = mu^2 / n."""
    queue = qu.Queue(1, 1, 2.0, [qu.JobClass("a", 3.0, 5.0)])
    time, works = 4000.0, 5000
    found = gain_interval(
        queue, recommend(queue, horizon=1.0), SampleSizes(0.0, time, (works,), (0,)), horizon=1.0, draws=2000
    )
    rate, mu = 3.0, 2.0
    variance = (5.0 * (mu / (rate + mu)) ** 2) ** 2 * rate / time
    variance += (5.0 * (rate / (rate + mu)) ** 2) ** 2 * mu**2 / works
    # the ends of a 95 % interval by B = 2000 draws have a standard error of 0.0042 / 0.0584 = 3.7 % of the half-width
    for end in (found.high - found.gain, found.gain - found.low):
        assert end == pytest.approx(1.96 * math.sqrt(variance), rel=0.15)
    assert found.gain == pytest.approx(6.0)
    assert (found.loss, found.best, found.failed) == (0.0, 1.0, 0)
    assert (found.fit_low, found.simulation_half_width) == (found.low, 0.0)


def test_planning_on_little_data_loses_and_on_much_does_not() -> None:
    best = recommend(QUEUE, horizon=1.0)
    interval = partial(gain_interval, QUEUE, best, horizon=1.0, draws=200)
    little, much = (
        interval(SampleSizes(0.0, 5.0, (10, 10), (0, 0))),
        interval(SampleSizes(0.0, 2e4, (40_000, 60_000), (0, 0))),
    )
    assert little.loss > 0.0
    assert little.best < 1.0
    assert little.loss_high >= little.loss
    assert (much.loss, much.best) == (0.0, 1.0)
    assert much.high - much.low < 0.05 * (little.high - little.low)


def test_a_world_that_is_simulated_has_both_intervals_whatever_the_processes() -> None:
    system = qu.System(3, 8, [replace(c, service=qu.Gamma(1.0, 0.5)) for c in QUEUE.classes])
    policy = qu.Policy.trunk_reservation((8, 3), 8)
    table = Recommendation(policy, FOUND, qu.Estimate(10.0, 0.05, 20), "words")
    options = {"horizon": 1.0, "draws": 8, "seed": 4}
    sizes = SampleSizes(0.0, 500.0, (500, 500), (0, 0))
    one, two = (gain_interval(system, table, sizes, workers=n, **options) for n in (1, 2))
    assert one == two
    assert one.low < one.fit_low < 10.0 < one.fit_high < one.high
    assert one.simulation_half_width == 0.05
    assert one.loss is None
    assert one.high - 10.0 == pytest.approx(math.hypot(one.fit_high - 10.0, 0.05))


def fitted(queue: qu.Queue, time: float, works: int, rng: np.random.Generator) -> qu.Queue:
    """The maximum-likelihood fit to data of this size, by numpy's random numbers."""
    rates = [max(rng.poisson(c.arrival_rate * time), 1) / time for c in queue.classes]
    return qu.Queue(
        queue.servers,
        queue.capacity,
        works / rng.gamma(works) * queue.service_rate,
        [replace(c, arrival_rate=rate) for c, rate in zip(queue.classes, rates, strict=True)],
    )


def covered(logs: int, draws: int) -> int:
    """How many intervals hold the true gain of the table that was recommended."""
    rng, hits = np.random.default_rng(11), 0
    for k in range(logs):
        world = fitted(QUEUE, 200.0, 400, rng)
        best = recommend(world, horizon=1.0)
        sizes = SampleSizes(0.0, 200.0, (200, 200), (0, 0))
        found = gain_interval(world, best, sizes, horizon=1.0, draws=draws, seed=k)
        hits += found.low <= exact_gain(QUEUE, best.policy) <= found.high
    return hits


def test_the_interval_covers_the_truth() -> None:
    """Of 40 logs: at 95 % fewer than 32 hits have a probability below 5e-5."""
    assert covered(40, 100) >= 32


@pytest.mark.slow
def test_the_interval_covers_the_truth_at_its_level() -> None:
    """Of 400 logs: 95 % of them within what chance leaves with probability 0.999 (binomial)."""
    low, high = stats.binom.ppf([0.0005, 0.9995], 400, 0.95)
    assert low <= covered(400, 400) <= high


@pytest.mark.slow
def test_the_interval_by_days_covers_what_is_earned_in_the_long_run() -> None:
    """200 logs of 20 blocks; the table's exact gain inside at 95 %, within chance's limits at 0.999 (binomial)."""
    table = qu.Policy.trunk_reservation((8, 3), 8)
    truth = exact_gain(QUEUE, table)
    hits = 0
    for seed in range(200):
        _, log = logged(QUEUE, "admit-all", seed, 400.0)
        jobs = as_jobs(log, QUEUE.class_names, 400.0)
        (row,) = replay(QUEUE, jobs, [("table", qu.FixedPolicy(table))], qu.RunSettings(1.0, seed=seed)).rows
        hits += row.earned.low <= truth <= row.earned.high
    low, high = stats.binom.ppf([0.0005, 0.9995], 200, 0.95)
    assert low <= hits <= high
