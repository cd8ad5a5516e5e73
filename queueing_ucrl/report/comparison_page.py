"""Several studies side by side, each against its own best where that is known."""

from __future__ import annotations

from collections.abc import Sequence

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.report.charts import Chart, Columns, axis, base, finished, legend_of, rounded, tooltips
from queueing_ucrl.report.numbers import NOTHING, number, percent
from queueing_ucrl.report.page import Page, PageTable, Section
from queueing_ucrl.report.palette import controller_looks
from queueing_ucrl.report.study_view import StudyView

MOST_ROWS = 60  # of the chart


def comparison_page(studies: Sequence[StoredStudy]) -> Page:
    """What is on the page; of a study that cannot be shown it says why."""
    views, warnings = [], []
    for study, place in zip(studies, _places(studies), strict=True):
        try:
            if study.results is None:
                done = sum(study.finished.values())
                warnings.append(f"{place} is not finished and not shown: {done:,} of {study.wanted:,} trials are done.")
            else:
                views += [
                    (_place(view, place), view)
                    for view in map(StudyView, [study] * len(study.points), range(len(study.points)))
                ]
        except DamagedFile as error:
            warnings.append(f"{place} cannot be shown: {error}.")
    sections = [_lost(views), _earned(views)] if views else []
    sentence = f"{len(studies)} studies: {'; '.join(_places(studies))}."
    return Page("Studies side by side", sentence, _meaning(views), [s for s in sections if s is not None], warnings)


def _places(studies: Sequence[StoredStudy]) -> list[str]:
    """What the studies are called: by their titles; where several share one, with their folders' names."""
    titles = [study.title for study in studies]
    return [
        t if titles.count(t) == 1 else f"{t} [{s.path.resolve().name}]" for t, s in zip(titles, studies, strict=True)
    ]


def _place(view: StudyView, place: str) -> str:
    values = ", ".join(f"{key} = {value}" for key, value in view.about["values"].items())
    return f"{place}, {values}" if values else place


def _share(view: StudyView, gap: float | None) -> float | None:
    return gap / view.total if gap is not None and view.total else None


def _meaning(views: Sequence[tuple[str, StudyView]]) -> list[str]:
    """The best controller of each study."""
    said = []
    for place, view in views:
        both = list(zip(view.names, view.results, strict=True))
        if view.no_optimum:
            earned = [(r["reward"]["mean"], n, r["reward"]) for n, r in both if r["reward"]["mean"] is not None]
            if earned:
                _, name, spread = max(earned, key=lambda item: item[0])
                said.append(f"{place}: {name} earned the most, {view.spread(spread)}.")
        else:
            lost = [
                (r["regret"]["gap"]["mean"], n, r["regret"]["gap"])
                for n, r in both
                if r["regret"]["gap"]["mean"] is not None
            ]
            if lost:
                mean, name, spread = min(lost, key=lambda item: item[0])
                share = percent(_share(view, mean), 2)
                said.append(f"{place}: {name} lost the least, {view.spread(spread)} ({share} of the best).")
    return said


def _lost(views: Sequence[tuple[str, StudyView]]) -> Section | None:
    """What part of the best was lost, a bar a controller."""
    import altair as alt

    data: Columns = {"place": [], "who": [], "share": [], "low": [], "high": []}
    for place, view in views:
        for name, result in zip(view.names, view.results, strict=True):
            gap = result["regret"]["gap"]
            if gap["mean"] is not None and view.total:
                row = [place, name, *rounded([100.0 * gap[s] / view.total for s in ("mean", "low", "high")])]
                for column, value in zip(data, row, strict=True):
                    data[column].append(value)
    if not data["who"]:
        return None
    title = "lost (% of what the best policy earns)"
    style = controller_looks(data["who"])
    fill = alt.Color(
        "who:N", scale=alt.Scale(domain=list(style), range=[k.colour for k in style.values()]), legend=None
    )
    place, who = alt.Y("place:N", sort=None, title=None), alt.YOffset("who:N", sort=list(style))
    tips = tooltips(place_N="study", who_N="controller", share_Q="lost (%)")
    bars = (
        base()
        .mark_bar(opacity=0.85)
        .encode(x=axis(title, "share", side="x", zero=True), y=place, yOffset=who, color=fill, tooltip=tips)
    )
    ends = (
        base()
        .mark_rule(strokeWidth=2)
        .encode(x=axis(title, "low", side="x", zero=True), x2="high:Q", y=place, yOffset=who)
    )
    spec = finished(alt.layer(bars, ends), height=min(1600, 40 + 20 * len(data["who"]) + 16 * len(views)))
    said = "; ".join(
        f"{p}, {w}: {number(s, 3)} %" for p, w, s in zip(data["place"], data["who"], data["share"], strict=True)
    )
    heads = {"place": "study", "who": "controller", "share": "lost (%)", "low": "low", "high": "high"}
    note = "Bar: mean; line: its 95 % interval (none of a single replication)."
    chart = Chart(
        "lost", "Lost, in per cent of the best", f"Lost: {said}.", spec, data, heads, legend_of(style, "band"), note
    )
    return Section("lost", "What was lost", charts=[chart])


def _earned(views: Sequence[tuple[str, StudyView]]) -> Section:
    """All numbers in a table."""
    rows = []
    for place, view in views:
        unit = f" {view.units.money}" if view.units.money else ""
        for name, result in zip(view.names, view.results, strict=True):
            gap = result["regret"]["gap"]
            share = _share(view, gap["mean"])
            lost = [view.spread(gap), NOTHING if share is None else percent(share, 2)]
            earned = [view.spread(result["reward"]) + unit, view.spread(result["gain"])]
            rows.append([place, name, view.span, f"{view.count:,}", *lost, *earned])
    headings = [
        "study",
        "controller",
        "up to time",
        "replications",
        "lost",
        "of the best",
        "earned in all",
        "per unit of time",
    ]
    return Section("numbers", "In numbers", tables=[PageTable("All studies", headings, rows, names=2)])
