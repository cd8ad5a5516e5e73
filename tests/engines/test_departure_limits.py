"""Reviews that come with a departure: both engines ask at the same event, whatever else happens at its time."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from test_equal_times import Scripted, coarse_sources, unit_queue
from twin_engines import as_story, differing, engine_queue, left_behind, new_engine, tallies

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World


class Counting(qu.Controller):
    """Asks again after 1 to `most` departures or after a period, whichever comes first, or only one of the two."""

    name = "counting"

    def __init__(self, most: int, period: float = np.inf) -> None:
        self.most, self.period = most, period

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        return CountingSession(knowledge.rewards.shape, rng, self.most, self.period)


class CountingSession:
    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator, most: int, period: float) -> None:
        self.shape, self.rng, self.most, self.period = shape, rng, most, period

    def first(self) -> qu.Plan:
        return self._plan(0.0)

    def review(self, tally: qu.Tally) -> qu.Plan:
        return self._plan(tally.now)

    def _plan(self, now: float) -> qu.Plan:
        least = 0 if self.period < np.inf else 1  # 0: no limit
        limit = int(self.rng.integers(least, self.most + 1))
        until = now + self.period if limit == 0 or self.rng.random() < 0.5 else np.inf
        admits = self.rng.random(self.shape) < 0.7
        admits[0, 0] = True  # or nobody would ever leave
        return qu.Plan(until=until, policy=qu.Policy(admits), departure_limit=limit or None)


class AtDepartures(qu.Controller):
    """Everybody is let in; the plans' limits and times are given."""

    name = "at-departures"

    def __init__(self, *plans: tuple[float, int | None]) -> None:
        self.plans = plans

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        policy, plans = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count), iter(self.plans)

        class Session:
            def first(self) -> qu.Plan:
                until, limit = next(plans, (np.inf, None))
                return qu.Plan(until=until, policy=policy, departure_limit=limit)

            def review(self, tally: qu.Tally) -> qu.Plan:
                return self.first()

        return Session()


def story(kind: Any, controller: Any, scripts: Any, latency: float = 0.0, **shape: int) -> list[tuple[float, str, int]]:
    """(time, event, episode) of a run with the given jobs."""
    queue = unit_queue(shape.get("servers", 1), shape.get("capacity", 4), (1.0,) * len(scripts))
    engine = new_engine(
        kind,
        queue,
        controller,
        horizon=100.0,
        sources=[Scripted(list(jobs)) for jobs in scripts],
        grid=[50.0],
        latency=latency,
    )
    engine.run()
    rows = np.concatenate(engine.log.blocks)  # type: ignore[union-attr]
    return [(float(r["time"]), EVENTS[r["event"]], int(r["episode"])) for r in rows]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_the_review_follows_the_departure_and_precedes_an_arrival(kind: Any) -> None:
    jobs = [(1.0, 3.0), (1.0, 5.0), (2.0, 1.0)]  # at 1, 2 and 4; the first leaves at 4
    assert story(kind, AtDepartures((np.inf, 1)), (jobs,)) == as_story("""
        time  event   episode
           1  admit         1
           1  start         1
           2  admit         1
           4  depart        1
           4  start         1
           4  review        2
           4  admit         2
           9  depart        2
           9  start         2
          10  depart        2
    """)


@pytest.mark.parametrize("kind", [World, Kernel])
def test_all_that_leaves_at_the_time_leaves_before_the_review(kind: Any) -> None:
    jobs = [(1.0, 3.0), (1.0, 2.0), (1.0, 1.0), (5.0, 1.0)]  # three leave at 4
    events = story(kind, AtDepartures((np.inf, 1), (np.inf, 1)), (jobs,), servers=3)
    at_four = [(event, episode) for time, event, episode in events if time == 4.0]
    assert at_four == [("depart", 1), ("depart", 1), ("depart", 1), ("review", 2)]
    assert [(time, episode) for time, event, episode in events if event == "review"] == [(4.0, 2), (9.0, 3)]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_time_and_a_limit_whichever_comes_first(kind: Any) -> None:
    jobs = [(1.0, 3.0), (4.0, 3.0), (4.0, 3.0)]  # leave at 4, 8 and 12
    for plans, times in [
        ([(3.0, 1), (np.inf, 1)], [3.0, 4.0]),  # the time first: the count starts anew
        ([(5.0, 1), (np.inf, 2)], [4.0, 12.0]),
        ([(4.0, 1), (np.inf, 1)], [4.0, 8.0]),  # both at once: one review
    ]:
        events = story(kind, AtDepartures(*plans), (jobs,))
        assert [time for time, event, _ in events if event == "review"] == times


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_limit_reached_while_the_solver_thinks_is_reviewed_with_its_answer(kind: Any) -> None:
    jobs = [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (3.0, 1.0)]  # leave at 2, 3, 4 and 7
    plans = [(np.inf, 1), (np.inf, 1), (np.inf, 2)]
    events = story(kind, AtDepartures(*plans), (jobs,), latency=1.5)
    # asked at 2, answered at 3.5: job 2 has left meanwhile, so asked again at 3.5; then with the second job after that
    assert [time for time, event, _ in events if event == "review"] == [2.0, 3.5, 7.0]


CASES = [(1, np.inf, 0.0), (3, np.inf, 0.0), (3, 1.0, 0.0), (2, np.inf, 0.3), (4, 2.0, 1.0)]  # most, period, latency


@pytest.mark.parametrize("number", range(40))
def test_engines_agree_on_random_queues(number: int) -> None:
    random = np.random.default_rng([9, number])
    queue = engine_queue(random, number)
    unit = 20 / queue.total_arrival_rate
    most, period, latency = CASES[number % len(CASES)]
    grid = np.sort(random.uniform(0.0, 30 * unit, 5))
    controller = Counting(most, period * unit)
    settings: dict[str, Any] = {"horizon": 30 * unit, "seed": number, "latency": latency * unit, "grid": grid}
    results = []
    for kind in (World, Kernel):
        engine = new_engine(kind, queue, controller, **settings)
        results.append(left_behind(engine, engine.run()))
    assert differing(*results) == []


@pytest.mark.parametrize("number", range(40))
def test_engines_agree_where_nearly_every_time_is_shared(number: int) -> None:
    random = np.random.default_rng([10, number])
    servers, capacity = int(random.integers(1, 9)), int(random.integers(1, 14))
    rates = tuple(float(2.0 ** random.integers(-1, 3)) for _ in range(random.integers(1, 4)))
    queue = unit_queue(servers, capacity, rates)
    most, period, latency = CASES[number % len(CASES)]
    controller = Counting(most, period if period == np.inf else 2.0)
    settings: dict[str, Any] = {"horizon": 300.0, "latency": 0.25 * np.ceil(latency), "grid": [0.25, 7.0, 150.0]}
    results = []
    for kind in (World, Kernel):
        engine = new_engine(kind, queue, controller, sources=coarse_sources(queue, number, 300.0)[:-1], **settings)
        results.append(left_behind(engine, engine.run()))
    assert differing(*results) == []
    assert len(tallies(engine)) > 10


def test_a_run_stopped_and_pickled_anywhere_goes_on_the_same() -> None:
    queue = unit_queue(3, 9, (2.0, 1.0))
    whole = new_engine(Kernel, queue, Counting(3, 2.0), horizon=200.0, latency=0.25, seed=4)
    expected = left_behind(whole, whole.run())
    engine = new_engine(Kernel, queue, Counting(3, 2.0), horizon=200.0, latency=0.25, seed=4)
    for stop in np.random.default_rng(2).uniform(0.0, 200.0, 30):
        engine.go_on(float(stop))  # type: ignore[union-attr]
        engine = pickle.loads(pickle.dumps(engine))
    assert differing(left_behind(engine, engine.run()), expected) == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="departure_limit"):
        qu.Plan(policy=qu.Policy.admit_all(2, 1), departure_limit=limit)
