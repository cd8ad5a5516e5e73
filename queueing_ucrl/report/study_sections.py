"""What a study's page says of its numbers: regrets and rewards, differences, quantiles; each section from the folder.

Every function takes a `StudyView` and gives a section, or None where the study has nothing of the kind.

One file, though a long one: a function for each section, one after the other, as on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.regret import CAUSES, KINDS
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import interval
from queueing_ucrl.report.charts import (
    MOST_BANDS,
    REFERENCE,
    Chart,
    Columns,
    Key,
    axis,
    base,
    finished,
    from_zero,
    legend_of,
    legend_of_two,
    lines,
    names_axis,
    rounded,
    thinned,
    tooltips,
    two_kinds,
    with_end_values,
    with_line,
)
from queueing_ucrl.report.gains import gain_of, gains_in_words
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.report.page import PageTable, Section
from queueing_ucrl.report.palette import BLUE, DASHES, VERMILION, Look
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.report.tails import tail_cells, tail_headings, tail_words

if TYPE_CHECKING:
    import pandas as pd

MEANINGS = {
    "gap": "the cost of wrong decisions, with the least noise",
    "expected": "the best policy's gain times time, minus what was earned (the paper's)",
    "realised": "the same with the waits as they were",
    "pseudo": "from the true gains of the policies that were used",
}
REWARD_MEANINGS = {
    "expected_reward": "earned, with the waits' expected costs",
    "realised_reward": "earned, with the waits as they were",
}
WIDE = 50.0  # how many times the largest is the smallest where a log scale is used
SPREADS = ("mean", "low", "high")
NEVER_NEGATIVE = ("regret-gap", "regret-pseudo")  # charts
MOST_CURVES = 8  # of classes and causes in a chart
MOST_TIMES = 100  # of such a curve


def _columns(frame: pd.DataFrame, **fields: str) -> Columns:
    """Columns of a chart from those of a frame: names as they are, numbers rounded."""
    text = ("who",)
    return {
        name: [str(v) for v in frame[column]] if name in text else rounded(frame[column])
        for name, column in fields.items()
    }


def _last(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The last row of each controller."""
    return {str(name): dict(rows.iloc[-1]) for name, rows in frame.groupby("controller", sort=False)}


def _with_half(row: dict[str, float], count: int) -> str:
    return with_interval(row["mean"], row["high"] - row["mean"] if count > 1 else None)


def money(view: StudyView, words: str) -> str:
    """Words with the unit of money."""
    return view.units.paid(words)


def summary_section(view: StudyView) -> Section:
    """The numbers that people ask for first: lost, earned, who got in, who waited."""
    tables = [_earned_table(view), _class_table(view)]
    notes = [
        f"Earned in all: with the waits as they were; per {view.units.per_time}: {gains_in_words(view.results)}.",
        "Rejected by the policy, blocked for lack of room; 95 % of the jobs that joined a server waited less than the "
        "95 % wait.",
    ]
    if view.count > 1:
        tails = tail_words(view.count, lost=not view.no_optimum)
        notes.insert(0, f"Means of {view.count:,} replications, ± half of the 95 % interval. {tails}.")
    return Section(f"{view.prefix}summary", "In numbers", tables=tables, notes=notes)


def _earned_table(view: StudyView) -> PageTable:
    regret = not view.no_optimum
    lost = [money(view, "lost"), "of the best"] if regret else []
    tails = [f"{'lost' if regret else 'earned'}, {name}" for name in tail_headings(lost=regret) if view.count > 1]
    earned = [money(view, "earned in all"), *([] if regret else tails), f"earned per {view.units.per_time}"]
    headings = ["controller", *lost, *(tails if regret else []), *earned, "servers busy"]
    rows = []
    for name, result in zip(view.names, view.results, strict=True):
        gap, total = result["regret"]["gap"], view.total
        share = percent(gap["mean"] / total, 2) if total and gap["mean"] is not None else NOTHING
        cells = tail_cells(gap if regret else result["reward"], lost=regret)[: len(tails)]
        row = [name, *([view.spread(gap), share, *cells] if regret else []), view.spread(result["reward"])]
        row += [*([] if regret else cells), view.spread(gain_of(result)), percent(result["utilisation"]["mean"])]
        rows.append(row)
    return PageTable("What each controller earned", headings, rows)


def _class_table(view: StudyView) -> PageTable:
    ends = ("admitted", "rejected", "blocked")
    waits = [view.units.timed("mean wait"), view.units.timed("95 % wait")]
    rows = []
    for name, result in zip(view.names, view.results, strict=True):
        for job_class in result["classes"]:
            arrivals = job_class["arrivals"]["mean"]
            shares = [percent((job_class[end]["mean"] or 0.0) / arrivals) if arrivals else NOTHING for end in ends]
            rows.append(
                [name, job_class["name"], *shares, *(number(job_class[w]["mean"], 3) for w in ("mean_wait", "wait_95"))]
            )
    return PageTable("What each class saw", ["controller", "class", *ends, *waits], rows, names=2, grouped=True)


def curve_words(view: StudyView, ends: dict[str, dict[str, float]], what: str) -> str:
    """A chart of curves in a sentence: where they end."""
    said = "; ".join(f"{name} {_with_half(row, view.count)}" for name, row in ends.items())
    return f"{what} up to time {view.span}. At the end: {said}."


def _account_chart(view: StudyView, frame: pd.DataFrame, name: str, title: str, what: str, y: str) -> Chart:
    spec = lines(view.looks, view.units.timed("time"), y, band=view.count > 1)
    if name in NEVER_NEGATIVE:
        spec = from_zero(spec)
    ends = _last(frame)
    values = [(row["mean"], number(row["mean"], 3)) for row in ends.values()]
    whole = frame[["low", "mean", "high"]].to_numpy(dtype=float)
    least = 0.0 if name in NEVER_NEGATIVE else float(np.nanmin(whole))
    spec = with_end_values(
        spec, values, float(frame["time"].max()), (least, float(np.nanmax(whole))), [view.looks[n].colour for n in ends]
    )
    heads = {"who": "controller", "time": view.units.timed("time"), "mean": "mean", "low": "low", "high": "high"}
    data = _columns(frame, who="controller", time="time", mean="mean", low="low", high="high")
    words = curve_words(view, ends, what)
    return Chart(view.prefix + name, title, words, spec, data, heads, legend_of(view.looks), intervals_drawn(view))


def intervals_drawn(view: StudyView, curves: int | None = None) -> str:
    """What is drawn around so many curves, or around one for each controller."""
    if view.count < 2 or (len(view.names) if curves is None else curves) <= MOST_BANDS:
        return view.band
    return f"Lines: means of {view.count:,} replications; dots: means at the end in their 95 % intervals, side by side."


def _accounts(view: StudyView) -> pd.DataFrame | None:
    """Regrets in time, in all accounts; None where there are none."""
    columns = ["controller", "time", "account", *SPREADS]
    return None if view.no_optimum else view.study.table("regret.parquet", view.point, columns)


def _kind_chart(view: StudyView, frame: pd.DataFrame, kind: str) -> Sequence[Chart]:
    """One of the four accounts in time, where anything of it is known."""
    rows, title = frame[(frame["account"] == kind) & frame["mean"].notna()], f"{kind}: {MEANINGS[kind]}"
    y = money(view, "lost so far")
    return [_account_chart(view, rows, f"regret-{kind}", title, f"Regret, {title}", y)] if len(rows) else []


def lost_section(view: StudyView) -> Section | None:
    """Regret in time, in the account with the least noise."""
    frame = _accounts(view)
    if frame is None:
        return None
    words = ["What was lost to the best policy by wrong decisions. Further down are other accounts of the same."]
    return Section(f"{view.prefix}regret", "What was lost in time", words, _kind_chart(view, frame, "gap"))


def accounts_section(view: StudyView) -> Section | None:
    """Regret in time, in the other accounts."""
    frame = _accounts(view)
    if frame is None:
        return None
    charts = [chart for kind in MEANINGS if kind != "gap" for chart in _kind_chart(view, frame, kind)]
    others = [kind for kind in dict.fromkeys(frame["account"]) if kind not in KINDS]
    for k, kind in enumerate(others):
        rows = frame[(frame["account"] == kind) & frame["mean"].notna()]
        if len(rows):
            charts.append(_account_chart(view, rows, f"own-{k}", f"account {kind}", f"Account {kind}", str(kind)))
    words = [
        "What was lost to the best policy, in other accounts than the gap. Expected and realised regret also hold the "
        "luck of the draw: below 0 is a lucky draw, not a better policy."
    ]
    return Section(f"{view.prefix}accounts", "The same in other accounts", words, charts)


def rewards_section(view: StudyView) -> Section | None:
    """What was earned per unit of time, so far; the best beside it where it is known."""

    frame = view.study.table("rewards.parquet", view.point, ["controller", "time", "account", *SPREADS])
    if frame is None:
        return None
    kind = "expected_reward" if (frame["account"] == "expected_reward").any() else "realised_reward"
    rows = frame[(frame["account"] == kind) & (frame["time"] >= 0.01 * view.horizon)].copy()
    for column in SPREADS:
        rows[column] = rows[column] / rows["time"]
    y = f"{view.units.money or 'reward'} per {view.units.per_time}"
    chart = _account_chart(
        view, rows, "rewards", "Earned per unit of time, so far", f"{REWARD_MEANINGS[kind].capitalize()}, {y}", y
    )
    spec, legend, best = chart.spec, list(chart.legend), view.results[0]["optimal_gain"]
    if best is not None:
        spec = with_line(spec, best, y)
        legend.append(Key(f"best possible, {number(best, 6)}", REFERENCE))
    note = f"{chart.note} From a hundredth of the time on: before, all is chance."
    chart = Chart(chart.name, chart.title, chart.words, spec, chart.data, chart.headings, legend, note)
    why = [f"No regret is shown: {view.no_optimum}."] if view.no_optimum else []
    return Section(f"{view.prefix}rewards", "What was earned", why, [chart])


def causes_section(view: StudyView) -> Section | None:
    """The gap account by class and cause: in time, and at the end."""
    if view.no_optimum:
        return None
    charts = []
    for k, name in enumerate(view.detailed):
        times, samples = _causes(view, name)
        if len(samples):
            ends = {cause: samples[:, c, -1] for c, cause in enumerate(CAUSES)}
            charts.append(_cause_chart(view, k, name, ends))
            if (curves := _cause_curves(view, k, name, times, samples)) is not None:
                charts.append(curves)
    if not charts:
        return None
    words = [
        "The gap account by class and by what was wrong: a job let in that the best policy turns away, or one turned "
        "away that it lets in. Of each controller at the end, and in time; each chart has its own scale."
    ]
    return Section(f"{view.prefix}causes", "Lost on whom, and how", [*words, *view.few], charts)


def _causes(view: StudyView, name: str) -> tuple[FloatArray, FloatArray]:
    """Times, and what was lost up to them: by replication, cause, time and class."""
    times, samples = np.empty(0), []
    for table in view.study.trial_columns(view.point, name, ["time", *CAUSES]):
        times = table.column("time").to_numpy()
        by_cause = [table.column(cause).combine_chunks().flatten().to_numpy(zero_copy_only=False) for cause in CAUSES]
        samples.append(np.array(by_cause).reshape(len(CAUSES), times.size, len(view.class_names)))
    return times, np.array(samples)


def _cause_curves(view: StudyView, k: int, name: str, times: FloatArray, samples: FloatArray) -> Chart | None:
    """In time, those on whom anything was lost; the largest if they are many."""
    found: list[tuple[float, str, tuple[FloatArray, FloatArray, FloatArray]]] = []
    for i, job_class in enumerate(view.class_names):
        for c, cause in enumerate(CAUSES):
            spread = interval(samples[:, c, :, i])
            if spread[0][-1] > 0.0:
                found.append((float(spread[0][-1]), f"{job_class}, {cause.replace('_', ' ')}", spread))
    if not found:
        return None
    least = sorted((end for end, *_ in found), reverse=True)[:MOST_CURVES][-1]
    shown = [one for one in found if one[0] >= least][:MOST_CURVES]
    kept = thinned(times.size, MOST_TIMES)
    data: Columns = {"who": [], "time": [], "mean": [], "low": [], "high": []}
    for _, who, spread in shown:
        data["who"] += [who] * len(kept)
        data["time"] += rounded(times[kept])
        for column, values in zip(SPREADS, spread, strict=True):
            data[column] += rounded(values[kept])
    pairs = cause_looks(view.class_names)
    style = {who: pairs[who] for _, who, _ in shown}  # the same in every controller's chart
    y = money(view, "lost so far")
    spec = from_zero(lines(style, view.units.timed("time"), y, band=view.count > 1))
    most = max(shown, key=lambda one: one[0])
    left = f" The {len(shown)} largest of {len(found)}." if len(shown) < len(found) else ""
    words = f"Lost by {name} in time, by class and cause. The most at the end: {most[1]}, {number(most[0])}."
    heads = {"who": "class and cause", "time": view.units.timed("time"), "mean": "mean", "low": "low", "high": "high"}
    note = f"{intervals_drawn(view, len(shown))}{left} On whom nothing was lost is left out."
    return Chart(f"{view.prefix}cause-time-{k}", f"{name}, in time", words, spec, data, heads, legend_of(style), note)


CAUSE_COLOURS = dict(zip(CAUSES, (VERMILION, BLUE), strict=True))


def cause_looks(class_names: Sequence[str]) -> dict[str, Look]:
    """A colour for each cause, as of the bars, and dashes for each class."""
    return {
        f"{job_class}, {cause.replace('_', ' ')}": Look(CAUSE_COLOURS[cause], _class_dashes(i))
        for i, job_class in enumerate(class_names)
        for cause in CAUSES
    }


def _class_dashes(i: int) -> tuple[float, ...]:
    """Dashes of the i-th class: those of the palette, then the same longer."""
    turn, k = divmod(i, len(DASHES))
    return tuple(round((1 + 0.6 * turn) * part, 1) for part in DASHES[k] or ((8, 4) if turn else ()))


def _cause_data(view: StudyView, samples: dict[str, Any]) -> tuple[Columns, str]:
    """What was lost on each class by each cause, for a chart and in words."""
    data: Columns = {"group": [], "cause": [], "mean": [], "low": [], "high": []}
    said = []
    for i, job_class in enumerate(view.class_names):
        for cause in CAUSES:
            mean, low, high = (float(v[0]) for v in interval(samples[cause][:, i : i + 1]))
            words = cause.replace("_", " ")
            for column, value in zip(data, (job_class, words, *rounded([mean, low, high])), strict=True):
                data[column].append(value)
            said.append(f"{job_class} {words} {with_interval(mean, high - mean if view.count > 1 else None)}")
    return data, "; ".join(said)


def _cause_chart(view: StudyView, k: int, name: str, samples: dict[str, Any]) -> Chart:
    import altair as alt

    colours = {cause.replace("_", " "): Look(colour) for cause, colour in CAUSE_COLOURS.items()}
    data, said = _cause_data(view, samples)
    x = money(view, "lost")
    classes = names_axis("group", view.class_names)
    offset = alt.YOffset("cause:N", sort=list(colours))
    tips = tooltips(group_N="class", cause_N="", mean_Q=x)
    bars = (
        base()
        .mark_bar(strokeWidth=1.5)
        .encode(
            x=axis(x, "mean", side="x", zero=True),
            y=classes,
            yOffset=offset,
            tooltip=tips,
            strokeOpacity=alt.condition("datum.mean > 0", alt.value(1), alt.value(0)),  # no line for a bar of nothing
            **two_kinds(colours, "cause"),
        )
    )
    ends = (
        base()
        .mark_rule(strokeWidth=2)
        .encode(x=axis(x, "low", side="x", zero=True), x2="high:Q", y=classes, yOffset=offset)
    )
    layers = [bars, ends] if view.count > 1 else [bars]
    heads = {"group": "class", "cause": "cause", "mean": money(view, "mean"), "low": "low", "high": "high"}
    words = f"Lost by {name} at the end: {said}."
    note = "Bar: mean; line: its 95 % interval, from 0 on: less than nothing cannot be lost." if view.count > 1 else ""
    height = 30 + 44 * len(view.class_names)
    spec = from_zero(finished(alt.layer(*layers), height=min(height, 1200)), "x")
    return Chart(
        f"{view.prefix}cause-{k}", f"{name}, at the end", words, spec, data, heads, legend_of_two(colours), note
    )


def difference_kind(accounts: Iterable[str]) -> str:
    """The account in which controllers are compared: the gap, else the reward with the least noise that is known."""
    known = set(accounts)
    return next((kind for kind in ("gap", *KINDS, *REWARD_MEANINGS) if kind in known), "gap")


def differences_section(view: StudyView) -> Section | None:  # long: a chart and its table
    """Controllers against the first, replication by replication."""

    frame = view.study.table("differences.parquet", view.point, ["controller", "baseline", "time", "account", *SPREADS])
    if frame is None or view.count < 2 or len(view.names) < 2:
        return None
    kinds = [kind for kind in (*KINDS, *REWARD_MEANINGS) if (frame["account"] == kind).any()]
    kind = difference_kind(kinds)
    first = view.names[0]
    what = f"regret ({kind})" if kind in KINDS else kind.replace("_", " ")
    rows = frame[frame["account"] == kind]
    others = {name: look for name, look in view.looks.items() if name != first}
    title = f"{what} minus that of {first}"
    short = "regret" if kind in KINDS else "reward"
    y = money(view, f"difference in {short}")
    spec = lines(others, view.units.timed("time"), y)
    spec = with_line(spec, 0.0, y)
    ends = _last(rows)
    words = curve_words(view, ends, f"{title[0].upper()}{title[1:]}, on the same jobs,")
    heads = {"who": "controller", "time": view.units.timed("time"), "mean": "mean", "low": "low", "high": "high"}
    data = _columns(rows, who="controller", time="time", mean="mean", low="low", high="high")
    chart = Chart(
        f"{view.prefix}differences",
        title,
        words,
        spec,
        data,
        heads,
        legend_of(others),
        intervals_drawn(view, len(others)),
    )
    nothing = dict.fromkeys(SPREADS, np.nan)
    last = {k: _last(frame[frame["account"] == k]) for k in kinds}
    table = PageTable(
        money(view, f"Difference to {first} at the end"),
        ["controller", *(k.replace("_", " ") for k in kinds)],
        [[name, *(_with_half(last[k].get(name, nothing), view.count) for k in kinds)] for name in others],
    )
    about = [
        "Replication by replication on the same jobs, so that much of their luck cancels: each controller's minus the "
        "first's."
    ]
    return Section(f"{view.prefix}differences", f"Against {first}, on the same jobs", about, [chart], [table])


QUANTILES_DRAWN = {"mean": "median", "low": "q25", "high": "q75", "least": "q05", "most": "q95"}


def quantiles_section(view: StudyView) -> Section | None:
    """How much a replication may differ from another: the value at the end of each, and its quantiles in time."""
    regret = not view.no_optimum
    columns = ["controller", "time", "account", *QUANTILES_DRAWN.values()]
    frame = view.study.table("regret.parquet" if regret else "rewards.parquet", view.point, columns)
    if view.count < 2 or frame is None:
        return None
    kind = "gap" if regret else next(k for k in REWARD_MEANINGS if (frame["account"] == k).any())
    charts = [_quantiles_chart(view, frame[frame["account"] == kind].copy(), regret=regret)]
    if (strip := _strip(view, kind)) is not None:
        charts.append(strip)
    table = PageTable(
        money(view, "Lost at the end" if regret else "Earned at the end"),
        ["controller", "mean", *tail_headings(lost=regret)],
        [
            [name, view.spread(spread), *tail_cells(spread, lost=regret)]
            for name, result in zip(view.names, view.results, strict=True)
            for spread in [result["regret"]["gap"] if regret else result["reward"]]
        ],
    )
    notes = [f"{tail_words(view.count, lost=regret)}."]
    title = "From replication to replication: what bad luck costs"
    return Section(f"{view.prefix}quantiles", title, charts=charts, tables=[table], notes=notes)


def _quantiles_chart(view: StudyView, rows: pd.DataFrame, *, regret: bool) -> Chart:
    """Of what was lost so far, or else of what was earned per unit of time so far, which starts wild."""
    what = money(view, "lost so far")
    if not regret:
        rows = rows[rows["time"] >= 0.01 * view.horizon]
        what = f"{view.units.money or 'reward'} per {view.units.per_time}, so far"
        for column in QUANTILES_DRAWN.values():
            rows[column] = rows[column] / rows["time"]
    time = view.units.timed("time")
    heads = {"who": "controller", "time": time, "least": "5 %", "low": "25 %", "mean": "median", "high": "75 %"}
    said = "; ".join(
        f"{n} {number(r['median'])} (5 % to 95 %: {number(r['q05'])} to {number(r['q95'])})"
        for n, r in _last(rows).items()
    )
    return Chart(
        f"{view.prefix}quantiles",
        "Quantiles in time",
        f"Median over the replications at time {view.span}: {said}.",
        lines(view.looks, time, what, outer=True),
        _columns(rows, who="controller", time="time", **QUANTILES_DRAWN),
        {**heads, "most": "95 %"},
        legend_of(view.looks),
        "Line: median of the replications; bands: from the 25 % to the 75 % quantile, and from 5 % to 95 %."
        if len(view.names) <= MOST_BANDS
        else "Lines: medians of the replications; dots: at the end, from the 25 % to the 75 % quantile, side by side.",
    )


def _strip(view: StudyView, kind: str) -> Chart | None:  # long: an argument of the chart a line
    """Each replication's value at the end as a mark."""
    import altair as alt

    frame = view.study.table("curves.parquet", view.point, ["controller", "replication", "time", kind])
    if frame is None:
        return None
    frame = frame.groupby(["controller", "replication"], sort=False).last().reset_index()
    values = frame[kind].to_numpy(dtype=float)
    log = bool(values.size and np.all(values > 0.0) and values.max() > WIDE * values.min())
    x = money(view, "lost at the end" if kind in KINDS else "earned at the end")
    who = names_axis("who", view.names)
    colours = alt.Color(
        "who:N", scale=alt.Scale(domain=view.names, range=[k.colour for k in view.looks.values()]), legend=None
    )
    tips = tooltips(who_N="", replication_Q="replication", value_Q=x)
    marks = (
        base()
        .mark_tick(thickness=2, opacity=0.8)
        .encode(x=axis(x, "value", log=log, side="x", room=6), y=who, color=colours, tooltip=tips)
    )
    data: Columns = {
        "who": [str(n) for n in frame["controller"]],
        "replication": [int(r) for r in frame["replication"]],
        "value": rounded(values),
    }
    said = "; ".join(
        f"{name} from {number(rows.min())} to {number(rows.max())}"
        for name, rows in frame.groupby("controller", sort=False)[kind]
    )
    spec = finished(marks, height=min(30 + 46 * len(view.names), 1600))
    heads = {"who": "controller", "replication": "replication", "value": x}
    return Chart(
        f"{view.prefix}strip",
        "Each replication at the end",
        f"At the end, by replication: {said}.",
        spec,
        data,
        heads,
        note="A mark a replication.",
    )
