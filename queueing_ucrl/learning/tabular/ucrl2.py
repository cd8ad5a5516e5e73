r"""UCRL2 (Jaksch, Ortner, Auer 2010): transition laws in l1 balls, rewards in Hoeffding intervals.

    |r - r^| <= sqrt(7 log(2 X A t / delta) / (2 N)),    |p - p^|_1 <= sqrt(14 X log(2 A t / delta) / N)

with X states, A actions, N = max(1, visits of the pair), t = max(1, steps so far). r+ is cut at 1.
Inner maximum: the best state gains half the radius, and the excess is taken from the worst states upward.

Told what outcomes a tick may have (`structure`), it has a ball of laws of those, by the same steps of its article
(appendix C.1), where the second form is rounded up from the first with X outcomes:

    |q - q^|_1 <= sqrt(2 log(2^K 20 X A t^7 / delta) / N)    with K outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import log
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.l1_ball import raise_best, take_from_worst
from queueing_ucrl.learning.tabular.evi import kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, OptimisticSession, StructuredLearner
from queueing_ucrl.learning.tabular.structure import OutcomeCounts, Outcomes, value_outcomes, with_departure

LOG_2 = log(2.0)


class L1Balls(NamedTuple):
    """For each pair (s, a) the laws within `radius` of `centre` in l1."""

    centre: FloatArray  # p^, X by A by X
    radius: FloatArray  # X by A


@compiled
def best_in_l1_ball(centre: FloatArray, radius: float, u: FloatArray, order: IntArray, law: FloatArray) -> float:
    """Fill `law` with the law of the ball that makes p . u largest; p . u. O(X).

    `order` has the states by falling u. A pair never seen has the centre 0 and all mass on the best state.
    """
    take_from_worst(law, order, raise_best(centre, radius, order, law))
    value = 0.0
    for x in range(u.size):
        value += law[x] * u[x]
    return value


@kind_of_set(L1Balls)
def _look_ahead(sets: L1Balls, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            table[s, a] = best_in_l1_ball(sets.centre[s, a], sets.radius[s, a], u, order, law)


class OutcomeL1Balls(NamedTuple):
    """For each pair (s, a) the laws of outcomes within `radius` of `centre` in l1."""

    outcomes: Outcomes
    centre: FloatArray  # q^, X by A by K
    radius: FloatArray  # X by A


@kind_of_set(OutcomeL1Balls)
def _look_ahead_told(sets: OutcomeL1Balls, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    most = sets.centre.shape[2]
    values, by_value, chosen = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most)
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            size = value_outcomes(sets.outcomes, s, a, u, values, by_value)
            centre, radius = sets.centre[s, a, :size], sets.radius[s, a]
            best = best_in_l1_ball(centre, radius, values[:size], by_value[:size], chosen[:size])
            table[s, a] = with_departure(sets.outcomes, s, u, best)


def reward_radius(visits: IntArray, states: int, actions: int, steps: int, delta: float) -> FloatArray:
    """sqrt(7 log(2 X A t / delta) / (2 N))."""
    t = max(1, steps)
    return np.sqrt(3.5 * log(2.0 * states * actions * t / delta) / np.maximum(1, visits))


def transition_radius(visits: IntArray, states: int, actions: int, steps: int, delta: float) -> FloatArray:
    """sqrt(14 X log(2 A t / delta) / N)."""
    t = max(1, steps)
    return np.sqrt(14.0 * states * log(2.0 * actions * t / delta) / np.maximum(1, visits))


def outcome_radius(told: OutcomeCounts, steps: int, delta: float) -> FloatArray:
    """sqrt(2 log(2^K 20 X A t^7 / delta) / N)."""
    size = told.outcomes.size
    constant = log(20.0 * size.size / delta) + 7.0 * log(float(max(1, steps)))
    return np.sqrt(2.0 * (LOG_2 * size + constant) / told.trials)


@dataclass(frozen=True)
class Ucrl2(StructuredLearner):
    """UCRL2: optimism in l1 balls around the observed transition laws."""

    name: ClassVar[str] = "ucrl2"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Ucrl2Session:
        return Ucrl2Session(knowledge, rng, self.delta, self.structure)


class Ucrl2Session(OptimisticSession):
    """UCRL2 in one run."""

    def reward_limits(self, seen: Experience) -> FloatArray:
        radius = reward_radius(seen.visits, seen.states, seen.actions, seen.steps, self.delta)
        return np.minimum(1.0, seen.mean_rewards + radius)

    def transition_laws(self, seen: Experience) -> L1Balls:
        radius = transition_radius(seen.visits, seen.states, seen.actions, seen.steps, self.delta)
        return L1Balls(seen.frequencies, radius)

    def outcome_laws(self, seen: Experience, told: OutcomeCounts) -> OutcomeL1Balls:
        return OutcomeL1Balls(told.outcomes, told.frequencies, outcome_radius(told, seen.steps, self.delta))
