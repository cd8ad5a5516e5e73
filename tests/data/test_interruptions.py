"""The work of interrupted jobs: known where services are all of one length, however often they are cut."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.interruptions import interrupted_works
from queueing_ucrl.data.known_logs import known_jobs


def events_of(interrupted: str, horizon: float = 200.0) -> pd.DataFrame:
    system = qu.System(
        servers=3,
        capacity=10,
        classes=[qu.JobClass("a", arrival_rate=2.0, reward=1.0, service=qu.Deterministic(1.0))],
        breakdowns=qu.Breakdowns(uptime=qu.Exponential(0.4), downtime=qu.Exponential(2.0), interrupted=interrupted),
    )
    return qu.simulate(system, "admit-all", horizon=horizon, seed=3, log=True).events


@pytest.mark.parametrize(("interrupted", "words"), [("resume", "go on where they were"), ("restart", "begin again")])
def test_work_is_told_apart_from_interruptions(interrupted: str, words: str) -> None:
    events = events_of(interrupted)
    jobs, notes = known_jobs(events, None)
    work = jobs["work"].dropna()
    assert (jobs["end"] - jobs["start"])[jobs["outcome"] == "served"].max() > 1.5  # they were interrupted
    assert work.size == (jobs["outcome"] == "served").sum() > 200
    assert np.allclose(work, 1.0, rtol=1e-9)
    assert jobs["least"].dropna().max() <= 1.0
    assert any(words in note for note in notes)


def test_a_parquet_log_tells_the_same(tmp_path: object) -> None:
    events = events_of("restart")
    path = f"{tmp_path}/events.parquet"
    events.to_parquet(path)
    pd.testing.assert_frame_equal(interrupted_works(path)[0], interrupted_works(events)[0], check_dtype=False)


def test_too_few_cannot_tell() -> None:
    found, words = interrupted_works(events_of("restart", horizon=10.0))
    assert found is not None
    assert found["work"].isna().all()
    assert "too few to tell" in words


def test_nothing_is_found_where_nothing_broke() -> None:
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 2.0, 1.0)])
    events = qu.simulate(queue, "admit-all", horizon=20.0, seed=1, log=True).events
    assert interrupted_works(events) == (None, "")
