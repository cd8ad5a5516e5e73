"""`System`: what can be simulated. Where it is Markov it is the `Queue`, bit for bit; else it says what it is not."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from both_engines import on_both, studies_agree

import queueing_ucrl as qu

PATTERNS = {
    "steady": qu.Steady(),
    "sinusoid": qu.Sinusoid(0.7, 30.0, 1.0),
    "steps": qu.Steps([5.0, 20.0], [1.0, 0.0, 2.0], period=40.0),
}


def queue(pattern):
    jobs = [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1), pattern), qu.JobClass("b", 0.7, 9.0, qu.Deadline(3.0, 1.0))]
    return qu.Queue(2, 8, 0.4, jobs)


def as_system(markov, *, arrivals=False):
    """The same as a System; arrivals: its classes say how they come by a process."""
    law, jobs = qu.Exponential(markov.service_rate), []
    for c in markov.classes:
        how = {"arrivals": qu.Poisson(c.arrival_rate, c.pattern)}
        if not arrivals:
            how = {"arrival_rate": c.arrival_rate, "pattern": c.pattern}
        jobs.append(qu.JobClass(c.name, reward=c.reward, holding_cost=c.holding_cost, service=law, **how))
    return qu.System(markov.servers, markov.capacity, jobs)


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_poisson_process_is_a_rate_and_a_pattern(pattern):
    one, other = (as_system(queue(pattern), arrivals=given) for given in (False, True))
    assert one == other
    assert hash(one) == hash(other)
    job = other.classes[0]
    assert (job.arrival_rate, job.pattern, job.arrival_process) == (1.0, pattern, qu.Poisson(1.0, pattern))
    assert job.peak_rate == job.arrival_process.peak_rate == pattern.ceiling
    assert other.drifts == (pattern != qu.Steady())
    by_process = [qu.JobClass("a", arrivals=qu.Poisson(1.0, pattern), reward=5.0, holding_cost=qu.Linear(0.1))]
    by_rate = [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1), pattern)]
    assert qu.Queue(2, 8, 0.4, by_process) == qu.Queue(2, 8, 0.4, by_rate)


@pytest.mark.parametrize("controller", ["oracle", "thompson", "ucrl2"])
def test_a_markov_system_is_the_queue(controller):
    markov = queue(qu.Steady())
    system = as_system(markov)
    assert system.not_markov == ""
    assert system.queue == markov
    assert (system.rewards == markov.rewards).all()
    run = on_both(system, controller, horizon=300.0, seed=2)
    known = qu.simulate(markov, controller, horizon=300.0, seed=2, log=True)
    assert run.events.equals(known.events)
    assert run.best.gain == known.best.gain == qu.solve(system).gain
    assert {**run.summary()} == {**known.summary()}
    for kind in ("gap", "expected", "realised", "pseudo"):
        assert run.regret(kind).equals(known.regret(kind))


@pytest.mark.parametrize("pattern", list(PATTERNS.values())[1:], ids=list(PATTERNS)[1:])
def test_a_drifting_system_is_the_drifting_queue(pattern):
    markov = queue(pattern)
    run = on_both(as_system(markov), "admit-all", horizon=300.0, seed=2)
    known = qu.simulate(markov, "admit-all", horizon=300.0, seed=2, log=True)
    assert run.events.equals(known.events)
    assert run.rewards().equals(known.rewards())
    assert run.no_optimum == known.no_optimum
    with pytest.raises(ValueError, match="arrival rates change in time"):
        _ = as_system(markov).model


def test_a_study_of_a_markov_system_has_regret():
    study = studies_agree(
        as_system(queue(qu.Steady())), ["oracle", "thompson"], ["gap", "expected_reward"], horizon=99.0
    )
    known = qu.replicate(queue(qu.Steady()), ["oracle", "thompson"], horizon=99.0, replications=3, jobs=1)
    assert study.regret().equals(known.regret())


def two(first, second=None):
    return qu.System(
        2, 5, [qu.JobClass("a", 1.0, 5.0, service=first), qu.JobClass("b", 1.0, 5.0, service=second or first)]
    )


def test_a_model_is_there_where_it_is_markov():
    policy = qu.Policy.admit_all(5, 2)
    system = two(qu.Exponential(0.5))
    assert qu.evaluate(system, policy).gain == qu.evaluate(system.queue, policy).gain
    assert qu.performance(system, policy).throughput == qu.performance(system.queue, policy).throughput
    for wrong, words in (
        (two(qu.Deterministic(1.0)), "class 'a': its service times are not exponential"),
        (two(qu.Exponential(0.5), qu.Deterministic(2.0)), "class 'b': its service times are not exponential"),
        (two(qu.Exponential(0.5), qu.Exponential(0.6)), "the classes' service times differ"),
    ):
        assert wrong.not_markov == words
        for ask in (lambda w=wrong: w.model, lambda w=wrong: qu.solve(w), lambda w=wrong: qu.evaluate(w, policy)):
            with pytest.raises(ValueError, match=words):
                ask()
        assert np.isnan(wrong.rewards).all()


def test_the_operator_reckons_with_the_means():
    jobs = [
        qu.JobClass("a", 3.0, 5.0, service=qu.Deterministic(1.0)),
        qu.JobClass("b", 1.0, 5.0, service=qu.Exponential(0.2)),
    ]
    system = qu.System(2, 5, jobs)
    assert system.queue.service_rate == pytest.approx(1.0 / (0.75 * 1.0 + 0.25 * 5.0), rel=1e-12)
    assert qu.Knowledge.of(system).service_rate == system.queue.service_rate


@pytest.mark.parametrize(
    "system", [two(qu.Deterministic(1.0)), as_system(queue(PATTERNS["steps"]))], ids=["fixed", "steps"]
)
def test_copies_and_pickles_are_the_same_system(system):
    _ = system.rewards, system.queue
    for other in (pickle.loads(pickle.dumps(system)), copy.deepcopy(system), copy.copy(system)):
        assert other == system
        one, two = (qu.simulate(s, "admit-all", horizon=50.0, log=True).events for s in (system, other))
        assert one.equals(two)
        with pytest.raises(ValueError, match="read-only"):
            other.rewards[0, 0] = 1.0


def test_plain_data():
    system = qu.System(
        2,
        8,
        [
            qu.JobClass("a", arrivals=qu.Poisson(1.0), reward=5.0, service=qu.Exponential(0.4)),
            qu.JobClass("b", 0.7, 9.0, qu.Linear(0.1), service=qu.Deterministic(2.5)),
        ],
    )
    found = json.loads(json.dumps(system.plain_data()))
    assert found == {
        "servers": 2,
        "capacity": 8,
        "classes": [
            {
                "name": "a",
                "arrival_rate": 1.0,
                "reward": 5.0,
                "holding_cost": {"kind": "free"},
                "pattern": {"kind": "steady"},
                "service": {"kind": "exponential", "rate": 0.4},
            },
            {
                "name": "b",
                "arrival_rate": 0.7,
                "reward": 9.0,
                "holding_cost": {"kind": "linear", "rate": 0.1},
                "pattern": {"kind": "steady"},
                "service": {"kind": "deterministic", "value": 2.5},
            },
        ],
    }


def made(**about):
    return qu.System(1, 2, [qu.JobClass("a", **{"reward": 1.0, **about})])


LAW = qu.Exponential(1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: made(arrival_rate=1.0), "class 'a': service must be a law such as Exponential"),
        (lambda: made(arrival_rate=1.0, service=0.3), "class 'a': service must be a law such as Exponential"),
        (lambda: made(arrival_rate=1.0, service=qu.Exponential), "class 'a': service must be a law"),
        (lambda: made(service=LAW), "class 'a': arrival_rate must be a positive finite number"),
        (lambda: made(arrivals=1.0, service=LAW), "class 'a': arrivals must be an arrival process such as Poisson"),
        (lambda: made(arrivals=qu.Poisson, service=LAW), "class 'a': arrivals must be an arrival process"),
        (
            lambda: made(arrivals=qu.Poisson(1.0), arrival_rate=2.0, service=LAW),
            "arrivals and arrival_rate must not both",
        ),
        (
            lambda: made(arrivals=qu.Poisson(1.0), pattern=qu.Sinusoid(0.5, 3.0), service=LAW),
            "class 'a': arrivals and pattern must not both be given",
        ),
        (lambda: made(arrivals=qu.Poisson(1e200), service=LAW), "class 'a': arrival_rate must lie between"),
        (lambda: qu.Exponential(0.0), "an exponential law's rate must be a positive finite number"),
        (lambda: qu.Poisson(-1.0), "a Poisson process's rate must be a positive finite number"),
        (lambda: qu.System(1, 2, []), "classes must hold at least one job class"),
        (
            lambda: qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 1.0, service=LAW)]),
            "class 'a': in a Queue jobs come by Poisson processes, are served at its service_rate",
        ),
    ],
)
def test_mistakes_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_what_is_no_system_is_refused():
    for run in (qu.simulate, lambda *a, **k: qu.replicate(a[0], [a[1]], replications=1, **k)):
        with pytest.raises(TypeError, match="queue must be a Queue or a System, got dict"):
            run({"servers": 1}, "admit-all", horizon=1.0)
