r"""Rates of arrival: exact intervals, and a pattern of steps over the day and the week.

exact interval   (Garwood 1936) of a rate after n arrivals in time e: from chi2_{a/2}(2n) / 2e to
                 chi2_{1-a/2}(2n + 2) / 2e. It holds the truth at least as often as promised.
pattern          a day has m slots; slot j had n_j arrivals in e_j of observed time. A pattern of k steps cuts the
                 circle of slots into k arcs of constant rate: log-likelihood sum over arcs of n log(n / e) - n. The
                 best arcs for each k are found by dynamic programming from every first cut, O(k m^3).
how many steps   the smallest -2 log-likelihood + k log N + 2 log C(m, k), N arrivals: BIC for the k rates, and the
                 number of ways to place k cuts (extended BIC, Chen and Chen 2008); one step has no cut. Where counts
                 vary more than Poisson ones the log-likelihood is divided by their dispersion.
weekdays         the same for groups of weekdays: each group with steps of its own, or all with the same steps times
                 a level of the group's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.data.observed import Observed, observed_time, slot_exposure, slot_of, within
from queueing_ucrl.learning.intervals import exact_interval

MOST_STEPS = 12
SLOTS = 24
DAYS = 7
GROUPINGS: dict[str, tuple[tuple[int, ...], ...]] = {  # 0 is Monday
    "all days alike": ((0, 1, 2, 3, 4, 5, 6),),
    "Monday to Friday, weekend": ((0, 1, 2, 3, 4), (5, 6)),
    "Monday to Friday, Saturday, Sunday": ((0, 1, 2, 3, 4), (5,), (6,)),
    "each weekday": tuple((day,) for day in range(DAYS)),
}


@dataclass(frozen=True)
class RateInterval(Finding):
    """A rate with its interval."""

    rate: float  # nan where nothing was observed
    low: float
    high: float
    count: float  # whole, but for a rate that shares its steps with other days: then how many arrivals it is worth
    exposure: float
    level: float = LEVEL


def rate_interval(count: float, exposure: float, level: float = LEVEL) -> RateInterval:
    """Garwood's exact interval of a Poisson rate; without exposure anything from 0 on is possible."""
    if count < 0 or not (exposure >= 0 and math.isfinite(exposure)) or (exposure == 0 and count > 0):
        raise ValueError(f"a rate needs a count and a time in which it was seen, got {count:g} in {exposure:g}")
    if exposure == 0:
        return RateInterval(math.nan, 0.0, math.inf, count, 0.0, level)
    low, high = exact_interval(float(count), float(exposure), 1.0 - level)
    return RateInterval(count / exposure, low, high, count, float(exposure), level)


# --- the best steps of a cycle ----------------------------------------------------------------------------------------


def log_likelihood(counts: FloatArray, exposures: FloatArray) -> FloatArray:
    """n log(n / e): what a constant rate explains, up to terms that all rates share; -inf without exposure."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = counts * np.log(counts / exposures)
    return np.where(exposures > 0, np.where(counts > 0, value, 0.0), -np.inf)


@dataclass(frozen=True)
class Segmentation(Finding):
    """The best way to cut a cycle of slots into k steps."""

    cuts: tuple[int, ...]  # slots at which a new step begins, in order; none for a single step
    log_likelihood: float

    @property
    def steps(self) -> int:
        return max(1, len(self.cuts))


def best_segmentations(counts: npt.ArrayLike, exposures: npt.ArrayLike, most: int = MOST_STEPS) -> list[Segmentation]:
    """The best cuts of the cycle into 1, 2, .. `most` steps, each step with some exposure."""
    n, e = np.asarray(counts, dtype=np.float64), np.asarray(exposures, dtype=np.float64)
    m = n.size
    if n.shape != e.shape or n.ndim != 1 or not m or np.any(n < 0) or np.any(e < 0) or np.any(n[e == 0] > 0):
        raise ValueError("slots need counts, and exposures that are positive unless the count is 0")
    if not e.sum() > 0:
        raise ValueError("nothing was observed in any slot")
    found = [Segmentation((), float(log_likelihood(n.sum(), e.sum())))]
    before = np.arange(m)[:, None] + np.arange(m + 1)  # [start, how far]
    n_sums, e_sums = (np.concatenate([[0.0], np.cumsum(np.concatenate([x, x]))]) for x in (n, e))
    # gain[s, i, j]: of the step from i to j, counted from a first cut at s
    far = before[:, None, :], before[:, :, None]
    length = np.arange(m + 1)[None, None, :] - np.arange(m + 1)[None, :, None]
    gain = np.where(length > 0, _arcs(n_sums, e_sums, *far), -np.inf)
    value = gain[:, 0, :]
    origins: list[IntArray] = []
    for _ in range(2, min(most, m) + 1):
        sums = value[:, :, None] + gain
        origins.append(np.argmax(sums, axis=1))
        value = np.max(sums, axis=1)
        start = int(np.argmax(value[:, m]))
        if not math.isfinite(value[start, m]):
            break
        found.append(Segmentation(_cuts(origins, start, m), float(value[start, m])))
    return found


def _arcs(n_sums: FloatArray, e_sums: FloatArray, ends: IntArray, starts: IntArray) -> FloatArray:
    # sums of floats: an arc of slots without exposure must come out as exactly nothing
    exposure = e_sums[ends] - e_sums[starts]
    exposure = np.where(exposure > 1e-12 * e_sums[-1], exposure, 0.0)
    return log_likelihood(np.maximum(n_sums[ends] - n_sums[starts], 0.0), exposure)


def _cuts(origins: list[IntArray], start: int, m: int) -> tuple[int, ...]:
    """Go back along the best steps, the last first."""
    at, places = m, []
    for origin in reversed(origins):
        at = int(origin[start, at])
        places.append((start + at) % m)
    return tuple(sorted({*places, start}))


def _criterion(found: Segmentation, slots: int, arrivals: float, dispersion: float) -> float:
    """Extended BIC: -2 log-likelihood / dispersion + k log N + 2 log C(m, k)."""
    k = found.steps
    places = math.log(math.comb(slots, k)) if k > 1 else 0.0
    return -2.0 * found.log_likelihood / dispersion + k * math.log(max(arrivals, 2.0)) + 2.0 * places


# --- a pattern of the day and the week --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate(Finding):
    """A pattern that was tried."""

    name: str
    steps: int  # rates, over all groups of days
    criterion: float  # extended BIC above that of the pattern chosen


@dataclass(frozen=True)
class StepPattern(Finding):
    """Rates that are constant between `times`, and come again after `period`."""

    name: str  # "constant", "steps of the day", "steps of the week: ..."
    period: float  # inf for a constant rate
    times: tuple[float, ...]  # where the rate changes, between 0 and the period
    rates: tuple[RateInterval, ...]  # before the first of them, after it, .. after the last
    candidates: tuple[Candidate, ...]  # what was tried, the best first
    unobserved: float  # of the period, the time that was never looked on: its rates are those of neighbours

    @property
    def mean_rate(self) -> float:
        """The mean over a period."""
        if not self.times:
            return self.rates[0].rate
        edges = (0.0, *self.times, self.period)
        return math.fsum(r.rate * (b - a) for r, (a, b) in zip(self.rates, pairwise(edges), strict=True)) / self.period

    @property
    def factors(self) -> tuple[float, ...]:
        """The rates over their mean."""
        mean = self.mean_rate
        return tuple(r.rate / mean for r in self.rates)

    def expected(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> FloatArray:
        """Expected arrivals in each stretch from start to end: the integral of the rate."""
        return self._integral(np.asarray(ends, dtype=np.float64)) - self._integral(np.asarray(starts, dtype=np.float64))

    def _integral(self, time: FloatArray) -> FloatArray:
        if not self.times:
            return self.rates[0].rate * time
        edges = np.array([0.0, *self.times, self.period])
        sums = np.concatenate([[0.0], np.cumsum(np.diff(edges) * [r.rate for r in self.rates])])
        whole = np.floor(time / self.period)
        return whole * sums[-1] + np.interp(time - whole * self.period, edges, sums)


def step_pattern(
    times: npt.ArrayLike,
    observed: Observed,
    day: float,
    *,
    slots: int = SLOTS,
    first_weekday: int | None = None,
    most: int = MOST_STEPS,
    dispersion: float = 1.0,
    level: float = LEVEL,
) -> StepPattern:  # long: an option a line
    """The pattern of steps with the smallest extended BIC: constant, over the day, or over the week.

    `day` is the length of a day, and a day begins at 0. Weekdays are looked at if the first day's is given (Monday is
    0) and a week or more was observed. `dispersion`: how much counts vary beyond the pattern
    (`levels.slot_dispersion`), 1 for Poisson counts; below 1 it is taken as 1.
    """
    array, pairs = within(times, observed)
    if not array.size:
        raise ValueError("a pattern needs arrivals, and there are none")
    weekly = first_weekday is not None and observed_time(pairs) >= DAYS * day
    days = DAYS if weekly else 1
    shape = (days, slots)
    counts = np.bincount(slot_of(array, days * day, days * slots), minlength=days * slots).reshape(shape).astype(float)
    exposures = slot_exposure(pairs, days * day, days * slots).reshape(shape)
    # a stamp that rounding puts at the edge of a slot belongs to the slot that was looked on
    _mend_edges(counts, exposures)
    shift = (first_weekday or 0) if weekly else 0
    groupings = (
        {name: [[(d - shift) % DAYS for d in group] for group in groups] for name, groups in GROUPINGS.items()}
        if weekly
        else {"all days alike": [[0]]}
    )
    fits = [
        fit
        for name, groups in groupings.items()
        for fit in _fits(name, groups, counts, exposures, most, max(1.0, dispersion))
    ]
    fits.sort(key=lambda fit: fit.criterion)
    best = fits[0]
    candidates = tuple(Candidate(fit.name, fit.steps, fit.criterion - best.criterion) for fit in fits)
    unobserved = float((exposures == 0).sum()) * (day / slots)
    return _pattern(best, day, days, slots, candidates, unobserved, level)


def _mend_edges(counts: FloatArray, exposures: FloatArray) -> None:
    flat_n, flat_e = counts.reshape(-1), exposures.reshape(-1)
    for k in np.flatnonzero((flat_n > 0) & (flat_e == 0)):
        neighbour = max((k - 1, k + 1), key=lambda j: flat_e[j % flat_n.size]) % flat_n.size
        flat_n[neighbour] += flat_n[k]
        flat_n[k] = 0


@dataclass(frozen=True)
class _Fit:
    name: str
    criterion: float
    steps: int
    rates: FloatArray  # (day, slot)
    count: FloatArray  # arrivals that speak for each rate
    exposure: FloatArray


def _fits(
    name: str, groups: list[list[int]], counts: FloatArray, exposures: FloatArray, most: int, dispersion: float
) -> list[_Fit]:
    """The best pattern of this grouping of days; of several groups also with the same steps for all."""
    n = np.array([counts[group].sum(axis=0) for group in groups])
    e = np.array([exposures[group].sum(axis=0) for group in groups])
    if np.any(e.sum(axis=1) == 0):  # a day of the week that was never looked on
        return []
    found = [_own_steps(name, groups, n, e, counts.shape, most, dispersion)]
    if len(groups) > 1 and np.all(n.sum(axis=1) > 0):
        found.append(_same_steps(name, groups, n, e, counts.shape, most, dispersion))
    return found


def _own_steps(
    name: str,
    groups: list[list[int]],
    n: FloatArray,
    e: FloatArray,
    shape: tuple[int, ...],
    most: int,
    dispersion: float,
) -> _Fit:
    total, slots, criterion, steps = n.sum(), n.shape[1], 0.0, 0
    scale = total / e.sum()  # exposures as expected counts: nothing depends on the unit of time
    rates, count, exposure = np.empty(shape), np.empty(shape), np.empty(shape)
    for group, counts, exposures in zip(groups, n, e, strict=True):
        tried = best_segmentations(counts, exposures * scale, most)
        values = [_criterion(one, slots, total, dispersion) for one in tried]
        best = tried[int(np.argmin(values))]
        criterion += min(values)
        steps += best.steps
        labels = _labels(best, slots)
        for array, values in ((count, counts), (exposure, exposures)):
            array[group] = np.bincount(labels, values)[labels]
        rates[group] = count[group] / exposure[group]
    return _Fit(name, criterion, steps, rates, count, exposure)


def _same_steps(
    name: str,
    groups: list[list[int]],
    n: FloatArray,
    e: FloatArray,
    shape: tuple[int, ...],
    most: int,
    dispersion: float,
) -> _Fit:
    """rate = level of the group times step: each is fitted with the other held, until the cuts stay and both agree."""
    total, slots = n.sum(), n.shape[1]
    scale = total / e.sum()
    levels = n.sum(axis=1) / (e.sum(axis=1) * scale)
    for _ in range(100):
        expected = (levels[:, None] * e * scale).sum(axis=0)
        tried = best_segmentations(n.sum(axis=0), expected, most)
        best = tried[int(np.argmin([_criterion(one, slots, total, dispersion) for one in tried]))]
        labels = _labels(best, slots)
        factors = (np.bincount(labels, n.sum(axis=0)) / np.bincount(labels, expected))[labels]
        before, levels = levels, n.sum(axis=1) / (factors * e * scale).sum(axis=1)
        if np.all(np.abs(levels - before) <= 1e-12 * levels):
            break
    fit = float(np.sum(n.sum(axis=1) * np.log(levels)))
    with np.errstate(divide="ignore", invalid="ignore"):
        fit += float(np.sum(np.where(n > 0, n * np.log(factors), 0.0)))
    # the term -n of both is the number of arrivals: the same for every pattern
    extra = (len(groups) - 1) * math.log(total)
    criterion = _criterion(Segmentation(best.cuts, fit), slots, total, dispersion) + extra
    rates, count, exposure = np.empty(shape), np.empty(shape), np.empty(shape)
    for k, group in enumerate(groups):
        rates[group] = levels[k] * factors * scale
        # 1 / count is the variance of the logarithm: of the step, of the level, less what both share
        step_counts = np.bincount(labels, n.sum(axis=0))[labels]
        with np.errstate(divide="ignore", invalid="ignore"):
            count[group] = 1.0 / (1.0 / step_counts + 1.0 / n[k].sum() - 1.0 / total)
            exposure[group] = np.where(rates[group] > 0, count[group] / rates[group], e[k].sum())
    return _Fit(f"{name}, same steps", criterion, best.steps + len(groups) - 1, rates, count, exposure)


def _labels(found: Segmentation, slots: int) -> IntArray:
    """Which step each slot belongs to."""
    if not found.cuts:
        return np.zeros(slots, dtype=np.int64)
    return (np.searchsorted(np.array(found.cuts), np.arange(slots), side="right") - 1) % len(found.cuts)


def _pattern(
    best: _Fit, day: float, days: int, slots: int, candidates: Sequence[Candidate], unobserved: float, level: float
) -> StepPattern:
    rates = best.rates.ravel()
    changes = [0, *(k for k in range(1, rates.size) if rates[k] != rates[k - 1])]
    counts = [float(best.count.flat[k]) for k in changes]
    intervals = [
        rate_interval(int(n) if n.is_integer() else n, float(best.exposure.flat[k]), level)
        for k, n in zip(changes, counts, strict=True)
    ]
    if len(changes) == 1:
        return StepPattern("constant", math.inf, (), (intervals[0],), tuple(candidates), unobserved)
    width, period = day / slots, days * day
    weekly = days > 1 and not np.array_equal(best.rates, np.broadcast_to(best.rates[0], best.rates.shape))
    if weekly:
        times = tuple((k // slots) * day + (k % slots) * width for k in changes[1:])
        return StepPattern(
            f"steps of the week: {best.name}", period, times, tuple(intervals), tuple(candidates), unobserved
        )
    kept = [j for j, k in enumerate(changes) if k < slots]
    times = tuple(changes[j] * width for j in kept[1:])
    return StepPattern(
        "steps of the day", day, times, tuple(intervals[j] for j in kept), tuple(candidates), unobserved / days
    )
