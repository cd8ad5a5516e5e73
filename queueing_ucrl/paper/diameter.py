"""The diameter of the uniformized queue and the paper's lower bounds (App. A) as the room S grows.

Three kinds of queue, with Lambda = 2 in steps of the chain at U = Lambda + mu(S): one server, the paper's five, and a
server for each place. Where the servers together are as fast as in the paper (5 mu = 1.5, 2, 2.5), the load is the
same in the first two kinds. Nothing is simulated.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from queueing_ucrl.model.costs import Linear
from queueing_ucrl.model.diameter import diameter_lower_bound, log10_diameter
from queueing_ucrl.model.system import JobClass, Queue
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table
from queueing_ucrl.report.palette import BLUE, GREEN, VERMILION

SIZES = (5, 6, 8, 10, 15, 20, 30, 40, 50, 70, 100, 150)
TOLD = (10, 20, 50, 100)  # of them, in the table for people
KINDS = ("M/M/1/S", "M/M/5/S", "M/M/S/S")
RATES = (0.3, 0.4, 0.5)  # mu of five servers


def the_queue(kind: str, capacity: int, rate: float) -> Queue:
    """The paper's two classes at a queue of this kind."""
    classes = [JobClass(name, 1.0, reward, Linear(0.1)) for name, reward in (("gold", 20.0), ("basic", 10.0))]
    servers = {"M/M/1/S": 1, "M/M/5/S": 5, "M/M/S/S": capacity}[kind]
    return Queue(servers, capacity, 5 * rate if servers == 1 else rate, classes)


def row(kind: str, capacity: int, rate: float) -> dict[str, Any]:
    """One queue: decimal logarithms, since a diameter may be of any size."""
    queue = the_queue(kind, capacity, rate)
    exact, bound = log10_diameter(queue), math.log10(diameter_lower_bound(queue))
    return {
        "kind": kind,
        "service_rate": queue.service_rate,
        "capacity": capacity,
        "load": queue.load,
        "log10_diameter": exact,
        "log10_lower_bound": bound,
        "exact_over_bound": 10.0 ** (exact - bound),
    }


def draw(frame: pd.DataFrame) -> Figure:
    """A panel a kind: exact in full, the bound dashed."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 3), KINDS, strict=True):
        part = frame[frame["kind"] == kind]
        for colour, (rate, one) in zip((VERMILION, GREEN, BLUE), part.groupby("service_rate"), strict=True):
            axes.plot(one["capacity"], one["log10_diameter"], color=colour, label=f"µ = {rate:g}")
            axes.plot(one["capacity"], one["log10_lower_bound"], color=colour, linestyle="--")
        axes.set_title(f"{kind}, Λ = 2", loc="left", fontsize=10)
        axes.set(xlabel="room in the system S", ylabel="log10 of the diameter, in ticks")
        axes.grid(alpha=0.3, linewidth=0.5)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.suptitle("The diameter, exact (full) and the paper's lower bound (dashed)", fontsize=11)
    return figure


def size(logarithm: float) -> str:
    return f"{10**logarithm:,.1f}" if logarithm < 5 else f"{10 ** (logarithm % 1):.2f}e{math.floor(logarithm)}"


def reproduce(work: Work) -> ExperimentResult:
    """Compute, draw, tell."""
    frame = pd.DataFrame([row(kind, S, rate) for kind in KINDS for rate in RATES for S in SIZES])
    rows = []
    for r in frame[frame["capacity"].isin(TOLD)].to_dict("records"):
        sizes = size(r["log10_diameter"]), size(r["log10_lower_bound"])
        rows.append((r["kind"], f"{r['service_rate']:g}", r["capacity"], *sizes, f"{r['exact_over_bound']:,.3g}"))
    text = "## The diameter and its lower bounds\n\nIn ticks at U = Λ + µ(S), Λ = 2.\n\n" + markdown_table(
        ("queue", "µ", "S", "diameter", "lower bound", "ratio"), rows
    )
    return work.publish("diameter", frame, text, {"diameter.png": draw(frame)})
