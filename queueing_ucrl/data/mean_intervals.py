r"""The mean of durations some of which had not ended when the log did, with an interval that minds skewness.

    censoring   a service that is under way at the end of a log has lasted c so far, so takes longer; the services that
                ended are the shorter ones. With d_i ends among the r_i services that lasted until x_i, Kaplan and
                Meier's S(t) = prod_{x_i <= t} (1 - d_i / r_i), and the mean is the area below S. Without censoring it
                is the mean of the durations.
    variance    Greenwood's: sum_i A_i^2 d_i / (r_i (r_i - d_i)), A_i the area below S beyond x_i; times n / (n - 1) for
                n ends. Without censoring it is the usual s^2 / n.
    skewness    Student's T = (mean - truth) / error leans to the left where durations lean to the right. Hall's (1992)
                g(T) = T + a T^2 / 3 + a^2 T^3 / 27 + a / 6, a = (skewness of the durations) / sqrt(n), does not, to the
                order of 1 / n; its inverse is 3 (cbrt(1 + a (y - a / 6)) - 1) / a. The interval holds those means for
                which g(T) is between the quantiles of Student's law.

At 200 lognormal durations of cv 1.8 Hall's interval holds the truth in 93 % of samples, Student's in 91 %; at 600 both
in 94 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.model.quantiles import student_quantile

NO_SKEWNESS = 1e-6  # of a: below, g is the identity but for rounding errors


@dataclass(frozen=True)
class MeanInterval(Finding):
    """A mean with its interval."""

    mean: float
    low: float
    high: float  # inf where a single duration cannot tell


def mean_interval(ended: FloatArray, running: FloatArray, level: float = LEVEL) -> MeanInterval:
    """The mean of durations: those that `ended`, and those that lasted longer than `running`."""
    n = ended.size
    places, jumps, survival, at_risk, ends = _survival(ended, running)
    areas = survival * np.diff(places, append=places[-1])
    beyond = np.cumsum(areas[::-1])[::-1]  # the area below S from each place on
    mean = float(places[0] + beyond[0])
    if n < 2:
        return MeanInterval(mean, 0.0, math.inf)
    left = at_risk - ends
    some = left > 0
    variance = float(np.sum(beyond[some] ** 2 * ends[some] / (at_risk[some] * left[some]))) * n / (n - 1)
    if variance == 0.0:
        return MeanInterval(mean, mean, mean)
    apart = places - mean
    spread = float(np.sum(jumps * apart**2))
    a = float(np.sum(jumps * apart**3)) / spread**1.5 / math.sqrt(n)
    error, reach = math.sqrt(variance), student_quantile(level, n - 1.0)
    return MeanInterval(mean, max(0.0, mean - error * _unbent(reach, a)), mean - error * _unbent(-reach, a))


def _survival(
    ended: FloatArray, running: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """(places of ends in order, jumps of S there, S just after, how many lasted until then, how many ended).

    What is running beyond the last end ends there, so that S comes down to 0 (Efron's convention).
    """
    places, counts = np.unique(ended, return_counts=True)
    at_risk = ended.size - np.concatenate([[0], np.cumsum(counts)[:-1]])
    at_risk = at_risk + running.size - np.searchsorted(np.sort(running), places, side="left")
    at_risk[-1] = counts[-1]
    survival = np.cumprod(1.0 - counts / at_risk)
    jumps = -np.diff(survival, prepend=1.0)
    return places, jumps, survival, at_risk.astype(np.float64), counts.astype(np.float64)


def _unbent(y: float, a: float) -> float:
    """The inverse of Hall's g."""
    if abs(a) < NO_SKEWNESS:
        return y
    return 3.0 * (float(np.cbrt(1.0 + a * (y - a / 6.0))) - 1.0) / a
