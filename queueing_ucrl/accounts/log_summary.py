"""All that is told of an event log, in one pass through it: what it is, its measures, its course in time, its laws."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_checks import READ as CHECKED
from queueing_ucrl.accounts.log_checks import Law, RunChecks, checks_of, verdict
from queueing_ucrl.accounts.log_cuts import Cut, CutOptions, controllers_of
from queueing_ucrl.accounts.log_measures import Measuring, only_of
from queueing_ucrl.accounts.log_rows import ADMIT, BLOCK, EVENTS, INITIAL, REJECT, EventLog, Rows, open_logs
from queueing_ucrl.accounts.log_runs import LogRun, read_runs, survey
from queueing_ucrl.accounts.log_sums import LEVELS
from queueing_ucrl.accounts.log_sums import READ as SUMMED
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = 60  # of the picture
DEFAULT = "class or controller"
LARGEST_MANIFEST = 10_000_000  # bytes
MOST_WINDOWS = 10_000  # that are told one by one


@dataclass
class Course:
    """The number in the system and the arrivals in equal stretches of the time of a log, means over its runs."""

    edges: FloatArray
    ends: dict[tuple[int, int], float]  # of each run: when it ends

    def __post_init__(self) -> None:
        count = self.edges.size - 1
        self.arrived = np.zeros(count)
        self.net = np.zeros(count, dtype=np.int64)
        self.partial = np.zeros(count)
        self.left = dict.fromkeys(self.ends, 0)  # jobs that have not left, of each run

    def take(self, key: tuple[int, int], rows: Rows) -> None:
        """The next rows of a run."""
        count = self.arrived.size
        at = np.clip(np.searchsorted(self.edges, rows.time, side="right") - 1, 0, count - 1)
        came = (rows.event == ADMIT) | (rows.event == REJECT) | (rows.event == BLOCK)
        self.arrived += np.bincount(at[came], minlength=count)
        sigma = np.where(rows.has_job, LEVELS["in_system"][rows.event], 0)
        self.left[key] += int(sigma.sum())
        self.net += np.bincount(at, weights=sigma, minlength=count).astype(np.int64)
        self.partial += np.bincount(at, weights=sigma * (self.edges[1:][at] - rows.time), minlength=count)

    def _after(self, end: float) -> FloatArray:
        """How much of each stretch lies after the end of a run."""
        return np.clip(self.edges[1:] - end, 0.0, np.diff(self.edges))

    @property
    def _time(self) -> FloatArray:
        """Of all runs in each stretch."""
        lengths = np.diff(self.edges)
        return np.sum([lengths - self._after(end) for end in self.ends.values()], axis=0)

    @property
    def arrivals(self) -> FloatArray:
        """Per unit of time."""
        return self.arrived / np.maximum(self._time, 1e-300)

    @property
    def in_system(self) -> FloatArray:
        """Mean number of jobs."""
        area = (np.cumsum(self.net) - self.net) * np.diff(self.edges) + self.partial
        for key, end in self.ends.items():
            area = area - self.left[key] * self._after(end)
        found: FloatArray = area / np.maximum(self._time, 1e-300)
        return found


@dataclass(frozen=True)
class LogSummary:
    """What a log is and says."""

    logs: list[EventLog]
    runs: list[LogRun]
    events: dict[str, int]  # rows by kind
    jobs: int  # that came, or were there at time 0
    begin: float  # time of the first row
    last: float  # of the last one
    horizon: float
    horizon_from: str
    title: str  # of the scenario, where it is known
    units: Units
    measures: pd.DataFrame
    windows: pd.DataFrame | None
    course: Course
    laws: list[Law] | None  # None: not asked for

    @property
    def broken(self) -> list[Law]:
        """The laws that the log breaks."""
        return [law for law in self.laws or [] if law.holds is False]


def manifest_of(path: Path) -> dict[str, Any]:
    """What the study's folder says, where a log lies in one: its title and units; nothing elsewhere."""
    for folder in list(path.absolute().parents)[:4] + ([path.absolute()] if path.is_dir() else []):
        file = folder / "manifest.json"
        try:
            if is_plain_file(file) and file.stat().st_size <= LARGEST_MANIFEST:
                found = json.loads(file.read_text(encoding="utf-8"))
                if isinstance(found, dict) and "units" in found and "title" in found:
                    return found
        except (OSError, ValueError, RecursionError):
            continue
    return {}


def units_of(logs: Sequence[EventLog], manifest: dict[str, Any], time_unit: str = "") -> Units:
    """What time and money are counted in, as far as it is known: given, by the logs, by the study's folder."""
    told = manifest.get("units")
    told = told if isinstance(told, dict) else {}

    def word(name: str) -> str:
        of_logs = next((word for log in logs if (word := getattr(log.units, name))), "")
        of_study = told.get(name)
        return of_logs or (of_study if isinstance(of_study, str) else "")

    return Units(time_unit or word("time"), word("money"))


def _windows(logs: Sequence[EventLog], runs: Sequence[LogRun], options: CutOptions) -> Cut:
    """The log cut into windows, as many as a reader can take in."""
    windows = Cut.of(logs, runs, options)
    if (count := len(windows.stretches.bundles)) > MOST_WINDOWS:
        raise ValueError(
            f"window {shown(options.window)} cuts the log into {count:,} windows, and at most {MOST_WINDOWS:,} are "
            "told one by one: give a longer one (qu.metrics gives more as a table)"
        )
    return windows


class _OnePass:
    """All that is summed up while the rows of a log go by."""

    def __init__(self, logs: list[EventLog], cuts: list[Cut], course: Course, *, check: bool) -> None:
        self.logs, self.course, self.check = logs, course, check
        self.measuring = [(cut, Measuring.of(cut)) for cut in cuts]
        self.counts = np.zeros(len(EVENTS), dtype=np.int64)
        self.begin = math.inf
        self.checks: dict[tuple[int, int], RunChecks] = {}

    def read(self) -> None:
        """Every row once."""
        for key, rows in read_runs(self.logs, (*SUMMED, *CHECKED) if self.check else SUMMED):
            log = self.logs[key[0]]
            self.counts += np.bincount(rows.event, minlength=len(EVENTS))
            self.begin = min(self.begin, float(rows.time.min()))
            for cut, sums in self.measuring:
                sums.take(key, rows, log.class_names, cut.stretches)
            self.course.take(key, rows)
            if self.check:
                if key not in self.checks:
                    self.checks[key] = checks_of(log)
                self.checks[key].take(rows)

    @property
    def events(self) -> dict[str, int]:
        """Rows by kind."""
        return {name: int(count) for name, count in zip(EVENTS, self.counts, strict=True) if count}


def summarise(
    source: pd.DataFrame | str | Path,
    *,
    by: str | None = DEFAULT,
    window: float | str | None = None,
    target_wait: float = 0.0,
    time_unit: str = "",
    controller: str | None = None,
    check: bool = True,
) -> LogSummary:  # long: an option a line, a field a line
    """Read a log once and tell all of it. The options are those of `metrics`; check: whether it keeps the laws.

    by: unless it is given, by class, or by controller where the logs are of several.
    """
    logs = only_of(open_logs(source), controller)
    if by == DEFAULT:
        by = "class" if len(controllers_of(logs)) == 1 else "controller"
    manifest = manifest_of(Path(source)) if isinstance(source, (str, Path)) else {}
    units = units_of(logs, manifest, time_unit)
    runs = [run for log in logs for run in survey(log, episodes=by == "episode")]
    if not runs:
        raise logs[0].wrong("has no rows")
    options = CutOptions(by=by, target_wait=target_wait, time_unit=units.time)
    cuts = [Cut.of(logs, runs, options)]
    if window is not None:
        cuts.append(_windows(logs, runs, replace(options, window=window)))
    begin, last = min(0.0, *(run.first for run in runs)), max(run.last for run in runs)
    ends = dict(zip(cuts[0].keys, cuts[0].ends, strict=True))
    read = _OnePass(logs, cuts, Course(np.linspace(begin, cuts[0].horizon, COLUMNS + 1), ends), check=check)
    read.read()
    tables = [sums.table(cut) for cut, sums in read.measuring]
    return LogSummary(
        logs=logs,
        runs=runs,
        events=read.events,
        jobs=sum(read.events.get(EVENTS[code], 0) for code in (ADMIT, REJECT, BLOCK, INITIAL)),
        begin=read.begin,
        last=last,
        horizon=cuts[0].horizon,
        horizon_from=cuts[0].horizon_from,
        title=next((log.title for log in logs if log.title), "") or str(manifest.get("title", "")),
        units=units,
        measures=tables[0],
        windows=tables[1] if window is not None else None,
        course=read.course,
        laws=verdict(read.checks, logs) if check else None,
    )
