"""Forgetting: learners whose rates may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators import paper_queue
from synthetic import drive

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge

STEP = 2000.0
BEFORE, AFTER = [1.0, 1.0], [3.0, 0.2]


def _step(time: float) -> list[float]:
    return BEFORE if time < STEP else AFTER


def _estimates(controller: Any, horizon: float = 4000.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Review times and the estimates from each on."""
    plans = drive(controller, Knowledge.of(paper_queue()), _step, horizon, np.random.default_rng(seed))[1:]
    return np.array([time for time, _ in plans]), np.array([p.belief.columns()["rate_estimates"] for _, p in plans])


@pytest.mark.parametrize("kind", [qu.CertaintyEquivalent, qu.Thompson])
@pytest.mark.parametrize("forgetting", ["window", "discount"])
def test_follows_a_step(kind: type[qu.Controller], forgetting: str) -> None:
    """Five memories after the step the old rates are gone: within five standard errors of the new ones."""
    memory = 200.0
    times, estimates = _estimates(kind(memory=memory, forgetting=forgetting))
    error = 5 * np.sqrt(np.array([BEFORE, AFTER]) / memory)
    settled = times > 5 * memory
    early, late = settled & (times < STEP), times > STEP + 5 * memory
    assert np.all(np.abs(estimates[early] - BEFORE) < error[0])
    assert np.all(np.abs(estimates[late] - AFTER) < error[1] + 0.02)


def test_a_window_has_left_the_past_after_its_length() -> None:
    """One memory and one review after the step a window holds nothing else; discounting still holds 1/e of it."""
    memory = 200.0
    window = _estimates(qu.CertaintyEquivalent(memory=memory, forgetting="window"))
    discount = _estimates(qu.CertaintyEquivalent(memory=memory, forgetting="discount"))
    for (times, estimates), left in ((window, 0.0), (discount, np.exp(-1.05))):
        k = np.searchsorted(times, STEP + 1.05 * memory)
        expected = left * BEFORE[0] + (1 - left) * AFTER[0]
        assert abs(estimates[k, 0] - expected) < 5 * np.sqrt(AFTER[0] / memory)


def test_without_forgetting_the_past_weighs_for_ever() -> None:
    times, estimates = _estimates(qu.CertaintyEquivalent(review_period=10.0))
    assert times[-1] > 3900
    assert estimates[-1] == pytest.approx([2.0, 0.6], rel=0.1)


@pytest.mark.parametrize("memory", [50.0, 400.0])
def test_reviews_are_a_twentieth_of_the_memory_apart(memory: float) -> None:
    times, _ = _estimates(qu.CertaintyEquivalent(memory=memory))
    gaps = np.diff(times)
    assert gaps.max() == pytest.approx(memory / 20)
    assert gaps[times[:-1] > 15 * memory / 20] == pytest.approx(memory / 20)
    assert times[0] == pytest.approx(1 / 1.5)


def test_the_period_can_be_chosen() -> None:
    times, _ = _estimates(qu.CertaintyEquivalent(memory=400.0, review_period=50.0, review_ratio=1e9))
    assert np.diff(times) == pytest.approx(50.0)


def test_a_posterior_that_forgets_never_narrows_beyond_its_memory() -> None:
    knowledge, memory = Knowledge.of(paper_queue()), 100.0
    plans = drive(qu.Thompson(memory=memory), knowledge, _step, 1500.0, np.random.default_rng(3))
    assert plans[-1][1].belief.columns()["posterior_time"] == pytest.approx(memory, rel=0.05)
    drawn = np.array([p.belief.columns()["planned_rates"][0] for t, p in plans if t > 500.0])
    assert 0.5 * np.sqrt(2 / memory) < drawn.std() < 2 * np.sqrt(2 / memory)


def test_a_service_rate_that_changes_is_followed_too() -> None:
    knowledge = Knowledge.of(paper_queue(), service_rate=False)
    controller = qu.CertaintyEquivalent(memory=100.0, service_rate="unknown")
    for rate in (0.3, 0.9):
        plans = drive(controller, knowledge, _step, 1000.0, np.random.default_rng(3), service_rate=rate)
        assert plans[-1][1].belief.columns()["service_rate_estimate"] == pytest.approx(rate, rel=0.3)


def test_after_long_silence_nothing_breaks() -> None:
    """Counts fade to nothing in 800 memories: what pays is admitted again, and later arrivals are believed at once."""
    knowledge, queue = Knowledge.of(paper_queue()), paper_queue()

    def rates(time: float) -> list[float]:
        return [1.0, 1.0] if time < 100.0 or time > 9000.0 else [0.0, 1e-3 if time > 8500.0 else 0.0]

    for forgetting in ("window", "discount"):
        controller = qu.CertaintyEquivalent(memory=10.0, forgetting=forgetting, review_period=10.0)
        plans = drive(controller, knowledge, rates, 9100.0, np.random.default_rng(3))
        silent = next(plan for time, plan in plans if time > 8400.0)
        if silent.policy is not None:
            assert np.array_equal(silent.policy.admits, queue.rewards >= 0)
        assert plans[-1][1].belief.columns()["rate_estimates"] == pytest.approx([1.0, 1.0], abs=1.5)


@pytest.mark.parametrize(
    "controller",
    [
        qu.CertaintyEquivalent(memory=80.0),
        qu.CertaintyEquivalent(memory=80.0, forgetting="window", service_rate="unknown"),
        qu.Thompson(memory=80.0, forgetting="window"),
        qu.Thompson(memory=80.0, service_rate="unknown"),
    ],
    ids=repr,
)
def test_equal_logs_on_both_engines_and_the_same_again(controller: qu.Controller) -> None:
    queue = paper_queue()
    runs = [
        qu.simulate(queue, controller, horizon=300.0, seed=2, engine=engine, log=True)
        for engine in ("simpy", "compiled", "compiled")
    ]
    assert runs[0].events.equals(runs[1].events)
    assert runs[1].events.equals(runs[2].events)
    assert len(runs[0].episodes) > 60
