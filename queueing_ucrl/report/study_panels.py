"""A study's curves, a panel each: what was lost, and what was earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queueing_ucrl.accounts.regret import KINDS
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.report.drawing import INTERVAL_SHADE, grid, linear, mean_curve, values_at_ends
from queueing_ucrl.report.palette import controller_looks
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST = "best possible"
FEW = 8  # controllers, up to which replications are drawn one by one
MOST_LINES = 30  # of replications
CROWDED_SHADE = 0.07
LOST = {
    "gap": "reward lost so far",
    "expected": "expected regret so far",
    "realised": "realised regret so far",
    "pseudo": "pseudo-regret so far",
}


def first_of(study: Study, point: int) -> int:
    """The first cell of a point: whom the others are compared with where no optimum is known."""
    return next(k for k, cell in enumerate(study.cells) if cell.point == point)


def reward_of(study: Study, cell: int) -> str:
    """The reward that is shown of a cell: the expected one, which has less noise, where it is known."""
    return "expected_reward" if cell in study.cells_with("expected_reward") else "realised_reward"


def regret_or_difference(study: Study, cell: int, kind: str) -> FloatArray:
    """A cell's regret; where no optimum is known, its reward minus that of the first controller."""
    if kind not in KINDS or not study.no_optimum(cell):
        return study.samples(cell, kind)
    first = first_of(study, study.cells[cell].point)
    reward = reward_of(study, first)
    return study.samples(cell, reward) - study.samples(first, reward)


def reward_words(study: Study, cell: int) -> str:
    """What `reward_of` is called."""
    return "expected reward" if reward_of(study, cell) == "expected_reward" else "realised reward"


def curves_in_words(study: Study) -> str:
    """What the curves and their shades are."""
    count = max(len(results) for results in study.results)
    if count == 1:
        return "one replication, no interval"
    each = "; thin lines: each replication" if _each_is_drawn(study, count) else ""
    return f"mean of {count} replications, shaded: 95 % interval{each}"


def _each_is_drawn(study: Study, count: int) -> bool:
    return 1 < count <= MOST_LINES and len({cell.name for cell in study.cells}) <= FEW


def regret_panel(axes: Axes, study: Study, point: int, kind: str = "gap", units: Units | None = None) -> None:
    """Mean regret of each controller with its 95 % interval, and each replication as a faint line if they are few.

    Where no optimum is known: the reward of each minus that of the first controller, on the same jobs.
    """
    units = units or Units()
    look, ends = controller_looks(cell.name for cell in study.cells), []
    shade = CROWDED_SHADE if len(look) > FEW else INTERVAL_SHADE
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        times, samples = study.results[k][0].times, regret_or_difference(study, k, kind)
        if _each_is_drawn(study, len(samples)):
            axes.plot(times, samples.T, color=look[cell.name].colour, linewidth=0.4, alpha=0.25)
        mean = mean_curve(axes, times, samples, cell.name, look[cell.name], shade)
        ends.append((times[-1], mean[-1], look[cell.name].colour))
    words = LOST.get(kind, f"{kind} so far")
    if kind in KINDS and study.no_optimum(first_of(study, point)):
        words = "difference in reward so far"
    axes.set_xlabel(units.timed("time"))
    axes.set_ylabel(units.paid(words))
    grid(axes)
    axes.margins(x=0.01)
    linear(axes, "x", "y")
    values_at_ends(axes, ends)


def gain_panel(axes: Axes, study: Study, point: int, units: Units | None = None) -> None:
    """What was earned so far per unit of time, from a hundredth of the horizon on (before, all is chance); the best as
    a line where it is known.
    """
    units = units or Units()
    look = controller_looks(cell.name for cell in study.cells)
    for k, cell in enumerate(study.cells):
        if cell.point != point:
            continue
        times = study.results[k][0].times
        late = times >= 0.01 * cell.settings.horizon
        gains = study.samples(k, reward_of(study, k))[:, late] / times[late]
        mean_curve(axes, times[late], gains, cell.name, look[cell.name])
    best = study.results[first_of(study, point)][0].summary["optimal_gain"]
    if best is not None:
        axes.axhline(best, color="black", linestyle="--", linewidth=1, label=BEST)
    axes.set_xscale("log")
    axes.set_xlabel(f"time ({units.time}, log scale)" if units.time else "time (log scale)")
    axes.set_ylabel(f"{units.money or 'reward'} per {units.per_time}, so far")
    grid(axes)
    linear(axes, "y")
