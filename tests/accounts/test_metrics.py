"""Measures of a run: the same from counts and from the event log, and what queueing theory says they are."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from generators import paper_queue

import queueing_ucrl as qu
from queueing_ucrl.accounts.measures import MEASURES, batch_estimate
from queueing_ucrl.accounts.wait_histogram import BINS, bin_edge, bins_of, count_within, quantile

LEVELS = {"wait_50": 0.5, "wait_80": 0.8, "wait_95": 0.95, "wait_99": 0.99}


def table(measures: pd.DataFrame, column: str = "mean") -> dict[tuple[str, str], float]:
    return {(row.measure, row.job_class): getattr(row, column) for row in measures.itertuples()}


def test_the_histogram_keeps_quantiles_and_shares_to_a_percent() -> None:
    random = np.random.default_rng(2)
    waits = np.where(random.random(5000) < 0.3, 0.0, random.lognormal(1.0, 2.0, 5000))
    histogram = np.bincount(bins_of(waits[waits > 0]), minlength=BINS)
    assert histogram.sum() == (waits > 0).sum()
    for level in (0.1, 0.3, 0.31, 0.5, 0.8, 0.95, 0.99, 1.0):
        exact = np.quantile(waits, level, method="inverted_cdf")
        assert quantile(histogram, 5000, level) == pytest.approx(exact, rel=0.012)
    for wait in (0.0, 1e-30, 0.01, 1.0, 7.3, 1e3, 1e30):
        inside = np.sum((waits > wait / 1.0111) & (waits <= wait * 1.0111))
        assert abs(count_within(histogram, 5000, wait) - np.sum(waits <= wait)) <= inside
    for j in (0, 3000, 7000):
        exact_count = np.sum(waits < bin_edge(j))
        assert count_within(histogram, 5000, bin_edge(j)) == exact_count
    assert math.isnan(quantile(histogram, 0, 0.5))


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_counts_and_the_event_log_give_the_same_measures(engine: str) -> None:
    costs = [qu.JobClass("gold", 1.0, 20.0, qu.Linear(0.1)), qu.JobClass("basic", 1.0, 10.0, qu.Deadline(3.0, 1.0))]
    queue = qu.Queue(5, 20, 0.3, costs)
    options = {"horizon": 400.0, "seed": 3, "engine": engine}
    counted = qu.simulate(queue, "oracle", **options).measures(target_wait=1.5)  # type: ignore[arg-type]
    run = qu.simulate(queue, "oracle", log=True, **options)  # type: ignore[arg-type]
    logged = run.measures(target_wait=1.5)
    assert list(dict.fromkeys(counted["measure"])) == list(MEASURES)
    one, other = table(counted), table(logged)
    assert one.keys() == other.keys()
    for key, value in one.items():
        assert other[key] == pytest.approx(value, rel=1e-10), key
    starts = run.events[run.events["event"] == "start"]
    for name in ("gold", "basic"):
        waits = starts[starts["job_class"] == name]["wait"].to_numpy(dtype=float)
        assert one["wait", name] == pytest.approx(waits.mean(), rel=1e-12)
        assert one["service_level", name] == pytest.approx(np.mean(waits <= 1.5), abs=0.02)
        assert one["throughput", name] == waits.size / 400.0
        for measure, level in LEVELS.items():
            assert one[measure, name] == pytest.approx(np.quantile(waits, level, method="inverted_cdf"), rel=0.012)
    money = run.events[["reward", "cost"]].sum()
    assert one["earned", "all"] == pytest.approx((money["reward"] - money["cost"]) / 400.0, rel=1e-12)


def test_a_path_that_can_be_added_up_by_hand() -> None:
    """One server: a (0 to 4), b waits from 1 to 4 and is served to 6, c is blocked at 2, d comes at 7 and stays."""
    rows = [
        (0.0, "admit", 0, "x", None, 10.0, None),
        (0.0, "start", 0, "x", 0.0, None, 0.0),
        (1.0, "admit", 1, "y", None, 5.0, None),
        (2.0, "block", 2, "x", None, None, None),
        (4.0, "depart", 0, "x", None, None, None),
        (4.0, "start", 1, "y", 3.0, None, 6.0),
        (6.0, "depart", 1, "y", None, None, None),
        (7.0, "admit", 3, "y", None, 5.0, None),
        (7.0, "start", 3, "y", 0.0, None, 0.0),
    ]
    events = pd.DataFrame(rows, columns=["time", "event", "job", "job_class", "wait", "reward", "cost"])
    events["job_class"] = pd.Categorical(events["job_class"], ["x", "y"])
    found = table(qu.metrics(events, 10.0, servers=1.0, target_wait=2.0))
    assert found["arrivals", "all"] == pytest.approx(0.4)
    assert found["throughput", "y"] == pytest.approx(0.2)
    assert (found["admitted", "x"], found["blocked", "x"], found["admitted", "y"]) == (0.5, 0.5, 1.0)
    assert found["wait", "y"] == pytest.approx(1.5)
    assert (found["service_level", "x"], found["service_level", "y"]) == (1.0, 0.5)
    assert found["utilisation", "all"] == pytest.approx((4.0 + 2.0 + 3.0) / 10.0)
    assert found["revenue", "all"] == pytest.approx(2.0)
    assert found["earned", "y"] == pytest.approx((10.0 - 6.0) / 10.0)
    late = table(qu.metrics(events, 10.0, servers=1.0, start=5.0))
    assert late["utilisation", "all"] == pytest.approx((1.0 + 3.0) / 5.0)
    assert math.isnan(late["admitted", "x"])
    parts = qu.metrics(events, 10.0, servers=1.0, period=5.0, parts=5)
    first = parts[(parts["from"] == 2.0) & (parts["measure"] == "arrivals") & (parts["job_class"] == "all")]
    assert first["to"].tolist() == [3.0]
    assert first["mean"].tolist() == [1.0]  # the block at 2 and the arrival at 7, in two periods
    busy = parts[parts["measure"] == "utilisation"].set_index("from")["mean"]
    assert busy.to_dict() == pytest.approx({0.0: 1.0, 1.0: 0.5, 2.0: 1.0, 3.0: 1.0, 4.0: 1.0})


def test_measures_are_those_of_the_exact_queue() -> None:
    """Thirty intervals of 95 % by replications of the M/M/c/S queue's measures: at most seven may miss (1e-4)."""
    queue, policy = paper_queue(), qu.Policy.trunk_reservation([20, 10], 20)
    exact = qu.performance(queue, policy)
    study = qu.replicate(queue, [policy], horizon=4000.0, replications=20, seed=8, jobs=1, target_wait=2.0)
    found = study.measures()
    assert (found["replications"] == 20).all()
    low, high = table(found, "low"), table(found, "high")
    truth = {("utilisation", "all"): exact.utilisation, ("throughput", "all"): exact.throughput}
    for i, name in enumerate(queue.class_names):
        truth["admitted", name] = exact.admission[i]
        truth["rejected", name] = exact.rejection[i]
        truth["wait", name] = exact.mean_wait[i]
    truth["earned", "all"] = qu.evaluate(queue, policy).gain
    missed = [key for key, value in truth.items() if not low[key] <= value <= high[key]]
    assert len(missed) <= 3  # of 9; 1e-3 were they independent


def test_batch_means_of_one_run_cover_the_gain() -> None:
    """100 runs of 95 % intervals, with and without a log: fewer than 85 hits have probability 1e-4."""
    queue = paper_queue()
    gain, hits, grid = qu.solve(queue).gain, 0, np.arange(1, 101) * 20.0
    for seed in range(100):
        run = qu.simulate(queue, "oracle", horizon=2000.0, seed=seed, grid=grid)
        known = batch_estimate(run.curve.times, run.curve.earned("realised_reward"))
        hits += known.low <= gain <= known.high
        if seed < 2:  # the same stretches, cut out of the log
            logged = qu.simulate(queue, "oracle", horizon=2000.0, seed=seed, log=True).measures()
            for column in ("low", "high"):
                told = table(run.measures(), column)["earned", "all"]
                assert told == pytest.approx(getattr(known, column), rel=1e-12)
                assert told == pytest.approx(table(logged, column)["earned", "all"], rel=1e-6)
    assert hits >= 85


def test_rates_by_the_hour_of_the_day() -> None:
    """Arrivals of rush hours: the mean of the pattern in each part lies in 24 intervals of 95 %, but for 6 at most."""
    pattern = qu.Steps([6.0, 12.0], [0.5, 2.0, 1.0], period=24.0)
    queue = qu.Queue(3, 8, 0.5, [qu.JobClass("a", 1.0, 1.0, pattern=pattern)])
    run = qu.simulate(queue, "admit-all", horizon=1200.0, seed=1, log=True)
    hours = run.measures(period=24.0, parts=24)
    arrivals = hours[(hours["measure"] == "arrivals") & (hours["job_class"] == "all")]
    expected = [0.5] * 6 + [2.0] * 6 + [1.0] * 12
    missed = ~((arrivals["low"] <= expected) & (arrivals["high"] >= expected))
    assert missed.sum() <= 6
    assert len(hours) == 24 * (2 * len(MEASURES) - 1)


def test_a_warm_up_is_found_and_left_out() -> None:
    """A full house at the start of the day: 60 places fill up slowly."""
    queue = qu.Queue(50, 60, 0.01, [qu.JobClass("a", 0.48, 1.0)])
    run = qu.simulate(queue, "admit-all", horizon=5000.0, seed=2, log=True)
    warm = run.warm_up()
    assert 50.0 <= warm <= 1000.0
    cold, hot = table(run.measures()), table(run.measures(start="mser-5"))
    assert hot["utilisation", "all"] > 1.01 * cold["utilisation", "all"]
    assert hot == table(run.measures(start=warm))
    filling = qu.Queue(500, 600, 0.001, [qu.JobClass("a", 4.8, 1.0)])
    still_filling = qu.simulate(filling, "admit-all", horizon=200.0, seed=2, log=True)
    with pytest.raises(ValueError, match="the run is too short to tell when it is warm"):
        still_filling.warm_up()


def test_what_needs_a_log_says_so() -> None:
    run = qu.simulate(paper_queue(), "oracle", horizon=50.0)
    for options in ({"period": 24.0}, {"start": 10.0}, {"start": "mser-5"}):
        with pytest.raises(ValueError, match="need its event log"):
            run.measures(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kept no event log"):
        run.warm_up()
    assert run.measures()["low"].isna().all()  # a log grid has no stretches of equal length
    logged = qu.simulate(paper_queue(), "oracle", horizon=50.0, log=True)
    for options, message in (
        ({"start": 50.0}, "start must be at least 0 and before the horizon 50"),
        ({"start": "soon"}, 'start must be a time or "mser-5"'),
        ({"period": 60.0}, "there is no whole period of 60"),
        ({"period": 5.0, "parts": 0}, "parts must be a whole number"),
        ({"target_wait": -1.0}, "target_wait must be a finite number of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            logged.measures(**options)  # type: ignore[arg-type]


def test_batches_of_a_grid_must_be_even() -> None:
    times = np.arange(1.0, 41.0)
    assert batch_estimate(times, 2.0 * times).mean == 2.0
    assert batch_estimate(times, 2.0 * times).half_width == 0.0
    assert math.isnan(batch_estimate(times[:39], times[:39]).half_width)
    assert math.isnan(batch_estimate(times**2, times).half_width)
