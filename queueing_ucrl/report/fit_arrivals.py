"""What a fit's page shows of arrivals: rates by the clock, tests of a Poisson process, and how the level moves.

Every function takes the fit and gives a section, or None where the log does not tell.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.data.arrivals_fit import ArrivalsFit, arrivals_words, level_bins, tested_times
from queueing_ucrl.data.observed import slot_exposure, slot_of
from queueing_ucrl.data.poisson_tests import poisson_numbers
from queueing_ucrl.data.poisson_verdict import WORTH
from queueing_ucrl.data.rates import StepPattern, rate_interval
from queueing_ucrl.data.tested import p_words
from queueing_ucrl.report.charts import REFERENCE, Chart, Columns, Key, lines, rounded, thinned
from queueing_ucrl.report.measured_chart import Axes, Curve, Points, measured_chart, ranges_chart
from queueing_ucrl.report.numbers import NOTHING, number
from queueing_ucrl.report.page import PageTable, Section
from queueing_ucrl.report.palette import BLUE, PALE, VERMILION, Look
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from queueing_ucrl.data.fit import Fit

MOST_CLASSES = 8  # that have charts of their own
HOURS = 24
PART = 0.1  # of what is expected on the median day: on days with less an interval says nothing
STRETCHES = 48  # of a log without a clock
MOST_POINTS = 300
TAKEN = Look(VERMILION, (5, 2))
# the 95 % quantile of Kolmogorov's law: numbers as uniform as they should be stay within it, over the root of n
KOLMOGOROV = 1.358
NO_INTERVAL = "none holds: the rate moves"
TESTS = {"lewis": "Lewis' test", "log": "the log test"}


def few(fit: Fit) -> list[str]:
    """What is said where not all classes have charts."""
    count = len(fit.arrivals)
    return [f"Of {count} classes the first {MOST_CLASSES} are drawn."] if count > MOST_CLASSES else []


def drawn(fit: Fit) -> list[ArrivalsFit]:
    """The classes that have charts."""
    return list(fit.arrivals.values())[:MOST_CLASSES]


def interval_words(one: ArrivalsFit) -> list[str]:
    """From, to and what the interval of a rate is; no numbers where no interval holds."""
    if not math.isfinite(one.high):
        return [NOTHING, NOTHING, NO_INTERVAL]
    return [number(one.low, 5), number(one.high, 5), one.interval]


def times_of(fit: Fit, name: str) -> FloatArray:
    """When the jobs of a class came."""
    return fit.table.times[fit.table.of_class(name)]


# --- rates -----------------------------------------------------------------------------------------------------------


def rates_section(fit: Fit) -> Section:
    """Arrivals by hour of the day (or the week), or over the log; the rates that were taken, with intervals."""
    units = Units(fit.table.unit)
    headings = ["class", "arrivals", f"rate per {units.per_time}", "from", "to", "interval"]
    rows = [
        [one.name, f"{one.rate.count:,.0f}", number(one.mean_rate, 5), *interval_words(one)]
        for one in fit.arrivals.values()
    ]
    tables = [PageTable("Arrival rates in the long run, with 95 % intervals", headings, rows)]
    if (compared := _patterns_table(fit)) is not None:
        tables.append(compared)
    charts = [_rates_chart(fit, k, one, units) for k, one in enumerate(drawn(fit))]
    words = ["How often jobs come: what was counted, and the rates that the scenario takes."]
    return Section("rates", "When jobs come", [*words, *few(fit)], charts, tables)


def _patterns_table(fit: Fit) -> PageTable | None:
    rows = [
        [one.name, tried.name, f"{tried.steps:,}", number(tried.criterion, 4)]
        for one in fit.arrivals.values()
        if one.pattern is not None
        for tried in one.pattern.candidates
    ]
    headings = ["class", "pattern", "rates", "criterion above the best"]
    caption = "Does the rate follow the clock? Patterns compared (extended BIC; 0 is taken)"
    return PageTable(caption, headings, rows, names=2) if rows else None


def _rates_chart(fit: Fit, k: int, one: ArrivalsFit, units: Units) -> Chart:
    table, clocked = fit.table, one.pattern is not None and fit.table.day is not None
    day = table.day if clocked and table.day else math.nan
    weekly = one.steps is not None and one.steps.period > 1.5 * day
    period = (7.0 * day if weekly else day) if clocked else table.end - table.begin
    count = (7 * HOURS if weekly else HOURS) if clocked else STRETCHES
    shift, scale = (0.0, HOURS / day) if clocked else (table.begin, 1.0)
    times = times_of(fit, one.name)
    exposure = slot_exposure(np.array([(table.begin, table.end)]) - shift, period, count)
    inside = times if clocked else np.minimum(times - shift, np.nextafter(period, 0.0))
    seen = np.bincount(slot_of(inside, period, count), minlength=count)
    found = [rate_interval(float(n), float(e)) for n, e in zip(seen, exposure, strict=True) if e > 0]
    middles = (shift + (np.arange(count) + 0.5) * (period / count))[exposure > 0] * scale
    dots = Points.of_rates(middles.tolist(), found)
    x = ("hour of the week" if weekly else "hour of the day") if clocked else units.timed("time")
    y = f"jobs per {units.per_time}"
    taken = _taken(one, shift * scale, (shift + period) * scale, scale)
    spoken = f"{one.name}: {number(one.mean_rate)} {y} in the long run"
    if one.steps is not None:
        spoken += f", by {one.steps.name} from {number(min(r.rate for r in one.steps.rates))} to "
        spoken += number(max(r.rate for r in one.steps.rates))
    weekday = f" Hour 0 is midnight of {table.first_day:%A}, the first day." if weekly and table.first_day else ""
    note = f"Intervals of what was seen are those of a Poisson count.{weekday}"
    what = "rate taken"
    if one.balks is not None:
        what = "rate of all who come"
        note += " Some balk: dots are of those who ask, the line is of all who come (see The crowd and the servers)."
    return measured_chart(f"rates-{k}", one.name, f"{spoken}.", Axes(x, y), dots, {what: taken}, note)


def _taken(one: ArrivalsFit, first: float, last: float, scale: float) -> Curve:
    """The steps, or one rate, with intervals; none where no interval holds."""
    steps: StepPattern | None = one.steps
    if steps is None:
        known = math.isfinite(one.high)
        ends = ([one.low] * 2, [one.high] * 2) if known else (None, None)
        return Curve([first, last], [one.mean_rate] * 2, TAKEN, *ends)
    edges = [0.0, *steps.times, steps.period]
    rates = [*steps.rates, steps.rates[-1]]
    columns = ([r.rate for r in rates], [r.low for r in rates], [r.high for r in rates])
    return Curve([edge * scale for edge in edges], columns[0], TAKEN, columns[1], columns[2], step=True)


# --- Poisson ---------------------------------------------------------------------------------------------------------


def poisson_section(fit: Fit) -> Section | None:
    """The numbers that the tests compare with uniform ones; how far counts vary; gaps."""
    charts = [chart for k, one in enumerate(drawn(fit)) for chart in _poisson_charts(fit, k, one)]
    if (spread := _dispersion_chart(fit)) is not None:
        charts.insert(0, spread)
    if not charts:
        return None
    words = [f"{words[:1].upper()}{words[1:]}." for words in arrivals_words(list(fit.arrivals.values()))]
    about = (
        "In short windows, in which the rate hardly moves, the tests turn the arrivals into numbers that are spread "
        "evenly between 0 and 1 if nobody knows of anybody else (a Poisson process). The size of the effect matters "
        "more than p: with enough data every real log fails."
    )
    return Section("poisson", "Are arrivals Poisson?", [about, *words, *few(fit)], charts)


def _dispersion_chart(fit: Fit) -> Chart | None:
    known = [(one, one.dispersion) for one in fit.arrivals.values() if one.dispersion is not None]
    if not known:
        return None
    rows = [(one.name, found.index, found.low, found.high) for one, found in known]
    said = "; ".join(f"{name} {number(index, 3)}" for name, index, *_ in rows)
    note = (
        f"Dot: variance over mean of counts in neighbouring windows; line: its 95 % interval; dotted: 1, as Poisson "
        f"counts have. Between {WORTH[0]:g} and {WORTH[1]:g} they are near enough."
    )
    legend = [Key("seen, with its 95 % interval", Look(BLUE), "dot"), Key("Poisson", REFERENCE)]
    words = f"Variance over mean of counts: {said}."
    x = "variance over mean of counts"
    return ranges_chart("dispersion", "How far counts vary", words, x, rows, line=1.0, legend=legend, note=note)


def _pale_band(reach: float, title: str) -> dict[str, Any]:
    """From -reach to reach, across the whole chart."""
    low, high = rounded([-reach, reach])
    return {
        "data": {"values": [{"from": low, "to": high}]},
        "mark": {"type": "rect", "color": "currentColor", "opacity": 0.12},
        "encoding": {"y": {"field": "from", "type": "quantitative", "title": title}, "y2": {"field": "to"}},
    }


def _poisson_charts(fit: Fit, k: int, one: ArrivalsFit) -> list[Chart]:
    """Of each test, at the length of window at which it is furthest off."""
    if not one.tests:
        return []
    if one.balks is not None:  # tested in the clock in which all who come are seen
        times, parts = one.balks.clock, np.array([[0.0, one.balks.length]])
    else:
        times, parts = tested_times(times_of(fit, one.name), (fit.table.begin, fit.table.end), one.pattern)
    looks = {"lewis": Look(BLUE), "log": Look(VERMILION, (5, 2))}
    data: Columns = {"who": [], "time": [], "mean": []}
    said, styles, most = [], {}, 0
    for name, look in looks.items():
        mine = [test for test in one.tests if test.name == name]
        if not mine:
            continue
        worst = min(mine, key=lambda test: (test.p_value, -test.statistic))
        numbers = np.sort(poisson_numbers(times, worst.window, parts, test=name, least=worst.least)[0])
        shares = (np.arange(numbers.size) + 0.5) / numbers.size
        kept = thinned(numbers.size, MOST_POINTS)
        who = f"{TESTS[name]}, windows of {number(worst.window, 3)}"
        styles[who] = look
        data["who"] += [who] * len(kept)
        data["time"] += rounded(shares[kept])
        data["mean"] += rounded((numbers - shares)[kept])
        said.append(f"{who}: {p_words(worst.p_value)}, largest distance {number(worst.statistic, 3)}")
        most = max(most, numbers.size)
    reach = KOLMOGOROV / math.sqrt(most)
    x, y = "share that is expected below", "seen less expected"
    spec = lines(styles, x, y, band=False)
    spec = {**spec, "layer": [_pale_band(reach, y), *spec["layer"]]}
    keys = [*(Key(who, look) for who, look in styles.items())]
    keys.append(Key(f"{LEVEL:.0%} of Poisson processes stay here".replace("%", " %"), Look(PALE), "pale"))
    heads = {"who": "test", "time": x, "mean": y}
    together = f"All tests together: {p_words(one.p_value)}."
    note = f"{together} The band is for {most:,} arrivals; of each test the window length that is furthest off."
    words = f"{one.name}. {'; '.join(said)}. {together}"
    return [Chart(f"poisson-{k}", one.name, words, spec, data, heads, keys, note)]


# --- levels ----------------------------------------------------------------------------------------------------------


def levels_section(fit: Fit) -> Section | None:
    """Counts over what is expected, day by day, and the levels that last."""
    charts = [chart for k, one in enumerate(drawn(fit)) if (chart := _level_chart(fit, k, one)) is not None]
    if not charts:
        return None
    words = [
        "Counts over those expected if every day (or stretch of a shorter log) had the same level. Days that differ by "
        "chance make a day factor; a change that lasts means that one rate does not hold."
    ]
    return Section("levels", "Does the level move?", [*words, *few(fit)], charts)


def _level_chart(fit: Fit, k: int, one: ArrivalsFit) -> Chart | None:
    bins = level_bins(fit.table, times_of(fit, one.name), one.pattern)
    if bins is None or one.changes is None or not bins.counts.sum():
        return None
    expected = bins.expected * (bins.counts.sum() / bins.expected.sum())
    found = [rate_interval(float(n), float(e)) for n, e in zip(bins.counts, expected, strict=True)]
    whole = [j for j, e in enumerate(expected) if e >= PART * float(np.median(expected))]
    kept = [whole[j] for j in thinned(len(whole), MOST_POINTS)]
    by_day = bins.kind == "day"
    starts = bins.starts + 1.0 if by_day else bins.starts
    dots = Points.of_rates(starts[kept].tolist(), [found[j] for j in kept])
    scale = bins.expected.sum() / bins.counts.sum()
    edges = [0, *(point.index * bins.group for point in one.changes.points), len(starts) - 1]
    levels = [level.rate * scale for level in one.changes.levels]
    lasting = Curve([float(starts[e]) for e in edges], [*levels, levels[-1]], TAKEN, step=True)
    x = "day of the log" if by_day else Units(fit.table.unit).timed("time")
    changes = f"{len(one.changes.points)} changes for good" if one.changes.points else "no change for good"
    said = f"{one.name}: {changes} ({p_words(one.changes.p_value)})"
    if one.days is not None and not math.isnan(one.days.cv):
        interval = f"{number(one.days.low, 2)} to {number(one.days.high, 2)}"
        said += f"; days vary by a factor of cv {number(one.days.cv, 3)} ({interval}), {p_words(one.days.p_value)}"
    left = f" {len(kept)} of {len(found):,} are drawn." if len(kept) < len(whole) else ""
    if len(whole) < len(found):
        left += f" Days on which little is expected are not drawn ({len(found) - len(whole):,})."
    note = f"Intervals of a Poisson count.{left}"
    axes = Axes(x, "seen over expected")
    return measured_chart(f"level-{k}", one.name, f"{said}.", axes, dots, {"level that lasts": lasting}, note)
