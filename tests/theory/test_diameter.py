"""The diameter of the uniformized queue, against rationals and against its definition."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from exact import all_policies, decimals, rational_death_rates, rational_diameter
from generators import paper_queue, random_queue

import queueing_ucrl as qu


def queue_of(servers, capacity, service_rate, *arrival_rates):
    classes = [qu.JobClass(f"class {i}", rate, 1.0) for i, rate in enumerate(arrival_rates)]
    return qu.Queue(servers, capacity, service_rate, classes)


def log10(x: Fraction) -> float:
    with localcontext(decimals(50)):
        return float((Decimal(x.numerator) / Decimal(x.denominator)).log10())


def relative_error(value: float, exact: Fraction) -> float:
    return float(abs(Fraction(value) - exact) / exact)


def test_diameter_is_exact_on_random_queues():
    random = np.random.default_rng(13)
    for _ in range(200):
        queue = random_queue(random, largest_capacity=60)
        assert relative_error(qu.diameter(queue), rational_diameter(queue)) <= 1e-9


@pytest.mark.parametrize(
    ("queue", "decades"),
    [
        (queue_of(5, 50, 0.5, 0.3, 0.3), 28),
        (queue_of(1, 70, 1.0, 0.37), 30),
        (queue_of(20, 70, 0.3, 1.0, 0.7), 30),
        (queue_of(40, 40, 1.0, 2.0), 35),
        (queue_of(50, 100, 1.0, 2.5, 2.5), 80),
        (queue_of(10, 300, 1.0, 1.0), 290),
    ],
)
def test_diameter_is_exact_also_when_it_is_astronomical(queue, decades):
    exact = rational_diameter(queue)
    assert log10(exact) > decades
    assert relative_error(qu.diameter(queue), exact) <= 1e-9
    assert qu.log10_diameter(queue) == pytest.approx(log10(exact), rel=1e-12)


@pytest.mark.parametrize("queue", [queue_of(10, 320, 1.0, 1.0), queue_of(50, 1000, 1.0, 2.0)])
def test_a_diameter_beyond_the_doubles_is_told_by_its_logarithm(queue):
    exact = log10(rational_diameter(queue))
    assert exact > 309
    with pytest.raises(OverflowError, match=f"about 1e{exact:.0f}, too large for a double: use log10_diameter"):
        qu.diameter(queue)
    assert qu.log10_diameter(queue) == pytest.approx(exact, rel=1e-12)


def test_under_overload_the_way_down_is_the_longer_one():
    """S -> 0 with nobody admitted: U (1/mu + .. + 1/mu) for one server."""
    queue = queue_of(1, 6, 1.0, 50.0)
    assert qu.diameter(queue) == pytest.approx(51.0 * 6.0, rel=1e-14)


def test_diameter_of_one_place():
    """0 -> 1 takes U / Lambda steps, 1 -> 0 takes U / mu."""
    assert qu.diameter(queue_of(1, 1, 1.0, 4.0)) == pytest.approx(5.0, rel=1e-15)
    assert qu.diameter(queue_of(1, 1, 4.0, 1.0)) == pytest.approx(5.0, rel=1e-15)


def mean_steps(queue, admits, target):
    """Mean steps to `target` from every state: (I - P) t = 1 off the target; inf where it cannot be reached."""
    S = queue.capacity
    birth = np.append(np.array(admits, dtype=float) @ queue.arrival_rates, 0.0)
    U = queue.total_arrival_rate + queue.service_rates[-1]
    moves = np.zeros((S + 1, S + 1))
    for s in range(S + 1):
        if s < S:
            moves[s, s + 1] = birth[s] / U
        if s > 0:
            moves[s, s - 1] = queue.service_rates[s] / U
        moves[s, s] = 1.0 - moves[s].sum()
    others = [s for s in range(S + 1) if s != target]
    steps = np.full(S + 1, np.inf)
    steps[target] = 0.0
    reachable = [s for s in others if s > target or all(birth[s:target] > 0)]
    # from below the target the chain never passes it, and from above neither: solve on the states that get there
    if reachable:
        matrix = np.eye(len(reachable)) - moves[np.ix_(reachable, reachable)]
        steps[reachable] = np.linalg.solve(matrix, np.ones(len(reachable)))
    return steps


@pytest.mark.parametrize(
    "queue",
    [
        queue_of(1, 4, 1.0, 0.5),
        queue_of(2, 4, 1.0, 3.0),
        queue_of(3, 5, 0.5, 1.0),
        queue_of(1, 3, 1.0, 0.3, 0.9),
        queue_of(3, 3, 1.0, 2.0, 2.0),
        queue_of(4, 3, 1.0, 0.5),
    ],
)
def test_diameter_by_its_definition(queue):
    """max over pairs of states of the min over all policies of the mean number of steps from one to the other."""
    S, m = queue.capacity, len(queue.classes)
    quickest = np.full((S + 1, S + 1), np.inf)
    for admits, target in itertools.product(all_policies(S, m), range(S + 1)):
        quickest[:, target] = np.minimum(quickest[:, target], mean_steps(queue, admits, target))
    assert qu.diameter(queue) == pytest.approx(quickest.max(), rel=1e-12)


def direct_lower_bound(queue):
    """App. A before the three cases: (1 - Lambda/U) sum_{s<S} prod_{s<x<S} mu(x) / Lambda, in rationals."""
    rate = sum((Fraction(c.arrival_rate) for c in queue.classes), Fraction(0))
    S, mu = queue.capacity, rational_death_rates(queue)
    total = sum(math.prod((mu[x] / rate for x in range(s + 1, S)), start=Fraction(1)) for s in range(S))
    return mu[S] / (rate + mu[S]) * total


@pytest.mark.parametrize(
    "queue",
    [
        queue_of(1, 20, 1.0, 0.7),
        queue_of(1, 20, 1.0, 1.0),  # mu = Lambda: the quotient is its limit S
        queue_of(1, 1, 1.0, 0.3),
        queue_of(20, 20, 1.0, 3.0),
        queue_of(25, 20, 1.0, 3.0),
        queue_of(4, 20, 0.5, 2.0),  # c mu = Lambda: the quotient is its limit S - c
        queue_of(4, 20, 0.5, 1.0, 1.0),
        queue_of(4, 20, 0.5, 2.0 * (1 + 2**-40)),  # and near it
        queue_of(1, 20, 1.0, 1.0 - 2**-45),
        queue_of(5, 20, 0.3, 1.0, 1.0),
        queue_of(5, 200, 0.5, 0.6),
        queue_of(2, 3, 1.0, 9.0),
    ],
)
def test_lower_bound_equals_its_sum(queue):
    exact = direct_lower_bound(queue)
    assert relative_error(qu.diameter_lower_bound(queue), exact) <= 1e-12
    assert exact <= rational_diameter(queue)


def test_lower_bound_is_below_the_diameter_on_random_queues():
    random = np.random.default_rng(17)
    for _ in range(300):
        queue = random_queue(random, largest_capacity=60)
        assert qu.diameter_lower_bound(queue) <= qu.diameter(queue)
        assert relative_error(qu.diameter_lower_bound(queue), direct_lower_bound(queue)) <= 1e-11


def test_diameter_of_the_papers_queues():
    for capacity, service_rate in itertools.product((20, 50), (0.3, 0.4, 0.5)):
        queue = paper_queue(capacity, service_rate)
        assert relative_error(qu.diameter(queue), rational_diameter(queue)) <= 1e-13
