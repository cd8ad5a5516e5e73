"""Several studies side by side, each against its own best where that is known."""

from __future__ import annotations

from collections.abc import Sequence

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.report.charts import Chart, Columns, axis, base, colour_scale, finished, rounded, tooltips
from queueing_ucrl.report.gains import gain_of
from queueing_ucrl.report.numbers import NOTHING, number, percent
from queueing_ucrl.report.page import Page, PageTable, Section
from queueing_ucrl.report.palette import Look, controller_looks
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.report.tails import tail_cells, tail_headings, tail_words

MOST_CHARTS = 24


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
    """What part of the best was lost: a chart a study, a bar a controller, all on one scale."""
    rows = []
    for place, view in views:
        for name, result in zip(view.names, view.results, strict=True):
            gap = result["regret"]["gap"]
            if gap["mean"] is not None and view.total:
                rows.append((place, name, *(100.0 * gap[s] / view.total for s in ("mean", "low", "high"))))
    if not rows:
        return None
    style = controller_looks(row[1] for row in rows)
    reach = (min(0.0, *(row[3] for row in rows)), max(row[4] for row in rows))
    places = list(dict.fromkeys(row[0] for row in rows))
    charts = [
        _lost_chart(k, place, [row[1:] for row in rows if row[0] == place], style, reach)
        for k, place in enumerate(places[:MOST_CHARTS])
    ]
    few = f"Of {len(places)} studies and points the first {MOST_CHARTS}; the table below has all."
    words = [few] if len(places) > MOST_CHARTS else []
    return Section("lost", "What was lost, in per cent of the best", words, charts)


def _lost_chart(
    k: int,
    place: str,
    rows: Sequence[tuple[str, float, float, float]],
    style: dict[str, Look],
    reach: tuple[float, float],
) -> Chart:
    import altair as alt

    data: Columns = {"who": [row[0] for row in rows]}
    for c, column in enumerate(("share", "low", "high")):
        data[column] = rounded([row[1 + c] for row in rows])
    title = "lost (% of what the best policy earns)"
    who, scale = alt.Y("who:N", sort=None, title=None), alt.Scale(domain=rounded(reach), nice=False)
    at = {column: axis(title, column, side="x", zero=True) for column in ("share", "low")}
    for each in at.values():
        each.scale = scale
    tips = tooltips(who_N="controller", share_Q="lost (%)")
    fill = colour_scale({name: style[name] for name in data["who"]})
    bars = base().mark_bar(opacity=0.85).encode(x=at["share"], y=who, color=fill, tooltip=tips)
    ends = base().mark_rule(strokeWidth=2).encode(x=at["low"], x2="high:Q", y=who)
    spec = finished(alt.layer(bars, ends), height=min(1600, 24 + 26 * len(rows)))
    said = "; ".join(f"{name} {number(share, 3)} %" for name, share, *_ in rows)
    heads = {"who": "controller", "share": "lost (%)", "low": "low", "high": "high"}
    note = "Bar: mean; line: its 95 % interval (none of a single replication). The same scale in every chart."
    return Chart(f"lost-{k}", place, f"Lost: {said}.", spec, data, heads, note=note)


def _earned(views: Sequence[tuple[str, StudyView]]) -> Section:
    """All numbers in a table."""
    rows = []
    for place, view in views:
        unit = f" {view.units.money}" if view.units.money else ""
        for name, result in zip(view.names, view.results, strict=True):
            gap = result["regret"]["gap"]
            share = _share(view, gap["mean"])
            lost = [view.spread(gap), NOTHING if share is None else percent(share, 2), *tail_cells(gap, lost=True)]
            tails = tail_cells(result["reward"], lost=False)
            earned = [view.spread(result["reward"]) + unit, *tails, view.spread(gain_of(result))]
            rows.append([place, name, view.span, f"{view.count:,}", *lost, *earned])
    headings = [
        "study",
        "controller",
        "up to time",
        "replications",
        "lost",
        "of the best",
        *(f"lost, {name}" for name in tail_headings(lost=True)),
        "earned in all",
        *(f"earned, {name}" for name in tail_headings(lost=False)),
        "per unit of time",
    ]
    counts = [view.count for _, view in views]
    notes = [f"{tail_words(min(counts), lost=lost)}." for lost in (True, False)]
    return Section("numbers", "In numbers", tables=[PageTable("All studies", headings, rows, names=2)], notes=notes)
