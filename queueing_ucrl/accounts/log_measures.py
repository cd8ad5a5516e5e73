"""Measures of an event log (`measures` says what they are): over all of it, by group, by window, by hour of the day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_cuts import Cut, CutOptions, Stretches, checked_by, controllers_of
from queueing_ucrl.accounts.log_rows import EventLog, Rows, open_logs
from queueing_ucrl.accounts.log_runs import read_runs, survey
from queueing_ucrl.accounts.log_sums import LEVELS, READ, LogSums
from queueing_ucrl.accounts.measures import EVERYBODY, LOG_MEASURES, QUANTILES, Observed
from queueing_ucrl.accounts.steady_state import mser5
from queueing_ucrl.accounts.wait_histogram import BINS
from queueing_ucrl.accounts.window_measures import WindowMeasures
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown

if TYPE_CHECKING:
    import pandas as pd

SERIES = 1000  # stretches of a run in which MSER-5 looks for the end of its warm-up
OF_SERVERS = ("throughput", "wait", *QUANTILES, "utilisation")  # the measures by server: rows that name one
OF_COLUMNS = {"revenue": {"reward"}, "cost": {"cost"}, "earned": {"reward", "cost"}}  # what logs must hold for them
COLUMNS = {"class": "job_class", "hour": "job_class", "server": "server"}  # that name a row's group


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
    options = CutOptions(by, window, target_wait, start, servers, period, parts, time_unit or unit_of_time(logs))
    cut = Cut.of(logs, runs, options, horizon)
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
