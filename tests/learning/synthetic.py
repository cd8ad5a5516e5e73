"""Tallies of made-up counts: a session or an estimator at work without a queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from queueing_ucrl.learning.controller import Knowledge, Plan, Tally


def tally(
    now: float,
    duration: float,
    arrivals: Any,
    departures: int = 0,
    busy_time: float = 0.0,
    capacity: int = 1,
    **more: Any,
) -> Tally:
    """What was seen, as far as learners of rates look at it."""
    counts = np.asarray(arrivals, dtype=np.int64)
    return Tally(
        now=now,
        duration=duration,
        arrivals=counts,
        gap_sum=duration,
        truncated_gap_sum=duration,
        admissions=np.zeros((capacity, counts.size), dtype=np.int64),
        time_in_state=np.zeros(capacity + 1),
        departures=departures,
        busy_time=busy_time,
        **more,
    )


def drive(
    controller: Any,
    knowledge: Knowledge,
    rates: Callable[[float], Any],
    horizon: float,
    random: np.random.Generator,
    service_rate: float = 0.0,
) -> list[tuple[float, Plan]]:
    """All plans of a session that sees Poisson arrivals of rates(time), every server busy all the time."""
    session = controller.begin(knowledge, np.random.default_rng(1))
    plans = [(0.0, session.first())]
    while plans[-1][1].until < horizon:
        began, now = plans[-1][0], plans[-1][1].until
        arrivals = random.poisson(np.asarray(rates(0.5 * (began + now))) * (now - began))
        busy = knowledge.servers * (now - began)
        departures = int(random.poisson(service_rate * busy)) if service_rate else 0
        plans.append((now, session.review(tally(now, now - began, arrivals, departures, busy, knowledge.capacity))))
    return plans
