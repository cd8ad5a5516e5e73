"""Episodes of a study: the same table as of single runs, in bounded memory however many there are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from generators import paper_queue
from small_studies import scenario_file

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.simulation import episode_log
from queueing_ucrl.simulation.episode_log import EpisodeWriter, row_groups
from queueing_ucrl.simulation.event_log import ADMIT, ROW, EventTable
from queueing_ucrl.simulation.simulate import run_once

NAMES = "ucrl-ac-exact thompson certainty-equivalent psrl ucrl2 oracle random admit-all"
CONTROLLERS = [qu.UcrlAc((1.0, 4.0), 10.0), *NAMES.split()]


def same(one: Any, other: Any) -> bool:
    """Equal entries of two tables, nan and nothing alike."""
    if isinstance(one, (list, tuple, np.ndarray)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if one is None or (isinstance(one, float) and math.isnan(one)):
        return other is None or other is pd.NA or math.isnan(other)
    return bool(one == other)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=str)
@pytest.mark.parametrize("rows", [3, 4096])
def test_a_study_has_the_episodes_and_accounts_of_single_runs(
    controller: Any, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, the pseudo account too, of which a study keeps only the sum."""
    monkeypatch.setattr(episode_log, "ROWS", rows)
    queue = paper_queue()
    settings: dict[str, Any] = {"horizon": 400.0, "seed": 3, "solver_latency": 0.0}
    study = qu.replicate(queue, [controller], replications=2, jobs=1, **settings)
    table = study.episodes()
    for r in range(2):
        run = qu.simulate(queue, controller, replication=r, **settings)
        mine = table[table["replication"] == r].reset_index(drop=True)
        assert list(mine.columns[2:]) == list(run.episodes.columns)
        for name in run.episodes:
            assert all(map(same, run.episodes[name].tolist(), mine[name].tolist())), name
        for kind in ("pseudo", "gap", "expected", "realised"):
            np.testing.assert_array_equal(study.samples(0, kind)[r], run.regret(kind)["regret"])


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_belief_that_grows_new_columns_and_types(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_log, "ROWS", 2)
    rows: list[dict[str, Any]] = [
        {"episode": 1, "start": 0.0},
        {"episode": 2, "start": 1.0, "rate": None},
        {"episode": 3, "start": 2.0, "rate": 7},
        {"episode": 4, "start": 3.0, "rate": 0.5, "shares": []},
        {"episode": 5, "start": 4.0, "rate": math.nan, "shares": [0.25, 0.75]},
        {"episode": 6, "start": 5.0, "mixed": 3},
        {"episode": 7, "start": 6.0, "mixed": "three"},
        {"episode": 8, "start": 7.0, "mixed": [3]},
    ]
    writer = EpisodeWriter(tmp_path / "e.parquet" if place == "file" else None)
    for row in rows:
        writer.append(row)
    source = writer.close()
    groups = list(row_groups(source))
    assert [len(group) for group in groups] == [2, 2, 2, 2]
    found = [row for group in groups for row in group.to_pylist()]
    assert [row["rate"] for row in found[:4]] == [None, None, 7.0, 0.5]
    assert [row["shares"] for row in found[3:6]] == [[], [0.25, 0.75], None]
    assert [row["mixed"] for row in found[5:]] == ["3", '"three"', "[3]"]
    assert [path.name for path in tmp_path.iterdir()] == (["e.parquet"] if place == "file" else [])


def test_an_abandoned_table_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_log, "ROWS", 1)
    writer = EpisodeWriter(tmp_path / "e.parquet")
    writer.append({"episode": 1})
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    writer.abandon()
    assert list(tmp_path.iterdir()) == []


def test_frequent_reviews_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand reviews: rows in memory never exceed a row group, and records keep one policy and no episode."""
    most = 0
    append = EpisodeWriter.append

    def counted(self: EpisodeWriter, row: dict[str, Any]) -> None:
        nonlocal most
        append(self, row)
        most = max(most, len(self._rows))

    monkeypatch.setattr(EpisodeWriter, "append", counted)
    monkeypatch.setattr(episode_log, "ROWS", 500)
    writer = EpisodeWriter(tmp_path / "episodes.parquet")
    thompson = qu.make_controller("thompson", {"memory": 4.0})
    run = run_once(paper_queue(), thompson, qu.RunSettings(5000.0, seed=1), episodes=writer)
    writer.close()
    kept = [len(run.ledger.episodes), len(run.ledger.segments), len(run.solve_records)]
    file = pq.ParquetFile(tmp_path / "episodes.parquet")
    assert run.summary()["episodes"] == file.metadata.num_rows > 2000
    assert kept == [0, 1, 0]
    assert most < 500
    assert file.metadata.num_row_groups == -(-file.metadata.num_rows // 500)


def test_the_study_table_of_a_folder_is_that_of_memory(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nqueue.servers = [1, 2]\n", horizon="60.0", replications="2")
    study, folder = run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    frame = study.episodes()
    written = pd.read_parquet(folder.path / "episodes.parquet")
    assert list(written.columns) == list(frame.columns)
    for name in frame:
        assert all(map(same, frame[name].tolist(), written[name].tolist())), name


def test_a_class_may_be_called_as_a_column() -> None:
    names = ("time", "regret", "time (2)")
    queue = qu.Queue(1, 4, 1.0, [qu.JobClass(name, 0.7, 3.0 + k) for k, name in enumerate(names)])
    run = qu.simulate(queue, "admit-all", horizon=50.0, log=True)
    frame = run.regret("gap", by="class")
    assert list(frame.columns) == ["time", "time (2)", "regret", "time (2) (2)"]
    np.testing.assert_array_equal(frame["time"], run.regret("gap")["time"])
    np.testing.assert_allclose(frame.iloc[:, 1:].sum(axis=1), run.regret("gap")["regret"])
    assert set(run.events["job_class"].dropna()) <= set(names)


def test_a_log_of_more_classes_than_a_short_integer_counts() -> None:
    classes = [qu.JobClass(f"c{i}", 1.0, 1.0) for i in range(40_000)]
    queue = qu.Queue(1, 1, 1.0, classes)
    rows = np.zeros(1, dtype=ROW)
    rows["job_class"], rows["event"] = 39_999, ADMIT
    assert EventTable(queue, 0).columns(rows).column("job_class").to_pylist() == ["c39999"]
