"""Classes that differ in service, where nobody waits: the best policy by the number of jobs of each class.

Without waiting room (as many servers as places) or with processor sharing the vector of counts n = (n_1 .. n_m) is a
Markov chain: up by admissions, down from class i at rate n_i mu_i, and with sharing times min(|n|, c) / |n|. There are
(S + m over m) states, ordered by |n|, so that moves are as long as two levels are wide. Nobody waits, so r_i = R_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from time import perf_counter

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.model.wide_policy import CountPolicy
from queueing_ucrl.solvers.controlled_chain import ControlledChain

MOST_STATES = 10**6


@dataclass(frozen=True)
class CountSolution(ReadOnlyArrays):
    """The best policy that sees how many jobs of each class there are, its worth, and how it was found."""

    policy: CountPolicy
    gain: float  # rho, reward per unit of time
    counts: IntArray  # the states, a row each: jobs of each class
    values: FloatArray  # h(n), 0 where nobody is there
    stationary: FloatArray  # probability of each state
    method: str
    iterations: int
    seconds: float
    chain: ControlledChain

    @cached_property
    def best_table(self) -> tuple[Policy, float]:
        """The best table found that sees only the number of jobs, and its gain, exact: a weaker comparator.

        By a search (see `ControlledChain.best_by_level`) from the table of the M/M/c/S queue of the same means, from
        admitting everybody, and from what the best policy does where it is most often.
        """
        level = self.counts.sum(axis=1)
        capacity, classes = int(level.max()), self.counts.shape[1]
        everybody = np.ones((capacity, classes), dtype=np.bool_)
        usual = np.zeros((capacity, classes))
        decisions = np.array([self.policy.at(count) for count in self.counts.tolist()])
        for probability, s, row in zip(self.stationary.tolist(), level.tolist(), decisions, strict=True):
            if s < capacity:
                usual[s] += probability * np.where(row, 1.0, -1.0)
        table, value = self.chain.best_by_level(level, [everybody, usual >= 0.0])
        return Policy(table), value.gain


def not_by_counts(system: System) -> str:
    """Why the counts of jobs are no Markov chain on which nobody waits, in words; "" where they are."""
    for c in system.classes:
        if c.arrivals is not None:
            return f"class {c.name!r} does not come by a Poisson process"
        if c.service is not None and not c.service.memoryless:
            return f"class {c.name!r}: its service times are not exponential"
    if system.drifts:
        return "the arrival rates change in time"
    shared = system.discipline == "processor-sharing"
    if system.unsteady and not shared:
        return system.unsteady
    if shared and system.environment is not None:
        return "an environment changes rates and servers"
    if not shared and system.capacity > system.most_servers:
        return "the classes' service times differ, and jobs wait: their order matters"
    return ""


def count_states(capacity: int, classes: int) -> IntArray:
    """All vectors of counts of at most `capacity` jobs, by their number."""
    total = 1
    for k in range(1, classes + 1):
        total = total * (capacity + k) // k
    if total > MOST_STATES:
        raise ValueError(
            f"the exact optimum is on {total:,} vectors of counts, at most {MOST_STATES:,}: take a smaller capacity or "
            "fewer classes, or `optimise` for the best table found by simulation"
        )
    found: list[tuple[int, ...]] = [()]
    for _ in range(classes):
        found = [(*n, k) for n in found for k in range(capacity - sum(n) + 1)]
    return np.array(sorted(found, key=lambda n: (sum(n), n)), dtype=np.int64).reshape(-1, classes)


def count_chain(system: System) -> tuple[ControlledChain, IntArray]:
    """The chain of counts, and its states."""
    reason = not_by_counts(system)
    if reason:
        raise ValueError(f"the counts of jobs are no Markov chain: {reason}")
    m, capacity = len(system.classes), system.capacity
    counts = count_states(capacity, m)
    number = {tuple(n): x for x, n in enumerate(counts.tolist())}
    up = np.full(counts.shape, -1, dtype=np.int64)
    moves, speeds = [], []
    service = [1.0 / system.law(i).mean for i in range(m)]
    servers = system.most_servers
    for x, i in product(range(len(counts)), range(m)):
        n = counts[x].tolist()
        jobs = sum(n)
        if jobs < capacity:
            up[x, i] = number[(*n[:i], n[i] + 1, *n[i + 1 :])]
        if n[i]:
            moves.append((x, number[(*n[:i], n[i] - 1, *n[i + 1 :])]))
            speeds.append(n[i] * service[i] * (min(jobs, servers) / jobs))
    rates = system.rates_by_state[counts.sum(axis=1)]
    rewards = np.tile(system.job_rewards, (len(counts), 1))
    return ControlledChain(up, rates, rewards, np.array(moves, dtype=np.int64), np.array(speeds)), counts


def solve_counts(system: System) -> CountSolution:
    """The best policy of a system in which nobody waits and classes may differ in service."""
    began = perf_counter()
    chain, counts = count_chain(system)
    admits, value, iterations = chain.best()
    policy = CountPolicy.of(counts, admits, system.capacity)
    return CountSolution(
        policy, value.gain, counts, value.values, value.stationary, "counts", iterations, perf_counter() - began, chain
    )
