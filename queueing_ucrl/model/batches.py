"""Jobs that come together: a batch is admitted job by job, and each of its jobs has its own work."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import log1p
from queueing_ucrl.messages import shown
from queueing_ucrl.model.arrivals import ArrivalProcess, ArrivalStream, Generators, Poisson
from queueing_ucrl.model.checks import listed, number, whole
from queueing_ucrl.model.laws import Stream
from queueing_ucrl.variates import Exponentials, Uniforms

LARGEST_BATCH = 10**6
BATCHES_AT_A_TIME = 1024  # the numbers do not depend on it


class BatchSizes(ABC):
    """How many jobs a batch has: whole numbers from 1 on."""

    kind: ClassVar[str]
    mean: float

    @abstractmethod
    def stream(self, rng: np.random.Generator) -> Stream:
        """Independent sizes, from a generator that nobody else uses."""


@dataclass(frozen=True)
class FixedSizes(BatchSizes):
    """Always the same."""

    kind: ClassVar[str] = "fixed"
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "a batch's size"))
        if self.size > LARGEST_BATCH:
            raise ValueError(f"a batch's size must be at most {LARGEST_BATCH}, got {shown(self.size)}")

    @property
    def mean(self) -> float:  # type: ignore[override]
        return float(self.size)

    def stream(self, rng: np.random.Generator) -> Stream:
        return _Sizes(Uniforms(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        numbers[:] = self.size


@dataclass(frozen=True)
class GeometricSizes(BatchSizes):
    """P(N > n) = (1 - 1 / mean)^n, n = 0, 1, ..: N = 1 + floor(E / -log(1 - 1 / mean)) with E exponential."""

    kind: ClassVar[str] = "geometric"
    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", number(self.mean, "a batch's mean size"))
        if not 1.0 <= self.mean <= LARGEST_BATCH:
            raise ValueError(f"a batch's mean size must lie between 1 and {LARGEST_BATCH}, got {self.mean:g}")

    def stream(self, rng: np.random.Generator) -> Stream:
        return _Sizes(Exponentials(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        if self.mean == 1.0:
            numbers[:] = 1.0
        else:
            numbers[:] = 1.0 + np.floor(numbers / -log1p(-1.0 / self.mean))


@dataclass(frozen=True)
class EmpiricalSizes(BatchSizes):
    """One of the sizes that were seen, each as likely as the others."""

    kind: ClassVar[str] = "empirical"
    values: Sequence[int]

    def __post_init__(self) -> None:
        values = tuple(whole(size, "a batch's size") for size in listed(self.values, "the sizes of batches"))
        object.__setattr__(self, "values", values)
        if not values or max(values) > LARGEST_BATCH:
            raise ValueError(f"the sizes of batches must be a list of sizes, none above {LARGEST_BATCH}")

    @property
    def mean(self) -> float:  # type: ignore[override]
        return sum(self.values) / len(self.values)

    def stream(self, rng: np.random.Generator) -> Stream:
        return _Sizes(Uniforms(rng), self)

    def transform(self, numbers: FloatArray) -> None:
        sizes = np.array(self.values, dtype=float)
        numbers[:] = sizes[(numbers * sizes.size).astype(np.int64)]


@dataclass(frozen=True)
class _Sizes:
    stream: Stream
    sizes: FixedSizes | GeometricSizes | EmpiricalSizes

    def fill(self, out: FloatArray) -> None:
        self.stream.fill(out)
        self.sizes.transform(out)


@dataclass(frozen=True)
class Batches(ArrivalProcess):
    """Batches come as `arrivals` says, and have `sizes`: a number, a list of sizes as likely as each other, or a law
    of sizes.
    """

    kind: ClassVar[str] = "batches"
    arrivals: ArrivalProcess
    sizes: BatchSizes

    def __post_init__(self) -> None:
        if not isinstance(self.arrivals, ArrivalProcess):
            raise TypeError(f"batches: arrivals must be an arrival process, got {shown(self.arrivals)}")
        if not isinstance(self.sizes, BatchSizes):
            given: Any = self.sizes
            several = isinstance(given, (list, tuple, np.ndarray))
            object.__setattr__(self, "sizes", EmpiricalSizes(given) if several else FixedSizes(given))

    @property
    def rate(self) -> float:  # type: ignore[override]
        return self.arrivals.rate * self.sizes.mean

    @property
    def peak_rate(self) -> float:
        return self.arrivals.peak_rate * self.sizes.mean

    @property
    def period(self) -> float:  # type: ignore[override]
        return self.arrivals.period

    def as_poisson(self) -> Poisson | None:
        return self.arrivals.as_poisson() if self.sizes.mean == 1.0 else None

    def refuses(self, horizon: float) -> str:
        return self.arrivals.refuses(horizon)

    def stream(self, rng: Generators) -> ArrivalStream:
        return BatchStream(self.arrivals.stream(rng), self.sizes.stream(rng("sizes")))


@dataclass
class BatchStream:
    """Each time of a stream as often as its batch has jobs."""

    batches: ArrivalStream
    sizes: Stream
    times: FloatArray = field(default_factory=lambda: np.empty(0))  # of batches that were drawn
    counts: FloatArray = field(default_factory=lambda: np.empty(0))
    place: IntArray = field(default_factory=lambda: np.zeros(2, dtype=np.int64))  # which batch, how many of it came

    def fill(self, times: FloatArray) -> BoolArray | None:
        filled = 0
        while True:
            filled = _repeat(self.times, self.counts, self.place, times, filled)
            if filled == times.size:
                return None
            drawn = np.empty(BATCHES_AT_A_TIME)
            kept = self.batches.fill(drawn)
            self.times = drawn if kept is None else drawn[kept]
            self.counts = np.empty(self.times.size)
            self.sizes.fill(self.counts)
            self.place[:] = 0


@compiled
def _repeat(batches: FloatArray, counts: FloatArray, place: IntArray, times: FloatArray, filled: int) -> int:
    """Fill `times` from its place `filled` on while the batches last; how many are filled then."""
    while filled < times.size and place[0] < batches.size:
        times[filled] = batches[place[0]]
        filled += 1
        place[1] += 1
        if place[1] >= counts[place[0]] or batches[place[0]] == math.inf:
            place[0] += 1
            place[1] = 0
    return filled
