r"""Admission tables raced against each other by simulation, on common random numbers.

Replication r of every table has the same jobs, so that differences of two tables are known far better than what each
of them earns. A race runs all its tables on a block of replications, drops those that are worse than the leader, and
goes on with the rest. With n replications, K tables and at most B blocks, table k is dropped when

    mean_r (x_leader - x_k) > t s / sqrt(n),    t the quantile of Student's law at 1 - (1 - confidence) / ((K - 1) B):

by Bonferroni the best of them is dropped with probability 1 - confidence at most. The race is over when none that is
left can be better than the leader by more than `tolerance` times what the leader earns, to the same confidence.

What is run does not depend on the number of processes, nor on the order in which they answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from queueing_ucrl.accounts.steady_state import estimate
from queueing_ucrl.experiments.executors import TaskPool
from queueing_ucrl.learning.fixed_policies import FixedPolicy
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import run_once

BLOCK = 4  # replications that are run at a time
BLOCKS = 16  # at most

OnRuns = Callable[[int], None]  # is told how many runs were made


@dataclass(frozen=True)
class TableRun:
    """One run of a table; can be sent to another process."""

    system: System
    policy: Policy
    settings: RunSettings  # its grid: the end of the warm-up, or nothing
    replication: int


def earned_per_time(task: TableRun) -> float:
    """Rewards less costs of the waits as they were, per unit of time after the warm-up."""
    return run_once(task.system, FixedPolicy(task.policy), task.settings, task.replication).curve.earned_per_time()


class Gains:
    """What tables earn in replications; each is run once, and remembered."""

    def __init__(self, system: System, settings: RunSettings, pool: TaskPool, on_runs: OnRuns | None = None) -> None:
        self._system, self._settings, self._pool, self._on_runs = system, settings, pool, on_runs
        self._known: dict[tuple[Policy, int], float] = {}

    @property
    def runs(self) -> int:
        """How many were made."""
        return len(self._known)

    @property
    def tables(self) -> int:
        """How many different ones were run."""
        return len({policy for policy, _ in self._known})

    @property
    def replications(self) -> int:
        """The largest number that a table was run."""
        return len({replication for _, replication in self._known})

    def seen(self) -> dict[Policy, list[float]]:
        """What each table earned in replications 0, 1, .., as far as it was run in all of them; in the order run."""
        found: dict[Policy, list[float]] = {}
        for policy, replication in self._known:
            if replication == len(found.setdefault(policy, [])):
                found[policy].append(self._known[policy, replication])
        return found

    def of(self, policies: Sequence[Policy], replications: Iterable[int]) -> list[list[float]]:
        """A list for each policy: what it earns in each of the replications."""
        wanted = list(replications)
        keys = dict.fromkeys((policy, r) for r in wanted for policy in policies)  # in order, each once
        missing = [key for key in keys if key not in self._known]
        tasks = [TableRun(self._system, policy, self._settings, r) for policy, r in missing]
        if tasks:
            self._known.update(zip(missing, self._pool.map(earned_per_time, tasks), strict=True))
            if self._on_runs is not None:
                self._on_runs(len(tasks))
        return [[self._known[policy, r] for r in wanted] for policy in policies]


@dataclass(frozen=True)
class Race:
    """How a race went: who ran, who was dropped after how many replications, who was ahead at its end."""

    tables: tuple[Policy, ...]
    dropped: dict[Policy, int]  # those that were worse for sure, and after how many replications that was known
    replications: int  # at its end
    winner: Policy


def race(gains: Gains, tables: Sequence[Policy], *, tolerance: float, confidence: float) -> Policy:
    """The winner of a race."""
    return run_race(gains, tables, tolerance=tolerance, confidence=confidence).winner


def run_race(gains: Gains, tables: Sequence[Policy], *, tolerance: float, confidence: float) -> Race:
    """How the race goes; its winner is the table that earns most; of those that nothing tells apart, the first."""
    dropped: dict[Policy, int] = {}
    alive = list(dict.fromkeys(tables))
    share = (1.0 - confidence) / (max(1, len(alive) - 1) * BLOCKS)
    for block in range(1, BLOCKS + 1):
        found = gains.of(alive, range(block * BLOCK))
        totals = [math.fsum(values) for values in found]
        first = max(range(len(alive)), key=lambda k: (totals[k], -k))
        ahead = tolerance * abs(totals[first]) / (block * BLOCK)
        left, open_ = [], False
        for k, table in enumerate(alive):
            lead = estimate([a - b for a, b in zip(found[first], found[k], strict=True)], 1.0 - 2.0 * share)
            if k == first or lead.low <= 0.0:
                left.append(table)
                open_ |= k != first and -lead.low > ahead
            else:
                dropped[table] = block * BLOCK
        leader, alive = alive[first], left
        if not open_:
            break
    return Race(tuple(dict.fromkeys(tables)), dropped, block * BLOCK, leader)
