r"""How long jobs take and how long they wait for it, as a log tells: which law, one for all classes or one for each.

The exponential law is kept where its test does not fail, or where it fails but is near enough: cv^2 between 0.9 and 1.1
and a distance of distribution functions below 0.02. One law serves all classes where they are not told apart, or where
their means differ by less than 5 %. The mean is always that of the durations themselves, for the gain depends on it
first; a law's own estimate of it is only as good as the law. Where the best law is far off (more than 0.05), it also
gets the durations' coefficient of variation. Services of 0 have no place in these laws: they are told, and where there
are more than 3 % of them the durations themselves are taken (an empirical law).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.finding import ALPHA, Finding
from queueing_ucrl.data.mean_intervals import mean_interval
from queueing_ucrl.data.patience import PatienceFit, fit_patience
from queueing_ucrl.data.rates import RateInterval, rate_interval
from queueing_ucrl.data.service_laws import SameLaw, ServiceFit, fit_service, largest_ratio, same_law, scaled
from queueing_ucrl.data.tables import JobTable
from queueing_ucrl.data.tested import Tested, p_words
from queueing_ucrl.model.laws import (
    SMALLEST_CV,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Weibull,
)

LEAST = 10  # durations of a class, to be looked at by itself
MOST_TESTED = 20_000  # durations of a class in tests and fits: more would tell nothing new, and take minutes
NEAR_CV2 = (0.9, 1.1)
NEAR_DISTANCE = 0.02
NEAR_MEANS = 1.05
FAR = 0.05  # distance of distribution functions: a law that is so far off has the moments of the durations instead
MOST_ZEROS = 0.03  # of durations: with more, no law without zeros is near
MOST_LISTED = 100  # durations in an empirical law
EVERYBODY = "all"


def thinned(values: FloatArray) -> FloatArray:
    """Evenly spaced ones, at most MOST_TESTED."""
    return values[:: max(1, math.ceil(values.size / MOST_TESTED))]


def _of_moments(law: Law, cv: float) -> Law:
    """The law of the same kind with this coefficient of variation, where there is one."""
    if isinstance(law, Gamma | LogNormal | Weibull) or (isinstance(law, HyperExponential) and cv >= 1.0):
        return replace(law, cv=cv)
    return Gamma(law.mean, cv) if cv >= SMALLEST_CV else law


def listed(values: FloatArray) -> FloatArray:
    """So many durations that stand for all of them: the means of equal parts, in order."""
    return np.array([part.mean() for part in np.array_split(np.sort(values), min(values.size, MOST_LISTED))])


@dataclass(frozen=True)
class Served(Finding):
    """The service of a class, or of all."""

    on: str
    fit: ServiceFit
    mean: float
    low: float
    high: float  # inf: no interval holds
    interval: str  # where it comes from
    count: int
    running: int  # more that were under way when the log ended
    total: float  # of all of them
    seen: tuple[float, ...] = ()  # durations that stand for all of them, where too many are 0 for any law

    @property
    def unknown(self) -> str:
        """What the log cannot tell, in a sentence; "" where it can."""
        if math.isfinite(self.high):
            return ""
        whose = "" if self.on == EVERYBODY else f" of {self.on}"
        return f"how far the mean of service times{whose} is known: {self.interval}"

    @property
    def is_near(self) -> bool:
        """Whether the exponential law is near enough, whatever its test says."""
        exponential = next((one for one in self.fit.fits if one.kind == "exponential"), None)
        close = exponential is not None and exponential.ks <= NEAR_DISTANCE
        return close and NEAR_CV2[0] <= self.fit.moments.cv2 <= NEAR_CV2[1]

    @property
    def law(self) -> Law:
        """What goes into the scenario, with the mean of the durations."""
        if self.seen:
            values = np.array(self.seen)
            return Empirical(values * (self.mean / float(values.mean())))
        if not self.fit.exponential.rejected or self.is_near:
            return Exponential(1.0 / self.mean)
        law = self.fit.best.law
        if not self.fits_well:
            law = _of_moments(law, math.sqrt(self.fit.moments.cv2))
        return scaled(law, self.mean / law.mean)

    @property
    def fits_well(self) -> bool:
        """Whether the best law is near the durations."""
        return self.fit.best.ks <= FAR

    @property
    def rate(self) -> RateInterval:
        """Of an exponential law."""
        return rate_interval(self.count, self.total)

    @property
    def words(self) -> str:
        """A sentence."""
        whose = "service times" if self.on == EVERYBODY else f"service times of {self.on}"
        cv2, zeros = self.fit.moments.cv2, self.fit.zeros_set_aside
        if self.seen:
            return (
                f"{zeros / self.fit.moments.count:.3g} of {whose} are 0, so that no law of the table is theirs (cv² "
                f"{cv2:.3g}, 1 for exponential; the test and the laws are of the others): the durations themselves are "
                f"taken, {len(self.seen)} of them that stand for all; such zeros may stand for what is not known"
            )
        if zeros:
            whose = f"{whose}, the {zeros:,} of 0 left out,"
        tested = f"{p_words(self.fit.exponential.p_value)}; cv² {cv2:.3g}, 1 for exponential"
        if not self.fit.exponential.rejected:
            return f"{whose} pass as exponential ({tested})"
        if self.is_near:
            return f"{whose} are not quite exponential, but near enough ({tested})"
        if self.fits_well:
            return f"{whose} are not exponential ({tested}): {self.law.kind} of cv {self.law.cv:.3g} fits best"
        return (
            f"{whose} are not exponential ({tested}), and no law fits well: {self.law.kind} is the nearest, off by "
            f"{self.fit.best.ks:.2g}, taken with the mean and cv of the durations"
        )


@dataclass(frozen=True)
class ServiceFits(Finding):
    """Service of all classes; empty where the log does not tell."""

    parts: tuple[Served, ...]
    same: SameLaw | None
    by_class: bool
    all_zero: int = 0  # services, all of them of 0

    def of(self, name: str) -> Served | None:
        """The service of a class; None where it is not known."""
        return next((part for part in self.parts if part.on in (name, EVERYBODY)), None)

    def tested(self) -> list[Tested]:
        """Lines for the table of tests."""
        found = []
        for part in self.parts:
            test = part.fit.exponential
            verdict = "kept" if not test.rejected else "rejected, near enough" if part.is_near else "rejected"
            verdict = "rejected: zeros" if part.seen else verdict
            seen = part.fit.moments
            within = f" ({seen.cv2_low:.3g} to {seen.cv2_high:.3g})" if math.isfinite(seen.cv2_high) else ""
            effect = f"cv² {seen.cv2:.3g}{within}"
            what = "service is exponential (Anderson-Darling)"
            found.append(Tested(what, part.on, test.statistic, test.p_value, verdict, effect))
        if self.same is not None:
            verdict = "rejected" if self.same.rejected and self.by_class else "kept"
            verdict = "rejected, near enough" if self.same.rejected and not self.by_class else verdict
            effect = f"largest ratio of means {self.same.largest_ratio:.3g}"
            what = "service is the same for all classes (Anderson-Darling, k samples)"
            found.append(Tested(what, EVERYBODY, self.same.statistic, self.same.p_value, verdict, effect))
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The laws compared, for a table."""
        return [
            {
                "job_class": part.on,
                "law": fit.kind,
                "mean": fit.law.mean,
                "cv": fit.law.cv,
                "delta_aic": fit.delta_aic,
                "ks": fit.ks,
                "chosen": fit.kind == part.law.kind,
                "observed_mean": part.mean,
                "low": part.low,
                "high": part.high,
                "interval": part.interval,
                "count": part.count,
            }
            for part in self.parts
            for fit in part.fit.fits
        ]


def _served(on: str, works: FloatArray, running: FloatArray, intervals_only: bool) -> Served:
    fit = fit_service(thinned(works), only_if_rejected=intervals_only)
    count, total = works.size, math.fsum([*works.tolist(), *running.tolist()])
    about = (count, running.size, total)
    more = f"; {running.size:,} still under way count as longer" if running.size else ""
    seen: tuple[float, ...] = ()
    if fit.zeros_set_aside > MOST_ZEROS * fit.moments.count:
        seen = tuple(listed(works).tolist())
    if not fit.exponential.rejected and not seen:
        rate = rate_interval(count, total)  # of an exponential law the interval is exact
        ends = (total / count, 1.0 / rate.high, 1.0 / rate.low)
        return Served(on, fit, *ends, f"exact, of exponential services{more}", *about)
    found = mean_interval(works, running)
    part = Served(on, fit, found.mean, found.low, found.high, f"Student's, corrected for skewness{more}", *about, seen)
    if math.isfinite(part.law.cv):
        return part
    return replace(
        part, low=0.0, high=math.inf, interval="no interval holds, since the variance of the law is infinite"
    )


def _widened(part: Served, common: Served) -> Served:
    """Classes were told apart, but not beyond doubt: the interval also holds that of all of them together."""
    low, high = min(part.low, common.low), max(part.high, common.high)
    return replace(
        part,
        low=low,
        high=high,
        interval=f"{part.interval}; widened to that of all classes, since they differ but little",
    )


def fit_services(table: JobTable, *, intervals_only: bool = False) -> ServiceFits:
    """Service of each class, or of all together.

    Classes that chance tells apart have intervals that chance has moved: while shuffled classes are ever as different,
    intervals also hold that of the common mean. So they hold the truth as often as promised whichever is true.

    `intervals_only` leaves out what no interval depends on: other laws where the exponential one passes, and the
    comparison of classes whose means are so near that they are taken as alike in any case. Intervals are the same to
    the bit.
    """
    known, running = ~np.isnan(table.works), ~np.isnan(table.running)
    everybody = table.works[known]
    if everybody.size < LEAST or not np.any(everybody > 0):
        return ServiceFits((), None, False, 0 if np.any(everybody > 0) else everybody.size)
    samples = {name: table.works[known & table.of_class(name)] for name in table.names}
    enough = {name: works for name, works in samples.items() if works.size >= LEAST and np.any(works > 0)}
    compared = {name: thinned(works) for name, works in enough.items()}
    wanted = len(enough) > 1 and not (intervals_only and largest_ratio(compared) < NEAR_MEANS)
    same = same_law(compared) if wanted else None
    differs = same is not None and same.rejected and same.largest_ratio >= NEAR_MEANS
    if not differs or len(enough) < len(table.names):
        return ServiceFits((_served(EVERYBODY, everybody, table.running[running], intervals_only),), same, False)
    assert same is not None
    parts = [
        _served(name, works, table.running[running & table.of_class(name)], intervals_only)
        for name, works in enough.items()
    ]
    if same.p_value * (same.permutations + 1) > 1.5:  # a permutation was as far apart
        common = _served(EVERYBODY, everybody, table.running[running], intervals_only)
        parts = [_widened(part, common) for part in parts]
    return ServiceFits(tuple(parts), same, True)


# --- patience ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PatienceFits(Finding):
    """Patience, by class where it differs; empty where the log does not tell or nobody gave up."""

    parts: dict[str, PatienceFit]
    statistic: float  # twice the log-likelihood ratio of rates by class
    p_value: float  # of "all classes are as patient"

    @property
    def by_class(self) -> bool:
        """Whether each class has a patience of its own."""
        return EVERYBODY not in self.parts and bool(self.parts)

    def of(self, name: str) -> PatienceFit | None:
        """The patience of a class; None where nothing is known of it."""
        return self.parts.get(name, self.parts.get(EVERYBODY))

    def tested(self) -> list[Tested]:
        """Lines for the table of tests."""
        found = []
        for on, part in self.parts.items():
            if not math.isnan(part.p_value):
                verdict = "rejected" if part.p_value < ALPHA else "kept"
                effect = f"rate {part.rate.rate:.3g} ({part.rate.low:.3g} to {part.rate.high:.3g})"
                what = "patience is exponential (likelihood ratio in Weibull)"
                found.append(Tested(what, on, math.nan, part.p_value, verdict, effect))
        if not math.isnan(self.p_value):
            verdict = "rejected" if self.p_value < ALPHA else "kept"
            what = "all classes are as patient (likelihood ratio)"
            found.append(Tested(what, EVERYBODY, self.statistic, self.p_value, verdict, ""))
        return found

    def rows(self) -> list[dict[str, Any]]:
        """For a table: the exponential rate, and the laws compared where there are enough."""
        rows: list[dict[str, Any]] = []
        for on, part in self.parts.items():
            law = part.law
            for fit in part.fits:
                chosen = law is not None and fit.kind == law.kind
                about = {"job_class": on, "law": fit.kind, "mean": fit.law.mean, "cv": fit.law.cv, "chosen": chosen}
                rate = {"rate": part.rate.rate, "low": part.rate.low, "high": part.rate.high}
                rows.append({**about, "delta_aic": fit.delta_aic, **rate, "abandonments": part.rate.count})
        return rows


def fit_patiences(table: JobTable, *, intervals_only: bool = False) -> PatienceFits:
    """Patience from waits and who gave up: by class where rates differ and each has enough.

    `intervals_only`: rates with their intervals, no other laws.
    """
    from scipy.stats import chi2

    if table.abandoned is None:
        return PatienceFits({}, math.nan, math.nan)
    known = ~np.isnan(table.waits)
    waits, gone = table.waits[known], table.abandoned[known]
    if not gone.any() or not np.any(waits > 0):
        return PatienceFits({}, math.nan, math.nan)
    whole = fit_patience(waits, gone, rate_only=intervals_only)
    parts, ratio = {}, 0.0
    for name in table.names:
        chosen = table.of_class(name)[known]
        count, total = int(gone[chosen].sum()), math.fsum(waits[chosen].tolist())
        if count < LEAST or not total > 0:
            return PatienceFits({EVERYBODY: whole}, math.nan, math.nan)
        parts[name] = chosen
        ratio += 2.0 * count * math.log(count / total / whole.rate.rate)
    p = float(chi2.sf(max(ratio, 0.0), len(parts) - 1)) if len(parts) > 1 else math.nan
    if p < ALPHA:
        found = {name: fit_patience(waits[c], gone[c], rate_only=intervals_only) for name, c in parts.items()}
        return PatienceFits(found, ratio, p)
    return PatienceFits({EVERYBODY: whole}, ratio if len(parts) > 1 else math.nan, p)
