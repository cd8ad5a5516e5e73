"""Round trip: a world is simulated, its log written and fitted, and the truth is where the fit says.

Coverage: an interval of 95 % must hold the truth in 95 % of logs. Of n logs the number that hold it is binomial; a
test fails below the 0.1 % quantile, so once in a thousand times for intervals that are as good as promised.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from scipy.stats import binom

import queueing_ucrl as qu
from queueing_ucrl.data.arrivals_fit import fit_arrivals
from queueing_ucrl.data.fit import Fit
from queueing_ucrl.data.service_fit import fit_patiences, fit_services
from queueing_ucrl.data.synthetic import synthetic_log
from queueing_ucrl.data.tables import Columns, JobTable, read_jobs
from queueing_ucrl.scenario.columns import UNITS

COLUMNS = Columns("time", "job_class", service="service", patience="wait", abandoned="abandoned", decision="decision")
NAMED = {"service": "service", "patience": "wait", "abandoned": "abandoned", "decision": "decision"}
FOLDER = Path(__file__).parents[2] / "scenarios"
WORLDS = sorted(path.stem for path in FOLDER.glob("*.toml"))
QUICK = ["quickstart", "call-centre"]


@pytest.fixture(autouse=True)
def quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        yield


def table_of(scenario: qu.Scenario, jobs: int, seed: int) -> JobTable:
    log = synthetic_log(scenario.system, jobs=jobs, controller="admit-all", seed=seed)
    unit = scenario.units.time if scenario.units.time in UNITS else None
    return read_jobs(log, COLUMNS, time_unit=unit)


def held(scenario: qu.Scenario, table: JobTable) -> dict[str, bool]:
    """Which intervals hold the truth: mean arrival rates, mean service times, rates of exponential patience."""
    system, found = scenario.system, {}
    services, patiences = fit_services(table), fit_patiences(table)
    for c in system.classes:
        fit = fit_arrivals(table, c.name)
        truth = c.arrival_rate * c.pattern.mean if c.arrivals is None else c.arrival_process.rate
        found[f"arrivals of {c.name}"] = fit.low <= truth <= fit.high
    # of classes that are told apart, one: which it is does not depend on the data
    part, law = services.of(system.class_names[0]), system.law(0)
    if part is not None:
        found["service"] = part.low <= law.mean <= part.high
    patience, own = system.patience_of(0), patiences.of(system.class_names[0])
    if patience is not None and patience.memoryless and own is not None:
        found["patience"] = own.rate.low <= 1.0 / patience.mean <= own.rate.high
    return found


def coverage(name: str, replications: int, jobs: int) -> dict[str, tuple[int, int]]:
    """(how often held, of how many logs) for each interval."""
    scenario, counts = qu.load_scenario(name), dict[str, tuple[int, int]]()
    for seed in range(replications):
        for what, holds in held(scenario, table_of(scenario, jobs, seed)).items():
            before = counts.get(what, (0, 0))
            counts[what] = (before[0] + holds, before[1] + 1)
    return counts


@pytest.mark.parametrize("name", QUICK)
def test_the_truth_is_inside_the_intervals(name: str) -> None:
    counts = coverage(name, 12, 1000)
    holds, total = (sum(column) for column in zip(*counts.values(), strict=True))
    assert total >= 36
    assert holds >= binom.ppf(0.001, total, 0.95), counts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart", "call-centre", "rush-hours", "network-traffic"])
def test_the_truth_is_inside_the_intervals_as_often_as_promised(name: str) -> None:
    """200 logs of worlds whose rates 2,000 jobs can tell, and whose servers do not break."""
    for what, (holds, total) in coverage(name, 200, 2000).items():
        assert holds >= binom.ppf(0.001, total, 0.95), f"{what}: {holds} of {total}"


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
