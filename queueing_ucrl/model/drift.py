r"""What a stationary policy earns where arrival rates change in time.

Time is cut into pieces of constant rates. On a piece of length dt with generator Q the law moves by pi -> pi e^{Q dt}
and earns pi \int_0^dt e^{Qt} dt R, with R(s) = sum_i lambda_i r_i(s) over the classes that are admitted in s. Both by
uniformization: with U the largest rate of leaving a state, P = I + Q / U and N Poisson of mean U dt,

    pi e^{Q dt} = sum_n P(N = n) pi P^n,        pi \int_0^dt e^{Qt} dt = (1/U) sum_n P(N > n) pi P^n.

All terms are positive; what is cut off of the sums is below 1e-15. A pass over pieces of total length T takes about
(U T + 40 pieces) S steps of plain additions and multiplications (no exponential, no matrix), so the result is the same
to the last bit on every processor.

With a horizon the queue starts empty and is followed up to it. Without one the rates must repeat, and the gain is that
of the long run: the law pi at the start of a period solves pi = pi E, E the movement over a period. Iterating
pi <- pi E can take as many periods as the queue takes to forget; the residual y = pi E - pi is therefore also sent
through the deviation matrix of the chain with mean rates, pi <- pi + y + y (-T Q)^#, which is right for what changes
slowly within a period and harmless for what is forgotten within one (a tridiagonal solve, O(S)), and Anderson's
mixing of the last laws makes it converge where rates change by much: 5 to 20 passes, however slow the queue.

Steps are exact. A sinusoid is cut into equal pieces with the rates of their middles, twice as many in a second pass,
and Richardson's (4 g_2n - g_n) / 3 removes the error of second order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.patterns import Sinusoid, Steps, pattern_factor
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray

Levels = tuple[int, ...]
OnProgress = Callable[[int, float], None]  # policies tried, the best gain so far

PIECES = 64  # of a sinusoid's period
LARGEST_DENOMINATOR = 1000  # periods whose ratios need a larger one have no common period
MOST_PIECES = 10**6
MOST_WORK = 1e9  # steps of one pass: some seconds, and some 20 passes a policy
MOST_PASSES = 500  # until a period's law repeats; 20 as a rule
REMEMBERED = 6  # laws that are mixed
SAME_LAW = 1e-13  # in l1


@compiled
def _factors(kind, data, times):  # type: ignore[no-untyped-def]
    """A pattern's factor at each of the times."""
    factors = np.empty(times.size)
    for k in range(times.size):
        factors[k] = pattern_factor(kind, data, times[k])
    return factors


@compiled
def _poisson(mean):  # type: ignore[no-untyped-def]
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
def _move(law, birth, death, length):  # type: ignore[no-untyped-def]
    """(law after `length`, expected time in each state until then), by uniformization."""
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
    total = 0.0
    for s in range(size):
        total += moved[s]
    for s in range(size):
        moved[s] /= total
        spent[s] /= rate
    return moved, spent


@compiled
def _pass(law, rates, lengths, admits, rewards, death):  # type: ignore[no-untyped-def]
    """(law at the end, reward earned) of a pass over the pieces; rates[k, i] of class i on piece k."""
    size = law.size
    birth, gain = np.zeros(size), np.zeros(size)
    earned = 0.0
    for k in range(lengths.size):
        for s in range(size - 1):
            birth[s], gain[s] = 0.0, 0.0
            for i in range(rates.shape[1]):
                if admits[s, i]:
                    birth[s] += rates[k, i]
                    gain[s] += rates[k, i] * rewards[s, i]
        law, spent = _move(law, birth, death, lengths[k])
        for s in range(size):
            earned += spent[s] * gain[s]
    return law, earned


@compiled
def _stationary(birth, death):  # type: ignore[no-untyped-def]
    """The stationary law of a birth-death chain, upward with rescaling."""
    law = np.ones(birth.size)
    for s in range(1, law.size):
        law[s] = law[s - 1] * (birth[s - 1] / death[s])
        if law[s] > 1e100:
            for j in range(s):
                law[j] /= law[s]
            law[s] = 1.0
    total = 0.0
    for s in range(law.size):
        total += law[s]
    for s in range(law.size):
        law[s] /= total
    return law


@compiled
def _slow_part(residual, law, birth, death, length):  # type: ignore[no-untyped-def]
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
def _dot(a, b):  # type: ignore[no-untyped-def]
    """The inner product, in order."""
    total = 0.0
    for s in range(a.size):
        total += a[s] * b[s]
    return total


@compiled
def _mix(laws, moves, count):  # type: ignore[no-untyped-def]
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
def _cycle(rates, lengths, admits, rewards, death, most):  # type: ignore[no-untyped-def]
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
                birth[s] += mean[i] / period
    usual = _stationary(birth, death)
    law = usual.copy()
    laws, moves = np.zeros((REMEMBERED, size)), np.zeros((REMEMBERED, size))
    before, earned = math.inf, 0.0
    for n in range(most):
        end, earned = _pass(law, rates, lengths, admits, rewards, death)
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
        law = _mix(laws, moves, min(n + 1, REMEMBERED))
        total = 0.0
        for s in range(size):
            total += law[s]
        for s in range(size):
            law[s] /= total
    return earned, -1


def common_period(periods: set[float]) -> float:
    """The shortest time that is a whole number of each period."""
    longest = max(periods)
    multiple = 1
    for period in periods:
        ratio = Fraction(longest / period).limit_denominator(LARGEST_DENOMINATOR)
        if abs(float(ratio) - longest / period) > 1e-12 * float(ratio):
            raise ValueError(
                f"the periods {', '.join(f'{p:g}' for p in sorted(periods))} have no common period: "
                "name a horizon to follow the queue from empty up to it"
            )
        multiple = math.lcm(multiple, ratio.denominator)
    return multiple * longest


@dataclass(frozen=True)
class Drift:
    """A drifting queue, cut into pieces of constant rates: over its period, or from empty up to a horizon."""

    queue: Queue
    horizon: float | None = None  # None: the long run, of rates that repeat
    pieces: int = PIECES
    most_work: float = MOST_WORK  # steps of one pass, beyond which it is refused at once

    def __post_init__(self) -> None:
        if self.horizon is not None and not 0 < self.horizon < math.inf:
            raise ValueError(f"horizon must be a positive finite number, got {self.horizon!r}")

    @cached_property
    def period(self) -> float:
        """The length of time that is looked at: the horizon, or the classes' common period."""
        if self.horizon is not None:
            return self.horizon
        patterns = [c.pattern for c in self.queue.classes]
        if any(isinstance(p, Steps) and math.isinf(p.period) and len(set(p.factors)) > 1 for p in patterns):
            raise ValueError(
                "a queue whose rates do not come back to where they were needs a horizon, to be followed up to"
            )
        periods = {p.period for p in patterns if math.isfinite(p.period)}
        return common_period(periods) if periods else 1.0 / self.queue.service_rate

    @cached_property
    def edges(self) -> FloatArray:
        """The pieces' borders."""
        marks = [np.array([0.0, self.period])]
        asked = 0.0
        for pattern in (c.pattern for c in self.queue.classes):
            if isinstance(pattern, Sinusoid):
                inside = pattern.period / self.pieces * np.arange(self.pieces)
            elif isinstance(pattern, Steps):
                inside = np.array([0.0, *pattern.times])
            else:
                continue
            turns = 1.0 if math.isinf(pattern.period) else math.ceil(self.period / pattern.period)
            asked += turns * inside.size
            if asked > MOST_PIECES:
                raise ValueError(
                    f"rates that change {asked:.3g} times within {self.period:g} (the common period, or the horizon) "
                    f"are too many to follow, at most {MOST_PIECES}: periods must not be so far apart"
                )
            starts = np.arange(int(turns)) * (pattern.period if turns > 1 else 0.0)
            marks.append((starts[:, None] + inside[None, :]).ravel())
        times = np.unique(np.concatenate(marks))
        times = times[times < self.period * (1 - 1e-12)]
        kept = np.append(np.diff(times) > 1e-12 * self.period, True)  # 3 periods of 0.1 and one of 0.3 end together
        return np.append(np.where(times[kept] > 1e-12 * self.period, times[kept], 0.0), self.period)

    @cached_property
    def _smooth(self) -> bool:
        """Whether rates change within pieces."""
        return any(isinstance(c.pattern, Sinusoid) and c.pattern.amplitude > 0 for c in self.queue.classes)

    @cached_property
    def _meshes(self) -> list[tuple[FloatArray, FloatArray]]:
        """(rates by piece and class, lengths): of the pieces, and of their halves where rates change within them."""
        edges = [self.edges]
        if self._smooth:
            edges.append(np.sort(np.concatenate([self.edges, 0.5 * (self.edges[1:] + self.edges[:-1])])))
        meshes = []
        for borders in edges:
            middles = 0.5 * (borders[1:] + borders[:-1])
            rates = [c.arrival_rate * _factors(*c.pattern.code, middles) for c in self.queue.classes]
            meshes.append((np.column_stack(rates), np.diff(borders)))
        self._check_work(meshes)
        return meshes

    def _check_work(self, meshes: list[tuple[FloatArray, FloatArray]]) -> None:
        """Refuse at once what would take minutes for a single policy."""
        work = 0.0
        for rates, lengths in meshes:
            jumps = (rates.sum(axis=1) + self.queue.max_service_rate) * lengths
            work += float((jumps + 9.0 * np.sqrt(jumps) + 40.0).sum()) * self.queue.capacity
        if not work < self.most_work:
            raise ValueError(
                f"following this queue over {self.period:g} takes {work:.2g} steps for a single policy, and "
                f"{self.most_work:.0e} at most are allowed: take a smaller capacity or horizon, or closer periods"
            )

    def gain(self, policy: Policy) -> float:
        """Reward per unit of time under `policy`: in the long run, or from empty up to the horizon."""
        queue = self.queue
        shape = (queue.capacity, len(queue.classes))
        if policy.admits.shape != shape:
            raise ValueError(f"the policy is for {policy.admits.shape}, the queue is {shape}")
        meshes = self._meshes
        open_states = policy.admits.any(axis=1)
        size = queue.capacity if open_states.all() else int(open_states.argmin())  # never left upward, once empty
        if size == 0:
            return 0.0
        table = (policy.admits[:size], queue.rewards[:size], queue.service_rates[: size + 1])
        gains = []
        for rates, lengths in meshes:
            if self.horizon is None:
                earned, passes = _cycle(rates, lengths, *table, MOST_PASSES)
            else:
                law = np.zeros(size + 1)
                law[0] = 1.0
                earned, passes = _pass(law, rates, lengths, *table)[1], 1
            if passes < 0 or not math.isfinite(earned):
                raise SolverError("the law of the queue over a period did not come to repeat in double precision")
            gains.append(float(earned) / self.period)
        return gains[0] if len(gains) == 1 else (4.0 * gains[1] - gains[0]) / 3.0


_told: ContextVar[OnProgress | None] = ContextVar("told", default=None)


@contextmanager
def search_told(on_progress: OnProgress) -> Iterator[None]:
    """Within it, every search of `best_stationary` tells how far it is, also one that a controller begins."""
    token = _told.set(on_progress)
    try:
        yield
    finally:
        _told.reset(token)


def best_stationary(
    queue: Queue, horizon: float | None = None, *, on_progress: OnProgress | None = None
) -> tuple[Policy, float]:
    """The best trunk reservation policy found for a drifting queue, and its gain: by climbing from several starts.

    Starts: the best policies for the mean rates and for the rates of up to nine moments. From the two best of them,
    moves of one control level (in steps that double while they help) and of two levels by one, until none helps.
    horizon: None for the long run; else from empty up to it. on_progress: called with the number of policies tried and
    the best gain so far. Results are remembered: every replication of a study asks for the same queue's.
    """
    if on_progress is not None:
        with search_told(on_progress):
            return _best_stationary(queue, horizon)
    return _best_stationary(queue, horizon)


@lru_cache(maxsize=64)
def _best_stationary(queue: Queue, horizon: float | None) -> tuple[Policy, float]:
    from queueing_ucrl.solvers.solve import solve

    drift = Drift(queue, horizon)
    drift.gain(Policy.trunk_reservation((0,) * len(queue.classes), queue.capacity))  # too much work is told at once
    middles = 0.5 * (drift.edges[:-1] + drift.edges[1:])
    moments = [queue.on_average(), *(queue.at(float(t)) for t in middles[:: max(1, len(middles) // 8)])]
    starts = {(queue.capacity,) * len(queue.classes)}
    for moment in moments:
        try:
            starts.add(solve(moment).policy.control_levels)
        except SolverError:  # one start less
            continue
    known: dict[Levels, float] = {}
    on_progress = _told.get()

    def gain(levels: Levels) -> float:
        if levels not in known:
            known[levels] = drift.gain(Policy.trunk_reservation(levels, queue.capacity))
            if on_progress is not None:
                on_progress(len(known), max(known.values()))
        return known[levels]

    ranked = sorted(sorted(starts), key=gain, reverse=True)
    best = max((_climb(levels, queue.capacity, gain) for levels in ranked[:2]), key=gain)
    return Policy.trunk_reservation(best, queue.capacity), gain(best)


def _climb(levels: Levels, capacity: int, gain: Callable[[Levels], float]) -> Levels:
    """A local best: neither one level moved by anything tried nor two moved by one give a larger gain."""
    improved = True
    while improved:
        improved = False
        for i in range(len(levels)):
            for direction in (-1, 1):
                step = direction
                while True:
                    level = min(capacity, max(0, levels[i] + step))
                    moved = (*levels[:i], level, *levels[i + 1 :])
                    if level == levels[i] or gain(moved) <= gain(levels):
                        break
                    levels, improved, step = moved, True, 2 * step
        if not improved:
            for moved in _pairs(levels, capacity):
                if gain(moved) > gain(levels):
                    levels, improved = moved, True
                    break
    return levels


def _pairs(levels: Levels, capacity: int) -> Iterator[Levels]:
    """Two levels moved by one each."""
    for i in range(len(levels)):
        for j in range(i):
            for a in (-1, 1):
                for b in (-1, 1):
                    moved = list(levels)
                    moved[i] += a
                    moved[j] += b
                    if min(moved[i], moved[j]) >= 0 and max(moved[i], moved[j]) <= capacity:
                        yield tuple(moved)
