"""The table that is recommended for a fitted world, and what it earns there.

The optimum where one is known exactly. Where rates change in time, the best table that never changes, with what a table
for each stretch of time would earn beside it. Else the better one of the M/M plan and a short search by simulation
(`optimise`): the best table found, which is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import Estimate
from queueing_ucrl.errors import SolverError
from queueing_ucrl.experiments.optimise import OnStep, mm_plan, optimise, periods
from queueing_ucrl.model.drift_evaluation import Drift
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.policy_words import policy_in_words
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.solvers.best_stationary import best_stationary
from queueing_ucrl.solvers.periodic import solve_periodic
from queueing_ucrl.solvers.solve import solve

TOLERANCE, PRECISION = 5e-3, 1e-2  # of the search: coarser than those of `queueing-ucrl optimise`
ARRIVALS, TURNOVERS, PERIODS = 20_000, 10.0, 2  # in a simulated run, at least
OPTIMUM, STATIONARY, FOUND = "the optimum", "the best table that never changes", "the best table found"


@dataclass(frozen=True)
class Recommendation:
    """A table and what it earns in the fitted world."""

    policy: Policy
    kind: str  # OPTIMUM, STATIONARY or FOUND
    gain: Estimate  # per unit of time; exact: a half-width of 0
    words: str
    anticipating: float | None = None  # what a table for each stretch of time would earn
    tables: int = 0  # that were tried, where it was searched

    @property
    def exact(self) -> bool:
        """Whether its gain is computed and not simulated."""
        return self.gain.half_width == 0.0

    def plain_data(self, class_names: tuple[str, ...]) -> dict[str, Any]:
        """For JSON; a table that sees more than the number of jobs is not written out."""
        levels = table = None
        if not self.policy.sees_more:
            levels = dict(zip(class_names, self.policy.control_levels, strict=True))
            table = self.policy.marks(full="1", empty="0")
        return {
            "words": self.words,
            "kind": self.kind,
            "gain": self.gain.plain_data(),
            "exact": self.exact,
            "control_levels": levels,
            "table": table,
            "anticipating_gain": self.anticipating,
            "tables_tried": self.tables,
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Recommendation:
        """From what `plain_data` made of it."""
        policy = Policy(np.array([[mark == "1" for mark in column] for column in data["table"]]).T)
        gain = Estimate(data["gain"]["mean"], 0.5 * (data["gain"]["high"] - data["gain"]["low"]), 0)
        return cls(policy, data["kind"], gain, data["words"], data["anticipating_gain"], data["tables_tried"])


def exact_gain(system: System, policy: Policy) -> float | None:
    """What a table earns per unit of time in the long run, where that can be computed; else None."""
    if not isinstance(system, Queue) or policy.sees_more:
        return None
    try:
        return Drift(system).gain(policy) if system.drifts else evaluate(system, policy).gain
    except (SolverError, ValueError):  # rates that do not come back, or too much work
        return None


def recommend(
    system: System, *, horizon: float, seed: int = 0, workers: int | None = 1, on_step: OnStep | None = None
) -> Recommendation:
    """The table for a fitted world. horizon: for rates that do not come back to where they were."""
    found = _exact(system)
    if found is None:
        found = _searched(system, horizon, seed, workers, on_step)
    return found


def _exact(system: System) -> Recommendation | None:
    names = system.class_names
    try:
        if isinstance(system, Queue) and system.drifts:
            policy, gain = best_stationary(system)
            known = Estimate(gain, 0.0, 0)
            return Recommendation(policy, STATIONARY, known, policy_in_words(policy, names), _anticipating(system))
        best = solve(system)
    except (SolverError, ValueError):
        return None
    return Recommendation(best.policy, OPTIMUM, Estimate(best.gain, 0.0, 0), policy_in_words(best.policy, names))


def _anticipating(system: System) -> float | None:
    try:
        return float(solve_periodic(system).gain)
    except (SolverError, ValueError):
        return None


def run_length(system: System, horizon: float) -> tuple[float, float]:
    """(horizon, warm-up) of a simulated run: whole periods where rates repeat; `horizon` where they never come back."""
    found = periods(system)
    if not all(map(math.isfinite, found)):
        return horizon, 0.0
    queue = system.queue
    turnover = (1.0 + queue.capacity / queue.servers) / queue.service_rate  # the time a full system takes to empty
    length = max(ARRIVALS / system.total_arrival_rate, TURNOVERS * turnover)
    if not found:
        return length, 0.1 * length
    period = max(found)
    count = max(PERIODS, math.ceil(length / period))
    return period * count, period * math.ceil(0.1 * count)


def _searched(system: System, horizon: float, seed: int, workers: int | None, on_step: OnStep | None) -> Recommendation:
    start, _ = mm_plan(system)
    length, skipped = run_length(system, horizon)
    found = optimise(
        system,
        start=start,
        horizon=length,
        warm_up=skipped,
        tolerance=TOLERANCE,
        precision=PRECISION,
        seed=seed,
        jobs=workers,
        on_step=on_step,
    )
    better = found.gain.mean >= found.plan_gain.mean
    policy, gain = (found.policy, found.gain) if better else (found.plan, found.plan_gain)
    in_time = _anticipating(system) if isinstance(system.servers, Shifts) else None
    words = policy_in_words(policy, system.class_names)
    return Recommendation(policy, FOUND, gain, words, in_time, found.searched.tables)
