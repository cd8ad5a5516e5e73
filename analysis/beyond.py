"""Beyond the paper: controllers that need no exploration, against UCRL-AC, on the paper's queues and on 60 others.

    python analysis/beyond.py --scale quick         (the options of `queueing-ucrl reproduce`)

Every arrival is seen, admitted or not: the rates are learned whatever the policy does. The estimator's effect is kept
apart from the schedule's: each of the optimistic and direct controllers is run with the paper's doubling and with the
grid of ratio 1.1. Regrets are gap regrets on common random numbers; intervals are Student's, 95 %.

The paper's queues get all of the trajectories; the random queues a 25th of them, to 10^5 at most; controllers that do
not know the service rate a tenth, on the paper's queues; rates near a flip of the best policy a fifth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import queueing_ucrl as qu
from queueing_ucrl.experiments.study import Study, interval
from queueing_ucrl.report.palette import BLUE, GREEN, PURPLE, SKY, VERMILION
from queueing_ucrl.reproduce import Finding, Work, as_script, markdown_table
from queueing_ucrl.scenario import ControllerChoice, Scenario

OURS = "ucrl-ac"
NEWCOMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ucrl-ac-exact": ("ucrl-ac-exact", {}),
    "ucrl-ac-exact, grid 1.1": ("ucrl-ac-exact", {"review_ratio": 1.1}),
    "ucrl-ac-classwise": ("ucrl-ac-classwise", {}),
    "ucrl-ac-classwise, grid 1.1": ("ucrl-ac-classwise", {"review_ratio": 1.1}),
    "thompson, doubling": ("thompson", {"review_ratio": 2.0}),
    "thompson": ("thompson", {}),
    "certainty-equivalent, doubling": ("certainty-equivalent", {"review_ratio": 2.0}),
    "certainty-equivalent": ("certainty-equivalent", {}),
}
COLOURS = dict(zip((OURS, *NEWCOMERS), (
    VERMILION, BLUE, BLUE, SKY, SKY, PURPLE, PURPLE, GREEN, GREEN,
), strict=True))  # fmt: skip
DASHED = {"ucrl-ac-exact", "ucrl-ac-classwise", "thompson, doubling", "certainty-equivalent, doubling"}
RANDOM_QUEUES = 60
QUEUE_SEED = 2024
GRID = 201  # times
RANDOM_HORIZON = 1e5  # at most
UNKNOWN = {
    name: (name, {"service_rate": "unknown"}) for name in ("certainty-equivalent", "thompson", "ucrl-ac-classwise")
}
FLIP = 1.06876  # the rate of gold at which the best policy of the paper's first queue changes: basic below 10 or 9
DISTANCES = (0.0, 1e-4, 1e-3, 3e-3, 1e-2, 2e-2)
NEAR_FLIP = ("certainty-equivalent", "thompson", "ucrl-ac-classwise")
RATE = 2.0  # jobs per unit of time in every random queue, so that a horizon means as many arrivals as in the paper's


def random_cost(chance: np.random.Generator, reward: float, wait: float) -> qu.HoldingCost:
    """A cost of any kind that takes a fair part of the reward at waits of the given length."""
    part = reward * chance.uniform(0.1, 1.2)
    return [
        lambda: qu.Free(),
        lambda: qu.Linear(part / wait),
        lambda: qu.Power(part / wait**1.7, 1.7),
        lambda: qu.Saturating(part, 2.0 / wait),
        lambda: qu.Deadline(part, wait * chance.uniform(0.2, 1.0)),
        lambda: qu.PiecewiseLinear([(0.3 * wait, 0.1 * part), (wait, part)]),
    ][chance.integers(6)]()


def random_queue(chance: np.random.Generator) -> qu.Queue:
    """m 1 to 8, c 1 to 50, S up to 200, load 0.2 to 3, class rates over two decades, costs of all kinds."""
    classes, servers = int(chance.integers(1, 9)), int(chance.integers(1, 51))
    capacity = int(chance.integers(max(2, servers), 201))
    load = float(np.exp(chance.uniform(np.log(0.2), np.log(3.0))))
    service_rate = RATE / (load * min(servers, capacity))
    weights = 10.0 ** chance.uniform(-2.0, 0.0, classes)
    rates = RATE * weights / weights.sum()
    wait = max(1.0, 0.5 * (capacity - servers)) / (servers * service_rate)
    rewards = chance.uniform(1.0, 20.0, classes)
    return qu.Queue(servers, capacity, service_rate, [
        qu.JobClass(f"class {i + 1}", float(rates[i]), float(rewards[i]), random_cost(chance, float(rewards[i]), wait))
        for i in range(classes)
    ])  # fmt: skip


def random_queues() -> list[qu.Queue]:
    """The same 60 queues for everybody."""
    chance = np.random.default_rng(QUEUE_SEED)
    return [random_queue(chance) for _ in range(RANDOM_QUEUES)]


def ucrl_ac(queue: qu.Queue) -> ControllerChoice:
    """UCRL-AC with the rate known to a factor of two either way, and a first episode as in the paper."""
    rate = queue.total_arrival_rate
    options = {"arrival_rate_bounds": [0.5 * rate, 2.0 * rate], "first_episode": max(10.0, 3.0 / queue.service_rate)}
    return ControllerChoice(OURS, options, qu.make_controller(OURS, options))


def chosen(table: dict[str, tuple[str, dict[str, Any]]]) -> list[ControllerChoice]:
    return [ControllerChoice(label, {"name": name, **options}, qu.make_controller(name, options))
            for label, (name, options) in table.items()]  # fmt: skip


def newcomers() -> list[ControllerChoice]:
    return chosen(NEWCOMERS)


def part(work: Work, share: int) -> Work:
    """The same work with so many times fewer trajectories, two at least."""
    return replace(work, replications=max(2, work.replications // share))


def at_decades(scenario: Scenario) -> Scenario:
    """With a grid of times that has the powers of ten."""
    points = tuple(replace(point, grid_points=GRID) for point in scenario.points)
    return replace(scenario, grid_points=GRID, points=points)


def paper_study(work: Work) -> Study:
    """The six queues of the paper."""
    return work.study("beyond-paper", at_decades(work.scenarios(lambda one: [*one.controllers, *newcomers()])))


def random_study(work: Work) -> Study:
    """The 60 random queues, with a 25th of the trajectories, to RANDOM_HORIZON at most."""
    points = tuple(
        Scenario(
            "Random queues", queue, Path("random"), (ucrl_ac(queue), *newcomers()),
            min(work.horizon, RANDOM_HORIZON), part(work, 25).replications, work.seed, grid_points=GRID,
            values={"queue": k, "m": len(queue.classes), "c": queue.servers, "S": queue.capacity,
                    "load": round(queue.load, 3)},
        )
        for k, queue in enumerate(random_queues())
    )  # fmt: skip
    return work.study("beyond-random", replace(points[0], values={}, points=points))


def unknown_study(work: Work) -> Study:
    """Controllers that do not know the service rate on the paper's queues, beside UCRL-AC, which does."""
    scenario = part(work, 10).scenarios(lambda one: [*one.controllers, *chosen(UNKNOWN)])
    return work.study("beyond-unknown", at_decades(scenario))


def near_flip_study(work: Work) -> Study:
    """The paper's first queue with gold at a distance below the rate at which the best policy changes."""
    first = work.scenarios(lambda one: one.controllers).points[0]
    gold, basic = first.queue.classes
    controllers = tuple(chosen({name: (name, {}) for name in NEAR_FLIP}))
    points = tuple(
        replace(
            first, queue=first.queue.with_arrival_rates([FLIP - d, basic.arrival_rate]), values={"distance": d},
            replications=part(work, 5).replications, controllers=controllers,
        )
        for d in DISTANCES
    )  # fmt: skip
    whole = replace(points[0], title=f"{gold.name} near {FLIP}", values={}, points=points)
    return work.study("beyond-near-flip", at_decades(whole))


def half_interval(samples: np.ndarray) -> float:
    """Half of Student's 95 % interval of the mean."""
    _mean, low, high = interval(samples[:, None])
    return float(0.5 * (high[0] - low[0]))


def ratio(theirs: np.ndarray, ours: np.ndarray) -> tuple[float, float]:
    """mean(theirs) / mean(ours) over paired samples, and half of its 95 % interval (delta method, Student's t)."""
    value = theirs.mean() / ours.mean()
    return float(value), half_interval(theirs - value * ours) / float(ours.mean())


def decades(times: np.ndarray) -> list[int]:
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
            rows.append({
                **cell.values, "controller": cell.name, "time": float(times[t]), "replications": len(theirs),
                "regret": float(theirs.mean()), "ucrl_ac_regret": float(ours.mean()), "ratio": value,
                "ratio_half_interval": half, "difference": float(difference.mean()), "difference_half_interval": error,
                "loses": bool(difference.mean() - error > 0),
            })  # fmt: skip
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
            rows.append((
                name, f"{time:,.0f}", percent(ratios.median()), percent(ratios.quantile(0.9)), percent(ratios.max()),
                int((group["difference"] > 0).sum()), int(group["loses"].sum()),
            ))  # fmt: skip
    headings = ("% of UCRL-AC's", "time", "median", "90th percentile", "worst", "above", "above for sure")
    return markdown_table(headings, rows)


def losses_text(frame: pd.DataFrame) -> str:
    lost = frame[(frame["difference"] > 0) & (frame["time"] == frame["time"].max())]
    rows = [
        (row["controller"], row["queue"], row["m"], row["c"], row["S"], row["load"], f"{row['regret']:,.1f}",
         f"{row['ucrl_ac_regret']:,.1f}", f"{row['difference']:+,.1f} ±{row['difference_half_interval']:,.1f}",
         "yes" if row["loses"] else "within noise")
        for row in lost.to_dict("records")
    ]  # fmt: skip
    headings = ("controller", "queue", "m", "c", "S", "load", "regret", "UCRL-AC's", "difference", "for sure")
    return markdown_table(headings, rows) if rows else "None."


def near_flip_text(study: Study) -> str:
    """Gap regrets at the decades: mean and interval, and the largest at the end."""
    rows = []
    times = study.results[0][0].times
    for k, cell in enumerate(study.cells):
        samples = study.samples(k, "gap")
        entries = [f"{samples[:, t].mean():,.0f} ±{half_interval(samples[:, t]):,.0f}" for t in decades(times)]
        rows.append((cell.name, f"{cell.values['distance']:g}", *entries, f"{samples[:, -1].max():,.0f}"))
    headings = ("gap regret", "distance", *(f"{times[t]:,.0f}" for t in decades(times)), "largest")
    return markdown_table(headings, rows)


def draw_regrets(axes: Axes, study: Study, point: int) -> None:
    for k, cell in enumerate(study.cells):
        if cell.point == point:
            mean, low, high = (np.maximum(x, 1e-3) for x in interval(study.samples(k, "gap")))
            style, times = "--" if cell.name in DASHED else "-", study.results[k][0].times
            axes.fill_between(times, low, high, color=COLOURS[cell.name], alpha=0.2, linewidth=0)
            axes.plot(times, mean, style, color=COLOURS[cell.name], linewidth=1.6, label=cell.name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=1.0)
    axes.grid(alpha=0.3, linewidth=0.5)


def draw_paper(study: Study, work: Work) -> Figure:
    figure = Figure(figsize=(11, 7.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    for point, axes in enumerate(panels.flat):
        draw_regrets(axes, study, point)
        values = next(cell.values for cell in study.cells if cell.point == point)
        axes.set_title(f"S = {values['capacity']}, µ = {values['service_rate']}", loc="left", fontsize=10)
    for axes in panels[1]:
        axes.set_xlabel("time")
    for axes in panels[:, 0]:
        axes.set_ylabel("gap regret")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.suptitle(f"Gap regret, mean and 95 % interval, {work.amount}", fontsize=11)
    return figure


def draw_random(frame: pd.DataFrame) -> Figure:
    """The ratios of all queues at the horizon, sorted."""
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    last = frame[frame["time"] == frame["time"].max()]
    for name in NEWCOMERS:
        ratios = np.sort(last[last["controller"] == name]["ratio"].dropna())
        style = "--" if name in DASHED else "-"
        share = np.arange(1, ratios.size + 1) / max(ratios.size, 1)
        axes.plot(np.maximum(ratios, 1e-5), share, style, color=COLOURS[name], label=name)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("gap regret as a part of UCRL-AC's")
    axes.set_ylabel("share of the queues with less")
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.legend(frameon=False, fontsize=9)
    axes.set_title(f"{RANDOM_QUEUES} random queues, time {last['time'].max():,.0f}", loc="left", fontsize=10)
    return figure


def main(work: Work) -> Finding:
    """The studies, their tables and figures."""
    paper, others, unknown, flips = paper_study(work), random_study(work), unknown_study(work), near_flip_study(work)
    on_paper, on_random, on_unknown = against_ours(paper), against_ours(others), against_ours(unknown)
    end = others.cells[0].horizon
    text = (
        f"## Beyond the paper: gap regret as a part of UCRL-AC's\n\n{work.amount}; paired, ± half of the 95 % interval."
        f"\n\n### The paper's six queues at time {work.horizon:,.0f}\n\n{paper_text(on_paper)}"
        f"\n\n### {RANDOM_QUEUES} random queues, {others.cells[0].replications} trajectories each to {end:,.0f}\n\n"
        f"{random_text(on_random)}\n\n### Cases where a newcomer's mean is above UCRL-AC's at {end:,.0f}\n\n"
        f"{losses_text(on_random)}\n\n### Service rate unknown, {unknown.cells[0].replications} trajectories\n\n"
        f"{paper_text(on_unknown, UNKNOWN)}\n\n### Gold at a distance below its flip at {FLIP}, S = 20, µ = 0.3, "
        f"{flips.cells[0].replications} trajectories\n\n{near_flip_text(flips)}"
    )
    frames = {"paper": on_paper, "random": on_random, "unknown": on_unknown}
    frame = pd.concat([one.assign(study=name) for name, one in frames.items()], ignore_index=True)
    figures = {"beyond-paper.png": draw_paper(paper, work), "beyond-random.png": draw_random(on_random)}
    return work.publish("beyond", frame, text, figures)


if __name__ == "__main__":
    as_script(__file__)
