r"""What can be said of the arrival rates with confidence 1 - delta (Prop. 4.2, Prop. 7.1): pure functions.

Symbols: Lambda^ = rate estimate, nu = arrivals of the last episode, N = all arrivals, p^ = shares of the classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.elementary import log


def truncation(lowest_rate: float, delta: float) -> float:
    """b in B_t = sqrt(b t), b = 2 / (Lambda_min^2 log(1/delta)): gap number t counts only if it is at most B_t.

    Infinite where Lambda_min = 0: then nothing is known that would tell a long gap from an odd one.
    """
    if lowest_rate == 0.0:
        return math.inf
    return 2.0 / (lowest_rate * lowest_rate * log(1.0 / delta))


def truncated_mean(gaps: FloatArray, lowest_rate: float, delta: float) -> float:
    """(1/nu) sum_t L_t 1{L_t <= B_t} (Def. 4.1), 1/Lambda^. The world adds it up arrival by arrival, in O(1) each."""
    t = np.arange(1, gaps.size + 1)
    return float(np.where(gaps * gaps <= truncation(lowest_rate, delta) * t, gaps, 0.0).sum() / gaps.size)


def gap_radius(count: int, lowest_rate: float, delta: float) -> float:
    """e = (4 / Lambda_min) sqrt((2/nu) log(1/delta)): |1/Lambda - 1/Lambda^| <= e with probability 1 - delta."""
    if count == 0 or lowest_rate == 0.0:
        return math.inf
    return 4.0 / lowest_rate * math.sqrt(2.0 / count * log(1.0 / delta))


def total_rate_interval(
    estimate: float, radius: float, bounds: tuple[float, float], *, learn_upper_bound: bool
) -> tuple[float, float]:
    """[Lambda^ - Lambda_max^2 e, Lambda^ + Lambda_max^2 e] cut to [Lambda_min, Lambda_max] (Prop. 4.2).

    With learn_upper_bound also at most Lambda^ / (1 - Lambda^ e) where Lambda^ e < 1 (Prop. 7.1).
    Nothing seen (e infinite): the bounds themselves. All of it beyond a bound: that bound.
    """
    low, high = bounds
    if not math.isfinite(radius):
        return low, high
    lower, upper = estimate - high * high * radius, estimate + high * high * radius
    if learn_upper_bound and estimate * radius < 1.0:
        upper = min(upper, estimate / (1.0 - estimate * radius))
    return min(max(lower, low), high), min(max(upper, low), high)


def share_radius(count: int, classes: int, delta: float) -> float:
    """eps_p = sqrt((2m/N) log(2/delta)): |p - p^|_1 <= eps_p with probability 1 - delta; 2 where nothing was seen."""
    if count == 0:
        return 2.0
    return math.sqrt(2.0 * classes / count * log(2.0 / delta))


def weissman_radius(count: int, classes: int, delta: float) -> float:
    """sqrt((2/N) log((2^m - 2)/delta)), Weissman et al. (2003) as they state it: never above the paper's radius."""
    if classes == 1:
        return 0.0
    if count == 0:
        return 2.0
    return math.sqrt(2.0 / count * (log(math.ldexp(1.0, classes) - 2.0) - log(delta)))


@dataclass(frozen=True)
class ConfidenceSet:
    """The plausible rates: Lambda in an interval, p in an l1 ball."""

    rate_estimate: float  # Lambda^; nan before anything was seen
    rate_radius: float  # eps_Lambda = Lambda_max^2 e
    rate_interval: tuple[float, float]
    shares: FloatArray  # p^; all 0 before anything was seen
    share_radius: float  # eps_p
    delta: float

    @classmethod
    def from_episode(
        cls,
        arrivals: int,
        truncated_gap_sum: float,
        class_totals: IntArray,
        delta: float,
        bounds: tuple[float, float],
        *,
        learn_upper_bound: bool,
    ) -> ConfidenceSet:
        """From the episode just ended: nu and the truncated sum; and from all episodes: arrivals by class."""
        low, high = bounds
        radius = gap_radius(arrivals, low, delta)
        estimate = arrivals / truncated_gap_sum if arrivals and truncated_gap_sum > 0.0 else math.nan
        if math.isnan(estimate):
            radius = math.inf
        total = int(class_totals.sum())
        return cls(
            rate_estimate=estimate,
            rate_radius=high * high * radius,
            rate_interval=total_rate_interval(estimate, radius, bounds, learn_upper_bound=learn_upper_bound),
            shares=class_totals / max(total, 1),
            share_radius=share_radius(total, class_totals.size, delta),
            delta=delta,
        )

    @classmethod
    def prior(cls, classes: int, bounds: tuple[float, float]) -> ConfidenceSet:
        """Before the first arrival: all rates within the bounds, all shares."""
        return cls(math.nan, math.inf, bounds, np.zeros(classes), 2.0, 1.0)

    @property
    def optimistic_rate(self) -> float:
        """Lambda~: the largest plausible rate (Thm 4.3)."""
        return self.rate_interval[1]

    def contains(self, arrival_rates: FloatArray) -> bool:
        """Whether these rates are plausible."""
        total = float(arrival_rates.sum())
        low, high = self.rate_interval
        if not low <= total <= high:
            return False
        return self.share_radius >= 2.0 or bool(np.abs(arrival_rates / total - self.shares).sum() <= self.share_radius)

    def columns(self) -> dict[str, Any]:
        """The set as columns of the episode table."""
        return {
            "rate_estimate": self.rate_estimate,
            "rate_radius": self.rate_radius,
            "rate_low": self.rate_interval[0],
            "optimistic_rate": self.rate_interval[1],
            "share_estimates": self.shares.tolist(),
            "share_radius": self.share_radius,
        }
