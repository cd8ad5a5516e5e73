"""Measures of an event log by class, window, hour, episode, server and replication: what a plain reader adds up."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from generators import paper_queue
from log_worlds import InBlocks, logged_world, plain_sums

import queueing_ucrl as qu
from queueing_ucrl.accounts.log_cuts import Stretches

SUMS = {
    "arrivals": (("admit", "reject", "block"), None),
    "throughput": (("start",), None),
    "rejected": (("reject",), ("admit", "reject", "block")),
    "abandoned": (("abandon",), ("admit",)),
    "wait": (("wait",), ("start",)),
    "revenue": (("reward",), None),
    "cost": (("cost",), None),
    "in_system": (("in_system",), None),
    "in_queue": (("in_queue",), None),
}


def as_told(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    return {(row.measure, row.job_class): row.mean for row in table.itertuples()}


def check_against_plain(told: dict[tuple[str, str], float], events: pd.DataFrame, begin: float, end: float) -> None:
    names = [str(name) for name in events["job_class"].cat.categories]
    plain = plain_sums(events, begin, end, names)
    for name in ("all", *names):
        for measure, (above, below) in SUMS.items():
            over = end - begin if below is None else sum(plain.get((what, name), 0.0) for what in below)
            if over == 0.0:
                assert math.isnan(told[measure, name])
                continue
            exact = sum(plain.get((what, name), 0.0) for what in above) / over
            assert told[measure, name] == pytest.approx(exact, rel=1e-9, abs=1e-9 * (1.0 + abs(exact))), (measure, name)
    if not math.isnan(told["utilisation", "all"]):
        assert told["utilisation", "all"] * 3.0 * (end - begin) == pytest.approx(plain["busy", "all"], rel=1e-9)


@pytest.mark.parametrize("seed", [*range(12), 32, 56])
def test_measures_are_what_a_plain_reader_adds_up(seed: int) -> None:
    run = logged_world(seed, arrivals=200, engine=["simpy", "compiled"][seed % 2])
    events, horizon = run.events, math.nextafter(run.horizon, math.inf)
    with InBlocks([37, 100_000][seed % 2]):
        check_against_plain(as_told(qu.metrics(events, run.horizon, servers=3)), events, 0.0, horizon)
        start = run.horizon / 3
        check_against_plain(as_told(qu.metrics(events, run.horizon, start=start, servers=3)), events, start, horizon)
        windows = qu.metrics(events, run.horizon, window=run.horizon / 4.5, servers=3)
    spans = windows[["from", "to"]].drop_duplicates().to_numpy()
    assert len(spans) == 5
    assert spans[0, 0] == 0.0
    assert spans[-1, 1] == run.horizon
    assert (spans[1:, 0] == spans[:-1, 1]).all()
    for begin, end in spans:
        mine = as_told(windows[windows["from"] == begin])
        check_against_plain(mine, events, begin, horizon if end == run.horizon else end)


def test_the_horizon_is_that_of_the_metadata_or_the_last_event(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    run = qu.simulate(paper_queue(), "oracle", horizon=50.0, seed=2, log=path)
    told = qu.metrics(path)
    assert told.attrs == {"horizon": 50.0, "horizon_from": "the log's metadata", "runs": 1}
    pd.testing.assert_frame_equal(told, qu.metrics(run.events, 50.0, servers=5))
    guessed = qu.metrics(run.events)
    assert guessed.attrs["horizon"] == run.events["time"].iloc[-1]
    assert guessed.attrs["horizon_from"] == "its last event"
    for block in (1, 13):
        with InBlocks(block):
            again = qu.metrics(path)
        assert as_told(again) == pytest.approx(as_told(told), rel=1e-12, nan_ok=True)


def test_by_server_episode_replication_and_nothing(tmp_path: Path) -> None:
    options = {"horizon": 300.0, "seed": 4, "log": True}
    run = qu.simulate(paper_queue(), qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0), **options)  # type: ignore[arg-type]
    events = run.events
    overall = as_told(qu.metrics(events, 300.0, servers=5))
    alone = qu.metrics(events, 300.0, by=None, servers=5)
    assert list(alone.columns) == ["measure", "mean", "low", "high"]
    for row in alone.itertuples():
        assert row.mean == overall[row.measure, "all"]
    servers = qu.metrics(events, 300.0, by="server", servers=5).set_index(["measure", "server"])["mean"]
    starts = events[events["event"] == "start"]
    for k in range(5):
        mine = starts[starts["server"] == k]
        assert servers["throughput", str(k)] == pytest.approx(len(mine) / 300.0, rel=1e-12)
        assert servers["wait", str(k)] == pytest.approx(mine["wait"].mean(), rel=1e-12)
    busy = [servers["utilisation", str(k)] for k in range(5)]
    assert np.mean(busy) == pytest.approx(overall["utilisation", "all"], rel=1e-12)
    assert servers["utilisation", "all"] == pytest.approx(overall["utilisation", "all"], rel=1e-12)
    episodes = qu.metrics(events, 300.0, by="episode").set_index(["episode", "measure"])["mean"]
    for row in run.episodes.itertuples():
        length = row.end - row.start
        arrivals = events[(events["episode"] == row.episode) & events["event"].isin(["admit", "reject", "block"])]
        assert episodes[row.episode, "arrivals"] == pytest.approx(len(arrivals) / length, rel=1e-9)
    for k in range(3):
        qu.simulate(paper_queue(), "oracle", horizon=100.0, seed=1, replication=k, log=tmp_path / f"{k}.parquet")
    each = qu.metrics(tmp_path, by="replication").set_index(["replication", "measure"])["mean"]
    together = qu.metrics(tmp_path).set_index(["measure", "job_class"])
    assert together.loc[("throughput", "all"), "mean"] == pytest.approx(each[:, "throughput"].mean(), rel=1e-12)
    known = qu.Estimate(each[:, "revenue"].mean(), math.nan, 3)
    assert together.loc[("revenue", "all"), "mean"] == pytest.approx(known.mean)
    assert together.loc[("revenue", "all"), "low"] < known.mean < together.loc[("revenue", "all"), "high"]
    mixed = pd.concat([qu.read_events(tmp_path / f"{k}.parquet") for k in (2, 0, 1)]).sort_values("time")
    assert as_told(qu.metrics(mixed, 100.0, servers=5)) == pytest.approx(as_told(qu.metrics(tmp_path)), rel=1e-9)


def test_money_that_no_column_tells_is_not_known() -> None:
    run = qu.simulate(paper_queue(), "oracle", horizon=60.0, seed=3, log=True)
    lacking = {"revenue": ["reward"], "cost": ["cost"], "earned": ["reward", "cost"]}
    numbers = ["mean", "low", "high"]
    for gone in (["reward"], ["cost"], ["reward", "cost"]):
        for options in ({}, {"by": None}, {"window": 20.0}):
            whole = qu.metrics(run.events, 60.0, **options)
            told = qu.metrics(run.events.drop(columns=gone), 60.0, **options)
            unknown = told["measure"].isin([name for name, needs in lacking.items() if set(needs) & set(gone)])
            assert unknown.any()
            assert told.loc[unknown, numbers].isna().all(axis=None)
            assert whole.loc[unknown, "mean"].notna().all()
            pd.testing.assert_frame_equal(told[~unknown], whole[~unknown])


def test_hours_and_windows_in_words() -> None:
    run = qu.simulate(paper_queue(), "oracle", horizon=96.0, seed=2, log=True)
    hours = qu.metrics(run.events, 96.0, by="hour", time_unit="hours")
    pd.testing.assert_frame_equal(hours, qu.metrics(run.events, 96.0, period=24.0, parts=24))
    six = qu.metrics(run.events, 96.0, window="6h", time_unit="hours")
    pd.testing.assert_frame_equal(six, qu.metrics(run.events, 96.0, window=6.0))
    pd.testing.assert_frame_equal(six, qu.metrics(run.events, 96.0, window=" 360 minutes", time_unit="hours"))
    assert six["low"].isna().all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"by": "colour"},
            "hour, replication, controller or None, got 'colour'",
        ),
        ({"by": "hour"}, "by hour: time_unit must say"),
        ({"window": "1h"}, "window '1h': the log does not say what its time is counted in"),
        ({"window": "1 parsec"}, "the unit must be one of"),
        ({"window": "often"}, "window 'often': the unit must be one of"),
        ({"window": 0.0}, "window must be a positive number"),
        ({"window": "-1"}, "window must be a positive number"),
        ({"window": 1e-9}, "windows; at most 100,000 are made"),
        ({"window": 1.0, "period": 2.0}, "only one of them may be given"),
        ({"start": 1e9}, "covers no time after"),
        ({"by": "episode"}, "by episode: the log has no column"),
    ],
)
def test_what_cannot_be_measured_is_told(options: dict[str, object], words: str) -> None:
    rows = [(0.0, "admit", 0, "x"), (1.0, "start", 0, "x"), (3.0, "depart", 0, "x")]
    events = pd.DataFrame(rows, columns=["time", "event", "job", "job_class"])
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        qu.metrics(events, **options)  # type: ignore[arg-type]


def test_waits_that_a_log_does_not_tell_are_found() -> None:
    run = logged_world(32, arrivals=200)
    bare = run.events[["time", "event", "job", "job_class"]]
    with InBlocks(29):
        told, full = as_told(qu.metrics(bare, run.horizon)), as_told(qu.metrics(run.events, run.horizon))
    for measure in ("wait", "wait_95", "throughput", "in_queue", "in_system"):
        assert told[measure, "all"] == pytest.approx(full[measure, "all"], rel=1e-12)


@pytest.mark.parametrize("by", ["class", "server", "replication", "controller", None])
@pytest.mark.parametrize("runs", [1, 3])
def test_many_windows_at_once_are_as_each_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str | None, runs: int
) -> None:
    for k in range(runs):
        qu.simulate(paper_queue(), "oracle", horizon=40.0 + k, seed=1, replication=k, log=tmp_path / f"{k}.parquet")
    options = {"by": by, "window": 1.3, "target_wait": 0.05}
    found = qu.metrics(tmp_path, **options)
    monkeypatch.setattr(Stretches, "apart", False)
    pd.testing.assert_frame_equal(found, qu.metrics(tmp_path, **options), check_exact=True)
    assert len(found) > 200


def test_controllers_are_not_mixed(tmp_path: Path) -> None:
    for name in ("oracle", "admit-all"):
        qu.simulate(paper_queue(), name, horizon=50.0, seed=1, log=tmp_path / f"{name}.parquet")
    for by in ("class", "replication", None):
        with pytest.raises(ValueError, match=r"of 2 controllers \('admit-all', 'oracle'\), which must not be mixed"):
            qu.metrics(tmp_path, by=by)
    apart = qu.metrics(tmp_path, by="controller").set_index("controller")
    for name in ("oracle", "admit-all"):
        alone = qu.metrics(tmp_path / f"{name}.parquet", by=None)["mean"]
        assert qu.metrics(tmp_path, by=None, controller=name)["mean"].equals(alone)
        assert apart.loc[name, "mean"].tolist() == pytest.approx(alone.tolist(), rel=1e-12, nan_ok=True)
    with pytest.raises(ValueError, match="controller 'best': the logs are of 'admit-all', 'oracle'"):
        qu.metrics(tmp_path, controller="best")


@pytest.mark.parametrize("value", [-1e308, 1.7e308])
@pytest.mark.parametrize("column", ["time", "wait", "reward", "cost"])
def test_numbers_that_cannot_be_added_up_are_told(column: str, value: float) -> None:
    events = qu.simulate(paper_queue(), "oracle", horizon=20.0, seed=1, log=True).events
    events.loc[4, column] = value
    for read in (qu.metrics, qu.jobs, *([qu.check_log] if column in ("time", "wait") else [])):
        with pytest.raises(ValueError, match=rf"row 5: {column} must not be beyond 1e\+100"):
            read(events)
