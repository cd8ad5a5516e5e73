"""Tables for the terminal, and the same numbers as plain data for --json."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from queueing_ucrl.model.performance import Performance, performance
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.solvers.solution import Solution


def _number(value: float) -> float | None:
    """JSON knows no nan: nothing there."""
    return value if math.isfinite(value) else None


def solution_data(scenario: Scenario, solution: Solution) -> dict[str, Any]:
    """A solved scenario as plain data."""
    queue, measures = scenario.queue, performance(scenario.queue, solution.policy)
    classes = [
        {
            "name": name,
            "control_level": level,
            "admission_probability": float(measures.admission[i]),
            "rejection_probability": float(measures.rejection[i]),
            "mean_wait": _number(float(measures.mean_wait[i])),
        }
        for i, (name, level) in enumerate(zip(queue.class_names, solution.policy.control_levels, strict=True))
    ]
    return {
        "title": scenario.title,
        "servers": queue.servers,
        "capacity": queue.capacity,
        "service_rate": queue.service_rate,
        "load": queue.load,
        "gain": solution.gain,
        "trunk_reservation": solution.policy.is_trunk_reservation,
        "classes": classes,
        "blocking_probability": measures.blocking,
        "utilisation": measures.utilisation,
        "mean_in_system": measures.mean_in_system,
        "mean_waiting": measures.mean_waiting,
        "throughput": measures.throughput,
        "method": solution.method,
        "iterations": solution.iterations,
        "seconds": solution.seconds,
    }


def _class_table(queue: Queue, solution: Solution, measures: Performance) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("class", no_wrap=True)
    for heading in ("arrivals per time", "admitted below", "admitted", "rejected", "mean wait"):
        table.add_column(heading, justify="right")
    for i, job_class in enumerate(queue.classes):
        wait = measures.mean_wait[i]
        table.add_row(
            escape(job_class.name),
            f"{job_class.arrival_rate:g}",
            str(solution.policy.control_levels[i]),
            f"{measures.admission[i]:.2%}",
            f"{measures.rejection[i]:.2%}",
            f"{wait:.4g}" if math.isfinite(wait) else "none admitted",
        )
    return table


def print_solution(console: Console, scenario: Scenario, solution: Solution) -> None:
    """The best policy of a scenario, for a person."""
    queue, measures = scenario.queue, performance(scenario.queue, solution.policy)
    console.print(f"[bold]{escape(scenario.title)}[/bold]")
    console.print(
        f"{queue.servers} servers, room for {queue.capacity}, service rate {queue.service_rate:g}, "
        f"load {queue.load:.3g}\n"
    )
    console.print(f"gain {solution.gain:.10g} reward per unit of time, the best that any policy can earn\n")
    console.print(_class_table(queue, solution, measures))
    console.print("\n[bold]who is let in[/bold], by number in the system (# yes, . no)")
    console.print(solution.policy.picture(queue.class_names), markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"\nblocked by a full system {measures.blocking:.3g}, utilisation {measures.utilisation:.2%}, "
        f"in the system {measures.mean_in_system:.4g}, waiting {measures.mean_waiting:.4g} on average"
    )
    console.print(
        f"found by {solution.method} in {solution.iterations} iterations, {1e3 * solution.seconds:.3g} ms", style="dim"
    )
