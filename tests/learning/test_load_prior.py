"""Certainty equivalence with a load of 1 as its prior: what it believes, and where it is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge


def lists(column: object) -> np.ndarray:
    return np.array([list(entry) for entry in column])  # type: ignore[attr-defined]


def test_it_counts_two_jobs_in_the_time_of_two_departures_of_a_full_house() -> None:
    queue = paper_queue(20, 0.3)
    controllers = [qu.CertaintyEquivalent(first_review=1.0), qu.CertaintyEquivalent(prior="load", first_review=1.0)]
    plain, prior = (qu.simulate(queue, one, horizon=200.0, seed=4) for one in controllers)
    times = plain.episodes["start"].to_numpy()[1:]
    counts = lists(plain.episodes["rate_estimates"][1:]) * times[:, None]
    expected = (counts + 1.0) / (times[:, None] + 2.0 / queue.max_service_rate)
    assert np.array_equal(prior.episodes["start"].to_numpy()[1:], times)
    assert lists(prior.episodes["rate_estimates"][1:]) == pytest.approx(expected)
    assert list(prior.episodes["rate_estimates"][0]) == pytest.approx([queue.max_service_rate / 2] * 2)


def test_it_plans_from_the_start_for_a_load_of_one() -> None:
    queue = paper_queue(20, 0.3)
    plan = qu.CertaintyEquivalent(prior="load").begin(Knowledge.of(queue), np.random.default_rng(0)).first()
    assert plan.request is not None
    assert np.all(plan.request.model.arrival_rates == queue.max_service_rate / 2)


@pytest.mark.parametrize("seed", range(3))
def test_both_engines_and_other_units_of_time_give_the_same_run(seed: int) -> None:
    queue = paper_queue(20, 0.4)
    controller = qu.CertaintyEquivalent(prior="load")
    runs = [qu.simulate(queue, controller, horizon=100.0, seed=seed, engine=e, log=True) for e in ("simpy", "compiled")]
    assert runs[0].events.equals(runs[1].events)
    classes = [qu.JobClass(c.name, 4.0 * c.arrival_rate, c.reward, qu.Linear(0.4)) for c in queue.classes]
    faster = qu.Queue(queue.servers, queue.capacity, 1.6, classes)
    other = qu.simulate(faster, controller, horizon=25.0, seed=seed, log=True)
    same = ["event", "job", "job_class", "in_system"]
    assert other.events[same].equals(runs[0].events[same])


def test_where_classes_differ_in_service_it_is_counted_too() -> None:
    """No waiting room, two kinds of work: planned on counts; the first estimate is the prior with what was seen."""
    classes = [
        qu.JobClass("short", 2.0, 1.0, service=qu.Exponential(rate=2.0)),
        qu.JobClass("long", 1.0, 3.0, service=qu.Exponential(rate=0.5)),
    ]
    system = qu.System(servers=4, capacity=4, classes=classes)
    controllers = [qu.CertaintyEquivalent(first_review=1.0), qu.CertaintyEquivalent(prior="load", first_review=1.0)]
    plain, prior = (qu.simulate(system, one, horizon=30.0, seed=2) for one in controllers)
    before = list(plain.episodes["rate_estimates"][1])
    weight = 2.0 / prior.system.queue.max_service_rate
    assert list(prior.episodes["rate_estimates"][1]) == pytest.approx([(n + 1.0) / (1.0 + weight) for n in before])


@pytest.mark.parametrize("options", [{"period": 24.0}, {"service_rate": "unknown"}])
def test_where_no_load_is_known_it_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match='prior "load" is for a known service_rate and no period'):
        qu.CertaintyEquivalent(prior="load", **options)  # type: ignore[arg-type]


def test_a_prior_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="prior must be none or load"):
        qu.CertaintyEquivalent(prior="strong")  # type: ignore[arg-type]
    assert math.isfinite(qu.CertaintyEquivalent().review_ratio)
