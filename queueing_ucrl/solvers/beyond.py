"""Optima beyond M/M/c/S: the policy that sees who is there, or the environment, and what tables that see less earn."""

from __future__ import annotations

import numpy as np

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import LARGEST_TABLE, System
from queueing_ucrl.solvers.environment_chain import (
    EnvironmentSolution,
    environment_chain,
    not_by_environment,
    solve_environment,
)
from queueing_ucrl.solvers.multi_count import CountSolution, count_chain, not_by_counts, solve_counts
from queueing_ucrl.solvers.remembered import remembered


@remembered(8)
def solve_beyond(system: System) -> CountSolution | EnvironmentSolution | None:
    """The optimum of a system that is no M/M/c/S queue; None where none is known, or it is too large to be held."""
    if not system.not_markov:
        return None
    try:
        if not not_by_counts(system):
            classes = len(system.classes)
            too_large = classes * system.capacity**classes > LARGEST_TABLE
            return None if too_large else solve_counts(system)
        return None if not_by_environment(system) else solve_environment(system)
    except (ValueError, SolverError):  # too many states; costs whose means are not known in an environment
        return None


def gain_beyond(system: System, policy: Policy) -> float:
    """What a table by the number of jobs earns in a system that is solved by counts or in its environment, exactly."""
    closed = np.vstack([policy.admits, np.zeros((1, policy.class_count), dtype=np.bool_)])
    if not not_by_counts(system):
        chain, counts = count_chain(system)
        level = counts.sum(axis=1)
    else:
        chain = environment_chain(system)
        assert system.environment is not None
        level = np.repeat(np.arange(system.capacity + 1), system.environment.states)
    return chain.evaluate(closed[level] & (chain.up >= 0)).gain
