"""The compiled twin of the SimPy world: the same sample paths to the last bit, two orders of magnitude sooner.

`advance` runs the queue with a fixed admission table up to a time, and can stop and go on anywhere: all state is in
the arrays of `State`. It comes back early when a class has used up its block of random numbers or a buffer is full.
`Kernel.go_on` runs to any time, and the `Kernel` can be copied or pickled there: what comes after is the same.
FIFO waiting needs no event list: the next event is the earliest of m arrivals and of the c services in a heap, and
when a service ends the oldest waiting job takes the server.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.controller import Plan, Tally, TickTally
from queueing_ucrl.model.patterns import pattern_factor
from queueing_ucrl.model.policy import BoolArray
from queueing_ucrl.model.queue import IntArray, Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.desk import ControlDesk
from queueing_ucrl.simulation.event_log import ADMIT, BLOCK, DEPART, REJECT, REVIEW, ROW, START
from queueing_ucrl.simulation.outcome import EventSink, Progress, Unfinished, stops
from queueing_ucrl.simulation.records import Records
from queueing_ucrl.simulation.streams import BLOCK as STREAM_BLOCK
from queueing_ucrl.simulation.streams import Streams

ROWS = 65_536  # of the event log kept before they are handed on
WAITS = 16_384

# reasons for coming back
REACHED, REFILL, FULL, DUE = 0, 1, 2, 3

# State.reals
LAST_MOVE, LAST_ARRIVAL, GAP_SUM, TRUNCATED_GAP_SUM, TRUNCATION, CLOCK = range(6)
# State.counts
(
    IN_SYSTEM,
    BUSY,
    HEAD,
    WAITING,
    JOBS,
    GAPS,
    DEPARTURES,
    USED_ROWS,
    USED_WAITS,
    EPISODE,
    EMPTY_CLASS,
    LOGGING,
    TICKING,
    DEPARTURE_LIMIT,
) = range(14)
NEVER = np.iinfo(np.int64).max


class State(NamedTuple):
    """Everything the queue remembers between two calls."""

    reals: FloatArray
    counts: IntArray
    next_arrival: FloatArray  # by class
    position: IntArray  # in the class's block of random numbers
    gaps: FloatArray  # class by number, standard exponential
    services: FloatArray
    mean_gap: FloatArray  # between candidates, where rates change in time
    thinning: FloatArray  # uniform numbers, where rates change in time
    pattern: IntArray  # kind of each class's pattern
    pattern_numbers: FloatArray
    ceiling: FloatArray
    mean_service: FloatArray  # one number
    # the servers: the first BUSY entries of end_time are a heap, end_server says whose they are (then the idle ones)
    end_time: FloatArray
    end_server: IntArray
    # the job at each server
    job: IntArray
    job_class: IntArray
    arrival: FloatArray
    start: FloatArray
    # jobs waiting: a ring
    wait_job: IntArray
    wait_class: IntArray
    wait_arrival: FloatArray
    wait_service: FloatArray
    # totals
    arrivals: IntArray
    started: IntArray
    blocked: IntArray
    admitted: IntArray
    rejected: IntArray
    time_in_state: FloatArray
    # ticks of the uniformized chain
    visits: IntArray
    ups: IntArray
    downs: IntArray
    reward_sum: FloatArray
    reward_square_sum: FloatArray
    visit_limits: IntArray
    idle_share: FloatArray  # mu(s) / mu(S): of the candidates for idle ticks, those that are none
    scaled_rewards: FloatArray
    # buffers
    rows: np.ndarray[Any, Any]
    paid_class: IntArray
    paid_wait: FloatArray


@compiled
def _sift_up(time, server, child):  # type: ignore[no-untyped-def]
    """Restore the heap after an entry was put at its end; its job is younger than all others there."""
    t, k = time[child], server[child]
    while child > 0:
        parent = (child - 1) >> 1
        if time[parent] <= t:
            break
        time[child], server[child] = time[parent], server[parent]
        child = parent
    time[child], server[child] = t, k


@compiled
def _sift_down(time, server, job, size):  # type: ignore[no-untyped-def]
    """Restore the heap of the given size after its first entry was replaced; at equal times the older job leads."""
    t, k = time[0], server[0]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and (
            time[child + 1] < time[child]
            or (time[child + 1] == time[child] and job[server[child + 1]] < job[server[child]])
        ):
            child += 1
        if t < time[child] or (t == time[child] and job[k] < job[server[child]]):
            break
        time[parent], server[parent] = time[child], server[child]
        parent = child
    time[parent], server[parent] = t, k


@compiled
def _write(rows, n, time, job, wait, in_system, episode, job_class, event):  # type: ignore[no-untyped-def]
    row = rows[n]
    row["time"] = time
    row["job"] = job
    row["wait"] = wait
    row["in_system"] = in_system
    row["episode"] = episode
    row["job_class"] = job_class
    row["event"] = event
    return n + 1


@compiled
def advance(state, table, until, departures_at_until):  # type: ignore[no-untyped-def]
    """Run up to `until`: arrivals before it, departures before it or at it. Why it came back. O(log c + m) an event.

    One long function, its state in local variables: calls that pass arrays about cost more than the work itself.
    """
    (reals, counts, next_arrival, position, gaps, services, mean_gap, thinning, pattern, pattern_numbers, ceiling,
     mean_service, end_time, end_server, at_job, at_class, at_arrival, at_start, wait_job, wait_class, wait_arrival,
     wait_service, arrivals, started, blocked, admitted, rejected, time_in_state, visits, ups, downs, reward_sum,
     reward_square_sum, visit_limits, idle_share, scaled_rewards, rows, paid_class, paid_wait) = state  # fmt: skip
    in_system, busy, head, waiting = counts[IN_SYSTEM], counts[BUSY], counts[HEAD], counts[WAITING]
    jobs, gap_count, departures = counts[JOBS], counts[GAPS], counts[DEPARTURES]
    used_rows, used_waits = counts[USED_ROWS], counts[USED_WAITS]
    episode, logging, ticking = counts[EPISODE], counts[LOGGING] != 0, counts[TICKING] != 0
    departure_limit = counts[DEPARTURE_LIMIT]
    last_move, last_arrival, truncation = reals[LAST_MOVE], reals[LAST_ARRIVAL], reals[TRUNCATION]
    gap_sum, truncated_gap_sum = reals[GAP_SUM], reals[TRUNCATED_GAP_SUM]
    capacity, classes = table.shape
    drifts = thinning.size > 0
    streams = next_arrival.size  # the classes, and with ticks the candidates for idle ones
    servers, room, block = end_time.size, wait_job.size, gaps.shape[1]
    row_limit, wait_limit = rows.size - 2, paid_wait.size
    now = reals[CLOCK]

    reason = -1
    while reason < 0:
        if used_rows > row_limit or used_waits == wait_limit:
            reason = FULL
            break
        i = 0
        now = next_arrival[0]
        for j in range(1, streams):
            if next_arrival[j] < now:
                i = j
                now = next_arrival[j]
        starting = due = False
        tick = -1
        if busy > 0 and end_time[0] <= now:  # the earliest service ends
            now = end_time[0]
            if now > until or (now == until and not departures_at_until):
                reason = REACHED
                break
            server = end_server[0]
            if logging:
                used_rows = _write(
                    rows, used_rows, now, at_job[server], 0.0, in_system, episode, at_class[server], DEPART
                )
            time_in_state[in_system] += now - last_move
            last_move = now
            tick = in_system
            if ticking:
                downs[tick] += 1
            in_system -= 1
            departures += 1
            due = departures == departure_limit
            busy -= 1
            if busy > 0:
                end_time[0], end_server[0] = end_time[busy], end_server[busy]
                end_server[busy] = server
                _sift_down(end_time, end_server, at_job, busy)
            if waiting > 0:  # the oldest waiting job takes the server
                starting = True
                job, i, arrival, service = wait_job[head], wait_class[head], wait_arrival[head], wait_service[head]
                head = head + 1 if head + 1 < room else 0
                waiting -= 1
        else:  # a job of class i is at the door
            if now >= until:
                reason = REACHED
                break
            at = position[i]
            arrival = now
            service = mean_service[0] * services[i, at]
            job = jobs
            tick = in_system
            comes = not drifts or thinning[i, at] * ceiling[i] < pattern_factor(pattern[i], pattern_numbers[i], now)
            if i < classes and comes:
                jobs += 1
                arrivals[i] += 1
                gap = now - last_arrival
                last_arrival = now
                gap_count += 1
                gap_sum += gap
                if gap * gap <= truncation * gap_count:
                    truncated_gap_sum += gap
            if i == classes:  # not a job: a candidate for an idle tick
                if services[i, at] < idle_share[in_system]:
                    tick = -1
            elif not comes:
                pass
            elif in_system == capacity:
                blocked[i] += 1
                if logging:
                    used_rows = _write(rows, used_rows, now, job, 0.0, in_system, episode, i, BLOCK)
            elif table[in_system, i]:
                admitted[in_system, i] += 1
                if logging:
                    used_rows = _write(rows, used_rows, now, job, 0.0, in_system, episode, i, ADMIT)
                time_in_state[in_system] += now - last_move
                last_move = now
                if ticking:
                    reward = scaled_rewards[in_system, i]
                    ups[in_system] += 1
                    reward_sum[in_system] += reward
                    reward_square_sum[in_system] += reward * reward
                in_system += 1
                if busy < servers:
                    starting = True
                else:
                    tail = head + waiting
                    if tail >= room:
                        tail -= room
                    wait_job[tail], wait_class[tail], wait_arrival[tail], wait_service[tail] = job, i, now, service
                    waiting += 1
            else:
                rejected[in_system, i] += 1
                if logging:
                    used_rows = _write(rows, used_rows, now, job, 0.0, in_system, episode, i, REJECT)
            at += 1
            position[i] = at
            if at == block:
                counts[EMPTY_CLASS] = i
                next_arrival[i] = now  # the refill goes on from here
                reason = REFILL
            else:
                next_arrival[i] = now + mean_gap[i] * gaps[i, at]
        if starting:
            wait = now - arrival
            started[i] += 1
            if logging:
                used_rows = _write(rows, used_rows, now, job, wait, in_system, episode, i, START)
            if wait > 0.0:
                paid_class[used_waits] = i
                paid_wait[used_waits] = wait
                used_waits += 1
            server = end_server[busy]
            at_job[server], at_class[server], at_arrival[server], at_start[server] = job, i, arrival, now
            end_time[busy] = now + service
            _sift_up(end_time, end_server, busy)
            busy += 1
        if ticking and tick >= 0:
            visits[tick] += 1
            if visits[tick] == visit_limits[tick]:
                due = True
        if due:
            # an empty block has to be filled first: minus the reason says that a review is due as well
            reason = -DUE if reason == REFILL else DUE
            break

    counts[IN_SYSTEM], counts[BUSY], counts[HEAD], counts[WAITING] = in_system, busy, head, waiting
    counts[JOBS], counts[GAPS], counts[DEPARTURES] = jobs, gap_count, departures
    counts[USED_ROWS], counts[USED_WAITS] = used_rows, used_waits
    reals[LAST_MOVE], reals[LAST_ARRIVAL], reals[CLOCK] = last_move, last_arrival, now
    reals[GAP_SUM], reals[TRUNCATED_GAP_SUM] = gap_sum, truncated_gap_sum
    return reason


class Kernel:
    """Drives `advance` from review to review."""

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
        self.records = records
        self.horizon = horizon
        self.stops = deque(stops(grid, horizon, progress))
        self.solver_latency = solver_latency
        self.log = log
        self.progress = progress
        self.jobs = [streams.jobs(i) for i in range(len(queue.classes))]
        self.thinning = [streams.thinning(i) for i in range(len(queue.classes))] if queue.drifts else []
        if desk.ticking:
            self.jobs.append(streams.ticks())
        self.state = self._fresh_state()
        self.table: BoolArray
        self.now = 0.0
        self.control = 0.0  # when the next review is, or the solver's answer to the last
        self.asked: Plan | None = None  # what the solver has not answered yet
        self.departure_limit = NEVER  # departures in all at which the plan wants a review

    def _fresh_state(self) -> State:
        queue = self.queue
        m, S = len(queue.classes), queue.capacity
        sources = len(self.jobs)
        servers, room = min(queue.servers, S), max(1, S - queue.servers)

        def reals(*shape: int) -> FloatArray:
            return np.zeros(shape)

        def whole(*shape: int) -> IntArray:
            return np.zeros(shape, dtype=np.int64)

        counts, waits = self.records.counts, self.records.waits
        codes = [c.pattern.code for c in queue.classes]
        ceiling = np.array([c.pattern.ceiling for c in queue.classes])
        numbers = reals(m, max(data.size for _, data in codes))
        for i, (_, data) in enumerate(codes):
            numbers[i, : data.size] = data
        state = State(
            reals=reals(6), counts=whole(14), next_arrival=reals(sources), position=whole(sources),
            gaps=reals(sources, STREAM_BLOCK), services=reals(sources, STREAM_BLOCK),
            mean_gap=1.0 / np.append(queue.arrival_rates * ceiling, queue.max_service_rate)[:sources],
            thinning=reals(len(self.thinning), STREAM_BLOCK), pattern=np.array([kind for kind, _ in codes]),
            pattern_numbers=numbers, ceiling=ceiling,
            mean_service=np.array([1.0 / queue.service_rate]),
            end_time=reals(servers), end_server=np.arange(servers),
            job=whole(servers), job_class=whole(servers), arrival=reals(servers), start=reals(servers),
            wait_job=whole(room), wait_class=whole(room), wait_arrival=reals(room), wait_service=reals(room),
            arrivals=whole(m), started=waits.started, blocked=counts.blocked, admitted=counts.admitted,
            rejected=counts.rejected, time_in_state=reals(S + 1),
            visits=whole(S + 1), ups=whole(S + 1), downs=whole(S + 1), reward_sum=reals(S + 1),
            reward_square_sum=reals(S + 1), visit_limits=whole(S + 1),
            idle_share=queue.service_rates / queue.service_rates[-1],
            scaled_rewards=queue.rewards / (queue.max_reward or 1.0),
            rows=np.zeros(ROWS if self.log is not None else 2, dtype=ROW), paid_class=whole(WAITS),
            paid_wait=reals(WAITS),
        )  # fmt: skip
        state.counts[LOGGING] = self.log is not None
        state.counts[TICKING] = self.desk.ticking
        for i in range(sources):
            self._refill(state, i)
        return state

    def _refill(self, state: State, i: int) -> None:
        self.jobs[i].fill(state.gaps[i], state.services[i])
        if self.thinning:
            self.thinning[i].random(out=state.thinning[i])
        state.position[i] = 0
        state.next_arrival[i] += state.mean_gap[i] * state.gaps[i, 0]

    def _advance(self, until: float, *, departures_at_until: bool) -> bool:
        """Run to a time; False if a limit of the plan (visits of a state, departures) was reached before it."""
        state, table, due = self.state, self.table, False
        while (reason := advance(state, table, until, departures_at_until)) != REACHED:
            if reason in (REFILL, -DUE):
                self._refill(state, int(state.counts[EMPTY_CLASS]))
            if reason in (DUE, -DUE):  # what else leaves at this time comes before the review
                due, until, departures_at_until = True, float(state.reals[CLOCK]), True
            if reason == FULL:
                self._flush()
        self.now = until
        return not due

    def _flush(self) -> None:
        """Hand on the waits and the rows that the kernel has buffered."""
        counts = self.state.counts
        if counts[USED_WAITS]:
            self.records.waits.add(
                self.state.paid_class[: counts[USED_WAITS]], self.state.paid_wait[: counts[USED_WAITS]]
            )
            counts[USED_WAITS] = 0
        if self.log is not None and counts[USED_ROWS]:
            self.log.write(self.state.rows[: counts[USED_ROWS]])
            counts[USED_ROWS] = 0

    def _run_to(self, until: float, *, departures_at_until: bool) -> bool:
        """Run to a time, noting the grid's times on the way; False if it was stopped before."""
        while self.stops and self.stops[0][0] <= until:
            time, noted = self.stops[0]
            if not self._advance(time, departures_at_until=False):
                return False
            self.stops.popleft()
            if noted:
                self._flush()
                self.records.snapshot(time)
            if self.progress is not None:
                self.progress(time)
        return self._advance(until, departures_at_until=departures_at_until)

    def run(self) -> list[Unfinished]:
        """Run to the horizon; the jobs that are still in the system then."""
        self.go_on(self.horizon)
        self.desk.close_episode(self._take_tally())
        self._flush()
        self.records.snapshot(self.horizon)
        return self._unfinished()

    def go_on(self, until: float) -> None:
        """Run on to a time. A stop leaves no trace in the path, nor does a copy or a pickle that goes on from here."""
        until = min(until, self.horizon)
        if self.desk.plan is None:
            plan = self.desk.first()
            self._open_episode(plan)
            self._adopt(plan)
        while True:
            target = min(self.control, until)
            if self._run_to(target, departures_at_until=target < until) and target == until:
                return
            if self.asked is not None:
                self._adopt(self.asked)
            else:
                self._review()

    def _review(self) -> None:
        plan = self.desk.review(self._take_tally())
        self._open_episode(plan)
        self._write_review()
        if self.solver_latency > 0.0:
            self.asked, self.control = plan, self.now + self.solver_latency
            self.state.counts[DEPARTURE_LIMIT] = NEVER  # nobody is asked again before the answer is there
        else:
            self._adopt(plan)

    def _adopt(self, plan: Plan) -> None:
        """The plan's policy is in force from now on."""
        self.table = self.desk.adopt(plan, self.now).admits
        self.asked, self.control = None, self.now + max(0.0, plan.until - self.now)  # as the world's clock computes it
        self.state.counts[DEPARTURE_LIMIT] = self.departure_limit
        if self.state.counts[DEPARTURES] >= self.departure_limit:
            self.control = self.now

    def _open_episode(self, plan: Plan) -> None:
        state = self.state
        state.reals[LAST_MOVE] = state.reals[LAST_ARRIVAL] = self.now
        state.reals[GAP_SUM] = state.reals[TRUNCATED_GAP_SUM] = 0.0
        state.reals[TRUNCATION] = plan.truncation
        state.counts[GAPS] = 0
        state.counts[EPISODE] = self.desk.episode
        if plan.departure_limit is None:
            self.departure_limit = NEVER
        else:
            self.departure_limit = min(NEVER, int(state.counts[DEPARTURES]) + int(plan.departure_limit))
        state.time_in_state[:] = 0.0
        if self.desk.ticking:
            state.visit_limits[:] = self.desk.visit_limits()
            for counted in (state.visits, state.ups, state.downs, state.reward_sum, state.reward_square_sum):
                counted[:] = 0

    def _write_review(self) -> None:
        if self.log is not None:
            if self.state.counts[USED_ROWS] == self.state.rows.size:
                self._flush()
            counts = self.state.counts
            counts[USED_ROWS] = _write(
                self.state.rows, counts[USED_ROWS], self.now, -1, 0.0, counts[IN_SYSTEM], counts[EPISODE], -1, REVIEW
            )

    def _take_tally(self) -> Tally:
        state = self.state
        state.time_in_state[state.counts[IN_SYSTEM]] += self.now - state.reals[LAST_MOVE]
        state.reals[LAST_MOVE] = self.now
        return self.desk.tally(
            self.now, state.arrivals, float(state.reals[GAP_SUM]), float(state.reals[TRUNCATED_GAP_SUM]),
            int(state.counts[DEPARTURES]), state.time_in_state, self._ticks(),
        )  # fmt: skip

    def _ticks(self) -> TickTally | None:
        if not self.desk.ticking:
            return None
        state = self.state
        return TickTally(
            state.visits.copy(), state.ups.copy(), state.downs.copy(), state.reward_sum.copy(),
            state.reward_square_sum.copy(),
        )  # fmt: skip

    def _unfinished(self) -> list[Unfinished]:
        state, counts = self.state, self.state.counts
        serving = [
            Unfinished(int(state.job[k]), int(state.job_class[k]), float(state.arrival[k]), float(state.start[k]))
            for k in state.end_server[: counts[BUSY]]
        ]  # fmt: skip
        places = [(int(counts[HEAD]) + k) % state.wait_job.size for k in range(counts[WAITING])]
        waiting = [
            Unfinished(int(state.wait_job[k]), int(state.wait_class[k]), float(state.wait_arrival[k]), math.nan)
            for k in places
        ]
        return sorted(serving + waiting, key=lambda job: job.job)
