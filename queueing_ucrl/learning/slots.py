"""Certainty equivalence for rates that repeat with a known period, such as a day: they are learned hour by hour.

The period is cut into slots of equal length. lambda_i of slot k is estimated by (N_ik + SHAPE) / (t_k + SHAPE / l_i),
with N_ik the jobs that came in t_k of time in that slot and l_i the class's rate over all slots: a slot of which little
was seen is like the others. During the first period the ordinary learner is at work; afterwards the estimates are
planned for as if they were the truth: "anticipating", the best policy in time, found anew at the start of each period,
or "following", in each slot the policy that would be best if its rates stayed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.errors import SolverError
from queueing_ucrl.learning.beliefs import PointEstimate
from queueing_ucrl.learning.controller import Knowledge, Plan, Session, Tally
from queueing_ucrl.learning.planners import model_at
from queueing_ucrl.model.laws import Exponential
from queueing_ucrl.model.rate_patterns import Steps
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.solvers.periodic import PeriodicSolution, periodic_optimum
from queueing_ucrl.solvers.service import SolveRequest

Looking = Literal["anticipating", "following"]

SHAPE = 2.0  # jobs: what one holds of a slot before seeing it, from the others
NOBODY = 0.5  # jobs: a class that was never seen is thought to come so seldom


class SlotCounts:
    """Arrivals and time, by slot of the period."""

    def __init__(self, period: float, slots: int, classes: int) -> None:
        self.period = period
        self.arrivals = np.zeros((slots, classes), dtype=np.int64)
        self.time = np.zeros(slots)

    def slot(self, time: float) -> int:
        """The slot that a time is in."""
        phase = time / self.period - math.floor(time / self.period)
        return min(int(phase * len(self.time)), len(self.time) - 1)

    def boundary(self, time: float) -> float:
        """The end of the slot that `time` is in; at a boundary, of the next."""
        length = self.period / len(self.time)
        return length * (math.floor(time / length + 1e-9) + 1)

    def add(self, tally: Tally) -> None:
        """A tally within one slot; of a longer one, all goes to the slot of its middle."""
        slot = self.slot(tally.now - 0.5 * tally.duration)
        self.arrivals[slot] += tally.arrivals
        self.time[slot] += tally.duration

    def rates(self) -> FloatArray:
        """lambda_i by slot."""
        mean = np.maximum(self.arrivals.sum(axis=0), NOBODY) / math.fsum(self.time.tolist())
        return (self.arrivals + SHAPE) / (self.time[:, None] + SHAPE / mean)


class SlotSession:
    """Another session for the first period, then plans for the rates of each slot."""

    def __init__(
        self, knowledge: Knowledge, opening: Session, counts: SlotCounts, looking: Looking, solver: str
    ) -> None:
        self.knowledge = knowledge
        self.opening = opening
        self.counts = counts
        self.looking = looking
        self.solver = solver
        self.turn = 0
        self.best: PeriodicSolution | None = None

    def first(self) -> Plan:
        return self._cut(self.opening.first(), 0.0)

    def review(self, tally: Tally) -> Plan:
        counts, now = self.counts, tally.now
        counts.add(tally)
        turn = math.floor(now / counts.period + 1e-9)
        if turn == 0:
            return self._cut(self.opening.review(tally), now)
        if self.looking == "anticipating" and turn > self.turn:
            self.turn, self.best = turn, self._look_ahead()
        rates = counts.rates()[counts.slot(now + 1e-9 * counts.period)]
        until, belief = counts.boundary(now), PointEstimate(rates)
        if self.best is not None:
            return Plan(until=min(until, self.best.next_switch(now)), policy=self.best.at(now), belief=belief)
        model = model_at(self.knowledge, rates, None)
        assert model is not None
        return Plan(until=until, request=SolveRequest(model, self.solver), belief=belief)

    def _cut(self, plan: Plan, now: float) -> Plan:
        return replace(plan, until=min(plan.until, self.counts.boundary(now)))

    def _look_ahead(self) -> PeriodicSolution | None:
        """The best policy in time for the estimates; None where it is not found."""
        try:
            return periodic_optimum(self._queue(), math.inf)
        except (SolverError, ValueError):
            return None

    def _queue(self) -> Queue:
        """The queue of the estimates."""
        known, counts = self.knowledge, self.counts
        rates = counts.rates()
        slots = len(rates)
        times = [counts.period * k / slots for k in range(1, slots)]
        classes = []
        for i, paid in enumerate(known.payments):
            mean = math.fsum(rates[:, i].tolist()) / slots
            pattern = Steps(times, (rates[:, i] / mean).tolist(), counts.period)
            extras: dict[str, Any] = {"abandonment_cost": paid.abandonment_cost, "reward_at": paid.reward_at}
            classes.append(JobClass(paid.name, mean, paid.reward, paid.holding_cost, pattern, **extras))
        patience = Exponential(known.patience_rate) if known.patience_rate else None
        return Queue(known.servers, known.capacity, known.service_rate, classes, patience)
