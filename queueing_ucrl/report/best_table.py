"""The best table found, as tables and sentences for the terminal."""

from __future__ import annotations

from rich.console import Console

from queueing_ucrl.experiments.optimise import BestTable, Searched
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, percent, with_interval
from queueing_ucrl.report.tables import print_picture
from queueing_ucrl.solvers.optimum import optimum
from queueing_ucrl.units import Units

SPACES = {
    "levels": "control levels by class (a class gets in while fewer than its level are there)",
    "table": "control levels by class, then any table, entry by entry",
}


def print_best_table(console: Console, title: str, found: BestTable, units: Units) -> None:
    """What the M/M plan promises, what it earns, what the best table earns; the table; what was searched."""
    print_words(console, title, style="bold")
    print_words(
        console,
        f"reward per {units.per_time}, mean of {found.gain.count:,} replications that the search has not seen, ± half "
        "of the 95 % interval",
        style="dim",
    )
    print_line(console)
    table = Table(units.paid("table"), "promised", "earns")
    plan, best = found.plan_gain, found.gain
    table.add("M/M plan", number(found.promised, 6), with_interval(plan.mean, plan.half_width))
    table.add("best table found", NOTHING, with_interval(best.mean, best.half_width))
    table.print(console)
    print_line(console)
    for words in (*best_words(found), *plan_words(found)):
        print_words(console, words)
    print_line(console)
    print_words(console, "who is let in, by the number of jobs in the system (# yes, . no, ~ in part)", style="bold")
    print_picture(console, found.system.class_names, found.policy)
    print_line(console)
    _print_search(console, found, units)


def best_words(found: BestTable) -> list[str]:
    """By how much the best table found is better than the plan."""
    more, plan = found.improvement, found.plan_gain
    if found.policy == found.plan:
        return ["The search found no table that earns more than the M/M plan."]
    share = f" ({percent(more.mean / plan.mean, 2)})" if plan.mean else ""
    spread = with_interval(more.mean, more.half_width)
    return [f"On the same jobs the best table earns {spread}{share} more than the plan."]


def plan_words(found: BestTable) -> list[str]:
    """Whether the plan earns what it promises."""
    plan = found.plan_gain
    if optimum(found.system)[0] is not None:
        return ["The plan is the optimum of this queue, and earns what it promises."]
    if not found.promised or abs(found.promised - plan.mean) <= plan.half_width:
        return []
    off = found.promised / plan.mean - 1.0
    return [
        f"The plan is for the M/M/c/S queue of the same means; what it promises there is {percent(abs(off), 2)} "
        f"{'more' if off > 0 else 'less'} than it earns."
    ]


def warm_up_words(searched: Searched) -> str:
    """What of a run does not count, where there is such a part."""
    return f" (its first {number(searched.warm_up, 4)} do not count)" if searched.warm_up else ""


def _print_search(console: Console, found: BestTable, units: Units) -> None:
    searched = found.searched
    length = f"{number(searched.horizon, 4)} {units.time}".rstrip()
    print_words(
        console,
        f"searched: {SPACES[searched.space]}; {searched.tables:,} tables from {searched.start} on, {searched.runs:,} "
        f"runs in {searched.replications} replications up to time {length}"
        f"{warm_up_words(searched)}, each race at {percent(searched.confidence, 3)} confidence; "
        f"differences below {percent(searched.tolerance, 2)} were not looked for. It is the best table "
        f"found, not the optimum: nothing is said of tables that were not tried. {number(found.seconds, 3)} seconds.",
        style="dim",
    )
