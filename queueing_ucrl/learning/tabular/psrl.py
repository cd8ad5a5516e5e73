r"""PSRL (Osband, Van Roy, Russo 2013; average rewards as in Bourel et al. 2020): act by a draw from the posterior.

At each episode, for every pair,

    r ~ Beta(1 + R, 1 + n - R),  R = the sum of the n scaled rewards,   p ~ Dirichlet(alpha + counts) over all X states,

and the best policy of the drawn process until a pair's visits have doubled. A sum R below 0 (costs above rewards)
counts as 0 here, since a beta law has no room for it.

alpha, the transition prior, decides how well it does. With 1/X, as in the article's experiments, the prior weighs as
much as one visit; with 1, a library's default, as much as X visits, and a pair must be seen far more than X times
before its draws resemble what was seen. Told what outcomes a tick may have (`structure`), K of them, it draws
q ~ Dirichlet(alpha + counts) over these, alpha = 1/K unless told, and no rewards once they are known.

The drawn process is solved by extended value iteration with sets of one law each, its gain to ACCURACY. A draw may
fall into parts that hardly meet (a small alpha makes laws that stay where they are), which no number of sweeps joins:
so it looks no farther ahead than as many ticks as it has seen, within MOST_SWEEPS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.tabular.evi import Optimum, extended_value_iteration, kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, StructuredLearner, TabularSession
from queueing_ucrl.learning.tabular.structure import OutcomeCounts, Outcomes, Structure, with_departure
from queueing_ucrl.variates import beta, standard_gamma

ACCURACY = 1e-6  # of R_max a tick: the best policy of the draw, not one that gets better with t
LARGEST_PRIOR = 1e6  # beyond it no run is long enough to learn anything
MOST_SWEEPS = (1_000, 100_000)  # at the start and ever; the paper's queues take some thousands at most


class Points(NamedTuple):
    """One law for each pair: laws[x, s, a] = p(x | s, a). The next state first, so that sums run over pairs abreast."""

    laws: FloatArray


@kind_of_set(Points)
def _look_ahead(sets: Points, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    states, choices = table.shape
    for s in range(states):
        for a in range(choices):
            table[s, a] = 0.0
    for x in range(states):
        for s in range(states):
            for a in range(choices):
                table[s, a] += sets.laws[x, s, a] * u[x]


class OutcomePoints(NamedTuple):
    """One law of outcomes for each pair: laws[s, a, k], 0 for outcomes that cannot be."""

    outcomes: Outcomes
    laws: FloatArray


@kind_of_set(OutcomePoints)
def _look_ahead_told(sets: OutcomePoints, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    outcomes = sets.outcomes
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            value = 0.0
            for k in range(outcomes.size[s, a]):
                value += sets.laws[s, a, k] * (outcomes.paid[s, a, k] + u[outcomes.target[s, a, k]])
            table[s, a] = with_departure(outcomes, s, u, value)


def draw_outcome_laws(told: OutcomeCounts, prior: float | None, rng: np.random.Generator) -> OutcomePoints:
    """q ~ Dirichlet(prior + counts) for each pair; prior None: 1/K."""
    weights = told.counts.astype(np.float64) + (1.0 / told.outcomes.size[:, :, None] if prior is None else prior)
    return OutcomePoints(told.outcomes, _dirichlet(weights, told.possible, rng))


def draw_laws(seen: Experience, prior: float, rng: np.random.Generator) -> Points:
    """p ~ Dirichlet(prior + counts) for each pair."""
    weights = prior + seen.transitions.astype(np.float64)
    laws = _dirichlet(weights, np.ones(seen.transitions.shape, dtype=np.bool_), rng)
    return Points(np.ascontiguousarray(laws.transpose(2, 0, 1)))


def _dirichlet(weights: FloatArray, possible: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Laws drawn by normalised gamma variables, X by A by any number, with mass on what is possible only.

    Where all of a pair's are too small for a double (a tiny prior, nothing seen), one of them is still larger than the
    others by many orders, each with the same chance: its state gets all the mass.
    """
    gammas = np.where(possible, standard_gamma(rng, weights), 0.0)
    for s, a in np.argwhere(gammas.max(axis=2) < np.finfo(np.float64).tiny):
        gammas[s, a] = 0.0
        gammas[s, a, rng.integers(int(possible[s, a].sum()))] = 1.0
    laws: FloatArray = gammas / gammas.sum(axis=2, keepdims=True)
    return laws


def draw_rewards(seen: Experience, rng: np.random.Generator) -> FloatArray:
    """r ~ Beta(1 + R, 1 + n - R) for each pair."""
    sums = np.clip(seen.reward_sums, 0.0, seen.visits)
    return beta(rng, 1.0 + sums, 1.0 + seen.visits - sums)


@dataclass(frozen=True)
class Psrl(StructuredLearner):
    """PSRL: a process drawn from the posterior, and its best policy. Its law does not depend on delta.

    Options:
        transition_prior: alpha of the Dirichlet prior for the next state; the default is its article's 1 / (S + 1),
            or one over the number of outcomes where it is told these
    """

    name: ClassVar[str] = "psrl"
    transition_prior: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        alpha = self.transition_prior
        if alpha is not None and (isinstance(alpha, bool) or not 0 < alpha <= LARGEST_PRIOR):
            raise ValueError(f"transition_prior must be a positive number up to {LARGEST_PRIOR:g}, got {alpha!r}")

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> PsrlSession:
        return PsrlSession(knowledge, rng, self.transition_prior, self.structure)


class PsrlSession(TabularSession):
    """PSRL in one run."""

    def __init__(
        self, knowledge: Knowledge, rng: np.random.Generator, prior: float | None, structure: Structure = "none"
    ) -> None:
        super().__init__(knowledge, rng, structure)
        self.prior = prior

    def best(self, seen: Experience) -> Optimum:
        rewards = np.zeros(seen.visits.shape) if self.knows_rewards else draw_rewards(seen, self.rng)
        laws: Points | OutcomePoints
        if self.told is None:
            laws = draw_laws(seen, 1.0 / seen.states if self.prior is None else self.prior, self.rng)
        else:
            laws = draw_outcome_laws(self.told, self.prior, self.rng)
        most = min(max(seen.steps, MOST_SWEEPS[0]), MOST_SWEEPS[1])
        return extended_value_iteration(laws, rewards, ACCURACY, seen.visits, self.rng, most)
