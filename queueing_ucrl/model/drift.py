r"""What a stationary policy earns where arrival rates change in time, exactly up to the division of time into pieces.

On a piece with constant rates the law moves by pi -> pi E, E = e^{Q dt}, and earns pi v with

    v = \int_0^dt e^{Qt} R dt = rho dt + h - E h,

rho and h the gain and bias of the policy under these rates (by Dynkin's formula; no long integral). With a period the
law at its start solves pi = pi E_1 E_2 .. E_n; without one the queue starts empty and is followed to the horizon. Steps
are exact, a sinusoid is cut into equal pieces with the rate of their middles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import expm

from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.birth_death import evaluate
from queueing_ucrl.model.patterns import Sinusoid, Steps
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import AdmissionModel, Queue
from queueing_ucrl.model.waits import FloatArray

Levels = tuple[int, ...]

PIECES = 64  # of a sinusoid's period


@dataclass(frozen=True)
class Drift:
    """A drifting queue, cut into pieces of constant rates over its period (or up to a horizon)."""

    queue: Queue
    horizon: float | None = None
    pieces: int = PIECES

    @cached_property
    def period(self) -> float:
        """The length of time that is looked at: the classes' common period, or the horizon."""
        periods = {c.pattern.period for c in self.queue.classes if math.isfinite(c.pattern.period)}
        endless = any(isinstance(c.pattern, Steps) and math.isinf(c.pattern.period) for c in self.queue.classes)
        if endless or not periods:
            if self.horizon is None:
                raise ValueError("a queue whose rates do not come back to where they were needs a horizon")
            return self.horizon
        longest = max(periods)
        if any(abs(longest / p - round(longest / p)) > 1e-9 for p in periods):
            raise ValueError(f"the classes' periods {sorted(periods)} must divide the longest of them")
        return longest

    @property
    def repeats(self) -> bool:
        """Whether the pieces come again and again."""
        return all(math.isfinite(c.pattern.period) for c in self.queue.classes if c.pattern.ceiling != c.pattern.mean)

    @cached_property
    def edges(self) -> FloatArray:
        """The pieces' borders."""
        marks = {0.0, self.period}
        for c in self.queue.classes:
            length = min(c.pattern.period, self.period)
            for k in range(round(self.period / length)):
                if isinstance(c.pattern, Steps):
                    marks |= {k * length + t for t in c.pattern.times if k * length + t < self.period}
                elif isinstance(c.pattern, Sinusoid):
                    marks |= {(k + j / self.pieces) * length for j in range(self.pieces)}
        return np.array(sorted(marks))

    def _piece(self, policy: Policy, start: float, end: float) -> tuple[FloatArray, FloatArray]:
        """(E, v) of one piece."""
        queue = self.queue
        S = queue.capacity
        middle = 0.5 * (start + end)
        rates = np.array([c.arrival_rate * c.pattern.factor(middle) for c in queue.classes])
        model = AdmissionModel(np.tile(rates, (S, 1)), queue.rewards, queue.service_rates)
        value = evaluate(model, policy)
        bias = np.concatenate([[0.0], -np.cumsum(value.relative_bias)])  # h(s) - h(0)
        if not np.all(np.isfinite(bias)):
            raise SolverError("the bias of a policy leaves the range of a double: this queue is too large for `Drift`")
        birth = np.append((rates * policy.admits).sum(axis=1), 0.0)
        s = np.arange(S)
        generator = np.diag(-(birth + queue.service_rates))
        generator[s, s + 1] = birth[:-1]
        generator[s + 1, s] = queue.service_rates[1:]
        moved = np.maximum(expm(generator * (end - start)), 0.0)
        moved /= moved.sum(axis=1, keepdims=True)  # what rounding took from the rows
        return moved, value.gain * (end - start) + bias - moved @ bias

    def gain(self, policy: Policy) -> float:
        """Reward per unit of time under `policy`: in the long run, or without a period up to the horizon from empty."""
        steps = [self._piece(policy, a, b) for a, b in zip(self.edges, self.edges[1:], strict=False)]
        states = self.queue.capacity + 1
        law = np.zeros(states)
        law[0] = 1.0
        if self.repeats:
            cycle = np.eye(states)
            for moved, _ in steps:
                cycle = cycle @ moved
            equations = np.vstack([(cycle.T - np.eye(states))[:-1], np.ones(states)])
            law = np.linalg.solve(equations, np.append(np.zeros(states - 1), 1.0))
        earned = 0.0
        for moved, reward in steps:
            earned += float(law @ reward)
            law = law @ moved
        return earned / self.period


@lru_cache(maxsize=64)  # every replication of a study asks for the same queue's
def best_stationary(queue: Queue, horizon: float | None = None) -> tuple[Policy, float]:
    """The best trunk reservation policy of a drifting queue, and its gain: by climbing from several starts.

    Starts: the best policies for the mean rates and for the rates of each piece. Each start climbs by moving one
    control level at a time, in steps that double while they help.
    """
    from queueing_ucrl.solvers.solve import solve

    drift = Drift(queue, horizon)
    middles = 0.5 * (drift.edges[:-1] + drift.edges[1:])
    starts = {solve(queue.on_average()).policy.control_levels}
    starts |= {solve(queue.at(float(t))).policy.control_levels for t in middles[:: max(1, len(middles) // 8)]}
    known: dict[tuple[int, ...], float] = {}

    def gain(levels: tuple[int, ...]) -> float:
        if levels not in known:
            known[levels] = drift.gain(Policy.trunk_reservation(levels, queue.capacity))
        return known[levels]

    ranked = sorted(starts, key=gain, reverse=True)
    best = max((_climb(levels, queue.capacity, gain) for levels in ranked[:2]), key=gain)
    return Policy.trunk_reservation(best, queue.capacity), gain(best)


def _climb(levels: Levels, capacity: int, gain: Callable[[Levels], float]) -> Levels:
    """A local best: no level can be moved alone for a larger gain."""
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
    return levels
