"""The queue as a SimPy world: the reference, to be read, taught from and extended.

Processes: the arrivals of each class, a process for each admitted job that queues for one of the servers, what comes by
the clock (shifts, breakdowns, an environment), the controller's episode clock, and the solver service that answers it.
What comes first at equal times: `engine`. The compiled twin (`kernel`) gives the same event log to the last bit.

One file, though a long one: the whole story of a job, from the door to the exit.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from heapq import heappush
from typing import Any

import numpy as np
import simpy

from queueing_ucrl.learning.controller import Controller, Plan, Tally, TickTally
from queueing_ucrl.learning.online.learn import learn
from queueing_ucrl.learning.online.memory import LEFT, NOTHING
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.changes import ENVIRONMENT_CHANGE, INITIAL_JOB, SHIFT_CHANGE
from queueing_ucrl.simulation.engine import Engine, hands_over, posts_at_first, server_count
from queueing_ucrl.simulation.event_log import (
    ABANDON,
    ADMIT,
    BLOCK,
    BREAKDOWN,
    DEPART,
    ENVIRONMENT,
    HAND_OVER,
    INITIAL,
    REJECT,
    REPAIR,
    RESUME,
    REVIEW,
    REWARDED,
    ROW,
    SHIFT,
    START,
)
from queueing_ucrl.simulation.ledger import Unfinished
from queueing_ucrl.simulation.server_pool import Job, ServerPool, SharedServers
from queueing_ucrl.simulation.sources import listed_jobs, one_by_one

Process = Generator[simpy.Event, Any, None]

# priorities at equal times; at 1 (simpy.events.NORMAL) a job takes a server that has become free
GRID, FREED, DEPARTURE, ABANDONMENT, CHANGE, CONTROL = 0, 1, 2, 3, 4, 5
ARRIVAL = 6  # class i comes at ARRIVAL + i, idle ticks after all classes
AGE = 2.0**-50  # times a job's number, so that the older one comes first among departures of the same time
ROWS, WAITS = 8192, 1024  # of the event log, and waits, kept before they are handed on


class After(simpy.Event):
    """A delay like `simpy.Timeout`, with a priority among events of the same time."""

    def __init__(self, env: simpy.Environment, delay: float, priority: int) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, priority, delay)  # type: ignore[arg-type]


class At(simpy.Event):
    """An event at a time, not after a delay: now + (time - now) may be another number than time."""

    def __init__(self, env: simpy.Environment, time: float, priority: float) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        heappush(env._queue, (time, priority, next(env._eid), self))  # type: ignore[misc]


class World(Engine):
    """The system as SimPy processes."""

    name = "simpy"

    def __init__(self, *parts: Any, **more: Any) -> None:
        """Nothing has happened yet. A long function, as it lists all that a world remembers."""
        super().__init__(*parts, **more)
        system, control = self.system, self.control
        self.env = simpy.Environment()
        steady = not system.unsteady
        self.servers = ServerPool(self.env, server_count(system), posts_at_first(system), steady=steady)
        self.shared = None
        if system.discipline == "processor-sharing":
            self.shared = SharedServers(self.env, posts_at_first(system), lambda time: At(self.env, time, DEPARTURE))
        self.setup_after = math.inf if system.setup is None else system.setup.after
        self.environment = 0 if system.environment is None else system.environment.start
        self.requests = simpy.Store(self.env)  # from the controller to the solver service
        self.in_system = 0
        self.table_row = 0  # of the admission table: see Policy.class_strides
        self.present: dict[int, Job] = {}
        self.decide = control.decides if hasattr(control.session, "decide") else None

        self.last_move = self.last_arrival = 0.0  # since the last review: see _open_episode
        self.gap_count = 0
        self.gap_sum = self.truncated_gap_sum = 0.0
        self.time_in_state: list[float] = []

        m, S = len(system.classes), system.capacity
        self.arrivals = [0] * m
        self.started = [0] * m
        self.blocked = [0] * m
        self.departed = [0] * m
        self.abandoned = [0] * m
        self.found = [0] * m  # at time 0
        self.service = [0.0] * m  # server time since the last review, and what is left for jobs that are at servers
        self.left = [0.0] * m  # of it, the latter, at the last review
        self.admitted = [[0] * m for _ in range(S)]
        self.rejected = [[0] * m for _ in range(S)]
        self.paid_at = [REWARDED[c.reward_at] for c in system.classes] if system.pays_differ else None
        self.paid, self.paid_squares, self.most_paid = [0.0] * m, [0.0] * m, [0.0] * m
        self.departures = 0
        self.job_number = 0
        self.initial = [
            (i, *numbers[1:-1])
            for i, numbers in zip(
                self.changes.initial_class.tolist(), listed_jobs(self.changes.initial_jobs), strict=True
            )
        ]
        self.joins = system.joins.tolist()  # b_i(s)
        self.scaled_rewards = (system.rewards / (system.max_reward or 1.0)).tolist()
        self.due = self.env.event()  # a limit of the plan is reached: visits of a state, or departures
        self.rows: list[tuple[float, int, float, int, int, int, int, int, float]] = []
        self.wait_class: list[int] = []
        self.wait_length: list[float] = []

    @staticmethod
    def refuses(system: System, controller: Controller) -> str | None:
        return None

    # ---- the story

    def run(self) -> list[Unfinished]:
        """Let the world run to its horizon; the jobs that are still in it then."""
        plan = self.control.first()
        self._adopt(self.control.adopt(plan, 0.0))  # the doors open with the first policy in force
        self._open_episode(plan)
        self._limit_arrivals(plan)
        for i in range(len(self.system.classes)):
            self.env.process(self.class_arrivals(i))
        self.env.process(self.happenings())
        self.env.process(self.episodes(plan))
        self.env.process(self.solver_service())
        self.env.process(self.grid_clock())
        self.env.process(self.progress_clock())
        if self.control.idle_ticks:
            self.env.process(self.idle_ticks())
        self.env.run(until=self.horizon)
        return self._close()

    def class_arrivals(self, i: int) -> Process:
        """Jobs of class i arrive, each with the service and the set-up that it would need, its patience and its pay.

        One that finds too many others for its liking balks: it leaves without having asked, and nobody has seen it.
        """
        for time, *numbers, join in one_by_one(self.sources[i], self.system):
            yield At(self.env, time, ARRIVAL + i)
            if join < self.joins[self.in_system][i]:
                if self.gap_count >= self.arrival_limit:
                    self._call_for_review()
                    yield At(self.env, time, ARRIVAL + i)
                self.arrive(i, *numbers)
            else:
                self.balk()

    def balk(self) -> None:
        """A job does not ask: all that is left of it is its number, and in the uniformized chain a tick."""
        self.job_number += 1
        if self.control.idle_ticks:
            self._tick(self.in_system, NOTHING)

    def arrive(self, i: int, work: float, patience: float = math.inf, setup: float = 0.0, pay: float = 0.0) -> None:
        """A job of class i is at the door: it is blocked, admitted or rejected."""
        now, s, number = self.env.now, self.in_system, self.job_number
        self.arrivals[i] += 1
        self._note_gap(now)
        if s == self.system.capacity:
            self.blocked[i] += 1
            self._tick(s, i)
            self._write(number, i, BLOCK, pay=pay)
        elif self.table[self.table_row][i] if self.decide is None else self.decide(i, s, now, self.environment):
            self.admitted[s][i] += 1
            self._write(number, i, ADMIT, pay=pay)
            self._pay(i, pay, ADMIT)
            self._tick(s, i, up=True, reward=self.scaled_rewards[s][i])
            self.enter(i, work, patience, setup, pay)
            return
        else:
            self.rejected[s][i] += 1
            self._tick(s, i)
            self._write(number, i, REJECT, pay=pay)
        self.job_number += 1

    def enter(self, i: int, work: float, patience: float, setup: float, pay: float) -> None:
        """A job of class i is in the system from now on."""
        job = Job(self.job_number, i, self.env.now, work, patience, setup, pay, left=work)
        self.job_number += 1
        self._move(i, +1)
        self.present[job.number] = job
        job.process = self.env.process(self.job(job))

    def job(self, job: Job) -> Process:
        """A job in the system: wait for a server or give up, pay for the wait, be served, leave."""
        if self.shared is not None:
            yield from self.shares(job, self.shared)
            return
        request = self.servers.request(job)
        if job.patience < math.inf:
            patience = At(self.env, job.arrival + job.patience, ABANDONMENT + AGE * job.number)
            patience.callbacks.append(request.give_up)
        server = yield request
        self._charge(job, server)
        if server is not None:
            while not (yield from self.is_served(job, server)):  # interrupted
                server = yield self.servers.request(job)
                self._write(job.number, job.job_class, RESUME, server=server, pay=job.pay)
            self._depart(job, server)
            self.servers.release(server)
        self._exit(job)

    def shares(self, job: Job, servers: SharedServers) -> Process:
        """A job where all share the servers: be served at once, leave."""
        end = servers.join(job)
        self.service[job.job_class] += job.work
        self._charge(job, -1)
        yield end
        self._depart(job, -1)
        self._exit(job)

    def is_served(self, job: Job, server: int) -> Generator[simpy.Event, Any, bool]:
        """Service, after a set-up where the server was idle for long; False if it was interrupted."""
        idle_for = self.env.now - self.servers.idle_since[server]
        time = (job.setup if idle_for > self.setup_after else 0.0) + job.left
        self.service[job.job_class] += time
        job.end = self.env.now + time
        try:
            yield At(self.env, job.end, DEPARTURE + AGE * job.number)
        except simpy.Interrupt as interruption:
            left = job.end - self.env.now
            self.service[job.job_class] -= left
            job.left = job.work if interruption.cause == "restart" else min(job.left, left)
            return False
        return True

    def happenings(self) -> Process:
        """What comes by the clock: jobs there at time 0, an environment, shifts, breakdowns and repairs."""
        while (change := self.changes.next())[0] < math.inf:
            time, what, which, value = change
            yield At(self.env, time, CHANGE)
            if what == INITIAL_JOB:
                i, *numbers = self.initial[which]
                self.found[i] += 1
                self._write(self.job_number, i, INITIAL, pay=numbers[-1])
                self.enter(i, *numbers)
            elif what == ENVIRONMENT_CHANGE:
                self.table_row += self.environment_stride * (value - self.environment)
                self.environment = value
                self._write(-1, -1, ENVIRONMENT, server=value)
            elif what == SHIFT_CHANGE:
                yield from self.shift(value)
            elif value:
                self.servers.repair(which)
                self._write(-1, -1, REPAIR, server=which)
                self.servers.serve()
            else:
                self.break_down(which)

    def shift(self, posts: int) -> Process:
        """So many servers are on duty from now on. Those who leave finish their jobs, or hand them over."""
        leaving = self.servers.set_posts(posts)
        if self.shared is not None:
            self.shared.set_servers(posts)
        self._write(-1, -1, SHIFT, server=posts)
        if hands_over(self.system):
            self.servers.closed = True
            for server in leaving:
                job = self.servers.job[server]
                if job is not None:
                    self._write(job.number, job.job_class, HAND_OVER, server=server, pay=job.pay)
                    self._interrupt(job, server, "hand-over")
            yield After(self.env, 0.0, FREED)  # all of them are back in the line
            self.servers.closed = False
        self.servers.serve()

    def break_down(self, server: int) -> None:
        """A server breaks down; its job goes back to the head of the line."""
        job = self.servers.job[server]
        self.servers.break_down(server)
        who, pay = ((-1, -1), 0.0) if job is None else ((job.number, job.job_class), job.pay)
        self._write(*who, BREAKDOWN, server=server, pay=pay)
        if job is not None:
            assert self.system.breakdowns is not None
            self._interrupt(job, server, self.system.breakdowns.interrupted)

    def _interrupt(self, job: Job, server: int, cause: str) -> None:
        self.servers.take_back(server)
        assert job.process is not None
        job.process.interrupt(cause)

    def episodes(self, plan: Plan) -> Process:
        """Review the policy whenever the controller asked for it; the old one holds until the solver has answered."""
        while plan.asks_again:
            yield self._review_time(plan)
            plan = self.control.review(self._take_tally())
            self._open_episode(plan)
            self._write(-1, -1, REVIEW)
            answer = self.env.event()
            yield self.requests.put((plan, answer))
            self._adopt((yield answer))
            self._limit_arrivals(plan)

    def _review_time(self, plan: Plan) -> simpy.Event:
        """When the controller wants to be asked: at a time, or once a limit of its plan is reached."""
        if plan.until == math.inf:
            return self.due
        time = After(self.env, max(0.0, plan.until - self.env.now), CONTROL)
        return self.env.any_of([time, self.due]) if plan.limited else time

    def _limit_arrivals(self, plan: Plan) -> None:
        """The plan's policy is in force: from now on an arrival may call for a review. It waits until that is over."""
        self.arrival_limit = math.inf if plan.arrival_limit is None else plan.arrival_limit

    def idle_ticks(self) -> Process:
        """Ticks of the uniformized chain at which nothing happens: at rate mu(S) - mu(s), by thinning."""
        rates, classes = self.system.queue.service_rates, len(self.system.classes)
        idle_share = (rates / rates[-1]).tolist()
        for time, uniform, *_ in one_by_one(self.sources[classes], self.system):
            yield At(self.env, time, ARRIVAL + classes)
            if uniform >= idle_share[self.in_system]:
                self._tick(self.in_system, NOTHING)

    def solver_service(self) -> Process:
        """Take the controller's requests one by one and answer each after the solver's latency."""
        while True:
            plan, answer = yield self.requests.get()
            if self.solver_latency > 0.0:
                yield After(self.env, self.solver_latency, CONTROL)
            if not self.control.sees_rejected:  # the doors change: until now they stood open as the old policy has it
                self._pass_time(self.env.now)
                self.servers.elapse()
                self.control.pass_open_time(np.array(self.time_in_state))
            answer.succeed(self.control.adopt(plan, self.env.now))

    def grid_clock(self) -> Process:
        """Note where the run stands at the times of the grid."""
        for time in self.ledger.times[:-1].tolist():  # the last is the horizon
            yield At(self.env, time, GRID)
            self._note()

    def progress_clock(self) -> Process:
        """Tell how far the run is."""
        for time in self.progress_times():
            yield At(self.env, time, GRID)
            assert self.on_progress is not None
            self.on_progress(time)

    # ---- the bookkeeping

    def _adopt(self, policy: Policy) -> None:
        """The policy is in force from now on."""
        table = self.control.table()
        self.table: Any = table.tolist() if self.control.memory is None else table  # lists are faster to look into
        self.strides = self.control.strides().tolist()
        self.environment_stride = policy.environment_stride
        self.table_row = self.in_system
        if policy.class_strides is not None:
            self._count()
            self.table_row = sum(n * k for n, k in zip(self.control.present().tolist(), self.strides, strict=True))
        self.table_row += self.environment_stride * self.environment

    def _pass_time(self, now: float) -> None:
        self.time_in_state[self.in_system] += now - self.last_move
        self.last_move = now

    def _move(self, i: int, change: int) -> None:
        self._pass_time(self.env.now)
        self.in_system += change
        self.table_row += change * self.strides[i]

    def _tick(self, s: int, what: int, *, up: bool = False, down: bool = False, reward: float = 0.0) -> None:
        """A tick of the uniformized chain found it in s: an arrival of class `what`, or LEFT, or NOTHING."""
        if self.control.ticking:
            self.visits[s] += 1
            self.ups[s] += up
            self.downs[s] += down
            self.reward_sum[s] += reward
            self.reward_square_sum[s] += reward * reward
            if self.visits[s] == self.visit_limits[s]:
                self._call_for_review()
            if self.control.memory is not None:
                learn(self.control.memory, s, what, up - down)

    def _call_for_review(self) -> None:
        """A limit of the plan is reached: the review comes after what else leaves at this time, before who arrives."""
        if not self.due.triggered:
            self.due._ok, self.due._value = True, None
            self.env.schedule(self.due, CONTROL)  # type: ignore[arg-type]

    def _note_gap(self, now: float) -> None:
        gap = now - self.last_arrival
        self.last_arrival = now
        self.gap_count += 1
        self.gap_sum += gap
        if gap * gap <= self.truncation * self.gap_count:
            self.truncated_gap_sum += gap

    def _depart(self, job: Job, server: int) -> None:
        self._write(job.number, job.job_class, DEPART, server=server, pay=job.pay)
        self._pay(job.job_class, job.pay, DEPART)
        self.departed[job.job_class] += 1
        self.departures += 1
        if self.departures == self.departure_limit:
            self._call_for_review()

    def _exit(self, job: Job) -> None:
        self._move(job.job_class, -1)
        self._tick(self.in_system + 1, LEFT, down=True)
        del self.present[job.number]

    def _charge(self, job: Job, server: int | None) -> None:
        """A job joins a server for the first time, or gives up: it pays for its time in the line."""
        i, wait = job.job_class, self.env.now - job.arrival
        if server is None:
            self.abandoned[i] += 1
            self._write(job.number, i, ABANDON, wait=wait, pay=job.pay)
        else:
            job.start = self.env.now
            self.started[i] += 1
            self._pay(i, job.pay, START)
            self._write(job.number, i, START, wait=wait, server=server, pay=job.pay)
        if wait > 0.0 or server is None:
            self.wait_class.append(-1 - i if server is None else i)
            self.wait_length.append(wait)
            if len(self.wait_class) == WAITS:
                self._settle()

    def _pay(self, i: int, pay: float, event: int) -> None:
        """A job of class i pays, if this is the event at which its class does; where all pay alike, counts say it."""
        if self.paid_at is not None and self.paid_at[i] == event:
            self.paid[i] += pay
            self.paid_squares[i] += pay * pay
            self.most_paid[i] = max(self.most_paid[i], pay)

    def _write(self, number: int, i: int, event: int, *, wait: float = 0.0, server: int = -1, pay: float = 0.0) -> None:
        if self.log is not None:
            now, episode = self.env.now, self.control.episode
            self.rows.append((now, number, wait, self.in_system, episode, i, server, event, pay))
            if len(self.rows) == ROWS:
                self.flush_log()

    def flush_log(self) -> None:
        if self.log is not None and self.rows:
            rows, self.rows = self.rows, []  # first: a stop in between must not write them twice
            self.log.write(np.array(rows, dtype=ROW))

    def _count(self) -> None:
        """Bring the ledger's counts up to date."""
        ledger = self.ledger
        ledger.counts[:] = [self.arrivals, self.blocked, self.started, self.departed, self.abandoned, self.found]
        ledger.admitted[:] = self.admitted
        ledger.rejected[:] = self.rejected
        ledger.paid[:] = [self.paid, self.paid_squares, self.most_paid]

    def _note(self) -> None:
        self._count()
        self.ledger.note(len(self.wait_class))
        if self.ledger.notes.used == self.ledger.notes.rows:
            self._settle()

    def _settle(self) -> None:
        """Hand on the waits."""
        self.ledger.settle(np.array(self.wait_class, dtype=np.int64), np.array(self.wait_length, dtype=float))
        self.wait_class, self.wait_length = [], []

    def _open_episode(self, plan: Plan) -> None:
        now = self.env.now
        self.truncation = plan.truncation
        self.last_arrival = self.last_move = now
        self.gap_count = 0
        self.gap_sum = self.truncated_gap_sum = 0.0
        states = self.system.capacity + 1
        self.time_in_state = [0.0] * states
        self.service = self.left.copy()
        self.servers.waiting_time = 0.0
        self.due = self.env.event()
        self.departure_limit = None if plan.departure_limit is None else self.departures + plan.departure_limit
        self.arrival_limit = math.inf
        if self.control.ticking:
            self.visit_limits = self.control.visit_limits().tolist()
            self.visits, self.ups, self.downs = [0] * states, [0] * states, [0] * states
            self.reward_sum, self.reward_square_sum = [0.0] * states, [0.0] * states

    def _ticks(self) -> TickTally | None:
        if not self.control.ticking:
            return None
        counted = (self.visits, self.ups, self.downs, self.reward_sum, self.reward_square_sum)
        return TickTally(*map(np.array, counted))

    def _take_tally(self) -> Tally:
        self._count()
        if self.control.sees_waits:
            self._settle()
        self._pass_time(self.env.now)
        self.left = [0.0] * len(self.system.classes)
        for job in self.servers.job:
            if job is not None:
                self.left[job.job_class] += job.end - self.env.now
        for job, left in self.shared.left() if self.shared is not None else ():
            self.left[job.job_class] += left
        self.servers.elapse()
        sums = (self.gap_sum, self.truncated_gap_sum, self.servers.waiting_time, self.environment)
        service = np.array(self.service) - np.array(self.left)
        return self.control.tally(self.env.now, sums, np.array(self.time_in_state), service, self._ticks())

    def _close(self) -> list[Unfinished]:
        self.control.close_episode(self._take_tally())
        self._note()
        self._settle()
        self.flush_log()
        if self.system.unsteady:
            self.ledger.duty_time = self.servers.duty_time
        at_servers = {job.number for job in self.servers.job if job is not None}
        if self.shared is not None:
            at_servers = set(self.present)
        return [
            Unfinished(n, job.job_class, job.arrival, job.start, job.start == job.start and n not in at_servers)
            for n, job in sorted(self.present.items())
        ]
