"""Days that differ: the level of today from what was seen and expected, and what following it earns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from synthetic import tally

import queueing_ucrl as qu
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.days import UsualDay
from queueing_ucrl.simulation.simulate import cautions

SERVICE = qu.Exponential(1.0)


def varying(cv: float) -> qu.System:
    def days(rate: float) -> qu.ArrivalProcess:
        return qu.DayFactor(qu.Poisson(rate), cv=cv, period=50.0)

    return qu.System(
        5,
        15,
        [
            qu.JobClass("gold", arrivals=days(2.5), reward=20.0, holding_cost=qu.Linear(1.0), service=SERVICE),
            qu.JobClass("basic", arrivals=days(2.5), reward=6.0, holding_cost=qu.Linear(1.0), service=SERVICE),
        ],
    )


def test_the_level_is_the_ratio_shrunk_by_the_cv() -> None:
    """cv = 0.5: as if four jobs had been seen where four were expected."""
    day = UsualDay(qu.Poisson(2.0, qu.Sinusoid(0.5, 24.0)), 0.5)
    assert day.level(0.0, 0.0) == 1.0
    assert day.level(20.0, 8.0) == pytest.approx(24.0 / 12.0)
    assert UsualDay(qu.Poisson(2.0), 0.0).level(20.0, 8.0) == 1.0
    assert day.expected(0.0, 24.0) == pytest.approx(48.0, rel=1e-12)
    assert day.expected(0.0, 0.5) == pytest.approx(1.0 + 24.0 / (2 * np.pi) * (1 - np.cos(np.pi / 24)), rel=1e-5)


def test_levels_are_followed_within_the_day_and_forgotten_at_its_end() -> None:
    controller = qu.DayFollowing(reviews=10)
    session = controller.begin(Knowledge.shown_to(controller, varying(0.5)), np.random.default_rng(0))
    plan = session.first()
    assert plan.until == 5.0
    assert plan.request is not None
    np.testing.assert_allclose(plan.request.model.arrival_rates[0], [2.5, 2.5], rtol=1e-12)
    plan = session.review(tally(5.0, 5.0, [25, 5], capacity=15))  # 12.5 expected of each
    assert plan.request is not None
    np.testing.assert_allclose(plan.request.model.arrival_rates[0], [2.5 * 29 / 16.5, 2.5 * 9 / 16.5], rtol=1e-12)
    for k in range(2, 10):
        assert session.review(tally(5.0 * k, 5.0, [25, 5], capacity=15)).until == pytest.approx(5.0 * (k + 1))
    plan = session.review(tally(50.0, 5.0, [25, 5], capacity=15))
    assert plan.request is not None
    np.testing.assert_allclose(plan.request.model.arrival_rates[0], [2.5, 2.5], rtol=1e-12)


def test_following_the_level_earns_more_than_planning_for_the_mean() -> None:
    """cv = 0.8, 100 days, 6 paired runs: the difference of mean rewards, by more than 4 of its standard errors."""
    system, gains = varying(0.8), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        for k in range(6):
            runs = [
                qu.simulate(system, name, horizon=5000.0, seed=2, replication=k) for name in ("day-following", "oracle")
            ]
            following, mean = (run.summary()["reward"] for run in runs)
            gains.append(following / mean - 1.0)
    assert np.mean(gains) > 4 * np.std(gains, ddof=1) / np.sqrt(6)
    assert np.mean(gains) > 0.005


def test_what_is_not_a_day_is_refused_or_told() -> None:
    bursts = qu.JobClass("a", arrivals=qu.Renewal(qu.Deterministic(1.0)), reward=1.0, service=SERVICE)
    controller = qu.DayFollowing()
    with pytest.raises(ValueError, match="class 'a': day-following knows Poisson arrivals"):
        controller.begin(Knowledge.shown_to(controller, qu.System(1, 3, [bursts])), np.random.default_rng(0))
    with pytest.raises(ValueError, match="reviews must be a whole number"):
        qu.DayFollowing(reviews=0)
    assert cautions(varying(0.5), controller) == []
    assert any("Poisson" in caution for caution in cautions(varying(0.5), qu.Oracle()))
