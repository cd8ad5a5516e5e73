"""Holding costs C(t): what a wait of t costs, and E[C(W)] for the waits of a queue.

Every cost starts at C(0) = 0 and never decreases. All but `Custom` can stand in a scenario file.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed, number
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


def _checked(kind: str, value: object, name: str, *, positive: bool = False) -> float:
    """A finite number that is not negative (or is positive), or an error that names it."""
    wanted = "a positive number" if positive else "a number that is not negative"
    result = number(value, f"{kind} cost: {name}", wanted)
    if result < 0 or (positive and result == 0):
        raise ValueError(f"{kind} cost: {name} must be {wanted}, got {shown(value)}")
    return result


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
        object.__setattr__(self, "rate", _checked("linear", self.rate, "rate"))

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
        object.__setattr__(self, "coefficient", _checked("power", self.coefficient, "coefficient"))
        object.__setattr__(self, "exponent", _checked("power", self.exponent, "exponent", positive=True))

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
        object.__setattr__(self, "ceiling", _checked("saturating", self.ceiling, "ceiling"))
        object.__setattr__(self, "rate", _checked("saturating", self.rate, "rate", positive=True))

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
        object.__setattr__(self, "penalty", _checked("deadline", self.penalty, "penalty"))
        object.__setattr__(self, "due", _checked("deadline", self.due, "due"))

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
        points = tuple(self._pair(point) for point in listed(self.points, "piecewise-linear cost: points"))
        if points and points[0] != (0.0, 0.0):
            points = ((0.0, 0.0), *points)
        if len(points) < 2:
            raise ValueError("piecewise-linear cost: points must hold a (wait, cost) pair with a positive wait")
        for (t0, c0), (t1, c1) in pairwise(points):
            if not t1 > t0:
                raise ValueError(f"piecewise-linear cost: waits must increase from 0, got {t1} after {t0}")
            if c1 < c0:
                raise ValueError(f"piecewise-linear cost: costs must not decrease, got {c1} after {c0}")
        object.__setattr__(self, "points", points)

    @staticmethod
    def _pair(point: object) -> tuple[float, float]:
        try:
            t, cost = cast(Any, point)
        except (TypeError, ValueError):
            raise ValueError(
                f"piecewise-linear cost: a point must be a (wait, cost) pair, got {shown(point)}"
            ) from None
        return _checked("piecewise-linear", t, "a point's wait"), _checked("piecewise-linear", cost, "a point's cost")

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
        if not callable(self.function):
            raise TypeError(f"custom cost: function must be a function of the wait, got {shown(self.function)}")
        object.__setattr__(
            self, "breaks", tuple(_checked("custom", b, "a break") for b in listed(self.breaks, "custom cost: breaks"))
        )
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
