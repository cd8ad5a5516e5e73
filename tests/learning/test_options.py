"""Every option of every controller, at every kind of extreme: it is refused by name, or the run ends."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.registry import OWN, make_controller
from queueing_ucrl.simulation import control_loop

NEEDED: dict[str, dict[str, Any]] = {
    "ucrl-ac-states": {"arrival_rate_bounds": (0.0, 4.0)},
    "ucrl-ac": {"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0},
    "trunk-reservation": {"levels": (12, 7)},
}
EXTREMES = [math.nan, math.inf, -math.inf, 0.0, -1.0, 5e-324, 1e-300, 1e-30, 1e30, 1e300, 1.0 + 2e-16, True, 10**40, 2]
MOST_REVIEWS = 50_000  # in a run of a few jobs: an option that asks for more must be refused
OPTIONS = [(name, field.name) for name, kind in OWN.items() for field in fields(kind)]  # type: ignore[arg-type]
NUMBERS_OR_WORDS = {"solver", "interval", "share_set", "service_rate", "forgetting", "looking", "learn_upper_bound"} | {
    "arrivals",
    "by_state",
}


def settings_of(name: str) -> list[dict[str, Any]]:
    """Other options that an extreme may meet with."""
    if name in ("thompson", "certainty-equivalent", "ucrl-ac-classwise"):
        return [{}, {"service_rate": "unknown"}]
    return [NEEDED.get(name, {})]


def tried(name: str, options: dict[str, Any], key: str) -> None:
    """Make it and run it: either it says what is wrong with the option, or it works."""
    told = key
    try:
        run = qu.simulate(paper_queue(6, 0.4), make_controller(name, options), horizon=5.0, seed=1)
        assert run.ledger.episode_count < MOST_REVIEWS
    except ValueError as error:
        told = str(error)
    assert key in told or "too closely" in told, (options, told)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_loop, "IDLE_REVIEWS", 2000)


@pytest.mark.usefixtures("impatient")
@pytest.mark.filterwarnings("ignore::queueing_ucrl.simulation.simulate.GuaranteeWarning")
@pytest.mark.parametrize(("name", "key"), [(n, k) for n, k in OPTIONS if k not in NUMBERS_OR_WORDS])
def test_an_extreme_is_refused_by_name_or_works(name: str, key: str) -> None:
    for others in settings_of(name):
        for value in EXTREMES:
            wanted: Any = value
            if key == "arrival_rate_bounds":
                for pair in ((value, 4.0), (1.0, value), (value, value)):
                    tried(name, {**others, key: pair}, key)
                continue
            if key == "levels":
                wanted = (value, 3)
            tried(name, {**others, key: wanted}, key)


@pytest.mark.parametrize(("name", "key"), [(n, k) for n, k in OPTIONS if k in NUMBERS_OR_WORDS - {"learn_upper_bound"}])
def test_a_wrong_word_is_refused_with_the_right_ones(name: str, key: str) -> None:
    for value in ("", "other", "PI-B", "\u0000"):
        with pytest.raises(ValueError, match=f"{key} must be"):
            make_controller(name, {**NEEDED.get(name, {}), key: value})


@pytest.mark.parametrize("service_rate", ["known", "unknown"])
@pytest.mark.parametrize("options", [{"review_period": 1e-90}, {"memory": 1e-9}])
def test_reviews_without_end_are_refused(service_rate: str, options: dict[str, float]) -> None:
    """Where mu is known, before anything happens; else once nothing has happened for 20,000 of them."""
    controller = qu.CertaintyEquivalent(service_rate=service_rate, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mu_max" if service_rate == "known" else "too closely"):
        qu.simulate(paper_queue(), controller, horizon=10.0, seed=1)


def test_reviews_are_told_before_a_run_where_the_rate_is_shown() -> None:
    """A study lets its controllers begin before it writes anything, and may show them what the run will not."""
    controller = qu.Thompson(service_rate="unknown", review_period=1e-90)
    with pytest.raises(ValueError, match=r"review_period must be at least 0\.0001 of 1 / mu_max"):
        controller.begin(qu.Knowledge.of(paper_queue()), np.random.default_rng(0))


def test_silence_is_not_an_error() -> None:
    """Nobody comes for thousands of reviews; then somebody does."""
    pattern = qu.Steps([500.0], [1e-9, 1.0], period=1000.0)
    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 5.0, pattern=pattern)])
    run = qu.simulate(queue, qu.CertaintyEquivalent(memory=1.0), horizon=600.0, seed=1)
    assert run.ledger.admitted.sum() > 10
