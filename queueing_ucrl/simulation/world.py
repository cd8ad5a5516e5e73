"""The queue as a SimPy world: the reference, to be read, taught from and extended.

Processes: a Poisson stream of arrivals for each class, a process for each admitted job that queues for one of c
servers, the controller's episode clock, and the solver service that answers it. At equal times departures come first,
then reviews, then arrivals, class by class. The compiled twin (`kernel`) gives the same event log to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from itertools import repeat
from typing import Any

import numpy as np
import simpy

from queueing_ucrl.learning.controller import Plan, Tally, TickTally
from queueing_ucrl.model.patterns import STEADY, pattern_factor
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.simulation.desk import ControlDesk
from queueing_ucrl.simulation.event_log import ADMIT, BLOCK, DEPART, REJECT, REVIEW, ROW, START
from queueing_ucrl.simulation.outcome import EventSink, Progress, Unfinished, stops
from queueing_ucrl.simulation.records import Records
from queueing_ucrl.simulation.streams import Streams

Process = Generator[simpy.Event, Any, None]

# priorities at equal times; at 1 (simpy.events.NORMAL) a job takes a server that has become free
GRID, DEPARTURE, CONTROL, ARRIVAL = 0, 2, 3, 4  # class i comes at ARRIVAL + i, idle ticks after all classes
BUFFER = 8192  # events or waits kept before they are handed on


class After(simpy.Event):
    """A delay like `simpy.Timeout`, with a priority among events of the same time."""

    def __init__(self, env: simpy.Environment, delay: float, priority: int) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, priority, delay)  # type: ignore[arg-type]


class World:
    """An M/M/c/S queue under a controller."""

    def __init__(
        self,
        queue: Queue,
        desk: ControlDesk,
        streams: Streams,
        records: Records,
        *,
        horizon: float,
        grid: Iterable[float] = (),
        solver_latency: float = 0.0,
        log: EventSink | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.queue = queue
        self.desk = desk
        self.streams = streams
        self.records = records
        self.horizon = horizon
        self.stops = stops(grid, horizon, progress)
        self.solver_latency = solver_latency
        self.log = log
        self.progress = progress

        self.env = simpy.Environment()
        self.servers = simpy.Resource(self.env, capacity=queue.servers)
        self.requests = simpy.Store(self.env)  # from the controller to the solver service
        self.in_system = 0
        self.present: dict[int, tuple[int, float, float]] = {}  # job -> class, arrival, start (nan: waiting)
        self.decide = desk.decides if hasattr(desk.session, "decide") else None

        self.last_move = self.last_arrival = 0.0  # since the last review: see _open_episode
        self.gap_count = 0
        self.gap_sum = self.truncated_gap_sum = 0.0
        self.time_in_state: list[float] = []

        m, S = len(queue.classes), queue.capacity
        self.arrivals = [0] * m
        self.started = [0] * m
        self.blocked = [0] * m
        self.admitted = [[0] * m for _ in range(S)]
        self.rejected = [[0] * m for _ in range(S)]
        self.departures = 0
        self.job_number = 0
        self.scaled_rewards = (queue.rewards / (queue.max_reward or 1.0)).tolist()
        self.due = self.env.event()  # a limit of the plan is reached: visits of a state, or departures
        self.rows: list[tuple[float, int, float, int, int, int, int]] = []
        self.wait_class: list[int] = []
        self.wait_length: list[float] = []

    # ---- the story

    def run(self) -> list[Unfinished]:
        """Let the world run to its horizon; the jobs that are still in it then."""
        plan = self.desk.first()
        self.table = self.desk.adopt(plan, 0.0).admits.tolist()  # the doors open with the first policy in force
        self._open_episode(plan)
        for i in range(len(self.queue.classes)):
            self.env.process(self.class_arrivals(i))
        self.env.process(self.episodes(plan))
        self.env.process(self.solver_service())
        self.env.process(self.grid_clock())
        if self.desk.ticking:
            self.env.process(self.idle_ticks())
        self.env.run(until=self.horizon)
        return self._close()

    def class_arrivals(self, i: int) -> Process:
        """Jobs of class i arrive by a Poisson stream, each with the service time it would need.

        Where the rate changes in time, candidates come at its ceiling, and each is a job with probability
        factor(t) / ceiling.
        """
        job_class, mean_service = self.queue.classes[i], 1.0 / self.queue.service_rate
        kind, numbers = job_class.pattern.code
        ceiling = job_class.pattern.ceiling
        mean_gap = 1.0 / (job_class.arrival_rate * ceiling)
        uniforms = self.streams.uniforms(i) if kind != STEADY else repeat(0.0)
        for (gap, service), uniform in zip(self.streams.jobs(i), uniforms, strict=False):
            yield After(self.env, mean_gap * gap, ARRIVAL + i)
            if kind == STEADY or uniform * ceiling < pattern_factor(kind, numbers, self.env.now):
                self.knock(i, mean_service * service)

    def knock(self, i: int, service: float) -> None:
        """A job of class i is at the door."""
        now, s, number = self.env.now, self.in_system, self.job_number
        self.job_number += 1
        self.arrivals[i] += 1
        self._note_gap(now)
        if s == self.queue.capacity:
            self.blocked[i] += 1
            self._tick(s)
            self._write(now, number, 0.0, s, i, BLOCK)
        elif self.table[s][i] if self.decide is None else self.decide(i, s, now):
            self.admitted[s][i] += 1
            self._write(now, number, 0.0, s, i, ADMIT)
            self._move(now, +1)
            self._tick(s, up=True, reward=self.scaled_rewards[s][i])
            self.env.process(self.job(number, i, service))
        else:
            self.rejected[s][i] += 1
            self._tick(s)
            self._write(now, number, 0.0, s, i, REJECT)

    def job(self, number: int, i: int, service: float) -> Process:
        """An admitted job: wait for a server, pay for the wait, be served, leave."""
        arrived = self.env.now
        self.present[number] = (i, arrived, math.nan)
        with self.servers.request() as server:
            yield server
            start = self.env.now
            self.present[number] = (i, arrived, start)
            self._charge(number, i, start, start - arrived)
            yield After(self.env, service, DEPARTURE)
            now = self.env.now
            self._write(now, number, 0.0, self.in_system, i, DEPART)
            self._move(now, -1)
            self._tick(self.in_system + 1, down=True)
            self.departures += 1
            if self.departures == self.departure_limit:
                self._call_for_review()
            del self.present[number]

    def episodes(self, plan: Plan) -> Process:
        """Review the policy whenever the controller asked for it; the old one holds until the solver has answered."""
        while plan.asks_again:
            yield self._review_time(plan)
            plan = self.desk.review(self._take_tally())
            self._open_episode(plan)
            self._write(self.env.now, -1, 0.0, self.in_system, -1, REVIEW)
            answer = self.env.event()
            yield self.requests.put((plan, answer))
            self.table = (yield answer).admits.tolist()

    def _review_time(self, plan: Plan) -> simpy.Event:
        """When the controller wants to be asked: at a time, or once a limit of its plan is reached."""
        if plan.until == math.inf:
            return self.due
        time = After(self.env, max(0.0, plan.until - self.env.now), CONTROL)
        limited = plan.visit_limits is not None or plan.departure_limit is not None
        return self.env.any_of([time, self.due]) if limited else time

    def idle_ticks(self) -> Process:
        """Ticks of the uniformized chain at which nothing happens: at rate mu(S) - mu(s), by thinning."""
        rates = self.queue.service_rates
        idle_share, mean_gap = (rates / rates[-1]).tolist(), 1.0 / self.queue.max_service_rate
        for gap, uniform in self.streams.ticks():
            yield After(self.env, mean_gap * gap, ARRIVAL + len(self.queue.classes))
            if uniform >= idle_share[self.in_system]:
                self._tick(self.in_system)

    def solver_service(self) -> Process:
        """Take the controller's requests one by one and answer each after the solver's latency."""
        while True:
            plan, answer = yield self.requests.get()
            if self.solver_latency > 0.0:
                yield After(self.env, self.solver_latency, CONTROL)
            answer.succeed(self.desk.adopt(plan, self.env.now))

    def grid_clock(self) -> Process:
        """Note where the run stands at the times of the grid."""
        for time, noted in self.stops:
            yield After(self.env, time - self.env.now, GRID)
            if noted:
                self._settle()
                self.records.snapshot(time)
            if self.progress is not None:
                self.progress(time)

    # ---- the bookkeeping

    def _move(self, now: float, change: int) -> None:
        self.time_in_state[self.in_system] += now - self.last_move
        self.last_move = now
        self.in_system += change

    def _tick(self, s: int, *, up: bool = False, down: bool = False, reward: float = 0.0) -> None:
        """A tick of the uniformized chain found it in s."""
        if self.desk.ticking:
            self.visits[s] += 1
            self.ups[s] += up
            self.downs[s] += down
            self.reward_sum[s] += reward
            self.reward_square_sum[s] += reward * reward
            if self.visits[s] == self.visit_limits[s]:
                self._call_for_review()

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

    def _charge(self, number: int, i: int, now: float, wait: float) -> None:
        self.started[i] += 1
        self._write(now, number, wait, self.in_system, i, START)
        if wait > 0.0:
            self.wait_class.append(i)
            self.wait_length.append(wait)
            if len(self.wait_class) == BUFFER:
                self._settle()

    def _write(self, now: float, number: int, wait: float, in_system: int, i: int, event: int) -> None:
        if self.log is not None:
            self.rows.append((now, number, wait, in_system, self.desk.episode, i, event))
            if len(self.rows) == BUFFER:
                self._flush_rows()

    def _flush_rows(self) -> None:
        if self.log is not None and self.rows:
            self.log.write(np.array(self.rows, dtype=ROW))
            self.rows = []

    def _settle(self) -> None:
        """Bring the records up to date."""
        records = self.records
        if self.wait_class:
            records.waits.add(np.array(self.wait_class), np.array(self.wait_length))
            self.wait_class, self.wait_length = [], []
        records.waits.started[:] = self.started
        records.counts.blocked[:] = self.blocked
        records.counts.admitted[:] = self.admitted
        records.counts.rejected[:] = self.rejected

    def _open_episode(self, plan: Plan) -> None:
        now = self.env.now
        self.truncation = plan.truncation
        self.last_arrival = self.last_move = now
        self.gap_count = 0
        self.gap_sum = self.truncated_gap_sum = 0.0
        states = self.queue.capacity + 1
        self.time_in_state = [0.0] * states
        self.due = self.env.event()
        self.departure_limit = None if plan.departure_limit is None else self.departures + plan.departure_limit
        if self.desk.ticking:
            self.visit_limits = self.desk.visit_limits().tolist()
            self.visits, self.ups, self.downs = [0] * states, [0] * states, [0] * states
            self.reward_sum, self.reward_square_sum = [0.0] * states, [0.0] * states

    def _ticks(self) -> TickTally | None:
        if not self.desk.ticking:
            return None
        return TickTally(
            np.array(self.visits), np.array(self.ups), np.array(self.downs), np.array(self.reward_sum),
            np.array(self.reward_square_sum),
        )  # fmt: skip

    def _take_tally(self) -> Tally:
        self._settle()
        self._move(self.env.now, 0)
        return self.desk.tally(
            self.env.now, np.array(self.arrivals), self.gap_sum, self.truncated_gap_sum, self.departures,
            np.array(self.time_in_state), self._ticks(),
        )  # fmt: skip

    def _close(self) -> list[Unfinished]:
        self.desk.close_episode(self._take_tally())
        self.records.snapshot(self.horizon)
        self._flush_rows()
        return [Unfinished(number, *self.present[number]) for number in sorted(self.present)]
