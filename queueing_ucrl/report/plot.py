"""Plots for print, on matplotlib's axes: `qu.plot.regret(study)` and its like.

Each takes `ax=`, the axes to draw on (else it makes a figure of its own), and gives the axes back. Legends stand below
the axes, not over the data: on a figure of one's own make room by `plt.subplots(layout="constrained")`.
`units=scenario.units` puts a scenario's units of time and money on the axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.regret import KINDS
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import whole as whole_number
from queueing_ucrl.model.policy import NO, PART, YES
from queueing_ucrl.report.admission_map import AdmissionMap, admission_map
from queueing_ucrl.report.belief_curves import BeliefCurve, Beliefs, beliefs_of
from queueing_ucrl.report.drawing import (
    LEGEND_SIZE,
    Entry,
    axes_of,
    band,
    curves_of,
    grid,
    heading,
    legend_below,
    linear,
)
from queueing_ucrl.report.lettering import Lettering, lettering
from queueing_ucrl.report.log_source import log_frames
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.palette import BLUE, FAINT, GREY, SKY, VERMILION, looks
from queueing_ucrl.report.queue_line import COLUMNS as LINE_COLUMNS
from queueing_ucrl.report.queue_line import STRETCHES, queue_line
from queueing_ucrl.report.study_panels import curves_in_words, regret_panel
from queueing_ucrl.report.wait_curves import COLUMNS as WAIT_COLUMNS
from queueing_ucrl.report.wait_curves import TIMES, WaitCurve, curves_of_log, curves_of_run, law_of_waits, no_law
from queueing_ucrl.simulation.run import Run
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["beliefs", "policy", "queue", "regret", "waits"]

TITLE_WIDTH = 80  # cells
ROW_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 0.3, 1.6, 9.0  # inches of a map
MOST_NAMES = 30  # beside a map
CLASS_WIDTH, SPAN_WIDTH = 30, 24  # cells of a class's name, and of its states in words
FEW_EPISODES = 40  # up to which each is marked
MAP_COLOURS = {YES: (BLUE, "let in"), NO: (FAINT, "turned away"), PART: (SKY, "in part")}


def _lettered(units: Units | None, letters: Lettering) -> Units:
    units = units or Units()
    return Units(letters(units.time), letters(units.money))


def _texts(units: Units | None, *texts: str) -> tuple[str, ...]:
    if units is not None and not isinstance(units, Units):
        raise TypeError(f"units must be those of a scenario, as scenario.units, got {shown(type(units).__name__)}")
    return (*texts, *((units.time, units.money) if units else ()))


def regret(
    study: Study, kind: str = "gap", ax: Axes | None = None, *, point: int | None = None, units: Units | None = None
) -> Axes:
    """The mean regret of each controller in time, with its 95 % interval.

    kind: "gap", "expected", "realised" or "pseudo", or an account of one's own. point: which point of a sweep, from 0.
    Where no optimum is known there is no regret, and a ValueError says why.
    """
    if not isinstance(study, Study):
        raise TypeError(f"a study is needed, as of qu.replicate(...), got {shown(type(study).__name__)}")
    kinds = (*KINDS, *study.own_accounts)
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, got {shown(kind)}")
    chosen = _point(study, point)
    for k, cell in enumerate(study.cells):
        if cell.point == chosen and k not in study.cells_with(kind):
            why = study.no_optimum(k)
            raise ValueError(f"{cell.name}: no regret: {why}; study.differences() sets controllers side by side")
    names = [cell.name for cell in study.cells]
    with lettering(_texts(units, kind, *names)) as letters:
        axes = axes_of(ax)
        regret_panel(axes, study, chosen, kind, _lettered(units, letters))
        heading(axes, curves_in_words(study))
        legend_below(axes, curves_of(axes)[-_count(study, chosen) :], letters, grow=ax is None)
    return axes


def _count(study: Study, point: int) -> int:
    return sum(cell.point == point for cell in study.cells)


def _point(study: Study, point: int | None) -> int:
    """The point that is meant; one of a sweep must be named."""
    points = sorted({cell.point for cell in study.cells})
    if point is None:
        if len(points) > 1:
            raise ValueError(f"the study has {len(points)} points of a sweep: point must be one of {_listed(points)}")
        return points[0]
    if whole_number(point, "point", least=0) not in points:
        raise ValueError(f"point must be one of {_listed(points)}, got {point}")
    return point


def _listed(points: Sequence[int]) -> str:
    return ", ".join(map(str, points)) if len(points) < 5 else f"{points[0]}, {points[1]}, .. {points[-1]}"


def policy(solution: Any, ax: Axes | None = None, *, class_names: Sequence[str] | None = None) -> Axes:
    """Who is let in: a row a class, a column a number of jobs in the system.

    solution: of any solver, or a policy. Of a long queue a column is a block of states, "in part" where they differ.
    Where a policy sees the environment, a row is for one of its states; where it sees how many jobs of each class
    there are, "in part" says that it depends on them.
    """
    found = admission_map(solution, class_names)
    with lettering(found.names) as letters:
        rows = len(found.names)
        axes = axes_of(ax, 1.0 + min(MOST_HEIGHT, max(LEAST_HEIGHT, ROW_HEIGHT * rows)))
        _draw_map(axes, found, letters)
        block = "" if found.block == 1 else f", in blocks of {found.block}"
        axes.set_xlabel(f"jobs in the system on arrival{block}")
        heading(axes, "who is let in")
        legend_below(axes, _map_entries(found), letters, grow=ax is None)
    return axes


def _draw_map(axes: Axes, found: AdmissionMap, letters: Lettering) -> None:
    from matplotlib.colors import ListedColormap

    rows, columns = found.codes.shape
    edges = (-0.5, columns * found.block - 0.5, rows - 0.5, -0.5)
    colours = ListedColormap([MAP_COLOURS[code][0] for code in sorted(MAP_COLOURS)])
    look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "cmap": colours, "vmin": NO, "vmax": YES}
    axes.imshow(found.codes, extent=edges, **look)
    axes.set_xlim(-0.5, found.capacity - 0.5)
    linear(axes, "x", whole=True)
    every = -(-rows // MOST_NAMES)
    named = range(0, rows, every)
    axes.set_yticks(list(named), [letters(found.names[k], CLASS_WIDTH) for k in named])
    axes.tick_params(axis="y", length=0)
    if every > 1:
        return
    for k in range(1, rows):
        axes.axhline(k - 0.5, color="white", linewidth=1.5)
    if found.states is not None and max(map(len, found.states)) <= SPAN_WIDTH:
        beside: Any = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
        for k, words in enumerate(found.states):
            axes.annotate(words, (1.0, k), xycoords=axes.get_yaxis_transform(), fontsize=LEGEND_SIZE, **beside)


def _map_entries(found: AdmissionMap) -> list[Entry]:
    from matplotlib.patches import Patch

    there = set(np.unique(found.codes).tolist()) | {YES, NO}
    return [(Patch(facecolor=colour), name) for code, (colour, name) in MAP_COLOURS.items() if code in there]


def beliefs(run: Run, ax: Axes | None = None, *, units: Units | None = None) -> Axes:
    """What the controller believed of the arrival rates, episode by episode: interval, estimate, the value that it
    planned for, and the truth.
    """
    _must_be_run(run)
    found = beliefs_of(run)
    names = [curve.name for curve in found.curves]
    look = looks(names)
    with lettering(_texts(units, run.controller, *names)) as letters:
        axes = axes_of(ax)
        for curve in found.curves:
            _draw_belief(axes, found, curve, look[curve.name].colour)
        per = _lettered(units, letters).per_time
        axes.set_xlabel("episode")
        axes.set_ylabel(f"arrival rate (jobs per {per})")
        grid(axes)
        linear(axes, "x", whole=True)
        linear(axes, "y")
        heading(axes, letters(f"what {run.controller} believed", TITLE_WIDTH))
        changing = ", mean in time" if run.system.drifts else ""
        entries = _belief_entries(found, f"truth{changing}", [(look[name].colour, name) for name in names])
        legend_below(axes, entries, letters, grow=ax is None)
    return axes


def _must_be_run(run: object) -> None:
    if not isinstance(run, Run):
        raise TypeError(f"a run is needed, as of qu.simulate(...), got {shown(type(run).__name__)}")


ESTIMATE: dict[str, Any] = {"linestyle": "-", "linewidth": 1.8}
PLANNED: dict[str, Any] = {"linestyle": (0, (1, 1)), "linewidth": 1.6}
TRUTH: dict[str, Any] = {"linestyle": (0, (6, 2)), "linewidth": 1.0}
BAND_SHADE = 0.2


def _draw_belief(axes: Axes, found: Beliefs, curve: BeliefCurve, colour: str) -> None:
    from queueing_ucrl.report.palette import Look

    mark = "o" if found.episodes.size <= FEW_EPISODES else ""
    if curve.low is not None and curve.high is not None:
        band(axes, found.episodes, curve.low, curve.high, Look(colour), BAND_SHADE)
    axes.plot(found.episodes, curve.estimate, color=colour, marker=mark, markersize=3, label=curve.name, **ESTIMATE)
    if curve.planned is not None:
        axes.plot(found.episodes, curve.planned, color=colour, label=f"{found.planned}, {curve.name}", **PLANNED)
    if math.isfinite(curve.truth):
        shown = colour if len(found.curves) > 1 else "black"
        axes.axhline(curve.truth, color=shown, label=f"truth, {curve.name}", **TRUTH)


def _belief_entries(found: Beliefs, truth: str, named: list[tuple[str, str]]) -> list[Entry]:
    """The lines' kinds, and the classes' colours where there are several."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    several = len(named) > 1
    colour = GREY if several else named[0][0]
    entries: list[Entry] = [(Patch(facecolor=each), name) for each, name in named] if several else []
    entries.append((Line2D([], [], color=colour, **ESTIMATE), "estimate"))
    if any(curve.planned is not None for curve in found.curves):
        entries.append((Line2D([], [], color=colour, **PLANNED), found.planned))
    if found.interval:
        entries.append((Patch(facecolor=colour, alpha=BAND_SHADE), found.interval))
    if any(math.isfinite(curve.truth) for curve in found.curves):
        entries.append((Line2D([], [], color=GREY if several else "black", **TRUTH), truth))
    return entries


def queue(
    events: Run | pd.DataFrame | str | Path,
    ax: Axes | None = None,
    *,
    units: Units | None = None,
    stretches: int = STRETCHES,
) -> Axes:
    """The number of jobs in the system and in the queue, in time.

    events: an event log, or the path of one in Parquet, which is read a row group at a time. Of a long log each of
    `stretches` stretches of time shows its first, least, greatest and last number: no peak is lost.
    """
    line = queue_line(log_frames(events, LINE_COLUMNS), whole_number(stretches, "stretches"))
    with lettering(_texts(units)) as letters:
        axes = axes_of(ax)
        drawn = [("in the system", line.in_system, BLUE)]
        drawn += [] if line.waiting is None else [("in the queue", line.waiting, VERMILION)]
        for name, (time, jobs), colour in drawn:
            axes.plot(time, jobs, drawstyle="steps-post", color=colour, linewidth=0.9, label=name)
        entries = curves_of(axes)[-len(drawn) :]
        axes.set_xlabel(_lettered(units, letters).timed("time"))
        axes.set_ylabel("jobs")
        axes.set_ylim(bottom=0)
        grid(axes)
        linear(axes, "x")
        linear(axes, "y", whole=True)
        axes.margins(x=0.01)
        words = f"{line.events:,} events"
        if line.thinned:
            words += "; of each short stretch the first, least, greatest and last number"
        if line.waiting is None:
            words += "; the log begins with jobs in the system, so that it does not tell who waits"
        heading(axes, letters(words, TITLE_WIDTH))
        legend_below(axes, entries, letters, grow=ax is None)
    return axes


def waits(events: Run | pd.DataFrame | str | Path, ax: Axes | None = None, *, units: Units | None = None) -> Axes:
    """How long jobs waited that joined a server, by class: the share that waited longer than t.

    events: a run (with or without an event log), an event log, or the path of one in Parquet. Of a run of a Markov
    queue their law is drawn too, given how many jobs each of them found; where it is not known the title says why.
    """
    run = events if isinstance(events, Run) else None
    curves = curves_of_run(run) if run else curves_of_log(log_frames(events, WAIT_COLUMNS))
    names = [curve.name for curve in curves]
    reason = no_law(run.system) if run else ""
    with lettering(_texts(units, reason, run.controller if run else "", *names)) as letters:
        axes = axes_of(ax)
        entries = _draw_waits(axes, curves)
        if run and not reason:
            entries.append(_draw_laws(axes, run, curves))
        axes.set_xlabel(_lettered(units, letters).timed("wait t"))
        axes.set_ylabel("share that waited longer than t")
        axes.set_ylim(0.0, 1.0)
        grid(axes)
        linear(axes, "x", "y")
        jobs = sum(curve.jobs for curve in curves)
        words = f"{f'one run of {run.controller}' if run else 'one log'}: {number(jobs, 12)} jobs that joined a server"
        heading(axes, letters(words + (f"; no law: {reason}" if reason else ""), TITLE_WIDTH))
        legend_below(axes, entries, letters, grow=ax is None)
    return axes


def _draw_waits(axes: Axes, curves: Sequence[WaitCurve]) -> list[Entry]:
    look = looks(curve.name for curve in curves)
    return [
        (axes.plot(curve.times, curve.longer, linewidth=2, label=curve.name, **look[curve.name].line)[0], curve.name)
        for curve in curves
    ]


def _draw_laws(axes: Axes, run: Run, curves: Sequence[WaitCurve]) -> Entry:
    longest = max(float(curve.times[-1]) for curve in curves)
    times = np.linspace(0.0, longest, TIMES) if longest > 0.0 else np.zeros(1)
    handle: Any = None
    for i, curve in enumerate(curves):
        law = law_of_waits(run.system, run.ledger.admitted[:, i], times)
        style: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": (0, (4, 2))}
        (handle,) = axes.plot(times, law, label=f"law, {curve.name}", **style)
    return handle, "law, given the number of jobs found"
