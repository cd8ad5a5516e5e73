"""A fitted world drawn again: data of the same size from it, and the same laws fitted to them.

Arrivals: the counts N_j of jobs in slot j (of the pattern's steps, over the time e_j that the log has of it) are
Poisson of mean lambda f_j e_j, times the day's factor where days differ; the new rate in the slot is N_j / e_j, and the
new spread of the days that of moments,

    cv^2 = sum_d ((N_d - m_d)^2 - m_d) / sum_d m_d^2,          N_d jobs on day d, where m_d were to come.

Where the log's counts by blocks vary D times as much as Poisson ones, and no day factor says so, the level of the log
is drawn too: gamma of mean 1 and variance (D - 1) / (jobs expected), so that their number has D times the variance.

Batches: the same of batches; as many sizes as came are drawn, and their law is fitted to them (geometric: the mean).

A pattern that classes share is fitted to all of them. Other processes keep their shape, and get the rate of a count.
Where a class balks, jobs that ask come at the rate lambda times the mean of b(s) over the time e_s that the log has
with s jobs there; each falls into state s with probability b(s) e_s / sum_u b(u) e_u, and the law is fitted to them.

Service: as many durations as the log has works of, from the fitted law, and its family fitted to them by likelihood
(hyperexponential: by moments). Patience likewise, from as many as gave up. Numbers that no log tells (servers,
capacity, rewards, costs) stay as they are.

One file, though a long one: how each part of a world is drawn, and fitted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.balking_laws import refitted_law
from queueing_ucrl.data.shape_equations import gamma_shape, weibull_law, weibull_shape
from queueing_ucrl.elementary import exp, expm1, log, logs, power, powers
from queueing_ucrl.model.arrivals import Poisson, Renewal
from queueing_ucrl.model.batches import Batches, BatchSizes, EmpiricalSizes, GeometricSizes
from queueing_ucrl.model.laws import (
    Deterministic,
    Empirical,
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
from queueing_ucrl.model.quantiles import gamma_quantile
from queueing_ucrl.model.random_rates import DayFactor, Modulated
from queueing_ucrl.model.rate_patterns import Steady, Steps
from queueing_ucrl.model.system import JobClass, Queue, System
from queueing_ucrl.variates import Exponentials, Gammas

Rng = Callable[[int, str], np.random.Generator]  # a generator for a class and a purpose
SMALLEST_CV = 1e-6  # of days that differ
MOST_DRAWN = 20_000  # durations of an empirical law: few that are listed stand for many
NOBODY = 0.5  # jobs that came, where nobody did: a rate must be positive


@dataclass(frozen=True)
class SampleSizes:
    """How much a log has told."""

    begin: float
    end: float
    works: tuple[int, ...]  # by class: services whose length is known
    patience: tuple[int, ...]  # by class: jobs that gave up, about
    dispersion: tuple[float, ...] = ()  # by class: how much more counts vary than Poisson ones; nothing: 1
    states: tuple[float, ...] = ()  # how long so many jobs were there; nothing: nobody balks


def redrawn(system: System, sizes: SampleSizes, rng: Rng) -> System:
    """A world as it could have been fitted, were this one true. A ValueError says that nothing could be fitted."""
    classes = _arrivals(system, sizes, rng)
    services = _laws([system.law(i) for i in range(len(classes))], sizes.works, rng, "fit services")
    patience = _laws([system.patience_of(i) for i in range(len(classes))], sizes.patience, rng, "fit patience")
    if isinstance(system, Queue):
        rate = _exponential_rate(services[0])
        plain = [replace(c, service=None, patience=None) for c in classes]
        return Queue(system.servers, system.capacity, rate, plain, patience[0], system.initial)
    own = [
        replace(c, service=service, patience=None if c.patience is None else law)
        for c, service, law in zip(classes, services, patience, strict=True)
    ]
    common = None if system.patience is None else _common(system, patience)
    return replace(system, classes=own, patience=common)


def _exponential_rate(law: Law | None) -> float:
    assert isinstance(law, Exponential)
    return law.rate


def _common(system: System, patience: list[Law | None]) -> Law | None:
    """The patience of classes that have none of their own."""
    return next((p for c, p in zip(system.classes, patience, strict=True) if c.patience is None), system.patience)


# --- arrivals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pieces:
    """The log's time cut where a rate may change: how long each piece is, its slot of the pattern and its day."""

    lengths: FloatArray
    slots: IntArray
    days: IntArray


def _pieces(begin: float, end: float, pattern: Any, day: float | None) -> _Pieces:
    cuts = [begin, end]
    if isinstance(pattern, Steps):
        period = pattern.period
        inner = np.array([0.0, *pattern.times])
        periods = (
            np.arange(math.floor(begin / period), math.floor(end / period) + 1) if math.isfinite(period) else [0.0]
        )
        starts = [period * k if k else 0.0 for k in periods]
        cuts += (np.array(starts)[:, None] + inner).ravel().tolist()
    if day is not None:
        cuts += (day * np.arange(math.floor(begin / day), math.floor(end / day) + 1)).tolist()
    edges = np.unique(np.clip(cuts, begin, end))
    middles = 0.5 * (edges[:-1] + edges[1:])
    slots = np.zeros(middles.size, dtype=np.int64)
    if isinstance(pattern, Steps):
        phases = (
            middles if math.isinf(pattern.period) else middles - pattern.period * np.floor(middles / pattern.period)
        )
        slots = np.searchsorted(np.array(pattern.times), phases, side="right").astype(np.int64)
    days = np.zeros(middles.size, dtype=np.int64)
    if day is not None:
        days = np.floor(middles / day).astype(np.int64) - math.floor(begin / day)
    return _Pieces(np.diff(edges), slots, days)


def _counts(means: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Independent Poisson numbers of these means: points of a process of rate 1 on a line as long as their sum."""
    edges = np.cumsum(means)
    total = float(edges[-1])
    stream, points, now = Exponentials(rng), [], 0.0
    while now <= total:
        gaps = np.empty(max(64, int(1.1 * (total - now))))
        stream.fill(gaps)
        gaps[0] += now
        found = np.cumsum(gaps)
        now = float(found[-1])
        points.append(found[found < total])
    places = np.searchsorted(edges, np.concatenate(points), side="right")
    return np.bincount(places, minlength=means.size)[: means.size].astype(np.float64)


@dataclass(frozen=True)
class _Counted:
    """The drawn jobs of a class by slot: how many came, in how much time."""

    counts: FloatArray
    times: FloatArray
    cv: float  # of the days


def _counted(rate: float, pattern: Any, days: DayFactor | None, sizes: SampleSizes, rng: Rng, i: int) -> _Counted:
    pieces = _pieces(sizes.begin, sizes.end, pattern, None if days is None else days.period)
    factors = np.array(pattern.factors) if isinstance(pattern, Steps) else np.ones(1)
    means = rate * factors[pieces.slots] * pieces.lengths
    drawn = means
    if days is not None and days.cv > 0.0:
        shape = 1.0 / days.cv**2
        levels = np.empty(int(pieces.days[-1]) + 1)
        Gammas(rng(i, "fit days"), shape).fill(levels)
        drawn = means * (levels / shape)[pieces.days]
    elif sizes.dispersion and sizes.dispersion[i] > 1.0:
        shape = math.fsum(means.tolist()) / (sizes.dispersion[i] - 1.0)
        level = np.empty(1)
        Gammas(rng(i, "fit days"), shape).fill(level)
        drawn = means * (float(level[0]) / shape)
    counts = _counts(drawn, rng(i, "fit counts"))
    slots = factors.size
    times = _summed(pieces.slots, pieces.lengths, slots)
    cv = 0.0
    if days is not None:
        number = int(pieces.days[-1]) + 1
        came = _summed(pieces.days, counts, number)
        expected = _summed(pieces.days, means, number) * (math.fsum(came.tolist()) / math.fsum(means.tolist()))
        above = math.fsum(((came - expected) ** 2 - expected).tolist())
        cv = math.sqrt(max(0.0, above / math.fsum((expected**2).tolist()))) if came.sum() else days.cv
        cv = cv if cv >= SMALLEST_CV else 0.0
    return _Counted(_summed(pieces.slots, counts, slots), times, cv)


def _summed(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    """The sum of the values in each place."""
    return np.bincount(places, values, size).astype(np.float64)


def dispersion(c: JobClass, times: FloatArray, starts: Sequence[float], length: float) -> float:
    """D = sum_b (N_b - m_b)^2 / m_b / (n - 1) of the jobs, or batches, N_b in n blocks, m_b as the pattern says.

    1 where it is not above what Poisson counts have (chi-squared at 1 %), or the process has a spread of its own.
    """
    poisson, days = _poisson_within(c)
    if poisson is None or days is not None or not isinstance(poisson.pattern, Steps | Steady) or len(starts) < 2:
        return 1.0
    if isinstance(c.arrivals, Batches):
        times = np.unique(times)
    counts = (
        np.diff(np.searchsorted(times, [[start, start + length] for start in starts]), axis=1).ravel().astype(float)
    )
    expected = np.array([_expected(poisson.pattern, start, start + length) for start in starts])
    seen = expected > 0.0
    counts, expected = counts[seen], expected[seen]
    total = math.fsum(counts.tolist())
    if not total or counts.size < 2:
        return 1.0
    expected = expected * (total / math.fsum(expected.tolist()))
    statistic, freedom = math.fsum(((counts - expected) ** 2 / expected).tolist()), counts.size - 1
    limit = 2.0 * gamma_quantile(0.5 * freedom, 0.99)
    return statistic / freedom if statistic > limit else 1.0


def _expected(pattern: Any, begin: float, end: float) -> float:
    """The integral of the pattern's factor."""
    if not isinstance(pattern, Steps):
        return end - begin
    pieces = _pieces(begin, end, pattern, None)
    return math.fsum((np.array(pattern.factors)[pieces.slots] * pieces.lengths).tolist())


def _arrivals(system: System, sizes: SampleSizes, rng: Rng) -> list[JobClass]:
    """The classes with rates that were fitted anew."""
    counted: dict[int, _Counted] = {}
    for i, c in enumerate(system.classes):
        poisson, days = _poisson_within(c)
        if poisson is not None:
            counted[i] = _counted(poisson.base_rate * _asking(c, sizes), poisson.pattern, days, sizes, rng, i)
    classes = list(system.classes)
    for i, c in enumerate(system.classes):
        poisson, days = _poisson_within(c)
        if poisson is None:
            classes[i] = _other_arrivals(c, sizes, rng, i)
            continue
        alike = [k for k in counted if _poisson_within(system.classes[k])[0].pattern == poisson.pattern]  # type: ignore[union-attr]
        asking = Poisson(poisson.base_rate * _asking(c, sizes), poisson.pattern)
        fitted = _fitted(asking, counted[i], [counted[k] for k in alike])
        c = _balking_anew(c, int(counted[i].counts.sum()), sizes, rng(i, "fit states"))
        fitted = Poisson(fitted.base_rate / _asking(c, sizes), fitted.pattern)
        within = fitted if days is None else DayFactor(fitted, counted[i].cv, days.period)
        if isinstance(c.arrivals, Batches):
            sizes_anew = _sizes_anew(c.arrivals.sizes, int(counted[i].counts.sum()), rng(i, "fit sizes"))
            classes[i] = replace(c, arrival_rate=math.nan, pattern=Steady(), arrivals=Batches(within, sizes_anew))
        elif days is None:
            classes[i] = replace(c, arrival_rate=fitted.base_rate, pattern=fitted.pattern)
        else:
            classes[i] = replace(c, arrival_rate=math.nan, pattern=Steady(), arrivals=within)
    return classes


def _sizes_anew(sizes: BatchSizes, count: int, rng: np.random.Generator) -> BatchSizes:
    """The law of sizes fitted to so many batches."""
    if not count or not isinstance(sizes, GeometricSizes | EmpiricalSizes):
        return sizes  # of a fixed size nothing is left open
    drawn = np.empty(count)
    sizes.stream(rng).fill(drawn)
    if isinstance(sizes, GeometricSizes):
        return GeometricSizes(math.fsum(drawn.tolist()) / count)
    return EmpiricalSizes(drawn.astype(np.int64).tolist())


def _asking(c: JobClass, sizes: SampleSizes) -> float:
    """sum_s b(s) e_s / sum_s e_s: the share of those who come that ask, in the time that the log has of each state."""
    if c.balking is None or not sizes.states:
        return 1.0
    joins = c.balking.probabilities(len(sizes.states)).tolist()
    asking = math.fsum(b * e for b, e in zip(joins, sizes.states, strict=True))
    if not asking > 0.0:
        raise ValueError("nobody asked")
    return asking / math.fsum(sizes.states)


def _balking_anew(c: JobClass, count: int, sizes: SampleSizes, rng: np.random.Generator) -> JobClass:
    """The class with its law of balking fitted to so many jobs that asked."""
    if c.balking is None or not sizes.states or not count:
        return c
    times = np.array(sizes.states)
    sums = np.cumsum(c.balking.probabilities(times.size) * times)
    asked = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
    counts = np.bincount(np.minimum(asked, times.size - 1), minlength=times.size).astype(np.float64)
    return replace(c, balking=refitted_law(c.balking, counts, times))


def _poisson_within(c: JobClass) -> tuple[Poisson | None, DayFactor | None]:
    """The Poisson process by which jobs of a class, or batches of them, come, and the factors of its days.

    (None, None) for any other process.
    """
    if c.arrivals is None:
        return Poisson(c.arrival_rate, c.pattern), None
    process = c.arrivals.arrivals if isinstance(c.arrivals, Batches) else c.arrivals
    if isinstance(process, DayFactor) and isinstance(process.arrivals, Poisson):
        return process.arrivals, process
    if isinstance(process, Poisson) and isinstance(c.arrivals, Batches):
        return process, None
    return None, None


def _fitted(poisson: Poisson, own: _Counted, alike: list[_Counted]) -> Poisson:
    """lambda and the factors from counts; factors from those of all classes that share them, lambda from one's own."""
    pattern, rate = poisson.pattern, poisson.base_rate
    came = math.fsum(own.counts.tolist())
    if not isinstance(pattern, Steps):
        return Poisson(max(came, NOBODY) / math.fsum(own.times.tolist()), pattern)
    pooled, factors = np.sum([one.counts for one in alike], axis=0), np.array(pattern.factors)
    seen = own.times > 0.0
    if not pooled[seen].any():
        raise ValueError("nobody came")
    new = factors.copy()
    new[seen] = pooled[seen] / own.times[seen]
    level = math.fsum((factors * own.times).tolist()) / math.fsum((new * own.times)[seen].tolist())
    new[seen] *= level  # the same mean over the log as before: the rate is lambda's
    expected = rate * math.fsum((factors * own.times).tolist())
    return Poisson(rate * max(came, NOBODY) / expected, replace(pattern, factors=tuple(new.tolist())))


def _other_arrivals(c: JobClass, sizes: SampleSizes, rng: Rng, i: int) -> JobClass:
    """Another process, its rate by a count; what comes as it came once (a trace) stays as it is."""
    process, length = c.arrivals, sizes.end - sizes.begin
    scaled = _scaled(process, 1.0)
    if scaled is None:
        return c
    stream, times, came = process.stream(lambda purpose: rng(i, f"fit {purpose}")), np.empty(4096), 0  # type: ignore[union-attr]
    while True:
        kept = stream.fill(times)
        inside = times <= length
        came += int(np.count_nonzero(inside if kept is None else inside & kept))
        if not inside.all():
            break
    factor = max(came, NOBODY) / (c.arrival_rate * length)
    return replace(c, arrival_rate=math.nan, pattern=Steady(), arrivals=_scaled(process, factor))


def _scaled(process: Any, factor: float) -> Any:
    """The process at another speed; None where that is not known."""
    match process:
        case Poisson():
            return Poisson(factor * process.base_rate, process.pattern)
        case Modulated():
            return replace(process, base_rate=factor * process.base_rate)
        case Batches() | DayFactor():
            within = _scaled(process.arrivals, factor)
            return None if within is None else replace(process, arrivals=within)
        case Renewal(law=Exponential(rate=rate)):
            return Renewal(Exponential(factor * rate))
        case Renewal(law=Deterministic(value=value)):
            return Renewal(Deterministic(value / factor))
        case Renewal(law=Gamma() | LogNormal() | Weibull() | Erlang() | HyperExponential() | Pareto() as law):
            return Renewal(replace(law, mean=law.mean / factor))
    return None


# --- laws -------------------------------------------------------------------------------------------------------------


def _laws(laws: list[Any], counts: tuple[int, ...], rng: Rng, purpose: str) -> list[Law | None]:
    """Each law fitted to a sample of itself; classes that share one are one sample."""
    found: dict[int, Law | None] = {}
    for i, law in enumerate(laws):
        if i in found:
            continue
        alike = [k for k in range(i, len(laws)) if laws[k] == law]
        count = sum(counts[k] for k in alike)
        new = law if law is None or count == 0 else refitted(law, count, rng(i, purpose))
        found |= dict.fromkeys(alike, new)
    return [found[i] for i in range(len(laws))]


def refitted(law: Law, count: int, rng: np.random.Generator) -> Law:
    """A law of the same family, fitted to so many numbers of it. One that is of no family stays as it is."""
    if isinstance(law, Exponential):
        total = np.empty(1)
        Gammas(rng, float(count)).fill(total)
        return Exponential(law.rate * count / float(total[0]))
    if not isinstance(law, Erlang | Gamma | HyperExponential | LogNormal | Pareto | Uniform | Weibull | Empirical):
        return law
    values = np.empty(max(law.values.size, min(count, MOST_DRAWN)) if isinstance(law, Empirical) else count)
    law.stream(rng).fill(values)
    if isinstance(law, Empirical):
        return Empirical(values)
    if count == 1:
        return law if isinstance(law, Uniform) else _with_mean(law, float(values[0]))
    return _by_likelihood(law, values)


def _with_mean(law: Any, mean: float) -> Law:
    found: Law = replace(law, mean=mean)
    return found


def _by_likelihood(law: Law, values: FloatArray) -> Law:
    n = values.size
    mean = math.fsum(values.tolist()) / n
    match law:
        case Erlang():
            return Erlang(mean, law.stages)
        case Uniform():
            return Uniform(float(values.min()), float(values.max()))
        case HyperExponential():  # below 1 there is none: the exponential law is the end of the family
            variance = math.fsum(((values - mean) ** 2).tolist()) / (n - 1)
            return HyperExponential(mean, max(1.0, math.sqrt(variance) / mean))
        case Gamma():
            return Gamma(mean, 1.0 / math.sqrt(gamma_shape(values)))
    of_logs = logs(values)
    mean_log = math.fsum(of_logs.tolist()) / n
    if isinstance(law, LogNormal):
        variance = math.fsum(((of_logs - mean_log) ** 2).tolist()) / n
        return LogNormal(exp(mean_log + 0.5 * variance), math.sqrt(expm1(variance)))
    if isinstance(law, Pareto):
        least = float(values.min())
        shape = 1.0 / (mean_log - log(least))
        if not shape > 1.0:
            raise ValueError("a Pareto law without a mean")
        return Pareto(least * shape / (shape - 1.0), shape)
    shape, top = weibull_shape(values), float(values.max())
    scale = top * power(math.fsum(powers(values / top, shape).tolist()) / n, 1.0 / shape)
    return weibull_law(shape, scale)
