r"""UCRL2B (Fruit, Pirotta, Lazaric 2020): empirical Bernstein intervals for every entry of the transition laws.

    |p(x) - p^(x)| <= 2 sqrt(p^(x) (1 - p^(x)) L / N) + 6 L / N,    L = log(6 X A N / delta),

cut to [0, 1], and rewards likewise with their empirical variance (the mean square less the squared mean).
Inner maximum: every entry starts at its lower end, then the states of highest u are filled first.
Told what outcomes a tick may have (`structure`), it has such an interval for the probability of each outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import logs
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.tabular.evi import kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, OptimisticSession, StructuredLearner
from queueing_ucrl.learning.tabular.structure import OutcomeCounts, Outcomes, value_outcomes, with_departure


class Boxes(NamedTuple):
    """For each pair (s, a) the laws whose entries lie between `low` and `high`. X by A by X."""

    low: FloatArray
    high: FloatArray


@compiled
def best_in_box(low: FloatArray, high: FloatArray, u: FloatArray, order: IntArray, law: FloatArray) -> float:
    """Fill `law` with the law between `low` and `high` that makes p . u largest; p . u. O(X).

    sum low <= 1 <= sum high. `order` has the states by falling u.
    """
    states = u.size
    left = 1.0
    value = 0.0
    for x in range(states):
        law[x] = low[x]
        left -= low[x]
        value += low[x] * u[x]
    for j in range(states):
        if left <= 0.0:
            break
        x = order[j]
        given = min(left, high[x] - low[x])
        law[x] += given
        left -= given
        value += given * u[x]
    return value


@kind_of_set(Boxes)
def _look_ahead(sets: Boxes, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            table[s, a] = best_in_box(sets.low[s, a], sets.high[s, a], u, order, law)


class OutcomeBoxes(NamedTuple):
    """For each pair (s, a) the laws of outcomes whose entries lie between `low` and `high`. X by A by K."""

    outcomes: Outcomes
    low: FloatArray
    high: FloatArray


@kind_of_set(OutcomeBoxes)
def _look_ahead_told(sets: OutcomeBoxes, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    most = sets.low.shape[2]
    values, by_value, chosen = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most)
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            size = value_outcomes(sets.outcomes, s, a, u, values, by_value)
            low, high = sets.low[s, a, :size], sets.high[s, a, :size]
            best = best_in_box(low, high, values[:size], by_value[:size], chosen[:size])
            table[s, a] = with_departure(sets.outcomes, s, u, best)


def logarithm(visits: IntArray, states: int, actions: int, delta: float) -> FloatArray:
    """L = log(6 X A N / delta), N = max(1, visits)."""
    return logs(6.0 * states * actions * np.maximum(1, visits) / delta)


def bernstein_radius(variance: FloatArray, visits: IntArray, L: FloatArray) -> FloatArray:
    """2 sqrt(variance L / N) + 6 L / N."""
    N = np.maximum(1, visits)
    return 2.0 * np.sqrt(variance * L / N) + 6.0 * L / N


def boxes(p: FloatArray, visits: IntArray, L: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals around the frequencies p, X by A by any number, cut to [0, 1]."""
    radius = bernstein_radius(p * (1.0 - p), visits[:, :, None], L[:, :, None])
    return np.maximum(0.0, p - radius), np.minimum(1.0, p + radius)


@dataclass(frozen=True)
class Ucrl2B(StructuredLearner):
    """UCRL2B: optimism in empirical Bernstein intervals."""

    name: ClassVar[str] = "ucrl2b"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Ucrl2BSession:
        return Ucrl2BSession(knowledge, rng, self.delta, self.structure)


class Ucrl2BSession(OptimisticSession):
    """UCRL2B in one run."""

    def _logarithm(self, seen: Experience, visits: IntArray) -> FloatArray:
        return logarithm(visits, seen.states, seen.actions, self.delta)

    def reward_limits(self, seen: Experience) -> FloatArray:
        radius = bernstein_radius(seen.reward_variances, seen.visits, self._logarithm(seen, seen.visits))
        return np.minimum(1.0, seen.mean_rewards + radius)

    def transition_laws(self, seen: Experience) -> Boxes:
        return Boxes(*boxes(seen.frequencies, seen.visits, self._logarithm(seen, seen.visits)))

    def outcome_laws(self, seen: Experience, told: OutcomeCounts) -> OutcomeBoxes:
        low, high = boxes(told.frequencies, told.trials, self._logarithm(seen, told.trials))
        return OutcomeBoxes(told.outcomes, low, np.where(told.outcomes.size[:, :, None] == 1, 1.0, high))
