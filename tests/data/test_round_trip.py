"""Round trip: a world is simulated, its log written and fitted, and the truth is where the fit says.

Coverage: an interval of 95 % must hold the truth in 95 % of the logs that give one. Of n logs the number that hold it
is binomial; a test fails below the 0.1 % quantile, so once in a thousand times for an interval that is as good as
promised. Seeds are fixed. Worlds whose logs take long get fewer of them, with the same quantile: `LOGS`. The table with
200 logs of each world is made by analysis/interval_coverage.py.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest
from scipy.stats import binom

import queueing_ucrl as qu
from queueing_ucrl.data.arrivals_fit import fit_arrivals
from queueing_ucrl.data.fit import Fit
from queueing_ucrl.data.round_trip import HELD, MISSED, NO_INTERVAL, coverage, log_of, seeds_of, verdicts
from queueing_ucrl.data.service_fit import fit_patiences, fit_services
from queueing_ucrl.data.synthetic import synthetic_log
from queueing_ucrl.scenario.columns import UNITS

NAMED = {"service": "service", "patience": "wait", "abandoned": "abandoned", "decision": "decision"}
FOLDER = Path(__file__).parents[2] / "scenarios"
WORLDS = sorted(path.stem for path in FOLDER.glob("*.toml"))
QUICK = ["quickstart", "call-centre"]
FEWEST = 20  # logs of a world that LOGS does not name
LOGS = {
    **{"quickstart": 200, "rush-hours": 100, "call-centre": 60, "ev-charging": 30, "network-traffic": 30},
    **{"dispatch": 8, "call-centre-day": 6, "llm-inference": 5},  # 40,000 to 80,000 jobs each
}


@pytest.fixture(autouse=True)
def quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        yield


@pytest.mark.parametrize("name", QUICK)
def test_the_truth_is_inside_the_intervals(name: str) -> None:
    scenario, found = qu.load_scenario(name), []
    for seed in range(12):
        told = verdicts(scenario, log_of(scenario, seed, 1000 / scenario.system.total_arrival_rate))
        # where classes have one service it is one interval, not one for each
        found += [told[what] for what in told if what.startswith("arrivals")]
        found.append(told[f"service of {scenario.system.class_names[0]}"])
    assert len(found) >= 36
    assert found.count(HELD) >= binom.ppf(0.001, len(found), 0.95), found


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_the_truth_is_inside_the_intervals_as_often_as_promised(name: str) -> None:
    """Logs are long enough to know: an interval is missing in 5 % of them at most, by the same quantile."""
    for what, counts in coverage(qu.load_scenario(name), seeds_of(name, LOGS.get(name, FEWEST))).items():
        given = counts[HELD] + counts[MISSED]
        assert counts[HELD] >= binom.ppf(0.001, given, 0.95), f"{what}: {counts}"
        assert counts[NO_INTERVAL] <= binom.isf(0.001, given + counts[NO_INTERVAL], 0.05), f"{what}: {counts}"


WORLDS_OF_EACH_KIND = [
    ("quickstart", 1000.0),  # exponential, classes alike
    ("emergency-department", 200.0),  # classes differ, other laws
    ("network-bursts", 250.0),  # bursts: gaps have a law of their own
    ("call-centre-day", 24.0),  # patience
]


@pytest.mark.parametrize(("name", "length"), WORLDS_OF_EACH_KIND)
@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_alone_are_those_of_the_whole_fit(name: str, length: float, seed: int) -> None:
    """To the bit: what `intervals_only` leaves out decides nothing."""
    table = log_of(qu.load_scenario(name), seed, length)
    for whole, alone in zip(fit_services(table).parts, fit_services(table, intervals_only=True).parts, strict=True):
        assert (alone.on, alone.mean, alone.low, alone.high, alone.interval) == (
            whole.on,
            whole.mean,
            whole.low,
            whole.high,
            whole.interval,
        )
    rates = {on: part.rate for on, part in fit_patiences(table).parts.items()}
    assert {on: part.rate for on, part in fit_patiences(table, intervals_only=True).parts.items()} == rates
    for job_class in table.names:
        whole, alone = fit_arrivals(table, job_class), fit_arrivals(table, job_class, intervals_only=True)
        assert (alone.low, alone.high, alone.interval) == (whole.low, whole.high, whole.interval)


SHORT = [("call-centre-day", "contract", 8.0, 10), ("dispatch", "town", 16.0, 10), ("llm-inference", "code", 250.0, 6)]


@pytest.mark.parametrize(("name", "job_class", "length", "least"), SHORT)
def test_a_log_that_cannot_know_the_rate_says_so(name: str, job_class: str, length: float, least: int) -> None:
    """Of 10 logs so many have no interval, and the others say what theirs is of: bursts may pass by a short log."""
    scenario, none = qu.load_scenario(name), 0
    for seed in range(10):
        fit = fit_arrivals(log_of(scenario, seed, length), job_class)
        if math.isinf(fit.high):
            none += 1
            assert "shorter than two days" in fit.unknown
        else:
            assert "for hours like those seen" in fit.interval
            assert fit.unknown == ""
    assert none >= least


def gain_of(policy: qu.Policy, queue: qu.Queue) -> float:
    return float(qu.evaluate(queue.on_average().model, policy).gain)


def fitted(name: str, jobs: int, seed: int) -> tuple[qu.Scenario, Fit]:
    scenario = qu.load_scenario(name)
    log = synthetic_log(scenario.system, jobs=jobs, controller="admit-all", seed=seed)
    unit = scenario.units.time if scenario.units.time in UNITS else None
    return scenario, qu.fit(log, "time", "job_class", **NAMED, time_unit=unit, like=name)


MARKOV = [name for name in WORLDS if isinstance(qu.load_scenario(name).system, qu.Queue)]


def check_gain(name: str, seed: int) -> None:
    """20,000 jobs: the plan for the fitted world, in the true one, is within 1 % of the optimum."""
    scenario, found = fitted(name, 20_000, seed)
    assert found.system is not None
    plan = qu.solve(found.system.queue.on_average()).policy
    truth = scenario.system.queue
    best = qu.solve(truth.on_average()).gain
    assert gain_of(plan, truth) >= 0.99 * best


@pytest.mark.parametrize("name", QUICK)
def test_the_fitted_policy_is_nearly_the_best(name: str) -> None:
    check_gain(name, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", MARKOV)
def test_the_fitted_policy_is_nearly_the_best_in_every_markov_world(name: str) -> None:
    for seed in (1, 2):
        check_gain(name, seed)
