"""Event logs of ours and XES files are fitted without naming a column, to the same world as their CSV."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.known_logs import OF_JOBS, known_jobs
from queueing_ucrl.data.synthetic import synthetic_log
from queueing_ucrl.data.tables import read_jobs

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


def foreign(folder: Path, count: int = 60) -> Path:
    """An XES file of another program: a trace a job, with a start and an end each; from Sunday, 31 March 2024."""
    begin = datetime(2024, 3, 31, 8, tzinfo=UTC)
    traces = []
    for k in range(count):
        minutes = (7.3 * k, 7.3 * k + 1, 7.3 * k + 2 + 3.1 * (k % 4))
        events = "".join(
            f'<event><string key="concept:name" value="call"/><string key="lifecycle:transition" value="{word}"/>'
            f'<date key="time:timestamp" value="{(begin + timedelta(minutes=when)).isoformat()}"/></event>'
            for word, when in zip(("schedule", "start", "complete"), minutes, strict=True)
        )
        traces.append(f'<trace><string key="concept:name" value="{k}"/>{events}</trace>')
    path = folder / "theirs.xes"
    path.write_text(f'<log xes.version="1.0">{"".join(traces)}</log>')
    return path


def test_an_xes_file_of_another_program_is_fitted(tmp_path: Path) -> None:
    found = qu.fit(foreign(tmp_path), servers=3, capacity=10, rewards={"job": 1.0})
    assert len(found.table) == 60
    assert found.system is not None
    assert found.table.works[1] == pytest.approx(4.1)


def test_jobs_of_one_batch_are_no_duplicates() -> None:
    """Nothing but their numbers tells two jobs apart that came at once and were turned away."""
    came = np.repeat(1.37 * np.arange(1, 31) + 0.1 * np.sin(np.arange(30)), 2)
    frame = pd.DataFrame({"job": np.arange(60), "arrival": came, "job_class": "a", "start": np.nan, "end": np.nan})
    frame = frame.assign(outcome="rejected", decision="reject")
    table = read_jobs(known_jobs(frame, None)[0], OF_JOBS)
    assert len(table) == 60
    assert not [rows for rows in table.bad_rows if "duplicate" in rows.kind]


def test_dates_of_an_xes_file_are_dates(tmp_path: Path) -> None:
    """Of a Sunday, in a unit, on the clock of any zone; and the file is called by its name."""
    path = foreign(tmp_path)
    found = qu.fit(path)
    table = found.table
    assert (str(table.first_day), table.unit, table.source) == ("2024-03-31", "minutes", str(path))
    assert table.begin == 480.0
    assert "times are counted in minutes, since no time unit was named" in found.notes
    assert "theirs.xes" in found.to_toml()
    berlin = qu.fit(path, timezone="Europe/Berlin", time_unit="seconds").table
    assert berlin.begin == 36000.0
    assert np.allclose(berlin.works, 60 * table.works)
    frame = qu.fit(qu.xes_jobs(path, unit="hours"))
    assert frame.table.begin == 480.0
    assert np.allclose(frame.table.works, table.works)


def test_an_xes_file_is_on_the_clock_of_its_first_event(tmp_path: Path) -> None:
    path = foreign(tmp_path)
    for offset, begin in (("+02:00", 480.0), ("-07:00", 480.0), ("+13:00", 480.0)):
        there = tmp_path / f"there{offset[:3]}.xes"
        there.write_text(path.read_text().replace("+00:00", offset))
        assert qu.fit(there).table.begin == begin
        assert str(qu.fit(there).table.first_day) == "2024-03-31"
