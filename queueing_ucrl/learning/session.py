"""The session of a learning controller: an estimator, a planner and a schedule, joined for one run."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

import numpy as np

from queueing_ucrl.learning.controller import Belief, Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import Estimator
from queueing_ucrl.learning.planners import Planner
from queueing_ucrl.learning.schedules import Clock
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.service import SolveRequest

B = TypeVar("B", bound=Belief)


def initial_policy(knowledge: Knowledge) -> Policy:
    """With nothing known: admit whatever pays by itself; while a server is free, where not even waits are known."""
    if math.isnan(knowledge.service_rate):
        free = np.arange(knowledge.capacity) < knowledge.servers
        return Policy(np.tile(free[:, None], (1, knowledge.class_count)))
    return Policy(knowledge.rewards >= 0.0)


class LearningSession(Generic[B]):
    """An estimator, a planner and a schedule, at work in one run."""

    def __init__(
        self,
        knowledge: Knowledge,
        estimator: Estimator[B],
        planner: Planner[B],
        clock: Clock,
        solver: str = "pi-b",
        uniformization: float | None = None,
        departures: int = 0,
    ) -> None:
        """departures: also review once so many jobs have left, the first of all reviews or not."""
        self.knowledge = knowledge
        self.estimator = estimator
        self.planner = planner
        self.clock = clock
        self.solver = solver
        self.uniformization = uniformization
        self.departures = departures  # still to be seen
        self.initial = initial_policy(knowledge)  # while nothing can be planned

    def first(self) -> Plan:
        return self._plan(self.estimator.prior())

    def review(self, tally: Tally) -> Plan:
        belief = self.estimator.update(tally, self.clock.length)
        self.departures = max(0, self.departures - tally.departures)
        self.clock.advance(tally.now)
        return self._plan(belief)

    def _plan(self, belief: B | None) -> Plan:
        planned = None if belief is None else self.planner(belief)
        until, truncation = self.clock.end, self.estimator.truncation(self.clock.length)
        limit = self.departures or None
        if planned is None:
            return Plan(until, policy=self.initial, departure_limit=limit, truncation=truncation, belief=belief)
        request = SolveRequest(
            planned.model,
            self.solver,
            epsilon=self.knowledge.max_reward / self.clock.length,  # eps_k = R_max / t_k
            uniformization=self.uniformization,
        )
        return Plan(until, request=request, departure_limit=limit, truncation=truncation, belief=planned.belief)
