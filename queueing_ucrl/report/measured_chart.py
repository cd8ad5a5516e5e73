"""Charts that set what was seen beside what was taken from it: dots with their intervals, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from queueing_ucrl.report.charts import (
    BAND,
    HEIGHT,
    Chart,
    Columns,
    Key,
    axis,
    base,
    colour_scale,
    dash_scale,
    finished,
    rounded,
    tooltips,
)
from queueing_ucrl.report.palette import BLUE, DOTS, Look

if TYPE_CHECKING:
    from queueing_ucrl.data.rates import RateInterval

SEEN = "seen"
SEEN_LOOK = Look(BLUE)
ENDS = 12  # pixels beyond the first and the last range


@dataclass(frozen=True)
class Points:
    """Dots, each with its interval where there is one; or the stairs that they are on."""

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None]
    high: Sequence[float | None]
    stairs: bool = False  # a line with a band instead of dots with bars
    words: str = "seen, with its 95 % interval"

    @classmethod
    def of_rates(cls, x: Sequence[float], rates: Sequence[RateInterval]) -> Points:
        """Rates with their intervals."""
        return cls(x, [r.rate for r in rates], [r.low for r in rates], [r.high for r in rates])

    @classmethod
    def without_interval(cls, x: Sequence[float], y: Sequence[float], words: str) -> Points:
        """Dots alone."""
        return cls(x, y, [None] * len(x), [None] * len(x), words=words)


@dataclass(frozen=True)
class Curve:
    """A curve of what was taken, in a band where its interval is known."""

    x: Sequence[float]
    y: Sequence[float]
    look: Look
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    step: bool = False


@dataclass(frozen=True)
class Axes:
    """What the axes say, and how they run."""

    x: str
    y: str
    log_y: bool = False
    zero: bool = True
    height: int = HEIGHT


def measured_chart(
    name: str, title: str, words: str, axes: Axes, seen: Points, curves: Mapping[str, Curve], note: str = ""
) -> Chart:
    """Dots (or stairs) of what was seen, and curves by name; the names are ours, no user's."""
    import altair as alt

    data = _data(seen, curves, axes.log_y)
    looks = {SEEN: SEEN_LOOK, **{who: curve.look for who, curve in curves.items()}}
    at = axis(axes.x, "time", side="x")
    up = {column: axis(axes.y, column, log=axes.log_y, zero=axes.zero) for column in ("mean", "low")}
    fill, tips = colour_scale(looks), tooltips(who_N="", time_Q=axes.x, mean_Q=axes.y)
    stepped = [who for who, curve in curves.items() if curve.step]
    layers = []
    for step in (False, True):
        some = [who for who in curves if (who in stepped) == step]
        how: dict[str, Any] = {"interpolate": "step-after"} if step else {}
        if any(curves[who].low is not None for who in some):
            area = base().mark_area(opacity=BAND, **how).transform_filter(_is_one_of(some))
            layers.append(area.encode(x=at, y=up["low"], y2=alt.Y2("high:Q"), color=fill))
        if some:
            line = base().mark_line(strokeWidth=2, **how).transform_filter(_is_one_of(some))
            layers.append(line.encode(x=at, y=up["mean"], color=fill, strokeDash=dash_scale(looks), tooltip=tips))
    layers += _seen_layers(seen, at, up, fill, tips)
    has_low = any(v is not None for v in data["low"])
    heads = {"who": "", "time": axes.x, "mean": axes.y} | ({"low": "low", "high": "high"} if has_low else {})
    keys = [Key(seen.words, SEEN_LOOK, "line" if seen.stairs else "dot")]
    for who, curve in curves.items():
        keys.append(Key(who, curve.look))
        if curve.low is not None:
            keys.append(Key(f"{who}: its 95 % interval", curve.look, "pale"))
    return Chart(name, title, words, finished(alt.layer(*layers), height=axes.height), data, heads, keys, note)


def _seen_layers(seen: Points, at: Any, up: dict[str, Any], fill: Any, tips: list[Any]) -> list[Any]:
    import altair as alt

    mine = _is_one_of([SEEN])
    if seen.stairs:
        area = base().mark_area(opacity=BAND, interpolate="step-after").transform_filter(mine)
        line = base().mark_line(strokeWidth=2.5, interpolate="step-after").transform_filter(mine)
        layers = [area.encode(x=at, y=up["low"], y2=alt.Y2("high:Q"), color=fill)]
        return [*layers, line.encode(x=at, y=up["mean"], color=fill, tooltip=tips)]
    bars = base().mark_rule(strokeWidth=1.5, opacity=0.7).transform_filter(mine)
    dots = base().mark_point(size=30, filled=True, opacity=0.9).transform_filter(mine)
    layers = [bars.encode(x=at, y=up["low"], y2=alt.Y2("high:Q"), color=fill)]
    layers = layers if any(v is not None for v in seen.low) else []
    return [*layers, dots.encode(x=at, y=up["mean"], color=fill, tooltip=tips)]


def _is_one_of(names: Sequence[str]) -> Any:
    import altair as alt

    return alt.FieldOneOfPredicate(field="who", oneOf=list(names))


def _data(seen: Points, curves: Mapping[str, Curve], log_y: bool) -> Columns:
    data: Columns = {"who": [], "time": [], "mean": [], "low": [], "high": []}
    parts = [(SEEN, seen.x, seen.y, seen.low, seen.high)]
    for who, curve in curves.items():
        nothing: list[float | None] = [None] * len(curve.x)
        low = nothing if curve.low is None else list(curve.low)
        parts.append((who, curve.x, curve.y, low, nothing if curve.high is None else list(curve.high)))
    for who, x, y, low_end, high_end in parts:
        data["who"] += [who] * len(x)
        data["time"] += rounded(x)
        for column, values in (("mean", y), ("low", low_end), ("high", high_end)):
            data[column] += [None if log_y and v is not None and v <= 0.0 else v for v in rounded(values)]
    return data


def ranges_chart(
    name: str,
    title: str,
    words: str,
    x: str,
    rows: Sequence[tuple[str, float, float | None, float | None]],
    *,
    look: Look = SEEN_LOOK,
    line: float | None = None,
    log: bool = False,
    legend: Sequence[Key] = (),
    note: str = "",
) -> Chart:
    """A row a name: a dot, and the range from its low to its high end; `line`: where it should be."""
    import altair as alt

    values = list(zip(*rows, strict=True))
    data: Columns = {"group": list(values[0])}
    data |= {column: rounded(part) for column, part in zip(("mean", "low", "high"), values[1:], strict=True)}
    group = alt.Y("group:N", sort=None, title=None)
    tips = tooltips(group_N="", mean_Q=x, low_Q="low", high_Q="high")
    bars = base().mark_rule(strokeWidth=2, color=look.colour)
    dots = base().mark_point(size=70, filled=True, color=look.colour, opacity=1)
    layers = [
        bars.encode(x=axis(x, "low", log=log, side="x", room=ENDS), x2="high:Q", y=group),
        dots.encode(x=axis(x, "mean", log=log, side="x", room=ENDS), y=group, tooltip=tips),
    ]
    spec = finished(alt.layer(*layers), height=min(1200, 40 + 30 * len(data["group"])))
    if line is not None:
        at = {"x": {"datum": line, "type": "quantitative", "title": x}}
        mark = {"type": "rule", "strokeDash": [2 * part for part in DOTS], "strokeWidth": 1.6}
        spec["layer"].append({"data": {"values": [{}]}, "mark": mark, "encoding": at})
    heads = {"group": "", "mean": x, "low": "low", "high": "high"}
    return Chart(name, title, words, spec, data, heads, legend, note)


def bars_chart(
    name: str, title: str, words: str, x: str, y: str, rows: Sequence[tuple[float, float]], note: str = ""
) -> Chart:
    """A bar for each whole number."""
    data: Columns = {"first": [k - 0.4 for k, _ in rows], "last": [k + 0.4 for k, _ in rows]}
    data |= {"at": [k for k, _ in rows], "base": [0] * len(rows), "mean": rounded(v for _, v in rows)}
    bars = base().mark_bar(color=BLUE, opacity=0.85)
    drawn = bars.encode(
        x=axis(x, "first", side="x"),
        x2="last:Q",
        y=axis(y, "mean", zero=True),
        y2="base:Q",
        tooltip=tooltips(at_Q=x, mean_Q=y),
    )
    return Chart(name, title, words, finished(drawn), data, {"at": x, "mean": y}, (), note)
