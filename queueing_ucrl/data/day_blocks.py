r"""Days of a log, drawn anew: the block bootstrap.

A log of n days x_1 .. x_n is made into another of n days by drawing each of them from x_1 .. x_n with replacement, of
the same weekday where the log has four weeks at least. Jobs of a day stay together, with their works: whatever depends
on what within a day is kept. A statistic T of B such logs has the standard error

    s = sd(T_1 .. T_B) sqrt(n / (n - 1)),          interval T(log) +- t_{n-1} s,

t_{n-1} Student's quantile; the factor makes good that n days spread around their own mean.

A day is the period of the clock. Without one, or with fewer than five whole days, a block is a twentieth of the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL, Estimate
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.trace_file import LoggedJobs
from queueing_ucrl.model.quantiles import student_quantile

FEWEST_DAYS = 5
WEEK = 7
WEEKS = 4  # from so many on, weekdays are kept
PARTS = 20  # of a log without days
MISSING = 0.05  # of a day: one that lacks no more at an end of the log is whole
ROUNDING = 1e-9  # of a day


@dataclass(frozen=True)
class Blocks:
    """Stretches of a log, equally long."""

    starts: tuple[float, ...]
    length: float
    kind: str  # "days" or "twentieths"
    weekdays: bool  # whether a day is drawn from those of its weekday
    observed: float  # how much of the log is in them, of the time in which it was kept
    left_out: float  # how much is not: parts of days at its ends

    @property
    def count(self) -> int:
        """n."""
        return len(self.starts)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Which block stands in which place."""
        uniform = rng.random(self.count)
        if not self.weekdays:
            return (uniform * self.count).astype(np.int64)
        places = np.arange(self.count)
        alike = (self.count - 1 - places % WEEK) // WEEK + 1  # how many have the weekday of each place
        return places % WEEK + WEEK * (uniform * alike).astype(np.int64)


def blocks_of(jobs: LoggedJobs) -> Blocks:
    """The days of a log, or its twentieths."""
    days = None if jobs.day is None else _days(jobs, jobs.day)
    if days is not None and days.count >= FEWEST_DAYS:
        return days
    length = jobs.duration / PARTS
    return Blocks(tuple(jobs.begin + k * length for k in range(PARTS)), length, "twentieths", False, jobs.duration, 0.0)


def _days(jobs: LoggedJobs, day: float) -> Blocks:
    """From midnight to midnight. A part of a day at an end is a whole one if little of it is missing, or if nobody ever
    comes in the rest of it.
    """
    first, last = math.floor(jobs.begin / day + ROUNDING), math.ceil(jobs.end / day - ROUNDING)
    phases = jobs.times - day * np.floor(jobs.times / day)
    opened, closed = jobs.begin - first * day, jobs.end - (last - 1) * day
    lost = 0.0
    if opened > MISSING * day and bool(np.any(phases < opened)):
        lost += min((first + 1) * day, jobs.end) - jobs.begin
        first += 1
    if closed < (1.0 - MISSING) * day and last > first and bool(np.any(phases > closed)):
        lost += jobs.end - max((last - 1) * day, jobs.begin)
        last -= 1
    starts = tuple(k * day for k in range(first, last))
    return Blocks(starts, day, "days", len(starts) >= WEEKS * WEEK, jobs.duration - lost, lost)


def resampled(jobs: LoggedJobs, blocks: Blocks, chosen: Sequence[int]) -> tuple[LoggedJobs, IntArray]:
    """(the log with these blocks one after the other, from time 0 on; which job of the old one each is)."""
    times, kept = [], []
    for place, block in enumerate(chosen):
        start = blocks.starts[block]
        end = start + blocks.length
        if end >= jobs.end - ROUNDING * blocks.length:
            end = math.inf  # the last instant is the last block's
        rows = np.arange(*np.searchsorted(jobs.times, [start, end]).tolist())
        within = np.minimum(jobs.times[rows] - start, blocks.length)  # more is a rounding error
        times.append(np.minimum(place * blocks.length + within, (place + 1) * blocks.length))
        kept.append(rows)
    rows = np.concatenate(kept)
    length = len(chosen) * blocks.length
    log = replace(jobs, times=np.concatenate(times), classes=jobs.classes[rows], begin=0.0, end=length)
    return replace(log, works=jobs.works[rows], decisions=jobs.decisions[rows]), rows


def block_interval(seen: float, drawn: Sequence[float] | FloatArray, blocks: Blocks) -> Estimate:
    """What was seen in the log, with Student's interval by what it is in logs that were drawn from it."""
    values = np.asarray(drawn, dtype=float).tolist()
    n, mean = blocks.count, math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) * math.sqrt(n / (n - 1.0))
    return Estimate(seen, student_quantile(LEVEL, n - 1.0) * spread, n)
