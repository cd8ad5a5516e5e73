"""Tables for the terminal, and the same numbers as plain data for --json."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.drift import Drift
from queueing_ucrl.model.performance import Performance, performance
from queueing_ucrl.model.policy import BoolArray, Policy
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.solvers.solution import Solution

PICTURE_WIDTH = 50  # leaves room for a name and the states in 80 columns
TICKS = 10  # marks from one number on the axis to the next


def _number(value: float) -> float | None:
    """JSON knows no nan: nothing there."""
    return value if math.isfinite(value) else None


def _intervals(admits: BoolArray) -> list[list[int]]:
    """The states in which a class is admitted, as [first, last] pairs."""
    edges = np.flatnonzero(np.diff(admits, prepend=False, append=False))
    return [[int(first), int(end) - 1] for first, end in edges.reshape(-1, 2)]


def drifting_gain(queue: Queue, policy: Policy) -> tuple[float | None, str]:
    """(what a policy earns in the long run while rates change, ""), or (None, why there is no such number)."""
    if not queue.drifts:
        return None, "the rates are steady"
    try:
        return Drift(queue).gain(policy), ""
    except (ValueError, SolverError) as error:
        return None, str(error)


def solution_data(scenario: Scenario, solution: Solution) -> dict[str, Any]:
    """A solved scenario as plain data; the keys are explained in `queueing-ucrl solve --help`."""
    queue, policy = scenario.queue.on_average(), solution.policy
    measures = performance(queue, policy)
    classes = [
        {
            "name": job_class.name,
            "arrival_rate": job_class.arrival_rate,
            "control_level": policy.control_levels[i],
            "admitted_states": _intervals(policy.admits[:, i]),
            "admission_probability": float(measures.admission[i]),
            "rejection_probability": float(measures.rejection[i]),
            "mean_wait": _number(float(measures.mean_wait[i])),
        }
        for i, job_class in enumerate(queue.classes)
    ]
    return {
        "title": scenario.title,
        "servers": queue.servers,
        "capacity": queue.capacity,
        "service_rate": queue.service_rate,
        "load": queue.load,
        "rates": "mean" if scenario.queue.drifts else "steady",
        "gain": solution.gain,
        "drifting_gain": drifting_gain(scenario.queue, policy)[0],
        "trunk_reservation": policy.is_trunk_reservation,
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


def plain_table(*headings: str, text: tuple[str, ...] = ()) -> Table:
    """A table without lines: columns of text to the left, folded rather than cut; numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        if heading in text:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _percent(probability: float) -> str:
    return f"{100 * probability:.4g}%"


def _class_table(queue: Queue, solution: Solution, measures: Performance) -> Table:
    table = plain_table(
        "class", "arrival rate", "control level", "admitted", "rejected", "mean wait", text=("class",)
    )  # fmt: skip
    for i, job_class in enumerate(queue.classes):
        wait = measures.mean_wait[i]
        table.add_row(
            Text(job_class.name),
            f"{job_class.arrival_rate:.4g}",
            str(solution.policy.control_levels[i]),
            _percent(measures.admission[i]),
            _percent(measures.rejection[i]),
            f"{wait:.4g}" if math.isfinite(wait) else "-",
        )
    return table


def _picture(queue: Queue, admits: BoolArray) -> Table:
    """One line a class, one mark a state; of a long queue each mark is a block of states."""
    block = -(-queue.capacity // PICTURE_WIDTH)
    starts = range(0, queue.capacity, block)
    axis = "".join(f"{start:<{TICKS}}" for start in starts[::TICKS])
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("", axis.rstrip(), "admitted in")
    for i, name in enumerate(queue.class_names):
        blocks = [admits[start : start + block, i] for start in starts]
        marks = "".join("#" if b.all() else "~" if b.any() else "." for b in blocks)
        spans = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in _intervals(admits[:, i]))
        table.add_row(Text(name), marks, spans or "none")
    return table


def _print_drift(console: Console, queue: Queue, solution: Solution) -> None:
    """What a policy for the mean rates is, and is not, while rates change."""
    console.print(
        "The arrival rates change in time. All of this is for their means, as if they stayed: the best policy then, "
        "not the best that can be done while they change, and a gain that no policy is promised.\n"
    )
    console.print(f"gain {solution.gain:.10g} reward per unit of time, if the rates were their means")
    earned, why = drifting_gain(queue, solution.policy)
    words = (
        f"{earned:.10g} as they change, in the long run" if earned is not None else f"as they change, not known: {why}"
    )
    console.print(f"     {words}\n")


def print_solution(console: Console, scenario: Scenario, solution: Solution) -> None:
    """The best policy of a scenario, for a person."""
    queue = scenario.queue.on_average()
    measures = performance(queue, solution.policy)
    console.print(Text(scenario.title, style="bold"))
    console.print(
        f"servers {queue.servers}, capacity {queue.capacity}, service rate {queue.service_rate:.6g}, "
        f"load {queue.load:.3g}\n"
    )
    if scenario.queue.drifts:
        _print_drift(console, scenario.queue, solution)
    else:
        console.print(f"gain {solution.gain:.10g} reward per unit of time, the best that any policy can earn\n")
    console.print(_class_table(queue, solution, measures))
    console.print("\n[bold]who is let in[/bold], by the number of jobs in the system (# yes, . no, ~ in part)")
    console.print(_picture(queue, solution.policy.admits))
    console.print()
    for words, value in (
        ("blocked by a full system", _percent(measures.blocking)),
        ("utilisation of the servers", _percent(measures.utilisation)),
        ("mean number in the system", f"{measures.mean_in_system:.4g}"),
        ("mean number waiting", f"{measures.mean_waiting:.4g}"),
        ("admitted per unit of time", f"{measures.throughput:.4g}"),
    ):
        console.print(f"{words:<28}{value:>9}")
    console.print(
        f"\nfound by {solution.method} in {solution.iterations} iterations, {1e3 * solution.seconds:.3g} ms",
        style="dim",
    )
