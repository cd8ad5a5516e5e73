"""Event logs of ours and XES files are fitted without naming a column, to the same world as their CSV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.known_logs import known_jobs
from queueing_ucrl.data.synthetic import synthetic_log

QUEUE = qu.load_scenario("quickstart").system


def test_an_event_log_of_ours_needs_no_names(tmp_path: Path) -> None:
    run = qu.simulate(QUEUE, "admit-all", horizon=400.0, seed=3, log=tmp_path / "events.parquet")
    assert run.horizon == 400.0
    found = qu.fit(tmp_path / "events.parquet", like="quickstart")
    named = qu.fit(
        synthetic_log(QUEUE, horizon=400.0, seed=3),
        "time",
        "job_class",
        start="start",
        end="end",
        decision="decision",
        like="quickstart",
    )
    assert np.array_equal(found.table.times, named.table.times)
    assert np.allclose(found.table.works, named.table.works, equal_nan=True)
    assert found.rates["rate"].tolist() == named.rates["rate"].tolist()
    in_memory = qu.fit(qu.read_events(tmp_path / "events.parquet"), like="quickstart")
    assert np.array_equal(found.table.times, in_memory.table.times)


def test_an_xes_file_needs_no_names(tmp_path: Path) -> None:
    from queueing_ucrl.data.formats import export_log

    events = qu.simulate(QUEUE, "admit-all", horizon=200.0, seed=4, log=True).events
    export_log(events, tmp_path / "log.xes")
    found = qu.fit(tmp_path / "log.xes", like="quickstart")
    assert len(found.table) == int(events["event"].isin(["admit", "reject", "block"]).sum())


def test_tables_that_do_not_tell_are_told_so(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [1.0, 2.0]})
    frame.to_csv(tmp_path / "log.csv")
    frame.to_parquet(tmp_path / "log.parquet")
    for source in (frame, tmp_path / "log.csv", tmp_path / "log.parquet", [tmp_path / "log.csv", tmp_path / "log.csv"]):
        with pytest.raises(ValueError, match=r"time, --time"):
            known_jobs(source, None)
    with pytest.raises(ValueError, match="but not that of the times"):
        qu.fit(frame, job_class="k")
