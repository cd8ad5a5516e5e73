"""Doors behind which nobody is seen: rejected arrivals unseen, classes seen only after admission; what harm it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators import paper_queue, queues, random_queue, seeds
from hypothesis import given, settings
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.paper.rewards import blind_optimum


def shut(observation: str, kind: Any = qu.CertaintyEquivalent) -> Any:
    return kind(observation=observation)


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
def test_rates_are_counts_over_the_time_in_which_the_door_was_open(kind: Any) -> None:
    controller = shut("admitted", kind)
    session = controller.begin(Knowledge.shown_to(controller, paper_queue()), np.random.default_rng(0))
    session.first()
    session.review(tally(10.0, 10.0, [8, 2], open_time=np.array([10.0, 4.0])))
    plan = session.review(tally(20.0, 10.0, [10, 0], open_time=np.array([8.0, 0.0])))
    assert plan.belief is not None
    prior = 0.0 if kind is qu.CertaintyEquivalent else 0.5  # Jeffreys'
    assert plan.belief.columns()["rate_estimates"] == pytest.approx([(18 + prior) / 18.0, (2 + prior) / 4.0])


def test_a_class_that_was_never_let_in_counts_as_one_that_does_not_come() -> None:
    controller = shut("admitted")
    session = controller.begin(Knowledge.shown_to(controller, paper_queue()), np.random.default_rng(0))
    plan = session.review(tally(10.0, 10.0, [8, 0], open_time=np.array([10.0, 0.0])))
    assert plan.belief is not None
    assert plan.belief.columns()["rate_estimates"] == [0.8, 0.0]


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_plan_that_is_right_where_it_looks_is_the_best_one(seed: int) -> None:
    """Why nothing need be explored: rates that are wrong for classes and states where the plan lets nobody in make it
    no worse. Rewards never grow with the number of jobs here, service never slows, and nobody gives up.
    """
    random = np.random.default_rng(seed)
    queue = random_queue(random, patience=0.0)
    true, best = queue.model, qu.solve(queue)
    rates = np.array(true.arrival_rates)
    for _ in range(30):
        believed = qu.AdmissionModel(rates, true.rewards, true.service_rates)
        policy = qu.solve(believed).policy
        looks = policy.admits
        if np.array_equal(rates[looks], true.arrival_rates[looks]):
            break
        rates = np.where(looks, true.arrival_rates, rates)  # what it sees is set right
        rates = np.where(looks, rates, np.minimum(rates, rates * random.uniform(0.1, 1.0, rates.shape)))
    assert qu.evaluate(queue, policy).gain == pytest.approx(best.gain, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
def test_a_closed_door_is_harmless(kind: Any) -> None:
    """Nobody is stuck: twenty runs end with a policy that loses less than a thousandth, and have lost less than twice
    what they would have with all seen (some is lost: of a class that is let in for a part of the time, less is seen).
    """
    queue, lost = paper_queue(), dict[str, list[float]]()
    best = qu.solve(queue).gain
    for seen in ("all", "admitted"):
        for k in range(20):
            run = qu.simulate(queue, shut(seen, kind), horizon=5000.0, seed=4, replication=k, grid=[5000.0])
            assert run.episodes["gain"].iloc[-1] > 0.999 * best
            lost.setdefault(seen, []).append(float(run.regret(kind="gap")["regret"].iloc[-1]))
    assert np.mean(lost["admitted"]) < 2.0 * np.mean(lost["all"])


@given(queues(largest_capacity=12, most_classes=3))
@settings(max_examples=40, deadline=None)
def test_the_best_of_those_who_see_no_class_is_the_best_of_all_such_tables(queue: qu.Queue) -> None:
    """Against every one of them: a table by the number of jobs alone (those of at most 2^12 kinds), by evaluation."""
    gain, policy = blind_optimum(queue)
    assert np.all(policy.admits == policy.admits[:, :1])
    assert qu.evaluate(queue, policy).gain == pytest.approx(gain, rel=1e-9, abs=1e-9)
    random = np.random.default_rng(queue.capacity)
    for _ in range(20):
        column = random.random(queue.capacity) < random.random()
        table = qu.Policy(np.tile(column[:, None], (1, len(queue.classes))))
        assert qu.evaluate(queue, table).gain <= gain + 1e-9 * (1.0 + abs(gain))
    assert gain <= qu.solve(queue).gain * (1.0 + 1e-9) + 1e-9


def test_who_sees_no_class_treats_all_alike_and_finds_the_best_such_policy() -> None:
    queue = paper_queue()
    run = qu.simulate(queue, shut("class-after-admission"), horizon=20_000.0, seed=6)
    for segment in run.ledger.segments:
        assert np.all(segment.policy.admits == segment.policy.admits[:, :1])
    assert run.episodes["gain"].iloc[-1] == pytest.approx(blind_optimum(queue)[0], rel=1e-3)


class Peeking(qu.Controller):
    """Says that it does not see classes, and tells them apart."""

    name = "peeking"
    sees_classes = False  # type: ignore[assignment]

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        table = np.ones((knowledge.capacity, knowledge.class_count), dtype=bool)
        table[:, 0] = False
        return qu.FixedPolicy(qu.Policy(table)).begin(knowledge, rng)


def test_a_policy_that_tells_apart_what_is_not_seen_is_refused() -> None:
    with pytest.raises(ValueError, match="says sees_classes = False, so its policies must treat all classes alike"):
        qu.simulate(paper_queue(), Peeking(), horizon=10.0)
