"""The diameter of the uniformized queue and the paper's lower bounds (App. A) as the room S grows.

    python analysis/diameter.py        (the options of `queueing-ucrl reproduce`; nothing is simulated)

Three kinds of queue, with Lambda = 2 in steps of the chain at U = Lambda + mu(S): one server, the paper's five, and a
server for each place. Where the servers together are as fast as in the paper (5 mu = 1.5, 2, 2.5), the load is the
same in the first two kinds.
"""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

import queueing_ucrl as qu
from queueing_ucrl.report.palette import BLUE, GREEN, VERMILION
from queueing_ucrl.reproduce import Finding, Work, as_script, markdown_table

SIZES = (5, 6, 8, 10, 15, 20, 30, 40, 50, 70, 100, 150)
TOLD = (10, 20, 50, 100)  # of them, in the table for people
KINDS = ("M/M/1/S", "M/M/5/S", "M/M/S/S")
RATES = (0.3, 0.4, 0.5)  # mu of five servers


def the_queue(kind: str, capacity: int, rate: float) -> qu.Queue:
    """The paper's two classes at a queue of this kind."""
    classes = [qu.JobClass(name, 1.0, reward, qu.Linear(0.1)) for name, reward in (("gold", 20.0), ("basic", 10.0))]
    servers, service_rate = {
        "M/M/1/S": (1, 5 * rate), "M/M/5/S": (5, rate), "M/M/S/S": (capacity, rate),
    }[kind]  # fmt: skip
    return qu.Queue(servers, capacity, service_rate, classes)


def table() -> pd.DataFrame:
    """One row a queue: decimal logarithms, since a diameter may be of any size."""
    rows = []
    for kind in KINDS:
        for rate in RATES:
            for S in SIZES:
                queue = the_queue(kind, S, rate)
                exact, bound = qu.log10_diameter(queue), math.log10(qu.diameter_lower_bound(queue))
                rows.append({"kind": kind, "service_rate": queue.service_rate, "five_times_slower": rate, "capacity": S,
                             "load": queue.load, "log10_diameter": exact, "log10_lower_bound": bound})  # fmt: skip
    return pd.DataFrame(rows).drop(columns="five_times_slower").assign(
        exact_over_bound=lambda f: 10.0 ** (f["log10_diameter"] - f["log10_lower_bound"])
    )  # fmt: skip


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
        axes.legend(frameon=False)
    figure.suptitle("The diameter, exact (full) and the paper's lower bound (dashed)", fontsize=11)
    return figure


def size(logarithm: float) -> str:
    return f"{10**logarithm:,.1f}" if logarithm < 5 else f"{10 ** (logarithm % 1):.2f}e{math.floor(logarithm)}"


def main(work: Work) -> Finding:
    """Compute, draw, tell."""
    frame = table()
    rows = [
        (r["kind"], f"{r['service_rate']:g}", r["capacity"], size(r["log10_diameter"]), size(r["log10_lower_bound"]),
         f"{r['exact_over_bound']:,.3g}")
        for r in frame.to_dict("records")
        if r["capacity"] in TOLD
    ]  # fmt: skip
    text = (
        "## The diameter and its lower bounds\n\nIn ticks at U = Λ + µ(S), Λ = 2.\n\n"
        + markdown_table(("queue", "µ", "S", "diameter", "lower bound", "ratio"), rows)
    )  # fmt: skip
    return work.publish("diameter", frame, text, {"diameter.png": draw(frame)})


if __name__ == "__main__":
    as_script(__file__)
