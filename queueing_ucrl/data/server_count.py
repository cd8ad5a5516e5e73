"""How many servers are there? What overlapping services tell.

At no time are more services under way than there are servers: the largest overlap is a lower bound. It is the number if
jobs wait while exactly so many are being served, for nobody waits beside a free server. Where the number being served
while jobs wait depends on the hour, or on the day, servers come and go.

At equal times services end before others begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.data.observed import slot_of

SURE = 0.95  # of the time in which jobs wait, this share at one number of services makes it the number of servers
ENOUGH_WAITS = 10  # in all, or within a slot or a day
SLOTS = 24


@dataclass(frozen=True)
class Staffing(Finding):
    """What a part of the time tells: an hour of the day, or a day."""

    begin: float
    end: float
    most: int  # services at once
    servers: int | None  # while jobs waited, for 95 % of the time and in 10 waits at least
    waiting_time: float  # in which jobs waited


@dataclass(frozen=True)
class ServerCount(Finding):
    """How many servers, as far as services tell."""

    at_least: int  # services at once
    servers: int | None  # the number, where it is known and does not change
    share: float  # of the time in which jobs waited, with `at_least` services under way; nan if none waited
    waiting_time: float
    waits: int
    while_waiting: dict[int, float]  # number of services: share of the time in which jobs waited
    by_slot: tuple[Staffing, ...]  # of the day; empty without `day`
    by_day: tuple[Staffing, ...]
    shifts: bool  # the number depends on the hour
    changes: bool  # the number depends on the day

    @property
    def words(self) -> str:
        """`5`, `at least 5`, or what changes."""
        if self.servers is not None:
            return str(self.servers)
        if self.shifts or self.changes:
            found = sorted({s.servers for s in (*self.by_slot, *self.by_day) if s.servers is not None})
            return f"{found[0]} to {found[-1]}, by {'the hour' if self.shifts else 'the day'}"
        return f"at least {self.at_least}"


@dataclass(frozen=True)
class _Path:
    """Step functions: so many being served and waiting from each start on, for a length."""

    start: FloatArray
    length: FloatArray
    busy: IntArray
    waiting: IntArray


def server_count(
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    *,
    waits: Sequence[Sequence[float]] | FloatArray | None = None,
    tolerance: float = 0.0,
    day: float | None = None,
    slots: int = SLOTS,
) -> ServerCount:
    """The number of servers from services (start, end) and waits (from when to when, also of those who gave up).

    `tolerance`: services are taken to end so much earlier, where ends were rounded up.
    """
    served = _pairs(np.stack([np.asarray(starts, np.float64), np.asarray(ends, np.float64)], axis=1), "services")
    if not len(served):
        raise ValueError("the number of servers needs services, and there are none")
    queued = _pairs(np.empty((0, 2)) if waits is None else np.asarray(waits, np.float64).reshape(-1, 2), "waits")
    queued = queued[queued[:, 1] > queued[:, 0]]
    served = np.stack([served[:, 0], np.maximum(served[:, 0], served[:, 1] - tolerance)], axis=1)
    path = _path(served, queued, day / slots if day else None)
    most = int(path.busy.max(initial=0))
    crowded = path.length * (path.waiting > 0)
    time = np.bincount(path.busy, crowded, minlength=most + 1)
    total = float(time.sum())
    shares = {b: float(time[b] / total) for b in np.flatnonzero(time).tolist()} if total > 0 else {}
    by_slot: tuple[Staffing, ...] = ()
    by_day: tuple[Staffing, ...] = ()
    if day:
        middle, began = path.start + 0.5 * path.length, queued[:, 0]
        by_slot = _staffing(path, slot_of(middle, day, slots), slot_of(began, day, slots), day / slots)
        number = np.floor(middle / day).astype(np.int64)
        by_day = _staffing(path, number, np.floor(began / day).astype(np.int64), day)
    shifts, changes = _differs(by_slot), _differs(by_day)
    share = shares.get(most, 0.0) if shares else math.nan
    known = share >= SURE and len(queued) >= ENOUGH_WAITS and not (shifts or changes)
    return ServerCount(
        most, most if known else None, share, total, len(queued), shares, by_slot, by_day, shifts, changes
    )


def _pairs(pairs: FloatArray, name: str) -> FloatArray:
    if not np.all(np.isfinite(pairs)):
        raise ValueError(f"{name} must begin and end at finite times: leave unfinished ones out")
    if np.any(pairs[:, 1] < pairs[:, 0]):
        k = int(np.argmax(pairs[:, 1] < pairs[:, 0]))
        raise ValueError(f"{name} must not end before they begin: {pairs[k, 0]:g} to {pairs[k, 1]:g}")
    return pairs


def _path(served: FloatArray, queued: FloatArray, width: float | None) -> _Path:
    first = min(x.min() for x in (served, queued) if x.size)
    last = max(x.max() for x in (served, queued) if x.size)
    marks = width * np.arange(math.ceil(first / width), math.floor(last / width) + 1) if width else np.empty(0)
    times = np.concatenate([served[:, 0], served[:, 1], queued[:, 0], queued[:, 1], marks])
    a, b, c = len(served), len(queued), marks.size
    busy = np.repeat([1, -1, 0, 0, 0], [a, a, b, b, c])
    waiting = np.repeat([0, 0, 1, -1, 0], [a, a, b, b, c])
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    # the state between two different times: what stands after the last of equal ones
    final = np.append(ordered[1:] > ordered[:-1], True)
    start = ordered[final]
    return _Path(start[:-1], np.diff(start), np.cumsum(busy[order])[final][:-1], np.cumsum(waiting[order])[final][:-1])


def _staffing(path: _Path, parts: IntArray, parts_of_waits: IntArray, width: float) -> tuple[Staffing, ...]:
    found = []
    crowded = path.length * (path.waiting > 0)
    waits = {int(k): int(n) for k, n in zip(*np.unique(parts_of_waits, return_counts=True), strict=True)}
    order = np.argsort(parts, kind="stable")
    names, begins = np.unique(parts[order], return_index=True)
    for name, rows in zip(names.tolist(), np.split(order, begins[1:]), strict=True):
        time = np.bincount(path.busy[rows], crowded[rows])
        total, likely = float(time.sum()), int(np.argmax(time))
        sure = total > 0 and time[likely] >= SURE * total and waits.get(name, 0) >= ENOUGH_WAITS
        most = int(path.busy[rows].max())
        found.append(Staffing(name * width, (name + 1) * width, most, likely if sure else None, total))
    return tuple(found)


def _differs(parts: tuple[Staffing, ...]) -> bool:
    return len({part.servers for part in parts if part.servers is not None}) > 1
