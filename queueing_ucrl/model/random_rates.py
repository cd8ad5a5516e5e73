"""Poisson arrivals whose rate is itself random: hidden states, and days that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.messages import shown
from queueing_ucrl.model.arrivals import (
    ArrivalProcess,
    ArrivalStream,
    Generators,
    Poisson,
    PoissonStream,
    ThinnedStream,
    Thinning,
)
from queueing_ucrl.model.chain_path import ChainPath
from queueing_ucrl.model.checks import number, positive, whole
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.model.laws import Gamma, Stream
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Steady, pattern_factor
from queueing_ucrl.variates import Exponentials

LARGEST_DAY_CV = 10.0
MOST_DAYS = 1e8  # within a horizon
DAYS_AT_A_TIME = 64  # the numbers do not depend on it


@dataclass(frozen=True)
class Modulated(ArrivalProcess):
    """A Poisson process of rate base_rate * factors[e] * pattern in state e of a Markov chain that nobody sees.

    rates[e][f]: from e to f per unit of time; the diagonal does not count. It begins in `start`; None: in a state drawn
    from the long-run law. Candidates come at the largest rate, and are thinned.
    """

    kind: ClassVar[str] = "modulated"
    base_rate: float
    rates: Sequence[Sequence[float]]
    factors: Sequence[float]
    start: int | None = None
    pattern: ArrivalPattern = field(default_factory=Steady)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_rate", positive(self.base_rate, "modulated arrivals: base_rate"))
        try:
            chain = Environment(self.rates, self.factors)
        except (TypeError, ValueError) as error:
            words = str(error).replace("environment:", "modulated arrivals:").replace("arrival_factors", "factors")
            raise type(error)(words) from None
        if chain.arrival_factors.ndim != 1:
            raise ValueError("modulated arrivals: factors must be a number for each state")
        object.__setattr__(self, "rates", tuple(map(tuple, chain.rates.tolist())))
        object.__setattr__(self, "factors", tuple(chain.arrival_factors.tolist()))
        if self.start is not None:
            object.__setattr__(self, "start", whole(self.start, "modulated arrivals: start", 0))
            if self.start >= chain.states:
                raise ValueError(f"modulated arrivals: start must be a state below {chain.states}, got {self.start}")
        if not isinstance(self.pattern, ArrivalPattern):
            raise TypeError(f"modulated arrivals: pattern must be an arrival pattern, got {shown(self.pattern)}")

    @cached_property
    def stationary(self) -> FloatArray:
        """The long-run share of time in each state."""
        return Environment(self.rates, self.factors).stationary

    @property
    def rate(self) -> float:  # type: ignore[override]
        mean = math.fsum(p * f for p, f in zip(self.stationary.tolist(), self.factors, strict=True))
        return self.base_rate * self.pattern.mean * mean

    @property
    def peak_rate(self) -> float:
        return self.base_rate * self.pattern.ceiling * max(self.factors)

    @property
    def period(self) -> float:  # type: ignore[override]
        return self.pattern.period

    def thinning(self, rng: Generators) -> Thinning | None:
        """By the state and the pattern."""
        start, jumps = self.start, rng("jumps")
        if start is None:
            u, start = float(jumps.random()), 0
            for p in self.stationary.tolist()[:-1]:
                u -= p
                if u < 0.0:
                    break
                start += 1
        path = ChainPath(np.array(self.rates), start, rng("sojourns"), jumps)
        return ModulatedThinning(path, np.array(self.factors), self.pattern, rng("thinning"))

    def stream(self, rng: Generators) -> ArrivalStream:
        candidates = PoissonStream(1.0 / self.peak_rate, Exponentials(rng("gaps")), Steady(), None)
        return ThinnedStream(candidates, self.thinning(rng))


@dataclass
class ModulatedThinning:
    """One at time t in state e is a job with probability factors[e] pattern(t) over the largest of it."""

    path: ChainPath
    factors: FloatArray
    pattern: ArrivalPattern
    rng: np.random.Generator

    def kept(self, times: FloatArray) -> BoolArray:
        kind, numbers = self.pattern.code
        ceiling = self.pattern.ceiling * float(self.factors.max())
        factors = self.factors[self.path.at(times)]
        return _kept(kind, numbers, factors, ceiling, times, self.rng.random(times.size))


@compiled
def _kept(
    kind: int, numbers: FloatArray, factors: FloatArray, ceiling: float, times: FloatArray, uniforms: FloatArray
) -> BoolArray:
    kept = np.empty(times.size, dtype=np.bool_)
    for k in range(times.size):
        kept[k] = uniforms[k] * ceiling < factors[k] * pattern_factor(kind, numbers, times[k])
    return kept


@dataclass(frozen=True)
class DayFactor(ArrivalProcess):
    """The rate of `arrivals` (Poisson or Modulated) times a factor that is drawn anew for each period, such as a day.

    Factors are gamma variables of mean 1 and this cv: N jobs of a day that expects n have Var N = n + cv^2 n^2 (of
    Poisson arrivals). With cv = 0 nothing is changed.
    """

    kind: ClassVar[str] = "day-factor"
    arrivals: ArrivalProcess
    cv: float
    period: float

    def __post_init__(self) -> None:
        if not isinstance(self.arrivals, (Poisson, Modulated)):
            raise TypeError(
                f"a day factor needs Poisson or Modulated arrivals, got {shown(self.arrivals)}; batches go around it: "
                "Batches(DayFactor(..), sizes)"
            )
        object.__setattr__(self, "cv", number(self.cv, "a day factor's cv"))
        if not 0.0 <= self.cv <= LARGEST_DAY_CV or 0.0 < self.cv < 1e-6:
            raise ValueError(
                f"a day factor's cv must be 0 or lie between 1e-06 and {LARGEST_DAY_CV:g}, got {self.cv:g}"
            )
        object.__setattr__(self, "period", positive(self.period, "a day factor's period"))

    @property
    def rate(self) -> float:  # type: ignore[override]
        return self.arrivals.rate

    @property
    def peak_rate(self) -> float:
        return self.arrivals.peak_rate

    def as_poisson(self) -> Poisson | None:
        return self.arrivals.as_poisson() if self.cv == 0.0 else None

    def refuses(self, horizon: float) -> str:
        if horizon <= MOST_DAYS * self.period:
            return ""
        return f"a day factor's period of {self.period:g} comes more than {MOST_DAYS:g} times within {horizon:g}"

    def stream(self, rng: Generators) -> ArrivalStream:
        if self.cv == 0.0:
            return self.arrivals.stream(rng)
        base: Any = self.arrivals
        days = Gamma(mean=1.0, cv=self.cv).stream(rng("days"))
        candidates = DayStream(1.0 / base.peak_rate, self.period, Exponentials(rng("gaps")), days)
        return ThinnedStream(candidates, base.thinning(rng))


@dataclass
class DayStream:
    """A Poisson process whose rate is times the factor of the day: standard gaps run down faster on a busy day."""

    mean_gap: float
    period: float
    gaps: Stream
    days: Stream
    factors: FloatArray = field(default_factory=lambda: np.empty(0))  # of the days from `first` on
    first: int = 0
    day: int = 0
    now: float = 0.0

    def fill(self, times: FloatArray) -> BoolArray | None:
        self.gaps.fill(times)
        filled = 0
        while True:
            filled, self.now, self.day = _day_times(
                self.mean_gap, self.period, self.factors, self.first, self.now, self.day, times, filled
            )
            if filled == times.size:
                return None
            more = np.empty(DAYS_AT_A_TIME)
            self.days.fill(more)
            self.factors, self.first = more, self.day


@compiled
def _day_times(
    mean_gap: float,
    period: float,
    factors: FloatArray,
    first: int,
    now: float,
    day: int,
    times: FloatArray,
    filled: int,
) -> tuple[int, float, int]:
    """Turn standard gaps into times while the days' factors last; what is left of a gap then stands in its place."""
    while filled < times.size:
        left = times[filled]
        while True:
            if day - first >= factors.size:
                times[filled] = left
                return filled, now, day
            speed = factors[day - first] / mean_gap
            end = (day + 1) * period
            room = (end - now) * speed
            if left < room:
                now = min(now + left / speed, end)
                break
            left -= room
            now = end
            day += 1
        times[filled] = now
        filled += 1
    return filled, now, day
