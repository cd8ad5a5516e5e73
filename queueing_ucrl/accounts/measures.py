r"""Measures of a run, by class and over all: what an operator asks for, from counts or from an event log.

Over a stretch of time, and of the jobs for which the event happened in it,

    arrivals        jobs that came, per unit of time
    throughput      jobs that joined a server, per unit of time
    admitted, rejected, blocked
                    share of the jobs that came: let in, turned away by the policy, no room
    abandoned       share of the jobs let in that gave up
    wait            mean wait of the jobs that joined a server; wait_50 .. wait_99 their quantiles
    service_level   of the jobs whose wait ended, those that joined a server within the target time
    utilisation     share of the servers' time spent serving (over all classes only)
    revenue, cost, earned
                    rewards, costs of waits (and of giving up), and their difference, per unit of time

    in_system, in_queue
                    mean number of jobs in time (of an event log only)

All but the quantiles are ratios of two sums. Their intervals come from replications (`experiments.study`), or within
one run from stretches of equal length (batch means) or from the periods of the clock (the same hour of many days).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import BATCHES, Estimate, batch_sums, estimate, ratio_estimate
from queueing_ucrl.accounts.wait_histogram import count_within, quantile
from queueing_ucrl.arrays import FloatArray, IntArray

# numerator and denominator, by the names of sums
RATIOS = {
    "arrivals": ("arrivals", "time"),
    "throughput": ("started", "time"),
    "admitted": ("admitted", "arrivals"),
    "rejected": ("rejected", "arrivals"),
    "blocked": ("blocked", "arrivals"),
    "abandoned": ("abandoned", "admitted"),
    "wait": ("wait", "started"),
    "service_level": ("within", "ended"),
    "utilisation": ("busy", "server_time"),
    "revenue": ("reward", "time"),
    "cost": ("cost", "time"),
    "earned": ("earned", "time"),
}
IN_TIME = {"in_system": ("in_system", "time"), "in_queue": ("in_queue", "time")}
QUANTILES = {"wait_50": 0.5, "wait_80": 0.8, "wait_95": 0.95, "wait_99": 0.99}
MEASURES = (*list(RATIOS)[:7], *QUANTILES, *list(RATIOS)[7:])
LOG_MEASURES = (*MEASURES, *IN_TIME)  # what an event log tells
EVERYBODY = "all"  # the row over all classes


@dataclass(frozen=True)
class Observed:
    """What happened in k stretches of time: sums by class (k rows, m columns), and the waits."""

    class_names: tuple[str, ...]
    time: FloatArray  # the stretches' lengths
    sums: dict[str, FloatArray]  # admitted, rejected, blocked, started, abandoned, wait, reward, cost
    busy: FloatArray  # server time spent serving
    server_time: FloatArray  # of all servers on duty; nan: not known
    histogram: IntArray  # of the waits by stretch and class: k, m, bins

    def _sum(self, name: str, who: int | None, target: float) -> FloatArray:
        if name == "time":
            return self.time
        if name in ("busy", "server_time"):
            return getattr(self, name) if who is None else np.full(self.time.size, math.nan)
        if name == "within":
            started = self.sums["started"]
            table = np.array(
                [
                    [count_within(self.histogram[k, i], int(started[k, i]), target) for i in range(started.shape[1])]
                    for k in range(self.time.size)
                ]
            ).reshape(started.shape)
        else:
            parts = {"arrivals": ("admitted", "rejected", "blocked"), "ended": ("started", "abandoned")}
            if name == "earned":
                table = self.sums["reward"] - self.sums["cost"]
            else:
                table = np.zeros_like(self.sums["started"])
                for part in parts.get(name, (name,)):
                    table = table + self.sums[part]
        return np.array([math.fsum(row) for row in table.tolist()]) if who is None else table[:, who]

    def estimate(self, measure: str, who: int | None = None, target: float = 0.0) -> Estimate:
        """A measure of a class (None: of all) over all stretches, which are taken to be alike and independent."""
        if measure in QUANTILES:
            return self._quantile(QUANTILES[measure], who)
        above, below = (self._sum(name, who, target) for name in (RATIOS | IN_TIME)[measure])
        if not (np.isfinite(above).all() and np.isfinite(below).all()):
            return Estimate(math.nan, math.nan, self.time.size)
        return ratio_estimate(above, below)

    def _quantile(self, level: float, who: int | None) -> Estimate:
        """Of all waits; its interval from the quantiles of the stretches."""
        chosen = slice(None) if who is None else slice(who, who + 1)
        started = self.sums["started"][:, chosen].sum(axis=1).astype(np.int64)
        waits = self.histogram[:, chosen].sum(axis=1)
        whole_run = quantile(waits.sum(axis=0), int(started.sum()), level)
        each = [quantile(waits[k], int(started[k]), level) for k in range(self.time.size)]
        known = [value for value in each if not math.isnan(value)]
        half = estimate(known).half_width if len(known) == len(each) else math.nan
        return Estimate(whole_run, half, len(each))

    def _whose(self, measure: str) -> tuple[int | None, ...]:
        """Over all (None), then by class; servers are busy over all only."""
        return (None,) if measure == "utilisation" else (None, *range(len(self.class_names)))

    def rows(self, target: float) -> list[dict[str, Any]]:
        """A row for each measure and class, those that do not apply left out."""
        found = []
        for measure in MEASURES:
            for who in self._whose(measure):
                known = self.estimate(measure, who, target)
                name = EVERYBODY if who is None else self.class_names[who]
                found.append(
                    {"measure": measure, "job_class": name, "mean": known.mean, "low": known.low, "high": known.high}
                )
        return found

    def values(self, target: float) -> dict[str, list[float | None]]:
        """The means as plain data, by measure: over all, then by class; None where there is nothing to measure."""
        found: dict[str, list[float | None]] = {}
        for measure in MEASURES:
            means = [self.estimate(measure, who, target).mean for who in self._whose(measure)]
            found[measure] = [None if math.isnan(mean) else mean for mean in means]
        return found


def batch_estimate(times: FloatArray, totals: FloatArray) -> Estimate:
    """What a total that is noted at evenly spaced times grows by per unit of time; by batch means.

    nan as half-width where the times are too few, or not evenly spaced: then there are no stretches of equal length.
    """
    mean = float(totals[-1] / times[-1])
    step = times[-1] / times.size
    even = bool(np.all(np.abs(times - step * np.arange(1, times.size + 1)) <= 1e-6 * step))
    if times.size < 2 * BATCHES or not even:
        return Estimate(mean, math.nan, 1)
    increments = np.diff(np.concatenate([[0.0], totals]))
    sums = batch_sums(increments)
    return Estimate(mean, estimate(sums / (step * (times.size // BATCHES))).half_width, BATCHES)
