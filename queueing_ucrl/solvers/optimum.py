"""What regret is measured against: the optimum of a queue, where one is known."""

from __future__ import annotations

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.system import System
from queueing_ucrl.solvers.remembered import remembered
from queueing_ucrl.solvers.solution import Solution
from queueing_ucrl.solvers.solve import solve

BY_REWARDS = "compare controllers by the rewards they earn on the same jobs"
RATES_CHANGE = f"the arrival rates change in time; {BY_REWARDS}"


@remembered(64)
def optimum(system: System) -> tuple[Solution | None, str]:
    """(the best policy of all with its worth, ""), or (None, why there is none)."""
    if system.not_markov:
        return None, f"{system.not_markov}, and the best policy for that is not known: {BY_REWARDS}"
    if system.drifts:
        return None, RATES_CHANGE
    try:
        return solve(system.queue), ""
    except SolverError as error:
        return None, f"the solver found no best policy for this queue: {error}"
