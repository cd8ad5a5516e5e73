"""What the best policy would do with the job at the door, and what it costs not to, where the optimum is known.

    M/M/c/S                     row s                    gap  |r_i(s) - g*(s)|
    in an observed environment  row s + S e              gap  |r_i(s, e) - g*(s, e)|
    by counts of each class     row sum_i n_i S^i        gap  |r_i - (h*(n) - h*(n + e_i))|
    with rates that repeat      row s                    gap  |r_i(s) - g*(s, t)|

The gaps of the wrong decisions of an episode add up to the account "gap" of `simulate`, where that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import Sinusoid
from queueing_ucrl.model.system import System
from queueing_ucrl.solvers.beyond import solve_beyond
from queueing_ucrl.solvers.environment_chain import EnvironmentSolution, environment_chain
from queueing_ucrl.solvers.multi_count import CountSolution
from queueing_ucrl.solvers.periodic import PeriodicSolution, solve_periodic
from queueing_ucrl.solvers.repeating_chain import RepeatingChain

MOST_WORK = 1e7  # steps x states x classes of a period, up to which its best policy in time is found: in seconds


@dataclass(frozen=True)
class Advice:
    """Of each row and class: whether the best policy admits, and what the other decision loses."""

    policy: Policy
    admits: BoolArray
    gap: FloatArray

    def of(self, row: IntArray, job_class: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray]:
        """(the best action, what the other one loses) for those at these doors; with nobody (-1): 0 and 0."""
        entry = row * self.admits.shape[1] + job_class
        nobody = job_class < 0
        some = bool(nobody.any())
        if some:
            entry = np.where(nobody, 0, entry)
        best, gap = self.admits.take(entry).astype(np.int64), self.gap.take(entry)
        if some:
            best[nobody], gap[nobody] = 0, 0.0
        return best, gap


@dataclass(frozen=True)
class AdviceInTime:
    """Of a Markov queue whose rates repeat: the policy in force, and what the other decision loses at that time.

    g*(s, t) is known at the solver's steps, and so is its slope, by the optimality equation

        -dh(s)/dt = sum_i lambda_i(t) b_i(s) (r_i(s) - g(s))^+ + d(s) g(s - 1) - rho,    g(s) = h(s) - h(s + 1)

    with d(s) the rate at which jobs leave. Between two steps it is Hermite's cubic, of the order of the steps; less
    exact in a step within which the best policy changes.
    """

    system: System
    best: PeriodicSolution

    @property
    def policy(self) -> Policy:
        """One whose rows are those of all of them."""
        return self.best.policies[0]

    @cached_property
    def _admits(self) -> BoolArray:
        return np.array([policy.admits for policy in self.best.policies])

    @cached_property
    def _rates(self) -> FloatArray:
        """Of each step, at its begin and its end: lambda_i, as it is within the step."""
        times = self.best.times
        ends = np.stack([times[:-1], times[1:]], axis=1)
        rates = np.empty((*ends.shape, len(self.system.classes)))
        for i, c in enumerate(self.system.classes):
            within = (
                ends if isinstance(c.pattern, Sinusoid) else np.broadcast_to(ends.mean(axis=1)[:, None], ends.shape)
            )
            factors = [c.pattern.factor(t) for t in within.ravel().tolist()]
            rates[..., i] = c.arrival_rate * np.array(factors).reshape(ends.shape)
        return rates

    @cached_property
    def _departing(self) -> FloatArray:
        return np.array(self.system.queue.service_rates)

    def of(self, row: IntArray, job_class: IntArray, time: FloatArray) -> tuple[IntArray, FloatArray]:
        """(the best action, what the other one loses) for those at these doors; with nobody (-1): 0 and 0."""
        best, somebody = self.best, job_class >= 0
        s, i = np.where(somebody, row, 0), np.where(somebody, job_class, 0)
        phase = time - best.period * np.floor(time / best.period)
        stretch = np.searchsorted(best.edges[1:-1], phase, side="right")
        admits = self._admits[stretch, s, i] & somebody
        gap = np.abs(self.system.rewards[s, i] - self._relative_bias(s, phase))
        return admits.astype(np.int64), np.where(somebody, gap, 0.0)

    def _relative_bias(self, s: IntArray, phase: FloatArray) -> FloatArray:
        """g*(s, t)."""
        times, values = self.best.times, self.best.relative_bias
        k = np.minimum(np.searchsorted(times, phase, side="right"), len(times) - 1) - 1
        length = times[k + 1] - times[k]
        u = (phase - times[k]) / length
        low, high = values[k, s], values[k + 1, s]
        a, b = length * self._slope(k, 0, s), length * self._slope(k, 1, s)
        curved: FloatArray = low + u * (a + u * ((3.0 * (high - low) - 2.0 * a - b) + u * (2.0 * (low - high) + a + b)))
        return curved

    def _slope(self, k: IntArray, end: int, s: IntArray) -> FloatArray:
        """dg*(s, t)/dt at an end of step k: what -dh/dt is one state further up, less what it is here."""
        return self._fall(k, end, s + 1) - self._fall(k, end, s)

    def _fall(self, k: IntArray, end: int, s: IntArray) -> FloatArray:
        """-dh*(s, t)/dt, with rho."""
        bias, step, room = self.best.relative_bias, k + end, s < self.system.capacity
        inside = np.where(room, s, 0)
        fall: FloatArray = self._departing[s] * np.where(s > 0, bias[step, s - 1], 0.0)
        for i in range(len(self.system.classes)):
            margin = np.maximum(self.system.rewards[inside, i] - bias[step, inside], 0.0)
            fall = fall + np.where(room, self._rates[k, end, i] * self.system.joins[inside, i] * margin, 0.0)
        return fall


def _advice(policy: Policy, margin: FloatArray) -> Advice:
    """margin: what admitting is worth more than rejecting."""
    return Advice(policy, policy.admits, np.where(policy.admits, margin, -margin))


def best_advice(comparator: Comparator) -> Advice | AdviceInTime | None:
    """None where no optimum is known."""
    if comparator.system.drifts:
        return _in_time(comparator.system)
    if comparator.best is not None:
        margin = comparator.system.rewards - comparator.best.relative_bias[:, None]
        return _advice(comparator.best.policy, margin)
    solution = solve_beyond(comparator.system)
    if isinstance(solution, EnvironmentSolution):
        states, S = solution.relative_bias.shape
        rewards = environment_chain(comparator.system).rewards.reshape(S + 1, states, -1)[:-1].transpose(1, 0, 2)
        margin = rewards - solution.relative_bias[:, :, None]
        return _advice(solution.policy, margin.reshape(states * S, -1))
    if isinstance(solution, CountSolution):
        return _by_counts(solution)
    return None


def _in_time(system: System) -> AdviceInTime | None:
    """None where the rates do not repeat, the queue is no Markov chain, or the period is too long to be solved here."""
    if system.not_markov:
        return None
    try:
        long = RepeatingChain.of(system).work(1) > MOST_WORK
        return None if long else AdviceInTime(system, solve_periodic(system))
    except (ValueError, SolverError):
        return None


def _by_counts(solution: CountSolution) -> Advice:
    chain, policy = solution.chain, solution.policy
    margin = np.zeros(policy.admits.shape)
    inside = chain.up[:, 0] >= 0
    rows = solution.counts[inside] @ np.array(policy.class_strides, dtype=np.int64)
    up = chain.up[inside]
    margin[rows] = chain.rewards[inside] + (solution.values[up] - solution.values[inside][:, None])
    return _advice(policy, margin)
