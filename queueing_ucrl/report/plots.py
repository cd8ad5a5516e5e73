"""Figures for print: regret over time, with intervals, that a newcomer can read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import matplotlib

from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3b6fb6", "#d1495b", "#2e8b57", "#8f5fb5", "#c98a1b", "#4d4d4d", "#17a2b8", "#a0522d")


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def figure_bytes(figure: Figure) -> bytes:
    """The figure as PNG, without anything in it that changes from run to run."""
    sink = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "queueing_ucrl"}):
        figure.savefig(sink, format="png", dpi=150, metadata={"Software": None})
    return sink.getvalue()


def _first(study: Study, point: int) -> int:
    """The first cell of a point: whom the others are compared with where no optimum is known."""
    return next(k for k, cell in enumerate(study.cells) if cell.point == point)


def regret_panel(axes: Axes, study: Study, point: int, kind: str = "gap") -> None:
    """Mean regret of each controller with its 95 % interval, and each replication as a faint line if they are few.

    Where no optimum is known: the reward that each earned less than the first controller, on the same jobs.
    """
    first = _first(study, point)
    no_optimum = bool(study.no_optimum(first))
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        colour = COLOURS[[c.name for c in study.cells if c.point == point].index(cell.name) % len(COLOURS)]
        times = study.results[k][0].times
        if no_optimum:
            samples = study.samples(first, "expected_reward") - study.samples(k, "expected_reward")
        else:
            samples = study.samples(k, kind)
        mean, low, high = interval(samples)
        if 1 < len(samples) <= 30:
            axes.plot(times, samples.T, color=colour, linewidth=0.4, alpha=0.25)
        axes.fill_between(times, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(times, mean, color=colour, linewidth=2, label=cell.name)
        axes.annotate(
            f"{mean[-1]:,.0f}", (times[-1], mean[-1]), xytext=(4, 0), textcoords="offset points", color=colour,
            va="center", fontsize=9,
        )  # fmt: skip
    axes.set_xlabel("time")
    axes.set_ylabel(f"reward less than {study.cells[first].name}'s so far" if no_optimum else "reward lost so far")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.margins(x=0.01)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, loc="upper left")


def gain_panel(axes: Axes, study: Study, point: int) -> None:
    """What was earned so far per unit of time, from a hundredth of the horizon on (before, all is chance); the best as
    a line where it is known.
    """
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        colour = COLOURS[[c.name for c in study.cells if c.point == point].index(cell.name) % len(COLOURS)]
        times = study.results[k][0].times
        late = times >= 0.01 * cell.horizon
        mean, low, high = interval(study.samples(k, "expected_reward")[:, late] / times[late])
        times = times[late]
        axes.fill_between(times, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(times, mean, color=colour, linewidth=2, label=cell.name)
    best = study.results[_first(study, point)][0].summary["optimal_gain"]
    if best is not None:
        axes.axhline(best, color="black", linestyle="--", linewidth=1, label="best possible")
    axes.set_xscale("log")
    axes.set_xlabel("time (log scale)")
    axes.set_ylabel("reward per unit of time, so far")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(frameon=False, loc="lower right")


def regret_figure(study: Study, scenario: Scenario, point: int = 0) -> bytes:
    """What learning cost: the regret, and the earnings beside the best where it is known. PNG."""
    figure = _figure(11, 4.4)
    left, right = figure.subplots(1, 2)
    regret_panel(left, study, point)
    gain_panel(right, study, point)
    count = max(len(results) for results in study.results)
    values = ", ".join(f"{key} = {value}" for key, value in scenario.values.items())
    if study.no_optimum(_first(study, point)):
        left.set_title("Earned less than the first, on the same jobs", loc="left", fontsize=10)
        right.set_title("Earnings per unit of time, so far", loc="left", fontsize=10)
    else:
        left.set_title("Lost to not knowing the arrival rates", loc="left", fontsize=10)
        right.set_title("Earnings against the best possible", loc="left", fontsize=10)
    words = f"mean of {count} replications, shaded: 95 % interval" if count > 1 else "one replication"
    # a title is a scenario's text, not mathematics
    figure.suptitle(f"{scenario.title}{'  ' + values if values else ''}  ({words})".replace("$", r"\$"), fontsize=11)
    return figure_bytes(figure)
