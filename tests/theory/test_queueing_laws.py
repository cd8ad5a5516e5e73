"""Long-run measures against the textbook: Erlang B, Erlang C, M/M/c/K, Little."""

import math
from fractions import Fraction

import numpy as np
import pytest
from generators import paper_queue, random_policy, random_queue

import queueing_ucrl as qu

EXACT = 1e-12


def one_class(servers, capacity, arrival_rate, service_rate=1.0):
    queue = qu.Queue(servers, capacity, service_rate, [qu.JobClass("a", arrival_rate, 1.0)])
    return queue, qu.Policy.admit_all(capacity, 1)


def erlang_b(servers, offered):
    """By its recursion, in rationals: B(0) = 1, 1/B(c) = 1 + (c / a) / B(c - 1)."""
    inverse = Fraction(1)
    for c in range(1, servers + 1):
        inverse = 1 + c / offered * inverse
    return 1 / inverse


@pytest.mark.parametrize("offered", [0.05, 0.5, 5.0, 50.0, 500.0])
@pytest.mark.parametrize("servers", [1, 2, 10, 100])
def test_blocking_of_a_loss_system_is_erlang_b(servers, offered):
    seen = qu.performance(*one_class(servers, servers, offered))
    blocked = float(erlang_b(servers, Fraction(offered)))
    assert seen.blocking == pytest.approx(blocked, rel=EXACT, abs=1e-140)
    assert seen.throughput == pytest.approx(offered * (1 - blocked), rel=EXACT)
    assert seen.utilisation == pytest.approx(offered * (1 - blocked) / servers, rel=EXACT)
    assert seen.mean_waiting == 0.0
    assert seen.mean_wait.tolist() == [0.0]


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("servers", [1, 2, 10, 50])
def test_a_long_queue_approaches_erlang_c(servers, load):
    """With room without end: P(wait) = C = B / (1 - load (1 - B)), W = C / (c mu - lambda)."""
    offered = Fraction(load) * servers
    lost = erlang_b(servers, offered)
    waiting = lost / (1 - Fraction(load) * (1 - lost))
    seen = qu.performance(*one_class(servers, servers + 2000, float(offered)))
    rest = servers - float(offered)
    assert seen.mean_wait[0] == pytest.approx(float(waiting) / rest, rel=1e-11)
    assert seen.mean_waiting == pytest.approx(float(waiting) * float(offered) / rest, rel=1e-11)
    assert seen.blocking < 1e-80


@pytest.mark.parametrize(
    ("servers", "capacity", "rate"), [(1, 1, 0.5), (1, 30, 0.9), (1, 30, 1.0), (1, 30, 3.0), (4, 9, 6.0), (7, 40, 6.5)]
)
def test_a_finite_queue_follows_its_textbook_sums(servers, capacity, rate):
    """M/M/c/K in rationals: p_n ~ a^n / n! up to c, then times (a / c) a step."""
    offered = Fraction(rate)
    weights = [
        offered**n / math.factorial(n)
        if n <= servers
        else offered**n / (math.factorial(servers) * servers ** (n - servers))
        for n in range(capacity + 1)
    ]
    p = [w / sum(weights) for w in weights]
    waiting = sum(max(0, n - servers) * p[n] for n in range(capacity + 1))
    queue, policy = one_class(servers, capacity, rate)
    seen = qu.performance(queue, policy)
    np.testing.assert_allclose(qu.evaluate(queue, policy).stationary, [float(x) for x in p], rtol=EXACT)
    assert seen.blocking == pytest.approx(float(p[-1]), rel=EXACT)
    assert seen.mean_in_system == pytest.approx(float(sum(n * p[n] for n in range(capacity + 1))), rel=EXACT)
    assert seen.mean_waiting == pytest.approx(float(waiting), rel=EXACT)
    assert seen.mean_wait[0] == pytest.approx(float(waiting / (offered * (1 - p[-1]))), rel=EXACT)
    assert seen.gain == pytest.approx(float(offered * (1 - p[-1])), rel=EXACT)


def test_erlang_c_needs_no_stability_to_be_finite_here():
    """Load exactly 1 on one server: the law is uniform on 0 .. S."""
    seen = qu.performance(*one_class(1, 99, 1.0))
    assert seen.blocking == pytest.approx(0.01, rel=EXACT)
    assert seen.mean_in_system == pytest.approx(49.5, rel=EXACT)


def test_littles_law_and_conservation_on_random_queues_and_policies():
    random = np.random.default_rng(21)
    for _ in range(200):
        queue = random_queue(random, largest_capacity=60)
        policy = random_policy(random, queue.capacity, len(queue.classes), share=random.choice([0.3, 0.7, 1.0]))
        seen = qu.performance(queue, policy)
        admitted = queue.arrival_rates * seen.admission
        waits = np.where(admitted > 0, seen.mean_wait, 0.0)
        # Little, for the waiting room and for the servers
        assert seen.mean_waiting == pytest.approx(float(admitted @ waits), rel=1e-11, abs=1e-14)
        busy = seen.utilisation * queue.servers
        assert busy == pytest.approx(seen.throughput / queue.service_rate, rel=1e-11, abs=1e-14)
        assert seen.mean_in_system == pytest.approx(busy + seen.mean_waiting, rel=1e-11, abs=1e-14)
        # who comes is let in, turned away or finds no room
        np.testing.assert_allclose(seen.admission + seen.rejection + seen.blocking, 1.0, rtol=1e-12)
        # who is let in is served or gives up, at rate theta while waiting
        assert seen.throughput + seen.abandonments == pytest.approx(float(admitted.sum()), rel=1e-12)
        assert seen.abandonments == pytest.approx(queue.patience_rate * seen.mean_waiting, rel=1e-11, abs=1e-14)
        assert seen.throughput == pytest.approx(float(queue.arrival_rates @ seen.served), rel=1e-12)
        assert seen.gain == pytest.approx(qu.evaluate(queue, policy).gain, rel=1e-15)


def test_measures_of_a_trunk_reservation_by_hand():
    """c = 1, S = 2, mu = 1, lambda = (1, 1), the second class below 1 only: weights 1, 2, 2."""
    queue = qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 10.0), qu.JobClass("b", 1.0, 4.0)])
    seen = qu.performance(queue, qu.Policy.trunk_reservation([2, 1], 2))
    assert seen.blocking == pytest.approx(0.4, rel=EXACT)
    assert seen.rejection.tolist() == pytest.approx([0.0, 0.4], rel=EXACT)
    assert seen.admission.tolist() == pytest.approx([0.6, 0.2], rel=EXACT)
    assert seen.mean_wait.tolist() == pytest.approx([2 / 3, 0.0], rel=EXACT)  # a third of a's jobs find the server free
    assert seen.throughput == pytest.approx(0.8, rel=EXACT)
    assert seen.utilisation == pytest.approx(0.8, rel=EXACT)
    assert seen.mean_in_system == pytest.approx(1.2, rel=EXACT)
    assert seen.mean_waiting == pytest.approx(0.4, rel=EXACT)
    assert seen.gain == pytest.approx(0.2 * 14 + 0.4 * 10, rel=EXACT)


def test_a_class_that_never_gets_in_has_no_mean_wait():
    seen = qu.performance(paper_queue(), qu.Policy.trunk_reservation([20, 0], 20))
    assert math.isnan(seen.mean_wait[1])
    assert math.isfinite(seen.mean_wait[0])
    assert seen.admission[1] == 0.0


def test_more_servers_than_places_count_as_idle():
    """c = 4 servers, 2 places: at most half of the servers can be busy."""
    seen = qu.performance(*one_class(4, 2, 1e9))
    assert seen.utilisation == pytest.approx(0.5, rel=1e-8)
