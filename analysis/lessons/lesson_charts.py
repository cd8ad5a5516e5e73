"""Charts and tables of the lessons: shown by marimo in a notebook, and by `lesson_pages` in a page.

    chart(title, words, curve("exact", x, y), measured("simulated", x, mean, low, high), x="load", y="share lost")

What theory says is a dotted line in the colour of the text, everywhere; what was measured is drawn in colours, with
its interval. A series has a name, which the legend shows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from queueing_ucrl.experiments.study import interval as interval  # of means, Student's t: mean, low, high
from queueing_ucrl.report import charts
from queueing_ucrl.report.palette import GREY, LOOKS, Look

THEORY = charts.REFERENCE


@dataclass(frozen=True)
class Series:
    """One thing in a chart: its points, with the ends of an interval about each where there is one."""

    name: str
    kind: str  # line, steps, dots or bars
    x: Sequence[Any]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    is_theory: bool = False


def theory(name: str, x: Iterable[Any], y: Iterable[float], *, steps: bool = False) -> Series:
    """What a formula says."""
    return Series(name, "steps" if steps else "line", list(x), list(y), is_theory=True)


def curve(
    name: str,
    x: Iterable[Any],
    y: Iterable[float],
    low: Iterable[float] | None = None,
    high: Iterable[float] | None = None,
    *,
    steps: bool = False,
) -> Series:
    """A line, in a band from low to high if they are given."""
    ends = (None, None) if low is None or high is None else (list(low), list(high))
    return Series(name, "steps" if steps else "line", list(x), list(y), *ends)


def measured(name: str, x: Iterable[Any], y: Iterable[float], low: Iterable[float], high: Iterable[float]) -> Series:
    """Dots, each with its interval."""
    return Series(name, "dots", list(x), list(y), list(low), list(high))


def bars(name: str, x: Iterable[Any], y: Iterable[float]) -> Series:
    """Bars from zero."""
    return Series(name, "bars", list(x), list(y))


@dataclass(frozen=True)
class Picture:
    """A chart with its words; `name` is what a page calls it."""

    chart: charts.Chart

    def named(self, name: str) -> charts.Chart:
        """The chart for a page, where each has a name of its own."""
        return charts.Chart(name, **{key: part for key, part in vars(self.chart).items() if key != "name"})

    def _display_(self) -> Any:
        """What marimo shows: the chart with a legend, which needs no page around it."""
        import altair as alt
        import marimo as mo

        columns = self.chart.data
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        spec = _with_legend({**copy.deepcopy(self.chart.spec), "datasets": {charts.DATA: rows}})
        spec["config"] = _in_ink({key: part for key, part in charts.CONFIG.items() if key != "background"})
        shown = alt.Chart.from_dict(_in_ink(spec))
        return mo.vstack([mo.md(f"**{self.chart.title}**"), shown, mo.md(self.chart.note)])


def _in_ink(part: Any) -> Any:
    """A grey that can be read on white and on black in place of the page's own colour, which a notebook lacks."""
    if isinstance(part, dict):
        return {key: _in_ink(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_in_ink(value) for value in part]
    return GREY if part == charts.INK else part


def _with_legend(spec: dict[str, Any]) -> dict[str, Any]:
    """The legend that a page has below its chart, in the chart; the width that a notebook has."""
    for layer in spec["layer"]:
        for channel in ("color", "strokeDash"):
            if channel in layer["encoding"]:
                layer["encoding"][channel]["legend"] = {"title": None, "orient": "bottom", "labelLimit": 400}
    return spec


def _looks(series: Sequence[Series]) -> dict[str, Look]:
    """Theory in ink and dots, the others in the palette's order; a name has one look."""
    looks: dict[str, Look] = {}
    for one in series:
        if one.name not in looks:
            taken = sum(look is not THEORY for look in looks.values())
            looks[one.name] = THEORY if one.is_theory else LOOKS[taken]
    return looks


def _columns(series: Sequence[Series]) -> charts.Columns:
    """The data of a chart: a row a point."""
    columns: charts.Columns = {name: [] for name in ("who", "kind", "x", "y", "low", "high")}
    for one in series:
        numbers = [None] * len(one.x)
        columns["who"] += [one.name] * len(one.x)
        columns["kind"] += [("theory " if one.is_theory else "") + one.kind] * len(one.x)
        columns["x"] += list(one.x) if _is_named(one) else charts.rounded(one.x)
        columns["y"] += charts.rounded(one.y)
        columns["low"] += charts.rounded(one.low) if one.low is not None else numbers
        columns["high"] += charts.rounded(one.high) if one.high is not None else numbers
    return columns


def _is_named(series: Series) -> bool:
    """Whether its points have names in place of places on an axis."""
    return bool(series.x) and isinstance(series.x[0], str)


def _layers(series: Sequence[Series], looks: Mapping[str, Look], along: Any, up: Any) -> list[Any]:
    """What is drawn, from the back to the front; `up(field)` is the vertical axis of a field."""
    import altair as alt

    colours, dashes = charts.colour_scale(looks), charts.dash_scale(looks)
    kinds = dict.fromkeys((("theory " if one.is_theory else "") + one.kind, one.low is not None) for one in series)
    order = sorted(
        kinds, key=lambda kind: ("bars", "line", "steps", "dots", "theory line", "theory steps").index(kind[0])
    )
    layers = []
    for kind, has_interval in order:
        view = charts.base().transform_filter(alt.FieldEqualPredicate(field="kind", equal=kind))
        how = {"interpolate": "step-after"} if kind.endswith("steps") else {}
        tips = charts.tooltips(who_N="", y_Q="value", low_Q="from", high_Q="to")
        ends = {"x": along, "y": up("low"), "y2": alt.Y2("high:Q"), "color": colours}
        if kind == "bars":
            beside = {"xOffset": alt.XOffset("who:N", sort=list(looks))} if len(looks) > 1 else {}
            layers.append(view.mark_bar(opacity=0.85).encode(x=along, y=up("y"), color=colours, tooltip=tips, **beside))
            continue
        if has_interval:
            layers.append(
                view.mark_rule(strokeWidth=1.6).encode(**ends)
                if kind == "dots"
                else view.mark_area(opacity=charts.BAND, **how).encode(**ends)
            )
        if kind == "dots":
            layers.append(
                view.mark_point(filled=True, size=55, opacity=1).encode(
                    x=along, y=up("y"), color=colours, shape=charts.shape_scale(looks), tooltip=tips
                )
            )
        else:
            drawn = view.mark_line(strokeWidth=2.2, **how)
            layers.append(drawn.encode(x=along, y=up("y"), color=colours, strokeDash=dashes, tooltip=tips))
    return layers


def chart(
    title: str,
    words: str,
    *series: Series,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    whole: bool = False,
    note: str = "",
) -> Picture:
    """A chart of several series. words: what is to be seen, for those who cannot; whole: x is a number of jobs."""
    import altair as alt

    looks = _looks(series)
    along: Any
    if _is_named(series[0]):
        along = alt.X("x:N", sort=None, title=x, axis=alt.Axis(labelAngle=0, labelLimit=120))
    elif whole and any(one.kind == "bars" for one in series):
        along = alt.X("x:O", title=x, axis=alt.Axis(labelAngle=0))
    else:
        along = charts.axis(x, "x", log=log_x, side="x", room=6)
        if whole:
            along.axis.tickMinStep = 1
    zero = zero or any(one.kind == "bars" for one in series)
    layers = _layers(series, looks, along, lambda name: charts.axis(y, name, log=log_y, zero=zero))
    spec = charts.finished(alt.layer(*layers))
    if zero and all(value >= 0 for one in series for value in one.y):
        spec = charts.from_zero(spec)
    shapes = {key.words: key.kind for key in charts.legend_of_shapes(looks)}
    kinds = {one.name: {"dots": shapes[one.name], "bars": "band"}.get(one.kind, "line") for one in reversed(series)}
    headings = {"who": "", "x": x, "y": y}
    if any(one.low is not None for one in series):
        headings |= {"low": "from", "high": "to"}
    keys = [charts.Key(name, look, kinds[name]) for name, look in looks.items()]
    return Picture(charts.Chart("chart", title, words, spec, _columns(series), headings, keys, note))


@dataclass(frozen=True)
class Table:
    """A small table with what it shows."""

    caption: str
    frame: pd.DataFrame

    def _display_(self) -> Any:
        """What marimo shows."""
        import marimo as mo

        head = " | ".join(str(name) for name in self.frame.columns)
        rows = "\n".join("| " + " | ".join(cells) + " |" for cells in self.cells())
        return mo.md(f"*{self.caption}*\n\n| {head} |\n|{'---|' * self.frame.shape[1]}\n{rows}")

    def cells(self) -> list[list[str]]:
        """Its rows, as words."""
        return [[_words(value) for value in row] for row in self.frame.itertuples(index=False)]


def table(caption: str, frame: pd.DataFrame) -> Table:
    """A table; its columns' names are its headings."""
    return Table(caption, frame)


def _words(value: Any) -> str:
    """A cell: numbers to five digits at most."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    number = float(value)
    if not math.isfinite(number):
        return "-" if math.isnan(number) else f"{number:+}".replace("inf", "∞").removeprefix("+")
    return f"{number:,.0f}" if number == int(number) or abs(number) >= 10_000 else f"{number:.5g}"
