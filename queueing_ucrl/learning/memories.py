"""Memories add up what was seen: all of it, a sliding window of it, or all of it with exponential discounting."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.elementary import exp
from queueing_ucrl.learning.controller import Tally


@dataclass(frozen=True)
class Evidence:
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
