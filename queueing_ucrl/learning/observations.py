"""What an agent is shown of an arrival that has room, as numbers: one encoder for Gymnasium environments and for agents
that are put in control.

Two kinds:

    box       s / S, the class one-hot; then elapsed / horizon, the phase of the period from 0 to 1,
              the environment one-hot
    integers  s, the class; then the hour (of 24 in a period), the environment's state

What stands behind the semicolon is shown only where it is asked for. One arrival gives a row of `size` numbers, arrays
of arrivals an array of rows, the same numbers to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import positive, whole

KINDS = ("box", "integers")
HOURS = 24  # in a period, of the kind "integers"

Rows = npt.NDArray[Any]  # float32 of the kind "box", int64 of "integers"


@dataclass(frozen=True)
class Observations:
    """The encoder of a queue with room for S jobs of m classes.

    horizon: also show the time since the start, as a share of this one. period: also show where in a period of this
    length it is. environments: also show which of so many states the environment is in; 0: do not.
    """

    capacity: int
    classes: int
    kind: str = "box"
    horizon: float | None = None
    period: float | None = None
    environments: int = 0

    def __post_init__(self) -> None:
        for name, least in (("capacity", 1), ("classes", 1), ("environments", 0)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least))
        for name in ("horizon", "period"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(getattr(self, name), name))
        if self.kind not in KINDS:
            raise ValueError(f"observation must be {' or '.join(KINDS)}, got {shown(self.kind)}")
        if self.kind == "integers" and self.horizon is not None:
            raise ValueError('elapsed time is no whole number: it can be shown in observations of the kind "box" only')

    @property
    def shows_time(self) -> bool:
        """Whether it depends on more than the number of jobs, the class and the environment."""
        return self.horizon is not None or self.period is not None

    @property
    def dtype(self) -> type[np.generic]:
        return np.float32 if self.kind == "box" else np.int64

    @property
    def size(self) -> int:
        """How many numbers one arrival gives."""
        time = (self.horizon is not None) + (self.period is not None)
        if self.kind == "box":
            return 1 + self.classes + time + self.environments
        return 2 + time + (self.environments > 0)

    @cached_property
    def low(self) -> Rows:
        """The least that each number can be."""
        return np.zeros(self.size, dtype=self.dtype)

    @cached_property
    def high(self) -> Rows:
        """The most that each number can be, of the kind "box"; a time beyond the horizon is shown as more than 1."""
        highest = np.ones(self.size, dtype=np.float32)
        if self.horizon is not None:
            highest[1 + self.classes] = np.inf
        return highest

    @cached_property
    def counts(self) -> IntArray:
        """How many values each number can have, of the kind "integers"; s goes from 0 to S."""
        hours = [HOURS] if self.period is not None else []
        environments = [self.environments] if self.environments else []
        return np.array([self.capacity + 1, self.classes, *hours, *environments], dtype=np.int64)

    @cached_property
    def _class_rows(self) -> Rows:
        """A row for each class, with all else 0."""
        rows = np.zeros((self.classes, self.size), dtype=self.dtype)
        if self.kind == "box":
            rows[:, 1 : 1 + self.classes] = np.eye(self.classes, dtype=np.float32)
        else:
            rows[:, 1] = np.arange(self.classes)
        return rows

    def encode(
        self, in_system: npt.ArrayLike, job_class: IntArray | int, now: npt.ArrayLike = 0.0, environment: Any = 0
    ) -> Rows:
        """What is shown of arrivals of these classes that find so many jobs, at these times: a row each."""
        rows: Rows = self._class_rows.take(job_class, axis=0)
        box = self.kind == "box"
        rows[..., 0] = np.divide(in_system, self.capacity) if box else in_system
        place = 1 + (self.classes if box else 1)
        if self.horizon is not None:
            rows[..., place] = np.divide(now, self.horizon)
            place += 1
        if self.period is not None:
            phase = np.remainder(now, self.period) / self.period
            rows[..., place] = phase if box else np.minimum(np.floor(HOURS * phase), HOURS - 1)
            place += 1
        if self.environments:
            if box:
                rows[..., place:] = np.equal.outer(environment, np.arange(self.environments))
            else:
                rows[..., place] = environment
        return rows

    def grid(self) -> Rows:
        """All states s = 0 .. S - 1 and classes (and environments, slowest): row (e S + s) m + i; not the time."""
        e, s, i = np.indices((max(self.environments, 1), self.capacity, self.classes)).reshape(3, -1)
        return self.encode(s, i, 0.0, e)
