"""Reviews before arrivals: both engines ask at the same one, and the job is decided on by the new policy."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from generators import balking_queue, random_system
from test_equal_times import Scripted, coarse_sources, unit_queue
from twin_engines import as_story, differing, left_behind, new_engine, tallies

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World


class Arriving(qu.Controller):
    """Asks again before an arrival after 1 to `most` others, or after a period, or once so many have left."""

    name = "arriving"

    def __init__(self, most: int, period: float = np.inf, departures: int | None = None) -> None:
        self.most, self.period, self.departures = most, period, departures

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        return ArrivingSession(knowledge.rewards.shape, rng, self)


class ArrivingSession:
    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator, told: Arriving) -> None:
        self.shape, self.rng, self.told = shape, rng, told
        self.limit = 0

    def first(self) -> qu.Plan:
        return self._plan(0.0)

    def review(self, tally: qu.Tally) -> qu.Plan:
        return self._plan(tally.now)

    def _plan(self, now: float) -> qu.Plan:
        self.limit = int(self.rng.integers(1, self.told.most + 1))
        policy = qu.Policy(self.rng.random(self.shape) < 0.7)
        more = {"departure_limit": self.told.departures, "arrival_limit": self.limit}
        return qu.Plan(until=now + self.told.period, policy=policy, **more)


class Alternating(qu.Controller):
    """Admits all and nobody in turns, reviewed before an arrival after each number of others that is given."""

    name = "alternating"

    def __init__(self, *limits: int, ends: tuple[float, ...] = ()) -> None:
        self.limits, self.ends = limits, ends

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        shape, limits, ends = knowledge.rewards.shape, list(self.limits), list(self.ends)
        answers = iter([qu.Policy(np.full(shape, k % 2 == 0)) for k in range(len(limits) + 1)])

        class Session:
            def first(self) -> qu.Plan:
                limit = limits.pop(0) if limits else None
                return qu.Plan(until=ends.pop(0) if ends else np.inf, policy=next(answers), arrival_limit=limit)

            def review(self, tally: qu.Tally) -> qu.Plan:
                return self.first()

        return Session()


def story(kind: Any, controller: Any, scripts: Any, latency: float = 0.0) -> list[tuple[float, str, int]]:
    """(time, event, episode) of a run with the given jobs."""
    queue = unit_queue(2, 4, (1.0,) * len(scripts))
    sources = [Scripted(list(jobs)) for jobs in scripts]
    engine = new_engine(kind, queue, controller, horizon=100.0, sources=sources, grid=[50.0], latency=latency)
    engine.run()
    rows = np.concatenate(engine.log.blocks)  # type: ignore[union-attr]
    return [(float(r["time"]), EVENTS[r["event"]], int(r["episode"])) for r in rows]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_the_review_comes_before_the_arrival_and_after_what_leaves(kind: Any) -> None:
    jobs = [(1.0, 3.0), (1.0, 9.0), (2.0, 1.0), (1.0, 1.0)]  # at 1, 2, 4 and 5; the first leaves at 4
    assert story(kind, Alternating(2, 1), (jobs,)) == as_story("""
        time  event   episode
           1  admit         1
           1  start         1
           2  admit         1
           2  start         1
           4  depart        1
           4  review        2
           4  reject        2
           5  review        3
           5  admit         3
           5  start         3
           6  depart        3
          11  depart        3
    """)


@pytest.mark.parametrize("kind", [World, Kernel])
def test_of_two_that_come_at_once_each_may_call_for_a_review(kind: Any) -> None:
    first, second = [(1.0, 1.0), (2.0, 1.0)], [(3.0, 1.0)]  # at 1 and 3; at 3
    events = story(kind, Alternating(1, 1), (first, second))
    at_three = [(event, episode) for time, event, episode in events if time == 3.0]
    assert at_three == [("review", 2), ("reject", 2), ("review", 3), ("admit", 3), ("start", 3)]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_a_review_at_its_time_counts_anew(kind: Any) -> None:
    jobs = [(1.0, 1.0), (2.0, 1.0), (2.0, 1.0)]  # at 1, 3 and 5
    events = story(kind, Alternating(1, 1, ends=(3.0,)), (jobs,))
    assert [time for time, event, _ in events if event == "review"] == [3.0, 5.0]


@pytest.mark.parametrize("kind", [World, Kernel])
def test_while_the_solver_thinks_nobody_is_asked_again(kind: Any) -> None:
    jobs = [(1.0, 1.0)] * 6  # at 1, 2, .., 6
    events = story(kind, Alternating(1, 1), (jobs,), latency=2.5)
    # asked at 2, and jobs 2 to 4 are decided on by the old policy; answered at 4.5; asked again at 5
    assert [time for time, event, _ in events if event == "review"] == [2.0, 5.0]
    assert [event for time, event, _ in events if event in ("admit", "reject")] == ["admit"] * 4 + ["reject"] * 2


CASES: list[dict[str, Any]] = [
    {"most": 1},
    {"most": 4, "period": 1.0},
    {"most": 3, "departures": 2},
    {"most": 2, "latency": 0.3},
    {"most": 5, "period": 2.0, "departures": 1, "latency": 1.0},
]


def agree(system: qu.System, number: int, unit: float, **more: Any) -> Any:
    case = dict(CASES[number % len(CASES)])
    latency, period = case.pop("latency", 0.0) * unit, case.pop("period", np.inf) * unit
    controller = Arriving(period=period, **case)
    engines = [new_engine(kind, system, controller, seed=number, latency=latency, **more) for kind in (World, Kernel)]
    assert differing(*(left_behind(engine, engine.run()) for engine in engines)) == []
    return engines[1]


@pytest.mark.parametrize("number", range(15))
def test_engines_agree_where_jobs_balk(number: int) -> None:
    queue = balking_queue(np.random.default_rng([19, number]))
    unit = 20 / queue.total_arrival_rate
    agree(queue, number, unit, horizon=20 * unit, grid=[3.3 * unit])


@pytest.mark.parametrize("number", range(20))
def test_engines_agree_in_worlds_of_every_kind(number: int) -> None:
    system = random_system(np.random.default_rng([20, number]))
    unit = 20 / sum(c.peak_rate for c in system.classes)
    agree(system, number, unit, horizon=15 * unit, grid=[3.3 * unit])


@pytest.mark.parametrize("number", range(20))
def test_engines_agree_where_nearly_every_time_is_shared(number: int) -> None:
    random = np.random.default_rng([21, number])
    rates = tuple(float(2.0 ** random.integers(-1, 3)) for _ in range(random.integers(1, 4)))
    queue = unit_queue(int(random.integers(1, 9)), int(random.integers(1, 14)), rates)
    sources = [coarse_sources(queue, number, 100.0)[:-1] for _ in range(2)]
    case = dict(CASES[number % len(CASES)])
    latency, controller = float(np.ceil(case.pop("latency", 0.0))) / 4.0, Arriving(**case)
    more: dict[str, Any] = {"horizon": 100.0, "latency": latency, "grid": [0.25, 7.0]}
    engines = [
        new_engine(kind, queue, controller, sources=mine, **more)
        for kind, mine in zip((World, Kernel), sources, strict=True)
    ]
    assert differing(*(left_behind(engine, engine.run()) for engine in engines)) == []
    assert len(tallies(engines[1])) > 5


def test_a_review_sees_as_many_arrivals_as_its_limit_says() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    limits: list[int] = []

    def check(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            assert tally.arrival_count == limits[-1]
        assert plan.arrival_limit is not None
        limits.append(plan.arrival_limit)

    qu.simulate(queue, Arriving(5), horizon=500.0, seed=3, on_review=check)
    assert len(limits) > 100


def test_a_run_stopped_and_pickled_anywhere_goes_on_the_same() -> None:
    queue = unit_queue(3, 9, (2.0, 1.0))
    controller = Arriving(3, 2.0)
    whole = new_engine(Kernel, queue, controller, horizon=200.0, latency=0.25, seed=4)
    expected = left_behind(whole, whole.run())
    engine = new_engine(Kernel, queue, controller, horizon=200.0, latency=0.25, seed=4)
    for stop in np.random.default_rng(2).uniform(0.0, 200.0, 30):
        engine.go_on(float(stop))  # type: ignore[union-attr]
        engine = pickle.loads(pickle.dumps(engine))
    assert differing(left_behind(engine, engine.run()), expected) == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match="arrival_limit"):
        qu.Plan(policy=qu.Policy.admit_all(2, 1), arrival_limit=limit)
