r"""The best policy in time, for arrival rates and servers on duty that repeat: it sees the rush coming.

The optimality equation in time (`backward`) is integrated backward over periods until a period adds the same to every
state: that increment over the length of the period is rho, the gain of the best policy of all. The least and the
largest increment of a sweep are bounds of rho, for the steps taken; steps are halved until that changes nothing.

A queue that is slow to forget would take many periods. The residual y = (increment - its mean) is therefore also sent
through the deviation matrix of the chain with the mean rates of the sweep, h <- h + y + y (-T Q)^# (exact for what
changes slowly within a period, harmless for what is forgotten in one), and the last sweeps are mixed (Anderson).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.checks import ReadOnlyArrays, listed
from queueing_ucrl.model.evaluation import evaluate_chain
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.model.transient import anderson
from queueing_ucrl.solvers.backward import FIXED, GREEDY, LOCATED, Trace, sweep
from queueing_ucrl.solvers.remembered import remembered
from queueing_ucrl.solvers.repeating_chain import MOST_WORK, RepeatingChain

MOST_SWEEPS = 500
REMEMBERED = 6
SAME = 1e-12  # of the largest possible reward of a period: increments that differ by less are the same
ROUGH = 1e-6  # before it, switches need not be located
ACCURACY = (
    1e-9  # of the gain, or of a thousandth of the largest possible one: steps are halved until they agree so well
)
MOST_HALVINGS = 6


@dataclass(frozen=True)
class PeriodicSolution(ReadOnlyArrays):
    """The best policy in time of a queue whose rates repeat, its worth, and how it was found.

    Between two edges the policy does not change; at(t) is the one in force at time t. relative_bias[k, s] = g(s, t) at
    t = times[k]. error: by how much the gain moved when all steps were halved, and what the sweeps still differed by.
    Where servers that leave first finish their jobs the best policy also sees how many still do so; `policies` and
    relative_bias are for the usual case that none does.
    """

    gain: float  # rho, reward per unit of time in the long run
    error: float
    period: float
    edges: FloatArray  # 0, the switches, the period
    policies: tuple[Policy, ...]  # one for each stretch between edges
    times: FloatArray
    relative_bias: FloatArray  # g(s, t), a row a time
    sweeps: int
    steps: int  # in a period
    seconds: float
    table_gain: float  # of `policies`, which see only the number of jobs: rho, but where servers finish after hours
    _empty: FloatArray  # of each step: begin, end, h(0) at both, -dh(0)/dt + rho at both

    @property
    def switches(self) -> FloatArray:
        """The times within a period at which the policy changes."""
        last = [] if self.policies[0] == self.policies[-1] else [0.0]
        return np.array([*last, *self.edges[1:-1]])

    def _phase(self, time: float) -> float:
        return time - self.period * math.floor(time / self.period)

    def _after(self, time: float) -> float:
        """A little later, so that a time that was meant to be a switch's is not before it by rounding."""
        return time + 1e-12 * max(self.period, time)

    def at(self, time: float) -> Policy:
        """The policy in force at a time."""
        k = int(np.searchsorted(self.edges, self._phase(self._after(time)), side="right")) - 1
        return self.policies[min(k, len(self.policies) - 1)]

    def next_switch(self, time: float) -> float:
        """The first time after `time` at which the policy changes; infinite if it never does."""
        if not self.switches.size:
            return math.inf
        after = self._after(time)
        turn = math.floor(after / self.period)
        later = (turn * self.period + float(t) for turn in (turn, turn + 1) for t in self.switches)
        return min(t for t in later if t > after)

    def best_reward(self, times: Sequence[float] | FloatArray) -> FloatArray:
        r"""rho t + h(0, 0) - h(0, t): what the best policy earns up to t from empty, if it is empty then.

        In any state s at t it has earned g(0,t) + .. + g(s-1,t) more in expectation. With constant rates it is t rho.
        """
        return np.array([self._best_reward(float(t)) for t in times])

    def _best_reward(self, time: float) -> float:
        return self.gain * time + (float(self._empty[0, 2]) - self._empty_at(self._phase(time)))

    def _empty_at(self, phase: float) -> float:
        """h(0, t) within a period, by Hermite's cubic through the steps."""
        k = max(0, int(np.searchsorted(self._empty[:, 0], phase, side="right")) - 1)
        begin, end, low, high, fall, falls = (float(v) for v in self._empty[k])
        length = end - begin
        u = (phase - begin) / length
        a, b = (self.gain - fall) * length, (self.gain - falls) * length  # dh(0)/dt at both ends
        return low + u * (a + u * ((3.0 * (high - low) - 2.0 * a - b) + u * (2.0 * (low - high) + a + b)))


def solve_periodic(system: System, *, accuracy: float = ACCURACY) -> PeriodicSolution:
    """The best policy in time of a queue whose arrival rates (and servers on duty) repeat, and its gain.

    Classes of several periods need a common one. accuracy: the relative error of the gain at which steps are no longer
    halved.
    """
    return _solve_periodic(system, accuracy)


@remembered(64)
def _solve_periodic(system: System, accuracy: float) -> PeriodicSolution:
    return periodic_optimum(system, accuracy)


def periodic_optimum(system: System, accuracy: float) -> PeriodicSolution:
    """As `solve_periodic`, and not remembered. accuracy infinite: with the first steps, no error told."""
    began = perf_counter()
    chain = RepeatingChain.of(system)
    found = _Sweeper(chain, None).settled(accuracy)
    return _solution(chain, found, perf_counter() - began)


def periodic_gain(system: System, edges: Sequence[float], policies: Sequence[Policy]) -> float:
    """What policies that take turns earn in the long run: policies[k] from edges[k] to edges[k + 1] of each period.

    By the same integration as the best policy's, its decisions given. edges: from 0 to the period, increasing.
    """
    edges, policies = [float(e) for e in listed(edges, "edges")], listed(policies, "policies")
    chain = RepeatingChain.of(system, cuts=edges)
    rises = all(a < b for a, b in pairwise(edges))
    if len(edges) != len(policies) + 1 or not rises or edges[0] != 0.0 or abs(edges[-1] / chain.period - 1) > 1e-9:
        raise ValueError(
            f"edges must increase from 0 to the period {chain.period:g}, with a policy between each two; "
            f"got {len(edges)} edges up to {edges[-1]:g} and {len(policies)} policies"
        )
    middles = 0.5 * (chain.edges[1:] + chain.edges[:-1])
    which = np.minimum(np.searchsorted(edges, middles, side="right") - 1, len(policies) - 1)
    tables = np.array([chain.table(policies[k]) for k in which])
    return _Sweeper(chain, tables).settled(ACCURACY).gain


@dataclass(frozen=True)
class _Settled:
    """Where the sweeps ended."""

    gain: float
    error: float
    values: FloatArray  # h at time 0
    moments: FloatArray  # w at time 0
    refinement: int
    sweeps: int


class _Sweeper:
    """Sweeps over a period until they add the same everywhere; with its decisions given, or the best ones."""

    def __init__(self, chain: RepeatingChain, tables: BoolArray | None) -> None:
        self.chain = chain
        self.tables = tables
        self.sweeps = 0

    def settled(self, accuracy: float) -> _Settled:
        """Halve the steps until the gain does not move."""
        chain = self.chain
        h, w = chain.start(), np.zeros((len(chain.worth.kinds), chain.states))
        self._settle_waits(w)
        scale = max(chain.largest_gain, 1e-300)
        before = math.inf
        refinement = 1
        while True:
            gain, differ = self._settle(h, w, refinement)
            moved = abs(gain - before)
            error = moved + differ
            work = 2.0 * chain.work(refinement)
            if moved <= accuracy * max(abs(gain), 1e-3 * scale) or work > MOST_WORK:
                break
            if refinement >= 2**MOST_HALVINGS:
                break
            before, refinement = gain, 2 * refinement
        return _Settled(gain, error, h, w, refinement, self.sweeps)

    def _settle_waits(self, w: FloatArray) -> None:
        """The moments of waits that repeat: whoever waits is served in the end, so sweeps alone get there."""
        if not w.size:
            return
        chain = self.chain
        h, worth = np.zeros(chain.states), chain.worth
        tables = np.zeros((len(chain.edges) - 1, *worth.rewards.shape), dtype=np.bool_)
        for _ in range(MOST_SWEEPS):
            last = w.copy()
            pieces = chain.pieces(1)
            sweep(h, w, pieces, chain.chain, worth, tables, FIXED, _trace(chain, 0, 0), *np.zeros((2, chain.states)))
            if np.all(np.abs(w - last) <= 1e-13 * np.maximum(np.abs(w), 1e-300)):
                return
        raise SolverError("the waits of a period did not come to repeat: some jobs would wait for too long")

    def _settle(self, h: FloatArray, w: FloatArray, refinement: int) -> tuple[float, float]:
        """Move h to where a period adds the same to every state; (gain, what increments still differ by / T)."""
        chain = self.chain
        pieces, nothing = chain.pieces(refinement), _trace(chain, 0, 0)
        tables = np.zeros((len(chain.edges) - 1, *chain.worth.rewards.shape), dtype=np.bool_)
        if self.tables is not None:
            tables = self.tables
        mode = GREEDY if self.tables is None and refinement == 1 else LOCATED
        mode = FIXED if self.tables is not None else mode
        unit = chain.largest_gain * chain.period
        birth, death = np.zeros(chain.states), np.zeros(chain.states)
        olds, moves = np.zeros((REMEMBERED, chain.states)), np.zeros((REMEMBERED, chain.states))
        kept, before = 0, math.inf
        for _ in range(MOST_SWEEPS):
            old = h.copy()
            sweep(h, w, pieces, chain.chain, chain.worth, tables, mode, nothing, birth, death)
            self.sweeps += 1
            least, most = _extremes(h - old)
            span, gain = most - least, 0.5 * (least + most) / chain.period
            if not math.isfinite(span):
                raise SolverError("the best policy in time was not found: numbers left the range of doubles")
            rounding = 1e-15 * float(np.abs(h - h[0]).max())
            if mode == GREEDY and span <= ROUGH * unit:
                mode, kept, before = LOCATED, 0, math.inf
            elif span <= SAME * unit + rounding or (span <= 1e-9 * unit and span > 0.5 * before):
                h -= h[0]
                return gain, span / chain.period
            if kept and span > 10.0 * before:  # mixing led astray
                kept = 0
            before = span
            for j in range(min(kept, REMEMBERED - 1), 0, -1):
                olds[j], moves[j] = olds[j - 1], moves[j - 1]
            kept = min(kept + 1, REMEMBERED)
            olds[0] = old - old[0]
            moves[0] = self._move(h - old, birth, death)
            h[:] = anderson(olds, moves, kept)
            h -= h[0]
        raise SolverError(f"the best policy in time was not found in {MOST_SWEEPS} sweeps over a period")

    def _move(self, increment: FloatArray, birth: FloatArray, death: FloatArray) -> FloatArray:
        """y + y (-T Q)^#, relative to state 0."""
        move = increment - increment[0]
        if self.chain.is_birth_death:
            slow = np.empty(self.chain.states)
            _slow_part(increment, birth, death, self.chain.period, slow)
            if np.all(np.isfinite(slow)) and float(np.abs(slow).max()) < 1e9 * float(np.abs(move).max() + 1e-300):
                move = move + slow
        return move


@compiled
def _extremes(values: FloatArray) -> tuple[float, float]:
    least, most = values[0], values[0]
    for x in range(values.size):
        least, most = min(least, values[x]), max(most, values[x])
        if not abs(values[x]) < np.inf:
            return np.nan, np.nan
    return least, most


@compiled
def _slow_part(increment: FloatArray, birth: FloatArray, death: FloatArray, period: float, out: FloatArray) -> None:
    """d with -T Q d = increment less its mean, d(0) = 0: the bias of the chain that earns increment / T."""
    size = increment.size
    law, bias = np.empty(size), np.empty(size - 1)
    evaluate_chain(birth, death, increment / period, law, np.empty(size, dtype=np.int64), bias)
    out[0] = 0.0
    for s in range(size - 1):
        out[s + 1] = out[s] - bias[s]


def _trace(chain: RepeatingChain, steps: int, switches: int) -> Trace:
    states, classes = chain.worth.rewards.shape
    return Trace(
        np.zeros((steps, 2)),
        np.zeros((steps, 2)),
        np.zeros((steps, 2)),
        np.zeros((steps + 1 if steps else 0, states)),
        np.zeros(switches),
        np.zeros((switches, 3), dtype=np.int64),
        np.zeros((states, classes), dtype=np.bool_),
    )


def _solution(chain: RepeatingChain, found: _Settled, seconds: float) -> PeriodicSolution:
    """One more sweep, noted."""
    pieces = chain.pieces(found.refinement)
    steps, room = int(pieces.steps.sum()), 1024
    tables = np.zeros((len(chain.edges) - 1, *chain.worth.rewards.shape), dtype=np.bool_)
    while True:
        trace = _trace(chain, steps, room)
        h, w = found.values.copy(), found.moments.copy()
        count = sweep(h, w, pieces, chain.chain, chain.worth, tables, LOCATED, trace, *np.zeros((2, chain.states)))
        if count <= room:
            break
        room = 2 * count
    edges, policies = _policies(chain, trace, count)
    empty = np.column_stack([trace.times[::-1, ::-1], trace.empty[::-1, ::-1], trace.slopes[::-1, ::-1]])
    values = trace.values[::-1]
    empty[:, 2] += found.gain * (empty[:, 0] - chain.period)  # without what rho adds on the way back
    empty[:, 3] += found.gain * (empty[:, 1] - chain.period)
    times = np.append(trace.times[::-1, 1], chain.period)
    usual = np.array([row[chain.usual(t)] for t, row in zip(times.tolist(), values, strict=True)])
    return PeriodicSolution(
        gain=found.gain,
        error=found.error,
        period=chain.period,
        edges=edges,
        policies=policies,
        times=times,
        relative_bias=usual[:, :-1] - usual[:, 1:],
        sweeps=found.sweeps,
        steps=steps,
        seconds=seconds,
        _empty=empty,
        table_gain=found.gain if chain.is_birth_death else periodic_gain(chain.system, edges.tolist(), policies),
    )


def _policies(chain: RepeatingChain, trace: Trace, count: int) -> tuple[FloatArray, tuple[Policy, ...]]:
    """The stretches between switches, and the policy of each."""
    admits = trace.first.copy()
    edges, policies = [0.0], [chain.policy(admits, 0.0)]
    marks = [(float(trace.switch_times[k]), k) for k in range(count - 1, -1, -1)]
    marks += [(float(t), -1) for t in chain.edges[1:-1]]
    for time, k in sorted(marks, key=lambda mark: mark[0]):
        if k >= 0:
            x, i, before = (int(v) for v in trace.switches[k])
            admits[x, i] = not before
        policy = chain.policy(admits, time)
        if policy == policies[-1]:
            continue
        if time - edges[-1] <= 1e-9 * chain.period:  # at the same time
            policies[-1] = policy
            if len(policies) > 1 and policy == policies[-2]:
                edges.pop()
                policies.pop()
            continue
        edges.append(time)
        policies.append(policy)
    return np.array([*edges, chain.period]), tuple(policies)
