"""Small types that both engines share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Progress = Callable[[float], None]  # is told the simulated time now and then


PROGRESS_STEPS = 100


def stops(grid: Iterable[float], horizon: float, progress: Progress | None) -> list[tuple[float, bool]]:
    """Times before the horizon at which an engine pauses, and whether each is one of the grid: the others only tell
    how far the run is.
    """
    wanted = {float(time) for time in grid if time < horizon}
    told = {horizon * k / PROGRESS_STEPS for k in range(1, PROGRESS_STEPS)} if progress else set()
    return [(time, time in wanted) for time in sorted(wanted | told)]


class EventSink(Protocol):
    """Whatever takes the rows of the event log."""

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows (dtype event_log.ROW)."""
        ...

    def close(self) -> None:
        """No more rows."""
        ...

    def abandon(self) -> None:
        """The run was stopped."""
        ...


@dataclass(frozen=True)
class Unfinished:
    """A job that is still in the system at the horizon."""

    job: int
    job_class: int
    arrival: float
    start: float  # when it joined a server; nan: it still waits, and its holding cost has not been charged

    @property
    def waiting(self) -> bool:
        """Whether it has not joined a server."""
        return math.isnan(self.start)
