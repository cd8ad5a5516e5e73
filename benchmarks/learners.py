"""The general-purpose learners: microseconds a tick of the uniformized chain, world and planning included."""

from __future__ import annotations

import queueing_ucrl as qu
from benchmarks import queues
from benchmarks.timing import Line, Measured, race

TICKS = 350_000
LIMITS = {"ucrl2": 4.0, "psrl": 4.0, "ucrl2b": 8.0, "kl-ucrl": 12.0, "ucrl3": 30.0}  # microseconds a tick
ELSEWHERE = {"ucrl2": 37, "psrl": 54, "ucrl2b": 90, "kl-ucrl": 133, "ucrl3": 428}  # a public library, same machines


def tabular_learners(smoke: bool) -> Measured:
    """Each learner over 350,000 ticks of the paper's first queue (S = 20, mu = 0.3), one core."""
    queue = queues.paper(20)
    rate = queue.total_arrival_rate + queue.max_service_rate
    ticks = 3500 if smoke else TICKS
    sides = {name: lambda name=name: qu.simulate(queue, name, horizon=ticks / rate, seed=1) for name in LIMITS}
    seconds = race(sides, 1 if smoke else 3)
    lines = []
    for name, limit in LIMITS.items():
        note = f"{ticks} ticks, S = 20; a public library took {ELSEWHERE[name]}"
        lines.append(Line(f"{name}, a tick", 1e6 * seconds[name] / ticks, "us", at_most=limit, note=note))
    return Measured(lines)


MEASURES = [tabular_learners]
