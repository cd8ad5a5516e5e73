r"""Estimators make a belief of what was seen: the first part of a learning controller.

The paper's truncated mean; an interval for Lambda with the l1 set for p; an upper limit for each class; a Gamma
posterior; a plain estimate.

D / B, departures over busy-server time, will not do as an estimate of mu while D = 1: near 0 the busy time up to the
first departure has the density mu, so that E[1 / B] is infinite. Up to the second it is Gamma(2, mu), and
E[(D - 1) / B] = E[1 / B] = mu. So mu is told from LEAST_DEPARTURES = 2 on, and by (D - 1) / B: its mean is mu whenever
the count stops at a departure; at other times it is low by 1 / D of itself or less, within its standard error of
1 / sqrt(D).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.beliefs import GammaPosterior, Impatience, PointEstimate, UpperLimits, per_time
from queueing_ucrl.learning.confidence import ConfidenceSet, share_radius, truncation, weissman_radius
from queueing_ucrl.learning.controller import Belief, Knowledge, Tally
from queueing_ucrl.learning.intervals import PRIOR_SHAPE, anytime_interval, exact_interval, upper_limits
from queueing_ucrl.learning.memories import Evidence, FullHistory, Memory
from queueing_ucrl.learning.schedules import DeltaSchedule

B_co = TypeVar("B_co", bound=Belief, covariant=True)
Interval = Literal["exact", "anytime"]
ShareSet = Literal["paper", "weissman"]

LEAST_DEPARTURES = 2  # from which the service rate is told


class LoadPrior(NamedTuple):
    """What is held to have been seen before anything was: so many arrivals of each class in so much time."""

    arrivals: FloatArray
    time: float

    @classmethod
    def of(cls, knowledge: Knowledge) -> LoadPrior:
        """Two arrivals in all in the time of two departures of a full house: 2 / m each in 2 / mu_max, a load of 1."""
        m = knowledge.class_count
        return cls(np.full(m, 2.0 / m), 2.0 / knowledge.max_service_rate)

    def rates(self, arrivals: FloatArray, time: float | FloatArray) -> FloatArray:
        """lambda_i with what was seen since."""
        return (arrivals + self.arrivals) / (time + self.time)


class Estimator(Protocol[B_co]):
    """Makes a belief of what was seen."""

    def prior(self) -> B_co | None:
        """The belief before anything was seen; None where it would not do to plan with."""
        ...

    def update(self, tally: Tally, length: float) -> B_co | None:
        """The belief after an episode that was to last `length`; None where there is none yet."""
        ...

    def truncation(self, length: float) -> float:
        """Which gaps between arrivals are to be added up in the next episode (Plan.truncation)."""
        ...


class TruncatedMean:
    """The paper's (Prop. 4.2): Lambda from the truncated gaps of the last episode alone, p from all arrivals."""

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
        return ConfidenceSet.prior(self.class_totals.size, self.bounds)

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
        schedule: DeltaSchedule,
        bounds: tuple[float, float] | None,
        interval: Interval = "exact",
        share_set: ShareSet = "paper",
    ) -> None:
        self.memory = FullHistory(classes)
        self.classes = classes
        self.delta = schedule
        self.bounds = bounds
        self.interval = interval
        self.share_radius = share_radius if share_set == "paper" else weissman_radius

    def prior(self) -> ConfidenceSet | None:
        return None if self.bounds is None else ConfidenceSet.prior(self.classes, self.bounds)

    def update(self, tally: Tally, length: float) -> ConfidenceSet:
        seen = self.memory.add(tally)
        delta = self.delta(seen.time)
        count = float(seen.arrivals.sum())
        if self.interval == "exact":
            low, high = exact_interval(count, seen.time, delta)
        else:
            low, high = anytime_interval(count, seen.time, delta, self.delta.unit)
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

    schedule None: the service rate is not known, nor is 1 / mu, the unit of delta. What was seen up to the first
    review with enough departures gives it, u = B / D (of mean 1 / mu if that review comes with the second departure).
    The limits of that review promise nothing, being of counts that stopped by themselves; then counting starts anew:
    from there on exposures are fixed in advance, u is a number like any other, and the limits are as valid as with a
    unit that was known.
    """

    def __init__(self, classes: int, schedule: DeltaSchedule | None, interval: Interval = "exact") -> None:
        self.memory = FullHistory(classes)
        self.classes = classes
        self.delta = schedule
        self.interval = interval
        self.learn_service_rate = schedule is None

    def prior(self) -> None:
        return None

    def update(self, tally: Tally, length: float) -> UpperLimits | None:
        seen = self.memory.add(tally)
        if self.delta is not None:
            return self._limits(seen, self.delta)
        if seen.departures < LEAST_DEPARTURES or not seen.busy_time > 0.0:
            return None
        self.delta = DeltaSchedule(seen.busy_time / seen.departures)
        self.memory = FullHistory(self.classes, since=tally.now)
        return self._limits(seen, self.delta)

    def _limits(self, seen: Evidence, schedule: DeltaSchedule) -> UpperLimits:
        delta, unit = schedule(seen.time), schedule.unit
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


class _ServiceRecord:
    """Departures and busy time to tell the service rate from: 0 and 0 before there are enough.

    A memory that has seen nobody leave of late does not make what was known unknown: the last evidence with enough
    departures is kept; before a memory has held so many, all there were, once those are enough.
    """

    def __init__(self) -> None:
        self.departures = self.busy_time = 0.0
        self.ever = Evidence(np.zeros(0), 0.0, 0.0, 0.0)

    def add(self, seen: Evidence, tally: Tally) -> None:
        ever = self.ever
        self.ever = ever = ever._replace(
            departures=ever.departures + tally.departures, busy_time=ever.busy_time + tally.busy_time
        )
        for evidence in (seen, ever) if self.departures == 0.0 else (seen,):
            if evidence.departures >= LEAST_DEPARTURES and evidence.busy_time > 0.0:
                self.departures, self.busy_time = evidence.departures, evidence.busy_time
                break


class _FromMemory(_Untruncated):
    """open_time: where only jobs that were let in are seen, for how long they would have been, by class; else None."""

    def __init__(
        self,
        memory: Memory,
        *,
        learn_service_rate: bool = False,
        learn_patience: bool = False,
        open_time: FloatArray | None = None,
    ) -> None:
        self.memory = memory
        self.open_time = open_time
        self.learn_patience = learn_patience
        self.served = _ServiceRecord() if learn_service_rate else None

    def add(self, tally: Tally) -> Evidence:
        """What counts, with this tally, for the arrival rates; what counts for the service rate is in `served`."""
        seen = self.memory.add(tally)
        if self.served is not None:
            self.served.add(seen, tally)
        if self.open_time is not None:
            self.open_time = self.open_time + tally.open_time
        return seen

    def exposure(self, seen: Evidence) -> float | FloatArray:
        """The time in which arrivals were seen: all of it; of each class that in which it was let in, where it is."""
        return seen.time if self.open_time is None else self.open_time

    def impatience(self, seen: Evidence) -> Impatience | None:
        """What was seen of jobs that give up, where that is not known."""
        return Impatience(seen.abandonments, seen.waiting_time) if self.learn_patience else None


class Posterior(_FromMemory):
    """The posterior of Jeffreys' prior."""

    def prior(self) -> None:
        return None

    def update(self, tally: Tally, length: float) -> GammaPosterior:
        seen, served = self.add(tally), self.served
        service = None if served is None else (served.departures + PRIOR_SHAPE, served.busy_time)
        return GammaPosterior(seen.arrivals + PRIOR_SHAPE, self.exposure(seen), service, self.impatience(seen))


class PlainEstimate(_FromMemory):
    """What was counted, over the time in which it was; a prior, where there is one, is counted with it."""

    def __init__(
        self,
        memory: Memory,
        load: LoadPrior | None = None,
        *,
        learn_service_rate: bool = False,
        learn_patience: bool = False,
        open_time: FloatArray | None = None,
    ) -> None:
        unknown = {"learn_service_rate": learn_service_rate, "learn_patience": learn_patience}
        super().__init__(memory, **unknown, open_time=open_time)
        self.load = load

    def prior(self) -> PointEstimate | None:
        if self.load is None or self.learn_patience:
            return None
        return PointEstimate(self.load.arrivals / self.load.time)

    def update(self, tally: Tally, length: float) -> PointEstimate:
        seen, served = self.add(tally), self.served
        service = None
        if served is not None:
            service = (served.departures - 1.0) / served.busy_time if served.departures else math.nan
        time = self.exposure(seen)
        rates = per_time(seen.arrivals, time) if self.load is None else self.load.rates(seen.arrivals, time)
        return PointEstimate(rates, service, self.impatience(seen))
