r"""How long services take: moments, whether they are exponential, which law fits best, and whether classes differ.

    exponential?   Anderson and Darling's A^2 = -n - sum_i (2i - 1) / n [log(1 - e^{-y_i}) - y_{n+1-i}], y = x / mean in
                   order. The mean is estimated, so tables for a known law do not apply; but A^2 of exponential numbers
                   does not depend on their mean, and its law is simulated: p = (1 + #{simulated >= seen}) / (B + 1)
                   is exact. Above 1000 services the law at 1000 is used, with Stephens' factor 1 + 0.6 / n for both.
               Rounded durations are first moved within their resolution, as exponential ones would lie there.
    laws           by maximum likelihood, compared by AIC = 2 (parameters) - 2 log-likelihood, with the distance of
                   Kolmogorov and Smirnov as a figure: the largest difference of the distribution functions.
    classes        Anderson and Darling's statistic of k samples, by permutation of the classes (exact): any difference
                   of laws counts, not of means only. Means by class are given beside it.

Durations of 0 have no density in most laws. If durations are rounded, they are first moved within their resolution;
zeros that are left are set aside and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.data.finding import ALPHA, LEVEL, Finding
from queueing_ucrl.data.poisson_tests import find_rounding
from queueing_ucrl.model.laws import (
    Deterministic,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Pareto,
    Uniform,
    Weibull,
)

SIMULATIONS = 4999
LARGEST_SIMULATED = 1000  # services in a simulated sample
PERMUTATIONS = 999
SEED = 20_190_212  # of simulated null laws, jitters and permutations: any; fixed, so that a log has one answer
LARGEST_STAGES = 10_000


def unit_of(values: FloatArray) -> float:
    """The power of two next to the mean: in this unit, numbers do not depend on the user's, to the bit for powers."""
    mean = float(values.mean())
    if not (mean > 0 and math.isfinite(mean)):
        raise ValueError("durations must not all be 0")
    return math.ldexp(1.0, math.frexp(mean)[1] - 1)


def durations(values: npt.ArrayLike) -> FloatArray:
    """Durations as an array: finite and at least 0, at least one of them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError("durations must be a list of at least one number")
    if not np.all(np.isfinite(array)):
        raise ValueError("durations must be finite numbers")
    if np.any(array < 0):
        raise ValueError(f"durations must be at least 0, got {array.min():g}")
    return array


# --- moments ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments(Finding):
    """Mean and squared coefficient of variation, with intervals; nan where one number cannot tell."""

    count: int
    mean: float
    mean_low: float
    mean_high: float
    cv2: float  # variance over squared mean: 1 for the exponential law
    cv2_low: float
    cv2_high: float
    skewness: float  # 2 for the exponential law
    least: float
    most: float
    level: float = LEVEL


def moments(values: npt.ArrayLike, *, level: float = LEVEL) -> Moments:
    """Student's interval for the mean; for cv^2 the jackknife on its logarithm.

    At 500 durations the latter holds the truth in 94 % of exponential and gamma samples, but in 80 % of lognormal ones
    with cv 1.3: what a heavy tail may still bring cannot be seen.
    """
    from scipy.stats import t as student

    x = durations(values)
    n, unit = x.size, unit_of(x) if np.any(x > 0) else 1.0
    y = x / unit
    mean = math.fsum(y.tolist()) / n
    apart = y - mean
    if n < 2 or not np.any(apart):
        cv2 = 0.0 if n > 1 and mean > 0 else math.nan
        return Moments(n, mean * unit, *(math.nan,) * 2, cv2, *(math.nan,) * 3, float(x.min()), float(x.max()), level)
    variance = math.fsum((apart * apart).tolist()) / (n - 1)
    reach = float(student.isf(0.5 * (1.0 - level), n - 1))
    half = reach * math.sqrt(variance / n)
    cv2 = variance / (mean * mean)
    low, high = _jackknife(apart, mean, variance, reach)
    skewness = float(np.mean(apart**3)) / float(np.mean(apart * apart)) ** 1.5
    return Moments(
        n, mean * unit, (mean - half) * unit, (mean + half) * unit, cv2, low, high, skewness,
        float(x.min()), float(x.max()), level,
    )  # fmt: skip


def _jackknife(apart: FloatArray, mean: float, variance: float, reach: float) -> tuple[float, float]:
    """The interval of cv^2 from log(cv^2) without each number in turn; nan of two numbers."""
    n = apart.size
    means = mean - apart / (n - 1)
    variances = ((n - 1) * variance - apart * apart * (n / (n - 1))) / max(n - 2, 1)
    if n < 3 or not (np.all(variances > 0) and np.all(means > 0)):
        return math.nan, math.nan
    without = np.log(variances / (means * means))
    numbers = n * math.log(variance / (mean * mean)) - (n - 1) * without
    centre, half = float(numbers.mean()), reach * float(numbers.std(ddof=1)) / math.sqrt(n)
    return math.exp(centre - half), math.exp(centre + half)


# --- exponential or not -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExponentialTest(Finding):
    """Anderson and Darling's test of the exponential law, its mean estimated."""

    statistic: float  # A^2
    p_value: float
    count: int
    simulations: int

    @property
    def rejected(self) -> bool:
        """Whether it fails at 5 %."""
        return self.p_value < ALPHA


def anderson_darling(samples: FloatArray) -> FloatArray:
    """A^2 of each sample (along the last axis) for the exponential law of its mean."""
    n = samples.shape[-1]
    y = np.sort(samples, axis=-1)
    y = y / y.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        terms = np.log(-np.expm1(-y)) - y[..., ::-1]
    return -n - (terms * (2.0 * np.arange(1, n + 1) - 1.0)).sum(axis=-1) / n


@cache
def _null_law(n: int, simulations: int) -> FloatArray:
    """A^2 of exponential samples of size n, in order."""
    rng = np.random.default_rng([SEED, n])
    chunk = max(1, 2**20 // n)
    sizes = [min(chunk, simulations - k) for k in range(0, simulations, chunk)]
    return np.sort(np.concatenate([anderson_darling(rng.standard_exponential((size, n))) for size in sizes]))


def exponential_p_values(statistics: FloatArray, n: int, simulations: int = SIMULATIONS) -> FloatArray:
    """p-values of A^2 of samples of size n."""
    size = min(n, LARGEST_SIMULATED)
    seen = statistics * ((1.0 + 0.6 / n) / (1.0 + 0.6 / size))
    at_least = simulations - np.searchsorted(_null_law(size, simulations), seen, side="left")
    return np.asarray((1.0 + at_least) / (simulations + 1.0), dtype=np.float64)


def exponential_test(values: npt.ArrayLike, simulations: int = SIMULATIONS) -> ExponentialTest:
    """Test durations, all of them positive."""
    x = durations(values)
    if x.size < 2:
        return ExponentialTest(math.nan, math.nan, x.size, simulations)
    statistic = anderson_darling(x / unit_of(x))
    p = float(exponential_p_values(np.asarray(statistic), x.size, simulations))
    return ExponentialTest(float(statistic), p, x.size, simulations)


# --- laws by likelihood -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LawFit(Finding):
    """A law with the parameters that make the durations likeliest."""

    kind: str
    law: Law
    log_likelihood: float
    parameters: int
    aic: float
    delta_aic: float  # above the best
    ks: float  # distance of Kolmogorov and Smirnov from the durations; nan where it was not measured


@dataclass(frozen=True)
class ServiceFit(Finding):
    """What durations tell about their law."""

    moments: Moments  # of all durations as they are, zeros too
    exponential: ExponentialTest
    fits: tuple[LawFit, ...]  # by AIC, the best first
    refused: dict[str, str]  # laws that could not be fitted, and why
    zeros: int  # durations of 0
    zeros_set_aside: int  # of these, not in the fits and the test
    ties: int  # durations equal to another
    resolution: float  # they were rounded to, and jittered within for fits and test; 0: they were not

    @property
    def best(self) -> LawFit:
        """The smallest AIC."""
        return self.fits[0]

    @property
    def law(self) -> Law:
        """The exponential law unless its test fails, else the best by AIC."""
        by_kind = {fit.kind: fit.law for fit in self.fits}
        if "exponential" in by_kind and not self.exponential.rejected:
            return by_kind["exponential"]
        return self.best.law


def fit_service(values: npt.ArrayLike, *, level: float = LEVEL, seed: int = SEED) -> ServiceFit:
    """Moments, the test of the exponential law, and all laws by likelihood."""
    x = durations(values)
    rounding = find_rounding(x)
    resolution = rounding.resolution if _matters(rounding.resolution, x) else 0.0
    used, tested = x[x > 0], x[x > 0]
    if resolution:
        used = jitter_durations(x, resolution, np.random.default_rng(seed))
        tested = jitter_durations(x, resolution, np.random.default_rng(seed), exponential=True)
    if not used.size:
        raise ValueError("durations must not all be 0")
    fits, refused = law_fits(used)
    return ServiceFit(
        moments(x, level=level), exponential_test(tested), fits, refused, int(np.sum(x == 0)), x.size - used.size,
        rounding.ties, resolution,
    )  # fmt: skip


def _matters(resolution: float, x: FloatArray) -> bool:
    """Whether rounding can be seen: durations that take two values or more, some of them often."""
    return resolution > 0.0 and resolution * x.size > 1e-3 * float(x.mean()) and bool(np.any(x != x[0]))


def jitter_durations(
    values: npt.ArrayLike, resolution: float, rng: np.random.Generator, *, exponential: bool = False
) -> FloatArray:
    """Rounded durations moved over [x - r/2, x + r/2), those below r/2 over [0, x + r/2): evenly.

    `exponential`: as the exponential law of their mean lies there. For a test of that law this is right under it,
    however coarse the rounding; even moves would look like a law of steps.
    """
    x = durations(values)
    low = np.maximum(x - 0.5 * resolution, 0.0)
    width = x + 0.5 * resolution - low
    u = 1.0 - rng.random(x.size)  # never 0
    if not exponential:
        return low + width * u
    mean = float(x.mean()) or resolution
    for _ in range(50):  # expectation and maximisation: E[X - low | low <= X < low + w] = mean - w / (e^(w / mean) - 1)
        mean = float(np.mean(low + mean - width / np.expm1(width / mean)))
    return low - mean * np.log1p(u * np.expm1(-width / mean))


Maker = Callable[[FloatArray], tuple[Law, float, int, Callable[[FloatArray], FloatArray]]]


def law_fits(values: npt.ArrayLike) -> tuple[tuple[LawFit, ...], dict[str, str]]:
    """(fits by AIC, laws that failed and why) of positive durations."""
    x = durations(values)
    if np.any(x == 0):
        raise ValueError(f"{int(np.sum(x == 0))} durations are 0, which has no density: set them aside")
    unit = unit_of(x)
    y = np.sort(x / unit)
    found, refused = [], {}
    for kind, maker in MAKERS.items():
        try:
            law, value, parameters, distribution = maker(y)
        except (ValueError, ArithmeticError) as reason:
            refused[kind] = str(reason)
            continue
        distance = _distance(distribution(y)) if kind != "deterministic" else 0.0
        aic = 2.0 * parameters - 2.0 * value
        found.append(LawFit(kind, scaled(law, unit), value, parameters, aic, math.nan, distance))
    return by_aic(found, x.size * math.log(unit)), refused


def by_aic(fits: list[LawFit], shift: float) -> tuple[LawFit, ...]:
    """The best first, with distances from it; log-likelihoods in the unit of time of the user are less by `shift`."""
    ordered = sorted(fits, key=lambda fit: fit.aic)
    best = ordered[0].aic
    return tuple(
        replace(
            fit,
            log_likelihood=fit.log_likelihood - shift,
            aic=fit.aic + 2.0 * shift,
            delta_aic=0.0 if fit.aic == best else fit.aic - best,
        )
        for fit in ordered
    )


def _distance(distribution: FloatArray) -> float:
    n = distribution.size
    return float(max(np.max(np.arange(1, n + 1) / n - distribution), np.max(distribution - np.arange(n) / n)))


def scaled(law: Law, unit: float) -> Law:
    """The law of unit X."""
    match law:
        case Exponential():
            return Exponential(law.rate / unit)
        case Deterministic():
            return Deterministic(law.value * unit)
        case Uniform():
            return Uniform(law.low * unit, law.high * unit)
        case Erlang() | Gamma() | HyperExponential() | LogNormal() | Weibull() | Pareto():
            return replace(law, mean=law.mean * unit)
    raise TypeError(f"no way to scale {type(law).__name__}")


def _exponential(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    mean = math.fsum(y.tolist()) / y.size
    return Exponential(1.0 / mean), -y.size * (math.log(mean) + 1.0), 1, lambda t: -np.expm1(-t / mean)


def _all_equal(y: FloatArray) -> None:
    if y[0] == y[-1]:
        raise ValueError("all durations are equal")


def _gamma_value(y: FloatArray, shape: float) -> float:
    """The log-likelihood of the gamma law of this shape and the mean of y."""
    from scipy.special import gammaln

    mean, logs = math.fsum(y.tolist()) / y.size, math.fsum(np.log(y).tolist())
    rest = float(gammaln(shape)) + shape * (math.log(mean / shape) + 1.0)
    return (shape - 1.0) * logs - y.size * rest


def _gamma_shape(y: FloatArray) -> float:
    """log k - digamma(k) = log(mean) - mean(log)."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    _all_equal(y)
    apart = math.log(math.fsum(y.tolist()) / y.size) - math.fsum(np.log(y).tolist()) / y.size
    if not apart > 1e-10:
        raise ValueError("the durations hardly differ")
    # 1 / 2k < log k - digamma(k) < 1 / k
    return float(brentq(lambda k: math.log(k) - float(digamma(k)) - apart, 0.4 / apart, 1.1 / apart, rtol=1e-13))


def _gamma(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    from scipy.special import gammainc

    shape, mean = _gamma_shape(y), math.fsum(y.tolist()) / y.size
    law = Gamma(mean, 1.0 / math.sqrt(shape))
    return law, _gamma_value(y, shape), 2, lambda t: gammainc(shape, t * (shape / mean))


def _erlang(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    from scipy.special import gammainc

    shape, mean = _gamma_shape(y), math.fsum(y.tolist()) / y.size
    if shape > LARGEST_STAGES:
        raise ValueError(f"it would need more than {LARGEST_STAGES} stages")
    # the likelihood falls on both sides of the best shape
    stages = max({max(1, math.floor(shape)), math.ceil(shape)}, key=lambda k: _gamma_value(y, k))
    return Erlang(mean, stages), _gamma_value(y, stages), 2, lambda t: gammainc(stages, t * (stages / mean))


def _lognormal(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    from scipy.special import ndtr

    _all_equal(y)
    logs = np.log(y)
    mu = math.fsum(logs.tolist()) / y.size
    variance = math.fsum(((logs - mu) ** 2).tolist()) / y.size
    value = -y.size * (mu + 0.5 * math.log(2.0 * math.pi * variance) + 0.5)
    law = LogNormal(math.exp(mu + 0.5 * variance), math.sqrt(math.expm1(variance)))
    return law, value, 2, lambda t: ndtr((np.log(t) - mu) / math.sqrt(variance))


def nelder_mead(function: Callable[[FloatArray], float], start: list[float]) -> tuple[FloatArray, float]:
    """(where, value) of a function's smallest value, from this start."""
    from scipy.optimize import minimize

    least: Any = minimize
    options = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000, "maxfev": 4000}
    found = least(function, np.array(start), method="Nelder-Mead", options=options)
    if not found.success or not math.isfinite(found.fun):
        raise ValueError("its likelihood has no maximum that could be found")
    return found.x, float(found.fun)


def weibull_shape(x: FloatArray, events: BoolArray) -> float:
    """The k at which sum x^k log x / sum x^k - 1/k = mean of log x over events: its left side grows with k."""
    from scipy.optimize import brentq

    logs = np.log(x)
    of_events = float(logs[events].mean())
    top = float(logs.max())

    def score(k: float) -> float:
        weights = np.exp(k * (logs - top))
        return float((weights * logs).sum() / weights.sum()) - 1.0 / k - of_events

    low, high = 0.5, 2.0
    while score(low) > 0:
        low *= 0.5
        if low < 1e-3:
            raise ValueError("its shape would be below 0.001")
    while score(high) < 0:
        high *= 2.0
        if high > 1e4:
            raise ValueError("its shape would be above 10,000: the times hardly differ")
    return float(brentq(score, low, high, xtol=1e-13, rtol=1e-13))


def weibull_law(shape: float, scale: float) -> Law:
    """The package's Weibull law of this shape: by its mean and cv."""
    from scipy.special import gammaln

    one, two = float(gammaln(1.0 + 1.0 / shape)), float(gammaln(1.0 + 2.0 / shape))
    return Weibull(scale * math.exp(one), math.sqrt(math.expm1(two - 2.0 * one)))


def _weibull(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    _all_equal(y)
    logs = np.log(y)
    k = weibull_shape(y, np.ones(y.size, dtype=np.bool_))
    top = float(logs.max())
    log_scale = top + math.log(float(np.mean(np.exp(k * (logs - top))))) / k
    value = y.size * (math.log(k) - k * log_scale - 1.0) + (k - 1.0) * math.fsum(logs.tolist())
    return weibull_law(k, math.exp(log_scale)), value, 2, lambda t: -np.expm1(-np.exp(k * (np.log(t) - log_scale)))


def _hyperexponential(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    """Balanced means: phases of probability p_j and rate 2 p_j / mean; p_1 = (1 + spread) / 2, cv^2 from the spread."""
    _all_equal(y)

    def phases(p: FloatArray) -> tuple[float, float, float]:
        mean, rare = math.exp(min(max(p[0], -30.0), 30.0)), 0.5 / (1.0 + math.exp(min(max(p[1], -30.0), 30.0)))
        return mean, 1.0 - rare, rare

    def loss(p: FloatArray) -> float:
        mean, likely, rare = phases(p)
        a, b = 2.0 * likely / mean, 2.0 * rare / mean
        # rate b is the smaller one: taken out, nothing underflows
        return float(np.sum(b * y) - np.sum(np.log(likely * a * np.exp(-(a - b) * y) + rare * b)))

    log_mean = math.log(math.fsum(y.tolist()) / y.size)
    starts = [[log_mean, start] for start in (-1.0, 1.0, 4.0)]
    best, value = min((nelder_mead(loss, start) for start in starts), key=lambda one: one[1])
    mean, likely, rare = phases(best)
    spread = likely - rare
    law = HyperExponential(mean, math.sqrt((1.0 + spread * spread) / (1.0 - spread * spread)))
    rates = 2.0 * likely / mean, 2.0 * rare / mean
    return law, -value, 2, lambda t: -likely * np.expm1(-rates[0] * t) - rare * np.expm1(-rates[1] * t)


def _pareto(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    _all_equal(y)
    least = float(y[0])
    logs = math.fsum(np.log(y / least).tolist())
    shape = y.size / logs
    if not shape > 1.0:
        raise ValueError(f"its shape would be {shape:.3g}, at most 1: it has no mean")
    value = y.size * (math.log(shape) - math.log(least)) - (shape + 1.0) * logs
    return Pareto(least * shape / (shape - 1.0), shape), value, 2, lambda t: -np.expm1(-shape * np.log(t / least))


def _uniform(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    _all_equal(y)
    low, high = float(y[0]), float(y[-1])
    return Uniform(low, high), -y.size * math.log(high - low), 2, lambda t: (t - low) / (high - low)


def _deterministic(y: FloatArray) -> tuple[Law, float, int, Callable[[FloatArray], FloatArray]]:
    if y[0] != y[-1]:
        raise ValueError("the durations are not all equal")
    return Deterministic(float(y[0])), math.inf, 1, lambda t: np.ones(t.size)


MAKERS: dict[str, Maker] = {
    "exponential": _exponential,
    "erlang": _erlang,
    "gamma": _gamma,
    "hyperexponential": _hyperexponential,
    "lognormal": _lognormal,
    "weibull": _weibull,
    "pareto": _pareto,
    "uniform": _uniform,
    "deterministic": _deterministic,
}


# --- one law for all classes? -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SameLaw(Finding):
    """Whether durations of several classes have one law."""

    statistic: float  # Anderson and Darling's of k samples
    p_value: float
    means: dict[str, Moments]
    largest_ratio: float  # of two classes' means
    permutations: int

    @property
    def rejected(self) -> bool:
        """Whether it fails at 5 %: service differs by class."""
        return self.p_value < ALPHA


def same_law(samples: Mapping[str, npt.ArrayLike], *, permutations: int = PERMUTATIONS, seed: int = SEED) -> SameLaw:
    """Test that the durations of all classes have the same law."""
    arrays = {name: durations(values) for name, values in samples.items()}
    if len(arrays) < 2:
        raise ValueError("a comparison needs the durations of two classes or more")
    means = {name: moments(values) for name, values in arrays.items()}
    values = [one.mean for one in means.values()]
    ratio = max(values) / min(values) if min(values) > 0 else math.inf
    pooled = np.concatenate([*arrays.values()])
    labels = np.repeat(np.arange(len(arrays)), [one.size for one in arrays.values()])
    order = np.argsort(pooled, kind="stable")
    last_of_ties = np.flatnonzero(np.diff(pooled[order]) > 0)
    labels = labels[order]
    seen = float(_k_sample_statistic(labels[None, :], len(arrays), last_of_ties)[0])
    rng, at_least = np.random.default_rng(seed), 0
    chunk = max(1, 2**20 // labels.size)
    for k in range(0, permutations, chunk):
        shuffled = rng.permuted(np.tile(labels, (min(chunk, permutations - k), 1)), axis=1)
        drawn = _k_sample_statistic(shuffled, len(arrays), last_of_ties)
        at_least += int(np.sum(drawn >= seen * (1.0 - 1e-12)))
    return SameLaw(seen, (1 + at_least) / (permutations + 1), means, ratio, permutations)


def _k_sample_statistic(labels: IntArray, classes: int, places: IntArray) -> FloatArray:
    """1/N sum_i 1/n_i sum_j (N M_ij - j n_i)^2 / (j (N - j)), M_ij of class i among the first j in order.

    The sum is over the `places` j at which the value changes: equal durations have no order.
    """
    total = labels.shape[1]
    j = places + 1.0
    found = np.zeros(len(labels))
    for i in range(classes):
        own = labels == i
        n = int(own[0].sum())
        among = np.cumsum(own, axis=1)[:, places]
        found += ((total * among - j * n) ** 2 / (j * (total - j))).sum(axis=1) / n
    return found / total
