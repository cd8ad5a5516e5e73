"""Random queues, models and policies: from a seeded generator, and as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


# --- wide draws: what a legal model may look like --------------------------------------------------------------------


def square_root(wait: float) -> float:
    """A cost that is a function of the user's."""
    return float(np.sqrt(wait))


def flat_cost(random: np.random.Generator, reward: float, due: float) -> HoldingCost:
    """A cost that is 0, or next to it, for waits up to `due`, and then of the order of the reward."""
    scale = reward * _log_uniform(random, 0.03, 3.0)
    kind = random.integers(4)
    if kind == 0:
        return qu.Deadline(scale, due)
    if kind == 1:
        return qu.PiecewiseLinear([(due, 0.0), (due * random.uniform(1.01, 3.0), scale)])
    if kind == 2:
        return qu.Power(scale / due**9, 9.0)
    return qu.PiecewiseLinear([(0.5 * due, 0.0), (due, 0.01 * scale), (1.5 * due, 0.01 * scale), (2 * due, scale)])


def overloaded_queue_with_a_deadline(
    random: np.random.Generator, smallest_capacity: int = 300, largest_capacity: int = 1000
) -> qu.Queue:
    """One class, more than can be served, no cost before a deadline: r - g falls below rounding in many states."""
    capacity = int(random.integers(smallest_capacity, largest_capacity + 1))
    servers = min(capacity, int(random.choice([1, 2, 5, 10, 40])))
    rate, reward = _log_uniform(random, 0.1, 10.0), random.uniform(1.0, 20.0)
    longest = capacity / (servers * rate)
    cost = qu.Deadline(reward * random.uniform(0.1, 2.0), longest * random.uniform(0.05, 1.1))
    load = 1.0 + _log_uniform(random, 0.02, 5.0)
    return qu.Queue(servers, capacity, rate, [qu.JobClass("a", load * servers * rate, reward, cost)])


def two_class_queue_flat_at_first(random: np.random.Generator, largest_capacity: int = 2000) -> qu.Queue:
    """Two classes that pay nearly the same, in any order; a cost of the second is flat at first."""
    capacity = int(_log_uniform(random, min(50, 1 + largest_capacity // 4), largest_capacity + 1))
    servers = int(random.integers(1, min(capacity, 40) + 1))
    rate, reward = _log_uniform(random, 0.1, 10.0), random.uniform(1.0, 10.0)
    total = _log_uniform(random, 0.4, 8.0) * servers * rate
    share = random.uniform(0.02, 0.98)
    longest = capacity / (servers * rate)
    other = reward * random.choice([1.0, 1.0 + random.normal(0.0, 0.01), random.uniform(0.5, 1.5)])
    first = random_cost(random, reward, longest * random.uniform(0.05, 0.5))
    classes = [
        qu.JobClass("a", total * share, reward, first),
        qu.JobClass("b", total * (1 - share), other, flat_cost(random, other, longest * random.uniform(0.02, 0.8))),
    ]
    return qu.Queue(servers, capacity, rate, classes)


def large_mixed_queue(random: np.random.Generator, capacity: int = 700) -> qu.Queue:
    """Costs of all kinds mixed, capacities around the given one."""
    capacity = int(capacity * random.uniform(0.8, 1.2))
    servers = int(_log_uniform(random, 1.0, capacity + 1.0))
    rate = _log_uniform(random, 0.01, 100.0)
    total = _log_uniform(random, 0.2, 10.0) * servers * rate
    m = int(random.integers(1, 9))
    shares = random.dirichlet(np.full(m, 1.0)) + 1e-3
    longest = capacity / (servers * rate)
    classes = []
    for i in range(m):
        reward, due = _log_uniform(random, 1.0, 30.0), longest * random.uniform(0.02, 1.0)
        cost = random_cost(random, reward, due) if random.random() < 0.5 else flat_cost(random, reward, due)
        classes.append(qu.JobClass(f"class {i}", total * float(shares[i] / shares.sum()), reward, cost))
    return qu.Queue(servers, capacity, rate, classes)


def large_mixed_model(random: np.random.Generator, capacity: int = 700) -> qu.AdmissionModel:
    """The same as UCRL-AC believes in it: with class shares of any certainty, the total rate too large."""
    queue = large_mixed_queue(random, capacity)
    busier = queue.with_arrival_rates([rate * random.uniform(1.0, 3.0) for rate in queue.arrival_rates])
    return optimistic_model(busier, random.choice([0.0, 2.0, random.uniform(0.0, 2.0)]))


def first_episode_model(random: np.random.Generator, capacity: int = 700) -> qu.AdmissionModel:
    """UCRL-AC's first model: in each state the class that pays best there comes at the largest total rate."""
    queue = large_mixed_queue(random, capacity)
    return optimistic_model(queue.with_arrival_rates(queue.arrival_rates * random.uniform(1.0, 4.0)), 2.0)


def queue_of_wide_rewards(random: np.random.Generator, decades: float = 12.0) -> qu.Queue:
    """Rewards and rates of the classes over many decades: rare jobs that pay a fortune beside a flood of small ones."""
    capacity, m = int(_log_uniform(random, 1.0, 200.0)), int(random.integers(2, 6))
    servers = int(random.integers(1, capacity + 2))
    mean_wait = 1.0 / servers * (1 + 0.3 * max(0, capacity - servers))
    classes = []
    for i in range(m):
        reward = 10.0 ** random.uniform(0.0, decades)
        # half of them so rare that all classes earn alike
        rate = servers * (1.0 / reward if random.random() < 0.5 else 1.0) * _log_uniform(random, 0.1, 10.0)
        classes.append(qu.JobClass(f"class {i}", rate, reward, random_cost(random, reward, mean_wait)))
    return qu.Queue(servers, capacity, 1.0, classes)


def any_queue(random: np.random.Generator, largest_capacity: int = 60) -> qu.Queue:
    """Every shape (c = 1, c = S, c > S, m = 1 .. 8), loads 0.01 to 1000, any units, every kind of cost.

    Some classes pay nothing, some pay and cost the same, some have a cost that is a function.
    """
    capacity, m = int(_log_uniform(random, 1.0, largest_capacity + 1.0)), int(random.integers(1, 9))
    servers = int(random.choice([1, capacity, capacity + 3, random.integers(1, capacity + 1)]))
    time, money = (float(10.0 ** random.choice([0.0, random.uniform(-12.0, 12.0)])) for _ in range(2))
    load = _log_uniform(random, 0.1, 10.0) if random.random() < 0.7 else _log_uniform(random, 0.01, 1000.0)
    total = load * min(servers, capacity) / time
    shares = random.dirichlet(np.full(m, random.choice([0.1, 1.0, 10.0]))) + 1e-6
    mean_wait = time / servers * (1 + random.uniform(0.1, 1.0) * max(0, capacity - servers))
    rewards: list[float] = []
    costs: list[HoldingCost] = []
    for i in range(m):
        kind = random.random()
        if i and kind < 0.2:  # pays and costs what an earlier one does
            j = int(random.integers(i))
            rewards.append(rewards[j])
            costs.append(costs[j])
            continue
        reward = 0.0 if kind < 0.3 else money * _log_uniform(random, 1.0, 30.0)
        if random.random() < 0.05:
            costs.append(qu.Custom(square_root))
        elif random.random() < 0.5:
            costs.append(random_cost(random, reward or money, mean_wait))
        else:
            costs.append(flat_cost(random, reward or money, mean_wait))
        rewards.append(reward)
    classes = [
        qu.JobClass(f"class {i}", total * float(shares[i] / shares.sum()), rewards[i], costs[i]) for i in range(m)
    ]
    return qu.Queue(servers, capacity, 1.0 / time, classes)


def any_model(random: np.random.Generator, largest_capacity: int = 60) -> qu.AdmissionModel:
    """Rates and rewards that depend on the state in any way, service too; some classes never come in some states."""
    capacity, m = int(_log_uniform(random, 1.0, largest_capacity + 1.0)), int(random.integers(1, 5))
    decades = random.choice([0.0, 1.0, 3.0])
    rates = 10.0 ** random.uniform(-decades, decades, (capacity, m)) * (random.random((capacity, m)) < 0.9)
    service = np.append(0.0, 10.0 ** random.uniform(-decades, decades, capacity))
    rewards = random.uniform(-5.0, 20.0, (capacity, m))
    kind = random.integers(3)
    if kind == 0:
        rewards = np.sort(rewards, axis=0)[::-1]
    elif kind == 1:
        rewards = np.round(rewards)
    return qu.AdmissionModel(rates, rewards, service)


FAMILIES: dict[str, Callable[[np.random.Generator], qu.Queue | qu.AdmissionModel]] = {
    "overloaded, with a deadline": overloaded_queue_with_a_deadline,
    "two classes, flat at first": two_class_queue_flat_at_first,
    "large and mixed": large_mixed_queue,
    "large and mixed, optimistic": large_mixed_model,
    "first episode": first_episode_model,
    "rewards over twelve decades": queue_of_wide_rewards,
    "small": random_queue,
    "any queue": any_queue,
    "any model": any_model,
}


# --- hypothesis ------------------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)


def model_of(family: str, seed: int | Sequence[int]) -> qu.AdmissionModel:
    """The decision model of a queue or model of the family."""
    drawn = FAMILIES[family](np.random.default_rng(seed))
    return drawn.model if isinstance(drawn, qu.Queue) else drawn


models = st.builds(model_of, st.sampled_from(list(FAMILIES)), seeds)  # of every family


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
