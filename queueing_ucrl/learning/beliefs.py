"""Beliefs about the rates, beside the paper's `ConfidenceSet`: limits, a law, a point; and what was planned for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Belief
from queueing_ucrl.learning.intervals import PRIOR_SHAPE


def per_time(counts: FloatArray, time: float | FloatArray) -> FloatArray:
    """Rates: counts by class over the time in which they were made, of all or of each; 0 where there is none."""
    if not isinstance(time, np.ndarray):
        return counts / time
    return np.where(time > 0.0, counts / np.where(time > 0.0, time, 1.0), 0.0)


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
        found: dict[str, Any] = {"rate_estimates": self.estimates.tolist(), "rate_limits": self.limits.tolist()}
        found["delta"] = self.delta
        if self.service_rate is not None:
            found |= {"service_rate_estimate": self.service_rate[0], "service_rate_limit": self.service_rate[1]}
        return found


@dataclass(frozen=True)
class Impatience:
    """What was seen of jobs that give up, where the rate theta at which they do is not known.

    theta ~ Gamma(A + 1/2, Q + 1 / (2 mu)): before anything was seen jobs are as patient as a service is long in the
    mean, half an abandonment's worth. So the belief has a mean from the start, and no unit of time.
    """

    abandonments: float  # A
    waiting_time: float  # Q

    def shape(self) -> float:
        """Of theta's law."""
        return self.abandonments + PRIOR_SHAPE

    def rate(self, service_rate: float) -> float:
        """Of theta's law: the exposure."""
        return self.waiting_time + PRIOR_SHAPE / service_rate

    def estimate(self, service_rate: float) -> float:
        """The mean of theta's law."""
        return self.shape() / self.rate(service_rate)

    def columns(self) -> dict[str, Any]:
        """A / Q, without the prior."""
        return {"patience_rate_estimate": self.abandonments / self.waiting_time if self.waiting_time else math.nan}


@dataclass(frozen=True)
class GammaPosterior:
    """lambda_i ~ Gamma(N_i + 1/2, t), independent (shape, rate); mu ~ Gamma(D + 1/2, B) where it is not known."""

    shapes: FloatArray
    time: float | FloatArray  # by class, where the time in which jobs were seen differs
    service: tuple[float, float] | None = None  # shape and rate; before enough departures: shape 1/2
    impatience: Impatience | None = None

    def contains(self, arrival_rates: FloatArray) -> None:
        """A law excludes nothing."""

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"rate_estimates": per_time(self.shapes, self.time).tolist()}
        found["posterior_time"] = self.time.tolist() if isinstance(self.time, np.ndarray) else self.time
        if self.service is not None:
            shape, rate = self.service
            found["service_rate_estimate"] = shape / rate if rate > 0.0 else math.nan
        return found if self.impatience is None else {**found, **self.impatience.columns()}


@dataclass(frozen=True)
class PointEstimate:
    """lambda_i = N_i / t, and mu = (D - 1) / B where it is not known (nan before enough departures)."""

    arrival_rates: FloatArray
    service_rate: float | None = None
    impatience: Impatience | None = None

    def contains(self, arrival_rates: FloatArray) -> None:
        """A point claims nothing about how far off it is."""

    def columns(self) -> dict[str, Any]:
        found: dict[str, Any] = {"rate_estimates": self.arrival_rates.tolist()}
        if self.service_rate is not None:
            found["service_rate_estimate"] = self.service_rate
        return found if self.impatience is None else {**found, **self.impatience.columns()}


@dataclass(frozen=True)
class OptimisticBelief:
    """A confidence set together with the mix of classes that optimism made of it."""

    plausible: ConfidenceSet
    shares: FloatArray  # p~(s)

    def contains(self, arrival_rates: FloatArray) -> bool:
        return self.plausible.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        return {**self.plausible.columns(), "optimistic_shares": shares_where_they_change(self.shares)}


@dataclass(frozen=True)
class PlannedBelief:
    """A belief together with the rates that were planned for."""

    belief: Belief
    arrival_rates: FloatArray
    service_rate: float | None  # where it is not known
    patience_rate: float | None = None  # where it is not known

    def contains(self, arrival_rates: FloatArray) -> bool | None:
        return self.belief.contains(arrival_rates)

    def columns(self) -> dict[str, Any]:
        found = {**self.belief.columns(), "planned_rates": self.arrival_rates.tolist()}
        if self.service_rate is not None:
            found["planned_service_rate"] = self.service_rate
        if self.patience_rate is not None:
            found["planned_patience_rate"] = self.patience_rate
        return found


def shares_where_they_change(shares: FloatArray) -> list[dict[str, Any]]:
    """p~(s) at each state where it differs from the state before: [{"from_state": 0, "shares": [..]}, ..]."""
    changes = np.flatnonzero(np.any(shares[1:] != shares[:-1], axis=1)) + 1
    return [{"from_state": int(s), "shares": shares[s].tolist()} for s in (0, *changes)]
