"""What the compiled engine remembers between two calls: named arrays, and records with named fields.

`patient_loop`, for jobs that wait for ever and servers that are always there, needs a ring of jobs and a tournament of
servers; `general_loop`, for everything else, a list and a tournament of jobs. What both need has the same names. There
are as few arrays as can be: each of them costs every call of a compiled function a part of a microsecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.simulation.tournament import Tournament

REACHED, REFILL, FULL, DUE, ASKED = 0, 1, 2, 3, 4  # reasons for coming back
TABLE, OPEN, REJECTED, ADMITTED = -2, -1, 0, 1  # who decides about the next arrival with room: see CLOCK's `decision`
NEVER = np.iinfo(np.int64).max

# what changes with every event, apart from arrays
CLOCK = np.dtype(
    [
        ("now", np.float64),
        ("last_move", np.float64),  # of the number of jobs
        ("last_arrival", np.float64),
        ("gap_sum", np.float64),  # of this episode
        ("truncated_gap_sum", np.float64),
        ("truncation", np.float64),
        ("in_system", np.int64),
        ("table_row", np.int64),  # of the admission table: see Policy.class_strides
        ("strided", np.bool_),  # whether that is another number than the jobs in the system
        ("busy", np.int64),  # servers
        ("head", np.int64),  # of the line: a place in the ring, or a job
        ("tail", np.int64),  # of the line, where it is no ring
        ("waiting", np.int64),
        ("jobs", np.int64),  # so far
        ("gaps", np.int64),  # of this episode
        ("departures", np.int64),
        ("departure_limit", np.int64),  # in all, at which a review is due
        ("arrival_limit", np.int64),  # gaps of this episode after which one is due before the next arrival
        ("episode", np.int64),
        ("empty", np.int64),  # the class whose block of jobs is used up; after all classes: the block of changes
        ("used_rows", np.int64),
        ("used_waits", np.int64),
        ("noted", np.int64),  # rows of the ledger's notes
        ("passed", np.int64),  # times of the grid
        ("logging", np.bool_),
        ("ticking", np.bool_),
        # about the next arrival that has room: by the TABLE, OPEN (the loop comes back before it, ASKED), or made; once
        # it is carried out, the next one is OPEN
        ("decision", np.int64),
        # of the general loop
        ("last_change", np.float64),  # of busy servers, waiting jobs or servers on duty
        ("waiting_time", np.float64),  # of this episode: the integral of the number waiting
        ("duty_time", np.float64),  # so far: the integral of the servers on duty, and those that still finish a job
        ("posts", np.int64),  # servers with a number below are on duty
        ("on_duty", np.int64),  # of them, those that are up
        ("idle", np.int64),  # of those, the idle ones
        ("handing", np.int64),  # the next server that hands over its job; `handing_end`: none
        ("handing_end", np.int64),
        ("environment", np.int64),
        ("environment_stride", np.int64),
        ("changes", np.int64),  # in the block of changes
        ("change", np.int64),  # the next of them
        ("steady", np.bool_),  # c servers at all times
        ("hands_over", np.bool_),
        ("restarts", np.bool_),
        ("setup_after", np.float64),  # idle time after which a set-up is needed; infinite: never
        ("pays_differ", np.bool_),  # whether jobs of a class may pay different amounts
        ("shares", np.bool_),  # whether all jobs share the servers: then the next to go is who has to get least in all
        ("given", np.float64),  # to each job since the system was empty, up to the time `given_at`
        ("given_at", np.float64),
    ]
)

# a job, waiting in the ring or at a server; `start` of a waiting one says nothing
JOB = np.dtype(
    [
        ("number", np.int64),
        ("job_class", np.int64),
        ("arrival", np.float64),
        ("work", np.float64),
        ("start", np.float64),
    ]
)

# a job of the general loop, which has one place as long as it is in the system
PRESENT = np.dtype(
    [
        ("number", np.int64),
        ("job_class", np.int64),
        ("arrival", np.float64),
        ("work", np.float64),
        ("left", np.float64),  # of the work, when it last joined a server
        ("setup", np.float64),
        ("pay", np.float64),
        ("start", np.float64),  # when it first joined a server; nan: not yet
        ("server", np.int64),  # -1: it waits
        ("before", np.int64),  # its neighbours in the line; -1: none
        ("behind", np.int64),
    ]
)

SERVER = np.dtype([("job", np.int64), ("idle_since", np.float64), ("up", np.bool_)])  # job -1: idle

# a job that is there at time 0
INITIAL_JOBS = np.dtype(
    [("job_class", np.int64), *((name, np.float64) for name in ("work", "patience", "setup", "pay"))]
)

# ticks of the uniformized chain in this episode that found it in a state; see `TickTally`
TICKS = np.dtype(
    [
        ("visits", np.int64),
        ("ups", np.int64),
        ("downs", np.int64),
        ("reward_sum", np.float64),
        ("reward_square_sum", np.float64),
        ("visit_limit", np.int64),
        ("idle_share", np.float64),  # mu(s) / mu(S): of the candidates for idle ticks, those that are none
    ]
)


TIME, WORK, PATIENCE, SETUP, PAY = range(5)  # of the jobs to come


class Arrivals(NamedTuple):
    """The jobs to come: a row a class, and with ticks one of candidates for idle ones."""

    next: FloatArray  # time of the next job
    position: IntArray  # of that job in its block
    size: IntArray  # of the block
    jobs: FloatArray  # TIME, WORK and, in the general loop, PATIENCE, SETUP and PAY; by class; of each job
    join: FloatArray  # where jobs balk, the number that says when; by class; of each job
    joins: FloatArray  # b_i(s); where nobody balks, empty


class Services(NamedTuple):
    """When the services end, and who has none."""

    ends: Tournament
    idle: IntArray  # servers, from place `busy` on; the last one to become idle is there


class Present(NamedTuple):
    """The jobs of the general loop, the servers, and what is to come of each job: it departs or gives up."""

    jobs: np.ndarray[Any, Any]
    places: IntArray  # those that are free come after the first `in_system`
    servers: np.ndarray[Any, Any]
    idle: IntArray  # a stack of those on duty and up: the last one to become idle is on top
    next: Tournament  # of the places: when


class Changes(NamedTuple):
    """What else is to come, by the clock: see `changes.Changes`."""

    time: FloatArray
    what: IntArray
    which: IntArray
    value: IntArray


class Tallied(NamedTuple):
    """Totals of the run (the ledger's own arrays), and what is counted by episode."""

    counts: IntArray  # by class
    admitted: IntArray
    rejected: IntArray
    time_in_state: FloatArray
    service: FloatArray  # by class: server time of this episode, and what is left for jobs that are at servers
    paid: (
        FloatArray  # by class, where jobs of a class may differ in it: sum, sum of squares and largest of what was paid
    )


class Noted(NamedTuple):
    """The ledger's notes: the grid, and the counts at each of its times."""

    times: FloatArray
    admitted: IntArray
    rejected: IntArray
    counts: IntArray
    waits: IntArray
    paid: FloatArray


class Buffers(NamedTuple):
    """What is handed on now and then: rows of the event log, and times in the queue that cost something."""

    rows: np.ndarray[Any, Any]
    wait_class: IntArray  # -1 - i: a job of class i that gave up
    wait: FloatArray


class PatientState(NamedTuple):
    """Everything that `patient_loop` remembers between two calls."""

    clock: np.ndarray[Any, Any]  # one record
    arrivals: Arrivals
    services: Services
    servers: np.ndarray[Any, Any]  # the job at each
    line: np.ndarray[Any, Any]  # the jobs that wait: a ring
    tallied: Tallied
    ticks: np.ndarray[Any, Any]  # by state
    scaled_rewards: FloatArray  # r_i(s) / R_max, for ticks
    strides: IntArray  # of the admission table, by class
    noted: Noted
    buffers: Buffers


class GeneralState(NamedTuple):
    """Everything that `general_loop` remembers between two calls."""

    clock: np.ndarray[Any, Any]
    arrivals: Arrivals
    present: Present
    initial: np.ndarray[Any, Any]  # the jobs there at time 0
    changes: Changes
    tallied: Tallied
    ticks: np.ndarray[Any, Any]
    scaled_rewards: FloatArray
    strides: IntArray
    paid_at: IntArray  # by class: the event at which its jobs pay
    noted: Noted
    buffers: Buffers


@compiled
def earliest(times: FloatArray) -> tuple[float, int]:
    """The smallest of the times, and the first place where it stands."""
    time, i = times[0], 0
    for j in range(1, times.size):
        i += (j - i) * (times[j] < time)
        time = min(time, times[j])
    return time, i


@compiled
def write(
    row: Any,
    time: float,
    job: int,
    wait: float,
    in_system: int,
    episode: int,
    i: int,
    event: int,
    server: int,
    pay: float = 0.0,
) -> None:
    """A row of the event log."""
    row.time = time
    row.job = job
    row.wait = wait
    row.in_system = in_system
    row.episode = episode
    row.job_class = i
    row.server = server
    row.event = event
    row.pay = pay


@compiled
def note(noted: Noted, row: int, tallied: Tallied, waits: int) -> None:
    """Keep the counts as they are."""
    noted.admitted[row] = tallied.admitted
    noted.rejected[row] = tallied.rejected
    noted.counts[row] = tallied.counts
    noted.waits[row] = waits
    noted.paid[row] = tallied.paid[0]


@compiled
def open_episode(
    clocks: np.ndarray[Any, Any],
    time_in_state: FloatArray,
    service: FloatArray,
    left: FloatArray,
    now: float,
    truncation: float,
) -> None:
    """What is counted by episode starts anew; left: what is left for the jobs at servers, by class.

    Until the plan's policy is in force nobody is asked again: no departure or arrival calls for a review.
    """
    clock = clocks[0]
    clock.episode += 1
    clock.departure_limit = clock.arrival_limit = NEVER
    clock.last_move = clock.last_arrival = now
    clock.gap_sum = clock.truncated_gap_sum = clock.waiting_time = 0.0
    clock.truncation = truncation
    clock.gaps = 0
    time_in_state[:] = 0.0
    service[:] = left


@compiled
def pass_time(clock: Any, time_in_state: FloatArray, now: float) -> None:
    """What is counted by episode is counted up to now."""
    time_in_state[clock.in_system] += now - clock.last_move
    clock.last_move = now
    elapse(clock, now)


@compiled
def elapse(clock: Any, now: float) -> None:
    """Add up waiting and duty until now, for numbers that are about to change; not where both follow from the state."""
    if clock.steady:
        return
    passed = now - clock.last_change
    clock.waiting_time += clock.waiting * passed
    clock.duty_time += max(clock.on_duty, clock.busy) * passed
    clock.last_change = now
