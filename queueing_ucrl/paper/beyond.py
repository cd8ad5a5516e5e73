"""Beyond the paper: controllers that need no exploration, against UCRL-AC, on the paper's queues and on 60 others.

Every arrival is seen, admitted or not: the rates are learned whatever the policy does. The estimator's effect is kept
apart from the schedule's: each of the optimistic and direct controllers is run with the paper's doubling and with the
grid of ratio 1.1. Regrets are gap regrets on common random numbers; intervals are Student's, 95 %.

The paper's queues get all of the trajectories; the random queues a 25th of them, to 10^5 at most; controllers that do
not know the service rate a tenth, on the paper's queues; rates near a flip of the best policy a fifth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.campaign import with_run
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.costs import Deadline, Free, HoldingCost, Linear, PiecewiseLinear, Power, Saturating
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, quantiles_cell, quantiles_table
from queueing_ucrl.report.drawing import grid, mean_curve, panels
from queueing_ucrl.report.palette import GREY, KIND_LOOKS, Look, controller_looks
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.settings import RunSettings

OURS = "ucrl-ac"
PLAIN = Look(GREY)


@dataclass(frozen=True)
class Newcomer:
    """A controller with its options, and how its curve is drawn."""

    controller: str
    options: dict[str, Any] = field(default_factory=dict)
    look: Look = PLAIN

    def choice(self, label: str, **more: Any) -> ControllerChoice:
        """For a scenario; `label` is its name there, `more` are further options."""
        options = {**self.options, **more}
        return ControllerChoice(label, {"name": self.controller, **options}, make_controller(self.controller, options))


def with_looks(entrants: dict[str, Newcomer], beside: Iterable[str] = (OURS,)) -> dict[str, Newcomer]:
    """Each with the look of its controller, which is the same in all figures; `beside`: who else is drawn there."""
    found = controller_looks([*beside, *entrants], {name: one.controller for name, one in entrants.items()})
    return {name: replace(one, look=found[name]) for name, one in entrants.items()}


NEWCOMERS = with_looks(
    {
        "ucrl-ac-exact": Newcomer("ucrl-ac-exact"),
        "ucrl-ac-exact, grid 1.1": Newcomer("ucrl-ac-exact", {"review_ratio": 1.1}),
        "ucrl-ac-classwise": Newcomer("ucrl-ac-classwise"),
        "ucrl-ac-classwise, grid 1.1": Newcomer("ucrl-ac-classwise", {"review_ratio": 1.1}),
        "thompson, doubling": Newcomer("thompson", {"review_ratio": 2.0}),
        "thompson": Newcomer("thompson"),
        "certainty-equivalent, doubling": Newcomer("certainty-equivalent", {"review_ratio": 2.0}),
        "certainty-equivalent": Newcomer("certainty-equivalent"),
    }
)
RANDOM_QUEUES = 60
QUEUE_SEED = 2024
GRID = 201  # times
RANDOM_HORIZON = 1e5  # at most
DIRECT = ("certainty-equivalent", "thompson", "ucrl-ac-classwise")
UNKNOWN = {name: Newcomer(name, {"service_rate": "unknown"}) for name in DIRECT}
FLIP = 1.06876  # the rate of gold at which the best policy of the paper's first queue changes: basic below 10 or 9
DISTANCES = (0.0, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2)
RATE = 2.0  # jobs per unit of time in every random queue, so that a horizon means as many arrivals as in the paper's


def random_cost(rng: np.random.Generator, reward: float, wait: float) -> HoldingCost:
    """A cost of any kind that takes a fair part of the reward at waits of the given length."""
    part = reward * rng.uniform(0.1, 1.2)
    kinds: list[Callable[[], HoldingCost]] = [
        lambda: Free(),
        lambda: Linear(part / wait),
        lambda: Power(part / wait**1.7, 1.7),
        lambda: Saturating(part, 2.0 / wait),
        lambda: Deadline(part, wait * rng.uniform(0.2, 1.0)),
        lambda: PiecewiseLinear([(0.3 * wait, 0.1 * part), (wait, part)]),
    ]
    return kinds[rng.integers(6)]()


def random_queue(rng: np.random.Generator) -> Queue:
    """m 1 to 8, c 1 to 50, S up to 200, load 0.2 to 3, class rates over two decades, costs of all kinds."""
    count, servers = int(rng.integers(1, 9)), int(rng.integers(1, 51))
    capacity = int(rng.integers(max(2, servers), 201))
    load = float(np.exp(rng.uniform(np.log(0.2), np.log(3.0))))
    service_rate = RATE / (load * min(servers, capacity))
    weights = 10.0 ** rng.uniform(-2.0, 0.0, count)
    rates = RATE * weights / weights.sum()
    wait = max(1.0, 0.5 * (capacity - servers)) / (servers * service_rate)
    rewards = map(float, rng.uniform(1.0, 20.0, count))
    classes = [
        JobClass(f"class {i}", float(rate), reward, random_cost(rng, reward, wait))
        for i, (rate, reward) in enumerate(zip(rates, rewards, strict=True), start=1)
    ]
    return Queue(servers, capacity, service_rate, classes)


def random_queues() -> list[Queue]:
    """The same 60 queues for everybody."""
    rng = np.random.default_rng(QUEUE_SEED)
    return [random_queue(rng) for _ in range(RANDOM_QUEUES)]


def ucrl_ac(queue: Queue) -> ControllerChoice:
    """UCRL-AC with the rate known to a factor of two either way, and a first episode as in the paper."""
    rate = queue.total_arrival_rate
    options = {"arrival_rate_bounds": [0.5 * rate, 2.0 * rate], "first_episode": max(10.0, 3.0 / queue.service_rate)}
    return ControllerChoice(OURS, options, make_controller(OURS, options))


def choices(newcomers: dict[str, Newcomer]) -> list[ControllerChoice]:
    return [one.choice(label) for label, one in newcomers.items()]


def part(work: Work, share: int) -> Work:
    """The same work with so many times fewer trajectories, two at least."""
    return replace(work, replications=max(2, work.replications // share))


def at_decades(scenario: Scenario) -> Scenario:
    """With a grid of times that has the powers of ten."""
    return with_run(scenario, grid_points=GRID)


def paper_study(work: Work) -> Study:
    """The six queues of the paper."""
    return work.study("beyond-paper", at_decades(work.scenarios(lambda one: [*one.controllers, *choices(NEWCOMERS)])))


def random_study(work: Work) -> Study:
    """The 60 random queues, with a 25th of the trajectories, to RANDOM_HORIZON at most."""
    horizon = min(work.horizon, RANDOM_HORIZON)
    settings = RunSettings(horizon, part(work, 25).replications, work.seed, grid_points=GRID)
    points = []
    for k, queue in enumerate(random_queues()):
        shape = {"m": len(queue.classes), "c": queue.servers, "S": queue.capacity}
        values = {"queue": k, **shape, "load": round(queue.load, 3)}
        controllers = (ucrl_ac(queue), *choices(NEWCOMERS))
        points.append(Scenario("Random queues", queue, Path("random"), controllers, settings, values))
    return work.study("beyond-random", replace(points[0], values={}, points=tuple(points)))


def unknown_study(work: Work) -> Study:
    """Controllers that do not know the service rate on the paper's queues, beside UCRL-AC, which does."""
    scenario = part(work, 10).scenarios(lambda one: [*one.controllers, *choices(UNKNOWN)])
    return work.study("beyond-unknown", at_decades(scenario))


def near_flip_study(work: Work) -> Study:
    """The paper's first queue with gold at a distance below the rate at which the best policy changes."""
    first = work.scenarios(lambda one: one.controllers).points[0]
    gold, basic = first.queue.classes
    controllers = tuple(choices({name: Newcomer(name) for name in DIRECT}))
    first = replace(with_run(first, replications=part(work, 5).replications), controllers=controllers)
    points = []
    for distance in DISTANCES:
        queue = first.queue.with_arrival_rates([FLIP - distance, basic.arrival_rate])
        points.append(replace(first, system=queue, values={"distance": distance}))
    whole = replace(points[0], title=f"{gold.name} near {FLIP}", values={}, points=tuple(points))
    return work.study("beyond-near-flip", at_decades(whole))


def half_interval(samples: FloatArray) -> float:
    """Half of Student's 95 % interval of the mean."""
    _mean, low, high = interval(samples[:, None])
    return float(0.5 * (high[0] - low[0]))


def ratio(theirs: FloatArray, ours: FloatArray) -> tuple[float, float]:
    """mean(theirs) / mean(ours) over paired samples, and half of its 95 % interval (delta method, Student's t)."""
    value = theirs.mean() / ours.mean()
    return float(value), half_interval(theirs - value * ours) / float(ours.mean())


def decades(times: FloatArray) -> list[int]:
    """Where the grid is at 10^3, 10^4, .. and at its end."""
    wanted = [10.0**k for k in range(3, 12) if 10.0**k < 0.999 * times[-1]] + [times[-1]]
    return [int(np.argmin(np.abs(times - t))) for t in wanted if t >= times[0] * 0.999]


def against_ours(study: Study) -> pd.DataFrame:
    """One row a queue, newcomer and decade: both regrets, their ratio with its interval, and the paired difference."""
    rows = []
    for k, cell in enumerate(study.cells):
        if cell.name == OURS:
            base = k
            continue
        times = study.results[k][0].times
        for t in decades(times):
            theirs, ours = study.samples(k, "gap")[:, t], study.samples(base, "gap")[:, t]
            value, half = ratio(theirs, ours) if ours.mean() > 0 else (np.nan, np.nan)
            difference = theirs - ours
            error = half_interval(difference)
            rows.append(
                {
                    **cell.values,
                    "controller": cell.name,
                    "time": float(times[t]),
                    "replications": len(theirs),
                    "regret": float(theirs.mean()),
                    "ucrl_ac_regret": float(ours.mean()),
                    "ratio": value,
                    "ratio_half_interval": half,
                    "difference": float(difference.mean()),
                    "difference_half_interval": error,
                    "loses": bool(difference.mean() - error > 0),
                }
            )
    return pd.DataFrame(rows)


def percent(value: float, half: float | None = None) -> str:
    return f"{100 * value:.2f}" + ("" if half is None else f" ±{100 * half:.2f}")


def paper_text(frame: pd.DataFrame, names: Iterable[str] = tuple(NEWCOMERS)) -> str:
    last = frame[frame["time"] == frame["time"].max()]
    queues = last[["capacity", "service_rate"]].drop_duplicates().to_records(index=False)
    rows, names = [], list(names)
    for name in names:
        entries = []
        for capacity, rate in queues:
            own = (last["capacity"] == capacity) & (last["service_rate"] == rate) & (last["controller"] == name)
            row = last[own].iloc[0]
            entries.append(percent(row["ratio"], row["ratio_half_interval"]))
        rows.append((name, *entries))
    ours = last[last["controller"] == names[0]]["ucrl_ac_regret"]
    rows.append(("UCRL-AC itself (gap regret)", *(f"{value:,.0f}" for value in ours)))
    return markdown_table(("% of UCRL-AC's", *(f"S {c}, µ {r}" for c, r in queues)), rows)


def random_text(frame: pd.DataFrame) -> str:
    rows = []
    for name in NEWCOMERS:
        for time, group in frame[frame["controller"] == name].groupby("time"):
            ratios = group["ratio"].dropna()
            shares = [percent(float(value)) for value in (ratios.median(), ratios.quantile(0.9), ratios.max())]
            rows.append((name, f"{time:,.0f}", *shares, (group["difference"] > 0).sum(), group["loses"].sum()))
    headings = ("% of UCRL-AC's", "time", "median", "90th percentile", "worst", "above", "above for sure")
    return markdown_table(headings, rows)


def losses_text(frame: pd.DataFrame) -> str:
    lost = frame[(frame["difference"] > 0) & (frame["time"] == frame["time"].max())]
    rows = []
    for row in lost.to_dict("records"):
        which = (row[key] for key in ("controller", "queue", "m", "c", "S", "load"))
        regrets = (f"{row[key]:,.1f}" for key in ("regret", "ucrl_ac_regret"))
        difference = f"{row['difference']:+,.1f} ±{row['difference_half_interval']:,.1f}"
        rows.append((*which, *regrets, difference, "yes" if row["loses"] else "within noise"))
    headings = ("controller", "queue", "m", "c", "S", "load", "regret", "UCRL-AC's", "difference", "for sure")
    return markdown_table(headings, rows) if rows else "None."


def near_flip_text(study: Study) -> str:
    """Gap regrets at the decades: mean and interval; quantiles and the largest at the end."""
    rows = []
    times = study.results[0][0].times
    for k, cell in enumerate(study.cells):
        samples = study.samples(k, "gap")
        entries = [f"{samples[:, t].mean():,.0f} ±{half_interval(samples[:, t]):,.0f}" for t in decades(times)]
        tail = (quantiles_cell(samples[:, -1]), f"{samples[:, -1].max():,.0f}")
        rows.append((cell.name, f"{cell.values['distance']:g}", *entries, *tail))
    headings = ("gap regret", "distance", *(f"{times[t]:,.0f}" for t in decades(times)), "50 / 90 / 99 %", "largest")
    return markdown_table(headings, rows)


def draw_regrets(
    axes: Axes, study: Study, point: int, looks: Mapping[str, Newcomer], width: float = 1.6, bottom: float = 1.0
) -> None:
    """Gap regret on one queue, means and intervals; both axes logarithmic."""
    for k, cell in enumerate(study.cells):
        if cell.point == point:
            drawn = looks.get(cell.name, Newcomer(OURS, look=KIND_LOOKS[OURS])).look
            times, samples = study.results[k][0].times, study.samples(k, "gap")
            mean_curve(axes, times, samples, cell.name, drawn, 0.2, width=width, least=1e-3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=bottom)
    grid(axes)


def draw_queues(
    study: Study, looks: Mapping[str, Newcomer], title: str, legend_columns: int, *, share_y: bool = False
) -> Figure:
    """Gap regret on the paper's six queues, a panel each."""
    values = [next(cell.values for cell in study.cells if cell.point == point) for point in range(6)]
    return panels(
        lambda point, axes: draw_regrets(axes, study, point, looks),
        [f"S = {one['capacity']}, µ = {one['service_rate']}" for one in values],
        (2, 3),
        (11, 7.2),
        x="time (log scale)",
        y="gap regret (log scale)",
        legend_columns=legend_columns,
        title=title,
        share_x=True,
        share_y=share_y,
    )


def draw_paper(study: Study, work: Work) -> Figure:
    return draw_queues(study, NEWCOMERS, f"Gap regret, mean and 95 % interval, {work.amount}", 3)


def draw_random(frame: pd.DataFrame) -> Figure:
    """The ratios of all queues at the horizon, sorted."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    last = frame[frame["time"] == frame["time"].max()]
    for name, drawn in NEWCOMERS.items():
        ratios = np.sort(last[last["controller"] == name]["ratio"].dropna())
        share = np.arange(1, ratios.size + 1) / max(ratios.size, 1)
        axes.plot(np.maximum(ratios, 1e-5), share, label=name, **drawn.look.line)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("gap regret as a part of UCRL-AC's (log scale)")
    axes.set_ylabel("share of the queues with less")
    grid(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    axes.set_title(f"{RANDOM_QUEUES} random queues, time {last['time'].max():,.0f}", loc="left", fontsize=10)
    return figure


def reproduce(work: Work) -> ExperimentResult:
    """The studies, their tables and figures."""
    paper, others, unknown, flips = paper_study(work), random_study(work), unknown_study(work), near_flip_study(work)
    on_paper, on_random, on_unknown = against_ours(paper), against_ours(others), against_ours(unknown)
    end, count = others.cells[0].settings.horizon, others.cells[0].settings.replications
    few = unknown.cells[0].settings.replications
    text = (
        f"## Beyond the paper: gap regret as a part of UCRL-AC's\n\n{work.amount}; paired, ± half of the 95 % interval."
        f"\n\n### The paper's six queues at time {work.horizon:,.0f}\n\n{paper_text(on_paper)}"
        f"\n\nGap regret, quantiles over trajectories:\n\n{quantiles_table(paper)}"
        f"\n\n### {RANDOM_QUEUES} random queues, {count} trajectories each to {end:,.0f}\n\n"
        f"{random_text(on_random)}\n\n### Cases where a newcomer's mean is above UCRL-AC's at {end:,.0f}\n\n"
        f"{losses_text(on_random)}\n\n### Service rate unknown, {few} trajectories\n\n"
        f"{paper_text(on_unknown, UNKNOWN)}\n\nGap regret, quantiles over trajectories:\n\n"
        f"{quantiles_table(unknown)}\n\n### Gold at a distance below its flip at {FLIP}, S = 20, µ = 0.3, "
        f"{flips.cells[0].settings.replications} trajectories\n\n{near_flip_text(flips)}"
    )
    frames = {"paper": on_paper, "random": on_random, "unknown": on_unknown}
    frame = pd.concat([one.assign(study=name) for name, one in frames.items()], ignore_index=True)
    figures = {"beyond-paper.png": draw_paper(paper, work), "beyond-random.png": draw_random(on_random)}
    return work.publish("beyond", frame, text, figures)
