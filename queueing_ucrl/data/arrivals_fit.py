r"""How the jobs of a class come, as a log tells: rate, steps of the clock, days that differ, Poisson or not.

What is decided:
    steps         of the day or the week, where the likelihood pays for them (`rates.step_pattern`) and two days or more
                  were seen;
    a day factor  where counts of ten days or more vary beyond Poisson;
    batches       where jobs come together (`gap_laws`): then steps, days and tests of Poisson are of batches;
    renewal       arrivals where gaps are not those of a Poisson process (Lewis' and the log test, Holm's correction),
                  the effect is worth it (variance over mean of counts outside 0.8 .. 1.25, or not known), another law
                  of the gaps than the exponential one fits best, and no pattern needs a Poisson process within.

The interval of a rate is Garwood's exact one while arrivals pass as Poisson, and counts of days (ten or more) or of 20
equal stretches vary no more than Poisson counts do; else it comes from the spread of these counts (`count_spread`), and
those of steps are quasi-Poisson: Garwood's for n / D arrivals, D how many times the counts vary as Poisson counts do.
A log in which the rate moves slowly against its length cannot tell the rate in the long run, and no interval is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.count_spread import CountSpread, count_spread
from queueing_ucrl.data.crowd_law import CrowdLaw
from queueing_ucrl.data.day_levels import (
    ChangePoints,
    DayFactorFit,
    change_points,
    day_counts,
    day_factor,
    local_day_cv,
)
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.gap_laws import BatchFit, batches_in, gap_law, law_of_sizes
from queueing_ucrl.data.observed import counts_in, windows
from queueing_ucrl.data.poisson_tests import Dispersion, PoissonTest
from queueing_ucrl.data.poisson_verdict import LEAST_TESTED, PoissonVerdict, poisson_findings
from queueing_ucrl.data.rates import RateInterval, StepPattern, rate_interval, step_pattern
from queueing_ucrl.data.tables import JobTable
from queueing_ucrl.data.tested import Tested, p_words, quoted
from queueing_ucrl.model.laws import Law

LEAST_DAYS = 2.0  # for a pattern of the clock
DAYS_THAT_VARY = 10  # for a day factor and for changes that last
BATCHES = 20
MOST_BINS = 2000  # of days, in the search for changes that last: more are taken together
IN_BATCHES = "in batches"
EXACT = "exact, of Poisson arrivals"
NO_DAY = 1e-9  # of the most expected in a day: less is a rounding error on a day on which nobody comes
COARSE = 2.0  # resolutions in a window, at least: in shorter ones jobs lie as they were moved at random


@dataclass(frozen=True)
class ArrivalsFit(Finding):
    """What a class's arrivals are like, and what of it goes into the scenario."""

    name: str
    rate: RateInterval  # over all of the log; its interval is exact for Poisson arrivals
    low: float  # the interval that holds whether they are or not
    high: float  # inf: no interval holds
    interval: str  # where it comes from, or why there is none
    spread: CountSpread | None  # of days or stretches; None: too few arrivals
    pattern: StepPattern | None  # None: no clock, or too short a log
    days: DayFactorFit | None
    changes: ChangePoints | None
    tests: tuple[PoissonTest, ...]
    p_value: float  # of all tests of Poisson arrivals together
    dispersion: Dispersion | None  # of neighbouring windows
    gaps: Law | None  # of renewal arrivals; None: Poisson
    steps_ratio: float  # twice the log-likelihood ratio of the steps to one rate; 0 without steps
    batches: BatchFit | None = None  # where jobs come together
    balks: CrowdLaw | None = None  # how it balks; then rates are of all who come, and tests in the clock of that law

    @property
    def steps(self) -> StepPattern | None:
        """The pattern, where it has steps."""
        return self.pattern if self.pattern is not None and self.pattern.times else None

    @property
    def unknown(self) -> str:
        """What the log cannot tell, in a sentence; "" where it can."""
        return "" if math.isfinite(self.high) else f'how far the rate of "{self.name}" is known: {self.interval}'

    @property
    def day_factor(self) -> float | None:
        """The coefficient of variation of the days' level, where it is more than chance."""
        if self.days is None or self.gaps is not None or not self.days.p_value < ALPHA or not self.days.cv > 0:
            return None
        return self.days.cv

    @property
    def mean_rate(self) -> float:
        """Per unit of time in the long run: over whole periods."""
        if self.balks is not None:
            return self.balks.rate
        return self.rate.rate if self.steps is None else self.steps.mean_rate

    @property
    def poisson(self) -> PoissonVerdict:
        """What the tests of Poisson arrivals come to."""
        return PoissonVerdict(self.tests, self.p_value, self.dispersion)

    @property
    def is_poisson(self) -> bool:
        """Whether jobs come one by one, and no test rejects that they are Poisson."""
        return self.batches is None and self.poisson.passes

    @property
    def is_near(self) -> bool:
        """Whether jobs come one by one, and counts vary as those of a Poisson process, nearly."""
        return self.batches is None and self.poisson.is_near

    @property
    def words(self) -> str:
        """A sentence."""
        return arrivals_words([self])[0]

    @property
    def verdict(self) -> str:
        """What its arrivals are, without numbers: classes of the same are told in one sentence."""
        if self.batches is not None:
            return IN_BATCHES
        if not self.tests:
            coarse = "with time stamps too coarse to test whether they are Poisson: a hundred or more come within two "
            return f"{coarse}of their steps" if self.rate.count >= LEAST_TESTED else "too few to test"
        kept, found = "", self.poisson
        if self.gaps is not None:
            regular = " (a timetable)" if not self.gaps.cv else ""
            kept = f"; taken as renewal arrivals, gaps {self.gaps.kind} of cv {self.gaps.cv:.3g}{regular}"
        elif not found.passes and not found.is_near:
            kept = "; taken as Poisson"
        return f"{found.verdict}{kept}"

    def tested(self) -> list[Tested]:
        """Lines for the table of tests."""
        found = self.poisson.tested("arrivals", self.name)
        if self.batches is not None:
            found += self.batches.verdict.tested("batches", self.name)
        if self.pattern is not None:
            steps = len(self.pattern.rates)
            verdict = f"{self.pattern.name}, {steps} rates" if steps > 1 else "one rate at all hours"
            span = (
                f"factors {min(self.pattern.factors):.2g} to {max(self.pattern.factors):.2g}" if steps > 1 else "none"
            )
            found.append(
                Tested(
                    "the rate follows the clock (extended BIC)", self.name, self.steps_ratio, math.nan, verdict, span
                )
            )
        if self.days is not None and not math.isnan(self.days.cv):
            verdict = "rejected: days differ" if self.days.p_value < ALPHA else "kept"
            effect = f"cv of a day's level {self.days.cv:.3g} ({self.days.low:.2g} to {self.days.high:.2g})"
            found.append(
                Tested("all days have one level", self.name, self.days.dispersion, self.days.p_value, verdict, effect)
            )
        if self.changes is not None:
            found.append(self._changes())
        if self.balks is not None:
            law = self.balks
            what = "arrivals do not depend on the state (Holm over classes)"
            found.append(Tested(what, self.name, law.ratio, law.p_value, "rejected: balking", law.effect))
        return found

    def _changes(self) -> Tested:
        assert self.changes is not None
        levels = [level.rate / self.rate.rate if self.pattern is None else level.rate for level in self.changes.levels]
        count = len(self.changes.points)
        verdict = f"rejected: {count} change{'s' if count > 1 else ''}" if count else "kept"
        effect = f"levels {min(levels):.2g} to {max(levels):.2g} of the mean" if self.changes.points else "none"
        return Tested("the level never changes for good", self.name, math.nan, self.changes.p_value, verdict, effect)


def arrivals_words(fits: Sequence[ArrivalsFit]) -> list[str]:
    """A sentence for each verdict, of all classes that have it, with their numbers in the order of the classes."""
    verdicts: dict[str, list[ArrivalsFit]] = {}
    for fit in fits:
        verdicts.setdefault(fit.verdict, []).append(fit)
    found = []
    for verdict, alike in verdicts.items():
        if verdict == IN_BATCHES:
            found += [f"arrivals of {quoted([fit.name])} {fit.batches.words}" for fit in alike if fit.batches]
            continue
        parts = [", ".join(p_words(fit.p_value) for fit in alike)] if alike[0].tests else []
        if not alike[0].tests and alike[0].rate.count < LEAST_TESTED:
            parts.append(", ".join(str(fit.rate.count) for fit in alike))
        elif known := [f"{fit.dispersion.index:.2f}" for fit in alike if fit.dispersion is not None]:
            within = "" if alike[0].tests else " in such windows, trends included"
            parts.append(f"counts vary {', '.join(known)} times as Poisson counts do{within}")
        numbers = f" ({'; '.join(parts)})" if parts else ""
        found.append(f"arrivals of {quoted([fit.name for fit in alike])} are {verdict}{numbers}")
    return found


def stretches(pattern: StepPattern, begin: float, end: float) -> FloatArray:
    """The parts of (begin, end) between steps in which jobs come at all."""
    if not pattern.times:
        return np.array([[begin, end]])
    first, last = math.floor(begin / pattern.period), math.floor(end / pattern.period)
    marks = np.add.outer(pattern.period * np.arange(first, last + 1), [0.0, *pattern.times]).ravel()
    edges = np.unique(np.concatenate([[begin], marks[(marks > begin) & (marks < end)], [end]]))
    starts, ends = edges[:-1], edges[1:]
    seen = pattern.expected(starts, ends) > 0
    return np.stack([starts[seen], ends[seen]], axis=1)


def fit_arrivals(table: JobTable, name: str, *, intervals_only: bool = False) -> ArrivalsFit:
    """All that the arrivals of a class tell; `intervals_only`: no law of gaps, on which no interval depends."""
    times = table.times[table.of_class(name)]
    observed = (table.begin, table.end)
    rate = rate_interval(times.size, table.end - table.begin)
    together = batches_in(times, table.resolution)
    epochs = times if together is None else together[0]
    pattern, batches = _pattern(table, epochs), None
    ratio = _steps_ratio(pattern, epochs)
    days, changes = _days(table, times, pattern, epochs)
    if together is not None:
        of_batches = poisson_findings(*tested_times(epochs, observed, pattern), 0.0)
        sizes = law_of_sizes(together[1])
        batches = BatchFit(sizes, epochs.size, int(together[1].max()), of_batches)
        pattern = _of_jobs(pattern, times.size / epochs.size)
    found = poisson_findings(*tested_times(times, observed, pattern), COARSE * table.resolution)
    about = (pattern, days, changes, found.tests, found.p_value, found.dispersion, None, ratio, batches)
    fit = ArrivalsFit(name, rate, rate.low, rate.high, "", None, *about)
    one_by_one = bool(found.tests) and fit.batches is None and fit.steps is None
    if one_by_one and not fit.is_poisson and not fit.is_near and not intervals_only:
        fit = replace(fit, gaps=gap_law(times, rate.rate))
    return _with_interval(fit, table, times)


def _of_jobs(pattern: StepPattern | None, mean: float) -> StepPattern | None:
    """Steps of batches of so many jobs as steps of jobs: the same factors."""
    if pattern is None:
        return None
    return replace(pattern, rates=tuple(rate_interval(mean * step.count, step.exposure) for step in pattern.rates))


def tested_times(
    times: FloatArray, observed: tuple[float, float], pattern: StepPattern | None
) -> tuple[FloatArray, FloatArray]:
    """(arrivals, stretches) that the tests of Poisson arrivals look at: between steps, where jobs come at all."""
    parts = np.array([observed]) if pattern is None else stretches(pattern, *observed)
    return _inside(times, parts), parts


def _inside(times: FloatArray, parts: FloatArray) -> FloatArray:
    """Times within the stretches: those at an edge, by a rounding error, are not lost but moved to it."""
    place = np.clip(np.searchsorted(parts[:, 0], times, side="right") - 1, 0, None)
    last = place == len(parts) - 1
    top = np.where(last, parts[place, 1], np.nextafter(parts[place, 1], -np.inf))
    return np.maximum.accumulate(np.clip(times, parts[place, 0], top))


def _pattern(table: JobTable, times: FloatArray) -> StepPattern | None:
    day = table.day
    if day is None or table.end - table.begin < LEAST_DAYS * day or not times.size:
        return None
    two_weeks = table.first_day is not None and table.end - table.begin >= 14.0 * day
    weekday = table.first_day.weekday() if two_weeks and table.first_day is not None else None
    return step_pattern(times, (table.begin, table.end), day, first_weekday=weekday)


def _steps_ratio(pattern: StepPattern | None, times: FloatArray) -> float:
    """2 sum_j log(factor(t_j)): both rates expect as many arrivals in all."""
    if pattern is None or not pattern.times:
        return 0.0
    phase = times - pattern.period * np.floor(times / pattern.period)
    factors = np.array(pattern.factors)[np.searchsorted(pattern.times, phase, side="right")]
    return 2.0 * math.fsum(np.log(factors[factors > 0]).tolist())


@dataclass(frozen=True)
class Bins:
    """Counts of days, or of stretches of a shorter log, beside what is expected there if the level never changes."""

    kind: str  # "day" or "stretch"
    starts: FloatArray
    counts: FloatArray
    expected: FloatArray

    @property
    def group(self) -> int:
        """So many neighbours are one bin where changes are looked for: years of days would take minutes."""
        return math.ceil(self.counts.size / MOST_BINS)


def level_bins(table: JobTable, times: FloatArray, pattern: StepPattern | None) -> Bins | None:
    """What is looked at to tell how the level moves; None where it is not."""
    observed = (table.begin, table.end)
    if table.day is not None and table.end - table.begin >= DAYS_THAT_VARY * table.day:
        days, counts, expected = day_counts(times, observed, table.day, pattern)
        seen = (expected > NO_DAY * expected.max()) | (counts > 0)
        return Bins("day", days[seen], counts[seen], np.maximum(expected[seen], 1e-12))
    if pattern is not None or times.size < LEAST_TESTED:
        return None
    starts, ends = windows(observed, (table.end - table.begin) / BATCHES)
    return Bins("stretch", starts, counts_in(times, starts, ends)[1].astype(np.float64), ends - starts)


def _days(
    table: JobTable, times: FloatArray, pattern: StepPattern | None, epochs: FloatArray | None = None
) -> tuple[DayFactorFit | None, ChangePoints | None]:
    """How the level moves: from day to day, or in a shorter log between 20 stretches; days differ if batches do."""
    bins = level_bins(table, times, pattern)
    if bins is None:
        return None, None
    batches = bins if epochs is None or epochs.size == times.size else level_bins(table, epochs, pattern)
    level = day_factor(batches.counts, batches.expected) if batches is not None and batches.kind == "day" else None
    counts, expected = _grouped(bins.counts, bins.group), _grouped(bins.expected, bins.group)
    return level, change_points(counts, expected, cv=local_day_cv(counts, expected))  # bursts are no change


def _grouped(values: FloatArray, size: int) -> FloatArray:
    """Sums of so many neighbours each; the last may be of fewer."""
    found: FloatArray = np.add.reduceat(values, np.arange(0, values.size, size))
    return found


def _with_interval(fit: ArrivalsFit, table: JobTable, times: FloatArray) -> ArrivalsFit:
    """The exact interval of Poisson arrivals, or one from the spread of counts, or none."""
    share = fit.mean_rate / fit.rate.rate if fit.rate.rate > 0 else 1.0
    spread, windows_are = _spread(fit, table, times)
    fit = replace(fit, spread=spread)
    passes = (fit.is_poisson or fit.is_near) and fit.day_factor is None and not (fit.changes and fit.changes.points)
    short = table.day is not None and table.end - table.begin < LEAST_DAYS * table.day
    hours = ", for hours like those seen" if short else ""
    if spread is None or (passes and not spread.p_value < ALPHA):
        return replace(fit, low=fit.rate.low * share, high=fit.rate.high * share, interval=f"{EXACT}{hours}")
    if fit.steps is not None:
        fit = replace(fit, pattern=_quasi_poisson(fit.steps, spread.long_index))
    if not math.isfinite(spread.half_width):
        what = "shorter than two days" if short else "too short for how slowly it moves"
        words = f"no interval holds, since the rate moves within the log, which is {what}"
        return replace(fit, low=0.0, high=math.inf, interval=words)
    low, high = fit.mean_rate * (1.0 - spread.half_width), fit.mean_rate * (1.0 + spread.half_width)
    return replace(
        fit, low=max(0.0, low), high=high, interval=f"from the spread of {spread.windows} {windows_are}{hours}"
    )


def _spread(fit: ArrivalsFit, table: JobTable, times: FloatArray) -> tuple[CountSpread | None, str]:
    """How counts of days vary, or in a shorter log those of 20 stretches."""
    if times.size < LEAST_TESTED:
        return None, ""
    if fit.days is not None and table.day is not None:
        _, counts, expected = day_counts(times, (table.begin, table.end), table.day, fit.pattern)
        return count_spread(counts, expected), "days"
    starts, ends = windows((table.begin, table.end), (table.end - table.begin) / BATCHES)
    counts = counts_in(times, starts, ends)[1].astype(np.float64)
    return count_spread(
        counts, ends - starts if fit.pattern is None else fit.pattern.expected(starts, ends)
    ), "stretches"


def _quasi_poisson(pattern: StepPattern, index: float) -> StepPattern:
    """Steps with wider intervals: counts vary `index` times as Poisson counts do."""
    wider = [rate_interval(step.count / index, step.exposure / index) for step in pattern.rates]
    pairs = zip(pattern.rates, wider, strict=True)
    return replace(pattern, rates=tuple(replace(step, low=wide.low, high=wide.high) for step, wide in pairs))


def arrivals_table(fit: ArrivalsFit) -> list[dict[str, Any]]:
    """Rows for the table of rates: over all of the log, and for each step."""
    whole = {
        "job_class": fit.name,
        "from": math.nan,
        "to": math.nan,
        "rate": fit.mean_rate,
        "low": fit.low,
        "high": fit.high,
        "count": fit.rate.count,
        "exposure": fit.rate.exposure,
        "interval": fit.interval,
    }
    rows = [whole]
    if fit.steps is not None:
        edges = (0.0, *fit.steps.times, fit.steps.period)
        for k, step in enumerate(fit.steps.rates):
            words = EXACT if fit.interval.startswith(EXACT) else "quasi-Poisson"
            about = {"count": step.count, "exposure": step.exposure, "interval": words}
            span = {"job_class": fit.name, "from": edges[k], "to": edges[k + 1]}
            rows.append({**span, "rate": step.rate, "low": step.low, "high": step.high, **about})
    return rows
