"""Policy iteration against value iteration (and others) inside UCRL-AC, on the paper's six queues.

The paper: "PI required on average 4.2 iterations and 9.3 ms of running time to converge for the episodes updating the
optimistic arrival rates. VI required 1217 iterations on average and 1.3 s", with exactly the same regrets.
An episode updates the rates if its optimistic model is not that of the episode before. The paper does not say from
where its solvers started: iterations are told from the last episode's policy, as UCRL-AC runs here, and from cold.
Times are taken in this process, one run after the other, with everything compiled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.learning.controller import Plan, Tally
from queueing_ucrl.learning.option_checks import SOLVERS
from queueing_ucrl.paper.work import ExperimentResult, Work, markdown_table, named_cell, paragraph
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.simulate import run_once
from queueing_ucrl.solvers.service import SolveRequest
from queueing_ucrl.solvers.solve import solve, warm_up

REFERENCE = "pi-b"
PAPER = {"pi": (4.2, 9.3e-3), "vi": (1217.0, 1.3)}  # iterations, seconds
TIMED = 5  # trajectories a queue


def with_solvers(one: Scenario) -> list[ControllerChoice]:
    """UCRL-AC with each solver, called by the solver's name."""
    return [ControllerChoice(name, {"solver": name}, replace(one.controller, solver=name)) for name in SOLVERS]


def updating_solves(cell: Cell, replication: int) -> pd.DataFrame:
    """The solves of the episodes that update the optimistic rates, each also made from a cold start."""
    asked: list[SolveRequest] = []

    def listen(tally: Tally | None, plan: Plan) -> None:
        assert plan.request is not None  # UCRL-AC has a model from the beginning
        asked.append(plan.request)

    run = run_once(cell.system, cell.controller, cell.settings, replication, on_review=listen)
    new = [k for k in range(1, len(asked)) if np.any(asked[k].model.arrival_rates != asked[k - 1].model.arrival_rates)]
    cold = [
        solve(asked[k].model, cell.name, epsilon=asked[k].epsilon, uniformization=asked[k].uniformization) for k in new
    ]
    return run.solves.iloc[new].assign(cold_iterations=[solution.iterations for solution in cold])


def measure(work: Work, scenario: Scenario) -> pd.DataFrame:
    """One row a queue and solver: iterations and seconds a solve, and how the regrets compare with PI-B's."""
    study = work.study("solvers", scenario)
    for name in SOLVERS:
        warm_up(name)
    rows = []
    for k, cell in enumerate(study.cells):
        base = named_cell(study, REFERENCE, cell.point)
        timed = range(min(TIMED, cell.settings.replications))
        solves = pd.concat([updating_solves(cell, r) for r in timed], ignore_index=True)
        regret = study.samples(k, "expected")
        away = np.abs(regret - study.samples(base, "expected"))
        rows.append(
            {
                **cell.values,
                "solver": cell.name,
                "replications": cell.settings.replications,
                "timed_solves": len(solves),
                "iterations": solves["iterations"].mean(),
                "most_iterations": solves["iterations"].max(),
                "cold_iterations": solves["cold_iterations"].mean(),
                "seconds": solves["seconds"].median(),
                "same_regret": int((away.max(axis=1) == 0.0).sum()),
                "largest_difference": float(away.max()),
                "regret": regret[:, -1].mean(),
            }
        )
    return pd.DataFrame(rows)


def as_text(frame: pd.DataFrame, work: Work) -> str:
    rows = []
    for name in SOLVERS:
        part = frame[frame["solver"] == name]
        weights = part["timed_solves"]
        columns = ("iterations", "cold_iterations", "seconds")
        iterations, cold, seconds = (np.average(part[column], weights=weights) for column in columns)
        paper = (f"{PAPER[name][0]:g}", f"{1e3 * PAPER[name][1]:g} ms") if name in PAPER else ("", "")
        same = f"{part['same_regret'].sum()} of {part['replications'].sum()}"
        starts, time = (f"{iterations:,.1f}", f"{cold:,.1f}"), f"{1e3 * seconds:.3g} ms"
        rows.append((name, *starts, paper[0], time, paper[1], same, f"{part['largest_difference'].max():.3g}"))
    by_queue = []
    for r in frame.to_dict("records"):
        counts = (f"{r['iterations']:,.1f}", f"{r['most_iterations']:,.0f}", f"{r['cold_iterations']:,.1f}")
        same = f"{r['same_regret']} of {r['replications']}"
        cell = (r["capacity"], r["service_rate"], r["solver"])
        by_queue.append((*cell, *counts, f"{1e3 * r['seconds']:.3g} ms", same, f"{r['regret']:,.0f}"))
    times = ("iterations", "from cold", "paper", "time a solve", "paper")
    return (
        "## Solvers inside UCRL-AC\n\n"
        + paragraph(
            f"Six queues, {work.amount}. Mean iterations and median time of the "
            f"{int(frame['timed_solves'].sum() / len(SOLVERS))} solves of each solver that updated the optimistic "
            f"rates (of the first {min(TIMED, work.replications)} trajectories): from the last "
            "policy, as UCRL-AC runs, and from cold. The regret is called the same where it is at every time of the "
            "grid, to the last bit."
        )
        + markdown_table(("solver", *times, "regret as with pi-b", "largest difference"), rows)
        + "\n\n"
        + markdown_table(
            ("S", "µ", "solver", "iterations", "most", "from cold", "time", "same regret", "mean regret"), by_queue
        )
    )


def reproduce(work: Work) -> ExperimentResult:
    """Run UCRL-AC with every solver on the same jobs."""
    frame = measure(work, work.scenarios(with_solvers))
    return work.publish("solvers", frame, as_text(frame, work))
