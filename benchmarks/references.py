"""What the solvers are compared with: policy iteration by a dense solve, and the `mdpsolver` package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl.solvers.policy_iteration import starting_table

AGREEMENT = 1e-9  # of gains, relative


def check_agreement(name: str, found: float, expected: float, tolerance: float = AGREEMENT) -> None:
    """A comparison of times means nothing if the answers differ."""
    if not abs(found - expected) <= tolerance * abs(expected):
        raise ArithmeticError(f"{name}: gain {found}, expected {expected}")


def dense_policy_iteration(queue: qu.Queue) -> tuple[float, int]:
    """Howard's algorithm as in a textbook: the S + 1 evaluation equations by numpy.linalg.solve; (gain, iterations).

    It starts where PI-B starts. With h(S) = 0, whose column rho takes, and q the generator under the policy, the
    equations are rho - sum_t q(s, t) h(t) = R(s).
    """
    model = queue.model
    S = model.capacity
    s = np.arange(S)
    admits = starting_table(model)
    for iteration in range(1, 1000):
        chosen = np.where(admits, model.arrival_rates, 0.0)
        generator = np.zeros((S + 1, S + 1))
        generator[s, s + 1] = chosen.sum(axis=1)
        generator[s + 1, s] = model.service_rates[1:]
        generator[np.arange(S + 1), np.arange(S + 1)] = -generator.sum(axis=1)
        matrix = -generator
        matrix[:, S] = 1.0
        answer = np.linalg.solve(matrix, np.append((chosen * model.rewards).sum(axis=1), 0.0))
        gain, h = answer[S], np.append(answer[:S], 0.0)
        difference = (h[:-1] - h[1:])[:, None]
        allowance = 1e-9 * np.maximum(np.abs(difference), model.reward_scale)
        better = model.rewards >= difference - allowance
        if np.array_equal(better, admits):
            return float(gain), iteration
        admits = better
    raise ArithmeticError("dense policy iteration did not end")


@dataclass(frozen=True)
class Uniformized:
    """The queue as a discrete-time decision process; action k admits the k classes that pay best in the state."""

    rewards: list[list[float]]
    probabilities: list[list[list[float]]]
    columns: list[list[list[int]]]
    rate: float  # U: steps per unit of time

    def gain_bounds(self, values: np.ndarray) -> tuple[float, float]:
        """U min(Tv - v) <= rho* <= U max(Tv - v) for any v (Puterman, Thm 8.5.5), T the optimality operator."""
        change = []
        for s, (rewards, probabilities, columns) in enumerate(
            zip(self.rewards, self.probabilities, self.columns, strict=True)
        ):
            actions = zip(rewards, probabilities, columns, strict=True)
            change.append(max(r + np.dot(p, values[to]) for r, p, to in actions) - values[s])
        return self.rate * min(change), self.rate * max(change)


def uniformized(queue: qu.Queue) -> Uniformized:
    """The sparse lists that mdpsolver takes."""
    model = queue.model
    S, U = model.capacity, model.uniformization_rate
    all_rewards: list[list[float]] = []
    all_probabilities: list[list[list[float]]] = []
    all_columns: list[list[list[int]]] = []
    for s in range(S + 1):
        down = float(model.service_rates[s]) / U
        up, reward = [0.0], [0.0]
        if s < S:
            order = np.argsort(-model.rewards[s], kind="stable")
            rates = model.arrival_rates[s, order] / U
            up += np.cumsum(rates).tolist()
            reward += np.cumsum(rates * model.rewards[s, order]).tolist()
        steps = [[(s - 1, down), (s, max(0.0, 1.0 - down - u)), (s + 1, u)] for u in up]
        all_rewards.append(reward)
        all_probabilities.append([[p for _, p in step if p > 0] for step in steps])
        all_columns.append([[to for to, p in step if p > 0] for step in steps])
    return Uniformized(all_rewards, all_probabilities, all_columns, U)


def mdpsolver_model(process: Uniformized) -> Any:
    """A fresh mdpsolver model; its own copying of the lists is not timed."""
    import mdpsolver

    model = mdpsolver.model()
    model.mdp(rewards=process.rewards, tranMatProbs=process.probabilities, tranMatColumns=process.columns)
    return model


def check_mdpsolver(model: Any, process: Uniformized, queue: qu.Queue, gain: float) -> None:
    """Its policy must be worth our gain, and its values must enclose it: the second uses none of our code."""
    order = np.argsort(-queue.model.rewards, axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    policy = qu.Policy(rank < np.array(model.getPolicy()[:-1])[:, None])
    check_agreement("policy of mdpsolver", qu.evaluate(queue, policy).gain, gain)
    low, high = process.gain_bounds(np.array(model.getValueVector()))
    slack = AGREEMENT * abs(gain)
    if not low - slack <= gain <= high + slack:
        raise ArithmeticError(f"mdpsolver's values put the gain between {low} and {high}, ours is {gain}")
