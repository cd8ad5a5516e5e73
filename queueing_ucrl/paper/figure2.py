"""Fig. 2 of the paper: the regret bounds of UCRL-AC, UCRL2 and UCRL3 beside the regrets, S = 20, mu = 0.3.

The paper does not say which D, U, A or remainder terms it drew; the caption states ours. The regrets are those of
Fig. 1(a), taken from its trials where they were made already.
"""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.model.bounds import policy_iteration_bound, value_iteration_bias_bound, value_iteration_bound
from queueing_ucrl.model.tabular_bounds import TabularBound
from queueing_ucrl.paper.figure1 import comparison, label
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, paragraph
from queueing_ucrl.report.drawing import curves_of, grid, legend_below, mean_curve
from queueing_ucrl.report.lettering import lettering
from queueing_ucrl.report.palette import BLUE, SKY, VERMILION, controller_looks
from queueing_ucrl.solvers.solve import solve

FIRST = (0,)  # the point of the study that Fig. 1(a) shows
STYLES = {  # the bounds that are drawn
    "UCRL-AC (PI)": (BLUE, "--"),
    "UCRL2": (VERMILION, "--"),
    "UCRL3, leading terms": (SKY, "--"),
    "UCRL3, all terms": (SKY, ":"),
}


def bounds_at(cell: Cell, times: FloatArray) -> dict[str, FloatArray]:
    """Each bound at `times`."""
    queue, ours = cell.queue, cell.controller
    gain, known = solve(queue).gain, (ours.arrival_rate_bounds, ours.first_episode)
    tabular = TabularBound.of(queue)
    return {
        "UCRL-AC (PI)": policy_iteration_bound(queue, gain, *known)(times),
        "UCRL-AC (VI)": value_iteration_bound(queue, gain, *known)(times),
        "UCRL2": tabular.ucrl2(times),
        "UCRL3, leading terms": tabular.ucrl3_leading(times),
        "UCRL3, all terms": tabular.ucrl3(times),
    }


def caption(cell: Cell) -> str:
    """What the bounds are made of."""
    b, ours = TabularBound.of(cell.queue), cell.controller
    low, high = ours.arrival_rate_bounds
    V = value_iteration_bias_bound(cell.queue, high)
    return (
        f"U = Λ + µ(S) = {b.tick_rate:g} ticks a unit of time, D = {b.diameter:.1f} ticks (exact), X = {b.states} "
        f"states, A = m + 1 = {b.actions} actions, K = {b.largest_support}, δ = {b.delta:g}, R_max = {b.max_reward:g}. "
        f"UCRL-AC (PI): Thm 5.2, all three terms, Λ in [{low:g}, {high:g}], t_1 = {ours.first_episode:g}, in "
        f"expectation; for VI the worst case V = {V:.2e} takes its place, far above the figure. UCRL2: "
        f"34 D X sqrt(A T log(T/δ)), no remainder, with probability {1 - b.delta:g}. UCRL3, with probability "
        f"{1 - 4 * b.delta:g}: leading terms with the exact local diameters, without O(D X² A log²(T/δ)), which has no "
        "published constant; all terms are those of the proof."
    )


def table(study: Study) -> pd.DataFrame:
    """Bounds and regrets at the horizon."""
    cell = study.cells[0]
    final = {name: float(values[-1]) for name, values in bounds_at(cell, np.array([cell.settings.horizon])).items()}
    rows = [("bound", name, value, np.nan, np.nan) for name, value in final.items()]
    for k, one in enumerate(study.cells):
        mean, low, high = (float(x[0]) for x in interval(study.samples(k, "expected")[:, -1:]))
        rows.append(("measured", label(one.name), mean, low, high))
    frame = pd.DataFrame(rows, columns=["kind", "learner", "regret", "low", "high"])
    return frame.assign(over_ucrl_ac_bound=frame["regret"] / final["UCRL-AC (PI)"])


def draw(study: Study, work: Work) -> Figure:
    """Bounds dashed, regrets as in Fig. 1(a), log-log."""
    cell = study.cells[0]
    figure = Figure(figsize=(8.6, 6.8), layout="constrained")
    axes = figure.subplots()
    tabular = TabularBound.of(cell.queue)
    first = max(cell.controller.first_episode, 1.01 * tabular.states * tabular.actions / tabular.tick_rate)
    times = np.geomspace(first, cell.settings.horizon, 200)
    bounds = bounds_at(cell, times)
    for name, (colour, line) in STYLES.items():
        axes.plot(times, bounds[name], color=colour, linestyle=line, label=f"bound, {name}")
    look = controller_looks(one.name for one in study.cells)
    for k, one in enumerate(study.cells):
        times_of = study.results[k][0].times
        shown = times_of >= first
        samples = study.samples(k, "expected")[:, shown]
        mean_curve(axes, times_of[shown], samples, f"regret, {label(one.name)}", look[one.name])
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="clip")
    axes.set_ylim(10.0, 2.0 * max(float(bounds[name].max()) for name in STYLES))
    axes.set(xlabel="time (log scale)", ylabel="regret (log scale)")
    grid(axes)
    names = [name for _, name in curves_of(axes)]
    with lettering(names) as letters:
        legend_below(axes, curves_of(axes), letters, grow=True)
    axes.set_title(f"Fig. 2: bounds and regrets, S = 20, µ = 0.3 ({work.amount})", loc="left", fontsize=10)
    figure.supxlabel(textwrap.fill(caption(cell), 150), fontsize=7.5, x=0.01, ha="left")
    return figure


def reproduce(work: Work) -> ExperimentResult:
    """The trials of Fig. 1(a), the bounds, the figure and the values at the horizon."""
    study = comparison(work, FIRST)
    frame = table(study)
    rows = []
    for row in frame.to_dict("records"):
        measured = row["kind"] == "measured"
        value = f"{row['regret']:,.0f} ±{0.5 * (row['high'] - row['low']):,.0f}" if measured else f"{row['regret']:.3g}"
        rows.append((row["kind"], row["learner"], value, f"{row['over_ucrl_ac_bound']:.3g}"))
    text = (
        f"## Fig. 2: bounds and regrets at time {work.horizon:,.0f}, S = 20, µ = 0.3\n\n"
        + paragraph(f"Regrets: expected account, mean ± half of the 95 % interval over {work.amount}.")
        + paragraph(caption(study.cells[0]))
        + markdown_table(("", "learner", "regret", "over UCRL-AC's bound (PI)"), rows)
    )
    return work.publish("figure2", frame, text, {"figure2.png": draw(study, work)})
