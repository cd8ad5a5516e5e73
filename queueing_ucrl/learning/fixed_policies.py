"""Controllers that do not learn: what learners are measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.controller import Controller, FixedSession, Knowledge, Plan, Session, Tally
from queueing_ucrl.learning.option_checks import SOLVERS, check_choice, check_period, check_positive
from queueing_ucrl.messages import shown
from queueing_ucrl.model.drift_evaluation import PIECES
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import Sinusoid, Steps
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import JobClass, Queue, System
from queueing_ucrl.solvers.best_stationary import best_stationary
from queueing_ucrl.solvers.beyond import solve_beyond
from queueing_ucrl.solvers.periodic import PeriodicSolution, solve_periodic
from queueing_ucrl.solvers.service import SolveRequest

MOST_CHANGES = 10_000  # of the rates, within a mean service time: what `oracle-following` follows


class _PlansForNothing(Controller):
    """A controller without a model, which cannot be wrong."""

    def model_gap(self, system: System) -> str:
        return ""


@dataclass(frozen=True)
class Oracle(Controller):
    """Knows the rates and follows the best policy: its regret is noise around zero.

    Where classes differ in service and nobody waits it sees who is there, and in an environment the state of that.
    Where rates change in time, it knows their long-run means and keeps to the policy that would be best for those: a
    policy to compare with, not the best one; likewise where no best policy is known.

    Options:
        solver: the method that finds the policy: pi-b, pi, vi, vi-ae or lp
    """

    name: ClassVar[str] = "oracle"
    knows_truth: ClassVar[bool] = True
    solver: str = "pi-b"

    def __post_init__(self) -> None:
        check_choice("solver", self.solver, *SOLVERS)

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        assert knowledge.truth is not None
        best = None if knowledge.system is None else solve_beyond(knowledge.system)
        if best is not None:
            return FixedSession(best.policy)
        return OracleSession(SolveRequest(knowledge.truth.on_average().model, self.solver))

    def model_gap(self, system: System) -> str:
        return "" if solve_beyond(system) is not None else super().model_gap(system)

    def cautions(self, queue: Queue) -> list[str]:
        if not queue.drifts:
            return []
        return ["the arrival rates change in time; it keeps to the best policy for their means, which others may beat"]


@dataclass(frozen=True)
class OracleSession:
    """One request to the solver, and its answer for ever."""

    request: SolveRequest

    def first(self) -> Plan:
        return Plan(request=self.request)

    def review(self, tally: Tally) -> Plan:
        return self.first()


@dataclass(frozen=True)
class FollowingOracle(Controller):
    """Knows the rates of the moment and follows the policy that would be best if they stayed.

    It thinks again at each step of the rates, and where they change smoothly 64 times in a period. It does not look
    ahead: a policy to compare with, not the best one, which is that of `oracle-anticipating`.
    """

    name: ClassVar[str] = "oracle-following"
    knows_truth: ClassVar[bool] = True

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        assert knowledge.truth is not None
        changes = sum(map(_changes, knowledge.truth.classes)) / knowledge.truth.service_rate
        if changes > MOST_CHANGES:
            raise ValueError(
                f"the arrival rates change {changes:.3g} times within a mean service time, too often to follow "
                f"(at most {MOST_CHANGES:,}); take longer periods"
            )
        return FollowingSession(knowledge.truth)


@dataclass(frozen=True)
class FollowingSession:
    """The best policy for the rates of each stretch of time."""

    truth: Queue

    def _plan(self, now: float) -> Plan:
        until = next_change(self.truth, now)
        middle = 0.5 * (now + until) if math.isfinite(until) else now
        return Plan(until=until, request=SolveRequest(self.truth.at(middle).model))

    def first(self) -> Plan:
        return self._plan(0.0)

    def review(self, tally: Tally) -> Plan:
        return self._plan(tally.now)


def _changes(job_class: JobClass) -> float:
    """How often a class's arrival rate changes per unit of time, in the long run."""
    pattern = job_class.pattern
    if isinstance(pattern, Sinusoid):
        return PIECES / pattern.period
    return (len(pattern.times) + 1) / pattern.period if isinstance(pattern, Steps) else 0.0


def next_change(queue: Queue, now: float) -> float:
    """When one of the arrival rates changes next; for a sinusoid, at the next 64th of its period."""
    times = [math.inf]
    for pattern in (c.pattern for c in queue.classes):
        if isinstance(pattern, Sinusoid):
            piece = pattern.period / PIECES
            times.append(piece * (math.floor(now / piece + 1e-9) + 1))
        elif isinstance(pattern, Steps):
            base = 0.0 if math.isinf(pattern.period) else pattern.period * math.floor(now / pattern.period)
            marks = [start + t for start in (base, base + pattern.period) for t in (0.0, *pattern.times)]
            times += [t for t in marks if t > now * (1 + 1e-12)]
    return min(times)


@dataclass(frozen=True)
class AnticipatingOracle(Controller):
    """Knows how rates and servers on duty change, and follows the best policy of all, which sees a rush coming.

    For rates that repeat (`solve_periodic`). Its policy changes at times of its own, before the rates do.
    """

    name: ClassVar[str] = "oracle-anticipating"
    knows_truth: ClassVar[bool] = True

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        assert knowledge.truth is not None
        assert knowledge.system is not None
        system, queue = knowledge.system, knowledge.truth
        known = not system.not_markov or isinstance(system.servers, Shifts)
        best = solve_periodic(system if known else queue)
        changes = best.switches.size / best.period / queue.service_rate
        if changes > MOST_CHANGES:
            raise ValueError(
                f"the best policy changes {changes:.3g} times within a mean service time, too often to follow "
                f"(at most {MOST_CHANGES:,}); take longer periods"
            )
        return AnticipatingSession(best)

    def model_gap(self, system: System) -> str:
        return "" if isinstance(system.servers, Shifts) else system.not_markov


@dataclass(frozen=True)
class AnticipatingSession:
    """The best policy of each stretch of time."""

    best: PeriodicSolution

    def _plan(self, now: float) -> Plan:
        return Plan(until=self.best.next_switch(now), policy=self.best.at(now))

    def first(self) -> Plan:
        return self._plan(0.0)

    def review(self, tally: Tally) -> Plan:
        return self._plan(tally.now)


@dataclass(frozen=True)
class BestStationary(Controller):
    """Knows how the rates change in time and keeps to the best trunk reservation policy found that never changes.

    Best in the long run, where the rates repeat; else, or where a horizon is named, from empty up to the horizon.

    Options:
        horizon: the time to be best for; needed where the rates do not come back to where they were
    """

    name: ClassVar[str] = "best-stationary"
    knows_truth: ClassVar[bool] = True
    horizon: float | None = None  # needed where the rates do not repeat

    def __post_init__(self) -> None:
        check_positive("horizon", self.horizon)

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        assert knowledge.truth is not None
        if not knowledge.truth.drifts:
            return OracleSession(SolveRequest(knowledge.truth.model))
        return FixedSession(best_stationary(knowledge.truth, self.horizon)[0])


@dataclass(frozen=True)
class AdmitAll(_PlansForNothing):
    """Everybody gets in while there is room."""

    name: ClassVar[str] = "admit-all"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        return FixedSession(Policy.admit_all(knowledge.capacity, knowledge.class_count))


@dataclass(frozen=True)
class TrunkReservation(_PlansForNothing):
    """Class i gets in while fewer than levels[i] jobs are in the system.

    Options:
        levels: the control level of each class, in the scenario's order; for example [20, 10]
    """

    name: ClassVar[str] = "trunk-reservation"
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        for level in self.levels:
            if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or level < 0:
                raise ValueError(f"levels must be whole numbers of at least 0, got {level!r}")

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        if len(self.levels) != knowledge.class_count:
            raise ValueError(f"levels must name one level a class, {knowledge.class_count} in all, got {self.levels}")
        return FixedSession(Policy.trunk_reservation(self.levels, knowledge.capacity))


@dataclass(frozen=True)
class FixedPolicy(_PlansForNothing):
    """Keeps to a policy that somebody else has found; for Python, where a `Policy` also stands for its controller."""

    policy: Policy
    name: str = "fixed-policy"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise TypeError(f"policy must be a Policy, got {shown(self.policy)}")

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        shape = (knowledge.capacity, knowledge.class_count)
        if self.policy.admits.shape != shape:
            raise ValueError(f"the policy is for {self.policy.admits.shape} states and classes, the queue has {shape}")
        return FixedSession(self.policy)


@dataclass(frozen=True)
class RandomPolicy(_PlansForNothing):
    """Tosses a coin for each state and class, and again after every period.

    Options:
        admission_probability: how often the coin says yes
        period: the time until the coins are tossed again; without it, a hundred mean service times
    """

    name: ClassVar[str] = "random"
    admission_probability: float = 0.5
    period: float | None = None  # default: a hundred mean service times

    def __post_init__(self) -> None:
        if not 0 <= self.admission_probability <= 1:
            raise ValueError(f"admission_probability must be between 0 and 1, got {self.admission_probability}")
        check_positive("period", self.period)

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        period = 100.0 / knowledge.service_rate if self.period is None else self.period
        check_period("period", period, knowledge)
        return RandomSession(self.admission_probability, period, knowledge, rng)


@dataclass(frozen=True)
class RandomSession:
    """A random table for each period."""

    probability: float
    period: float
    knowledge: Knowledge
    rng: np.random.Generator

    def _plan(self, now: float) -> Plan:
        shape = self.knowledge.rewards.shape
        return Plan(until=now + self.period, policy=Policy(self.rng.random(shape) < self.probability))

    def first(self) -> Plan:
        return self._plan(0.0)

    def review(self, tally: Tally) -> Plan:
        return self._plan(tally.now)
