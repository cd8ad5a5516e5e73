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

All but the quantiles are ratios of two sums. Their intervals come from replications (`experiments.study`), or within
one run from stretches of equal length (batch means) or from the periods of the clock (the same hour of many days).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.steady_state import BATCHES, Estimate, batch_sums, estimate, mser5, ratio_estimate
from queueing_ucrl.accounts.wait_histogram import BINS, bins_of, count_within, quantile
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import not_negative, positive, whole

if TYPE_CHECKING:
    import pandas as pd

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
QUANTILES = {"wait_50": 0.5, "wait_80": 0.8, "wait_95": 0.95, "wait_99": 0.99}
MEASURES = (*list(RATIOS)[:7], *QUANTILES, *list(RATIOS)[7:])
EVERYBODY = "all"  # the row over all classes
SERIES = 1000  # stretches of a run in which MSER-5 looks for the end of its warm-up
COUNTED = {"admit": "admitted", "reject": "rejected", "block": "blocked", "start": "started", "abandon": "abandoned"}


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
        above, below = (self._sum(name, who, target) for name in RATIOS[measure])
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


def _cut(time: FloatArray, edges: FloatArray) -> IntArray:
    """The stretch that each time falls into, [a, b); -1: none."""
    places = np.searchsorted(edges, time, side="right") - 1
    return np.where((time >= edges[0]) & (time < edges[-1]), places, -1)


def observed(
    events: pd.DataFrame, class_names: Sequence[str], edges: FloatArray, servers: float | None = None, every: int = 1
) -> Observed:
    """What an event log says of the stretches between `edges`, which are times in order; of every so-many-th one."""
    m, lengths = len(class_names), np.diff(edges)[::every]
    k = lengths.size
    kind = events["event"].astype(str).to_numpy()
    who = events["job_class"].cat.set_categories(list(class_names)).cat.codes.to_numpy().astype(np.int64)
    time = events["time"].to_numpy()
    at = _cut(time, edges)
    inside = (at >= 0) & (at % every == 0) & (who >= 0)
    place = np.where(inside, at // every * m + who, -1)

    def added(chosen: Any, column: str | None = None) -> FloatArray:
        """Numbers (or values of a column) in each stretch and class, one by one in order."""
        values = None if column is None else events[column].to_numpy(dtype=float, na_value=0.0)[chosen]
        return np.bincount(place[chosen], weights=values, minlength=k * m).reshape(k, m).astype(float)

    sums = {name: added(inside & (kind == event)) for event, name in COUNTED.items()}
    started = inside & (kind == "start")
    sums |= {"wait": added(started, "wait"), "cost": added(inside, "cost")}
    waited = started & (events["wait"].to_numpy(dtype=float, na_value=0.0) > 0.0)
    bins = bins_of(events["wait"].to_numpy(dtype=float, na_value=0.0)[waited])
    histogram = np.bincount(place[waited] * BINS + bins, minlength=k * m * BINS).reshape(k, m, BINS)
    return Observed(
        tuple(class_names),
        lengths,
        {**sums, "reward": _rewards(events, place, k * m).reshape(k, m)},
        _busy(kind, who, time, edges)[::every],
        np.full(k, math.nan) if servers is None else servers * lengths,
        histogram,
    )


def _rewards(events: pd.DataFrame, place: IntArray, places: int) -> FloatArray:
    """What was collected; where all rewards of a class are alike, as a run counts it: their number times the reward."""
    reward = events["reward"].to_numpy(dtype=float, na_value=math.nan)
    found = np.zeros(places)
    paid = (place >= 0) & ~np.isnan(reward)
    codes = events["job_class"].cat.codes.to_numpy()
    for code in np.unique(codes[paid]):
        chosen = paid & (codes == code)
        first = reward[chosen][0]
        if (reward[chosen] == first).all():
            found += np.bincount(place[chosen], minlength=places) * first
        else:
            found += np.bincount(place[chosen], weights=reward[chosen], minlength=places)
    return found


def _busy(kind: Any, who: Any, time: FloatArray, edges: FloatArray) -> FloatArray:
    """Server time spent serving in each stretch: from start (or resume) to departure (or breakdown)."""
    known = who >= 0
    begins = np.sort(time[known & np.isin(kind, ["start", "resume"])])
    ends = np.sort(time[known & np.isin(kind, ["depart", "breakdown", "hand-over"])])

    def served(times: FloatArray) -> FloatArray:
        """sum over times before each edge of (edge - time)."""
        before = np.searchsorted(times, edges, side="left")
        return before * edges - np.concatenate([[0.0], np.cumsum(times)])[before]

    return np.diff(served(begins) - served(ends))


def warm_up(events: pd.DataFrame, horizon: float) -> tuple[float, bool]:
    """(when a run is warm by MSER-5, whether that is sure): from the mean number of jobs in 1000 stretches of it."""
    moves = events[events["event"].isin(["admit", "initial", "depart", "abandon"])]
    time = moves["time"].to_numpy()
    edges = horizon * np.arange(SERIES + 1) / SERIES
    total = np.zeros(SERIES + 1)
    for sign, kinds in ((1.0, ["admit", "initial"]), (-1.0, ["depart", "abandon"])):
        times = np.sort(time[moves["event"].isin(kinds).to_numpy()])
        before = np.searchsorted(times, edges, side="left")
        total += sign * (before * edges - np.concatenate([[0.0], np.cumsum(times)])[before])
    found = mser5(np.diff(total) / np.diff(edges))
    return float(edges[found.count]), found.settled


def metrics(
    events: pd.DataFrame,
    horizon: float,
    *,
    target_wait: float = 0.0,
    start: float = 0.0,
    servers: float | None = None,
    period: float | None = None,
    parts: int = 24,
) -> pd.DataFrame:
    """Measures of an event log between `start` and `horizon`: measure, job_class, mean and its 95 % interval.

    The interval is by batch means (20 stretches). target_wait: for service_level. servers: for utilisation. period: by
    the hour of the day instead: a row also for each of `parts` equal parts of the period, its interval from the same
    part of different periods (those that are whole).
    """
    import pandas as pd

    target, horizon = not_negative(target_wait, "target_wait"), positive(horizon, "horizon")
    if not 0.0 <= start < horizon:
        raise ValueError(f"start must be at least 0 and before the horizon {horizon:g}, got {shown(start)}")
    names = [str(name) for name in events["job_class"].cat.categories]
    if period is None:
        edges = start + (horizon - start) * np.arange(BATCHES + 1) / BATCHES
        edges[-1] = math.nextafter(horizon, math.inf)
        return pd.DataFrame(observed(events, names, edges, servers).rows(target))
    period, parts = positive(period, "period"), whole(parts, "parts")
    first, last = math.ceil(start / period), math.floor(horizon / period * (1 + 1e-12))
    if last <= first:
        raise ValueError(f"between {start:g} and {horizon:g} there is no whole period of {period:g}")
    tables = []
    for part in range(parts):
        begins = period * (np.arange(first, last) + part / parts)
        edges = np.column_stack([begins, begins + period / parts]).ravel()
        table = pd.DataFrame(observed(events, names, edges, servers, every=2).rows(target))
        table.insert(0, "to", period * (part + 1) / parts)
        table.insert(0, "from", period * part / parts)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


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
