"""Measures of many windows (or episodes) at once: what `Observed.estimate` says of each, without going through them all
for every one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from queueing_ucrl.accounts.log_sums import LogSums
from queueing_ucrl.accounts.measures import IN_TIME, QUANTILES, RATIOS
from queueing_ucrl.accounts.steady_state import estimate, ratio_estimate
from queueing_ucrl.accounts.wait_histogram import quantile_of_bins, within_of_bins
from queueing_ucrl.arrays import FloatArray, IntArray

PARTS = {"arrivals": ("admitted", "rejected", "blocked"), "ended": ("started", "abandoned")}
NO_WAITS = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


class WindowMeasures:
    """Of a group (None: all) in some runs, whose stretches are the windows."""

    def __init__(self, runs: Sequence[LogSums], name: str | None, servers: float, target: float) -> None:
        self.runs, self.name, self.servers, self.target = runs, name, servers, target
        self.windows = runs[0].stretches
        self.waits = [sums.wait_bins(name) for sums in runs]
        self.started: IntArray = self._sums("started").astype(np.int64)

    def _sums(self, what: str) -> FloatArray:
        """[run, window]."""
        if what == "time":
            return np.array([sums.lengths for sums in self.runs])
        if what == "server_time":
            return np.array([self.servers * sums.lengths for sums in self.runs])
        if what in ("busy", "in_system", "in_queue"):
            return np.array([sums.integral(what, self.name) for sums in self.runs])
        if what == "earned":
            return self._sums("reward") - self._sums("cost")
        if what == "within":
            return self._within()
        found = np.zeros((len(self.runs), self.windows))
        for part in PARTS.get(what, (what,)):
            found += np.array([sums.total(part, self.name) for sums in self.runs])
        return found

    def _within(self) -> FloatArray:
        found = self.started.astype(np.float64)  # those that did not wait are within any target
        for k, waits in enumerate(self.waits):
            for j, (bins, counts) in waits.items():
                found[k, j] = within_of_bins(bins, counts, int(self.started[k, j]), self.target)
        return found

    def estimates(self, measure: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mean, low, high) in each window."""
        mean, half = self._quantiles(QUANTILES[measure]) if measure in QUANTILES else self._ratios(measure)
        return mean, mean - half, mean + half

    def _ratios(self, measure: str) -> tuple[FloatArray, FloatArray]:
        above, below = (self._sums(name) for name in (RATIOS | IN_TIME)[measure])
        known = np.isfinite(above).all(axis=0) & np.isfinite(below).all(axis=0)
        mean, half = np.full((2, self.windows), math.nan)
        if len(self.runs) == 1:
            some = known & (below[0] != 0.0)
            mean[some] = above[0, some] / below[0, some]
            return mean, half
        for j in np.flatnonzero(known).tolist():
            found = ratio_estimate(above[:, j], below[:, j])
            mean[j], half[j] = found.mean, found.half_width
        return mean, half

    def _quantiles(self, level: float) -> tuple[FloatArray, FloatArray]:
        total = self.started.sum(axis=0)
        mean, half = np.where(total > 0, 0.0, math.nan), np.full(self.windows, math.nan)
        each = np.where(self.started > 0, 0.0, math.nan)
        for k, waits in enumerate(self.waits):
            for j, (bins, counts) in waits.items():
                each[k, j] = quantile_of_bins(bins, counts, int(self.started[k, j]), level)
        if len(self.runs) == 1:
            return each[0], half
        for j in sorted(set().union(*self.waits)):
            parts = [waits.get(j, NO_WAITS) for waits in self.waits]
            bins, where = np.unique(np.concatenate([bins for bins, _ in parts]), return_inverse=True)
            counts = np.bincount(where, weights=np.concatenate([counts for _, counts in parts])).astype(np.int64)
            mean[j] = quantile_of_bins(bins, counts, int(total[j]), level)
        for j in np.flatnonzero(~np.isnan(each).any(axis=0)).tolist():
            half[j] = estimate(each[:, j]).half_width
        return mean, half
