r"""The best that any learner can do on average over a prior: dynamic programming over all that can be known.

A queue in slots of time, so small that the whole tree of what may be seen has a table for each state of knowledge. In
a slot one of the jobs present leaves with probability d min(s, c), then a job of class i comes with probability p_i (or
none comes). d is known, p is drawn once from a Dirichlet law with weights alpha_1 .. alpha_m and alpha_0 for nobody,
m = 2. After t slots with N_1 and N_2 arrivals everything known of p is in (N_1, N_2, t), and the next job is of class i
with probability (alpha_i + N_i) / (alpha_0 + alpha_1 + alpha_2 + t). So with n slots to go

    V_n(N, s) = E [ sum_i p^_i max(V_{n-1}(N + e_i, s'), r_i(s') + V_{n-1}(N + e_i, s' + 1)) + p^_0 V_{n-1}(N, s') ]

over s' = s less a departure: exact, the value of the best of all learners, told nothing but the prior.
`value_of_learner` is the same sum for a learner that treats each job as is best for the slots to come if its point
estimate were the truth (certainty equivalence), `value_when_known` for one who is told p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled


class SlottedQueue(NamedTuple):
    """What is known of the queue."""

    servers: int
    rewards: FloatArray  # r_i(s), S by 2: of a job that finds s before it
    departure: float  # d, of each busy server in a slot; d c <= 1


class ShareEstimate(NamedTuple):
    """p^_i = (N_i + weights_i) / (t + total): a point estimate after t slots."""

    first: float
    second: float
    total: float


@compiled
def _after_departures(queue: SlottedQueue, s: int, here: float, below: float) -> float:
    leave = queue.departure * min(s, queue.servers)
    return leave * below + (1.0 - leave) * here


@compiled
def _slot(
    queue: SlottedQueue,
    admits: FloatArray,
    free: bool,
    p1: float,
    p2: float,
    first: FloatArray,
    second: FloatArray,
    nobody: FloatArray,
    w: FloatArray,
    out: FloatArray,
) -> None:
    """Fill out[s] from the values after the slot: of one more arrival of the first class, of the second, of none.

    free: whether each job is treated as is best; otherwise by `admits`.
    """
    S = queue.rewards.shape[0]
    for s in range(S + 1):
        w[s] = (1.0 - p1 - p2) * nobody[s]
        for i in range(2):
            after = first if i == 0 else second
            p = p1 if i == 0 else p2
            value = after[s]
            if s < S:
                let_in = queue.rewards[s, i] + after[s + 1]
                if free:
                    value = max(value, let_in)
                elif admits[s, i] > 0.0:
                    value = let_in
            w[s] += p * value
    for s in range(S + 1):
        out[s] = _after_departures(queue, s, w[s], w[s - 1] if s > 0 else 0.0)


@compiled
def _known(queue: SlottedQueue, p1: float, p2: float, slots: int, later: FloatArray, now: FloatArray) -> FloatArray:
    """V with so many slots to go by state, for known p; in one of the two arrays given."""
    w, nobody = np.empty(later.size), np.zeros((0, 0))
    later[:] = 0.0
    for _ in range(slots):
        _slot(queue, nobody, True, p1, p2, later, later, later, w, now)
        now, later = later, now
    return later


@compiled
def _values(queue: SlottedQueue, prior: FloatArray, horizon: int, free: bool, estimate: ShareEstimate) -> float:
    """V_horizon(0, 0), backwards over all (N_1, N_2) with N_1 + N_2 <= t: of the best learner, or of an estimate."""
    S = queue.rewards.shape[0]
    weight = prior[0] + prior[1] + prior[2]
    later = np.zeros((horizon + 2, horizon + 2, S + 1))
    now = np.zeros((horizon + 2, horizon + 2, S + 1))
    w, admits = np.empty(S + 1), np.zeros((S, 2))
    one, other = np.empty(S + 1), np.empty(S + 1)
    for t in range(horizon - 1, -1, -1):
        for n1 in range(t + 1):
            for n2 in range(t + 1 - n1):
                if not free:
                    seen = t + estimate.total
                    share1 = (n1 + estimate.first) / seen if seen > 0.0 else 0.0
                    share2 = (n2 + estimate.second) / seen if seen > 0.0 else 0.0
                    v = _known(queue, share1, share2, horizon - t - 1, one, other)
                    for s in range(S):
                        for i in range(2):
                            admits[s, i] = 1.0 if queue.rewards[s, i] + v[s + 1] >= v[s] else 0.0
                p1, p2 = (prior[0] + n1) / (weight + t), (prior[1] + n2) / (weight + t)
                after1, after2, after0 = later[n1 + 1, n2], later[n1, n2 + 1], later[n1, n2]
                _slot(queue, admits, free, p1, p2, after1, after2, after0, w, now[n1, n2])
        now, later = later, now
    value: float = later[0, 0, 0]
    return value


@dataclass(frozen=True)
class BayesProblem:
    """A slotted queue, a prior of who comes, and a number of slots."""

    queue: SlottedQueue
    prior: FloatArray  # alpha_1, alpha_2, alpha_0
    horizon: int

    def best_value(self) -> float:
        """What the best of all learners earns from an empty queue, in expectation over the prior. O(horizon^3 S)."""
        return _values(self.queue, self.prior, self.horizon, True, ShareEstimate(0.0, 0.0, 0.0))

    def value_of_learner(self, estimate: ShareEstimate) -> float:
        """What a learner earns who treats every job as is best if its estimate were the truth. O(horizon^4 S)."""
        return _values(self.queue, self.prior, self.horizon, False, estimate)

    def value_when_known(self, points: int = 40) -> float:
        """What is earned in expectation by one who is told p, by Gauss-Jacobi quadrature over the Dirichlet law.

        p_1 + p_2 = x ~ Beta(alpha_1 + alpha_2, alpha_0) and p_1 / x ~ Beta(alpha_1, alpha_2), independent.
        """
        from scipy.special import roots_jacobi

        a1, a2, a0 = map(float, self.prior)

        def beta_nodes(a: float, b: float) -> tuple[FloatArray, FloatArray]:
            x, weights = roots_jacobi(points, b - 1.0, a - 1.0)
            return 0.5 * (1.0 + x), weights / weights.sum()

        total, share = beta_nodes(a1 + a2, a0), beta_nodes(a1, a2)
        one, other = np.empty((2, self.queue.rewards.shape[0] + 1))
        values = [
            [_known(self.queue, x * y, x * (1.0 - y), self.horizon, one, other)[0] for y in share[0].tolist()]
            for x in total[0].tolist()
        ]
        return float(total[1] @ np.array(values) @ share[1])
