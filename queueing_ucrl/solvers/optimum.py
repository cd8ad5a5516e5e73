"""What regret is measured against: the optimum of a queue, where one is known."""

from __future__ import annotations

from functools import lru_cache

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.solvers.solution import Solution
from queueing_ucrl.solvers.solve import solve

RATES_CHANGE = (
    "the arrival rates change in time, and the best policy for that is not known: "
    "compare controllers by the rewards they earn on the same jobs"
)


def optimum(queue: Queue) -> tuple[Solution | None, str]:
    """(the best policy of all with its worth, ""), or (None, why there is none).

    Remembered: every replication of a study asks for the same queue's.
    """
    try:
        return _optimum(queue)
    except TypeError:  # a holding cost that cannot be hashed
        return _optimum.__wrapped__(queue)


@lru_cache(maxsize=64)
def _optimum(queue: Queue) -> tuple[Solution | None, str]:
    if queue.drifts:
        return None, RATES_CHANGE
    try:
        return solve(queue), ""
    except SolverError as error:
        return None, f"the solver found no best policy for this queue: {error}"
