"""Crowds: arrival rates that depend on the number of jobs, and what a learner loses who does not know it.

Twenty random queues whose jobs balk, and twenty at which constant rates are wrong by 3 % for ever; the paper's six,
whose jobs do not, for the price of rates by state; a crowd that attracts, where one must explore; and room that grows,
for the sqrt(S) that rates by state are said to cost. Regrets are gap regrets on common random numbers, at a time of
10^5 at most, over a third of the trajectories of the other experiments; intervals are Student's, 95 %, that of a median
over queues by order statistics.

One file, though a long one: its five studies share their queues, their tables and one figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.balking import Balking, BalkingTable, GeometricBalking, LinearBalking
from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.beyond import (
    Newcomer,
    at_decades,
    choices,
    draw_regrets,
    half_interval,
    part,
    random_cost,
    ratio,
    with_looks,
)
from queueing_ucrl.paper.scaling import exponent, growth, the_queue
from queueing_ucrl.paper.work import QUEUES, ExperimentResult, Work, markdown_table, named_cell, paragraph
from queueing_ucrl.report.drawing import grid
from queueing_ucrl.report.palette import KIND_LOOKS
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.solvers.solve import solve

HORIZON = 1e5  # at most
SHARE = 3  # so many times fewer trajectories than elsewhere
RANDOM_QUEUES = 20
WRONG = 0.03  # of the optimum, which a pooled learner loses for ever
QUEUE_SEED = 2025
RATE = 2.0  # jobs per unit of time that come, also of those who balk
POOLED, MERGED, STATES = "pooled", "merged", "ucrl-ac-states"
GROWING = (10, 20, 40, 80, 160)  # room
CRITICAL = 1.5  # jobs of gold per unit of time that come to five servers of 0.3 each

_BY_STATE: dict[str, Any] = {"arrivals": "state-dependent"}


def _certain(**options: Any) -> Newcomer:
    return Newcomer("certainty-equivalent", {**_BY_STATE, **options})


DRAWN = with_looks(
    {
        POOLED: Newcomer("certainty-equivalent"),
        MERGED: _certain(),
        "isotonic": _certain(by_state="isotonic"),
        "plain": _certain(by_state="plain"),
        "optimistic": _certain(by_state="optimistic"),
        "thompson": Newcomer("thompson", _BY_STATE),
        "merged-log": _certain(by_state="merged-log"),
        "thompson, pooled": Newcomer("thompson"),
        STATES: Newcomer(STATES),
        "ucrl-ac": Newcomer("ucrl-ac"),
    },
    beside=(),
)
LEARNERS = {name: DRAWN[name] for name in (POOLED, MERGED, "isotonic", "plain", "optimistic", "thompson")}
ON_ALL = (POOLED, MERGED)  # learners on queues where it hardly matters, too
ALONE = {
    **{name: one for name, one in LEARNERS.items() if name != "optimistic"},
    **{name: DRAWN[name] for name in ("merged-log", "thompson, pooled")},
}
CROWD = with_looks(
    {
        "certainty equivalence": _certain(by_state="plain"),
        "optimistic-any": _certain(by_state="optimistic-any"),
        "thompson, any": Newcomer("thompson", {**_BY_STATE, "by_state": "any"}),
        f"{STATES}, any": Newcomer(STATES, {"arrival_rate_bounds": [0.0, 10.0], "by_state": "any"}),
    },
    beside=(),
)


def ucrl_states(queue: Queue) -> ControllerChoice:
    """UCRL-AC by state, told the total rate to a factor of two, as UCRL-AC is in the other experiments."""
    options = {"arrival_rate_bounds": [0.0, 2.0 * queue.total_arrival_rate]}
    return ControllerChoice(STATES, options, make_controller(STATES, options))


# --- random queues whose jobs balk ------------------------------------------------------------------------------------


def random_balking(rng: np.random.Generator, servers: int, capacity: int) -> Balking:
    """Everybody asks while a server is free; beyond, a share of them that falls with the line, in one of three ways."""
    room = capacity - servers
    kinds = [
        lambda: GeometricBalking(float(rng.uniform(0.7, 0.98)), servers),
        lambda: LinearBalking(float(rng.uniform(0.5, 2.0)) * room, servers),
        lambda: BalkingTable([1.0] * servers + np.sort(rng.uniform(0.05, 1.0, room))[::-1].tolist()),
    ]
    kind: Callable[[], Balking] = kinds[rng.integers(3)]
    return kind()


def random_balking_queue(rng: np.random.Generator) -> Queue:
    """m 2 to 6, c 1 to 20, room for 10 to 60 to wait, loads 1 to 3 (if nobody balked), costs of all kinds."""
    count, servers = int(rng.integers(2, 7)), int(rng.integers(1, 21))
    capacity = servers + int(rng.integers(10, 61))
    load = float(np.exp(rng.uniform(0.0, np.log(3.0))))
    service_rate = RATE / (load * servers)
    weights = 10.0 ** rng.uniform(-1.0, 0.0, count)
    wait = 0.5 * (capacity - servers) / (servers * service_rate)
    classes = []
    for i, share in enumerate((weights / weights.sum()).tolist(), start=1):
        reward = float(rng.uniform(1.0, 20.0))
        balking = random_balking(rng, servers, capacity)
        classes.append(JobClass(f"class {i}", RATE * share, reward, random_cost(rng, reward, wait), balking=balking))
    return Queue(servers, capacity, service_rate, classes)


def pooled_loss(queue: Queue) -> float:
    """What a learner of constant rates loses in the long run, as a part of the optimum; exact, up to where it settles.

    Under a policy whose stationary law is pi its estimates tend to sum_s pi(s) lambda_i(s); its next policy is the best
    for these; and so on, until a policy comes again. Of those that take turns then, the best counts.
    """
    model, optimum = queue.model, solve(queue).gain
    rates, found = queue.rates_by_state[0], dict[bytes, float]()
    while True:
        constant = AdmissionModel(np.tile(rates, (queue.capacity, 1)), model.rewards, model.service_rates)
        policy = solve(constant).policy
        seen = policy.admits.tobytes()
        if seen in found:
            return min(list(found.values())[list(found).index(seen) :])
        value = evaluate(queue, policy)
        found[seen] = 1.0 - value.gain / optimum
        rates = value.stationary @ queue.rates_by_state


def drawn_queues() -> tuple[list[Queue], list[Queue], list[float]]:
    """The same for everybody: the first 20 of all, the first 20 at which constant rates are wrong, and all losses."""
    rng = np.random.default_rng(QUEUE_SEED)
    first: list[Queue] = []
    wrong: list[Queue] = []
    losses: list[float] = []
    while len(wrong) < RANDOM_QUEUES:
        queue = random_balking_queue(rng)
        losses.append(pooled_loss(queue))
        if len(first) < RANDOM_QUEUES:
            first.append(queue)
        if losses[-1] >= WRONG:
            wrong.append(queue)
    return first, wrong, losses


def random_study(work: Work, name: str, queues: Sequence[Queue], *, every: bool) -> Study:
    """Learners on each of the queues: all of them, or the pooled and the merged."""
    settings = RunSettings(work.horizon, work.replications, work.seed, grid_points=2)
    points = []
    for k, queue in enumerate(queues):
        shape = {"m": len(queue.classes), "c": queue.servers, "S": queue.capacity, "load": round(queue.load, 3)}
        some = choices({name: LEARNERS[name] for name in (LEARNERS if every else ON_ALL)})
        controllers = (*some, ucrl_states(queue)) if every else tuple(some)
        points.append(Scenario("Jobs that balk", queue, Path("crowds"), controllers, settings, {"queue": k, **shape}))
    return work.study(name, replace(points[0], values={}, points=tuple(points)))


def quantiles(samples: FloatArray) -> dict[str, float]:
    """The median, and what nine in ten and 99 in a hundred stay below."""
    return {f"q{q}": float(np.quantile(samples, q / 100)) for q in (50, 90, 99)}


def regrets(study: Study, base: str) -> pd.DataFrame:
    """One row a point and learner: gap regret at the horizon with quantiles, beside that of `base` on the same jobs."""
    rows = []
    for k, cell in enumerate(study.cells):
        mine = study.samples(k, "gap")[:, -1]
        theirs = study.samples(named_cell(study, base, cell.point), "gap")[:, -1]
        optimum = solve(cell.system.queue).gain * cell.settings.horizon
        row: dict[str, Any] = {**cell.values, "learner": cell.name, "replications": mine.size, "optimum": optimum}
        row |= {"regret": float(mine.mean()), "half_interval": half_interval(mine), **quantiles(mine)}
        row["part"], row["part_half_interval"] = ratio(mine, theirs) if theirs.mean() > 0.0 else (math.nan, math.nan)
        row |= {"difference": float((mine - theirs).mean()), "difference_half_interval": half_interval(mine - theirs)}
        rows.append(row)
    return pd.DataFrame(rows)


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and two order statistics that hold the law's between them with probability 95 % at least."""
    ordered, n = np.sort(np.asarray(values, dtype=float)), len(values)
    tail, below = 0.0, -1  # P(Binomial(n, 1/2) <= below)
    while tail + math.comb(n, below + 1) / 2.0**n <= 0.025:
        below += 1
        tail += math.comb(n, below) / 2.0**n
    low, high = (-math.inf, math.inf) if below < 0 else (ordered[below], ordered[n - 1 - below])
    return float(np.median(ordered)), float(low), float(high)


def random_text(frame: pd.DataFrame) -> str:
    """A row a learner: its regret as a part of the pooled learner's and of the optimum, over the queues."""
    rows = []
    for name, group in frame.groupby("learner", sort=False):
        # of a pooled learner that lost nothing no part can be told: it counts as the largest of all
        middle, low, high = median_interval(group["part"].fillna(math.inf).tolist())
        shares = 100.0 * group["regret"] / group["optimum"]
        tails = (f"{100 * (group[q] / group['optimum']).median():.3g}" for q in ("q50", "q90", "q99"))
        worst = f"{100 * group['part'].max():.3g}"
        few = f"{(group['part'] <= 0.01).sum()} of {len(group)}"
        parts = (f"{100 * middle:.3g} ({100 * low:.3g} to {100 * high:.3g})", few, worst)
        rows.append((name, *parts, f"{shares.median():.3g}", *tails))
    headings = ("learner", "% of pooled's, median", "at most 1 %", "worst", "% of ρ*T", "50 %", "90 %", "99 %")
    return markdown_table(headings, rows)


def loss_words(losses: Sequence[float]) -> str:
    """Quantiles in words."""
    median, most = (f"{100 * np.quantile(losses, q):.2g} %" for q in (0.5, 0.9))
    return f"{median} in the median, {most} or more in a tenth of them,"


def queues_text(frame: pd.DataFrame) -> str:
    """A row a queue: what it is like, and the regrets."""
    rows = []
    for k, group in frame.groupby("queue"):
        by = group.set_index("learner")
        first = by.iloc[0]
        shape = (k, *(int(first[key]) for key in ("m", "c", "S")), f"{first['load']:.2f}")
        means = (f"{by.loc[name, 'regret']:,.0f}" for name in by.index)
        rows.append((*shape, *means))
    return markdown_table(("queue", "m", "c", "S", "load", *frame["learner"].unique()), rows)


# --- rates that are constant ------------------------------------------------------------------------------------------


def constant_study(work: Work) -> Study:
    """The paper's six queues: what rates by state cost where they are all the same."""
    return work.study(
        "crowds-constant",
        at_decades(work.scenarios(lambda one: [*one.controllers, *choices(ALONE), ucrl_states(one.system.queue)])),
    )


def price_text(frame: pd.DataFrame) -> str:
    """A row a learner, a column a queue: the regret, and how much more than with constant rates that is (paired)."""
    rows = []
    for name, group in frame.groupby("learner", sort=False):
        by: Any = group.set_index(["capacity", "service_rate"])
        found = [by.loc[place] for place in QUEUES]
        rows.append((name, *(f"{row['regret']:,.1f} ±{row['half_interval']:,.1f}" for row in found)))
        if name not in (POOLED, "ucrl-ac"):
            more = (f"{row['difference']:+,.1f} ±{row['difference_half_interval']:,.1f}" for row in found)
            rows.append(("    more than pooled", *more))
        rows.append(("    50, 90, 99 %", *(f"{r['q50']:,.0f}, {r['q90']:,.0f}, {r['q99']:,.0f}" for r in found)))
    return markdown_table(("gap regret", *(f"S {c}, µ {r}" for c, r in QUEUES)), rows)


# --- a crowd that attracts --------------------------------------------------------------------------------------------


def crowd() -> Queue:
    """Guests come only where four or more are; who would have to be let in first does not pay for himself."""
    guest = JobClass("guest", arrival_rates=[0.0] * 4 + [6.0], reward=10.0, holding_cost=Linear(2.0))
    return Queue(3, 10, 1.0, [guest, JobClass("passer-by", 3.0, 1.0, Linear(4.0))])


def crowd_study(work: Work) -> Study:
    """Learners who explore, and one who does not; a grid at every doubling."""
    times = tuple(work.horizon * 2.0**-k for k in range(10, 0, -1))
    settings = RunSettings(work.horizon, work.replications, work.seed, grid=(*times, work.horizon))
    point = Scenario("A crowd", crowd(), Path("crowds"), tuple(choices(CROWD)), settings, {"queue": "crowd"})
    return work.study("crowds-attract", replace(point, values={}, points=(point,)))


def crowd_frame(study: Study) -> pd.DataFrame:
    """The regrets, and their growth exponents over the last five doublings."""
    frame = regrets(study, "certainty equivalence")
    times = np.asarray(study.results[0][0].times, dtype=float)
    grown = [growth(times[-6:], study.samples(k, "gap")[:, -6:]) for k in range(len(study.cells))]
    return frame.assign(exponent=[g for g, _ in grown], exponent_half_interval=[h for _, h in grown])


def crowd_text(frame: pd.DataFrame) -> str:
    rows = [
        (
            row["learner"],
            f"{row['regret']:,.0f} ±{row['half_interval']:,.0f}",
            *(f"{row[q]:,.0f}" for q in ("q50", "q90", "q99")),
            f"{100 * row['part']:.3g} ±{100 * row['part_half_interval']:.2g}",
            exponent(row["exponent"], row["exponent_half_interval"]),
        )
        for row in frame.to_dict("records")
    ]
    return markdown_table(("learner", "gap regret", "50 %", "90 %", "99 %", "% of the first", "grows as T to"), rows)


# --- room that grows --------------------------------------------------------------------------------------------------


def critical_queue(capacity: int) -> Queue:
    """Gold alone fills the five servers, and its waits are free: the jobs spread over all of the room."""
    gold = JobClass("gold", CRITICAL, 20.0)
    return Queue(5, capacity, CRITICAL / 5, [gold, JobClass("basic", 0.5, 10.0, Linear(0.1))])


FAMILIES = {"the paper's queue": lambda S: the_queue(capacity=S), "gold fills the house": critical_queue}
CLASSWISE = "ucrl-ac-classwise"


def room_study(work: Work) -> Study:
    """Two families of queues of constant rates as their room grows, under optimism with and without rates by state."""
    settings = RunSettings(work.horizon, work.replications, work.seed, grid_points=2)
    told: dict[str, Any] = {"arrival_rate_bounds": [1.0, 4.0], "first_episode": 10.0}
    made: dict[str, dict[str, Any]] = {
        "ucrl-ac": told,
        CLASSWISE: {"interval": "anytime"},
        STATES: {"arrival_rate_bounds": [0.0, 4.0]},
    }
    controllers = tuple(ControllerChoice(name, how, make_controller(name, how)) for name, how in made.items())
    points = [
        Scenario("Room", queue(S), Path("crowds"), controllers, settings, {"family": family, "S": S})
        for family, queue in FAMILIES.items()
        for S in GROWING
    ]
    return work.study("crowds-room", replace(points[0], values={}, points=tuple(points)))


def room_exponents(study: Study) -> pd.DataFrame:
    """One row a family and learner: the slope of log mean regret on log S."""
    rows, values = [], np.array(GROWING, dtype=float)
    for family in FAMILIES:
        samples: dict[str, FloatArray] = {}
        for name in ("ucrl-ac", CLASSWISE, STATES):
            own = [k for k, c in enumerate(study.cells) if (c.values["family"], c.name) == (family, name)]
            samples[name] = np.column_stack([study.samples(k, "gap")[:, -1] for k in own])
        for name, found in samples.items():
            slope, half = growth(values, found)
            rows.append({"family": family, "learner": name, "exponent": slope, "exponent_half_interval": half})
    return pd.DataFrame(rows)


def room_text(frame: pd.DataFrame, exponents: pd.DataFrame) -> str:
    rows = []
    for place in exponents.to_dict("records"):
        own = frame[(frame["family"] == place["family"]) & (frame["learner"] == place["learner"])]
        means = (f"{row['regret']:,.0f} ±{row['half_interval']:,.0f}" for row in own.to_dict("records"))
        slope = exponent(place["exponent"], place["exponent_half_interval"])
        rows.append((place["family"], place["learner"], *means, slope))
    return markdown_table(("queue", "gap regret", *(f"S {S}" for S in GROWING), "grows as S to"), rows)


# --- together ---------------------------------------------------------------------------------------------------------


def draw_random(axes: Axes, frame: pd.DataFrame) -> None:
    """The parts of the pooled learner's regret on all queues, sorted."""
    for name, group in frame.groupby("learner", sort=False):
        if name == POOLED:
            continue
        drawn, parts = DRAWN[str(name)], np.sort(group["part"].dropna())
        share = np.arange(1, parts.size + 1) / max(1, parts.size)
        axes.step(np.maximum(parts, 1e-5), share, where="post", label=name, **drawn.look.line)
    axes.axvline(0.01, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("regret as a part of the pooled learner's (log scale)")
    axes.set_ylabel("share of the queues with less")
    axes.set_title("Jobs that balk: 20 queues where that matters", loc="left", fontsize=10)


def draw_price(axes: Axes, frame: pd.DataFrame) -> None:
    """What rates by state cost where they are constant, by queue."""
    for name, group in frame[~frame["learner"].isin(["ucrl-ac", STATES])].groupby("learner", sort=False):
        drawn, by = DRAWN[str(name)], cast(Any, group.set_index(["capacity", "service_rate"]))
        found = [by.loc[place] for place in QUEUES]
        mean, half = (np.array([row[key] for row in found]) for key in ("regret", "half_interval"))
        axes.errorbar(
            range(len(QUEUES)),
            mean,
            [np.minimum(half, 0.9 * mean), half],
            label=name,
            **drawn.look.line,
        )
    axes.set_xticks(range(len(QUEUES)), [f"S {S}\nµ {rate}" for S, rate in QUEUES], fontsize=8)
    axes.set_yscale("log")
    axes.set_ylabel("gap regret (log scale)")
    axes.set_title("The paper's queues: rates are constant", loc="left", fontsize=10)


def draw_crowd(axes: Axes, study: Study) -> None:
    draw_regrets(axes, study, study.cells[0].point, CROWD, width=1.5, bottom=10.0)
    axes.set_xlabel("time (log scale)")
    axes.set_ylabel("gap regret (log scale)")
    axes.set_title("A crowd that attracts", loc="left", fontsize=10)


def draw_room(axes: Axes, frame: pd.DataFrame) -> None:
    colours = {name: KIND_LOOKS[name].colour for name in ("ucrl-ac", CLASSWISE, STATES)}
    for line, family in zip(("-", "--"), FAMILIES, strict=True):
        for name, colour in colours.items():
            own = frame[(frame["family"] == family) & (frame["learner"] == name)]
            half = np.minimum(own["half_interval"].to_numpy(), 0.9 * own["regret"].to_numpy())
            label = f"{name}, {family}"
            axes.errorbar(own["S"], own["regret"], [half, own["half_interval"]], color=colour, ls=line, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(GROWING, [f"{S}" for S in GROWING])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("room S (log scale)")
    axes.set_ylabel("gap regret (log scale)")
    axes.set_title("Rates are constant, and the room grows", loc="left", fontsize=10)


def draw(balking: pd.DataFrame, constant: pd.DataFrame, attracted: Study, room: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 10), layout="constrained")
    panels = figure.subplots(2, 2)
    draw_random(panels[0, 0], balking)
    draw_price(panels[0, 1], constant)
    draw_crowd(panels[1, 0], attracted)
    draw_room(panels[1, 1], room)
    for axes in panels.flat:
        grid(axes)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize=8)
    return figure


def findings_text(amount: str, losses: Sequence[float], found: dict[str, pd.DataFrame]) -> str:
    """All tables, with what they are of."""
    return (
        "## Crowds: arrival rates that depend on the number of jobs\n\n"
        + paragraph(f"{amount}; gap regret, mean ± half of the 95 % interval.")
        + f"### {RANDOM_QUEUES} random queues at which constant rates are wrong by {100 * WRONG:g} % or more\n\n"
        + paragraph(
            f"The first of {len(losses)} drawn; over all of them a pooled learner loses {loss_words(losses)} of ρ* for "
            "ever, which is computed and not simulated. Regret as a part of the pooled learner's: the median over the "
            "queues with its 95 % interval, on how many it is 1 % at most, and the worst. Then as a part of what the "
            "best policy earns: of the mean, and of the trajectories' quantiles, in the median over the queues."
        )
        + random_text(found["random"])
        + "\n\n"
        + queues_text(found["random"])
        + f"\n\n### The first {RANDOM_QUEUES} of all that were drawn\n\n"
        + random_text(found["all"])
        + "\n\n"
        + queues_text(found["all"])
        + "\n\n### Rates that are constant: the paper's queues\n\n"
        + price_text(found["constant"])
        + "\n\n### A crowd that attracts\n\n"
        + crowd_text(found["crowd"])
        + "\n\n### Rates that are constant, and room that grows\n\n"
        + room_text(found["room"], found["exponents"])
    )


def reproduce(work: Work) -> ExperimentResult:
    """The four studies, their tables and one figure."""
    less = replace(part(work, SHARE), horizon=min(work.horizon, HORIZON))
    attracted, rooms = crowd_study(less), room_study(less)
    first, wrong, losses = drawn_queues()
    balking = regrets(random_study(less, "crowds-random", wrong, every=True), POOLED)
    of_all = regrets(random_study(less, "crowds-all", first, every=False), POOLED)
    constant = regrets(constant_study(less), POOLED)
    crowded = crowd_frame(attracted).drop(columns="queue")  # a word there, and a number elsewhere
    room, exponents = regrets(rooms, CLASSWISE), room_exponents(rooms)
    parts = {
        "random": balking,
        "all": of_all,
        "constant": constant,
        "crowd": crowded,
        "room": room,
        "exponents": exponents,
    }
    text = findings_text(f"{less.replications} trajectories each to {less.horizon:,.0f}", losses, parts)
    frame = pd.concat([one.assign(study=name) for name, one in parts.items()], ignore_index=True)
    return work.publish("crowds", frame, text, {"crowds.png": draw(balking, constant, attracted, room)})
