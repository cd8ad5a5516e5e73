"""The queues that are timed."""

from __future__ import annotations

import queueing_ucrl as qu


def paper(capacity: int) -> qu.Queue:
    """The paper's overloaded queue (Fig. 1 a) with room for `capacity`: PI-B takes 8 iterations from S = 30 on."""
    return classes(capacity, 2)


def classes(capacity: int, count: int) -> qu.Queue:
    """The paper's queue with its arrivals spread over `count` classes, paying from 20 down to 10."""
    rewards = [20.0 - 10.0 * i / max(1, count - 1) for i in range(count)]
    return qu.Queue(
        servers=5,
        capacity=capacity,
        service_rate=0.3,
        classes=[qu.JobClass(f"class {i}", 2.0 / count, r, qu.Linear(0.1)) for i, r in enumerate(rewards)],
    )


def many_servers(capacity: int) -> qu.Queue:
    """A quarter of the room is servers, at the same load: hard for PI-B, whose iterations then grow with S."""
    return qu.Queue(
        servers=capacity // 4,
        capacity=capacity,
        service_rate=0.3,
        classes=[qu.JobClass(name, capacity / 20, r, qu.Linear(0.1)) for name, r in (("gold", 20.0), ("basic", 10.0))],
    )


FAMILIES = {"paper": paper, "many-servers": many_servers}
