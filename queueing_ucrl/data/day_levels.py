r"""The level of arrivals from day to day: days that differ by chance, and changes that last.

Day d has N_d arrivals and e_d expected ones, known up to a common factor (the pattern over the time observed).

    day factor      N_d is Poisson of mean m_d F_d, with independent gamma factors F_d of mean 1 and coefficient of
                    variation cv: its variance is m_d + cv^2 m_d^2. With m_d = N e_d / e and
                    Q = sum (N_d - m_d)^2 / m_d, E[Q] = D - p + cv^2 (N - sum m_d^2 / N), which gives cv (the moment
                    estimator of DerSimonian and Laird); p numbers were fitted to the D days. Q is chi-square of D - p
                    degrees where all days are alike: a test. The interval holds those cv for which
                    sum (N_d - m_d)^2 / (m_d + cv^2 m_d^2), with the level fitted by the same weights, is between the
                    quantiles of chi-square.
    change points   the best split into two levels by the likelihood ratio
                    2 [n_1 log(n_1 / e_1) + n_2 log(n_2 / e_2) - n log(n / e)], judged by its law for a constant level,
                    which given N is that of multinomial counts: p = (1 + #{simulated >= seen}) / (B + 1) is exact. The
                    parts are split in the same way. A part that has a share of the bins gets that share of the 5 %, so
                    that all tests together raise a false alarm in 5 % of logs at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.observed import Observed, counts_in, within
from queueing_ucrl.data.poisson_tests import Dispersion, pearson_dispersion
from queueing_ucrl.data.rates import RateInterval, StepPattern, log_likelihood, rate_interval

SIMULATIONS = 1999
SEED = 20_170_407  # of simulated null laws: any; fixed so that the same log gives the same answer


def day_counts(
    times: npt.ArrayLike, observed: Observed, day: float, pattern: StepPattern | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(day numbers, counts, expected counts) of the days on which something was observed.

    Day d is [d day, (d + 1) day). Expected are those of the pattern in the observed part of the day, or without one the
    observed time itself.
    """
    array, pairs = within(times, observed)
    starts, ends = _cut_at_midnight(pairs, day)
    _, n = counts_in(array, starts, ends)
    e = ends - starts if pattern is None else pattern.expected(starts, ends)
    number = np.floor(0.5 * (starts + ends) / day)
    days, which = np.unique(number, return_inverse=True)
    return days, np.bincount(which, n).astype(np.float64), np.bincount(which, e).astype(np.float64)


def _cut_at_midnight(pairs: FloatArray, day: float) -> tuple[FloatArray, FloatArray]:
    """Stretches that do not pass midnight."""
    if not (day > 0 and math.isfinite(day)):
        raise ValueError(f"the length of a day must be a positive finite number, got {day:g}")
    starts, ends = [], []
    for begin, end in pairs:
        inner = day * np.arange(math.floor(begin / day) + 1, math.ceil(end / day))
        edges = np.concatenate([[begin], inner[(inner > begin) & (inner < end)], [end]])
        starts.append(edges[:-1])
        ends.append(edges[1:])
    return np.concatenate(starts), np.concatenate(ends)


# --- days that differ by chance ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DayFactorFit(Finding):
    """How much the level differs from day to day, beyond Poisson."""

    cv: float  # of the day's factor; nan of fewer than two days
    low: float
    high: float  # inf where the days cannot bound it
    p_value: float  # of "all days have the same level"
    days: int
    dispersion: float  # Q / (D - p): 1 if all days have the same level
    level: float = LEVEL


def day_factor(
    counts: npt.ArrayLike, expected: npt.ArrayLike, *, parameters: int = 1, level: float = LEVEL
) -> DayFactorFit:  # long: a field of the fit a line
    """The coefficient of variation of the days' factor, by moments, with its interval and a test of 0.

    `parameters` were fitted to the days' totals: 1 for the level, more for levels of weekdays.
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2

    n, e = np.asarray(counts, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if n.shape != e.shape or n.ndim != 1 or not np.all(e >= 0) or np.any(n[e == 0] > 0):
        raise ValueError("each day needs a count and an expected count, positive unless the count is 0")
    n, e = n[e > 0], e[e > 0]
    freedom, total = n.size - parameters, float(n.sum())
    if freedom < 1 or total == 0.0:
        return DayFactorFit(math.nan, math.nan, math.nan, math.nan, n.size, math.nan, level)
    e = e * (total / e.sum())
    q = _spread(n, e, 0.0)
    squared = max(0.0, (q - freedom) / (total - float(np.sum(e * e)) / total))
    tail = 0.5 * (1.0 - level)

    def solved(target: float) -> float:
        """The cv at which the spread is this; 0 if it is smaller already, inf if it never falls so far."""
        if _spread(n, e, 0.0) <= target:
            return 0.0
        top = 1.0
        while _spread(n, e, top) > target:
            top *= 4.0
            if top > 1e6:
                return math.inf
        return math.sqrt(float(brentq(lambda c: _spread(n, e, c) - target, 0.0, top, xtol=1e-12)))

    return DayFactorFit(
        math.sqrt(squared),
        solved(float(chi2.isf(tail, freedom))),
        solved(float(chi2.ppf(tail, freedom))),
        float(chi2.sf(q, freedom)),
        n.size,
        q / freedom,
        level,
    )


def local_day_cv(counts: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    r"""The cv of the days' factor from neighbours only, so that a level that changes for good is not taken for it.

    With x = N / e and the level a = (N + N') / (e + e') of two days that follow each other,
    E[(x - x')^2] = a (1/e + 1/e') + 2 a^2 cv^2: the sums of both sides over all such pairs give cv. 0 of fewer than 3.
    """
    n, e = np.asarray(counts, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    n, e = n[e > 0], e[e > 0]
    if n.size < 3 or n.sum() == 0:
        return 0.0
    x, a = n / e, (n[1:] + n[:-1]) / (e[1:] + e[:-1])
    beyond = np.diff(x) ** 2 - a * (1.0 / e[1:] + 1.0 / e[:-1])
    return math.sqrt(max(0.0, float(beyond.sum() / (2.0 * np.sum(a * a)))))


def _spread(n: FloatArray, e: FloatArray, squared_cv: float) -> float:
    """sum (N_d - a e_d)^2 / (e_d + cv^2 e_d^2), with the level a that makes it smallest."""
    variance = e + squared_cv * e * e
    a = np.sum(n * e / variance) / np.sum(e * e / variance)
    return float(np.sum((n - a * e) ** 2 / variance))


def slot_dispersion(
    counts: npt.ArrayLike, expected: npt.ArrayLike, *, level: float = LEVEL
) -> tuple[Dispersion, Dispersion]:
    """(given the slot, given slot and day): dispersion of counts by day (rows) and slot (columns).

    What the first has more than the second is the days' factor; what the second has above 1 is neither the pattern nor
    the day: batches, or a rate that moves within the day.
    """
    n, e = np.asarray(counts, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if n.ndim != 2 or n.shape != e.shape:
        raise ValueError("slot_dispersion needs tables of counts and expected counts, a row for each day")
    seen = e > 0
    days, slots = int(seen.any(axis=1).sum()), int(seen.any(axis=0).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        of_slot = np.where(seen, e * (n.sum(axis=0) / e.sum(axis=0)), 0.0)
        of_day = np.where(seen, of_slot * (n.sum(axis=1) / of_slot.sum(axis=1))[:, None], 0.0)
    kept = of_day > 0
    first = pearson_dispersion(n[of_slot > 0], of_slot[of_slot > 0], parameters=slots, level=level)
    return first, pearson_dispersion(n[kept], of_day[kept], parameters=slots + days - 1, level=level)


# --- changes that last ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChangePoint(Finding):
    """A bin at which another level begins."""

    index: int
    p_value: float  # of "no change in the part that it splits"
    before: float  # levels on both sides, up to the next change points: counts over expected ones
    after: float


@dataclass(frozen=True)
class ChangePoints(Finding):
    """Where the level changes for good, if anywhere."""

    points: tuple[ChangePoint, ...]
    levels: tuple[RateInterval, ...]  # of the parts; exposure is the expected count
    p_value: float  # of "the level is constant"
    alpha: float


def change_points(
    counts: npt.ArrayLike,
    expected: npt.ArrayLike,
    *,
    cv: float = 0.0,
    alpha: float = ALPHA,
    simulations: int = SIMULATIONS,
    seed: int = SEED,
) -> ChangePoints:
    """Splits of counts in bins (days, say) into parts of constant level.

    With a `cv` (see `local_day_cv`) the null law has a gamma factor for each bin: days that differ by chance are no
    change.
    """
    n, e = np.asarray(counts, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if n.shape != e.shape or n.ndim != 1 or not np.all(e >= 0) or np.any(n[e == 0] > 0) or np.any(n != np.floor(n)):
        raise ValueError("each bin needs a whole count and an expected count, positive unless the count is 0")
    rng = np.random.default_rng(seed)
    found: dict[int, float] = {}
    whole = 1.0
    parts = [(0, n.size)]
    while parts:
        start, end = parts.pop()
        split, p = _best_split(n[start:end], e[start:end], cv, simulations, rng)
        whole = p if (start, end) == (0, n.size) else whole
        if split and p <= alpha * (end - start) / n.size:
            found[start + split] = p
            parts += [(start, start + split), (start + split, end)]
    edges = [0, *sorted(found), n.size]
    levels = tuple(rate_interval(int(n[a:b].sum()), float(e[a:b].sum())) for a, b in pairwise(edges))
    points = tuple(ChangePoint(at, found[at], levels[k].rate, levels[k + 1].rate) for k, at in enumerate(edges[1:-1]))
    return ChangePoints(points, levels, whole, alpha)


def split_statistics(counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Twice the log-likelihood ratio of a change after each bin but the last, along the last axis."""
    n, e = np.cumsum(counts, axis=-1), np.cumsum(shares)
    total, whole = n[..., -1:], e[-1]
    expected = total * (e[:-1] / whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = log_likelihood(n[..., :-1], expected)
        second = log_likelihood(total - n[..., :-1], total - expected)
    value = 2.0 * (first + second)
    return np.where(np.isfinite(value), value, 0.0)


def _best_split(
    n: FloatArray, e: FloatArray, cv: float, simulations: int, rng: np.random.Generator
) -> tuple[int, float]:
    """(number of bins before the best split, its p-value); (0, 1) where there is nothing to split."""
    total = int(n.sum())
    if n.size < 2 or total == 0 or np.count_nonzero(e) < 2:
        return 0, 1.0
    seen = split_statistics(n, e)
    best, at_least, shares = int(np.argmax(seen)), 0, e / e.sum()
    chunk = max(1, 2**21 // n.size)
    for k in range(0, simulations, chunk):
        size = min(chunk, simulations - k)
        if cv > 0.0:
            drawn = rng.multinomial(total, _gamma_shares(shares, cv, size, rng))
        else:
            drawn = rng.multinomial(total, shares, size=size)
        # equal counts may differ in their last bits of the statistic
        largest = split_statistics(drawn.astype(np.float64), e).max(axis=1)
        at_least += int(np.sum(largest >= seen[best] * (1.0 - 1e-12)))
    return best + 1, (1 + at_least) / (simulations + 1)


def _gamma_shares(shares: FloatArray, cv: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Shares of bins with a gamma factor each, `size` times.

    Of a large cv nearly all factors are 0, to double precision at times all: then one bin has everything.
    """
    factors = rng.gamma(1.0 / (cv * cv), cv * cv, size=(size, shares.size)) * shares
    total = factors.sum(axis=1)
    none = np.flatnonzero(total == 0.0)
    factors[none, rng.choice(shares.size, size=none.size, p=shares)] = 1.0
    total[none] = 1.0
    found: FloatArray = factors / total[:, None]
    return found
