"""Controllers that do not know how fast jobs are served: nothing of it is shown to them, and they learn it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from generators import paper_queue, queues, random_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.estimators import PlainEstimate
from queueing_ucrl.learning.intervals import anytime_interval
from queueing_ucrl.learning.memories import FullHistory
from queueing_ucrl.learning.planners import model_at

UNKNOWN = [
    qu.CertaintyEquivalent(service_rate="unknown"),
    qu.Thompson(service_rate="unknown"),
    qu.UcrlAcClasswise(service_rate="unknown"),
]
NAMES = [controller.name for controller in UNKNOWN]


@dataclass(frozen=True)
class Eavesdropper:
    """Passes on to a controller, and keeps what it was shown."""

    controller: Any
    shown: list[Knowledge] = field(default_factory=list)

    @property
    def knows_service_rate(self) -> bool:
        return self.controller.knows_service_rate

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        self.shown.append(knowledge)
        return self.controller.begin(knowledge, rng)


@pytest.mark.parametrize("controller", UNKNOWN, ids=NAMES)
def test_nothing_that_follows_from_the_service_rate_is_shown(controller: qu.Controller) -> None:
    queue, desk = paper_queue(), Eavesdropper(controller)
    qu.simulate(queue, desk, horizon=10.0)
    (knowledge,) = desk.shown
    assert math.isnan(knowledge.service_rate)
    assert math.isnan(knowledge.max_service_rate)
    assert np.isnan(knowledge.rewards).all()
    assert np.isnan(knowledge.service_rates).all()
    assert math.isnan(knowledge.tick_rate)
    assert knowledge.truth is None
    assert knowledge.rewards.shape == queue.rewards.shape
    assert knowledge.job_rewards.tolist() == [20.0, 10.0]
    assert knowledge.holding_costs == (qu.Linear(0.1), qu.Linear(0.1))


def test_by_default_everything_is_known() -> None:
    desk = Eavesdropper(qu.CertaintyEquivalent())
    qu.simulate(paper_queue(), desk, horizon=10.0)
    assert desk.shown[0].service_rate == 0.3
    assert np.array_equal(desk.shown[0].rewards, paper_queue().rewards)


@given(queues())
def test_rewards_at_the_true_rate_are_the_queues(queue: qu.Queue) -> None:
    knowledge = Knowledge.of(queue, service_rate=False)
    model = model_at(knowledge, queue.arrival_rates, queue.service_rate)
    assert np.array_equal(model.rewards, queue.rewards)
    assert np.array_equal(model.arrival_rates, queue.model.arrival_rates)
    assert np.array_equal(model.service_rates, queue.service_rates)


# --- before anything is known ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", UNKNOWN, ids=NAMES)
def test_admits_while_a_server_is_free_until_a_job_has_left(controller: qu.Controller) -> None:
    queue = paper_queue()
    session = controller.begin(Knowledge.of(queue, service_rate=False), np.random.default_rng(0))
    free = np.arange(queue.capacity)[:, None] < queue.servers
    plan = session.first()
    assert np.array_equal(plan.policy.admits, np.tile(free, (1, 2)))
    assert (plan.until, plan.departure_limit) == (math.inf, 2)
    plan = session.review(tally(4.0, 4.0, [2, 3], departures=2, busy_time=5.0))
    assert plan.departure_limit is None
    assert plan.request is not None


@pytest.mark.parametrize("kind", [type(controller) for controller in UNKNOWN])
def test_a_first_review_at_a_time_waits_for_no_departure(kind: type[qu.Controller]) -> None:
    knowledge = Knowledge.of(paper_queue(), service_rate=False)
    session = kind(service_rate="unknown", first_review=3.0).begin(knowledge, np.random.default_rng(0))  # type: ignore[call-arg]
    plan = session.first()
    assert (plan.until, plan.departure_limit) == (3.0, None)
    for departures in (0, 1):
        plan = session.review(tally(plan.until, 1.0, [2, 3], departures=departures, busy_time=1.0))
        assert plan.policy is not None  # one departure tells nothing


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
def test_with_a_memory_the_second_departure_or_a_period_whichever_is_first(kind: type[qu.Controller]) -> None:
    knowledge = Knowledge.of(paper_queue(), service_rate=False)
    session = kind(service_rate="unknown", memory=100.0).begin(knowledge, np.random.default_rng(0))  # type: ignore[call-arg]
    plan = session.first()
    assert (plan.until, plan.departure_limit) == (5.0, 2)
    plan = session.review(tally(5.0, 5.0, [1, 1], departures=1, busy_time=4.0))
    assert (plan.until, plan.departure_limit) == (5.5, 1)
    plan = session.review(tally(5.2, 0.2, [0, 0], departures=1, busy_time=0.2))
    assert (plan.until, plan.departure_limit) == (1.1 * 5.2, None)
    assert plan.request is not None


@pytest.mark.parametrize("forgetting", ["window", "discount"])
@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
def test_a_memory_without_departures_keeps_the_service_rate_it_knew(kind: type[qu.Controller], forgetting: str) -> None:
    """Arrivals go on, nobody leaves for ten memories (long jobs): plans are made all the same, for the mu last told."""
    knowledge = Knowledge.of(paper_queue(), service_rate=False)
    controller = kind(service_rate="unknown", memory=40.0, forgetting=forgetting)  # type: ignore[call-arg]
    session = controller.begin(knowledge, np.random.default_rng(0))
    session.first()
    plan = session.review(tally(20.0, 20.0, [20, 20], departures=30, busy_time=100.0))
    now = 20.0
    for k in range(200):
        now, before = plan.until, now
        departures = 0 if k > 20 else 3
        plan = session.review(tally(now, now - before, [2, 2], departures=departures, busy_time=5.0 * (now - before)))
        assert plan.request is not None
        if k == 150:
            held = plan.belief.columns()["service_rate_estimate"]
    assert now > 400.0
    assert plan.belief.columns()["service_rate_estimate"] == held > 0.0


def test_the_estimate_at_the_second_departure_has_the_mean_mu() -> None:
    """B ~ Gamma(2, mu): 1 / B has mean mu, and no variance; so the test is of E min(1 / B, 20 mu), exactly known.

    E min(1/B, k mu) = mu [e^{-x} + k (1 - e^{-x} (1 + x))], x = 1/k, by integration. 800 runs, 5 standard errors.
    """
    mu, k, count = 0.5, 20.0, 800
    queue = qu.Queue(2, 3, mu, [qu.JobClass("a", 1.0, 1.0)])
    once, found = qu.CertaintyEquivalent(service_rate="unknown", review_ratio=1e6), []
    for replication in range(count):
        seen = _departures(queue, once, replication, horizon=40.0)
        assert seen[1][0] == 2
        found.append(min(1.0 / seen[1][1], k * mu))
    x = 1.0 / k
    expected = mu * (math.exp(-x) + k * (1.0 - math.exp(-x) * (1.0 + x)))
    assert abs(np.mean(found) - expected) < 5 * np.std(found) / math.sqrt(count)


def test_point_estimates_are_told_from_the_second_departure_on() -> None:
    estimator = PlainEstimate(FullHistory(1), learn_service_rate=True)
    assert math.isnan(estimator.update(tally(1.0, 1.0, [1], departures=1, busy_time=0.5), 1.0).service_rate)
    assert estimator.update(tally(2.0, 1.0, [1], departures=2, busy_time=3.5), 1.0).service_rate == 2 / 4


@pytest.mark.parametrize("controller", UNKNOWN, ids=NAMES)
def test_more_servers_than_room(controller: qu.Controller) -> None:
    queue = qu.Queue(9, 4, 1.0, [qu.JobClass("a", 3.0, 1.0)])
    run = qu.simulate(queue, controller, horizon=200.0, seed=1)
    assert run.ledger.rejected.sum() == 0


def test_nothing_is_planned_where_no_plan_can_be_made() -> None:
    """Costs that no wait of such a slow server could bound, rates of zero, a service rate from nothing."""
    queue = qu.Queue(2, 6, 3.0, [qu.JobClass("a", 1.0, 5.0, qu.Custom(np.expm1))])
    knowledge = Knowledge.of(queue, service_rate=False)
    assert model_at(knowledge, queue.arrival_rates, 3.0) is not None
    assert model_at(knowledge, queue.arrival_rates, 0.01) is None
    assert model_at(knowledge, np.zeros(1), 3.0) is None
    for rate in (math.nan, math.inf, 0.0):
        assert model_at(knowledge, queue.arrival_rates, rate) is None


def test_a_rate_that_has_faded_away_is_none() -> None:
    queue = paper_queue()
    model = model_at(Knowledge.of(queue), np.array([1.0, 1e-200]), None)
    assert model.arrival_rates[0].tolist() == [1.0, 0.0]


# --- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", UNKNOWN, ids=NAMES)
@pytest.mark.parametrize("service_rate", [0.3, 0.5])
def test_learns_the_service_rate_and_the_policy(controller: qu.Controller, service_rate: float) -> None:
    """Standard error of the estimate: mu / sqrt(departures); the policy's loss: less than 1 part in 1,000."""
    queue = paper_queue(20, service_rate)
    run = qu.simulate(queue, controller, horizon=1e5, seed=3)
    departures = 1e5 * run.summary()["utilisation"] * queue.servers * service_rate
    last = run.episode_rows()[-1]
    assert abs(last["service_rate_estimate"] / service_rate - 1) < 5 / math.sqrt(departures)
    assert last["rate_estimates"] == pytest.approx([1.0, 1.0], rel=0.03)
    assert run.summary()["last_policy_gain"] >= (1 - 1e-3) * run.best.gain


def test_costs_little_more_than_knowing() -> None:
    queue = paper_queue()
    controllers = [qu.UcrlAc((1.0, 4.0), 10.0), *UNKNOWN]
    study = qu.replicate(queue, controllers, horizon=1e5, replications=3, seed=1, jobs=1, grid=[1e5])
    means = study.regret("gap").set_index("controller")["mean"]
    for name in NAMES:
        assert means[name] < 0.05 * means["ucrl-ac"]


@pytest.mark.parametrize("controller", UNKNOWN, ids=NAMES)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_equal_logs_on_both_engines(controller: qu.Controller, seed: int) -> None:
    queue = random_queue(np.random.default_rng(seed), largest_capacity=10, patience=0.0)
    horizon = 300 / queue.total_arrival_rate
    runs = [
        qu.simulate(queue, controller, horizon=horizon, seed=seed, engine=engine, log=True)
        for engine in ("simpy", "compiled")
    ]
    assert runs[0].events.equals(runs[1].events)


# --- optimism about the service rate ---------------------------------------------------------------------------------


@settings(max_examples=200)
@given(queues(), st.floats(1.0, 4.0))
def test_the_optimal_gain_grows_with_the_service_rate(queue: qu.Queue, factor: float) -> None:
    faster = qu.Queue(queue.servers, queue.capacity, queue.service_rate * factor, queue.classes, queue.patience)
    best = qu.solve(queue).gain
    assert qu.solve(faster).gain >= best - 1e-9 * max(1.0, abs(best))


def test_the_limit_of_the_service_rate_holds_at_random_busy_times() -> None:
    """200 runs of a queue often idle, reviewed 25 times each: the whole path is covered as promised for one delta.

    The busy time depends on the departures: an interval that is exact at a fixed exposure promises nothing here.
    """
    queue, delta, count = paper_queue(8, 0.3).with_arrival_rates([0.3, 0.2]), 0.1, 200
    missed = 0
    for replication in range(count):
        controller = qu.CertaintyEquivalent(first_review=1.0, review_ratio=1.25, service_rate="unknown")
        seen = _departures(queue, controller, replication)
        ends = [anytime_interval(d, b, delta, 1.0) for d, b in seen if b > 0]
        missed += any(not low <= queue.service_rate <= high for low, high in ends)
    assert missed / count <= delta + 3 * math.sqrt(delta * (1 - delta) / count)


def _departures(queue: qu.Queue, controller: Any, replication: int, horizon: float = 300.0) -> list[tuple[int, float]]:
    """Departures and busy time up to each review."""
    found = [(0, 0.0)]

    class Listener:
        knows_service_rate = False

        def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
            session = controller.begin(knowledge, rng)
            review = session.review

            def heard(tally: qu.Tally) -> qu.Plan:
                found.append((found[-1][0] + tally.departures, found[-1][1] + tally.busy_time))
                return review(tally)

            session.review = heard
            return session

    qu.simulate(queue, Listener(), horizon=horizon, seed=6, replication=replication, grid=[horizon])
    return found


def test_the_optimistic_gain_is_not_below_the_best_when_all_limits_hold() -> None:
    queue = paper_queue(12, 0.4)
    best = qu.solve(queue)
    checked = 0
    for replication in range(20):
        run = qu.simulate(queue, UNKNOWN[2], horizon=500.0, seed=8, replication=replication)
        gains = {record.time: record.gain for record in run.solve_records}
        for row in run.episode_rows()[1:]:
            if row["start"] in gains and row["truth_inside"] and row["service_rate_limit"] >= queue.service_rate:
                checked += 1
                assert gains[row["start"]] >= best.gain - 1e-9
    assert checked > 100
