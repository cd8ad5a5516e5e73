"""A study's statistics against direct computations by numpy and scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from generators import paper_queue
from small_studies import small_study

import queueing_ucrl as qu
from queueing_ucrl.experiments.study import interval

KINDS = ("realised", "expected", "gap", "pseudo")


@pytest.fixture(scope="module")
def study() -> qu.Study:
    return small_study(jobs=1, replications=7, grid=[10.0, 50.0, 199.0])


def wide(study: qu.Study, controller: str, kind: str) -> np.ndarray:
    """One row a replication, one column a time, from the tidy table of all curves."""
    curves = study.curves()
    return curves[curves["controller"] == controller].pivot(index="replication", columns="time", values=kind).to_numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_mean_interval_median_and_quantiles_of_each_account(study: qu.Study, kind: str) -> None:
    frame = study.regret(kind)
    columns = "controller time mean low high median q01 q05 q10 q25 q75 q90 q95 q99 replications"
    assert list(frame.columns) == columns.split()
    for name, rows in frame.groupby("controller"):
        samples = wide(study, str(name), kind)
        assert samples.shape == (7, 4)  # the horizon is always the last time
        np.testing.assert_allclose(rows["mean"], samples.mean(axis=0), rtol=1e-13)
        error = scipy.stats.sem(samples)
        spread = error > 0
        low, high = scipy.stats.t.interval(0.95, df=6, loc=samples.mean(axis=0), scale=np.where(spread, error, 1.0))
        scale = np.abs(samples).max() * 1e-12
        np.testing.assert_allclose(rows["low"][spread], low[spread], rtol=1e-10, atol=scale)
        np.testing.assert_allclose(rows["high"][spread], high[spread], rtol=1e-10, atol=scale)
        np.testing.assert_array_equal(rows["median"], np.median(samples, axis=0))
        for level in (1, 5, 10, 25, 75, 90, 95, 99):
            np.testing.assert_array_equal(rows[f"q{level:02d}"], np.percentile(samples, level, axis=0))
        assert (rows["replications"] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
def test_differences_are_taken_replication_by_replication(study: qu.Study, kind: str) -> None:
    frame = study.differences("oracle", kind)
    assert sorted(set(frame["controller"])) == ["random", "ucrl-ac"]
    for name, rows in frame.groupby("controller"):
        paired = wide(study, str(name), kind) - wide(study, "oracle", kind)
        np.testing.assert_allclose(rows["mean"], paired.mean(axis=0), rtol=1e-12, atol=1e-9)
        test = scipy.stats.ttest_rel(wide(study, str(name), kind)[:, -1], wide(study, "oracle", kind)[:, -1])
        expected = test.confidence_interval(0.95)
        assert rows["low"].iloc[-1] == pytest.approx(expected.low, rel=1e-10)
        assert rows["high"].iloc[-1] == pytest.approx(expected.high, rel=1e-10)


def test_the_paired_interval_is_narrower_than_that_of_independent_runs() -> None:
    """Same jobs for both controllers: what they share cancels."""
    study = small_study(jobs=1, replications=20)
    paired = study.differences("oracle", "expected").query("controller == 'ucrl-ac'").iloc[-1]
    mine, base = wide(study, "ucrl-ac", "expected")[:, -1], wide(study, "oracle", "expected")[:, -1]
    independent = scipy.stats.ttest_ind(mine, base, equal_var=False).confidence_interval(0.95)
    assert paired["high"] - paired["low"] < 0.8 * (independent.high - independent.low)


def test_a_baseline_must_be_in_the_study(study: qu.Study) -> None:
    with pytest.raises(ValueError, match="baseline must be a controller of the study, got 'nobody'"):
        study.differences("nobody")
    with pytest.raises(ValueError, match="kind must be one of"):
        study.regret("total")


def test_a_single_replication_has_an_interval_without_width() -> None:
    frame = small_study(jobs=1, replications=1).regret("gap")
    assert (frame["low"] == frame["mean"]).all()
    assert (frame["high"] == frame["mean"]).all()


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    samples = np.random.default_rng(0).exponential(size=(12, 4000)) ** 0.5
    _, low, high = interval(samples)
    true_mean = np.sqrt(np.pi) / 2
    assert np.mean((low <= true_mean) & (true_mean <= high)) == pytest.approx(0.95, abs=0.015)


def test_the_curves_are_those_of_single_runs(study: qu.Study) -> None:
    queue = study.cells[0].queue
    run = qu.simulate(queue, "random", horizon=200.0, seed=9, replication=4, grid=[10.0, 50.0, 199.0])
    for kind in KINDS:
        np.testing.assert_array_equal(wide(study, "random", kind)[4], run.curve.total(kind))


def test_the_gap_account_is_the_sum_of_its_causes(study: qu.Study) -> None:
    curves = study.curves()
    np.testing.assert_allclose(curves["wrongly_admitted"] + curves["wrongly_rejected"], curves["gap"], rtol=1e-12)


def test_the_tables_are_tidy_and_survive_parquet(study: qu.Study, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in ("curves", "episodes"):
        frame = getattr(study, name)()
        frame.to_parquet(tmp_path / "table.parquet")
        again = pd.read_parquet(tmp_path / "table.parquet")
        assert list(again.columns) == list(frame.columns)
        assert len(again) == len(frame)


def test_two_controllers_of_one_kind_get_names_that_differ() -> None:
    queue, controllers = paper_queue(), [qu.RandomPolicy(0.2), qu.RandomPolicy(0.8)]
    study = qu.replicate(queue, controllers, horizon=50.0, replications=2, jobs=1)
    assert [cell.name for cell in study.cells] == [
        "random (admission_probability=0.2)",
        "random (admission_probability=0.8)",
    ]
    assert study.results[0][0].regret["gap"].tolist() != study.results[1][0].regret["gap"].tolist()


def test_grids() -> None:
    linear = qu.time_grid(1000.0, 5, "linear")
    assert linear.tolist() == [200.0, 400.0, 600.0, 800.0, 1000.0]
    log = qu.time_grid(1000.0, 41)
    assert (len(log), log[-1]) == (41, 1000.0)
    assert log[0] == pytest.approx(0.1)
    np.testing.assert_allclose(log[1:] / log[:-1], 10**0.1, rtol=1e-12)
    assert qu.time_grid(7.0, 1).tolist() == qu.time_grid(7.0, 1, "linear").tolist() == [7.0]
    with pytest.raises(ValueError, match="scale must be log or linear"):
        qu.time_grid(1.0, 5, "cubic")
    with pytest.raises(ValueError, match="points must be at least 1"):
        qu.time_grid(1.0, 0)


def test_the_grid_does_not_change_what_is_seen_at_a_time() -> None:
    coarse, fine = small_study(jobs=1, grid=[100.0]), small_study(jobs=1, grid=np.arange(10.0, 201.0, 10.0))
    at = fine.curves().query("time == 100.0 or time == 200.0").reset_index(drop=True)
    assert coarse.curves().equals(at)


def test_a_study_and_a_run_show_themselves_in_a_line() -> None:
    """Not with all of their numbers, which are megabytes."""
    queue = paper_queue()
    study = qu.replicate(queue, ["oracle", "admit-all"], horizon=50.0, replications=2, jobs=1)
    assert repr(study) == "<Study: oracle, admit-all; replications: 2>"
    run = qu.simulate(queue, "oracle", horizon=50.0, seed=3)
    assert repr(run) == "<Run: oracle up to time 50, seed 3, replication 0, engine compiled>"
