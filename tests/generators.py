"""Random queues, models and policies: from a seeded generator, and as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.model.batches import BatchSizes
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


def with_patience(
    random: np.random.Generator, queue: qu.Queue, share: float = 0.5, *, slowest: float = 1e-3, fastest: float = 30.0
) -> qu.Queue:
    """The queue, or (with a probability) the same with jobs that give up: theta from a thousandth of mu to 30 mu.

    Giving up costs some classes, and some pay when they are served only.
    """
    if random.random() >= share:
        return queue
    theta = queue.service_rate * _log_uniform(random, slowest, fastest)
    classes = [
        replace(
            c,
            abandonment_cost=c.reward * float(random.choice([0.0, random.uniform(0.0, 1.0)])),
            reward_at=str(random.choice(["admission", "start", "end"])),
        )
        for c in queue.classes
    ]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes, patience=qu.Exponential(theta))


def random_queue(
    random: np.random.Generator, largest_capacity: int = 24, most_classes: int = 3, *, patience: float = 0.5
) -> qu.Queue:
    """Any number of servers (also more than places), loads 0.1 to 10, rates over four decades, all kinds of cost.

    In a share `patience` of them jobs give up.
    """
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
    return with_patience(random, qu.Queue(servers, capacity, service_rate, classes), patience)


def any_balking(random: np.random.Generator) -> qu.Balking:
    """Balking of any kind, also a crowd that attracts."""
    kind, above = int(random.integers(4)), int(random.integers(4))
    if kind == 0:
        return qu.GeometricBalking(float(random.uniform(0.5, 1.0)), above)
    if kind == 1:
        return qu.LinearBalking(float(random.uniform(1.0, 40.0)), above)
    probability = random.uniform(0.0, 1.0, int(random.integers(1, 30)))
    probability[0] = max(probability[0], 0.05)  # somebody comes where nobody is
    return qu.BalkingTable((np.sort(probability) if kind == 2 else probability).tolist())


def with_balking(random: np.random.Generator, system: qu.System, share: float = 0.5) -> qu.System:
    """The system, some of its classes with jobs that balk."""
    classes = [replace(c, balking=any_balking(random)) if random.random() < share else c for c in system.classes]
    return replace(system, classes=classes)


def balking_queue(random: np.random.Generator) -> qu.Queue:
    """A small queue of any kind, some of its classes with jobs that balk."""
    queue = random_queue(random)
    classes = with_balking(random, queue_as_system(queue)).classes
    classes = [replace(c, service=None) for c in classes]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes, queue.patience)


def queue_as_system(queue: qu.Queue) -> qu.System:
    """The same, as a `System` that happens to be Markov."""
    classes = [replace(c, service=qu.Exponential(queue.service_rate)) for c in queue.classes]
    return qu.System(queue.servers, queue.capacity, classes, patience=queue.patience)


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
    return with_patience(random, qu.Queue(servers, capacity, rate, classes))


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
    return with_patience(random, qu.Queue(servers, capacity, rate, classes))


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
    return with_patience(random, qu.Queue(servers, capacity, 1.0, classes))


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
    return with_patience(random, qu.Queue(servers, capacity, 1.0 / time, classes))


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
    "jobs that balk": balking_queue,
}


# --- worlds: everything that can be simulated ------------------------------------------------------------------------


def any_law(random: np.random.Generator, mean: float) -> qu.Law:
    """A law of any kind with this mean."""
    kind = int(random.integers(11))
    cv = float(random.uniform(0.3, 2.0))
    if kind == 0:
        return qu.Deterministic(mean)
    if kind == 1:
        return qu.Erlang(mean=mean, stages=int(random.integers(1, 6)))
    if kind == 2:
        return qu.HyperExponential(mean=mean, cv=1.0 + cv)
    if kind == 3:
        return qu.LogNormal(mean=mean, cv=cv)
    if kind == 4:
        return qu.Gamma(mean=mean, cv=cv)
    if kind == 5:
        return qu.Uniform(low=0.0, high=2.0 * mean)
    if kind == 6:
        return qu.Weibull(mean=mean, cv=cv)
    if kind == 7:
        return qu.Pareto(mean=mean, shape=1.0 + cv)
    if kind == 8:
        return coarse_law(random, mean)
    return qu.Exponential(1.0 / mean)


def _any_sizes(random: np.random.Generator) -> BatchSizes:
    kind = int(random.integers(3))
    if kind == 0:
        return qu.FixedSizes(int(random.integers(1, 5)))
    return qu.GeometricSizes(2.5) if kind == 1 else qu.EmpiricalSizes([1, 1, 2, 5])


def any_arrivals(random: np.random.Generator, rate: float) -> qu.ArrivalProcess:
    """Arrivals of any kind at this rate, but for Poisson processes; a trace perhaps with its works."""
    kind, day = int(random.integers(5)), 40.0 / rate
    pattern = qu.Sinusoid(0.5, day) if random.random() < 0.5 else qu.Steady()
    if kind == 0:
        return qu.Renewal(any_law(random, 1.0 / rate))
    if kind == 1:
        sizes = _any_sizes(random)
        return qu.Batches(qu.Poisson(rate / sizes.mean, pattern), sizes)
    if kind == 2:
        times = np.sort(random.uniform(0.0, day, 40))
        works = random.uniform(0.0, 2.0, 40) if random.random() < 0.5 else None
        return qu.Trace(times, works, day, repeat=True, speed=1.25, thin=0.8)
    modulated = qu.Modulated(rate, [[0.0, 2.0 / day], [5.0 / day, 0.0]], [0.5, 2.25], pattern=pattern)
    return modulated if kind == 3 else qu.DayFactor(modulated, 0.4, day)


def coarse_law(random: np.random.Generator, mean: float) -> qu.Law:
    """Multiples of a quarter of the mean, zero included: hardly an event has its time for itself."""
    quarters = np.array([0.0, 1.0, 2.0, 2.0, 4.0, 5.0, 6.0, 12.0]) / 4.0
    return qu.Empirical((mean * quarters[: int(random.integers(3, 9))]).tolist())


@dataclass(frozen=True)
class CoarseArrivals(qu.ArrivalProcess):
    """Gaps of a law, added up."""

    gaps: qu.Law

    @property
    def rate(self) -> float:  # type: ignore[override]
        return 1.0 / self.gaps.mean

    def stream(self, rng: Any) -> Any:
        return _AddedUp(self.gaps.stream(rng("gaps")))


@dataclass
class _AddedUp:
    gaps: Any
    now: float = 0.0

    def fill(self, times: np.ndarray) -> None:
        self.gaps.fill(times)
        for k, gap in enumerate(times.tolist()):
            self.now += gap
            times[k] = self.now


def any_pay(random: np.random.Generator, mean: float) -> qu.Law:
    """What a job pays, a law of any kind with this mean; all or nothing among them."""
    if random.random() < 0.4:
        return qu.TwoPoint(mean, float(random.uniform(0.05, 1.0)))
    return any_law(random, mean)


def with_pays(random: np.random.Generator, system: qu.System, share: float = 0.4) -> qu.System:
    """The system, or (with a probability) the same with classes whose jobs pay different amounts, one at least."""
    if random.random() >= share:
        return system
    some = random.random(len(system.classes)) < 0.6
    some[int(random.integers(some.size))] = True
    laws = [any_pay(random, c.reward) for c in system.classes]
    classes = [
        replace(c, reward=law.mean, pays=law) if one else c
        for c, law, one in zip(system.classes, laws, some, strict=True)
    ]
    return replace(system, classes=classes)


def _random_servers(random: np.random.Generator, servers: int, mean: float) -> int | qu.Shifts:
    if random.random() < 0.5:
        return servers
    changes = int(random.integers(1, 4))
    times = np.cumsum(1 + random.integers(0, 40, changes)) * mean
    counts = [int(count) for count in random.integers(0, 2 * servers + 1, changes + 1)]
    counts[-1] = max(1, counts[-1])
    period = float(times[-1] + mean * random.integers(1, 40)) if random.random() < 0.7 else np.inf
    return qu.Shifts(times.tolist(), counts, period, ["finish", "hand-over"][int(random.integers(2))])


def _random_environment(random: np.random.Generator, servers: int, classes: int, mean: float) -> qu.Environment:
    states = int(random.integers(1, 4))
    rates = random.uniform(0.2, 1.0, (states, states)) / (20.0 * mean)
    factors = random.uniform(0.2, 2.0, (states, classes) if random.random() < 0.5 else states)
    counts = [int(count) for count in random.integers(0, 2 * servers + 1, states)] if random.random() < 0.5 else None
    if counts is not None:
        counts[0] = max(1, counts[0])
    return qu.Environment(rates, factors, counts, start=int(random.integers(states)))


def random_system(random: np.random.Generator, *, coarse: bool = False, sharing: bool = True) -> qu.System:
    """A system that mixes all features; coarse: with times on a grid; sharing: perhaps with processor sharing."""
    features = 0.4  # the probability of each
    mean = 1.0 if coarse else _log_uniform(random, 0.01, 100.0)  # of service
    law = coarse_law if coarse else any_law
    capacity, m = int(_log_uniform(random, 1.0, 60.0)), int(random.integers(1, 4))
    servers = int(random.integers(1, min(capacity, 8) + 1))

    def has() -> bool:
        return bool(random.random() < features)

    rate = _log_uniform(random, 0.3, 3.0) * servers / mean
    counts: int | qu.Shifts = _random_servers(random, servers, mean) if has() else servers
    environment = None
    if has() and not coarse and isinstance(counts, int):
        environment = _random_environment(random, servers, m, mean)
    classes = []
    for i in range(m):
        reward = float(random.uniform(1.0, 20.0))
        gap = m / rate if not coarse else float(2.0 ** random.integers(-2, 2))
        pattern = qu.Sinusoid(0.5, 30.0 * mean) if has() and not coarse else qu.Steady()
        arrivals: qu.ArrivalProcess = qu.Poisson(1.0 / gap, pattern)
        if coarse:
            arrivals = CoarseArrivals(coarse_law(random, gap))
        elif environment is None and has():
            arrivals = any_arrivals(random, 1.0 / gap)
        service = law(random, mean * float(random.uniform(0.5, 2.0)) if not coarse else mean)
        brings_work = isinstance(arrivals, qu.Trace) and arrivals.works is not None
        classes.append(
            qu.JobClass(
                f"class {i}",
                arrivals=arrivals,
                reward=reward,
                holding_cost=random_cost(random, reward, mean),
                service=None if brings_work else service,
                patience=law(random, mean * float(2.0 ** random.integers(-2, 4))) if has() else None,
                abandonment_cost=float(random.uniform(0.0, 5.0)) if has() else 0.0,
                reward_at=["admission", "start", "end"][int(random.integers(3))],
            )
        )
    if sharing and random.random() < 0.5 * features:
        classes = [replace(c, patience=None, abandonment_cost=0.0) for c in classes]  # nobody waits
        shared = qu.System(servers, capacity, classes, environment=environment, discipline="processor-sharing")
        own = np.random.default_rng(int(2**40 * classes[0].reward))
        return with_pays(random, with_balking(own, shared, 0.5 * features))
    up = mean * float(2.0 ** random.integers(0, 5))
    down = mean * float(2.0 ** random.integers(-3, 3))
    there = random.multinomial(int(random.integers(0, capacity + 1)), np.full(m, 1.0 / m))
    system = qu.System(
        counts,
        capacity,
        classes,
        patience=law(random, 4.0 * mean) if has() else None,
        breakdowns=qu.Breakdowns(law(random, up), law(random, down), ["resume", "restart"][int(random.integers(2))])
        if has()
        else None,
        environment=environment,
        setup=qu.Setup(law(random, 0.5 * mean), float(random.choice([0.0, mean]))) if has() else None,
        initial={f"class {i}": int(n) for i, n in enumerate(there)} if has() else None,
    )
    own = np.random.default_rng(int(2**40 * classes[0].reward))
    return with_pays(random, with_balking(own, system, 0.5 * features))


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
    theta = draw(st.sampled_from([None, None, 0.01, 1.0, 5.0]))
    if theta is None:
        return qu.Queue(servers, capacity, service_rate, classes)
    classes = [
        replace(
            c, abandonment_cost=draw(st.sampled_from([0.0, 3.0])), reward_at=draw(st.sampled_from(["admission", "end"]))
        )
        for c in classes
    ]
    return qu.Queue(servers, capacity, service_rate, classes, patience=qu.Exponential(theta * service_rate))


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
