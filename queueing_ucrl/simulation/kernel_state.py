"""What the compiled engine remembers between two calls: named arrays, and records with named fields.

`patient_loop`, for jobs that wait for ever and servers that are always there, needs a ring of jobs and a tournament of
servers; `general_loop`, for everything else, a list and a tournament of jobs. What both need has the same names. There
are as few arrays as can be: each of them costs every call of a compiled function a part of a microsecond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray, Records
from queueing_ucrl.compiled import compiled
from queueing_ucrl.simulation.event_log import Row
from queueing_ucrl.simulation.tournament import Tournament

REACHED, REFILL, FULL, DUE, ASKED = 0, 1, 2, 3, 4  # reasons for coming back
TABLE, OPEN, REJECTED, ADMITTED = -2, -1, 0, 1  # who decides about the next arrival with room: see `Clock.decision`
NEVER = np.iinfo(np.int64).max


class Clock:
    """What changes with every event, apart from arrays."""

    now: float
    last_move: float  # of the number of jobs
    last_arrival: float
    gap_sum: float  # of this episode
    truncated_gap_sum: float
    truncation: float
    in_system: int
    table_row: int  # of the admission table: see Policy.class_strides
    strided: bool  # whether that is another number than the jobs in the system
    busy: int  # servers
    head: int  # of the line: a place in the ring, or a job
    tail: int  # of the line, where it is no ring
    waiting: int
    jobs: int  # so far
    gaps: int  # of this episode
    departures: int
    departure_limit: int  # in all, at which a review is due
    arrival_limit: int  # gaps of this episode after which one is due before the next arrival
    episode: int
    empty: int  # the class whose block of jobs is used up; after all classes: the block of changes
    used_rows: int
    used_waits: int
    noted: int  # rows of the ledger's notes
    passed: int  # times of the grid
    logging: bool
    ticking: bool
    # about the next arrival that has room: by the TABLE, OPEN (the loop comes back before it, ASKED), or made; once
    # it is carried out, the next one is OPEN
    decision: int
    # of the general loop
    last_change: float  # of busy servers, waiting jobs or servers on duty
    waiting_time: float  # of this episode: the integral of the number waiting
    duty_time: float  # so far: the integral of the servers on duty, and those that still finish a job
    posts: int  # servers with a number below are on duty
    on_duty: int  # of them, those that are up
    idle: int  # of those, the idle ones
    handing: int  # the next server that hands over its job; `handing_end`: none
    handing_end: int
    environment: int
    environment_stride: int
    changes: int  # in the block of changes
    change: int  # the next of them
    steady: bool  # c servers at all times
    hands_over: bool
    restarts: bool
    setup_after: float  # idle time after which a set-up is needed; infinite: never
    pays_differ: bool  # whether jobs of a class may pay different amounts
    shares: bool  # whether all jobs share the servers: then the next to go is who has to get least in all
    given: float  # to each job since the system was empty, up to the time `given_at`
    given_at: float


class PatientJob:
    """A job, waiting in the ring or at a server; `start` of a waiting one says nothing."""

    number: int
    job_class: int
    arrival: float
    work: float
    start: float


class PresentJob:
    """A job of the general loop, which has one place as long as it is in the system."""

    number: int
    job_class: int
    arrival: float
    work: float
    left: float  # of the work, when it last joined a server
    setup: float
    pay: float
    start: float  # when it first joined a server; nan: not yet
    server: int  # -1: it waits
    before: int  # its neighbours in the line; -1: none
    behind: int


class Server:
    """A server of the general loop."""

    job: int  # -1: idle
    idle_since: float
    up: bool


class InitialJob:
    """A job that is there at time 0."""

    job_class: int
    work: float
    patience: float
    setup: float
    pay: float


class Ticks:
    """Ticks of the uniformized chain in this episode that found it in a state; see `TickTally`."""

    visits: int
    ups: int
    downs: int
    reward_sum: float
    reward_square_sum: float
    visit_limit: int
    idle_share: float  # mu(s) / mu(S): of the candidates for idle ticks, those that are none


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

    jobs: Records[PresentJob]
    places: IntArray  # those that are free come after the first `in_system`
    servers: Records[Server]
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

    rows: Records[Row]
    wait_class: IntArray  # -1 - i: a job of class i that gave up
    wait: FloatArray


class PatientState(NamedTuple):
    """Everything that `patient_loop` remembers between two calls."""

    clock: Records[Clock]  # one
    arrivals: Arrivals
    services: Services
    servers: Records[PatientJob]  # the job at each
    line: Records[PatientJob]  # the jobs that wait: a ring
    tallied: Tallied
    ticks: Records[Ticks]  # by state
    scaled_rewards: FloatArray  # r_i(s) / R_max, for ticks
    strides: IntArray  # of the admission table, by class
    noted: Noted
    buffers: Buffers


class GeneralState(NamedTuple):
    """Everything that `general_loop` remembers between two calls."""

    clock: Records[Clock]
    arrivals: Arrivals
    present: Present
    initial: Records[InitialJob]  # the jobs there at time 0
    changes: Changes
    tallied: Tallied
    ticks: Records[Ticks]
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
    row: Row,
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
    clocks: Records[Clock],
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
def pass_time(clock: Clock, time_in_state: FloatArray, now: float) -> None:
    """What is counted by episode is counted up to now."""
    time_in_state[clock.in_system] += now - clock.last_move
    clock.last_move = now
    elapse(clock, now)


@compiled
def elapse(clock: Clock, now: float) -> None:
    """Add up waiting and duty until now, for numbers that are about to change; not where both follow from the state."""
    if clock.steady:
        return
    passed = now - clock.last_change
    clock.waiting_time += clock.waiting * passed
    clock.duty_time += max(clock.on_duty, clock.busy) * passed
    clock.last_change = now
