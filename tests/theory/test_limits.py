"""What limits a learner: the loss near a flip, the price of a grid of reviews, the bounded loss away from flips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.optimize import minimize_scalar
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


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_direction_is_harder_than_the_rates_times_the_gradient(seed: int) -> None:
    """Cauchy and Schwarz: (a . v)^2 / (v' diag(1/lambda) v) <= a' diag(lambda) a, equal at v = diag(lambda) a."""
    queue, rival = near_flip(0.01)
    slope = gain_gradient(queue, qu.solve(queue).policy) - gain_gradient(queue, rival)
    free, hardest = Flip.between(queue, rival), Flip.between(queue, rival, along=queue.arrival_rates * slope)
    assert hardest.variance == pytest.approx(free.variance, rel=1e-12)
    told = Flip.between(queue, rival, along=np.random.default_rng(seed).normal(size=2))
    assert told.gap == free.gap
    assert told.variance <= free.variance * (1.0 + 1e-12)


def mistaken(first: np.ndarray, second: np.ndarray, time: float, costs: tuple[float, float]) -> float:
    """The least of costs[0] P(second held | first true) + costs[1] P(first held | second true) over all tests.

    The sum over all pairs of counts of the lesser of the two weighted Poisson probabilities; beyond 7 standard
    deviations of both it is below 1e-11.
    """
    means = time * np.array([first, second])
    spread = 7.0 * np.sqrt(means.max(axis=0))
    low = np.maximum(np.floor(means.min(axis=0) - spread), 0.0)
    counts = [np.arange(a, b + 1.0) for a, b in zip(low, np.ceil(means.max(axis=0) + spread), strict=True)]
    laws = [np.outer(*(poisson.pmf(n, m) for n, m in zip(counts, row, strict=True))) for row in means]
    return float(np.minimum(costs[0] * laws[0], costs[1] * laws[1]).sum())


@pytest.mark.parametrize("direction", ["gold", "basic", "hardest"])
def test_two_points_in_a_direction_cost_every_learner_what_the_formula_says(direction: str) -> None:
    """The least sum of both losses, of the best test at each time by the exact laws of the counts, is twice the bound.

    To leading order: the error is of the order of the relative distance between the two vectors of rates.
    """
    queue, rival = near_flip(0.02)
    best = qu.solve(queue).policy
    slope = gain_gradient(queue, best) - gain_gradient(queue, rival)
    v = {"gold": np.array([1.0, 0.0]), "basic": np.array([0.0, 1.0]), "hardest": queue.arrival_rates * slope}[direction]
    flip = Flip.between(queue, rival, along=v)
    step = 2.0 * flip.gap / abs(slope @ v) * np.sign(-slope @ v)
    mirrored = queue.with_arrival_rates(queue.arrival_rates + step * v)
    assert qu.solve(mirrored).policy == rival
    costs = (flip.gap, Flip.between(mirrored, best).gap)
    ends = np.concatenate([[0.0], np.geomspace(0.003, 12.0, 60)]) * flip.resolved  # Phi(-sqrt 12) = 3e-4
    middles = 0.5 * (ends[:-1] + ends[1:])
    losses = [mistaken(queue.arrival_rates, mirrored.arrival_rates, t, costs) for t in middles.tolist()]
    bound = 0.5 * float(np.diff(ends) @ losses)
    distance = float(np.max(np.abs(step * v) / queue.arrival_rates))
    assert bound == pytest.approx(flip.constant, rel=distance)
    free = Flip.between(queue, rival).constant
    assert (bound < 0.9 * free) == (direction != "hardest")


def test_a_learner_who_is_told_a_rate_may_lose_less_than_one_who_is_not() -> None:
    """Gold's rate against its flip, basic's rate told: at both of two queues below sigma^2 / 2G, and what its own says.

    Reviewed all the time it errs if N / t is beyond the flip: a sum of Poisson probabilities, no simulation.
    """
    distance = 0.005
    queue, rival = near_flip(distance)
    free, told = Flip.between(queue, rival), Flip.between(queue, rival, along=(1.0, 0.0))
    ends = np.geomspace(1e-6, 100.0, 4000) * told.resolved
    counts = np.floor(FLIP * ends)
    for wrong in (poisson.sf(counts, (FLIP - distance) * ends), poisson.cdf(counts, (FLIP + distance) * ends)):
        lost = told.gap * (ends[0] + float(trapezoid(wrong, ends)))
        assert lost < 0.9 * free.constant
        assert lost == pytest.approx(told.constant, rel=0.03)  # to leading order in the distance


@pytest.mark.parametrize("along", [(0.0, 0.0), (1.0,), (1.0, math.nan)])
def test_a_direction_that_is_none_is_refused(along: tuple[float, ...]) -> None:
    queue, rival = near_flip(0.01)
    with pytest.raises(ValueError, match="along must be 2 numbers, one a class and not all 0, got "):
        Flip.between(queue, rival, along=along)


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


def diffusion_cost(barrier: float, wait_cost: float) -> float:
    """In units of sqrt(c): rejections and waits in a unit of time, of dX = -min(X, 0) dt + sqrt(2) dB below a barrier.

    Its stationary density is proportional to exp(int -min(x, 0) dx); half the variance times it is pushed back there.
    """

    def density(x: float) -> float:
        return math.exp(quad(lambda y: -min(y, 0.0), 0.0, x)[0])

    whole = quad(density, -12.0, barrier, points=[0.0])[0]
    waiting = quad(lambda x: max(x, 0.0) * density(x), -12.0, barrier, points=[0.0])[0]
    return (density(barrier) + wait_cost * waiting) / whole


def test_with_many_servers_the_best_level_is_the_diffusions() -> None:
    """(level - c) / sqrt(c) and (c - rho*) / sqrt(c) against the best barrier and its cost, found by a search.

    Two jobs are allowed: a level is a whole number, and the barrier may be counted as its last state or the one after.
    In units of sqrt(c) that falls from a half to 0.03; costs approach like 1 / sqrt(c).
    """
    found = minimize_scalar(lambda b: diffusion_cost(b, 0.5), bounds=(0.1, 4.0), method="bounded")
    errors = []
    for servers in (16, 64, 256, 1024, 4096):
        queue, root = halfin_whitt(servers), math.sqrt(servers)
        best = qu.solve(queue)
        level = int(best.policy.admits.sum())
        assert abs(level - servers - found.x * root) <= 2.0
        assert level < queue.capacity  # not the room, but the costs decide
        errors.append(abs((servers - best.gain) / root - found.fun))
    assert np.all(np.array(errors[1:]) < 0.6 * np.array(errors[:-1]))  # half as much at four times the servers


def test_a_class_that_pays_nothing_in_some_state_is_let_in_while_nothing_is_known() -> None:
    """r(7) = 0: best left out at any rate, let in by the policy before the first arrival; runs do as the sum says."""
    queue = qu.Queue(4, 12, 1.0, [qu.JobClass("job", 4.0, 1.0, qu.Linear(1.0))])
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
