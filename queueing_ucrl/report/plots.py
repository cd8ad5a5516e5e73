"""Figures for print: regret over time, with intervals, that a newcomer can read."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
from matplotlib.ticker import Formatter
from rich.cells import cell_len

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.report.lettering import Lettering, lettering
from queueing_ucrl.report.numbers import number, tick_labels
from queueing_ucrl.report.palette import Look, looks
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 11.0  # inches
LABEL_HEIGHT = 10.0  # points from one value at the curves' ends to the next, at least
NAME_WIDTH = 44  # cells of a line of the legend
BEST = "best possible"
FEW = 8  # controllers, up to which replications are drawn one by one
MOST_LINES = 30  # of replications


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def figure_bytes(figure: Figure) -> bytes:
    """The figure as PNG, without anything in it that changes from run to run."""
    sink = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "queueing_ucrl"}):
        figure.savefig(sink, format="png", dpi=150, metadata={"Software": None})
    return sink.getvalue()


class NumberTicks(Formatter):
    """Marks of an axis as tables write numbers: 50,000, 2.5e12, 0.0001."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return number(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return tick_labels([float(value) for value in values])


def _linear(axes: Axes, *names: Literal["x", "y"]) -> None:
    """Linear axes with few enough marks for their numbers."""
    for name in names:
        (axes.xaxis if name == "x" else axes.yaxis).set_major_formatter(NumberTicks())
        axes.locator_params(axis=name, nbins=5 if name == "x" else 8)


def _value_at_end(axes: Axes, ends: list[tuple[float, float, str]]) -> None:
    """The last value of each curve beside it, but none over another."""
    low, high = axes.get_ylim()
    height = axes.get_window_extent().height * 72.0 / axes.figure.dpi
    taken: list[float] = []
    for time, value, colour in ends:
        place = height * (value - low) / ((high - low) or 1.0)
        if all(abs(place - other) >= LABEL_HEIGHT for other in taken):
            taken.append(place)
            beside: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
            axes.annotate(number(value, 3), (time, value), color=colour, fontsize=9, **beside)


def _mean_curve(
    axes: Axes, times: FloatArray, samples: FloatArray, name: str, look: Look, shade: float = 0.25
) -> FloatArray:
    """The mean over replications, in its 95 % interval."""
    mean, low, high = interval(samples)
    axes.fill_between(times, low, high, color=look.colour, alpha=shade, linewidth=0)
    axes.plot(times, mean, linewidth=2, label=name, **look.line)
    return mean


def _first(study: Study, point: int) -> int:
    """The first cell of a point: whom the others are compared with where no optimum is known."""
    return next(k for k, cell in enumerate(study.cells) if cell.point == point)


def _reward(study: Study, cell: int) -> str:
    """The reward that is shown of a cell: the expected one, which has less noise, where it is known."""
    return "expected_reward" if cell in study.cells_with("expected_reward") else "realised_reward"


def regret_panel(axes: Axes, study: Study, point: int, kind: str = "gap", units: Units | None = None) -> None:
    """Mean regret of each controller with its 95 % interval, and each replication as a faint line if they are few.

    Where no optimum is known: the reward that each earned less than the first controller, on the same jobs.
    """
    units = units or Units()
    first = _first(study, point)
    no_optimum = bool(study.no_optimum(first))
    look, ends = looks(cell.name for cell in study.cells), []
    crowded = len(look) > FEW
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        times = study.results[k][0].times
        if no_optimum:
            samples = study.samples(first, _reward(study, first)) - study.samples(k, _reward(study, first))
        else:
            samples = study.samples(k, kind)
        if 1 < len(samples) <= MOST_LINES and not crowded:
            axes.plot(times, samples.T, color=look[cell.name].colour, linewidth=0.4, alpha=0.25)
        mean = _mean_curve(axes, times, samples, cell.name, look[cell.name], shade=0.07 if crowded else 0.25)
        ends.append((times[-1], mean[-1], look[cell.name].colour))
    axes.set_xlabel(units.timed("time"))
    axes.set_ylabel(units.paid("reward less than the first so far" if no_optimum else "reward lost so far"))
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.margins(x=0.01)
    _linear(axes, "x", "y")
    _value_at_end(axes, ends)


def gain_panel(axes: Axes, study: Study, point: int, units: Units | None = None) -> None:
    """What was earned so far per unit of time, from a hundredth of the horizon on (before, all is chance); the best as
    a line where it is known.
    """
    units = units or Units()
    look = looks(cell.name for cell in study.cells)
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        times = study.results[k][0].times
        late = times >= 0.01 * cell.settings.horizon
        gains = study.samples(k, _reward(study, k))[:, late] / times[late]
        _mean_curve(axes, times[late], gains, cell.name, look[cell.name])
    best = study.results[_first(study, point)][0].summary["optimal_gain"]
    if best is not None:
        axes.axhline(best, color="black", linestyle="--", linewidth=1, label=BEST)
    axes.set_xscale("log")
    axes.set_xlabel(f"time ({units.time}, log scale)" if units.time else "time (log scale)")
    axes.set_ylabel(f"{units.money or 'reward'} per {units.per_time}, so far")
    axes.grid(alpha=0.3, linewidth=0.5)
    _linear(axes, "y")


def _legend(figure: Figure, axes: Axes, letters: Lettering) -> None:
    """All curves once, below the panels, where there is none; the figure grows by the lines that it takes."""
    handles, names = [], []
    for line in axes.get_lines():
        if not str(line.get_label()).startswith("_child"):
            handles.append(line)
            names.append(letters(str(line.get_label()), NAME_WIDTH))
    widest = max(cell_len(part) for name in names for part in name.split("\n"))
    columns = max(1, min(len(names), int(WIDTH * 13) // (widest + 8), 5))
    rows = math.ceil(len(names) / columns) + sum(name.count("\n") for name in names) // columns
    figure.set_figheight(figure.get_figheight() + 0.19 * rows)
    # matplotlib leaves out a label that begins with _: numbers first, then the names in their place
    style: Any = {"loc": "outside lower center", "frameon": False, "fontsize": 9, "handlelength": 3.5}
    legend = figure.legend(handles, [str(k) for k in range(len(names))], ncols=columns, **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def write_figures(study: Study, scenario: Scenario, folder: StudyFolder) -> None:
    """The figure of a study, or one for each point of its sweep, in its folder."""
    for k, point in enumerate(scenario.points or (scenario,)):
        name = "regret.png" if not scenario.points else f"regret-{k:04d}.png"
        folder.write_bytes(name, regret_figure(study, point, k))


def regret_figure(study: Study, scenario: Scenario, point: int = 0) -> bytes:
    """What learning cost: the regret, and the earnings beside the best where it is known. PNG."""
    count = max(len(results) for results in study.results)
    values = ", ".join(f"{key} = {value}" for key, value in scenario.values.items())
    words = f"mean of {count} replications, shaded: 95 % interval" if count > 1 else "one replication, no interval"
    if 1 < count <= MOST_LINES and len({cell.name for cell in study.cells}) <= FEW:
        words += "; thin lines: each replication"
    title = f"{scenario.title}{'  ' + values if values else ''}  ({words})"
    units = scenario.units
    with lettering((title, units.time, units.money, *(cell.name for cell in study.cells))) as letters:
        units = Units(letters(units.time), letters(units.money))
        figure = _figure(WIDTH, 4.2)
        left, right = figure.subplots(1, 2)
        regret_panel(left, study, point, units=units)
        gain_panel(right, study, point, units=units)
        if study.no_optimum(first := _first(study, point)):
            name = letters(study.cells[first].name, NAME_WIDTH)
            left.set_title(f"Earned less than {name}, on the same jobs", loc="left", fontsize=10)
            right.set_title(f"Earnings per {units.per_time}, so far", loc="left", fontsize=10)
        else:
            left.set_title("Lost to not knowing the arrival rates", loc="left", fontsize=10)
            right.set_title("Earnings against the best possible", loc="left", fontsize=10)
        figure.suptitle(letters(title, 120), fontsize=11)
        _legend(figure, right, letters)
        return figure_bytes(figure)
