"""A column of one's own in the event log: in memory, on disk, in the logs of studies; from both engines the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from both_engines import on_both

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import choose_controllers, run_scenario, with_run
from queueing_ucrl.simulation import event_log


class ServersFree:
    """How many servers are free before the event."""

    name = "servers_free"

    def __call__(self, rows, system):
        return np.maximum(system.servers - rows["in_system"], 0)


class Worth:
    """The reward of a job in words; of a review nothing."""

    name = "worth"

    def __call__(self, rows, system):
        return [None if k < 0 else f"{system.job_rewards[k]:g} crowns" for k in rows["job_class"]]


class Late:
    """Whether a job had waited for more than a unit of time; not said of other events than its start."""

    name = "late"

    def __call__(self, rows, system):
        return pa.array(rows["wait"] > 1.0, mask=rows["event"] != event_log.START)


QUEUE = qu.Queue(
    servers=2,
    capacity=8,
    service_rate=0.5,
    classes=[qu.JobClass("gold", 0.8, 20.0, qu.Linear(0.3)), qu.JobClass("basic", 1.6, 4.0, qu.Linear(0.3))],
)
OWN = [ServersFree(), Worth(), Late()]


def test_columns_stand_behind_the_others():
    run = on_both(QUEUE, qu.RandomPolicy(0.7, 20.0), horizon=300.0, seed=3, log_columns=OWN)
    events = run.events
    assert list(events.columns[-3:]) == ["servers_free", "worth", "late"]
    assert (events["servers_free"] == (2 - events["in_system"]).clip(lower=0)).all()
    reviews = events["event"] == "review"
    assert reviews.any()
    assert events[reviews]["worth"].isna().all()
    assert (
        events[~reviews]["worth"] == np.where(events[~reviews]["job_class"] == "gold", "20 crowns", "4 crowns")
    ).all()
    starts = events["event"] == "start"
    assert events[~starts]["late"].isna().all()
    assert (events[starts]["late"] == (events[starts]["wait"] > 1.0)).all()


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("group", [7, 250_000])
def test_a_file_holds_them(tmp_path, monkeypatch, engine, group):
    """Also where a row group has nothing to say: reviews alone, or no event at all."""
    monkeypatch.setattr(event_log, "ROW_GROUP", group)
    for horizon in (1e-9, 200.0):
        kept = qu.simulate(QUEUE, "thompson", horizon=horizon, seed=3, log=True, log_columns=OWN).events
        path = tmp_path / f"{horizon}.parquet"
        qu.simulate(QUEUE, "thompson", horizon=horizon, seed=3, log=path, log_columns=OWN, engine=engine)
        columns = kept.columns if len(kept) else [column.name for column in OWN]  # an empty file knows no categories
        pd.testing.assert_frame_equal(qu.read_events(path)[columns], kept[columns], check_exact=True)


def test_the_logs_of_a_study_have_them(tmp_path):
    scenario = qu.load_scenario(Path(__file__).parents[2] / "scenarios" / "quickstart.toml")
    small = with_run(choose_controllers(scenario, ["thompson"]), horizon=50.0, replications=2)
    logs = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}"
        run_scenario(small, out, log=True, log_columns=OWN, jobs=jobs)
        files = sorted((out / "events").rglob("*.parquet"))
        logs.append([file.read_bytes() for file in files])
    assert len(logs[0]) == 2
    assert logs[0] == logs[1]
    own = qu.simulate(scenario.queue, "thompson", horizon=50.0, seed=small.settings.seed, log=True, log_columns=OWN)
    pd.testing.assert_frame_equal(qu.read_events(files[0]), own.events, check_exact=True)
    with pytest.raises(qu.FolderError, match="log_columns"):
        run_scenario(small, tmp_path / "1", log=True, jobs=1)


# ---- mistakes


class Named:
    def __init__(self, name, function=lambda rows, system: rows["job"]):
        self.name, self.function = name, function

    def __call__(self, rows, system):
        return self.function(rows, system)


def logged(*columns, log=True):
    return qu.simulate(QUEUE, "oracle", horizon=10.0, log=log, log_columns=columns)


@pytest.mark.parametrize("log", [True, "file"])
@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ([Named("wait")], ValueError, "log column 'wait': the event log has a column of that name already"),
        ([Named("x"), Named("x")], ValueError, "log column 'x': the event log has a column of that name already"),
        (
            [Named("x", lambda rows, system: [1])],
            ValueError,
            "log column 'x': must give a value for each of 14 rows, got 1",
        ),
        ([Named("x", lambda rows, system: [object()] * len(rows))], ValueError, "log column 'x': Could not convert"),
        (
            [Named("x", lambda rows, system: [None] * len(rows))],
            ValueError,
            "log column 'x': must not be missing for all",
        ),
        ([Named("x", lambda rows, system: 3)], ValueError, "log column 'x'"),
        ([lambda rows, system: rows["job"]], TypeError, "a log column must be an object with a `name` and __call__"),
        ([ServersFree], TypeError, "a log column must be an object"),
    ],
)
def test_what_is_no_column_is_told_before_the_run(tmp_path, log, columns, error, words):
    with pytest.raises(error, match=words):
        logged(*columns, log=tmp_path / "x.parquet" if log == "file" else True)
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_is_not_in_a_list_is_refused():
    with pytest.raises(TypeError, match="log_columns must be a list"):
        qu.simulate(QUEUE, "oracle", horizon=10.0, log=True, log_columns=ServersFree())


def test_columns_without_a_log_are_refused():
    with pytest.raises(ValueError, match="log_columns are columns of the event log: they need log=True"):
        logged(ServersFree(), log=False)
