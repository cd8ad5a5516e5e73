"""Learners to whom pay, costs or rejected jobs are hidden, on systems of every kind: both engines, any money unit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generators import paper_queue, random_system, with_pays
from twin_engines import differing, left_behind, new_engine

import queueing_ucrl as qu
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World

ARRIVALS = 120  # of a run, on average
LEARNERS: list[Any] = [
    qu.CertaintyEquivalent(rewards="unknown"),
    qu.CertaintyEquivalent(rewards="unknown", exploration="forced", holding_costs="unknown"),
    qu.CertaintyEquivalent(rewards="unknown", exploration="none", observation="admitted"),
    qu.CertaintyEquivalent(rewards="unknown", service_rate="unknown", observation="class-after-admission"),
    qu.CertaintyEquivalent(holding_costs="unknown", observation="admitted"),
    qu.Thompson(rewards="unknown", holding_costs="unknown", observation="admitted"),
    qu.Thompson(rewards="unknown", patience="unknown", observation="class-after-admission"),
]


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
@pytest.mark.parametrize("number", range(21))
def test_both_engines_leave_the_same_behind(number: int) -> None:
    """Shifts, breakdowns, environments, set-up, processor sharing, batches, any laws: whatever is drawn."""
    random = np.random.default_rng([143, number])
    system = with_pays(random, random_system(random), share=1.0)
    horizon = ARRIVALS / system.total_arrival_rate
    found = []
    for kind in (World, Kernel):
        learner = LEARNERS[number % len(LEARNERS)]
        engine = new_engine(
            kind, system, learner, horizon=horizon, seed=number, latency=[0.0, horizon / 41.0][number % 2]
        )
        found.append(left_behind(engine, engine.run()))
    assert differing(*found) == []


def counted_in(money: float) -> qu.Queue:
    """The paper's first queue with pay by lot, in another unit of money; one class pays its largest amount rarely."""
    laws = (qu.TwoPoint(20.0 * money, 0.02), qu.Empirical([0.0, 0.0, 5.0 * money, 35.0 * money]))
    classes = [
        replace(c, reward=law.mean, pays=law, holding_cost=qu.Linear(0.1 * money))
        for c, law in zip(paper_queue().classes, laws, strict=True)
    ]
    return qu.Queue(5, 20, 0.3, classes)


@pytest.mark.parametrize("money", [2.0**30, 2.0**-30, 2.0**400, 2.0**-400], ids="{:.0e}".format)
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_decisions_do_not_depend_on_the_unit_of_money(learner: Any, money: float) -> None:
    """To the last decision: every amount is a power of two times what it was."""
    plain, other = (qu.simulate(counted_in(one), learner, horizon=200.0, seed=9, log=True) for one in (1.0, money))
    same = ["time", "event", "job", "in_system", "wait"]
    assert plain.events[same].equals(other.events[same])
    assert other.curve.reward == pytest.approx(plain.curve.reward * money, rel=1e-9)


def test_where_nothing_is_ever_paid_whoever_finds_a_server_free_is_let_in() -> None:
    """All amounts that were seen are 0: there is nothing to plan with, and what is tried costs nobody a wait."""
    queue = qu.Queue(2, 6, 0.5, [qu.JobClass("a", 1.0, 0.0), qu.JobClass("b", 1.0, 0.0)])
    for learner in (qu.CertaintyEquivalent(rewards="unknown"), qu.Thompson(rewards="unknown")):
        run = qu.simulate(queue, learner, horizon=100.0, seed=1, log=True)
        admitted = run.events[run.events["event"] == "admit"]["in_system"]
        assert admitted.max() == 1
        assert (run.regret("gap")["regret"] == 0.0).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert run.rewards("realised_reward")["reward"].iloc[-1] == 0.0
