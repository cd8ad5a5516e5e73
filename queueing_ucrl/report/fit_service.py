"""What a fit's page shows of service, patience, servers, and of arrivals that look at the crowd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.data.arrivals_fit import ArrivalsFit
from queueing_ucrl.data.patience import PatienceFit, kaplan_meier
from queueing_ucrl.data.rates import rate_interval
from queueing_ucrl.data.service_fit import EVERYBODY, Served
from queueing_ucrl.data.service_laws import LawFit
from queueing_ucrl.data.tested import p_words
from queueing_ucrl.model.laws import Law
from queueing_ucrl.report.charts import REFERENCE, Chart, Columns, legend_of, lines, rounded, thinned
from queueing_ucrl.report.fit_arrivals import MOST_CLASSES, TAKEN, drawn, few
from queueing_ucrl.report.measured_chart import Axes, Curve, Points, bars_chart, measured_chart
from queueing_ucrl.report.numbers import NOTHING, number
from queueing_ucrl.report.page import PageTable, Section
from queueing_ucrl.report.palette import GREEN, ORANGE, PURPLE, Look, looks
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from queueing_ucrl.data.fit import Fit

CURVE = 150  # points
MOST_POINTS = 250
OTHERS = (Look(GREEN, (11, 3)), Look(PURPLE, (2.5, 1)), Look(ORANGE, (7, 2, 1, 2)))  # laws compared, but not taken
NORMAL = 1.96
BINS = 12  # of the hazard
LEAST_EXPECTED = 5.0  # arrivals in a state that is drawn
HALVINGS = 60
UNIFORM = REFERENCE


def whose(on: str) -> str:
    """The title of a part."""
    return "all classes" if on == EVERYBODY else on


def quantile(law: Law, share: float) -> float:
    """The time that a share of the law is below, by halving: a law tells its survival."""
    low, high = 0.0, law.mean
    while law.survival(high) > 1.0 - share and high < 1e12 * law.mean:
        high *= 2.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if law.survival(middle) > 1.0 - share else (low, middle)
    return 0.5 * (low + high)


def _laws(taken: Law, fits: Sequence[LawFit], top: float) -> dict[str, Curve]:
    """The law that was taken and the nearest others, as P(X > t)."""
    grid = [top * k / CURVE for k in range(CURVE + 1)]
    found = {f"taken: {taken.kind}": Curve(grid, [taken.survival(t) for t in grid], TAKEN)}
    others = [fit for fit in fits if fit.kind != taken.kind][: len(OTHERS)]
    for fit, look in zip(others, OTHERS, strict=False):
        found[fit.kind] = Curve(grid, [fit.law.survival(t) for t in grid], look)
    return found


def _laws_table(caption: str, fits: Sequence[LawFit], taken: Law) -> PageTable:
    rows = [
        [fit.kind, *(number(v, d) for v, d in _law_numbers(fit)), "taken" if fit.kind == taken.kind else NOTHING]
        for fit in fits
    ]
    return PageTable(caption, ["law", "mean", "cv", "AIC above the best", "largest distance", "chosen"], rows)


def _law_numbers(fit: LawFit) -> list[tuple[float, int]]:
    return [(fit.law.mean, 4), (fit.law.cv, 3), (fit.delta_aic, 4), (fit.ks, 3)]


# --- service ---------------------------------------------------------------------------------------------------------


def service_section(fit: Fit) -> Section | None:
    """Service times against the laws compared; quantile by quantile; class by class."""
    parts = fit.services.parts
    if not parts:
        return None
    units, charts, tables = Units(fit.table.unit), [], []
    for k, part in enumerate(parts[:MOST_CLASSES]):
        works = np.sort(_works(fit, part.on))
        charts += [_survival_chart(k, part, works, units), _quantile_chart(k, part, works, units)]
        about = f"{part.count:,} service times, mean {_mean_words(part, units)}; {part.interval}"
        tables.append(_laws_table(f"{whose(part.on)}: {about}", part.fit.fits, part.law))
    if len(fit.arrivals) > 1 and (chart := _classes_chart(fit, units)) is not None:
        charts.append(chart)
    words = [f"{part.words[:1].upper()}{part.words[1:]}." for part in parts]
    if (same := fit.services.same) is not None:
        differs = "differs by class" if fit.services.by_class else "is taken as the same for all classes"
        ratio = f"largest ratio of means {number(same.largest_ratio, 3)}"
        words.append(f"Service {differs} ({p_words(same.p_value)}; {ratio}).")
    return Section("service", "How long service takes", [*words, *few(fit)], charts, tables)


def _mean_words(part: Served, units: Units) -> str:
    mean = f"{number(part.mean, 5)} {units.time}".rstrip()
    if not math.isfinite(part.high):
        return f"{mean}, without an interval"
    return f"{mean}, 95 % interval {number(part.low, 5)} to {number(part.high, 5)}"


def _works(fit: Fit, on: str) -> FloatArray:
    known = ~np.isnan(fit.table.works)
    found: FloatArray = fit.table.works[known if on == EVERYBODY else known & fit.table.of_class(on)]
    return found


def _longer(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(times, shares that are longer) of sorted values: evenly spaced ones, and the longest more and more closely."""
    last = np.geomspace(values.size, 1.0, MOST_POINTS // 2)
    kept = sorted({*thinned(values.size, MOST_POINTS), *(values.size - np.rint(last).astype(int)).tolist()})
    return values[kept], 1.0 - (np.array(kept) + 1.0) / values.size


def _survival_chart(k: int, part: Served, works: FloatArray, units: Units) -> Chart:
    times, shares = _longer(works)
    half = NORMAL * np.sqrt(shares * (1.0 - shares) / works.size)
    band = (np.maximum(shares - half, 0.0).tolist(), np.minimum(shares + half, 1.0).tolist())
    seen = Points(times.tolist(), shares.tolist(), *band, stairs=True)
    axes = Axes(units.timed("time"), "share that takes longer", log_y=True, zero=False)
    title = f"{whose(part.on)}: laws compared"
    words = f"{part.words}. Mean {_mean_words(part, units)}."
    note = "On a log scale an exponential law is a straight line."
    curves = _within(_laws(part.law, part.fit.fits, float(times[-1])), 0.1 / works.size)
    return measured_chart(f"service-{k}", title, words, axes, seen, curves, note)


def _within(curves: dict[str, Curve], least: float) -> dict[str, Curve]:
    """Curves as far as they are of a size that such a log could show: a log scale has no end."""
    found = {}
    for name, curve in curves.items():
        kept = [j for j, value in enumerate(curve.y) if value >= least]
        found[name] = Curve([curve.x[j] for j in kept], [curve.y[j] for j in kept], curve.look)
    return found


def _quantile_chart(k: int, part: Served, works: FloatArray, units: Units) -> Chart:
    """Quantiles seen against those of the law taken, and where 95 % of them should lie."""
    count = min(works.size, 100)
    shares = (np.arange(count) + 0.5) / count
    seen = np.quantile(works, shares, method="inverted_cdf")
    half = NORMAL * np.sqrt(shares * (1.0 - shares) / works.size)
    law = [quantile(part.law, s) for s in shares.tolist()]
    ends = [
        [quantile(part.law, min(max(s, 0.25 / works.size), 1.0 - 0.25 / works.size)) for s in (shares + sign * half)]
        for sign in (-1.0, 1.0)
    ]
    dots = Points.without_interval(law, seen.tolist(), "quantiles seen")
    title = f"{whose(part.on)}: quantiles against those of the {part.law.kind} law"
    words = (
        f"Median {number(float(np.quantile(works, 0.5)))} seen, {number(quantile(part.law, 0.5))} by the "
        f"{part.law.kind} law; 95 % below {number(float(np.quantile(works, 0.95)))} seen, "
        f"{number(quantile(part.law, 0.95))} by the law."
    )
    axes = Axes(units.timed(f"quantile of the {part.law.kind} law"), units.timed("quantile seen"))
    straight = {"as it should be": Curve(law, law, TAKEN, ends[0], ends[1])}
    note = "Each quantile of durations that have this law lies within the band in 95 of 100 logs."
    return measured_chart(f"quantiles-{k}", title, words, axes, dots, straight, note)


def _classes_chart(fit: Fit, units: Units) -> Chart | None:
    """P(service > t) of each class."""
    style = looks(list(fit.arrivals)[:MOST_CLASSES])
    data: Columns = {"who": [], "time": [], "mean": []}
    said = []
    for name in style:
        works = np.sort(_works(fit, name))
        if not works.size:
            continue
        times, shares = _longer(works)
        data["who"] += [name] * len(times)
        data["time"] += rounded(times)
        data["mean"] += [v if v is not None and v > 0.0 else None for v in rounded(shares)]
        said.append(f"{name} {number(math.fsum(works.tolist()) / works.size)}")
    if len(said) < 2:
        return None
    style = {name: style[name] for name in dict.fromkeys(data["who"])}
    x, y = units.timed("time"), "share that takes longer"
    spec = lines(style, x, y, band=False, log_y=True, step=True)
    heads = {"who": "class", "time": x, "mean": y}
    words = f"Mean service time by class: {'; '.join(said)}."
    return Chart("service-classes", "Class by class, as seen", words, spec, data, heads, legend_of(style))


# --- patience --------------------------------------------------------------------------------------------------------


def patience_section(fit: Fit) -> Section | None:
    """Who waits how long before giving up: Kaplan and Meier, the laws, the hazard."""
    table = fit.table
    if not fit.patiences.parts or table.abandoned is None:
        return None
    units, charts, tables, words = Units(table.unit), [], [], []
    known = ~np.isnan(table.waits)
    for k, (on, part) in enumerate(list(fit.patiences.parts.items())[:MOST_CLASSES]):
        which: BoolArray = known if on == EVERYBODY else known & table.of_class(on)
        waits, gone = table.waits[which], table.abandoned[which]
        words.append(_patience_words(on, part, units))
        charts.append(_patience_chart(k, on, part, waits, gone, units))
        if (hazard := _hazard_chart(k, on, part, waits, gone, units)) is not None:
            charts.append(hazard)
        if part.fits and part.law is not None:
            tables.append(_laws_table(f"Patience of {whose(on)}: laws compared", part.fits, part.law))
    if not math.isnan(fit.patiences.p_value):
        same = "differ in" if fit.patiences.by_class else "are taken to be alike in"
        words.append(f"Classes {same} patience ({p_words(fit.patiences.p_value)}).")
    return Section("patience", "How patient they are", [*words, *few(fit)], charts, tables)


def _patience_words(on: str, part: PatienceFit, units: Units) -> str:
    interval = f"{number(part.rate.low)} to {number(part.rate.high)}"
    law = part.law
    taken = "nobody gave up" if law is None else f"{law.kind} patience of mean {number(law.mean)} is taken"
    tested = "" if math.isnan(part.p_value) else f"; is it exponential? {p_words(part.p_value)}"
    return (
        f"Of {whose(on)}, {part.rate.count:,.0f} of {part.waited + part.at_once:,} who waited gave up: "
        f"{number(part.rate.rate)} per {units.per_time} of waiting ({interval}); {taken}{tested}."
    )


def _patience_chart(k: int, on: str, part: PatienceFit, waits: FloatArray, gone: BoolArray, units: Units) -> Chart:
    seen = kaplan_meier(waits, gone)
    kept = thinned(len(seen.times), MOST_POINTS)
    times, shares, low, high = (
        [column[j] for j in kept] for column in (seen.times, seen.survival, seen.low, seen.high)
    )
    dots = Points([0.0, *times], [1.0, *shares], [1.0, *low], [1.0, *high], stairs=True)
    curves = {} if part.law is None or not seen.times else _laws(part.law, part.fits, float(seen.times[-1]))
    axes = Axes(units.timed("wait"), "share more patient than this")
    note = "Seen: by Kaplan and Meier; who was served before giving up counts as at least so patient."
    words = _patience_words(on, part, units)
    return measured_chart(f"patience-{k}", f"{whose(on)}: patience", words, axes, dots, curves, note)


def hazards(waits: FloatArray, gone: BoolArray, edges: FloatArray) -> list[tuple[int, float]]:
    """(abandonments, time waited) between edges: their ratio is the rate of giving up after such a wait."""
    found = []
    for low, high in pairwise(edges.tolist()):
        inside = (waits > low) & (waits <= high)
        time = np.clip(waits - low, 0.0, high - low)
        found.append((int((gone & inside).sum()), math.fsum(time.tolist())))
    return found


def _hazard_chart(k: int, on: str, part: PatienceFit, waits: FloatArray, gone: BoolArray, units: Units) -> Chart | None:
    """How often those give up who have waited so long: constant for an exponential law."""
    left = waits[gone & (waits > 0)]
    law = part.law
    if left.size < 2 * BINS or law is None:
        return None
    cuts = np.unique(np.quantile(left, np.arange(BINS + 1) / BINS, method="inverted_cdf"))
    edges: FloatArray = np.concatenate([[0.0], cuts[1:]])
    found = [rate_interval(float(n), e) for n, e in hazards(waits, gone, edges)]
    middles = (0.5 * (edges[1:] + edges[:-1])).tolist()
    dots = Points.of_rates(middles, found)
    pairs = list(pairwise(edges.tolist()))
    # -log(S(b) / S(a)) / (b - a), what the law expects between two edges
    rates = [(math.log(law.survival(a)) - math.log(law.survival(b))) / (b - a) for a, b in pairs if law.survival(b) > 0]
    if len(rates) < len(pairs):
        return None
    expected = Curve(edges.tolist(), [*rates, rates[-1]], TAKEN, step=True)
    axes = Axes(units.timed("waited so far"), f"share that gives up per {units.per_time}")
    words = (
        f"Of those of {whose(on)} who wait, {number(found[0].rate)} per {units.per_time} give up at first, "
        f"{number(found[-1].rate)} after the longest waits."
    )
    title = f"{whose(on)}: who gives up after how long a wait"
    note = f"{len(found)} stretches of waiting with as many abandonments each; flat for an exponential law."
    return measured_chart(f"hazard-{k}", title, words, axes, dots, {f"taken: {law.kind}": expected}, note)


# --- the crowd and the servers ---------------------------------------------------------------------------------------


def crowd_section(fit: Fit) -> Section | None:
    """Whether arrivals depend on how many are there; how many services go on at once."""
    charts, words = [], []
    if fit.balking is not None and not math.isnan(fit.balking.slope) and math.isfinite(fit.balking.slope):
        charts.append(_balking_chart(fit))
    charts += [_crowd_chart(fit, k, one) for k, one in enumerate(drawn(fit)) if one.balks is not None]
    if fit.servers is not None:
        words.append(f"Servers, as overlapping services tell: {fit.servers.words}.")
        if fit.servers.while_waiting:
            rows = sorted((float(count), share) for count, share in fit.servers.while_waiting.items())
            most = max(rows, key=lambda row: row[1])
            said = (
                f"While jobs waited, {number(most[0])} services went on for {number(100.0 * most[1], 3)} % of the time."
            )
            note = "All servers are busy while jobs wait: the number that is there most of that time is theirs."
            title = "Services that go on at once while jobs wait"
            charts.append(bars_chart("servers", title, said, "services at once", "share of the time", rows, note))
    if not charts and not words:
        return None
    return Section("crowd", "The crowd and the servers", words, charts)


def _crowd_chart(fit: Fit, k: int, one: ArrivalsFit) -> Chart:
    """Rates at which a class asks by how many are there, and the law that was taken."""
    law = one.balks
    assert law is not None
    seen = [s for s, e in enumerate(law.exposures) if law.rate * e >= LEAST_EXPECTED]
    kept = [seen[j] for j in thinned(len(seen), MOST_POINTS)]
    units = Units(fit.table.unit)
    dots = Points.of_rates([float(s) for s in kept], [rate_interval(law.counts[s], law.exposures[s]) for s in kept])
    joins = law.law.joins(len(law.counts))
    taken = Curve([float(s) for s in kept], [law.rate * joins[s] for s in kept], TAKEN)
    words = f'"{one.name}" balks: {law.words} ({law.evidence}).'
    note = "Intervals of a Poisson count; states in which fewer than five would come are not drawn."
    note += f" {law.caution[:1].upper()}{law.caution[1:]}." if law.caution else ""
    axes = Axes("jobs in the system", f"requests per {units.per_time}")
    return measured_chart(f"crowd-{k}", f"{one.name}: who asks", words, axes, dots, {"rate taken": taken}, note)


def _balking_chart(fit: Fit) -> Chart:
    found = fit.balking
    assert found is not None
    states = [s for s, expected in enumerate(found.expected) if expected > 0.0]
    kept = [states[j] for j in thinned(len(states), MOST_POINTS)]
    rates = [rate_interval(float(found.counts[s]), found.expected[s]) for s in kept]
    # an interval of thousands of times what is expected would hide the others: so seldom a state says nothing
    shown = [(s, r) for s, r in zip(kept, rates, strict=True) if found.expected[s] >= LEAST_EXPECTED] or list(
        zip(kept, rates, strict=True)
    )
    dots = Points.of_rates([float(s) for s, _ in shown], [r for _, r in shown])
    weight = math.fsum(math.exp(found.slope * s) * found.expected[s] for s in states)
    level = sum(found.counts) / weight
    first, last = shown[0][0], shown[-1][0]
    grid = [first + (last - first) * j / CURVE for j in range(CURVE + 1)] if last > first else [float(first)]
    fitted = Curve(grid, [level * math.exp(found.slope * s) for s in grid], TAKEN)
    verdict = {"none": "arrivals do not look at the crowd", "balking": "a crowd puts people off"}
    said = verdict.get(found.direction, "a crowd goes with more arrivals")
    if fit.is_confounded:
        said = "this log cannot tell: its rate moves beyond the hours of the day, and when it is high many are there"
    change = f"{found.per_job_words} for each job more"
    words = (
        f"Do arrivals depend on how many are there? {said[:1].upper()}{said[1:]} ({p_words(found.p_value)}; {change})."
    )
    left = len(states) - len(shown)
    note = (
        "Against what the hour of the day leads to expect."
        + (f" {left} states that hardly occur are not drawn." if left else "")
        + (" The scenario does not hold this." if found.direction != "none" and not fit.balks else "")
        + (" More arrivals where the rate is high are no sign of a crowd that attracts." if fit.is_confounded else "")
    )
    axes = Axes("jobs in the system", "arrivals over those expected")
    title = "Do people look at the crowd?"
    return measured_chart("balking", title, words, axes, dots, {"fitted": fitted}, note)
