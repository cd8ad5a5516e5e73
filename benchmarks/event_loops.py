"""What the simulation is compared with: the same queue under a fixed admission table, written in other ways.

Each takes (queue, table, horizon, seed) and gives (arrivals, jobs admitted). `random_numbers` is what a run cannot do
without.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Generator
from typing import Any

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl.variates import Exponentials

Table = list[list[bool]]


def heapq_loop(queue: qu.Queue, table: Table, horizon: float, seed: int) -> tuple[int, int]:
    """A bare event loop: a heap of (time, class or -1 for a departure), and a deque of waiting jobs."""
    draw = random.Random(seed).expovariate
    rates, service_rate = [c.arrival_rate for c in queue.classes], queue.service_rate
    servers, capacity = queue.servers, queue.capacity
    events = [(draw(rate), i) for i, rate in enumerate(rates)]
    heapq.heapify(events)
    waiting: deque[tuple[float, int]] = deque()
    in_system = arrivals = admitted = 0
    waited = [0.0] * len(rates)
    while True:
        now, i = heapq.heappop(events)
        if now >= horizon:
            return arrivals, admitted
        if i < 0:
            in_system -= 1
            if waiting:
                arrival, k = waiting.popleft()
                waited[k] += now - arrival
                heapq.heappush(events, (now + draw(service_rate), -1))
            continue
        heapq.heappush(events, (now + draw(rates[i]), i))
        arrivals += 1
        if in_system < capacity and table[in_system][i]:
            admitted += 1
            if in_system < servers:
                heapq.heappush(events, (now + draw(service_rate), -1))
            else:
                waiting.append((now, i))
            in_system += 1


def plain_simpy(queue: qu.Queue, table: Table, horizon: float, seed: int) -> tuple[int, int]:
    """The textbook's model: a process for each class's arrivals and one for each admitted job."""
    import simpy

    draw = random.Random(seed).expovariate
    env = simpy.Environment()
    servers = simpy.Resource(env, capacity=queue.servers)
    counts = {"arrivals": 0, "admitted": 0, "in_system": 0}
    waited = [0.0] * len(queue.classes)

    def job(i: int) -> Generator[Any, Any, None]:
        arrival = env.now
        with servers.request() as request:
            yield request
            waited[i] += env.now - arrival
            yield env.timeout(draw(queue.service_rate))
        counts["in_system"] -= 1

    def arrivals(i: int, rate: float) -> Generator[Any, Any, None]:
        while True:
            yield env.timeout(draw(rate))
            counts["arrivals"] += 1
            if counts["in_system"] < queue.capacity and table[counts["in_system"]][i]:
                counts["admitted"] += 1
                counts["in_system"] += 1
                env.process(job(i))

    for i, c in enumerate(queue.classes):
        env.process(arrivals(i, c.arrival_rate))
    env.run(until=horizon)
    return counts["arrivals"], counts["admitted"]


def ciw_network(queue: qu.Queue, table: Table, horizon: float, seed: int) -> tuple[int, int]:
    """Ciw: rejection by the policy is baulking with probability 0 or 1, by the number present."""
    import ciw

    names = [f"Class {i}" for i in range(len(queue.classes))]

    def baulking(i: int) -> Any:
        return lambda in_system, *_, **__: 0.0 if in_system < queue.capacity and table[in_system][i] else 1.0

    network = ciw.create_network(
        arrival_distributions={
            name: [ciw.dists.Exponential(c.arrival_rate)] for name, c in zip(names, queue.classes, strict=True)
        },
        service_distributions={name: [ciw.dists.Exponential(queue.service_rate)] for name in names},
        baulking_functions={name: [baulking(i)] for i, name in enumerate(names)},
        number_of_servers=[queue.servers],
        queue_capacities=[queue.capacity - queue.servers],
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(horizon)
    node = simulation.nodes[0]
    return node.number_of_individuals, node.number_accepted_individuals


def random_numbers(queue: qu.Queue, horizon: float) -> None:
    """What chance alone costs the compiled engine: two exponential numbers for each arrival, in blocks."""
    numbers, block = Exponentials(np.random.default_rng(1)), np.empty(4096)
    for _ in range(round(2 * queue.total_arrival_rate * horizon / block.size)):
        numbers.fill(block)
