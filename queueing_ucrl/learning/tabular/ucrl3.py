r"""UCRL3 (Bourel, Maillard, Talebi 2020): intervals for every entry, and optimism over supports chosen with care.

With delta' = delta / (X A (3 + 3 X)), eta = 1.12, n = visits of the pair,

    l_n = eta log( log(n) log(eta n) / (log(eta)^2 delta') ),    b_n = sqrt(2 (1 + 1/n) log(sqrt(n + 1) / delta') / n):

    reward   |r - r^| <= min{ b_n / 2, sqrt(2 var^ l_n / n) + 7 l_n / (3 n) }    (the article prints max; min is meant)
    entry q  |p^ - q| <= sqrt(2 q (1 - q) l_n / n) + l_n / (3 n)                 (Bernstein)
             - sqrt(g_(q)) b_n <= p^ - q <= sqrt(g(q)) b_n                       (sub-Gaussian)

    g(q) = (1/2 - q) / log(1/q - 1),    g_ = g below 1/2, q (1 - q) above.

var^ is the mean square less the squared mean. Small n: where log(n) log(eta n) <= 1 (n <= 2) the parts with l_n are
left out; a pair never seen may do anything.

Near-optimistic support selection. With f = u - min u, f-(Y) = the largest sum_Y f q over the intervals with at most
mass 1 on Y, and the support Y = supp p^ + argmax f to begin with: while f-(rest) >= min(kappa, f-(Y)), the best state
of the rest joins Y; kappa = 10 span(u) |supp p^| / N_max^(2/3). The law is then the best one with its mass on Y.

The choice of Y depends on u, so the sweeps are not those of one fixed process, and on some of the paper's queues a
few plans in a hundred swing between two choices for ever. So from sweep WANDERING on supports only grow (which is
more optimism, not less): after X such changes a pair stands still, and the iteration converges as every other does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import log, power
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.tabular.evi import kind_of_set
from queueing_ucrl.learning.tabular.session import Experience, OptimisticSession, TabularLearner

ETA = 1.12
WANDERING = 1000  # sweeps; where nothing swings, the paper's queues take 250 at most
BISECTIONS = 52


# --- the intervals ---------------------------------------------------------------------------------------------------


@compiled
def peeled_log(n: float, delta: float) -> float:
    """l_n; infinite where log(n) log(eta n) <= 1."""
    if n < 1.0:
        return np.inf
    product = log(float(n)) * log(ETA * n)
    if product <= 1.0:
        return np.inf
    return ETA * log(product / (log(ETA) ** 2 * delta))


@compiled
def mixed_radius(n: float, delta: float) -> float:
    """b_n; infinite for n = 0."""
    if n < 1.0:
        return np.inf
    return math.sqrt(2.0 * (1.0 + 1.0 / n) * log(math.sqrt(n + 1.0) / delta) / n)


@compiled
def reward_radius(variance: float, n: float, delta: float) -> float:
    """min{ b_n / 2, sqrt(2 var^ l_n / n) + 7 l_n / (3 n) }."""
    hoeffding = 0.5 * mixed_radius(n, delta)
    ell = peeled_log(n, delta)
    if not ell < np.inf:
        return hoeffding
    return min(hoeffding, math.sqrt(2.0 * variance * ell / n) + 7.0 * ell / (3.0 * n))


@compiled
def variance_proxy(q: float) -> float:
    """g(q) = (1/2 - q) / log(1/q - 1): what Bernoulli(q) is sub-Gaussian with."""
    if q <= 0.0 or q >= 1.0:
        return 0.0
    if abs(q - 0.5) < 1e-4:
        z = (1.0 - 2.0 * q) ** 2
        return 0.25 * (1.0 - z / 3.0)  # log((1+x)/(1-x)) = 2x (1 + x^2/3 + ..), x = 1 - 2q
    return (0.5 - q) / log(1.0 / q - 1.0)


@compiled
def lower_variance_proxy(q: float) -> float:
    """g_(q): the same for deviations below the mean."""
    return variance_proxy(q) if q < 0.5 else q * (1.0 - q)


@compiled
def bernstein_interval(p: float, level: float) -> tuple[float, float]:
    """The q with |p - q| <= sqrt(2 q (1 - q) level) + level / 3, level = l_n / n: roots of two quadratics."""
    if not level < np.inf:
        return 0.0, 1.0
    a = p + level / 3.0
    high = 1.0
    if a < 1.0:
        high = (a + level + math.sqrt(level * (level + 2.0 * a * (1.0 - a)))) / (1.0 + 2.0 * level)
    b = p - level / 3.0
    low = 0.0
    if b > 0.0:
        low = (b + level - math.sqrt(level * (level + 2.0 * b * (1.0 - b)))) / (1.0 + 2.0 * level)
    return low, min(1.0, high)


@compiled
def sub_gaussian_interval(p: float, radius: float) -> tuple[float, float]:
    """The q with - sqrt(g_(q)) radius <= p - q <= sqrt(g(q)) radius, by bisection: both roots are concave in q.

    The ends are on the outer side of the root, by 1e-15.
    """
    if not radius < np.inf:
        return 0.0, 1.0
    inner = p
    low = 0.0
    for _ in range(BISECTIONS):
        q = 0.5 * (low + inner)
        if p - q <= math.sqrt(variance_proxy(q)) * radius:
            inner = q
        else:
            low = q
    inner = p
    high = 1.0
    for _ in range(BISECTIONS):
        q = 0.5 * (inner + high)
        if q - p <= math.sqrt(lower_variance_proxy(q)) * radius:
            inner = q
        else:
            high = q
    return low, high


@compiled
def entry_interval(p: float, n: float, delta: float) -> tuple[float, float]:
    """The q that all four inequalities allow, for p^ = p after n visits."""
    low, high = bernstein_interval(p, peeled_log(n, delta) / n if n > 0.0 else np.inf)
    lower, higher = sub_gaussian_interval(p, mixed_radius(n, delta))
    return max(low, lower), min(high, higher)


@compiled
def update_intervals(
    visits: IntArray, transitions: IntArray, delta: float, fresh: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Fill low and high (X by A by X) for the pairs whose visits differ from those in `fresh`."""
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            n = visits[s, a]
            if n == fresh[s, a]:
                continue
            fresh[s, a] = n
            unseen_low, unseen_high = entry_interval(0.0, n, delta)
            for x in range(transitions.shape[2]):
                if transitions[s, a, x] == 0:
                    low[s, a, x], high[s, a, x] = unseen_low, unseen_high
                else:
                    low[s, a, x], high[s, a, x] = entry_interval(transitions[s, a, x] / n, n, delta)


# --- the inner maximum -----------------------------------------------------------------------------------------------


class ChosenSupports(NamedTuple):
    """Intervals for every entry, and what the choice of supports needs. X by A by X but for the last two."""

    low: FloatArray
    high: FloatArray
    transitions: IntArray  # the support of p^ is where they are positive
    chosen: IntArray  # 1 for the states of Y at the last sweep
    kappa: FloatArray  # kappa / span(u), X by A
    sweeps: IntArray  # one number: sweeps so far


@compiled
def choose_support(high: FloatArray, kappa: float, u: FloatArray, order: IntArray, chosen: IntArray) -> None:
    """Add to `chosen` (the support so far) the best other states until those left out are worth less than kappa. O(X).

    f-(rest) is built up from the worst state; once its mass is 1, a newcomer's is taken from the worst that has some.
    """
    worst = u[order[-1]]
    value = 0.0
    mass = 0.0
    tail = u.size - 1  # position in order of the worst state that still has mass
    tail_mass = -1.0  # what it has left; -1: not touched yet
    for j in range(u.size - 1, -1, -1):
        x = order[j]
        if chosen[x] == 1:
            continue
        value += high[x] * (u[x] - worst)
        mass += high[x]
        while mass > 1.0:
            y = order[tail]
            if chosen[y] == 1:
                tail -= 1
                continue
            if tail_mass < 0.0:
                tail_mass = high[y]
            taken = min(mass - 1.0, tail_mass)
            value -= taken * (u[y] - worst)
            mass -= taken
            tail_mass -= taken
            if tail_mass <= 0.0:
                tail -= 1
                tail_mass = -1.0
            if taken <= 0.0:
                break
        if value >= kappa:
            for i in range(j + 1):
                chosen[order[i]] = 1
            break


@compiled
def fill_support(
    low: FloatArray, high: FloatArray, chosen: IntArray, u: FloatArray, order: IntArray, law: FloatArray
) -> float:
    """Fill `law` with the best one in the intervals with all its mass on `chosen`; its p . u. O(X)."""
    left = 1.0
    value = 0.0
    for x in range(u.size):
        law[x] = low[x]
        left -= low[x]
        value += low[x] * u[x]
    for j in range(u.size):
        if left <= 0.0:
            break
        x = order[j]
        if chosen[x] == 1:
            given = min(left, high[x] - low[x])
            law[x] += given
            left -= given
            value += given * u[x]
    return value


@compiled
def worth_of_rest(high: FloatArray, chosen: IntArray, u: FloatArray, order: IntArray) -> float:
    """f-(rest): the states not chosen filled from the best, up to mass 1. O(X)."""
    worst = u[order[-1]]
    left = 1.0
    value = 0.0
    for j in range(u.size):
        x = order[j]
        if chosen[x] == 0:
            given = min(left, high[x])
            value += given * (u[x] - worst)
            left -= given
    return value


@compiled
def best_near_optimistic(
    low: FloatArray,
    high: FloatArray,
    transitions: IntArray,
    kappa: float,
    keep: bool,
    u: FloatArray,
    order: IntArray,
    chosen: IntArray,
    law: FloatArray,
) -> float:
    """Choose the support Y, fill `law` with the best law on it; p . u. keep: states chosen before stay. O(X).

    f-(rest) falls and f-(Y) grows with every state that joins, so the states that f-(rest) >= kappa asks for can join
    at once, and only then is f-(rest) >= f-(Y) looked at, state by state (it is rare).
    """
    states = u.size
    for x in range(states):
        if transitions[x] > 0 or not keep:
            chosen[x] = 1 if transitions[x] > 0 else 0
    chosen[order[0]] = 1
    choose_support(high, kappa, u, order, chosen)
    worst = u[order[-1]]
    while True:
        value = fill_support(low, high, chosen, u, order, law)
        j = 0
        while j < states and chosen[order[j]] == 1:
            j += 1
        if j == states or worth_of_rest(high, chosen, u, order) < value - worst:
            return value
        chosen[order[j]] = 1


@kind_of_set(ChosenSupports)
def _look_ahead(sets: ChosenSupports, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    span = u[order[0]] - u[order[-1]]
    keep = sets.sweeps[0] >= WANDERING
    sets.sweeps[0] += 1
    for s in range(table.shape[0]):
        for a in range(table.shape[1]):
            low, high, transitions, chosen = sets.low[s, a], sets.high[s, a], sets.transitions[s, a], sets.chosen[s, a]
            kappa = span * sets.kappa[s, a]
            table[s, a] = best_near_optimistic(low, high, transitions, kappa, keep, u, order, chosen, law)


# --- the learner -----------------------------------------------------------------------------------------------------


@compiled
def _reward_radii(variances: FloatArray, visits: IntArray, delta: float, radii: FloatArray) -> None:
    for s in range(visits.shape[0]):
        for a in range(visits.shape[1]):
            radii[s, a] = reward_radius(variances[s, a], visits[s, a], delta)


@dataclass(frozen=True)
class Ucrl3(TabularLearner):
    """UCRL3: optimism entry by entry, over supports no larger than they need be."""

    name: ClassVar[str] = "ucrl3"

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Ucrl3Session:
        return Ucrl3Session(knowledge, rng, self.delta)


class Ucrl3Session(OptimisticSession):
    """UCRL3 in one run."""

    def __init__(self, knowledge: Knowledge, rng: np.random.Generator, delta: float) -> None:
        super().__init__(knowledge, rng, delta)
        shape = self.seen.transitions.shape
        self.low, self.high = np.zeros(shape), np.ones(shape)
        self.fresh = np.zeros(self.seen.visits.shape, dtype=np.int64)  # the visits that low and high are made for
        self.chosen = np.zeros(shape, dtype=np.int64)

    def _share_of_delta(self, seen: Experience) -> float:
        return self.delta / (seen.states * seen.actions * (3 + 3 * seen.states))

    def reward_limits(self, seen: Experience) -> FloatArray:
        radii = np.empty(seen.visits.shape)
        _reward_radii(seen.reward_variances, seen.visits, self._share_of_delta(seen), radii)
        return np.minimum(1.0, seen.mean_rewards + radii)

    def transition_laws(self, seen: Experience) -> ChosenSupports:
        update_intervals(seen.visits, seen.transitions, self._share_of_delta(seen), self.fresh, self.low, self.high)
        kappa = 10.0 * (seen.transitions > 0).sum(axis=2) / power(max(1.0, float(seen.visits.max())), 2.0 / 3.0)
        return ChosenSupports(self.low, self.high, seen.transitions, self.chosen, kappa, np.zeros(1, dtype=np.int64))
