"""Times and what is said of them: best-of-n, with the sides of a comparison taken in turn so that noise hits both."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import process_time

import numpy as np
from scipy import stats

SHORTEST = 5e-3  # seconds that a side is called in each round: a fast call many times, a slow one once


@dataclass(frozen=True)
class Line:
    """One row of the table; a claim is an upper (or lower) limit on the value."""

    measure: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def claim(self) -> str:
        """The limit, in words; empty without one."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""

    @property
    def holds(self) -> bool | None:
        """Whether the value keeps to the claim; None where nothing is claimed."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.value >= self.at_least if self.at_least is not None else None


@dataclass(frozen=True)
class Panel:
    """A log-log picture of how something grows."""

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True)
class Measured:
    """What one measure found."""

    lines: list[Line]
    panels: list[Panel] = field(default_factory=list)


def race(
    sides: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = process_time
) -> dict[str, float]:
    """Seconds a call of each side: the best of all calls in `rounds` rounds, the sides in turn within a round.

    By default in processor time: on a busy machine a long call is interrupted more often than a short one, and the
    clock on the wall would flatter whoever is short.
    """
    best = dict.fromkeys(sides, math.inf)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for call in sides.values():
            call()
        for _ in range(rounds):
            for name, call in sides.items():
                until = clock() + SHORTEST
                now = clock()
                while now < until:
                    began = clock()
                    call()
                    now = clock()
                    best[name] = min(best[name], now - began)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return best


def growth_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log time on log size by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth_interval(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """The slope of log cost on log size by least squares, and half of its 95 % interval (Student's, from residuals)."""
    fit = stats.linregress(np.log(sizes), np.log(costs))
    freedom = len(sizes) - 2
    half = float(stats.t.ppf(0.975, freedom) * fit.stderr) if freedom else math.nan
    return float(fit.slope), half
