"""What happens at the same time: departures (the older job first), then reviews, then arrivals (class by class)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from twin_engines import Ticker, as_story, differing, left_behind, new_engine, tallies

import queueing_ucrl as qu
from queueing_ucrl.model.laws import Scaled, Stream
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import JobBlock, Source, job_sources, tick_source
from queueing_ucrl.simulation.world import World

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Scripted:
    """Jobs from a list of (gap, service time); after the last, none."""

    script: list[tuple[float, float]]
    now: float = 0.0

    def fill(self, jobs: JobBlock) -> int:
        times, works = jobs.time, jobs.work
        times[0] = np.inf
        block, self.script = self.script[: len(times)], self.script[len(times) :]
        for n, (gap, service) in enumerate(block):
            self.now += gap
            times[n], works[n] = self.now, service
        return max(1, len(block))


@dataclass
class Quarters:
    """Multiples of a quarter, zero included: hardly an event has its time for itself."""

    numbers: Stream

    def fill(self, out: FloatArray) -> None:
        self.numbers.fill(out)
        np.floor(4 * out, out=out)
        out /= 4


def coarse_sources(queue: qu.Queue, seed: int, horizon: float) -> list[Source]:
    """The sources of a run (with those of ticks), their times in quarters of the means."""
    randomness = Randomness(seed, 0)
    found = [*job_sources(queue, randomness, horizon), tick_source(queue, randomness, horizon)]
    for source in found:
        source.arrivals.gaps = Quarters(source.arrivals.gaps)  # type: ignore[attr-defined]
    for source in found[:-1]:
        scaled = source.services  # type: ignore[attr-defined]
        source.services = Scaled(Quarters(scaled.stream), scaled.factor)  # type: ignore[attr-defined]
    return found


def unit_queue(servers: int, capacity: int, rates: tuple[float, ...], service_rate: float = 1.0) -> qu.Queue:
    classes = [qu.JobClass(f"class {i}", rate, 10.0 - i, qu.Linear(0.1)) for i, rate in enumerate(rates)]
    return qu.Queue(servers, capacity, service_rate, classes)


class AdmitAllReviewed(qu.Controller):
    """Everybody, with a review at given times."""

    name = "admit-all-reviewed"

    def __init__(self, *times: float) -> None:
        self.times = (*times, np.inf)

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        policy, times = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count), iter(self.times)

        class Session:
            def first(self) -> qu.Plan:
                return qu.Plan(until=next(times), policy=policy)

            def review(self, tally: qu.Tally) -> qu.Plan:
                return self.first()

        return Session()


def story(kind: Any, queue: qu.Queue, scripts: Any, *reviews: float) -> list[tuple[float, str, int, int]]:
    """(time, event, job, in_system) of a run with the given jobs."""
    engine = new_engine(
        kind,
        queue,
        AdmitAllReviewed(*reviews),
        horizon=100.0,
        sources=[Scripted(list(jobs)) for jobs in scripts],
        grid=[50.0],
    )
    engine.run()
    rows = np.concatenate(engine.log.blocks)  # type: ignore[union-attr]
    return [(float(r["time"]), EVENTS[r["event"]], int(r["job"]), int(r["in_system"])) for r in rows]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_departure_comes_before_a_review_and_that_before_an_arrival(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=2, rates=(1.0,))
    jobs = [(1.0, 3.0), (1.0, 5.0), (2.0, 1.0)]  # at 1, 2 and 4; the first leaves at 4
    assert story(kind, queue, (jobs,), 4.0) == as_story("""
        time  event   job  in_system
           1  admit     0          0
           1  start     0          1
           2  admit     1          1
           4  depart    0          2
           4  start     1          1
           4  review   -1          1
           4  admit     2          1
           9  depart    1          2
           9  start     2          1
          10  depart    2          1
    """)


@pytest.mark.parametrize("kind", [World, Kernel])
def test_departures_at_the_same_time_come_by_age_each_with_its_successor(kind: Any) -> None:
    queue = unit_queue(servers=3, capacity=6, rates=(1.0,))
    jobs = [(1.0, 7.0), (1.0, 6.0), (1.0, 5.0), (1.0, 1.0), (1.0, 1.0)]  # the first three leave at 8
    assert [event for event in story(kind, queue, (jobs,)) if event[0] >= 8.0] == as_story("""
        time  event   job  in_system
           8  depart    0          5
           8  start     3          4
           8  depart    1          4
           8  start     4          3
           8  depart    2          3
           9  depart    3          2
           9  depart    4          1
    """)


@pytest.mark.parametrize("kind", [World, Kernel])
def test_arrivals_at_the_same_time_come_class_by_class(kind: Any) -> None:
    queue = unit_queue(servers=5, capacity=9, rates=(1.0, 1.0))
    # class 1 has announced its arrival at 2 before class 0 did
    scripts = ([(1.0, 9.0), (1.0, 9.0)], [(2.0, 9.0), (0.0, 9.0)])
    events = story(kind, queue, scripts)
    admitted = [(time, in_system) for time, event, _, in_system in events if event == "admit"]
    assert admitted == [(1.0, 0), (2.0, 1), (2.0, 2), (2.0, 3)]
    engine = new_engine(kind, queue, AdmitAllReviewed(), horizon=9.0, sources=[Scripted(jobs) for jobs in scripts])
    assert [job.job_class for job in engine.run()] == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_job_that_needs_no_time_leaves_before_anything_else(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=1, rates=(1.0, 1.0))
    assert story(kind, queue, ([(2.0, 0.0)], [(2.0, 1.0)]), 2.0) == as_story("""
        time  event   job  in_system
           2  review   -1          0
           2  admit     0          0
           2  start     0          1
           2  depart    0          1
           2  admit     1          0
           2  start     1          1
           3  depart    1          1
    """)


@pytest.mark.parametrize("kind", [World, Kernel])
def test_what_happens_at_the_horizon_is_not_counted(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=3, rates=(1.0,))
    engine = new_engine(kind, queue, AdmitAllReviewed(5.0), horizon=5.0, sources=[Scripted([(1.0, 4.0), (4.0, 1.0)])])
    (left,) = engine.run()
    assert (left.job, left.start) == (0, 1.0)
    assert tallies(engine) == []


@pytest.mark.parametrize("number", range(40))
def test_engines_agree_where_nearly_every_time_is_shared(number: int) -> None:
    random = np.random.default_rng([6, number])
    servers, capacity = int(random.integers(1, 9)), int(random.integers(1, 14))
    rates = tuple(float(2.0 ** random.integers(-1, 3)) for _ in range(random.integers(1, 4)))
    queue = unit_queue(servers, capacity, rates, float(2.0 ** random.integers(-2, 2)))
    tossed = [(qu.RandomPolicy(0.7, 3.0), 0.0), (qu.RandomPolicy(0.7, 2.0), 0.5), (qu.RandomPolicy(0.7, 0.5), 1.0)]
    others = [(Ticker(), 0.0), (Ticker(2.0), 0.0), (qu.UcrlAc((1.0, 16.0), 8.0), 0.25)]
    controller, latency = (tossed + others)[number % 6]
    settings: dict[str, Any] = {"horizon": 128.0, "latency": latency, "grid": np.arange(1.0, 128.0)}
    results = []
    for kind in (World, Kernel):
        sources = coarse_sources(queue, number, 128.0)[: len(rates) + controller.sees_ticks]
        engine = new_engine(kind, queue, controller, sources=sources, **settings)
        results.append(left_behind(engine, engine.run()))
    assert differing(*results) == []
