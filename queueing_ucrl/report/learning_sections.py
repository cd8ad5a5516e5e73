"""What a study's page says of learning: what was believed, what was done about it, what theory promises.

All of it is of the first replication, episode by episode; the accounts of the other sections are of all replications.

One file, though a long one: a function for each section, one after the other, as on the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from queueing_ucrl.model.bounds import policy_iteration_bound
from queueing_ucrl.report.charts import (
    BAND,
    REFERENCE,
    Chart,
    Columns,
    Key,
    axis,
    base,
    finished,
    legend_of,
    legend_of_two,
    lines,
    names_axis,
    rounded,
    states_axis,
    thinned,
    tooltips,
    two_kinds,
    with_line,
)
from queueing_ucrl.report.numbers import NOTHING, number
from queueing_ucrl.report.page import PageTable, Section, Stepper
from queueing_ucrl.report.palette import BLUE, DOTS, GREY, VERMILION, Look
from queueing_ucrl.report.state_beliefs import state_beliefs
from queueing_ucrl.report.study_view import StudyView, finite
from queueing_ucrl.report.true_rates import truth_words, with_truth

if TYPE_CHECKING:
    import pandas as pd

MOST_EPISODES = 400  # of a controller in a chart
MOST_STEPS = 300  # of a slider
WHO_IS_LET_IN = "Who is let in, by the number of jobs"  # a chart's title
FIRST = "Of the first replication."
IN_FORCE, BEST = "in force", "best possible"


@dataclass(frozen=True)
class Stretch:
    """Consecutive episodes with the same policy."""

    first: int
    last: int
    start: float
    end: float
    levels: tuple[int, ...]
    trunk: bool

    def words(self, classes: Sequence[str], time: str) -> str:
        """Who gets in."""
        which = f"Episode {self.first}" if self.first == self.last else f"Episodes {self.first} to {self.last}"
        until = f"{number(self.start)} to {number(self.end)} {time}".rstrip()
        said = ", ".join(f"{name} {_below(level)}" for name, level in zip(classes, self.levels, strict=True))
        more = "" if self.trunk else " In some states beyond these too jobs are let in."
        return f"{which}, time {until}: {said}.{more}"


def _below(level: int) -> str:
    return f"gets in below {level:,} jobs" if level else "does not get in when it is empty"


def stretches(view: StudyView, name: str) -> list[Stretch]:
    """The policies of a controller one after the other; none of one that decides each arrival by itself."""
    frame = view.episodes(name)
    because = view.study.manifest.get("engines", {}).get(name, {}).get("because", "")
    if frame is None or "control_levels" not in frame or "decides" in str(because):
        return []
    found: list[Stretch] = []
    columns = (frame[c].tolist() for c in ("episode", "start", "end", "control_levels", "trunk_reservation"))
    for episode, start, end, levels, trunk in zip(*columns, strict=True):
        if levels is None or len(levels) != len(view.class_names):
            return []
        now = Stretch(int(episode), int(episode), float(start), float(end), tuple(map(int, levels)), bool(trunk))
        if found and found[-1].levels == now.levels and found[-1].trunk == now.trunk:
            found[-1] = Stretch(found[-1].first, now.last, found[-1].start, now.end, now.levels, now.trunk)
        else:
            found.append(now)
    return found


# --- beliefs ---------------------------------------------------------------------------------------------------------


def beliefs_section(view: StudyView) -> Section | None:
    """Interval, estimate, what was planned for and the truth, episode by episode."""
    charts = [chart for k, name in enumerate(view.detailed) for chart in _belief_charts(view, k, name)]
    if not charts:
        return None
    words = [
        "What the controllers believed the arrival rates to be, at each review. Where beliefs are optimistic they plan "
        "for more than they expect, and learn from being wrong."
    ]
    if any(rate.balks for rate in view.true_rates):
        words.append(
            "Who asks depends here on the number of jobs in the system: no one rate is true, and a learner that "
            "believes in one estimates a mean over the states that its own decisions lead to."
        )
    return Section(f"{view.prefix}beliefs", "What was believed", [*words, *view.few], charts)


def _belief_charts(view: StudyView, k: int, name: str) -> Iterator[Chart]:
    import pandas as pd

    frame = view.episodes(name)
    if frame is None:
        return
    frame = frame[frame["start"] > 0.0]
    makers = (("rate_estimate", _total_belief), ("rate_estimates", _class_beliefs))
    if (by_state := state_beliefs(view, f"{view.prefix}belief-{k}", name, frame)) is not None:
        yield by_state
    for column, make in makers:
        if column not in frame:
            continue
        known = frame[frame[column].notna()].reset_index(drop=True)
        if len(known) > 1:
            shown = known.iloc[thinned(len(known), MOST_EPISODES)]
            until = shown.iloc[-1:].assign(start=shown["end"].iloc[-1])  # what was believed last holds to the end
            left = f" {len(shown)} of {len(known):,} reviews are drawn." if len(shown) < len(known) else ""
            yield make(view, f"{view.prefix}belief-{k}", name, pd.concat([shown, until]), f"{FIRST}{left}")


def _total_belief(view: StudyView, key: str, name: str, frame: pd.DataFrame, note: str) -> Chart:
    """Of all classes together: the interval, its estimate, and its upper end, which is planned for."""
    looks = {"estimate": Look(BLUE), "optimistic value": Look(VERMILION, (5, 2))}
    data: Columns = {"who": [], "time": [], "mean": [], "low": [], "high": []}
    for who, column in (("estimate", "rate_estimate"), ("optimistic value", "optimistic_rate")):
        data["who"] += [who] * len(frame)
        data["time"] += rounded(frame["start"])
        data["mean"] += rounded(frame[column])
        data["low"] += rounded(frame["rate_low"]) if who == "estimate" else [None] * len(frame)
        data["high"] += rounded(frame["optimistic_rate"]) if who == "estimate" else [None] * len(frame)
    y = f"jobs of all classes per {view.units.per_time}"
    spec = lines(looks, view.units.timed("time"), y, log_x=_log_time(view), step=True)
    spec, true = with_truth(spec, [(view.true_rates, "")], y, frame["start"].iloc[0], frame["end"].iloc[-1])
    last = frame.iloc[-1]
    words = (
        f"{name} at its last review: between {number(last['rate_low'])} and {number(last['optimistic_rate'])} {y}, "
        f"estimate {number(last['rate_estimate'])}; {truth_words(view.true_rates)}."
    )
    keys = [*legend_of(looks), *true]
    keys.insert(0, Key("what is plausible", Look(BLUE), "pale"))
    heads = {"who": "", "time": view.units.timed("time"), "mean": "value", "low": "interval from", "high": "to"}
    return Chart(key, name, words, spec, data, heads, keys, f"Band: the confidence interval. {note}")


def _class_beliefs(view: StudyView, key: str, name: str, frame: pd.DataFrame, note: str) -> Chart:
    """Of each class: the estimate, what was planned for, the upper limit where there is one."""
    limited = "rate_limits" in frame and bool(frame["rate_limits"].notna().all())
    planned = [i for i in range(len(view.class_names)) if _differ(frame, i)]
    data: Columns = {"who": [], "time": [], "mean": [], "planned": [], "high": []}
    for i, job_class in enumerate(view.class_names):
        data["who"] += [job_class] * len(frame)
        data["time"] += rounded(frame["start"])
        for column, source in (("mean", "rate_estimates"), ("planned", "planned_rates"), ("high", "rate_limits")):
            left_out = source not in frame or (column == "planned" and i not in planned)
            values = [None] * len(frame) if left_out else frame[source]
            data[column] += rounded([None if v is None or not hasattr(v, "__len__") else v[i] for v in values])
    y = f"jobs per {view.units.per_time}"
    spec = lines(view.class_looks, view.units.timed("time"), y, band=False, log_x=_log_time(view), step=True)
    spec = _with_planned(view, spec, y, limited=limited, planned=bool(planned))
    groups = [([rate], view.class_looks[c].colour) for c, rate in zip(view.class_names, view.true_rates, strict=True)]
    spec, true = with_truth(spec, groups, y, frame["start"].iloc[0], frame["end"].iloc[-1])
    said = []
    for i, (job_class, rate) in enumerate(zip(view.class_names, view.true_rates, strict=True)):
        said.append(f"{job_class} {number(frame['rate_estimates'].iloc[-1][i])} ({truth_words([rate])})")
    keys = legend_of(view.class_looks)
    keys += [Key("planned for", Look("currentColor"), "thin")] if planned else []
    keys += [Key("up to the upper limit", Look("currentColor"), "pale")] if limited else []
    keys += true
    heads = {"who": "class", "time": view.units.timed("time"), "mean": "estimate"}
    heads |= {"planned": "planned for"} if planned else {}
    heads |= {"high": "upper limit"} if limited else {}
    words = f"{name} at its last review, {y}: {', '.join(said)}."
    return Chart(key, name, words, spec, data, heads, keys, note)


def _differ(frame: pd.DataFrame, i: int) -> bool:
    """Whether what was planned for was ever another rate of the i-th class than the estimate."""
    if "planned_rates" not in frame:
        return False
    pairs = zip(frame["planned_rates"], frame["rate_estimates"], strict=True)
    known = ((a[i], b[i]) for a, b in pairs if hasattr(a, "__len__") and hasattr(b, "__len__"))
    return any(math.isfinite(planned) and planned != estimate for planned, estimate in known)


def _with_planned(view: StudyView, spec: dict[str, Any], y: str, *, limited: bool, planned: bool) -> dict[str, Any]:
    """The curves of what was planned for, thin, and the range up to the limits."""
    import altair as alt

    colours = alt.Scale(domain=view.class_names, range=[look.colour for look in view.class_looks.values()])
    shared = {
        "x": axis(view.units.timed("time"), "time", log=_log_time(view), side="x"),
        "color": alt.Color("who:N", scale=colours, legend=None),
    }
    layers = []
    if limited:
        area = base().mark_area(opacity=BAND, interpolate="step-after")
        layers.append(area.encode(**shared, y=axis(y, "mean"), y2="high:Q"))
    if planned:
        line = base().mark_line(strokeWidth=0.9, interpolate="step-after")
        layers.append(line.encode(**shared, y=axis(y, "planned")))
    return {**spec, "layer": [*spec["layer"], *(_bare(layer) for layer in layers)]}


def _bare(view: Any) -> dict[str, Any]:
    """A layer for a chart that has its data."""
    found: dict[str, Any] = view.to_dict()
    return {key: found[key] for key in ("data", "mark", "encoding", "transform") if key in found}


# --- policies --------------------------------------------------------------------------------------------------------


def levels_section(view: StudyView) -> Section | None:
    """Below how many jobs each class got in, in time; and what the policies are truly worth."""
    charts = []
    for k, name in enumerate(view.detailed):
        found = stretches(view, name)
        if len(found) > 1:
            charts.append(_levels_chart(view, k, name, found))
    if (worth := _worth_chart(view)) is not None:
        charts.append(worth)
    if not charts:
        return None
    words = [
        "A class gets in while there are fewer jobs in the system than its control level. Controllers that never "
        "change theirs are in the map above."
    ]
    return Section(f"{view.prefix}levels", "What was done: control levels in time", [*words, *view.few], charts)


def _log_time(view: StudyView) -> bool:
    """Whether time is on a log scale: not where rates repeat, whose periods would shrink to blocks."""
    drifts = view.queue is not None and view.queue.drifts
    return not drifts and all(pattern is None for pattern in view.patterns)


def _from(view: StudyView, start: float, first_end: float) -> float:
    """Where a curve that begins at 0 begins, on a log scale too."""
    return start if start > 0.0 or not _log_time(view) else 0.1 * first_end


def _levels_chart(view: StudyView, k: int, name: str, found: Sequence[Stretch]) -> Chart:
    shown = [found[j] for j in thinned(len(found), MOST_EPISODES)]
    data: Columns = {"who": [], "time": [], "mean": []}
    for i, job_class in enumerate(view.class_names):
        times = [_from(view, s.start, found[0].end) for s in shown] + [found[-1].end]
        data["who"] += [job_class] * len(times)
        data["time"] += rounded(times)
        data["mean"] += [s.levels[i] for s in shown] + [found[-1].levels[i]]
    y = "control level (jobs in the system)"
    spec = lines(view.class_looks, view.units.timed("time"), y, band=False, log_x=_log_time(view), zero=True, step=True)
    keys = legend_of(view.class_looks)
    if view.best is not None:
        for job_class, level in zip(view.class_names, view.best.policy.control_levels, strict=True):
            spec = with_line(spec, level, y, colour=view.class_looks[job_class].colour)
        keys.append(Key("of the best policy", REFERENCE))
    left = f" {len(shown)} of {len(found):,} changes are drawn." if len(shown) < len(found) else ""
    words = f"{name}: {len(found) - 1:,} changes of policy. Last: {found[-1].words(view.class_names, view.units.time)}"
    heads = {"who": "class", "time": view.units.timed("from time"), "mean": y}
    return Chart(f"{view.prefix}levels-{k}", name, words, spec, data, heads, keys, f"{FIRST}{left}")


def _worth_chart(view: StudyView) -> Chart | None:
    """The true gain of the policy in force, against the best."""
    best = view.results[0]["optimal_gain"]
    if best is None:
        return None
    data: Columns = {"who": [], "time": [], "mean": []}
    said = []
    frames = {name: view.episodes(name) for name in view.detailed}
    known = {
        name: frame
        for name, frame in frames.items()
        if frame is not None and "gain" in frame and frame["gain"].notna().all()
    }
    first_end = min((float(frame["end"].iloc[0]) for frame in known.values()), default=0.0)
    for name, frame in known.items():
        shown = frame.iloc[thinned(len(frame), MOST_EPISODES)]
        times = [_from(view, t, first_end) for t in shown["start"]] + [float(frame["end"].iloc[-1])]
        data["who"] += [name] * len(times)
        data["time"] += rounded(times)
        data["mean"] += rounded([*shown["gain"], frame["gain"].iloc[-1]])
        said.append(f"{name} {number(float(frame['gain'].iloc[-1]), 6)}")
    if not said:
        return None
    y = f"{view.units.money or 'reward'} per {view.units.per_time}"
    looks = {name: look for name, look in view.looks.items() if name in data["who"]}
    spec = with_line(lines(looks, view.units.timed("time"), y, band=False, log_x=_log_time(view), step=True), best, y)
    words = f"What the policy in force is truly worth, {y}. At the end: {'; '.join(said)}; the best {number(best, 6)}."
    keys = [*legend_of(looks), Key(f"best possible, {number(best, 6)}", REFERENCE)]
    heads = {"who": "controller", "time": view.units.timed("from time"), "mean": y}
    title = "What the policy in force is worth in the long run"
    return Chart(f"{view.prefix}worth", title, words, spec, data, heads, keys, FIRST)


def policy_section(view: StudyView) -> Section | None:
    """Who is let in by the number of jobs there, episode by episode, the best policy beside it."""
    steps: list[dict[str, Any]] = []
    data: Columns = {"step": [], "group": [], "which": [], "first": [], "last": []}

    def add(step: int, group: str, which: str, first: int, last: int) -> None:
        for column, value in zip(data, (step, group, which, first, last), strict=True):
            data[column].append(value)

    choices: list[str] = []
    notes: list[str] = []
    for name in view.detailed:
        found = stretches(view, name)
        if not found:
            notes.append(f"{name} has no table of whom it lets in.")
            continue
        shown = thinned(len(found), MOST_STEPS)
        if len(shown) < len(found):
            notes.append(f"{name}: {len(shown)} of {len(found):,} policies are shown.")
        for j in shown:
            words = found[j].words(view.class_names, view.units.time)
            for job_class, level in zip(view.class_names, found[j].levels, strict=True):
                add(len(steps), job_class, IN_FORCE, 0, level)
            steps.append({"who": len(choices), "step": len(steps), "words": words})
        choices.append(name)
    if not choices:
        return None
    if view.best is not None:
        for i, job_class in enumerate(view.class_names):
            for first, last in view.best.policy.stretches(i):
                add(-1, job_class, BEST, first, last)
    chart = _policy_chart(view, data)
    about = ["A class is let in while the number of jobs in the system is in its bar. Move the slider through the run."]
    stepper = Stepper("Episode", chart, steps, choices)
    return Section(f"{view.prefix}policy", "Who is let in", about, stepper=stepper, notes=[FIRST, *notes, *view.few])


def _policy_chart(view: StudyView, data: Columns) -> Chart:
    import altair as alt

    both = {IN_FORCE: Look(BLUE)} | ({BEST: Look(GREY)} if view.best is not None else {})
    room = int(view.about["queue"]["capacity"])
    x = states_axis("first", room)
    bars = (
        base()
        .mark_bar(strokeWidth=1.5)
        .encode(
            x=x,
            x2="last:Q",
            y=names_axis("group", view.class_names),
            yOffset=alt.YOffset("which:N", sort=list(both), scale=alt.Scale(domain=list(both))),
            tooltip=tooltips(group_N="class", which_N="", first_Q="from", last_Q="below"),
            **two_kinds(both, "which"),
        )
        .transform_filter("datum.step < 0 || datum.step == step")
        .add_params(alt.param(name="step", value=0))
    )
    spec = finished(bars, height=min(1600, 30 + (44 if len(both) > 1 else 30) * len(view.class_names)))
    said = "Who is let in, by the number of jobs in the system; the text above the chart says it for each step."
    if view.best is not None:
        levels = zip(view.class_names, view.best.policy.control_levels, strict=True)
        said += f" The best policy: {', '.join(f'{name} {_below(level)}' for name, level in levels)}."
    heads = {
        "step": "step (best: -1)",
        "group": "class",
        "which": "policy",
        "first": "let in from",
        "last": "and below",
    }
    return Chart(f"{view.prefix}policy-map", WHO_IS_LET_IN, said, spec, data, heads, legend_of_two(both))


# --- theory and work -------------------------------------------------------------------------------------------------


def bound_section(view: StudyView) -> Section | None:  # long: the curves, and what is said of each
    """Thm 5.2's bound beside what was measured, where it is defined."""
    queue, best = view.queue, view.best
    frame = None if queue is None or best is None else view.study.table("regret.parquet", view.point)
    if frame is None or queue is None or best is None:
        return None
    data: Columns = {"who": [], "time": [], "mean": []}
    looks, said, notes = {}, [], []
    for choice in view.about["controllers"]:
        options, name = choice["options"], choice["label"]
        if choice["name"] != "ucrl-ac" or options.get("solver", "pi-b") not in ("pi", "pi-b"):
            continue
        try:
            known = tuple(map(float, options["arrival_rate_bounds"])), float(options["first_episode"])
            bound = policy_iteration_bound(queue, best.gain, known[0], known[1])  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError) as error:
            notes.append(f"{name}: no bound ({error}).")
            continue
        rows = frame[(frame["controller"] == name) & (frame["account"] == "gap") & (frame["time"] >= known[1])]
        rows = rows[rows["mean"] > 0.0]
        if not len(rows):
            continue
        promised = bound(rows["time"].to_numpy())
        for who, values in ((name, rows["mean"]), (f"bound for {name}", promised)):
            data["who"] += [who] * len(rows)
            data["time"] += rounded(rows["time"])
            data["mean"] += rounded(values)
        looks[name] = view.looks[name]
        looks[f"bound for {name}"] = Look(view.looks[name].colour, DOTS)
        lost, most = float(rows["mean"].iloc[-1]), float(promised[-1])
        said.append(f"{name} lost {number(lost)} up to time {view.span}; theory promises at most {number(most)}")
    if not said:
        return None
    y = view.units.paid("lost so far")
    spec = lines(looks, view.units.timed("time"), y, band=False, log_x=_log_time(view), log_y=True)
    heads = {"who": "curve", "time": view.units.timed("time"), "mean": y}
    chart = Chart(
        f"{view.prefix}bound", "Bound and measured", f"{'. '.join(said)}.", spec, data, heads, legend_of(looks)
    )
    words = [f"{'. '.join(said)}: the theorem (Thm 5.2 of the paper) holds for every queue, and so is far off for one."]
    return Section(f"{view.prefix}bound", "What theory promises, and what was measured", words, [chart], notes=notes)


def work_section(view: StudyView) -> Section | None:
    """How often policies were computed anew, in how many steps of the solver, and how often that changed anything."""
    steps = "solver_iterations"
    frame = view.study.table("episodes.parquet", view.point, ["controller", "replication"], optional=[steps])
    if frame is None or not len(frame):
        return None
    rows = []
    for name in view.names:
        mine = frame[frame["controller"] == name]
        trials = max(1, mine["replication"].nunique())
        reviews = len(mine) / trials - 1.0
        solves = mine[steps].dropna() if steps in mine else mine.iloc[:0, 0]
        found = stretches(view, name) if name in view.detailed else []
        work = [NOTHING] * 4
        if len(solves):
            of_each = [len(solves) / trials, float(solves.sum()) / trials, float(solves.mean())]
            work = [*(number(value, 3) for value in of_each), f"{int(solves.max()):,}"]
        changes = [f"{len(found) - 1:,}", number(found[-1].start)] if found else [NOTHING, NOTHING]
        rows.append([name, number(reviews) if finite(reviews) else NOTHING, *work, *changes])
    asked = ["reviews a replication", "policies computed", "iterations for them", "iterations a policy", "at most"]
    headings = ["controller", *asked, "changes of policy", view.units.timed("last change at")]
    table = PageTable("Policies that were computed", headings, rows)
    words = ["At a review a controller asks the solver for the best policy of the queue that it believes in."]
    notes = [
        "Iterations are those of the solver, from the last policy on; of all replications. Changes are those of the "
        "first. Controllers without iterations ask for no policy, or compute it themselves. A study keeps no seconds, "
        "which differ from machine to machine: queueing-ucrl solve tells them of a queue."
    ]
    return Section(f"{view.prefix}work", "The solver's work", words, tables=[table], notes=notes)
