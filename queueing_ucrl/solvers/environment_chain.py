r"""The best policy of a system in an observed environment: policy iteration on (s, e).

In state e of the environment class i comes at rate lambda_i f_i(e), c(e) servers are on duty, and e changes to f at
rate q(e, f). Servers hand their jobs over when they leave, so that min(s, c(e)) are busy at all times. States are
ordered (s, e), s first: a move is as long as the environment has states.

r_i(s, e) = R_i - E[C_i(W)] depends on e only where servers do. Then it is known for costs by moments or transforms of
the wait, (`wait_costs`): w(s, e) of a job that joins in (s, e) solves

    source + min(s, c(e)) mu (w(s-1, e) - w(s, e)) + sum_f q(e, f) (w(s, f) - w(s, e)) = 0,   w = 0 where s < c(e).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.system import System
from queueing_ucrl.model.wide_policy import EnvironmentPolicy
from queueing_ucrl.solvers.controlled_chain import ControlledChain, absorbed
from queueing_ucrl.solvers.wait_costs import TRANSFORM, wait_costs


@dataclass(frozen=True)
class EnvironmentSolution(ReadOnlyArrays):
    """The best policy that sees the environment, its worth, and how it was found."""

    policy: EnvironmentPolicy
    gain: float  # rho, reward per unit of time
    relative_bias: FloatArray  # g(s, e) = h(s, e) - h(s + 1, e): a row a state of the environment
    stationary: FloatArray  # probability of (s, e): a row a state of the environment
    method: str
    iterations: int
    seconds: float


def not_by_environment(system: System) -> str:
    """Why (s, e) is no Markov chain, in words; "" where it is."""
    if system.environment is None:
        return "there is no environment"
    if system.drifts:
        return "the arrival rates change in time"
    without = replace(system, environment=None, servers=system.most_servers).not_markov
    if without:
        return without
    if system.environment.servers is not None and system.patience_of(0) is not None:
        return "jobs that were handed over no longer give up, so that the number of jobs does not say how many may"
    return ""


def environment_chain(system: System) -> ControlledChain:
    """The chain of (s, e), state s K + e."""
    reason = not_by_environment(system)
    if reason:
        raise ValueError(f"the number of jobs and the environment are no Markov chain: {reason}")
    environment = system.environment
    assert environment is not None
    K, S, m = environment.states, system.capacity, len(system.classes)
    alone = replace(system, environment=None, servers=system.most_servers).queue
    duty = environment.servers if environment.servers is not None else (system.most_servers,) * K
    up = np.full(((S + 1) * K, m), -1, dtype=np.int64)
    rates = np.zeros(((S + 1) * K, m))
    moves, speeds = [], []
    for s in range(S + 1):
        for e in range(K):
            x = s * K + e
            if s < S:
                up[x] = x + K
            factors = [float(environment.factors(i)[e]) for i in range(m)]
            rates[x] = system.arrival_rates * factors * system.joins[s]
            leaving = float(alone.service_rates[s])  # with those who give up
            if environment.servers is not None:
                leaving = min(s, duty[e]) * alone.service_rate
            for y, speed in [(x - K, leaving), *((s * K + f, float(environment.rates[e, f])) for f in range(K))]:
                if speed > 0.0:
                    moves.append((x, y))
                    speeds.append(speed)
    ways, pace = np.array(moves, dtype=np.int64), np.array(speeds)
    if environment.servers is None:
        rewards = np.repeat(np.vstack([alone.rewards, np.zeros((1, m))]), K, axis=0)
    else:
        waits = np.array([[s >= duty[e] for e in range(K)] for s in range(S + 1)]).ravel()
        rewards = _rewards(system, ways, pace, waits)
    return ControlledChain(up, rates, rewards, ways, pace)


def _rewards(system: System, moves: np.ndarray, speeds: FloatArray, waits: np.ndarray) -> FloatArray:
    """r_i(s, e) where the wait depends on the servers of the future."""
    weights, kinds, numbers = wait_costs(system)
    size = waits.size
    number = np.cumsum(waits) - 1  # of the states in which a job waits
    inside = waits[moves[:, 0]] & waits[moves[:, 1]]
    over = waits[moves[:, 0]] & ~waits[moves[:, 1]]
    stops = np.zeros(int(waits.sum()))
    for (x, _), speed in zip(moves[over].tolist(), speeds[over].tolist(), strict=True):
        stops[number[x]] += speed
    rewards = np.tile(system.job_rewards, (size, 1))
    before = np.ones(stops.size)
    for q, (kind, value) in enumerate(zip(kinds.tolist(), numbers.tolist(), strict=True)):
        source, more = value * before, stops
        if kind == TRANSFORM:
            source, more = np.full(stops.size, value), stops + value
        before = absorbed(stops.size, number[moves[inside]], speeds[inside], source, more) if stops.size else before
        rewards[waits] -= before[:, None] * weights[:, q]
    return rewards


def solve_environment(system: System) -> EnvironmentSolution:
    """The best policy of a system in an observed environment."""
    began = perf_counter()
    chain = environment_chain(system)
    admits, value, iterations = chain.best()
    assert system.environment is not None
    K, S = system.environment.states, system.capacity
    tables = admits.reshape(S + 1, K, -1)[:-1].transpose(1, 0, 2).reshape(K * S, -1)
    h = value.values.reshape(S + 1, K).T
    return EnvironmentSolution(
        EnvironmentPolicy(tables, S),
        value.gain,
        h[:, :-1] - h[:, 1:],
        value.stationary.reshape(S + 1, K).T,
        "environment",
        iterations,
        perf_counter() - began,
    )
