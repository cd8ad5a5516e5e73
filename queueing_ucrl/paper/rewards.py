"""What is seen only of those who are let in: rewards, costs of waiting, and arrivals, on the paper's six queues.

An admitted job pays R / p with probability p = 0.2, else nothing; nobody knows R. Certainty equivalence keeps out a
class that paid nothing at first, and never finds out; learners that explore do. Beside it: holding costs that are not
known, and doors behind which nobody is seen, or nobody's class; these get a third of the trajectories. Regrets are gap
regrets on common random numbers, at a time of 10^5 at most. Intervals are of 95 %: Student's for means, paired
differences and ratios, and for shares of the trajectories the exact ones (Clopper and Pearson).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.planners import model_at
from queueing_ucrl.model.laws import TwoPoint
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue
from queueing_ucrl.paper.beyond import (
    Newcomer,
    at_decades,
    choices,
    draw_queues,
    half_interval,
    part,
    ratio,
    with_looks,
)
from queueing_ucrl.paper.work import QUEUES, ExperimentResult, Work, markdown_table, named_cell, paragraph
from queueing_ucrl.report.numbers import with_interval
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.solvers.solve import solve

PROBABILITY = 0.2  # that a job pays
LARGEST = 100.0  # what a job of gold pays then: the bound that is told
HORIZON = 1e5  # at most
SHARE = 3  # of the trajectories, one in so many is for costs and doors, two at least
SURE = 30.0  # mu t from which on coverage is counted: there 3 / (mu t) is a tenth or less

_UNKNOWN: dict[str, Any] = {"rewards": "unknown"}
LEARNERS = with_looks(
    {
        "plain": Newcomer("certainty-equivalent", {**_UNKNOWN, "exploration": "none"}),
        "plain, first review at 20": Newcomer(
            "certainty-equivalent", {**_UNKNOWN, "exploration": "none", "first_review": 20.0}
        ),
        "ucb": Newcomer("certainty-equivalent", {**_UNKNOWN, "reward_bound": LARGEST}),
        "ucb, bound not told": Newcomer("certainty-equivalent", _UNKNOWN),
        "forced": Newcomer("certainty-equivalent", {**_UNKNOWN, "exploration": "forced"}),
        "thompson": Newcomer("thompson", {**_UNKNOWN, "reward_bound": LARGEST}),
        "rewards known": Newcomer("certainty-equivalent"),
    },
    beside=(),
)
UNSEEN = {
    "all is known and seen": Newcomer("certainty-equivalent"),
    "holding costs unknown": Newcomer("certainty-equivalent", {"holding_costs": "unknown"}),
    "rejected arrivals unseen": Newcomer("certainty-equivalent", {"observation": "admitted"}),
    "thompson, all seen": Newcomer("thompson"),
    "thompson, rejected arrivals unseen": Newcomer("thompson", {"observation": "admitted"}),
    "class seen after admission": Newcomer("certainty-equivalent", {"observation": "class-after-admission"}),
}
BLIND = "class seen after admission"


def all_or_nothing(queue: Queue) -> Queue:
    """The queue whose jobs pay R / p with probability p."""
    classes = [replace(c, pays=TwoPoint(c.reward, PROBABILITY)) for c in queue.classes]
    return Queue(queue.servers, queue.capacity, queue.service_rate, classes)


def scenario_of(work: Work, learners: dict[str, Newcomer], *, random: bool) -> Scenario:
    """The six queues with these learners; random: jobs pay all or nothing."""
    whole = replace(work, horizon=min(work.horizon, HORIZON)).scenarios(lambda one: choices(learners))
    if random:
        points = tuple(replace(one, system=all_or_nothing(one.queue)) for one in whole.points)
        whole = replace(points[0], title="The paper's queues, paid all or nothing", values={}, points=points)
    return at_decades(whole)


# --- rewards ----------------------------------------------------------------------------------------------------------


def last_levels(study: Study) -> Iterator[tuple[int, str, int, list[int]]]:
    """(point, learner, replication, control levels of the last policy) of each trajectory."""
    episodes = study.episodes()
    points = {(cell.values["capacity"], cell.values["service_rate"]): cell.point for cell in study.cells}
    last = episodes.groupby(["capacity", "service_rate", "controller", "replication"], sort=False).tail(1)
    for row in last.to_dict("records"):
        place = points[row["capacity"], row["service_rate"]]
        yield place, row["controller"], row["replication"], list(row["control_levels"])


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The exact 95 % interval of a share of which `count` of `total` were seen: Clopper and Pearson's."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, count, total - count + 1)) if count else 0.0
    return low, float(beta.ppf(0.975, count + 1, total - count)) if count < total else 1.0


def stuck_counts(study: Study) -> dict[tuple[int, str], int]:
    """Of how many trajectories the last policy lets in nowhere a class that the best policy lets in."""
    best = {cell.point: solve(cell.queue).policy.control_levels for cell in study.cells}
    found = {(cell.point, cell.name): 0 for cell in study.cells}
    for point, name, _, levels in last_levels(study):
        found[point, name] += any(wanted > 0 and level == 0 for wanted, level in zip(best[point], levels, strict=True))
    return found


def coverage(study: Study, name: str = "ucb") -> pd.DataFrame:
    """By queue: of the limits at reviews with mu t >= SURE, how many were below the truth, and what is promised.

    Promised, at a number of jobs that is fixed: each limit is below the truth with probability 3 / (m mu t) at most.
    """
    episodes = study.episodes()
    rows = []
    for (capacity, value), group in episodes[episodes["controller"] == name].groupby(["capacity", "service_rate"]):
        rate = float(str(value))
        cell = next(c for c in study.cells if (c.values["capacity"], c.values["service_rate"]) == (capacity, rate))
        late = group[(group["start"] * rate >= SURE) & group["planned_rewards"].notna()]
        limits = np.array(late["planned_rewards"].tolist(), dtype=float)  # nan: not seen yet
        truth = cell.queue.job_rewards
        promised = np.minimum(1.0, 3.0 / (truth.size * rate * late["start"].to_numpy()))
        missed = limits < truth
        runs = late["replication"].to_numpy()
        row = {"capacity": capacity, "service_rate": rate, "limits": limits.size, "promised": float(promised.mean())}
        row |= {"missed": int(missed.sum()), "replications": np.unique(runs).size}
        row["estimates_below"] = int((np.array(late["reward_estimates"].tolist(), dtype=float) < truth).sum())
        rows.append({**row, "missing_replications": np.unique(runs[missed.any(axis=1)]).size})
    return pd.DataFrame(rows)


def regrets(study: Study, stuck: dict[tuple[int, str], int], ours: str) -> pd.DataFrame:
    """One row a queue and learner: gap regret at the horizon, quantiles, the mean as a part of another's, the stuck."""
    rows = []
    for k, cell in enumerate(study.cells):
        samples = study.samples(k, "gap")[:, -1]
        base = study.samples(named_cell(study, ours, cell.point), "gap")[:, -1]
        share, share_half = ratio(samples, base) if base.mean() > 0 else (np.nan, np.nan)
        count = stuck[cell.point, cell.name]
        low, high = share_interval(count, samples.size)
        rows.append(
            {
                **cell.values,
                "learner": cell.name,
                "replications": samples.size,
                "regret": float(samples.mean()),
                "half_interval": half_interval(samples),
                **{f"q{q}": float(np.quantile(samples, q / 100)) for q in (50, 90, 99)},
                "largest": float(samples.max()),
                "part": share,
                "part_half_interval": share_half,
                "difference": float((samples - base).mean()),
                "difference_half_interval": half_interval(samples - base),
                **{"stuck": count, "stuck_low": low, "stuck_high": high},
            }
        )
    return pd.DataFrame(rows)


def by_queue(frame: pd.DataFrame, heading: str, entry: Callable[[dict[Hashable, Any]], str]) -> str:
    """A row a learner, a column a queue."""
    rows = [(name, *map(entry, frame[frame["learner"] == name].to_dict("records"))) for name in LEARNERS]
    return markdown_table((heading, *(f"S {c}, µ {r}" for c, r in QUEUES)), rows)


def with_half(row: dict[Hashable, Any]) -> str:
    return f"{row['regret']:,.0f} ±{row['half_interval']:,.0f}"


def stuck_cell(row: dict[Hashable, Any]) -> str:
    return f"{row['stuck']} ({100 * row['stuck_low']:.0f}-{100 * row['stuck_high']:.0f} %)"


def part_cell(row: dict[Hashable, Any]) -> str:
    """In percent."""
    return with_interval(100 * row["part"], 100 * row["part_half_interval"])


def tail_cell(row: dict[Hashable, Any]) -> str:
    return " / ".join(f"{row[q]:,.0f}" for q in ("q50", "q90", "q99", "largest"))


def coverage_text(frame: pd.DataFrame) -> str:
    rows = []
    for r in frame.to_dict("records"):
        low, high = share_interval(r["missing_replications"], r["replications"])
        ever = f"{r['missing_replications']} of {r['replications']} ({100 * low:.0f}-{100 * high:.0f} %)"
        seen = (f"{r['missed']:,}", f"{r['promised'] * r['limits']:.1f}", ever)
        estimates = f"{r['estimates_below']:,}"
        rows.append((f"S {r['capacity']}, µ {r['service_rate']}", f"{r['limits']:,}", *seen, estimates))
    headings = ("limits", "below the truth", "promised at most", "trajectories with any", "estimates below the truth")
    return markdown_table(("queue", *headings), rows)


# --- costs and doors --------------------------------------------------------------------------------------------------


def blind_optimum(queue: Queue) -> tuple[float, Policy]:
    """The best gain, and policy, of those who do not see a job's class before they let it in."""
    model = model_at(replace(Knowledge.of(queue), sees_classes=False), queue.arrival_rates, None)
    assert model is not None
    solution = solve(model)
    return solution.gain, solution.policy


def lost(study: Study, k: int) -> FloatArray:
    """What each trajectory lost to the best policy that sees what its learner sees: gap regret; for those who do not
    see classes, the pseudo regret less what the best policy without classes loses too.
    """
    cell = study.cells[k]
    if cell.name != BLIND:
        return study.samples(k, "gap")[:, -1]
    loss = solve(cell.queue).gain - blind_optimum(cell.queue)[0]
    return study.samples(k, "pseudo")[:, -1] - cell.settings.horizon * loss


def unseen(study: Study) -> pd.DataFrame:
    """One row a queue and learner: what was lost, and the paired difference to the same learner who sees all."""
    rows = []
    for k, cell in enumerate(study.cells):
        base = "thompson, all seen" if cell.name.startswith("thompson") else "all is known and seen"
        mine = lost(study, k)
        difference = mine - lost(study, named_cell(study, base, cell.point))
        row = {**cell.values, "learner": cell.name, "replications": mine.size, "regret": float(mine.mean())}
        row |= {"half_interval": half_interval(mine), "largest": float(mine.max())}
        row |= {f"q{q}": float(np.quantile(mine, q / 100)) for q in (50, 90, 99)}
        row |= {"difference": float(difference.mean()), "difference_half_interval": half_interval(difference)}
        rows.append({**row, "blind_share": blind_optimum(cell.queue)[0] / solve(cell.queue).gain})
    return pd.DataFrame(rows)


def unseen_text(frame: pd.DataFrame) -> str:
    rows = []
    for name in UNSEEN:
        mine = frame[frame["learner"] == name].to_dict("records")
        rows.append((name, *(f"{r['regret']:,.1f} ±{r['half_interval']:,.1f}" for r in mine)))
        rows.append(("    50 / 90 / 99 %", *(" / ".join(f"{r[q]:,.1f}" for q in ("q50", "q90", "q99")) for r in mine)))
        if name not in ("all is known and seen", "thompson, all seen", BLIND):
            differences = (f"{r['difference']:+,.1f} ±{r['difference_half_interval']:,.1f}" for r in mine)
            rows.append(("    more than who sees all", *differences))
    shares = frame[frame["learner"] == BLIND]["blind_share"]
    rows.append(("best gain without classes, % of ρ*", *(f"{100 * share:.1f}" for share in shares)))
    return markdown_table(("lost", *(f"S {c}, µ {r}" for c, r in QUEUES)), rows)


# --- together ---------------------------------------------------------------------------------------------------------


def draw(study: Study) -> Figure:
    """Gap regret on each queue, mean and interval."""
    settings = study.cells[0].settings
    words = f"{settings.replications} trajectories to {settings.horizon:,.0f}"
    title = f"Jobs that pay R / {PROBABILITY} with probability {PROBABILITY}: {words}"
    return draw_queues(study, LEARNERS, title, 4, share_y=True)


def reproduce(work: Work) -> ExperimentResult:
    """The two studies, their tables and the figure."""
    paid = work.study("rewards", scenario_of(work, LEARNERS, random=True))
    seen = work.study("rewards-unseen", scenario_of(part(work, SHARE), UNSEEN, random=False))
    of_rewards, covered, of_doors = regrets(paid, stuck_counts(paid), "plain"), coverage(paid), unseen(seen)
    settings = paid.cells[0].settings
    text = (
        "## What is seen only of those who are let in\n\n"
        + paragraph(
            f"{settings.replications} trajectories to {settings.horizon:,.0f}; mean ± half of the 95 % interval. A job "
            f"pays R / {PROBABILITY} with probability {PROBABILITY}, and R is not known."
        )
        + by_queue(of_rewards, "gap regret", with_half)
        + "\n\n### Stuck: the last policy lets in nowhere a class that the best one lets in\n\n"
        + by_queue(of_rewards, f"of {settings.replications} (exact interval)", stuck_cell)
        + "\n\n### The mean as a part of plain's\n\n"
        + by_queue(of_rewards, "in percent", part_cell)
        + "\n\n### Quantiles over trajectories\n\n"
        + by_queue(of_rewards, "50 / 90 / 99 % / largest", tail_cell)
        + f"\n\n### Whether the limits of `ucb` hold, at reviews with µt of {SURE:g} or more\n\n"
        + coverage_text(covered)
        + "\n\n### Costs that are not known, and doors behind which nobody is seen (rewards known)\n\n"
        + paragraph(
            f"{seen.cells[0].settings.replications} trajectories. Lost: gap regret; of who sees no class, to the best "
            "policy that treats all classes alike (pseudo regret)."
        )
        + unseen_text(of_doors)
    )
    parts = {"rewards": of_rewards, "coverage": covered, "unseen": of_doors}
    frame = pd.concat([one.assign(study=name) for name, one in parts.items()], ignore_index=True)
    return work.publish("rewards", frame, text, {"rewards.png": draw(paid)})
