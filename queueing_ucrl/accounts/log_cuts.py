"""How a log is cut for its measures: into windows, parts of a period, episodes, or batches of equal length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.accounts.log_rows import EventLog
from queueing_ucrl.accounts.log_runs import SECONDS, LogRun, length_of
from queueing_ucrl.accounts.steady_state import BATCHES
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import not_negative, positive, whole

BY = ("class", "server", "episode", "hour", "replication", "controller")
MOST_STRETCHES = 100_000


@dataclass(frozen=True)
class Stretches:
    """The stretches of time of which measures are wanted: those between `edges`, in bundles of one row each."""

    edges: FloatArray
    bundles: list[tuple[dict[str, Any], IntArray]]  # (what is said of it, its stretches, taken to be alike)
    by_episode: tuple[int, ...] = ()  # then a row's episode says its stretch: these in order
    batches: bool = False  # each run is cut into as many, whatever its length

    @property
    def apart(self) -> bool:
        """Whether each stretch has a row of its own, and there are many of them."""
        return len(self.bundles) > 1 and all(chosen.size == 1 for _, chosen in self.bundles)

    def edges_until(self, horizon: float) -> FloatArray:
        """The edges for a run that ends there: it has nothing to say of later stretches."""
        start, end = float(self.edges[0]), math.nextafter(horizon, math.inf)
        if self.batches and horizon > start:
            count = self.edges.size - 1
            edges = start + (horizon - start) * np.arange(count + 1) / count
            edges[-1] = end
            return edges
        return np.minimum(self.edges, max(start, end))


def checked_by(by: str | None) -> str | None:
    """Whether measures can be told by it."""
    if by is not None and by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)} or None, got {shown(by)}")
    return by


@dataclass(frozen=True)
class CutOptions:
    """What measures are wanted: the options of `metrics`, which says what they mean."""

    by: str | None = "class"
    window: float | str | None = None
    target_wait: float = 0.0
    start: float = 0.0
    servers: float | None = None
    period: float | None = None
    parts: int = 24
    time_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_wait", not_negative(self.target_wait, "target_wait"))
        object.__setattr__(self, "start", not_negative(self.start, "start"))
        checked_by(self.by)

    def by_the_clock(self) -> CutOptions:
        """Hours of the day as parts of a period."""
        if self.by != "hour":
            return self
        if self.time_unit not in SECONDS:
            raise ValueError(
                f"by hour: time_unit must say what time is counted in, one of {', '.join(SECONDS)} "
                "(on the command line --time-unit)"
            )
        return replace(self, period=86400.0 / SECONDS[self.time_unit], parts=24)

    def stretches(self, runs: Sequence[LogRun], horizon: float) -> Stretches:
        """The time from the start to the horizon, cut."""
        if self.by == "episode":
            return _episodes(runs, horizon)
        if self.period is not None:
            period, parts = positive(self.period, "period"), whole(self.parts, "parts")
            return _parts_of_periods(self.start, horizon, period, parts)
        if self.window is not None:
            return _windows(self.start, horizon, length_of(self.window, self.time_unit))
        batches = BATCHES if len(runs) == 1 or self.by == "replication" else 1
        edges = np.linspace(self.start, horizon, batches + 1)
        return Stretches(edges, [({}, np.arange(batches))], batches=True)


@dataclass(frozen=True)
class Cut:
    """How a log is cut for its measures, after all options were checked."""

    runs: Sequence[LogRun]
    keys: list[tuple[int, int]]  # of the runs: (place of the log, replication)
    ends: list[float]  # when each of them ends
    by: str | None
    stretches: Stretches
    horizon: float
    horizon_from: str
    servers: float
    target: float
    controllers: list[str]  # of each run; "" where its log does not say

    @classmethod
    def of(
        cls, logs: Sequence[EventLog], runs: Sequence[LogRun], options: CutOptions, horizon: float | None = None
    ) -> Cut:
        """From the options of `metrics`; the horizon by default is the end of each run."""
        names = controllers_of(logs)
        if options.by != "controller" and len(names) > 1:
            raise ValueError(
                f"the logs are of {len(names)} controllers ({', '.join(map(shown, names))}), which must not be mixed: "
                "choose one (controller), or tell measures by controller"
            )
        options = options.by_the_clock()
        if (options.window is not None) + (options.period is not None) + (options.by == "episode") > 1:
            raise ValueError("window, period, by hour and by episode each cut the time: only one of them may be given")
        given = horizon is not None
        horizon, told = _horizon(horizon, runs, options.start)
        keys = [(next(k for k, log in enumerate(logs) if log is run.log), run.replication) for run in runs]
        return cls(
            runs,
            keys or [(0, -1)],
            [horizon if given else run.horizon for run in runs] or [horizon],
            options.by,
            options.stretches(runs, horizon),
            horizon,
            told,
            _known_servers(logs) if options.servers is None else positive(options.servers, "servers"),
            options.target_wait,
            [run.log.controller for run in runs] or [""],
        )


def _horizon(horizon: float | None, runs: Sequence[LogRun], start: float) -> tuple[float, str]:
    """When the log ends, and where that is known from."""
    told = "it was given"
    if horizon is None:
        if not runs:
            raise ValueError("the log has no rows, so its horizon must be given")
        latest = max(runs, key=lambda run: run.horizon)
        horizon, told = latest.horizon, latest.horizon_from
        if not horizon > start:
            raise ValueError(f"the log ends at {horizon:g} ({told}), so it covers no time after {start:g}")
        if not horizon > min(run.first for run in runs):
            raise ValueError(f"all rows of the log are at {horizon:g}, where it ends ({told}): too little to measure")
    horizon = positive(horizon, "horizon")
    if not start < horizon:
        raise ValueError(f"start must be at least 0 and before the horizon {horizon:g}, got {shown(start)}")
    return horizon, told


def controllers_of(logs: Sequence[EventLog]) -> list[str]:
    """The controllers that the logs are of, as their metadata say; "" of those that do not."""
    return list(dict.fromkeys(log.controller for log in logs))


def _known_servers(logs: Sequence[EventLog]) -> float:
    """As many as the logs' metadata say; nan where they say nothing, differ, or servers come and go."""
    told = [log.metadata.get("queue", {}).get("servers") for log in logs]
    numbers = {float(count) for count in told if isinstance(count, (int, float))}
    return numbers.pop() if len(numbers) == 1 and all(isinstance(count, (int, float)) for count in told) else math.nan


def _windows(start: float, horizon: float, window: float) -> Stretches:
    count = math.ceil((horizon - start) / window * (1 - 1e-12))
    if count > MOST_STRETCHES:
        raise ValueError(f"window {window:g} cuts the log into {count:,} windows; at most {MOST_STRETCHES:,} are made")
    edges = np.minimum(start + window * np.arange(count + 1), horizon)
    ends = edges.copy()
    edges[-1] = math.nextafter(horizon, math.inf)
    about = [{"from": float(ends[k]), "to": float(ends[k + 1])} for k in range(count)]
    return Stretches(edges, [(said, np.array([k])) for k, said in enumerate(about)])


def _parts_of_periods(start: float, horizon: float, period: float, parts: int) -> Stretches:
    """Whole periods, the same part of each in one bundle."""
    first, last = math.ceil(start / period), math.floor(horizon / period * (1 + 1e-12))
    if last <= first:
        raise ValueError(f"between {start:g} and {horizon:g} there is no whole period of {period:g}")
    if (last - first) * parts > MOST_STRETCHES:
        raise ValueError(
            f"{last - first} periods of {parts} parts are more than the {MOST_STRETCHES:,} stretches that are made"
        )
    places = np.arange((last - first) * parts + 1)
    edges = period * (first + places // parts + (places % parts) / parts)
    begins = period * np.arange(parts + 1) / parts
    bundles = [
        ({"from": float(begins[part]), "to": float(begins[part + 1])}, np.arange(part, places.size - 1, parts))
        for part in range(parts)
    ]
    return Stretches(edges, bundles)


def _episodes(runs: Sequence[LogRun], horizon: float) -> Stretches:
    if len(runs) != 1:
        raise ValueError("by episode: the log must be of one run; each has its own episodes")
    starts = {number: time for number, time in runs[0].episode_starts.items() if number >= 0}
    if not starts:
        raise ValueError("by episode: the log has no column 'episode', or nothing in it")
    if len(starts) > MOST_STRETCHES:
        raise ValueError(f"by episode: {len(starts):,} episodes are more than the {MOST_STRETCHES:,} that are made")
    numbers = sorted(starts)
    edges = np.array([starts[number] for number in numbers] + [math.nextafter(horizon, math.inf)])
    edges[0] = min(edges[0], 0.0)
    about = [{"episode": number} for number in numbers]
    return Stretches(edges, [(said, np.array([k])) for k, said in enumerate(about)], tuple(numbers))
