"""Estimates of rates by state against other formulas, and what they are good for: balking, a crowd that attracts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from generators import seeds
from hypothesis import given, settings

import queueing_ucrl as qu
from queueing_ucrl.learning.state_rates import best_plausible_rates, rate_estimates

FEW = settings(max_examples=40, deadline=None)
STATES = {"arrivals": "state-dependent"}


@given(seeds)
@FEW
def test_isotonic_rates_are_those_of_the_min_max_formula(seed: int) -> None:
    """min over a <= s of max over b >= s of N(a..b) / t(a..b)."""
    random = np.random.default_rng(seed)
    n = random.poisson(4.0, (7, 1)).astype(float)
    t = random.uniform(0.5, 3.0, 7)
    found = rate_estimates(n, t, "isotonic")[:, 0]
    for s in range(7):
        blocks = [[n[a : b + 1, 0].sum() / t[a : b + 1].sum() for b in range(s, 7)] for a in range(s + 1)]
        assert found[s] == pytest.approx(min(map(max, blocks)), rel=1e-12)


@given(seeds)
@FEW
def test_no_two_merged_neighbours_could_be_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, t = random.poisson(30.0, (9, 1)).astype(float), random.uniform(0.5, 3.0, 9)
    rates = rate_estimates(n, t, "merged")[:, 0]
    assert np.all(np.diff(rates) <= 0.0)
    edges = [0, *(np.flatnonzero(np.diff(rates)) + 1).tolist(), 9]
    parts = [(n[a:b, 0].sum(), t[a:b].sum()) for a, b in pairwise(edges)]
    for (n1, e1), (n2, e2) in pairwise(parts):
        pooled = (n1 + n2) / (e1 + e2)
        ratio = 2.0 * sum(k * math.log(k / e / pooled) for k, e in ((n1, e1), (n2, e2)) if k)
        assert ratio >= 3.0 * (1.0 - 1e-9)


def test_states_never_visited_are_like_the_last_below() -> None:
    n, t = np.array([[0.0], [4.0], [0.0], [1.0], [0.0]]), np.array([0.0, 2.0, 0.0, 1.0, 0.0])
    assert rate_estimates(n, t, "plain")[:, 0].tolist() == [2.0, 2.0, 2.0, 1.0, 1.0]
    assert np.isnan(rate_estimates(np.zeros((3, 1)), np.zeros(3), "merged")).all()


def test_a_limited_total_goes_to_who_pays_best() -> None:
    limits = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert best_plausible_rates(limits, np.array([[0, 1], [1, 0]]), 4.0).tolist() == [[1.0, 3.0], [0.0, 4.0]]


@given(seeds)
@FEW
def test_what_is_best_for_beliefs_that_are_right_where_it_looks_is_best(seed: int) -> None:
    """Rewards and rates that do not grow with s, mu(s) = min(s, c) mu: beliefs about states never seen do no harm."""
    random = np.random.default_rng(seed)
    S, c, m = int(random.integers(2, 10)), int(random.integers(1, 4)), int(random.integers(1, 4))
    rates = np.sort(random.uniform(0.0, 2.0, (S, m)), axis=0)[::-1].copy() + 0.01
    rewards = np.tile(random.uniform(1.0, 10.0, m), (S, 1))
    for s in range(c, S):
        rewards[s] = rewards[s - 1] - random.uniform(0.0, 2.0, m)
    service = np.minimum(np.arange(S + 1), c) * 1.0
    best = qu.solve(qu.AdmissionModel(rates, rewards, service)).gain
    seen = 0  # states 0 .. seen are believed as they are
    for _ in range(S + 1):
        believed = rates.copy()
        for s in range(seen + 1, S):
            believed[s] = believed[s - 1] * random.uniform(0.0, 1.0, m)
        policy = qu.solve(qu.AdmissionModel(believed, rewards, service)).policy
        closed = np.flatnonzero(~policy.admits.any(axis=1))
        top = int(closed[0]) if closed.size else S - 1
        if top <= seen:
            gain = qu.evaluate(qu.AdmissionModel(rates, rewards, service), policy).gain
            assert gain == pytest.approx(best, rel=1e-9)
            return
        seen = top
    raise AssertionError("it never came to rest")


def crowd() -> qu.Queue:
    """Guests come only where four or more are; who would have to be let in first does not pay for himself."""
    guest = qu.JobClass("guest", arrival_rates=[0.0] * 4 + [6.0], reward=10.0, holding_cost=qu.Linear(2.0))
    return qu.Queue(3, 10, 1.0, [guest, qu.JobClass("passer-by", 3.0, 1.0, qu.Linear(4.0))])


def lost(queue: qu.Queue, controller: qu.Controller, horizon: float) -> float:
    return float(qu.simulate(queue, controller, horizon=horizon, seed=1).regret("gap")["regret"].iloc[-1])


def test_a_crowd_that_attracts_must_be_tried() -> None:
    """Where rates grow with s, certainty equivalence loses for ever; a posterior with a long tail does not."""
    queue = crowd()
    stuck = [lost(queue, qu.CertaintyEquivalent(by_state="plain", **STATES), t) for t in (1e4, 1e5)]
    assert stuck[1] > 9.0 * stuck[0]
    assert lost(queue, qu.Thompson(by_state="any", **STATES), 1e5) < 0.01 * stuck[1]
    assert lost(queue, qu.UcrlAcStates((0.0, 9.0), by_state="any"), 1e5) < 0.02 * stuck[1]


@pytest.mark.filterwarnings("ignore::queueing_ucrl.simulation.simulate.GuaranteeWarning")
def test_pooled_rates_are_wrong_for_ever_and_merged_ones_are_not() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    pooled = [lost(queue, qu.CertaintyEquivalent(), t) for t in (2e4, 1e5)]
    assert pooled[1] > 4.5 * pooled[0]
    assert lost(queue, qu.CertaintyEquivalent(**STATES), 1e5) < 0.01 * pooled[1]


def test_an_episode_of_ucrl_ac_states_ends_when_visits_have_doubled() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    visits = np.zeros(21, dtype=np.int64)

    def check(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None and tally.ticks is not None:
            before = np.maximum(1, visits)
            assert np.all(tally.ticks.visits <= before)
            assert np.any(tally.ticks.visits == before)
            visits[:] += tally.ticks.visits

    run = qu.simulate(queue, qu.UcrlAcStates((0.0, 4.0)), horizon=2000.0, seed=2, on_review=check)
    assert len(run.episodes) > 20
    assert run.episodes["truth_inside"].all()
