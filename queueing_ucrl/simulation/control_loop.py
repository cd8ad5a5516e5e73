"""The control loop: an engine says what it has seen, the controller's session answers, the solver finds policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.learning.controller import Belief, Controller, Knowledge, Plan, Tally, TickTally
from queueing_ucrl.learning.online.memory import Memory
from queueing_ucrl.messages import shown
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.ledger import (
    ABANDONED,
    ARRIVED,
    BLOCKED,
    DEPARTED,
    EPISODE_COLUMNS,
    FOUND,
    STARTED,
    Episode,
    Ledger,
)
from queueing_ucrl.solvers.service import SolverService

OnReview = Callable[[Tally | None, Plan], None]  # is told what a session was handed (None: nothing yet) and answered

_NOTHING: dict[str, Any] = {}
IDLE_REVIEWS = 20_000  # in a row: reviews at which nobody came or left since the last


def _needs(session: Any, method: str, name: str) -> None:
    if not callable(getattr(session, method, None)):
        raise TypeError(
            f"controller {name}: begin() must return a session with `{method}`, got {type(session).__name__}"
        )


def begin_session(system: System, controller: Controller, rng: np.random.Generator) -> Any:
    """The controller's session on a system of which it is told what it may know."""
    session = controller.begin(Knowledge.shown_to(controller, system), rng)
    _needs(session, "first", controller.name)
    name, decides = controller.name, hasattr(session, "decide")
    if decides != bool(controller.decides_each_arrival):
        raise TypeError(
            f"controller {name}: its session has `decide`, so it must say decides_each_arrival = True"
            if decides
            else f"controller {name}: says decides_each_arrival = True, but its session has no `decide`"
        )
    remembers = isinstance(getattr(session, "memory", None), Memory)
    if controller.learns_each_tick and not (controller.sees_ticks and remembers):
        raise TypeError(f"controller {name}: one with learns_each_tick = True must see ticks, and have a Memory")
    return session


def first_answer(session: Any, name: str) -> Any:
    """What a session answers at time 0; an error in its code names its controller."""
    try:
        return session.first()
    except Exception as error:
        error.add_note(f"in first() of controller {name}")
        raise


class ControlLoop:
    """Hands tallies to the session, its requests to the solver service, and policies to the engine."""

    def __init__(
        self, controller: Controller, rng: np.random.Generator, ledger: Ledger, on_review: OnReview | None = None
    ) -> None:
        self.system = ledger.comparator.system
        self.name = controller.name
        self.idle_ticks = controller.sees_ticks  # those of the uniformized chain at which nothing happens
        self.ticking = controller.sees_ticks or controller.counts_visits
        self.sees_rejected, self.sees_classes = controller.sees_rejected, controller.sees_classes
        self.sees_payments, self.sees_waits = not controller.knows_rewards, not controller.knows_holding_costs
        self.session = begin_session(self.system, controller, rng)
        self._sees_environment = bool(getattr(self.session, "sees_environment", False))
        self.memory: Memory | None = self.session.memory if controller.learns_each_tick else None
        self.solver = SolverService()
        self.ledger = ledger
        self.on_review = on_review
        self.episode = 1
        self.plan: Plan | None = None
        self.policy: Policy | None = None
        self._iterations: int | None = None  # of the solver, in this episode
        self._rewards, self._arrival_rates = self.system.rewards, self.system.arrival_rates
        self._drifts, self._balks, self._steady = self.system.drifts, self.system.balks, not self.system.unsteady
        states = np.arange(self.system.capacity + 1.0)
        busy = np.minimum(states, self.system.most_servers)  # servers, by state
        self._busy_and_waiting = np.array([busy, states - busy])
        self._admitted = np.zeros_like(ledger.admitted)  # up to the last review, as all that follows
        self._rejected = np.zeros_like(ledger.rejected)
        self._counts = np.zeros_like(ledger.counts)
        self._paid = np.zeros_like(ledger.paid)
        self._waited = np.zeros_like(ledger.waits.seen)
        self._time_in_state = np.zeros(self.system.capacity + 1)  # of this episode, up to the last change of policy
        self._open_time = np.zeros(len(self.system.classes))  # in that time
        self._began = 0.0
        self._idle = 0

    def first(self) -> Plan:
        """The plan at time 0."""
        return self._take(None, first_answer(self.session, self.name), 0.0)

    def _take(self, tally: Tally | None, plan: Any, now: float) -> Plan:
        self.plan = self._checked(plan, now)
        if self.on_review is not None:
            self.on_review(tally, self.plan)
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
                needed = "sees_ticks = True or counts_visits = True"
                raise ValueError(f"controller {self.name}: visit limits are for controllers with {needed}")
            limits = np.asarray(plan.visit_limits)
            whole = limits.dtype.kind in "iu" and limits.shape == (self.system.capacity + 1,)
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

    def decides(self, job_class: int, in_system: int, now: float, environment: int) -> bool:
        """What the session's own code says to an arrival: yes or no, and nothing else."""
        seen = (environment,) if self._sees_environment else ()
        try:
            answer = self.session.decide(job_class, in_system, now, *seen)
        except Exception as error:
            error.add_note(f"in decide() of controller {self.name}, at time {now:g}")
            raise
        if isinstance(answer, (bool, np.bool_)) or (isinstance(answer, (int, np.integer)) and answer in (0, 1)):
            return bool(answer)
        raise TypeError(f"controller {self.name}: decide() must answer True or False, got {shown(answer)}")

    def adopt(self, plan: Plan, now: float) -> Policy:
        """The plan's policy, solved for if need be; in force from now on."""
        policy = plan.policy
        if policy is None:
            assert plan.request is not None
            solution = self.solver.answer(plan.request, now)
            policy, self._iterations = solution.policy, (self._iterations or 0) + solution.iterations
        self._check_fits(policy)
        self._check_sees(policy)
        self.policy = policy
        self.ledger.adopt(now, policy)
        return policy

    def _check_fits(self, policy: Policy) -> None:
        """Whether the policy's table has a row for all that can be seen."""
        shape, strides = policy.admits.shape, policy.class_strides
        if not policy.sees_more:
            if shape != self.ledger.admitted.shape:
                raise ValueError(
                    f"controller {self.name}: its policy is for {shape} states and classes, "
                    f"the queue has {self.ledger.admitted.shape}"
                )
            return
        states, m = self.ledger.admitted.shape
        others = 0 if self.system.environment is None else self.system.environment.states - 1
        rows = 1 + max(strides or (1,)) * (states - 1) + policy.environment_stride * others
        if shape[1] != m or shape[0] < rows or (strides is not None and len(strides) != m):
            seen = f", with environments = {others + 1} if it is an agent" if policy.environment_stride else ""
            raise ValueError(
                f"controller {self.name}: its policy has a table of {shape[0]} rows and {shape[1]} classes, "
                f"the system needs {rows} rows and has {m} classes{seen}"
            )

    def _check_sees(self, policy: Policy) -> None:
        """Whether the policy needs no more than the controller sees of those who are at the door."""
        if not self.sees_rejected and policy.sees_more:
            raise ValueError(
                f"controller {self.name}: says sees_rejected = False, so its policies must be tables by number of jobs"
            )
        if not self.sees_classes and not np.all(policy.admits == policy.admits[:, :1]):
            raise ValueError(
                f"controller {self.name}: says sees_classes = False, so its policies must treat all classes alike"
            )

    def pass_open_time(self, time_in_state: FloatArray) -> None:
        """The policy in force is about to change: add up in which time jobs of each class would have been let in."""
        if self.policy is not None:
            since = time_in_state - self._time_in_state
            self._open_time += (self.policy.admits * since[:-1, None]).sum(axis=0)
        self._time_in_state = time_in_state.copy()

    def table(self) -> BoolArray:
        """The admission table in force, not to be written into: the policy's, or the one that a learner writes."""
        assert self.policy is not None
        if self.memory is None:
            return self.policy.admits
        table = self.memory.table.view()
        table.flags.writeable = False
        return table

    def strides(self) -> IntArray:
        """The policy in force is asked at row sum_i strides[i] n_i + environment_stride e of its table."""
        assert self.policy is not None
        return np.array(self.policy.class_strides or (1,) * len(self.system.classes), dtype=np.int64)

    def present(self) -> IntArray:
        """Jobs of each class in the system, from the ledger's counts."""
        counts = self.ledger.counts
        entered = self.ledger.admitted.sum(axis=0) + counts[FOUND]
        return np.asarray(entered - counts[DEPARTED] - counts[ABANDONED], dtype=np.int64)

    def tally(
        self,
        now: float,
        sums: tuple[float, float, float, int],
        time_in_state: FloatArray,
        busy_time_by_class: FloatArray,
        ticks: TickTally | None,
    ) -> Tally:
        """What was seen since the last call, from the ledger's running totals and what the engine counted by episode.

        sums: of the gaps between arrivals, of the truncated ones, of waiting; and the environment's state.
        """
        ledger, (gap_sum, truncated_gap_sum, waiting_time, environment) = self.ledger, sums
        since = ledger.counts - self._counts
        admissions, rejections = ledger.admitted - self._admitted, ledger.rejected - self._rejected
        departed = since[DEPARTED]
        busy_time, waiting_time = self._busy_and_waiting_time(time_in_state, busy_time_by_class, waiting_time)
        seen = Tally(
            now=now,
            duration=now - self._began,
            arrivals=since[ARRIVED],
            gap_sum=gap_sum,
            truncated_gap_sum=truncated_gap_sum,
            admissions=admissions,
            rejections=rejections,
            blocked=since[BLOCKED],
            time_in_state=time_in_state,
            departures=sum(departed.tolist()),
            busy_time=busy_time,
            ticks=ticks,
            abandonments=since[ABANDONED],
            starts=since[STARTED],
            departures_by_class=departed,
            busy_time_by_class=busy_time_by_class,
            waiting_time=waiting_time,
            environment=environment,
            **(self._payments(since, admissions) if self.sees_payments else _NOTHING),
            **(self._waits() if self.sees_waits else _NOTHING),
        )
        self._began = now
        self._counts += since
        self._admitted += admissions
        self._rejected[:] = ledger.rejected
        return seen if self.sees_rejected else self._of_admitted(seen)

    def _busy_and_waiting_time(
        self, time_in_state: FloatArray, busy_time_by_class: FloatArray, waiting_time: float
    ) -> tuple[float, float]:
        """Where c servers are there at all times, both follow from the time in each state."""
        if self._steady:
            busy_time, waiting_time = np.add.reduce(self._busy_and_waiting * time_in_state, axis=1).tolist()
            return busy_time, waiting_time
        return float(sum(busy_time_by_class.tolist())), waiting_time

    def _of_admitted(self, seen: Tally) -> Tally:
        """The tally for who sees no more than the jobs that were let in, and knows when the door was open."""
        self.pass_open_time(seen.time_in_state)
        open_time, self._open_time = self._open_time, np.zeros_like(self._open_time)
        self._time_in_state = np.zeros_like(self._time_in_state)
        return replace(
            seen,
            arrivals=seen.admissions.sum(axis=0),
            gap_sum=math.nan,
            truncated_gap_sum=math.nan,
            rejections=np.zeros_like(seen.rejections),
            blocked=np.zeros_like(seen.blocked),
            open_time=open_time,
        )

    def _waits(self) -> dict[str, Any]:
        """Waits that were over since the last call: number, sum and cost."""
        seen = self.ledger.waits.seen
        count, total, cost = seen - self._waited
        self._waited[:] = seen
        return {"wait_count": count.astype(np.int64), "wait_sum": total, "wait_cost_sum": cost}

    def _payments(self, since: IntArray, admissions: IntArray) -> dict[str, Any]:
        """What was paid since the last call; where all jobs of a class pay alike, counts say it."""
        system, ledger = self.system, self.ledger
        paying = {"admission": admissions.sum(axis=0), "start": since[STARTED], "end": since[DEPARTED]}
        count = np.array([paying[c.reward_at][i] for i, c in enumerate(system.classes)], dtype=np.int64)
        if system.pays_differ:
            total, squares, _ = ledger.paid - self._paid
            self._paid[:] = ledger.paid
        else:
            total, squares = count * system.job_rewards, count * (system.job_rewards * system.job_rewards)
            self._paid[2] = np.where(count > 0, system.job_rewards, self._paid[2])
        most = self._paid[2].copy()
        return {"paid_count": count, "paid_sum": total, "paid_square_sum": squares, "most_paid": most}

    def close_episode(self, tally: Tally) -> None:
        """Enter the stretch that ends now into the episode table."""
        assert self.plan is not None
        assert self.policy is not None
        belief = self.plan.belief
        self.ledger.busy_time += tally.busy_time
        self.ledger.close_episode(
            Episode(
                number=self.episode,
                start=tally.now - tally.duration,
                end=tally.now,
                arrivals=tally.arrival_count,
                expected_reward=float(np.add.reduce(tally.admissions * self._rewards, axis=None)),
                policy=self.policy,
                belief={} if belief is None else self._columns(belief),
                truth_inside=None if belief is None else self._holds_truth(belief),
                solver_iterations=self._iterations,
            )
        )
        self._iterations = None

    def _holds_truth(self, belief: Belief) -> bool | None:
        """Whether the true rates are plausible; rates that change in time, or with the state, are no one truth.

        A belief about rates by state (`by_state`) is asked about those.
        """
        if self._drifts:
            return None
        if getattr(belief, "by_state", False):
            return belief.contains(self.system.queue.rates_by_state[:-1])
        return None if self._balks else belief.contains(self._arrival_rates)

    def visit_limits(self) -> IntArray:
        """After how many ticks in a state the current plan wants a review; in all other cases, never."""
        assert self.plan is not None
        if self.plan.visit_limits is None:
            return np.full(self.system.capacity + 1, np.iinfo(np.int64).max)
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
        try:
            plan = self.session.review(tally)
        except Exception as error:
            error.add_note(f"in review() of controller {self.name}, at time {tally.now:g}")
            raise
        return self._take(tally, plan, tally.now)
