"""Memories add up what was seen: all of it, a window of it, all of it discounted, or what is after the last change."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple, Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, log
from queueing_ucrl.learning.controller import Tally


class Evidence(NamedTuple):
    """What counts, as a memory weighs it."""

    arrivals: FloatArray  # N_i
    time: float  # t, in which they came
    departures: float  # D
    busy_time: float  # B, server time in which they were served
    abandonments: float = 0.0  # A, jobs that gave up
    waiting_time: float = 0.0  # Q, the integral of the number of waiting jobs, in which they did


class Memory(Protocol):
    """Adds up what was seen."""

    def add(self, tally: Tally) -> Evidence:
        """What counts, with this tally."""
        ...


class FullHistory:
    """Nothing is forgotten that was seen since a time."""

    def __init__(self, classes: int, since: float = 0.0) -> None:
        self.since = since
        self.arrivals = np.zeros(classes, dtype=np.int64)
        self.departures = 0
        self.busy_time = 0.0
        self.abandonments = 0
        self.waiting_time = 0.0

    def add(self, tally: Tally) -> Evidence:
        self.arrivals += tally.arrivals
        self.departures += tally.departures
        self.busy_time += tally.busy_time
        self.abandonments += sum(tally.abandonments.tolist())
        self.waiting_time += tally.waiting_time
        return Evidence(
            self.arrivals.astype(np.float64),
            tally.now - self.since,
            float(self.departures),
            self.busy_time,
            float(self.abandonments),
            self.waiting_time,
        )


class SlidingWindow:
    """What was seen within the last `length` of time, to whole tallies; the newest counts however long it is."""

    def __init__(self, length: float) -> None:
        self.length = length
        self.kept: deque[Tally] = deque()

    def add(self, tally: Tally) -> Evidence:
        kept = self.kept
        kept.append(tally)
        horizon = tally.now - self.length * (1.0 + 1e-9)  # a sum of periods may be a rounding longer than the window
        while len(kept) > 1 and kept[0].now - kept[0].duration < horizon:
            kept.popleft()
        return Evidence(
            np.sum([old.arrivals for old in kept], axis=0).astype(np.float64),
            math.fsum(old.duration for old in kept),
            float(sum(old.departures for old in kept)),
            math.fsum(old.busy_time for old in kept),
            float(sum(int(old.abandonments.sum()) for old in kept)),
            math.fsum(old.waiting_time for old in kept),
        )


class Discounting:
    """What was seen a time `scale` before the last tally counts 1/e, exponentially less before; to whole tallies."""

    def __init__(self, scale: float, classes: int) -> None:
        self.scale = scale
        self.arrivals = np.zeros(classes)
        self.time = self.departures = self.busy_time = self.abandonments = self.waiting_time = 0.0

    def add(self, tally: Tally) -> Evidence:
        weight = exp(-tally.duration / self.scale)
        self.arrivals = weight * self.arrivals + tally.arrivals
        self.time = weight * self.time + tally.duration
        self.departures = weight * self.departures + tally.departures
        self.busy_time = weight * self.busy_time + tally.busy_time
        self.abandonments = weight * self.abandonments + int(tally.abandonments.sum())
        self.waiting_time = weight * self.waiting_time + tally.waiting_time
        return Evidence(self.arrivals, self.time, self.departures, self.busy_time, self.abandonments, self.waiting_time)


MOST_BLOCKS = 64  # stretches of time between which a change is looked for


@compiled
def log_ratio(before: float, time_before: float, after: float, time_after: float) -> float:
    r"""By how much two Poisson rates explain two counts better than one does, in log-likelihood.

    n1 ln(n1/t1) + n2 ln(n2/t2) - n ln(n/t) = n KL(n1/n, t1/t), n = n1 + n2, t = t1 + t2. If the rate did not change,
    n1 is Binomial(n, t1/t) given n, and by Chernoff's bound P(log_ratio >= x) <= 2 exp(-x), whatever the rate.
    """
    rate = (before + after) / (time_before + time_after)
    value = 0.0
    if before > 0.0:
        value += before * log(before / (rate * time_before))
    if after > 0.0:
        value += after * log(after / (rate * time_after))
    return value


@compiled
def change_found(counts: FloatArray, times: FloatArray, most: float) -> int:
    """Before which block a change of one of the rates is the likeliest, its log_ratio at least `most`; 0: before none.

    counts, a row a block, and times: summed from the first block on.
    """
    found, last = 0, times.size - 1
    for split in range(1, times.size):
        early, late = times[split - 1], times[last] - times[split - 1]
        for i in range(counts.shape[1]):
            before = counts[split - 1, i]
            ratio = log_ratio(before, early, counts[last, i] - before, late)
            if ratio >= most:
                most, found = ratio, split
    return found


class ChangeDetection:
    r"""What was seen since the rates last changed, as a likelihood-ratio test tells.

    With each tally, of duration d, every class's counts before and after each of J earlier review times are compared;
    a change is told where log_ratio >= ln(2 m J A / d), and what came before it is forgotten. While rates are constant
    the chance of that is at most d / A with each tally, so a time t after the start, or after the last alarm, a false
    alarm has come with probability t / A at most, and they are A / 2 apart or more on average. (Review times do not
    depend on arrivals, and looking begins anew at an alarm; what came between the change and its alarm counts for the
    rates, not for the next test.) At most MOST_BLOCKS stretches are kept, short ones of late, long ones before.
    """

    def __init__(self, false_alarm_time: float, classes: int) -> None:
        self.false_alarm_time = false_alarm_time  # A
        self.classes = classes
        self.total: Evidence | None = None  # since the last change
        self.blocks: list[Evidence] = []  # since the last alarm
        self.alarms: list[float] = []

    def add(self, tally: Tally) -> Evidence:
        block = _block(tally)
        self.blocks.append(block)
        self.total = block if self.total is None else _sum([self.total, block])
        if len(self.blocks) > MOST_BLOCKS:
            self._merge()
        changed = self._changed(tally.duration)
        if changed:
            self.alarms.append(tally.now)
            self.total, self.blocks = _sum(self.blocks[changed:]), []
        return self.total

    def _changed(self, duration: float) -> int:
        """Before which block the rates changed; 0 if there is no telling."""
        splits = len(self.blocks) - 1
        if splits < 1 or not duration > 0.0:
            return 0
        most = log(2.0 * self.classes * splits * max(1.0, self.false_alarm_time / duration))
        counts = np.cumsum([block.arrivals for block in self.blocks], axis=0)
        return int(change_found(counts, np.cumsum([block.time for block in self.blocks]), most))

    def _merge(self) -> None:
        """Join the two neighbours that are the shortest for how long ago they were; by their times alone."""
        best, where, since = math.inf, 0, self.blocks[-1].time
        for k in range(len(self.blocks) - 3, -1, -1):
            since += self.blocks[k + 1].time
            share = (self.blocks[k].time + self.blocks[k + 1].time) / since
            if share < best:
                best, where = share, k
        self.blocks[where : where + 2] = [_sum(self.blocks[where : where + 2])]


def _block(tally: Tally) -> Evidence:
    return Evidence(
        tally.arrivals.astype(np.float64),
        tally.duration,
        float(tally.departures),
        tally.busy_time,
        float(sum(tally.abandonments.tolist())),
        tally.waiting_time,
    )


def _sum(blocks: list[Evidence]) -> Evidence:
    """Of neighbouring stretches of time, from the first on."""
    whole = blocks[0]
    for one in blocks[1:]:
        whole = Evidence(
            whole.arrivals + one.arrivals,
            whole.time + one.time,
            whole.departures + one.departures,
            whole.busy_time + one.busy_time,
            whole.abandonments + one.abandonments,
            whole.waiting_time + one.waiting_time,
        )
    return whole
