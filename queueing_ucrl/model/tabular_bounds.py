r"""Regret bounds of general-purpose learners on the uniformized queue: UCRL2 and UCRL3, with the queue's own constants.

X = S + 1 states, A = m + 1 actions, T = U t ticks, rewards scaled to [0, 1]; the bounds are told in the queue's units,
R_max times the published ones. What they need of the queue is exact:

- D, the diameter: the slowest of the fastest journeys, in ticks (see `diameter`);
- D_s, the same between two states that one tick from s can reach under some action: s - 1, s and s + 1. Upward with
  everybody admitted, t(s) = (1 + mu(s) t(s-1)) / Lambda(s) from s to s + 1, downward with nobody, 1 / mu(s) from s to
  s - 1 (both in time units, U times as many ticks), so D_s = U max{ t(s-1) + t(s), 1 / mu(s) + 1 / mu(s+1) };
- L_{s,a} = (sum_x sqrt(p(x|s,a) (1 - p(x|s,a))))^2, and K, the largest number of states one tick can lead to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.diameter import diameter, rates_of_all, uniformization
from queueing_ucrl.model.system import Queue

ETA = 1.12  # of UCRL3's peeling


def _tick_rate(queue: Queue, tick_rate: float | None) -> float:
    queue.must_be_steady()
    least = uniformization(queue)
    if tick_rate is None:
        return least
    if not least * (1 - 1e-12) <= tick_rate < math.inf:
        raise ValueError(f"tick_rate must be at least Lambda + mu(S) = {least:g}, got {tick_rate}")
    return float(tick_rate)


def tick_laws(queue: Queue, tick_rate: float | None = None) -> FloatArray:
    """laws[s, a] = the probabilities that a tick in s under action a leads down, nowhere and up. S + 1 by m + 1 by 3.

    Action a admits the a best classes of the state; in state S every arrival is blocked.
    """
    U = _tick_rate(queue, tick_rate)
    X, A = queue.capacity + 1, len(queue.classes) + 1
    rates = np.take_along_axis(queue.rates_by_state[:-1], queue.priorities, axis=1)
    zero = np.zeros((queue.capacity, 1))
    laws = np.zeros((X, A, 3))
    laws[:, :, 0] = queue.service_rates[:, None]
    laws[:-1, :, 2] = np.hstack([zero, rates.cumsum(axis=1)])
    # what stays is added up from its parts, so that it is 0 where nothing can stay
    rejected = np.hstack([rates[:, ::-1].cumsum(axis=1)[:, ::-1], zero])
    laws[:, :, 1] = (queue.max_service_rate - queue.service_rates)[:, None]
    laws[:-1, :, 1] += rejected
    laws[-1, :, 1] += queue.total_arrival_rate
    if queue.balks:  # a job that balks is a tick at which nothing happens
        laws[:-1, :, 1] += (queue.arrival_rates * (1.0 - queue.joins[:-1])).sum(axis=1)[:, None]
    if tick_rate is not None:
        laws[:, :, 1] += max(0.0, U - queue.total_arrival_rate - queue.max_service_rate)
    return laws / laws.sum(axis=2, keepdims=True)  # U but for rounding, and so never above 1


def local_diameters(queue: Queue, tick_rate: float | None = None) -> FloatArray:
    """D_s for s = 0 .. S, in ticks; infinite where it leaves the range of a double. O(S)."""
    rates, death = rates_of_all(queue), queue.service_rates
    S = queue.capacity
    up, down = np.zeros(S + 2), np.zeros(S + 2)  # up[s + 1] from s to s + 1, down[s + 1] from s + 1 to s; ends 0
    with np.errstate(over="ignore", divide="ignore"):
        for s in range(S):
            up[s + 1] = (1.0 + death[s] * up[s]) / rates[s]
            down[s + 1] = 1.0 / death[s + 1]
        return _tick_rate(queue, tick_rate) * np.maximum(up[:-1] + up[1:], down[:-1] + down[1:])


@dataclass(frozen=True)
class TabularBound:
    """What the bounds of UCRL2 and UCRL3 need of a queue. Times are the queue's own, and so are the regrets."""

    states: int  # X
    actions: int  # A
    diameter: float  # D, in ticks
    largest_support: int  # K
    spread: float  # sum_{s,a} D_s^2 L_{s,a}
    tick_rate: float  # U
    max_reward: float  # R_max
    delta: float

    @classmethod
    def of(cls, queue: Queue, delta: float = 0.05, tick_rate: float | None = None) -> TabularBound:
        """The constants of `queue` uniformized at tick_rate (by default Lambda + mu(S))."""
        if not 0 < delta < 1:
            raise ValueError(f"delta must be between 0 and 1, got {delta}")
        U = _tick_rate(queue, tick_rate)
        laws = tick_laws(queue, tick_rate)
        L = np.sqrt(laws * (1.0 - laws)).sum(axis=2) ** 2
        with np.errstate(over="ignore"):
            spread = float((local_diameters(queue, tick_rate)[:, None] ** 2 * L).sum())
        return cls(
            states=queue.capacity + 1,
            actions=len(queue.classes) + 1,
            diameter=diameter(queue) * (U / uniformization(queue)),
            largest_support=int((laws > 0).sum(axis=2).max()),
            spread=spread,
            tick_rate=U,
            max_reward=queue.max_reward,
            delta=delta,
        )

    def _ticks(self, time: npt.ArrayLike) -> FloatArray:
        T = self.tick_rate * np.asarray(time, dtype=float)
        least = self.states * self.actions
        if np.any(least > T):
            raise ValueError(f"the bounds hold from tick X A = {least} on, at time {least / self.tick_rate:g}")
        return T

    def ucrl2(self, time: npt.ArrayLike) -> FloatArray:
        """34 D X sqrt(A T log(T / delta)), with probability 1 - delta."""
        T = self._ticks(time)
        return self.max_reward * 34.0 * self.diameter * self.states * np.sqrt(self.actions * T * np.log(T / self.delta))

    def _support_term(self, T: FloatArray) -> FloatArray:
        """60 D K X^(2/3) A^(2/3) T^(1/3): the price of choosing supports."""
        return 60.0 * self.diameter * self.largest_support * (self.states * self.actions) ** (2.0 / 3.0) * np.cbrt(T)

    def _union_log(self, T: FloatArray) -> FloatArray:
        """log(6 X^2 A sqrt(T + 1) / delta)."""
        return np.log(6.0 * self.states**2 * self.actions * np.sqrt(T + 1.0) / self.delta)

    def ucrl3_leading(self, time: npt.ArrayLike) -> FloatArray:
        """c sqrt(T log(6 X^2 A sqrt(T+1) / delta)) + 60 D K X^(2/3) A^(2/3) T^(1/3), with probability 1 - 4 delta.

        c = 5 sqrt(sum D_s^2 L) + 10 sqrt(X A) + 2 D. The published remainder O(D X^2 A log^2(T / delta)) has no
        constant and is left out: `ucrl3` has all terms.
        """
        T = self._ticks(time)
        c = 5.0 * math.sqrt(self.spread) + 10.0 * math.sqrt(self.states * self.actions) + 2.0 * self.diameter
        return self.max_reward * (c * np.sqrt(T * self._union_log(T)) + self._support_term(T))

    def ucrl3(self, time: npt.ArrayLike) -> FloatArray:
        """All terms of the proof, with probability 1 - 4 delta:

          (sqrt2 + 1)(sqrt(4 log(6 X^2 A sqrt(T+1) / delta)) + 2) sqrt(X A T)
        + (D sqrt2 + sqrt(1/2)) sqrt((T+1) log(sqrt(T+1) / delta))
        + (sqrt2 + 1) sqrt(2 l_T) sqrt(T sum D_s^2 L)
        + 4 D X l_T (2 X A log(T / XA) + X A) + 60 D K X^(2/3) A^(2/3) T^(1/3)
        + D X A log2(8 T / XA) + 20 D K X A

        with l_T = eta log( log(T) log(eta T) 6 X^2 A / (log(eta)^2 delta) ).
        """
        T = self._ticks(time)
        D, X, XA = self.diameter, self.states, self.states * self.actions
        root2 = math.sqrt(2.0)
        l_T = ETA * np.log(np.log(T) * np.log(ETA * T) * 6.0 * X * XA / (math.log(ETA) ** 2 * self.delta))
        rewards = (root2 + 1.0) * (np.sqrt(4.0 * self._union_log(T)) + 2.0) * np.sqrt(XA * T)
        martingale = (D * root2 + math.sqrt(0.5)) * np.sqrt((T + 1.0) * np.log(np.sqrt(T + 1.0) / self.delta))
        variance = (root2 + 1.0) * np.sqrt(2.0 * l_T) * np.sqrt(T * self.spread)
        second_order = 4.0 * D * X * l_T * (2.0 * XA * np.log(T / XA) + XA)
        episodes = D * XA * np.log2(8.0 * T / XA)
        support = self._support_term(T) + 20.0 * D * self.largest_support * XA
        return self.max_reward * (rewards + martingale + variance + second_order + episodes + support)
