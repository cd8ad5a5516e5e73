"""What each piece of the queue's structure buys general-purpose learners, one after another, on the paper's queues.

UCRL2, UCRL2B, KL-UCRL and PSRL (with the prior of its article and with a library's) know nothing of the queue; then
that the state moves by one at most; then what a job of each class pays; then how often jobs leave. UCRL-AC and
certainty equivalence know one thing more: arrivals come at the same rates in every state, and those turned away count
too. At the end stand learners that keep no model, or thresholds only. Gap regrets on common random numbers; Student's
intervals, 95 %, of paired differences where two learners are compared.

A tenth of the trajectories, three at least, to a 50th of the horizon, 10^5 at most: every review of a general-purpose
learner is a value iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.accounts.totals import Comparator, Counts
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.campaign import with_run
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.paper.beyond import OURS, Newcomer, half_interval, ratio
from queueing_ucrl.paper.work import SHORTEST, ExperimentResult, Work, markdown_table, named_cell, paragraph
from queueing_ucrl.report.drawing import grid, panels
from queueing_ucrl.report.palette import GREY, KIND_LOOKS, Look
from queueing_ucrl.scenario import ControllerChoice, Scenario, load_scenario
from queueing_ucrl.scenario.names import INSTALLED
from queueing_ucrl.solvers.solve import solve

DIRECT = "certainty-equivalent"
LONGEST = 1e5
SHARE = 10  # of the trajectories, one in so many
LOOKED_INTO = ("ucrl2", "ucrl2b", "kl-ucrl")  # where they stay, told the support and not
SHORTER = 50  # times, than the horizon
QUANTILES = (0.5, 0.9, 0.99)
STEPS = {
    "none": "The next state may be any of S + 1, and a tick may pay anything from 0 to the largest reward.",
    "support": "Told that the state moves by one at most, it has three next states to weigh and not S + 1, so it no "
    "longer hopes for a leap to the best state of all.",
    "rewards": "Told what a job of each class pays in each state, it has only the chances of what happens to learn.",
    "departures": "Told how often jobs leave in each state, it has only the arrivals to learn; but still anew in every "
    "state, and under every action.",
}
LAST_STEP = (
    "UCRL-AC also knows that arrivals come at the same rates in every state and under every action: one number "
    "a class, learned from every arrival, those turned away too. Certainty equivalence knows as much, and "
    "hopes for none."
)


def _marked(name: str, mark: str) -> Look:
    return Look(KIND_LOOKS[name].colour, mark=mark)


TOLD = {
    "ucrl2": Newcomer("ucrl2", {}, _marked("ucrl2", "o")),
    "ucrl2b": Newcomer("ucrl2b", {}, _marked("ucrl2b", "s")),
    "kl-ucrl": Newcomer("kl-ucrl", {}, _marked("kl-ucrl", "^")),
    "psrl, prior 1": Newcomer("psrl", {"transition_prior": 1.0}, _marked("psrl", "v")),
    "psrl, prior 1/X": Newcomer("psrl", {}, _marked("psrl", "D")),
}
MODEL_FREE = {
    "r-learning": Newcomer("r-learning", {}, Look(GREY, mark="x")),
    "r-learning, falling": Newcomer("r-learning", {"falling": True, "step_size": 1.0}, Look(GREY, mark="+")),
    "actor-critic": Newcomer("actor-critic", {}, Look(GREY, mark="1")),
    "actor-critic, actor x 10": Newcomer("actor-critic", {"actor_step_size": 0.1}, Look(GREY, mark="2")),
    "salmut": Newcomer("salmut", {}, Look(GREY, mark="*")),
    "integer-gradient": Newcomer("integer-gradient", {}, Look(GREY, mark="P")),
}


class FoundAServerFree:
    """Of all requests so far, the share that found a server free."""

    name = "found_a_server_free"

    def __call__(self, counts: Counts, comparator: Comparator) -> FloatArray:
        asked = counts.admitted + counts.rejected
        few = asked[:, : comparator.system.servers].sum(axis=(1, 2))
        return few / np.maximum(1, asked.sum(axis=(1, 2)) + counts.blocked.sum(axis=1))


class TurnedAwayFromAFreeServer:
    """The part of the gap regret that comes of turning jobs away while a server is free."""

    name = "turned_away_from_a_free_server"

    def __call__(self, counts: Counts, comparator: Comparator) -> FloatArray:
        best = comparator.best
        assert best is not None, "the queues of this study have an optimum"
        worth = np.where(best.policy.admits, comparator.system.rewards - best.relative_bias[:, None], 0.0)
        few = comparator.system.servers
        return (counts.rejected[:, :few] * worth[:few]).sum(axis=(1, 2))


WHEREABOUTS = (FoundAServerFree(), TurnedAwayFromAFreeServer())


def label(name: str, step: str) -> str:
    """A learner that is told something, by its name in the study."""
    return name if step == "none" else f"{name}, {step}"


def entrants(one: Scenario) -> Iterator[ControllerChoice]:
    """All of them: UCRL-AC as the scenario has it."""
    for name, entrant in TOLD.items():
        for step in STEPS:
            yield entrant.choice(label(name, step), structure=step)
    yield from (choice for choice in one.controllers if choice.controller.name == OURS)
    yield Newcomer(DIRECT).choice(DIRECT)
    for name, entrant in MODEL_FREE.items():
        yield entrant.choice(name)


def structure_study(work: Work) -> Study:
    """The six queues of the paper."""
    runs, horizon = max(3, work.replications // SHARE), min(max(SHORTEST, work.horizon / SHORTER), LONGEST)
    scenario = work.scenarios(entrants)
    points = tuple(with_run(one, horizon=horizon, replications=runs, grid_points=41) for one in scenario.points)
    return work.study("structure", replace(scenario, settings=points[0].settings, points=points), accounts=WHEREABOUTS)


def before(name: str) -> str | None:
    """The same learner, told one piece less."""
    steps = list(STEPS)
    for one in TOLD:
        for k in range(1, len(steps)):
            if name == label(one, steps[k]):
                return label(one, steps[k - 1])
    return None


def regrets(study: Study) -> pd.DataFrame:
    """One row a queue and controller: mean, interval, quantiles, and what it is beside UCRL-AC and one step less."""
    rows = []
    for k, cell in enumerate(study.cells):
        final = study.samples(k, "gap")[:, -1]
        ours = study.samples(named_cell(study, OURS, cell.point), "gap")[:, -1]
        row = {
            **cell.values,
            "controller": cell.name,
            "time": float(study.results[k][0].times[-1]),
            "replications": len(final),
            "regret": float(final.mean()),
            "half_interval": half_interval(final),
            **{f"q{round(100 * q)}": float(np.quantile(final, q)) for q in QUANTILES},
            "above_ucrl_ac": float((final - ours).mean()),
            "above_half_interval": half_interval(final - ours),
            "step_from": before(cell.name),
        }
        for account in WHEREABOUTS:
            found = study.samples(k, account.name)[:, -1]
            row |= {account.name: float(found.mean()), f"{account.name}_half_interval": half_interval(found)}
        row["step_ratio"], row["step_half_interval"] = step_ratio(study, k)
        rows.append(row)
    return pd.DataFrame(rows)


def step_ratio(study: Study, k: int) -> tuple[float, float]:
    """Regret as a part of that of the same learner told one piece less, paired; nan where there is none."""
    cell = study.cells[k]
    less = before(cell.name)
    if less is None:
        return np.nan, np.nan
    theirs: FloatArray = study.samples(named_cell(study, less, cell.point), "gap")[:, -1]
    return ratio(study.samples(k, "gap")[:, -1], theirs) if theirs.mean() > 0 else (np.nan, np.nan)


def overview(frame: pd.DataFrame) -> str:
    """Learners by steps: the geometric mean over the queues of regret as a part of UCRL-AC's."""
    wide = frame.pivot_table("regret", ["capacity", "service_rate"], "controller", sort=False)
    parts = wide.div(wide[OURS], axis=0)

    def share(name: str) -> str:
        value = float(np.exp(np.log(parts[name].clip(lower=1e-9)).mean()))
        return f"{value:.2f}" if value >= 0.01 else f"{value:.1e}"

    rows = [(name, *(share(label(name, step)) for step in STEPS)) for name in TOLD]
    table = markdown_table(("told:", *STEPS), rows)
    free = ", ".join(f"{name} {parts[name].min():.2f} to {parts[name].max():.2f}" for name in MODEL_FREE)
    smallest = float(parts[DIRECT].max())
    return f"{table}\n\n" + paragraph(
        f"Without a model, from the least queue to the most: {free}. "
        f"Certainty equivalence: {100 * smallest:.2g} % of UCRL-AC's at most."
    )


def best_share(capacity: int, rate: float) -> float:
    """The share of requests that find a server free under the best policy, in the long run."""
    queue = load_scenario(INSTALLED / f"paper-s{capacity}-mu{rate}.toml").queue
    return float(evaluate(queue, solve(queue).policy).stationary[: queue.servers].sum())


def whereabouts_text(frame: pd.DataFrame) -> str:
    """Learners by queues, told the support and not: how often a server is free, and what turning away then costs."""
    queues = frame[["capacity", "service_rate"]].drop_duplicates().to_records(index=False).tolist()
    share, cost = (account.name for account in WHEREABOUTS)
    rows: list[tuple[str, ...]] = [("the best policy", *(f"{100 * best_share(*queue):.1f} %" for queue in queues))]
    for name in (name for name in LOOKED_INTO if name in TOLD):
        for step in list(STEPS)[:3]:
            own = frame[frame["controller"] == label(name, step)].set_index(["capacity", "service_rate"])
            found = [cast(Any, own.loc[queue]) for queue in queues]
            shares = (f"{100 * one[share]:.1f} ±{100 * one[f'{share}_half_interval']:.1f} %" for one in found)
            costs = (f"{one[cost]:,.0f} ±{one[f'{cost}_half_interval']:,.0f}" for one in found)
            rows += [(label(name, step), *shares), ("    turned away then", *costs)]
    return markdown_table(("a server is free", *(f"S {c}, µ {r}" for c, r in queues)), rows)


def queue_text(rows: pd.DataFrame) -> str:
    """All controllers on one queue."""
    lines = [
        (
            row["controller"],
            f"{row['regret']:,.0f} ±{row['half_interval']:,.0f}",
            *(f"{row[f'q{round(100 * q)}']:,.0f}" for q in QUANTILES),
            "" if row["controller"] == OURS else f"{row['above_ucrl_ac']:+,.0f} ±{row['above_half_interval']:,.0f}",
            ""
            if row["step_ratio"] != row["step_ratio"]
            else f"{100 * row['step_ratio']:.1f} ±{100 * row['step_half_interval']:.1f}",
        )
        for row in rows.to_dict("records")
    ]
    quantiles = tuple(f"{round(100 * q)} %" for q in QUANTILES)
    return markdown_table(("gap regret", "mean", *quantiles, "above UCRL-AC", "% of one step less"), lines)


def draw_queue(axes: Axes, rows: pd.DataFrame) -> None:
    """Regret by what is told; lines for UCRL-AC and certainty equivalence; to the right those without a model."""
    found = rows.set_index("controller")
    steps = list(STEPS)
    for name, entrant in TOLD.items():
        own = found.loc[[label(name, step) for step in steps]]
        axes.errorbar(
            np.arange(len(steps)),
            np.maximum(1.0, own["regret"]),
            own["half_interval"],
            color=entrant.look.colour,
            marker=entrant.look.mark,
            markersize=4,
            linewidth=1.4,
            label=name,
        )
    for name in (OURS, DIRECT):
        line = KIND_LOOKS[name].line
        axes.axhline(max(1.0, float(found["regret"][name])), linewidth=1.2, label=name, **line)
    for k, (name, entrant) in enumerate(MODEL_FREE.items()):
        place, one = len(steps) - 0.2 + 0.22 * k, [float(found[key][name]) for key in ("regret", "half_interval")]
        axes.errorbar(
            [place],
            [max(1.0, one[0])],
            [one[1]],
            color=entrant.look.colour,
            marker=entrant.look.mark,
            linestyle="",
            label=name,
        )
    axes.set_xticks([*range(len(steps)), len(steps) + 0.35], [*steps, "no model"], fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    grid(axes)


def draw(frame: pd.DataFrame) -> Figure:
    queues = list(frame.groupby(["capacity", "service_rate"], sort=False))
    first = frame.iloc[0]
    return panels(
        lambda k, axes: draw_queue(axes, queues[k][1]),
        [f"S = {capacity}, µ = {rate}" for (capacity, rate), _ in queues],
        (2, 3),
        (12, 8.2),
        x="what it is told",
        y="gap regret (log scale; below 1 drawn at 1)",
        legend_columns=5,
        title=f"Gap regret at {first['time']:,.0f}, mean and 95 % interval of {first['replications']} trajectories",
    )


def reproduce(work: Work) -> ExperimentResult:
    """The study, its tables and its figure."""
    frame = regrets(structure_study(work))
    first = frame.iloc[0]
    told = "\n".join(f"- `{step}`: {words}" for step, words in {**STEPS, "beyond": LAST_STEP}.items())
    tables = "\n\n".join(
        f"### S = {capacity}, µ = {rate}\n\n{queue_text(rows)}"
        for (capacity, rate), rows in frame.groupby(["capacity", "service_rate"], sort=False)
    )
    text = (
        "## What each piece of structure buys\n\n"
        + paragraph(
            f"{first['replications']} trajectories to {first['time']:,.0f}; ± half of Student's 95 % interval, of "
            "paired differences where two are compared. Quantiles are over trajectories."
        )
        + f"{told}\n\n### Regret as a part of UCRL-AC's: geometric means over the six queues\n\n"
        + f"{overview(frame)}### Where the optimistic learners stay\n\n"
        + paragraph(
            "The share of requests that find a server free (of the best policy, the long run's), and the part of the "
            "gap regret that comes of turning jobs away then."
        )
        + f"{whereabouts_text(frame)}\n\n{tables}"
    )
    return work.publish("structure", frame, text, {"structure.png": draw(frame)})
