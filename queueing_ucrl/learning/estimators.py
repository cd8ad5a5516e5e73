r"""What is believed about the rates: parts that any learning controller can be built from.

Every arrival is seen, admitted or not, so N_i, the arrivals of class i up to time t, is Poisson of mean lambda_i t
whatever the policy did. Departures D over busy-server time B tell the service rate: D is a Poisson process of rate mu
in the clock B. D / B will not do as an estimate while D = 1: near 0 the busy time up to the first departure has the
density mu, so that E[1 / B] is infinite. Up to the second it is Gamma(2, mu), and E[(D - 1) / B] = E[1 / B] = mu. So mu
is told from ENOUGH = 2 departures on, and by (D - 1) / B: its mean is mu whenever the count stops at a departure; at
other times it is low by 1 / D of itself or less, within its standard error of 1 / sqrt(D). Three layers:

- intervals for the rate of a Poisson process, as functions of a count and an exposure;
- memories, which add up what was seen: all of it, a sliding window, or with exponential discounting;
- estimators, which make a belief of it: the paper's truncated mean, an exact interval for Lambda with the l1 set for
  p, an upper limit for each class, a Gamma posterior, a plain estimate.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from queueing_ucrl.learning.confidence import ConfidenceSet, share_radius, truncation
from queueing_ucrl.learning.controller import Belief, Tally
from queueing_ucrl.model.elementary import exp, expm1, log, log1p, log_gamma, stirling_error
from queueing_ucrl.model.quantiles import gamma_quantile, gamma_upper_quantile
from queueing_ucrl.model.waits import FloatArray

B_co = TypeVar("B_co", bound=Belief, covariant=True)
Interval = Literal["exact", "anytime"]
ShareSet = Literal["paper", "weissman"]

PRIOR_SHAPE = 0.5  # of Gamma laws: Jeffreys' prior for a Poisson rate
ENOUGH = 2  # departures from which the service rate is told


# --- intervals -------------------------------------------------------------------------------------------------------


def upper_limit(count: float, exposure: float, delta: float) -> float:
    """The exact upper limit of a Poisson rate: the rate at which P(N <= count) = delta. Infinite without exposure.

    P(rate <= limit) >= 1 - delta at any fixed exposure; x with Q(count + 1, x) = delta, over the exposure.
    """
    return float(gamma_upper_quantile(count + 1.0, delta)) / exposure if exposure > 0.0 else math.inf


def upper_limits(counts: FloatArray, exposure: float, delta: float) -> FloatArray:
    """The same for several counts, the exposure positive."""
    return np.array([upper_limit(float(count), exposure, delta) for count in counts])


def exact_interval(count: float, exposure: float, delta: float) -> tuple[float, float]:
    """Garwood's interval of a Poisson rate: each tail delta / 2. Coverage at least 1 - delta at any fixed exposure."""
    low = float(gamma_quantile(count, 0.5 * delta)) / exposure if count > 0.0 else 0.0
    return low, upper_limit(count, exposure, 0.5 * delta)


def log_mixture(count: float, exposure: float, prior_exposure: float, shape: float = PRIOR_SHAPE) -> float:
    r"""log M at the estimate N / t, where M(lambda) is the mixture likelihood ratio against the rate lambda.

    M(lambda) = integral of (theta / lambda)^N e^{-(theta - lambda) t} over theta ~ Gamma(a, b)
              = b^a Gamma(a + N) / (Gamma(a) (b + t)^{a + N}) lambda^{-N} e^{lambda t},
    a = shape, b = prior_exposure.
    At N / t by Stirling's formula, so that the terms of the size of N log N, which cancel, are never formed.
    """
    a, b, n, t = shape, prior_exposure, count, exposure
    if n == 0.0:
        return -a * log1p(t / b)
    total = a + n
    return (
        a * log(b * total / (b + t))
        + n * (log1p(a / n) - log1p(b / t))
        - a
        - 0.5 * log(total)
        + 0.5 * log(2.0 * math.pi)
        + stirling_error(total)
        - log_gamma(a)
    )


def anytime_interval(
    count: float, exposure: float, delta: float, prior_exposure: float, shape: float = PRIOR_SHAPE
) -> tuple[float, float]:
    r"""The rates lambda with M(lambda) < 1 / delta: valid at all exposures at once, and at random ones.

    Under the rate lambda, M(lambda) is a martingale that starts at 1, so by Ville's inequality it ever reaches
    1 / delta with probability delta at most. With x = lambda t / N the ends solve
    N (x - 1 - log x) = log(1 / delta) - log M(N / t): Newton's method from beyond the root, where it is monotone.
    """
    if not exposure > 0.0:
        return 0.0, math.inf
    excess = -log(delta) - log_mixture(count, exposure, prior_exposure, shape)
    if count == 0.0:
        return 0.0, excess / exposure
    depth = excess / count
    estimate = count / exposure
    return estimate * exp(-_root_below(depth)), estimate * (1.0 + _root_above(depth))


def _root_above(depth: float) -> float:
    """u >= 0 with u - log(1 + u) = depth."""
    if not depth > 0.0:
        return 0.0
    u = depth + math.sqrt(2.0 * depth)  # too large by a third of the depth or less
    while True:
        smaller = u - (u - log1p(u) - depth) * (1.0 + u) / u
        if not smaller < u:
            return u
        u = smaller


def _root_below(depth: float) -> float:
    """v >= 0 with e^{-v} - 1 + v = depth; 1 + u = e^{-v} is the other root."""
    if not depth > 0.0:
        return 0.0
    v = depth + math.sqrt(2.0 * depth)
    while True:
        smaller = v + (expm1(-v) + v - depth) / expm1(-v)
        if not smaller < v:
            return v
        v = smaller


def weissman_radius(count: int, classes: int, delta: float) -> float:
    """sqrt((2/N) log((2^m - 2)/delta)), Weissman et al. (2003) as they state it: never above the paper's radius."""
    if classes == 1:
        return 0.0
    if count == 0:
        return 2.0
    return math.sqrt(2.0 / count * (log(math.ldexp(1.0, classes) - 2.0) - log(delta)))


# --- memories --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What counts, as a memory weighs it."""

    arrivals: FloatArray  # N_i
    time: float  # t, in which they came
    departures: float  # D
    busy_time: float  # B, server time in which they were served


class Memory(Protocol):
    """Adds up what was seen."""

    def add(self, tally: Tally) -> Evidence:
        """What counts, with this tally."""
        ...


class Everything:
    """Nothing is forgotten that was seen since a time."""

    def __init__(self, classes: int, since: float = 0.0) -> None:
        self.since = since
        self.arrivals = np.zeros(classes, dtype=np.int64)
        self.departures = 0
        self.busy_time = 0.0

    def add(self, tally: Tally) -> Evidence:
        self.arrivals += tally.arrivals
        self.departures += tally.departures
        self.busy_time += tally.busy_time
        time = tally.now - self.since
        return Evidence(self.arrivals.astype(np.float64), time, float(self.departures), self.busy_time)


class Window:
    """What was seen within the last `length` of time, to whole tallies; the newest counts however long it is."""

    def __init__(self, length: float) -> None:
        self.length = length
        self.kept: deque[Tally] = deque()

    def add(self, tally: Tally) -> Evidence:
        kept = self.kept
        kept.append(tally)
        horizon = tally.now - self.length * (1.0 + 1e-9)  # a sum of periods may be a rounding longer than the window
        while len(kept) > 1 and kept[0].now - kept[0].duration < horizon:
            kept.popleft()
        return Evidence(
            np.sum([old.arrivals for old in kept], axis=0).astype(np.float64),
            math.fsum(old.duration for old in kept),
            float(sum(old.departures for old in kept)),
            math.fsum(old.busy_time for old in kept),
        )


class Discount:
    """What was seen a time `scale` before the last tally counts 1/e, exponentially less before; to whole tallies."""

    def __init__(self, scale: float, classes: int) -> None:
        self.scale = scale
        self.arrivals = np.zeros(classes)
        self.time = self.departures = self.busy_time = 0.0

    def add(self, tally: Tally) -> Evidence:
        weight = exp(-tally.duration / self.scale)
        self.arrivals = weight * self.arrivals + tally.arrivals
        self.time = weight * self.time + tally.duration
        self.departures = weight * self.departures + tally.departures
        self.busy_time = weight * self.busy_time + tally.busy_time
        return Evidence(self.arrivals, self.time, self.departures, self.busy_time)


# --- beliefs ---------------------------------------------------------------------------------------------------------


def _listed(values: FloatArray) -> list[float]:
    return [float(value) for value in values]


@dataclass(frozen=True)
class UpperLimits:
    """Each class's rate is at most its limit; so is the service rate, where it is not known."""

    estimates: FloatArray
    limits: FloatArray
    delta: float  # the chance that any of the limits is exceeded
    service_rate: tuple[float, float] | None = None  # estimate (nan before a departure) and limit

    def contains(self, arrival_rates: FloatArray) -> bool:
        """Whether these arrival rates are plausible (the service rate is not asked about)."""
        return bool(np.all(arrival_rates <= self.limits))

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "rate_estimates": _listed(self.estimates), "rate_limits": _listed(self.limits), "delta": self.delta,
        }  # fmt: skip
        if self.service_rate is not None:
            found |= {"service_rate_estimate": self.service_rate[0], "service_rate_limit": self.service_rate[1]}
        return found


@dataclass(frozen=True)
class GammaPosterior:
    """lambda_i ~ Gamma(N_i + 1/2, t), independent (shape, rate); mu ~ Gamma(D + 1/2, B) where it is not known."""

    shapes: FloatArray
    time: float
    service: tuple[float, float] | None = None  # shape and rate; before enough departures: shape 1/2

    def contains(self, arrival_rates: FloatArray) -> None:
        """A law excludes nothing."""

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"rate_estimates": _listed(self.shapes / self.time), "posterior_time": self.time}
        if self.service is not None:
            shape, rate = self.service
            found["service_rate_estimate"] = shape / rate if rate > 0.0 else math.nan
        return found


@dataclass(frozen=True)
class PointEstimate:
    """lambda_i = N_i / t, and mu = (D - 1) / B where it is not known (nan before enough departures)."""

    arrival_rates: FloatArray
    service_rate: float | None = None

    def contains(self, arrival_rates: FloatArray) -> None:
        """A point claims nothing about how far off it is."""

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"rate_estimates": _listed(self.arrival_rates)}
        if self.service_rate is not None:
            found["service_rate_estimate"] = self.service_rate
        return found


# --- estimators ------------------------------------------------------------------------------------------------------


class Estimator(Protocol[B_co]):
    """Makes a belief of what was seen."""

    def prior(self) -> B_co | None:
        """The belief before anything was seen; None where it would not do to plan with."""
        ...

    def update(self, tally: Tally, length: float) -> B_co | None:
        """The belief after a stretch that was to last `length`; None where there is none yet."""
        ...

    def truncation(self, length: float) -> float:
        """Which gaps between arrivals are to be added up in the next stretch (Plan.truncation)."""
        ...


@dataclass(frozen=True)
class Confidence:
    """delta = unit / t at time t, but never above 1/2; with unit = 1 / mu the paper's 1 / (mu t)."""

    unit: float

    def __call__(self, time: float) -> float:
        return min(0.5, self.unit / time)


class TruncatedMean:
    """The paper's (Prop. 4.2): Lambda from the truncated gaps of the last stretch alone, p from all arrivals."""

    def __init__(
        self, classes: int, service_rate: float, bounds: tuple[float, float], *, learn_upper_bound: bool
    ) -> None:
        self.service_rate = service_rate
        self.bounds = bounds
        self.learn_upper_bound = learn_upper_bound
        self.class_totals = np.zeros(classes, dtype=np.int64)

    def delta(self, length: float) -> float:
        """delta_k = 1 / (mu t_k)."""
        return 1.0 / (self.service_rate * length)

    def prior(self) -> ConfidenceSet:
        return ConfidenceSet.everything(self.class_totals.size, self.bounds)

    def update(self, tally: Tally, length: float) -> ConfidenceSet:
        self.class_totals += tally.arrivals
        return ConfidenceSet.from_episode(
            tally.arrival_count,
            tally.truncated_gap_sum,
            self.class_totals,
            self.delta(length),
            self.bounds,
            learn_upper_bound=self.learn_upper_bound,
        )

    def truncation(self, length: float) -> float:
        return truncation(self.bounds[0], self.delta(length))


class _Untruncated:
    def truncation(self, length: float) -> float:
        return math.inf


class PooledInterval(_Untruncated):
    """Lambda within an interval from all arrivals, cut to bounds where there are any; p in an l1 ball."""

    def __init__(
        self,
        classes: int,
        confidence: Confidence,
        bounds: tuple[float, float] | None,
        interval: Interval = "exact",
        share_set: ShareSet = "paper",
    ) -> None:
        self.memory = Everything(classes)
        self.classes = classes
        self.confidence = confidence
        self.bounds = bounds
        self.interval = interval
        self.share_radius = share_radius if share_set == "paper" else weissman_radius

    def prior(self) -> ConfidenceSet | None:
        return None if self.bounds is None else ConfidenceSet.everything(self.classes, self.bounds)

    def update(self, tally: Tally, length: float) -> ConfidenceSet:
        seen = self.memory.add(tally)
        delta = self.confidence(seen.time)
        count = float(seen.arrivals.sum())
        if self.interval == "exact":
            low, high = exact_interval(count, seen.time, delta)
        else:
            low, high = anytime_interval(count, seen.time, delta, self.confidence.unit)
        estimate = count / seen.time
        radius = high - estimate
        if self.bounds is not None:
            least, most = self.bounds
            low, high = min(max(low, least), most), min(max(high, least), most)
        return ConfidenceSet(
            rate_estimate=estimate,
            rate_radius=radius,
            rate_interval=(low, high),
            shares=seen.arrivals / max(count, 1.0),
            # before the first arrival there is no estimate to be near to: all mixes, that of a single class among them
            share_radius=self.share_radius(int(count), self.classes, delta) if count > 0.0 else 2.0,
            delta=delta,
        )


class ClasswiseLimits(_Untruncated):
    """An upper limit for each class, each at delta / m; for the service rate, where unknown, one at delta / (m + 1).

    The busy time of the servers is random and depends on the departures, so the service rate's limit is always the
    one that is valid at random exposures.

    confidence None: the service rate is not known, nor is 1 / mu, the unit of delta. What was seen up to the first
    review with enough departures gives it, u = B / D (of mean 1 / mu if that review comes with the second departure).
    The limits of that review promise nothing, being of counts that stopped by themselves; then counting starts anew:
    from there on exposures are fixed in advance, u is a number like any other, and the limits are as valid as with a
    unit that was known.
    """

    def __init__(self, classes: int, confidence: Confidence | None, interval: Interval = "exact") -> None:
        self.memory = Everything(classes)
        self.classes = classes
        self.confidence = confidence
        self.interval = interval
        self.learn_service_rate = confidence is None

    def prior(self) -> None:
        return None

    def update(self, tally: Tally, length: float) -> UpperLimits | None:
        seen = self.memory.add(tally)
        if self.confidence is not None:
            return self._limits(seen, self.confidence)
        if seen.departures < ENOUGH or not seen.busy_time > 0.0:
            return None
        self.confidence = Confidence(seen.busy_time / seen.departures)
        self.memory = Everything(self.classes, since=tally.now)
        return self._limits(seen, self.confidence)

    def _limits(self, seen: Evidence, confidence: Confidence) -> UpperLimits:
        delta, unit = confidence(seen.time), confidence.unit
        share = delta / (self.classes + self.learn_service_rate)
        if self.interval == "exact":
            limits = upper_limits(seen.arrivals, seen.time, share)
        else:
            limits = np.array([anytime_interval(float(n), seen.time, share, unit)[1] for n in seen.arrivals])
        service = None
        if self.learn_service_rate:
            top = anytime_interval(seen.departures, seen.busy_time, share, unit)[1]
            service = (seen.departures / seen.busy_time if seen.departures else math.nan, top)
        return UpperLimits(seen.arrivals / seen.time, limits, delta, service)


class _Served:
    """Departures and busy time to tell the service rate from: 0 and 0 before there are enough.

    A memory that has seen nobody leave of late does not make what was known unknown: the last evidence with enough
    departures is kept; before a memory has held so many, all there were, once those are enough.
    """

    def __init__(self) -> None:
        self.departures = self.busy_time = 0.0
        self.ever = Evidence(np.zeros(0), 0.0, 0.0, 0.0)

    def add(self, seen: Evidence, tally: Tally) -> None:
        ever = self.ever
        self.ever = ever = replace(
            ever, departures=ever.departures + tally.departures, busy_time=ever.busy_time + tally.busy_time
        )
        for evidence in (seen, ever) if self.departures == 0.0 else (seen,):
            if evidence.departures >= ENOUGH and evidence.busy_time > 0.0:
                self.departures, self.busy_time = evidence.departures, evidence.busy_time
                break


class Posterior(_Untruncated):
    """The posterior of Jeffreys' prior."""

    def __init__(self, memory: Memory, *, learn_service_rate: bool = False) -> None:
        self.memory = memory
        self.served = _Served() if learn_service_rate else None

    def prior(self) -> None:
        return None

    def update(self, tally: Tally, length: float) -> GammaPosterior:
        seen = self.memory.add(tally)
        service = None
        if self.served is not None:
            self.served.add(seen, tally)
            service = (self.served.departures + PRIOR_SHAPE, self.served.busy_time)
        return GammaPosterior(seen.arrivals + PRIOR_SHAPE, seen.time, service)


class PlainEstimate(_Untruncated):
    """What was counted, over the time in which it was."""

    def __init__(self, memory: Memory, *, learn_service_rate: bool = False) -> None:
        self.memory = memory
        self.served = _Served() if learn_service_rate else None

    def prior(self) -> None:
        return None

    def update(self, tally: Tally, length: float) -> PointEstimate:
        seen = self.memory.add(tally)
        service = None
        if self.served is not None:
            self.served.add(seen, tally)
            served = self.served
            service = (served.departures - 1.0) / served.busy_time if served.departures else math.nan
        return PointEstimate(seen.arrivals / seen.time, service)
