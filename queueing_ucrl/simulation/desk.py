"""The control desk: between the engines, the controller's session and the solver service."""

from __future__ import annotations

from typing import Any

import numpy as np

from queueing_ucrl.learning.controller import Belief, Controller, Knowledge, Plan, Tally, TickTally
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import one_line
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import IntArray, Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.records import EPISODE_COLUMNS, Episode, Records
from queueing_ucrl.solvers.service import SolverService

LONGEST_TITLE = 200  # characters of a controller's name
IDLE_REVIEWS = 20_000  # in a row: reviews at which nobody came or left since the last


def controller_name(controller: Any) -> str:
    """What a controller is called in tables and files."""
    return one_line(getattr(controller, "name", type(controller).__name__), "a controller's name", LONGEST_TITLE)


def refuse_class(controller: Any) -> None:
    """`Oracle` in place of `Oracle()` gets words of its own."""
    if isinstance(controller, type) and issubclass(controller, Controller):
        raise TypeError(
            f"controller {controller.__name__} is a class: give an object of it, {controller.__name__}(...)"
        )


def _needs(session: Any, method: str, name: str) -> None:
    if not callable(getattr(session, method, None)):
        raise TypeError(
            f"controller {name}: begin() must return a session with `{method}`, got {type(session).__name__}"
        )


def begin_session(queue: Queue, controller: Any, chance: np.random.Generator) -> Any:
    """The controller's session on a queue of which it is told what it may know."""
    refuse_class(controller)
    if not callable(getattr(controller, "begin", None)):
        raise TypeError(
            f"controller must be a controller's name or an object with `begin`, got {shown(type(controller))}"
        )
    knowledge = Knowledge.of(
        queue,
        truth=getattr(controller, "knows_truth", False),
        ticks=getattr(controller, "sees_ticks", False),
        service_rate=getattr(controller, "knows_service_rate", True),
    )
    session = controller.begin(knowledge, chance)
    _needs(session, "first", controller_name(controller))
    name, decides = controller_name(controller), hasattr(session, "decide")
    if decides != bool(getattr(controller, "decides_each_arrival", False)):
        raise TypeError(
            f"controller {name}: its session has `decide`, so it must say decides_each_arrival = True"
            if decides
            else f"controller {name}: says decides_each_arrival = True, but its session has no `decide`"
        )
    return session


class ControlDesk:
    """Hands tallies to the session, its requests to the solver service, and policies to the engine."""

    def __init__(self, queue: Queue, controller: Any, chance: np.random.Generator, records: Records) -> None:
        self.queue = queue
        self.name = controller_name(controller)
        self.ticking: bool = getattr(controller, "sees_ticks", False)
        self.session = begin_session(queue, controller, chance)
        self.solver = SolverService()
        self.records = records
        self.episode = 1
        self.plan: Plan | None = None
        self.policy: Policy | None = None
        self._totals: tuple[IntArray, IntArray, int] | None = None
        self._began = 0.0
        self._idle = 0

    def first(self) -> Plan:
        """The plan at time 0."""
        self.plan = self._checked(self.session.first(), 0.0)
        return self.plan

    def _checked(self, plan: Plan, now: float) -> Plan:
        if not isinstance(plan, Plan):
            raise TypeError(f"controller {self.name}: a session must answer with a Plan, got {type(plan).__name__}")
        if not plan.until > now:
            raise ValueError(f"controller {self.name}: asked for a review at {plan.until}, which is not after {now}")
        if plan.asks_again:
            _needs(self.session, "review", self.name)
        if plan.visit_limits is not None:
            if not self.ticking:
                raise ValueError(f"controller {self.name}: visit limits are for controllers with sees_ticks = True")
            limits = np.asarray(plan.visit_limits)
            whole = limits.dtype.kind in "iu" and limits.shape == (self.queue.capacity + 1,)
            if not whole or np.any(limits < 1) or np.any(limits > np.iinfo(np.int64).max):
                raise ValueError(f"controller {self.name}: visit_limits must be S + 1 whole numbers of at least 1")
        for method in ("contains", "columns") if plan.belief is not None else ():
            if not callable(getattr(plan.belief, method, None)):
                raise TypeError(
                    f"controller {self.name}: a plan's belief must have `{method}`, got {shown(plan.belief)}"
                )
        return plan

    def _columns(self, belief: Belief) -> dict[str, Any]:
        """The belief's columns, whose names are its own."""
        columns = belief.columns()
        if not isinstance(columns, dict):
            raise TypeError(f"controller {self.name}: a belief's columns() must be a dict, got {shown(columns)}")
        for key in columns:
            if not isinstance(key, str) or key in EPISODE_COLUMNS:
                raise ValueError(f"controller {self.name}: a belief's column cannot be called {shown(key)}")
        return columns

    def decides(self, job_class: int, in_system: int, now: float) -> bool:
        """What the session's own code says to an arrival: yes or no, and nothing else."""
        answer = self.session.decide(job_class, in_system, now)
        if isinstance(answer, (bool, np.bool_)) or (isinstance(answer, (int, np.integer)) and answer in (0, 1)):
            return bool(answer)
        raise TypeError(f"controller {self.name}: decide() must answer True or False, got {shown(answer)}")

    def adopt(self, plan: Plan, now: float) -> Policy:
        """The plan's policy, solved for if need be; in force from now on."""
        policy = plan.policy
        if policy is None:
            assert plan.request is not None
            policy = self.solver.answer(plan.request, now).policy
        if policy.admits.shape != self.queue.rewards.shape:
            raise ValueError(
                f"controller {self.name}: its policy is for {policy.admits.shape} states and classes, "
                f"the queue has {self.queue.rewards.shape}"
            )
        self.policy = policy
        self.records.adopt(now, policy)
        return policy

    def tally(
        self,
        now: float,
        arrivals: IntArray,
        gap_sum: float,
        truncated_gap_sum: float,
        departures: int,
        time_in_state: FloatArray,
        ticks: TickTally | None = None,
    ) -> Tally:
        """What was seen since the last call, from running totals (arrivals, departures) and the episode's own sums."""
        admitted = self.records.counts.admitted
        before = self._totals or (np.zeros_like(arrivals), np.zeros_like(admitted), 0)
        self._totals = (arrivals.copy(), admitted.copy(), departures)
        busy = np.minimum(np.arange(self.queue.capacity + 1), self.queue.servers)
        began, self._began = self._began, now
        return Tally(
            now=now,
            duration=now - began,
            arrivals=arrivals - before[0],
            gap_sum=gap_sum,
            truncated_gap_sum=truncated_gap_sum,
            admissions=admitted - before[1],
            time_in_state=time_in_state.copy(),
            departures=departures - before[2],
            busy_time=float((busy * time_in_state).sum()),
            ticks=ticks,
        )

    def close_episode(self, tally: Tally) -> None:
        """Enter the stretch that ends now into the episode table."""
        assert self.plan is not None
        assert self.policy is not None
        belief = self.plan.belief
        self.records.busy_time += tally.busy_time
        self.records.close_episode(
            Episode(
                number=self.episode,
                start=tally.now - tally.duration,
                end=tally.now,
                arrivals=tally.arrival_count,
                expected_reward=float((tally.admissions * self.queue.rewards).sum()),
                policy=self.policy,
                belief={} if belief is None else self._columns(belief),
                truth_inside=None  # rates that change in time are no one truth
                if belief is None or self.queue.drifts
                else belief.contains(self.queue.arrival_rates),
            )
        )

    def visit_limits(self) -> IntArray:
        """After how many ticks in a state the current plan wants a review; in all other cases, never."""
        assert self.plan is not None
        if self.plan.visit_limits is None:
            return np.full(self.queue.capacity + 1, np.iinfo(np.int64).max)
        return np.array(self.plan.visit_limits, dtype=np.int64)

    def review(self, tally: Tally) -> Plan:
        """The session's next plan; a new episode begins."""
        self._idle = 0 if tally.arrival_count or tally.departures else self._idle + 1
        if self._idle > IDLE_REVIEWS:
            raise ValueError(
                f"controller {self.name}: {IDLE_REVIEWS:,} reviews in a row, the last at time {tally.now:g}, at which "
                "nobody had come or left since the one before: they follow each other far too closely"
            )
        self.close_episode(tally)
        self.episode += 1
        self.plan = self._checked(self.session.review(tally), tally.now)
        return self.plan
