"""Memory does not grow with the horizon when no log is kept."""

from __future__ import annotations

import tracemalloc

import pytest
from generators import paper_queue

import queueing_ucrl as qu


def peak(horizon: float, engine: str, controller: object) -> int:
    tracemalloc.start()
    try:
        qu.simulate(paper_queue(), controller, horizon=horizon, seed=0, engine=engine)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("engine", "short"), [("compiled", 5e3), ("simpy", 500.0)])
@pytest.mark.parametrize("controller", [qu.UcrlAc((1.0, 4.0), 10.0), qu.AdmitAll()], ids=lambda c: c.name)
def test_peak_memory_is_flat_in_the_horizon(engine: str, short: float, controller: qu.Controller) -> None:
    peak(short, engine, controller)  # compiles, imports and fills caches
    small, large = peak(short, engine, controller), peak(16 * short, engine, controller)
    assert large < small + 200_000  # a log of these runs would hold ten megabytes, or a megabyte with SimPy
