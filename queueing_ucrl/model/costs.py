"""Holding costs C(t): what a wait of t costs, and E[C(W)] for the waits of a queue.

Every cost starts at C(0) = 0 and never decreases. All but `Custom` can stand in a scenario file. To add one, subclass
`HoldingCost`: C(t) is all it needs; E[C(W)] is by quadrature unless it brings a formula. The formulas in
the docstrings are for jobs that never give up, W ~ Erlang(k, nu), nu = c mu; `waits` knows those for the others.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.elementary import expm1s, powers
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed, number
from queueing_ucrl.model.waits import Waits


class HoldingCost(ABC):
    """A non-decreasing cost of waiting with C(0) = 0."""

    kind: ClassVar[str] = "custom"  # the word for it in scenario files and manifests

    breaks: Sequence[float] = ()  # the waits at which it jumps or bends

    @abstractmethod
    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        """C(t), elementwise."""

    def expected(self, waits: Waits) -> FloatArray:
        """E[C(W)] for the times in queue W of jobs with k = 1 .. stages departures ahead of them.

        Here by quadrature, to about 1e-10 relative; a cost that is not monotone, grows too fast for the mean to exist,
        or has an unnamed break is refused.
        """

        def values(t: FloatArray) -> FloatArray:
            costs = self(t)
            if not np.all(np.isfinite(costs)):
                raise ValueError(f"{self.kind} cost: not finite at a wait of {t[~np.isfinite(costs)][0]:.6g}")
            if costs.size and (costs[0] < 0 or np.any(np.diff(costs) < 0)):
                worst = int(np.argmin(np.diff(costs, prepend=0.0)))
                raise ValueError(
                    f"{self.kind} cost: must not be negative or decrease, but does at a wait of {t[worst]:.6g}"
                )
            return costs

        return waits.expectation(values, self.breaks)


def check_own_cost(cost: HoldingCost) -> None:
    """Refuse a cost of somebody's own that does not take arrays, or does not begin at 0."""
    if type(cost).__module__ == __name__:
        return
    wanted = "must take an array of waits and give a cost for each, 0 for a wait of 0"
    try:
        found = np.asarray(cost(np.zeros(2)), dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"holding_cost {shown(cost)} {wanted}: {error}") from error
    if found.shape != (2,) or np.any(found != 0.0):
        raise ValueError(f"holding_cost {shown(cost)} {wanted}; it gives {shown(found.tolist())} for two such waits")


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

    kind: ClassVar[str] = "free"

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return np.zeros_like(np.asarray(wait, dtype=float))

    def expected(self, waits: Waits) -> FloatArray:
        return np.zeros(waits.stages)


@dataclass(frozen=True, slots=True)
class Unknown(HoldingCost):
    """A cost that the operator does not know: nan, of any wait but none."""

    kind: ClassVar[str] = "unknown"

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(wait, dtype=float) > 0.0, math.nan, 0.0)

    def expected(self, waits: Waits) -> FloatArray:
        return np.full(waits.stages, math.nan)


@dataclass(frozen=True, slots=True)
class Linear(HoldingCost):
    """C(t) = rate * t; E[C(W)] = rate * k / nu."""

    kind: ClassVar[str] = "linear"
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _checked("linear", self.rate, "rate"))

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.rate * np.asarray(wait, dtype=float)

    def expected(self, waits: Waits) -> FloatArray:
        return self.rate * waits.mean


@dataclass(frozen=True, slots=True)
class Power(HoldingCost):
    """C(t) = coefficient * t^p; E[C(W)] = coefficient * Gamma(k + p) / (Gamma(k) nu^p)."""

    kind: ClassVar[str] = "power"
    coefficient: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficient", _checked("power", self.coefficient, "coefficient"))
        object.__setattr__(self, "exponent", _checked("power", self.exponent, "exponent", positive=True))

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.coefficient * powers(wait, self.exponent)

    def expected(self, waits: Waits) -> FloatArray:
        return self.coefficient * waits.moment(self.exponent)


@dataclass(frozen=True, slots=True)
class Saturating(HoldingCost):
    """C(t) = ceiling * (1 - e^{-rate t}); E[C(W)] = ceiling * (1 - (nu / (nu + rate))^k)."""

    kind: ClassVar[str] = "saturating"
    ceiling: float
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ceiling", _checked("saturating", self.ceiling, "ceiling"))
        object.__setattr__(self, "rate", _checked("saturating", self.rate, "rate", positive=True))

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return -self.ceiling * expm1s(-self.rate * np.asarray(wait, dtype=float))

    def expected(self, waits: Waits) -> FloatArray:
        return self.ceiling * waits.transform_complement(self.rate)


@dataclass(frozen=True, slots=True)
class Deadline(HoldingCost):
    """C(t) = penalty if t > due, else 0; E[C(W)] = penalty * Q(k, nu due)."""

    kind: ClassVar[str] = "deadline"
    penalty: float
    due: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", _checked("deadline", self.penalty, "penalty"))
        object.__setattr__(self, "due", _checked("deadline", self.due, "due"))

    def __call__(self, wait: npt.ArrayLike) -> FloatArray:
        return self.penalty * (np.asarray(wait, dtype=float) > self.due).astype(float)

    def expected(self, waits: Waits) -> FloatArray:
        return self.penalty * waits.survival(self.due)


@dataclass(frozen=True, slots=True)
class PiecewiseLinear(HoldingCost):
    """C(t) through the given (wait, cost) points, from (0, 0); past the last one at the last slope.

    E[C(W)] = sum over pieces of slope * E[min(W, end) - min(W, start)], a sum of non-negative terms.
    """

    kind: ClassVar[str] = "piecewise-linear"
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

    def expected(self, waits: Waits) -> FloatArray:
        slopes = self.slopes
        total = slopes[-1] * waits.mean_excess(self.points[-2][0])
        for (start, _), (end, _), slope in zip(self.points, self.points[1:-1], slopes, strict=False):
            if slope:
                total = total + slope * waits.mean_between(start, end)
        return total


@dataclass(frozen=True, slots=True)
class Custom(HoldingCost):
    """Any non-decreasing Python function with C(0) = 0; name the waits where it jumps or bends in `breaks`.

    E[C(W)] is by quadrature. Never from a file.
    """

    function: Callable[[float], float]
    breaks: Sequence[float] = field(default=())

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


class Paying(Protocol):
    """What decides what an admitted job earns: a `JobClass`, or as much of it as an operator knows."""

    @property
    def name(self) -> str: ...
    @property
    def reward(self) -> float: ...
    @property
    def holding_cost(self) -> HoldingCost: ...
    @property
    def abandonment_cost(self) -> float: ...
    @property
    def reward_at(self) -> str: ...


@dataclass(frozen=True)
class Payment:
    """What a class pays and costs, as an operator knows it."""

    name: str
    reward: float  # R_i
    holding_cost: HoldingCost  # C_i
    abandonment_cost: float = 0.0  # a_i
    reward_at: str = "admission"


def expected_rewards(classes: Sequence[Paying], waits: Waits, capacity: int) -> FloatArray:
    """r_i(s) = R_i P(paid) - E[C_i(W(s))] - a_i P(abandon) for s = 0 .. S - 1, one column a class.

    P(paid) = 1 where the reward is collected at admission, else P(served). A ValueError names the classes without.
    """
    table = np.empty((capacity, len(classes)))
    problems = []
    for i, c in enumerate(classes):
        table[:, i] = c.reward
        waiting = table[waits.servers :, i]
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                if c.reward_at != "admission" and waits.impatient:
                    waiting *= waits.served
                waiting -= c.holding_cost.expected(waits)
                if c.abandonment_cost and waits.impatient:
                    waiting -= c.abandonment_cost * waits.abandonment
            if not np.all(np.isfinite(table[:, i])):
                raise OverflowError
        except ValueError as error:
            problems.append(f"class {c.name!r}: {error}")
        except OverflowError:
            problems.append(f"class {c.name!r}: the expected holding cost is too large for a double")
    if problems:
        raise ValueError("\n".join(problems))
    return table
