"""General-purpose learners that are told some of the queue's structure: what is told is true, and is used rightly."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_programs import linprog
from tabular_world import TickWorld, promises, small_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Controller, Knowledge
from queueing_ucrl.learning.tabular import KlUcrl, Psrl, Ucrl2, Ucrl2B
from queueing_ucrl.learning.tabular.evi import extended_value_iteration
from queueing_ucrl.learning.tabular.kl_ucrl import KlBalls, OutcomeKlBalls, transition_constant
from queueing_ucrl.learning.tabular.psrl import OutcomePoints, draw_outcome_laws
from queueing_ucrl.learning.tabular.session import TabularSession
from queueing_ucrl.learning.tabular.structure import DOWN, STAY, UP, OutcomeCounts, Structure, outcomes_of
from queueing_ucrl.learning.tabular.ucrl2 import OutcomeL1Balls, outcome_radius
from queueing_ucrl.learning.tabular.ucrl2b import OutcomeBoxes, boxes, logarithm

OPTIMISTIC: list[Any] = [Ucrl2, Ucrl2B, KlUcrl]
LEARNERS: list[Any] = [*OPTIMISTIC, Psrl]
TOLD: tuple[Structure, ...] = get_args(Structure)[1:]


def name(learner: type[Controller]) -> str:
    return learner.name


def priorities(queue: qu.Queue) -> np.ndarray:
    return np.argsort(-queue.rewards, axis=1, kind="stable")


def true_laws(queue: qu.Queue, structure: Structure) -> tuple[Any, np.ndarray]:
    """The outcomes and their true probabilities, given no departure where departures are known."""
    knowledge = Knowledge.of(queue, ticks=True)
    order = priorities(queue)
    outcomes = outcomes_of(knowledge, order, structure)
    U = knowledge.tick_rate
    laws = np.zeros(outcomes.kind.shape)
    for s, a in np.ndindex(*outcomes.size.shape):
        let_in = order[s, :a] if s < queue.capacity else order[:0, 0]
        for k in range(outcomes.size[s, a]):
            kind = outcomes.kind[s, a, k]
            if kind == DOWN:
                laws[s, a, k] = queue.service_rates[s] / U
            elif structure == "support" and kind == UP:
                laws[s, a, k] = queue.arrival_rates[let_in].sum() / U
            elif kind >= UP:
                laws[s, a, k] = queue.arrival_rates[kind - UP] / U
        laws[s, a] /= 1.0 - outcomes.departure[s]
        laws[s, a, 0] = 1.0 - laws[s, a, 1:].sum()
    return outcomes, laws


@st.composite
def queues(draw: st.DrawFn) -> qu.Queue:
    classes = [
        qu.JobClass(
            f"class {i}",
            draw(st.floats(0.1, 3.0)),
            draw(st.floats(1.0, 20.0)),
            qu.Linear(draw(st.floats(0.0, 1.0))),
        )
        for i in range(draw(st.integers(1, 4)))
    ]
    servers = draw(st.integers(1, 4))
    patience = draw(st.none() | st.floats(0.05, 2.0).map(lambda rate: qu.Exponential(rate=rate)))
    return qu.Queue(servers, servers + draw(st.integers(0, 5)), draw(st.floats(0.2, 3.0)), classes, patience=patience)


@given(queues(), st.sampled_from(TOLD))
@settings(max_examples=60, deadline=None)
def test_with_the_true_laws_the_best_of_the_outcomes_is_the_best_of_the_queue(
    queue: qu.Queue, structure: Structure
) -> None:
    """The gain of the process of outcomes is that of the queue, a tick and in R_max: it is the same process."""
    outcomes, laws = true_laws(queue, structure)
    shape = outcomes.size.shape
    rewards = np.zeros(shape)
    knowledge = Knowledge.of(queue, ticks=True)
    if structure == "support":
        for s, a in np.ndindex(queue.capacity, shape[1]):
            let_in = priorities(queue)[s, :a]
            rewards[s, a] = queue.arrival_rates[let_in] @ queue.rewards[s, let_in] / knowledge.tick_rate
        rewards /= queue.max_reward
    rng = np.random.default_rng(0)
    found = extended_value_iteration(OutcomePoints(outcomes, laws), rewards, 1e-9, np.zeros(shape, dtype=np.int64), rng)
    best = qu.solve(queue).gain / queue.max_reward / knowledge.tick_rate
    assert found.gain == pytest.approx(best, abs=1e-8)


def test_the_outcomes_of_a_small_queue() -> None:
    queue = small_queue()
    knowledge = Knowledge.of(queue, ticks=True)
    support = outcomes_of(knowledge, priorities(queue), "support")
    assert support.size.tolist() == [[2, 2, 2], [3, 3, 3], [2, 2, 2]]  # it does not know that action 0 lets nobody in
    assert support.kind[1, 1].tolist() == [STAY, DOWN, UP]
    assert support.target[1, 1].tolist() == [1, 0, 2]
    rewards = outcomes_of(knowledge, priorities(queue), "rewards")
    assert rewards.size.tolist() == [[1, 2, 3], [2, 3, 4], [2, 2, 2]]
    assert rewards.kind[1, 2].tolist() == [STAY, DOWN, UP, UP + 1]
    assert rewards.paid[1, 2].tolist() == pytest.approx([0.0, 0.0, *(queue.rewards[1] / queue.max_reward)])
    departures = outcomes_of(knowledge, priorities(queue), "departures")
    assert departures.size.tolist() == [[1, 2, 3], [1, 2, 3], [1, 1, 1]]
    assert departures.departure.tolist() == pytest.approx([0.0, 1.0 / 3.5, 1.0 / 3.5])
    assert not support.departure.any()
    assert not rewards.departure.any()


@pytest.mark.parametrize("structure", TOLD)
def test_every_tick_is_counted_as_one_outcome(structure: Structure) -> None:
    world = TickWorld(paper_queue(6, 0.4), Ucrl2B(structure=structure), 3)
    world.run(30_000)
    session = world.session
    assert isinstance(session, TabularSession)
    assert session.told is not None
    counted, visits = session.told.counts.sum(axis=2), session.seen.visits
    downs = np.array([[session.seen.transitions[s, a, s - 1] if s else 0 for a in range(3)] for s in range(7)])
    assert np.array_equal(counted, visits - downs if structure == "departures" else visits)
    assert np.all(session.told.counts[~session.told.possible] == 0)
    if structure != "support":
        paid = (session.told.counts * session.told.outcomes.paid).sum(axis=2)
        assert paid == pytest.approx(session.seen.reward_sums)


# --- the inner maxima ------------------------------------------------------------------------------------------------


def told_counts(seed: int, structure: Structure) -> tuple[OutcomeCounts, np.ndarray, np.random.Generator]:
    """A queue of five states, counts of a few ticks a pair, values u."""
    rng = np.random.default_rng(seed)
    queue = paper_queue(4, 0.4)
    told = OutcomeCounts(Knowledge.of(queue, ticks=True), priorities(queue), structure)
    outcomes, laws = true_laws(queue, structure)
    for s, a in np.ndindex(*outcomes.size.shape):
        told.counts[s, a] = rng.multinomial(rng.integers(0, 30), laws[s, a])
    return told, rng.random(5) * 10.0, rng


def table_of(sets: Any, u: np.ndarray) -> np.ndarray:
    """max_q of each pair, as extended value iteration finds it: one sweep from u, without rewards."""
    from queueing_ucrl.learning.tabular.evi import _sweeps, rank

    order, table, values = np.arange(u.size), np.empty((u.size, 3)), u.copy()
    rank(values, order)
    _sweeps(sets, np.zeros((u.size, 3)), values, order, table, math.inf, 1)
    return table


@pytest.mark.parametrize("structure", TOLD)
@pytest.mark.parametrize("seed", range(5))
def test_l1_balls_and_boxes_of_outcomes(seed: int, structure: Structure) -> None:
    told, u, _rng = told_counts(seed, structure)
    q, outcomes = told.frequencies, told.outcomes
    radius = outcome_radius(told, 100, 0.05) / 8  # small enough to bind
    low, high = boxes(q, told.trials * 200, logarithm(told.trials, 5, 3, 0.05))
    high[outcomes.size == 1] = 1.0
    seen = told.counts.sum(axis=2) > 0
    high[~seen] = 1.0
    by_ball = table_of(OutcomeL1Balls(outcomes, q, np.where(seen, radius, 4.0)), u)
    by_box = table_of(OutcomeBoxes(outcomes, low, high), u)
    for s, a in np.ndindex(5, 3):
        K = outcomes.size[s, a]
        worth = outcomes.paid[s, a, :K] + u[outcomes.target[s, a, :K]]
        eye, one = np.eye(K), np.ones(K)
        ball = linprog(
            np.append(-worth, np.zeros(K)),
            A_ub=np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.append(np.zeros(K), one)]),
            b_ub=np.concatenate([q[s, a, :K], -q[s, a, :K], [radius[s, a] if seen[s, a] else 4.0]]),
            A_eq=[np.append(one, np.zeros(K))],
            b_eq=[1.0],
        )
        d = outcomes.departure[s]
        left = d * u[s - 1] if d else 0.0
        assert by_ball[s, a] == pytest.approx(left - (1.0 - d) * ball.fun, abs=1e-8)
        box = linprog(-worth, A_eq=[one], b_eq=[1.0], bounds=list(zip(low[s, a, :K], high[s, a, :K], strict=True)))
        assert by_box[s, a] == pytest.approx(left - (1.0 - d) * box.fun, abs=1e-8)


@pytest.mark.parametrize("structure", TOLD)
@pytest.mark.parametrize("seed", range(3))
def test_kl_balls_of_outcomes(seed: int, structure: Structure) -> None:
    """No law of the ball does better: 4000 laws near the edge for each pair; and some do nearly as well."""
    told, u, rng = told_counts(seed, structure)
    q, outcomes = told.frequencies, told.outcomes
    budget = np.full(outcomes.size.shape, 0.05)
    support, size = np.zeros(q.shape, dtype=np.int64), (told.counts > 0).sum(axis=2)
    for s, a in np.ndindex(*size.shape):
        support[s, a, : size[s, a]] = np.flatnonzero(told.counts[s, a])
    balls = KlBalls(q, budget, support, size, np.full(size.shape, np.nan))
    table = table_of(OutcomeKlBalls(outcomes, balls), u)
    for s, a in np.ndindex(5, 3):
        K, centre = outcomes.size[s, a], q[s, a, : outcomes.size[s, a]]
        worth = outcomes.paid[s, a, :K] + u[outcomes.target[s, a, :K]]
        if told.counts[s, a].sum() == 0:
            best = worth.max()
        else:
            tried = np.vstack([centre, rng.dirichlet(np.maximum(centre, 0.02) * 40.0, 4000)])
            on = centre > 0
            inside = (centre[on] * np.log(centre[on] / np.maximum(tried[:, on], 1e-300))).sum(axis=1) <= 0.05
            best = (tried[inside] @ worth).max()
        d = outcomes.departure[s]
        value = (d * u[s - 1] if d else 0.0) + (1.0 - d) * best
        assert table[s, a] >= value - 1e-9
        assert table[s, a] <= value + 0.15 * (worth.max() - worth.min()) + 1e-9


def test_draws_are_from_the_posterior_of_the_outcomes() -> None:
    """Means of 4000 draws within 5 standard errors; what cannot happen is never drawn."""
    told, _u, rng = told_counts(1, "rewards")
    draws = np.array([draw_outcome_laws(told, None, rng).laws for _ in range(4000)])
    assert np.all(draws[:, ~told.possible] == 0.0)
    weights = np.where(told.possible, told.counts + 1.0 / told.outcomes.size[:, :, None], 0.0)
    total = weights.sum(axis=2, keepdims=True)
    mean = weights / total
    error = np.sqrt(mean * (1.0 - mean) / (total + 1.0) / 4000)
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= 5.0 * error + 1e-12)


# --- coverage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 50, 1000])
@pytest.mark.parametrize("law", [(0.5, 0.5), (0.9, 0.05, 0.05), (0.25, 0.25, 0.25, 0.25), (0.97, 0.01, 0.02)])
def test_sets_of_outcomes_cover(law: tuple[float, ...], n: int) -> None:
    """A set misses the true law with probability delta / (X A) at most; here X A = 1 and t = n, delta = 1/2.

    4000 trials: so many misses and more have probability below 1e-9 if the promise holds.
    """
    K, delta, trials = len(law), 0.5, 4000
    p = np.random.default_rng(5).multinomial(n, law, size=trials) / n
    most = trials * delta + 6.0 * math.sqrt(trials * delta * (1.0 - delta))
    ball = math.sqrt(2.0 * (K * math.log(2.0) + math.log(20.0 / delta) + 7.0 * math.log(n)) / n)
    assert (np.abs(p - law).sum(axis=1) > ball).sum() <= most
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(p > 0, p * np.log(p / law), 0.0).sum(axis=1)
    assert (divergence > transition_constant(K, 1, 1, n, delta) / n).sum() <= most


# --- at work ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", TOLD)
@pytest.mark.parametrize("learner", OPTIMISTIC, ids=name)
def test_optimists_promise_more_than_can_be_had(learner: Any, structure: Structure) -> None:
    made = promises(paper_queue(6, 0.4), learner(structure=structure), 50_000)
    assert len(made) > 50
    assert min(made) > 0


@pytest.mark.parametrize("structure", TOLD)
@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_finds_the_best_policy_of_a_small_queue(learner: Any, structure: Structure) -> None:
    """In force after 300,000 ticks on four paths of five at least (PSRL is unlucky on one in ten, the others never)."""
    queue = small_queue()
    best = qu.solve(queue).policy
    runs = [TickWorld(queue, learner(structure=structure), seed).run(300_000).policy == best for seed in range(5)]
    assert sum(runs) >= (3 if learner is Psrl else 5)


@pytest.mark.parametrize("structure", TOLD)
@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_both_engines_give_the_same_run(learner: Any, structure: Structure) -> None:
    runs = [
        qu.simulate(paper_queue(), learner(structure=structure), horizon=100.0, seed=9, engine=engine, log=True)
        for engine in ("simpy", "compiled")
    ]
    assert runs[0].events.equals(runs[1].events)
    assert len(runs[0].episodes) == len(runs[1].episodes) > 10


def test_a_structure_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="structure must be one of 'none', 'support', 'rewards', 'departures'"):
        Ucrl2(structure="all")  # type: ignore[arg-type]
