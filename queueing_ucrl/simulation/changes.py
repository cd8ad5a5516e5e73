"""What happens by the clock, whatever the jobs and the controller do: a sample path like that of the jobs.

At equal times: jobs that are there at time 0, the environment, shifts, then servers by number.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.model.laws import Law, Stream
from queueing_ucrl.model.servers import Breakdowns, Shifts
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.environment_path import environment_path
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import checked_stream, initial_jobs

INITIAL_JOB, ENVIRONMENT_CHANGE, SHIFT_CHANGE, SERVER_CHANGE = range(4)
CHANGES_AT_A_TIME = 256  # the path does not depend on it

Change = tuple[float, int, int, int]  # time, what, which (initial job, server), value (state, servers on duty, up)
NEVER: Change = (math.inf, SERVER_CHANGE, -1, 0)


class ChangeBlock(NamedTuple):
    """Room for a stretch of changes."""

    time: FloatArray
    what: IntArray
    which: IntArray
    value: IntArray


def change_block(size: int = CHANGES_AT_A_TIME) -> ChangeBlock:
    """An empty one."""
    return ChangeBlock(np.empty(size), *np.zeros((3, size), dtype=np.int64))


class _Initial:
    def __init__(self, count: int) -> None:
        self.count, self.given = count, 0

    def next(self) -> Change:
        self.given += 1
        return (0.0, INITIAL_JOB, self.given - 1, 0) if self.given <= self.count else NEVER


class _Environment:
    """Its jumps; where the number of servers changes with one, a shift follows at the same time."""

    def __init__(self, environment: Environment, randomness: Randomness) -> None:
        self.path, self.servers = environment_path(environment, randomness), environment.servers
        self.state = environment.start
        self.times: list[float] = []  # of the jumps that were drawn, the last first
        self.states: list[int] = []
        self.shift: Change | None = None

    def next(self) -> Change:
        if self.shift is not None:
            change, self.shift = self.shift, None
            return change
        if not self.times:
            times, states = self.path.jumps()
            self.times, self.states = times[::-1].tolist(), states[::-1].tolist()
        time, before, self.state = self.times.pop(), self.state, self.states.pop()
        if self.servers is not None and self.servers[before] != self.servers[self.state]:
            self.shift = (time, SHIFT_CHANGE, -1, self.servers[self.state])
        return (time, ENVIRONMENT_CHANGE, -1, self.state) if time < math.inf else NEVER


class _Shifts:
    def __init__(self, shifts: Shifts) -> None:
        self.shifts, self.turn, self.count = shifts, 1, shifts.counts[0]  # turn 0 is at time 0

    def next(self) -> Change:
        counts, period = self.shifts.counts, self.shifts.period
        while True:
            round_number, k = divmod(self.turn, len(counts))
            if round_number and (period == math.inf or len(set(counts)) == 1):
                return NEVER
            self.turn += 1
            start = round_number * period if round_number else 0.0
            if counts[k] != self.count:
                self.count = counts[k]
                return (start + (self.shifts.times[k - 1] if k else 0.0), SHIFT_CHANGE, -1, counts[k])


class _Numbers:
    """The numbers of a stream one by one."""

    def __init__(self, law: Law, rng: np.random.Generator, whose: str) -> None:
        self.stream: Stream = checked_stream(law, rng, whose)
        self.numbers: list[float] = []  # the last first

    def next(self) -> float:
        if not self.numbers:
            block = np.empty(CHANGES_AT_A_TIME)
            self.stream.fill(block)
            self.numbers = block[::-1].tolist()
        return self.numbers.pop()


class _Servers:
    """Each server is up and down in turn. One stream of up-times and one of down-times are enough for all of them:
    who takes the next number depends on these numbers alone.
    """

    def __init__(self, breakdowns: Breakdowns, servers: int, randomness: Randomness) -> None:
        self.up = _Numbers(breakdowns.uptime, randomness.rng(0, "uptimes"), "breakdowns: uptime")
        self.down = _Numbers(breakdowns.downtime, randomness.rng(0, "downtimes"), "breakdowns: downtime")
        self.coming = [(self.up.next(), k, 0) for k in range(servers)]
        heapify(self.coming)

    def next(self) -> Change:
        time, k, up = heappop(self.coming)
        stay = self.up if up else self.down
        heappush(self.coming, (time + stay.next(), k, 1 - up))
        return (time, SERVER_CHANGE, k, up)


class Changes:
    """The changes of one run, in order. Can be copied and pickled at any time."""

    def __init__(self, system: System, randomness: Randomness, horizon: float) -> None:
        self.horizon = horizon
        self.initial_class, self.initial_jobs = initial_jobs(system, randomness)
        parts: list[_Initial | _Environment | _Shifts | _Servers] = [_Initial(len(self.initial_class))]
        if system.environment is not None:
            parts.append(_Environment(system.environment, randomness))
        if isinstance(system.servers, Shifts):
            parts.append(_Shifts(system.servers))
        if system.breakdowns is not None:
            parts.append(_Servers(system.breakdowns, system.most_servers, randomness))
        self.parts = parts
        self.coming = [(part.next(), n) for n, part in enumerate(parts)]
        heapify(self.coming)

    def next(self) -> Change:
        """The next one; after the horizon none."""
        change, n = self.coming[0]
        if change[0] > self.horizon:
            return NEVER
        heappop(self.coming)
        heappush(self.coming, (self.parts[n].next(), n))
        return change

    def fill(self, block: ChangeBlock) -> int:
        """How many changes there are in this stretch, one at least; after the last there is one at infinity."""
        for k in range(block.time.size):
            block.time[k], block.what[k], block.which[k], block.value[k] = change = self.next()
            if change is NEVER:
                return k + 1
        return int(block.time.size)
