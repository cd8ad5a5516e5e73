"""Tables for the terminal, and the same numbers as plain data for --json."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from queueing_ucrl.arrays import BoolArray
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.drift_evaluation import Drift
from queueing_ucrl.model.performance import Performance, performance
from queueing_ucrl.model.policy import Policy, stretches
from queueing_ucrl.model.system import Queue
from queueing_ucrl.report.layout import GAP, Table, print_line, print_words
from queueing_ucrl.report.numbers import number, percent
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.solvers.solution import Solution

PICTURE_WIDTH = 50  # leaves room for a name and the states in 80 columns
QUICK = 1e7  # steps of a pass through a period: what is known within a second or two is told
TICKS = 10  # marks from one number on the axis to the next


def _number(value: float) -> float | None:
    """JSON knows no nan: nothing there."""
    return value if math.isfinite(value) else None


def admitted_states(admits: BoolArray) -> str:
    """The states in which a class is admitted, in words: "0-9, 12"."""
    return ", ".join(f"{a}-{b - 1}" if b - 1 > a else str(a) for a, b in stretches(admits)) or "none"


def drifting_gain(queue: Queue, policy: Policy) -> tuple[float | None, str]:
    """(what a policy earns in the long run while rates change, ""), or (None, why there is no such number)."""
    if not queue.drifts:
        return None, "the rates are steady"
    try:
        return Drift(queue, most_work=QUICK).gain(policy), ""
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
            "admitted_states": [[first, end - 1] for first, end in policy.stretches(i)],
            "admission_probability": float(measures.admission[i]),
            "rejection_probability": float(measures.rejection[i]),
            "mean_wait": _number(float(measures.mean_wait[i])),
            "abandonment_probability": _number(float(measures.abandonment[i])),
        }
        for i, job_class in enumerate(queue.classes)
    ]
    return {
        "title": scenario.title,
        "units": scenario.units.plain_data(),
        "servers": queue.servers,
        "capacity": queue.capacity,
        "service_rate": queue.service_rate,
        "patience_rate": queue.patience_rate,
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
        "abandonments": measures.abandonments,
        "method": solution.method,
        "iterations": solution.iterations,
        "seconds": solution.seconds,
    }


def _class_table(scenario: Scenario, queue: Queue, solution: Solution, measures: Performance) -> Table:
    per = f"\n(per {scenario.units.per_time})" if scenario.units.time else ""
    wait = f"\n({scenario.units.time})" if scenario.units.time else ""
    gives_up = ["gives up"] if queue.abandons else []
    table = Table("class", f"arrival rate{per}", "control level", "admitted", "rejected", *gives_up, f"mean wait{wait}")
    for i, job_class in enumerate(queue.classes):
        table.add(
            job_class.name,
            number(job_class.arrival_rate),
            str(solution.policy.control_levels[i]),
            percent(measures.admission[i], 4),
            percent(measures.rejection[i], 4),
            *(percent(measures.admission[i] - measures.served[i], 4) for _ in gives_up),
            number(measures.mean_wait[i]),
        )
    return table


def print_picture(console: Console, class_names: Sequence[str], policy: Policy, width: int | None = None) -> None:
    """`Policy.marks` beside the classes' names and the states in numbers, as wide as the console or `width` allows."""
    columns = console.width if width is None else width
    spans = [admitted_states(column) for column in policy.admits.T]
    names = max(map(cell_len, class_names))
    apart = names + len(GAP) + PICTURE_WIDTH > columns - len(GAP) - 11  # 11: "admitted in"
    room = columns - (0 if apart else names + len(GAP)) - len(GAP) - max(11, *map(len, spans))
    block = -(-policy.capacity // max(TICKS, min(PICTURE_WIDTH, room)))
    starts = range(0, policy.capacity, block)
    axis = "".join(f"{start:<{TICKS}}" for start in starts[::TICKS]).rstrip()
    drawn = max(len(axis), len(starts))
    indent = "" if apart else " " * (names + len(GAP))
    print_line(console, f"{indent}{axis:<{drawn}}{GAP}admitted in")
    for name, marks, span in zip(class_names, policy.marks(block), spans, strict=True):
        if apart:
            print_line(console, name)
        beside = "" if apart else name + " " * (names - cell_len(name)) + GAP
        print_line(console, f"{beside}{marks:<{drawn}}{GAP}{span}")


def _print_drift(console: Console, scenario: Scenario, solution: Solution) -> None:
    """What a policy for the mean rates is, and is not, while rates change."""
    units = scenario.units
    print_words(
        console,
        "The arrival rates change in time. All of this is for their means, as if they stayed: the best policy then, "
        "not the best that can be done while they change, and a gain that no policy is promised.",
    )
    print_line(console)
    unit = f"{units.money or 'reward'} per {units.per_time}"
    print_words(console, f"gain {number(solution.gain, 10)} {unit}, if the rates were their means")
    earned, why = drifting_gain(scenario.queue, solution.policy)
    changing = f"{number(earned, 10)}, in the long run" if earned is not None else f"not known: {why}"
    print_words(console, f"gain of the same policy as they change: {changing}")


def _patience(queue: Queue, per: str) -> str:
    """How soon waiting jobs give up, where they do."""
    return f"patience rate {number(queue.patience_rate, 6)}{per}, " if queue.patience is not None else ""


def print_solution(console: Console, scenario: Scenario, solution: Solution) -> None:
    """The best policy of a scenario, for a person."""
    queue, units = scenario.queue.on_average(), scenario.units
    measures = performance(queue, solution.policy)
    print_words(console, scenario.title, style="bold")
    per = f" per {units.per_time}" if units.time else ""
    print_words(
        console,
        f"servers {queue.servers:,}, capacity {queue.capacity:,}, service rate {number(queue.service_rate, 6)}{per}, "
        f"{_patience(queue, per)}load {number(queue.load, 3)}",
    )
    print_line(console)
    if scenario.queue.drifts:
        _print_drift(console, scenario, solution)
    else:
        # where jobs give up, a trunk reservation policy need not be the best of all
        which = "a trunk reservation" if solution.method == "trunk-search" and queue.abandons else "any"
        print_words(
            console,
            f"gain {number(solution.gain, 10)} {units.money or 'reward'} per {units.per_time}, the best that {which} "
            "policy can earn",
        )
    print_line(console)
    _class_table(scenario, queue, solution, measures).print(console)
    print_line(console)
    print_words(console, "who is let in, by the number of jobs in the system (# yes, . no, ~ in part)", style="bold")
    print_picture(console, queue.class_names, solution.policy)
    print_line(console)
    for words, value in (
        ("blocked by a full system", percent(measures.blocking, 4)),
        ("utilisation of the servers", percent(measures.utilisation, 4)),
        ("mean number in the system", number(measures.mean_in_system)),
        ("mean number waiting", number(measures.mean_waiting)),
        (f"admitted per {units.per_time}", number(measures.throughput + measures.abandonments)),
        *([(f"served per {units.per_time}", number(measures.throughput))] if queue.abandons else []),
    ):
        print_line(console, f"{words:<28}{value:>9}")
    print_line(console)
    steps = "1 iteration" if solution.iterations == 1 else f"{solution.iterations} iterations"
    print_words(console, f"found by {solution.method} in {steps}, {number(1e3 * solution.seconds, 3)} ms", style="dim")
