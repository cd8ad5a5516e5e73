"""One pass through an event log, row group by row group: the queue in time, the waits, the arrivals in a period.

Memory does not grow with the log. The number of jobs in time is kept as its least and its largest value in each of many
short stretches, so that no peak is lost, however short it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.wait_histogram import BINS, bin_edge, bins_of
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown_path
from queueing_ucrl.report.animation import DOWN, UP

if TYPE_CHECKING:
    import pandas as pd

BUCKETS = 1000  # stretches of time
FIRST_CHANGES = 300  # that are kept one by one
PARTS = 24  # of a period
ARRIVALS = ("admit", "reject", "block")
COLUMNS = ("time", "event", "job_class", "in_system", "wait")


class Extremes:
    """The least, the largest and the mean value of a step function in each of `count` stretches of [0, horizon].

    The value that holds when a stretch begins belongs to it. What comes at the very border of two stretches belongs to
    the later one. The first `FIRST_CHANGES` changes are kept as they are.
    """

    def __init__(self, horizon: float, count: int = BUCKETS) -> None:
        self.horizon, self.count = horizon, count
        self.low = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        self.high = np.full(count, -1, dtype=np.int64)
        self._last = 0  # value
        self._at = 0  # the stretch that was reached; the value that holds when it began is in
        self.low[0] = self.high[0] = 0
        self._time, self._integral = 0.0, 0.0  # of the last change, and of the values up to it
        self._integrals = np.zeros(count + 1)  # up to where each stretch begins
        self._reached = 1  # the first of these that is not known yet
        self.first: tuple[FloatArray, IntArray] = (np.zeros(1), np.zeros(1, dtype=np.int64))  # times, values from then

    def take(self, times: FloatArray, values: IntArray) -> None:
        """The next changes, in time order: from each time on its value."""
        if not times.size:
            return
        self._add_up(times, values)
        room = FIRST_CHANGES + 1 - self.first[0].size
        self.first = (np.append(self.first[0], times[:room]), np.append(self.first[1], values[:room]))
        place = np.minimum((times * (self.count / self.horizon)).astype(np.int64), self.count - 1)
        starts = np.flatnonzero(np.diff(place, prepend=-1))  # where another stretch begins
        groups = place[starts]
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        before = np.concatenate([[self._last], values[starts[1:] - 1]])  # what held when each of them began
        ends = np.concatenate([[self._at], groups[:-1]])
        for group, value, end in zip(groups.tolist(), before.tolist(), ends.tolist(), strict=True):
            if group > end:  # stretches without a change, and the beginning of this one
                self.low[end + 1 : group + 1] = value
                self.high[end + 1 : group + 1] = value
        self.low[groups] = np.minimum(self.low[groups], low)
        self.high[groups] = np.maximum(self.high[groups], high)
        self._last, self._at = int(values[-1]), int(groups[-1])

    def _add_up(self, times: FloatArray, values: IntArray) -> None:
        """The integrals up to the changes, and up to the borders that they pass."""
        at = np.append(self._time, times)
        held = np.append(self._last, values)
        passed = self._integral + np.append(0.0, np.cumsum(held[:-1] * np.diff(at)))
        until = int(np.searchsorted(self.starts, times[-1], side="right"))
        borders = self.starts[self._reached : until]
        k = np.searchsorted(at, borders, side="right") - 1
        self._integrals[self._reached : until] = passed[k] + held[k] * (borders - at[k])
        self._reached = max(self._reached, until)
        self._time, self._integral = float(times[-1]), float(passed[-1])

    @property
    def means(self) -> FloatArray:
        """Of each stretch, when all is known."""
        found: FloatArray = np.diff(self._integrals) * (self.count / self.horizon)
        return found

    def finish(self) -> None:
        """To the end nothing changes."""
        borders = np.append(self.starts, self.horizon)[self._reached :]
        self._integrals[self._reached :] = self._integral + self._last * np.maximum(borders - self._time, 0.0)
        self.low[self._at + 1 :] = self._last
        self.high[self._at + 1 :] = self._last
        self._at = self.count - 1

    @property
    def starts(self) -> FloatArray:
        """When the stretches begin."""
        return np.arange(self.count, dtype=np.float64) * np.float64(self.horizon / self.count)


class LogScan:
    """What a page shows of one event log."""

    def __init__(self, path: Path, classes: list[str], horizon: float, periods: list[float]) -> None:
        """periods: by class; infinite where there is none."""
        self.classes, self.horizon, self.periods = classes, horizon, periods
        self.extremes = Extremes(horizon)
        self._places = {name: i for i, name in enumerate(classes)}
        self.events = 0
        self.waits = np.zeros((len(classes), BINS), dtype=np.int64)
        self.started = np.zeros(len(classes), dtype=np.int64)
        self.arrivals = np.zeros((len(classes), PARTS), dtype=np.int64)
        for frame in _frames(path):
            self._take(frame)
        self.extremes.finish()

    def _take(self, frame: pd.DataFrame) -> None:
        self.events += len(frame)
        time = frame["time"].to_numpy(dtype=float)
        event = frame["event"].cat
        step = _of_codes(event, lambda name: 1 if name in UP else -1 if name in DOWN else 0, 0)
        changes = step != 0
        level = frame["in_system"].to_numpy(dtype=np.int64) + step
        self.extremes.take(time[changes], level[changes])
        group = _of_codes(frame["job_class"].cat, lambda name: self._places.get(name, -1), -1)
        kind = _of_codes(event, lambda name: 1 if name == "start" else 2 if name in ARRIVALS else 0, 0)
        wait = frame["wait"].to_numpy(dtype=float)
        for i, period in enumerate(self.periods):
            mine = group == i
            waited = wait[mine & (kind == 1)]
            self.started[i] += waited.size
            self.waits[i] += np.bincount(bins_of(waited[waited > 0.0]), minlength=BINS)
            if np.isfinite(period):
                phase = np.mod(time[mine & (kind == 2)], period) / period
                parts = np.minimum((phase * PARTS).astype(np.int64), PARTS - 1)
                self.arrivals[i] += np.bincount(parts, minlength=PARTS)

    def longer_than(self, job_class: int) -> tuple[FloatArray, FloatArray]:
        """(waits, share of the jobs that joined a server and waited at least so long): at the edges of the bins."""
        counts, total = self.waits[job_class], int(self.started[job_class])
        used = np.flatnonzero(counts)
        if not total:
            return np.zeros(0), np.zeros(0)
        if not used.size:
            return np.zeros(1), np.zeros(1)
        edges = np.array([0.0, *(bin_edge(int(j)) for j in used), bin_edge(int(used[-1]) + 1)])
        above = counts[used][::-1].cumsum()[::-1]
        return edges, np.array([above[0], *above, 0]) / total

    def exposure(self, job_class: int) -> FloatArray:
        """How long each part of the class's period was looked at."""
        period = self.periods[job_class]
        width = period / PARTS
        whole, rest = divmod(self.horizon, period)
        return whole * width + np.clip(rest - width * np.arange(PARTS), 0.0, width)


def _of_codes(categories: Any, number: Callable[[str], int], missing: int) -> IntArray:
    """A number for each row of a categorical column, by its category."""
    table = np.array([*(number(str(name)) for name in categories.categories), missing], dtype=np.int64)
    return table[categories.codes.to_numpy()]  # the code of what is missing is -1


def _frames(path: Path) -> Iterator[Any]:
    """The log's row groups, with the columns that are needed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from queueing_ucrl.simulation.event_log import as_frame

    try:
        with pq.ParquetFile(path) as file:
            for k in range(file.num_row_groups):
                yield as_frame(file.read_row_group(k, columns=list(COLUMNS)))
    except (pa.ArrowException, KeyError) as error:
        raise ValueError(f"{shown_path(path)}: cannot be read as a Parquet event log ({error})") from None
