"""Laws of balking: exact counts give them back, their likelihood is the largest, and logs of worlds that have them
give the truth in their intervals.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import queueing_ucrl as qu
from queueing_ucrl.data import balking_fit
from queueing_ucrl.data.arrivals_fit import ArrivalsFit
from queueing_ucrl.data.balking_fit import fit_all_arrivals
from queueing_ucrl.data.balking_laws import candidates, likeliest, log_likelihood, refitted_law
from queueing_ucrl.data.crowd_law import law_of_balking
from queueing_ucrl.data.refit import SampleSizes, redrawn
from queueing_ucrl.data.round_trip import log_of
from queueing_ucrl.data.synthetic import synthetic_log
from queueing_ucrl.model.balking import Balking, BalkingTable, GeometricBalking, LinearBalking
from queueing_ucrl.simulation.seeding import Randomness

LAWS: list[Balking] = [
    GeometricBalking(0.9, 5),
    GeometricBalking(0.6, 0),
    GeometricBalking(0.0, 7),
    LinearBalking(20.0, 2),
    LinearBalking(9.5, 4),
    BalkingTable([1.0] * 5 + [0.6] * 4 + [0.1] * 6),
]
COLUMNS = {"start": "start", "end": "end", "decision": "decision"}


def times_in(states: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(10.0, 100.0, states)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_counts_as_expected_give_the_law_back(law: Balking) -> None:
    """N_s = lambda b(s) e_s, with the real numbers that these are: the truth is then the likeliest of its kind."""
    joins, times = np.array(law.joins(15)), times_in(15, 1)
    found = likeliest(list(candidates(1000.0 * joins * times, times)), 1e6)
    assert type(found.law) is type(law)
    again = np.array(found.law.joins(15))
    assert again == pytest.approx(joins, rel=1e-4, abs=1e-9)
    assert refitted_law(law, joins * times, times).joins(15) == pytest.approx(joins, rel=1e-4, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 9999), st.integers(3, 9), st.booleans())
def test_no_law_on_a_grid_is_likelier(seed: int, states: int, linear: bool) -> None:
    rng = np.random.default_rng(seed)
    times, counts = times_in(states, seed), rng.poisson(np.linspace(30.0, 3.0, states)).astype(float)
    found = list(candidates(counts, times))
    best = max(one.log_likelihood for one in found if isinstance(one.law, LinearBalking) is linear)
    for knee in range(states - 1):
        for x in np.linspace(0.02, 0.999, 60):
            law = LinearBalking(x * 4 * states, knee) if linear else GeometricBalking(x, knee)
            assert log_likelihood(np.array(law.joins(states)), counts, times) <= best + 1e-7 * counts.sum()


def test_the_variance_of_lambda_is_that_of_many_samples() -> None:
    """Fisher's, against the spread of log lambda in 400 samples; 400 samples know a variance within 7 %."""
    law, times, rate = GeometricBalking(0.85, 4), np.full(15, 30.0), 2.0
    joins, rng, found = np.array(law.joins(15)), np.random.default_rng(2), []
    for _ in range(400):
        counts = rng.poisson(rate * joins * times).astype(float)
        again = np.array(refitted_law(law, counts, times).joins(15))
        found.append(math.log(counts.sum() / (again * times).sum()))
    expected = [one for one in candidates(rate * joins * times, times) if one.law == geometric_from(one.law, 4)]
    assert len(expected) == 1
    assert np.var(found) == pytest.approx(expected[0].log_rate_variance, rel=4 * math.sqrt(2 / 400))


def geometric_from(law: Balking, knee: int) -> Balking | None:
    """The law itself, if it is geometric with this knee."""
    return law if isinstance(law, GeometricBalking) and law.above == knee else None


# --- logs of worlds ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lunch() -> list[dict[str, ArrivalsFit]]:
    scenario = qu.load_scenario("lunch-counter")
    tables = [log_of(scenario, seed, 1000.0) for seed in range(8)]
    return [fit_all_arrivals(table, table.names, capacity=20, intervals_only=True) for table in tables]


def test_a_lunch_counter_is_seen_as_one(lunch: list[dict[str, ArrivalsFit]]) -> None:
    """Eight logs: who balks is found, lambda = 1 is within the intervals, and in its own clock each class is Poisson.

    Each count fails once in a thousand times where the levels are as promised.
    """
    every = [fit for fits in lunch for fit in fits.values()]
    assert all(fit.balks is not None for fit in every)
    assert sum(fit.low <= 1.0 <= fit.high for fit in every) >= binom.ppf(0.001, len(every), 0.95)
    assert sum(not fit.is_poisson for fit in every) <= binom.isf(0.001, len(every), 0.05)


def test_nobody_balks_where_nobody_does() -> None:
    """At most as many false alarms as a test of 5 % has, over 24 logs with two classes."""
    scenario = qu.load_scenario("quickstart")
    found = 0
    for seed in range(24):
        table = log_of(scenario, seed, 300.0)
        fits = fit_all_arrivals(table, table.names, capacity=20, intervals_only=True)
        found += any(fit.balks is not None for fit in fits.values())
    assert found <= binom.isf(0.001, 24, 0.05)


def test_steps_of_the_day_and_balking_are_told_apart() -> None:
    """At noon four times as many come, and more are there: without the law of balking the step looks smaller."""
    pattern = qu.Steps((12.0,), (0.4, 1.6), 24.0)
    guests = qu.JobClass("guests", 3.0, 1.0, pattern=pattern, balking=GeometricBalking(0.75, 2))
    log = synthetic_log(qu.Queue(3, 12, 1.0, [guests]), horizon=24.0 * 60, seed=4)
    found = qu.fit(log, "time", "job_class", **COLUMNS, time_unit="hours", capacity=12, rewards={"guests": 1.0})
    one = found.arrivals["guests"]
    assert one.balks is not None
    assert one.steps is not None
    hours = one.steps.expected([4.0, 15.0], [11.0, 23.0]) / [7.0, 8.0]  # well after each step
    assert hours == pytest.approx([1.2, 4.8], rel=0.1)
    assert one.low <= 3.0 <= one.high
    assert one.is_poisson
    assert one.balks.law.joins(8) == pytest.approx(guests.balking.joins(8), abs=0.08)  # type: ignore[union-attr]


def test_the_scenario_holds_it() -> None:
    scenario = qu.load_scenario("lunch-counter")
    log = synthetic_log(scenario.system, jobs=4000, seed=1)
    found = qu.fit(log, "time", "job_class", **COLUMNS, time_unit="minutes", like="lunch-counter")
    assert found.balks
    assert not any("does not hold this" in words for words in found.words)
    file = tomllib.loads(found.to_toml())
    assert [one["balking"] for one in file["class"]] == [
        law_of_balking(fit.balks.law) for fit in found.arrivals.values() if fit.balks is not None
    ]
    assert file["controller"][1] == {"name": "certainty-equivalent", "arrivals": "state-dependent"}
    assert found.system is not None
    assert found.system.balks
    assert found.plain_data()["balking_laws"].keys() == {"to eat here", "takeaway"}
    on = Counter(test.on for test in found.tested if test.what.startswith("arrivals do not depend on the state"))
    assert on == {"all": 1, "to eat here": 1, "takeaway": 1}


def test_a_full_house_is_no_balking_but_a_log_of_those_let_in_may_look_so() -> None:
    """An overloaded queue: a log without those who were blocked. Its room given, nobody is said to balk."""
    queue = qu.Queue(2, 4, 1.0, [qu.JobClass("a", 4.0, 1.0)])
    log = synthetic_log(queue, jobs=3000, seed=2)
    log = log[log["decision"] == "admit"]
    known = qu.fit(log, "time", "job_class", start="start", end="end", capacity=4, rewards={"a": 1.0})
    assert known.arrivals["a"].balks is None
    unknown = qu.fit(log, "time", "job_class", start="start", end="end")
    law = unknown.arrivals["a"].balks
    assert law is not None
    assert law.law == GeometricBalking(0.0, 3)
    assert "leaves out those who were turned away" in " ".join(unknown.words)


def test_who_is_there_unknown_nothing_is_said() -> None:
    log = synthetic_log(qu.load_scenario("lunch-counter").system, jobs=500, seed=1)
    found = qu.fit(log, "time", "job_class")
    assert found.balking is None
    assert not found.balks


# --- drawn again ------------------------------------------------------------------------------------------------------


def test_a_drawn_world_has_the_spread_that_its_data_leave() -> None:
    """log lambda over 300 drawn worlds against Fisher's variance: within four standard errors of a variance."""
    law, times = GeometricBalking(0.85, 4), np.full(16, 60.0)
    queue = qu.Queue(3, 15, 1.0, [qu.JobClass("a", 2.0, 1.0, balking=law)])
    sizes = SampleSizes(0.0, float(times.sum()), (500,), (0,), (), tuple(times.tolist()))
    drawn = [redrawn(queue, sizes, Randomness(1, k).rng) for k in range(300)]
    joins = np.array(law.joins(16))
    wanted = next(one for one in candidates(2.0 * joins * times, times) if geometric_from(one.law, 4))
    spread = np.array([math.log(one.classes[0].arrival_rate / 2.0) for one in drawn])
    assert spread.var() == pytest.approx(wanted.log_rate_variance, rel=4 * math.sqrt(2 / 300))
    assert abs(spread.mean()) < 4 * math.sqrt(wanted.log_rate_variance / 300) + 0.01
    ratios = np.array([one.classes[0].balking.ratio for one in drawn])  # type: ignore[union-attr]
    assert abs(ratios.mean() - 0.85) < 4 * ratios.std() / math.sqrt(300) + 0.002


def test_without_the_time_in_states_the_law_stays_as_it_is() -> None:
    queue = qu.Queue(3, 15, 1.0, [qu.JobClass("a", 2.0, 1.0, balking=LinearBalking(8.0, 2))])
    one = redrawn(queue, SampleSizes(0.0, 500.0, (500,), (0,)), Randomness(1, 0).rng)
    assert one.classes[0].balking == queue.classes[0].balking
    plain = replace(queue.classes[0], balking=None)
    same = redrawn(qu.Queue(3, 15, 1.0, [plain]), SampleSizes(0.0, 500.0, (500,), (0,)), Randomness(1, 0).rng)
    assert same.classes[0].arrival_rate == one.classes[0].arrival_rate


def told_to_balk(p_values: list[float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Of three classes whose tests have these p-values, those of which a law is looked for."""
    table = log_of(qu.load_scenario("call-centre"), seed=4, length=1000.0)
    names, asked = list(table.names), []
    tests = dict(zip(names, p_values, strict=True))

    def tested(table: object, stays: object, name: str, dispersion: float, *, by_age: bool) -> SimpleNamespace:
        return SimpleNamespace(p_value=tests[name], slope=-0.1)

    def with_law(fit: ArrivalsFit, *_: object) -> ArrivalsFit:
        asked.append(fit)
        return fit

    monkeypatch.setattr(balking_fit, "fit_balking", tested)
    monkeypatch.setattr(balking_fit, "with_balking", with_law)
    found = fit_all_arrivals(table, names)
    return [tests[name] for name in names if any(found[name] is fit for fit in asked)]


def test_tests_of_several_classes_keep_their_level_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holm: of three classes the least p-value counts three times, the next one twice."""
    assert told_to_balk([0.02, 0.03, 0.5], monkeypatch) == []
    assert told_to_balk([0.5, 0.01, 0.03], monkeypatch) == [0.01]
    assert told_to_balk([0.01, 0.02, 0.04], monkeypatch) == [0.01, 0.02, 0.04]


def test_batches_do_not_look_like_balking() -> None:
    """A train's riders find the same number each: Poisson counts would call a third of such logs balking.

    Of 30 logs at a level of 5 %, more than 5 would be told to balk with probability 0.003; misses likewise.
    """
    scenario = qu.load_scenario("dispatch")
    tables = [log_of(scenario, seed, length=48.0) for seed in range(30)]
    found = [fit_all_arrivals(table, table.names, capacity=80, intervals_only=True)["train"] for table in tables]
    assert sum(fit.balks is not None for fit in found) <= 5
    assert sum(fit.low <= 54.0 <= fit.high for fit in found if math.isfinite(fit.high)) >= 25
