"""When jobs of a class come: by a Poisson process, or a renewal process.

Others are in files of their own: `batches`, `random_rates` (hidden states, days that differ), `trace`. To add a way of
coming, subclass `ArrivalProcess`: both engines take the times from its stream, and know nothing of how they are made.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import positive
from queueing_ucrl.model.laws import Exponential, Law, Stream
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Steady, pattern_factor
from queueing_ucrl.variates import Exponentials

Generators = Callable[[str], np.random.Generator]  # a generator for each purpose: "gaps", "thinning", any other word


class ArrivalStream(Protocol):
    """The times of candidates for jobs, one stretch after the other."""

    def fill(self, times: FloatArray) -> BoolArray | None:
        """The next times, never decreasing, into `times`; after the last: inf. Which of them are jobs; None: all.

        A candidate that is no job takes its random numbers (its service time, say) with it.
        """
        ...


class ArrivalProcess(ABC):
    """How jobs of a class come, counted from time 0."""

    kind: ClassVar[str] = "custom"  # the word for it in manifests
    period: float = math.inf  # after which it begins again, where it depends on time; infinite if it does not, or never
    rate: float  # jobs per unit of time, in the long run: a field or a property

    @property
    def peak_rate(self) -> float:
        """Candidates per unit of time at most: what a run may cost."""
        return self.rate

    @abstractmethod
    def stream(self, rng: Generators) -> ArrivalStream:
        """The arrivals of one run; rng(purpose) is a generator that nobody else uses."""

    def as_poisson(self) -> Poisson | None:
        """The Poisson process that it is; None if it is none."""
        return None

    def service_law(self) -> Law | None:
        """How long its jobs take, where they come with their work; None: as the class says."""
        return None

    def refuses(self, horizon: float) -> str:
        """Why it cannot be followed up to a horizon, in words; "" where it can."""
        return ""


@dataclass(frozen=True)
class Poisson(ArrivalProcess):
    """A Poisson process of rate lambda(t) = rate * factor(t).

    Where the rate changes in time, candidates come at rate * ceiling, and one at time t is a job with probability
    factor(t) / ceiling.
    """

    kind: ClassVar[str] = "poisson"
    base_rate: float
    pattern: ArrivalPattern = field(default_factory=Steady)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_rate", positive(self.base_rate, "a Poisson process's rate"))

    @property
    def rate(self) -> float:  # type: ignore[override]
        return self.base_rate * self.pattern.mean

    @property
    def peak_rate(self) -> float:
        return self.base_rate * self.pattern.ceiling

    @property
    def period(self) -> float:  # type: ignore[override]
        return self.pattern.period

    def as_poisson(self) -> Poisson | None:
        return self if type(self) is Poisson else None

    def thinning(self, rng: Generators) -> Thinning | None:
        """Which candidates are jobs; None: all."""
        return None if isinstance(self.pattern, Steady) else PatternThinning(self.pattern, rng("thinning"))

    def stream(self, rng: Generators) -> ArrivalStream:
        thinning = None if isinstance(self.pattern, Steady) else rng("thinning")
        return PoissonStream(1.0 / self.peak_rate, Exponentials(rng("gaps")), self.pattern, thinning)


@dataclass
class PoissonStream:
    """Exponential gaps added up; thinned where the rate changes in time."""

    mean_gap: float
    gaps: Exponentials
    pattern: ArrivalPattern
    thinning: np.random.Generator | None
    now: float = 0.0

    def fill(self, times: FloatArray) -> BoolArray | None:
        self.gaps.fill(times)
        self.now = add_up(self.now, self.mean_gap, times)
        if self.thinning is None:
            return None
        kind, numbers = self.pattern.code
        return thinned(kind, numbers, self.pattern.ceiling, times, self.thinning.random(times.size))


class Thinning(Protocol):
    """Which candidates at given times are jobs, one stretch after the other."""

    def kept(self, times: FloatArray) -> BoolArray:
        """A truth value for each."""
        ...


@dataclass
class PatternThinning:
    """One at time t is a job with probability factor(t) / ceiling."""

    pattern: ArrivalPattern
    rng: np.random.Generator

    def kept(self, times: FloatArray) -> BoolArray:
        kind, numbers = self.pattern.code
        return thinned(kind, numbers, self.pattern.ceiling, times, self.rng.random(times.size))


@dataclass
class ThinnedStream:
    """The candidates of a stream, of which not all are jobs."""

    candidates: ArrivalStream
    thinning: Thinning | None

    def fill(self, times: FloatArray) -> BoolArray | None:
        self.candidates.fill(times)
        return None if self.thinning is None else self.thinning.kept(times)


@dataclass(frozen=True)
class Renewal(ArrivalProcess):
    """Independent gaps of one law, the first from time 0 on."""

    kind: ClassVar[str] = "renewal"
    law: Law

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise TypeError(f"a renewal process's law must be a law such as Gamma(2.0, 0.5), got {shown(self.law)}")
        positive(getattr(self.law, "mean", None), "the mean of a renewal process's law")

    @property
    def rate(self) -> float:  # type: ignore[override]
        return 1.0 / self.law.mean

    def as_poisson(self) -> Poisson | None:
        if isinstance(self.law, Exponential):
            return Poisson(self.law.rate)
        return Poisson(self.rate) if self.law.memoryless else None

    def stream(self, rng: Generators) -> ArrivalStream:
        return RenewalStream(self.law.stream(rng("gaps")))


@dataclass
class RenewalStream:
    """Gaps added up."""

    gaps: Stream
    now: float = 0.0

    def fill(self, times: FloatArray) -> BoolArray | None:
        self.gaps.fill(times)
        self.now = add_up(self.now, 1.0, times)
        return None


@compiled
def add_up(start: float, mean_gap: float, times: FloatArray) -> float:
    """Turn standard gaps into times, each the one before plus its gap; the last one."""
    now = start
    for k in range(times.size):
        now += mean_gap * times[k]
        times[k] = now
    return now


@compiled
def thinned(kind: int, numbers: FloatArray, ceiling: float, times: FloatArray, uniforms: FloatArray) -> BoolArray:
    """Which candidates are jobs: one at time t whose uniform number is below factor(t) / ceiling."""
    kept = np.empty(times.size, dtype=np.bool_)
    for k in range(times.size):
        kept[k] = uniforms[k] * ceiling < pattern_factor(kind, numbers, times[k])
    return kept
