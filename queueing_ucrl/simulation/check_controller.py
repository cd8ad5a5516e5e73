"""`check_controller`: everything the engines may do to a controller, done to it, and what goes wrong said in words.

On several small queues the controller runs on every engine that takes it, and its session is driven by hand through
what runs of an hour may never show: reviews before which nobody came or a billion did, reviews long after their time,
copies taken in the middle of a run. Whatever it answers is given to an engine, which knows best what it can work with.
One file, though a long one: what is tried, how it is watched and what is said of it are three views of one list.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from queueing_ucrl.learning.controller import TRAITS, Controller, Knowledge, Plan, StandIn, Tally, TickTally
from queueing_ucrl.learning.registry import as_controller
from queueing_ucrl.messages import printable, shortened
from queueing_ucrl.model.costs import Deadline, Linear
from queueing_ucrl.model.laws import TwoPoint
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Sinusoid, Steady
from queueing_ucrl.model.system import JobClass, Queue, System
from queueing_ucrl.simulation.simulate import GuaranteeWarning, simulate

SEED = 20
LATENCY = 3.0
_BRIEFLY: dict[str, Any] = {"horizon": 25.0, "seed": SEED, "grid": ()}
READ_ONLY = "read-only"  # in numpy's words
LONGEST_MESSAGE = 300  # characters
MOST_REVIEWS = 10_000  # of a run over some 50 arrivals
RAISED = (Exception, SystemExit, GeneratorExit)  # by the controller's code; who interrupts is the user


def _queues(largest: int) -> dict[str, Queue]:
    def classes(*rates: float, pattern: ArrivalPattern | None = None) -> list[JobClass]:
        rewards, costs = (5.0, 3.0, 9.0), (Linear(0.1), Linear(0.1), Deadline(4.0, 1.5))
        return [JobClass("abc"[i], rate, rewards[i], costs[i], pattern or Steady()) for i, rate in enumerate(rates)]

    two = classes(1.0, 0.7)
    return {
        "one class": Queue(1, 5, 1.0, classes(1.0)),
        "three classes": Queue(2, 8, 0.7, classes(1.0, 0.7, 0.3)),
        "more servers than places": Queue(5, 3, 0.5, classes(1.0, 0.7)),
        "many places": Queue(3, largest, 0.4, classes(1.0, 0.7)),
        "arrivals that are rare": Queue(2, 6, 1.0, classes(0.01, 0.02)),
        "rates that change in time": Queue(2, 6, 0.8, classes(1.0, 0.7, pattern=Sinusoid(0.5, 10.0))),
        "jobs that pay all or nothing": Queue(2, 6, 0.8, [replace(c, pays=TwoPoint(c.reward, 0.3)) for c in two]),
    }


@dataclass(frozen=True)
class Finding:
    """Something wrong, and the step at which it showed first."""

    step: str
    problem: str

    def __str__(self) -> str:
        return f"{self.step}: {self.problem}"


@dataclass(frozen=True)
class ControllerReport:
    """What `check_controller` found; prints as a list."""

    name: str
    findings: tuple[Finding, ...]
    refusals: tuple[Finding, ...]  # queues that begin() refused by a ValueError, as it may
    calls: int  # of the controller's code

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        count = len(self.findings)
        verdict = "nothing wrong" if self.ok else f"{count} problem{'s' if count > 1 else ''}"
        lines = [f"controller {self.name}: {verdict} in {self.calls:,} calls"]
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  refused, which is no fault: {refusal}" for refusal in self.refusals]
        return "\n".join(lines)


def check_controller(controller: Any, queues: Mapping[str, Queue] | Sequence[Queue] | None = None) -> ControllerReport:
    """Run a controller (an object or a name) through all that the engines may do to it, and say what is wrong.

    queues: to try it on, with or without names, in place of seven small ones; for a controller made for a queue of its
    own. It raises nothing itself: the report's `ok` and `findings` say what was found, and it prints well.
    """
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    examination = _Examination()
    try:
        with warnings.catch_warnings(), examination.at("what it says of itself"):
            warnings.simplefilter("ignore", GuaranteeWarning)
            examination.examine(controller, queues)
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])
    return examination.report()


class _Told(Exception):
    """What was raised is among the findings already."""


class _Examination:
    """Calls the controller's code, and notes what goes wrong and where."""

    def __init__(self) -> None:
        self.name = "?"
        self.findings: dict[str, Finding] = {}
        self.refusals: dict[str, Finding] = {}
        self.calls = 0
        self.place = ""  # on which queue, on what engine
        self.step = ""

    def report(self) -> ControllerReport:
        return ControllerReport(self.name, tuple(self.findings.values()), tuple(self.refusals.values()), self.calls)

    def note(self, problem: str, step: str | None = None) -> None:
        """A problem that shows on many queues is noted once."""
        step = self.step if step is None else step
        self.findings.setdefault(problem, Finding(f"{step}{self.place}", problem))

    def call(self, step: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The controller's answer; its errors, and what it does to others' random numbers, are noted."""
        self.step, self.calls = step, self.calls + 1
        before = _global_numbers()
        try:
            answer = function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, ValueError) and READ_ONLY in str(error):
                self.note("writes into an array that it was given (knowledge and tallies are shared): copy it first")
            elif step == "begin()" and isinstance(error, ValueError):
                self.refusals.setdefault(self.place, Finding(f"begin(){self.place}", _words(error)))
            else:
                self.note(f"raises {type(error).__name__}: {_words(error)}")
            raise _Told from error
        if _global_numbers() != before:
            self.note("draws from random numbers that all programs share: take those of the rng that begin() is given")
        return answer

    @contextmanager
    def at(self, step: str) -> Iterator[None]:
        """Errors that are raised within, and are not told yet, are noted in the words of who raised them."""
        before, self.step = self.step, step
        try:
            yield
        except _Told:
            pass
        except RAISED as error:
            self.note(_words(error))
        self.step = before

    def examine(self, given: Any, queues: Mapping[str, Queue] | Sequence[Queue] | None) -> None:
        made = None
        with self.at("as a controller"):
            made = as_controller(given)
        if made is None:
            return
        self.name = made.name
        self._traits(given)
        consequence = "so it cannot be sent to worker processes"
        as_it_is = type(made).made_for is Controller.made_for  # else what is made of it is sent
        copies = self.copies("the controller", given, consequence) if as_it_is else []
        if queues is None:
            queues = _queues(largest=15 if made.sees_ticks else 200)
        elif not isinstance(queues, Mapping):
            queues = {f"queue {k}": queue for k, queue in enumerate(queues, start=1)}
        tried = {label: queue for label, queue in queues.items() if not (made.sees_ticks and queue.drifts)}
        for label, queue in tried.items():
            self.place = f", on a queue of {label}"
            before = len(self.findings)
            if self._runs(made, queue) and len(self.findings) == before:
                if not as_it_is:
                    with self.at("made_for()"):
                        sent = self.call("made_for()", made.made_for, queue)
                        copies = self.copies("what is sent of the controller", sent, consequence)
                self._session(made, queue, [("a copy of the controller", one) for one in copies])
        self.place = ""
        if tried and len(self.refusals) == len(tried):
            self.note("refuses every queue that it was tried on; name one that it is made for", "begin()")

    def _traits(self, given: Any) -> None:
        for trait in TRAITS:
            value = getattr(given, trait, False)
            if not isinstance(value, (bool, np.bool_)):
                kind = "a method (is @property missing?)" if callable(value) else type(value).__name__
                self.note(f"must be True or False, got {kind}", trait)

    def copies(self, what: str, original: Any, consequence: str) -> list[Any]:
        """Made by pickle and by copy.deepcopy, where they can be."""
        made: list[Any] = []
        before = self.step
        for how, duplicate in (("pickled", _through_pickle), ("copied", copy.deepcopy)):
            self.step = f"{what}, {how}"
            try:
                made.append(duplicate(original))
            except RAISED as error:
                self.note(f"cannot be {how} ({_words(error)}), {consequence}")
        self.step = before
        return made

    # ---- in a run

    def _runs(self, made: Controller, queue: Queue) -> bool:
        """Whether it runs, and in the same way on all engines and twice."""
        with self.at("cautions()"):
            cautions = self.call("cautions()", made.cautions, queue)
            if not isinstance(cautions, (list, tuple)) or not all(isinstance(one, str) for one in cautions):
                self.note(f"must give a list of texts, got {shortened(repr(cautions))}")
        engines = ["simpy"] if made.decides_each_arrival else ["compiled", "simpy"]
        runs = []
        for engine in (*engines, engines[0]):
            run = self._run(made, queue, engine, 0.0)
            if run is None:
                return False
            runs.append(run.events)
        if not runs[0].equals(runs[-1]):
            self.note("two runs with the same random numbers differ: it has others, or remembers earlier runs", "a run")
        elif not runs[0].equals(runs[1]):
            self.note("the two engines differ: its answers depend on more than what it is shown", "a run")
        return made.sees_ticks or made.counts_visits or self._run(made, queue, engines[0], LATENCY) is not None

    def _run(self, made: Controller, queue: Queue, engine: str, latency: float) -> Any:
        place = self.place
        self.place += f", engine {engine}" + (", with a slow solver" if latency else "")
        run = None
        with self.at("a run"):
            watched = _Watched(made, self)
            run = simulate(queue, watched, engine=engine, solver_latency=latency, log=True, **_BRIEFLY)
        self.place = place
        return run

    # ---- by hand

    def _session(self, made: Controller, queue: Queue, others: list[tuple[str, Any]]) -> None:
        """Drive a session by hand, and others (a second one, those of copies) through the same."""
        with self.at("a session"):
            drive = _Drive(self, made, queue)
            drive.to_the_end()
            for who, other in (("a second session", made), *others):
                again = _Drive(self, as_controller(other), queue)
                if again.follow(drive.tallies, who) != drive.answers:
                    self.note("does not answer as the first did to the same: state is kept outside of the session", who)


class _Drive:
    """A session in a run that is made up."""

    def __init__(self, examination: _Examination, made: Controller, queue: Queue) -> None:
        self.examination, self.made, self.queue = examination, made, queue
        knowledge = Knowledge.shown_to(made, queue)
        self.session = examination.call("begin()", made.begin, knowledge, np.random.default_rng(SEED))
        self.tallies: list[tuple[str, Tally]] = []
        self.answers: list[Any] = []

    def to_the_end(self) -> None:
        """Through every kind of review; in the middle, copies of the session go on beside it."""
        plan, now = self._plan("first()", 0.0, self.session.first), 0.0
        given: list[Tally] = []
        duplicates: list[Any] = []
        for what, make in _REVIEWS:
            if not plan.asks_again:
                break
            if len(self.tallies) == 2:
                consequence = "so a run under it cannot be put aside and taken up again"
                duplicates = self.examination.copies("a session in the middle of a run", self.session, consequence)
            tally = make(self.queue, plan, now, ticks=self.made.sees_ticks or self.made.counts_visits)
            given.append(tally)
            self.tallies.append((what, copy.deepcopy(tally)))
            plan = self._plan(f"review() {what}", tally.now, self.session.review, tally)
            if not all(_same(one, kept) for one, (_, kept) in zip(given, self.tallies, strict=True)):
                self.examination.note("writes into a tally that it was given: copy what is to be added to")
            now = tally.now
        for duplicate in duplicates:
            going_on = copy.copy(self)
            going_on.session, going_on.answers = duplicate, self.answers[:3]
            if going_on.follow(self.tallies[2:], "a copy of the session") != self.answers:
                who = "a session in the middle of a run, copied"
                self.examination.note("the copy does not answer as the session does: state is kept outside of it", who)

    def follow(self, tallies: list[tuple[str, Tally]], who: str) -> list[Any]:
        """Its answers to tallies that were made for another."""
        if not self.answers:
            self._take(f"first() of {who}", self.session.first)
        for what, tally in tallies:
            self._take(f"review() of {who}, {what}", self.session.review, copy.deepcopy(tally))
        return self.answers

    def _take(self, step: str, function: Callable[..., Any], *arguments: Any) -> Any:
        plan = self.examination.call(step, function, *arguments)
        self.answers.append((_content(plan), self._decisions()))
        return plan

    def _decisions(self) -> list[Any]:
        if not self.made.decides_each_arrival:
            return []
        asked = [(i, s) for i in range(len(self.queue.classes)) for s in (0, self.queue.capacity - 1)]
        return [self.examination.call(f"decide({i}, {s}, 0)", self.session.decide, i, s, 0.0) for i, s in asked]

    def _plan(self, step: str, now: float, function: Callable[..., Any], *arguments: Any) -> Plan:
        """Its answer, which an engine can work with; else there is nothing more to do here."""
        examination = self.examination
        plan = self._take(step, function, *arguments)
        for answer in self.answers[-1][1]:
            if not isinstance(answer, (bool, np.bool_)):
                everybody = Policy.admit_all(self.queue.capacity, len(self.queue.classes))
                self._give_to_an_engine(_Answers(Plan(policy=everybody), answer))
        examination.step = step
        if isinstance(plan, Plan) and not plan.until > now:
            examination.note(f"asks for a review at {plan.until}, which is not after {now}")
            raise _Told
        given = replace(plan, until=math.inf) if isinstance(plan, Plan) else plan
        self._give_to_an_engine(_Answers(given))
        assert isinstance(plan, Plan)
        return plan

    def _give_to_an_engine(self, answers: _Answers) -> None:
        answers.name, answers.sees_ticks = self.made.name, self.made.sees_ticks  # type: ignore[misc]
        answers.counts_visits = self.made.counts_visits  # type: ignore[misc]
        try:
            simulate(self.queue, answers, engine="simpy", **_BRIEFLY)
        except Exception as error:
            self.examination.note(_words(error))
            raise _Told from error


class _Watched(StandIn):
    """The controller in a run, every call of its code through the examination."""

    def __init__(self, made: Controller, examination: _Examination) -> None:
        super().__init__(made, made.name)
        self.examination = examination

    def model_gap(self, system: System) -> str:
        return str(self.given.model_gap(system))

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        session = self.examination.call("begin()", self.given.begin, knowledge, rng)
        if not callable(getattr(session, "first", None)):
            return session  # for the engine to refuse
        return type(type(session).__name__, (_WatchedSession,), {})(session, self.examination)


class _WatchedSession:
    """Has the methods that the session has, and no others."""

    def __init__(self, session: Any, examination: _Examination) -> None:
        self._session, self._examination, self._reviews = session, examination, 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._session, name)
        if not callable(method):
            return method

        def call(*arguments: Any) -> Any:
            step = f"{name}()"
            if name == "review":
                step += f" at time {arguments[0].now:g}"
                self._count(arguments[0].now)
            elif name == "decide":
                step = f"decide({', '.join(f'{one:g}' for one in arguments)})"
            return self._examination.call(step, method, *arguments)

        return call

    def _count(self, now: float) -> None:
        self._reviews += 1
        if self._reviews > MOST_REVIEWS:
            often = f"asked for {MOST_REVIEWS:,} reviews up to time {now:g}, which few arrivals come in"
            self._examination.note(f"{often}: a run would hardly end", "review()")
            raise _Told


class _Answers(Controller):
    """Answers with one plan, and to every arrival (where it says so) with one decision."""

    def __init__(self, plan: Any, *decision: Any) -> None:
        self.plan, self.decision = plan, decision
        self.decides_each_arrival = bool(decision)  # type: ignore[misc]

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        session: Any = type("Session", (), {})()
        session.first = session.review = lambda *_: self.plan
        if self.decision:
            session.decide = lambda *_: self.decision[0]
        return session


# --- reviews that are made up ----------------------------------------------------------------------------------------


def _tally(queue: Queue, plan: Plan, before: float, now: float, jobs: int, departures: int, ticks: bool) -> Tally:
    """`jobs` arrivals of each class, admitted to the empty system; what was seen of the ticks, within the limits."""
    m, S, duration = len(queue.classes), queue.capacity, now - before
    admissions = np.zeros((S, m), dtype=np.int64)
    admissions[0] = jobs
    time_in_state = np.zeros(S + 1)
    time_in_state[0], time_in_state[1] = 0.5 * duration, 0.5 * duration
    seen = None
    if ticks:
        limits = np.full(S + 1, 5) if plan.visit_limits is None else np.asarray(plan.visit_limits)
        visits = np.minimum(limits, 1 + jobs)
        inner = np.arange(S + 1)
        ups, downs = np.where(inner < S, visits // 2, 0), np.where(inner > 0, visits // 3, 0)
        seen = TickTally(visits, ups, downs, 0.5 * ups, 0.25 * ups)
    gaps = duration if jobs else 0.0
    arrivals = np.full(m, jobs, dtype=np.int64)
    paid = jobs * queue.job_rewards
    return Tally(
        *(now, duration, arrivals, gaps, gaps, admissions, time_in_state, departures, 0.5 * duration, seen),
        paid_count=arrivals,
        paid_sum=paid,
        paid_square_sum=2.0 * paid * queue.job_rewards,
        most_paid=2.0 * queue.job_rewards * (jobs > 0),
        wait_count=arrivals // 2,
        wait_sum=np.full(m, 0.3 * jobs * duration),
        wait_cost_sum=0.1 * paid,
        open_time=np.full(m, 0.5 * duration),
    )


def _review(lateness: float, jobs: int) -> Callable[..., Tally]:
    def make(queue: Queue, plan: Plan, before: float, *, ticks: bool) -> Tally:
        seen, departures = jobs, jobs * len(queue.classes)
        if plan.departure_limit is not None:  # which may come before its time
            departures = max(departures, int(plan.departure_limit))
        if plan.arrival_limit is not None:
            seen = max(jobs, -(-int(plan.arrival_limit) // len(queue.classes)))
        due = plan.until if plan.until < math.inf else before + 1.0
        return _tally(queue, plan, before, before + lateness * (due - before), seen, departures, ticks)

    return make


_REVIEWS: tuple[tuple[str, Callable[..., Tally]], ...] = (
    ("after which nobody came", _review(1.0, 0)),
    ("after a few arrivals", _review(1.0, 3)),
    ("long after its time", _review(50.0, 40)),
    ("after a billion arrivals", _review(1.0, 10**9)),
    ("long after its time, and nobody came", _review(1000.0, 0)),
    ("after a few arrivals, once more", _review(1.0, 3)),
)


# --- comparing -------------------------------------------------------------------------------------------------------


def _content(plan: Any) -> Any:
    """A plan as something that can be compared."""
    if not isinstance(plan, Plan):
        return repr(type(plan))
    content: list[Any] = [plan.until, plan.departure_limit, plan.arrival_limit, plan.truncation]
    content.append(None if plan.visit_limits is None else np.asarray(plan.visit_limits).tolist())
    content.append(None if plan.policy is None else plan.policy.admits.tolist())
    if plan.request is not None:
        model = plan.request.model
        content += [model.arrival_rates.tolist(), model.rewards.tolist(), model.service_rates.tolist()]
        content += [getattr(plan.request, field.name) for field in fields(plan.request) if field.name != "model"]
    return content


def _same(one: Tally, other: Tally) -> bool:
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Tally) if field.name != "ticks"]
    if one.ticks is not None and other.ticks is not None:
        pairs += [(getattr(one.ticks, field.name), getattr(other.ticks, field.name)) for field in fields(TickTally)]
    return all(np.array_equal(a, b) for a, b in pairs)


def _global_numbers() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return kind, np.asarray(keys).tobytes(), *rest, random.getstate()


def _through_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def _words(error: BaseException) -> str:
    return printable(shortened(str(error), LONGEST_MESSAGE)) or type(error).__name__
