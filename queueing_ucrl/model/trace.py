"""Arrivals as they were: a trace of times, and of work where it was recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.model.arrivals import ArrivalProcess, ArrivalStream, Generators
from queueing_ucrl.model.checks import ReadOnlyArrays, listed, number, positive, table_of_numbers
from queueing_ucrl.model.laws import Law, Recorded, plain_numbers


def _numbers(values: Any, name: str) -> FloatArray:
    """A list of at least one finite number that is not negative."""
    array = table_of_numbers(values if isinstance(values, np.ndarray) else listed(values, name), name)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a list of at least one number, got shape {array.shape}")
    if np.any(array < 0):
        k = int(np.argmax(array < 0))
        raise ValueError(f"{name} must be at least 0, got {array[k]:g} at place {k + 1}")
    return array


@dataclass(frozen=True, eq=False)
class Trace(ReadOnlyArrays, ArrivalProcess):
    """Jobs that came at these times, counted from 0, once or again and again.

    works: what each needed; the class then has no `service` of its own. duration: how long was looked on, by default up
    to the last job; of a trace that is repeated, so long that the first comes a mean gap after the last, at least.
    speed: 2 plays it twice as fast, works as they are. thin: the probability with which each job is taken.
    """

    kind: ClassVar[str] = "trace"
    times: FloatArray
    works: FloatArray | None = None
    duration: float | None = None
    repeat: bool = False
    speed: float = 1.0
    thin: float = 1.0

    def __post_init__(self) -> None:
        times = _numbers(self.times, "a trace's times")
        object.__setattr__(self, "times", times)
        if np.any(np.diff(times) < 0):
            k = int(np.argmax(np.diff(times) < 0))
            raise ValueError(
                f"a trace's times must never go back, got {times[k + 1]:g} after {times[k]:g} at place {k + 2}"
            )
        if self.works is not None:
            object.__setattr__(self, "works", _numbers(self.works, "a trace's works"))
            if self.works.size != times.size:
                raise ValueError(f"a trace needs a work for each time, got {self.works.size} and {times.size}")
        if not isinstance(self.repeat, bool):
            raise TypeError(f"a trace's repeat must be True or False, got {self.repeat!r}")
        object.__setattr__(self, "speed", positive(self.speed, "a trace's speed"))
        object.__setattr__(self, "thin", number(self.thin, "a trace's thin"))
        if not 0.0 < self.thin <= 1.0:
            raise ValueError(f"a trace's thin must be a probability above 0, got {self.thin:g}")
        last = float(times[-1])
        if self.duration is None:
            first = float(times[0])
            gap = (last - first) / (times.size - 1) if self.repeat and times.size > 1 else 0.0
            object.__setattr__(self, "duration", last + max(gap - first, 0.0))
        if not number(self.duration, "a trace's duration") >= max(last, math.ulp(0.0)):
            raise ValueError(
                f"a trace's duration must be positive and not before its last time {last:g}, got {self.duration:g}"
            )
        object.__setattr__(self, "duration", float(self.duration))  # type: ignore[arg-type]
        super().__post_init__()

    @property
    def length(self) -> float:
        """How long it takes to play."""
        assert self.duration is not None
        return self.duration / self.speed

    @property
    def rate(self) -> float:  # type: ignore[override]
        return self.thin * self.peak_rate

    @property
    def peak_rate(self) -> float:
        return self.times.size / self.length

    @property
    def period(self) -> float:  # type: ignore[override]
        return self.length if self.repeat else math.inf

    def service_law(self) -> Law | None:
        return None if self.works is None else Recorded(self.works)

    def refuses(self, horizon: float) -> str:
        if self.repeat or self.length >= horizon:
            return ""
        return (
            f"the trace ends at {self.length:g}, before the horizon {horizon:g}; choose a shorter horizon, or repeat it"
        )

    def stream(self, rng: Generators) -> ArrivalStream:
        return TraceStream(self, rng("thinning") if self.thin < 1.0 else None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return self.plain_data() == other.plain_data() and np.array_equal(self.times, other.times)

    def __hash__(self) -> int:
        return hash((self.times.tobytes(), self.duration, self.repeat, self.speed, self.thin))

    def plain_data(self) -> dict[str, Any]:
        """For manifests."""
        about = {"duration": self.duration, "repeat": self.repeat, "speed": self.speed, "thin": self.thin}
        works = {} if self.works is None else {"works": plain_numbers(self.works)}
        return {"times": plain_numbers(self.times), **works, **about}


@dataclass
class TraceStream:
    """The times in turn."""

    trace: Trace
    thinning: np.random.Generator | None
    played: int = 0  # jobs so far

    def fill(self, times: FloatArray) -> BoolArray | None:
        trace, count = self.trace, self.trace.times.size
        rounds, places = np.divmod(self.played + np.arange(times.size), count)
        times[:] = (trace.times[places] + rounds * trace.duration) / trace.speed
        if not trace.repeat:
            times[rounds > 0] = math.inf
        self.played += times.size
        return None if self.thinning is None else self.thinning.random(times.size) < trace.thin
