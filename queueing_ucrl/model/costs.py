"""Holding costs C(t): what a wait of t costs, and E[C(W)] for the waits of a queue.

Every cost starts at C(0) = 0 and never decreases. All but `Custom` can stand in a scenario file.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from queueing_ucrl.model.elementary import expm1s, powers
from queueing_ucrl.model.waits import ErlangWaits, FloatArray


class HoldingCost(ABC):
    """A non-decreasing cost of waiting with C(0) = 0."""

    @abstractmethod
    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        """C(t), elementwise."""

    @abstractmethod
    def expected(self, waits: ErlangWaits) -> FloatArray:
        """E[C(W)] for W ~ Erlang(k, c mu), k = 1 .. stages."""


def _check(kind: str, value: float, name: str, *, positive: bool = False) -> None:
    """A finite number that is not negative (or is positive), or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{kind} cost: {name} must be a number, got {value!r}")
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        wanted = "a positive number" if positive else "a number that is not negative"
        raise ValueError(f"{kind} cost: {name} must be {wanted}, got {value}")


@dataclass(frozen=True, slots=True)
class Free(HoldingCost):
    """C(t) = 0."""

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return np.zeros_like(np.asarray(wait, dtype=float))

    def expected(self, waits: ErlangWaits) -> FloatArray:
        return np.zeros(waits.stages)


@dataclass(frozen=True, slots=True)
class Linear(HoldingCost):
    """C(t) = rate * t; E[C(W)] = rate * k / nu."""

    rate: float

    def __post_init__(self) -> None:
        _check("linear", self.rate, "rate")

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.rate * np.asarray(wait, dtype=float)

    def expected(self, waits: ErlangWaits) -> FloatArray:
        return self.rate * waits.mean


@dataclass(frozen=True, slots=True)
class Power(HoldingCost):
    """C(t) = coefficient * t^p; E[C(W)] = coefficient * Gamma(k + p) / (Gamma(k) nu^p)."""

    coefficient: float
    exponent: float

    def __post_init__(self) -> None:
        _check("power", self.coefficient, "coefficient")
        _check("power", self.exponent, "exponent", positive=True)

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.coefficient * powers(wait, self.exponent)

    def expected(self, waits: ErlangWaits) -> FloatArray:
        return self.coefficient * waits.moment(self.exponent)


@dataclass(frozen=True, slots=True)
class Saturating(HoldingCost):
    """C(t) = ceiling * (1 - e^{-rate t}); E[C(W)] = ceiling * (1 - (nu / (nu + rate))^k)."""

    ceiling: float
    rate: float

    def __post_init__(self) -> None:
        _check("saturating", self.ceiling, "ceiling")
        _check("saturating", self.rate, "rate", positive=True)

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return -self.ceiling * expm1s(-self.rate * np.asarray(wait, dtype=float))

    def expected(self, waits: ErlangWaits) -> FloatArray:
        return self.ceiling * waits.transform_complement(self.rate)


@dataclass(frozen=True, slots=True)
class Deadline(HoldingCost):
    """C(t) = penalty if t > due, else 0; E[C(W)] = penalty * Q(k, nu due)."""

    penalty: float
    due: float

    def __post_init__(self) -> None:
        _check("deadline", self.penalty, "penalty")
        _check("deadline", self.due, "due")

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.penalty * (np.asarray(wait, dtype=float) > self.due).astype(float)

    def expected(self, waits: ErlangWaits) -> FloatArray:
        return self.penalty * waits.survival(self.due)


@dataclass(frozen=True, slots=True)
class PiecewiseLinear(HoldingCost):
    """C(t) through the given (wait, cost) points, from (0, 0); past the last one at the last slope.

    E[C(W)] = sum over pieces of slope * E[min(W, end) - min(W, start)], a sum of non-negative terms.
    """

    points: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        points = tuple((float(t), float(cost)) for t, cost in self.points)
        if points and points[0] != (0.0, 0.0):
            points = ((0.0, 0.0), *points)
        if len(points) < 2:
            raise ValueError("piecewise-linear cost: points must hold a (wait, cost) pair with a positive wait")
        for t, cost in points:
            _check("piecewise-linear", t, "a point's wait")
            _check("piecewise-linear", cost, "a point's cost")
        for (t0, c0), (t1, c1) in pairwise(points):
            if not t1 > t0:
                raise ValueError(f"piecewise-linear cost: waits must increase from 0, got {t1} after {t0}")
            if c1 < c0:
                raise ValueError(f"piecewise-linear cost: costs must not decrease, got {c1} after {c0}")
        object.__setattr__(self, "points", points)

    @property
    def slopes(self) -> tuple[float, ...]:
        """The slope of each piece; the last one goes on for ever."""
        return tuple((c1 - c0) / (t1 - t0) for (t0, c0), (t1, c1) in pairwise(self.points))

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        t = np.asarray(wait, dtype=float)
        times, costs = np.array(self.points).T
        slopes = np.array([*self.slopes, self.slopes[-1]])
        piece = np.maximum(np.searchsorted(times, t, side="right") - 1, 0)
        return costs[piece] + slopes[piece] * (t - times[piece])

    def expected(self, waits: ErlangWaits) -> FloatArray:
        slopes = self.slopes
        total = slopes[-1] * waits.mean_excess(self.points[-2][0])
        for (start, _), (end, _), slope in zip(self.points, self.points[1:-1], slopes, strict=False):
            if slope:
                total = total + slope * waits.mean_between(start, end)
        return total


@dataclass(frozen=True, slots=True)
class Custom(HoldingCost):
    """Any non-decreasing Python function with C(0) = 0; name the waits where it jumps or bends in `breaks`.

    E[C(W)] is by quadrature, to about 1e-10 relative; a function that is not monotone, grows too fast for the
    mean to exist, or has an unnamed break is refused. Never from a file.
    """

    function: Callable[[float], float]
    breaks: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "breaks", tuple(float(b) for b in self.breaks))
        for b in self.breaks:
            _check("custom", b, "a break")
        if float(self.function(0.0)) != 0.0:
            raise ValueError(f"custom cost: C(0) must be 0, got {self.function(0.0)}")

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        t = np.asarray(wait, dtype=float)
        return np.array([self._at(float(x)) for x in t.ravel()]).reshape(t.shape)

    def _at(self, wait: float) -> float:
        try:
            return float(self.function(wait))
        except OverflowError:  # math.exp beyond 709: infinite, as numpy would have it
            return math.inf

    def expected(self, waits: ErlangWaits) -> FloatArray:
        def values(t: FloatArray) -> FloatArray:
            costs = self(t)
            if not np.all(np.isfinite(costs)):
                raise ValueError(f"custom cost: not finite at a wait of {t[~np.isfinite(costs)][0]:.6g}")
            if costs.size and (costs[0] < 0 or np.any(np.diff(costs) < 0)):
                worst = int(np.argmin(np.diff(costs, prepend=0.0)))
                raise ValueError(f"custom cost: must not be negative or decrease, but does at a wait of {t[worst]:.6g}")
            return costs

        return waits.expectation(values, self.breaks)
