"""Charts for pages: Vega-Lite by Altair, one look in light and dark, and each with words and a table beside it.

Text and lines are of the colour of the page's text (`currentColor`), so that a chart needs no second theme for the
dark or for print. Legends are lists in the page, below the chart: they wrap on a phone. Fields, views and parameters
have fixed names, never those of a user and none that Altair counts up, so that the same study gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queueing_ucrl.report.end_values import apart
from queueing_ucrl.report.palette import DOTS, Look

Columns = dict[str, list[Any]]
DATA = "table"  # the name of a chart's data
HEIGHT = 260
BAND = 0.22  # how dark
FAINT = 0.15
SIGNIFICANT = 6  # digits of the numbers in a page
INK = "currentColor"
REFERENCE = Look(INK, DOTS)  # what curves are measured against
LABEL = 180  # pixels of a line of a name beside an axis
LINES = r"(.{12,22}[ \\-,])"  # of such a name, as a pattern
MOST_BANDS = 4  # curves, up to which each is in its band
END_HEIGHT = 15.0  # pixels from one value at the curves' ends to the next
HOLLOW = 0.2  # how dark, in its outline
SHAPES = ("circle", "square", "triangle-up", "diamond")
NUMBERS = ",~r"  # of axes: thousands separated, no more digits than needed
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": INK for part in ("label", "title", "domain", "tick", "grid")},
        **{"gridOpacity": FAINT, "domainOpacity": 0.5, "tickOpacity": 0.5},
        **{"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelOverlap": "greedy"},
        **{"labelSeparation": 8, "labelLimit": LABEL, "titleLimit": 420},
    },
    "rule": {"stroke": INK},
    "text": {"fill": INK},
}


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    words: str
    look: Look
    kind: str = "line"  # or thin (a line), band, hollow or pale (a bar), dot or a shape of SHAPES


@dataclass(frozen=True)
class Chart:
    """A chart of a page: what is drawn, what of, and the same in words and numbers."""

    name: str  # unlike any other of the page; no user's text
    title: str
    words: str  # the text alternative
    spec: dict[str, Any]
    data: Columns
    headings: Mapping[str, str]  # columns of the data that the table shows, and what they are called
    legend: Sequence[Key] = ()
    note: str = ""  # below the chart: what bands are, what was left out


def thinned(count: int, most: int) -> list[int]:
    """Places of a row of so many, evenly apart, the first and the last among them; all if they are few."""
    return list(range(count)) if count <= most else sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})


def rounded(values: Any) -> list[Any]:
    """Numbers for a page, to a few digits; what is no number is missing."""
    return [None if v is None or not math.isfinite(v) else float(f"{v:.{SIGNIFICANT}g}") for v in map(_float, values)]


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _dashes(look: Look) -> list[float]:
    return [2.0 * part for part in look.dashes] or [1, 0]


def colour_scale(looks: Mapping[str, Look], field_name: str = "who") -> Any:
    """The colour of each name; without a legend, which the page has."""
    import altair as alt

    scale = alt.Scale(domain=list(looks), range=[look.colour for look in looks.values()])
    return alt.Color(f"{field_name}:N", scale=scale, legend=None)


def dash_scale(looks: Mapping[str, Look], field_name: str = "who") -> Any:
    """The dashes of each name."""
    import altair as alt

    scale = alt.Scale(domain=list(looks), range=[_dashes(look) for look in looks.values()])
    return alt.StrokeDash(f"{field_name}:N", scale=scale, legend=None)


def axis(
    title: str, name: str, *, log: bool = False, side: str = "y", zero: bool = False, room: int = 0, **more: Any
) -> Any:
    """A quantitative axis; a log scale says so in its title. room: pixels beyond the data."""
    import altair as alt

    kind = alt.X if side == "x" else alt.Y
    about: dict[str, Any] = {"type": "log", "nice": False} if log else {"zero": zero, "nice": side == "y"}
    scale = alt.Scale(**about, **({"padding": room} if room else {}))
    labels = alt.Axis(format=NUMBERS, tickCount=5 if side == "x" else 6)
    return kind(f"{name}:Q", title=f"{title}, log scale" if log else title, scale=scale, axis=labels, **more)


def names_axis(name: str, names: Sequence[str]) -> Any:
    """A row a name, in their order; a long name takes several lines, so that names that begin alike can be told."""
    import altair as alt

    labels = alt.Axis(labelExpr=f"split(replace(datum.label, regexp('{LINES}', 'g'), '$1\\n'), '\\n')")
    return alt.Y(f"{name}:N", sort=list(names), title=None, axis=labels, scale=alt.Scale(domain=list(names)))


def states_axis(name: str, capacity: int) -> Any:
    """The number of jobs in the system, in whole numbers."""
    import altair as alt

    scale = alt.Scale(domain=[0, capacity], nice=False)
    labels = alt.Axis(format=NUMBERS, tickMinStep=1, tickCount=10)
    return alt.X(f"{name}:Q", title="jobs in the system", scale=scale, axis=labels)


def finished(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """The specification of a chart that is as wide as its place, checked against Vega-Lite's schema."""
    made: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    made["autosize"] = {"type": "fit-x", "contains": "padding"}
    return {key: part for key, part in made.items() if key not in ("config", "$schema")}


def base() -> Any:
    """A view of the chart's data."""
    import altair as alt

    return alt.Chart(alt.NamedData(name=DATA))


def with_line(spec: dict[str, Any], value: float, title: str, colour: str = INK) -> dict[str, Any]:
    """A chart of several layers with a dotted line at a height: where something is, or should be."""
    at = {"y": {"datum": rounded([value])[0], "type": "quantitative", "title": title}}
    mark = {"type": "rule", "strokeDash": _dashes(REFERENCE), "strokeWidth": 1.6, "stroke": colour}
    line = {"data": {"values": [{}]}, "mark": mark, "encoding": at}
    return {**spec, "layer": [*spec["layer"], line]}


def from_zero(spec: dict[str, Any], side: str = "y") -> dict[str, Any]:
    """Curves or bars of what cannot be below 0: the axis begins there, and so do intervals."""
    layers = []
    for layer in spec["layer"]:
        mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
        up = layer["encoding"][side]
        encoding = {**layer["encoding"], side: {**up, "scale": {**up.get("scale", {}), "domainMin": 0}}}
        layers.append({**layer, "mark": {**mark, "clip": True}, "encoding": encoding})
    return {**spec, "layer": layers}


def two_kinds(looks: Mapping[str, Look], field_name: str) -> dict[str, Any]:
    """Bars of two kinds, the second hollow: told apart without their colours. Encodings."""
    import altair as alt

    colours = alt.Scale(domain=list(looks), range=[look.colour for look in looks.values()])
    fills = alt.Scale(domain=list(looks), range=[0.85, HOLLOW][: len(looks)])
    return {
        "color": colour_scale(looks, field_name),
        "stroke": alt.Stroke(f"{field_name}:N", scale=colours, legend=None),
        "fillOpacity": alt.FillOpacity(f"{field_name}:O", scale=fills, legend=None),
    }


def legend_of_two(looks: Mapping[str, Look]) -> list[Key]:
    """The legend of `two_kinds`."""
    return [Key(name, look, kind) for (name, look), kind in zip(looks.items(), ("band", "hollow"), strict=False)]


def tooltips(**titles: str) -> list[Any]:
    """Field (with its type behind two underscores) = heading."""
    import altair as alt

    found = []
    for name, title in titles.items():
        kind = {"N": "nominal", "Q": "quantitative"}[name[-1]]
        how = {"format": ",.5~g"} if kind == "quantitative" else {}
        found.append(alt.Tooltip(name[:-2], type=kind, title=title, **how))
    return found


def lines(
    looks: Mapping[str, Look],
    x: str,
    y: str,
    *,
    band: bool = True,
    outer: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = False,
    step: bool = False,
    height: int = HEIGHT,
    most_bands: int = MOST_BANDS,
) -> dict[str, Any]:
    """Curves `mean` over `time` of each `who`, in a band from `low` to `high` (and a wider one, `least` to `most`).

    More than `most_bands` would hide each other: then there is a dot at each end, with its interval.
    """
    import altair as alt

    at = axis(x, "time", log=log_x, side="x")
    scales = {"color": colour_scale(looks), "strokeDash": dash_scale(looks)}
    how = {"interpolate": "step-after"} if step else {}
    layers: list[Any] = []
    dots = band and len(looks) > most_bands
    band, outer = band and not dots, outer and not dots
    for low, high, wanted in (("least", "most", outer), ("low", "high", band)):
        if wanted:
            up = axis(y, low, log=log_y, zero=zero)
            layers.append(
                base().mark_area(opacity=BAND, **how).encode(x=at, y=up, y2=alt.Y2(f"{high}:Q"), color=scales["color"])
            )
    tips = tooltips(who_N="", time_Q=x, mean_Q=y)
    drawn = base().mark_line(strokeWidth=2, **how)
    layers.append(drawn.encode(x=at, y=axis(y, "mean", log=log_y, zero=zero), tooltip=tips, **scales))
    if dots:
        layers += _intervals_at_ends(looks, at, axis(y, "mean", log=log_y, zero=zero), scales["color"])
    return finished(alt.layer(*layers), height=height)


def _intervals_at_ends(looks: Mapping[str, Look], at: Any, up: Any, colour: Any) -> list[Any]:
    """The last mean of each curve as a dot in its interval, side by side."""
    import altair as alt

    layers = []
    for k, who in enumerate(looks):
        one = base().transform_filter(alt.FieldEqualPredicate(field="who", equal=who))
        one = one.transform_joinaggregate(last="max(time)").transform_filter("datum.time == datum.last")
        left = -min(7.0, 90.0 / len(looks)) * (len(looks) - 1 - k)
        low = alt.Y("low:Q", title=up.to_dict()["title"])
        layers += [
            one.mark_rule(strokeWidth=1.5, xOffset=left).encode(x=at, y=low, y2="high:Q", color=colour),
            one.mark_point(filled=True, size=36, opacity=1, xOffset=left).encode(x=at, y=up, color=colour),
        ]
    return layers


def with_end_values(
    spec: dict[str, Any], ends: Sequence[tuple[float, str]], time: float, reach: tuple[float, float], colours: Any
) -> dict[str, Any]:
    """Curves with the last value of each beside its end, none over another; ends: values, and what is written.

    reach: of the axis, about; colours: of the ends, in order. Of more than there is room for, none.
    """
    low, high = reach
    if not high > low or len(ends) * END_HEIGHT > HEIGHT:
        return spec
    scale = (high - low) / HEIGHT
    places = apart([(value - low) / scale for value, _ in ends], END_HEIGHT, float(HEIGHT))
    rows = [
        {"time": rounded([time])[0], "place": rounded([low + place * scale])[0], "said": said, "colour": colour}
        for place, (_, said), colour in zip(places, ends, colours, strict=True)
    ]
    first = spec["layer"][-1]["encoding"]
    encoding = {
        "x": {**first["x"], "field": "time"},
        "y": {**first["y"], "field": "place"},
        "text": {"field": "said", "type": "nominal"},
        "fill": {"field": "colour", "type": "nominal", "scale": None, "legend": None},
    }
    mark = {"type": "text", "align": "left", "dx": 5, "fontSize": 11, "fontWeight": "bold", "clip": False}
    room = 10 + 7 * max(len(said) for _, said in ends)
    layer = {"data": {"values": rows}, "mark": mark, "encoding": encoding}
    return {**spec, "layer": [*spec["layer"], layer], "padding": {"left": 5, "top": 5, "bottom": 5, "right": room}}


def shape_scale(looks: Mapping[str, Look], field_name: str = "who") -> Any:
    """The shape of each name's dots."""
    import altair as alt

    shapes = [SHAPES[k % len(SHAPES)] for k in range(len(looks))]
    return alt.Shape(f"{field_name}:N", scale=alt.Scale(domain=list(looks), range=shapes), legend=None)


def legend_of_shapes(looks: Mapping[str, Look]) -> list[Key]:
    """The legend of `shape_scale`."""
    return [Key(name, look, SHAPES[k % len(SHAPES)]) for k, (name, look) in enumerate(looks.items())]


def legend_of(looks: Mapping[str, Look], kind: str = "line") -> list[Key]:
    """A legend's entries, in order."""
    return [Key(name, look, kind) for name, look in looks.items()]
