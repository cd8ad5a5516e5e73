r"""How regret grows with each quantity in the bound of Thm 5.2, beside the bound's own terms.

The paper's first queue (S = 20, c = 5, mu = 0.3, Lambda in [1, 4], t_1 = 10), one quantity changed at a time; room and
servers together (c = S, the infinite-server case) at the same rates and at the same load. A growth exponent is the
slope of log mean regret on log quantity by least squares, over the larger half of the values; its interval is Student's
over replications (delta method: of sum_j w_j X_j / mean_j, X_j on the same seed, so pairing is minded). It says how
sure the slope of these values is, not that they lie on a line. Regret is gap regret at the horizon.
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

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.bounds import policy_iteration_terms
from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.beyond import half_interval
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, paragraph
from queueing_ucrl.report.drawing import grid, panels
from queueing_ucrl.report.palette import GREEN, KIND_LOOKS, ORANGE, PURPLE, SKY
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.solvers.solve import solve

OURS, DIRECT = "ucrl-ac", "certainty-equivalent"
HORIZON = 1e5  # at most, but where T grows
FIRST_EPISODE = 10.0
TERMS = {"rate": GREEN, "shares": SKY, "start": PURPLE, "doubt": ORANGE, "first episode": "black"}


def the_queue(servers: int = 5, capacity: int = 20, classes: int = 2, rate: float = 2.0) -> Queue:
    """The paper's first queue, with its arrivals spread over so many classes that pay from 20 down to 10."""
    rewards = [20.0 - 10.0 * i / max(1, classes - 1) for i in range(classes)]
    jobs = [JobClass(f"class {i}", rate / classes, reward, Linear(0.1)) for i, reward in enumerate(rewards, start=1)]
    return Queue(servers, capacity, 0.3, jobs)


@dataclass(frozen=True)
class Setting:
    """A queue and what UCRL-AC is told."""

    queue: Queue
    bounds: tuple[float, float] = (1.0, 4.0)
    first_episode: float = FIRST_EPISODE

    def controllers(self) -> tuple[ControllerChoice, ...]:
        """UCRL-AC, and certainty equivalence with its first review as it is, or where t_1 grows at t_1."""
        told = {"arrival_rate_bounds": list(self.bounds), "first_episode": self.first_episode}
        waits = {} if self.first_episode == FIRST_EPISODE else {"first_review": self.first_episode}
        return tuple(
            ControllerChoice(name, options, make_controller(name, options))
            for name, options in ((OURS, told), (DIRECT, waits))
        )

    def terms(self, time: FloatArray) -> dict[str, FloatArray]:
        """Of Thm 5.2."""
        gain = solve(self.queue).gain
        return policy_iteration_terms(self.queue, gain, self.bounds, self.first_episode, time)


@dataclass(frozen=True)
class Sweep:
    """One quantity that grows, and the term of the bound that is said to matter for it."""

    title: str
    symbol: str
    values: tuple[float, ...]
    term: str
    setting: Callable[[float], Setting]


def at_the_same_load(size: float) -> Setting:
    """c = S servers, arrivals in proportion; the rate is known to a factor of two either way."""
    rate = 0.4 * size  # 4/3 of the servers' 0.3
    return Setting(the_queue(int(size), int(size), rate=rate), (0.5 * rate, 2.0 * rate))


SWEEPS = {
    "S": Sweep("Room", "S", (10, 20, 40, 80, 160, 320), "start", lambda v: Setting(the_queue(capacity=int(v)))),
    "c": Sweep("Servers", "c", (1, 2, 4, 6, 8, 12, 20), "start", lambda v: Setting(the_queue(servers=int(v)))),
    "c = S": Sweep(
        "Servers and room", "c = S", (2, 3, 4, 6, 8, 12, 24), "start", lambda v: Setting(the_queue(int(v), int(v)))
    ),
    "c = S, load": Sweep("Servers and room, Λ = 0.4 S", "c = S", (4, 8, 16, 32, 64), "start", at_the_same_load),
    "m": Sweep("Classes", "m", (1, 2, 4, 8, 16, 32, 64), "shares", lambda v: Setting(the_queue(classes=int(v)))),
    "width": Sweep(
        "Bounds on the rate: 2/w and 2w",
        "w",
        (1.25, 1.5, 2.0, 3.0, 4.0, 6.0),
        "rate",
        lambda v: Setting(the_queue(), (2.0 / v, 2.0 * v)),
    ),
    "t_1": Sweep(
        "First episode",
        "t₁",
        tuple(10.0 * 2.0**k for k in range(0, 13, 2)),
        "first episode",
        lambda v: Setting(the_queue(), first_episode=v),
    ),
}


def sweep_study(work: Work, name: str) -> Study:
    """The settings of a sweep under both learners, on the same jobs wherever the arrivals are the same."""
    one = SWEEPS[name]
    settings = RunSettings(min(work.horizon, HORIZON), work.replications, work.seed, grid_points=2)
    points = []
    for value in one.values:
        made = one.setting(value)
        if made.first_episode <= settings.horizon:
            shown = {"value": float(value)}
            points.append(Scenario(one.title, made.queue, Path("scaling"), made.controllers(), settings, shown))
    folder = "scaling-" + "".join(c if c.isalnum() else "-" for c in name)
    return work.study(folder, replace(points[0], values={}, points=tuple(points)))


def time_study(work: Work) -> Study:
    """The base setting up to the horizon itself; a grid at every doubling of t_1."""
    made = Setting(the_queue())
    times = tuple(FIRST_EPISODE * 2.0**k for k in range(1, 40) if FIRST_EPISODE * 2.0**k < work.horizon)
    settings = RunSettings(work.horizon, work.replications, work.seed, grid=(*times, work.horizon))
    point = Scenario("Time", made.queue, Path("scaling"), made.controllers(), settings, {"quantity": "T"})
    return work.study("scaling-T", replace(point, values={}, points=(point,)))


def growth(values: FloatArray, samples: FloatArray) -> tuple[float, float]:
    """The slope of log mean on log value, and half of its 95 % interval; samples: a row a replication.

    nan where a mean is not positive. With weights w_j of least squares the slope is sum_j w_j log mean_j, and to first
    order it errs by the mean of sum_j w_j X_j / mean_j less its expectation.
    """
    mean = samples.mean(axis=0)
    if len(values) < 2 or not np.all(mean > 0.0):
        return math.nan, math.nan
    x = np.log(values) - np.log(values).mean()
    weights = x / (x * x).sum()
    return float(weights @ np.log(mean)), half_interval((samples / mean) @ weights)


def upper_half(count: int) -> slice:
    """The larger half of so many values, the middle one with it."""
    return slice(count // 2, None)


def rows_of(
    name: str, values: FloatArray, samples: dict[str, FloatArray], terms: dict[str, FloatArray]
) -> pd.DataFrame:
    """One row a value: both regrets with intervals, each term, the bound."""
    rows: list[dict[str, Any]] = []
    for j, value in enumerate(values.tolist()):
        row: dict[str, Any] = {"quantity": name, "value": value, "replications": len(samples[OURS])}
        for learner, own in samples.items():
            key = learner.replace("-", "_")
            row[key], row[f"{key}_half_interval"] = float(own[:, j].mean()), half_interval(own[:, j])
        shown = {key.replace(" ", "_"): float(term[j]) for key, term in terms.items()}
        rows.append({**row, **shown, "bound": sum(shown.values())})
    return pd.DataFrame(rows)


def exponents_of(
    name: str, values: FloatArray, samples: dict[str, FloatArray], terms: dict[str, FloatArray], term: str
) -> dict[str, Any]:
    """How regrets, the bound and its term grow over the larger half, and what part of the bound the term is."""
    upper = upper_half(len(values))
    bound = np.sum(list(terms.values()), axis=0)
    found: dict[str, Any] = {"quantity": name, "term": term, "from": float(values[upper][0]), "to": float(values[-1])}
    for learner, own in samples.items():
        key = learner.replace("-", "_")
        found[f"{key}_exponent"], found[f"{key}_exponent_half_interval"] = growth(values[upper], own[:, upper])
    for label, curve in (("bound", bound), ("term", terms[term])):
        found[f"{label}_exponent"] = growth(values[upper], curve[None, upper].repeat(2, axis=0))[0]
    found["term_share_first"], found["term_share_last"] = (float(terms[term][j] / bound[j]) for j in (0, -1))
    found["largest_term"] = max(terms, key=lambda key: terms[key][-1])
    return found


@dataclass(frozen=True)
class Measured:
    """One quantity's sweep."""

    rows: pd.DataFrame
    exponents: dict[str, Any]


def measured_sweep(work: Work, name: str) -> Measured:
    """Run and fit."""
    study, one = sweep_study(work, name), SWEEPS[name]
    cells = {learner: [k for k, c in enumerate(study.cells) if c.name == learner] for learner in (OURS, DIRECT)}
    values = np.array([study.cells[k].values["value"] for k in cells[OURS]])
    samples = {
        learner: np.column_stack([study.samples(k, "gap")[:, -1] for k in own]) for learner, own in cells.items()
    }
    horizon = np.array([study.cells[0].settings.horizon])
    terms_of = [one.setting(value).terms(horizon) for value in values.tolist()]
    terms = {key: np.concatenate([each[key] for each in terms_of]) for key in TERMS}
    return Measured(rows_of(name, values, samples, terms), exponents_of(name, values, samples, terms, one.term))


def measured_time(work: Work) -> Measured:
    """The sweep of T: one run, at every doubling."""
    study = time_study(work)
    values = np.asarray(study.results[0][0].times, dtype=float)
    samples = {cell.name: study.samples(k, "gap") for k, cell in enumerate(study.cells)}
    terms = Setting(the_queue()).terms(values)
    return Measured(rows_of("T", values, samples, terms), exponents_of("T", values, samples, terms, "rate"))


def exponent(value: float, half: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f} ±{half:.2f}"


def exponent_text(found: list[dict[str, Any]]) -> str:
    rows = []
    for one in found:
        span = f"{one['from']:,.4g} to {one['to']:,.6g}"
        ours, direct = (
            exponent(one[f"{key}_exponent"], one[f"{key}_exponent_half_interval"])
            for key in ("ucrl_ac", "certainty_equivalent")
        )
        shares = f"{100 * one['term_share_first']:.2g} to {100 * one['term_share_last']:.2g} %"
        bounds = (f"{one['bound_exponent']:.2f}", f"{one['term']}: {one['term_exponent']:.2f}")
        rows.append((one["quantity"], span, ours, direct, *bounds, shares, one["largest_term"]))
    heads = ("grows", "over", "UCRL-AC", "certainty-equivalent", "bound", "its term", "term's part", "largest term")
    return markdown_table(heads, rows)


def value_text(frame: pd.DataFrame) -> str:
    rows = []
    for row in frame.to_dict("records"):
        regrets = (
            f"{row[key]:,.4g} ±{row[f'{key}_half_interval']:,.2g}" for key in ("ucrl_ac", "certainty_equivalent")
        )
        over = row["bound"] / row["ucrl_ac"] if row["ucrl_ac"] > 0 else math.inf
        times = f"{over:,.0f}" if math.isfinite(over) else "-"
        rows.append((row["quantity"], f"{row['value']:,.6g}", *regrets, f"{row['bound']:.3g}", times))
    heads = ("grows", "value", "UCRL-AC", "certainty-equivalent", "bound", "bound / UCRL-AC")
    return markdown_table(heads, rows)


def draw_sweep(axes: Axes, frame: pd.DataFrame, symbol: str) -> None:
    """Regrets with intervals in full, the bound's terms dashed."""
    for key, kind, label in (("ucrl_ac", "ucrl-ac", "UCRL-AC"), ("certainty_equivalent", DIRECT, DIRECT)):
        colour = KIND_LOOKS[kind].colour
        own = frame[frame[key] > 0]
        axes.plot(own["value"], own[key], "o-", color=colour, markersize=3, label=label)
        half = own[f"{key}_half_interval"]
        low = np.maximum(own[key] - half, 1e-3 * own[key])
        axes.fill_between(own["value"], low, own[key] + half, color=colour, alpha=0.2, linewidth=0)
    for term, colour in TERMS.items():
        axes.plot(
            frame["value"], frame[term.replace(" ", "_")], "--", color=colour, linewidth=1, label=f"bound: {term}"
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if len(frame) < 10:
        axes.set_xticks(frame["value"], [f"{value:g}" for value in frame["value"]], fontsize=7)
        axes.set_xticks([], minor=True)
    axes.set_xlabel(f"{symbol} (log scale)")
    grid(axes)


def draw(parts: dict[str, Measured], work: Work) -> Figure:
    sweeps = list(parts.values())
    heads = [("Time", "T") if name == "T" else (SWEEPS[name].title, SWEEPS[name].symbol) for name in parts]
    return panels(
        lambda k, axes: draw_sweep(axes, sweeps[k].rows, heads[k][1]),
        [title for title, _ in heads],
        (2, 4),
        (13, 7),
        y="gap regret, and terms of its bound",
        legend_columns=7,
        title=f"Regret (mean and 95 % interval, {work.replications} trajectories) and the terms of Thm 5.2",
    )


def reproduce(work: Work) -> ExperimentResult:
    """The sweeps, their exponents, one figure."""
    parts = {"T": measured_time(work), **{name: measured_sweep(work, name) for name in SWEEPS}}
    frame = pd.concat([one.rows for one in parts.values()], ignore_index=True)
    found = pd.DataFrame([one.exponents for one in parts.values()])
    text = (
        "## The bound's discussion, measured\n\n"
        + paragraph(
            f"{work.amount}; T grows to the horizon, all else is at {min(work.horizon, HORIZON):,.0f}. Growth "
            "exponents over the larger half of the values, ± half of the 95 % interval; those of the bound and of its "
            "term are exact."
        )
        + exponent_text([one.exponents for one in parts.values()])
        + "\n\n### Gap regret at each value\n\n"
        + value_text(frame)
    )
    both = pd.concat([frame.assign(table="values"), found.assign(table="exponents")], ignore_index=True)
    return work.publish("scaling", both, text, {"scaling.png": draw(parts, work)})
