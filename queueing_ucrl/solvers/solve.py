"""`solve`: the best policy of a known queue or model, by a method of choice."""

from __future__ import annotations

from time import perf_counter
from typing import overload

import numpy as np

from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.checks import read_only
from queueing_ucrl.model.evaluation import as_model, evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.solvers.environment_chain import EnvironmentSolution, not_by_environment, solve_environment
from queueing_ucrl.solvers.multi_count import CountSolution, not_by_counts, solve_counts
from queueing_ucrl.solvers.policy_iteration import policy_iteration
from queueing_ucrl.solvers.solution import Solution

METHODS = {
    "pi-b": "policy iteration, ties admitted: the bias-optimal policy (recommended)",
    "pi": "policy iteration (Alg. 1)",
    "vi": "value iteration (Alg. 2), within epsilon of the best gain",
    "vi-ae": "value iteration with action elimination: proves a best policy as far as double precision goes",
    "lp": "linear program (HiGHS)",
    "trunk-search": "all trunk reservation policies, one by one (small queues)",
}


@overload
def solve(
    queue: Queue | AdmissionModel,
    method: str = ...,
    *,
    start: Policy | None = ...,
    epsilon: float = ...,
    uniformization: float | None = ...,
) -> Solution: ...


@overload
def solve(
    queue: System | AdmissionModel,
    method: str = ...,
    *,
    start: Policy | None = ...,
    epsilon: float = ...,
    uniformization: float | None = ...,
) -> Solution | CountSolution | EnvironmentSolution: ...


def solve(
    queue: System | AdmissionModel,
    method: str = "pi-b",
    *,
    start: Policy | None = None,
    epsilon: float = 1e-9,
    uniformization: float | None = None,
) -> Solution | CountSolution | EnvironmentSolution:
    """The best policy of a queue whose rates are known, with its gain and relative bias.

    method: one of METHODS. start: a policy to begin from (pi, pi-b, vi, vi-ae; the answer is the same, found sooner).
    epsilon: for "vi", how far the gain may be from the best, in reward per unit of time. uniformization: for "vi" and
    "vi-ae", the rate U of the uniformized chain (default: the largest arrival plus the largest service rate).

    Of a system whose classes differ in service while nobody waits (as many servers as places, or processor sharing) the
    best policy by the counts of each class, and in an observed environment that which sees it, both by policy
    iteration whatever the method; what has no optimum that is known is refused with the reason.
    """
    if isinstance(queue, System) and queue.not_markov:
        return _beyond(queue)
    began = perf_counter()
    model = as_model(queue)
    if start is not None and start.admits.shape != model.rewards.shape:
        raise ValueError(f"start is a policy for {start.admits.shape}, the model is {model.rewards.shape}")
    if method in ("pi-b", "pi"):
        policy, gain, law, bias, iterations = policy_iteration(model, start, ties=method == "pi-b")
        return Solution(policy, gain, read_only(bias), read_only(law), method, iterations, perf_counter() - began)
    policy, iterations = _other(model, method, start, epsilon, uniformization)
    value = evaluate(model, policy)
    return Solution(
        policy, value.gain, value.relative_bias, value.stationary, method, iterations, perf_counter() - began
    )


def _beyond(system: System) -> CountSolution | EnvironmentSolution:
    """The optimum of a system that is not M/M/c/S."""
    if not not_by_counts(system):
        return solve_counts(system)
    if not not_by_environment(system):
        return solve_environment(system)
    if isinstance(system.servers, Shifts):
        raise ValueError(f"{system.not_markov}: solve_periodic finds the best policy in time of shifts that repeat")
    reason = system.not_markov if system.environment is None else not_by_environment(system)
    raise ValueError(f"no exact optimum is known: {reason}; `optimise` finds the best table by simulation")


def warm_up(method: str) -> None:
    """Have the method's machine code made or loaded, so that the next solve is timed for what it does."""
    solve(AdmissionModel(np.ones((2, 1)), np.ones((2, 1)), np.array([0.0, 1.0, 1.0])), method)


def _other(
    model: AdmissionModel, method: str, start: Policy | None, epsilon: float, uniformization: float | None
) -> tuple[Policy, int]:
    """The methods that give a policy only; each loaded when it is asked for."""
    if method == "vi":
        from queueing_ucrl.solvers.value_iteration import value_iteration

        return value_iteration(model, start, epsilon=epsilon, uniformization=uniformization)
    if method == "vi-ae":
        from queueing_ucrl.solvers.value_iteration import value_iteration_with_elimination

        return value_iteration_with_elimination(model, start, uniformization=uniformization)
    if method == "lp":
        from queueing_ucrl.solvers.linear_program import linear_program

        return linear_program(model)
    if method == "trunk-search":
        from queueing_ucrl.solvers.trunk_search import trunk_search

        return trunk_search(model)
    raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
