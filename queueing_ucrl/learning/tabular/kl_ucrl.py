r"""KL-UCRL (Filippi, Cappe, Garivier 2010): transition laws in Kullback-Leibler balls.

    |r - r^| <= C_R / sqrt(N),    C_R = sqrt(log(4 X A log T / delta) / 1.99)
    KL(p^ || q) <= C_P / N,       C_P = X [B + log(G) (1 + 1/G)],  B = log(2 e X^2 A log T / delta),  G = B + 1 / log T

with log(max(2, t)) for log T, as the horizon is not known. A pair never seen may do anything.
Told what outcomes a tick may have (`structure`), K of them, it has K [...] for C_P and K X A for X^2 A in B: as many
probabilities as there are to learn.

Inner maximum over KL(p^ || q) <= C. Let Z be the support of p^, M the largest u on it, d = M - u >= 0 there, and

    f(y) = sum_Z p^ log(1 + d y) + log sum_Z p^ / (1 + d y),    y > 0,

which is KL(p^ || q) for q proportional to p^ / (1 + d y) on Z; it grows from 0 at y = 0. (With y = 1 / (v - M) it is
the f(v) of the article; written so, it loses no digits where v is far above M.)
If the largest u lies above M and f at y = 1 / (max u - M) is below C, then q keeps that shape on Z with mass
exp(f - C), and the rest goes to the best state; otherwise y solves f(y) = C and q has all its mass on Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp, log, log1p
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.tabular.evi import kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, OptimisticSession, StructuredLearner
from queueing_ucrl.learning.tabular.structure import OutcomeCounts, Outcomes, value_outcomes, with_departure

LARGEST = 690.0  # of log y: beyond it the mass off the best state of Z is below 1e-299
CLOSE = 1e-7  # a Newton step in log y of this size leaves an error of its square
NEWTON_STEPS = 50  # three are common; where these are not enough, bisection ends the search


class KlBalls(NamedTuple):
    """For each pair (s, a) the laws q with KL(centre || q) <= budget."""

    centre: FloatArray  # p^, X by A by X
    budget: FloatArray  # C, X by A
    support: IntArray  # the first size[s, a] of support[s, a] are the states that p^ reaches
    size: IntArray
    log_y: FloatArray  # where the last search ended, and the next begins; nan before the first


@compiled
def divergence(p: FloatArray, d: FloatArray, size: int, y: float) -> tuple[float, float, float]:
    """f(y), its derivative by log y, and sum p / (1 + d y). O(|Z|)."""
    entropy = 0.0
    total = 0.0
    slope = 0.0
    square = 0.0
    for k in range(size):
        dy = d[k] * y
        share = p[k] / (1.0 + dy)
        entropy += p[k] * log1p(dy)
        total += share
        slope += share * dy
        square += share * dy / (1.0 + dy)
    return entropy + log(total), slope - square / total, total


@compiled
def solve_divergence(p: FloatArray, d: FloatArray, size: int, budget: float, log_y: float) -> float:
    """log y with f(y) = budget > 0, at most LARGEST, from the guess log_y (nan: none). d must not all be 0.

    Newton's method on log y, kept inside a bracket that shrinks at every step.
    """
    low = -LARGEST
    high = LARGEST
    if not low < log_y < high:
        mean = 0.0
        square = 0.0
        for k in range(size):
            mean += p[k] * d[k]
            square += p[k] * d[k] * d[k]
        log_y = 0.5 * log(2.0 * budget / (square - mean * mean))  # f ~ variance y^2 / 2 for small y
        if not low < log_y < high:
            log_y = 0.0
    steps = 0
    while high - low > 1e-12:
        f, slope, _total = divergence(p, d, size, exp(log_y))
        if f < budget:
            low = log_y
        else:
            high = log_y
        step = (budget - f) / slope
        if abs(step) < CLOSE:
            return min(LARGEST, log_y + step)
        log_y += step
        steps += 1
        if steps > NEWTON_STEPS or not low < log_y < high:
            log_y = 0.5 * (low + high)
    return log_y


@compiled
def best_in_kl_ball(
    p: FloatArray,
    d: FloatArray,
    centre: FloatArray,
    support: IntArray,
    size: int,
    budget: float,
    log_y: float,
    u: FloatArray,
    best: int,
    law: FloatArray,
) -> tuple[float, float]:
    """Fill `law` with the q of KL(centre || q) <= budget that makes q . u largest; (q . u, where the search ended).

    p and d are scratch space. `best` is a state of largest u. O(X) and some 3 |Z| logarithms. One function, though a
    long one: its three cases share p, d, y and the mass that stays on Z.
    """
    for x in range(u.size):
        law[x] = 0.0
    if size == 0:
        law[best] = 1.0
        return u[best], log_y
    top = u[support[0]]
    bottom = top
    for k in range(1, size):
        top = max(top, u[support[k]])
        bottom = min(bottom, u[support[k]])
    for k in range(size):
        p[k] = centre[support[k]]
        d[k] = top - u[support[k]]
    inside = 1.0  # mass that stays on Z
    solve = True
    y = 0.0
    if u[best] > top:
        y = 1.0 / (u[best] - top)
        f, _slope, total = divergence(p, d, size, y)
        if f < budget:
            inside = exp(f - budget)
            solve = False
    if solve and bottom < top:  # where Z is level, q = p^ (y = 0) is as good as any law on Z
        log_y = solve_divergence(p, d, size, budget, log_y)
        y = exp(log_y)
    if solve:
        total = 0.0
        for k in range(size):
            total += p[k] / (1.0 + d[k] * y)
    law[best] = 1.0 - inside
    value = law[best] * u[best]
    for k in range(size):
        mass = inside * p[k] / (1.0 + d[k] * y) / total
        law[support[k]] += mass
        value += mass * u[support[k]]
    return value, log_y


@kind_of_set(KlBalls)
def _look_ahead(sets: KlBalls, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    p = np.empty(u.size)
    d = np.empty(u.size)
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            centre, support, size = sets.centre[s, a], sets.support[s, a], sets.size[s, a]
            budget, log_y = sets.budget[s, a], sets.log_y[s, a]
            found = best_in_kl_ball(p, d, centre, support, size, budget, log_y, u, order[0], law)
            table[s, a], sets.log_y[s, a] = found


@compiled
def _supports(transitions: IntArray, support: IntArray, size: IntArray) -> None:
    for s in range(transitions.shape[0]):
        for a in range(transitions.shape[1]):
            size[s, a] = 0
            for x in range(transitions.shape[2]):
                if transitions[s, a, x] > 0:
                    support[s, a, size[s, a]] = x
                    size[s, a] += 1


class OutcomeKlBalls(NamedTuple):
    """For each pair (s, a) the laws of outcomes q with KL(balls.centre || q) <= balls.budget. X by A by K."""

    outcomes: Outcomes
    balls: KlBalls


@kind_of_set(OutcomeKlBalls)
def _look_ahead_told(sets: OutcomeKlBalls, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    balls = sets.balls
    most = balls.centre.shape[2]
    values, by_value, chosen = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most)
    p, d = np.empty(most), np.empty(most)
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            size = value_outcomes(sets.outcomes, s, a, u, values, by_value)
            centre, support, seen = balls.centre[s, a, :size], balls.support[s, a], balls.size[s, a]
            budget, log_y = balls.budget[s, a], balls.log_y[s, a]
            worth, best = values[:size], by_value[0]
            found = best_in_kl_ball(p, d, centre, support, seen, budget, log_y, worth, best, chosen[:size])
            table[s, a], balls.log_y[s, a] = with_departure(sets.outcomes, s, u, found[0]), found[1]


def kl_balls(counts: IntArray, frequencies: FloatArray, budget: FloatArray) -> KlBalls:
    """The balls around what was seen."""
    support = np.zeros(counts.shape, dtype=np.int64)
    size = np.zeros(counts.shape[:2], dtype=np.int64)
    _supports(counts, support, size)
    return KlBalls(frequencies, budget, support, size, np.full(size.shape, np.nan))


def reward_constant(states: int, actions: int, steps: int, delta: float) -> float:
    """C_R."""
    return math.sqrt(log(4.0 * states * actions * log(float(max(2, steps))) / delta) / 1.99)


def transition_constant(outcomes: int, states: int, actions: int, steps: int, delta: float) -> float:
    """C_P of laws with so many outcomes, X in the article."""
    log_t = log(float(max(2, steps)))
    B = log(2.0 * math.e * (outcomes * states) * actions * log_t / delta)
    G = B + 1.0 / log_t
    return outcomes * (B + log(G) * (1.0 + 1.0 / G))


@dataclass(frozen=True)
class KlUcrl(StructuredLearner):
    """KL-UCRL: optimism in Kullback-Leibler balls around the observed transition laws."""

    name: ClassVar[str] = "kl-ucrl"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> KlUcrlSession:
        return KlUcrlSession(knowledge, rng, self.delta, self.structure)


class KlUcrlSession(OptimisticSession):
    """KL-UCRL in one run."""

    def reward_limits(self, seen: Experience) -> FloatArray:
        C_R = reward_constant(seen.states, seen.actions, seen.steps, self.delta)
        return np.minimum(1.0, seen.mean_rewards + C_R / np.sqrt(seen.floored_visits))

    def transition_laws(self, seen: Experience) -> KlBalls:
        C_P = transition_constant(seen.states, seen.states, seen.actions, seen.steps, self.delta)
        return kl_balls(seen.transitions, seen.frequencies, C_P / seen.floored_visits)

    def outcome_laws(self, seen: Experience, told: OutcomeCounts) -> OutcomeKlBalls:
        size = told.outcomes.size
        by_size = [
            transition_constant(max(1, k), seen.states, seen.actions, seen.steps, self.delta)
            for k in range(size.max() + 1)
        ]
        balls = kl_balls(told.counts, told.frequencies, np.array(by_size)[size] / told.trials)
        return OutcomeKlBalls(told.outcomes, balls)
