"""The compiled loop for everything else: impatience, shifts, breakdowns, set-up, environments, jobs there at time 0.

The next event is the earliest of three: what is to come of a job in the system (it departs, or gives up), a change by
the clock (an environment, a shift, a server), and an arrival. The line is a list in the order of job numbers, so that a
job whose service was interrupted stands before all who have not started. One step writes two rows of the log at most.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled
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
)
from queueing_ucrl.simulation.kernel_state import (
    DUE,
    FULL,
    PATIENCE,
    REACHED,
    REFILL,
    SETUP,
    TIME,
    WORK,
    GeneralState,
    Present,
    earliest,
    elapse,
    note,
    pass_time,
    write,
)
from queueing_ucrl.simulation.ledger import ABANDONED, ARRIVED, BLOCKED, DEPARTED, FOUND, STARTED

# ---- the heap of what is to come of each job


@compiled
def _comes_first(jobs: np.ndarray[Any, Any], time: float, place: int, other_time: float, other: int) -> bool:
    """By time; at equal times departures before those who give up, the older job first."""
    if time != other_time:
        return time < other_time
    waits, other_waits = jobs[place].server < 0, jobs[other].server < 0
    if waits != other_waits:
        return bool(other_waits)
    return bool(jobs[place].number < jobs[other].number)


@compiled
def _sift(present: Present, size: int, entry: int, time: float, place: int) -> None:
    """Put a job that belongs somewhere near `entry` into the heap of the given size."""
    jobs, times, places = present.jobs, present.time, present.job
    while entry > 0:
        parent = (entry - 1) >> 1
        if not _comes_first(jobs, time, place, times[parent], places[parent]):
            break
        times[entry], places[entry] = times[parent], places[parent]
        jobs[places[entry]].entry = entry
        entry = parent
    while True:
        child = 2 * entry + 1
        if child >= size:
            break
        if child + 1 < size and _comes_first(jobs, times[child + 1], places[child + 1], times[child], places[child]):
            child += 1
        if _comes_first(jobs, time, place, times[child], places[child]):
            break
        times[entry], places[entry] = times[child], places[child]
        jobs[places[entry]].entry = entry
        entry = child
    times[entry], places[entry] = time, place
    jobs[place].entry = entry


@compiled
def _schedule(present: Present, clock: Any, place: int, time: float) -> None:
    """What comes next for a job comes at a time, in place of what was to come for it before."""
    entry = present.jobs[place].entry
    if entry < 0:
        entry = clock.scheduled
        clock.scheduled += 1
    _sift(present, clock.scheduled, entry, time, place)


@compiled
def _unschedule(present: Present, clock: Any, place: int) -> None:
    """Nothing is to come for a job by itself."""
    entry = present.jobs[place].entry
    if entry >= 0:
        present.jobs[place].entry = -1
        clock.scheduled -= 1
        last = clock.scheduled
        if entry < last:
            _sift(present, last, entry, present.time[last], present.job[last])


# ---- the line


@compiled
def _line_up(present: Present, clock: Any, place: int) -> None:
    """A job takes its place in the line: before the first younger one."""
    jobs = present.jobs
    behind = -1
    if clock.waiting > 0 and jobs[place].number < jobs[clock.tail].number:
        behind = clock.head
        while jobs[behind].number < jobs[place].number:
            behind = jobs[behind].behind
    before = (clock.tail if behind < 0 else jobs[behind].before) if clock.waiting > 0 else -1
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
def _leave_line(present: Present, clock: Any, place: int) -> None:
    jobs = present.jobs
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


@compiled
def _write_row(state: GeneralState, clock: Any, place: int, wait: float, event: int, server: int) -> None:
    """A row of the log; place -1: of no job."""
    if clock.logging:
        number, i = -1, -1
        if place >= 0:
            number, i = state.present.jobs[place].number, state.present.jobs[place].job_class
        row = state.buffers.rows[clock.used_rows]
        write(row, clock.now, number, wait, clock.in_system, clock.episode, i, event, server)
        clock.used_rows += 1


@compiled
def _write_newcomer(state: GeneralState, clock: Any, i: int, event: int) -> None:
    """A row of the log for a job that has no place yet."""
    if clock.logging:
        row = state.buffers.rows[clock.used_rows]
        write(row, clock.now, clock.jobs, 0.0, clock.in_system, clock.episode, i, event, -1)
        clock.used_rows += 1


@compiled
def _move(state: GeneralState, clock: Any, i: int, change: int) -> None:
    """One more job of class i is in the system, or one less."""
    state.tallied.time_in_state[clock.in_system] += clock.now - clock.last_move
    clock.last_move = clock.now
    clock.in_system += change
    clock.table_row += change * state.strides[i]


@compiled
def _tick(state: GeneralState, clock: Any, s: int) -> bool:
    """A tick of the uniformized chain found it in s; whether a review is due."""
    if not clock.ticking:
        return False
    state.ticks[s].visits += 1
    return bool(state.ticks[s].visits == state.ticks[s].visit_limit)


@compiled
def _enter(state: GeneralState, clock: Any, i: int, work: float, patience: float, setup: float) -> None:
    """A job of class i is in the system from now on, at a server or in the line."""
    present = state.present
    place = present.places[clock.in_system]
    job = present.jobs[place]
    job.number, job.job_class, job.arrival = clock.jobs, i, clock.now
    job.work = job.left = work
    job.setup, job.start = setup, math.nan
    job.server = job.entry = -1
    if clock.shares:
        _pass_sharing(clock)
    _move(state, clock, i, +1)
    clock.jobs += 1
    if clock.shares:
        _join_others(state, clock, place)
        return
    if clock.busy < clock.on_duty:
        _join_server(state, clock, place)
        return
    elapse(clock, clock.now)
    _line_up(present, clock, place)
    if patience < math.inf:
        _schedule(present, clock, place, clock.now + patience)


@compiled
def _charge(state: GeneralState, clock: Any, code: int, wait: float) -> None:
    state.buffers.wait_class[clock.used_waits] = code
    state.buffers.wait[clock.used_waits] = wait
    clock.used_waits += 1


@compiled
def _join_server(state: GeneralState, clock: Any, place: int) -> None:
    """A job joins the server that became idle last; for the first time, or once more."""
    present, now = state.present, clock.now
    job = present.jobs[place]
    i = job.job_class
    elapse(clock, now)
    clock.busy += 1
    clock.idle -= 1
    server = present.idle[clock.idle]
    present.servers[server].job = place
    job.server = server
    setup = job.setup if now - present.servers[server].idle_since > clock.setup_after else 0.0
    state.tallied.service[i] += setup + job.left
    _schedule(present, clock, place, now + (setup + job.left))
    if math.isnan(job.start):
        job.start = now
        wait = now - job.arrival
        state.tallied.counts[STARTED, i] += 1
        _write_row(state, clock, place, wait, START, server)
        if wait > 0.0:
            _charge(state, clock, i, wait)
    else:
        _write_row(state, clock, place, 0.0, RESUME, server)


@compiled
def _leave_server(state: GeneralState, clock: Any, place: int) -> None:
    """A job is at its server no longer; who of them is idle now is on top of the others, if it is on duty and up."""
    present, now = state.present, clock.now
    job = present.jobs[place]
    server = present.servers[job.server]
    elapse(clock, now)
    clock.busy -= 1
    server.job = -1
    server.idle_since = now
    if server.up and job.server < clock.posts:
        present.idle[clock.idle] = job.server
        clock.idle += 1
    job.server = -1


@compiled
def _exit(state: GeneralState, clock: Any, place: int) -> bool:
    """A job is gone; whether a review is due."""
    s = clock.in_system
    _unschedule(state.present, clock, place)
    _move(state, clock, state.present.jobs[place].job_class, -1)
    state.present.places[clock.in_system] = place
    if clock.ticking:
        state.ticks[s].downs += 1
    return _tick(state, clock, s)


@compiled
def _depart(state: GeneralState, clock: Any, place: int) -> bool:
    job = state.present.jobs[place]
    _write_row(state, clock, place, 0.0, DEPART, job.server)
    state.tallied.counts[DEPARTED, job.job_class] += 1
    _leave_server(state, clock, place)
    clock.departures += 1
    due = _exit(state, clock, place)
    return bool(due or clock.departures == clock.departure_limit)


@compiled
def _abandon(state: GeneralState, clock: Any, place: int) -> bool:
    job = state.present.jobs[place]
    wait = clock.now - job.arrival
    _write_row(state, clock, place, wait, ABANDON, -1)
    state.tallied.counts[ABANDONED, job.job_class] += 1
    _charge(state, clock, -1 - job.job_class, wait)
    elapse(clock, clock.now)
    _leave_line(state.present, clock, place)
    return _exit(state, clock, place)


# ---- processor sharing: n jobs get min(n, c) / n of a server each


@compiled
def given(clock: Any, now: float) -> float:
    """What each job has got since the system was empty."""
    n = clock.in_system
    if n == 0:
        return 0.0
    return float(clock.given + (now - clock.given_at) * (min(n, clock.on_duty) / n))


@compiled
def _pass_sharing(clock: Any) -> None:
    """Reckon up to now, for numbers that are about to change."""
    clock.given = given(clock, clock.now)
    clock.given_at = clock.now


@compiled
def _next_of_jobs(present: Present, clock: Any) -> float:
    """When something comes of a job in the system: of those that share the servers, when the first has all its work."""
    if clock.scheduled == 0:
        return math.inf
    if not clock.shares:
        return float(present.time[0])
    n = clock.in_system
    if clock.on_duty == 0:
        return math.inf
    return float(clock.given_at + max(0.0, present.time[0] - clock.given) * (n / min(n, clock.on_duty)))


@compiled
def _join_others(state: GeneralState, clock: Any, place: int) -> None:
    """A job is served from now on, with all others."""
    job = state.present.jobs[place]
    job.start, job.server = clock.now, 0
    state.tallied.counts[STARTED, job.job_class] += 1
    state.tallied.service[job.job_class] += job.work
    _schedule(state.present, clock, place, clock.given + job.work)
    _write_row(state, clock, place, 0.0, START, -1)


@compiled
def _leave_others(state: GeneralState, clock: Any, place: int) -> bool:
    """A job has got all its work and departs; whether a review is due."""
    clock.given, clock.given_at = state.present.time[0], clock.now
    _write_row(state, clock, place, 0.0, DEPART, -1)
    state.tallied.counts[DEPARTED, state.present.jobs[place].job_class] += 1
    clock.departures += 1
    due = _exit(state, clock, place)
    return bool(due or clock.departures == clock.departure_limit)


# ---- servers


@compiled
def _interrupt(state: GeneralState, clock: Any, place: int, restarts: bool) -> None:
    """The job at a server goes back into the line, before all who have not started."""
    present = state.present
    job = present.jobs[place]
    left = present.time[job.entry] - clock.now
    state.tallied.service[job.job_class] -= left
    job.left = job.work if restarts else min(job.left, left)
    _leave_server(state, clock, place)
    _unschedule(present, clock, place)
    _line_up(present, clock, place)


@compiled
def _drop_idle(present: Present, clock: Any, first: int, end: int) -> None:
    """Servers with these numbers are not among the idle ones any more; the others keep their order."""
    kept = 0
    for k in range(clock.idle):
        server = present.idle[k]
        if server < first or server >= end:
            present.idle[kept] = server
            kept += 1
    clock.idle = kept


@compiled
def _offer(present: Present, clock: Any, k: int) -> None:
    """Server k is on duty and up from now on; on top of the idle ones if it has no job."""
    clock.on_duty += 1
    if present.servers[k].job < 0:
        present.servers[k].idle_since = clock.now
        present.idle[clock.idle] = k
        clock.idle += 1


@compiled
def _shift(state: GeneralState, clock: Any, posts: int) -> None:
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
    _write_row(state, clock, -1, 0.0, SHIFT, posts)


@compiled
def _hand_over(state: GeneralState, clock: Any) -> None:
    """The next server that has left hands over its job, if it has one."""
    k = clock.handing
    clock.handing += 1
    place = state.present.servers[k].job
    if place >= 0:
        _write_row(state, clock, place, 0.0, HAND_OVER, k)
        _interrupt(state, clock, place, False)


@compiled
def _break_or_repair(state: GeneralState, clock: Any, k: int, up: bool) -> None:
    """Server k is down, or up again."""
    present = state.present
    server = present.servers[k]
    elapse(clock, clock.now)
    server.up = up
    if up:
        if k < clock.posts:
            _offer(present, clock, k)
        _write_row(state, clock, -1, 0.0, REPAIR, k)
        return
    if k < clock.posts:
        clock.on_duty -= 1
    _write_row(state, clock, server.job, 0.0, BREAKDOWN, k)
    if server.job >= 0:
        _interrupt(state, clock, server.job, clock.restarts)
    elif k < clock.posts:
        _drop_idle(present, clock, k, k + 1)


@compiled
def _change(state: GeneralState, clock: Any, what: int, which: int, value: int) -> None:
    """Something that comes by the clock."""
    if what == ENVIRONMENT_CHANGE:
        clock.table_row += clock.environment_stride * (value - clock.environment)
        clock.environment = value
        _write_row(state, clock, -1, 0.0, ENVIRONMENT, value)
    elif what == SHIFT_CHANGE:
        _shift(state, clock, value)
    elif what == INITIAL_JOB:
        job = state.initial[which]
        state.tallied.counts[FOUND, job.job_class] += 1
        _write_newcomer(state, clock, job.job_class, INITIAL)
        _enter(state, clock, job.job_class, job.work, job.patience, job.setup)
    else:
        _break_or_repair(state, clock, which, value > 0)


# ---- the loop


@compiled
def _arrive(state: GeneralState, clock: Any, table: BoolArray, i: int, at: int) -> bool:
    """A job of class i is at the door: it is blocked, admitted or rejected; whether a review is due."""
    jobs, tallied, now, s = state.arrivals.jobs, state.tallied, clock.now, clock.in_system
    tallied.counts[ARRIVED, i] += 1
    gap = now - clock.last_arrival
    clock.last_arrival = now
    clock.gaps += 1
    clock.gap_sum += gap
    if gap * gap <= clock.truncation * clock.gaps:
        clock.truncated_gap_sum += gap
    event = BLOCK
    if s == tallied.admitted.shape[0]:
        tallied.counts[BLOCKED, i] += 1
    elif table[clock.table_row, i]:
        event = ADMIT
        tallied.admitted[s, i] += 1
    else:
        event = REJECT
        tallied.rejected[s, i] += 1
    _write_newcomer(state, clock, i, event)
    if event == ADMIT:
        if clock.ticking:
            reward = state.scaled_rewards[s, i]
            state.ticks[s].ups += 1
            state.ticks[s].reward_sum += reward
            state.ticks[s].reward_square_sum += reward * reward
        _enter(state, clock, i, jobs[WORK, i, at], jobs[PATIENCE, i, at], jobs[SETUP, i, at])
    else:
        clock.jobs += 1
    return _tick(state, clock, s)


@compiled
def advance(state: GeneralState, table: BoolArray, until: float, all_at_until: bool) -> int:
    """Run up to `until`: arrivals before it, all else before it or at it. Why it came back. O(log S + m) an event."""
    clock = state.clock[0]
    come, changes, noted, present = state.arrivals, state.changes, state.noted, state.present
    classes = table.shape[1]
    row_limit = state.buffers.rows.size - 2
    last = noted.times.size - 1  # the last time of the grid is the horizon, which is noted at the end
    stop = min(until, noted.times[clock.passed] if clock.passed < last else math.inf)
    come_next, i_next = earliest(come.next)

    while True:
        if clock.used_rows > row_limit or clock.used_waits == state.buffers.wait.size:
            return FULL
        if clock.handing < clock.handing_end:
            _hand_over(state, clock)
            continue
        if clock.waiting > 0 and clock.busy < clock.on_duty:
            oldest = clock.head
            elapse(clock, clock.now)
            _leave_line(present, clock, oldest)
            _join_server(state, clock, oldest)
            continue
        scheduled = _next_of_jobs(present, clock)
        changing = changes.time[clock.change]
        now = min(scheduled, changing, come_next)
        if now >= stop:
            if clock.passed < last and noted.times[clock.passed] <= min(now, until):
                if clock.noted == noted.waits.size:
                    return FULL
                note(noted, clock.noted, state.tallied, clock.used_waits)  # what happened before this time is counted
                clock.noted += 1
                clock.passed += 1
                stop = min(until, noted.times[clock.passed] if clock.passed < last else math.inf)
                continue
            if now > until or not (all_at_until and min(scheduled, changing) <= now):
                return REACHED
        clock.now = now
        due = refill = False
        if scheduled <= now:
            place = present.job[0]
            if clock.shares:
                due = _leave_others(state, clock, place)
            elif present.jobs[place].server >= 0:
                due = _depart(state, clock, place)
            else:
                due = _abandon(state, clock, place)
        elif changing <= now:
            k = clock.change
            _change(state, clock, changes.what[k], changes.which[k], changes.value[k])
            clock.change += 1
            if clock.change == clock.changes:
                clock.empty = come.next.size
                refill = True
        else:
            i = i_next
            at = come.position[i]
            if i < classes:
                due = _arrive(state, clock, table, i, at)
            elif (
                come.jobs[WORK, i, at] >= state.ticks[clock.in_system].idle_share
            ):  # else a tick at which nothing happens
                due = _tick(state, clock, clock.in_system)
            at += 1
            come.position[i] = at
            if at == come.size[i]:
                clock.empty = i
                refill = True
            else:
                come.next[i] = come.jobs[TIME, i, at]
                come_next, i_next = earliest(come.next)
        if refill:  # an empty block has to be filled first: minus the reason says that a review is due as well
            return -DUE if due else REFILL
        if due:
            return DUE


@compiled
def close_episode(
    clocks: np.ndarray[Any, Any],
    present: Present,
    time_in_state: FloatArray,
    left: FloatArray,
    now: float,
) -> None:
    """What is counted by episode is counted up to now; left: what is left for the jobs at servers, by class."""
    pass_time(clocks[0], time_in_state, now)
    left[:] = 0.0
    clock = clocks[0]
    if clock.shares:
        numbers = np.empty(clock.scheduled, dtype=np.int64)
        for k in range(clock.scheduled):
            numbers[k] = present.jobs[present.job[k]].number
        for k in np.argsort(numbers):  # the oldest first
            left[present.jobs[present.job[k]].job_class] += present.time[k] - given(clock, now)
        return
    for k in range(present.servers.size):
        place = present.servers[k].job
        if place >= 0:
            job = present.jobs[place]
            left[job.job_class] += present.time[job.entry] - now
