"""A fit as a figure: arrival rates with their steps, service times beside the law that was taken, gaps or patience."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.report.drawing import NumberTicks, figure_bytes
from queueing_ucrl.report.fit_arrivals import HOURS, MOST_CLASSES, STRETCHES
from queueing_ucrl.report.lettering import Lettering, lettering
from queueing_ucrl.report.palette import GREY, Look, looks
from queueing_ucrl.report.study_figure import WIDTH
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from queueing_ucrl.data.fit import Fit

POINTS = 400  # of a curve
LINE = 0.17  # inches, of a legend


def fit_figure(fit: Fit) -> bytes:
    """Rates, service, and patience or gaps. PNG."""
    from matplotlib.figure import Figure

    units = Units(fit.table.unit)
    names = list(fit.arrivals)[:MOST_CLASSES]
    with lettering((fit.table.source, *names)) as letters:
        entries = max(len(names), len(fit.services.parts), len(fit.patiences.parts))
        figure = Figure(figsize=(WIDTH, 3.6 + LINE * min(entries, MOST_CLASSES)), layout="constrained")
        first, second, third = figure.subplots(1, 3)
        chosen = looks(["all", *names])
        _rates(first, fit, names, chosen, letters, units)
        _service(second, fit, chosen, letters, units)
        if fit.patiences.parts:
            _patience(third, fit, chosen, letters, units)
        else:
            _gaps(third, fit, names, chosen, letters)
        more = "" if len(fit.arrivals) <= MOST_CLASSES else f", {MOST_CLASSES} of {len(fit.arrivals)} classes drawn"
        title = f"{fit.table.source}: {len(fit.table):,} jobs{more}"
        figure.suptitle(letters(title, 120), fontsize=11)
        return figure_bytes(figure)


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, fontsize=8)


def _rates(axes: Axes, fit: Fit, names: list[str], chosen: dict[str, Look], letters: Lettering, units: Units) -> None:
    """By hour of the day where there is a clock, else over the log; the steps that were taken as lines."""
    from queueing_ucrl.data.observed import slot_exposure, slot_of

    table = fit.table
    daily = any(one.pattern is not None for one in fit.arrivals.values())
    observed = (table.begin, table.end)
    day = table.day if daily and table.day else table.end - table.begin
    count = HOURS if daily else STRETCHES
    shift = 0.0 if daily else table.begin
    scale = HOURS / day if daily else 1.0
    edges: FloatArray = (shift + np.arange(count + 1, dtype=np.float64) * (day / count)) * scale
    for name in names:
        times = table.times[table.of_class(name)]
        exposure = slot_exposure(np.array([observed]) - shift, day, count)
        inside = np.minimum(times - shift, np.nextafter(day, 0.0)) if not daily else times
        seen = np.bincount(slot_of(inside, day, count), minlength=count)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(exposure > 0, seen / exposure, np.nan)
        look = chosen[name]
        axes.plot(0.5 * (edges[1:] + edges[:-1]), rates, ".", color=look.colour, markersize=5)
        steps = _steps(fit, name, day, edges, scale)
        balks = ", with those who balk" if fit.arrivals[name].balks is not None else ""
        axes.plot(*steps, linewidth=1.5, label=letters(name, 24) + balks, **look.line)
    axes.set_ylim(bottom=0.0)
    where = "hour of the day" if daily else units.timed("time")
    _finish(axes, "Arrival rates: seen (dots), taken (lines)", where, f"jobs per {units.per_time}")


def _steps(fit: Fit, name: str, day: float, edges: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """The rate that was taken, over what is drawn; of a pattern of the week, its mean over days."""
    one = fit.arrivals[name]
    if one.steps is None:
        return np.array([edges[0], edges[-1]]), np.full(2, one.mean_rate)
    grid = np.linspace(0.0, day, POINTS + 1)
    days = max(1, round(one.steps.period / day))
    rates = sum(one.steps.expected(grid[:-1] + k * day, grid[1:] + k * day) for k in range(days))
    return grid[:-1] * scale, np.asarray(rates) / (days * (day / POINTS))


def _survival(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    ordered = np.sort(values)
    if ordered.size > 4 * POINTS:
        ordered = np.quantile(ordered, np.linspace(0.0, 1.0, 4 * POINTS))
    return ordered, 1.0 - np.arange(ordered.size) / ordered.size


def _service(axes: Axes, fit: Fit, chosen: dict[str, Look], letters: Lettering, units: Units) -> None:
    """P(service > t), seen and taken, on a log scale: an exponential law is a straight line."""
    table = fit.table
    known = ~np.isnan(table.works)
    for part in fit.services.parts[:MOST_CLASSES]:
        which = known if part.on == "all" else known & table.of_class(part.on)
        times, share = _survival(table.works[which])
        look = chosen[part.on]
        axes.plot(times, share, color=look.colour, linewidth=3, alpha=0.35)
        grid = np.linspace(0.0, float(times[-1]), POINTS)
        law = [part.law.survival(t) for t in grid.tolist()]
        label = letters(f"{part.on}: {part.law.kind}", 28)
        axes.plot(grid, law, linewidth=1.5, label=label, **look.line)
    if fit.services.parts:
        axes.set_yscale("log")
        axes.set_ylim(max(1e-4, 0.5 / max(2, int(known.sum()))), 1.2)
    else:
        axes.text(0.5, 0.5, "not in the log", ha="center", va="center", transform=axes.transAxes, color=GREY)
    y = "share longer than this" + (", log scale" if fit.services.parts else "")
    _finish(axes, "Service times: seen (wide), taken (thin)", units.timed("time"), y)


def _patience(axes: Axes, fit: Fit, chosen: dict[str, Look], letters: Lettering, units: Units) -> None:
    """P(patience > t) by Kaplan and Meier with its interval, and the law that was taken."""
    from queueing_ucrl.data.patience import kaplan_meier

    table = fit.table
    assert table.abandoned is not None
    known = ~np.isnan(table.waits)
    for on, part in list(fit.patiences.parts.items())[:MOST_CLASSES]:
        which = known if on == "all" else known & table.of_class(on)
        seen = kaplan_meier(table.waits[which], table.abandoned[which])
        look = chosen[on]
        style: dict[str, Any] = {"color": look.colour, "step": "post", "linewidth": 0}
        axes.fill_between(seen.times, seen.low, seen.high, alpha=0.25, **style)
        if part.law is not None and seen.times:
            grid = np.linspace(0.0, seen.times[-1], POINTS)
            law = [part.law.survival(t) for t in grid.tolist()]
            axes.plot(grid, law, linewidth=1.5, label=letters(f"{on}: {part.law.kind}", 28), **look.line)
    axes.set_ylim(0.0, 1.02)
    _finish(axes, "Patience: seen (shaded), taken (lines)", units.timed("wait"), "share more patient than this")


def _gaps(axes: Axes, fit: Fit, names: list[str], chosen: dict[str, Look], letters: Lettering) -> None:
    """Gaps between arrivals, in units of what the rate of the moment expects, against exponential ones."""
    table, longest = fit.table, 1.0
    for name in names:
        one = fit.arrivals[name]
        times = table.times[table.of_class(name)]
        if times.size < 2:
            continue
        if one.balks is not None:
            gaps = np.diff(one.balks.clock)
        elif one.steps is None:
            gaps = np.diff(times) * one.rate.rate
        else:
            gaps = one.steps.expected(times[:-1], times[1:])
        shares = (np.arange(min(gaps.size, POINTS)) + 0.5) / min(gaps.size, POINTS)
        wanted = -np.log1p(-shares)
        axes.plot(
            wanted, np.quantile(gaps, shares), ".", markersize=3, color=chosen[name].colour, label=letters(name, 24)
        )
        longest = max(longest, float(wanted[-1]))
    axes.plot([0.0, longest], [0.0, longest], color="black", linewidth=1, linestyle=":")
    axes.xaxis.set_major_formatter(NumberTicks())
    axes.yaxis.set_major_formatter(NumberTicks())
    if math.isfinite(longest):
        axes.set_xlim(0.0, longest * 1.05)
    _finish(axes, "Gaps against those of a Poisson process", "expected quantile", "seen, over the mean gap")
