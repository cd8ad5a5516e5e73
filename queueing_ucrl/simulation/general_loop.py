"""The compiled loop for everything else: impatience, shifts, breakdowns, set-up, environments, jobs there at time 0.

The next event is the earliest of three: what is to come of a job in the system (it departs, or gives up), a change by
the clock (an environment, a shift, a server), and an arrival. The line is a list in the order of job numbers, so that a
job whose service was interrupted stands before all who have not started. One step writes two rows of the log at most.

What happens to every job is in the loop itself, or in functions that take the few arrays they need: a call that takes
the whole state counts references to each of its arrays, which costs more than all else. Rare changes take it whole.

One file, though a long one: the loop and the steps that it takes share the same few arrays.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray, Records
from queueing_ucrl.compiled import compiled, inlined
from queueing_ucrl.learning.online.learn import learn
from queueing_ucrl.learning.online.memory import LEFT, NOTHING, Memory
from queueing_ucrl.simulation.changes import ENVIRONMENT_CHANGE, INITIAL_JOB, SHIFT_CHANGE
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
    SHIFT,
    START,
    Row,
)
from queueing_ucrl.simulation.kernel_state import (
    ADMITTED,
    ASKED,
    DUE,
    FULL,
    OPEN,
    PATIENCE,
    PAY,
    REACHED,
    REFILL,
    SETUP,
    TABLE,
    TIME,
    WORK,
    Clock,
    GeneralState,
    Present,
    PresentJob,
    Server,
    earliest,
    elapse,
    note,
    pass_time,
    write,
)
from queueing_ucrl.simulation.ledger import ABANDONED, ARRIVED, BLOCKED, DEPARTED, FOUND, STARTED
from queueing_ucrl.simulation.tournament import replay

WAITING = 1 << 62  # at equal times departures come before those who give up, then the older job

# ---- the line


@inlined
def _stand_between(jobs: Records[PresentJob], clock: Clock, place: int, before: int, behind: int) -> None:
    """A job takes its place in the line; -1: before or behind nobody."""
    jobs[place].before, jobs[place].behind = before, behind
    if before < 0:
        clock.head = place
    else:
        jobs[before].behind = place
    if behind < 0:
        clock.tail = place
    else:
        jobs[behind].before = place
    clock.waiting += 1


@compiled
def _line_up_again(jobs: Records[PresentJob], clock: Clock, place: int) -> None:
    """A job that was interrupted takes its place in the line: before the first younger one."""
    before, behind = -1, clock.head if clock.waiting > 0 else -1
    while behind >= 0 and jobs[behind].number < jobs[place].number:
        before, behind = behind, jobs[behind].behind
    _stand_between(jobs, clock, place, before, behind)


@inlined
def _leave_line(jobs: Records[PresentJob], clock: Clock, place: int) -> None:
    before, behind = jobs[place].before, jobs[place].behind
    if before < 0:
        clock.head = behind
    else:
        jobs[before].behind = behind
    if behind < 0:
        clock.tail = before
    else:
        jobs[behind].before = before
    clock.waiting -= 1


# ---- a job


@inlined
def _write_job(rows: Records[Row], clock: Clock, job: PresentJob, wait: float, event: int, server: int) -> None:
    """A row of the log, of a job in the system."""
    if clock.logging:
        row = rows[clock.used_rows]
        write(row, clock.now, job.number, wait, clock.in_system, clock.episode, job.job_class, event, server, job.pay)
        clock.used_rows += 1


@inlined
def _write_newcomer(rows: Records[Row], clock: Clock, i: int, event: int, pay: float) -> None:
    """A row of the log for a job that has no place yet."""
    if clock.logging:
        row = rows[clock.used_rows]
        write(row, clock.now, clock.jobs, 0.0, clock.in_system, clock.episode, i, event, -1, pay)
        clock.used_rows += 1


@compiled
def _write_change(rows: Records[Row], clock: Clock, event: int, server: int) -> None:
    """A row of the log, of no job."""
    if clock.logging:
        write(rows[clock.used_rows], clock.now, -1, 0.0, clock.in_system, clock.episode, -1, event, server)
        clock.used_rows += 1


@inlined
def _leave_server(
    jobs: Records[PresentJob], servers: Records[Server], idle: IntArray, clock: Clock, place: int
) -> None:
    """A job is at its server no longer; who of them is idle now is on top of the others, if it is on duty and up."""
    job = jobs[place]
    server = servers[job.server]
    elapse(clock, clock.now)
    clock.busy -= 1
    server.job = -1
    server.idle_since = clock.now
    idle[clock.idle] = job.server  # without a jump: it is there in vain if the server is off duty or down
    clock.idle += server.up & (job.server < clock.posts)
    job.server = -1


# ---- processor sharing: n jobs get min(n, c) / n of a server each


@compiled
def given(clock: Clock, now: float) -> float:
    """What each job has got since the system was empty."""
    n = clock.in_system
    if n == 0:
        return 0.0
    return float(clock.given + (now - clock.given_at) * (min(n, clock.on_duty) / n))


@inlined
def _pass_sharing(clock: Clock) -> None:
    """Reckon up to now, for numbers that are about to change."""
    clock.given = given(clock, clock.now)
    clock.given_at = clock.now


@inlined
def _first_to_finish(clock: Clock, all_its_work: float) -> float:
    """When the first of those that share the servers has all its work."""
    n = clock.in_system
    if clock.on_duty == 0:
        return math.inf
    return float(clock.given_at + max(0.0, all_its_work - clock.given) * (n / min(n, clock.on_duty)))


# ---- servers


@compiled
def _interrupt(state: GeneralState, clock: Clock, place: int, restarts: bool) -> None:
    """The job at a server goes back into the line, before all who have not started."""
    present = state.present
    job = present.jobs[place]
    left = present.next.time[place] - clock.now
    state.tallied.service[job.job_class] -= left
    job.left = job.work if restarts else min(job.left, left)
    _leave_server(present.jobs, present.servers, present.idle, clock, place)
    present.next.time[place] = math.inf
    replay(present.next.time, present.next.rank, present.next.winner, place)
    _line_up_again(present.jobs, clock, place)


@compiled
def _drop_idle(present: Present, clock: Clock, first: int, end: int) -> None:
    """Servers with these numbers are not among the idle ones any more; the others keep their order."""
    kept = 0
    for k in range(clock.idle):
        server = present.idle[k]
        if server < first or server >= end:
            present.idle[kept] = server
            kept += 1
    clock.idle = kept


@compiled
def _offer(present: Present, clock: Clock, k: int) -> None:
    """Server k is on duty and up from now on; on top of the idle ones if it has no job."""
    clock.on_duty += 1
    if present.servers[k].job < 0:
        present.servers[k].idle_since = clock.now
        present.idle[clock.idle] = k
        clock.idle += 1


@compiled
def _shift(state: GeneralState, clock: Clock, posts: int) -> None:
    """So many servers are on duty from now on; what those who leave do with their jobs: see `_hand_over`."""
    present, before = state.present, clock.posts
    elapse(clock, clock.now)
    if clock.shares:
        _pass_sharing(clock)
    clock.posts = posts
    for k in range(before - 1, posts - 1, -1):
        clock.on_duty -= present.servers[k].up
    if posts < before:
        _drop_idle(present, clock, posts, before)
        if clock.hands_over:
            clock.handing, clock.handing_end = posts, before
    for k in range(posts - 1, before - 1, -1):  # the lowest number will be on top
        if present.servers[k].up:
            _offer(present, clock, k)
    _write_change(state.buffers.rows, clock, SHIFT, posts)


@compiled
def _hand_over(state: GeneralState, clock: Clock) -> None:
    """The next server that has left hands over its job, if it has one."""
    k = clock.handing
    clock.handing += 1
    place = state.present.servers[k].job
    if place >= 0:
        _write_job(state.buffers.rows, clock, state.present.jobs[place], 0.0, HAND_OVER, k)
        _interrupt(state, clock, place, False)


@compiled
def _break_or_repair(state: GeneralState, clock: Clock, k: int, up: bool) -> None:
    """Server k is down, or up again."""
    present = state.present
    server = present.servers[k]
    elapse(clock, clock.now)
    server.up = up
    if up:
        if k < clock.posts:
            _offer(present, clock, k)
        _write_change(state.buffers.rows, clock, REPAIR, k)
        return
    if k < clock.posts:
        clock.on_duty -= 1
    if server.job < 0:
        _write_change(state.buffers.rows, clock, BREAKDOWN, k)
        if k < clock.posts:
            _drop_idle(present, clock, k, k + 1)
    else:
        _write_job(state.buffers.rows, clock, present.jobs[server.job], 0.0, BREAKDOWN, k)
        _interrupt(state, clock, server.job, clock.restarts)


@compiled
def _change(state: GeneralState, clock: Clock, what: int, which: int, value: int) -> None:
    """Something that comes by the clock, but for a job that is there at time 0."""
    if what == ENVIRONMENT_CHANGE:
        clock.table_row += clock.environment_stride * (value - clock.environment)
        clock.environment = value
        _write_change(state.buffers.rows, clock, ENVIRONMENT, value)
    elif what == SHIFT_CHANGE:
        _shift(state, clock, value)
    else:
        _break_or_repair(state, clock, which, value > 0)


# ---- the loop


@inlined
def _pay(paid: FloatArray, clock: Clock, paid_at: IntArray, i: int, pay: float, event: int) -> None:
    """A job of class i pays, if this is the event at which its class does; where all pay alike, counts say it all."""
    if clock.pays_differ and paid_at[i] == event:
        paid[0, i] += pay
        paid[1, i] += pay * pay
        paid[2, i] = max(paid[2, i], pay)


@inlined
def _at_the_door(counts: IntArray, clock: Clock, i: int) -> None:
    """A job of class i arrives: it is counted, and so is the time since the last one."""
    counts[ARRIVED, i] += 1
    gap = clock.now - clock.last_arrival
    clock.last_arrival = clock.now
    clock.gaps += 1
    clock.gap_sum += gap
    if gap * gap <= clock.truncation * clock.gaps:
        clock.truncated_gap_sum += gap


@compiled
def advance(state: GeneralState, table: BoolArray, until: float, all_at_until: bool, memory: Memory | None) -> int:
    """Run up to `until`: arrivals before it, all else before it or at it. Why it came back. O(log S + m) an event.

    One long function: the arrays of the state are taken out of it once. A step is that the oldest waiting job gets a
    server, or the next event. In the end somebody may have entered, and somebody may have got a server.
    """
    clock = state.clock[0]
    changes, noted, tallied, ticks = state.changes, state.noted, state.tallied, state.ticks
    come_times, position, size, come_jobs, join, joins = state.arrivals
    change_times, admitted, rejected, grid = changes.time, tallied.admitted, tallied.rejected, noted.times
    jobs, free, servers, idle, (times, ranks, winners) = state.present
    counts, time_in_state, service, strides = tallied.counts, tallied.time_in_state, tallied.service, state.strides
    paid, paid_at = tallied.paid, state.paid_at
    rows, wait_class, waits = state.buffers
    capacity, classes = admitted.shape
    row_limit, balking = rows.size - 2, joins.size > 0
    last = grid.size - 1  # the last time of the grid is the horizon, which is noted at the end
    stop = min(until, grid[clock.passed] if clock.passed < last else math.inf)
    come_next, i_next = earliest(come_times)
    first = times[winners[1]]  # of what is to come of the jobs in the system

    while True:
        if clock.used_rows > row_limit or clock.used_waits == waits.size:
            return FULL
        if clock.handing < clock.handing_end:
            _hand_over(state, clock)
            first = times[winners[1]]
            continue
        # a job that gets a server, one that is gone, a state that a tick found, what the tick brings
        starts, left, tick, what = -1, -1, -1, LEFT
        changed, to_come, rank = -1, math.inf, 0  # a job of which something else is to come, when, and before whom
        entering = due = refill = False
        i, work, patience, setup, pay = 0, 0.0, math.inf, 0.0, 0.0
        if clock.waiting > 0 and clock.busy < clock.on_duty:
            starts = clock.head
            elapse(clock, clock.now)
            _leave_line(jobs, clock, starts)
        else:
            next_of_jobs = _first_to_finish(clock, first) if clock.shares and first < math.inf else first
            changing = change_times[clock.change]
            now = min(next_of_jobs, changing, come_next)
            if now >= stop:
                if clock.passed < last and grid[clock.passed] <= min(now, until):
                    if clock.noted == noted.waits.size:
                        return FULL
                    note(noted, clock.noted, tallied, clock.used_waits)  # what happened before this time is counted
                    clock.noted += 1
                    clock.passed += 1
                    stop = min(until, grid[clock.passed] if clock.passed < last else math.inf)
                    continue
                if now > until or not (all_at_until and min(next_of_jobs, changing) <= now):
                    return REACHED
            clock.now = now
            if next_of_jobs <= now:
                left = winners[1]
            elif changing <= now:
                k = clock.change
                if changes.what[k] == INITIAL_JOB:
                    there = state.initial[changes.which[k]]
                    entering = True
                    i, work, patience, setup = there.job_class, there.work, there.patience, there.setup
                    pay = there.pay
                    counts[FOUND, i] += 1
                    _write_newcomer(rows, clock, i, INITIAL, pay)
                else:
                    _change(state, clock, changes.what[k], changes.which[k], changes.value[k])
                    first = times[winners[1]]
                clock.change += 1
                if clock.change == clock.changes:
                    clock.empty = come_times.size
                    refill = True
            else:
                i = i_next
                at = position[i]
                tick, what = clock.in_system, i if i < classes else NOTHING
                if i == classes:  # not a job: a candidate for an idle tick
                    if come_jobs[WORK, i, at] < ticks[tick].idle_share:
                        tick = -1
                elif balking and join[i, at] >= joins[tick, i]:  # it balks
                    clock.jobs += 1
                    what = NOTHING
                    if come_times.size == classes:  # else it is a tick at which nothing happens
                        tick = -1
                else:
                    if clock.gaps >= clock.arrival_limit:
                        return DUE
                    if clock.decision == OPEN and tick < capacity:
                        return ASKED
                    _at_the_door(counts, clock, i)
                    event = BLOCK
                    pay = come_jobs[PAY, i, at] if clock.pays_differ else 0.0
                    if tick == capacity:
                        counts[BLOCKED, i] += 1
                    else:
                        admits = table[clock.table_row, i] if clock.decision == TABLE else clock.decision == ADMITTED
                        clock.decision = min(clock.decision, OPEN)
                        if admits:
                            event = ADMIT
                            admitted[tick, i] += 1
                        else:
                            event = REJECT
                            rejected[tick, i] += 1
                    _write_newcomer(rows, clock, i, event, pay)
                    entering = event == ADMIT
                    if entering:
                        _pay(paid, clock, paid_at, i, pay, ADMIT)
                        work, patience, setup = (
                            come_jobs[WORK, i, at],
                            come_jobs[PATIENCE, i, at],
                            come_jobs[SETUP, i, at],
                        )
                        if clock.ticking:
                            reward = state.scaled_rewards[tick, i]
                            ticks[tick].ups += 1
                            ticks[tick].reward_sum += reward
                            ticks[tick].reward_square_sum += reward * reward
                    else:
                        clock.jobs += 1
                at += 1
                position[i] = at
                if at == size[i]:
                    clock.empty = i
                    refill = True
                else:
                    come_times[i] = come_jobs[TIME, i, at]
                    come_next, i_next = earliest(come_times)

        if left >= 0:  # a job departs, or gives up
            job = jobs[left]
            i = job.job_class
            if job.server >= 0:
                if clock.shares:
                    clock.given, clock.given_at = first, clock.now
                _write_job(rows, clock, job, 0.0, DEPART, -1 if clock.shares else job.server)
                counts[DEPARTED, i] += 1
                _pay(paid, clock, paid_at, i, job.pay, DEPART)
                if not clock.shares:
                    _leave_server(jobs, servers, idle, clock, left)
                clock.departures += 1
                due = clock.departures == clock.departure_limit
            else:
                wait = clock.now - job.arrival
                _write_job(rows, clock, job, wait, ABANDON, -1)
                counts[ABANDONED, i] += 1
                wait_class[clock.used_waits] = -1 - i
                waits[clock.used_waits] = wait
                clock.used_waits += 1
                elapse(clock, clock.now)
                _leave_line(jobs, clock, left)
            tick = clock.in_system
            changed = left
            time_in_state[tick] += clock.now - clock.last_move
            clock.last_move = clock.now
            clock.in_system -= 1
            clock.table_row -= strides[i]
            free[clock.in_system] = left
            if clock.ticking:
                ticks[tick].downs += 1
        elif entering:  # at a server or in the line
            place = free[clock.in_system]
            job = jobs[place]
            job.number, job.job_class, job.arrival = clock.jobs, i, clock.now
            job.work = job.left = work
            job.setup, job.start, job.pay = setup, math.nan, pay
            job.server = -1
            if clock.shares:
                _pass_sharing(clock)
            time_in_state[clock.in_system] += clock.now - clock.last_move
            clock.last_move = clock.now
            clock.in_system += 1
            clock.table_row += strides[i]
            clock.jobs += 1
            if clock.shares:  # with all others
                job.start, job.server = clock.now, 0
                counts[STARTED, i] += 1
                _pay(paid, clock, paid_at, i, pay, START)
                service[i] += work
                changed, to_come, rank = place, clock.given + work, job.number
                _write_job(rows, clock, job, 0.0, START, -1)
            elif clock.busy < clock.on_duty:
                starts = place
            else:
                elapse(clock, clock.now)
                _stand_between(jobs, clock, place, clock.tail if clock.waiting > 0 else -1, -1)
                changed, to_come, rank = place, clock.now + patience, WAITING + job.number

        if starts >= 0:  # a job gets the server that became idle last; for the first time, or once more
            job = jobs[starts]
            elapse(clock, clock.now)
            clock.busy += 1
            clock.idle -= 1
            server = idle[clock.idle]
            servers[server].job = starts
            job.server = server
            needs = job.setup if clock.now - servers[server].idle_since > clock.setup_after else 0.0
            service[job.job_class] += needs + job.left
            changed, to_come, rank = starts, clock.now + (needs + job.left), job.number
            if math.isnan(job.start):
                job.start = clock.now
                wait = clock.now - job.arrival
                counts[STARTED, job.job_class] += 1
                _pay(paid, clock, paid_at, job.job_class, job.pay, START)
                _write_job(rows, clock, job, wait, START, server)
                if wait > 0.0:
                    wait_class[clock.used_waits] = job.job_class
                    waits[clock.used_waits] = wait
                    clock.used_waits += 1
            else:
                _write_job(rows, clock, job, 0.0, RESUME, server)

        if changed >= 0:  # replays its matches, as in `patient_loop`
            times[changed], ranks[changed] = to_come, rank
            node, winner, tied = changed + times.size, changed, False
            while node > 1:
                other = winners[node ^ 1]
                tied |= (times[other] == to_come) & (to_come < math.inf)
                winner += (other - winner) * (times[other] < to_come)
                to_come = min(to_come, times[other])
                node >>= 1
                winners[node] = winner
            if tied:
                replay(times, ranks, winners, changed)
            first = to_come
        if clock.ticking and tick >= 0:
            ticks[tick].visits += 1
            due = due or ticks[tick].visits == ticks[tick].visit_limit
            if memory is not None:
                learn(memory, tick, what, clock.in_system - tick)
        if refill:  # an empty block has to be filled first: minus the reason says that a review is due as well
            return -DUE if due else REFILL
        if due:
            return DUE


@compiled
def close_episode(
    clocks: Records[Clock],
    present: Present,
    time_in_state: FloatArray,
    left: FloatArray,
    now: float,
) -> tuple[float, float, float, int]:
    """What is counted by episode is counted up to now; left: what is left for the jobs at servers, by class.

    The sums of the gaps between arrivals, all of them and truncated, the waiting time, and the environment's state.
    """
    clock = clocks[0]
    pass_time(clock, time_in_state, now)
    left[:] = 0.0
    jobs, times = present.jobs, present.next.time
    if clock.shares:
        there = np.nonzero(times < math.inf)[0]
        for k in np.argsort(jobs["number"][there]):  # the oldest first
            left[jobs[there[k]].job_class] += times[there[k]] - given(clock, now)
    else:
        for k in range(present.servers.size):
            place = present.servers[k].job
            if place >= 0:
                left[jobs[place].job_class] += times[place] - now
    return clock.gap_sum, clock.truncated_gap_sum, clock.waiting_time, clock.environment
