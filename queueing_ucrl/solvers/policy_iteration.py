"""Policy iteration (Alg. 1) and its variant that admits ties (PI-B), O(mS) an iteration.

Improvement: admit class i in state s iff r_i(s) > g(s), reject iff r_i(s) < g(s). At equality Alg. 1 keeps what the
policy did; PI-B admits, and ends with the bias-optimal policy, the one with the largest control levels.
Equal means within TIE * max(|g(s)|, max_i |r_i(0)|): the evaluation is exact to about 1e-13 of that, and with no
allowance a third of the instances with exact ties end wrong or cycle.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.birth_death import evaluate_chain, policy_rates
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import AdmissionModel
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.solvers.shooting import shooting_table

TIE = 1e-11
PATIENCE = 10  # iterations; most queues need fewer
SETTLED, CYCLED, IMPATIENT = range(3)


@compiled
def improve(admits, rewards, bias, scale, admit_ties, better):  # type: ignore[no-untyped-def]
    """The improved table in `better`; whether it differs from `admits`. O(mS)."""
    states, classes = admits.shape
    changed = False
    for s in range(states):
        g = bias[s]
        allowance = TIE * max(abs(g), scale)
        for i in range(classes):
            r = rewards[s, i]
            if np.isinf(g):
                choice = g < 0.0
            elif r >= g + allowance:
                choice = True
            elif r >= g - allowance:
                choice = True if admit_ties else admits[s, i]
            else:
                choice = False
            better[s, i] = choice
            if choice != admits[s, i]:
                changed = True
    return changed


@compiled
def iterate(admits, arrival_rates, rewards, service_rates, scale, admit_ties, patience):  # type: ignore[no-untyped-def]
    """Alternate evaluation and improvement; (gain, law, bias, iterations, why it ended).

    A cycle is found by Brent's method: the table is kept at iterations 1, 2, 4, 8, .. and compared with each later
    one, so that any cycle ends the search whatever its length, with no cap on honest work.
    """
    states, classes = admits.shape
    birth = np.empty(states + 1)
    reward_rate = np.empty(states + 1)
    law = np.empty(states + 1)
    exponents = np.empty(states + 1, dtype=np.int64)
    bias = np.empty(states)
    better = np.empty((states, classes), dtype=np.bool_)
    landmark = admits.copy()
    next_landmark = 1
    iterations = 0
    while True:
        policy_rates(admits, arrival_rates, rewards, birth, reward_rate)
        gain = evaluate_chain(birth, service_rates, reward_rate, law, exponents, bias)
        iterations += 1
        if not improve(admits, rewards, bias, scale, admit_ties, better):
            return gain, law, bias, iterations, SETTLED
        same = True
        for s in range(states):
            for i in range(classes):
                admits[s, i] = better[s, i]
                same = same and better[s, i] == landmark[s, i]
        if same:
            return gain, law, bias, iterations, CYCLED
        if iterations == patience:
            return gain, law, bias, iterations, IMPATIENT
        if iterations == next_landmark:
            landmark[:] = admits
            next_landmark *= 2


def starting_table(model: AdmissionModel) -> npt.NDArray[np.bool_]:
    """Admit what pays while the service speeds up with the state, nothing beyond: its bias cannot overflow."""
    faster = np.diff(model.service_rates) > 0
    return (model.rewards > 0) & faster[:, None]


def policy_iteration(
    model: AdmissionModel, start: Policy | None, *, admit_ties: bool
) -> tuple[Policy, float, FloatArray, FloatArray, int]:
    """(policy, gain, stationary law, relative bias, iterations).

    With many servers and more jobs than they can serve, the control levels creep towards their place, a few states an
    iteration. After PATIENCE iterations the search goes on from the table that shooting finds.
    """
    admits = starting_table(model) if start is None else np.array(start.admits)
    problem = (model.arrival_rates, model.rewards, model.service_rates, model.reward_scale, admit_ties)
    gain, law, bias, iterations, why = iterate(admits, *problem, PATIENCE)
    if why == IMPATIENT:
        admits = shooting_table(model)
        gain, law, bias, more, why = iterate(admits, *problem, np.iinfo(np.int64).max)
        iterations += more
    if why == CYCLED:
        raise SolverError(
            "policy iteration came back to a policy it had left: two policies of this model differ by less than "
            "double precision can tell"
        )
    return Policy._trusted(admits), gain, law, bias, int(iterations)
