r"""Does anybody balk? Whether arrivals depend on how many are there already.

In hour h of the day, with s jobs in the system, arrivals come at rate b_h e^{beta s}: beta < 0 if a crowd puts people
off, > 0 if it attracts, 0 if they do not look. N_hs arrivals came in e_hs of observed time. The rates b_h of the hours
are maximised out; what is left is the likelihood of where, given the hour, the arrivals fell:

    l(beta) = sum_h [ beta sum_s s N_hs - N_h log(sum_s e_hs e^{beta s} / e_h) ]

It is concave: beta by Newton's method, its error from the second derivative, and the likelihood ratio
2 (l(beta) - l(0)) is chi-square with 1 degree if nobody looks. The hours matter: at rush hour there are more arrivals
and more jobs in the system, which looks like a crowd that attracts. So does a day that is busier than others
(see `levels.day_factor`): where days differ, an attraction found here may be no more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import ALPHA, LEVEL, Finding
from queueing_ucrl.data.observed import Observed, slot_of, within

SLOTS = 24
MOST_STEPS = 100  # of Newton's method


@dataclass(frozen=True)
class Balking(Finding):
    """How arrivals depend on the number in the system."""

    slope: float  # beta; nan where the state never varies
    low: float
    high: float
    p_value: float  # of "arrivals do not depend on the state"
    per_job: float  # e^beta - 1: change of the rate for each job more
    crowded: float  # rate when crowded over rate when quiet, at the two states below
    quiet_state: int  # a tenth of the time there are at most so many
    crowded_state: int  # a tenth of the time there are at least so many
    counts: tuple[int, ...]  # arrivals by state 0, 1, ..
    exposures: tuple[float, ...]  # time observed in each state
    expected: tuple[float, ...]  # arrivals by state if nobody looked
    level: float = LEVEL

    @property
    def direction(self) -> str:
        """In a word: none, balking or attraction."""
        if not self.p_value < ALPHA:
            return "none"
        return "balking" if self.slope < 0 else "attraction"


def balking(
    arrivals: npt.ArrayLike,
    entries: npt.ArrayLike,
    exits: npt.ArrayLike,
    observed: Observed,
    *,
    day: float | None = None,
    slots: int = SLOTS,
    level: float = LEVEL,
) -> Balking:
    """Arrivals (all requests, those turned away too) against the jobs in the system: when they entered and left.

    A job that has not left has the exit inf. The state an arrival sees is the number before it: exits at the same time
    count, entries at the same time do not.
    """
    from scipy.special import ndtri
    from scipy.stats import chi2

    counts, exposures = state_table(arrivals, entries, exits, observed, day=day, slots=slots)
    by_hour = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(exposures.sum(axis=1) > 0, by_hour / exposures.sum(axis=1), 0.0)
    expected = (share[:, None] * exposures).sum(axis=0)
    beta, information, ratio = _slope(counts, exposures)
    reach = float(ndtri(0.5 + 0.5 * level)) / math.sqrt(information) if information > 0 else math.inf
    quiet, crowded = _tenths(exposures.sum(axis=0))
    return Balking(
        beta, beta - reach, beta + reach, float(chi2.sf(max(ratio, 0.0), 1)), math.expm1(beta),
        math.exp(beta * (crowded - quiet)), quiet, crowded, tuple(int(n) for n in counts.sum(axis=0)),
        tuple(exposures.sum(axis=0).tolist()), tuple(expected.tolist()), level,
    )  # fmt: skip


def state_table(
    arrivals: npt.ArrayLike,
    entries: npt.ArrayLike,
    exits: npt.ArrayLike,
    observed: Observed,
    *,
    day: float | None = None,
    slots: int = SLOTS,
) -> tuple[FloatArray, FloatArray]:
    """(arrivals, observed time), a row for each hour of the day, a column for each state."""
    times, pairs = within(arrivals, observed)
    into, out = np.sort(np.asarray(entries, np.float64)), np.sort(np.asarray(exits, np.float64))
    if into.shape != out.shape or into.ndim != 1 or np.any(np.isnan(into)) or np.any(np.isnan(out)):
        raise ValueError("each entry needs an exit, inf for a job that has not left")

    def state_before(t: FloatArray) -> IntArray:
        return np.searchsorted(into, t, side="left") - np.searchsorted(out, t, side="right")

    width = day / slots if day else None
    marks = (
        width * np.arange(math.ceil(pairs[0, 0] / width), math.floor(pairs[-1, 1] / width) + 1)
        if width
        else np.empty(0)
    )
    edges = np.unique(np.concatenate([into, out[np.isfinite(out)], pairs.ravel(), marks]))
    start, end = edges[:-1], edges[1:]
    middle = 0.5 * (start + end)
    place = np.searchsorted(pairs[:, 0], middle, side="right") - 1
    seen = (place >= 0) & (middle < pairs[np.maximum(place, 0), 1])
    start, end, middle = start[seen], end[seen], middle[seen]
    state = np.searchsorted(into, middle) - np.searchsorted(out, middle)
    at_arrival = state_before(times)
    if np.any(state < 0) or np.any(at_arrival < 0):
        raise ValueError("jobs must not leave before they enter")
    rows, of_arrivals = _hours(middle, day, slots), _hours(times, day, slots)
    columns = 1 + int(max(state.max(initial=0), at_arrival.max(initial=0)))
    shape = (1 + int(max(rows.max(initial=0), of_arrivals.max(initial=0))), columns)
    size = shape[0] * shape[1]
    exposures = np.bincount(rows * columns + state, end - start, minlength=size).reshape(shape).astype(np.float64)
    counts = np.bincount(of_arrivals * columns + at_arrival, minlength=size).reshape(shape).astype(np.float64)
    return counts, exposures


def _hours(times: FloatArray, day: float | None, slots: int) -> IntArray:
    """Which row times belong to."""
    return slot_of(times, day, slots) if day else np.zeros(times.size, dtype=np.int64)


def _slope(counts: FloatArray, exposures: FloatArray) -> tuple[float, float, float]:
    """(beta, information, likelihood ratio); nan, 0 and 0 where the state never varies within an hour."""
    kept = (counts.sum(axis=1) > 0) & (np.count_nonzero(exposures, axis=1) > 1)
    n, e = counts[kept].sum(axis=1), exposures[kept]
    states = np.arange(counts.shape[1], dtype=np.float64)
    seen = float((counts[kept] * states).sum())
    if not n.size:
        return math.nan, 0.0, 0.0
    # an arrival in a state of no exposure, at the very edge of an hour, counts for the slope as any other
    lowest = (n * np.argmax(e > 0, axis=1)).sum()
    highest = (n * (states.size - 1 - np.argmax(e[:, ::-1] > 0, axis=1))).sum()
    if not lowest < seen < highest:
        return (-math.inf if seen <= lowest else math.inf), 0.0, math.inf
    beta = 0.0
    for _ in range(MOST_STEPS):
        mean, variance, _ = _tilted(beta, n, e, states)
        step = (seen - mean) / variance
        step = min(max(step, -1.0), 1.0)
        beta += step
        if abs(step) <= 1e-12 * (1.0 + abs(beta)):
            break
    _, information, value = _tilted(beta, n, e, states)
    return beta, information, 2.0 * (beta * seen - value)


def _tilted(beta: float, n: FloatArray, e: FloatArray, states: FloatArray) -> tuple[float, float, float]:
    """Sums over hours of n times mean, variance, and log of the mean of e^{beta s}."""
    top = beta * (states[-1] if beta > 0 else 0.0)
    weights = e * np.exp(beta * states - top)
    total = weights.sum(axis=1)
    mean = (weights * states).sum(axis=1) / total
    variance = (weights * states * states).sum(axis=1) / total - mean * mean
    value = np.log(total / e.sum(axis=1)) + top
    return float((n * mean).sum()), float((n * variance).sum()), float((n * value).sum())


def _tenths(exposures: FloatArray) -> tuple[int, int]:
    share = np.cumsum(exposures) / exposures.sum()
    return int(np.searchsorted(share, 0.1)), int(np.searchsorted(share, 0.9))
