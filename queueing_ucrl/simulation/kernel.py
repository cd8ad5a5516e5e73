"""The compiled twin of the SimPy world: the same sample paths to the last bit, two orders of magnitude sooner.

A loop runs the system with a fixed admission table up to a time, and can stop and go on anywhere: all state is in the
arrays of `kernel_state.State`. It notes the counts at the times of the grid as it passes them, and comes back early
when a class has used up its block of jobs or a buffer is full. `Kernel.go_on` runs to any time, and the `Kernel` can be
copied or pickled there: what comes after is the same. There are two loops, so that a plain queue pays for nothing that
it does not have: `patient_loop` for jobs that wait for ever and c servers at all times, `general_loop` for all else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray, Records, record_type, records
from queueing_ucrl.learning.controller import Controller, Plan, Tally, TickTally
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation import general_loop, patient_loop
from queueing_ucrl.simulation.changes import CHANGES_AT_A_TIME, ChangeBlock, change_block
from queueing_ucrl.simulation.engine import Engine, hands_over, posts_at_first, server_count
from queueing_ucrl.simulation.event_log import REVIEW, REWARDED, ROW, Row
from queueing_ucrl.simulation.kernel_state import (
    DUE,
    FULL,
    NEVER,
    PAY,
    REACHED,
    REFILL,
    TABLE,
    WORK,
    Arrivals,
    Buffers,
    Changes,
    Clock,
    GeneralState,
    InitialJob,
    Noted,
    PatientJob,
    PatientState,
    Present,
    PresentJob,
    Server,
    Services,
    Tallied,
    Ticks,
    open_episode,
    pass_time,
)
from queueing_ucrl.simulation.ledger import Unfinished
from queueing_ucrl.simulation.sources import JOBS_AT_A_TIME, JobBlock, listed_jobs
from queueing_ucrl.simulation.tournament import tournament

ROWS = 131_072  # of the event log kept before they are handed on: from 4 MB on, they get large pages
WAITS = 16_384
COUNTED_AT_TICKS = ("visits", "ups", "downs", "reward_sum", "reward_square_sum")  # as `TickTally` has them


def is_plain(system: System) -> bool:
    """Whether jobs wait for ever, those of a class all pay alike, and c servers are there at all times."""
    impatient = any(system.patience_of(i) is not None for i in range(len(system.classes)))
    return not (impatient or system.unsteady or system.initial or system.pays_differ)


class Kernel(Engine):
    """Drives one of the loops from review to review."""

    name = "compiled"
    rows_kept, waits_kept = ROWS, WAITS

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.plain = is_plain(self.system)
        self.state = self._fresh_state()
        self.left = np.zeros(len(self.system.classes))  # for the jobs at servers, at the last review
        for i in range(len(self.sources) + (not self.plain)):
            self._fill(i)
        self.now = 0.0
        self.next_control = 0.0  # when the next review is, or the solver's answer to the last
        self.asked: Plan | None = None  # what the solver has not answered yet
        self.departure_limit = NEVER  # departures in all at which the plan wants a review
        self.stops = self.progress_times()

    @property
    def clock(self) -> Any:
        """The one record of `state.clock`."""
        return self.state.clock[0]

    @staticmethod
    def refuses(system: System, controller: Controller) -> str | None:
        return "decides each arrival by code of its own" if controller.decides_each_arrival else None

    # ---- the story

    def run(self) -> list[Unfinished]:
        """Run to the horizon; the jobs that are still in the system then."""
        self.go_on(self.horizon)
        return self.finish()

    def finish(self) -> list[Unfinished]:
        """Close the books of a run that has come to its horizon; the jobs that are still in the system."""
        self.control.close_episode(self._take_tally())
        self._flush()
        self.flush_log()
        self.ledger.note(0)
        self.ledger.settle(self.state.buffers.wait_class[:0], self.state.buffers.wait[:0])
        if self.system.unsteady:
            self.ledger.duty_time = float(self.clock["duty_time"])
        return self._unfinished()

    def go_on(self, until: float) -> None:
        """Run on to a time. A stop leaves no trace in the path, nor does a copy or a pickle that goes on from here."""
        until = min(until, self.horizon)
        if self.control.plan is None:
            self._begin()
        while True:
            target = min(self.next_control, until)
            if self._run_to(target, all_at_until=target < until) and target == until:
                return
            if self.asked is not None:
                self._adopt(self.asked)
            else:
                self._review()

    def _begin(self) -> None:
        """The doors open with the first policy in force."""
        plan = self.control.first()
        self._open_episode(plan)
        self._adopt(plan)

    def _run_to(self, until: float, *, all_at_until: bool) -> bool:
        """Run to a time, telling how far it is on the way; False if a review is due before."""
        while self.stops and self.stops[0] <= until:
            if not self._advance(self.stops[0], all_at_until=False):
                return False
            assert self.on_progress is not None
            self.on_progress(self.stops.pop(0))
        return self._advance(until, all_at_until=all_at_until)

    def _advance(self, until: float, *, all_at_until: bool) -> bool:
        """Run to a time; False if a limit of the plan (visits, departures, arrivals) was reached before it."""
        table, due = self.control.table(), False
        advance: Any = patient_loop.advance if self.plain else general_loop.advance
        while (reason := advance(self.state, table, until, all_at_until, self.control.memory)) != REACHED:
            if reason in (REFILL, -DUE):
                self._fill(int(self.clock["empty"]))
            if reason in (DUE, -DUE):  # what else leaves at this time comes before the review
                due, until, all_at_until = True, float(self.clock["now"]), True
            if reason == FULL:
                self._flush()
        self.now = until
        return not due

    def _review(self) -> None:
        plan = self.control.review(self._take_tally())
        self._open_episode(plan)
        self._write_review()
        if self.solver_latency > 0.0:
            self.asked, self.next_control = plan, self.now + self.solver_latency
        else:
            self._adopt(plan)

    def _adopt(self, plan: Plan) -> None:
        """The plan's policy is in force from now on."""
        if not self.control.sees_rejected and self.control.policy is not None:
            pass_time(self.clock, self.state.tallied.time_in_state, self.now)
            self.control.pass_open_time(self.state.tallied.time_in_state)
        before, policy = self.control.policy, self.control.adopt(plan, self.now)
        if policy.sees_more or (before is not None and before.sees_more):  # else the row is the number of jobs
            self._find_row(policy)
        self.asked = None
        self.next_control = self.now + max(0.0, plan.until - self.now)  # as the world's clock computes it
        self.clock["arrival_limit"] = NEVER if plan.arrival_limit is None else min(NEVER, int(plan.arrival_limit))
        if self.departure_limit < NEVER:
            self.clock["departure_limit"] = self.departure_limit
            if self.clock["departures"] >= self.departure_limit:
                self.next_control = self.now

    # ---- the bookkeeping

    def _find_row(self, policy: Policy) -> None:
        """Which row of the admission table is the one to ask."""
        clock, ordinary = self.clock, policy.class_strides is None
        row = int(clock["in_system"])
        self.state.strides[:] = self.control.strides()
        if not ordinary:
            if isinstance(self.state, PatientState):  # which does not count them one by one
                counts, ends = self.state.tallied.counts, self.state.services.ends
                patient_loop.count_departed(counts, self.state.servers, ends.time)
            row = sum((self.state.strides * self.control.present()).tolist())
        clock["strided"] = not ordinary
        clock["environment_stride"] = policy.environment_stride
        clock["table_row"] = row + policy.environment_stride * int(clock["environment"])

    def _fresh_state(self) -> PatientState | GeneralState:
        system, ledger = self.system, self.ledger
        m, S, sources = len(system.classes), system.capacity, len(self.sources)
        rates, notes = system.queue.service_rates, ledger.notes

        def reals(*shape: int) -> FloatArray:
            return np.zeros(shape)

        def whole(*shape: int) -> IntArray:
            return np.zeros(shape, dtype=np.int64)

        columns = 2 if self.plain else PAY + 1
        size = self._jobs_at_a_time()
        jobs, join = reals(columns, sources, size), reals(sources, size if system.balks else 0)
        joins = np.array(system.joins) if system.balks else reals(0, m)
        rows = records(Row, self.rows_kept if self.log is not None else 2)
        common: dict[str, Any] = {
            "clock": records(Clock, 1),
            "arrivals": Arrivals(reals(sources), whole(sources), whole(sources), jobs, join, joins),
            "tallied": Tallied(ledger.counts, ledger.admitted, ledger.rejected, reals(S + 1), reals(m), ledger.paid),
            "ticks": records(Ticks, S + 1),
            "scaled_rewards": system.rewards / (system.max_reward or 1.0),
            "strides": np.ones(m, dtype=np.int64),
            "noted": Noted(notes.times, notes.admitted, notes.rejected, notes.counts, notes.waits, notes.paid),
            "buffers": Buffers(rows, whole(self.waits_kept), reals(self.waits_kept)),
        }
        common["ticks"]["idle_share"] = rates / rates[-1]
        self._set_clock(common["clock"])
        if self.plain:
            c = min(system.most_servers, S)
            line = records(PatientJob, max(1, S - system.most_servers))
            services = Services(tournament(c), np.arange(c))
            return PatientState(services=services, servers=records(PatientJob, c), line=line, **common)
        changes = Changes(*change_block(CHANGES_AT_A_TIME))
        common["paid_at"] = np.array([REWARDED[c.reward_at] for c in system.classes], dtype=np.int64)
        return GeneralState(present=self._nobody(), initial=self._initial(), changes=changes, **common)

    def _jobs_at_a_time(self) -> int:
        """Of each class; in a short run most likely all that come."""
        most = self.horizon * max(c.peak_rate for c in self.system.classes)
        return int(min(JOBS_AT_A_TIME, 2.0 * most + 50.0))

    def _set_clock(self, clock: Records[Clock]) -> None:
        """As it is at time 0."""
        system, posts = self.system, posts_at_first(self.system)
        clock["logging"], clock["ticking"] = self.log is not None, self.control.ticking
        clock["decision"] = TABLE
        clock["steady"] = not system.unsteady
        clock["head"] = 0 if self.plain else -1
        clock["tail"] = -1
        clock["posts"] = clock["on_duty"] = clock["idle"] = posts
        clock["hands_over"] = hands_over(system)
        clock["restarts"] = system.breakdowns is not None and system.breakdowns.interrupted == "restart"
        clock["setup_after"] = math.inf if system.setup is None else system.setup.after
        clock["pays_differ"] = system.pays_differ
        clock["shares"] = system.discipline == "processor-sharing"
        clock["environment"] = 0 if system.environment is None else system.environment.start

    def _nobody(self) -> Present:
        """All places are free, and all servers idle."""
        C, S, posts = server_count(self.system), self.system.capacity, posts_at_first(self.system)
        servers, idle = records(Server, C), np.zeros(C, dtype=np.int64)
        servers["job"], servers["up"] = -1, True
        idle[:posts] = np.arange(posts - 1, -1, -1)  # server 0 on top
        return Present(records(PresentJob, S), np.arange(S), servers, idle, tournament(S))

    def _initial(self) -> Records[InitialJob]:
        """The jobs that are there at time 0."""
        classes = self.changes.initial_class.tolist()
        jobs = listed_jobs(self.changes.initial_jobs)
        rows = [(i, *job[WORK : PAY + 1]) for i, job in zip(classes, jobs, strict=True)]
        there: Any = np.array(rows, dtype=record_type(InitialJob))
        return there

    def _fill(self, i: int) -> None:
        """The next jobs of class i; after all classes, the next changes."""
        come = self.state.arrivals
        if i == len(self.sources):
            assert isinstance(self.state, GeneralState)
            count = self.changes.fill(ChangeBlock(*self.state.changes))
            self.clock["changes"], self.clock["change"] = count, 0
            return
        columns = [column[i] for column in come.jobs]
        columns += [np.empty(0)] * (PAY + 1 - len(columns)) + [come.join[i]]
        come.size[i] = self.sources[i].fill(JobBlock(*columns))
        come.position[i] = 0
        come.next[i] = come.jobs[0, i, 0]

    def _flush(self) -> None:
        """Hand on the waits, the notes and the rows that have been buffered."""
        clock, buffers, ledger = self.clock, self.state.buffers, self.ledger
        used = int(clock["used_waits"])
        ledger.notes.used = int(clock["noted"])
        ledger.settle(buffers.wait_class[:used], buffers.wait[:used])
        clock["used_waits"], clock["noted"] = 0, ledger.notes.used
        if clock["used_rows"] > buffers.rows.size - 2:
            self.flush_log()

    def flush_log(self) -> None:
        if self.log is not None:
            buffers, used = self.state.buffers, int(self.clock["used_rows"])
            rows: Any = np.empty(ROWS, dtype=ROW)
            fresh = buffers._replace(rows=rows)  # the log keeps the others: no copy
            self.clock["used_rows"] = 0  # first: a stop in between must not write them twice
            self.state = self.state._replace(buffers=fresh)
            self.log.write(buffers.rows[:used])

    def _open_episode(self, plan: Plan) -> None:
        limit = plan.departure_limit
        tallied = self.state.tallied
        open_episode(self.state.clock, tallied.time_in_state, tallied.service, self.left, self.now, plan.truncation)
        self.departure_limit = NEVER if limit is None else min(NEVER, int(self.clock["departures"]) + int(limit))
        if self.control.ticking:
            ticks = self.state.ticks
            ticks["visit_limit"] = self.control.visit_limits()
            for name in COUNTED_AT_TICKS:
                ticks[name] = 0

    def _write_review(self) -> None:
        if self.log is not None:
            if self.clock["used_rows"] == self.state.buffers.rows.size:
                self._flush()
            row = (self.now, -1, 0.0, self.clock["in_system"], self.clock["episode"], -1, -1, REVIEW, 0.0)
            self.state.buffers.rows[self.clock["used_rows"]] = row
            self.clock["used_rows"] += 1

    def _take_tally(self) -> Tally:
        state, (counts, _, _, time_in_state, service, _) = self.state, self.state.tallied
        end = (time_in_state, self.left, self.now)
        if self.control.sees_waits:
            self._flush()
        if isinstance(state, PatientState):
            sums = patient_loop.close_episode(state.clock, state.services.ends.time, state.servers, counts, *end)
        else:
            sums = general_loop.close_episode(state.clock, state.present, *end)
        return self.control.tally(self.now, sums, time_in_state.copy(), service - self.left, self._ticks())

    def _ticks(self) -> TickTally | None:
        if not self.control.ticking:
            return None
        return TickTally(*(self.state.ticks[name].copy() for name in COUNTED_AT_TICKS))

    def _unfinished(self) -> list[Unfinished]:
        state, clock = self.state, self.clock
        if isinstance(state, GeneralState):
            there = np.delete(state.present.jobs, state.present.places[clock["in_system"] :])
            columns = (there[name].tolist() for name in ("number", "job_class", "arrival", "start", "server"))
            jobs = [
                Unfinished(n, i, arrival, start if start == start else math.nan, server < 0 and start == start)
                for n, i, arrival, start, server in zip(*columns, strict=True)
            ]
        else:
            line = (int(clock["head"]) + np.arange(int(clock["waiting"]))) % state.line.size
            serving = state.services.ends.time[: state.servers.size] < math.inf
            jobs = [Unfinished(n, i, arrival, start) for n, i, arrival, _, start in state.servers[serving].tolist()]
            jobs += [Unfinished(n, i, arrival, math.nan) for n, i, arrival, *_ in state.line[line].tolist()]
        return sorted(jobs, key=lambda job: job.job)
