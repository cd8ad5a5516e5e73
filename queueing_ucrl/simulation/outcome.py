"""Small types that both engines share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Progress = Callable[[float], None]  # is told the simulated time now and then


class EventSink(Protocol):
    """Whatever takes the rows of the event log."""

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows (dtype event_log.ROW)."""
        ...

    def close(self) -> None:
        """No more rows."""
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
