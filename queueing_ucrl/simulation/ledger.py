"""What is written down in a run, whatever the engine.

Decisions are counted by state and class, as whole numbers; at the times of the grid the counts are noted, and rewards
and regrets follow from them all at once (`accounts.totals`), so both engines, and the event log, give the same numbers
to the last bit. Costs of sampled waits are added in the order in which jobs join their servers, or give up; amounts
that differ from job to job, in the order in which they are paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queueing_ucrl.accounts.totals import Account, Comparator, Counts, Totals, joined, totals
from queueing_ucrl.accounts.wait_histogram import BINS, FIRST_BIN, SHIFT, quantile
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System

# rows of what is counted by class; FOUND: jobs there at time 0
ARRIVED, BLOCKED, STARTED, DEPARTED, ABANDONED, FOUND = range(6)

NOTED = 4_000_000  # counts that are noted before they are turned into totals: 32 MB of each table


class Waits:
    """Waits and their costs by class: counts, sums, and a histogram for quantiles; memory does not grow."""

    def __init__(self, system: System, counts: IntArray) -> None:
        classes = len(system.classes)
        self.counts = counts  # the ledger's, by class
        costs = [c.holding_cost for c in system.classes]
        distinct = [cost for k, cost in enumerate(costs) if cost not in costs[:k]]
        self.kinds = [(kind, [i for i, cost in enumerate(costs) if cost == kind]) for kind in distinct]
        self.abandonment_cost = np.array([c.abandonment_cost for c in system.classes])
        self.cost_sum = np.zeros(classes)
        self.wait_sum = np.zeros(classes)
        self.histogram = np.zeros((classes, BINS), dtype=np.int64)  # of positive waits
        self.seen = np.zeros((3, classes))  # waits that are over, those of who gave up among them: number, sum, cost

    @property
    def started(self) -> IntArray:
        """Jobs that have joined a server: waits are theirs; costs are also of those who gave up."""
        return self.counts[STARTED]

    def add(self, job_class: IntArray, wait: FloatArray, marks: IntArray, cost_at: FloatArray) -> None:
        """Jobs that have joined a server after a positive wait, or given up (their class is -1 - i), in that order.

        marks: numbers of jobs, in order; the costs added up before each are written into the rows of `cost_at`.
        """
        cost = self.holding_costs(job_class, wait)
        sums = (self.cost_sum, self.wait_sum, self.histogram, self.seen)
        _add_up(job_class, wait, wait.view(np.int64), cost, self.abandonment_cost, marks, *sums, cost_at)

    def holding_costs(self, job_class: IntArray, wait: FloatArray) -> FloatArray:
        """C_i of each of these waits."""
        cost = np.empty(wait.size)
        for kind, classes in self.kinds:
            alike = [*classes, *(-1 - i for i in classes)]
            chosen = slice(None) if len(self.kinds) == 1 else np.isin(job_class, alike)
            cost[chosen] = kind(wait[chosen])
        return cost

    def costs(self, job_class: IntArray, wait: FloatArray) -> FloatArray:
        """What is charged for each: C_i of the wait, and what giving up costs those who did (their class is -1 - i)."""
        cost, gave_up = self.holding_costs(job_class, wait), job_class < 0
        if gave_up.any():
            cost[gave_up] += self.abandonment_cost[-1 - job_class[gave_up]]
        return cost

    def quantile(self, job_class: int, level: float) -> float:
        """The level-quantile of the class's waits (those that did not wait included), to about 1 %."""
        return quantile(self.histogram[job_class], int(self.started[job_class]), level)


@compiled
def _add_up(
    job_class: IntArray,
    wait: FloatArray,
    bits: IntArray,
    cost: FloatArray,
    abandonment_cost: FloatArray,
    marks: IntArray,
    cost_sum: FloatArray,
    wait_sum: FloatArray,
    histogram: IntArray,
    seen: FloatArray,
    cost_at: FloatArray,
) -> None:
    """One by one in order, so that the sums do not depend on how the jobs are cut into blocks."""
    k = 0
    for n in range(wait.size):
        while k < marks.size and marks[k] <= n:
            cost_at[k] = cost_sum
            k += 1
        i = job_class[n]
        who = i if i >= 0 else -1 - i
        seen[0, who] += 1.0
        seen[1, who] += wait[n]
        seen[2, who] += cost[n]
        if i < 0:
            cost_sum[-1 - i] += cost[n] + abandonment_cost[-1 - i]
            continue
        cost_sum[i] += cost[n]
        wait_sum[i] += wait[n]
        histogram[i, min(max((bits[n] >> SHIFT) - FIRST_BIN, 0), BINS - 1)] += 1
    for late in range(k, marks.size):
        cost_at[late] = cost_sum


@dataclass
class PolicySegment:
    """From when on a policy was in force."""

    start: float
    policy: Policy


# of the episode table; those of a belief have other names
EPISODE_COLUMNS = (
    *("controller", "replication", "episode", "start", "end", "arrivals", "expected_reward"),
    *("control_levels", "trunk_reservation", "gain", "truth_inside", "solver_iterations"),
)


@dataclass
class Episode:
    """One stretch between two reviews."""

    number: int
    start: float
    end: float
    arrivals: int
    expected_reward: float  # collected in it
    policy: Policy
    belief: dict[str, Any]
    truth_inside: bool | None
    solver_iterations: int | None  # of the policies asked for in it that the service answered; None: there is none


@dataclass(frozen=True)
class Unfinished:
    """A job that is still in the system at the horizon."""

    job: int
    job_class: int
    arrival: float
    start: float  # when it first joined a server; nan: it still waits, and its holding cost has not been charged
    interrupted: bool = False  # whether it waits for a server once more

    @property
    def waiting(self) -> bool:
        """Whether it has not joined a server."""
        return math.isnan(self.start)


class Notes:
    """The counts as they were at the times of the grid: rows that an engine fills, until they are made into totals."""

    def __init__(self, times: FloatArray, states: int, classes: int) -> None:
        self.times = times
        rows = max(1, min(times.size, NOTED // (states * classes)))
        self.admitted = np.zeros((rows, states, classes), dtype=np.int64)
        self.rejected = np.zeros_like(self.admitted)
        self.counts = np.zeros((rows, 6, classes), dtype=np.int64)
        self.waits = np.zeros(rows, dtype=np.int64)  # of the waits that are still to be added up, how many came before
        self.cost = np.zeros((rows, classes))
        self.paid = np.zeros((rows, classes))
        self.used = 0  # rows
        self.settled = 0  # rows whose costs are known
        self.done = 0  # times whose rows are totals by now

    @property
    def rows(self) -> int:
        """How many there is room for."""
        return len(self.waits)


@dataclass
class Ledger:
    """All that is kept of a run."""

    comparator: Comparator
    times: FloatArray  # the grid, ending with the horizon
    accounts: Sequence[Account] = ()
    episodes: list[Episode] = field(default_factory=list)
    segments: list[PolicySegment] = field(default_factory=list)
    busy_time: float = 0.0  # server time spent serving
    duty_time: float | None = None  # server time on duty; None: all servers, all the time

    def __post_init__(self) -> None:
        system = self.comparator.system
        shape = (system.capacity, len(system.classes))
        self.counts = np.zeros((6, shape[1]), dtype=np.int64)
        self.waits = Waits(system, self.counts)
        self.admitted = np.zeros(shape, dtype=np.int64)  # so far, by state and class
        self.rejected = np.zeros(shape, dtype=np.int64)
        # by class, where its jobs may pay different amounts: their sum so far, that of their squares, and the largest
        self.paid = np.zeros((3, shape[1]))
        self.notes = Notes(self.times, *shape)
        self._totals: list[Totals] = []

    @property
    def blocked(self) -> IntArray:
        """Jobs that found no room, by class."""
        return self.counts[BLOCKED]

    @property
    def abandoned(self) -> IntArray:
        """Jobs that gave up, by class."""
        return self.counts[ABANDONED]

    def adopt(self, start: float, policy: Policy) -> None:
        """A policy is in force from now on."""
        self.segments.append(PolicySegment(start, policy))

    def close_episode(self, episode: Episode) -> None:
        """An episode has ended."""
        self.episodes.append(episode)

    @property
    def episode_count(self) -> int:
        """How many have ended."""
        return len(self.episodes)

    def note(self, waits: int) -> None:
        """Note the counts at the grid's next time; waits: how many are still to be added up by `settle`."""
        notes = self.notes
        if notes.used == notes.rows:
            raise AssertionError("settle the waits first: there is no room for another row")
        k = notes.used
        notes.admitted[k], notes.rejected[k], notes.counts[k] = self.admitted, self.rejected, self.counts
        notes.waits[k] = waits
        notes.paid[k] = self.paid[0]
        notes.used = k + 1

    def settle(self, job_class: IntArray, wait: FloatArray) -> None:
        """Add up the waits of jobs that have joined a server or given up since the last call; rows noted since have
        their costs.
        """
        notes = self.notes
        rows = slice(notes.settled, notes.used)
        self.waits.add(job_class, wait, notes.waits[rows], notes.cost[rows])
        notes.settled = notes.used
        if notes.used and (notes.used == notes.rows or notes.done + notes.used == notes.times.size):
            self._make_totals()

    def _make_totals(self) -> None:
        notes, used = self.notes, self.notes.used
        counts = Counts(
            notes.times[notes.done : notes.done + used],
            notes.admitted[:used],
            notes.rejected[:used],
            notes.counts[:used, BLOCKED],
            notes.cost[:used].copy(),
            started=notes.counts[:used, STARTED],
            departed=notes.counts[:used, DEPARTED],
            abandoned=notes.counts[:used, ABANDONED],
            paid=notes.paid[:used].copy() if self.comparator.system.pays_differ else None,
        )
        self._totals.append(totals(counts, self.comparator, self.accounts))
        notes.done += used
        notes.used = notes.settled = 0

    @property
    def totals(self) -> Totals:
        """Rewards and regrets at the times of the grid; of a run that has come to its end."""
        return joined(self._totals)
