"""The log that a scenario was fitted from: one row a job, in a file beside the scenario's.

time       when it came, in the scenario's unit of time
job_class  its class, by name
work       how long its service took; empty: not known
decision   "admit", "reject" or "block" (no room); empty: not known
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.messages import printable, shown, shown_path
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.scenario.columns import numbers_of, read_columns

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("time", "job_class", "work", "decision")
UNKNOWN, ADMIT, REJECT, BLOCK = range(4)
DECISIONS = {"admit": ADMIT, "reject": REJECT, "block": BLOCK}


@dataclass(frozen=True, eq=False)
class LoggedJobs:
    """Jobs as they came, in the order of time."""

    times: FloatArray
    classes: IntArray  # places in the scenario's list of classes
    works: FloatArray  # nan: not known
    decisions: IntArray  # UNKNOWN, ADMIT, REJECT or BLOCK
    begin: float  # the log was kept from here
    end: float  # to here
    day: float | None = None  # the period of the clock

    @property
    def duration(self) -> float:
        """How long the log was kept."""
        return self.end - self.begin

    @property
    def has_decisions(self) -> bool:
        """Whether it says of any job what was decided."""
        return bool(np.any(self.decisions != UNKNOWN))


def read_trace(scenario: Scenario) -> LoggedJobs:
    """The jobs of a scenario's table [data]; one message names the file, the column and the row that are wrong."""
    data = scenario.data
    if data is None:
        raise ScenarioError(f"{shown_path(scenario.path)}: has no table [data]")
    try:
        frame = read_columns(scenario.path.parent, data.trace, COLUMNS)
        times, works = _times(frame, data.begin, data.end), _works(frame)
        classes, decisions = _classes(frame, scenario.system.class_names), _decisions(frame)
    except ValueError as error:
        words = str(error) if str(error).startswith("the file") else f"the file {shown(data.trace)}: {error}"
        raise ScenarioError(printable(f"{shown_path(scenario.path)}: data: {words}")) from None
    return LoggedJobs(times, classes, works, decisions, data.begin, data.end, data.day)


def _times(frame: pd.DataFrame, begin: float, end: float) -> FloatArray:
    times = numbers_of(frame, "time")
    outside = (times < begin) | (times > end)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"column 'time' must lie between begin = {begin:g} and end = {end:g}, got {times[row]:g} in row {row + 1}"
        )
    back = np.diff(times) < 0
    if back.any():
        raise ValueError(f"column 'time' must never go back in time, but does in row {int(np.argmax(back)) + 2}")
    return times


def _works(frame: pd.DataFrame) -> FloatArray:
    works = frame["work"]
    missing = works.isna().to_numpy()
    if missing.all():
        return np.full(len(frame), math.nan)
    if works.dtype.kind not in "iuf":
        given = next(v for v in works[~missing].tolist() if not isinstance(v, (int, float)) or isinstance(v, bool))
        raise ValueError(f"column 'work' must hold numbers, got {shown(given)}")
    array = np.array(works, dtype=np.float64)
    wrong = ~missing & ~((array >= 0.0) & (array < math.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"column 'work' must hold finite numbers of at least 0, got {array[row]:g} in row {row + 1}")
    return array


def _coded(frame: pd.DataFrame, column: str, known: dict[Any, int], empty: int | None, remedy: str) -> IntArray:
    """A column of words as numbers; a ValueError names the first row with another one."""
    import pandas as pd

    places, words = pd.factorize(frame[column])
    codes = np.array(
        [known.get(word, -1) for word in words.tolist()] + [-1 if empty is None else empty], dtype=np.int64
    )
    found = codes[places]  # -1, a missing one, is the last
    wrong = found < 0
    if wrong.any():
        row = int(np.argmax(wrong))
        given = "nothing" if places[row] < 0 else shown(words[places[row]])
        raise ValueError(f"column {shown(column)} {remedy}, got {given} in row {row + 1}")
    return found


def _classes(frame: pd.DataFrame, names: tuple[str, ...]) -> IntArray:
    classes = _coded(
        frame, "job_class", {name: i for i, name in enumerate(names)}, None, "must hold classes of this scenario"
    )
    for i, name in enumerate(names):
        if not np.any(classes == i):
            raise ValueError(f"column 'job_class' has no row of class {shown(name)}")
    return classes


def _decisions(frame: pd.DataFrame) -> IntArray:
    return _coded(frame, "decision", DECISIONS, UNKNOWN, f"must hold {', '.join(DECISIONS)} or nothing")
