"""What a sweep changes: what was lost (or earned) against the swept value, and a table of all points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queueing_ucrl.report.charts import (
    Chart,
    Columns,
    axis,
    base,
    colour_scale,
    dash_scale,
    finished,
    from_zero,
    legend_of,
    rounded,
    tooltips,
)
from queueing_ucrl.report.gains import gain_of
from queueing_ucrl.report.numbers import NOTHING, percent
from queueing_ucrl.report.page import PageTable, Section
from queueing_ucrl.report.study_view import StudyView, finite
from queueing_ucrl.report.tails import tail_cells, tail_headings, tail_words

SPREADS = ("mean", "low", "high")


def values_in_words(point: dict[str, Any]) -> str:
    """The swept values of a point."""
    return ", ".join(f"{key} = {value}" for key, value in point["values"].items())


def sweep_section(views: Sequence[StudyView]) -> Section:
    """All points in charts and a table."""
    lost = [view for view in views if not view.no_optimum]
    charts = [_chart(lost, lost=True)] if lost else []
    if len(lost) < len(views):
        charts.append(_chart(views, lost=False))
    rows = []
    units = views[0].units
    for view in views:
        for name, result in zip(view.names, view.results, strict=True):
            gap, total = result["regret"]["gap"], view.total
            share = percent(gap["mean"] / total, 2) if total and gap["mean"] is not None else NOTHING
            cells = [view.spread(gap), share, *tail_cells(gap, lost=True)]
            earned = [view.spread(result["reward"]), *tail_cells(result["reward"], lost=False)]
            rows.append([values_in_words(view.about), name, *cells, *earned])
    tails = [f"lost, {name}" for name in tail_headings(lost=True)]
    headings = ["point", "controller", units.paid("lost"), "of the best", *tails, units.paid("earned in all")]
    headings += [f"earned, {name}" for name in tail_headings(lost=False)]
    notes = [f"{tail_words(views[0].count, lost=lost)}." for lost in (True, False)]
    table = PageTable("What was lost and earned", headings, rows, names=2, grouped=True)
    return Section("sweep", "All points", charts=charts, tables=[table], notes=notes)


def _data(views: Sequence[StudyView], key: str | None, *, lost: bool) -> Columns:
    """By point and controller; key: what alone was swept, in numbers."""
    data: Columns = {"who": [], "at": [], "mean": [], "low": [], "high": []}
    for view in views:
        place = values_in_words(view.about) if key is None else view.about["values"][key]
        for name, result in zip(view.names, view.results, strict=True):
            spread = result["regret"]["gap"] if lost else gain_of(result)
            data["who"].append(name)
            data["at"].append(place)
            for column, value in zip(SPREADS, rounded(spread[s] for s in SPREADS), strict=True):
                data[column].append(value)
    return data


def _chart(views: Sequence[StudyView], *, lost: bool) -> Chart:
    """What each controller lost, or earned per unit of time, against what was swept; a gap stands for nothing known."""
    import altair as alt

    keys = list(views[0].about["values"])
    numeric = len(keys) == 1 and all(finite(view.about["values"][keys[0]]) for view in views)
    data = _data(views, keys[0] if numeric else None, lost=lost)
    units = views[0].units
    y = units.paid("lost") if lost else f"{units.money or 'reward'} per {units.per_time}"
    x = keys[0] if numeric else "point"
    at: Any = axis(x, "at", side="x", room=12)
    if not numeric:
        at = alt.X("at:N", title=x, sort=list(dict.fromkeys(data["at"])))
    looks = {name: look for view in views for name, look in view.looks.items()}
    colour, tips = colour_scale(looks), tooltips(who_N="", mean_Q=y)
    layers = [
        base().mark_rule(strokeWidth=1.5).encode(x=at, y=axis(y, "low", zero=lost), y2="high:Q", color=colour),
        base()
        .mark_line(strokeWidth=2)
        .encode(x=at, y=axis(y, "mean", zero=lost), color=colour, strokeDash=dash_scale(looks)),
        base()
        .mark_point(size=50, filled=True, opacity=1)
        .encode(x=at, y=axis(y, "mean", zero=lost), color=colour, tooltip=tips),
    ]
    place = values_in_words(views[-1].about)
    ends = zip(views[-1].names, views[-1].results, strict=True)
    what = "Lost" if lost else "Earned"
    said = "; ".join(f"{n} {views[-1].spread(r['regret']['gap'] if lost else gain_of(r))}" for n, r in ends)
    heads = {"who": "controller", "at": x, "mean": y, "low": "low", "high": "high"}
    note = "Dots: means; bars: their 95 % intervals." if views[0].count > 1 else "One replication a point."
    name, title = ("sweep-lost", "What was lost") if lost else ("sweep-earned", "What was earned")
    words = f"{what} against {', '.join(keys)}. At {place}: {said}."
    title, spec = f"{title}, by {', '.join(keys)}", finished(alt.layer(*layers))
    return Chart(name, title, words, from_zero(spec) if lost else spec, data, heads, legend_of(looks), note)
