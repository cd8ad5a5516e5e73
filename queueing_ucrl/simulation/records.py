"""What is written down in a run, whatever the engine.

Decisions are counted by state and class, as integers; rewards and regrets are computed from the counts, so both
engines, and the event log, give the same numbers to the last bit. Costs of sampled waits are added in the order in
which jobs join their servers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import IntArray, Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.solvers.solution import Solution

# waits are counted in bins of 1/64 octave, cut out of the bits of the double
_SHIFT = 46
_FIRST_BIN = (1023 - 60) << 6
_BINS = 120 << 6


class Waits:
    """Waits and their costs by class: counts, sums, and a histogram for quantiles; memory does not grow."""

    def __init__(self, queue: Queue) -> None:
        classes = len(queue.classes)
        costs = [c.holding_cost for c in queue.classes]
        distinct = [cost for k, cost in enumerate(costs) if cost not in costs[:k]]
        self.kinds = [(kind, [i for i, cost in enumerate(costs) if cost == kind]) for kind in distinct]
        self.cost_sum = np.zeros(classes)
        self.wait_sum = np.zeros(classes)
        self.histogram = np.zeros((classes, _BINS), dtype=np.int64)  # of positive waits
        self.started = np.zeros(classes, dtype=np.int64)

    def add(self, job_class: IntArray, wait: FloatArray) -> None:
        """Jobs that have joined a server after a positive wait, in that order."""
        cost = np.empty(wait.size)
        for kind, classes in self.kinds:
            chosen = slice(None) if len(self.kinds) == 1 else np.isin(job_class, classes)
            cost[chosen] = kind(wait[chosen])
        _add_up(job_class, wait, wait.view(np.int64), cost, self.cost_sum, self.wait_sum, self.histogram)

    def quantile(self, job_class: int, level: float) -> float:
        """The level-quantile of the class's waits (those that did not wait included), to about 1 %."""
        total = int(self.started[job_class])
        if total == 0:
            return float("nan")
        below = total - int(self.histogram[job_class].sum())  # waits of zero
        target = level * total
        if target <= below:
            return 0.0
        reached = below + np.cumsum(self.histogram[job_class])
        j = int(np.searchsorted(reached, target))
        before = int(reached[j - 1]) if j else below
        low, high = _bin_edge(j), _bin_edge(j + 1)
        return low + (high - low) * (target - before) / (int(reached[j]) - before)


def _bin_edge(j: int) -> float:
    return float(np.array([(j + _FIRST_BIN) << _SHIFT], dtype=np.int64).view(np.float64)[0])


@compiled
def _add_up(job_class, wait, bits, cost, cost_sum, wait_sum, histogram):  # type: ignore[no-untyped-def]
    """One by one in order, so that the sums do not depend on how the jobs are cut into blocks."""
    for n in range(wait.size):
        i = job_class[n]
        cost_sum[i] += cost[n]
        wait_sum[i] += wait[n]
        histogram[i, min(max((bits[n] >> _SHIFT) - _FIRST_BIN, 0), _BINS - 1)] += 1


@dataclass
class PolicySegment:
    """From when on a policy was in force."""

    start: float
    policy: Policy


@dataclass
class Counts:
    """Decisions so far, by state and class; blocked arrivals by class."""

    admitted: IntArray
    rejected: IntArray
    blocked: IntArray

    @classmethod
    def none(cls, queue: Queue) -> Counts:
        """Before the first arrival."""
        shape = (queue.capacity, len(queue.classes))
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape[1], dtype=np.int64))


@dataclass
class Snapshot:
    """What was counted up to a time of the grid."""

    time: float
    expected_reward: FloatArray  # sum of r_i(s) over admitted jobs, by class
    reward: FloatArray  # sum of R_i, by class
    cost: FloatArray  # sum of C_i(W) over jobs that joined a server, by class
    wrongly_admitted: FloatArray | None  # sum of g*(s) - r_i(s) over jobs the best policy would reject, by class
    wrongly_rejected: FloatArray | None  # sum of r_i(s) - g*(s) over jobs it would admit, by class; None: no optimum


# of the episode table; those of a belief have other names
EPISODE_COLUMNS = (
    "controller", "replication", "episode", "start", "end", "arrivals", "expected_reward", "control_levels",
    "trunk_reservation", "gain", "truth_inside",
)  # fmt: skip


@dataclass
class Episode:
    """One stretch between two reviews."""

    number: int
    start: float
    end: float
    arrivals: int
    expected_reward: float  # collected in it
    policy: Policy
    belief: dict[str, Any]
    truth_inside: bool | None


@dataclass
class Records:
    """All that is kept of a run."""

    queue: Queue
    best: Solution | None  # the best policy and its g*; None where no optimum is known
    waits: Waits
    counts: Counts
    snapshots: list[Snapshot] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    segments: list[PolicySegment] = field(default_factory=list)
    busy_time: float = 0.0  # server time spent serving

    def adopt(self, start: float, policy: Policy) -> None:
        """A policy is in force from now on."""
        self.segments.append(PolicySegment(start, policy))

    def close_episode(self, episode: Episode) -> None:
        """An episode has ended."""
        self.episodes.append(episode)

    @property
    def episode_count(self) -> int:
        """How many have ended."""
        return len(self.episodes)

    def snapshot(self, time: float) -> None:
        """Note where the run stands at a time of the grid. O(mS)."""
        self.snapshots.append(snapshot(self, time))


def wrong_decisions(
    queue: Queue, best: Solution | None, admitted: IntArray, rejected: IntArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """What jobs wrongly admitted and wrongly rejected have cost, by class; None where no optimum is known."""
    if best is None:
        return None, None
    distance = queue.rewards - best.relative_bias[:, None]
    right = best.policy.admits
    return (
        np.where(right, 0.0, admitted * -distance).sum(axis=0),
        np.where(right, rejected * distance, 0.0).sum(axis=0),
    )


def snapshot(records: Records, time: float) -> Snapshot:
    """Rewards and gap regrets that follow from the counts."""
    queue, counts = records.queue, records.counts
    admitted, rejected = wrong_decisions(queue, records.best, counts.admitted, counts.rejected)
    return Snapshot(
        time=time,
        expected_reward=(counts.admitted * queue.rewards).sum(axis=0),
        reward=counts.admitted.sum(axis=0) * np.array([c.reward for c in queue.classes]),
        cost=records.waits.cost_sum.copy(),
        wrongly_admitted=admitted,
        wrongly_rejected=rejected,
    )
