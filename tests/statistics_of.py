"""What a statistical test needs: verdicts with a stated error rate, and the path that an event log describes.

A test with `ERROR` fails for one seed in 1 / ERROR if the program is right; seeds are fixed, so it does not flicker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

import queueing_ucrl as qu


def worst_mean(samples: np.ndarray) -> float:
    """The smallest p-value of "this column has mean 0" over all columns, times their number (Bonferroni)."""
    columns = np.asarray(samples, dtype=float).reshape(len(samples), -1)
    sums, spread = columns.mean(axis=0), columns.std(axis=0, ddof=1)
    assert np.all(spread > 0), "a column that never varies tests nothing"
    z = np.abs(sums) / (spread / math.sqrt(len(columns)))
    return float(columns.shape[1] * 2 * stats.t.sf(z.max(), len(columns) - 1))


def worst_difference(one: np.ndarray, other: np.ndarray) -> float:
    """The same for "both have this column's mean in common", by Welch's test."""
    p = stats.ttest_ind(one, other, equal_var=False, axis=0).pvalue
    return float(np.size(p) * np.min(p))


@dataclass(frozen=True)
class Path:
    """A run's log as a step function: `state[j]` jobs are in the system from `start[j]` for `length[j]`."""

    start: np.ndarray
    length: np.ndarray
    state: np.ndarray
    cycle: np.ndarray  # how often the system has become empty before it
    cycles: int  # how many are used: a number fixed beforehand, so that the cut at the horizon favours none

    @classmethod
    def of(cls, events: pd.DataFrame, horizon: float, cycles: int) -> Path:
        moves = events[events["event"].isin(["admit", "depart"])]
        start = np.concatenate([[0.0], moves["time"].to_numpy()])
        after = moves["in_system"].to_numpy() + np.where(moves["event"] == "admit", 1, -1)
        state = np.concatenate([[0], after])
        empty = np.concatenate([[False], after == 0])
        path = cls(start, np.diff(start, append=horizon), state, np.cumsum(empty), cycles)
        assert path.cycle[-1] > cycles, "the run is too short"
        return path

    def by_cycle(self, weights: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """Sums over each cycle of `weights`, one for each step, or one for each of `times` (of events).

        The cycles are independent and alike: the system starts empty, and arrivals have no memory.
        """
        where = slice(None) if times is None else np.searchsorted(self.start, times, side="left") - 1
        return np.bincount(self.cycle[where], weights=weights, minlength=self.cycles)[: self.cycles]


def independent_waits(events: pd.DataFrame, state: int) -> np.ndarray:
    """Waits of jobs admitted in `state`, each admitted after the one before it has joined its server.

    Whatever happened before, a job admitted in s waits Erlang(s - c + 1, c mu); all earlier chosen waits are part of
    what happened before, so the chosen ones are independent.
    """
    admitted = events[(events["event"] == "admit") & (events["in_system"] == state)].set_index("job")["time"]
    started = events[events["event"] == "start"].set_index("job")[["time", "wait"]]
    both = started.join(admitted.rename("admitted"), how="inner").sort_values("admitted")
    chosen, free = [], -math.inf
    for start, wait, arrival in both[["time", "wait", "admitted"]].itertuples(index=False):
        if arrival >= free:
            chosen.append(wait)
            free = start
    return np.array(chosen)


def bias_from_empty(solution: qu.Solution) -> np.ndarray:
    """h*(s) with h*(0) = 0, from g*(s) = h*(s) - h*(s + 1)."""
    return -np.concatenate([[0.0], np.cumsum(solution.relative_bias)])
