"""The job table of an event log: what a plain reader, one row at a time, finds in it, in every world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_worlds import InBlocks, logged_world, plain_jobs

import queueing_ucrl as qu
from queueing_ucrl.accounts.jobs import COLUMNS

SEEDS = [*range(24), 32, 56]


def as_plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_are_what_a_plain_reader_finds(seed: int) -> None:
    run = logged_world(seed, engine=["compiled", "simpy"][seed % 2])
    table = qu.jobs(run.events)
    assert tuple(table.columns) == COLUMNS
    assert as_plain(table) == plain_jobs(run.events)
    unfinished = table[table["outcome"] == "unfinished"]
    assert unfinished["job"].tolist() == run.unfinished["job"].tolist()


def test_the_worlds_have_everything_in_them() -> None:
    """Else the test above would say nothing of it."""
    seen: set[str] = set()
    shared = False
    for seed in SEEDS:
        run = logged_world(seed)
        seen |= set(run.events["event"].astype(str))
        shared |= run.system.discipline == "processor-sharing"
        resumed = run.events[run.events["event"] == "resume"]
        if len(resumed):
            seen |= {run.system.breakdowns.interrupted} if run.system.breakdowns else set()
        seen |= {f"pays at {c.reward_at}" for c in run.system.classes}
    wanted = {"admit", "reject", "block", "start", "depart", "abandon", "resume", "breakdown", "hand-over", "initial"}
    wanted |= {"restart", "shift", "environment", "pays at admission", "pays at start", "pays at end"}
    assert shared
    assert wanted <= seen, wanted - seen


@pytest.mark.parametrize("block", [1, 7, 100])
@pytest.mark.parametrize("seed", [1, 5, 11])
def test_however_a_log_is_cut_into_row_groups_its_jobs_are_the_same(seed: int, block: int, tmp_path: Path) -> None:
    run = logged_world(seed, arrivals=150, log=tmp_path / "log.parquet")
    whole = qu.jobs(run.events)
    with InBlocks(block):
        pd.testing.assert_frame_equal(qu.jobs(run.events), whole)
        pd.testing.assert_frame_equal(qu.jobs(tmp_path / "log.parquet"), whole)
        pieces = list(qu.iter_jobs(tmp_path / "log.parquet"))
    for piece in pieces:
        assert piece["arrival"].is_monotonic_increasing
    together = pd.concat(pieces).sort_values("job").reset_index(drop=True)
    assert as_plain(together) == as_plain(whole)


def test_replications_in_one_frame_and_in_a_folder_keep_their_jobs_apart(tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    runs = [logged_world(11, arrivals=150, log=path, replication=k) for k, path in enumerate(paths)]
    apart = pd.concat([qu.jobs(run.events) for run in runs], ignore_index=True)
    pd.testing.assert_frame_equal(qu.jobs(tmp_path), apart)
    mixed = pd.concat([run.events for run in runs]).sort_values("time", kind="stable")
    with InBlocks(50):
        together = qu.jobs(mixed).sort_values(["replication", "job"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(together, apart)
    twice = pd.concat([runs[0].events, runs[0].events])
    with pytest.raises(ValueError, match=r"job 0 arrives a second time"):
        qu.jobs(twice)
    with InBlocks(len(runs[0].events)), pytest.raises(ValueError, match=r"comes again after its end|second time"):
        qu.jobs(twice)
    logged_world(11, arrivals=150, log=tmp_path / "again.parquet", replication=1)
    with pytest.raises(ValueError, match=r"1\.parquet and .*again\.parquet are both of replication 1"):
        qu.jobs(tmp_path)


def test_a_stretch_cut_out_of_a_log_has_jobs_without_arrival() -> None:
    events = logged_world(3, arrivals=200).events
    later = events[events["time"] > events["time"].iloc[-1] / 2]
    cut, whole = qu.jobs(later), qu.jobs(events)
    known = cut.dropna(subset="arrival")
    assert len(known) < len(cut)
    inside = whole[whole["job"].isin(known["job"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(known.reset_index(drop=True), inside)
    assert cut[cut["arrival"].isna()]["decision"].isna().all()


def test_a_log_of_another_program_needs_four_columns(tmp_path: Path) -> None:
    lines = ["time,event,job,job_class", "0.5,admit,x1,a", "0.5,start,x1,a", "0.75,reject,x2,b", "2,depart,x1,a"]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    table = qu.jobs(tmp_path / "log.csv")
    assert table["job"].tolist() == ["x1", "x2"]
    assert table["outcome"].tolist() == ["served", "rejected"]
    assert table["wait"].tolist()[0] == 0.0
    assert np.isnan(table["wait"].tolist()[1])
    assert table["sojourn"].tolist()[0] == 1.5
    assert table["replication"].tolist() == [0, 0]
    frame = pd.read_csv(tmp_path / "log.csv")
    pd.testing.assert_frame_equal(qu.jobs(frame), table)


def test_a_log_of_nothing_has_no_jobs() -> None:
    events = logged_world(3, arrivals=200).events
    assert tuple(qu.jobs(events.iloc[:0]).columns) == COLUMNS
    assert len(qu.jobs(events.iloc[:0])) == 0
    reviews = events.assign(event="review", job=pd.NA)
    assert len(qu.jobs(reviews)) == 0
