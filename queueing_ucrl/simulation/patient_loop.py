"""The compiled loop for jobs that wait for ever and servers that are always there.

FIFO waiting needs no event list: the next event is the earliest of m arrivals and of the c services, which play a
tournament, and when a service ends the oldest waiting job takes the server.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray, Records
from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.online.learn import learn
from queueing_ucrl.learning.online.memory import LEFT, NOTHING, Memory
from queueing_ucrl.simulation.event_log import ADMIT, BLOCK, DEPART, REJECT, START
from queueing_ucrl.simulation.kernel_state import (
    ADMITTED,
    ASKED,
    DUE,
    FULL,
    OPEN,
    REACHED,
    REFILL,
    TABLE,
    TIME,
    WORK,
    Clock,
    PatientJob,
    PatientState,
    earliest,
    note,
    pass_time,
    write,
)
from queueing_ucrl.simulation.ledger import ARRIVED, BLOCKED, DEPARTED, STARTED
from queueing_ucrl.simulation.tournament import replay

index = np.uint64  # a signed index may count from the end, and numba asks each time


@compiled
def _seat(place: PatientJob, number: int, i: int, arrival: float, work: float, start: float) -> None:
    place.number = number
    place.job_class = i
    place.arrival = arrival
    place.work = work
    place.start = start


@compiled
def count_departed(counts: IntArray, servers: Records[PatientJob], ends: FloatArray) -> None:
    """Jobs that have left, by class: those that have started, but for those at servers."""
    counts[DEPARTED] = counts[STARTED]
    for k in range(servers.size):
        if ends[k] < math.inf:
            counts[DEPARTED, servers[k].job_class] -= 1


@compiled
def close_episode(
    clocks: Records[Clock],
    ends: FloatArray,
    servers: Records[PatientJob],
    counts: IntArray,
    time_in_state: FloatArray,
    left: FloatArray,
    now: float,
) -> tuple[float, float, float, int]:
    """What is counted by episode is counted up to now; left: what is left for the jobs at servers, by class.

    The sums of the gaps between arrivals, all of them and truncated, the waiting time, and the environment's state.
    """
    clock = clocks[0]
    pass_time(clock, time_in_state, now)
    count_departed(counts, servers, ends)
    left[:] = 0.0
    for k in range(servers.size):  # in the order of servers, as the world adds it up
        if ends[k] < math.inf:
            left[servers[k].job_class] += ends[k] - now
    return clock.gap_sum, clock.truncated_gap_sum, clock.waiting_time, clock.environment


@compiled
def advance(
    state: PatientState, table: BoolArray, until: float, departures_at_until: bool, memory: Memory | None
) -> int:
    """Run up to `until`: arrivals before it, departures before it or at it. Why it came back. O(log c + m) an event.

    memory: of what learns at ticks. Compiled without it (None) the loop does not ask.

    One long function, its state in local variables: what is in memory is read and written anew at every step.
    """
    clock = state.clock[0]
    come, tallied, noted = state.arrivals, state.tallied, state.noted
    (end_time, ranks, winners), idle = state.services
    servers, line, ticks, (rows, wait_class, waits) = state.servers, state.line, state.ticks, state.buffers
    in_system, busy, head, waiting = clock.in_system, clock.busy, clock.head, clock.waiting
    jobs, gap_count, departures, departure_limit = clock.jobs, clock.gaps, clock.departures, clock.departure_limit
    arrival_limit = clock.arrival_limit
    used_rows, used_waits, row, passed = clock.used_rows, clock.used_waits, clock.noted, clock.passed
    episode, logging, ticking = clock.episode, clock.logging, clock.ticking
    last_move, last_arrival, truncation = clock.last_move, clock.last_arrival, clock.truncation
    gap_sum, truncated_gap_sum, now = clock.gap_sum, clock.truncated_gap_sum, clock.now
    capacity, classes = tallied.admitted.shape
    decision = clock.decision
    counts, strides, strided, table_row = tallied.counts, state.strides, clock.strided, clock.table_row
    room, row_limit, balking = line.size, rows.size - 2, come.joins.size > 0
    last = noted.times.size - 1  # the last time of the grid is the horizon, which is noted at the end
    stop = min(until, noted.times[passed] if passed < last else math.inf)
    come_next, i_next = earliest(come.next)
    ends = end_time[winners[1]]

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
                count_departed(counts, servers, end_time)
                note(noted, row, tallied, used_waits)
                row += 1
                passed += 1
                stop = min(until, noted.times[passed] if passed < last else math.inf)
                continue
            if now > until or not (leaves and departures_at_until):
                reason = REACHED
                break
        starting = due = False
        tick, server, what = -1, -1, LEFT  # what a tick brings
        end, number = math.inf, 0
        if leaves:  # the earliest service ends
            server = winners[1]
            if logging:
                gone = servers[index(server)]
                write(rows[index(used_rows)], now, gone.number, 0.0, in_system, episode, gone.job_class, DEPART, server)
                used_rows += 1
            if strided:
                table_row -= strides[servers[index(server)].job_class]
            tallied.time_in_state[index(in_system)] += now - last_move
            last_move = now
            tick = in_system
            if ticking:
                ticks[tick].downs += 1
            in_system -= 1
            departures += 1
            due = departures == departure_limit
            if waiting > 0:  # the oldest waiting job takes the server
                starting = True
                oldest = line[index(head)]
                job, i, arrival, work = oldest.number, oldest.job_class, oldest.arrival, oldest.work
                head = head + 1 if head + 1 < room else 0
                waiting -= 1
            else:
                busy -= 1
                idle[index(busy)] = server
        else:
            i = i_next
            at = come.position[index(i)]
            tick, what = in_system, i if i < classes else NOTHING
            if i == classes:  # not a job: a candidate for an idle tick
                if come.jobs[WORK, index(i), index(at)] < ticks[in_system].idle_share:
                    tick = -1
            elif balking and come.join[index(i), index(at)] >= come.joins[index(in_system), index(i)]:  # it balks
                jobs += 1
                what = NOTHING
                if come.next.size == classes:  # else it is a tick at which nothing happens
                    tick = -1
            else:  # a job of class i is at the door
                if gap_count >= arrival_limit:
                    reason = DUE
                    break
                if decision == OPEN and in_system < capacity:
                    reason = ASKED
                    break
                job, arrival, work = jobs, now, come.jobs[WORK, index(i), index(at)]
                jobs += 1
                counts[ARRIVED, index(i)] += 1
                gap = now - last_arrival
                last_arrival = now
                gap_count += 1
                gap_sum += gap
                if gap * gap <= truncation * gap_count:
                    truncated_gap_sum += gap
                event = BLOCK
                if in_system == capacity:
                    counts[BLOCKED, index(i)] += 1
                else:
                    if decision == TABLE:
                        admits = table[index(table_row if strided else in_system), index(i)]
                    else:
                        admits, decision = decision == ADMITTED, OPEN
                    if admits:
                        event = ADMIT
                        tallied.admitted[index(in_system), index(i)] += 1
                    else:
                        event = REJECT
                        tallied.rejected[index(in_system), index(i)] += 1
                if logging:
                    write(rows[index(used_rows)], now, job, 0.0, in_system, episode, i, event, -1)
                    used_rows += 1
                if event == ADMIT:
                    tallied.time_in_state[index(in_system)] += now - last_move
                    last_move = now
                    if ticking:
                        reward = state.scaled_rewards[index(in_system), index(i)]
                        ticks[tick].ups += 1
                        ticks[tick].reward_sum += reward
                        ticks[tick].reward_square_sum += reward * reward
                    in_system += 1
                    if strided:
                        table_row += strides[i]
                    if busy < servers.size:
                        starting = True
                        server = idle[index(busy)]
                        busy += 1
                    else:
                        tail = head + waiting
                        if tail >= room:
                            tail -= room
                        _seat(line[index(tail)], job, i, arrival, work, math.nan)
                        waiting += 1
            at += 1
            come.position[index(i)] = at
            if at == come.size[index(i)]:
                clock.empty = i
                reason = REFILL
            else:
                come.next[index(i)] = come.jobs[TIME, index(i), index(at)]
                come_next, i_next = earliest(come.next)
        if starting:
            wait = now - arrival
            counts[STARTED, index(i)] += 1
            tallied.service[index(i)] += work
            if logging:
                write(rows[index(used_rows)], now, job, wait, in_system, episode, i, START, server)
                used_rows += 1
            if wait > 0.0:
                wait_class[index(used_waits)] = i
                waits[index(used_waits)] = wait
                used_waits += 1
            _seat(servers[index(server)], job, i, arrival, work, now)
            end, number = now + work, job
        if server >= 0:
            end_time[index(server)], ranks[index(server)] = end, number
            node, winner, tied = server + end_time.size, server, False
            while node > 1:
                other = winners[index(node ^ 1)]
                tied |= (end_time[index(other)] == end) & (end < math.inf)
                winner += (other - winner) * (end_time[index(other)] < end)
                end = min(end, end_time[index(other)])
                node >>= 1
                winners[index(node)] = winner
            if tied:
                replay(end_time, ranks, winners, server)
            ends = end
        if ticking and tick >= 0:
            ticks[tick].visits += 1
            if ticks[tick].visits == ticks[tick].visit_limit:
                due = True
            if memory is not None:
                learn(memory, tick, what, in_system - tick)
        if due:
            # an empty block has to be filled first: minus the reason says that a review is due as well
            reason = -DUE if reason == REFILL else DUE
            break

    clock.table_row, clock.decision = table_row, decision
    clock.in_system, clock.busy, clock.head, clock.waiting = in_system, busy, head, waiting
    clock.jobs, clock.gaps, clock.departures = jobs, gap_count, departures
    clock.used_rows, clock.used_waits, clock.noted, clock.passed = used_rows, used_waits, row, passed
    clock.last_move, clock.last_arrival, clock.now = last_move, last_arrival, now
    clock.gap_sum, clock.truncated_gap_sum = gap_sum, truncated_gap_sum
    return reason
