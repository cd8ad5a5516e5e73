"""The page of a search by `optimise`: what was searched, the surface, what was dropped when, and the best found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from queueing_ucrl.accounts.steady_state import Estimate
from queueing_ucrl.experiments.optimise import SURFACE, BestTable, Slice
from queueing_ucrl.messages import shortened
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.report.best_table import SPACES, best_words, plan_words, warm_up_words
from queueing_ucrl.report.charts import (
    REFERENCE,
    Chart,
    Columns,
    Key,
    base,
    finished,
    legend_of_two,
    names_axis,
    rounded,
    states_axis,
    thinned,
    tooltips,
    two_kinds,
)
from queueing_ucrl.report.learning_sections import WHO_IS_LET_IN
from queueing_ucrl.report.measured_chart import Axes, Curve, Points, measured_chart
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.report.page import Page, PageTable, Section, page_html
from queueing_ucrl.report.palette import BLUE, GREY, ORANGE, Look
from queueing_ucrl.report.progress import in_words
from queueing_ucrl.units import Units

MOST_TRIED = 400  # tables that are drawn
MOST_RACES = 60  # in the table
FLAT = 3.0  # how many times the reach of the levels near the best may be drawn
FEWEST_PAIRS = 6  # of levels that make a map
LONGEST_AXIS = 24  # characters of a name
PALEST = "#d6e6f2"
FOUND, PLAN = "best found", "M/M plan"
ZERO = REFERENCE


def optimise_html(title: str, found: BestTable, units: Units, command: Sequence[str] = ()) -> bytes:
    """The page as one file."""
    return page_html(optimise_page(title, found, units, command)).encode()


def optimise_page(title: str, found: BestTable, units: Units, command: Sequence[str] = ()) -> Page:
    """What is on the page."""
    searched, queue = found.searched, found.system
    classes = ", ".join(queue.class_names)
    sentence = (
        f"The best admission table found by simulation for {title}: room for {queue.capacity:,} jobs, classes "
        f"{classes}. Searched were {SPACES[searched.space]}."
    )
    sections = [
        best_section(found, units),
        policy_section(found),
        surface_section(found, units),
        search_section(found, units),
        races_section(found),
        again_section(found, units, command),
    ]
    meaning = [
        f"The best table found earns {_spread(found.gain)}{_money(units)} per {units.per_time}, by "
        f"{found.gain.count:,} replications that the search has not seen; the M/M plan {_spread(found.plan_gain)}.",
        *best_words(found),
        *plan_words(found),
        "It is the best table found, not the optimum: nothing is said of tables that were not tried.",
    ]
    return Page(f"{title}: the best table found", sentence, meaning, [s for s in sections if s is not None])


def _spread(value: Estimate) -> str:
    return with_interval(value.mean, value.half_width)


def _money(units: Units) -> str:
    return f" {units.money}" if units.money else ""


def _per(units: Units) -> str:
    return f"{units.money or 'reward'} per {units.per_time}"


def best_section(found: BestTable, units: Units) -> Section:
    """The winner, the plan, and by how much they differ."""
    rows = [
        [FOUND, NOTHING, _spread(found.gain), _levels(found.policy)],
        [PLAN, number(found.promised, 6), _spread(found.plan_gain), _levels(found.plan)],
        [f"{FOUND} minus {PLAN}", NOTHING, _spread(found.improvement), NOTHING],
    ]
    of = f"levels ({', '.join(found.system.class_names)})"
    table = PageTable(f"What they earn, {_per(units)}", ["table", "promised", "earns", of], rows)
    notes = [
        f"Means of {found.gain.count:,} replications that the search has not seen, ± half of the 95 % interval; all "
        "on the same jobs. What is promised is the gain of the plan in the M/M/c/S queue of the same means."
    ]
    return Section("best", "The best table found", tables=[table], notes=notes)


def _levels(policy: Policy) -> str:
    said = ", ".join(map(str, policy.control_levels))
    return said if policy.is_trunk_reservation else f"{said}, and more beyond"


def policy_section(found: BestTable) -> Section:
    """Who is let in, by both tables."""
    import altair as alt

    both = {FOUND: Look(BLUE), PLAN: Look(GREY)}
    names = list(found.system.class_names)
    data: Columns = {"group": [], "which": [], "first": [], "last": []}
    for which, policy in ((FOUND, found.policy), (PLAN, found.plan)):
        for i, name in enumerate(names):
            for first, last in policy.stretches(i):
                for column, value in zip(data, (name, which, first, last), strict=True):
                    data[column].append(value)
    x = states_axis("first", found.system.capacity)
    bars = base().mark_bar(strokeWidth=1.5)
    drawn = bars.encode(
        x=x,
        x2="last:Q",
        y=names_axis("group", names),
        yOffset=alt.YOffset("which:N", sort=list(both), scale=alt.Scale(domain=list(both))),
        tooltip=tooltips(group_N="class", which_N="", first_Q="from", last_Q="below"),
        **two_kinds(both, "which"),
    )
    said = []
    for which, policy in ((FOUND, found.policy), (PLAN, found.plan)):
        pairs = zip(names, policy.control_levels, strict=True)
        said.append(f"{which}: {', '.join(f'{name} gets in below {level:,} jobs' for name, level in pairs)}")
    heads = {"group": "class", "which": "table", "first": "let in from", "last": "and below"}
    spec = finished(drawn, height=min(1600, 30 + 44 * len(names)))
    words = f"{'. '.join(said)}."
    chart = Chart("policy", WHO_IS_LET_IN, words, spec, data, heads, legend_of_two(both))
    about = ["A class is let in while the number of jobs in the system is in its bar."]
    return Section("policy-map", "Who is let in", about, [chart], wide=True)


def surface_section(found: BestTable, units: Units) -> Section | None:
    """What each class's level is worth, the others as they are in the best table."""
    if not found.slices:
        return None
    charts = [_slice_chart(k, one, found, units) for k, one in enumerate(found.slices)]
    charts += _map_chart(found, units)
    words = [
        "What is earned if one class gets in below another number of jobs, others as in the best table found, minus "
        f"what that earns, on the same jobs ({SURFACE} replications of the search). Above 0 by chance only, or a table "
        "that is better by less than the search looks for."
    ]
    return Section("surface", "The surface: what a level is worth", words, charts)


def _slice_chart(k: int, one: Slice, found: BestTable, units: Units) -> Chart:
    levels = [float(level) for level in one.levels]
    means = [e.mean for e in one.less]
    ends = ([e.low for e in one.less], [e.high for e in one.less])
    best = found.policy.control_levels[k]
    dots = Points(levels, means, *ends)
    straight = {"best found": Curve([levels[0], levels[-1]], [0.0, 0.0], ZERO)}
    worst = min(range(len(means)), key=lambda j: means[j])
    words = (
        f"{one.job_class} gets in below {best:,} jobs in the best table found; with a level of {one.levels[worst]:,} "
        f"{with_interval(-means[worst], one.less[worst].half_width)} {_per(units)} is lost."
    )
    axes = Axes(f"control level (best found: {best:,})", f"{_per(units)}, minus that of the best found", zero=False)
    note = "Dots: mean; bars: 95 % interval of the difference on the same jobs."
    chart = measured_chart(f"slice-{k}", one.job_class, words, axes, dots, straight, note)
    return _near_the_best(chart, one, best)


def _near_the_best(chart: Chart, one: Slice, best: int) -> Chart:
    """The axis is that of the half of the levels next to the best, where the others would flatten it."""
    order = sorted(range(len(one.levels)), key=lambda j: abs(one.levels[j] - best))
    near = sorted(order[: max(3, (len(order) + 1) // 2)])
    low, high = min(one.less[j].low for j in near), max(0.0, *(one.less[j].high for j in near))
    if min(e.low for e in one.less) >= FLAT * low - high or not low < high:
        return chart
    reach = rounded([low - 0.05 * (high - low), high + 0.05 * (high - low)])
    layers = []
    for layer in chart.spec["layer"]:
        mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
        up = {**layer["encoding"]["y"], "scale": {"domain": reach, "nice": False}}
        across = {**layer["encoding"]["x"]}
        across["scale"] = {**across.get("scale", {}), "padding": 8}  # so that no dot at an edge is cut
        encoding = {**layer["encoding"], "x": across, "y": up}
        layers.append({**layer, "mark": {**mark, "clip": True}, "encoding": encoding})
    below = [f"{level:,}" for level, e in zip(one.levels, one.less, strict=True) if e.mean < (reach[0] or 0.0)]
    left = f" Far below the axis, in the numbers: level {', '.join(below)}." if below else ""
    return replace(chart, spec={**chart.spec, "layer": layers}, note=f"{chart.note}{left}")


def _pair(found: BestTable) -> tuple[int, int, dict[tuple[int, int], Estimate]] | None:
    """The two classes of whose levels most pairs were tried, all others as in the best table; what these are worth."""
    best = found.policy.control_levels
    levels = [(t.policy.control_levels, t.less) for t in found.tried if t.policy.is_trunk_reservation]
    most = None
    for i, j in combinations(range(len(best)), 2):
        mine = {
            (at[i], at[j]): less
            for at, less in levels
            if all(a == b for k, (a, b) in enumerate(zip(at, best, strict=True)) if k not in (i, j))
        }
        if len(mine) >= FEWEST_PAIRS and (most is None or len(mine) > len(most[2])):
            most = (i, j, mine)
    return most


def _map_chart(found: BestTable, units: Units) -> list[Chart]:
    """Two levels at once: a square for each pair that was tried, the darker the better."""
    import altair as alt

    pair = _pair(found) if found.policy.is_trunk_reservation else None
    if pair is None:
        return []
    i, j, worth = pair
    names, at = found.system.class_names, (found.policy.control_levels[pair[0]], found.policy.control_levels[pair[1]])
    pairs = sorted(worth)
    means = [worth[p].mean for p in pairs]
    palest = min(sorted(means, reverse=True)[len(means) // 2], -1e-12)
    data: Columns = {"across": [p[0] for p in pairs], "up": [p[1] for p in pairs], "less": rounded(means)}
    data["best"] = [int(p == at) for p in pairs]
    x, y = (f"control level of {shortened(names[k], LONGEST_AXIS)}" for k in (i, j))
    place = {
        "x": alt.X("across:O", title=x, axis=alt.Axis(labelAngle=0)),
        "y": alt.Y("up:O", title=y, sort="descending"),
    }
    tint = alt.Color(
        "less:Q", legend=None, scale=alt.Scale(domain=rounded([palest, 0.0]), range=[PALEST, BLUE], clamp=True)
    )
    tips = tooltips(across_Q=x, up_Q=y, less_Q="minus the best found")
    dot = base().transform_filter("datum.best == 1").mark_point(filled=True, size=90, opacity=1, color=ORANGE)
    layers = [base().mark_rect().encode(**place, color=tint, tooltip=tips), dot.encode(**place)]
    keys = [
        Key("as much as the best found", Look(BLUE), "band"),
        Key(f"{number(-palest, 3)} less, or worse", Look(PALEST), "band"),
        Key("the best found", Look(ORANGE), "dot"),
    ]
    words = (
        f"{len(pairs):,} pairs of levels of {names[i]} and {names[j]} were tried, all others as in the best table "
        f"found ({at[0]:,} and {at[1]:,}); half of them earn at least {number(-palest, 3)} {_per(units)} less."
    )
    heads = {"across": x, "up": y, "less": f"{_per(units)}, minus that of the best found"}
    note = "On the jobs that the search has seen. Where nothing is drawn nothing was tried."
    title, spec = "Two levels at once", finished(alt.layer(*layers))
    return [Chart("levels-map", title, words, spec, data, heads, keys, note)]


def search_section(found: BestTable, units: Units) -> Section | None:
    """Every table that was run, in the order in which the search came to it."""
    tried, searched = found.tried, found.searched
    if not tried:
        return None
    kept = thinned(len(tried), MOST_TRIED)
    some = [tried[j] for j in kept]
    dots = Points(
        [j + 1.0 for j in kept], [t.less.mean for t in some], [t.less.low for t in some], [t.less.high for t in some]
    )
    straight = {"best found": Curve([1.0, float(len(tried))], [0.0, 0.0], ZERO)}
    closest = sorted((t for t in tried if t.policy != found.policy), key=lambda t: -t.less.mean)[:12]
    rows = [[in_words(t.policy), _spread(t.less), f"{t.less.count:,}"] for t in closest]
    table = PageTable(
        "The closest of the others, in the search", ["table", f"{_per(units)}, minus the best", "replications"], rows
    )
    words = "One table was run."
    if closest:
        near = f"{in_words(closest[0].policy)}, {_spread(closest[0].less)}"
        words = f"{len(tried):,} tables; the closest to the best found: {near}."
    left = f" {len(kept)} of {len(tried):,} tables are drawn." if len(kept) < len(tried) else ""
    note = (
        "On the jobs that the search has seen, which chose the best: these differences flatter it. Bars: 95 % "
        f"interval; a table that was dropped soon has few replications.{left}"
    )
    axes = Axes("tables in the order of the search", f"{_per(units)}, minus that of the best found", zero=False)
    chart = measured_chart("tried", "Every table that was run", words, axes, dots, straight, note)
    length = f"{number(searched.horizon, 4)} {units.time}".rstrip()
    about = [
        f"{searched.tables:,} tables from {searched.start} on, in {searched.runs:,} runs of {searched.replications:,} "
        f"replications up to time {length}{warm_up_words(searched)}. Each race drops the "
        f"best of its tables with a probability of {percent(1.0 - searched.confidence, 3)} at most; differences below "
        f"{percent(searched.tolerance, 2)} of the gain were not looked for."
    ]
    return Section("search", "What was searched", about, [chart], [table] if rows else [], wide=True)


def races_section(found: BestTable) -> Section | None:
    """What was eliminated when."""
    if not found.races:
        return None
    rows = []
    for k, one in enumerate(found.races[:MOST_RACES]):
        by_block: dict[int, int] = {}
        for replications in one.dropped.values():
            by_block[replications] = by_block.get(replications, 0) + 1
        dropped = "; ".join(f"{count} after {replications}" for replications, count in sorted(by_block.items()))
        moved = "stays" if one.winner == one.tables[0] else "moves on"
        rows.append(
            [
                f"{k + 1}",
                in_words(one.tables[0]),
                f"{len(one.tables) - 1:,}",
                dropped or "none",
                f"{len(one.tables) - len(one.dropped):,}",
                f"{one.replications:,}",
                f"{moved}: {in_words(one.winner)}",
            ]
        )
    headings = ["race", "from", "others", "dropped (replications)", "left", "replications", "then"]
    notes = [f"The first {MOST_RACES} of {len(found.races):,} races."] if len(found.races) > MOST_RACES else []
    notes.append(
        "Dropped: worse than the leader beyond doubt. Those left at the end cannot be told from the leader, or are not "
        "better by as much as is looked for; the leader goes on."
    )
    return Section("races", "What was dropped when", tables=[PageTable("Races", headings, rows, names=2)], notes=notes)


def again_section(found: BestTable, units: Units, command: Sequence[str]) -> Section:
    """How to search again, and how to try the table."""
    import json
    import shlex

    code = [shlex.join(command)] if command else []
    words = [] if command else ["It was searched from Python, by qu.optimise."]
    words.append("The same version, scenario and seed give the same table and numbers on any machine.")
    data = {key: value for key, value in found.plain_data().items() if key != "seconds"}
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)
    return Section("again", "How to run it again", words, code=code, data=text, data_title="The result as JSON")
