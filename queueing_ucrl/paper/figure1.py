"""Fig. 1 of the paper: the regret of UCRL-AC and of four general-purpose learners on six queues.

S = 20 above, S = 50 below; mu = 0.3, 0.4, 0.5 from left to right: overloaded, critical, underloaded. The expected
regret is the paper's account; the gap account has the same mean up to the state at the end, and far less noise.
PSRL is shown twice: its prior for the next state, which the paper does not give, decides how it compares.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.experiments.campaign import choose_controllers
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, named_cell, paragraph, quantiles_table
from queueing_ucrl.report.drawing import curves_of, grid, legend_below, mean_curve, panels
from queueing_ucrl.report.lettering import lettering
from queueing_ucrl.report.palette import controller_looks
from queueing_ucrl.scenario import ControllerChoice, Scenario

OURS = "ucrl-ac"
LEARNERS = {
    "ucrl-ac": "UCRL-AC",
    "ucrl2": "UCRL2",
    "psrl": "PSRL, prior 1/X",
    "psrl-prior-1": "PSRL, prior 1",
    "kl-ucrl": "KL-UCRL",
    "ucrl3": "UCRL3",
}
OPTIONS: dict[str, tuple[str, dict[str, float]]] = {"psrl-prior-1": ("psrl", {"transition_prior": 1.0})}
ACCOUNTS = ("expected", "gap")


def label(name: str) -> str:
    """A learner's name as the paper writes it."""
    return LEARNERS.get(name, name.upper())


def comparison(work: Work, points: tuple[int, ...] | None = None) -> Study:
    """The paper's learners, and others that were asked for, on the same jobs."""

    def choose(one: Scenario, name: str) -> tuple[ControllerChoice, ...]:
        if name in OPTIONS:
            kind, options = OPTIONS[name]
            return (ControllerChoice(name, options, make_controller(kind, options)),)
        return choose_controllers(one, [name]).controllers

    def these(*names: str) -> Scenario:
        return work.scenarios(lambda one: [choice for name in names for choice in choose(one, name)])

    for name in work.also:
        if name in LEARNERS:
            raise ValueError(f"--also {name}: is one of the paper's")
    others = {name: these(name) for name in work.also}  # what is wrong with them is told before anything runs
    study = work.study("comparison", these(*LEARNERS), points)
    for name, scenario in others.items():
        other = work.study(f"also-{name}", scenario, points)
        study = Study([*study.cells, *other.cells], [*study.results, *other.results])
    return study


def ahead_until(study: Study, k: int, base: int) -> float:
    """The last time at which the mean gap regret of cell k was below that of cell `base`; 0: never."""
    below = study.samples(k, "gap").mean(axis=0) < study.samples(base, "gap").mean(axis=0)
    return float(study.results[k][0].times[np.flatnonzero(below)[-1]]) if below.any() else 0.0


def final_values(study: Study) -> pd.DataFrame:
    """Regrets at the horizon with 95 % intervals, and paired differences to UCRL-AC; one row a queue and learner."""
    rows = []
    for k, cell in enumerate(study.cells):
        base = named_cell(study, OURS, cell.point)
        row = {
            **cell.values,
            "learner": cell.name,
            "replications": cell.settings.replications,
            "time": cell.settings.horizon,
        }
        for kind in ACCOUNTS:
            ours, theirs = study.samples(base, kind)[:, -1:], study.samples(k, kind)[:, -1:]
            for words, samples in ((kind, theirs), (f"{kind}_minus_ucrl_ac", theirs - ours)):
                mean, low, high = (float(x[0]) for x in interval(samples))
                row |= {words: mean, f"{words}_low": low, f"{words}_high": high}
        rows.append({**row, "below_ucrl_ac_until": 0.0 if k == base else ahead_until(study, k, base)})
    return pd.DataFrame(rows).sort_values(["capacity", "service_rate"], kind="stable", ignore_index=True)


def draw_learners(axes: Axes, study: Study, point: int, kind: str) -> None:
    """Mean and 95 % interval of each learner on one queue."""
    cells = [k for k, cell in enumerate(study.cells) if cell.point == point]
    look = controller_looks(cell.name for cell in study.cells)
    for k in cells:
        style = look[study.cells[k].name]
        times = study.results[k][0].times
        mean_curve(axes, times, study.samples(k, kind), label(study.cells[k].name), style)
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    last = [study.samples(k, kind)[:, -1].mean() for k in cells]
    axes.set_ylim(max(10.0, 1e-4 * max(last)), 2.0 * max(last))
    grid(axes)


def draw(study: Study, kind: str, work: Work) -> Figure:
    """Six panels in the paper's arrangement."""
    values = [next(cell.values for cell in study.cells if cell.point == point) for point in range(6)]
    account = {"expected": "expected regret, the paper's account", "gap": "gap account of the regret"}[kind]
    figure = panels(
        lambda point, axes: draw_learners(axes, study, point, kind),
        [f"({'abcdef'[k]}) S = {one['capacity']}, µ = {one['service_rate']}" for k, one in enumerate(values)],
        (2, 3),
        (9.6, 5.8),
        x="time (log scale)",
        y="regret (log scale)",
        title=f"Fig. 1: {account}; mean and 95 % interval of {work.amount}",
        title_size=9.5,
        share_x=True,
    )
    with lettering(map(label, {cell.name for cell in study.cells})) as letters:
        legend_below(figure, curves_of(figure.axes[0]), letters, grow=True)
    return figure


def written(mean: float, low: float, high: float) -> str:
    return f"{mean:,.0f} ±{0.5 * (high - low):,.0f}"


def panels_text(frame: pd.DataFrame, column: str) -> str:
    """One account (or its difference to UCRL-AC's): a row a panel, a column a learner."""
    queues = list(dict.fromkeys(zip(frame["capacity"], frame["service_rate"], strict=True)))
    learners = [name for name in dict.fromkeys(frame["learner"]) if name != OURS or column in ACCOUNTS]
    rows = []
    for letter, (S, rate) in zip("abcdef", queues, strict=False):
        here = frame[(frame["capacity"] == S) & (frame["service_rate"] == rate)].set_index("learner")
        entries = [written(*here.loc[name, [column, f"{column}_low", f"{column}_high"]]) for name in learners]
        rows.append((f"({letter}) S = {S}, µ = {rate}", *entries))
    return markdown_table(("panel", *map(label, learners)), rows)


def as_text(study: Study, frame: pd.DataFrame, work: Work) -> str:
    rows = []
    for row in frame.to_dict("records"):
        ours = row["learner"] == OURS
        entries = []
        for kind in ACCOUNTS:
            entries.append(written(row[kind], row[f"{kind}_low"], row[f"{kind}_high"]))
            less = f"{kind}_minus_ucrl_ac"
            entries.append("" if ours else written(row[less], row[f"{less}_low"], row[f"{less}_high"]))
        until = "" if ours else f"{row['below_ucrl_ac_until']:,.0f}"
        rows.append((row["capacity"], row["service_rate"], label(row["learner"]), *entries, until))
    headings = ("S", "µ", "learner", "expected regret", "less UCRL-AC's", "gap regret", "less UCRL-AC's", "below until")
    return (
        f"## Fig. 1: regret at time {work.horizon:,.0f}\n\n"
        + paragraph(
            f"Mean ± half of the 95 % interval over {work.amount}. Differences are paired: the same jobs in the same "
            "trajectory. Below until: the last time at which the learner's mean gap regret was below that of UCRL-AC."
        )
        + markdown_table(headings, rows)
        + f"\n\nGap regret:\n\n{panels_text(frame, 'gap')}"
        + f"\n\nGap regret less UCRL-AC's, paired:\n\n{panels_text(frame, 'gap_minus_ucrl_ac')}"
        + f"\n\nExpected regret:\n\n{panels_text(frame, 'expected')}"
        + f"\n\nGap regret, quantiles over the trajectories:\n\n{quantiles_table(study, called=label)}"
    )


def reproduce(work: Work) -> ExperimentResult:
    """Run the learners, draw the figure in both accounts, tell the final values."""
    study = comparison(work)
    frame = final_values(study)
    figures = {f"figure1{'' if kind == 'expected' else '-gap'}.png": draw(study, kind, work) for kind in ACCOUNTS}
    return work.publish("figure1", frame, as_text(study, frame, work), figures)
