"""An optimum beyond M/M/c/S for the terminal and for --json: what it earns, and what tables that see less earn."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from queueing_ucrl.experiments.optimise import mm_plan
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, percent
from queueing_ucrl.report.tables import print_picture
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.solvers.beyond import gain_beyond
from queueing_ucrl.solvers.environment_chain import EnvironmentSolution
from queueing_ucrl.solvers.multi_count import CountSolution

Optimum = CountSolution | EnvironmentSolution


def _levels(names: tuple[str, ...], policy: Policy) -> dict[str, int] | None:
    return dict(zip(names, policy.control_levels, strict=True)) if policy.is_trunk_reservation else None


def beyond_data(scenario: Scenario, best: Optimum) -> dict[str, Any]:
    """As plain data; the keys are explained in `queueing-ucrl solve --help`."""
    system, names = scenario.system, scenario.system.class_names
    plan, promised = mm_plan(system)
    found: dict[str, Any] = {
        "title": scenario.title,
        "units": scenario.units.plain_data(),
        "gain": best.gain,
        "sees": "counts" if isinstance(best, CountSolution) else "environment",
        "states": int(best.stationary.size),
    }
    if isinstance(best, CountSolution):
        table, gain = best.best_table
        found["best_table"] = {"gain": gain, "control_levels": _levels(names, table)}
    else:
        shares = best.stationary.sum(axis=1).tolist()
        tables = [best.policy.at(e) for e in range(len(shares))]
        found["environment"] = [
            {"share": share, "control_levels": _levels(names, table)}
            for share, table in zip(shares, tables, strict=True)
        ]
    found["plan"] = {
        "promised": promised,
        "gain": gain_beyond(system, plan),
        "control_levels": _levels(names, plan),
    }
    return {**found, "method": best.method, "iterations": best.iterations, "seconds": best.seconds}


def print_beyond(console: Console, scenario: Scenario, best: Optimum) -> None:
    """The optimum, beside what the M/M plan promises and earns; then the tables."""
    system, units = scenario.system, scenario.units
    plan, promised = mm_plan(system)
    print_words(console, scenario.title, style="bold")
    by_counts = isinstance(best, CountSolution)
    sees = "how many of each class there are" if by_counts else "the number of jobs and the environment"
    print_words(console, f"reward per {units.per_time}, exact; the best policy sees {sees}", style="dim")
    print_line(console)
    table = Table(units.paid("policy"), "promised", "earns", "less than the best")
    rows: list[tuple[str, float | None, float]] = [("M/M plan", promised, gain_beyond(system, plan))]
    if isinstance(best, CountSolution):
        rows.append(("best table found by the number of jobs", None, best.best_table[1]))
    rows.append(("best policy", None, best.gain))
    for name, promise, gain in rows:
        less = NOTHING if gain == best.gain else percent(1.0 - gain / best.gain, 2)
        table.add(name, NOTHING if promise is None else number(promise, 6), number(gain, 6), less)
    table.print(console)
    print_line(console)
    pictures = {"M/M plan": plan}
    if isinstance(best, CountSolution):
        pictures["best table found by the number of jobs"] = best.best_table[0]
    else:
        shares = best.stationary.sum(axis=1).tolist()
        pictures |= {
            f"best policy in state {e} of the environment, {percent(share, 3)} of the time": best.policy.at(e)
            for e, share in enumerate(shares)
        }
    print_words(console, "who is let in, by the number of jobs in the system (# yes, . no, ~ in part)", style="bold")
    for name, policy in pictures.items():
        print_line(console, name)
        print_picture(console, system.class_names, policy)
    print_line(console)
    words = f"policy iteration on {best.stationary.size:,} states, {best.iterations} iterations"
    print_words(console, f"{words}, {number(1e3 * best.seconds, 3)} ms", style="dim")
