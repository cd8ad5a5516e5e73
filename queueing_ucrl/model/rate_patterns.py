"""Arrival rates that change in time: lambda_i(t) = arrival_rate * factor(t).

A pattern's factor is never negative and never above its ceiling, so arrivals are made exactly by thinning: candidates
come at rate arrival_rate * ceiling, and one at time t is a job with probability factor(t) / ceiling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import sin
from queueing_ucrl.model.checks import listed, number

STEADY, STEPS, SINUSOID = range(3)


@compiled
def pattern_factor(kind: int, data: FloatArray, time: float) -> float:
    """factor(t) from a pattern's code: one function for both engines, so that they agree to the last bit."""
    if kind == STEPS:  # data: period, number of changes n, n times, n + 1 factors
        changes = int(data[1])
        if data[0] < math.inf:
            time = time - data[0] * math.floor(time / data[0])
        j = 0
        while j < changes and time >= data[2 + j]:
            j += 1
        return data[2 + changes + j]
    if kind == SINUSOID:  # data: amplitude, angular speed, phase
        return 1.0 + data[0] * sin(data[1] * time + data[2])
    return 1.0


class ArrivalPattern(ABC):
    """How a class's arrival rate changes in time."""

    kind: ClassVar[str] = "custom"  # the word for it in scenario files and manifests
    period: float  # after which time it begins again; infinite if it never does

    @property
    @abstractmethod
    def code(self) -> tuple[int, FloatArray]:
        """Kind and numbers, as `pattern_factor` takes them."""

    @property
    @abstractmethod
    def ceiling(self) -> float:
        """The largest factor."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The factor's mean in the long run: over a period; of steps that do not come again, the last factor."""

    def factor(self, time: float) -> float:
        """factor(t)."""
        kind, data = self.code
        return float(pattern_factor(kind, data, time))


@dataclass(frozen=True)
class Steady(ArrivalPattern):
    """factor(t) = 1."""

    kind: ClassVar[str] = "steady"
    period: ClassVar[float] = math.inf  # type: ignore[misc]

    @property
    def code(self) -> tuple[int, FloatArray]:
        return STEADY, np.zeros(1)

    @property
    def ceiling(self) -> float:
        return 1.0

    @property
    def mean(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Steps(ArrivalPattern):
    """Piecewise constant: factors[0] until times[0], then factors[1] until times[1], ..; again after `period`."""

    kind: ClassVar[str] = "steps"
    times: Sequence[float]
    factors: Sequence[float]
    period: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "times", tuple(number(t, "steps need numbers: a time") for t in listed(self.times, "steps: times"))
        )
        object.__setattr__(
            self,
            "factors",
            tuple(number(f, "steps need numbers: a factor") for f in listed(self.factors, "steps: factors")),
        )
        if self.period != math.inf:
            object.__setattr__(self, "period", number(self.period, "steps need numbers: period"))
        if len(self.factors) != len(self.times) + 1:
            raise ValueError(
                f"steps need one factor more than times, got {len(self.factors)} factors and {len(self.times)} times"
            )
        edges = (0.0, *self.times, self.period)
        if not all(a < b for a, b in pairwise(edges)) or not all(map(math.isfinite, self.times)):
            raise ValueError("steps need times that increase from above 0 to below the period")
        if not all(0 <= f < math.inf for f in self.factors) or max(self.factors) == 0:
            raise ValueError("steps need factors of at least 0, one of them positive")

    @property
    def code(self) -> tuple[int, FloatArray]:
        return STEPS, np.array([self.period, len(self.times), *self.times, *self.factors])

    @property
    def ceiling(self) -> float:
        return max(self.factors)

    @property
    def mean(self) -> float:
        if math.isinf(self.period):
            return self.factors[-1]
        edges = pairwise((0.0, *self.times, self.period))
        return (
            sum(factor * (end - start) for factor, (start, end) in zip(self.factors, edges, strict=True)) / self.period
        )


@dataclass(frozen=True)
class Sinusoid(ArrivalPattern):
    """factor(t) = 1 + amplitude * sin(2 pi t / period + phase)."""

    kind: ClassVar[str] = "sinusoid"
    amplitude: float
    period: float
    phase: float = 0.0

    def __post_init__(self) -> None:
        for name in ("amplitude", "period", "phase"):
            object.__setattr__(self, name, number(getattr(self, name), f"a sinusoid's {name}"))
        if not 0 <= self.amplitude <= 1:
            raise ValueError(f"a sinusoid's amplitude must be between 0 and 1, got {self.amplitude}")
        if not self.period > 0:
            raise ValueError(f"a sinusoid's period must be a positive number, got {self.period}")
        if not math.isfinite(2.0 * math.pi / self.period):
            raise ValueError(f"a sinusoid's period {self.period:g} is too short for double precision")

    @property
    def code(self) -> tuple[int, FloatArray]:
        return SINUSOID, np.array([self.amplitude, 2.0 * math.pi / self.period, self.phase])

    @property
    def ceiling(self) -> float:
        return 1.0 + self.amplitude

    @property
    def mean(self) -> float:
        return 1.0
