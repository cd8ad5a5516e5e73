r"""How long people wait before they give up, where most of them are served first.

A job was in the queue for x; it gave up then (an abandonment), or its service began: its patience was longer than x.

    exponential      rate theta: D abandonments over the total time in queue T, log-likelihood D log theta - theta T.
                     Its interval is the one of a Poisson rate (D arrivals in time T).
    other laws       sum over abandonments of log f(x) + sum over the others of log P(X > x), by AIC.
    Kaplan, Meier    P(X > t) without any law: product over abandonments at x <= t of 1 - 1 / (still waiting at x).
    test             likelihood ratio of the exponential law within the Weibull laws, chi-square with 1 degree.

Jobs that did not wait at all tell nothing, and are counted. Those that gave up at once (x = 0) count for the rate, but
have no density in the other laws: these are fitted to the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.likelihoods import nelder_mead
from queueing_ucrl.data.rates import RateInterval, rate_interval
from queueing_ucrl.data.service_laws import LawFit, by_aic, unit_of
from queueing_ucrl.data.shape_equations import weibull_law, weibull_shape
from queueing_ucrl.model.laws import Exponential, Gamma, Law, LogNormal

FEW = 10  # abandonments: of fewer, no law but the exponential one is fitted


@dataclass(frozen=True)
class Survival(Finding):
    """P(X > t) by Kaplan and Meier, with its interval at each point."""

    times: tuple[float, ...]
    survival: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    median: float  # nan where fewer than half have given up by the longest wait


@dataclass(frozen=True)
class PatienceFit(Finding):
    """What waits and abandonments tell about patience."""

    rate: RateInterval  # theta, of the exponential law; count: abandonments, exposure: time in queue
    fits: tuple[LawFit, ...]  # by AIC, the best first; empty of fewer than 10 abandonments
    refused: dict[str, str]  # laws that could not be fitted, and why
    p_value: float  # of "patience is exponential"; nan if it was not tested
    waited: int  # jobs that waited for some time
    at_once: int  # jobs that gave up at once
    no_wait: int  # jobs that were served at once

    @property
    def law(self) -> Law | None:
        """The exponential law unless its test fails, else the best by AIC; None if nobody gave up."""
        if not self.rate.count:
            return None
        if self.p_value < ALPHA and self.fits:
            return self.fits[0].law
        return Exponential(self.rate.rate)


def _checked(waits: npt.ArrayLike, abandoned: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    x, gave_up = np.asarray(waits, dtype=np.float64), np.asarray(abandoned, dtype=np.bool_)
    if x.ndim != 1 or x.shape != gave_up.shape:
        raise ValueError("each wait needs a mark that says whether it ended in giving up")
    if not np.all(np.isfinite(x) & (x >= 0)):
        raise ValueError("waits must be finite and at least 0")
    return x, gave_up


def fit_patience(
    waits: npt.ArrayLike, abandoned: npt.ArrayLike, *, level: float = LEVEL, rate_only: bool = False
) -> PatienceFit:
    """Rates, laws and the test from times in queue and who gave up; `rate_only`: no laws and no test."""
    x, gave_up = _checked(waits, abandoned)
    positive = x > 0
    at_once, no_wait = int(np.sum(~positive & gave_up)), int(np.sum(~positive & ~gave_up))
    waited, events = x[positive], gave_up[positive]
    total = math.fsum(waited.tolist())
    if total == 0.0 and at_once:
        raise ValueError(f"{at_once} jobs gave up, and none of them waited: patience cannot be known")
    rate = rate_interval(int(gave_up.sum()), total, level)
    if int(events.sum()) < FEW or rate_only:
        return PatienceFit(rate, (), {}, math.nan, waited.size, at_once, no_wait)
    unit = unit_of(waited)
    fits, refused = censored_fits(waited / unit, events, unit)
    p = exponential_p_value(waited / unit, events)
    return PatienceFit(rate, fits, refused, p, waited.size, at_once, no_wait)


def exponential_p_value(waits: FloatArray, events: BoolArray) -> float:
    """Of "patience is exponential", by the likelihood ratio within the Weibull laws; nan where these have no best."""
    from scipy.stats import chi2

    try:
        best = _weibull(waits, events, 1.0)[1]
    except (ValueError, ArithmeticError):
        return math.nan
    return float(chi2.sf(max(2.0 * (best - _exponential(waits, events, 1.0)[1]), 0.0), 1))


def kaplan_meier(waits: npt.ArrayLike, abandoned: npt.ArrayLike, *, level: float = LEVEL) -> Survival:
    """P(X > t) at the times of abandonments; the interval is Greenwood's on the scale of log(-log), within 0 and 1.

    Where everybody has given up the formula has no interval: nan.
    """
    from scipy.special import ndtri

    x, gave_up = _checked(waits, abandoned)
    times, given_up = np.unique(x[gave_up], return_counts=True)
    still = x.size - np.searchsorted(np.sort(x), times, side="left")
    survival = np.cumprod(1.0 - given_up / still)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.cumsum(given_up / (still * (still - given_up)))) / np.abs(np.log(survival))
        reach = np.exp(float(ndtri(0.5 + 0.5 * level)) * error)
        low, high = np.power(survival, reach), np.power(survival, 1.0 / reach)
    below = np.flatnonzero(survival <= 0.5)
    unknown = survival <= 0.0
    low[unknown] = high[unknown] = math.nan
    return Survival(
        tuple(times.tolist()),
        tuple(survival.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        float(times[below[0]]) if below.size else math.nan,
    )


# --- censored likelihoods ---------------------------------------------------------------------------------------------


def censored_fits(x: FloatArray, events: BoolArray, unit: float = 1.0) -> tuple[tuple[LawFit, ...], dict[str, str]]:
    """(fits by AIC, laws that failed and why): times in `unit`s, positive; events say which are not censored."""
    found, refused = [], {}
    makers: dict[str, Callable[[FloatArray, BoolArray, float], tuple[Law, float, int]]] = {
        "exponential": _exponential,
        "weibull": _weibull,
        "lognormal": _lognormal,
        "gamma": _gamma,
    }
    for kind, maker in makers.items():
        try:
            law, value, parameters = maker(x, events, unit)
        except (ValueError, ArithmeticError) as reason:
            refused[kind] = str(reason)
            continue
        found.append(LawFit(kind, law, value, parameters, 2.0 * parameters - 2.0 * value, math.nan, math.nan))
    return by_aic(found, float(events.sum()) * math.log(unit)), refused


def _exponential(x: FloatArray, events: BoolArray, unit: float) -> tuple[Law, float, int]:
    d, total = float(events.sum()), math.fsum(x.tolist())
    return Exponential(d / (total * unit)), d * math.log(d / total) - d, 1


def _weibull(x: FloatArray, events: BoolArray, unit: float) -> tuple[Law, float, int]:
    k, d, logs = weibull_shape(x, events), float(events.sum()), np.log(x)
    scale = (float(np.sum(np.exp(k * logs))) / d) ** (1.0 / k)
    value = d * math.log(k) - d * k * math.log(scale) + (k - 1.0) * float(logs[events].sum()) - d
    return weibull_law(k, scale * unit), value, 2


def _lognormal(x: FloatArray, events: BoolArray, unit: float) -> tuple[Law, float, int]:
    from scipy.special import log_ndtr

    logs = np.log(x)
    seen, cut = logs[events], logs[~events]

    def loss(p: FloatArray) -> float:
        sigma = math.exp(min(max(p[1], -20.0), 20.0))
        z = (seen - p[0]) / sigma
        inside = -0.5 * float(z @ z) - seen.size * (math.log(sigma) + 0.5 * math.log(2.0 * math.pi)) - float(seen.sum())
        return -inside - float(log_ndtr(-(cut - p[0]) / sigma).sum())

    (mu, log_sigma), value = nelder_mead(loss, [float(logs.mean()), math.log(float(logs.std()) + 0.1)])
    variance = math.exp(2.0 * log_sigma)
    return LogNormal(math.exp(mu + 0.5 * variance) * unit, math.sqrt(math.expm1(variance))), -value, 2


def _gamma(x: FloatArray, events: BoolArray, unit: float) -> tuple[Law, float, int]:
    from scipy.special import gammaincc, gammaln

    seen, cut = x[events], x[~events]
    sum_log = float(np.log(seen).sum())

    def loss(p: FloatArray) -> float:
        shape, scale = (math.exp(min(max(value, -20.0), 20.0)) for value in p)
        inside = (
            (shape - 1.0) * sum_log
            - float(seen.sum()) / scale
            - seen.size * (float(gammaln(shape)) + shape * math.log(scale))
        )
        tail = gammaincc(shape, cut / scale)
        if np.any(tail <= 0.0):
            return math.inf
        return -inside - float(np.log(tail).sum())

    mean = float(x.sum()) / float(events.sum())
    (log_shape, log_scale), value = nelder_mead(loss, [0.0, math.log(mean)])
    shape = math.exp(log_shape)
    return Gamma(shape * math.exp(log_scale) * unit, 1.0 / math.sqrt(shape)), -value, 2
