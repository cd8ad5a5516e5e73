r"""How good a learner of arrival rates can be: theory beside simulation.

Near a flip of the best policy every learner loses sigma^2 / (2 G) at one of two vectors of rates, mirrored in the
direction that is hardest to tell apart, and certainty equivalence loses no more, times the price (q - 1) / ln q of its
grid of reviews. Away from flips its loss is bounded, an exact sum. With c servers at load 1 it grows like sqrt(c). On
small horizons the best of all learners is known by dynamic programming. What is lost is pseudo regret, the gain
deficits of the policies in force; intervals are Student's, 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.accounts.learner_limits import Flip, expected_loss, price_of_grid
from queueing_ucrl.experiments.campaign import with_run
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.beyond import FLIP, half_interval, random_queues
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, paragraph
from queueing_ucrl.report.drawing import grid
from queueing_ucrl.report.palette import BLUE, GREEN, VERMILION
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.solvers.bayes import BayesProblem, ShareEstimate, SlottedQueue
from queueing_ucrl.solvers.solve import solve

DISTANCES = (0.005, 0.01, 0.02)  # of gold's rate below it
RATIOS = (1.01, 1.1, 2.0)  # of the grids of reviews
SETTLED = 2_000.0  # from then on two policies are in question only: other flips are 6 standard errors away
FLIP_HORIZON = 1e5  # at most
FLIP_REPEATS = 10  # times as many trajectories as elsewhere: the loss is a rare large one
SERVERS = (4, 16, 64, 256)
PRIOR_HORIZON = 1e4  # of the study of the load prior: what it changes is over long before
BOUNDED = Queue(2, 12, 1.0, [JobClass("job", 2.5, 6.0, Linear(1.0))])  # flips at 2.205 and 3.583
COLOURS = dict(zip(RATIOS, (BLUE, GREEN, VERMILION), strict=True))
ROOM = np.array([[10.0, 3.0], [10.0, 3.0], [8.0, 1.0], [6.0, -1.0]])  # rewards of the slotted queue
PRIORS = ((2.0, 2.0, 8.0), (1.0, 1.0, 4.0), (1.0, 1.0, 10.0), (3.0, 1.0, 4.0))
SLOTS = (25, 50, 100)


def reviewed(ratio: float) -> ControllerChoice:
    """Certainty equivalence on a grid of this ratio."""
    options = {"review_ratio": ratio}
    return ControllerChoice(f"grid {ratio:g}", options, make_controller("certainty-equivalent", options))


def reviews(queue: Queue, ratio: float, horizon: float) -> list[float]:
    """The times of its reviews."""
    first = 1.0 / queue.max_service_rate
    return [first * ratio**k for k in range(1 + math.ceil(math.log(horizon / first) / math.log(ratio)))]


def near_flip_study(work: Work) -> Study:
    """The paper's first queue with gold at a distance below its flip, three grids of reviews."""
    horizon, runs = min(work.horizon, FLIP_HORIZON), FLIP_REPEATS * work.replications
    first = work.scenarios(lambda one: one.controllers).points[0]
    first = with_run(first, horizon=horizon, replications=runs)
    first = replace(first, settings=replace(first.settings, grid=(min(SETTLED, 0.5 * horizon), horizon)))
    basic = first.queue.classes[1].arrival_rate
    points = [
        replace(
            first,
            system=first.queue.with_arrival_rates([FLIP - distance, basic]),
            controllers=tuple(map(reviewed, RATIOS)),
            values={"distance": distance},
        )
        for distance in DISTANCES
    ]
    return work.study("limits-flip", replace(points[0], title="Near a flip", values={}, points=tuple(points)))


def near_flip(study: Study) -> pd.DataFrame:
    """One row a distance and grid: what was lost after SETTLED beside what the limit says."""
    rows = []
    for k, cell in enumerate(study.cells):
        queue, ratio, distance = cell.system.queue, cell.controller.review_ratio, cell.values["distance"]
        rival = solve(queue.with_arrival_rates([FLIP + distance, queue.arrival_rates[1]])).policy
        flip = Flip.between(queue, rival)
        samples = study.samples(k, "pseudo")
        begin, end = study.results[k][0].times[[0, -1]].tolist()
        lost = samples[:, -1] - samples[:, 0]
        rows.append(
            {
                "distance": distance,
                "ratio": ratio,
                "replications": len(lost),
                "begin": begin,
                "end": end,
                "gap": flip.gap,
                "constant": flip.constant,
                "gold_alone": Flip.between(queue, rival, along=(1.0, 0.0)).constant,
                "limit": flip.loss(begin, end),
                "expected": flip.loss_between_reviews(reviews(queue, ratio, end), begin, end),
                "lost": float(lost.mean()),
                "half_interval": half_interval(lost),
            }
        )
    return pd.DataFrame(rows)


def one_class_scenario(work: Work, queues: dict[str, Queue], horizon: Callable[[Queue], float]) -> Scenario:
    """Queues of one class under certainty equivalence on the grid of ratio 1.1."""
    points = []
    for name, queue in queues.items():
        settings = RunSettings(horizon(queue), 5 * work.replications, work.seed, grid_points=41)
        points.append(Scenario(name, queue, Path("limits"), (reviewed(1.1),), settings, {"queue": name}))
    return replace(points[0], title="One class", values={}, points=tuple(points))


def halfin_whitt(servers: int) -> Queue:
    r"""Load 1, mu = R = 1 and C(t) = t / 2, the same for every c: the best level is c + 1.107 sqrt(c) to leading order.

    X, the limit of (s - c) / sqrt(c), has drift -min(x, 0), variance 2 and a density p, reflected at b. Waits cost
    sqrt(c) E[max(X, 0)] / 2 and rejections sqrt(c) p(b) in a unit of time, k = sqrt(pi / 2):
    c - rho = sqrt(c) (1 + b^2 / 4) / (k + b), least at b = sqrt(k^2 + 4) - k = 1.107.
    """
    job = JobClass("job", float(servers), 1.0, Linear(0.5))
    return Queue(servers, servers + math.ceil(4.0 * math.sqrt(servers)), 1.0, [job])


def one_class(study: Study) -> pd.DataFrame:
    """One row a queue and time: what was lost beside the exact sum."""
    rows = []
    for k, cell in enumerate(study.cells):
        queue, samples, times = cell.system.queue, study.samples(k, "pseudo"), study.results[k][0].times
        expected = expected_loss(queue, reviews(queue, 1.1, float(times[-1])), times)
        for t, time in enumerate(times.tolist()):
            rows.append(
                {
                    "queue": cell.values["queue"],
                    "servers": queue.servers,
                    "capacity": queue.capacity,
                    "optimum": solve(queue).gain,
                    "time": time,
                    "replications": len(samples),
                    "expected": float(expected[t]),
                    "lost": float(samples[:, t].mean()),
                    "half_interval": half_interval(samples[:, t]),
                }
            )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Learner:
    """A point estimate, by the weights it adds to the counts."""

    name: str
    estimate: Callable[[tuple[float, ...]], ShareEstimate]


LEARNERS = (
    Learner("posterior mean", lambda prior: ShareEstimate(prior[0], prior[1], sum(prior))),
    Learner(
        "one of each class before",
        lambda prior: ShareEstimate(1.0, 1.0, sum(prior) / (0.5 * (prior[0] + prior[1]))),
    ),
    Learner("N / t", lambda prior: ShareEstimate(0.0, 0.0, 0.0)),
)


def bayes() -> pd.DataFrame:
    """One row a prior and number of slots: what is lost to one who is told, in expectation over the prior; exact."""
    queue = SlottedQueue(2, ROOM, 0.15)
    rows = []
    for prior in PRIORS:
        for slots in SLOTS:
            problem = BayesProblem(queue, np.array(prior), slots)
            told = problem.value_when_known()
            row = {"prior": " ".join(f"{a:g}" for a in prior), "slots": slots, "told": told}
            row["best"] = told - problem.best_value()
            rows.append({**row, **{one.name: told - problem.value_of_learner(one.estimate(prior)) for one in LEARNERS}})
    return pd.DataFrame(rows)


MANY = 10  # trajectories, from which on reviews at arrivals are judged too
AT_ARRIVALS = {"prior": "load", "review_at": "arrivals", "review_ratio": 1.01}
VARIANTS: dict[str, dict[str, Any]] = {"none": {}, "load": {"prior": "load"}, "load, at arrivals": AT_ARRIVALS}


def prior_study(work: Work) -> Study:
    """The sixty random queues of `beyond`: certainty equivalence, with the load prior, and reviewed at arrivals too.

    The last takes five times as long as both others, and is left out of quick runs.
    """
    chosen = tuple(
        ControllerChoice(name, options, make_controller("certainty-equivalent", options))
        for name, options in VARIANTS.items()
        if name != "load, at arrivals" or work.replications >= MANY
    )
    settings = RunSettings(min(work.horizon, PRIOR_HORIZON), 2 * work.replications, work.seed, grid_points=2)
    points = [
        Scenario("Load prior", queue, Path("limits"), chosen, settings, {"queue": k, "load": round(queue.load, 3)})
        for k, queue in enumerate(random_queues())
    ]
    return work.study("limits-prior", replace(points[0], values={}, points=tuple(points)))


def prior_gains(study: Study) -> pd.DataFrame:
    """One row a queue and variant: gap regret as it is and with the variant, and the paired difference."""
    rows = []
    for k, cell in enumerate(study.cells):
        if cell.name == "none":
            without = study.samples(k, "gap")[:, -1]
            continue
        with_it = study.samples(k, "gap")[:, -1]
        difference, half = with_it - without, half_interval(with_it - without)
        rows.append(
            {
                "queue": f"random {cell.values['queue']}",
                "variant": cell.name,
                "load": cell.values["load"],
                "replications": len(difference),
                "without": float(without.mean()),
                "with": float(with_it.mean()),
                "difference": float(difference.mean()),
                "half_interval": half,
                "wins": bool(difference.mean() + half < 0),
                "loses": bool(difference.mean() - half > 0),
            }
        )
    return pd.DataFrame(rows)


def prior_text(frame: pd.DataFrame) -> str:
    counts = f"On {frame['wins'].sum()} of {len(frame)} queues it loses less for sure (95 %, paired, "
    counts += (
        f"{frame['replications'].iloc[0]} trajectories each), on {frame['loses'].sum()} more for sure, on the other "
    )
    counts += f"{(~frame['wins'] & ~frame['loses']).sum()} neither. The median of the ratio of the two regrets is "
    both = frame[(frame["without"] > 0) & (frame["with"] > 0)]
    ratios = both["with"] / both["without"]
    low, middle, high = (float(ratios.quantile(share)) for share in (0.1, 0.5, 0.9))
    return paragraph(f"{counts}{middle:.3f} (on nine queues in ten above {low:.3f}, on nine in ten below {high:.3f}).")


def at_arrivals_text(frame: pd.DataFrame) -> str:
    if frame.empty:
        return f"Reviews at arrivals are judged from {MANY} trajectories on."
    return "### The load prior and reviews at arrivals, on a grid of 1.01\n\n" + prior_text(frame)


def flip_text(frame: pd.DataFrame) -> str:
    rows = [
        (
            f"{row['distance']:g}",
            f"{row['ratio']:g}",
            f"{row['constant']:.1f}",
            f"{price_of_grid(row['ratio']):.3f}",
            f"{row['limit']:.2f}",
            f"{row['expected']:.2f}",
            f"{row['lost']:.2f} ±{row['half_interval']:.2f}",
        )
        for row in frame.to_dict("records")
    ]
    headings = ("distance", "grid", "σ²/2G", "price", "limit, part", "on this grid", "measured")
    shares = ", ".join(f"{share:.2f}" for share in (frame["gold_alone"] / frame["constant"])[:: len(RATIOS)])
    told = f"As a part of σ²/2G, the bound for two queues that differ in gold's rate alone: {shares} by distance."
    return f"{markdown_table(headings, rows)}\n\n{told}"


def one_class_text(frame: pd.DataFrame) -> str:
    rows = [
        (
            row["queue"],
            row["servers"],
            row["capacity"],
            f"{row['optimum']:,.2f}",
            f"{row['time']:,.0f}",
            f"{row['expected']:.2f}",
            f"{row['lost']:.2f} ±{row['half_interval']:.2f}",
        )
        for row in frame[frame.groupby("queue")["time"].transform("max") == frame["time"]].to_dict("records")
    ]
    return markdown_table(("queue", "c", "S", "ρ*", "time", "exact sum", "measured"), rows)


def bayes_text(frame: pd.DataFrame) -> str:
    names = [one.name for one in LEARNERS]
    rows = [
        (
            row["prior"],
            row["slots"],
            f"{row['best']:.3f}",
            *(f"{row[n]:.3f} ({row[n] / row['best']:.3f})" for n in names),
        )
        for row in frame.to_dict("records")
    ]
    return markdown_table(("prior α₁ α₂ α₀", "slots", "best of all", *names), rows)


def draw_flip(axes: Axes, frame: pd.DataFrame) -> None:
    for ratio, group in frame.groupby("ratio"):
        colour = COLOURS[float(str(ratio))]
        axes.plot(group["distance"], group["expected"], color=colour, label=f"grid {ratio:g}: theory")
        axes.errorbar(
            group["distance"] * (1.0 + 0.03 * (RATIOS.index(float(str(ratio))) - 1)),
            group["lost"],
            group["half_interval"],
            fmt="o",
            color=colour,
            label=f"grid {ratio:g}: simulated, 95 %",
        )
    limit = frame.drop_duplicates("distance")
    axes.plot(limit["distance"], limit["limit"], "k--", label="limit for every learner")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("distance of gold's rate from the flip (log scale)")
    axes.set_ylabel("lost (log scale)")
    axes.set_title("Near a flip, and the price of a grid", loc="left", fontsize=10)


def draw_curve(axes: Axes, frame: pd.DataFrame, colour: str) -> None:
    axes.plot(frame["time"], frame["expected"], color=colour, label="exact sum")
    low, high = frame["lost"] - frame["half_interval"], frame["lost"] + frame["half_interval"]
    axes.fill_between(frame["time"], low, high, color=colour, alpha=0.25, linewidth=0, label="simulated, 95 %")
    axes.set_xscale("log")
    axes.set_xlabel("time (log scale)")
    axes.set_ylabel("lost")
    axes.set_title("Away from flips: bounded", loc="left", fontsize=10)


def draw_servers(axes: Axes, frame: pd.DataFrame) -> None:
    last = frame[frame.groupby("queue")["time"].transform("max") == frame["time"]]
    axes.plot(last["servers"], last["expected"], color=BLUE, label="exact sum")
    axes.errorbar(last["servers"], last["lost"], last["half_interval"], fmt="o", color=BLUE, label="simulated, 95 %")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("servers (log scale)")
    axes.set_ylabel("lost, in rewards of a job")
    axes.set_title("Many servers, load 1, room c + 4√c", loc="left", fontsize=10)


def draw_bayes(axes: Axes, frame: pd.DataFrame) -> None:
    for one, marker, colour in zip(LEARNERS, ("o", "s", "^"), (GREEN, BLUE, VERMILION), strict=True):
        above = 100.0 * (frame[one.name] / frame["best"] - 1.0)
        axes.plot(np.arange(len(frame)), above, marker, color=colour, label=one.name)
    axes.set_xticks(np.arange(len(frame)), [f"{row.prior}, {row.slots}" for row in frame.itertuples()], rotation=90)
    axes.set_yscale("log")
    axes.set_ylabel("loss above the best learner's, % (log scale)")
    axes.set_title("Exact, on small horizons (prior, slots)", loc="left", fontsize=10)


def draw(flips: pd.DataFrame, bounded: pd.DataFrame, servers: pd.DataFrame, exact: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 9.5), layout="constrained")
    panels = figure.subplots(2, 2)
    draw_flip(panels[0, 0], flips)
    draw_curve(panels[0, 1], bounded, GREEN)
    draw_servers(panels[1, 0], servers)
    draw_bayes(panels[1, 1], exact)
    for axes in panels.flat:
        grid(axes)
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.32 if axes is panels[1, 1] else -0.16),
            ncols=2,
            frameon=False,
            fontsize=8,
        )
    return figure


def reproduce(work: Work) -> ExperimentResult:
    """The studies, the exact tables, and one figure."""
    flips = near_flip(near_flip_study(work))
    away = work.study("limits-bounded", one_class_scenario(work, {"away": BOUNDED}, lambda queue: 1e4))
    many = {f"c = {c}": halfin_whitt(c) for c in SERVERS}
    grown = work.study("limits-servers", one_class_scenario(work, many, lambda queue: 1000.0))
    bounded, servers, exact, prior = one_class(away), one_class(grown), bayes(), prior_gains(prior_study(work))
    span = flips.iloc[0]
    text = (
        "## How good a learner can be\n\n"
        + paragraph(
            f"Near a flip: the paper's first queue, gold's rate below {FLIP}; pseudo regret from {span['begin']:,.0f} "
            f"to {span['end']:,.0f} of certainty equivalence, {int(span['replications'])} trajectories."
        )
        + flip_text(flips)
        + "\n\n### One class: bounded away from flips, and many servers\n\n"
        + one_class_text(pd.concat([bounded, servers], ignore_index=True))
        + f"\n\n{servers.iloc[0]['replications']} trajectories each."
        + "\n\n### What is lost to one who is told, on average over a prior: exact (and as a part of the best's)\n\n"
        + bayes_text(exact)
        + "\n\n### The load prior on sixty random queues\n\n"
        + prior_text(prior[prior["variant"] == "load"])
        + at_arrivals_text(prior[prior["variant"] == "load, at arrivals"])
    )
    parts = {"flip": flips, "bounded": bounded, "servers": servers, "bayes": exact, "prior": prior}
    frame = pd.concat([one.assign(study=name) for name, one in parts.items()], ignore_index=True)
    return work.publish("limits", frame, text, {"limits.png": draw(flips, bounded, servers, exact)})
