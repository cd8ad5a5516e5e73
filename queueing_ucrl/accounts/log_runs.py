"""The runs that are in a log: how long each is, and its rows apart from those of the others.

A log may hold one run, several replications, or be a folder of files of one run each. The time a log ends at is what
its metadata say (the horizon), or else that of its last event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queueing_ucrl.accounts.job_rows import JobRows, with_waits
from queueing_ucrl.accounts.log_rows import EventLog, Rows

SECONDS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86400.0}
SHORT = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass
class LogRun:
    """One run in a log."""

    log: EventLog
    replication: int  # -1: the log does not say
    last: float  # time of its last event
    rows: int
    first: float = math.inf  # time of its first event
    episode_starts: dict[int, float] = field(default_factory=dict)

    @property
    def _told(self) -> float | None:
        told = self.log.metadata.get("horizon")
        return float(told) if isinstance(told, (int, float)) and self.last <= told < math.inf else None

    @property
    def horizon(self) -> float:
        """When it ends."""
        return self.last if self._told is None else self._told

    @property
    def horizon_from(self) -> str:
        """Where that is known from."""
        return "its last event" if self._told is None else "the log's metadata"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def split(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each replication apart."""
    replication = rows.replication
    if not (replication != replication[0]).any():
        yield int(replication[0]), rows
        return
    for value in np.unique(replication).tolist():
        yield value, rows.only(replication == value)


def survey(log: EventLog, episodes: bool = False) -> list[LogRun]:
    """The runs of a log, by replication; episodes: also when each of their episodes began."""
    if not episodes:
        known = _by_statistics(log)
        if known is not None:
            return [known]
    found: dict[int, LogRun] = {}
    for rows in log.rows(("replication", "episode") if episodes else ("replication",)):
        for value, mine in split(rows):
            run = found.setdefault(value, LogRun(log, value, -math.inf, 0))
            run.last, run.rows = max(run.last, float(mine.time.max())), run.rows + len(mine)
            run.first = min(run.first, float(mine.time.min()))
            if episodes:
                numbers, first = np.unique(mine.episode, return_index=True)
                for number, k in zip(numbers.tolist(), first.tolist(), strict=True):
                    run.episode_starts.setdefault(number, float(mine.time[k]))
    return [found[value] for value in sorted(found)]


def _by_statistics(log: EventLog) -> LogRun | None:
    """Of a Parquet file whose row groups say it: the last time, and that there is but one replication."""
    if log.kind != "parquet":
        return None
    import pyarrow.parquet as pq

    about = pq.read_metadata(log.path)
    places = {about.schema.column(k).path: k for k in range(about.num_columns)}
    spans: dict[str, list[tuple[Any, Any]]] = {"time": [], "replication": []}
    for name, found in spans.items():
        for group in range(about.num_row_groups if name in places else 0):
            stats = about.row_group(group).column(places[name]).statistics
            if stats is None or not stats.has_min_max or stats.null_count:
                return None
            found.append((stats.min, stats.max))
    if not spans["time"] or not all(_is_number(high) for _, high in spans["time"]):
        return None
    values = {value for span in spans["replication"] for value in span}
    if len(values) > 1 or not all(isinstance(value, int) for value in values):
        return None
    last = max(high for _, high in spans["time"])
    first = min(low for low, _ in spans["time"])
    return LogRun(log, next(iter(values), -1), float(last), about.num_rows, float(first))


def read_runs(logs: Sequence[EventLog], columns: Sequence[str]) -> Iterator[tuple[tuple[int, int], Rows]]:
    """All rows of all runs, with ((place of the log, replication), rows); waits that a log does not tell are found."""
    asked = tuple(dict.fromkeys((*columns, "replication")))
    for place, log in enumerate(logs):
        jobs: dict[int, JobRows] = {}
        for rows in log.rows(asked):
            for value, mine in split(rows):
                if "wait" in asked and "wait" not in log.columns:
                    mine = with_waits(mine, jobs.setdefault(value, JobRows()).take(mine))
                yield (place, value), mine


def length_of(window: float | str, unit: str, name: str = "window") -> float:
    """A length of time in a log's unit: a number as it stands, or text such as "1h" where the unit is known."""
    from queueing_ucrl.messages import shown

    if isinstance(window, str):
        text = window.strip()
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        word = text[len(digits) :].strip()
        try:
            number = float(digits)
        except ValueError:
            number = math.nan
        if word and word not in SHORT and word not in SECONDS:
            raise ValueError(f"{name} {shown(window)}: the unit must be one of {', '.join((*SHORT, *SECONDS))}")
        if word and unit not in SECONDS:
            raise ValueError(
                f"{name} {shown(window)}: the log does not say what its time is counted in; give a number, or its unit "
                f"of time, one of {', '.join(SECONDS)}"
            )
        length = number * ({**SHORT, **SECONDS}[word] / SECONDS[unit] if word else 1.0)
    else:
        length = float(window)
    if not (0.0 < length < math.inf):
        raise ValueError(f'{name} must be a positive number, or a text such as "1h", got {shown(window)}')
    return length
