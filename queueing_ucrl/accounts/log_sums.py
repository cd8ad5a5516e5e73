r"""Sums over stretches of time of what an event log says, by group (class or server): one pass, flat memory.

Counts and money are added up in the stretch that holds their row. A number of jobs N(t) (in the system, in the queue,
at servers) moves by sigma = +-1 at some rows; over the stretch [a, b)

    int_a^b N dt = N(a) (b - a) + sum over moves at t in [a, b) of sigma (b - t),   N(a) = sum of sigma before a,

so nothing is subtracted that is much larger than what is left. Waits are counted in bins (`wait_histogram`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from queueing_ucrl.accounts.log_rows import (
    ABANDON,
    ADMIT,
    BLOCK,
    BREAKDOWN,
    DEPART,
    EVENTS,
    HAND_OVER,
    INITIAL,
    REJECT,
    RESUME,
    START,
    Rows,
)
from queueing_ucrl.accounts.wait_histogram import BINS, bins_of
from queueing_ucrl.arrays import FloatArray, IntArray

COUNTED = {ADMIT: "admitted", REJECT: "rejected", BLOCK: "blocked", START: "started", ABANDON: "abandoned"}
COUNTED |= {DEPART: "departed"}
READ = ("server", "wait", "reward", "cost", "episode", "replication")  # the columns that are needed


def _moves(up: Sequence[int], down: Sequence[int]) -> IntArray:
    """By event: how it moves a number of jobs."""
    found = np.zeros(len(EVENTS), dtype=np.int64)
    found[list(up)], found[list(down)] = 1, -1
    return found


LEVELS = {
    "in_system": _moves([ADMIT, INITIAL], [DEPART, ABANDON]),
    "in_queue": _moves([ADMIT, INITIAL, BREAKDOWN, HAND_OVER], [START, RESUME, ABANDON]),
    "busy": _moves([START, RESUME], [DEPART, BREAKDOWN, HAND_OVER]),
}
SUMS = (*COUNTED.values(), "wait", "cost")


class LogSums:
    """Sums of one run over stretches between `edges`, by group; `take` its rows in order."""

    def __init__(self, edges: FloatArray) -> None:
        self.edges = edges
        self.stretches = edges.size - 1
        self.lengths: FloatArray = np.diff(edges)
        self.names: list[str] = []
        shape = (0, self.stretches)
        self.sums = {name: np.zeros(shape) for name in SUMS}
        self.before = {name: np.zeros(0, dtype=np.int64) for name in LEVELS}  # moves before the first stretch
        self.net = {name: np.zeros(shape, dtype=np.int64) for name in LEVELS}
        self.partial = {name: np.zeros(shape) for name in LEVELS}
        self.paid = np.zeros(shape, dtype=np.int64)  # how many rewards, their sum, and whether all are like the first
        self.reward = np.zeros(shape)
        self.first_reward = np.zeros(0)
        self.alike = np.zeros(0, dtype=bool)
        self.bins = np.empty(0, dtype=np.int64)  # (group * stretches + stretch) * BINS + bin, in order
        self.waits = np.empty(0, dtype=np.int64)  # how many waits each of them holds

    def _grow(self, names: Sequence[str]) -> None:
        more = len(names) - len(self.names)
        if more <= 0:
            return
        self.names = list(names)
        for tables in (self.sums, self.before, self.net, self.partial):
            for name, table in tables.items():
                tables[name] = np.concatenate([table, np.zeros((more, *table.shape[1:]), dtype=table.dtype)])
        for name in ("paid", "reward", "first_reward"):
            table = getattr(self, name)
            setattr(self, name, np.concatenate([table, np.zeros((more, *table.shape[1:]), dtype=table.dtype)]))
        self.first_reward[-more:] = math.nan
        self.alike = np.concatenate([self.alike, np.ones(more, dtype=bool)])

    def take(self, rows: Rows, group: IntArray, names: Sequence[str], stretch: IntArray | None = None) -> None:
        """The next rows, each of a group (its place in `names`; -1: of none). stretch: of each row, where its time
        does not say it.
        """
        self._grow(names)
        k = self.stretches
        at = np.searchsorted(self.edges, rows.time, side="right") - 1 if stretch is None else stretch
        at = np.where(at >= 0, at, -1)
        known = (group >= 0) & (at < k)
        inside = known & (at >= 0)
        place = np.where(inside, group * k + at, 0)
        for code, name in COUNTED.items():
            self.sums[name] += self._added(place[inside & (rows.event == code)])
        started = np.flatnonzero(inside & (rows.event == START) & ~np.isnan(rows.wait))
        self.sums["wait"] += self._added(place[started], rows.wait[started])
        cost = np.flatnonzero(inside & ~np.isnan(rows.cost))
        self.sums["cost"] += self._added(place[cost], rows.cost[cost])
        self._take_rewards(rows, group, place, inside)
        self._take_waits(place[started], rows.wait[started])
        self._take_levels(rows, group, at, place, known)

    def _added(self, places: IntArray, values: FloatArray | IntArray | None = None) -> Any:
        """How many there are in each group and stretch, or the sum of their values, one by one in order."""
        count = len(self.names) * self.stretches
        return np.bincount(places, weights=values, minlength=count).reshape(-1, self.stretches)

    def _take_rewards(self, rows: Rows, group: IntArray, place: IntArray, inside: Any) -> None:
        chosen = np.flatnonzero(inside & ~np.isnan(rows.reward))
        values, who = rows.reward[chosen], group[chosen]
        self.paid += self._added(place[chosen])
        self.reward += self._added(place[chosen], values)
        for g in np.unique(who):
            mine = values[who == g]
            if math.isnan(self.first_reward[g]):
                self.first_reward[g] = mine[0]
            self.alike[g] &= bool((mine == self.first_reward[g]).all())

    def _take_waits(self, places: IntArray, waits: FloatArray) -> None:
        positive = waits > 0.0
        keys = places[positive] * BINS + bins_of(waits[positive])
        found, counts = np.unique(keys, return_counts=True)
        self.bins, where = np.unique(np.concatenate([self.bins, found]), return_inverse=True)
        self.waits = np.bincount(where, weights=np.concatenate([self.waits, counts]), minlength=self.bins.size).astype(
            np.int64
        )

    def _take_levels(self, rows: Rows, group: IntArray, at: IntArray, place: IntArray, known: Any) -> None:
        for name, moves in LEVELS.items():
            chosen = np.flatnonzero(known & rows.has_job & (moves[rows.event] != 0))
            sigma, early = moves[rows.event[chosen]], at[chosen] < 0
            counts = np.bincount(group[chosen[early]], weights=sigma[early], minlength=len(self.names))
            self.before[name] += counts.astype(np.int64)
            late, sigma = chosen[~early], sigma[~early]
            self.net[name] += self._added(place[late], sigma).astype(np.int64)
            self.partial[name] += self._added(place[late], sigma * (self.edges[1:][at[late]] - rows.time[late]))

    def groups(self, name: str | None) -> list[int]:
        """The places of a group; of all groups for None."""
        return list(range(len(self.names))) if name is None else [self.names.index(name)] if name in self.names else []

    def integral(self, level: str, name: str | None = None) -> FloatArray:
        """int N dt over each stretch, of a group, or of all."""
        which = self.groups(name)
        net = self.net[level][which].sum(axis=0)
        at_first = int(self.before[level][which].sum()) + np.concatenate([[0], np.cumsum(net)[:-1]])
        found: FloatArray = at_first * self.lengths + self.partial[level][which].sum(axis=0)
        return found

    def total(self, what: str, name: str | None = None) -> FloatArray:
        """A sum over each stretch, of a group, or of all."""
        which = self.groups(name)
        if what != "reward":
            found: FloatArray = self.sums[what][which].sum(axis=0)
            return found
        # where all rewards of a group are alike, as a run counts it: their number times the reward
        reward = np.zeros(self.stretches)
        for g in which:
            counted = self.alike[g] and not math.isnan(self.first_reward[g])
            reward += self.paid[g] * self.first_reward[g] if counted else self.reward[g]
        return reward

    def wait_bins(self, name: str | None = None) -> dict[int, tuple[IntArray, IntArray]]:
        """By stretch, where anybody waited: the bins that hold waits, in order, and how many; of a group, or of all."""
        place, bins = np.divmod(self.bins, BINS)
        group, stretch = np.divmod(place, self.stretches)
        mine = np.isin(group, self.groups(name))
        keys, where = np.unique(stretch[mine] * BINS + bins[mine], return_inverse=True)
        counts = np.bincount(where, weights=self.waits[mine], minlength=keys.size).astype(np.int64)
        stretches, first = np.unique(keys // BINS, return_index=True)
        parts = zip(np.split(keys % BINS, first[1:]), np.split(counts, first[1:]), strict=True)
        return dict(zip(stretches.tolist(), parts, strict=False))

    def histogram(self, stretches: IntArray, name: str | None = None) -> IntArray:
        """The waits in these stretches by bin, of a group, or of all: a row a stretch."""
        found = np.zeros((stretches.size, BINS), dtype=np.int64)
        for g in self.groups(name):
            for row, j in enumerate(stretches.tolist()):
                first = (g * self.stretches + j) * BINS
                low, high = np.searchsorted(self.bins, [first, first + BINS])
                found[row, self.bins[low:high] - first] += self.waits[low:high]
        return found
