"""The constants in the bounds of UCRL2 and UCRL3 against first-step analysis of the whole chain, and the bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from generators import paper_queue, random_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.model.tabular_bounds import TabularBound, local_diameters, tick_laws


def dense_laws(queue: qu.Queue) -> np.ndarray:
    """p(x | s, a) of the uniformized chain, class by class."""
    S, m = queue.capacity, len(queue.classes)
    U = Knowledge.of(queue, ticks=True).tick_rate
    laws = np.zeros((S + 1, m + 1, S + 1))
    for s, a in np.ndindex(S + 1, m + 1):
        if s < S:
            laws[s, a, s + 1] = sum(queue.arrival_rates[i] for i in queue.priorities[s, :a]) / U
        if s > 0:
            laws[s, a, s - 1] = queue.service_rates[s] / U
        laws[s, a, s] = 1.0 - laws[s, a].sum()
    return laws


def fastest_journeys(laws: np.ndarray) -> np.ndarray:
    """min over policies of E[T(s -> x)] in ticks, by trying all policies that matter: policy iteration for each x."""
    X, A, _ = laws.shape
    times = np.zeros((X, X))
    for x in range(X):
        others = [s for s in range(X) if s != x]
        # upward towards x everybody in, downward nobody: proper, so that policy iteration can begin from it
        actions = np.array([A - 1 if s < x else 0 for s in range(X)])
        while True:
            P = laws[np.arange(X), actions][np.ix_(others, others)]
            h = np.zeros(X)
            h[others] = np.linalg.solve(np.eye(X - 1) - P, np.ones(X - 1))
            better = (laws @ h).argmin(axis=1)
            keep = np.take_along_axis(laws @ h, actions[:, None], 1)[:, 0] <= (laws @ h).min(axis=1) * (1 + 1e-12)
            if np.all(keep[others]):
                break
            actions = np.where(keep, actions, better)
        times[:, x] = h
    return times


def small_queues() -> list[qu.Queue]:
    random = np.random.default_rng(11)
    return [paper_queue(6, 0.4), *(random_queue(random, largest_capacity=6) for _ in range(25))]


@pytest.mark.parametrize("queue", small_queues())
def test_constants_by_first_step_analysis(queue: qu.Queue) -> None:
    laws = dense_laws(queue)
    times = fastest_journeys(laws)
    bound = TabularBound.of(queue)
    assert bound.diameter == pytest.approx(times.max(), rel=1e-7)
    D = local_diameters(queue)
    for s in range(queue.capacity + 1):
        reached = np.flatnonzero((laws[s] > 1e-15).any(axis=0))
        assert D[s] == pytest.approx(max(times[a, b] for a, b in itertools.product(reached, reached)), rel=1e-7)
    clean = np.where(laws < 1e-15, 0.0, np.minimum(laws, 1.0))
    L = np.sqrt(clean * (1 - clean)).sum(axis=2) ** 2
    assert bound.spread == pytest.approx(float((D[:, None] ** 2 * L).sum()), rel=1e-6)
    assert bound.largest_support == (clean > 0).sum(axis=2).max()


@pytest.mark.parametrize("queue", small_queues())
def test_tick_laws(queue: qu.Queue) -> None:
    dense = dense_laws(queue)
    laws = tick_laws(queue)
    assert laws.sum(axis=2) == pytest.approx(np.ones(laws.shape[:2]), rel=1e-12)
    for s in range(queue.capacity + 1):
        assert laws[s, :, 1] == pytest.approx(dense[s, :, s], abs=1e-12)
        assert laws[s, :, 2] == pytest.approx(dense[s, :, s + 1] if s < queue.capacity else 0.0, abs=1e-15)
        assert laws[s, :, 0] == pytest.approx(dense[s, :, s - 1] if s > 0 else 0.0, abs=1e-15)


def test_nothing_stays_where_all_servers_work_and_all_are_admitted() -> None:
    laws = tick_laws(paper_queue())
    assert np.all(laws[5:-1, -1, 1] == 0.0)
    assert np.all(laws[-1, :, 1] > 0)


def test_a_faster_clock_stretches_the_diameters() -> None:
    queue = paper_queue()
    U = queue.total_arrival_rate + queue.max_service_rate
    own, fast = TabularBound.of(queue), TabularBound.of(queue, tick_rate=2 * U)
    assert fast.diameter == pytest.approx(2 * own.diameter)
    assert local_diameters(queue, 2 * U) == pytest.approx(2 * local_diameters(queue))
    assert tick_laws(queue, 2 * U)[:, :, [0, 2]] == pytest.approx(tick_laws(queue)[:, :, [0, 2]] / 2)
    assert tick_laws(queue, 2 * U).sum(axis=2) == pytest.approx(np.ones((21, 3)))
    with pytest.raises(ValueError, match="tick_rate"):
        TabularBound.of(queue, tick_rate=0.9 * U)


def test_the_bounds_at_a_point_of_the_papers_first_queue() -> None:
    """Each published formula written out once more, at t = 1e5."""
    queue = paper_queue()
    bound = TabularBound.of(queue)
    X, A, D, K, delta, R = 21, 3, qu.diameter(queue), 3, 0.05, 20.0
    U, T = 3.5, 3.5e5
    assert (bound.states, bound.actions, bound.largest_support) == (X, A, K)
    assert bound.tick_rate == pytest.approx(U)
    assert bound.ucrl2(1e5) == pytest.approx(R * 34 * D * X * math.sqrt(A * T * math.log(T / delta)))
    union = math.log(6 * X**2 * A * math.sqrt(T + 1) / delta)
    support = 60 * D * K * X ** (2 / 3) * A ** (2 / 3) * T ** (1 / 3)
    c = 5 * math.sqrt(bound.spread) + 10 * math.sqrt(X * A) + 2 * D
    assert bound.ucrl3_leading(1e5) == pytest.approx(R * (c * math.sqrt(T * union) + support))
    eta = 1.12
    ell = eta * math.log(math.log(T) * math.log(eta * T) / (math.log(eta) ** 2 * delta / (6 * X**2 * A)))
    r2 = math.sqrt(2)
    total = (r2 + 1) * (math.sqrt(4 * union) + 2) * math.sqrt(X * A * T)
    total += (D * r2 + math.sqrt(0.5)) * math.sqrt((T + 1) * math.log(math.sqrt(T + 1) / delta))
    total += math.sqrt(2 * ell) * (r2 + 1) * math.sqrt(T * bound.spread)
    total += 4 * D * X * ell * (2 * X * A * math.log(T / (X * A)) + X * A) + support
    total += D * X * A * math.log2(8 * T / (X * A)) + 20 * D * K * X * A
    assert bound.ucrl3(1e5) == pytest.approx(R * total)


def test_the_bounds_grow_with_time_and_take_arrays() -> None:
    bound = TabularBound.of(paper_queue())
    times = np.geomspace(100.0, 1e6, 20)
    for curve in (bound.ucrl2(times), bound.ucrl3_leading(times), bound.ucrl3(times)):
        assert curve.shape == times.shape
        assert np.all(np.diff(curve) > 0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="delta"):
        TabularBound.of(paper_queue(), delta=1.5)
    with pytest.raises(ValueError, match="from tick X A = 63 on"):
        TabularBound.of(paper_queue()).ucrl2(1.0)


def test_a_diameter_beyond_a_double_is_an_error_that_says_so() -> None:
    queue = qu.Queue(200, 200, 10.0, [qu.JobClass("rare", 0.01, 1.0)])
    with pytest.raises(OverflowError, match="log10_diameter"):
        TabularBound.of(queue)
