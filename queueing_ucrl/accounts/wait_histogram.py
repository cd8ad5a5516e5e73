"""Waits counted in bins of 1/64 octave, cut out of the bits of the double: quantiles and shares in flat memory.

A quantile is right to 1.1 % of the wait, a share to what one bin holds; waits of 0 are counted apart. Whoever counts
the same waits, an engine or a reader of the event log, gets the same numbers to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray

SHIFT = 46
FIRST_BIN = (1023 - 60) << 6
BINS = 120 << 6


def bins_of(waits: FloatArray) -> IntArray:
    """The bin of each positive wait."""
    return np.clip((np.ascontiguousarray(waits).view(np.int64) >> SHIFT) - FIRST_BIN, 0, BINS - 1)


def bin_edge(j: int) -> float:
    """The smallest wait of bin j."""
    return float(np.array([(j + FIRST_BIN) << SHIFT], dtype=np.int64).view(np.float64)[0])


def quantile(histogram: IntArray, total: int, level: float) -> float:
    """The level-quantile of `total` waits, of which those in no bin are 0; nan of none."""
    bins = np.flatnonzero(histogram)
    return quantile_of_bins(bins, histogram[bins], total, level)


def quantile_of_bins(bins: IntArray, counts: IntArray, total: int, level: float) -> float:
    """The same from the bins that hold waits, in order."""
    if total == 0:
        return math.nan
    below = total - int(counts.sum())  # waits of zero
    target = level * total
    if target <= below:
        return 0.0
    reached = below + np.cumsum(counts)
    j = int(np.searchsorted(reached, target))
    before = int(reached[j - 1]) if j else below
    low, high = bin_edge(int(bins[j])), bin_edge(int(bins[j]) + 1)
    return low + (high - low) * (target - before) / (int(reached[j]) - before)


def count_within(histogram: IntArray, total: int, wait: float) -> float:
    """How many of `total` waits are at most `wait`; within a bin as if they were spread evenly."""
    bins = np.flatnonzero(histogram)
    return within_of_bins(bins, histogram[bins], total, wait)


def within_of_bins(bins: IntArray, counts: IntArray, total: int, wait: float) -> float:
    """The same from the bins that hold waits, in order."""
    count = float(total - int(counts.sum()))
    if wait <= 0.0:
        return count
    j = int((np.array([wait]).view(np.int64)[0] >> SHIFT) - FIRST_BIN)
    if j < 0:
        return count
    if j >= BINS:
        return float(total)
    low, high = bin_edge(j), bin_edge(j + 1)
    inside = int(counts[bins == j].sum())
    return count + int(counts[bins < j].sum()) + inside * (wait - low) / (high - low)
