r"""Regret bounds: what theory promises of a learner, to be set beside what it does.

Thm 5.2 for UCRL-AC, with K = 1 + log2(T / t_1) episodes:

    E[regret(T)] <= a sqrt(T log(2 mu T)) + b (1 + log2(T / t_1)) + c.

Where jobs give up, mu(s) and r_i(s) are those of Erlang-A, and mu_max is min(S, c) mu, of the servers alone. The proof
needs mu_max to bound the relative bias of a best policy, 0 <= g(s) <= rho / mu_max. From Bellman's equation,
rho = sum_i lambda_i (r_i(s) - g(s))^+ + mu(s) g(s-1) >= mu(s) g(s-1), which is g(s-1) <= rho / (c mu) for s >= c; below
c rewards do not depend on s, so g grows with s. (Without patience mu(S) is the same number.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue


@dataclass(frozen=True)
class RegretBound:
    """The three coefficients of Thm 5.2, and what the bound needs besides."""

    a: float  # of sqrt(T log(2 mu T))
    b: float  # of the number of episodes
    c: float  # the first episode
    service_rate: float
    first_episode: float

    def __call__(self, time: npt.ArrayLike) -> FloatArray:
        """The bound at `time` (at least the first episode, mu t > 1/2)."""
        t = np.asarray(time, dtype=float)
        if np.any(t < self.first_episode):
            raise ValueError(f"the bound holds from the first episode's end {self.first_episode} on")
        return (
            self.a * np.sqrt(t * np.log(2.0 * self.service_rate * t))
            + self.b * (1.0 + np.log2(t / self.first_episode))
            + self.c
        )


def _check(bounds: tuple[float, float], first_episode: float, queue: Queue) -> None:
    low, high = bounds
    if not 0 < low <= high:
        raise ValueError(f"arrival_rate_bounds must be 0 < low <= high, got {bounds}")
    queue.must_be_steady()
    queue.must_not_balk("Thm 5.2")
    if not queue.service_rate * first_episode > 1:
        raise ValueError(
            f"first_episode must be longer than 1 / service_rate = {1 / queue.service_rate}, got {first_episode}"
        )


def _learning_factor(queue: Queue, bounds: tuple[float, float]) -> float:
    """14 (4 Lambda_max^2 / (Lambda_min sqrt(Lambda)) + sqrt(m Lambda)). (One lemma prints 4 for 14: 14 is meant.)"""
    low, high = bounds
    rate = queue.total_arrival_rate
    return float(14.0 * (4.0 * high**2 / (low * np.sqrt(rate)) + np.sqrt(len(queue.classes) * rate)))


def _bound(queue: Queue, best_gain: float, first_episode: float, a: float, *episode: float) -> RegretBound:
    """The bound with this a; b = (4/mu + 14/Lambda) rho* and the terms of an episode; c = rho* t_1."""
    b = (4.0 / queue.service_rate + 14.0 / queue.total_arrival_rate) * best_gain
    for term in episode:
        b += term
    return RegretBound(a, b, best_gain * first_episode, queue.service_rate, first_episode)


def policy_iteration_bound(
    queue: Queue, best_gain: float, arrival_rate_bounds: tuple[float, float], first_episode: float
) -> RegretBound:
    """Thm 5.2 for UCRL-AC with policy iteration; best_gain is rho* of the queue.

    a = 14 (..)(1 + Lambda_max / mu_max) R_max,  b = (4/mu + 14/Lambda) rho* + S Lambda_max R_max / mu_max,
    c = rho* t_1
    """
    _check(arrival_rate_bounds, first_episode, queue)
    high, reward = arrival_rate_bounds[1], queue.max_reward
    mu_max = min(queue.servers, queue.capacity) * queue.service_rate
    a = _learning_factor(queue, arrival_rate_bounds) * (1.0 + high / mu_max) * reward
    return _bound(queue, best_gain, first_episode, a, queue.capacity * high * reward / mu_max)


def policy_iteration_terms(
    queue: Queue, best_gain: float, arrival_rate_bounds: tuple[float, float], first_episode: float, time: npt.ArrayLike
) -> dict[str, FloatArray]:
    """The bound of Thm 5.2 with policy iteration at `time`, by what each of its terms is for; they add up to it.

    "rate" and "shares": a sqrt(T log(2 mu T)), of not knowing Lambda (Lambda_max^2 / Lambda_min) and p (sqrt m); of
    each of the K episodes "start" S Lambda_max R_max / mu_max, of a queue that begins it elsewhere, and "doubt"
    (4 / mu + 14 / Lambda) rho*, of intervals that fail; "first episode" rho* t_1.
    """
    whole = policy_iteration_bound(queue, best_gain, arrival_rate_bounds, first_episode)
    t = np.asarray(time, dtype=float)
    low, high = arrival_rate_bounds
    rate, shares = 4.0 * high**2 / (low * queue.total_arrival_rate), np.sqrt(len(queue.classes))  # over sqrt(Lambda)
    learning = whole.a * np.sqrt(t * np.log(2.0 * queue.service_rate * t))
    episodes = 1.0 + np.log2(t / first_episode)
    doubt = (4.0 / queue.service_rate + 14.0 / queue.total_arrival_rate) * best_gain
    return {
        "rate": learning * (rate / (rate + shares)),
        "shares": learning * (shares / (rate + shares)),
        "start": episodes * (whole.b - doubt),
        "doubt": episodes * doubt,
        "first episode": np.full(t.shape, whole.c),
    }


def value_iteration_bias_bound(queue: Queue, largest_rate: float, policy: Policy | None = None) -> float:
    r"""V = max_s (Lambda_max R_max / mu) sum_{q>s} prod_{p=s+1}^{q-1} Lambda~(p) / mu(p+1): bounds VI's relative bias.

    Lambda~(p) is the optimistic rate of the admitted classes; without a policy, Lambda_max: the worst case.
    """
    rates = np.full(queue.capacity, largest_rate)
    if policy is not None:
        rates = largest_rate * (policy.admits @ queue.class_probabilities)
    death = queue.service_rates
    largest = tail = 0.0
    with np.errstate(over="ignore"):
        for s in range(queue.capacity - 1, -1, -1):  # tail(s) = 1 + Lambda~(s+1)/mu(s+2) tail(s+1), tail(S-1) = 1
            tail = 1.0 if s == queue.capacity - 1 else 1.0 + rates[s + 1] / death[s + 2] * tail
            largest = max(largest, tail)
    return float(largest_rate * queue.max_reward / queue.service_rate * largest)


def value_iteration_bound(
    queue: Queue,
    best_gain: float,
    arrival_rate_bounds: tuple[float, float],
    first_episode: float,
    policy: Policy | None = None,
) -> RegretBound:
    """Thm 5.2 for UCRL-AC with value iteration; infinite where V leaves the range of a double.

    a' = 14 (..)(R_max + V),  b' = (4/mu + 14/Lambda) rho* + R_max + S V,  c' = rho* t_1
    (The theorem prints V where its proof has S V: the proof's.)
    """
    _check(arrival_rate_bounds, first_episode, queue)
    V = value_iteration_bias_bound(queue, arrival_rate_bounds[1], policy)
    a = _learning_factor(queue, arrival_rate_bounds) * (queue.max_reward + V)
    return _bound(queue, best_gain, first_episode, a, queue.max_reward, queue.capacity * V)
