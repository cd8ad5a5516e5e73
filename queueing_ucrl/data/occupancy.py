"""What the jobs that are there tell: how many servers, and whether arrivals depend on the crowd."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.arrivals_fit import LEAST_DAYS
from queueing_ucrl.data.balking import BalkingTest, balking
from queueing_ucrl.data.poisson_tests import find_rounding
from queueing_ucrl.data.server_count import ServerCount, server_count
from queueing_ucrl.data.tables import JobTable

LEAST = 10  # services
UNKNOWN_SHARE = 0.02  # of jobs whose end is not known: with more, who is there is not known
MOST_JOBS = 1_000_000
SMALL_SLACK = 0.01  # of a mean service: with more, services would be cut short


def fit_servers(table: JobTable) -> ServerCount | None:
    """The number of servers from overlapping services; None where starts are not known."""
    known = ~np.isnan(table.waits) & ~np.isnan(table.works)
    if int(known.sum()) < LEAST or len(table) > MOST_JOBS:
        return None
    starts = table.times[known] + table.waits[known]
    queued = table.waits > 0
    waits = np.stack([table.times[queued], table.times[queued] + table.waits[queued]], axis=1)
    return server_count(starts, starts + table.works[known], waits=waits, tolerance=_slack(table), day=_day(table))


def _slack(table: JobTable) -> float:
    """How far an end may seem to lie behind the start that followed it at once.

    Time, wait and service are each rounded, say to r_t, r_w and r_s. An end, their sum, less a start, the sum of two,
    is then off by r_t + r_w + r_s / 2 at most. The last bits of such sums count too.
    """
    least = max(table.resolution, 1e-9 * abs(table.end))
    works, waits = (column[~np.isnan(column)] for column in (table.works, table.waits))
    grids = [find_rounding(column).resolution for column in (table.times, waits, works)]
    moved = 2.0 * table.resolution  # times that were moved within what they were rounded to are off by as much again
    slack = max(moved, grids[0]) + grids[1] + 0.5 * grids[2]
    return max(least, slack) if slack <= SMALL_SLACK * float(works.mean()) else least


@dataclass(frozen=True)
class Stays:
    """When jobs that were let in entered and left; inf: they are there still."""

    entries: FloatArray
    exits: FloatArray


def known_stays(table: JobTable) -> Stays | None:
    """Who is there when; None where that is not known."""
    refused = np.zeros(len(table), dtype=bool)
    if table.decisions is not None:
        refused = np.isin(table.decisions, ["reject", "block"])
    gave_up = np.zeros(len(table), dtype=bool) if table.abandoned is None else table.abandoned
    inside = ~refused
    lasts = np.where(gave_up, table.waits, table.waits + table.works)
    unknown = inside & np.isnan(lasts)
    if not inside.any() or len(table) > MOST_JOBS or unknown.sum() > UNKNOWN_SHARE * inside.sum():
        return None
    known = lasts[inside & ~unknown]
    if known.size < LEAST:
        return None
    # jobs that were there when the log ended have no end; of others without one nothing is known
    still_there = unknown & (table.times > table.end - 20.0 * float(known.mean()))
    inside = inside & (~unknown | still_there)
    exits = np.where(still_there, math.inf, table.times + lasts)
    inside = inside & (exits > table.times)  # who was there for no time, as stamps tell, was met by nobody
    return Stays(table.times[inside], exits[inside])


def fit_balking(
    table: JobTable, stays: Stays, name: str | None = None, dispersion: float = 1.0, *, by_age: bool = False
) -> BalkingTest:
    """Whether arrivals, of one class or of all, depend on the number in the system; their counts vary `dispersion`
    times as Poisson counts do. by_age: compared at the same time since the last arrival of the class.
    """
    names = table.names if name is None else [name]
    classes = [table.times[table.of_class(one)] for one in names]
    times, observed = table.times if name is None else classes[0], (table.begin, table.end)
    apart = [of for of in classes if of.size] if by_age else []
    more: dict[str, Any] = {"day": _day(table), "dispersion": dispersion, "by_age": apart}
    return balking(times, stays.entries, stays.exits, observed, **more)


def _day(table: JobTable) -> float | None:
    """A day, where the log has some: hours that were seen once tell nothing."""
    return table.day if table.day is not None and table.end - table.begin >= LEAST_DAYS * table.day else None
