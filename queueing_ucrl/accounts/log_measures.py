"""Measures of an event log (`measures` says what they are): over all of it, by group, by window, by hour of the day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_rows import EventLog, Rows, open_logs
from queueing_ucrl.accounts.log_runs import SECONDS, LogRun, length_of, read_runs, survey
from queueing_ucrl.accounts.log_sums import LEVELS, READ, LogSums
from queueing_ucrl.accounts.measures import EVERYBODY, LOG_MEASURES, QUANTILES, Observed
from queueing_ucrl.accounts.steady_state import BATCHES, mser5
from queueing_ucrl.accounts.wait_histogram import BINS
from queueing_ucrl.accounts.window_measures import WindowMeasures
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import not_negative, positive, whole

if TYPE_CHECKING:
    import pandas as pd

SERIES = 1000  # stretches of a run in which MSER-5 looks for the end of its warm-up
BY = ("class", "server", "episode", "hour", "replication", "controller")
OF_SERVERS = ("throughput", "wait", *QUANTILES, "utilisation")  # the measures by server: rows that name one
OF_COLUMNS = {"revenue": {"reward"}, "cost": {"cost"}, "earned": {"reward", "cost"}}  # what logs must hold for them
COLUMNS = {"class": "job_class", "hour": "job_class", "server": "server"}  # that name a row's group
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


@dataclass
class Measuring:
    """Sums of all runs of some logs."""

    runs: dict[tuple[int, int], LogSums]
    servers: float
    target: float
    by_server: bool = False

    def take(self, key: tuple[int, int], rows: Rows, class_names: Sequence[str], stretches: Stretches) -> None:
        """The next rows of a run."""
        stretch = None
        if stretches.by_episode:
            stretch = np.searchsorted(np.array(stretches.by_episode), rows.episode)
        if self.by_server:
            names = [str(k) for k in range(max(len(self.runs[key].names), int(rows.server.max(initial=-1)) + 1))]
            self.runs[key].take(rows, rows.server, names, stretch)
        else:
            self.runs[key].take(rows, rows.job_class, class_names, stretch)

    @classmethod
    def of(cls, cut: Cut) -> Measuring:
        """Empty sums for a cut."""
        sums = {key: LogSums(cut.stretches.edges_until(end)) for key, end in zip(cut.keys, cut.ends, strict=True)}
        return cls(sums, cut.servers, cut.target, by_server=cut.by == "server")

    def table(self, cut: Cut) -> pd.DataFrame:
        """The measures, once all rows were taken."""
        import pandas as pd

        found = self._by_window(cut) if cut.stretches.apart else pd.DataFrame(list(self._told(cut)))
        for measure, columns in OF_COLUMNS.items():
            if not all(columns <= set(run.log.columns) for run in cut.runs):
                found.loc[found["measure"] == measure, ["mean", "low", "high"]] = math.nan
        found.attrs = {"horizon": cut.horizon, "horizon_from": cut.horizon_from, "runs": len(cut.runs)}
        return found

    def _told(self, cut: Cut) -> Iterator[dict[str, Any]]:
        for about, chosen in cut.stretches.bundles:
            for said, keys in self._kept_apart(cut):
                yield from ({**about, **said, **row} for row in self.rows(chosen, COLUMNS.get(cut.by or ""), keys))

    def _kept_apart(self, cut: Cut) -> list[tuple[dict[str, Any], list[tuple[int, int]]]]:
        """(what is said of them, their keys) of the runs that are told apart."""
        if cut.by == "replication":
            return [({"replication": max(key[1], 0)}, [key]) for key in self.runs]
        if cut.by == "controller":
            names = dict(zip(cut.keys, cut.controllers, strict=True))
            found: dict[str, list[tuple[int, int]]] = {}
            for key in self.runs:
                found.setdefault(names[key], []).append(key)
            return [({"controller": name}, keys) for name, keys in found.items()]
        return [({}, list(self.runs))]

    def _by_window(self, cut: Cut) -> pd.DataFrame:
        """The same as `_told` where each bundle is one stretch, for many of them."""
        import pandas as pd

        column = COLUMNS.get(cut.by or "")
        heads: list[dict[str, Any]] = []
        numbers: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for said, keys in self._kept_apart(cut):
            runs = [self.runs[key] for key in keys]
            known = {
                name: WindowMeasures(runs, name, self._servers_of(name), self.target) for name in self._groups(column)
            }
            for measure, name in self._measured(known):
                about = {column: EVERYBODY if name is None else name} if column else {}
                heads.append({**said, "measure": measure, **about})
                numbers.append(known[name].estimates(measure))
        count, each = len(cut.stretches.bundles), len(heads)
        found: dict[str, Any] = {
            key: np.repeat(np.array([about[key] for about, _ in cut.stretches.bundles]), each)
            for key in cut.stretches.bundles[0][0]
        }
        found |= {key: [head[key] for head in heads] * count for key in heads[0]}
        for k, what in enumerate(("mean", "low", "high")):
            found[what] = np.stack([values[k] for values in numbers], axis=1).ravel()
        return pd.DataFrame(found)

    def _groups(self, column: str | None) -> list[str | None]:
        return [None, *(self.names() if column else [])]

    def _measured(self, groups: Iterable[str | None]) -> Iterator[tuple[str, str | None]]:
        """The measures of each group that apply."""
        groups = list(groups)
        for measure in OF_SERVERS if self.by_server else LOG_MEASURES:
            for name in groups:
                if measure != "utilisation" or name is None or self.by_server:
                    yield measure, name

    def _servers_of(self, name: str | None) -> float:
        return 1.0 if self.by_server and name is not None else self.servers

    def names(self) -> list[str]:
        """Of all groups."""
        return list(dict.fromkeys(name for sums in self.runs.values() for name in sums.names))

    def observed(self, name: str | None, chosen: IntArray, keys: Iterable[Any] | None = None) -> Observed:
        """What is known of a group (None: all) in the chosen stretches of these runs."""
        parts = list(self.runs.values()) if keys is None else [self.runs[key] for key in keys]
        servers = self._servers_of(name)

        def joined(of: Any) -> FloatArray:
            return np.concatenate([of(sums)[chosen] for sums in parts])

        sums = {what: joined(lambda s, what=what: s.total(what, name)) for what in (*parts[0].sums, "reward")}
        sums |= {level: joined(lambda s, level=level: s.integral(level, name)) for level in LEVELS}
        time = joined(lambda s: s.lengths)
        histogram = np.concatenate([sums.histogram(chosen, name) for sums in parts])
        return Observed(
            (name or EVERYBODY,),
            time,
            {what: values[:, None] for what, values in sums.items()},
            sums["busy"],
            np.full(time.size, math.nan) if math.isnan(servers) else servers * time,
            histogram.reshape(time.size, 1, BINS),
        )

    def rows(self, chosen: IntArray, column: str | None, keys: Iterable[Any] | None = None) -> Iterator[dict[str, Any]]:
        """A row for each measure (and group, in this column), those that do not apply left out."""
        keys = None if keys is None else list(keys)
        known = {name: self.observed(name, chosen, keys) for name in self._groups(column)}
        for measure, name in self._measured(known):
            found = known[name].estimate(measure, None, self.target)
            about = {column: EVERYBODY if name is None else name} if column else {}
            yield {"measure": measure, **about, "mean": found.mean, "low": found.low, "high": found.high}


def controllers_of(logs: Sequence[EventLog]) -> list[str]:
    """The controllers that the logs are of, as their metadata say; "" of those that do not."""
    return list(dict.fromkeys(log.controller for log in logs))


def unit_of_time(logs: Sequence[EventLog]) -> str:
    """What the logs' time is counted in, as their metadata say; "" where they do not, or differ."""
    told = {log.units.time for log in logs}
    return told.pop() if len(told) == 1 else ""


def only_of(logs: list[EventLog], controller: str | None) -> list[EventLog]:
    """Those of this controller; all for None."""
    if controller is None:
        return logs
    chosen = [log for log in logs if log.controller == controller]
    if not chosen:
        named = ", ".join(shown(name) for name in controllers_of(logs) if name)
        raise ValueError(f"controller {shown(controller)}: the logs are of {named or 'runs that name none'}")
    return chosen


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
        cls,
        logs: Sequence[EventLog],
        runs: Sequence[LogRun],
        horizon: float | None = None,
        *,
        by: str | None = "class",
        window: float | str | None = None,
        target_wait: float = 0.0,
        start: float = 0.0,
        servers: float | None = None,
        period: float | None = None,
        parts: int = 24,
        time_unit: str = "",
    ) -> Cut:
        """From the options of `metrics`."""
        target, start, by = not_negative(target_wait, "target_wait"), not_negative(start, "start"), checked_by(by)
        names = controllers_of(logs)
        if by != "controller" and len(names) > 1:
            raise ValueError(
                f"the logs are of {len(names)} controllers ({', '.join(map(shown, names))}), which must not be mixed: "
                "choose one (controller), or tell measures by controller"
            )
        if by == "hour":
            if time_unit not in SECONDS:
                raise ValueError(
                    f"by hour: time_unit must say what time is counted in, one of {', '.join(SECONDS)} "
                    "(on the command line --time-unit)"
                )
            period, parts = 86400.0 / SECONDS[time_unit], 24
        if (window is not None) + (period is not None) + (by == "episode") > 1:
            raise ValueError("window, period, by hour and by episode each cut the time: only one of them may be given")
        given = horizon is not None
        horizon, told = _horizon(horizon, runs, start)
        if by == "episode":
            stretches = _episodes(runs, horizon)
        elif period is not None:
            stretches = _parts_of_periods(start, horizon, positive(period, "period"), whole(parts, "parts"))
        elif window is not None:
            stretches = _windows(start, horizon, length_of(window, time_unit))
        else:
            batches = BATCHES if len(runs) == 1 or by == "replication" else 1
            stretches = Stretches(np.linspace(start, horizon, batches + 1), [({}, np.arange(batches))], batches=True)
        keys = [(next(k for k, log in enumerate(logs) if log is run.log), run.replication) for run in runs]
        count = _known_servers(logs) if servers is None else positive(servers, "servers")
        ends = [horizon if given else run.horizon for run in runs] or [horizon]
        controllers = [run.log.controller for run in runs] or [""]
        return cls(runs, keys or [(0, -1)], ends, by, stretches, horizon, told, count, target, controllers)


def checked_by(by: str | None) -> str | None:
    """Whether measures can be told by it."""
    if by is not None and by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)} or None, got {shown(by)}")
    return by


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
    horizon = positive(horizon, "horizon")
    if not start < horizon:
        raise ValueError(f"start must be at least 0 and before the horizon {horizon:g}, got {shown(start)}")
    return horizon, told


def metrics(
    events: pd.DataFrame | str | Path,
    horizon: float | None = None,
    *,
    by: str | None = "class",
    window: float | str | None = None,
    target_wait: float = 0.0,
    start: float = 0.0,
    servers: float | None = None,
    period: float | None = None,
    parts: int = 24,
    time_unit: str = "",
    controller: str | None = None,
) -> pd.DataFrame:
    """Measures of an event log between `start` and `horizon`, a row each: measure, mean and its 95 % interval.

    events: a frame, a Parquet or CSV log, or a folder of logs; files are read row group by row group in flat memory.
    horizon: when it ends; by default what its metadata say, or else its last event (`table.attrs` says which), for each
    run by itself.
    by: "class" (column job_class, all first), "server" (those measures that rows with a server tell), "episode", "hour"
    (of the day, by class), "replication", "controller", or None (over all). window: a row for each window of this
    length, a number in the log's unit of time or a text such as "1h", in columns from and to; the last one ends at the
    horizon.
    period, parts: by parts of a period instead, from the periods that are whole.
    target_wait: for service_level. servers: for utilisation; by default what the metadata say. time_unit: what the
    log's time is counted in (seconds, minutes, hours, days), for by="hour" and windows in other units; by default what
    the metadata say. controller: of a folder of logs of several, the one to read; they are never mixed.

    The interval is from replications where there are several; else by batch means (20 stretches), for an hour of the
    day from the same hour of different days, and for a window of a single run there is none. What a log does not tell
    (money without the columns reward and cost) is nan.
    """
    logs = only_of(open_logs(events), controller)
    runs = [run for log in logs for run in survey(log, episodes=checked_by(by) == "episode")]
    options: dict[str, Any] = {"by": by, "window": window, "target_wait": target_wait, "start": start}
    options |= {"servers": servers, "period": period, "parts": parts, "time_unit": time_unit or unit_of_time(logs)}
    cut = Cut.of(logs, runs, horizon, **options)
    measuring = Measuring.of(cut)
    for key, rows in read_runs(logs, READ):
        measuring.take(key, rows, logs[key[0]].class_names, cut.stretches)
    return measuring.table(cut)


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
