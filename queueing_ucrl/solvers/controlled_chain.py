r"""Policy iteration on any chain of which arrivals are admitted or not, its states ordered so that moves are short.

With admissions x -> up(x, i) at rate lambda_i(x) where class i is admitted, each paying r_i(x), and moves q(x, y) that
nobody decides on, gain rho and values h solve

    rho = sum_i admitted lambda_i(x) (r_i(x) + h(up(x,i)) - h(x)) + sum_y q(x, y) (h(y) - h(x)).

State reduction (Grassmann, Taksar, Heyman): the last state k is left for j < k at rate q(k, j), in all out(k); going
there from i means, at rate f = q(i, k) / out(k) for each unit of it, R(k) more reward, tau(k) more time, and moves
q(k, j). So rewards, times and rates are only ever added up; state 0 remains, and rho = R(0) / tau(0). The values
follow from the first state on. O(states x band^2) plain operations in a fixed order, band the longest move.

Improvement is strict, by more than TIE of the largest reward; ties are admitted once at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.solvers.policy_iteration import TIE

MOST_ITERATIONS = 200
MOST_WORK = 2e10  # states x band^2: half a minute an evaluation
MOST_ENTRIES = 5e7  # of the band


@compiled
def _reduce(q: FloatArray, reward: FloatArray, time: FloatArray, stops: FloatArray, band: int, out: FloatArray) -> None:
    """Take out the states from the last to the first but one. q[k, j - k + band]: from k to j."""
    for k in range(reward.size - 1, 0, -1):
        low = max(0, k - band)
        total = stops[k]
        for j in range(low, k):
            total += q[k, j - k + band]
        out[k] = total
        for i in range(low, k):
            if q[i, k - i + band] > 0.0:
                f = q[i, k - i + band] / total
                reward[i] += f * reward[k]
                time[i] += f * time[k]
                stops[i] += f * stops[k]
                for j in range(low, k):
                    if j != i:
                        q[i, j - i + band] += f * q[k, j - k + band]


@compiled
def _values(
    q: FloatArray, reward: FloatArray, time: FloatArray, gain: float, first: float, band: int, out: FloatArray
) -> FloatArray:
    """h from the first state on, h(0) = first."""
    h = np.empty(reward.size)
    h[0] = first
    for k in range(1, reward.size):
        total = reward[k] - gain * time[k]
        for j in range(max(0, k - band), k):
            total += q[k, j - k + band] * h[j]
        h[k] = total / out[k]
    return h


@compiled
def _stationary(q: FloatArray, band: int, out: FloatArray) -> FloatArray:
    law = np.zeros(out.size)
    law[0] = 1.0
    total = 1.0
    for k in range(1, law.size):
        for i in range(max(0, k - band), k):
            law[k] += law[i] * (q[i, k - i + band] / out[k])
        total += law[k]
    for k in range(law.size):
        law[k] /= total
    return law


@compiled
def _fill(
    up: IntArray,
    rates: FloatArray,
    rewards: FloatArray,
    moves: IntArray,
    speeds: FloatArray,
    admits: BoolArray,
    band: int,
    q: FloatArray,
    reward: FloatArray,
) -> None:
    for n in range(speeds.size):
        q[moves[n, 0], moves[n, 1] - moves[n, 0] + band] += speeds[n]
    for x in range(reward.size):
        for i in range(rates.shape[1]):
            if admits[x, i] and up[x, i] >= 0:
                q[x, up[x, i] - x + band] += rates[x, i]
                reward[x] += rates[x, i] * rewards[x, i]


@compiled
def _margins(up: IntArray, rewards: FloatArray, h: FloatArray, out: FloatArray) -> None:
    for x in range(h.size):
        for i in range(out.shape[1]):
            out[x, i] = rewards[x, i] + (h[up[x, i]] - h[x]) if up[x, i] >= 0 else -np.inf


@compiled
def _law_by_level(law: FloatArray, level: IntArray, values: FloatArray, out: FloatArray) -> None:
    """sum over the states of a level of law times values, by level and class."""
    for x in range(law.size):
        for i in range(values.shape[1]):
            if values[x, i] > -np.inf:
                out[level[x], i] += law[x] * values[x, i]


@dataclass(frozen=True)
class ChainValue:
    """What decisions earn in a chain."""

    gain: float
    values: FloatArray  # h(x), 0 in the first state
    stationary: FloatArray


@dataclass(frozen=True)
class ControlledChain:
    """States 0 .. n - 1, of which arrivals of m classes are admitted or not."""

    up: IntArray  # n, m: where an admission leads; -1: no room
    rates: FloatArray  # n, m
    rewards: FloatArray  # n, m
    moves: IntArray  # from, to: what nobody decides on
    speeds: FloatArray  # of the moves

    @cached_property
    def band(self) -> int:
        """The longest move."""
        x = np.arange(len(self.up))[:, None]
        longest = np.where(self.up >= 0, np.abs(self.up - x), 0).max(initial=1)
        return int(max(longest, np.abs(self.moves[:, 1] - self.moves[:, 0]).max(initial=1)))

    @property
    def work(self) -> float:
        """Of one evaluation."""
        return float(len(self.up)) * self.band**2

    def check_size(self) -> None:
        """Refuse what would take hours."""
        if self.work > MOST_WORK or len(self.up) * (2.0 * self.band + 1.0) > MOST_ENTRIES:
            raise ValueError(
                f"the exact optimum is on {len(self.up):,} states, too many for this solver: take a smaller capacity "
                "or fewer classes, or `optimise` for the best table found by simulation"
            )

    def evaluate(self, admits: BoolArray) -> ChainValue:
        """Gain, values and stationary law."""
        n, band = len(self.up), self.band
        q, reward, time = np.zeros((n, 2 * band + 1)), np.zeros(n), np.ones(n)
        _fill(self.up, self.rates, self.rewards, self.moves, self.speeds, admits, band, q, reward)
        out = np.ones(n)
        _reduce(q, reward, time, np.zeros(n), band, out)
        gain = float(reward[0] / time[0])
        h = _values(q, reward, time, gain, 0.0, band, out)
        if not (np.isfinite(gain) and np.all(np.isfinite(h))):
            raise SolverError("the values of the chain leave the range of doubles")
        return ChainValue(gain, h, _stationary(q, band, out))

    def margins(self, value: ChainValue) -> FloatArray:
        """r_i(x) + h(up) - h(x): what admitting class i in x gains; -inf where there is no room."""
        found = np.empty(self.rewards.shape)
        _margins(self.up, self.rewards, value.values, found)
        return found

    def tie(self, value: ChainValue) -> float:
        """Smaller gains are none."""
        largest = float(np.maximum(self.rewards, 0.0).max())
        return TIE * max(largest, 0.01 * float(np.abs(value.values).max()))

    def best(self) -> tuple[BoolArray, ChainValue, int]:
        """The best decisions, what they earn, and the number of iterations."""
        self.check_size()
        admits = (self.up >= 0) & (self.rewards >= 0.0)
        value = self.evaluate(admits)
        for iteration in range(1, MOST_ITERATIONS + 1):
            margins, tie = self.margins(value), self.tie(value)
            better = np.where(admits, margins >= -tie, margins > tie)
            if np.array_equal(better, admits):
                tied = (margins >= -tie) & (self.up >= 0)
                if not np.array_equal(tied, admits):
                    with_ties = self.evaluate(tied)
                    scale = float((self.rates * np.maximum(self.rewards, 0.0)).sum(axis=1).max())
                    if with_ties.gain >= value.gain - 1e-9 * scale and np.all(
                        self.margins(with_ties)[tied] >= -1e3 * self.tie(with_ties)
                    ):
                        admits, value = tied, with_ties
                return admits, value, iteration
            admits, value = better, self.evaluate(better)
        raise SolverError(f"policy iteration did not end within {MOST_ITERATIONS} iterations")

    def best_by_level(self, level: IntArray, starts: list[BoolArray]) -> tuple[BoolArray, ChainValue]:
        """The best decisions found that see only a state's level: (levels, m), and what they earn.

        From each start, every decision whose mean gain over its level (in the law of the chain) is wrong is changed
        while that helps; from the best of these one decision at a time, until no change helps.
        """
        best: tuple[BoolArray, ChainValue] | None = None
        for start in starts:
            table, value = start, self.evaluate(self._spread(start, level))
            while True:
                means = np.zeros(table.shape)
                _law_by_level(value.stationary, level, self.margins(value), means)
                better = np.where(np.abs(means) > 0.0, means > 0.0, table)
                tried = self.evaluate(self._spread(better, level))
                if not tried.gain > value.gain * (1 + 1e-12):
                    break
                table, value = better, tried
            if best is None or value.gain > best[1].gain:
                best = table, value
        assert best is not None
        return self._climb(*best, level)

    def _climb(self, table: BoolArray, value: ChainValue, level: IntArray) -> tuple[BoolArray, ChainValue]:
        improved = True
        while improved:
            improved = False
            for s, i in np.ndindex(table.shape):
                moved = table.copy()
                moved[s, i] = not moved[s, i]
                tried = self.evaluate(self._spread(moved, level))
                if tried.gain > value.gain * (1 + 1e-12):
                    table, value, improved = moved, tried, True
        return table, value

    def _spread(self, table: BoolArray, level: IntArray) -> BoolArray:
        """Decisions by level as decisions by state."""
        padded = np.vstack([table, np.zeros((1, table.shape[1]), dtype=np.bool_)])
        return padded[np.minimum(level, len(table))] & (self.up >= 0)


def absorbed(size: int, moves: IntArray, speeds: FloatArray, source: FloatArray, stops: FloatArray) -> FloatArray:
    """w with source(x) + sum_y q(x, y) (w(y) - w(x)) - stops(x) w(x) = 0: what is collected until the chain stops."""
    band = int(np.abs(moves[:, 1] - moves[:, 0]).max(initial=1))
    q, reward, stop, out = np.zeros((size, 2 * band + 1)), source.copy(), stops.copy(), np.ones(size)
    none = np.zeros((size, 0))
    _fill(none.astype(np.int64), none, none, moves, speeds, none.astype(np.bool_), band, q, np.zeros(size))
    _reduce(q, reward, np.zeros(size), stop, band, out)
    return _values(q, reward, np.zeros(size), 0.0, float(reward[0] / stop[0]), band, out)
