"""What went before each row of an event log: the last event of its job, and when the job came.

Jobs that are under way are carried from one stretch of the log to the next, so memory stays flat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.accounts.log_rows import ABANDON, ADMIT, BLOCK, DEPART, EVENTS, INITIAL, REJECT, START, Rows
from queueing_ucrl.arrays import FloatArray, IntArray

NEW = len(EVENTS)  # in place of the event before: there was none
ENTERS = np.isin(np.arange(NEW), [ADMIT, INITIAL])
ARRIVES = ENTERS | np.isin(np.arange(NEW), [REJECT, BLOCK])
LEAVES = np.isin(np.arange(NEW), [DEPART, ABANDON, REJECT, BLOCK])


@dataclass(frozen=True)
class Before:
    """Of each row that is a job's."""

    at: IntArray  # its place among the rows
    event: IntArray  # the event before it of the same job, or NEW
    arrival: FloatArray  # when the job came; nan: not in this log
    arrival_row: IntArray  # the number of the row that says so, from 0; -1 likewise


class JobRows:
    """Looks at the rows of one run, stretch by stretch."""

    def __init__(self) -> None:
        self.job: Any = np.empty(0, dtype=np.int64)  # of the jobs under way, in order of their first rows
        self.event = np.empty(0, dtype=np.int64)
        self.arrival = np.empty(0)
        self.arrival_row = np.empty(0, dtype=np.int64)

    def take(self, rows: Rows) -> Before:
        """The next rows, and what went before each."""
        import pandas as pd

        at = np.flatnonzero(rows.has_job)
        before = self.event.size
        jobs = np.concatenate([self.job, rows.job[at]]) if before else rows.job[at]
        codes = pd.factorize(jobs)[0]
        count = int(codes.max()) + 1 if codes.size else 0
        # the jobs under way stand first, each as a row of its last event
        events = np.concatenate([self.event, rows.event[at]])
        order = np.argsort(codes, kind="stable")
        same = np.concatenate([[False], codes[order][1:] == codes[order][:-1]]) if codes.size else np.zeros(0, bool)
        previous = np.full(codes.size, NEW)
        previous[order[same]] = events[order[:-1][same[1:]]]
        came = np.flatnonzero(ARRIVES[rows.event[at]])
        arrival = np.concatenate([self.arrival, np.full(count - before, np.nan)])
        arrival_row = np.concatenate([self.arrival_row, np.full(count - before, -1)])
        mine = codes[before:]
        arrival[mine[came]], arrival_row[mine[came]] = rows.time[at[came]], rows.placed(at[came])
        found = Before(at, previous[before:], arrival[mine], arrival_row[mine])
        last = np.full(count, -1)
        last[codes] = np.arange(codes.size)
        under_way = ~LEAVES[events[last]]
        self.job, self.event = jobs[last][under_way], events[last][under_way]
        self.arrival, self.arrival_row = arrival[under_way], arrival_row[under_way]
        return found


def with_waits(rows: Rows, before: Before) -> Rows:
    """The rows with the waits that their log does not tell: from arrival to start, or to giving up."""
    waits = np.full(len(rows), np.nan)
    waited = np.isin(rows.event[before.at], [START, ABANDON])
    waits[before.at[waited]] = rows.time[before.at[waited]] - before.arrival[waited]
    return replace(rows, more={**rows.more, "wait": waits})
