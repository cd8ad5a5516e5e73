r"""What a general-purpose learner may be told of the queue, one piece after another.

    "none"        the next state may be any of X, and pays whatever it pays
    "support"     the next state is s - 1, s or s + 1: a birth-death chain
    "rewards"     and an admitted job of class i pays r_i(s), nothing else pays: what happens says what is paid
    "departures"  and a tick is a departure with probability mu(s) / U: only the arrivals are left to learn

With any but "none" a tick in state s under action a has one of a few *outcomes*: nothing, a departure, an arrival that
is let in (of each class its own, once rewards are known). A set of plausible laws is then a set of laws of outcomes,
and the inner maximum of extended value iteration is

    max_q sum_k q_k (paid_k + u(next_k)),

the same maxima as over all X states, on two to m + 2 entries. Where departures are known, q is the law of the outcomes
given that the tick is no departure, learned from the ticks that were none:

    d(s) u(s - 1) + (1 - d(s)) max_q sum_k q_k (paid_k + u(next_k)),    d(s) = mu(s) / U.

What UCRL-AC knows beyond all this: that the rates are the same in every state and under every action, so that all
arrivals, those turned away too, tell of one number for each class.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.controller import Knowledge, Tally
from queueing_ucrl.learning.tabular.evi import rank

Structure = Literal["none", "support", "rewards", "departures"]
STAY, DOWN, UP = 0, 1, 2  # kinds of outcomes; UP + i: a job of class i is let in, once rewards are known


class Outcomes(NamedTuple):
    """What may happen at a tick, for each pair (s, a); K is the largest number of outcomes of a pair."""

    size: IntArray  # X by A: the first so many of K count
    kind: IntArray  # X by A by K: STAY, DOWN, UP ...
    target: IntArray  # X by A by K: the next state
    paid: FloatArray  # X by A by K, in R_max; 0 where rewards are learned
    departure: FloatArray  # d(s), X; 0 where departures are learned


def outcomes_of(knowledge: Knowledge, priorities: IntArray, structure: Structure) -> Outcomes:
    """The outcomes of a queue whose action a lets in the classes priorities[s, :a]."""
    states, actions = knowledge.capacity + 1, knowledge.class_count + 1
    by_class = structure != "support"
    found = []
    departure = np.zeros(states)
    if structure == "departures":
        departure = knowledge.service_rates / knowledge.tick_rate
    for s in range(states):
        full = s == knowledge.capacity
        falls = [] if s == 0 or structure == "departures" else [(DOWN, s - 1, 0.0)]
        for a in range(actions):
            let_in = [] if full or not by_class else priorities[s, :a].tolist()
            rises = [(UP + i, s + 1, knowledge.rewards[s, i] / knowledge.max_reward) for i in let_in]
            if not by_class and not full:
                rises = [(UP, s + 1, 0.0)]
            found.append([(STAY, s, 0.0), *falls, *rises])
    size = np.array([len(one) for one in found]).reshape(states, actions)
    padded = [[*one, *[(STAY, 0, 0.0)] * (int(size.max()) - len(one))] for one in found]
    kind, target, paid = (
        np.array([[outcome[j] for outcome in one] for one in padded]).reshape(states, actions, -1) for j in range(3)
    )
    return Outcomes(size, kind, target, paid.astype(np.float64), departure)


class OutcomeCounts:
    """How often each outcome was seen."""

    def __init__(self, knowledge: Knowledge, priorities: IntArray, structure: Structure) -> None:
        self.outcomes = outcomes_of(knowledge, priorities, structure)
        self.by_class = structure != "support"  # then rewards are known
        shape = self.outcomes.kind.shape
        self.possible = np.arange(shape[2]) < self.outcomes.size[:, :, None]
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)

    def add(self, tally: Tally, taken: IntArray) -> None:
        """Add an episode in which state s always met with action taken[s]."""
        assert tally.ticks is not None
        ticks = tally.ticks
        s = np.arange(taken.size)
        ups = (
            np.vstack([tally.admissions, np.zeros_like(tally.admissions[:1])]) if self.by_class else ticks.ups[:, None]
        )
        by_kind = np.column_stack([ticks.visits - ticks.ups - ticks.downs, ticks.downs, ups])
        seen = np.take_along_axis(by_kind, self.outcomes.kind[s, taken], axis=1)
        self.counts[s, taken] += np.where(self.possible[s, taken], seen, 0)

    @property
    def trials(self) -> IntArray:
        """max(1, N), N the ticks of a pair that were one of its outcomes: all, or all that were no departures."""
        return np.maximum(1, self.counts.sum(axis=2))

    @property
    def frequencies(self) -> FloatArray:
        """q^ of each pair; all 0 for one never seen."""
        return self.counts / self.trials[:, :, None]


@compiled
def value_outcomes(outcomes: Outcomes, s: int, a: int, u: FloatArray, values: FloatArray, order: IntArray) -> int:
    """Fill values[k] with paid_k + u(next_k), and `order` with k by falling value; how many there are. O(K^2)."""
    size: int = outcomes.size[s, a]
    for k in range(size):
        values[k] = outcomes.paid[s, a, k] + u[outcomes.target[s, a, k]]
        order[k] = k
    rank(values[:size], order[:size])
    return size


@compiled
def with_departure(outcomes: Outcomes, s: int, u: FloatArray, best: float) -> float:
    """d(s) u(s - 1) + (1 - d(s)) best."""
    d = outcomes.departure[s]
    if d == 0.0:
        return best
    value: float = d * u[s - 1] + (1.0 - d) * best
    return value
