"""Two logs side by side: paired where they are of the same jobs, with intervals that hold what they promise."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from generators import paper_queue
from log_worlds import InBlocks

import queueing_ucrl as qu


def logged(controller: object, seed: int = 5, horizon: float = 400.0, **more: object) -> pd.DataFrame:
    return qu.simulate(paper_queue(), controller, horizon=horizon, seed=seed, log=True, **more).events  # type: ignore[arg-type]


def row(comparison: object, measure: str, job_class: str = "all") -> pd.Series:
    table = comparison.measures  # type: ignore[attr-defined]
    return table[(table["measure"] == measure) & (table["job_class"] == job_class)].iloc[0]


def test_the_same_jobs_are_paired_and_differences_are_those_of_the_measures() -> None:
    one, other = logged("admit-all"), logged("oracle")
    found = qu.compare_logs(one, other, 400.0, servers=5)
    assert found.paired
    for events, name in ((one, "a"), (other, "b")):
        told = qu.metrics(events, 400.0, servers=5)
        pd.testing.assert_series_equal(found.measures[name], told["mean"], check_names=False)
    assert row(found, "earned")["difference"] == row(found, "earned")["b"] - row(found, "earned")["a"]
    again = qu.compare_logs(one, one, 400.0)
    assert again.decisions is not None
    assert again.first_difference is None
    assert len(again.decisions) == 0
    ratios = again.measures[~again.measures["measure"].str.startswith("wait_")].dropna()
    assert (ratios[["difference", "low", "high"]] == 0.0).all().all()


def test_the_decisions_that_differ_are_counted_one_by_one() -> None:
    one, other = logged("admit-all"), logged("oracle")
    found = qu.compare_logs(one, other, 400.0)
    arrivals = ["admit", "reject", "block"]
    a, b = (events[events["event"].isin(arrivals)].set_index("job") for events in (one, other))
    differ = [job for job in a.index if a.loc[job, "event"] != b.loc[job, "event"]]
    assert found.decisions is not None
    assert found.decisions["jobs"].sum() == len(differ) > 20
    plain: dict[tuple[object, ...], int] = {}
    for job in differ:
        x, y = a.loc[job], b.loc[job]
        key = (x["job_class"], x["in_system"], x["event"], y["in_system"], y["event"])
        plain[key] = plain.get(key, 0) + 1
    told = {tuple(entry[:5]): entry[5] for entry in found.decisions.itertuples(index=False)}
    assert told == plain
    assert found.first_difference is not None
    assert found.first_difference["job"] == differ[0]
    assert found.first_difference["time"] == a.loc[differ[0], "time"]
    assert "first at" in str(found)


def test_other_jobs_are_not_paired_and_it_says_why(tmp_path: Path) -> None:
    one, other = logged("oracle"), logged("oracle", seed=6)
    found = qu.compare_logs(one, other)
    assert not found.paired
    assert found.decisions is None
    assert "jobs come in a" in found.why or "job 0 is" in found.why
    assert "unpaired" in str(found)
    assert found.horizon == min(one["time"].max(), other["time"].max())
    paths = [tmp_path / f"{name}.parquet" for name in ("a", "b")]
    for path, controller in zip(paths, ("oracle", "admit-all"), strict=True):
        qu.simulate(paper_queue(), controller, horizon=90.0 if controller == "oracle" else 120.0, seed=1, log=path)
    with InBlocks(40):
        shorter = qu.compare_logs(*paths)
    assert (shorter.paired, shorter.horizon) == (True, 90.0)
    renamed = one.assign(job_class=one["job_class"].cat.rename_categories({"gold": "silver"}))
    assert "in a, silver at" in qu.compare_logs(one, renamed).why
    with pytest.raises(ValueError, match="log b has no rows"):
        qu.compare_logs(one, one.iloc[:0])


def test_intervals_hold_the_difference_as_often_as_promised_and_pairing_makes_them_narrow() -> None:
    """Of 40 intervals of 95 % for the difference of two exact gains at most 7 miss (8 or more: 1e-3)."""
    queue = paper_queue()
    policies = [qu.Policy.trunk_reservation(levels, 20) for levels in ([20, 10], [20, 7])]
    exact = [qu.evaluate(queue, policy).gain for policy in policies]
    missed, ratio = 0, []
    for seed in range(40):
        logs = [logged(qu.FixedPolicy(policy), seed=seed, horizon=2000.0) for policy in policies]
        found = qu.compare_logs(*logs, 2000.0)
        told = row(found, "earned")
        missed += not told["low"] <= exact[1] - exact[0] <= told["high"]
        alone = qu.metrics(logs[1], 2000.0)
        wide = alone[(alone["measure"] == "earned") & (alone["job_class"] == "all")].iloc[0]
        ratio.append((told["high"] - told["low"]) / (wide["high"] - wide["low"]))
    assert missed <= 7
    assert sum(ratio) / len(ratio) < 0.7
