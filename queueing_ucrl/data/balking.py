r"""Does anybody balk? Whether arrivals depend on how many are there already.

In hour h of the day, with s jobs in the system, arrivals come at rate b_h e^{beta s}: beta < 0 if a crowd puts people
off, > 0 if it attracts, 0 if they do not look. N_hs arrivals came in e_hs of observed time. The rates b_h of the hours
are maximised out; what is left is the likelihood of where, given the hour, the arrivals fell, with the derivative

    U(beta) = sum_h [ sum_s s N_hs - N_h m_h(beta) ],   m_h(beta) = sum_s s e_hs e^{beta s} / sum_s e_hs e^{beta s}

The hours matter: at rush hour there are more arrivals and more jobs in the system, which looks like a crowd that
attracts. But they cost: an hour in which more came by chance was also fuller, so N_h m_h is too large on average, by
the covariance of its arrivals and its mean state, whether the hour is long or short. In each hour of the day this is
estimated from its repetitions (day d had N_hd arrivals and S_hd = integral of s dt in e_hd of time) and added:

    c = sum_h D / (D - 1) sum_d (N_hd - N_h e_hd / e_h) (S_hd - S_h e_hd / e_h) / e_h

beta solves U(beta) + c = 0; (U(0) + c) / sqrt(-D U'(0) + v) is nearly standard normal if nobody looks, v the variance
of c as the repetitions show it. D is 1 for Poisson arrivals; where counts vary D times as much, as they do where jobs
come in batches, so does U. Hours that were seen once tell nothing. Without a `day` the log is one hour, cut into ten
repetitions.

Gaps that are not exponential look like a crowd that matters, too: soon after an arrival there are more jobs, and if
gaps are regular nobody comes yet. So where a class is not Poisson, its rate is compared at the same age, the time since
its last arrival: rows are then hours and tenths of the gaps of each class. A renewal process has one rate at each age.

A day that is busier than others looks like a crowd that attracts, too: where days differ (`levels.day_factor`), an
attraction found here may be no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.observed import Observed, slot_of, within

SLOTS = 24
REPETITIONS = 10  # of a log without days
AGES = 10  # since the last arrival
MOST_STEPS = 200  # of Newton's method


@dataclass(frozen=True)
class BalkingTest(Finding):
    """How arrivals depend on the number in the system."""

    slope: float  # beta; nan where the state never varies within an hour, or no hour came again
    low: float
    high: float
    p_value: float  # of "arrivals do not depend on the state"; nan as above
    per_job: float  # e^beta - 1: change of the rate for each job more
    crowded: float  # rate when crowded over rate when quiet, at the two states below
    quiet_state: int  # a tenth of the time there are at most so many
    crowded_state: int  # a tenth of the time there are at least so many
    counts: tuple[int, ...]  # arrivals by state 0, 1, ..
    exposures: tuple[float, ...]  # time observed in each state
    expected: tuple[float, ...]  # arrivals by state if nobody looked
    level: float = LEVEL

    @property
    def per_job_words(self) -> str:
        """The change of the rate for each job more, in percent with its sign."""
        change = 100.0 * self.per_job
        return f"{change:+.2g} %" if abs(change) < 10.0 else f"{change:+,.0f} %"

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
    dispersion: float = 1.0,
    by_age: Sequence[npt.ArrayLike] = (),
) -> BalkingTest:
    """Arrivals (all requests, those turned away too) against the jobs in the system: when they entered and left.

    by_age: the same arrivals by class, each to be compared at the same time since the last of its class.

    A job that has not left has the exit inf. The state an arrival sees is the number before it: exits at the same time
    count, entries at the same time do not. dispersion: D.
    """
    from scipy.special import ndtr, ndtri

    every: dict[str, Any] = {"day": day, "slots": slots}
    if len(by_age):
        table = _together([state_table(of, entries, exits, observed, ages=True, **every) for of in by_age])
    else:
        table = state_table(arrivals, entries, exits, observed, **every)
    counts, exposures = table.counts, table.exposures
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(exposures.sum(axis=1) > 0, counts.sum(axis=1) / exposures.sum(axis=1), 0.0)
    expected = (rate[:, None] * exposures).sum(axis=0)
    beta, error, z = _slope(table, dispersion)
    reach = float(ndtri(0.5 + 0.5 * level)) * error
    quiet, crowded = _tenths(exposures.sum(axis=0))
    return BalkingTest(
        beta,
        beta - reach,
        beta + reach,
        float(2.0 * ndtr(-abs(z))),
        math.expm1(beta),
        math.exp(beta * (crowded - quiet)),
        quiet,
        crowded,
        tuple(int(n) for n in counts.sum(axis=0)),
        tuple((exposures.sum(axis=0) / max(1, len(by_age))).tolist()),
        tuple(expected.tolist()),
        level,
    )


@dataclass(frozen=True)
class Crowd:
    """How many are there: stretches of time, each with its middle, its length and its state, and the arrivals."""

    middle: FloatArray
    length: FloatArray
    state: IntArray
    times: FloatArray  # of arrivals
    at_arrival: IntArray  # the number before each


def crowd(
    arrivals: npt.ArrayLike, entries: npt.ArrayLike, exits: npt.ArrayLike, observed: Observed, marks: FloatArray
) -> Crowd:
    """The observed time, cut where somebody enters or leaves and at `marks`."""
    times, pairs = within(arrivals, observed)
    into, out = np.sort(np.asarray(entries, np.float64)), np.sort(np.asarray(exits, np.float64))
    if into.shape != out.shape or into.ndim != 1 or np.any(np.isnan(into)) or np.any(np.isnan(out)):
        raise ValueError("each entry needs an exit, inf for a job that has not left")
    edges = np.unique(np.concatenate([into, out[np.isfinite(out)], pairs.ravel(), marks]))
    middle, length = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    place = np.searchsorted(pairs[:, 0], middle, side="right") - 1
    seen = (place >= 0) & (middle < pairs[np.maximum(place, 0), 1])
    middle, length = middle[seen], length[seen]
    state = np.searchsorted(into, middle) - np.searchsorted(out, middle)
    at_arrival = np.searchsorted(into, times, side="left") - np.searchsorted(out, times, side="right")
    if np.any(state < 0) or np.any(at_arrival < 0):
        raise ValueError("jobs must not leave before they enter")
    return Crowd(middle, length, state, times, at_arrival)


@dataclass(frozen=True)
class StateTable:
    """Arrivals and observed time by hour of the day (rows) and state (columns)."""

    counts: FloatArray
    exposures: FloatArray
    correction: FloatArray  # c, by hour; nan for hours that did not come again
    uncertainty: FloatArray  # v, by hour


def state_table(
    arrivals: npt.ArrayLike,
    entries: npt.ArrayLike,
    exits: npt.ArrayLike,
    observed: Observed,
    *,
    day: float | None = None,
    slots: int = SLOTS,
    ages: bool = False,
) -> StateTable:
    """Count arrivals, and add up time, in each state of each hour; or of each hour and age."""
    at, pairs = within(arrivals, observed)
    begin, end = float(pairs[0, 0]), float(pairs[-1, 1])
    width = day / slots if day else (end - begin) / REPETITIONS
    shift = 0.0 if day else begin
    first, last = math.ceil((begin - shift) / width), math.floor((end - shift) / width)
    marks = shift + width * np.arange(first, last + 1, dtype=np.float64)
    since, edges = _ages(at, pairs) if ages else (np.zeros(0), np.zeros(0))
    if ages:
        marks = np.concatenate([marks, since, np.add.outer(since, edges).ravel()])
        marks = marks[(marks > begin) & (marks < end)]
    found = crowd(arrivals, entries, exits, observed, marks)
    middle, length, state, at_arrival, times = found.middle, found.length, found.state, found.at_arrival, found.times
    both = np.concatenate([middle, times])
    hours = slot_of(both, day, slots) if day else np.zeros(both.size, dtype=np.int64)
    if ages:
        place = np.concatenate([np.searchsorted(since, middle), np.searchsorted(since, times, side="left")])
        age = both - since[np.maximum(place - 1, 0)]
        hours = hours * (edges.size + 1) + np.searchsorted(edges, age)
    repetition = np.floor(both / day) if day else np.minimum(np.floor((both - begin) / width), REPETITIONS - 1)
    return _table(length, state, at_arrival, hours, repetition.astype(np.int64))


def _ages(times: FloatArray, pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(when ages begin: at arrivals and where looking begins; the ages that cut the gaps into tenths)."""
    since = np.unique(np.concatenate([pairs[:, 0], times]))
    return since, np.unique(np.quantile(np.diff(since), np.arange(1, AGES) / AGES)) if since.size > 1 else np.zeros(0)


def _together(tables: Sequence[StateTable]) -> StateTable:
    """The rows of all."""
    columns = max(table.counts.shape[1] for table in tables)

    def wide(array: FloatArray) -> FloatArray:
        return np.pad(array, ((0, 0), (0, columns - array.shape[1])))

    return StateTable(
        np.concatenate([wide(table.counts) for table in tables]),
        np.concatenate([wide(table.exposures) for table in tables]),
        np.concatenate([table.correction for table in tables]),
        np.concatenate([table.uncertainty for table in tables]),
    )


def _table(length: FloatArray, state: IntArray, at_arrival: IntArray, hours: IntArray, days: IntArray) -> StateTable:
    """From stretches (length, state) and arrivals (the state seen); hours and days of stretches, then of arrivals."""
    rows, columns = 1 + int(hours.max()), 1 + int(max(state.max(), at_arrival.max(initial=0)))
    here, there = hours[: length.size], hours[length.size :]
    size = rows * columns
    exposures = np.bincount(here * columns + state, length, minlength=size).reshape(rows, columns)
    counts = np.bincount(there * columns + at_arrival, minlength=size).reshape(rows, columns)
    pieces, which = np.unique(days * rows + hours, return_inverse=True)
    e, s, n = (
        np.bincount(which[part], weights, minlength=pieces.size)
        for part, weights in (
            (slice(None, length.size), length),
            (slice(None, length.size), length * state),
            (slice(length.size, None), np.ones(there.size)),
        )
    )
    hour = pieces % rows
    e_h, s_h, n_h, repeated = (np.bincount(hour, x, minlength=rows) for x in (e, s, n, e > 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        products = (n - n_h[hour] * e / e_h[hour]) * (s - s_h[hour] * e / e_h[hour])
        factor = repeated / ((repeated - 1.0) * e_h)
        mean = np.bincount(hour, products, minlength=rows) / repeated
        squares = np.bincount(hour, (products - mean[hour]) ** 2, minlength=rows)
        correction = factor * mean * repeated
        uncertainty = factor * factor * squares * repeated / (repeated - 1.0)
    known = (repeated > 1) & (e_h > 0)
    return StateTable(
        counts.astype(np.float64),
        exposures.astype(np.float64),
        np.where(known, correction, math.nan),
        np.where(known, uncertainty, math.nan),
    )


def _slope(table: StateTable, dispersion: float) -> tuple[float, float, float]:
    """(beta, its error, z of the test); nan where the state never varies within an hour or no hour came again."""
    kept = (table.counts.sum(axis=1) > 0) & (np.count_nonzero(table.exposures, axis=1) > 1)
    kept &= ~np.isnan(table.correction)
    n, e = table.counts[kept].sum(axis=1), table.exposures[kept]
    if not n.size:
        return math.nan, math.nan, math.nan
    states = np.arange(e.shape[1], dtype=np.float64)
    seen = float((table.counts[kept] * states).sum() + table.correction[kept].sum())
    mean, variance = _tilted(0.0, n, e, states)
    v = float(table.uncertainty[kept].sum())
    z = (seen - mean) / math.sqrt(dispersion * variance + v)
    lowest = float((n * np.argmax(e > 0, axis=1)).sum())
    highest = float((n * (states.size - 1 - np.argmax(e[:, ::-1] > 0, axis=1))).sum())
    if not lowest < seen < highest:  # all arrivals in the emptiest states, say: no slope is steep enough
        return math.copysign(math.inf, z), math.inf, z
    beta = 0.0
    for _ in range(MOST_STEPS):
        mean, variance = _tilted(beta, n, e, states)
        step = min(max((seen - mean) / variance, -0.5), 0.5)
        beta += step
        if abs(step) <= 1e-12 * (1.0 + abs(beta)):
            break
    information = _tilted(beta, n, e, states)[1]
    return beta, math.sqrt(dispersion * information + v) / information, z


def _tilted(beta: float, n: FloatArray, e: FloatArray, states: FloatArray) -> tuple[float, float]:
    """Sums over hours of N times the mean and the variance of the state, weighted by e^{beta s}."""
    weights = e * np.exp(beta * states - max(beta * states[-1], 0.0))
    total = weights.sum(axis=1)
    mean = (weights * states).sum(axis=1) / total
    apart = states - mean[:, None]
    variance = (weights * apart * apart).sum(axis=1) / total
    return float((n * mean).sum()), float((n * variance).sum())


def _tenths(exposures: FloatArray) -> tuple[int, int]:
    share = np.cumsum(exposures) / exposures.sum()
    return int(np.searchsorted(share, 0.1)), int(np.searchsorted(share, 0.9))
