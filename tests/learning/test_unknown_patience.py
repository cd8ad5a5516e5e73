"""Controllers that do not know how soon waiting jobs give up: nothing of it is shown to them, and they learn it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generators import queues
from hypothesis import given
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.memories import Discounting, FullHistory, SlidingWindow
from queueing_ucrl.learning.planners import model_at

KINDS = [qu.CertaintyEquivalent, qu.Thompson]
CLASSES = [qu.JobClass("a", 3.0, 20.0, qu.Linear(1.0)), qu.JobClass("b", 3.0, 10.0, qu.Linear(1.0), reward_at="start")]
QUEUE = qu.Queue(5, 12, 1.0, CLASSES, patience=qu.Exponential(0.5))


def seen(gave_up: list[int], waited: float, now: float = 10.0, duration: float = 10.0) -> qu.Tally:
    return tally(now, duration, [30, 30], 20, 40.0, 12, abandonments=np.array(gave_up), waiting_time=waited)


def test_what_follows_from_patience_is_not_shown() -> None:
    knowledge = Knowledge.shown_to(qu.CertaintyEquivalent(patience="unknown"), QUEUE)
    assert math.isnan(knowledge.patience_rate)
    assert knowledge.service_rate == 1.0
    assert np.isnan(knowledge.rewards[5:]).all()
    assert np.array_equal(knowledge.rewards[:5], QUEUE.rewards[:5])
    assert np.isnan(knowledge.service_rates[6:]).all()
    assert np.array_equal(knowledge.service_rates[:6], QUEUE.service_rates[:6])
    assert knowledge.max_service_rate == 5.0
    known = Knowledge.shown_to(qu.CertaintyEquivalent(), QUEUE)
    assert known.patience_rate == 0.5
    assert known.max_service_rate == QUEUE.max_service_rate == 8.5
    assert np.array_equal(known.rewards, QUEUE.rewards)


@given(queues())
def test_the_model_at_the_true_rates_is_the_queues(queue: qu.Queue) -> None:
    knowledge = Knowledge.of(queue, patience=False)
    model = model_at(knowledge, queue.arrival_rates, None, queue.patience_rate)
    assert model is not None
    assert np.array_equal(model.rewards, queue.rewards)
    assert np.array_equal(model.service_rates, queue.service_rates)


@pytest.mark.parametrize("kind", KINDS)
def test_until_the_first_review_who_finds_a_server_free_is_admitted(kind: type[qu.Controller]) -> None:
    knowledge = Knowledge.of(QUEUE, patience=False)
    session = kind(patience="unknown").begin(knowledge, np.random.default_rng(0))  # type: ignore[call-arg]
    plan = session.first()
    assert plan.policy is not None
    assert np.array_equal(plan.policy.admits, np.tile(np.arange(12)[:, None] < 5, (1, 2)))
    assert plan.until == 1.0 / 5.0


@pytest.mark.parametrize(
    ("gave_up", "waited", "theta"),
    [([0, 0], 0.0, 1.0), ([0, 0], 9.5, 0.05), ([3, 4], 9.5, 0.75), ([3000, 2000], 1e4, 5000.5 / 10000.5)],
)
def test_certainty_equivalence_plans_for_the_mean_of_theta(gave_up: list[int], waited: float, theta: float) -> None:
    """(A + 1/2) / (Q + 1 / (2 mu)): mu before anything is seen."""
    session = qu.CertaintyEquivalent(patience="unknown").begin(
        Knowledge.of(QUEUE, patience=False), np.random.default_rng(0)
    )
    plan = session.review(seen(gave_up, waited))
    believed = qu.Queue(5, 12, 1.0, CLASSES, patience=qu.Exponential(theta)).with_arrival_rates([3.0, 3.0])
    assert plan.request is not None
    np.testing.assert_allclose(plan.request.model.service_rates, believed.service_rates, rtol=1e-14)
    np.testing.assert_allclose(plan.request.model.rewards, believed.rewards, rtol=1e-12)
    assert plan.belief is not None
    columns = plan.belief.columns()
    assert columns["planned_patience_rate"] == pytest.approx(theta, rel=1e-14)
    estimate = columns["patience_rate_estimate"]
    assert estimate == pytest.approx(sum(gave_up) / waited) if waited else math.isnan(estimate)


def test_thompson_draws_theta_from_its_law() -> None:
    """2,000 draws after 7 of 9.5: the mean of Gamma(7.5, 10) within 4 standard errors (one seed in 16,000 fails)."""
    knowledge = Knowledge.of(QUEUE, patience=False)
    drawn = []
    for seed in range(2000):
        session = qu.Thompson(patience="unknown").begin(knowledge, np.random.default_rng(seed))
        plan = session.review(seen([3, 4], 9.5))
        assert plan.belief is not None
        drawn.append(plan.belief.columns()["planned_patience_rate"])
    assert abs(np.mean(drawn) - 0.75) < 4 * math.sqrt(7.5) / 10 / math.sqrt(2000)
    assert np.var(drawn) == pytest.approx(7.5 / 100, rel=0.2)


def test_with_the_service_rate_unknown_too_its_estimate_is_the_unit() -> None:
    knowledge = Knowledge.of(QUEUE, service_rate=False, patience=False)
    session = qu.CertaintyEquivalent(service_rate="unknown", patience="unknown").begin(
        knowledge, np.random.default_rng(0)
    )
    plan = session.review(tally(10.0, 10.0, [30, 30], 21, 40.0, 12))
    assert plan.belief is not None
    assert plan.belief.columns()["planned_patience_rate"] == pytest.approx(0.5, rel=1e-14)  # 20 / 40


@pytest.mark.parametrize("time", [1e-9, 1e9])
def test_the_unit_of_time_does_not_matter(time: float) -> None:
    plans = []
    for unit in (1.0, time):
        queue = qu.Queue(
            5, 12, 1.0 / unit, [qu.JobClass("a", 3.0 / unit, 20.0, qu.Linear(1.0 / unit))], qu.Exponential(0.5 / unit)
        )
        session = qu.CertaintyEquivalent(patience="unknown").begin(
            Knowledge.of(queue, patience=False), np.random.default_rng(0)
        )
        counts = {"abandonments": np.array([3]), "waiting_time": 7.0 * unit}
        plan = session.review(tally(10.0 * unit, 10.0 * unit, [30], 20, 40.0 * unit, 12, **counts))
        assert plan.request is not None
        plans.append(qu.solve(plan.request.model).policy)
    assert plans[0] == plans[1]


def test_memories_weigh_abandonments_as_departures() -> None:
    for memory in (FullHistory(2), SlidingWindow(1e6), Discounting(1e12, 2)):
        for k in range(3):
            evidence = memory.add(seen([1, k], 2.0, 10.0 * (k + 1)))
        assert evidence.abandonments == pytest.approx(6.0, rel=1e-10)
        assert evidence.waiting_time == pytest.approx(6.0, rel=1e-10)
    recent = SlidingWindow(10.0)
    for k in range(3):
        evidence = recent.add(seen([k, 0], 2.0, 10.0 * (k + 1)))
    assert (evidence.abandonments, evidence.waiting_time) == (2.0, 2.0)


def test_a_word_that_is_none_of_the_two_is_refused() -> None:
    with pytest.raises(ValueError, match="patience must be known or unknown, got 'perhaps'"):
        qu.CertaintyEquivalent(patience="perhaps")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ucrl-ac", "ucrl-ac-exact", "ucrl-ac-classwise", "thompson", "certainty-equivalent"])
def test_learners_of_rates_plan_for_a_queue_that_gives_up(name: str) -> None:
    """mu(s) and r_i(s) are as known, theta in them, in the models that they plan for."""
    options = {"arrival_rate_bounds": [1.0, 12.0], "first_episode": 10.0} if name == "ucrl-ac" else {}
    session = qu.make_controller(name, options).begin(Knowledge.of(QUEUE), np.random.default_rng(0))
    session.first()
    plan = session.review(seen([3, 4], 9.5))
    assert plan.request is not None
    assert np.array_equal(plan.request.model.service_rates, QUEUE.service_rates)
    assert np.array_equal(plan.request.model.rewards, QUEUE.rewards)
