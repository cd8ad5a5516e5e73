"""What limits a learner: the loss near a flip, the price of a grid of reviews, the bounded loss away from flips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, poisson
from scipy.stats import t as student

import queueing_ucrl as qu
from queueing_ucrl.accounts.learner_limits import Flip, Levels, expected_loss, gain_gradient, price_of_grid
from queueing_ucrl.paper.limits import halfin_whitt

FLIP = 1.06876  # of gold's rate, on the paper's first queue


def near_flip(distance: float) -> tuple[qu.Queue, qu.Policy]:
    queue = paper_queue(20, 0.3)
    rival = qu.solve(queue.with_arrival_rates([FLIP + distance, 1.0])).policy
    return queue.with_arrival_rates([FLIP - distance, 1.0]), rival


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_gradient_of_the_gain_is_its_difference_quotient(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queue = paper_queue(int(rng.integers(5, 30)), float(rng.uniform(0.2, 0.6)))
    policy = qu.Policy(rng.random((queue.capacity, 2)) < 0.8)
    slope = gain_gradient(queue, policy)
    for i in range(2):
        step = np.zeros(2)
        step[i] = 1e-5
        up, down = (qu.evaluate(queue.with_arrival_rates(queue.arrival_rates + k * step), policy).gain for k in (1, -1))
        assert slope[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6)


@given(st.floats(1e-4, 1e2), st.floats(1e-3, 1e3), st.floats(0.0, 1e6), st.floats(0.0, 1e6))
@settings(max_examples=50, deadline=None)
def test_the_loss_is_its_integral(gap: float, variance: float, begin: float, length: float) -> None:
    flip = Flip(gap, variance)
    x = gap / math.sqrt(variance)
    far = begin + min(length, 200.0 / x**2)
    integral = quad(lambda y: 2 * y * norm.sf(y), x * math.sqrt(begin), x * math.sqrt(far))[0] * gap / x**2
    assert flip.loss(begin, far) == pytest.approx(integral, rel=1e-7, abs=1e-9 * flip.constant)
    assert flip.loss(0.0, math.inf) == pytest.approx(flip.constant)


@pytest.mark.parametrize(("ratio", "price"), [(1.01, 1.005), (1.1, 1.049), (2.0, 1.443)])
def test_the_price_of_a_grid(ratio: float, price: float) -> None:
    """(q - 1) / ln q, and the sum over a long grid is so many times the integral, wherever the grid begins."""
    assert price_of_grid(ratio) == pytest.approx(price, abs=5e-4)
    flip = Flip(0.01, 1.0)
    sums = []
    for first in ratio ** np.linspace(0.0, 1.0, 21)[:-1]:
        reviews = 1e-6 * first * ratio ** np.arange(math.log(1e14) / math.log(ratio))
        sums.append(flip.loss_between_reviews(reviews.tolist(), 0.0, 1e8) / flip.constant)
    assert np.mean(sums) == pytest.approx(price_of_grid(ratio), rel=1e-3)


def test_mirrored_rates_have_the_same_constant() -> None:
    queue, rival = near_flip(0.01)
    best = qu.solve(queue).policy
    mirrored = queue.with_arrival_rates([FLIP + 0.01, 1.0])
    assert qu.solve(mirrored).policy == rival
    here, there = Flip.between(queue, rival), Flip.between(mirrored, best)
    assert here.constant == pytest.approx(there.constant, rel=0.03)  # to leading order in the distance


def test_certainty_equivalence_loses_what_the_limit_says() -> None:
    """On a grid of ratio 1.1, from time 2,000 on (before, other policies are tried too): within a 99.9 % interval."""
    queue, rival = near_flip(0.01)
    flip = Flip.between(queue, rival)
    ratio, begin, end, runs = 1.1, 2_000.0, 40_000.0, 60
    first = 1.0 / queue.max_service_rate
    reviews = [first * ratio**k for k in range(200)]
    study = qu.replicate(
        queue, ["certainty-equivalent"], horizon=end, replications=runs, seed=5, grid=[begin, end], jobs=1
    )
    samples = study.samples(0, "pseudo")
    lost = samples[:, -1] - samples[:, 0]
    half = student.ppf(0.9995, runs - 1) * lost.std(ddof=1) / math.sqrt(runs)
    assert abs(lost.mean() - flip.loss_between_reviews(reviews, begin, end)) < half
    assert half < flip.loss(begin, end)  # and the interval tells something


def one_class(capacity: int = 12) -> qu.Queue:
    return qu.Queue(2, capacity, 1.0, [qu.JobClass("job", 2.5, 6.0, qu.Linear(1.0))])


def test_levels_by_brute_force() -> None:
    """E of the deficit as a sum over every count N, each with its own best policy."""
    queue = one_class()
    rate, time = 2.5, 3.0
    levels = Levels.of(queue, 40.0)
    best = qu.solve(queue).gain
    total = 0.0
    for n in range(80):
        policy = qu.solve(queue.with_arrival_rates([n / time])).policy if n else qu.Policy(queue.rewards >= 0.0)
        total += poisson.pmf(n, rate * time) * (best - qu.evaluate(queue, policy).gain)
    assert levels.expected_deficit(rate, time) == pytest.approx(total, abs=1e-9)
    assert np.all(np.diff(levels.changes) > 0)
    assert levels.deficits.min() == pytest.approx(0.0, abs=1e-12)


def test_a_class_that_pays_nothing_in_some_state_is_let_in_while_nothing_is_known() -> None:
    """r(7) = 0: best left out at any rate, let in by the policy before the first arrival; runs do as the sum says."""
    queue = halfin_whitt(4)
    assert queue.rewards[7, 0] == 0.0
    first = 1.0 / queue.max_service_rate
    (expected,) = expected_loss(queue, [first], np.array([first]))
    run = qu.simulate(queue, "certainty-equivalent", horizon=first, seed=1, grid=[first])
    assert run.regret("pseudo")["regret"].iloc[-1] == pytest.approx(expected)


def test_away_from_flips_the_expected_loss_is_bounded_and_is_what_runs_lose() -> None:
    """Simulated pseudo regret within a 99.9 % interval of the exact sum, which has stopped growing."""
    queue = one_class()
    first = 1.0 / queue.max_service_rate
    reviews = [first * 1.1**k for k in range(200)]
    runs, end = 200, 1_000.0
    expected, longer = expected_loss(queue, reviews, np.array([end, 1e6]))
    assert longer < 1.02 * expected
    study = qu.replicate(queue, ["certainty-equivalent"], horizon=end, replications=runs, seed=3, grid=[end], jobs=1)
    lost = study.samples(0, "pseudo")[:, -1]
    half = student.ppf(0.9995, runs - 1) * lost.std(ddof=1) / math.sqrt(runs)
    assert abs(lost.mean() - expected) < half
    assert half < 0.5 * expected


def test_more_classes_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match="one class"):
        Levels.of(paper_queue(), 5.0)
