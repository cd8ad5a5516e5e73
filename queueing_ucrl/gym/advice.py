"""What the best policy would do with the job at the door, and what it costs not to, where the optimum is known.

    M/M/c/S                     row s                    gap  |r_i(s) - g*(s)|
    in an observed environment  row s + S e              gap  |r_i(s, e) - g*(s, e)|
    by counts of each class     row sum_i n_i S^i        gap  |r_i - (h*(n) - h*(n + e_i))|

The gaps of the wrong decisions of an episode add up to the account "gap" of `simulate`, where that is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.beyond import solve_beyond
from queueing_ucrl.solvers.environment_chain import EnvironmentSolution, environment_chain
from queueing_ucrl.solvers.multi_count import CountSolution


@dataclass(frozen=True)
class Advice:
    """Of each row and class: whether the best policy admits, and what the other decision loses."""

    policy: Policy
    admits: BoolArray
    gap: FloatArray

    def of(self, row: IntArray, job_class: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray]:
        """(the best action, what the other one loses) for those at these doors; with nobody (-1): 0 and 0."""
        entry = row * self.admits.shape[1] + job_class
        nobody = job_class < 0
        some = bool(nobody.any())
        if some:
            entry = np.where(nobody, 0, entry)
        best, gap = self.admits.take(entry).astype(np.int64), self.gap.take(entry)
        if some:
            best[nobody], gap[nobody] = 0, 0.0
        return best, gap


def _advice(policy: Policy, margin: FloatArray) -> Advice:
    """margin: what admitting is worth more than rejecting."""
    return Advice(policy, policy.admits, np.where(policy.admits, margin, -margin))


def best_advice(comparator: Comparator) -> Advice | None:
    """None where no optimum is known."""
    if comparator.best is not None:
        margin = comparator.system.rewards - comparator.best.relative_bias[:, None]
        return _advice(comparator.best.policy, margin)
    solution = None if comparator.system.drifts else solve_beyond(comparator.system)
    if isinstance(solution, EnvironmentSolution):
        states, S = solution.relative_bias.shape
        rewards = environment_chain(comparator.system).rewards.reshape(S + 1, states, -1)[:-1].transpose(1, 0, 2)
        margin = rewards - solution.relative_bias[:, :, None]
        return _advice(solution.policy, margin.reshape(states * S, -1))
    if isinstance(solution, CountSolution):
        return _by_counts(solution)
    return None


def _by_counts(solution: CountSolution) -> Advice:
    chain, policy = solution.chain, solution.policy
    margin = np.zeros(policy.admits.shape)
    inside = chain.up[:, 0] >= 0
    rows = solution.counts[inside] @ np.array(policy.class_strides, dtype=np.int64)
    up = chain.up[inside]
    margin[rows] = chain.rewards[inside] + (solution.values[up] - solution.values[inside][:, None])
    return _advice(policy, margin)
