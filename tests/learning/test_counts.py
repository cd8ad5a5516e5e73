"""Certainty equivalence on the counts of each class, in a loss system simulated here, and what cautions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.catalogue import catalogue
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.counts import CountsSession
from queueing_ucrl.simulation.simulate import cautions
from queueing_ucrl.solvers.multi_count import count_chain

SHORT, LONG = qu.Exponential(2.0), qu.Exponential(0.2)
CLASSES = [
    qu.JobClass("short", 6.0, 1.0, service=SHORT),
    qu.JobClass("long", 3.0, 3.0, service=LONG),
]
LOSS = qu.System(6, 6, CLASSES)


def gain(policy: Any) -> float:
    """What a policy earns on LOSS: exact."""
    chain, counts = count_chain(LOSS)
    row = policy.at if hasattr(policy, "at") else lambda n: policy.admits[sum(n)]
    admits = np.array([row(n) if sum(n) < 6 else (False, False) for n in counts.tolist()])
    return chain.evaluate(admits).gain


def run(controller: qu.Controller, arrivals: int, seed: int) -> Any:
    """The policy after so many arrivals: LOSS from its chain, reviewed as the plans ask."""
    rng = np.random.default_rng(seed)
    session = controller.begin(Knowledge.shown_to(controller, LOSS), rng)
    plan, now, last = session.first(), 0.0, 0.0
    service, rates = np.array([2.0, 0.2]), np.array([6.0, 3.0])
    n = np.zeros(2, dtype=np.int64)
    came, left, busy, seen = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(2), 0
    while seen < arrivals:
        speeds = np.concatenate([rates, n * service])
        step = rng.exponential(1.0 / speeds.sum())
        due = plan.until < now + step
        step = min(step, plan.until - now)
        now += step
        busy += n * step
        if not due:
            event = rng.choice(4, p=speeds / speeds.sum())
            if event < 2:
                came[event] += 1
                seen += 1
                row = plan.policy.at(n.tolist()) if hasattr(plan.policy, "at") else plan.policy.admits[n.sum() % 6]
                n[event] += n.sum() < 6 and bool(row[event])
            else:
                n[event - 2] -= 1
                left[event - 2] += 1
        if due or (plan.departure_limit is not None and left.sum() >= plan.departure_limit):
            by_class = {"departures_by_class": left, "busy_time_by_class": busy}
            plan = session.review(tally(now, now - last, came, int(left.sum()), float(busy.sum()), 6, **by_class))
            came, left, busy, last = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(2), now
    return plan.policy


@pytest.mark.parametrize("service_rate", ["known", "unknown"])
def test_99_percent_of_the_optimum_within_2000_arrivals(service_rate: Any) -> None:
    """20 runs: the mean exact gain of the policy in force, where one pooled rate loses and so does admitting all."""
    best = qu.solve(LOSS).gain
    everybody = gain(qu.Policy.admit_all(6, 2))
    pooled = gain(qu.solve(LOSS.queue).policy)
    assert max(everybody, pooled) < 0.97 * best
    controller = qu.CertaintyEquivalent(service_rate=service_rate)
    earned = [gain(run(controller, 2000, seed)) for seed in range(20)]
    assert np.mean(earned) >= 0.99 * best


def test_until_two_jobs_have_left_of_each_class_everybody_is_admitted() -> None:
    controller = qu.CertaintyEquivalent(service_rate="unknown")
    session = controller.begin(Knowledge.shown_to(controller, LOSS), np.random.default_rng(0))
    first = session.first()
    assert first.policy == qu.Policy.admit_all(6, 2)
    assert first.departure_limit == 2
    by_class = {"departures_by_class": np.array([2, 1]), "busy_time_by_class": np.array([1.0, 5.0])}
    assert session.review(tally(1.0, 1.0, [6, 3], 3, 6.0, 6, **by_class)).policy == first.policy
    by_class = {"departures_by_class": np.array([1, 2]), "busy_time_by_class": np.array([0.0, 5.0])}
    plan = session.review(tally(2.0, 1.0, [6, 3], 3, 6.0, 6, **by_class))
    assert plan.belief is not None
    assert plan.belief.columns()["class_service_rate_estimates"] == [2.0, 0.2]  # (3 - 1) / 1 and (3 - 1) / 10
    assert plan.policy == qu.solve(LOSS).policy  # rates 6 and 3 too


def test_only_where_nobody_waits_and_classes_differ() -> None:
    def by_counts(system: qu.System, **options: Any) -> bool:
        controller = qu.CertaintyEquivalent(**options)
        session = controller.begin(Knowledge.shown_to(controller, system), np.random.default_rng(0))
        return isinstance(session, CountsSession)

    assert by_counts(LOSS)
    assert by_counts(qu.System(2, 9, CLASSES, discipline="processor-sharing"))
    assert not by_counts(LOSS, memory=100.0)
    assert not by_counts(qu.System(6, 9, CLASSES))
    assert not by_counts(qu.System(6, 6, CLASSES[:1]))


WORLDS: dict[str, tuple[qu.System, str]] = {
    "service": (qu.System(2, 5, CLASSES), "the classes' service times differ"),
    "law": (qu.System(2, 5, [qu.JobClass("a", 1.0, 1.0, service=qu.Deterministic(1.0))]), "not exponential"),
    "shifts": (qu.System(qu.Shifts([8.0], [2, 5], 24.0), 5, CLASSES[:1]), "the number of servers changes"),
    "breakdowns": (qu.System(2, 5, CLASSES[:1], breakdowns=qu.Breakdowns(LONG, SHORT)), "servers break down"),
}


@pytest.mark.parametrize("world", WORLDS)
def test_cautions_say_of_every_controller_where_its_model_is_not_the_world(world: str) -> None:
    system, reason = WORLDS[world]
    patient = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)], patience=qu.Exponential(0.5))
    for entry in (one for one in catalogue() if one.name != "agent"):  # from a file
        controller = qu.make_controller(entry.name, entry.example_options)
        found = cautions(system, controller)
        plans = entry.name not in ("admit-all", "trunk-reservation", "random")
        plans = plans and not controller.learns_each_tick  # those learn without a model
        knows = entry.name == "oracle-anticipating" and world == "shifts"
        assert any(reason in caution for caution in found) == (plans and not knows), entry.name
        assert not any("of the same means" in caution for caution in cautions(patient, controller))


def test_cautions_of_the_counts_are_their_own() -> None:
    assert cautions(LOSS, qu.CertaintyEquivalent()) == []
    assert any("service times differ" in caution for caution in cautions(LOSS, qu.CertaintyEquivalent(memory=9.0)))
    assert any("service times differ" in caution for caution in cautions(LOSS, qu.Thompson()))
