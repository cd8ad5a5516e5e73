"""Policy iteration against value iteration (and others) inside UCRL-AC, on the paper's six queues.

    python analysis/solvers.py --scale quick        (the options of `queueing-ucrl reproduce`)

The paper: "PI required on average 4.2 iterations and 9.3 ms of running time to converge for the episodes updating the
optimistic arrival rates. VI required 1217 iterations on average and 1.3 s", with exactly the same regrets.
An episode updates the rates if its optimistic model is not that of the episode before. The paper does not say from
where its solvers started: iterations are told from the last episode's policy, as UCRL-AC runs here, and from cold.
Times are taken in this process, one run after the other, with everything compiled.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd

import queueing_ucrl as qu
from queueing_ucrl.experiments.study import Cell
from queueing_ucrl.learning.controller import Knowledge, Plan, Tally
from queueing_ucrl.learning.planning import LearningSession
from queueing_ucrl.learning.ucrl_ac import SOLVERS
from queueing_ucrl.reproduce import Finding, Work, as_script, markdown_table, paragraph
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.solvers.solve import solve, warm_up

REFERENCE = "pi-b"
PAPER = {"pi": (4.2, 9.3e-3), "vi": (1217.0, 1.3)}  # iterations, seconds
TIMED = 5  # trajectories a queue


def with_solvers(one: Scenario) -> list[ControllerChoice]:
    """UCRL-AC with each solver, called by the solver's name."""
    return [
        ControllerChoice(name, {"solver": name}, replace(one.controller, solver=name)) for name in SOLVERS
    ]  # fmt: skip


class Listening(qu.UcrlAc):
    """UCRL-AC that keeps what it asks the solver."""

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> _Kept:
        object.__setattr__(self, "requests", [])
        return _Kept(super().begin(knowledge, chance), self.requests)


class _Kept:
    def __init__(self, session: LearningSession, requests: list[qu.SolveRequest]) -> None:
        self.session, self.requests = session, requests

    def first(self) -> Plan:
        return self._kept(self.session.first())

    def review(self, tally: Tally) -> Plan:
        return self._kept(self.session.review(tally))

    def _kept(self, plan: Plan) -> Plan:
        self.requests.append(plan.request)
        return plan


def updating_solves(cell: Cell, replication: int) -> pd.DataFrame:
    """The solves of the episodes that update the optimistic rates, each also made from a cold start."""
    listening = Listening(**{field.name: getattr(cell.controller, field.name) for field in fields(cell.controller)})
    run = qu.simulate(cell.queue, listening, horizon=cell.horizon, seed=cell.seed, replication=replication)
    asked = listening.requests
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
        base = next(j for j, c in enumerate(study.cells) if (c.point, c.name) == (cell.point, REFERENCE))
        timed = range(min(TIMED, cell.replications))
        solves = pd.concat([updating_solves(cell, r) for r in timed], ignore_index=True)
        away = np.abs(study.samples(k, "expected") - study.samples(base, "expected"))
        rows.append(
            {
                **cell.values, "solver": cell.name, "replications": cell.replications, "timed_solves": len(solves),
                "iterations": solves["iterations"].mean(), "most_iterations": solves["iterations"].max(),
                "cold_iterations": solves["cold_iterations"].mean(), "seconds": solves["seconds"].median(),
                "same_regret": int((away.max(axis=1) == 0.0).sum()),
                "largest_difference": float(away.max()), "regret": study.samples(k, "expected")[:, -1].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def as_text(frame: pd.DataFrame, work: Work) -> str:
    rows = []
    for name in SOLVERS:
        part = frame[frame["solver"] == name]
        weights = part["timed_solves"]
        columns = ("iterations", "cold_iterations", "seconds")
        iterations, cold, seconds = (np.average(part[column], weights=weights) for column in columns)
        theirs = PAPER.get(name, (None, None))
        rows.append(
            (
                name, f"{iterations:,.1f}", f"{cold:,.1f}", "" if theirs[0] is None else f"{theirs[0]:g}",
                f"{1e3 * seconds:.3g} ms", "" if theirs[1] is None else f"{1e3 * theirs[1]:g} ms",
                f"{part['same_regret'].sum()} of {part['replications'].sum()}",
                f"{part['largest_difference'].max():.3g}",
            )
        )  # fmt: skip
    headings = (
        "solver", "iterations", "from cold", "paper", "time a solve", "paper", "regret as with pi-b",
        "largest difference",
    )  # fmt: skip
    by_queue = [
        (r["capacity"], r["service_rate"], r["solver"], f"{r['iterations']:,.1f}", f"{r['most_iterations']:,.0f}",
         f"{r['cold_iterations']:,.1f}",
         f"{1e3 * r['seconds']:.3g} ms", f"{r['same_regret']} of {r['replications']}", f"{r['regret']:,.0f}")
        for r in frame.to_dict("records")
    ]  # fmt: skip
    return (
        "## Solvers inside UCRL-AC\n\n"
        + paragraph(
            f"Six queues, {work.amount}. Mean iterations and median time of the "
            f"{int(frame['timed_solves'].sum() / len(SOLVERS))} solves of each solver that updated the optimistic "
            f"rates (of the first {min(TIMED, work.replications)} trajectories): from the last "
            "policy, as UCRL-AC runs, and from cold. The regret is called the same where it is at every time of the "
            "grid, to the last bit."
        )
        + markdown_table(headings, rows)
        + "\n\n"
        + markdown_table(
            ("S", "µ", "solver", "iterations", "most", "from cold", "time", "same regret", "mean regret"), by_queue
        )
    )


def main(work: Work) -> Finding:
    """Run UCRL-AC with every solver on the same jobs."""
    frame = measure(work, work.scenarios(with_solvers))
    return work.publish("solvers", frame, as_text(frame, work))


if __name__ == "__main__":
    as_script(__file__)
