"""What a study's page shows of waits and, where event logs were written, of the queue itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import ArrivalPattern
from queueing_ucrl.model.system import Queue
from queueing_ucrl.report.animation import animation, frames_of, some_events_later, stretch_of
from queueing_ucrl.report.charts import (
    INK,
    REFERENCE,
    Chart,
    Columns,
    Key,
    axis,
    base,
    dash_scale,
    finished,
    legend_of,
    legend_of_shapes,
    lines,
    rounded,
    shape_scale,
    thinned,
    tooltips,
)
from queueing_ucrl.report.learning_sections import FIRST, stretches
from queueing_ucrl.report.log_scan import FIRST_CHANGES, PARTS, LogScan
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.page import Section
from queueing_ucrl.report.palette import DOTS, Look
from queueing_ucrl.report.study_view import StudyView

SCANNED = 3  # controllers whose logs are read
WATCHED = 400  # events of the moving picture
LEAD = 0.05  # of its time before the first job comes
LAW_POINTS = 120
MOST_WAITS = 300  # points of a curve of waits
SAMPLES = 40  # of a pattern in a part of its period
SHARES = {"wait_50": 0.5, "wait_80": 0.2, "wait_95": 0.05, "wait_99": 0.01}  # what waits longer than the quantile


@dataclass(frozen=True)
class Logs:
    """The logs that are read, of the first replication."""

    scans: dict[str, LogScan]  # by controller

    @classmethod
    def of(cls, view: StudyView) -> Logs:
        """One pass through each."""
        found = {}
        periods = [math.inf if pattern is None else pattern.period for pattern in view.patterns]
        for name in view.names[:SCANNED]:
            path = view.study.log(view.point, name)
            if path is not None:
                try:
                    found[name] = LogScan(path, view.class_names, view.horizon, periods)
                except ValueError:
                    raise DamagedFile(path.relative_to(view.study.path.absolute()), "cannot be read") from None
        return cls(found)

    def few(self, view: StudyView) -> list[str]:
        """What is said where not all logs are read."""
        return [f"Of {len(view.names)} controllers the first {SCANNED}."] if len(view.names) > SCANNED else []


# --- the queue in time -----------------------------------------------------------------------------------------------


def queue_section(view: StudyView, logs: Logs) -> Section | None:
    """The number of jobs in time, its extremes kept."""
    charts = []
    for k, (name, scan) in enumerate(logs.scans.items()):
        charts += [_queue_chart(view, k, name, scan), *_beginning(view, k, name, scan)]
    if not charts:
        return None
    words = [
        "The number of jobs in the system, from the event log. With the shift key held, the wheel zooms in time; drag "
        "to move, click twice to see all. Zooming shows no more than the stretches; the beginning is drawn in full."
    ]
    return Section(f"{view.prefix}queue", "The queue in time", [*words, *logs.few(view)], charts, wide=True)


def _queue_chart(view: StudyView, k: int, name: str, scan: LogScan) -> Chart:
    import altair as alt

    found = scan.extremes
    data: Columns = {
        "time": rounded([*found.starts, found.horizon]),
        "low": [*found.low.tolist(), int(found.low[-1])],
        "high": [*found.high.tolist(), int(found.high[-1])],
        "mean": rounded([*found.means, found.means[-1]]),
    }
    colour, x, y = view.looks[name].colour, view.units.timed("time"), "jobs in the system"
    at, tips = axis(x, "time", side="x"), tooltips(time_Q=x, low_Q="least", high_Q="most", mean_Q="mean")
    area = base().mark_area(interpolate="step-after", color=colour, opacity=0.35)
    edge = base().mark_line(interpolate="step-after", color=colour, strokeWidth=0.7, opacity=0.6)
    middle = base().mark_line(interpolate="step-after", color=INK, strokeWidth=1.4)
    # a wheel or a finger that passes over the chart moves the page
    moves: dict[str, Any] = {
        "zoom": "wheel![event.shiftKey]",
        "translate": "[mousedown, window:mouseup] > window:mousemove!",
    }
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], **moves)
    layers = [
        area.encode(x=at, y=axis(y, "low", zero=True), y2="high:Q", tooltip=tips)
        .properties(name="jobs")
        .add_params(zoom),
        edge.encode(x=at, y=axis(y, "high", zero=True)),
        edge.encode(x=at, y=axis(y, "low", zero=True)),
        middle.encode(x=at, y=axis(y, "mean", zero=True), tooltip=tips),
    ]
    most = int(found.high.max())
    peak = float(found.starts[int(found.high.argmax())])
    room = int(view.about["queue"]["capacity"])
    words = (
        f"Jobs in the system under {name}, of {scan.events:,} events: at most {most:,} (room for {room:,}), first "
        f"between time {number(peak)} and {number(peak + found.horizon / found.count)}."
    )
    note = f"{FIRST} {found.count:,} stretches of time: neither peaks nor troughs are left out."
    heads = {"time": view.units.timed("from time"), "low": "least", "mean": "mean", "high": "most"}
    keys = [Key("mean of a stretch", Look(INK)), Key("from the least to the most in it", Look(colour), "pale")]
    return Chart(f"{view.prefix}queue-{k}", name, words, finished(alt.layer(*layers)), data, heads, keys, note)


def _beginning(view: StudyView, k: int, name: str, scan: LogScan) -> Sequence[Chart]:
    """The first changes one by one, where stretches hide them."""
    times, jobs = scan.extremes.first
    if times.size <= FIRST_CHANGES:  # the chart of all stretches tells as much
        return []
    x, y = view.units.timed("time"), "jobs in the system"
    line = base().mark_line(interpolate="step-after", color=view.looks[name].colour, strokeWidth=1.4)
    drawn = line.encode(x=axis(x, "time", side="x"), y=axis(y, "jobs", zero=True), tooltip=tooltips(time_Q=x, jobs_Q=y))
    data: Columns = {"time": rounded(times), "jobs": jobs.tolist()}
    until = f"{number(float(times[-1]))} {view.units.time}".rstrip()
    words = f"Jobs in the system under {name} up to time {until}, each of the first {times.size - 1:,} changes."
    title, note = f"{name}, the beginning", f"{FIRST} Every change up to time {until}."
    spec = finished(drawn, height=180)
    return [Chart(f"{view.prefix}queue-start-{k}", title, words, spec, data, {"time": x, "jobs": y}, (), note)]


# --- waits -----------------------------------------------------------------------------------------------------------


def wait_law(queue: Queue, policy: Policy, times: FloatArray) -> FloatArray:
    """P(W > t) of the admitted jobs of each class in the long run: a row a time, a column a class; nan of none.

    With pi the stationary law and a_i(s) whether class i is admitted, arrivals see pi (PASTA), and a job that finds
    s >= c jobs waits for s - c + 1 departures:  P(W > t) = sum_s pi(s) a_i(s) P(W > t | s) / sum_s pi(s) a_i(s).
    """
    law, servers = evaluate(queue, policy).stationary[:-1], queue.servers
    weights = law[:, None] * policy.admits
    total = weights.sum(axis=0)
    found = np.full((len(times), len(queue.classes)), np.nan)
    for k, time in enumerate(times.tolist()):
        with np.errstate(invalid="ignore"):
            found[k] = (weights[servers:] * queue.waits.survival(time)[:, None]).sum(axis=0) / total
    return found


def waits_section(view: StudyView, logs: Logs) -> Section | None:
    """How long jobs waited, by class, against the law of waits of the policy in force at the end."""
    charts = [chart for k, name in enumerate(view.detailed) if (chart := _waits_chart(view, k, name, logs)) is not None]
    if not charts:
        return None
    words = ["How large a share of the jobs that joined a server waited longer than a time."]
    if any(key.words.startswith("law") for chart in charts for key in chart.legend):
        words.append(
            "The law is the exact one of the policy that was in force at the end, in the long run; the run also holds "
            "what came before."
        )
    else:
        words.append(
            "The law of waits is known exactly for M/M/c/S queues whose jobs wait for ever; not for this system."
        )
    return Section(f"{view.prefix}waits", "Waits", [*words, *view.few], charts)


def _last_policy(view: StudyView, name: str) -> Policy | None:
    """The policy at the end, where all is known that its law of waits needs."""
    queue, found = view.queue, stretches(view, name)
    if queue is None or queue.drifts or queue.abandons or not found or not found[-1].trunk:
        return None
    return Policy.trunk_reservation(found[-1].levels, queue.capacity)


def _measured(view: StudyView, name: str, logs: Logs) -> list[tuple[FloatArray, FloatArray]]:
    """(waits, shares that waited longer) by class: from the log, else the quantiles of all replications."""
    if name in logs.scans:
        return [logs.scans[name].longer_than(i) for i in range(len(view.class_names))]
    measures = view.results[view.names.index(name)]["measures"]
    found = []
    for i in range(len(view.class_names)):
        known = [(measures[m]["classes"][i]["mean"], share) for m, share in SHARES.items()]
        kept = [(wait, share) for wait, share in known if wait is not None]
        found.append((np.array([w for w, _ in kept], dtype=float), np.array([s for _, s in kept], dtype=float)))
    return found


def _waits_data(view: StudyView, name: str, measured: list[tuple[Any, Any]], top: float) -> Columns:
    """By class the shares that wait longer, as measured and, where it is known, by their law up to the longest."""
    data: Columns = {"who": [], "kind": [], "time": [], "mean": []}

    def add(job_class: str, kind: str, waits: Any, shares: Any) -> None:
        data["who"] += [job_class] * len(waits)
        data["kind"] += [kind] * len(waits)
        data["time"] += rounded(waits)
        data["mean"] += rounded(shares)

    for job_class, (waits, shares) in zip(view.class_names, measured, strict=True):
        kept = thinned(len(waits), MOST_WAITS)
        add(job_class, "measured", waits[kept], shares[kept])
    policy = _last_policy(view, name)
    if policy is not None and view.queue is not None:
        times: FloatArray = np.arange(LAW_POINTS + 1, dtype=np.float64) * (top / LAW_POINTS)
        for job_class, shares in zip(view.class_names, wait_law(view.queue, policy, times).T, strict=True):
            if not np.isnan(shares).any():
                add(job_class, "law", times, shares)
    return data


def _waits_layers(view: StudyView, x: str, y: str, *, logged: bool) -> tuple[Any, Any]:
    """What was measured, as steps of a log or as dots; and the law, dotted."""
    import altair as alt

    colours = alt.Scale(domain=view.class_names, range=[look.colour for look in view.class_looks.values()])
    shared = {
        "x": axis(x, "time", side="x", zero=True),
        "y": axis(y, "mean", zero=True),
        "color": alt.Color("who:N", scale=colours, legend=None),
        "tooltip": tooltips(who_N="class", kind_N="", time_Q=x, mean_Q=y),
    }
    seen, told = base().mark_point(size=70, filled=True), {"shape": shape_scale(view.class_looks)}
    if logged:
        seen = base().mark_line(strokeWidth=2, interpolate="step-after")
        told = {"strokeDash": dash_scale(view.class_looks)}
    law = base().mark_line(strokeWidth=1.6, strokeDash=[2 * part for part in DOTS])
    return (
        seen.transform_filter("datum.kind == 'measured'").encode(**shared, **told),
        law.transform_filter("datum.kind == 'law'").encode(**shared),
    )


def _waits_chart(view: StudyView, k: int, name: str, logs: Logs) -> Chart | None:
    import altair as alt

    measured = _measured(view, name, logs)
    top = max((float(waits.max()) for waits, _ in measured if waits.size), default=0.0)
    if not top > 0.0:
        return None
    data, logged = _waits_data(view, name, measured, top), name in logs.scans
    x, y = view.units.timed("wait"), "share of jobs that wait longer"
    seen, law = _waits_layers(view, x, y, logged=logged)
    keys = legend_of(view.class_looks) if logged else legend_of_shapes(view.class_looks)
    layers = [seen]
    if "law" in data["kind"]:
        layers.append(law)
        keys = [*keys, Key("law of waits", REFERENCE)]
    note = (
        f"{FIRST} From its event log." if logged else "Dots: the 50, 80, 95 and 99 % waits, means of the replications."
    )
    heads = {"who": "class", "kind": "", "time": x, "mean": y}
    words, spec = _wait_words(view, name), finished(alt.layer(*layers))
    return Chart(f"{view.prefix}waits-{k}", name, words, spec, data, heads, keys, note)


def _wait_words(view: StudyView, name: str) -> str:
    classes = view.results[view.names.index(name)]["classes"]
    said = [
        f"{c['name']} {number(c['mean_wait']['mean'], 3)} (95 %: {number(c['wait_95']['mean'], 3)})" for c in classes
    ]
    return f"Mean wait under {name}{f', in {view.units.time}' if view.units.time else ''}: {'; '.join(said)}."


# --- arrivals in a period --------------------------------------------------------------------------------------------


def hours_section(view: StudyView, logs: Logs) -> Section | None:
    """Arrivals by the part of the period in which they came, where rates repeat."""
    found = view.patterns
    if all(pattern is None for pattern in found):
        return None
    scan = next(iter(logs.scans.values()), None)
    data: Columns = {"who": [], "time": [], "mean": [], "low": [], "high": []}
    said = []
    looks, keys = {}, []
    for i, (job_class, pattern) in enumerate(zip(view.class_names, found, strict=True)):
        if pattern is None:
            continue
        starts = np.arange(PARTS) * (pattern.period / PARTS)
        meant = _part_means(pattern, view.mean_rates[i] / pattern.mean)
        top = int(np.argmax(meant))
        said.append(
            f"{job_class}: most from {number(starts[top])} on, {number(meant[top])}; least {number(min(meant))}"
        )
        curves = [(f"{job_class}, as the scenario says", meant, None, Look(view.class_looks[job_class].colour, DOTS))]
        if scan is not None:
            counts, exposure = scan.arrivals[i].astype(float), scan.exposure(i)
            with np.errstate(divide="ignore", invalid="ignore"):
                seen, half = counts / exposure, 1.96 * np.sqrt(counts) / exposure
            curves.insert(0, (f"{job_class}, measured", seen, half, view.class_looks[job_class]))
        for words, values, half, look in curves:
            looks[words] = look
            keys.append(Key(words, look))
            data["who"] += [words] * (PARTS + 1)
            data["time"] += rounded([*starts, pattern.period])
            for column, sign in (("mean", 0.0), ("low", -1.0), ("high", 1.0)):
                away = values if half is None else values + sign * half
                data[column] += rounded([*away, away[-1]])
    x, y = view.units.timed("time since the period began"), f"jobs per {view.units.per_time}"
    spec = lines(looks, x, y, band=scan is not None, step=True, zero=True, most_bands=len(looks))
    note = "Band: 95 % interval of a count of a Poisson process. Of the first replication." if scan is not None else ""
    heads = {"who": "class", "time": x, "mean": y, "low": "low", "high": "high"}
    words = f"Arrivals by part of the period, {y}. {'; '.join(said)}."
    chart = Chart(f"{view.prefix}hours", "Arrivals in the period", words, spec, data, heads, keys, note)
    return Section(f"{view.prefix}hours", "When jobs come", charts=[chart])


def _part_means(pattern: ArrivalPattern, rate: float) -> list[float]:
    """rate * factor, averaged over each part of the period."""
    width = pattern.period / PARTS
    offsets = [(k + 0.5) / SAMPLES for k in range(SAMPLES)]
    return [rate * sum(pattern.factor((part + u) * width) for u in offsets) / SAMPLES for part in range(PARTS)]


# --- moving picture --------------------------------------------------------------------------------------------------


def moving_section(view: StudyView) -> Section | None:
    """The beginning of the first controller's log as a moving picture."""
    name = view.names[0]
    path = view.study.log(view.point, name)
    if path is None:
        return None
    servers = view.about["queue"]["servers"]
    try:
        end = some_events_later(frames_of(path), 0.0, WATCHED)
        begin = _shortly_before_the_first(path, end)
        found = stretch_of(frames_of(path), begin, end, servers if isinstance(servers, int) else None)
    except ValueError:
        return None
    since = f", from time {number(begin)} on" if begin else ""
    words = [
        f"The first {len(found.events):,} events under {name}{since}. queueing-ucrl animate shows any other stretch."
    ]
    return Section(f"{view.prefix}moving", "The queue moves", words, animation=animation(found, view.units.time))


def _shortly_before_the_first(path: Path, end: float) -> float:
    """From when on a picture up to `end` is worth watching: 0, unless long nobody comes, as at night."""
    of_jobs = (frame["time"][frame["job"].notna()] for frame in frames_of(path))
    first = next((float(times.iloc[0]) for times in of_jobs if len(times)), 0.0)
    begin = first - LEAD * (end - first)
    return begin if begin > LEAD * end else 0.0
