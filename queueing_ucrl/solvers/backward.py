"""The optimality equation in time, integrated backward: what is still to be earned, and which decisions earn it.

A chain on states x whose rates repeat in time earns at most h(x, t) more than rho a unit of time from t on, where

    -dh/dt = sum_i lambda_i(t) b_i(x) (r_i(x,t) + h(up x) - h(x))^+
             + d(x,t) (h(down x) - h(x)) + a(x,t) (h(lost x) - h(x)) - rho

with departures at rate d and abandonments at rate a; of those who come a share b_i(x) asks to be let in. For the number
of jobs s in the system h(s) - h(s+1) = g(s,t), and class i is admitted where r_i(s,t) >= g(s,t). Where servers come and
go the wait of a job depends on the hour, and with it r_i: each is R_i less weights times moments w_q(x,t) of the wait
of a job that joins in x, which go along,

    -dw/dt = source + d (w(down x) - w(x)) + a (w(lost x) - w(x)) - theta w(x)     where such a job waits, else w = 0,

with source 1 for E[W], p E[W^(p-1)] for E[W^p], b (1 - w) for 1 - E[e^{-bW}]; theta is the rate at which it gives up.

Pieces of time end where a rate jumps. Within a piece steps are equal, by the classical Runge-Kutta method of order 4.
Its order needs a right-hand side that is smooth, and ( )^+ is not: so decisions are kept during a step, and a step
after which one is wrong is cut where it begins to be (LOCATED), which also tells when the policy changes.
A wrong decision is one that loses more than TIE of the largest reward, so that rounding changes none to and fro.

Plain arithmetic in a fixed order: the same to the last bit on every processor.

One file, though a long one: the equation, a step and the sweep of all steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import sin
from queueing_ucrl.solvers.policy_iteration import TIE
from queueing_ucrl.solvers.wait_costs import TRANSFORM

GREEDY, LOCATED, FIXED = range(3)  # decisions: the best at each stage; the best, switches located; as told
NARROW = 1e-7  # of a step: how well a switch is located


class Chain(NamedTuple):
    """Who goes where: a row for each number of servers, a column a state. An arrival without room has up = -1."""

    up: IntArray
    down: IntArray
    lost: IntArray
    begins: IntArray  # the state that x becomes when this row comes into force
    death: FloatArray
    giving_up: FloatArray
    live: BoolArray  # whether the chain can be there
    waits: BoolArray  # whether a job that joins there waits


class Worth(NamedTuple):
    """What an admission pays: r_i(x) = rewards[x, i] - sum_q weights[i, l] w_l(x)."""

    rewards: FloatArray
    joins: FloatArray  # b_i(x), the share of those who come that asks to be let in
    weights: FloatArray
    kinds: IntArray
    numbers: FloatArray  # the power of a moment, the rate of a transform
    patience: float  # theta
    scale: float  # the largest reward


class Pieces(NamedTuple):
    """Stretches of time without a jump; lambda_i(t) = level[piece, i] + swing[i] sin(speed[i] t + phase[i])."""

    edges: FloatArray  # one more than pieces
    steps: IntArray
    chain: IntArray  # which row of the chain is in force
    level: FloatArray
    swing: FloatArray
    speed: FloatArray
    phase: FloatArray


class Trace(NamedTuple):
    """What a sweep notes. Of every step, from the last to the first: times, h(0) and its slope; and the switches."""

    times: FloatArray  # steps, 2: its end, its start
    empty: FloatArray  # steps, 2: h(0) at both
    slopes: FloatArray  # steps, 2: -dh(0)/dt at both, before rho is taken off
    values: FloatArray  # steps + 1, states: h, first at the end
    switch_times: FloatArray
    switches: IntArray  # state, class, and the decision before that time
    first: BoolArray  # the decisions at the beginning of all


@compiled
def _rates(pieces: Pieces, piece: int, time: float, out: FloatArray) -> None:
    for i in range(out.size):
        out[i] = pieces.level[piece, i]
        if pieces.swing[i] != 0.0:
            out[i] += pieces.swing[i] * sin(pieces.speed[i] * time + pieces.phase[i])


@compiled
def _reward(worth: Worth, w: FloatArray, x: int, i: int) -> float:
    r = worth.rewards[x, i]
    for q in range(w.shape[0]):
        r -= worth.weights[i, q] * w[q, x]
    return r


@compiled
def _slopes(
    h: FloatArray,
    w: FloatArray,
    rates: FloatArray,
    chain: Chain,
    row: int,
    worth: Worth,
    admits: BoolArray,
    greedy: bool,
    dh: FloatArray,
    dw: FloatArray,
) -> None:  # long: an argument a line
    """-dh/dt (with rho) and -dw/dt. O(m states)."""
    for x in range(h.size):
        dh[x] = 0.0
        if not chain.live[row, x]:
            for q in range(w.shape[0]):
                dw[q, x] = 0.0
            continue
        death, giving_up = chain.death[row, x], chain.giving_up[row, x]
        slope = 0.0
        if death > 0.0:
            slope += death * (h[chain.down[row, x]] - h[x])
        if giving_up > 0.0:
            slope += giving_up * (h[chain.lost[row, x]] - h[x])
        up = chain.up[row, x]
        if up >= 0:
            for i in range(rates.size):
                if greedy or admits[x, i]:
                    margin = _reward(worth, w, x, i) + (h[up] - h[x])
                    if margin > 0.0 or not greedy:
                        slope += rates[i] * worth.joins[x, i] * margin
        dh[x] = slope
        for q in range(w.shape[0]):
            dw[q, x] = 0.0
            if chain.waits[row, x]:
                number = worth.numbers[q]
                if worth.kinds[q] == TRANSFORM:
                    source = number * (1.0 - w[q, x])
                else:
                    source = 1.0 if number == 1.0 else number * w[q - 1, x]
                slope = source - worth.patience * w[q, x]
                if death > 0.0:
                    slope += death * (w[q, chain.down[row, x]] - w[q, x])
                if giving_up > 0.0:
                    slope += giving_up * (w[q, chain.lost[row, x]] - w[q, x])
                dw[q, x] = slope


@compiled
def _step(
    h: FloatArray,
    w: FloatArray,
    time: float,
    length: float,
    piece: int,
    pieces: Pieces,
    chain: Chain,
    worth: Worth,
    admits: BoolArray,
    greedy: bool,
    h_after: FloatArray,
    w_after: FloatArray,
) -> None:
    """From `time` back to `time` - `length`: Runge and Kutta's classical step."""
    row = pieces.chain[piece]
    states, moments, classes = h.size, w.shape[0], pieces.swing.size
    rates = np.empty(classes)
    dh, dw = np.empty(states), np.empty((moments, states))
    h_now, w_now = h.copy(), w.copy()
    for x in range(states):
        h_after[x] = h[x]
        for q in range(moments):
            w_after[q, x] = w[q, x]
    for stage in range(4):
        at = 0.0 if stage == 0 else (1.0 if stage == 3 else 0.5)
        if stage != 2:
            _rates(pieces, piece, time - at * length, rates)
        _slopes(h_now, w_now, rates, chain, row, worth, admits, greedy, dh, dw)
        share = length / 6.0 if stage == 0 or stage == 3 else length / 3.0
        ahead = length if stage == 2 else 0.5 * length
        for x in range(states):
            h_after[x] += share * dh[x]
            h_now[x] = h[x] + ahead * dh[x]
            for q in range(moments):
                w_after[q, x] += share * dw[q, x]
                w_now[q, x] = w[q, x] + ahead * dw[q, x]


@compiled
def _violation(
    h: FloatArray, w: FloatArray, chain: Chain, row: int, worth: Worth, admits: BoolArray, allowance: float
) -> float:
    """By how much the worst decision is wrong, beyond the allowance; negative where none is."""
    worst = -np.inf
    for x in range(h.size):
        up = chain.up[row, x]
        if up >= 0 and chain.live[row, x]:
            for i in range(admits.shape[1]):
                margin = _reward(worth, w, x, i) + (h[up] - h[x])
                worst = max(worst, (-margin if admits[x, i] else margin) - allowance)
    return worst


@compiled
def _mend(
    h: FloatArray,
    w: FloatArray,
    chain: Chain,
    row: int,
    worth: Worth,
    admits: BoolArray,
    allowance: float,
    time: float,
    trace: Trace,
    count: int,
) -> int:
    """Take back every wrong decision and note it; how many switches are noted by now."""
    for x in range(h.size):
        up = chain.up[row, x]
        if up >= 0 and chain.live[row, x]:
            for i in range(admits.shape[1]):
                margin = _reward(worth, w, x, i) + (h[up] - h[x])
                if (-margin if admits[x, i] else margin) > allowance:
                    admits[x, i] = not admits[x, i]
                    if count < trace.switch_times.size:
                        trace.switch_times[count] = time
                        trace.switches[count, 0] = x
                        trace.switches[count, 1] = i
                        trace.switches[count, 2] = 1 if admits[x, i] else 0
                    count += 1
    return count


@compiled
def _careful_step(
    h: FloatArray,
    w: FloatArray,
    time: float,
    length: float,
    piece: int,
    pieces: Pieces,
    chain: Chain,
    worth: Worth,
    admits: BoolArray,
    mode: int,
    allowance: float,
    trace: Trace,
    count: int,
    h_after: FloatArray,
    w_after: FloatArray,
) -> int:  # long: an argument a line
    """A step; LOCATED: with the decisions of its beginning, cut wherever one begins to be wrong (Illinois' rule).

    Long: where to cut, and what is left to do behind the cut, are one search.
    """
    row = pieces.chain[piece]
    h_now, w_now = h.copy(), w.copy()
    left = length
    tries = 4 + 2 * admits.size  # more switches than that within a step are ties
    cutting = False
    part, low, high, below, above, side = 1.0, 0.0, 1.0, 0.0, 0.0, 0
    while True:
        greedy = mode == GREEDY or (mode == LOCATED and tries == 0)
        _step(h_now, w_now, time, part * left, piece, pieces, chain, worth, admits, greedy, h_after, w_after)
        if mode != LOCATED:
            return count
        found = _violation(h_after, w_after, chain, row, worth, admits, allowance)
        if not cutting:
            if found <= 0.0 or tries == 0:
                return _mend(h_after, w_after, chain, row, worth, admits, allowance, time - left, trace, count)
            cutting = True
            below, above = _violation(h_now, w_now, chain, row, worth, admits, allowance), found
            low, high, side = 0.0, 1.0, 0
        elif found > 0.0:
            high, above = part, found
            below = 0.5 * below if side == 1 else below
            side = 1
        else:
            low, below = part, min(found, -1e-300)
            above = 0.5 * above if side == -1 else above
            side = -1
        if high - low >= NARROW and below < 0.0:
            part = (low * above - high * below) / (above - below)
            part = min(max(part, low + 0.5 * NARROW), high - 0.5 * NARROW)
            continue
        if part != high:
            part = high
            continue
        time -= part * left
        left -= part * left
        for x in range(h.size):
            h_now[x] = h_after[x]
            for q in range(w.shape[0]):
                w_now[q, x] = w_after[q, x]
        count = _mend(h_now, w_now, chain, row, worth, admits, allowance, time, trace, count)
        if not left > 0.0:
            return count
        cutting, part, tries = False, 1.0, tries - 1


@compiled
def _slope_of_empty(h: FloatArray, w: FloatArray, rates: FloatArray, chain: Chain, row: int, worth: Worth) -> float:
    """-dh(0)/dt, with rho, under the best decisions; from state 0 nobody leaves."""
    slope = 0.0
    for i in range(rates.size):
        slope += rates[i] * worth.joins[0, i] * max(0.0, _reward(worth, w, 0, i) + (h[chain.up[row, 0]] - h[0]))
    return slope


@compiled
def _forget_waits(w: FloatArray, chain: Chain, row: int) -> None:
    """Nobody waits in some states of this chain: their moments are 0."""
    for x in range(w.shape[1]):
        if not chain.waits[row, x]:
            for q in range(w.shape[0]):
                w[q, x] = 0.0


@compiled
def _decide(
    h: FloatArray, w: FloatArray, chain: Chain, row: int, worth: Worth, allowance: float, admits: BoolArray
) -> None:
    """The best decisions under h and w; ties, up to the allowance, let in."""
    for x in range(h.size):
        up = chain.up[row, x]
        for i in range(admits.shape[1]):
            admits[x, i] = up >= 0 and _reward(worth, w, x, i) + (h[up] - h[x]) >= -allowance


@compiled
def _add_rates(
    h: FloatArray,
    w: FloatArray,
    chain: Chain,
    row: int,
    worth: Worth,
    rates: FloatArray,
    length: float,
    admits: BoolArray,
    greedy: bool,
    birth: FloatArray,
    death: FloatArray,
) -> None:
    """Add a step's share of the mean rates of leaving each state."""
    for x in range(h.size):
        death[x] += length * (chain.death[row, x] + chain.giving_up[row, x])
        up = chain.up[row, x]
        if up >= 0:
            for i in range(rates.size):
                admitted = admits[x, i]
                if greedy:
                    admitted = _reward(worth, w, x, i) + (h[up] - h[x]) >= 0.0
                if admitted:
                    birth[x] += length * (rates[i] * worth.joins[x, i])


@compiled
def _begin_in(h: FloatArray, w: FloatArray, begins: IntArray, h_after: FloatArray, w_after: FloatArray) -> None:
    """Each state is entered as another one: the values of a piece, seen from the one before it."""
    for x in range(h.size):
        h_after[x] = h[begins[x]]
        for q in range(w.shape[0]):
            w_after[q, x] = w[q, begins[x]]
    h[:] = h_after
    w[:] = w_after


@compiled
def sweep(
    h: FloatArray,
    w: FloatArray,
    pieces: Pieces,
    chain: Chain,
    worth: Worth,
    tables: BoolArray,
    mode: int,
    trace: Trace,
    birth: FloatArray,
    death: FloatArray,
) -> int:
    """Move h and w from the end of all pieces to the beginning; the number of switches.

    tables: the decisions of each piece (FIXED). trace: filled where it has room. birth, death: filled with the mean
    rates of leaving each state upward and downward. Long: what is noted of a step is of before it and of after it.
    """
    count, noted, steps, number = 0, 0, trace.times.shape[0], pieces.steps.size
    birth[:] = 0.0
    death[:] = 0.0
    largest = worth.scale
    for x in range(h.size):
        largest = max(largest, 0.01 * abs(h[x] - h[0]))
    allowance = TIE * largest
    admits = np.zeros((h.size, pieces.swing.size), dtype=np.bool_)
    rates, h_after, w_after = np.empty(pieces.swing.size), np.empty_like(h), np.empty_like(w)
    if steps:
        trace.values[0] = h
    for piece in range(number - 1, -1, -1):
        row = pieces.chain[piece]
        begin, end = pieces.edges[piece], pieces.edges[piece + 1]
        length = (end - begin) / pieces.steps[piece]
        _forget_waits(w, chain, row)
        if mode == FIXED:
            admits[:] = tables[piece]
        elif mode == LOCATED and piece == number - 1:
            _decide(h, w, chain, row, worth, allowance, admits)
        elif mode == LOCATED:
            count = _mend(h, w, chain, row, worth, admits, allowance, end, trace, count)
        for k in range(pieces.steps[piece]):
            time = end - k * length
            if noted < steps:
                _rates(pieces, piece, time, rates)
                trace.times[noted, 0], trace.empty[noted, 0] = time, h[0]
                trace.slopes[noted, 0] = _slope_of_empty(h, w, rates, chain, row, worth)
            count = _careful_step(
                h, w, time, length, piece, pieces, chain, worth, admits, mode, allowance, trace, count, h_after, w_after
            )
            _rates(pieces, piece, time - 0.5 * length, rates)
            _add_rates(h, w, chain, row, worth, rates, length, admits, mode == GREEDY, birth, death)
            h[:] = h_after
            w[:] = w_after
            if noted < steps:
                begun = begin if k + 1 == pieces.steps[piece] else end - (k + 1) * length
                _rates(pieces, piece, begun, rates)
                trace.times[noted, 1], trace.empty[noted, 1] = begun, h[0]
                trace.slopes[noted, 1] = _slope_of_empty(h, w, rates, chain, row, worth)
                trace.values[noted + 1] = h
                noted += 1
        _begin_in(h, w, chain.begins[row], h_after, w_after)
    if steps:
        trace.first[:] = admits
    period = pieces.edges[number] - pieces.edges[0]
    for x in range(h.size):
        birth[x] /= period
        death[x] /= period
    return count
