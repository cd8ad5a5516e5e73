"""The compiled loop of many plain worlds, each from one arrival that has room to the next.

The events are those of `patient_loop`, and so are the paths, to the last bit. What it leaves out is what a world that
is asked at each arrival has no use for: log, grid, ticks, reviews, tallies. What is left of a world is some hundred
bytes in arrays of all worlds, which the processor reads ahead as it goes from one to the next, where a world with
thirty arrays of its own would be fetched anew at every step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray, RecordRows, Records
from queueing_ucrl.compiled import compiled, uncounted
from queueing_ucrl.simulation.kernel_state import earliest
from queueing_ucrl.simulation.tournament import replay

NOBODY = -1  # the class of who is at the door where the horizon is reached; what was decided where nothing was
DONE, NO_ROOM = -1, -2  # why a run came back; from 0 on: the class whose block of jobs is used up
AT_ADMISSION, AT_START, AT_END = range(3)
PAID_AT = {"admission": AT_ADMISSION, "start": AT_START, "end": AT_END}

index = np.uint64  # a signed index may count from the end, and numba asks each time


class World:
    """What is a single number."""

    in_system: int
    busy: int
    head: int
    waiting: int
    jobs: int


class WaitingJob:
    """A job in the line."""

    number: int
    job_class: int
    arrival: float
    work: float


class Door(NamedTuple):
    """Of each run: what is to be done with the job at the door, and who is there next."""

    decision: IntArray  # REJECTED, ADMITTED, or NOBODY: none is to be carried out
    decided: BoolArray  # whether one has been, in this episode; not of plain runs
    let_in: IntArray  # the class that the last decision let in, NOBODY: none; not of plain runs
    time: FloatArray
    in_system: IntArray
    job_class: IntArray  # NOBODY: the horizon is reached
    environment: IntArray
    row: IntArray  # of the table of a policy that may see more than the number of jobs
    came_back: IntArray

    @classmethod
    def of(cls, count: int) -> Door:
        """For so many runs."""
        whole = (np.full(count, NOBODY, dtype=np.int64) for _ in range(7))
        return cls(next(whole), np.zeros(count, dtype=np.bool_), next(whole), np.zeros(count), *whole)


class Worlds(NamedTuple):
    """All of them, a row a world."""

    world: Records[World]
    next: FloatArray  # by class: the time of the next job
    position: IntArray  # by class: of that job in its block
    size: IntArray  # by class: of the block
    jobs: FloatArray  # by class, of each job to come: its time and its work
    join: FloatArray  # where jobs balk, the number that says when; by class; of each job
    end: FloatArray  # by server: when the service ends; infinite: it is idle
    number: IntArray  # by server: of the job, which says who leaves first at equal times
    job_class: IntArray  # by server
    winner: IntArray  # see `tournament`
    idle: IntArray  # servers, from place `busy` on
    line: RecordRows[WaitingJob]  # a ring
    present: IntArray  # by class
    admitted: IntArray  # by state and class: so far
    started: IntArray  # by class: so far
    paying: IntArray  # by class: who has paid since the last decision
    charged: FloatArray  # one number: since the last decision
    cost: FloatArray  # by class: so far


class Terms(NamedTuple):
    """What is the same in all worlds."""

    joins: FloatArray  # b_i(s); where nobody balks, empty
    paid_at: IntArray  # by class
    rewards: FloatArray  # R_i
    rates: FloatArray  # by class, where waits cost C(t) = rate t; else empty: waits are kept


class Waits(NamedTuple):
    """Positive waits, in the order in which they were over, until somebody knows what they cost."""

    who: IntArray  # of each: the run
    job_class: IntArray
    wait: FloatArray
    used: IntArray  # one number

    @classmethod
    def room_for(cls, count: int) -> Waits:
        """So many."""
        who, job_class = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        return cls(who, job_class, np.zeros(count), np.zeros(1, dtype=np.int64))


@compiled
def charge(waits: Waits, cost: FloatArray, charged: FloatArray, by_class: FloatArray) -> None:
    """Add up costs one by one, in order: those of each run, and by its classes (who gave up has class -1 - i)."""
    for k in range(waits.used[0]):
        w, i = waits.who[k], waits.job_class[k]
        charged[w] += cost[k]
        by_class[w, i if i >= 0 else -1 - i] += cost[k]
    waits.used[0] = 0


@uncounted
def run_worlds(
    worlds: Worlds, terms: Terms, waits: Waits, runs: IntArray, horizon: float, door: Door, paid: FloatArray
) -> int:
    """Each of these goes on to its next arrival with room; how many came back before (`Door.came_back`).

    O(log c + m) an event. paid: since the last decision.

    One long function, its state in local variables: what is in memory is read and written anew at every step.
    """
    capacity, classes = worlds.admitted.shape[1:]
    room, balking, linear = worlds.line.shape[1], terms.joins.size > 0, terms.rates.size > 0
    used, kept_back = waits.used[0], 0
    for w in runs:
        world, come_times, positions = worlds.world[index(w)], worlds.next[index(w)], worlds.position[index(w)]
        ends, numbers, winners = worlds.end[index(w)], worlds.number[index(w)], worlds.winner[index(w)]
        at_server, idle, line = worlds.job_class[index(w)], worlds.idle[index(w)], worlds.line[index(w)]
        paying, present = worlds.paying[index(w)], worlds.present[index(w)]
        in_system, busy, head = world.in_system, world.busy, world.head
        waiting, jobs, charged, decision = world.waiting, world.jobs, worlds.charged[index(w)], door.decision[index(w)]
        if decision != NOBODY:
            charged = 0.0
            for k in range(classes):
                paying[index(k)] = 0
        come, i_next = earliest(come_times)
        first_end = ends[index(winners[1])]
        came_back, at_door, time = DONE, NOBODY, horizon
        while came_back == DONE:
            if used == waits.wait.size:
                came_back = NO_ROOM
                break
            leaves = first_end <= come
            now = first_end if leaves else come
            if now >= horizon:
                break
            server: Any = np.int64(-1)
            starting, number, i = False, 0, i_next
            end, arrival, work = math.inf, now, 0.0
            if leaves:  # the earliest service ends
                server = np.int64(winners[1])
                gone = at_server[index(server)]
                present[index(gone)] -= 1
                in_system -= 1
                if terms.paid_at[index(gone)] == AT_END:
                    paying[index(gone)] += 1
                if waiting > 0:  # the oldest waiting job takes the server
                    oldest = line[index(head)]
                    starting, number, i = True, oldest.number, oldest.job_class
                    arrival, work = oldest.arrival, oldest.work
                    head = head + 1 if head + 1 < room else 0
                    waiting -= 1
                else:
                    busy -= 1
                    idle[index(busy)] = server
            else:
                at = positions[index(i)]
                stays_out = balking and (
                    worlds.join[index(w), index(i), index(at)] >= terms.joins[index(in_system), index(i)]
                )
                if not stays_out and in_system < capacity:
                    if decision == NOBODY:
                        at_door, time = i, now
                        break
                    if decision == 1:
                        work, number = worlds.jobs[index(w), index(i), index(at), 1], jobs
                        worlds.admitted[index(w), index(in_system), index(i)] += 1
                        if terms.paid_at[index(i)] == AT_ADMISSION:
                            paying[index(i)] += 1
                        in_system += 1
                        present[index(i)] += 1
                        if busy < idle.size:
                            starting, server = True, np.int64(idle[index(busy)])
                            busy += 1
                        else:
                            tail = head + waiting
                            last = line[index(tail - room if tail >= room else tail)]
                            last.number, last.job_class, last.arrival, last.work = number, i, now, work
                            waiting += 1
                    decision = NOBODY
                jobs += 1
                at += 1
                positions[index(i)] = at
                if at == worlds.size[index(w), index(i)]:
                    came_back = i
                else:
                    come_times[index(i)] = worlds.jobs[index(w), index(i), index(at), 0]
                    come, i_next = earliest(come_times)
            if starting:
                wait = now - arrival
                worlds.started[index(w), index(i)] += 1
                if terms.paid_at[index(i)] == AT_START:
                    paying[index(i)] += 1
                if wait > 0.0 and linear:
                    cost = terms.rates[index(i)] * wait
                    charged += cost
                    worlds.cost[index(w), index(i)] += cost
                elif wait > 0.0:
                    waits.who[index(used)], waits.job_class[index(used)], waits.wait[index(used)] = w, i, wait
                    used += 1
                at_server[index(server)] = i
                end = now + work
            if server >= 0:
                ends[index(server)], numbers[index(server)] = end, number
                node, winner, tied = server + ends.size, server, False
                while node > 1:
                    other = np.int64(winners[index(node ^ 1)])
                    tied |= (ends[index(other)] == end) & (end < math.inf)
                    winner += (other - winner) * (ends[index(other)] < end)
                    end = min(end, ends[index(other)])
                    node >>= 1
                    winners[index(node)] = winner
                if tied:
                    replay(ends, numbers, winners, server)
                first_end = end
        world.in_system, world.busy, world.head = in_system, busy, head
        world.waiting, world.jobs, worlds.charged[index(w)] = waiting, jobs, charged
        door.decision[index(w)], door.came_back[index(w)] = decision, came_back
        door.time[index(w)], door.job_class[index(w)] = time, at_door
        door.in_system[index(w)] = in_system
        kept_back += came_back != DONE
        total = 0.0
        for k in range(classes):
            total += float(paying[index(k)]) * terms.rewards[index(k)]
        paid[index(w)] = total
    waits.used[0] = used
    return kept_back
