r"""Regret where the optimum is not that of an M/M/c/S queue: an account to be asked for (`accounts=[DynamicRegret()]`).

    dynamic   A(t) - what was earned up to t,    A(t) = rho t + h(0, 0) - h(0, t)

with rho and h of the best policy in time (`solve_periodic`), for rates or servers on duty that repeat; of constant
rates (optima by counts, in an environment) A(t) = rho t. A(t) is what the best policy is expected to have earned at t,
from empty, if it is empty again. As with constant rates

    E[dynamic] = E[sum over wrong decisions of |r_i(s, t) - g*(s, t)|] - (h(0, t) - E h(s_t, t)),

so no controller's is below -(h(0, t) - h(S, t)) on average, and the best policy's stays bounded.

Earned is the sum of r_i(s) over admitted jobs where that is known, else of R_i, less the costs of waits as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from queueing_ucrl.accounts.totals import Comparator, Counts
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import System
from queueing_ucrl.solvers.periodic import solve_periodic
from queueing_ucrl.solvers.remembered import remembered
from queueing_ucrl.solvers.solve import solve


@dataclass(frozen=True)
class DynamicRegret:
    """What the best policy in time earns, less what was earned."""

    name: ClassVar[str] = "dynamic"

    def __call__(self, counts: Counts, comparator: Comparator) -> FloatArray:
        system = comparator.system
        return _best_reward(system, counts.times) - _earned(system, counts)


def _best_reward(system: System, times: FloatArray) -> FloatArray:
    """A(t)."""
    if system.drifts or isinstance(system.servers, Shifts):
        return solve_periodic(system).best_reward(times)
    return _gain(system) * times


@remembered(64)
def _gain(system: System) -> float:
    return solve(system).gain


def _earned(system: System, counts: Counts) -> FloatArray:
    if not system.not_markov:
        return (counts.admitted * system.rewards).sum(axis=1).sum(axis=1)
    for i, c in enumerate(system.classes):
        if system.patience_of(i) is not None or c.reward_at != "admission":
            raise ValueError(
                f"class {c.name!r}: this account knows rewards at admission, and costs of jobs that do not give up"
            )
    return (counts.admitted.sum(axis=1) * system.job_rewards - counts.cost).sum(axis=1)
