r"""What a stationary policy earns where arrival rates change in time.

Time is cut into pieces of constant rates, and the law of the queue is followed through them (`transient`). With a
horizon the queue starts empty and is followed up to it. Without one the rates must repeat, and the gain is that of the
long run.

Steps are exact. A sinusoid is cut into equal pieces with the rates of their middles, twice as many in a second pass,
and Richardson's (4 g_2n - g_n) / 3 removes the error of second order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import Sinusoid, Steps, pattern_factor
from queueing_ucrl.model.system import Queue
from queueing_ucrl.model.transient import MOST_PASSES, cycle, follow

PIECES = 64  # of a sinusoid's period
LARGEST_DENOMINATOR = 1000  # periods whose ratios need a larger one have no common period
MOST_PIECES = 10**6
MOST_WORK = 1e9  # steps of one pass: some seconds, and some 20 passes a policy


@compiled
def _factors(kind: int, data: FloatArray, times: FloatArray) -> FloatArray:
    """A pattern's factor at each of the times."""
    factors = np.empty(times.size)
    for k in range(times.size):
        factors[k] = pattern_factor(kind, data, times[k])
    return factors


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
        open_states = (policy.admits & (queue.joins[:-1] > 0.0)).any(axis=1)
        size = queue.capacity if open_states.all() else int(open_states.argmin())  # never left upward, once empty
        if size == 0:
            return 0.0
        table = (policy.admits[:size], queue.rewards[:size], queue.service_rates[: size + 1], queue.joins[:size])
        gains = []
        for rates, lengths in meshes:
            if self.horizon is None:
                earned, passes = cycle(rates, lengths, *table, MOST_PASSES)
            else:
                law = np.zeros(size + 1)
                law[0] = 1.0
                earned, passes = follow(law, rates, lengths, *table)[1], 1
            if passes < 0 or not math.isfinite(earned):
                raise SolverError("the law of the queue over a period did not come to repeat in double precision")
            gains.append(float(earned) / self.period)
        return gains[0] if len(gains) == 1 else (4.0 * gains[1] - gains[0]) / 3.0
