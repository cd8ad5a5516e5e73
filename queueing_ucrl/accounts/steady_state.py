r"""Measuring a steady state: how long it takes to get there, and how well a mean of correlated numbers is known.

    replications   n runs with their own random numbers give independent numbers x_1 .. x_n:
                   mean +- t_{n-1} s / sqrt(n), s^2 = sum (x_j - mean)^2 / (n - 1)
    batch means    one long run is cut into 20 stretches of equal length; their means are nearly independent, and are
                   taken as if they were replications (Schmeiser 1982: more than 30 batches gain nothing)
    ratios         sum x / sum y, such as a mean wait (time waited over jobs), from pairs (x_j, y_j):
                   r = sum x / sum y +- t_{n-1} s_e / (sqrt(n) mean(y)), with the residuals e_j = x_j - r y_j
    MSER-5         of Z_1 .. Z_k, the means of 5 numbers each, those are dropped from the front that make the standard
                   error of the rest smallest: d = argmin_{d <= k/2} sum_{j > d} (Z_j - mean_d)^2 / (k - d)^2
                   (White 1997, White and Spratt 2000). A smallest one at the end of the range says that the run is too
                   short to tell.

t_n is the quantile of Student's law with n degrees of freedom. Sums are exact (`math.fsum`), so that nothing depends on
the processor. None of this is ever applied to a regret: there the transient is what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.checks import whole
from queueing_ucrl.model.quantiles import student_quantile

LEVEL = 0.95  # of intervals
BATCHES = 20
GROUP = 5  # numbers in a mean of MSER-5

Numbers = Sequence[float] | FloatArray


@dataclass(frozen=True)
class Estimate:
    """A mean with the half-width of its interval: nan where chance cannot be judged (fewer than two numbers)."""

    mean: float
    half_width: float
    count: int  # replications or batches
    level: float = LEVEL

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half_width

    @property
    def relative_half_width(self) -> float:
        """The half-width as a part of the mean; infinite where it is not known, or the mean is 0 and it is not."""
        if self.half_width == 0.0:
            return 0.0
        if self.mean == 0.0 or not math.isfinite(self.half_width):
            return math.inf
        return self.half_width / abs(self.mean)

    def plain_data(self) -> dict[str, Any]:
        """For JSON; what is not known is None."""
        numbers = {"mean": self.mean, "low": self.low, "high": self.high}
        return {**{k: v if math.isfinite(v) else None for k, v in numbers.items()}, "level": self.level}

    def __str__(self) -> str:
        return f"{self.mean:.6g} ±{self.half_width:.2g}"


def _as_list(values: Numbers, name: str) -> list[float]:
    numbers: list[float] = np.asarray(values, dtype=float).tolist()
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name} must be finite numbers")
    return numbers


def _checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(level)


def estimate(values: Numbers, level: float = LEVEL) -> Estimate:
    """The mean of independent numbers (replications) with its interval by Student's t."""
    return ratio_estimate(values, None, level)


def ratio_estimate(numerators: Numbers, denominators: Numbers | None, level: float = LEVEL) -> Estimate:
    """sum x / sum y of independent pairs with its interval; without denominators (all are 1) the mean of x."""
    x = _as_list(numerators, "values")
    n, level = len(x), _checked_level(level)
    y = [1.0] * n if denominators is None else _as_list(denominators, "denominators")
    if len(y) != n:
        raise ValueError(f"there must be as many denominators as numerators, {n}, got {len(y)}")
    total = math.fsum(y)
    if total == 0.0:
        return Estimate(math.nan, math.nan, n, level)
    ratio = math.fsum(x) / total
    if n < 2:
        return Estimate(ratio, math.nan, n, level)
    residuals = [a - ratio * b for a, b in zip(x, y, strict=True)]
    spread = math.sqrt(math.fsum(e * e for e in residuals) / (n - 1))
    half = student_quantile(level, float(n - 1)) * spread * math.sqrt(n) / abs(total)
    return Estimate(ratio, half, n, level)


def batch_sums(series: Numbers, batches: int = BATCHES) -> FloatArray:
    """Sums over stretches of equal length; what is left over is dropped from the front, where it is least steady."""
    values, batches = _as_list(series, "series"), whole(batches, "batches", least=2)
    size = len(values) // batches
    if size < 1:
        raise ValueError(f"a series of {len(values)} numbers is too short for {batches} batches")
    first = len(values) - size * batches
    return np.array([math.fsum(values[first + k * size : first + (k + 1) * size]) for k in range(batches)])


def batch_means(series: Numbers, batches: int = BATCHES, level: float = LEVEL) -> Estimate:
    """The mean of a steady series of correlated numbers, with its interval by batch means."""
    size = len(series) // batches if batches > 0 else 0
    return estimate(batch_sums(series, batches) / max(size, 1), level)


@dataclass(frozen=True)
class WarmUp:
    """How many numbers at the front of a series are not of its steady state yet."""

    count: int
    settled: bool  # False: the smallest error was at the last place that is looked at; the run is too short to tell


@compiled
def _mser(means: FloatArray, last: int) -> int:
    """argmin_{d <= last} sum_{j >= d} (Z_j - mean_d)^2 / (k - d)^2, from the back; of equals the first."""
    k = means.size
    mean = 0.0
    squares = 0.0
    best = math.inf
    at = 0
    for d in range(k - 1, -1, -1):
        count = float(k - d)
        away = means[d] - mean
        mean += away / count
        squares += away * (means[d] - mean)
        if d <= last:
            error = squares / (count * count)
            if error <= best:
                best = error
                at = d
    return at


def mser5(series: Numbers, group: int = GROUP) -> WarmUp:
    """MSER-5: how many numbers to drop from the front of a series; at most half of it. O(n)."""
    values, group = _as_list(series, "series"), whole(group, "group")
    k = len(values) // group
    if k < 2:
        return WarmUp(0, False)
    means = np.array([math.fsum(values[j * group : (j + 1) * group]) / group for j in range(k)])
    last = k // 2
    at = int(_mser(means, last))
    return WarmUp(at * group, at < last)
