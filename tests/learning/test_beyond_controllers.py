"""Controllers beyond the paper: optimism over exact intervals, posterior draws, certainty equivalence."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from generators import paper_queue, queues, random_queue
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from synthetic import drive, tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.planners import ConfidenceOptimism, LimitOptimism, model_at
from queueing_ucrl.learning.registry import check_options, controller_names, make_controller

NEW = {
    "ucrl-ac-exact": qu.UcrlAcExact,
    "ucrl-ac-classwise": qu.UcrlAcClasswise,
    "thompson": qu.Thompson,
    "certainty-equivalent": qu.CertaintyEquivalent,
}
VARIANTS = [
    qu.UcrlAcExact(),
    qu.UcrlAcExact(interval="anytime", share_set="weissman", review_ratio=1.3),
    qu.UcrlAcClasswise(),
    qu.UcrlAcClasswise(interval="anytime"),
    qu.UcrlAcClasswise(service_rate="unknown"),
    qu.Thompson(),
    qu.Thompson(service_rate="unknown", review_ratio=1.5),
    qu.CertaintyEquivalent(),
    qu.CertaintyEquivalent(service_rate="unknown"),
]


# --- what they are ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEW)
def test_known_by_name_with_nothing_to_be_given(name: str) -> None:
    assert name in controller_names()
    controller = make_controller(name)
    assert controller == NEW[name]()
    assert check_options(name, {}) == []
    assert pickle.loads(pickle.dumps(controller)) == controller


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ucrl-ac-exact", {"arrival_rate_bounds": [1.0, 4.0], "interval": "anytime", "review_ratio": 1.5}),
        ("ucrl-ac-classwise", {"service_rate": "unknown", "first_review": 2}),
        ("thompson", {"memory": 100.0, "forgetting": "window", "review_period": 3.0, "solver": "vi"}),
        ("certainty-equivalent", {"service_rate": "known", "memory": 50, "forgetting": "discount"}),
    ],
)
def test_options_as_a_scenario_file_has_them(name: str, options: dict[str, Any]) -> None:
    assert check_options(name, options) == []
    controller = make_controller(name, options)
    for key, value in options.items():
        assert getattr(controller, key) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("name", "options", "culprit"),
    [
        ("ucrl-ac-exact", {"arrival_rate_bounds": (4.0, 1.0)}, "arrival_rate_bounds"),
        ("ucrl-ac-exact", {"interval": "wald"}, "interval must be exact or anytime, got 'wald'"),
        ("ucrl-ac-classwise", {"service_rate": "0.3"}, "service_rate must be known or unknown"),
        ("thompson", {"review_ratio": 1.0}, "review_ratio must be a number of at least 1.0001"),
        ("thompson", {"review_ratio": 1.0 + 1e-9}, "review_ratio must be a number of at least 1.0001"),
        ("thompson", {"review_ratio": math.inf}, "review_ratio must be a number of at least 1.0001"),
        ("thompson", {"review_period": 5.0, "review_ratio": math.inf}, "review_ratio must be"),
        ("thompson", {"memory": 1e6, "review_period": 1.0, "forgetting": "window"}, "memory must be at most 10,000"),
        ("thompson", {"first_review": 0.0}, "first_review must be a positive number"),
        ("certainty-equivalent", {"memory": -1.0}, "memory must be a positive number"),
        ("certainty-equivalent", {"forgetting": "slowly"}, "forgetting must be window or discount"),
        ("certainty-equivalent", {"solver": "simplex"}, "solver must be"),
    ],
)
def test_a_wrong_option_is_named(name: str, options: dict[str, Any], culprit: str) -> None:
    with pytest.raises(ValueError, match=culprit):
        make_controller(name, options)


def test_a_wrong_word_in_a_scenario_file_is_told_with_the_right_ones() -> None:
    ((key, message),) = check_options("thompson", {"forgetting": "slowly"})
    assert key == "forgetting"
    assert "'window' or 'discount'" in message


def test_bounds_without_the_truth_are_cautioned_about() -> None:
    assert "guarantee is void" in qu.UcrlAcExact(arrival_rate_bounds=(3.0, 4.0)).cautions(paper_queue())[0]
    assert qu.UcrlAcExact(arrival_rate_bounds=(1.0, 4.0)).cautions(paper_queue()) == []
    assert qu.UcrlAcExact().cautions(paper_queue()) == []


# --- how they begin --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEW)
def test_with_nothing_known_whatever_pays_by_itself_is_admitted(name: str) -> None:
    queue = random_queue(np.random.default_rng(3), patience=0.0)
    plan = NEW[name]().begin(Knowledge.of(queue), np.random.default_rng(0)).first()
    assert np.array_equal(plan.policy.admits, queue.rewards >= 0)
    assert plan.until == 1 / queue.max_service_rate


def test_with_bounds_the_first_plan_is_the_papers() -> None:
    queue = paper_queue()
    random = np.random.default_rng(0)
    exact = qu.UcrlAcExact(arrival_rate_bounds=(1.0, 4.0)).begin(Knowledge.of(queue), random).first()
    paper = qu.UcrlAc((1.0, 4.0), 10.0).begin(Knowledge.of(queue), random).first()
    assert np.array_equal(exact.request.model.arrival_rates, paper.request.model.arrival_rates)


@pytest.mark.parametrize("name", NEW)
def test_reviews_before_the_first_arrival(name: str) -> None:
    queue = paper_queue().with_arrival_rates([1e-9, 1e-9])
    run = qu.simulate(queue, NEW[name](), horizon=1e3, seed=1)
    assert run.ledger.admitted.sum() == 0
    assert len(run.episodes) > 5


# --- both engines, the same numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", VARIANTS, ids=repr)
@pytest.mark.parametrize("seed", [1, 2])
def test_equal_logs_on_both_engines(controller: qu.Controller, seed: int) -> None:
    queue = random_queue(np.random.default_rng(seed), largest_capacity=12, patience=0.0)
    horizon = 500 / queue.total_arrival_rate
    logs = [
        qu.simulate(queue, controller, horizon=horizon, seed=seed, engine=engine, log=True)
        for engine in ("simpy", "compiled")
    ]
    assert logs[0].events.equals(logs[1].events)
    assert repr(logs[0].episode_rows()) == repr(logs[1].episode_rows())


@pytest.mark.parametrize("controller", VARIANTS, ids=repr)
def test_same_seed_same_log_and_another_seed_another(controller: qu.Controller) -> None:
    queue = paper_queue()
    first, again, other = (
        qu.simulate(queue, controller, horizon=300.0, seed=4, replication=r, log=True).events for r in (0, 0, 1)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_the_draws_are_the_controllers_own() -> None:
    """A posterior draw takes its numbers from the controller's stream: the jobs are those of any other controller."""
    queue = paper_queue()
    arrivals = [
        qu.simulate(queue, controller, horizon=300.0, seed=4, log=True)
        .events.query("event in ('admit', 'reject', 'block')")
        .time.to_numpy()
        for controller in (qu.Thompson(), qu.CertaintyEquivalent())
    ]
    assert np.array_equal(*arrivals)


# --- optimism --------------------------------------------------------------------------------------------------------


@given(queues(), st.lists(st.floats(1.0, 5.0), min_size=4, max_size=4))
def test_the_optimal_gain_grows_with_every_rate(queue: qu.Queue, factors: list[float]) -> None:
    """By thinning: what is too much can be turned away at random."""
    more = queue.with_arrival_rates(queue.arrival_rates * factors[: len(queue.classes)])
    best = qu.solve(queue).gain
    assert qu.solve(more).gain >= best - 1e-9 * max(1.0, abs(best))


@settings(max_examples=60)
@given(queues(), st.integers(0, 10**6), st.floats(0.5, 300.0))
def test_optimism_is_not_below_the_truth_when_it_is_inside(queue: qu.Queue, seed: int, services: float) -> None:
    """For both kinds of set, on counts drawn at the true rates; class-wise limits give trunk reservation."""
    random = np.random.default_rng(seed)
    knowledge = Knowledge.of(queue)
    best = qu.solve(queue).gain
    horizon = services / queue.service_rate
    for controller in (qu.UcrlAcExact(), qu.UcrlAcExact(share_set="weissman"), qu.UcrlAcClasswise()):
        for _, plan in drive(controller, knowledge, lambda time: queue.arrival_rates, horizon, random)[1:]:
            solution = qu.solve(plan.request.model)
            if plan.belief.contains(queue.arrival_rates):
                assert solution.gain >= best - 1e-9 * max(1.0, abs(best))
            if isinstance(controller, qu.UcrlAcClasswise):
                assert solution.policy.is_trunk_reservation or queue.abandons


@pytest.mark.parametrize("controller", [qu.UcrlAcExact(), qu.UcrlAcClasswise(), qu.UcrlAcClasswise(interval="anytime")])
def test_coverage_at_the_episode_ends(controller: qu.Controller) -> None:
    """2,000 sequences of counts: at each review the truth is outside no more often than promised. Error rate 1e-6.

    Promised: 2 delta where Lambda and p each have delta, else delta.
    """
    queue = paper_queue()
    knowledge, random, count = Knowledge.of(queue), np.random.default_rng(17), 2000
    outside: dict[float, int] = {}
    for _ in range(count):
        session = controller.begin(knowledge, random)
        for now, belief in _beliefs(session, queue, 250.0, random):
            outside[now] = outside.get(now, 0) + (not belief.contains(queue.arrival_rates))
    share = 2 if isinstance(controller, qu.UcrlAcExact) else 1
    for now, missed in outside.items():
        promised = share * min(0.5, 1 / (queue.service_rate * now))
        assert len(outside) * binom.sf(missed - 1, count, promised) > 1e-6  # so many or more, at the promised rate
    assert sum(outside.values()) > 0 or controller.interval == "anytime"


def _beliefs(session: Any, queue: qu.Queue, horizon: float, random: np.random.Generator) -> Any:
    """The beliefs at each review, without planning."""
    clock, estimator = session.clock, session.estimator
    while clock.end < horizon:
        now, length = clock.end, clock.length
        yield now, estimator.update(tally(now, length, random.poisson(queue.arrival_rates * length)), length)
        clock.advance(now)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucrl-ac-exact", "ucrl-ac-classwise"])
def test_coverage_in_runs(name: str) -> None:
    """2,000 replications of the paper's queue to T = 3,000: promised coverage, optimistic gain at least rho*."""
    queue = paper_queue()
    best, count = qu.solve(queue), 2000
    outside: dict[float, int] = {}
    for replication in range(count):
        run = qu.simulate(queue, name, horizon=3000.0, seed=5, replication=replication, grid=[3000.0])
        gains = {record.time: record.gain for record in run.solve_records}
        for episode in run.ledger.episodes[1:]:
            outside[episode.start] = outside.get(episode.start, 0) + (not episode.truth_inside)
            if episode.truth_inside:
                assert gains[episode.start] >= best.gain - 1e-9
    for start, missed in outside.items():
        promised = (2 if name == "ucrl-ac-exact" else 1) * min(0.5, 1 / (queue.service_rate * start))
        assert len(outside) * binom.sf(missed - 1, count, promised) > 1e-6  # so many or more, at the promised rate


def test_the_uses_take_what_their_estimators_give() -> None:
    queue = paper_queue()
    knowledge, random = Knowledge.of(queue), np.random.default_rng(2)
    plans = drive(qu.UcrlAcClasswise(), knowledge, lambda time: queue.arrival_rates, 100.0, random)
    model, columns = plans[-1][1].request.model, plans[-1][1].belief.columns()
    assert np.all(model.arrival_rates == columns["rate_limits"])
    assert isinstance(qu.UcrlAcExact().begin(knowledge, random).planner, ConfidenceOptimism)
    assert isinstance(qu.UcrlAcClasswise().begin(knowledge, random).planner, LimitOptimism)


@given(queues(), st.lists(st.floats(0.0, 3.0), min_size=4, max_size=4))
def test_planning_with_wrong_rates_loses_at_most_in_proportion(queue: qu.Queue, factors: list[float]) -> None:
    """rho* - rho^pi <= R_max |lambda^ - lambda|_1 where pi is best for lambda^ (docs/guarantees.md, Lemma 2).

    And what it rests on: 0 <= g(s) <= rho / mu_max, mu_max = min(S, c) mu; g non-decreasing while nobody gives up.
    """
    believed = queue.arrival_rates * factors[: len(queue.classes)]
    model = model_at(Knowledge.of(queue), believed, None)
    assume(model is not None)
    planned, best = qu.solve(model), qu.solve(queue)
    lost = best.gain - qu.evaluate(queue, planned.policy).gain
    tolerance = 1e-9 * max(1.0, abs(best.gain))
    assert lost <= queue.max_reward * np.abs(believed - queue.arrival_rates).sum() + tolerance
    scale = 1e-9 * queue.max_reward
    assert np.all(best.relative_bias >= -scale)
    assert queue.abandons or np.all(np.diff(best.relative_bias) >= -scale)
    assert np.all(best.relative_bias <= best.gain / (min(queue.servers, queue.capacity) * queue.service_rate) + scale)


# --- what they come to -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEW)
def test_ends_with_a_policy_as_good_as_the_best(name: str) -> None:
    """After 10^5 units of time on the paper's queue the policy is the best one or loses less than 1 part in 2,000."""
    queue = paper_queue()
    for replication in range(3):
        run = qu.simulate(queue, NEW[name](), horizon=1e5, seed=9, replication=replication)
        assert run.summary()["last_policy_gain"] >= (1 - 5e-4) * run.best.gain


def test_certainty_equivalence_ends_with_the_best_policy() -> None:
    """It is the best policy for rates in a neighbourhood of the true ones, and the estimates get there."""
    queue = paper_queue(20, 0.5)
    best = qu.solve(queue).policy
    ends = [
        qu.simulate(queue, "certainty-equivalent", horizon=3e5, seed=2, replication=r).ledger.segments[-1].policy
        for r in range(5)
    ]
    assert all(policy == best for policy in ends)


def test_regrets_a_small_share_of_what_ucrl_ac_does() -> None:
    """T = 10^5, 4 replications; the shares at 10^6 are smaller still (see the slow test)."""
    queue = paper_queue()
    controllers = [qu.UcrlAc((1.0, 4.0), 10.0), *(kind() for kind in NEW.values())]
    study = qu.replicate(queue, controllers, horizon=1e5, replications=4, seed=1, jobs=1, grid=[1e5])
    means = study.regret("gap").set_index("controller")["mean"]
    shares = means / means["ucrl-ac"]
    assert shares["ucrl-ac-exact"] < 0.03
    assert shares["ucrl-ac-classwise"] < 0.03
    assert shares["thompson"] < 0.01
    assert shares["certainty-equivalent"] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [20, 50])
@pytest.mark.parametrize("service_rate", [0.3, 0.4, 0.5])
def test_targets_on_the_six_queues(capacity: int, service_rate: float) -> None:
    """T = 10^6, 20 replications: shares of UCRL-AC's gap regret."""
    controllers = [qu.UcrlAc((1.0, 4.0), 10.0), *(kind() for kind in NEW.values())]
    queue = paper_queue(capacity, service_rate)
    study = qu.replicate(queue, controllers, horizon=1e6, replications=20, seed=1, grid=[1e6])
    means = study.regret("gap").set_index("controller")["mean"]
    shares = means / means["ucrl-ac"]
    assert shares["ucrl-ac-exact"] <= 0.02
    assert shares["thompson"] <= 0.006
    assert shares["certainty-equivalent"] <= 0.006
