"""A learner of one's own: an estimator and a planner of its own, the rest from the package's parts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from both_engines import on_both, studies_agree

import queueing_ucrl as qu
from queueing_ucrl.learning.planners import PlanningModel, model_at
from queueing_ucrl.learning.schedules import Clock, Geometric, Periodic
from queueing_ucrl.learning.session import LearningSession


@dataclass(frozen=True)
class Counted:
    """What is believed: so many jobs of each class in so much time."""

    arrivals: np.ndarray
    time: float

    def contains(self, arrival_rates):
        """It excludes nothing."""

    def columns(self):
        return {"counted": self.arrivals.tolist(), "counted_for": self.time}


class Counter:
    """The estimator: counts that start at a guess, `guess` jobs of each class in a unit of time."""

    def __init__(self, classes, guess):
        self.arrivals, self.time = np.full(classes, guess), 1.0

    def prior(self):
        return Counted(self.arrivals, self.time)

    def update(self, tally, length):
        self.arrivals, self.time = self.arrivals + tally.arrivals, self.time + tally.duration
        return Counted(self.arrivals, self.time)

    def truncation(self, length):
        return math.inf


@dataclass(frozen=True)
class Cautious:
    """The planner: plans for rates that are `margin` standard errors above what was counted."""

    knowledge: qu.Knowledge
    margin: float

    def __call__(self, belief):
        rates = (belief.arrivals + self.margin * np.sqrt(belief.arrivals)) / belief.time
        return PlanningModel(model_at(self.knowledge, rates, None), belief)


@dataclass(frozen=True)
class CountAndHope(qu.Controller):
    """An upper limit for every rate from counts and a guess."""

    name = "count-and-hope"
    guess: float = 1.0
    margin: float = 2.0
    period: float | None = None

    def begin(self, knowledge, rng):
        schedule = Geometric(1.5) if self.period is None else Periodic(self.period)
        estimator = Counter(knowledge.class_count, self.guess)
        return LearningSession(knowledge, estimator, Cautious(knowledge, self.margin), Clock(schedule, 5.0))


class ByCode:
    """No subclass, no table: any object with `begin`, whose session decides each arrival."""

    decides_each_arrival = True

    def begin(self, knowledge, rng):
        self.half = knowledge.capacity // 2
        return self

    def first(self):
        return qu.Plan(policy=qu.Policy.admit_all(10, 2))

    def decide(self, job_class, in_system, now):
        return job_class == 0 or in_system < self.half


QUEUE = qu.Queue(
    servers=3,
    capacity=10,
    service_rate=0.4,
    classes=[qu.JobClass("gold", 0.8, 20.0, qu.Linear(0.3)), qu.JobClass("basic", 1.6, 4.0, qu.Linear(0.3))],
)


SYSTEM = qu.System(
    3,
    10,
    [
        qu.JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost, service=qu.Deterministic(2.5))
        for c in QUEUE.classes
    ],
)


@pytest.mark.parametrize("where", [QUEUE, SYSTEM], ids=["queue", "system"])
@pytest.mark.parametrize("learner", [CountAndHope(), CountAndHope(0.1, 0.0, 30.0)], ids=str)
@pytest.mark.parametrize("latency", [0.0, 7.0])
def test_both_engines_give_the_same_log(where, learner, latency):
    run = on_both(where, learner, horizon=500.0, seed=3, solver_latency=latency)
    assert (run.events["event"] == "review").sum() > 5
    assert len(run.solves) == len(run.episodes)


def test_it_is_handed_all_that_came():
    """Its belief at a review is its guess and the arrivals of the log before it."""
    run = on_both(QUEUE, CountAndHope(guess=0.5), horizon=400.0, seed=1)
    came = run.events[run.events["event"].isin(["admit", "reject", "block"])]
    for row in run.episodes.itertuples():
        before = came[came["time"] < row.start]["job_class"].value_counts()
        assert row.counted == [0.5 + before.get("gold", 0), 0.5 + before.get("basic", 0)]
        assert row.counted_for == pytest.approx(1.0 + row.start, rel=1e-12)


def test_it_learns():
    """In the long run its policy is the best one; that of its guess is not."""
    run = qu.simulate(QUEUE, CountAndHope(guess=30.0, margin=0.0), horizon=2e5, seed=2)
    best = qu.solve(QUEUE).gain
    gains = run.episodes["gain"]
    assert gains.iloc[0] < 0.99 * best
    assert gains.iloc[-1] == pytest.approx(best, rel=1e-6)


def test_it_is_compared_with_others_in_worker_processes():
    controllers = [CountAndHope(), CountAndHope(margin=0.0), "oracle"]
    study = studies_agree(QUEUE, controllers, ["gap", "pseudo", "realised_reward"], horizon=300.0)
    names = [cell.name for cell in study.cells]
    assert names == ["count-and-hope", "count-and-hope (margin=0.0)", "oracle"]
    assert set(study.episodes().dropna(subset="counted")["controller"]) == set(names[:2])
    differences = study.differences("oracle")
    assert set(differences["controller"]) == set(names[:2])


def test_check_controller_finds_nothing_wrong_with_it():
    report = qu.check_controller(CountAndHope())
    assert report.findings == ()
    assert report.calls > 100


def test_one_that_decides_each_arrival_runs_in_the_simpy_world():
    run = qu.simulate(SYSTEM, ByCode(), horizon=300.0, seed=4, log=True)
    assert run.engine == "simpy"
    assert run.engine_reason == "the controller decides each arrival by code of its own"
    basic = run.events[(run.events["event"] == "reject")]
    assert set(basic["job_class"]) == {"basic"}
    assert basic["in_system"].min() == 5
    with pytest.raises(ValueError, match="it runs on engine 'simpy' only"):
        qu.simulate(SYSTEM, ByCode(), horizon=300.0, engine="compiled")
    table = qu.simulate(SYSTEM, qu.TrunkReservation((10, 5)), horizon=300.0, seed=4, log=True)
    pd.testing.assert_frame_equal(run.events, table.events, check_exact=True)


def test_an_observer_is_told_every_review():
    seen = []
    run = qu.simulate(QUEUE, CountAndHope(), horizon=300.0, on_review=lambda tally, plan: seen.append((tally, plan)))
    assert seen[0][0] is None
    assert [tally.now for tally, _ in seen[1:]] == run.episodes["end"].tolist()[:-1]
    assert [plan.belief.columns() for _, plan in seen] == [
        {"counted": row.counted, "counted_for": row.counted_for} for row in run.episodes.itertuples()
    ]


class Mistaken:
    """A session whose code fails in one of its methods; classes at the top level, so that it can be pickled."""

    def __init__(self, knowledge, where):
        self.open = qu.Policy.admit_all(knowledge.capacity, knowledge.class_count)
        self.where = where

    def first(self):
        if self.where == "first":
            raise KeyError("gold")
        return qu.Plan(self.open, until=10.0)

    def review(self, tally):
        raise KeyError("gold")


class MistakenAtArrivals(Mistaken):
    def decide(self, job_class, in_system, now):
        raise KeyError("gold")


@dataclass(frozen=True)
class Mistake(qu.Controller):
    name = "mistake"
    where: str = "review"

    @property
    def decides_each_arrival(self):
        return self.where == "decide"

    def begin(self, knowledge, rng):
        return (MistakenAtArrivals if self.decides_each_arrival else Mistaken)(knowledge, self.where)


@pytest.mark.parametrize(
    ("where", "said"),
    [("first", "in first() of controller mistake"), ("review", "in review() of controller mistake, at time 10")],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_session_names_the_controller_and_the_time(where, said, jobs):
    """It stays the error that it is, also from a worker process."""
    with pytest.raises(KeyError, match="gold") as caught:
        qu.replicate(QUEUE, [Mistake(where), "oracle"], horizon=300.0, replications=2, jobs=jobs)
    assert caught.value.__notes__ == [said]


def test_an_error_in_a_decision_names_the_controller_and_the_time():
    with pytest.raises(KeyError, match="gold") as caught:
        qu.simulate(QUEUE, Mistake("decide"), horizon=300.0)
    (note,) = caught.value.__cause__.__notes__  # SimPy raises a copy
    assert re.fullmatch(r"in decide\(\) of controller mistake, at time \d\.\d+", note)
