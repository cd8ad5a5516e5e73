r"""The linear program of a model (Puterman, 8.8), solved by HiGHS.

    minimise rho  subject to  rho >= sum_{i in u} lambda_i(s) (r_i(s) - g(s)) + mu(s) g(s-1)   for all s and u.

Of the 2^m sets u only the m + 1 prefixes of the classes by decreasing r_i(s) can bind. HiGHS is handed the dual of
this program (the share of time spent in each state with each prefix; its multipliers are rho and g), in scaled units:
on the program as written above it gave up on one queue in eight of a random sample, on the dual on none.
Below the first closed state the multipliers are g*; on transient states they are free, so the policy is completed by
the two phases of PI-B, which leave a best recurrent part as it is and admit the ties.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.policy_iteration import policy_iteration

LARGEST_PROGRAM = 200_000  # states times classes: half a GB, some seconds
AGREEMENT = 1e-7  # of the program's value and its policy's gain, in scaled units


def _program(model: AdmissionModel) -> tuple[sparse.csr_array, FloatArray]:
    """The constraints A (rho, g) <= b."""
    S, m = model.rewards.shape
    scale, uniformization = model.reward_scale or 1.0, model.uniformization_rate
    rates, death = model.arrival_rates / uniformization, model.service_rates / uniformization
    order = np.argsort(-model.rewards, axis=1, kind="stable")
    sorted_rates = np.take_along_axis(rates, order, axis=1)
    sorted_rewards = np.take_along_axis(model.rewards / scale, order, axis=1)
    none = np.zeros((S, 1))
    prefix_rate = np.hstack([none, np.cumsum(sorted_rates, axis=1)]).ravel()
    prefix_reward = np.hstack([none, np.cumsum(sorted_rates * sorted_rewards, axis=1)]).ravel()
    rows = np.arange(S * (m + 1) + 1)
    state = np.append(np.repeat(np.arange(S), m + 1), S)
    # -rho - Lambda_u(s) g(s) + mu(s) g(s-1) <= -R_u(s): columns rho, g(0) .. g(S-1)
    above, within = state > 0, state < S
    data = np.concatenate([-np.ones(rows.size), death[state[above]], -prefix_rate])
    row = np.concatenate([rows, rows[above], rows[within]])
    column = np.concatenate([np.zeros(rows.size, dtype=np.int64), state[above], state[within] + 1])
    matrix = sparse.csr_array((data, (row, column)), shape=(rows.size, S + 1))
    return matrix, -np.append(prefix_reward, 0.0)


def linear_program(model: AdmissionModel) -> tuple[Policy, int]:
    """The best policy, bias-optimal also on transient states, and the simplex iterations it took."""
    if model.rewards.size > LARGEST_PROGRAM:
        raise ValueError(
            f"lp is for at most {LARGEST_PROGRAM} pairs of a state and a class, got {model.rewards.size}: use pi-b"
        )
    matrix, bound = _program(model)
    cost = np.zeros(model.capacity + 1)
    cost[0] = 1.0
    dual = {"c": bound, "A_eq": matrix.T.tocsr(), "b_eq": -cost, "bounds": (0, None)}
    options = {"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(**dual, method="highs", options=options)  # type: ignore[call-overload]
    if answer.status != 0:
        raise SolverError(f"the linear program was not solved: {answer.message}")
    value, bias = -answer.fun, -answer.eqlin.marginals[1:]
    scale = model.reward_scale or 1.0
    proposed = Policy(model.rewards / scale >= bias[:, None])
    policy = policy_iteration(model, proposed, ties=True)[0]
    gain = evaluate(model, policy).gain / (scale * model.uniformization_rate)
    if abs(gain - value) > AGREEMENT * max(1.0, abs(gain)):
        raise SolverError(
            f"the linear program's value {value} and its policy's gain {gain} (scaled) disagree: "
            "the model is too badly conditioned for HiGHS, use pi-b"
        )
    return policy, int(answer.nit)
