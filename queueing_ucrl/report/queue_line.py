r"""The number of jobs in time, from an event log of any length: few points, and every extreme among them.

Time is cut into stretches [j w, (j + 1) w), w a power of two; of each the first, the least, the greatest and the last
value are kept, with their times. A stretch of width w is made of two of width w / 2, so what is thinned out again and
again, as a long log goes by, ends with the same points as if it had been thinned out at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("time", "event", "job", "in_system")
STRETCHES = 2000  # more than a printed line has dots to tell apart
HELD = 50  # times as many points are thinned out at a time
# what an event changes, of those in the system and of those who wait; a breakdown only where it interrupts a job
SYSTEM_STEP = {"admit": 1, "initial": 1, "depart": -1, "abandon": -1}
QUEUE_STEP = {"admit": 1, "initial": 1, "start": -1, "resume": -1, "abandon": -1, "hand-over": 1, "breakdown": 1}

Points = tuple[FloatArray, IntArray]


def decimated(time: FloatArray, value: IntArray, stretches: int = STRETCHES) -> Points:
    """First, least, greatest and last value of each stretch of time."""
    if time.size < 3 or time[-1] <= time[0]:
        return time, value
    width = 2.0 ** math.ceil(math.log2((time[-1] - time[0]) / stretches))
    place = np.floor(time / width)
    first = np.flatnonzero(np.diff(place, prepend=-np.inf))
    last = np.append(first[1:], time.size) - 1
    keep = np.zeros(time.size, dtype=np.bool_)
    keep[first] = keep[last] = True
    lengths = last - first + 1
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(value == np.repeat(extreme.reduceat(value, first), lengths))
        _, earliest = np.unique(np.searchsorted(first, reached, side="right"), return_index=True)
        keep[reached[earliest]] = True
    return time[keep], value[keep]


class Thinned:
    """A line that comes in pieces, in time order; memory does not grow with it. A short one keeps all its points."""

    def __init__(self, stretches: int = STRETCHES) -> None:
        self.stretches = stretches
        self.taken = 0  # points
        self._pieces: list[Points] = []
        self._held = 0

    def take(self, time: FloatArray, value: IntArray) -> None:
        """The next piece."""
        self._pieces.append((time, value))
        self._held += time.size
        self.taken += time.size
        if self._held > HELD * self.stretches:
            self._pieces = [self.points()]
            self._held = self._pieces[0][0].size

    def points(self) -> Points:
        """What is left of the line."""
        time = np.concatenate([time for time, _ in self._pieces])
        value = np.concatenate([value for _, value in self._pieces])
        return decimated(time, value, self.stretches) if self.taken > 4 * self.stretches else (time, value)


@dataclass(frozen=True)
class QueueLine:
    """Jobs from each time on, until the next."""

    in_system: Points
    waiting: Points | None  # None: the log does not begin with its run
    events: int
    thinned: bool  # whether points were left out


class _Reader:
    """Goes through a log; what happens at the same time happens at once."""

    def __init__(self, stretches: int) -> None:
        self.system, self.queue = Thinned(stretches), Thinned(stretches)
        self.whole = True  # whether the log tells of all jobs that are there
        self.events = 0
        self._last: tuple[float, int, int] | None = None  # time, in the system, waiting: of the last time so far

    def take(self, frame: pd.DataFrame) -> None:
        """The next rows."""
        if frame.empty:
            return
        time = frame["time"].to_numpy(dtype=float)
        kind = frame["event"].astype("category")
        system = frame["in_system"].to_numpy(dtype=np.int64) + _steps(kind, SYSTEM_STEP)
        step = _steps(kind, QUEUE_STEP)
        step[(kind == "breakdown").to_numpy() & frame["job"].isna().to_numpy()] = 0
        waiting = np.cumsum(step)
        if self._last is None:
            self.whole = bool(frame["in_system"].iloc[0] == 0)
        else:
            time = np.concatenate([[self._last[0]], time])
            system = np.concatenate([[self._last[1]], system])
            waiting = np.concatenate([[0], waiting]) + self._last[2]
        self.events += len(frame)
        self._check(time)
        over = np.append(time[1:] != time[:-1], False)  # the last of its time, and that of the frame may go on
        self._last = float(time[-1]), int(system[-1]), int(waiting[-1])
        self._add(time[over], system[over], waiting[over])

    def _check(self, time: FloatArray) -> None:
        if not np.isfinite(time).all():
            raise ValueError("events: a time is missing or not finite")
        if (back := np.flatnonzero(np.diff(time) < 0)).size:
            k = int(back[0])
            raise ValueError(
                f"events: time {time[k + 1]:g} comes after time {time[k]:g}; a log must be of one run, in time order"
            )

    def _add(self, time: FloatArray, system: IntArray, waiting: IntArray) -> None:
        if self.whole and waiting.size and waiting.min() < 0:
            raise ValueError(
                f"events: at time {time[int(np.argmax(waiting < 0))]:g} more jobs have begun than were let in"
            )
        self.system.take(time, system)
        self.queue.take(time, waiting)

    def line(self) -> QueueLine:
        """When there are no more rows."""
        if self._last is None:
            raise ValueError("events: the log holds no events")
        time, system, waiting = self._last
        self._add(np.array([time]), np.array([system]), np.array([waiting]))
        in_system, in_queue = self.system.points(), self.queue.points()
        return QueueLine(
            in_system, in_queue if self.whole else None, self.events, in_system[0].size < self.system.taken
        )


def _steps(kind: pd.Series, steps: dict[str, int]) -> IntArray:
    """Of each event of a categorical column; of none, 0."""
    known = np.array([*(steps.get(str(name), 0) for name in kind.cat.categories), 0], dtype=np.int64)
    return known[kind.cat.codes.to_numpy()]


def queue_line(frames: Iterable[pd.DataFrame], stretches: int = STRETCHES) -> QueueLine:
    """The line of a log that comes in frames, in time order."""
    reader = _Reader(stretches)
    for frame in frames:
        reader.take(frame)
    return reader.line()
