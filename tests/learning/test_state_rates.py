"""Estimates of rates by state against other formulas, and what they are good for: balking, a crowd that attracts."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from generators import seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

import queueing_ucrl as qu
from queueing_ucrl.learning.planners import StateSampling
from queueing_ucrl.learning.state_rates import StatePosterior, best_plausible_rates, rate_estimates, upper_rates

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


def copying(rates: np.ndarray, seen: int) -> np.ndarray:
    """Beliefs that are right in 0 .. seen; above, states are like the last that was seen."""
    believed = rates.copy()
    believed[seen + 1 :] = rates[seen]
    return believed


def nobody_above(rates: np.ndarray, seen: int) -> np.ndarray:
    """The gloomiest beliefs that are right in 0 .. seen."""
    believed = rates.copy()
    believed[seen + 1 :] = 0.0
    return believed


def at_rest(rates: Any, rewards: Any, service: Any, believed: Callable[[np.ndarray, int], np.ndarray]) -> float:
    """The gain of a learner who knows the rates where it has been, once it goes nowhere else; as a part of the best."""
    rates, rewards, service = np.array(rates, dtype=float), np.array(rewards, dtype=float), np.append(0.0, service)
    truth, seen = qu.AdmissionModel(rates, rewards, service), 0
    while True:
        policy = qu.solve(qu.AdmissionModel(believed(rates, seen), rewards, service)).policy
        there = qu.evaluate(truth, policy)
        top = min(int(np.flatnonzero(there.stationary > 0.0).max()), len(rates) - 1)
        if top <= seen:
            return there.gain / qu.solve(truth).gain
        seen = top


def test_a_crowd_is_never_met_by_who_believes_that_states_are_alike() -> None:
    """Who lets nobody into an empty house never learns that many would come to a full one."""
    rates, rewards = [[1.0, 0.0], [1.0, 9.0], [1.0, 9.0]], [[-1.0, 10.0]] * 3
    assert at_rest(rates, rewards, [1.0, 1.0, 1.0], copying) == 0.0
    assert at_rest([[1.0, 0.1]] * 3, rewards, [1.0, 1.0, 1.0], copying) == pytest.approx(1.0)  # no crowd: no harm


def test_rewards_that_grow_hide_what_is_beyond() -> None:
    assert at_rest([[1.0]] * 3, [[-1.0], [10.0], [10.0]], [1.0, 1.0, 1.0], nobody_above) == 0.0
    assert at_rest([[1.0]] * 3, [[10.0], [10.0], [-1.0]], [1.0, 1.0, 1.0], nobody_above) == pytest.approx(1.0)


def test_a_slow_state_hides_a_fast_one() -> None:
    assert at_rest([[10.0]] * 3, [[1.0]] * 3, [1.0, 0.1, 100.0], nobody_above) < 0.11
    assert at_rest([[10.0]] * 3, [[1.0]] * 3, [1.0, 1.0, 1.0], nobody_above) == pytest.approx(1.0)


def test_with_abandonment_rewards_that_drop_and_stay_flat_hide_what_is_beyond() -> None:
    """c = 1, mu = theta = 1, so mu(s) = s; r = 10, 4, 4, .. At rate 5, whoever believes that nobody comes to two jobs
    closes at one and earns 25/3; all who come let in earn 5 (10 - 6 (1 - p_0)), 20.2.
    """
    S = 40
    rates, rewards, deaths = [[5.0]] * S, [[10.0]] + [[4.0]] * (S - 1), np.arange(1.0, S + 1.0)
    expected = (25.0 / 3.0) / (20.0 + 30.0 * math.exp(-5.0))
    assert at_rest(rates, rewards, deaths, nobody_above) == pytest.approx(expected, rel=1e-9)
    assert at_rest(rates, rewards, np.ones(S), nobody_above) == pytest.approx(1.0)  # without abandonment no harm


@given(seeds)
@FEW
def test_gloomy_beliefs_do_no_harm_where_nothing_grows(seed: int) -> None:
    """The proposition with the worst beliefs: nobody comes where it has not been."""
    random = np.random.default_rng(seed)
    S, c, m = int(random.integers(1, 9)), int(random.integers(1, 5)), int(random.integers(1, 4))
    rates = np.sort(random.uniform(0.0, 2.0, (S, m)), axis=0)[::-1] + 0.01
    rewards = np.tile(random.uniform(-2.0, 10.0, m), (S, 1))
    rewards[0, 0] = rewards[:, 0] = abs(rewards[0, 0]) + 0.1
    for s in range(c, S):
        rewards[s] = rewards[s - 1] - random.uniform(0.0, 3.0, m)
    service = np.minimum(np.arange(1, S + 1), c) * 1.0
    assert at_rest(rates, rewards, service, nobody_above) == pytest.approx(1.0, rel=1e-9)


@given(seeds, st.sampled_from([2, 4, 7]))
@FEW
def test_isotonic_rates_are_the_likeliest_of_all_that_do_not_grow(seed: int, states: int) -> None:
    """Against a quadratic program: with weights t(s) the nearest to N(s) / t(s), which are the likeliest too."""
    random = np.random.default_rng(seed)
    n, t = random.poisson(3.0, states).astype(float), random.uniform(0.2, 3.0, states)
    found = rate_estimates(n[:, None], t, "isotonic")[:, 0]
    falls = {"type": "ineq", "fun": lambda x: x[:-1] - x[1:]}
    scale = float((n / t).max()) + 1.0
    solved = minimize(
        lambda x: float((t * (x - n / t) ** 2).sum()) / scale**2,
        np.full(states, n.sum() / t.sum()),
        constraints=[falls],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert np.all(np.diff(found) <= 0.0)
    np.testing.assert_allclose(found, solved.x, atol=1e-4 * scale)
    rivals = np.sort(random.uniform(0.0, scale, (200, states)), axis=1)[:, ::-1]
    own = float((t * (found - n / t) ** 2).sum())
    assert np.all(own <= (t * (rivals - n / t) ** 2).sum(axis=1) + 1e-12)


def merged_by_force(n: np.ndarray, t: np.ndarray, penalty: float) -> np.ndarray:
    """Isotonic blocks; the two neighbours that are likest become one while they are liker than the penalty."""
    rates = rate_estimates(n[:, None], t, "isotonic")[:, 0]
    blocks = [[s for s in range(len(t)) if rates[s] == rate] for rate in sorted(set(rates.tolist()), reverse=True)]

    def log_likelihood(block: list[int]) -> float:
        count, time = n[block].sum(), t[block].sum()
        return count * math.log(count / time) - count if count else 0.0

    def distance(k: int) -> float:
        apart = log_likelihood(blocks[k]) + log_likelihood(blocks[k + 1])
        return 2.0 * (apart - log_likelihood(blocks[k] + blocks[k + 1]))

    while len(blocks) > 1:
        least = min(range(len(blocks) - 1), key=distance)
        if distance(least) >= penalty:
            break
        blocks[least : least + 2] = [blocks[least] + blocks[least + 1]]
    found = np.empty(len(t))
    for block in blocks:
        found[block] = n[block].sum() / t[block].sum()
    return found


@given(seeds, st.sampled_from([3, 6, 12]), st.sampled_from(["merged", "merged-log"]))
@FEW
def test_merging_is_that_of_the_likest_neighbours_one_by_one(seed: int, states: int, how: Any) -> None:
    random = np.random.default_rng(seed)
    n, t = random.poisson(random.uniform(1.0, 60.0, states)).astype(float), random.uniform(0.2, 3.0, states)
    penalty = 3.0 if how == "merged" else 2.0 * math.log(max(2.0, n.sum()))
    np.testing.assert_allclose(rate_estimates(n[:, None], t, how)[:, 0], merged_by_force(n, t, penalty), rtol=1e-12)


def test_upper_rates_have_the_probability_that_they_promise() -> None:
    n, t = np.array([[0.0, 3.0], [7.0, 0.0], [0.0, 1.0]]), np.array([2.0, 0.5, 0.0])
    limits = upper_rates(n, t, 0.01, 0.25, "any")
    np.testing.assert_allclose(stats.poisson.cdf(n, limits * (t + 0.25)[:, None]), 0.01, rtol=1e-9)
    np.testing.assert_array_equal(
        upper_rates(n, t, 0.01, 0.25, "non-increasing"), np.minimum.accumulate(limits, axis=0)
    )


def test_draws_by_state_are_of_the_posterior() -> None:
    """One state, two classes: Kolmogorov-Smirnov against Gamma(N + 1/2, t + m / (2 mu_max)), error rate 1e-4."""
    classes = [qu.JobClass("a", 1.0, 2.0), qu.JobClass("b", 1.0, 1.0)]
    knowledge = qu.Knowledge.of(qu.Queue(1, 1, 0.5, classes))
    belief = StatePosterior(np.array([[3.5, 0.5], [0.5, 0.5]]), np.array([4.0, 1.0]))
    sample = StateSampling(knowledge, np.random.default_rng(1), "any")
    draws = np.array([sample(belief).model.arrival_rates[0] for _ in range(2000)])
    for i, shape in enumerate((3.5, 0.5)):
        assert stats.kstest(draws[:, i], stats.gamma(shape, scale=0.25).cdf).pvalue > 1e-4


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
    assert lost(queue, qu.CertaintyEquivalent(by_state="optimistic-any", **STATES), 1e5) < 0.01 * stuck[1]
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
