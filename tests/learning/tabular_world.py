"""The uniformized queue tick by tick, for the general-purpose learners' tests: independent of both engines."""

from __future__ import annotations

import math

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Tally, TickTally
from queueing_ucrl.learning.tabular.session import Experience, TabularSession


def small_queue() -> qu.Queue:
    """One server, room for two; the best policy refuses the basic class, and the next best earns a tenth less."""
    cost = qu.Linear(1.0)
    return qu.Queue(1, 2, 1.0, [qu.JobClass("gold", 1.0, 20.0, cost), qu.JobClass("basic", 1.5, 2.0, cost)])


@compiled
def _episode(
    admits,
    rates,
    pay,
    service_rates,
    tick_rate,
    limits,
    numbers,
    used,
    state,
    visits,
    ups,
    downs,
    admitted,
    sums,
    squares,
):  # type: ignore[no-untyped-def]
    """Ticks until a state's visits reach their limit or the numbers are used up; (numbers used, state, why)."""
    capacity, classes = admits.shape
    while used < numbers.size:
        s = state
        z = numbers[used] * tick_rate
        used += 1
        visits[s] += 1
        if z < service_rates[s]:
            downs[s] += 1
            state = s - 1
        elif s < capacity:
            z -= service_rates[s]
            for i in range(classes):
                if z < rates[i]:
                    if admits[s, i]:
                        ups[s] += 1
                        admitted[s, i] += 1
                        state = s + 1
                        sums[s] += pay[s, i]
                        squares[s] += pay[s, i] ** 2
                    break
                z -= rates[i]
        if visits[s] >= limits[s]:
            return used, state, True
    return used, state, False


class TickWorld:
    """Drives one session; keeps all plans and tallies."""

    def __init__(self, queue: qu.Queue, controller: Controller, seed: int) -> None:
        self.queue = queue
        self.knowledge = Knowledge.of(queue, ticks=True)
        world, own = np.random.SeedSequence(seed).spawn(2)
        self.random = np.random.default_rng(world)
        self.session = controller.begin(self.knowledge, np.random.default_rng(own))
        self.pay = queue.rewards / queue.max_reward
        self.state = 0
        self.plans: list[Plan] = []
        self.tallies: list[TickTally] = []

    def run(self, ticks: int) -> Plan:
        """So many ticks; the plan in force at the end."""
        numbers = self.random.random(ticks)
        used = 0
        self.plans.append(self.session.first())
        while used < ticks:
            plan = self.plans[-1]
            X = self.queue.capacity + 1
            counts = [np.zeros(X, dtype=np.int64) for _ in range(3)]
            admitted = np.zeros(self.queue.rewards.shape, dtype=np.int64)
            sums = [np.zeros(X) for _ in range(2)]
            assert plan.policy is not None
            assert plan.visit_limits is not None
            queue = (self.queue.arrival_rates, self.pay, self.queue.service_rates, self.knowledge.tick_rate)
            at = (numbers, used, self.state)
            used, self.state, reviewed = _episode(
                plan.policy.admits, *queue, plan.visit_limits, *at, *counts, admitted, *sums
            )
            if not reviewed:
                break
            tally = TickTally(counts[0], counts[1], counts[2], sums[0], sums[1])
            self.tallies.append(tally)
            self.plans.append(self.session.review(_tally(admitted, tally, used / self.knowledge.tick_rate)))
        return self.plans[-1]


def _tally(admitted: np.ndarray, ticks: TickTally, now: float) -> Tally:
    S, m = admitted.shape
    return Tally(now, 0.0, np.zeros(m, dtype=np.int64), 0.0, 0.0, admitted, np.zeros(S + 1), 0, 0.0, ticks)


def promises(queue: qu.Queue, controller: Controller, ticks: int) -> list[float]:
    """Of each plan on a path its optimistic gain less the best one, to the accuracy asked of the planning."""
    world = TickWorld(queue, controller, 2)
    best = qu.solve(queue).gain / queue.max_reward / world.knowledge.tick_rate
    session = world.session
    assert isinstance(session, TabularSession)
    made: list[float] = []
    plan = session.best

    def noted(seen: Experience):  # type: ignore[no-untyped-def]
        found = plan(seen)
        made.append(found.gain - best + 1.0 / math.sqrt(max(1, seen.steps)))
        return found

    session.best = noted  # type: ignore[method-assign]
    world.run(ticks)
    return made
