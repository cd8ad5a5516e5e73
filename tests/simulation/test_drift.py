"""Arrival rates that change in time: exact thinning, equal engines, and what stationary policies earn."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

import queueing_ucrl as qu
from queueing_ucrl.learning.fixed import next_change

PATTERNS = [
    qu.Steady(),
    qu.Sinusoid(0.7, 30.0, 1.0),
    qu.Steps([5.0, 20.0], [1.0, 0.0, 2.0], period=40.0),
    qu.Steps([200.0], [1.0, 0.3]),
]


def two_class_queue(first: qu.ArrivalPattern, second: qu.ArrivalPattern, capacity: int = 12) -> qu.Queue:
    return qu.Queue(3, capacity, 0.5, [
        qu.JobClass("a", 1.0, 10.0, qu.Linear(0.5), first),
        qu.JobClass("b", 0.8, 4.0, qu.Linear(0.2), second),
    ])  # fmt: skip


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
    [([1.0], [1.0], 2.0), ([2.0, 1.0], [1, 1, 1], 3.0), ([1.0], [1.0, -1.0], 2.0), ([1.0], [0.0, 0.0], 2.0),
     ([3.0], [1.0, 2.0], 2.0), ([0.0], [1.0, 2.0], 2.0), ([math.nan], [1.0, 2.0], 2.0)],
)  # fmt: skip
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
    gains = np.array([
        qu.simulate(queue, controller, horizon=length, seed=5, replication=r, grid=[length]).summary()["gain"]
        for r in range(40)
    ])  # fmt: skip
    assert abs(gains.mean() - exact) < 4.5 * gains.std(ddof=1) / math.sqrt(40) + 1e-3 * exact * (horizon is None)


def test_best_stationary_is_the_best_of_all_trunk_reservation_policies_of_a_small_queue():
    queue = two_class_queue(qu.Steps([10.0], [0.2, 2.5], 25.0), qu.Sinusoid(0.8, 25.0), capacity=5)
    policy, gain = qu.best_stationary(queue)
    drift = qu.Drift(queue)
    every = {
        levels: drift.gain(qu.Policy.trunk_reservation(levels, 5)) for levels in product(range(6), repeat=2)
    }  # fmt: skip
    assert gain == pytest.approx(max(every.values()), rel=1e-12)
    assert every[policy.control_levels] == pytest.approx(gain, rel=1e-12)


def test_following_the_rates_earns_more_than_the_best_policy_that_never_changes():
    """Slow large steps; paired over 20 replications, a 95 % interval above zero."""
    queue = two_class_queue(qu.Steps([2000.0], [0.1, 3.0], 4000.0), qu.Steps([2000.0], [2.0, 0.5], 4000.0))
    study = qu.replicate(
        queue, ["best-stationary", "oracle-following"], horizon=20_000.0, replications=20, seed=2, jobs=1
    )
    lost = study.differences("oracle-following", "expected")
    assert lost["low"].iloc[-1] > 0


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
