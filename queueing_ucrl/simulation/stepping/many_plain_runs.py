"""Many stepped runs of one plain system: what `many_runs` does for any, by a loop of its own (`plain_loop`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from queueing_ucrl.accounts.totals import Comparator, Counts, Totals, totals
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray, record_type, records
from queueing_ucrl.model.costs import Free, Linear
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.ledger import Waits as Costs
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import Source, job_block, job_sources
from queueing_ucrl.simulation.stepping.plain_loop import (
    DONE,
    NOBODY,
    PAID_AT,
    Door,
    Terms,
    WaitingJob,
    Waits,
    World,
    Worlds,
    charge,
    run_worlds,
)
from queueing_ucrl.simulation.tournament import tournament

JOBS_KEPT = 2048  # of each class in each run


def jobs_kept(system: System, horizon: float) -> int:
    """Of each class; in a short run most likely all that come."""
    most = horizon * max(c.peak_rate for c in system.classes)
    return int(min(JOBS_KEPT, 2.0 * most + 50.0))


def linear_rates(system: System) -> FloatArray:
    """By class, where a wait costs C(t) = rate t in all; else empty."""
    costs = [c.holding_cost for c in system.classes]
    if not all(type(cost) in (Free, Linear) for cost in costs):
        return np.zeros(0)
    return np.array([cost.rate if isinstance(cost, Linear) else 0.0 for cost in costs])


class PlainRuns:
    """So many runs of a plain system (`kernel.is_plain`), decided at the door all at once.

    policy: its rows are in `door.row`; it decides nothing.
    """

    def __init__(self, comparator: Comparator, horizon: float, count: int, policy: Policy | None = None) -> None:
        system = comparator.system
        self.comparator, self.horizon = comparator, horizon
        m, S, c = len(system.classes), system.capacity, min(system.most_servers, system.capacity)
        self.door, self.paid = Door.of(count), np.zeros(count)
        self.door.environment[:] = 0
        self._sources: list[list[Source]] = [[] for _ in range(count)]
        self._block = job_block(system, jobs_kept(system, horizon))
        self._nobody = tournament(c)
        self._costs = Costs(system, np.zeros((6, m), dtype=np.int64))
        self._strides = None if policy is None or policy.class_strides is None else np.array(policy.class_strides)
        self._terms = Terms(
            np.array(system.joins) if system.balks else np.zeros((0, m)),
            np.array([PAID_AT[c.reward_at] for c in system.classes], dtype=np.int64),
            np.array(system.job_rewards),
            linear_rates(system),
        )
        size, players = self._block.time.size, self._nobody.time.size

        def whole(*shape: int) -> IntArray:
            return np.zeros((count, *shape), dtype=np.int64)

        def small(*shape: int) -> Any:
            return np.zeros((count, *shape), dtype=np.int32)

        def reals(*shape: int) -> FloatArray:
            return np.zeros((count, *shape))

        line: Any = np.zeros((count, max(1, S - system.most_servers)), dtype=record_type(WaitingJob))
        self._worlds = Worlds(
            records(World, count),
            *(reals(m), whole(m), whole(m), reals(m, size, 2), reals(m, size if system.balks else 0)),
            *(reals(players), whole(players), small(c), small(2 * players), small(c)),
            line,
            *(whole(m), whole(S, m), whole(m), whole(m)),
            *(reals(), reals(m)),
        )
        self._waits = Waits.room_for(32 * (count + 1) if not self._terms.rates.size else 1)

    def begin(self, runs: Sequence[int], seeds: Sequence[int], replications: Sequence[int]) -> None:
        """These runs start anew, each with its seed and replication, and go to their first arrivals."""
        worlds, which = self._worlds, np.array(runs, dtype=np.int64)
        numbers = (worlds.number, worlds.present, worlds.admitted, worlds.started, worlds.paying)
        for part in (np.asarray(worlds.world), *numbers):
            part[which] = 0
        worlds.charged[which] = worlds.cost[which] = 0.0
        worlds.end[which], worlds.winner[which] = np.inf, self._nobody.winner
        worlds.idle[which] = np.arange(worlds.idle.shape[1])
        self.door.decision[which] = NOBODY
        for w, seed, replication in zip(runs, seeds, replications, strict=True):
            self._sources[w] = job_sources(self.comparator.system, Randomness(seed, replication), self.horizon)
            for i in range(len(self._sources[w])):
                self._fill(w, i)
        self._go_on(which)

    def _fill(self, w: int, i: int) -> None:
        """The next jobs of a class in a world."""
        worlds, block = self._worlds, self._block
        count = self._sources[w][i].fill(block)
        jobs = worlds.jobs[w, i]
        jobs[:count, 0], jobs[:count, 1] = block.time[:count], block.work[:count]
        if block.join.size:
            worlds.join[w, i, :count] = block.join[:count]
        worlds.size[w, i], worlds.position[w, i], worlds.next[w, i] = count, 0, jobs[0, 0]

    def decide(self, runs: IntArray, admit: BoolArray) -> None:
        """What is done with the jobs at the doors of these runs; they go on to their next arrivals."""
        self.door.decision[runs] = admit
        self._go_on(runs)

    def _go_on(self, runs: IntArray) -> None:
        worlds, door, waits = self._worlds, self.door, self._waits
        while run_worlds(worlds, self._terms, waits, runs, self.horizon, door, self.paid):
            self._charge()
            for w in runs[door.came_back[runs] >= 0].tolist():
                self._fill(w, int(door.came_back[w]))
            runs = runs[door.came_back[runs] != DONE]
        self._charge()
        door.row[:] = door.in_system if self._strides is None else worlds.present @ self._strides

    def _charge(self) -> None:
        """What the waits cost that were kept."""
        if (used := int(self._waits.used[0])) > 0:
            cost = self._costs.costs(self._waits.job_class[:used], self._waits.wait[:used])
            charge(self._waits, cost, self._worlds.charged, self._worlds.cost)

    def earned(self) -> FloatArray:
        """Of each run, what was paid less what was charged since its last decision."""
        return self.paid - self._worlds.charged

    def totals(self, runs: IntArray) -> Totals:
        """What these have earned so far, a row a run."""
        worlds, none = self._worlds, np.zeros((runs.size, len(self._terms.rewards)), dtype=np.int64)
        times, admitted = np.full(runs.size, self.horizon), worlds.admitted[runs]
        departed = admitted.sum(axis=1) - worlds.present[runs]
        decided = (admitted, np.zeros_like(admitted), none, worlds.cost[runs])
        return totals(Counts(times, *decided, worlds.started[runs], departed), self.comparator)
