"""The best trunk reservation policy by trying all control levels: a check, and for teaching.

Class i is admitted iff s < M_i. With rates that do not depend on the state such a policy is optimal among all
(Feinberg and Yang, 2011). Not so where jobs give up: there the best of them may earn less than the best of all (a class
that pays at admission may be let in only behind others, to give up soon). There are (S + 1)^m of them, so this is for
small queues. Levels that the gain cannot tell apart, by ties or by rounding, are settled as PI-B settles them.
"""

from __future__ import annotations

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.evaluation import stationary_weights
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.policy_iteration import TIE, policy_iteration, with_ties

LARGEST_SEARCH = 2_000_000_000  # policies times the work of one: about 20 seconds


@compiled
def _search(arrival_rates: FloatArray, rewards: FloatArray, service_rates: FloatArray) -> tuple[IntArray, float, int]:
    """The levels of the largest gain, that gain, and how many were tried."""
    states, classes = arrival_rates.shape
    levels = np.zeros(classes, dtype=np.int64)
    best_levels = levels.copy()
    best = -np.inf
    birth = np.zeros(states + 1)
    reward_rate = np.zeros(states + 1)
    law = np.empty(states + 1)
    exponents = np.empty(states + 1, dtype=np.int64)
    tried = 0
    while True:
        for s in range(states):
            birth[s] = 0.0
            reward_rate[s] = 0.0
            for i in range(classes):
                if s < levels[i]:
                    birth[s] += arrival_rates[s, i]
                    reward_rate[s] += arrival_rates[s, i] * rewards[s, i]
        total, _ = stationary_weights(birth, service_rates, law, exponents)
        gain = 0.0
        for s in range(states):
            gain += law[s] * reward_rate[s]
        gain /= total
        tried += 1
        if gain > best:
            best = gain
            best_levels[:] = levels
        i = 0
        while i < classes and levels[i] == states:
            levels[i] = 0
            i += 1
        if i == classes:
            return best_levels, best, tried
        levels[i] += 1


def trunk_search(model: AdmissionModel) -> tuple[Policy, int]:
    """The best trunk reservation policy, and how many were tried."""
    count = (model.capacity + 1) ** model.class_count
    if count * model.rewards.size > LARGEST_SEARCH:
        raise ValueError(
            f"trunk-search would try {count} policies of {model.capacity} states: too many, use pi-b for this queue"
        )
    levels, best, tried = _search(model.arrival_rates, model.rewards, model.service_rates)
    found = Policy.trunk_reservation([int(level) for level in levels], model.capacity)
    settled, gain, *_ = policy_iteration(model, found, ties=True)
    if settled.is_trunk_reservation and gain <= best + 10 * TIE * abs(best):
        return settled, tried
    return Policy.trunk_reservation(with_ties(model, found).control_levels, model.capacity), tried  # PI-B's is no trunk
