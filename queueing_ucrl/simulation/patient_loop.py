"""The compiled loop for jobs that wait for ever and servers that are always there.

FIFO waiting needs no event list: the next event is the earliest of m arrivals and of the c services in a heap, and when
a service ends the oldest waiting job takes the server.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.simulation.event_log import ADMIT, BLOCK, DEPART, REJECT, START
from queueing_ucrl.simulation.kernel_state import (
    DUE,
    FULL,
    REACHED,
    REFILL,
    TIME,
    WORK,
    PatientState,
    Services,
    earliest,
    note,
    pass_time,
    write,
)
from queueing_ucrl.simulation.ledger import ARRIVED, BLOCKED, DEPARTED, STARTED


@compiled
def _sift_up(time: FloatArray, server: IntArray, child: int) -> None:
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
def _is_older(servers: np.ndarray[Any, Any], k: int, other: int) -> bool:
    """Whether the job at server k came before the one at another."""
    return bool(servers[k].number < servers[other].number)


@compiled
def _sift_down(time: FloatArray, server: IntArray, servers: np.ndarray[Any, Any], size: int) -> None:
    """Restore the heap of the given size after its first entry was replaced; at equal times the older job leads."""
    t, k = time[0], server[0]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and (
            time[child + 1] < time[child]
            or (time[child + 1] == time[child] and _is_older(servers, server[child + 1], server[child]))
        ):
            child += 1
        if t < time[child] or (t == time[child] and _is_older(servers, k, server[child])):
            break
        time[parent], server[parent] = time[child], server[child]
        parent = child
    time[parent], server[parent] = t, k


@compiled
def _seat(place: Any, number: int, i: int, arrival: float, work: float, start: float) -> None:
    place.number = number
    place.job_class = i
    place.arrival = arrival
    place.work = work
    place.start = start


@compiled
def count_departed(counts: IntArray, servers: np.ndarray[Any, Any], end_server: IntArray, busy: int) -> None:
    """Jobs that have left, by class: those that have started, but for those at servers."""
    counts[DEPARTED] = counts[STARTED]
    for k in range(busy):
        counts[DEPARTED, servers[end_server[k]].job_class] -= 1


@compiled
def close_episode(
    clocks: np.ndarray[Any, Any],
    services: Services,
    servers: np.ndarray[Any, Any],
    counts: IntArray,
    time_in_state: FloatArray,
    left: FloatArray,
    now: float,
) -> tuple[float, float, float, int]:
    """What is counted by episode is counted up to now; left: what is left for the jobs at servers, by class.

    The sums of the gaps between arrivals, all of them and truncated, the waiting time, and the environment's state.
    """
    clock, (end_time, end_server) = clocks[0], services
    pass_time(clock, time_in_state, now)
    count_departed(counts, servers, end_server, clock.busy)
    ends = np.full(end_time.size, -1.0)
    for k in range(clock.busy):
        ends[end_server[k]] = end_time[k]
    left[:] = 0.0
    for k in range(ends.size):  # in the order of servers, as the world adds it up
        if ends[k] >= 0.0:
            left[servers[k].job_class] += ends[k] - now
    return clock.gap_sum, clock.truncated_gap_sum, clock.waiting_time, clock.environment


@compiled
def advance(state: PatientState, table: BoolArray, until: float, departures_at_until: bool) -> int:
    """Run up to `until`: arrivals before it, departures before it or at it. Why it came back. O(log c + m) an event.

    One long function, its state in local variables: what is in memory is read and written anew at every step.
    """
    clock = state.clock[0]
    come, (end_time, end_server), tallied, noted = state.arrivals, state.services, state.tallied, state.noted
    servers, line, ticks, (rows, wait_class, waits) = state.servers, state.line, state.ticks, state.buffers
    in_system, busy, head, waiting = clock.in_system, clock.busy, clock.head, clock.waiting
    jobs, gap_count, departures, departure_limit = clock.jobs, clock.gaps, clock.departures, clock.departure_limit
    used_rows, used_waits, row, passed = clock.used_rows, clock.used_waits, clock.noted, clock.passed
    episode, logging, ticking = clock.episode, clock.logging, clock.ticking
    last_move, last_arrival, truncation = clock.last_move, clock.last_arrival, clock.truncation
    gap_sum, truncated_gap_sum, now = clock.gap_sum, clock.truncated_gap_sum, clock.now
    capacity, classes = tallied.admitted.shape
    counts, strides, strided, table_row = tallied.counts, state.strides, clock.strided, clock.table_row
    room, row_limit = line.size, rows.size - 2
    last = noted.times.size - 1  # the last time of the grid is the horizon, which is noted at the end
    stop = min(until, noted.times[passed] if passed < last else math.inf)
    come_next, i_next = earliest(come.next)
    ends = end_time[0] if busy > 0 else math.inf

    reason = -1
    while reason < 0:
        if used_rows > row_limit or used_waits == waits.size:
            reason = FULL
            break
        leaves = ends <= come_next
        now = ends if leaves else come_next
        if now >= stop:
            if passed < last and noted.times[passed] <= min(now, until):  # what happened before this time is counted
                if row == noted.waits.size:
                    reason = FULL
                    break
                count_departed(counts, servers, end_server, busy)
                note(noted, row, tallied, used_waits)
                row += 1
                passed += 1
                stop = min(until, noted.times[passed] if passed < last else math.inf)
                continue
            if now > until or not (leaves and departures_at_until):
                reason = REACHED
                break
        starting = due = False
        tick = -1
        if leaves:  # the earliest service ends
            server = end_server[0]
            if logging:
                gone = servers[server]
                write(rows[used_rows], now, gone.number, 0.0, in_system, episode, gone.job_class, DEPART, server)
                used_rows += 1
            if strided:
                table_row -= strides[servers[server].job_class]
            tallied.time_in_state[in_system] += now - last_move
            last_move = now
            tick = in_system
            if ticking:
                ticks[tick].downs += 1
            in_system -= 1
            departures += 1
            due = departures == departure_limit
            busy -= 1
            if busy > 0:
                end_time[0], end_server[0] = end_time[busy], end_server[busy]
                end_server[busy] = server
                _sift_down(end_time, end_server, servers, busy)
            if waiting > 0:  # the oldest waiting job takes the server
                starting = True
                oldest = line[head]
                job, i, arrival, work = oldest.number, oldest.job_class, oldest.arrival, oldest.work
                head = head + 1 if head + 1 < room else 0
                waiting -= 1
        else:
            i = i_next
            at = come.position[i]
            tick = in_system
            if i == classes:  # not a job: a candidate for an idle tick
                if come.jobs[WORK, i, at] < ticks[in_system].idle_share:
                    tick = -1
            else:  # a job of class i is at the door
                job, arrival, work = jobs, now, come.jobs[WORK, i, at]
                jobs += 1
                counts[ARRIVED, i] += 1
                gap = now - last_arrival
                last_arrival = now
                gap_count += 1
                gap_sum += gap
                if gap * gap <= truncation * gap_count:
                    truncated_gap_sum += gap
                event = BLOCK
                if in_system == capacity:
                    counts[BLOCKED, i] += 1
                elif table[table_row if strided else in_system, i]:
                    event = ADMIT
                    tallied.admitted[in_system, i] += 1
                else:
                    event = REJECT
                    tallied.rejected[in_system, i] += 1
                if logging:
                    write(rows[used_rows], now, job, 0.0, in_system, episode, i, event, -1)
                    used_rows += 1
                if event == ADMIT:
                    tallied.time_in_state[in_system] += now - last_move
                    last_move = now
                    if ticking:
                        reward = state.scaled_rewards[in_system, i]
                        ticks[tick].ups += 1
                        ticks[tick].reward_sum += reward
                        ticks[tick].reward_square_sum += reward * reward
                    in_system += 1
                    if strided:
                        table_row += strides[i]
                    if busy < servers.size:
                        starting = True
                    else:
                        tail = head + waiting
                        if tail >= room:
                            tail -= room
                        _seat(line[tail], job, i, arrival, work, math.nan)
                        waiting += 1
            at += 1
            come.position[i] = at
            if at == come.size[i]:
                clock.empty = i
                reason = REFILL
            else:
                come.next[i] = come.jobs[TIME, i, at]
                come_next, i_next = earliest(come.next)
        if starting:
            wait = now - arrival
            server = end_server[busy]
            counts[STARTED, i] += 1
            tallied.service[i] += work
            if logging:
                write(rows[used_rows], now, job, wait, in_system, episode, i, START, server)
                used_rows += 1
            if wait > 0.0:
                wait_class[used_waits] = i
                waits[used_waits] = wait
                used_waits += 1
            _seat(servers[server], job, i, arrival, work, now)
            end_time[busy] = now + work
            _sift_up(end_time, end_server, busy)
            busy += 1
        ends = end_time[0] if busy > 0 else math.inf
        if ticking and tick >= 0:
            ticks[tick].visits += 1
            if ticks[tick].visits == ticks[tick].visit_limit:
                due = True
        if due:
            # an empty block has to be filled first: minus the reason says that a review is due as well
            reason = -DUE if reason == REFILL else DUE
            break

    clock.table_row = table_row
    clock.in_system, clock.busy, clock.head, clock.waiting = in_system, busy, head, waiting
    clock.jobs, clock.gaps, clock.departures = jobs, gap_count, departures
    clock.used_rows, clock.used_waits, clock.noted, clock.passed = used_rows, used_waits, row, passed
    clock.last_move, clock.last_arrival, clock.now = last_move, last_arrival, now
    clock.gap_sum, clock.truncated_gap_sum = gap_sum, truncated_gap_sum
    return reason
