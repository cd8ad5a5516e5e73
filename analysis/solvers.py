"""Policy iteration against value iteration (and others) inside UCRL-AC, on the paper's six queues.

    python analysis/solvers.py --scale quick        (the options of `queueing-ucrl reproduce`)

The paper: "PI required on average 4.2 iterations and 9.3 ms of running time to converge for the episodes updating the
optimistic arrival rates. VI required 1217 iterations on average and 1.3 s", with exactly the same regrets.
An episode updates the rates if its optimistic model is not that of the episode before.
Times are taken in this process, one run after the other, with everything compiled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

import queueing_ucrl as qu
from queueing_ucrl.learning.ucrl_ac import SOLVERS
from queueing_ucrl.reproduce import Finding, Work, as_script, markdown_table, paragraph
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.solvers.solve import warm_up

REFERENCE = "pi-b"
PAPER = {"pi": (4.2, 9.3e-3), "vi": (1217.0, 1.3)}  # iterations, seconds
TIMED = 5  # trajectories a queue


def with_solvers(one: Scenario) -> list[ControllerChoice]:
    """UCRL-AC with each solver, called by the solver's name."""
    return [
        ControllerChoice(name, {"solver": name}, replace(one.controller, solver=name)) for name in SOLVERS
    ]  # fmt: skip


def updating_solves(run: qu.Run) -> pd.DataFrame:
    """The solves of the episodes that update the optimistic rates."""
    models = list(zip(run.episodes["optimistic_rate"], run.episodes["optimistic_shares"], strict=True))
    new = [k for k in range(1, len(models)) if models[k] != models[k - 1]]
    return run.solves.iloc[new]


def measure(work: Work, scenario: Scenario) -> pd.DataFrame:
    """One row a queue and solver: iterations and seconds a solve, and how the regrets compare with PI-B's."""
    study = work.study("solvers", scenario)
    for name in SOLVERS:
        warm_up(name)
    rows = []
    for k, cell in enumerate(study.cells):
        base = next(j for j, c in enumerate(study.cells) if (c.point, c.name) == (cell.point, REFERENCE))
        runs = [
            qu.simulate(cell.queue, cell.controller, horizon=cell.horizon, seed=cell.seed, replication=r)
            for r in range(min(TIMED, cell.replications))
        ]
        solves = pd.concat([updating_solves(run) for run in runs], ignore_index=True)
        away = np.abs(study.samples(k, "expected") - study.samples(base, "expected"))
        rows.append(
            {
                **cell.values, "solver": cell.name, "replications": cell.replications, "timed_solves": len(solves),
                "iterations": solves["iterations"].mean(), "most_iterations": solves["iterations"].max(),
                "seconds": solves["seconds"].mean(), "same_regret": int((away.max(axis=1) == 0.0).sum()),
                "largest_difference": float(away.max()), "regret": study.samples(k, "expected")[:, -1].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def as_text(frame: pd.DataFrame, work: Work) -> str:
    rows = []
    for name in SOLVERS:
        part = frame[frame["solver"] == name]
        weights = part["timed_solves"]
        iterations = np.average(part["iterations"], weights=weights) if weights.sum() else np.nan
        seconds = np.average(part["seconds"], weights=weights) if weights.sum() else np.nan
        theirs = PAPER.get(name, (None, None))
        rows.append(
            (
                name, f"{iterations:.3g}" if iterations < 1000 else f"{iterations:,.0f}", f"{1e3 * seconds:.3g} ms",
                *(("", "") if theirs[0] is None else (f"{theirs[0]:g}", f"{1e3 * theirs[1]:g} ms")),
                f"{part['same_regret'].sum()} of {part['replications'].sum()}",
                f"{part['largest_difference'].max():.3g}",
            )
        )  # fmt: skip
    headings = (
        "solver", "iterations", "time a solve", "paper, iterations", "paper, time", "regret as with pi-b",
        "largest difference",
    )  # fmt: skip
    by_queue = [
        (r["capacity"], r["service_rate"], r["solver"], f"{r['iterations']:,.1f}", f"{r['most_iterations']:,.0f}",
         f"{1e3 * r['seconds']:.3g} ms", f"{r['same_regret']} of {r['replications']}", f"{r['regret']:,.0f}")
        for r in frame.to_dict("records")
    ]  # fmt: skip
    return (
        "## Solvers inside UCRL-AC\n\n"
        + paragraph(
            f"Six queues, {work.amount}. Iterations and time: mean over the "
            f"{int(frame['timed_solves'].sum() / len(SOLVERS))} solves of each solver that updated the optimistic "
            f"rates (of the first {min(TIMED, work.replications)} trajectories). The regret is called the same where "
            "it is at every time of the grid, to the last bit."
        )
        + markdown_table(headings, rows)
        + "\n\n"
        + markdown_table(("S", "µ", "solver", "iterations", "most", "time", "same regret", "mean regret"), by_queue)
    )


def main(work: Work) -> Finding:
    """Run UCRL-AC with every solver on the same jobs."""
    frame = measure(work, work.scenarios(with_solvers))
    return work.publish("solvers", frame, as_text(frame, work))


if __name__ == "__main__":
    as_script(__file__)
