"""The session of a learning controller: an estimator, a planner and a schedule, joined for one run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from queueing_ucrl.learning.controller import Belief, Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import Estimator
from queueing_ucrl.learning.payments import PaymentsLearner, PricedBelief
from queueing_ucrl.learning.planners import Planner, PlanningModel
from queueing_ucrl.learning.schedules import ArrivalGrid, Clock
from queueing_ucrl.model.costs import Unknown
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.service import SolveRequest

B = TypeVar("B", bound=Belief)


def initial_policy(knowledge: Knowledge) -> Policy:
    """With nothing known: admit whatever pays by itself; while a server is free, where not even waits are known.

    So too where it is not known who pays what, or who is at the door. Where it is not known what waits cost: everybody.
    """
    if isinstance(knowledge.holding_costs[0], Unknown):
        return Policy.admit_all(knowledge.capacity, knowledge.class_count)
    unknown = math.isnan(knowledge.service_rate) or math.isnan(knowledge.max_reward)
    if unknown or not knowledge.sees_classes:
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
        payments: PaymentsLearner | None = None,
        arrivals: ArrivalGrid | None = None,
    ) -> None:
        """departures: also review once so many jobs have left, the first of all reviews or not.

        payments: what learns of rewards and holding costs, where they are not known. arrivals: reviews are on a grid of
        numbers of arrivals, and the clock says only how long the last one is ago.
        """
        self.knowledge = knowledge
        self.estimator = estimator
        self.planner = planner
        self.clock = clock
        self.solver = solver
        self.uniformization = uniformization
        self.departures = departures  # still to be seen
        self.payments = payments
        self.arrivals = arrivals
        self.initial = initial_policy(knowledge)  # while nothing can be planned

    def first(self) -> Plan:
        return self._plan(self.estimator.prior())

    def review(self, tally: Tally) -> Plan:
        belief = self.estimator.update(tally, self.clock.length)
        if self.payments is not None:
            self.payments.add(tally)
        if self.arrivals is not None:
            self.arrivals.add(tally.arrival_count)
        self.departures = max(0, self.departures - tally.departures)
        self.clock.advance(tally.now)
        return self._plan(belief)

    def _planned(self, belief: B | None) -> tuple[PlanningModel | None, Knowledge]:
        """What the planner makes of the belief and of what is known, or believed to be paid; None: nothing yet."""
        if belief is None or self.payments is None:
            return None if belief is None else self.planner(belief), self.knowledge
        known = self.payments.believed(self.clock.start)
        if known is None:
            return None, self.knowledge
        planner: Planner[B] = replace(cast(Any, self.planner), knowledge=known)
        planned = planner(belief)
        if planned is not None:
            planned = PlanningModel(planned.model, PricedBelief(planned.belief, self.payments.columns))
        return planned, known

    def _plan(self, belief: B | None) -> Plan:
        planned, known = self._planned(belief)
        until = self.clock.end
        limits: dict[str, Any] = {"departure_limit": self.departures or None}
        if self.arrivals is not None:
            until, limits["arrival_limit"] = self.clock.start + self.arrivals.longest, self.arrivals.limit
        truncation = self.estimator.truncation(self.clock.length)
        if planned is None:
            return Plan(until=until, policy=self.initial, truncation=truncation, belief=belief, **limits)
        request = SolveRequest(
            planned.model,
            self.solver,
            epsilon=known.max_reward / self.clock.length,  # eps_k = R_max / t_k
            uniformization=self.uniformization,
        )
        return Plan(until=until, request=request, truncation=truncation, belief=planned.belief, **limits)
