"""Arrival rates that change in time: exact thinning, equal engines, and what stationary policies earn."""

from __future__ import annotations

import math
from itertools import pairwise, product
from time import perf_counter

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.stats import kstest

import queueing_ucrl as qu
from queueing_ucrl.learning.fixed_policies import next_change
from queueing_ucrl.model.drift_evaluation import common_period

PATTERNS = [
    qu.Steady(),
    qu.Sinusoid(0.7, 30.0, 1.0),
    qu.Steps([5.0, 20.0], [1.0, 0.0, 2.0], period=40.0),
    qu.Steps([200.0], [1.0, 0.3]),
]


def two_class_queue(first: qu.ArrivalPattern, second: qu.ArrivalPattern, capacity: int = 12) -> qu.Queue:
    a = qu.JobClass("a", 1.0, 10.0, qu.Linear(0.5), first)
    b = qu.JobClass("b", 0.8, 4.0, qu.Linear(0.2), second)
    return qu.Queue(3, capacity, 0.5, [a, b])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_mean_and_the_ceiling_are_those_of_the_factor(pattern):
    length = pattern.period if math.isfinite(pattern.period) else 1000.0
    times = np.linspace(0.0, 2 * length, 4001)
    factors = np.array([pattern.factor(t) for t in times])
    assert factors.min() >= 0
    assert factors.max() <= pattern.ceiling + 1e-12
    if math.isfinite(pattern.period):
        mean = quad(pattern.factor, 0.0, pattern.period, limit=500, points=getattr(pattern, "times", None))[0]
        assert mean / pattern.period == pytest.approx(pattern.mean, rel=1e-9)


@pytest.mark.parametrize(
    ("times", "factors", "period"),
    [
        ([1.0], [1.0], 2.0),
        ([2.0, 1.0], [1, 1, 1], 3.0),
        ([1.0], [1.0, -1.0], 2.0),
        ([1.0], [0.0, 0.0], 2.0),
        ([3.0], [1.0, 2.0], 2.0),
        ([0.0], [1.0, 2.0], 2.0),
        ([math.nan], [1.0, 2.0], 2.0),
    ],
)
def test_steps_that_make_no_sense_are_refused(times, factors, period):
    with pytest.raises(ValueError, match="steps need"):
        qu.Steps(times, factors, period)


@pytest.mark.parametrize(("amplitude", "period"), [(-0.1, 1.0), (1.1, 1.0), (0.5, 0.0), (0.5, math.inf)])
def test_sinusoids_that_make_no_sense_are_refused(amplitude, period):
    with pytest.raises(ValueError, match="a sinusoid's"):
        qu.Sinusoid(amplitude, period)


@pytest.mark.parametrize("pattern", PATTERNS[1:])
def test_arrivals_on_the_clock_of_their_rate_are_a_poisson_process(pattern):
    """Time rescaling: with M(t) the integral of lambda, the gaps of M(arrivals) are Exp(1). Error rate 1e-4 a test."""
    queue = qu.Queue(1, 1, 1.0, [qu.JobClass("a", 3.0, 1.0, pattern=pattern)])
    events = qu.simulate(queue, "admit-all", horizon=3000.0, seed=11, log=True).events
    arrivals = events.loc[events["event"].isin(["admit", "reject", "block"]), "time"].to_numpy()
    fine = np.linspace(0.0, 3000.0, 600_001)
    middle = np.array([pattern.factor(t) for t in 0.5 * (fine[1:] + fine[:-1])])
    clock = np.concatenate([[0.0], np.cumsum(3.0 * middle * np.diff(fine))])
    gaps = np.diff(np.interp(arrivals, fine, clock), prepend=0.0)
    assert kstest(gaps, "expon").pvalue > 1e-4


@pytest.mark.parametrize(("first", "second"), list(product(PATTERNS, PATTERNS))[1::3])
@pytest.mark.parametrize("controller", ["admit-all", "oracle-following", "random"])
def test_both_engines_give_the_same_log(first, second, controller):
    queue = two_class_queue(first, second)
    logs = [
        qu.simulate(queue, controller, horizon=400.0, seed=3, engine=engine, log=True).events
        for engine in ("simpy", "compiled")
    ]
    assert len(logs[0]) > 500
    assert logs[0].equals(logs[1])


def test_a_steady_queue_is_the_same_as_one_whose_steps_are_all_one():
    plain = two_class_queue(qu.Steady(), qu.Steady())
    stepped = two_class_queue(qu.Steps([4.0], [1.0, 1.0], 9.0), qu.Steady())
    policy = qu.solve(plain).policy
    assert qu.Drift(stepped).gain(policy) == pytest.approx(qu.evaluate(plain, policy).gain, rel=1e-10)


def test_slow_steps_earn_the_mean_of_the_two_steady_queues():
    """A period of 10^6 mean services: what is lost in changing over is below 1e-4."""
    queue = two_class_queue(qu.Steps([1e6], [0.4, 1.6], 2e6), qu.Steady())
    policy = qu.Policy.trunk_reservation((12, 6), 12)
    halves = [qu.evaluate(queue.at(t), policy).gain for t in (1.0, 1.5e6)]
    assert qu.Drift(queue).gain(policy) == pytest.approx(np.mean(halves), rel=1e-4)


def test_a_sinusoid_s_gain_settles_as_its_pieces_become_shorter():
    queue = two_class_queue(qu.Sinusoid(0.9, 20.0), qu.Sinusoid(0.5, 40.0, 2.0))
    policy = qu.Policy.trunk_reservation((12, 6), 12)
    gains = [qu.Drift(queue, pieces=pieces).gain(policy) for pieces in (16, 32, 64, 256)]
    errors = np.abs(np.array(gains[:3]) - gains[3])
    assert errors[1] < 0.4 * errors[0]
    assert errors[2] < 1e-4 * gains[3]


@pytest.mark.parametrize(
    ("first", "second", "horizon"),
    [
        (qu.Sinusoid(0.9, 20.0), qu.Steady(), None),
        (qu.Steps([10.0, 15.0], [0.2, 3.0, 1.0], 30.0), qu.Sinusoid(0.5, 15.0), None),
        (qu.Steps([2000.0], [0.2, 1.8]), qu.Steady(), 3000.0),
    ],
)
def test_simulated_gain_agrees_with_the_drifting_law(first, second, horizon):
    """40 replications; the mean within 4.5 standard errors: error rate about 1e-4 a test (Student's t, 39 degrees)."""
    queue = two_class_queue(first, second)
    policy = qu.Policy.trunk_reservation((12, 6), 12)
    controller = qu.TrunkReservation((12, 6))
    exact = qu.Drift(queue, horizon).gain(policy)
    length = horizon or 30_000.0
    settings = {"horizon": length, "seed": 5, "grid": [length]}
    runs = (qu.simulate(queue, controller, replication=r, **settings) for r in range(40))
    gains = np.array([run.summary()["gain"] for run in runs])
    assert abs(gains.mean() - exact) < 4.5 * gains.std(ddof=1) / math.sqrt(40) + 1e-3 * exact * (horizon is None)


def test_following_the_rates_earns_more_than_the_best_policy_that_never_changes():
    """Slow large steps; paired over 20 replications, a 95 % interval above zero."""
    queue = two_class_queue(qu.Steps([2000.0], [0.1, 3.0], 4000.0), qu.Steps([2000.0], [2.0, 0.5], 4000.0))
    study = qu.replicate(
        queue, ["best-stationary", "oracle-following"], horizon=20_000.0, replications=20, seed=2, jobs=1
    )
    more = study.differences("oracle-following", "expected_reward")
    assert more["high"].iloc[-1] < 0


def test_forgetting_pays_where_rates_change_rarely_and_by_much():
    """Paired over 12 replications: 9 % more reward, and the 95 % interval lies above 5 %."""
    a = qu.JobClass("a", 1.0, 10.0, qu.Linear(0.5), qu.Steps([4000.0], [0.1, 2.0], 8000.0))
    b = qu.JobClass("b", 1.0, 4.0, qu.Linear(0.2), qu.Steps([4000.0], [1.5, 0.5], 8000.0))
    queue = qu.Queue(3, 12, 0.5, [a, b])
    learners = [qu.CertaintyEquivalent(), qu.CertaintyEquivalent(memory=400.0)]
    study = qu.replicate(queue, learners, horizon=32_000.0, replications=12, seed=5, jobs=1)
    more = study.differences("certainty-equivalent", "expected_reward").iloc[-1]
    earned = study.rewards().query("controller == 'certainty-equivalent'")["mean"].iloc[-1]
    assert more["low"] > 0.05 * earned


def test_the_next_change_is_the_earliest_of_all_classes():
    queue = two_class_queue(qu.Steps([5.0, 20.0], [1.0, 0.0, 2.0], 40.0), qu.Steps([12.0], [1.0, 2.0]))
    changes, now = [], 0.0
    while now < 100.0:
        now = next_change(queue, now)
        changes.append(now)
    assert changes == [5.0, 12.0, 20.0, 40.0, 45.0, 60.0, 80.0, 85.0, 100.0]


def test_tick_controllers_refuse_a_drifting_queue():
    with pytest.raises(ValueError, match="do not change in time"):
        qu.simulate(two_class_queue(PATTERNS[1], PATTERNS[0]), "ucrl2", horizon=10.0)


def test_a_queue_that_never_comes_back_needs_a_horizon():
    with pytest.raises(ValueError, match="horizon"):
        qu.best_stationary(two_class_queue(PATTERNS[3], PATTERNS[0]))


def random_pattern(rng: np.random.Generator, unit: float, *, repeats: bool) -> qu.ArrivalPattern:
    """Steady, a sinusoid or steps; periods are 1 to 4 units, and steps come once or again and again."""
    kind = rng.integers(4)
    period = unit * float(rng.integers(1, 5))
    if kind == 0:
        return qu.Steady()
    if kind == 1:
        return qu.Sinusoid(float(rng.uniform(0, 1)), period, float(rng.uniform(-3, 3)))
    count = int(rng.integers(1, 4))
    times = period * np.sort(rng.uniform(0.05, 0.95, count))
    factors = rng.uniform(0, 3, count + 1) * (rng.random(count + 1) < 0.8)
    factors[int(rng.integers(count + 1))] = rng.uniform(0.5, 3)
    return qu.Steps(times, factors, period if repeats or kind == 2 else math.inf)


def random_drift(seed: int) -> tuple[qu.Queue, qu.Policy, float | None]:
    """A queue of 1 to 3 classes, any policy, and a horizon for two queues of three."""
    rng = np.random.default_rng([9, seed])
    horizon = None if seed % 3 == 0 else float(rng.uniform(0.3, 30))
    classes, servers = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    capacity, unit = servers + int(rng.integers(0, 6)), float(rng.choice([0.5, 2.0, 6.0]))
    service_rate = float(10 ** rng.uniform(-1, 0.5))
    drawn = []
    for i in range(classes):
        rate, reward, cost = (float(rng.uniform(*limits)) for limits in ((0.2, 2), (5, 10), (0, 0.5)))
        pattern = random_pattern(rng, unit, repeats=horizon is None)
        drawn.append(qu.JobClass(f"class {i}", rate, reward, qu.Linear(cost), pattern))
    queue = qu.Queue(servers, capacity, service_rate, drawn)
    return queue, qu.Policy(rng.random((capacity, classes)) < 0.75), horizon


def all_steps(queue: qu.Queue, end: float) -> list[float]:
    """Every time up to `end` at which a rate jumps, one after the other."""
    marks = {0.0, end}
    for pattern in (c.pattern for c in queue.classes):
        turn = 0.0
        while isinstance(pattern, qu.Steps) and turn < end:
            marks |= {turn + t for t in (0.0, *pattern.times) if turn + t < end}
            turn += pattern.period
    return sorted(marks)


def integrated_gain(queue: qu.Queue, policy: qu.Policy, length: float, *, from_empty: bool) -> float:
    """Reward per unit of time by Runge-Kutta on the forward equations, with the true rates at every moment.

    In the long run: the equations from every state, and the law that a period leaves as it was.
    """
    states, admits = queue.capacity + 1, policy.admits
    base = np.array([c.arrival_rate for c in queue.classes])

    def slope(t: float, y: np.ndarray, middle: float) -> np.ndarray:
        at = [middle if isinstance(c.pattern, qu.Steps) else t for c in queue.classes]
        rates = base * [c.pattern.factor(when) for c, when in zip(queue.classes, at, strict=True)]
        law = y.reshape(states + 1, -1)[:-1]
        up, down = (admits @ rates)[:, None] * law[:-1], queue.service_rates[1:, None] * law[1:]
        moved = np.zeros((states + 1, law.shape[1]))
        moved[: states - 1] += down - up
        moved[1:states] += up - down
        moved[-1] = (admits * queue.rewards @ rates) @ law[:-1]
        return moved.ravel()

    now = np.vstack([np.eye(states)[:, : 1 if from_empty else states], np.zeros(1 if from_empty else states)])
    steps = all_steps(queue, length)
    for a, b in pairwise(steps):
        if b - a > 1e-11:
            answer = solve_ivp(
                slope, (a, b), now.ravel(), method="DOP853", rtol=1e-10, atol=1e-12, args=(0.5 * (a + b),)
            )
            now = answer.y[:, -1].reshape(now.shape)
    if from_empty:
        return float(now[-1, 0]) / length
    law = np.linalg.matrix_power(now[:-1], 2**14)[:, 0]
    return float(now[-1] @ law / law.sum()) / length


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_gain_agrees_with_an_integration_of_the_forward_equations(first):
    """200 queues: steady, sinusoids and steps of periods that differ, once or again and again; in the long run and up
    to horizons that are no whole number of periods.
    """
    for seed in range(first, first + 10):
        queue, policy, horizon = random_drift(seed)
        drift = qu.Drift(queue, horizon)
        exact = integrated_gain(queue, policy, drift.period, from_empty=horizon is not None)
        scale = float((queue.arrival_rates * np.abs(queue.rewards).max(axis=0)).sum())
        assert drift.gain(policy) == pytest.approx(exact, rel=1e-6, abs=1e-7 * scale), seed


@pytest.mark.parametrize(
    ("first", "second", "horizon"),
    [
        (qu.Steps([2.0], [0.2, 3.0]), qu.Steady(), 25.0),  # once, and the last factor is the largest
        (qu.Steps([6.0], [3.0, 0.1], 12.0), qu.Steps([5.0], [1.0, 2.0], 24.0), None),  # periods that differ
        (qu.Steps([6.0], [3.0, 0.1], 12.0), qu.Steps([5.0], [1.0, 2.0], 18.0), None),  # neither divides the other
        (qu.Steps([6.0], [3.0, 0.1], 24.0), qu.Steady(), 30.0),  # a horizon of one period and a quarter
        (qu.Steps([6.0], [3.0, 0.1], 24.0), qu.Sinusoid(0.8, 7.0), 3.0),  # of less than a period
        (qu.Steps([3.0], [0.0, 2.0], 2.0 * math.pi), qu.Sinusoid(0.5, 5.0), 40.0),  # no common period
    ],
)
def test_gain_where_one_off_steps_periods_and_horizons_do_not_fit_together(first, second, horizon):
    queue = two_class_queue(first, second)
    policy = qu.Policy.trunk_reservation((12, 6), 12)
    drift = qu.Drift(queue, horizon)
    exact = integrated_gain(queue, policy, drift.period, from_empty=horizon is not None)
    assert drift.gain(policy) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(("servers", "capacity", "period"), [(1, 60, 3.0), (4, 80, 0.5), (20, 60, 40.0), (2, 9, 0.01)])
def test_gain_of_a_queue_that_forgets_slowly(servers, capacity, period):
    """Critical load: the law needs hundreds of periods to settle. Against dense matrices."""
    a = qu.JobClass("a", 0.6 * servers, 10.0, qu.Linear(0.1), qu.Steps([0.3 * period], [2.4, 0.4], period))
    b = qu.JobClass("b", 0.4 * servers, 6.0, qu.Linear(0.1), qu.Steps([0.6 * period], [0.02, 2.47], period))
    queue = qu.Queue(servers, capacity, 1.0, [a, b])
    policy = qu.Policy.trunk_reservation((capacity, capacity - 3), capacity)
    drift = qu.Drift(queue)
    cycle, earned = np.eye(capacity + 1), np.zeros(capacity + 1)
    for a, b in zip(drift.edges, drift.edges[1:], strict=False):
        rates = np.array([c.arrival_rate * c.pattern.factor(0.5 * (a + b)) for c in queue.classes])
        birth = np.append(policy.admits @ rates, 0.0)
        generator = (
            np.diag(-(birth + queue.service_rates)) + np.diag(birth[:-1], 1) + np.diag(queue.service_rates[1:], -1)
        )
        reward = np.append((policy.admits * queue.rewards) @ rates, 0.0)
        augmented = np.block([[generator, reward[:, None]], [np.zeros((1, capacity + 2))]])
        moved = expm(augmented * (b - a))
        earned += cycle @ moved[:-1, -1]
        cycle = cycle @ moved[:-1, :-1]
    equations = np.vstack([(cycle.T - np.eye(capacity + 1))[:-1], np.ones(capacity + 1)])
    law = np.linalg.solve(equations, np.append(np.zeros(capacity), 1.0))
    assert drift.gain(policy) == pytest.approx(float(law @ earned) / period, rel=1e-9)


def test_a_policy_that_admits_nobody_earns_nothing():
    queue = two_class_queue(PATTERNS[1], PATTERNS[2])
    assert qu.Drift(queue).gain(qu.Policy.trunk_reservation((0, 0), 12)) == 0.0
    with pytest.raises(ValueError, match="the policy is for"):
        qu.Drift(queue).gain(qu.Policy.admit_all(12, 3))


@pytest.mark.parametrize(
    ("first", "second", "capacity", "horizon", "message"),
    [
        (qu.Sinusoid(0.5, 24.0), qu.Sinusoid(0.5, 1e-6), 12, None, "too many to follow"),
        (qu.Steps([1.0], [1.0, 2.0], 24.0), qu.Steps([5e-7], [1.0, 2.0], 1e-6), 12, None, "too many to follow"),
        (qu.Sinusoid(0.5, 1e-6), qu.Steady(), 12, 1e6, "too many to follow"),
        (qu.Sinusoid(0.5, 24.0), qu.Sinusoid(0.5, 8.0 * math.pi), 12, None, "no common period"),
        (qu.Sinusoid(0.5, 24.0), qu.Steady(), 10**6, None, "steps for a single policy"),
        (qu.Steps([1.0], [1.0, 2.0]), qu.Steady(), 12, 1e12, "steps for a single policy"),
        (qu.Sinusoid(0.5, 24.0), qu.Steady(), 12, math.inf, "horizon must be a positive finite number"),
        (qu.Sinusoid(0.5, 24.0), qu.Steady(), 12, -1.0, "horizon must be a positive finite number"),
    ],
)
def test_what_cannot_be_followed_is_refused_at_once(first, second, capacity, horizon, message):
    queue = two_class_queue(first, second, capacity)
    began = perf_counter()
    with pytest.raises(ValueError, match=message):
        qu.Drift(queue, horizon).gain(qu.Policy.admit_all(capacity, 2))
    assert perf_counter() - began < 5.0
    with pytest.raises(ValueError, match=message):
        qu.best_stationary(queue, horizon)


@pytest.mark.parametrize("periods", [(0.1, 0.3), (24.0, 7.1), (1 / 3, 1 / 7), (12.0, 18.0, 8.0), (0.7, 0.1, 0.35)])
def test_the_common_period_is_a_whole_number_of_each(periods):
    common = common_period(set(periods))
    turns = [common / p for p in periods]
    assert turns == pytest.approx([round(t) for t in turns], rel=1e-9)
    assert math.gcd(*(round(t) for t in turns)) == 1


def test_best_stationary_works_on_a_large_queue_and_tells_how_far_it_is():
    a = qu.JobClass("a", 1.4, 10.0, qu.Linear(0.02), qu.Steps([6.0], [0.5, 1.5], 12.0))
    b = qu.JobClass("b", 1.0, 6.0, qu.Linear(0.02), qu.Steps([6.0], [1.6, 0.4], 12.0))
    queue = qu.Queue(2, 2000, 1.0, [a, b])
    told = []
    policy, gain = qu.best_stationary(queue, on_progress=lambda tried, best: told.append((tried, best)))
    tried, best = zip(*told, strict=True)
    assert tried == tuple(range(1, len(told) + 1))
    assert list(best) == sorted(best)
    assert best[-1] == gain == qu.Drift(queue).gain(policy)
    assert gain > qu.Drift(queue).gain(qu.Policy.admit_all(2000, 2))


@pytest.mark.parametrize("seed", range(12))
def test_best_stationary_is_the_best_of_all_trunk_reservation_policies_of_small_queues(seed):
    rng = np.random.default_rng([10, seed])
    horizon = None if seed % 2 else 40.0
    capacity, classes = (6, 2) if seed % 4 < 2 else (3, 3)
    drawn = []
    for i in range(classes):
        rate, reward, cost = (float(rng.uniform(*limits)) for limits in ((0.2, 1.5), (1, 10), (0, 1)))
        pattern = random_pattern(rng, 4.0, repeats=horizon is None)
        drawn.append(qu.JobClass(f"class {i}", rate, reward, qu.Linear(cost), pattern))
    queue = qu.Queue(2, capacity, 0.5, drawn)
    policy, gain = qu.best_stationary(queue, horizon)
    drift = qu.Drift(queue, horizon)
    every = [
        drift.gain(qu.Policy.trunk_reservation(levels, capacity))
        for levels in product(range(capacity + 1), repeat=classes)
    ]
    assert gain == pytest.approx(max(every), rel=1e-12)
    assert drift.gain(policy) == gain


def test_rates_that_change_too_fast_to_follow_are_refused_at_once():
    queue = two_class_queue(qu.Sinusoid(0.5, 1e-6), qu.Steady())
    with pytest.raises(ValueError, match="too often to follow"):
        qu.simulate(queue, "oracle-following", horizon=480.0)


@pytest.mark.parametrize("period", [2e-14, 2e-20, 2e-300])
def test_periods_that_the_clock_cannot_tell_apart_are_refused(period):
    """Steps of 0 and 2 would be 0, or 2, all the time: what is left of the time after so many periods is rounding."""
    for pattern in (qu.Steps([period / 2], [0.0, 2.0], period=period), qu.Sinusoid(0.5, period)):
        queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.5, 5.0, pattern=pattern)])
        with pytest.raises(ValueError, match=r"class .a.: a period of .* cannot be told from the next"):
            qu.simulate(queue, "admit-all", horizon=1000.0)


def test_a_sinusoid_whose_angle_is_infinite_is_refused():
    with pytest.raises(ValueError, match="too short for double precision"):
        qu.Sinusoid(0.5, 1e-310)
