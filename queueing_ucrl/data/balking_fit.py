r"""Who balks, and by which law: arrival rates lambda f_j b(s) of a class, in slot j of the clock, with s jobs there.

N_js arrivals came in e_js of observed time. Given the steps f_j the states are N_s arrivals in e_s = sum_j f_j e_js of
time, and given the law b the slots are N_j arrivals in sum_s b(s) e_js: the two are fitted in turn, each by likelihood,
until nothing changes. Laws that are tried, b(s) = 1 up to a state K of each:

    geometric    r^{(s - K)+}
    linear       (1 - (s - K)+ / L)+
    table        rates that do not grow with s, neighbours that can hardly be told apart merged (`state_rates`)

and of these the one with the smallest -2 log-likelihood + k log N is taken, k = 2 for the first two and two for each
level of a table but the first. A class balks where the test of `balking` says so (Holm's correction over classes) and
that criterion is below that of one rate, k = 0.

The interval of lambda is that of the joint likelihood region of lambda and K, over both of the first two laws, each K's
profile a parabola, with that of the law taken: chi-squared with two degrees of freedom, since K is chosen too.
Arrivals are Poisson in the clock Lambda(t) = int_0^t lambda f b(s(u)) du if they are Poisson but for the crowd: there
they are tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.data.arrivals_fit import COARSE, ArrivalsFit, fit_arrivals
from queueing_ucrl.data.balking import Crowd, crowd
from queueing_ucrl.data.balking_laws import Candidate, candidates, likeliest, log_likelihood
from queueing_ucrl.data.crowd_law import CrowdLaw
from queueing_ucrl.data.finding import ALPHA, holm
from queueing_ucrl.data.occupancy import Stays, fit_balking, known_stays
from queueing_ucrl.data.poisson_verdict import poisson_findings
from queueing_ucrl.data.rates import StepPattern, rate_interval
from queueing_ucrl.data.tables import JobTable
from queueing_ucrl.model.balking import BalkingTable

ROUNDS = 100  # of steps and law in turn
DROP = -math.log(0.05)  # half of the 95 % quantile of chi-squared (2): how far the log-likelihood may fall
INTERVAL = "by likelihood, with the law of balking"


@dataclass(frozen=True)
class _Cells:
    """N_js and e_js, slots of the pattern and states."""

    counts: FloatArray
    exposures: FloatArray
    place: IntArray  # the slot of each stretch of time


def _slots(times: FloatArray, pattern: StepPattern | None) -> IntArray:
    if pattern is None or not pattern.times:
        return np.zeros(times.size, dtype=np.int64)
    phase = times - pattern.period * np.floor(times / pattern.period)
    return np.searchsorted(pattern.times, phase, side="right").astype(np.int64)


def _cells(there: Crowd, pattern: StepPattern | None, states: int) -> _Cells:
    """States from `states` on are left out: where the house is full nobody can be seen to ask."""
    rows = 1 if pattern is None or not pattern.times else len(pattern.rates)
    columns = 1 + int(max(there.state.max(), there.at_arrival.max(initial=0)))
    place, at = _slots(there.middle, pattern), _slots(there.times, pattern)
    size = rows * columns
    lasted = np.bincount(place * columns + there.state, there.length, minlength=size).astype(np.float64)
    exposures = lasted.reshape(rows, columns)
    counts = np.bincount(at * columns + there.at_arrival, minlength=size).reshape(rows, columns).astype(np.float64)
    counts = np.where(exposures > 0.0, counts, 0.0)  # stamps that are rounded may tell of states that never were
    return _Cells(counts[:, :states], exposures[:, :states], place)


def _marks(pattern: StepPattern | None, begin: float, end: float) -> FloatArray:
    if pattern is None or not pattern.times:
        return np.zeros(0)
    periods = pattern.period * np.arange(math.floor(begin / pattern.period), math.floor(end / pattern.period) + 1)
    marks = np.add.outer(periods, [0.0, *pattern.times]).ravel()
    return marks[(marks > begin) & (marks < end)]


def _in_turn(cells: _Cells, factors: FloatArray, shares: FloatArray) -> tuple[list[Candidate], Candidate, FloatArray]:
    """(laws tried last, the likeliest, factors): the law given the steps, the steps given the law. shares: of slots."""
    total = float(cells.counts.sum())
    before = -math.inf
    for _ in range(ROUNDS):
        tried = list(candidates(cells.counts.sum(axis=0), (factors[:, None] * cells.exposures).sum(axis=0)))
        best = likeliest(tried, total)
        if factors.size == 1 or best.log_likelihood <= before + 1e-9 * total:
            break
        before = best.log_likelihood
        seen = (np.array(best.law.joins(cells.counts.shape[1])) * cells.exposures).sum(axis=1)
        rates = np.divide(cells.counts.sum(axis=1), seen, out=factors.copy(), where=seen > 0.0)
        factors = rates / float((rates * shares).sum())
    return tried, best, factors


def _rate_range(tried: Sequence[Candidate], best: Candidate, counts: FloatArray, e: FloatArray) -> tuple[float, float]:
    """The lambdas of the joint region of lambda and K, and of the law taken."""
    lows, highs = [], []
    top = max(one.log_likelihood for one in tried if not isinstance(one.law, BalkingTable))
    for one in tried:
        room = DROP if one is best else 0.0 if isinstance(one.law, BalkingTable) else DROP - (top - one.log_likelihood)
        if room <= 0.0:
            continue
        rate = float(counts.sum()) / float((np.array(one.law.joins(counts.size)) * e).sum())
        reach = math.sqrt(2.0 * room * one.log_rate_variance)
        lows.append(rate * math.exp(-reach))
        highs.append(rate * math.exp(min(reach, 700.0)))
    return min(lows), max(highs)


def clustering(fit: ArrivalsFit) -> float:
    """How many times as much as Poisson counts those of neighbouring windows vary; 1 where that may be chance."""
    found = fit.dispersion
    return found.index if found is not None and found.p_value < ALPHA and found.index > 1.0 else 1.0


def has_memory(fit: ArrivalsFit) -> bool:
    """Whether jobs come one by one but not as a Poisson process: when the last came then matters, as a crowd does."""
    return fit.batches is None and not fit.poisson.passes


def _crowd_of(fit: ArrivalsFit, table: JobTable, stays: Stays, capacity: int | None) -> tuple[Crowd, int, _Cells]:
    """Who was there when; how many numbers of jobs there are; and arrivals and time by these and the clock."""
    times, observed = table.times[table.of_class(fit.name)], (table.begin, table.end)
    there = crowd(times, stays.entries, stays.exits, observed, _marks(fit.pattern, *observed))
    states = 1 + int(max(there.state.max(), there.at_arrival.max(initial=0)))
    return there, states, _cells(there, fit.steps, states if capacity is None else min(states, capacity))


def with_balking(
    fit: ArrivalsFit, table: JobTable, stays: Stays, p_value: float, capacity: int | None
) -> ArrivalsFit:  # long: a field of the fit a line
    """The same class with its law of balking; as it was where one rate explains the arrivals as well.

    Where arrivals are clustered the likelihood is that of as many fewer: n / D arrivals in e / D of time.
    """
    there, states, cells = _crowd_of(fit, table, stays, capacity)
    if cells.counts.sum() < 2 or np.count_nonzero(cells.exposures.sum(axis=0)) < 2:
        return fit
    edges = (0.0, 1.0) if fit.steps is None else (0.0, *fit.steps.times, fit.steps.period)
    shares = np.diff(edges) / edges[-1]
    start = np.ones(1) if fit.steps is None else np.array(fit.steps.factors)
    dispersion = clustering(fit)
    thin = replace(cells, counts=cells.counts / dispersion, exposures=cells.exposures / dispersion)
    tried, best, factors = _in_turn(thin, start, shares)
    counts, exposures = thin.counts.sum(axis=0), (factors[:, None] * thin.exposures).sum(axis=0)
    total = float(counts.sum())
    gained = 2.0 * (best.log_likelihood - log_likelihood(np.ones(counts.size), counts, exposures))
    if not gained > best.parameters * math.log(max(total, 2.0)):
        return fit
    joins = np.array(best.law.joins(states))
    rate = total / float((joins[: counts.size] * exposures).sum())
    low, high = _rate_range(tried, best, counts, exposures)
    clock = _clock(there, cells.place, joins, rate * factors)
    verdict = poisson_findings(clock[0], np.array([[0.0, clock[1]]]), COARSE * table.resolution * rate)
    complete = table.decisions is not None
    asked, lasted = cells.counts.sum(axis=0), (factors[:, None] * cells.exposures).sum(axis=0)
    cells_of = (tuple(asked.tolist()), tuple(lasted.tolist()))
    law = CrowdLaw(best.law, rate, p_value, gained, *cells_of, complete, *clock)
    seen = [float((joins[: counts.size] * row).sum()) for row in cells.exposures]
    return replace(
        fit,
        pattern=_with_exposures(fit.pattern, cells.counts.sum(axis=1), seen),
        balks=law,
        low=low,
        high=high,
        interval=INTERVAL,
        spread=None,
        tests=verdict.tests,
        p_value=verdict.p_value,
        dispersion=verdict.dispersion,
        gaps=None,
    )


def _clock(there: Crowd, place: IntArray, joins: FloatArray, rates: FloatArray) -> tuple[FloatArray, float]:
    """(Lambda at the arrivals, Lambda at the end)."""
    grown = np.concatenate([[0.0], np.cumsum(rates[place] * joins[there.state] * there.length)])
    edges = np.concatenate([there.middle - 0.5 * there.length, [there.middle[-1] + 0.5 * there.length[-1]]])
    return np.interp(there.times, edges, grown), float(grown[-1])


def _with_exposures(pattern: StepPattern | None, counts: FloatArray, seen: Sequence[float]) -> StepPattern | None:
    """Steps whose rates are of all who come, those who balk too."""
    if pattern is None or not all(e > 0.0 for e in seen):
        return pattern
    return replace(pattern, rates=tuple(rate_interval(float(n), e) for n, e in zip(counts, seen, strict=True)))


def fit_all_arrivals(
    table: JobTable,
    names: Sequence[str],
    *,
    capacity: int | None = None,
    intervals_only: bool = False,
    tell: Callable[[str], None] = lambda words: None,
) -> dict[str, ArrivalsFit]:
    """The arrivals of each class, with its law of balking where it balks.

    capacity: with so many there nobody could get in, and a log may not tell who asked.
    """
    found = {}
    for name in names:
        tell(f"arrivals of {name}")
        found[name] = fit_arrivals(table, name, intervals_only=intervals_only)
    stays = known_stays(table)
    if stays is None:
        return found
    tell("who balks")
    tests = {
        name: fit_balking(table, stays, name, clustering(fit), by_age=has_memory(fit))
        for name, fit in found.items()
        if fit.rate.count
    }
    adjusted = holm({name: test.p_value for name, test in tests.items() if not math.isnan(test.p_value)})
    for name, p in adjusted.items():
        if p < ALPHA and tests[name].slope < 0.0:
            found[name] = with_balking(found[name], table, stays, p, capacity)
    return found
