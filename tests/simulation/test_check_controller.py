"""check_controller finds nothing wrong with our own controllers, and names what is wrong with two dozen broken ones."""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import pytest

import queueing_ucrl as qu
from queueing_ucrl.learning.catalogue import entry

A = qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1))
FEW = {"one class": qu.Queue(1, 5, 1.0, [A]), "two classes": qu.Queue(2, 4, 0.7, [A, qu.JobClass("b", 0.7, 3.0)])}


class Session:
    """Reviews every two units of time; who gets in depends on what was seen and on the session's own random numbers."""

    def __init__(self, knowledge, rng, controller):
        self.knowledge, self.rng, self.controller = knowledge, rng, controller
        self.seen = np.zeros(knowledge.class_count, dtype=np.int64)

    def plan(self, now, **parts):
        share = 0.9 if self.seen.sum() % 2 else 0.6
        policy = qu.Policy(self.rng.random((self.knowledge.capacity, self.knowledge.class_count)) < share)
        return qu.Plan(**{"until": now + 2.0, "policy": policy, **parts})

    def first(self):
        return self.plan(0.0)

    def review(self, tally):
        self.seen = self.seen + tally.arrivals
        return self.plan(tally.now)


class Guest:
    """A controller without a base class, in order."""

    name = "guest"
    session = Session

    def begin(self, knowledge, rng):
        return self.session(knowledge, rng, self)


def report_on(controller, **given):
    report = qu.check_controller(controller, **given)
    assert report.ok is not bool(report.findings)
    text = str(report)
    assert all(str(finding) in text for finding in report.findings)
    assert text.replace("\n", "").isprintable()
    return report


# --- in order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in qu.controller_names() if name not in ("best-stationary", "agent")])
def test_nothing_is_wrong_with_our_own(name):
    options = {"levels": (2, 1)} if name == "trunk-reservation" else entry(name).example_options
    report = report_on(qu.make_controller(name, options))
    assert report.ok, report
    assert len(report.refusals) == (2 if name == "trunk-reservation" else 0)  # of one class and of three


def test_nothing_is_wrong_with_the_best_stationary_policy():
    """Its search takes a second on a queue of six places whose rates change."""
    tiny = qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 2.0, pattern=qu.Sinusoid(0.5, 5.0))])
    assert report_on("best-stationary", queues=[tiny]).ok


@pytest.mark.parametrize("service_rate", ["known", "unknown"])
@pytest.mark.parametrize("kind", [qu.Thompson, qu.CertaintyEquivalent, qu.UcrlAcClasswise])
def test_nothing_is_wrong_where_options_are_set(kind, service_rate):
    memory = {} if kind is qu.UcrlAcClasswise else {"memory": 10.0, "forgetting": "window"}
    assert report_on(kind(service_rate=service_rate, review_period=1.5, **memory)).ok


class Doorman(Session):
    def decide(self, job_class, in_system, now):
        return self.rng.random() < 0.5


class DecidingGuest(Guest):
    decides_each_arrival = True
    session = Doorman


@pytest.mark.parametrize("guest", [Guest(), DecidingGuest()], ids=["table", "decides"])
def test_nothing_is_wrong_with_guests_that_are_in_order(guest):
    report = report_on(guest)
    assert report.ok, report
    assert str(report) == f"controller guest: nothing wrong in {report.calls:,} calls"
    assert report.calls > 100


# --- faults ----------------------------------------------------------------------------------------------------------


class Silent(Session):
    def first(self):
        return None


class Impatient(Session):
    def review(self, tally):
        return self.plan(tally.now, until=tally.now)


class Transposed(Session):
    def first(self):
        return self.plan(0.0, policy=qu.Policy(np.ones((self.knowledge.class_count, self.knowledge.capacity), bool)))


class SharesRandomNumbers(Session):
    def review(self, tally):
        np.random.random()  # noqa: NPY002
        return super().review(tally)


class SharesPythonsRandomNumbers(Session):
    def review(self, tally):
        random.random()
        return super().review(tally)


class Unseeded(Session):
    def first(self):
        self.rng = np.random.default_rng()
        return super().first()


class RemembersRuns(Session):
    def first(self):
        runs = self.controller.__dict__
        runs["count"] = runs.get("count", 0) + 1
        return self.plan(0.0, until=1.0 + runs["count"])


class Alternates(Session):
    def first(self):
        runs = self.controller.__dict__
        runs["count"] = runs.get("count", 0) + 1
        return self.plan(0.0, until=1.0 + runs["count"] % 2)


class ClearsTallies(Session):
    def review(self, tally):
        plan = super().review(tally)
        tally.arrivals[:] = 0
        return plan


class AddsToTallies(Session):
    def review(self, tally):
        if self.seen.any():
            self.seen += tally.arrivals
        else:
            self.seen = tally.arrivals
        return self.plan(tally.now)


class Generating(Session):
    def __init__(self, *given):
        super().__init__(*given)
        self.steps = (2.0 for _ in range(10**6))


class Forgetful(Session):
    def __getstate__(self):
        return {**self.__dict__, "seen": self.seen + 1}


class DividesByArrivals(Session):
    def review(self, tally):
        return self.plan(tally.now, until=tally.now + 1.0 + 1.0 / tally.arrival_count)


class Exponentiates(Session):
    def review(self, tally):
        return self.plan(tally.now, until=tally.now + 1.0 + math.exp(tally.arrival_count / 1000.0))


class ExpectsToBeOnTime(Session):
    def review(self, tally):
        if tally.duration > 10.0:
            raise RuntimeError("late")
        return super().review(tally)


class SecondClass(Session):
    def __init__(self, knowledge, *given):
        super().__init__(knowledge, *given)
        self.second = knowledge.rewards[:, 1]


class Vandal(Session):
    def __init__(self, knowledge, *given):
        knowledge.rewards[:] = 0.0
        super().__init__(knowledge, *given)


class Leaves(Session):
    def review(self, tally):
        sys.exit("enough")


class CountsTicks(Session):
    def first(self):
        return self.plan(0.0, visit_limits=np.ones(self.knowledge.capacity + 1, dtype=int))


class Believes(Session):
    def first(self):
        return self.plan(0.0, belief="that it is so")


class NeverAsked(Session):
    review = None


class Restless(Session):
    def review(self, tally):
        return self.plan(tally.now, until=tally.now + 1e-9)


class Refuses(Session):
    def __init__(self, *given):
        raise ValueError("not this queue")


SESSIONS = [
    (Silent, "first()", "a session must answer with a Plan, got NoneType"),
    (Impatient, "review() at time 2", "asked for a review at 2.0, which is not after 2.0"),
    (Transposed, "first()", "its policy is for (1, 5) states and classes, the queue has (5, 1)"),
    (SharesRandomNumbers, "review() at time 2", "draws from random numbers that all programs share"),
    (SharesPythonsRandomNumbers, "review() at time 2", "draws from random numbers that all programs share"),
    (Unseeded, "a run", "two runs with the same random numbers differ"),
    (RemembersRuns, "a run", "two runs with the same random numbers differ: it has others, or remembers earlier runs"),
    (Alternates, "a run", "the two engines differ"),
    (ClearsTallies, "review() after a few arrivals", "writes into a tally that it was given"),
    (AddsToTallies, "review() long after its time", "writes into a tally that it was given"),
    (
        Generating,
        "a session in the middle of a run, pickled",
        "so a run under it cannot be put aside",
    ),
    (Forgetful, "a session in the middle of a run, copied", "the copy does not answer as the session does"),
    (DividesByArrivals, "review() at time", "raises ZeroDivisionError: float division by zero"),
    (Exponentiates, "review() after a billion arrivals", "raises OverflowError: math range error"),
    (ExpectsToBeOnTime, "review() long after its time", "raises RuntimeError: late"),
    (SecondClass, "begin(), on a queue of one class, engine compiled", "raises IndexError: index 1 is out of bounds"),
    (Vandal, "begin()", "writes into an array that it was given"),
    (Leaves, "review() at time 2", "raises SystemExit: enough"),
    (CountsTicks, "first()", "visit limits are for controllers with sees_ticks = True"),
    (Believes, "first()", "a plan's belief must have `contains`, got 'that it is so'"),
    (NeverAsked, "first()", "begin() must return a session with `review`, got NeverAsked"),
    (Restless, "review()", "asked for 10,000 reviews up to time 2.00001, which few arrivals come in"),
    (Refuses, "begin()", "refuses every queue that it was tried on"),
]


@pytest.mark.parametrize(("session", "step", "problem"), SESSIONS, ids=[fault[0].__name__ for fault in SESSIONS])
def test_what_is_wrong_with_a_session_is_named(session, step, problem):
    guest = Guest()
    guest.session = session
    report = report_on(guest, queues=FEW)
    assert not report.ok
    found = [finding for finding in report.findings if problem in finding.problem]
    assert found, report
    assert found[0].step.startswith(step)
    assert len(report.findings) <= 2, report  # and little else: a fault is told once, not on every queue


class SaysNothing(Guest):
    session = Doorman


class HasNoDoorman(Guest):
    decides_each_arrival = True


class Maybe(Session):
    def decide(self, job_class, in_system, now):
        return "maybe" if in_system == self.knowledge.capacity - 1 else True


class SaysMaybe(DecidingGuest):
    session = Maybe


class HidesBehindAMethod(Guest):
    def knows_service_rate(self):
        return False


class Undecided(qu.Controller):
    name = "guest"

    @property
    def sees_ticks(self):
        raise RuntimeError("who knows")

    def begin(self, knowledge, rng):
        return Session(knowledge, rng, self)


class LeavesEarly(Guest):
    @property
    def sees_rejected(self):
        raise SystemExit("enough")


class OneCaution(Guest):
    def cautions(self, queue):
        return "careful"


class TwoLines(Guest):
    name = "two\nlines"


def with_a_lambda():
    guest = Guest()
    guest.rule = lambda: True
    return guest


@pytest.mark.parametrize(
    ("guest", "step", "problem"),
    [
        (SaysNothing(), "begin()", "its session has `decide`, so it must say decides_each_arrival = True"),
        (HasNoDoorman(), "begin()", "says decides_each_arrival = True, but its session has no `decide`"),
        (SaysMaybe(), "decide(0, 4, ", "decide() must answer True or False, got 'maybe'"),
        (HidesBehindAMethod(), "knows_service_rate", "must be True or False, got a method (is @property missing?)"),
        (Undecided(), "what it says of itself", "who knows"),
        (LeavesEarly(), "what it says of itself", "enough"),
        (OneCaution(), "cautions()", "must give a list of texts, got 'careful'"),
        (TwoLines(), "as a controller", "a controller's name = 'two\\nlines' must be one line"),
        (with_a_lambda(), "the controller, pickled", "so it cannot be sent to worker processes"),
        (Guest, "as a controller", "controller Guest is a class: give an object of it, Guest(...)"),
        (object(), "as a controller", "controller must be a controller's name or an object with `begin`"),
        ("gust", "as a controller", "no controller is called 'gust'"),
        (None, "as a controller", "controller must be a controller's name or an object with `begin`"),
    ],
    ids=lambda given: type(given).__name__ if not isinstance(given, str) else None,
)
def test_what_is_wrong_with_a_controller_is_named(guest, step, problem):
    report = report_on(guest, queues=FEW)
    found = [finding for finding in report.findings if problem in finding.problem]
    assert found, report
    assert found[0].step.startswith(step)
    assert len(report.findings) <= 2, report


def test_the_random_numbers_that_all_share_are_left_as_they_were():
    guest = Guest()
    guest.session = SharesRandomNumbers
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    first = np.random.random(), random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    assert not qu.check_controller(guest).ok
    assert (np.random.random(), random.random()) == first  # noqa: NPY002


def test_a_queue_of_ones_own_can_be_named():
    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    levels = qu.TrunkReservation((2,))
    assert report_on(levels, queues=[queue]).ok
    assert not report_on(levels, queues={"two classes": FEW["two classes"]}).ok
