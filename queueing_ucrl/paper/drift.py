"""Rates that change in time, against the best policy of all: rush hours, rare large jumps, a slow trend.

Each world repeats (the last two after a long time), so the best policy in time is known (`solve_periodic`), and
`oracle-anticipating` plays it. What a controller loses is what that one earns more on the same jobs, in expected
rewards; the mean has Student's 95 % interval over replications, and quantiles are of the same paired differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.experiments.study import Study
from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Sinusoid, Steps
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.beyond import Newcomer, half_interval
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, paragraph
from queueing_ucrl.report.drawing import grid, mean_curve, panels
from queueing_ucrl.report.palette import controller_looks
from queueing_ucrl.scenario import ControllerChoice, Scenario, load_scenario
from queueing_ucrl.simulation.settings import RunSettings

BEST = "oracle-anticipating"
QUANTILES = (0.5, 0.9, 0.99)
JUMPS_PERIOD = 10_000.0
TREND_PERIOD = 20_000.0


def the_queue(gold: ArrivalPattern, basic: ArrivalPattern) -> Queue:
    """The paper's first queue, its rates changing."""
    classes = [
        JobClass(name, 1.0, reward, Linear(0.1), pattern=pattern)
        for name, reward, pattern in (("gold", 20.0, gold), ("basic", 10.0, basic))
    ]
    return Queue(5, 20, 0.3, classes)


def jumps() -> Queue:
    """Four times in 10,000 everything is different: gold between a fifth and three times its rate."""
    gold = Steps([2_000.0, 4_500.0, 6_000.0, 8_500.0], [1.0, 0.2, 3.0, 1.0, 0.2], JUMPS_PERIOD)
    basic = Steps([4_500.0, 8_500.0], [1.0, 0.5, 2.0], JUMPS_PERIOD)
    return the_queue(gold, basic)


def trend() -> Queue:
    """Gold swings by 80 % within 20,000, thousands of services, and basic the other way: always a little different."""
    return the_queue(Sinusoid(0.8, TREND_PERIOD, 0.0), Sinusoid(0.8, TREND_PERIOD, math.pi))


@dataclass(frozen=True)
class World:
    """A queue, how long it is run, and the time over which a learner should forget in it."""

    title: str
    queue: Queue
    horizon: float
    memory: float
    review: float  # at least so often, with change detection


def worlds() -> dict[str, World]:
    """The three."""
    return {
        "rush hours": World(
            "Rush hours (24 h, as rush-hours.toml)", load_scenario("rush-hours").queue, 480.0, 4.0, 0.2
        ),
        "jumps": World("Rare large jumps", jumps(), JUMPS_PERIOD, 400.0, 10.0),
        "trend": World("A slow trend", trend(), TREND_PERIOD, 1_000.0, 20.0),
    }


LOOKS = controller_looks(
    ["oracle-following", "best-stationary", "never forgets", "window", "discount", "changes", "thompson, changes"],
    dict.fromkeys(["never forgets", "window", "discount", "changes"], "certainty-equivalent"),
)


def controllers(world: World) -> tuple[ControllerChoice, ...]:
    """The optimum, those who know the rates, and learners by what they forget."""
    forgets: dict[str, dict[str, Any]] = {
        kind: {"memory": world.memory, "forgetting": kind} for kind in ("window", "discount")
    }
    changes = {"memory": 10.0 * world.horizon, "forgetting": "changes", "review_period": world.review}
    made: dict[str, tuple[str, dict[str, Any]]] = {
        BEST: (BEST, {}),
        "oracle-following": ("oracle-following", {}),
        "best-stationary": ("best-stationary", {}),
        "never forgets": ("certainty-equivalent", {"review_period": world.review}),
        **{kind: ("certainty-equivalent", options) for kind, options in forgets.items()},
        "changes": ("certainty-equivalent", changes),
        "thompson, changes": ("thompson", changes),
    }
    return tuple(Newcomer(name, options).choice(label) for label, (name, options) in made.items())


def drift_study(work: Work) -> Study:
    """All controllers on the same jobs of each world; horizons are the worlds' own."""
    points = []
    for name, world in worlds().items():
        horizon = min(world.horizon, work.horizon)
        settings = RunSettings(
            horizon, work.replications, work.seed, grid=tuple(np.linspace(0.0, horizon, 41)[1:].tolist())
        )
        points.append(Scenario("Drift", world.queue, Path("drift"), controllers(world), settings, {"world": name}))
    return work.study("drift", replace(points[0], values={}, points=tuple(points)))


def losses(study: Study) -> pd.DataFrame:
    """One row a world and controller: what the best policy earns more, paired, with quantiles."""
    rows = []
    for k, cell in enumerate(study.cells):
        earned = study.samples(k, "expected_reward")
        if cell.name == BEST:
            best = earned
            continue
        lost = (best - earned)[:, -1]
        row: dict[str, Any] = {
            "world": cell.values["world"],
            "controller": cell.name,
            "horizon": cell.settings.horizon,
            "replications": len(lost),
            "best_reward": float(best[:, -1].mean()),
            "lost": float(lost.mean()),
            "half_interval": half_interval(lost),
        }
        for q in QUANTILES:
            row[f"quantile_{100 * q:g}"] = float(np.quantile(lost, q))
        rows.append(row)
    return pd.DataFrame(rows)


def as_text(frame: pd.DataFrame) -> str:
    rows = []
    for row in frame.to_dict("records"):
        part = f"{100 * row['lost'] / row['best_reward']:.2f}"
        tail = (f"{row[f'quantile_{100 * q:g}']:,.0f}" for q in QUANTILES)
        rows.append((row["world"], row["controller"], f"{row['lost']:,.0f} ±{row['half_interval']:,.0f}", part, *tail))
    return markdown_table(("world", "controller", "lost", "% of the optimum", "50 %", "90 %", "99 %"), rows)


def draw_world(axes: Axes, study: Study, point: int) -> None:
    own = {cell.name: k for k, cell in enumerate(study.cells) if cell.point == point}
    best, times = study.samples(own[BEST], "expected_reward"), study.results[own[BEST]][0].times
    for name, look in LOOKS.items():
        lost = best - study.samples(own[name], "expected_reward")
        mean_curve(axes, times, lost, name, look, 0.15, width=1.5)
    axes.axhline(0.0, color="black", linewidth=0.8)
    grid(axes)


def draw(study: Study) -> Figure:
    """A panel a world: what was lost so far."""
    return panels(
        lambda point, axes: draw_world(axes, study, point),
        [world.title for world in worlds().values()],
        (1, 3),
        (12, 4.6),
        x="time",
        y="lost to the best policy in time",
        legend_columns=7,
    )


def reproduce(work: Work) -> ExperimentResult:
    """The study, its table and figure."""
    study = drift_study(work)
    frame = losses(study)
    ends = ", ".join(
        f"{name} to {cell:,.0f}" for name, cell in dict(zip(frame["world"], frame["horizon"], strict=True)).items()
    )
    text = (
        "## Rates that change, against the best policy in time\n\n"
        + paragraph(
            f"What `{BEST}` earns more on the same jobs (expected rewards), {work.replications} trajectories: {ends}. "
            "± half of the 95 % interval of the mean; quantiles over trajectories."
        )
        + as_text(frame)
    )
    return work.publish("drift", frame, text, {"drift.png": draw(study)})
