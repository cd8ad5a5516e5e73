"""Certainty equivalence where classes differ in service and nobody waits: planning on the counts of each class.

Without waiting room, or with processor sharing, the numbers of jobs of each class are a Markov chain (`multi_count`),
and a plan with one pooled service rate may lose to admitting everybody. lambda_i = N_i / t; mu_i is known, or
(D_i - 1) / B_i from the departures and the busy time of the class, as for the one rate of a queue; until two jobs have
left of every class that came, everybody is admitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.controller import Knowledge, Plan, Tally
from queueing_ucrl.learning.estimators import LEAST_DEPARTURES, LoadPrior
from queueing_ucrl.learning.schedules import Clock
from queueing_ucrl.model.laws import Exponential
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import JobClass, System
from queueing_ucrl.solvers.multi_count import solve_counts

RAREST = 1e-9  # of the largest arrival rate: what a class that was not seen yet counts for


@dataclass(frozen=True)
class ClassEstimates:
    """lambda_i = N_i / t, and mu_i where it is not known (nan before two jobs of the class have left)."""

    arrival_rates: FloatArray
    service_rates: FloatArray | None = None

    def contains(self, arrival_rates: FloatArray) -> None:
        """A point claims nothing about how far off it is."""

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"rate_estimates": self.arrival_rates.tolist()}
        if self.service_rates is not None:
            found["class_service_rate_estimates"] = self.service_rates.tolist()
        return found


class CountsSession:
    """Counts by class, and the best policy on them, in one run."""

    def __init__(self, knowledge: Knowledge, clock: Clock, departures: int, load: LoadPrior | None = None) -> None:
        self.knowledge = knowledge
        self.clock = clock
        self.awaited = departures  # before the first review
        self.load = load
        self.arrivals = np.zeros(knowledge.class_count)
        self.departures = np.zeros(knowledge.class_count)
        self.busy_time = np.zeros(knowledge.class_count)

    def _everybody(self, belief: ClassEstimates | None) -> Plan:
        policy = Policy.admit_all(self.knowledge.capacity, self.knowledge.class_count)
        return Plan(until=self.clock.end, policy=policy, departure_limit=self.awaited or None, belief=belief)

    def first(self) -> Plan:
        return self._everybody(None)

    def review(self, tally: Tally) -> Plan:
        self.arrivals += tally.arrivals
        self.departures += tally.departures_by_class
        self.busy_time += tally.busy_time_by_class
        self.awaited = max(0, self.awaited - tally.departures)
        self.clock.advance(tally.now)
        rates = self.arrivals / tally.now if self.load is None else self.load.rates(self.arrivals, tally.now)
        service, belief = self.knowledge.class_service_rates, ClassEstimates(rates)
        if math.isnan(service[0]):
            told = (self.departures >= LEAST_DEPARTURES) & (self.busy_time > 0.0)
            service = np.where(told, (self.departures - 1.0) / np.where(told, self.busy_time, 1.0), math.nan)
            belief = ClassEstimates(rates, service)
            if not told[self.arrivals > 0].all():
                return self._everybody(belief)
            # a class that never came is believed to be served as the slowest: it counts for nothing yet
            service = np.where(told, service, np.nanmin(service)) if told.any() else service
        if not rates.any():
            return self._everybody(belief)
        return Plan(until=self.clock.end, policy=solve_counts(self._system(rates, service)).policy, belief=belief)

    def _system(self, rates: FloatArray, service: FloatArray) -> System:
        """The system that is believed in."""
        known, least = self.knowledge, RAREST * float(rates.max())
        classes = [
            JobClass(payment.name, max(float(rate), least), payment.reward, service=Exponential(float(mu)))
            for payment, rate, mu in zip(known.payments, rates, service, strict=True)
        ]
        return System(known.servers, known.capacity, classes, discipline=known.discipline)
