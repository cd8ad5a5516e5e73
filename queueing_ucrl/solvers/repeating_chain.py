"""A system whose arrival rates and servers on duty repeat, as a chain in time: pieces without jumps, who goes where.

The state is the number s of jobs. Where servers leave at the end of a shift only once their job is finished, it is
(s, b) with b busy servers: while more are busy than on duty nobody starts; else b = min(s, c(t)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.errors import SolverError
from queueing_ucrl.model.drift_evaluation import common_period
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import Sinusoid, Steps
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import System
from queueing_ucrl.solvers.backward import Chain, Pieces, Worth
from queueing_ucrl.solvers.solve import solve
from queueing_ucrl.solvers.wait_costs import giving_up_rate, wait_costs

STEPS_A_TURN = 64  # of a sinusoid, at least
STEP = 0.25  # of the mean time between events, at most
MOST_WORK = 1e9  # steps x states x classes of one sweep: some ten seconds
MOST_PIECES = 10**5


@dataclass(frozen=True)
class RepeatingChain:
    """A system cut at the jumps of its rates and servers."""

    system: System
    period: float
    edges: FloatArray  # of pieces, from 0 to the period
    counts: IntArray  # servers on duty, by piece
    states_of: tuple[tuple[int, int], ...]  # (jobs, busy servers); busy -1 where the number of jobs says it
    chain: Chain  # a row for each of the numbers of servers in `on_duty`
    on_duty: tuple[int, ...]
    worth: Worth

    @classmethod
    def of(cls, system: System, cuts: Sequence[float] = ()) -> RepeatingChain:
        """cuts: more times at which pieces end."""
        shifts = system.servers if isinstance(system.servers, Shifts) else None
        steady = system if shifts is None else replace(system, servers=shifts.most)
        if steady.not_markov:
            raise ValueError(f"no best policy in time is known: {steady.not_markov}")
        period = _period(system, shifts)
        edges = _edges(system, shifts, period, cuts)
        middles = 0.5 * (edges[1:] + edges[:-1])
        if shifts is None:
            counts = np.full(middles.size, system.most_servers)
            states, chain, worth = _steady_states(system), _birth_death(system), _steady_worth(system)
        else:
            counts = np.array([shifts.at(t) for t in middles.tolist()])
            states = _states(system, shifts)
            chain = _shift_chain(system, shifts, states)
            worth = _shift_worth(system, states)
        found = cls(system, period, edges, counts, states, chain, tuple(sorted(set(counts.tolist()))), worth)
        if found.work(1) > MOST_WORK:
            raise ValueError(
                f"the best policy in time takes {found.work(1):.2g} steps for each sweep over the period {period:g}, "
                f"at most {MOST_WORK:g}: take a smaller capacity or closer periods"
            )
        return found

    @property
    def states(self) -> int:
        """Of the chain."""
        return len(self.states_of)

    @property
    def is_birth_death(self) -> bool:
        """Whether the state is the number of jobs."""
        return self.states == self.system.capacity + 1

    @cached_property
    def largest_gain(self) -> float:
        """sum_i lambda_i max_s r_i(s)^+, at the rates' peaks: what numbers are measured against."""
        rates = (c.peak_rate for c in self.system.classes)
        best = np.maximum(self.worth.rewards, 0.0).max(axis=0).tolist()
        return sum(rate * reward for rate, reward in zip(rates, best, strict=True))

    @cached_property
    def _fastest(self) -> float:
        """The largest rate at which any state is left."""
        leaving = float((self.chain.death + self.chain.giving_up).max())
        return sum(c.peak_rate for c in self.system.classes) + leaving

    def _steps(self) -> FloatArray:
        lengths = np.diff(self.edges)
        turns = [c.pattern.period for c in self.system.classes if isinstance(c.pattern, Sinusoid)]
        longest = min([STEP / self._fastest, *(turn / STEPS_A_TURN for turn in turns)])
        return np.maximum(np.ceil(lengths / longest), 2.0)

    def work(self, refinement: int) -> float:
        """Steps x states x classes of a sweep."""
        return refinement * float(self._steps().sum()) * self.worth.rewards.size

    def pieces(self, refinement: int) -> Pieces:
        """With `refinement` times as many steps as needed."""
        classes = self.system.classes
        middles = 0.5 * (self.edges[1:] + self.edges[:-1])
        level = np.empty((middles.size, len(classes)))
        swing, speed, phase = np.zeros((3, len(classes)))
        for i, c in enumerate(classes):
            if isinstance(c.pattern, Sinusoid):
                level[:, i] = c.arrival_rate
                swing[i] = c.arrival_rate * c.pattern.amplitude
                speed[i], phase[i] = 2.0 * math.pi / c.pattern.period, c.pattern.phase
            else:
                level[:, i] = [c.arrival_rate * c.pattern.factor(t) for t in middles.tolist()]
        steps = refinement * self._steps().astype(np.int64)
        rows = np.array([self.on_duty.index(c) for c in self.counts.tolist()])
        return Pieces(self.edges, steps, rows, level, swing, speed, phase)

    def start(self) -> FloatArray:
        """h to begin with: of the best policy for the mean rates and servers."""
        h = np.zeros(self.system.capacity + 1)
        try:
            bias = solve(self.system.queue.on_average()).relative_bias
        except SolverError:
            bias = np.zeros(self.system.capacity)
        for s in range(bias.size):
            h[s + 1] = h[s] - bias[s]
        if not np.all(np.isfinite(h)):
            h[:] = 0.0
        return h[[s for s, _ in self.states_of]]

    def usual(self, time: float) -> IntArray:
        """The states s = 0 .. S with as many servers busy as there are jobs or servers on duty just after `time`."""
        if self.is_birth_death:
            return np.arange(self.states)
        piece = min(int(np.searchsorted(self.edges, time, side="right")), self.counts.size) - 1
        count = int(self.counts[piece])
        number = {state: x for x, state in enumerate(self.states_of)}
        return np.array([number[s, min(s, count)] for s in range(self.system.capacity + 1)])

    def policy(self, admits: BoolArray, time: float) -> Policy:
        """Decisions by state as a policy by the number of jobs."""
        return Policy(admits[self.usual(time)[:-1]])

    def table(self, policy: Policy) -> BoolArray:
        """A policy by the number of jobs as decisions by state."""
        shape = (self.system.capacity, len(self.system.classes))
        if policy.admits.shape != shape:
            raise ValueError(f"the policy is for {policy.admits.shape}, the system is {shape}")
        padded = np.vstack([policy.admits, np.zeros((1, shape[1]), dtype=np.bool_)])
        return padded[[s for s, _ in self.states_of]]


def _period(system: System, shifts: Shifts | None) -> float:
    """After which all begins again."""
    again = "does not come back to where it was; a best policy in time is for what repeats, with a period"
    periods = set()
    for c in system.classes:
        if isinstance(c.pattern, Steps) and math.isinf(c.pattern.period) and len(set(c.pattern.factors)) > 1:
            raise ValueError(f"class {c.name!r}: its arrival rate {again}")
        periods.add(c.pattern.period)
    if shifts is not None:
        if math.isinf(shifts.period) and len(set(shifts.counts)) > 1:
            raise ValueError(f"the number of servers on duty {again}")
        periods.add(shifts.period)
    finite = {p for p in periods if math.isfinite(p)}
    try:
        return common_period(finite) if finite else system.law(0).mean
    except ValueError:
        named = ", ".join(f"{p:g}" for p in sorted(finite))
        raise ValueError(
            f"the periods {named} have no common period: a best policy in time is for what repeats together"
        ) from None


def _edges(system: System, shifts: Shifts | None, period: float, cuts: Sequence[float]) -> FloatArray:
    """Where pieces begin and end: 0, the jumps, the period."""
    marks = {0.0, *(t for t in cuts if 0 < t < period)}
    changing: list[Steps | Shifts] = [c.pattern for c in system.classes if isinstance(c.pattern, Steps)]
    changing += [] if shifts is None else [shifts]
    for part in changing:
        if math.isfinite(part.period):
            turns = round(period / part.period)
            if turns * (len(part.times) + 1) > MOST_PIECES:
                raise ValueError(
                    f"rates that change {turns * (len(part.times) + 1):.3g} times within the common period {period:g} "
                    f"are too many, at most {MOST_PIECES}: take closer periods"
                )
            marks |= {turn * part.period + t for turn in range(turns) for t in (0.0, *part.times)}
    times: list[float] = []
    for t in sorted(marks):
        if (not times or t - times[-1] > 1e-12 * period) and t < period * (1 - 1e-12):
            times.append(t)
    return np.array([*times, period])


def _steady_states(system: System) -> tuple[tuple[int, int], ...]:
    return tuple((s, -1) for s in range(system.capacity + 1))


def _birth_death(system: System) -> Chain:
    """s -> s + 1 and s -> s - 1."""
    s = np.arange(system.capacity + 1)
    always = np.ones((1, s.size), dtype=np.bool_)
    return Chain(
        up=np.append(s[1:], -1)[None, :],
        down=np.maximum(s - 1, 0)[None, :],
        lost=np.maximum(s - 1, 0)[None, :],
        begins=s[None, :].copy(),
        death=np.array(system.queue.service_rates)[None, :],
        giving_up=np.zeros((1, s.size)),
        live=always,
        waits=~always,
    )


def _steady_worth(system: System) -> Worth:
    """r_i(s), the same at all times."""
    rewards = np.vstack([system.rewards, np.zeros((1, len(system.classes)))])
    none = np.zeros((len(system.classes), 0))
    scale = float(np.maximum(rewards, 0.0).max())
    return Worth(rewards, system.joins, none, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0, scale)


def _states(system: System, shifts: Shifts) -> tuple[tuple[int, int], ...]:
    if shifts.leaving == "hand-over":
        return _steady_states(system)
    least, most = min(shifts.counts), shifts.most
    return tuple((s, b) for s in range(system.capacity + 1) for b in range(min(s, least), min(s, most) + 1))


def _shift_chain(system: System, shifts: Shifts, states: tuple[tuple[int, int], ...]) -> Chain:
    """A row for each number of servers on duty."""
    mu, theta = 1.0 / system.law(0).mean, giving_up_rate(system)
    if theta and shifts.leaving == "hand-over":
        raise ValueError(
            "no best policy in time is known for jobs that give up and servers that hand over: a job handed over has "
            'begun, and no longer gives up; take leaving = "finish"'
        )
    number = {state: x for x, state in enumerate(states)}
    on_duty = sorted(set(shifts.counts))
    whole = [np.zeros((len(on_duty), len(states)), dtype=np.int64) for _ in range(4)]
    rates = np.zeros((2, len(on_duty), len(states)))
    flags = np.zeros((2, len(on_duty), len(states)), dtype=np.bool_)
    up, down, lost, begins = whole
    for row, c in enumerate(on_duty):
        for x, (s, known) in enumerate(states):
            b = min(s, c) if known < 0 else known

            def at(jobs: int, busy: int, seen: bool = known >= 0) -> int:
                return number[jobs, busy if seen else -1]

            begins[row, x] = at(s, max(b, min(s, c)))
            flags[0, row, x] = b >= min(s, c)
            flags[1, row, x] = b >= c
            if not flags[0, row, x]:
                up[row, x] = -1
                continue
            up[row, x] = -1 if s == system.capacity else at(s + 1, b + 1 if b < c else b)
            rates[0, row, x], rates[1, row, x] = b * mu, (s - b) * theta
            down[row, x] = at(s - 1, b - 1 if b > c else min(s - 1, c)) if b else x
            lost[row, x] = at(s - 1, b) if s > b else x
    return Chain(up, down, lost, begins, rates[0], rates[1], flags[0], flags[1])


def _shift_worth(system: System, states: tuple[tuple[int, int], ...]) -> Worth:
    """R_i less what a wait costs that depends on the hour."""
    weights, kinds, numbers = wait_costs(system)
    rewards = np.tile(system.job_rewards, (len(states), 1))
    joins = np.ascontiguousarray(system.joins[[s for s, _ in states]])
    return Worth(rewards, joins, weights, kinds, numbers, giving_up_rate(system), float(rewards.max()))
