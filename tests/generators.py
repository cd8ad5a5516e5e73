"""Random queues, models and policies: from a seeded generator, and as hypothesis strategies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.model.costs import HoldingCost


def paper_queue(capacity: int = 20, service_rate: float = 0.3) -> qu.Queue:
    """A queue of the paper's experiments: c = 5, lambda = (1, 1), R = (20, 10), C(t) = 0.1 t."""
    cost = qu.Linear(0.1)
    classes = [qu.JobClass("gold", 1.0, 20.0, cost), qu.JobClass("basic", 1.0, 10.0, cost)]
    return qu.Queue(5, capacity, service_rate, classes)


def two_class_queue(servers: int, capacity: int, load: float) -> qu.Queue:
    """R = (20, 10), waits that cost a tenth of a reward per mean service, Lambda = load * mu_max, mu = 1."""
    rate = load * min(servers, capacity)
    classes = [
        qu.JobClass("gold", 0.4 * rate, 20.0, qu.Linear(0.1)),
        qu.JobClass("basic", 0.6 * rate, 10.0, qu.Linear(0.05)),
    ]
    return qu.Queue(servers, capacity, 1.0, classes)


def closed_in_the_middle(policy: qu.Policy) -> qu.Policy:
    """The same policy, but nobody gets in at half the capacity: what is above becomes transient."""
    admits = policy.admits.copy()
    admits[policy.capacity // 2] = False
    return qu.Policy(admits)


def random_policy(random: np.random.Generator, capacity: int, classes: int, share: float = 0.5) -> qu.Policy:
    """Each class admitted in each state with probability `share`."""
    return qu.Policy(random.random((capacity, classes)) < share)


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def random_cost(random: np.random.Generator, reward: float, mean_wait: float) -> HoldingCost:
    """A cost of any kind, of the order of the reward at a wait of a few times the mean."""
    scale = reward * random.uniform(0.05, 1.0)
    t = mean_wait * random.uniform(0.5, 3.0)
    kind = random.integers(6)
    if kind == 0:
        return qu.Free()
    if kind == 1:
        return qu.Linear(scale / t)
    if kind == 2:
        p = random.uniform(0.3, 3.0)
        return qu.Power(scale / t**p, p)
    if kind == 3:
        return qu.Saturating(2 * scale, 1 / t)
    if kind == 4:
        return qu.Deadline(2 * scale, t)
    return qu.PiecewiseLinear([(t, 0.0), (2 * t, scale), (3 * t, 1.5 * scale)])


def random_queue(random: np.random.Generator, largest_capacity: int = 24, most_classes: int = 3) -> qu.Queue:
    """Any number of servers (also more than places), loads 0.1 to 10, rates over four decades, all kinds of cost."""
    capacity = int(random.integers(1, largest_capacity + 1))
    servers = int(random.integers(1, capacity + 2))
    m = int(random.integers(1, most_classes + 1))
    service_rate = _log_uniform(random, 0.01, 100.0)
    total = _log_uniform(random, 0.1, 10.0) * min(servers, capacity) * service_rate
    shares = random.dirichlet(np.full(m, 1.5)) + 0.01
    mean_wait = 1.0 / (servers * service_rate) * (1 + 0.3 * max(0, capacity - servers))
    classes = []
    for i in range(m):
        reward = _log_uniform(random, 1.0, 30.0)
        cost = random_cost(random, reward, mean_wait)
        classes.append(qu.JobClass(f"class {i}", total * float(shares[i] / shares.sum()), reward, cost))
    return qu.Queue(servers, capacity, service_rate, classes)


def optimistic_shares(estimate: np.ndarray, radius: float | Fraction, order: np.ndarray) -> np.ndarray:
    """Thm 4.3: the first class in `order` gains radius / 2, the excess is taken from the last upward. Any numbers."""
    shares = estimate.copy()
    shares[order[0]] = min(1, estimate[order[0]] + radius / 2)
    excess = shares.sum() - 1
    for i in order[:0:-1]:
        taken = min(excess, shares[i])
        shares[i] -= taken
        excess -= taken
    return shares


def optimistic_model(queue: qu.Queue, radius: float) -> qu.AdmissionModel:
    """The queue with, in each state, the class shares of the l1 ball that pay best there; Lambda the same in all."""
    shares = np.array([optimistic_shares(queue.class_probabilities, radius, order) for order in queue.priorities])
    return qu.AdmissionModel(queue.total_arrival_rate * shares, queue.rewards, queue.service_rates)


# --- hypothesis ------------------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)


@st.composite
def queues(draw: st.DrawFn, largest_capacity: int = 40, most_classes: int = 4) -> qu.Queue:
    """Queues by hypothesis: shape and loads drawn one by one, so that a failure shrinks to a small queue."""
    capacity = draw(st.integers(1, largest_capacity))
    servers = draw(st.integers(1, capacity + 1))
    load = draw(st.floats(0.05, 20.0))
    service_rate = draw(st.sampled_from([0.125, 0.3, 1.0, 7.0]))
    rate = load * min(servers, capacity) * service_rate
    count = draw(st.integers(1, most_classes))
    weights = [draw(st.integers(1, 9)) for _ in range(count)]
    classes = [
        qu.JobClass(f"class {i}", rate * weight / sum(weights), draw(st.integers(1, 40)) / 2, draw(costs(service_rate)))
        for i, weight in enumerate(weights)
    ]
    return qu.Queue(servers, capacity, service_rate, classes)


@st.composite
def costs(draw: st.DrawFn, service_rate: float = 1.0) -> HoldingCost:
    """A holding cost of any kind that a scenario file may hold."""
    t = draw(st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0])) / service_rate
    c = draw(st.sampled_from([0.1, 1.0, 5.0, 30.0]))
    return draw(
        st.sampled_from(
            [
                qu.Free(),
                qu.Linear(c / t),
                qu.Power(c / t**0.5, 0.5),
                qu.Power(c / t**2, 2.0),
                qu.Saturating(c, 1 / t),
                qu.Deadline(c, t),
                qu.PiecewiseLinear([(t, 0.0), (1.5 * t, c)]),
            ]
        )
    )
