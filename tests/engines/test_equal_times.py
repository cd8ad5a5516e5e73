"""What happens at the same time: departures (the older job first), then reviews, then arrivals (class by class)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from twin_engines import Ticker, differing, left_behind, new_engine

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.streams import JobStream, Streams
from queueing_ucrl.simulation.world import World

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class ScriptedJobs(JobStream):
    """Gaps and service times from lists; after the last job, none."""

    script: list[tuple[float, float]] = field(default_factory=list)

    def fill(self, gaps: FloatArray, services: FloatArray) -> None:
        gaps[:], services[:] = np.inf, 1.0
        block, self.script = self.script[: len(gaps)], self.script[len(gaps) :]
        for n, (gap, service) in enumerate(block):
            gaps[n], services[n] = gap, service


@dataclass(frozen=True)
class Scripted(Streams):
    """The jobs of each class from a list of (gap, service time)."""

    scripts: tuple[list[tuple[float, float]], ...] = ()

    def jobs(self, job_class: int) -> JobStream:
        stream = super().jobs(job_class)
        return ScriptedJobs(stream.gaps, stream.services, list(self.scripts[job_class]))


@dataclass
class CoarseJobs(JobStream):
    """Multiples of a quarter, zero included: hardly an event has its time for itself."""

    def fill(self, gaps: FloatArray, services: FloatArray) -> None:
        super().fill(gaps, services)
        for numbers in (gaps, services):
            np.floor(4 * numbers, out=numbers)
            numbers /= 4


@dataclass
class CoarseTicks(JobStream):
    def fill(self, gaps: FloatArray, services: FloatArray) -> None:
        super().fill(gaps, services)
        np.floor(4 * gaps, out=gaps)
        gaps /= 4


class Coarse(Streams):
    def jobs(self, job_class: int) -> JobStream:
        stream = super().jobs(job_class)
        return CoarseJobs(stream.gaps, stream.services)

    def ticks(self) -> JobStream:
        stream = super().ticks()
        return CoarseTicks(stream.gaps, stream.services)


def unit_queue(servers: int, capacity: int, rates: tuple[float, ...], service_rate: float = 1.0) -> qu.Queue:
    classes = [qu.JobClass(f"class {i}", rate, 10.0 - i, qu.Linear(0.1)) for i, rate in enumerate(rates)]
    return qu.Queue(servers, capacity, service_rate, classes)


class AdmitAllReviewed(qu.Controller):
    """Everybody, with a review at given times."""

    name = "admit-all-reviewed"

    def __init__(self, *times: float) -> None:
        self.times = (*times, np.inf)

    def begin(self, knowledge: qu.Knowledge, chance: np.random.Generator) -> Any:
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
        kind, queue, AdmitAllReviewed(*reviews), horizon=100.0, streams=Scripted(0, 0, scripts), grid=[50.0]
    )
    engine.run()
    rows = np.concatenate(engine.log.blocks)  # type: ignore[union-attr]
    return [(float(r["time"]), EVENTS[r["event"]], int(r["job"]), int(r["in_system"])) for r in rows]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_departure_comes_before_a_review_and_that_before_an_arrival(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=2, rates=(1.0,))
    jobs = [(1.0, 3.0), (1.0, 5.0), (2.0, 1.0)]  # at 1, 2 and 4; the first leaves at 4
    assert story(kind, queue, (jobs,), 4.0) == [
        (1.0, "admit", 0, 0), (1.0, "start", 0, 1),
        (2.0, "admit", 1, 1),
        (4.0, "depart", 0, 2), (4.0, "start", 1, 1), (4.0, "review", -1, 1), (4.0, "admit", 2, 1),
        (9.0, "depart", 1, 2), (9.0, "start", 2, 1), (10.0, "depart", 2, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [World, Kernel])
def test_departures_at_the_same_time_come_by_age_each_with_its_successor(kind: Any) -> None:
    queue = unit_queue(servers=3, capacity=6, rates=(1.0,))
    jobs = [(1.0, 7.0), (1.0, 6.0), (1.0, 5.0), (1.0, 1.0), (1.0, 1.0)]  # the first three leave at 8
    assert [event for event in story(kind, queue, (jobs,)) if event[0] >= 8.0] == [
        (8.0, "depart", 0, 5), (8.0, "start", 3, 4), (8.0, "depart", 1, 4), (8.0, "start", 4, 3),
        (8.0, "depart", 2, 3), (9.0, "depart", 3, 2), (9.0, "depart", 4, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [World, Kernel])
def test_arrivals_at_the_same_time_come_class_by_class(kind: Any) -> None:
    queue = unit_queue(servers=5, capacity=9, rates=(1.0, 1.0))
    # class 1 has announced its arrival at 2 before class 0 did
    events = story(kind, queue, ([(1.0, 9.0), (1.0, 9.0)], [(2.0, 9.0), (0.0, 9.0)]))
    admitted = [(time, in_system) for time, event, _, in_system in events if event == "admit"]
    assert admitted == [(1.0, 0), (2.0, 1), (2.0, 2), (2.0, 3)]
    engine = new_engine(
        kind, queue, AdmitAllReviewed(), horizon=9.0,
        streams=Scripted(0, 0, ([(1.0, 9.0), (1.0, 9.0)], [(2.0, 9.0), (0.0, 9.0)])),
    )  # fmt: skip
    assert [job.job_class for job in engine.run()] == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_job_that_needs_no_time_leaves_before_anything_else(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=1, rates=(1.0, 1.0))
    assert story(kind, queue, ([(2.0, 0.0)], [(2.0, 1.0)]), 2.0) == [
        (2.0, "review", -1, 0), (2.0, "admit", 0, 0), (2.0, "start", 0, 1), (2.0, "depart", 0, 1),
        (2.0, "admit", 1, 0), (2.0, "start", 1, 1), (3.0, "depart", 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [World, Kernel])
def test_what_happens_at_the_horizon_is_not_counted(kind: Any) -> None:
    queue = unit_queue(servers=1, capacity=3, rates=(1.0,))
    engine = new_engine(
        kind, queue, AdmitAllReviewed(5.0), horizon=5.0, streams=Scripted(0, 0, ([(1.0, 4.0), (4.0, 1.0)],))
    )
    (left,) = engine.run()
    assert (left.job, left.start) == (0, 1.0)
    assert engine.desk.session.tallies == []


@pytest.mark.parametrize("number", range(40))
def test_engines_agree_where_nearly_every_time_is_shared(number: int) -> None:
    random = np.random.default_rng([6, number])
    servers, capacity = int(random.integers(1, 9)), int(random.integers(1, 14))
    rates = tuple(float(2.0 ** random.integers(-1, 3)) for _ in range(random.integers(1, 4)))
    queue = unit_queue(servers, capacity, rates, float(2.0 ** random.integers(-2, 2)))
    controller, latency = [
        (qu.RandomPolicy(0.7, 3.0), 0.0), (qu.RandomPolicy(0.7, 2.0), 0.5), (qu.RandomPolicy(0.7, 0.5), 1.0),
        (Ticker(), 0.0), (Ticker(2.0), 0.0), (qu.UcrlAc((1.0, 16.0), 8.0), 0.25),
    ][number % 6]  # fmt: skip
    results = []
    for kind in (World, Kernel):
        engine = new_engine(
            kind, queue, controller, horizon=128.0, latency=latency, grid=np.arange(1.0, 128.0),
            streams=Coarse(number, 0),
        )  # fmt: skip
        results.append(left_behind(engine, engine.run()))
    assert differing(*results) == []
