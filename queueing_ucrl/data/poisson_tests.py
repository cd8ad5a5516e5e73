r"""Are these arrivals a Poisson process, whose rate may change slowly?

Within a window of length L the rate is taken as constant. Given that n arrivals fall into it, at t_1 < .. < t_n after
its start, u_j = t_j / L are then n ordered uniform numbers. That alone tests little: arrivals that are far too regular
pass. Two transforms of it see what matters, the gaps (Kim and Whitt 2014):

    Lewis   (Durbin 1961) the n + 1 gaps C of 0, u_1 .. u_n, 1 in order of size, C_(0) = 0 <= C_(1) <= .. <= C_(n+1):
            V_k = sum_{j <= k} (n + 2 - j) (C_(j) - C_(j-1)), k = 1 .. n, are again n ordered uniform numbers.
    log     (Brown et al. 2005) X_j = -(n + 1 - j) log((L - t_j) / (L - t_{j-1})), t_0 = 0, are n independent
            exponential numbers of mean 1.

Given the counts, the numbers of all windows together are independent and of one law, exactly and whatever the rates of
the windows: they are pooled, and tested by the distance of Kolmogorov and Smirnov. The level is exact for any number of
arrivals in a window; windows with few of them say little, and are left out and counted.

Dispersion, the variance of counts over their mean, is 1 for Poisson counts. `dispersion` compares windows over all of
the log, so that it sees a rate that changes as well; `local_dispersion` compares neighbours only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.observed import Observed, counts_in, observed_time, windows, within

LEAST = 3  # arrivals in a window
ON_AVERAGE = (10.0, 30.0, 100.0)  # arrivals in the windows that `window_lengths` proposes


@dataclass(frozen=True)
class PoissonTest(Finding):
    """One test of one length of window."""

    name: str  # "lewis" or "log"
    window: float
    statistic: float  # the distance of Kolmogorov and Smirnov; nan without points
    p_value: float  # nan without points
    points: int  # arrivals in the windows used
    windows_used: int
    windows_dropped: int  # with fewer than `least` arrivals
    points_dropped: int  # arrivals in these
    least: int

    @property
    def rejected(self) -> bool:
        """Whether it fails at 5 %."""
        return self.p_value < ALPHA

    @property
    def note(self) -> str:
        """What was used and what was left out, in words."""
        text = f"{self.points} arrivals in {self.windows_used} windows"
        if self.windows_dropped:
            text += (
                f"; {self.windows_dropped} windows with fewer than {self.least} arrivals left out "
                f"({self.points_dropped} arrivals)"
            )
        return text


def durbin_numbers(uniforms: FloatArray) -> FloatArray:
    """V_1 .. V_n of n ordered numbers between 0 and 1, along the last axis."""
    n = uniforms.shape[-1]
    ends = (*uniforms.shape[:-1], 1)
    gaps = np.sort(np.diff(np.concatenate([np.zeros(ends), uniforms, np.ones(ends)], axis=-1), axis=-1), axis=-1)
    steps = np.diff(gaps, axis=-1, prepend=0.0) * np.arange(n + 1, 0, -1)
    return np.minimum(np.cumsum(steps[..., :n], axis=-1), 1.0)


def log_numbers(uniforms: FloatArray) -> FloatArray:
    """1 - e^{-X_1} .. 1 - e^{-X_n}, X as in the log test, of n ordered numbers between 0 and 1, along the last axis."""
    n = uniforms.shape[-1]
    left = 1.0 - np.concatenate([np.zeros((*uniforms.shape[:-1], 1)), uniforms], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = left[..., 1:] / left[..., :-1]
    # arrivals at the very end of a window: nothing is left, and nothing of nothing
    ratio = np.where(left[..., :-1] > 0.0, ratio, 1.0)
    return 1.0 - np.power(ratio, np.arange(n, 0, -1.0))


TRANSFORMS = {"lewis": durbin_numbers, "log": log_numbers}


def poisson_test(
    times: npt.ArrayLike, window: float, observed: Observed, *, test: str = "lewis", least: int = LEAST
) -> PoissonTest:
    """Test arrivals, in windows of this length, by Lewis' test or the log test."""
    numbers, count = poisson_numbers(times, window, observed, test=test, least=least)
    kept = count >= least
    statistic, p_value = ks_uniform(numbers)
    return PoissonTest(
        test,
        float(window),
        statistic,
        p_value,
        int(numbers.size),
        int(kept.sum()),
        int((~kept).sum()),
        int(count[~kept].sum()),
        least,
    )


def poisson_numbers(
    times: npt.ArrayLike, window: float, observed: Observed, *, test: str = "lewis", least: int = LEAST
) -> tuple[FloatArray, IntArray]:
    """(the pooled numbers that a test compares with uniform ones, arrivals in each window)."""
    array, pairs = within(times, observed)
    if test not in TRANSFORMS:
        raise ValueError(f"there is no test {test!r}; there are {' and '.join(TRANSFORMS)}")
    if least < 1:
        raise ValueError(f"least must be at least 1, got {least}")
    starts, ends = windows(pairs, window)
    first, count = counts_in(array, starts, ends)
    return _transformed(array, starts, ends, first, count, np.flatnonzero(count >= least), test), count


def _transformed(
    times: FloatArray, starts: FloatArray, ends: FloatArray, first: IntArray, count: IntArray, kept: IntArray, test: str
) -> FloatArray:
    """The pooled numbers of the windows `kept`: those with equally many arrivals at once."""
    found = [np.empty(0)]
    for n in np.unique(count[kept]):
        which = kept[count[kept] == n]
        chunk = max(1, 2**22 // int(n))
        for k in range(0, which.size, chunk):
            some = which[k : k + chunk]
            begun = starts[some, None]
            inside = times[first[some, None] + np.arange(n)] - begun
            found.append(TRANSFORMS[test](np.clip(inside / (ends[some, None] - begun), 0.0, 1.0)).ravel())
    return np.concatenate(found)


def ks_uniform(numbers: FloatArray) -> tuple[float, float]:
    """(distance, p-value) of Kolmogorov and Smirnov for "these are independent and uniform between 0 and 1"."""
    from scipy.stats import kstwo

    n = numbers.size
    if not n:
        return math.nan, math.nan
    ordered = np.sort(numbers)
    distance = float(max(np.max(np.arange(1, n + 1) / n - ordered), np.max(ordered - np.arange(n) / n)))
    beyond = 2.0 * n * distance * distance
    # the limit far out, which is a bound of the exact one (Massart 1990), where that takes seconds
    return distance, 2.0 * math.exp(-beyond) if beyond > 36.0 else float(kstwo.sf(distance, n))


def window_lengths(
    times: npt.ArrayLike, observed: Observed, on_average: Sequence[float] = ON_AVERAGE
) -> tuple[float, ...]:
    """Lengths of windows that hold so many arrivals on average; those longer than what was observed are left out."""
    array, pairs = within(times, observed)
    if not array.size:
        return ()
    total = observed_time(pairs)
    return tuple(n * (total / array.size) for n in on_average if n < array.size)


def poisson_tests(
    times: npt.ArrayLike, lengths: Sequence[float], observed: Observed, *, least: int = LEAST
) -> tuple[PoissonTest, ...]:
    """Both tests for each length of window."""
    return tuple(
        poisson_test(times, length, observed, test=test, least=least) for length in lengths for test in TRANSFORMS
    )


# --- dispersion -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dispersion(Finding):
    """The variance of counts over their mean."""

    index: float  # 1 for Poisson counts; nan where it cannot be known
    low: float  # its interval
    high: float
    p_value: float  # two-sided, of "the counts are Poisson"
    windows: int  # or pairs of them
    mean_count: float
    window: float


def dispersion(
    times: npt.ArrayLike,
    window: float,
    observed: Observed,
    *,
    expected: npt.ArrayLike | None = None,
    parameters: int = 1,
    level: float = LEVEL,
) -> Dispersion:
    r"""sum_w (N_w - m_w)^2 / m_w / (windows - parameters) over the whole windows, m_w their expected counts.

    Without `expected` these are all equal: the variance over the mean. `expected` (one for each whole window, in the
    order of `observed.windows`) matters up to a factor. The sum is nearly chi-square for Poisson counts, and the
    interval is the one for a variance: right for counts that are nearly normal.
    """
    array, pairs = within(times, observed)
    starts, ends = windows(pairs, window)
    whole = (ends - starts) >= window * (1.0 - 1e-6)
    counts = counts_in(array, starts, ends)[1][whole]
    mean = np.ones(counts.size) if expected is None else np.asarray(expected, dtype=np.float64)
    if mean.shape != counts.shape:
        raise ValueError(f"expected needs a number for each of the {counts.size} whole windows, got {mean.size}")
    return pearson_dispersion(counts, mean, parameters=parameters, window=window, level=level)


def pearson_dispersion(
    counts: npt.ArrayLike,
    expected: npt.ArrayLike,
    *,
    parameters: int = 1,
    window: float = math.nan,
    level: float = LEVEL,
) -> Dispersion:
    """The same for counts that are given; `expected` is scaled to their sum."""
    from scipy.stats import chi2

    n, shares = np.asarray(counts, dtype=np.float64).ravel(), np.asarray(expected, dtype=np.float64).ravel()
    if n.shape != shares.shape or not np.all(shares >= 0) or np.any(n[shares == 0] > 0):
        raise ValueError("each count needs an expected count, positive unless the count is 0")
    n, shares = n[shares > 0], shares[shares > 0]
    freedom = n.size - parameters
    if freedom < 1 or n.sum() == 0:
        mean_count = float(n.mean()) if n.size else math.nan
        return Dispersion(math.nan, math.nan, math.nan, math.nan, n.size, mean_count, window)
    m = shares * (n.sum() / shares.sum())
    total = float(np.sum((n - m) * (n - m) / m))
    tail = 0.5 * (1.0 - level)
    p = 2.0 * min(chi2.sf(total, freedom), chi2.cdf(total, freedom))
    return Dispersion(
        total / freedom,
        float(total / chi2.isf(tail, freedom)),
        float(total / chi2.ppf(tail, freedom)),
        float(min(1.0, p)),
        int(n.size),
        float(n.mean()),
        window,
    )


def local_dispersion(times: npt.ArrayLike, window: float, observed: Observed, *, level: float = LEVEL) -> Dispersion:
    r"""The mean of (N - N')^2 / (N + N') over pairs of windows that follow each other.

    If both windows of a pair have the same rate, N given n = N + N' is binomial(n, 1/2): a term has mean 1 exactly and
    variance 2 - 2 / n, whatever the rates of the pairs. So a rate that changes slowly leaves it at 1; batches and
    renewal arrivals do not.
    """
    from scipy.special import ndtr, ndtri

    array, pairs = within(times, observed)
    starts, ends = windows(pairs, window)
    whole = (ends - starts) >= window * (1.0 - 1e-6)
    counts = np.where(whole, counts_in(array, starts, ends)[1], -1)
    one, other, at = [], [], 0
    while at + 1 < counts.size:
        follows = counts[at] >= 0 and counts[at + 1] >= 0 and abs(starts[at + 1] - ends[at]) <= 1e-6 * window
        if follows:
            one.append(int(counts[at]))
            other.append(int(counts[at + 1]))
        at += 2 if follows else 1
    a, b = np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)
    both = a + b
    a, b, both = a[both > 0], b[both > 0], both[both > 0]
    if not both.size:
        return Dispersion(math.nan, math.nan, math.nan, math.nan, 0, math.nan, float(window))
    terms = (a - b) * (a - b) / both
    index = float(terms.mean())
    under_null = math.sqrt(float(np.sum(2.0 - 2.0 / both))) / both.size
    z = (index - 1.0) / under_null if under_null > 0 else 0.0
    error = float(terms.std(ddof=1)) / math.sqrt(both.size) if both.size > 1 else math.nan
    reach = float(ndtri(0.5 + 0.5 * level)) * error
    p = float(2.0 * ndtr(-abs(z)))
    return Dispersion(index, index - reach, index + reach, p, both.size, float(both.mean() / 2), float(window))


# --- rounded time stamps ----------------------------------------------------------------------------------------------

FINEST = 1000  # the smallest gap is at most so many times the resolution
OFF_GRID = 0.01  # of the resolution: more is not on the grid
ENOUGH = 8  # different stamps: of fewer, nothing is concluded


@dataclass(frozen=True)
class Rounding(Finding):
    """How coarse the time stamps are."""

    resolution: float  # all are this far apart, or a multiple of it; 0: no such number was found
    stamps: int
    ties: int  # stamps equal to the one before

    @property
    def rounded(self) -> bool:
        """Whether the stamps lie on a grid."""
        return self.resolution > 0.0


def find_rounding(times: npt.ArrayLike) -> Rounding:
    """The largest r of which all gaps between stamps are multiples, to a hundredth of r.

    The smallest gap is a multiple of r: its parts 1, 1/2, 1/3 .. 1/1000 are tried. A much finer r than that makes no
    difference to any test. By chance, gaps of n stamps lie so near a grid with probability 0.02^n.
    """
    array = np.sort(np.asarray(times, dtype=np.float64).ravel())
    if not np.all(np.isfinite(array)):
        raise ValueError("times must be finite numbers")
    different = np.unique(array)
    ties = int(array.size - different.size)
    gaps = np.diff(different)
    # the last bits of a stamp make no gap
    noise = 4.0 * np.spacing(np.abs(array).max()) if array.size else 0.0
    gaps = gaps[gaps > noise]
    if gaps.size + 1 < ENOUGH:
        return Rounding(0.0, int(array.size), ties)
    few = np.sort(gaps)[:64]
    for part in range(1, FINEST + 1):
        unit = float(few[0]) / part
        if unit < 100.0 * noise:
            break
        if _on_grid(few, unit) and _on_grid(gaps, unit := float(few.sum() / np.rint(few / unit).sum())):
            return Rounding(float(gaps.sum() / np.rint(gaps / unit).sum()), int(array.size), ties)
    return Rounding(0.0, int(array.size), ties)


def _on_grid(gaps: FloatArray, unit: float) -> bool:
    multiples = gaps / unit
    return bool(np.all(np.abs(multiples - np.rint(multiples)) <= OFF_GRID))


def jitter(
    times: npt.ArrayLike, resolution: float, rng: np.random.Generator, *, stamps: str = "truncated"
) -> FloatArray:
    """Stamps moved within their resolution: evenly over [t, t + r) if they were cut, [t - r/2, t + r/2) if "rounded".

    The order of the given times is kept: numbers of equal stamps are sorted.
    """
    array = np.asarray(times, dtype=np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise ValueError("times must be a list of finite numbers")
    if not (resolution > 0 and math.isfinite(resolution)):
        raise ValueError(f"a resolution must be a positive finite number, got {resolution:g}")
    if stamps not in ("truncated", "rounded"):
        raise ValueError(f'stamps must be "truncated" or "rounded", got {stamps!r}')
    back = 0.0 if stamps == "truncated" else 0.5
    order = np.argsort(array, kind="stable")
    moved = np.empty(array.size)
    moved[order] = np.sort(array[order] + resolution * (rng.random(array.size) - back))
    return moved
