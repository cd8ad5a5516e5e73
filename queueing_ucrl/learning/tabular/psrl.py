r"""PSRL (Osband, Van Roy, Russo 2013; average rewards as in Bourel et al. 2020): act by a draw from the posterior.

At each episode, for every pair,

    r ~ Beta(1 + R, 1 + n - R),  R = the sum of the n scaled rewards,     p ~ Dirichlet(1 + counts) over all X states,

and the best policy of the drawn process until a pair's visits have doubled. A sum R below 0 (costs above rewards)
counts as 0 here, since a beta law has no room for it.

The drawn process is solved by extended value iteration with sets of one law each, its gain to ACCURACY.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.tabular.evi import Optimum, extended_value_iteration, kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, TabularLearner, TabularSession
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.variates import beta, standard_gamma

ACCURACY = 1e-6  # of R_max a tick: the best policy of the draw, not one that gets better with t


class Points(NamedTuple):
    """One law for each pair: laws[x, s, a] = p(x | s, a). The next state first, so that sums run over pairs abreast."""

    laws: FloatArray


@kind_of_set(Points)
def _look_ahead(sets, u, order, law, table):  # type: ignore[no-untyped-def]
    states, choices = table.shape
    for s in range(states):
        for a in range(choices):
            table[s, a] = 0.0
    for x in range(states):
        for s in range(states):
            for a in range(choices):
                table[s, a] += sets.laws[x, s, a] * u[x]


def draw_laws(seen: Experience, chance: np.random.Generator) -> Points:
    """p ~ Dirichlet(1 + counts) for each pair, by normalised gamma variables."""
    gammas = standard_gamma(chance, 1.0 + seen.transitions)
    laws = gammas / gammas.sum(axis=2, keepdims=True)
    return Points(np.ascontiguousarray(laws.transpose(2, 0, 1)))


def draw_rewards(seen: Experience, chance: np.random.Generator) -> FloatArray:
    """r ~ Beta(1 + R, 1 + n - R) for each pair."""
    sums = np.clip(seen.reward_sums, 0.0, seen.visits)
    return beta(chance, 1.0 + sums, 1.0 + seen.visits - sums)


@dataclass(frozen=True)
class Psrl(TabularLearner):
    """PSRL: a process drawn from the posterior, and its best policy. Its law does not depend on delta."""

    name: ClassVar[str] = "psrl"

    def begin(self, knowledge: Knowledge, chance: np.random.Generator) -> PsrlSession:
        return PsrlSession(knowledge, chance)


class PsrlSession(TabularSession):
    """PSRL in one run."""

    def __init__(self, knowledge: Knowledge, chance: np.random.Generator) -> None:
        super().__init__(knowledge)
        self.chance = chance

    def best(self, seen: Experience) -> Optimum:
        rewards = draw_rewards(seen, self.chance)
        return extended_value_iteration(draw_laws(seen, self.chance), rewards, ACCURACY)
