"""Controllers from elsewhere: whatever a session answers, it works or is told by the controller's name."""

from __future__ import annotations

import math

import numpy as np
import pytest

import queueing_ucrl as qu

QUEUE = qu.Queue(1, 4, 1.0, [qu.JobClass("a", 1.0, 2.0), qu.JobClass("b", 1.0, 1.0)])
ALL = qu.Policy.admit_all(4, 2)
ENGINES = ("simpy", "compiled")


def controller(first=lambda: qu.Plan(policy=ALL), review=lambda tally: qu.Plan(policy=ALL), begin=None, **traits):
    """A controller called `guest` whose session answers with these functions."""

    class Session:
        pass

    class Guest:
        def begin(self, knowledge, rng):
            if begin is not None:
                return begin(knowledge)
            session = Session()
            session.first, session.review = first, review
            if "decide" in traits:
                session.decide = traits["decide"]
            return session

    guest = Guest()
    guest.name = "guest"
    guest.decides_each_arrival = "decide" in traits
    for name, value in traits.items():
        if name != "decide":
            setattr(guest, name, value)
    return guest


def refusal(guest, engine="auto", horizon=50.0) -> str:
    with pytest.raises((TypeError, ValueError)) as error:
        qu.simulate(QUEUE, guest, horizon=horizon, engine=engine)
    message = str(error.value)
    assert message.isprintable()
    assert len(message) < 400
    return message


# decide


@pytest.mark.parametrize("answer", [True, False, np.True_, np.False_, 1, 0, np.int64(1), np.uint8(0)], ids=repr)
def test_a_decision_may_be_any_kind_of_yes_or_no(answer):
    admitted = qu.simulate(QUEUE, controller(decide=lambda *_: answer), horizon=50.0).ledger.admitted
    assert bool(admitted.sum()) == bool(answer)


NUMBERS = [0.0, 1.0, math.nan, 2, -1, 1j, np.float64(1.0), np.array(True), np.array([True])]
TEXTS = ["yes", "", b"1", "x" * 10**6, "\x1b[31m"]
NEITHER_YES_NOR_NO = [None, *NUMBERS, *TEXTS, [], [True], (True,), {}, ALL, object(), NotImplemented]


@pytest.mark.parametrize("answer", NEITHER_YES_NOR_NO, ids=lambda answer: ascii(answer).split(" at 0x")[0][:30])
def test_a_decision_that_is_neither_yes_nor_no_is_refused(answer):
    message = refusal(controller(decide=lambda *_: answer))
    assert message.startswith("controller guest: decide() must answer True or False, got ")


def test_a_session_that_was_announced_to_decide_must_do_so():
    assert refusal(controller(decides_each_arrival=True)).endswith("but its session has no `decide`")


# plans

NO_PLANS = [None, ALL, ALL.admits, True, "admit", 3.0, [], {}, (10.0, ALL), np.ones((4, 2)), qu.Plan, object()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("answer", NO_PLANS, ids=lambda answer: ascii(answer).split(" at 0x")[0][:30])
def test_what_is_no_plan_is_refused(engine, answer):
    for guest in (
        controller(first=lambda: answer),
        controller(first=lambda: qu.Plan(until=5.0, policy=ALL), review=lambda tally: answer),
    ):
        assert refusal(guest, engine).startswith("controller guest: a session must answer with a Plan, got ")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("until", [5.0, 4.0, 0.0, -1.0, -math.inf, math.nextafter(5.0, 0.0), np.float64(5.0)])
def test_a_review_that_is_not_in_the_future_is_refused(engine, until):
    guest = controller(first=lambda: qu.Plan(until=5.0, policy=ALL), review=lambda tally: qu.Plan(ALL, until=until))
    assert "controller guest: asked for a review at" in refusal(guest, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(4, 1), (3, 2), (2, 4), (5, 2), (1, 1)])
def test_a_policy_for_another_queue_is_refused(engine, shape):
    guest = controller(first=lambda: qu.Plan(policy=qu.Policy(np.ones(shape, dtype=bool))))
    assert "controller guest: its policy is for" in refusal(guest, engine)
    model = qu.AdmissionModel(np.ones(shape), np.ones(shape), np.append(0.0, np.ones(shape[0])))
    guest = controller(first=lambda: qu.Plan(request=qu.SolveRequest(model)))
    assert "controller guest: its policy is for" in refusal(guest, engine)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"policy": ALL.admits}, "policy must be a Policy"),
        ({"policy": [[True]]}, "policy must be a Policy"),
        ({"policy": "admit-all"}, "policy must be a Policy"),
        ({"request": QUEUE.model}, "request must be a SolveRequest"),
        ({"request": "pi-b"}, "request must be a SolveRequest"),
        ({}, "either a policy or a request"),
        ({"policy": ALL, "request": qu.SolveRequest(QUEUE.model)}, "either a policy or a request"),
        ({"policy": ALL, "until": math.nan}, "`until` must be a time"),
        ({"policy": ALL, "until": None}, "`until` must be a time"),
        ({"policy": ALL, "until": "5"}, "`until` must be a time"),
        ({"policy": ALL, "until": True}, "`until` must be a time"),
        ({"policy": ALL, "until": np.array([5.0])}, "`until` must be a time"),
        ({"policy": ALL, "truncation": math.nan}, "`truncation` must be a number"),
        ({"policy": ALL, "truncation": -1.0}, "`truncation` must be a number"),
        ({"policy": ALL, "truncation": "1"}, "`truncation` must be a number"),
    ],
)
def test_a_plan_checks_its_parts(parts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        qu.Plan(**parts)


@pytest.mark.parametrize(
    "until", [10**400, math.inf, 10**9, np.float32(1e9), np.int64(10**9)], ids=lambda u: str(u)[:9]
)
def test_the_time_of_a_review_may_be_any_number(until):
    assert type(qu.Plan(ALL, until=until).until) is float
    assert qu.simulate(QUEUE, controller(first=lambda: qu.Plan(ALL, until=until)), horizon=5.0).controller == "guest"


NO_LIMITS = [*([one] * 5 for one in (1.5, math.nan, 0, -1, None, True, 2**63, 10**30)), [1] * 4, [[1] * 5], 3, "11111"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("limits", NO_LIMITS, ids=str)
def test_visit_limits_are_whole_numbers_for_every_state(engine, limits):
    guest = controller(first=lambda: qu.Plan(policy=ALL, visit_limits=limits), sees_ticks=True)
    assert "controller guest: visit_limits must be S + 1 whole numbers" in refusal(guest, engine)


@pytest.mark.parametrize("belief", [3, "sure", {}, object()])
def test_a_belief_can_say_what_it_holds(belief):
    message = refusal(controller(first=lambda: qu.Plan(policy=ALL, belief=belief)))
    assert message.startswith("controller guest: a plan's belief must have `contains`")


# sessions and controllers


@pytest.mark.parametrize(
    "session", [None, 3, "session", ALL, object(), qu.Plan(policy=ALL)], ids=lambda s: ascii(s)[:20]
)
def test_what_is_no_session_is_refused(session):
    assert "controller guest: begin() must return a session with `first`" in refusal(
        controller(begin=lambda knowledge: session)
    )


def test_a_session_that_wants_to_be_asked_again_can_be():
    guest = controller(first=lambda: qu.Plan(until=5.0, policy=ALL), review=None)
    assert "must return a session with `review`" in refusal(guest)


def test_a_class_in_place_of_an_object_is_told():
    assert refusal(qu.Oracle) == "controller Oracle is a class: give an object of it, Oracle(...)"


@pytest.mark.parametrize("thing", [None, 3, object(), {}, qu.AdmitAll], ids=lambda thing: ascii(thing)[:20])
def test_what_is_no_controller_is_refused(thing):
    with pytest.raises((TypeError, ValueError)):
        qu.simulate(QUEUE, thing, horizon=5.0)


@pytest.mark.parametrize(
    "name", ["\x1b[31m", "a\nb", "", " a", "\ud800", 3, None, "x" * 10**6], ids=lambda n: ascii(n)[:12]
)
def test_a_controller_s_name_is_one_printable_line(name):
    guest = controller()
    guest.name = name
    assert "a controller's name" in refusal(guest)


class OwnError(Exception):
    pass


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("where", ["begin", "first", "review", "decide"])
def test_an_error_of_the_controller_s_own_comes_through(engine, where):
    def fail(*_):
        raise OwnError(where)

    parts = {where: fail}
    if where == "review":
        parts["first"] = lambda: qu.Plan(until=5.0, policy=ALL)
    with pytest.raises(OwnError, match=where):
        qu.simulate(QUEUE, controller(**parts), horizon=50.0, engine="auto" if where == "decide" else engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_cannot_change_the_queue_through_what_it_is_shown(engine):
    tried = []

    def begin(knowledge):
        truth = knowledge.truth
        model = (truth.model.rewards, truth.model.arrival_rates, truth.model.service_rates)
        known = (knowledge.rewards, knowledge.service_rates, knowledge.job_rewards)
        rates = (truth.arrival_rates, truth.service_rates, truth.class_probabilities)
        for array in (*known, *model, *rates, truth.rewards, truth.mean_waits, truth.priorities, truth.waits.mean):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 99
            tried.append(array)
        return controller().begin(knowledge, None)

    def vandal(tally):
        for array in (tally.arrivals, tally.admissions, tally.time_in_state):
            array[...] = -1  # its own copies
        return qu.Plan(until=tally.now + 5.0, policy=ALL)

    guest = controller(begin=begin, knows_truth=True)
    fresh = qu.Queue(1, 4, 1.0, list(QUEUE.classes))
    plain = qu.simulate(fresh, "admit-all", horizon=50.0, seed=3, engine=engine).summary()
    assert qu.simulate(fresh, guest, horizon=50.0, seed=3, engine=engine).summary() == {**plain, "controller": "guest"}
    assert len(tried) == 13
    guest = controller(first=lambda: qu.Plan(until=5.0, policy=ALL), review=vandal)
    run = qu.simulate(fresh, guest, horizon=50.0, seed=3, engine=engine)
    assert run.summary()["classes"] == plain["classes"]
    assert np.all(run.episodes.arrivals >= 0)


@pytest.mark.parametrize("limit", [2**63 - 1, 2**70, np.int64(2**63 - 1)], ids=repr)
def test_a_number_of_departures_that_never_comes_is_the_same_on_both_engines(limit):
    guest = controller(first=lambda: qu.Plan(policy=ALL, departure_limit=limit))
    rewards = [qu.simulate(QUEUE, guest, horizon=50.0, engine=e).summary()["expected_reward"] for e in ENGINES]
    assert rewards[0] == rewards[1]


def test_a_table_that_is_not_kept_to_has_no_gain():
    guest = controller(decide=lambda *_: False)
    run = qu.simulate(QUEUE, guest, horizon=50.0)
    assert run.summary()["last_policy_gain"] is None
    assert run.episodes["gain"].isna().all()
    study = qu.replicate(QUEUE, [guest], horizon=50.0, replications=1, jobs=1)
    assert study.episodes()["gain"].isna().all()


def test_one_name_is_no_list_of_controllers():
    with pytest.raises(TypeError, match="controllers must be a list, got 'oracle'"):
        qu.replicate(QUEUE, "oracle", horizon=5.0, replications=1)


@pytest.mark.parametrize("columns", [None, [1], {5: 1}, {"controller": 1}, {"replication": 2}, {"gain": 3.0}], ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_columns_of_a_belief_have_names_of_their_own(engine, columns):
    class Belief:
        def contains(self, arrival_rates):
            return None

        def columns(self):
            return columns

    guest = controller(first=lambda: qu.Plan(policy=ALL, belief=Belief()))
    assert refusal(guest, engine).startswith("controller guest: a belief's column")
