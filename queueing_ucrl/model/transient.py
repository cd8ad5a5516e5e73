r"""The law of a birth-death chain whose rates are constant on pieces of time, and what it earns there.

On a piece of length dt with generator Q the law moves by pi -> pi e^{Q dt} and earns pi \int_0^dt e^{Qt} dt R, with
R(s) = sum_i lambda_i r_i(s) over the classes that are admitted in s. Both by uniformization: with U the largest rate of
leaving a state, P = I + Q / U and N Poisson of mean U dt,

    pi e^{Q dt} = sum_n P(N = n) pi P^n,        pi \int_0^dt e^{Qt} dt = (1/U) sum_n P(N > n) pi P^n.

All terms are positive; what is cut off of the sums is below 1e-15. A pass over pieces of total length T takes about
(U T + 40 pieces) S steps of plain additions and multiplications (no exponential, no matrix), so the result is the same
to the last bit on every processor.

Where the pieces repeat, the law pi at the start of a period solves pi = pi E, E the movement over a period. Iterating
pi <- pi E can take as many periods as the queue takes to forget; the residual y = pi E - pi is therefore also sent
through the deviation matrix of the chain with mean rates, pi <- pi + y + y (-T Q)^#, which is right for what changes
slowly within a period and harmless for what is forgotten within one (a tridiagonal solve, O(S)), and Anderson's
mixing of the last laws makes it converge where rates change by much: 5 to 20 passes, however slow the queue.
"""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled

MOST_PASSES = 500  # until a period's law repeats; 20 as a rule
REMEMBERED = 6  # laws that are mixed
SAME_LAW = 1e-13  # in l1


@compiled
def _poisson(mean: float) -> tuple[int, FloatArray]:
    """(first, weights): P(N = n) for n = first, first + 1, .. down to 1e-17 of the largest, by recursion from there."""
    mode = int(mean)
    low, weight = mode, 1.0
    while low > 0 and weight > 1e-17:
        weight *= low / mean
        low -= 1
    high, weight = mode, 1.0
    while weight > 1e-17:
        high += 1
        weight *= mean / high
    weights = np.empty(high - low + 1)
    weights[mode - low] = 1.0
    for n in range(mode, low, -1):
        weights[n - 1 - low] = weights[n - low] * (n / mean)
    for n in range(mode + 1, high + 1):
        weights[n - low] = weights[n - 1 - low] * (mean / n)
    total = 0.0
    for k in range(weights.size // 2 + 1):  # the small ones first, from both ends
        total += weights[k]
        if weights.size - 1 - k > weights.size // 2:
            total += weights[weights.size - 1 - k]
    for k in range(weights.size):
        weights[k] /= total
    return low, weights


@compiled
def _normalise(law: FloatArray) -> None:
    """Divide by the sum."""
    total = 0.0
    for s in range(law.size):
        total += law[s]
    for s in range(law.size):
        law[s] /= total


@compiled
def _move(law: FloatArray, birth: FloatArray, death: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:
    """(law after `length`, expected time in each state until then), by uniformization.

    One function, though a long one: both sums follow the law step by step, and end early together.
    """
    size = law.size
    rate = 0.0
    for s in range(size):
        rate = max(rate, birth[s] + death[s])
    first, weights = _poisson(rate * length)
    last = first + weights.size - 1
    above = np.empty(weights.size)  # P(N > n)
    tail = 0.0
    for k in range(weights.size - 1, -1, -1):
        above[k] = tail
        tail += weights[k]
    up, down, stay = birth / rate, death / rate, np.empty(size)
    for s in range(size):
        stay[s] = max(0.0, 1.0 - (up[s] + down[s]))
    now, after = law.copy(), np.empty(size)
    moved, spent = np.zeros(size), np.zeros(size)
    for n in range(last + 1):
        share = 1.0 if n < first else above[n - first]
        for s in range(size):
            spent[s] += share * now[s]
        if n >= first:
            weight = weights[n - first]
            for s in range(size):
                moved[s] += weight * now[s]
        after[0] = stay[0] * now[0] + down[1] * now[1]
        for s in range(1, size - 1):
            after[s] = up[s - 1] * now[s - 1] + stay[s] * now[s] + down[s + 1] * now[s + 1]
        after[size - 1] = up[size - 2] * now[size - 2] + stay[size - 1] * now[size - 1]
        if n % 32 == 31:  # the law's change a step never grows: once it is nothing, the rest of the sums is one law
            change = 0.0
            for s in range(size):
                change += abs(after[s] - now[s])
            if change * (last - n) < 1e-16:
                shares = max(0, first - n - 1) * 1.0
                rest = 0.0
                for k in range(max(0, n + 1 - first), weights.size):
                    shares += above[k]
                    rest += weights[k]
                for s in range(size):
                    spent[s] += shares * after[s]
                    moved[s] += rest * after[s]
                break
        now, after = after, now
    _normalise(moved)
    for s in range(size):
        spent[s] /= rate
    return moved, spent


@compiled
def follow(
    law: FloatArray,
    rates: FloatArray,
    lengths: FloatArray,
    admits: BoolArray,
    rewards: FloatArray,
    death: FloatArray,
    joins: FloatArray,
) -> tuple[FloatArray, float]:
    """(law at the end, reward earned) of a pass over the pieces; rates[k, i] joins[s, i] of class i on piece k."""
    size = law.size
    birth, gain = np.zeros(size), np.zeros(size)
    earned = 0.0
    for k in range(lengths.size):
        for s in range(size - 1):
            birth[s], gain[s] = 0.0, 0.0
            for i in range(rates.shape[1]):
                if admits[s, i]:
                    birth[s] += rates[k, i] * joins[s, i]
                    gain[s] += rates[k, i] * joins[s, i] * rewards[s, i]
        law, spent = _move(law, birth, death, lengths[k])
        for s in range(size):
            earned += spent[s] * gain[s]
    return law, earned


@compiled
def _stationary(birth: FloatArray, death: FloatArray) -> FloatArray:
    """The stationary law of a birth-death chain, upward with rescaling."""
    law = np.ones(birth.size)
    for s in range(1, law.size):
        law[s] = law[s - 1] * (birth[s - 1] / death[s])
        if law[s] > 1e100:
            for j in range(s):
                law[j] /= law[s]
            law[s] = 1.0
    _normalise(law)
    return law


@compiled
def _slow_part(
    residual: FloatArray, law: FloatArray, birth: FloatArray, death: FloatArray, length: float
) -> FloatArray:
    """x with x (-Q) = residual / length and sum 0, outward from the mode of Q's stationary law.

    Over the cut between s and s + 1: x(s) birth(s) - x(s+1) death(s+1) = (residual of 0 .. s) / length.
    """
    size = law.size
    mode = 0
    for s in range(size):
        if law[s] > law[mode]:
            mode = s
    x = np.zeros(size)
    flow = np.zeros(size)
    total = 0.0
    for s in range(mode):
        total += residual[s]
        flow[s] = total / length
    total = 0.0
    for s in range(size - 1, mode, -1):
        total -= residual[s]
        flow[s - 1] = total / length
    for s in range(mode, size - 1):
        x[s + 1] = (x[s] * birth[s] - flow[s]) / death[s + 1]
    for s in range(mode - 1, -1, -1):
        x[s] = (x[s + 1] * death[s + 1] + flow[s]) / birth[s]
    total = 0.0
    for s in range(size):
        total += x[s]
    for s in range(size):
        x[s] -= total * law[s]
    return x


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    """The inner product, in order."""
    total = 0.0
    for s in range(a.size):
        total += a[s] * b[s]
    return total


@compiled
def anderson(laws: FloatArray, moves: FloatArray, count: int) -> FloatArray:
    """Anderson's mixing: the affine combination of the last laws whose combined move is smallest, moved.

    laws and moves hold the last `count` in their first rows, the newest first. Least squares by Gram-Schmidt.
    """
    size = laws.shape[1]
    directions, bends = np.zeros((count, size)), np.zeros((count, size))  # orthonormal; what each does to the answer
    move = moves[0].copy()
    mixed = laws[0] + moves[0]
    kept = 0
    for j in range(1, count):
        direction = moves[0] - moves[j]
        bend = (laws[0] - laws[j]) + direction
        before = math.sqrt(_dot(direction, direction))
        for k in range(kept):
            overlap = _dot(directions[k], direction)
            direction -= overlap * directions[k]
            bend -= overlap * bends[k]
        norm = math.sqrt(_dot(direction, direction))
        if norm > 1e-10 * before:  # else it says nothing that the others do not
            directions[kept] = direction / norm
            bends[kept] = bend / norm
            share = _dot(directions[kept], move)
            move -= share * directions[kept]
            mixed -= share * bends[kept]
            kept += 1
    return mixed


@compiled
def cycle(
    rates: FloatArray,
    lengths: FloatArray,
    admits: BoolArray,
    rewards: FloatArray,
    death: FloatArray,
    joins: FloatArray,
    most: int,
) -> tuple[float, int]:
    """(reward of a period in the long run, passes that it took; -1 if the law did not come to repeat)."""
    size = death.size
    period = 0.0
    mean = np.zeros(rates.shape[1])
    for k in range(lengths.size):
        period += lengths[k]
        for i in range(mean.size):
            mean[i] += rates[k, i] * lengths[k]
    birth = np.zeros(size)
    for s in range(size - 1):
        for i in range(mean.size):
            if admits[s, i]:
                birth[s] += mean[i] / period * joins[s, i]
    usual = _stationary(birth, death)
    law = usual.copy()
    laws, moves = np.zeros((REMEMBERED, size)), np.zeros((REMEMBERED, size))
    before, earned = math.inf, 0.0
    for n in range(most):
        end, earned = follow(law, rates, lengths, admits, rewards, death, joins)
        residual = end - law
        for j in range(REMEMBERED - 1, 0, -1):
            laws[j], moves[j] = laws[j - 1], moves[j - 1]
        laws[0] = law
        moves[0] = residual + _slow_part(residual, usual, birth, death, period)
        change = 0.0
        for s in range(size):
            change += abs(moves[0, s])
        # below 1e-9 a change that no longer shrinks is rounding, as large as the queue is slow to forget
        if change < SAME_LAW or (change < 1e-9 and change > 0.5 * before):
            return earned, n + 1
        before = change
        law = anderson(laws, moves, min(n + 1, REMEMBERED))
        _normalise(law)
    return earned, -1
