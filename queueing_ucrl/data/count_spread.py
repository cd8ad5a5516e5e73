r"""How far a rate is known where counts vary more, or less, than Poisson counts: from days, or from equal stretches.

Window k has N_k arrivals and m_k expected ones, scaled so that both add up to N. With K windows,

    index         D = sum_k (N_k - m_k)^2 / m_k / (K - 1): 1 for Poisson counts. (K - 1) D is nearly chi-square of K - 1
                  degrees then, and a test that looks at all of the log: it sees a rate that moves slowly, which
                  neighbours do not show.
    neighbours    r = sum_k z_k z_{k+1} / sum_k z_k^2 + 1 / K with z_k = (N_k - m_k) / sqrt(m_k), at least 0. Windows
                  that are not long against bursts move together, and the variance of N is then (1 + r) / (1 - r) times
                  that of independent windows (those of an autoregression).
    interval      N (1 +- t h), with h^2 = sum_k (N_k - m_k)^2 K / (K - 1) (1 + r) / (1 - r) / N^2 and Student's t of
                  K - 1 degrees.

Where r is above a half, and beyond chance (1 %), the log is too short to know how far its rate wanders: no interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.model.quantiles import student_quantile

TOGETHER = 0.5  # correlation of neighbours: above, windows cannot be taken as separate looks at the rate
BEYOND_CHANCE = 2.33  # standard errors, 1 / sqrt(K) each: 1 % of independent windows


@dataclass(frozen=True)
class CountSpread(Finding):
    """How counts of windows vary."""

    windows: int
    index: float  # D
    p_value: float  # of "no more than Poisson counts", one-sided
    neighbours: float  # r
    half_width: float  # of the interval of the rate, over the rate; inf: no interval holds

    @property
    def long_index(self) -> float:
        """The variance of the count of all of the log over its mean, at least 1."""
        return max(1.0, self.index * (1.0 + self.neighbours) / (1.0 - self.neighbours))


def count_spread(counts: FloatArray, expected: FloatArray, level: float = LEVEL) -> CountSpread:
    """The spread of counts around what is expected, which matters up to a factor."""
    from scipy.stats import chi2

    seen = expected > 0
    n, m = counts[seen].astype(np.float64), expected[seen].astype(np.float64)
    size, total = n.size, math.fsum(n.tolist())
    if size < 3 or total == 0.0:
        return CountSpread(size, math.nan, math.nan, 0.0, math.inf)
    m = m * (total / math.fsum(m.tolist()))
    apart = n - m
    z = apart / np.sqrt(m)
    q = math.fsum((z * z).tolist())
    if q == 0.0:
        return CountSpread(size, 0.0, 1.0, 0.0, 0.0)
    neighbours = min(0.99, max(0.0, math.fsum((z[1:] * z[:-1]).tolist()) / q + 1.0 / size))
    p = float(chi2.sf(q, size - 1))
    if neighbours > max(TOGETHER, BEYOND_CHANCE / math.sqrt(size)):
        return CountSpread(size, q / (size - 1), p, neighbours, math.inf)
    squared = math.fsum((apart * apart).tolist()) * size / (size - 1) * (1.0 + neighbours) / (1.0 - neighbours)
    half = student_quantile(level, size - 1.0) * math.sqrt(squared) / total
    return CountSpread(size, q / (size - 1), p, neighbours, half)
