"""A small queue with its own simulation, for tests of what logs tell: no part of the package is in it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np


def served_jobs(
    rng: np.random.Generator,
    jobs: int,
    rate: Callable[[float, int], float],
    ceiling: float,
    servers: int,
    service_mean: float,
) -> np.ndarray:
    """(arrival, start, end) of jobs served in order; rate(time, number in the system) is never above `ceiling`."""
    free = [0.0] * servers
    inside: list[float] = []
    found: list[tuple[float, float, float]] = []
    time = 0.0
    while len(found) < jobs:
        time += rng.exponential(1.0 / ceiling)
        while inside and inside[0] <= time:
            heapq.heappop(inside)
        if rng.random() * ceiling > rate(time, len(inside)):
            continue
        start = max(time, heapq.heappop(free))
        end = start + rng.exponential(service_mean)
        heapq.heappush(free, end)
        heapq.heappush(inside, end)
        found.append((time, start, end))
    return np.array(found)


def steady(rate: float) -> Callable[[float, int], float]:
    return lambda time, number: rate


def shy(rate: float, slope: float) -> Callable[[float, int], float]:
    """e^{slope} less (or more, up to ten jobs) for each job that is there."""
    return lambda time, number: rate * math.exp(slope * min(number, 10))


def rush(low: float, high: float) -> Callable[[float, int], float]:
    """High from 8 to 18 o'clock."""
    return lambda time, number: high if 8 <= time % 24 < 18 else low
