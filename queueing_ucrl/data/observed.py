"""When a log was looked on: stretches of time, which windows they hold, and how long they spend in each slot of a day.

`observed` is (begin, end), or a list of such pairs that follow each other: opening hours, say. An arrival belongs to
[begin, end); one at the very end of the last stretch is taken too, for that is where a log stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray, IntArray

Observed = Sequence[float] | Sequence[Sequence[float]] | FloatArray


def spans(observed: Observed) -> FloatArray:
    """The stretches as an array of pairs, which must be finite, not empty, in order and apart."""
    pairs = np.asarray(observed, dtype=np.float64)
    if pairs.ndim == 1:
        pairs = pairs.reshape(1, -1)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError("observed must be (begin, end), or a list of such pairs")
    if not np.all(np.isfinite(pairs)):
        raise ValueError("observed must be finite times")
    if not np.all(pairs[:, 0] < pairs[:, 1]):
        begin, end = pairs[np.argmax(pairs[:, 0] >= pairs[:, 1])]
        raise ValueError(f"a stretch that is observed must end after it begins, got {begin:g} to {end:g}")
    if not np.all(pairs[:-1, 1] <= pairs[1:, 0]):
        raise ValueError("stretches that are observed must be in order and apart")
    return pairs


def observed_time(observed: Observed) -> float:
    """How long was looked on in all."""
    pairs = spans(observed)
    return math.fsum((pairs[:, 1] - pairs[:, 0]).tolist())


def in_order(times: npt.ArrayLike, name: str = "times") -> FloatArray:
    """Times as an array that must be finite and never go back."""
    array = np.asarray(times, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite numbers")
    if array.size and np.any(back := array[1:] < array[:-1]):
        k = int(np.argmax(back)) + 1
        raise ValueError(f"{name} must never go back: number {k + 1} is {array[k]:g} after {array[k - 1]:g}")
    return array


def within(times: npt.ArrayLike, observed: Observed) -> tuple[FloatArray, FloatArray]:
    """(times, stretches): times in order, all of them within a stretch."""
    array, pairs = in_order(times), spans(observed)
    place = np.searchsorted(pairs[:, 0], array, side="right") - 1
    outside = (place < 0) | (array >= pairs[np.maximum(place, 0), 1])
    outside &= array != pairs[-1, 1]
    if np.any(outside):
        raise ValueError(
            f"{int(outside.sum())} of {array.size} times lie outside of what was observed, the first of them "
            f"{array[np.argmax(outside)]:g}"
        )
    return array, pairs


def windows(observed: Observed, length: float) -> tuple[FloatArray, FloatArray]:
    """(starts, ends) of windows of `length`, from each stretch's begin on; the last of a stretch may be shorter.

    One that would be shorter than a millionth of `length` is left out: it is a rounding error.
    """
    if not (length > 0 and math.isfinite(length)):
        raise ValueError(f"the length of a window must be a positive finite number, got {length:g}")
    begin, end = spans(observed).T
    counts = np.maximum(np.ceil((end - begin) / length - 1e-6), 1.0).astype(np.int64)
    last = np.cumsum(counts) - 1
    place = np.arange(last[-1] + 1) - np.repeat(last + 1 - counts, counts)  # within its stretch
    first = np.repeat(begin, counts)
    starts, ends = first + length * place, first + length * (place + 1)
    ends[last] = end
    return starts, ends


def counts_in(times: FloatArray, starts: FloatArray, ends: FloatArray) -> tuple[IntArray, IntArray]:
    """(first, count): the place of the first time in each window, and how many are in it.

    A window is [start, end), but the last one holds its end.
    """
    first = np.searchsorted(times, starts, side="left")
    last = np.searchsorted(times, ends, side="left")
    last[-1] = np.searchsorted(times, ends[-1], side="right")
    return first.astype(np.int64), (last - first).astype(np.int64)


def slot_of(times: npt.ArrayLike, period: float, slots: int) -> IntArray:
    """Which of `slots` equal parts of the period each time falls into: slot k is [k width, (k + 1) width).

    Rounded stamps lie on edges often, and a quotient may fall on the wrong side: the edge itself decides.
    """
    array = np.asarray(times, dtype=np.float64)
    width = period / slots
    phase = array - np.floor(array / period) * period
    place = np.floor(phase / width)
    place += (phase >= width * (place + 1.0)).astype(np.float64) - (phase < width * place)
    return np.clip(place, 0, slots - 1).astype(np.int64)


def slot_exposure(observed: Observed, period: float, slots: int) -> FloatArray:
    """How long each of `slots` equal parts of the period was looked on, in all its repetitions.

    Up to t, slot k was passed floor(t / period) times, and for min(max(phase - k width, 0), width) more.
    """
    if not (period > 0 and math.isfinite(period)):
        raise ValueError(f"the period must be a positive finite number, got {period:g}")
    width = period / slots
    pairs = spans(observed)
    whole = np.floor(pairs / period)
    phase = pairs - whole * period
    rounds = (whole[:, 1] - whole[:, 0]).sum()
    passed = np.clip(phase[:, :, None] - width * np.arange(slots), 0.0, width)
    exposure: FloatArray = rounds * width + (passed[:, 1] - passed[:, 0]).sum(axis=0)
    # less than a billionth of a slot is what rounding leaves of nothing
    return np.where(exposure > 1e-9 * width, exposure, 0.0)
