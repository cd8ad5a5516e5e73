"""Ciw-like records: as the job table has them, and as Ciw itself writes them down for the same jobs."""

from __future__ import annotations

import csv
from pathlib import Path

import ciw
import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from made_logs import HOSTILE, WORLDS, every_kind, hostile_log, world_log

import queueing_ucrl as qu
from queueing_ucrl.data.formats import export
from queueing_ucrl.data.formats.csv import original_text


def records_of(events: pd.DataFrame, folder: Path) -> pd.DataFrame:
    return read(export(events, folder / "log.records.csv"))


def read(path: Path) -> pd.DataFrame:
    return pyarrow.csv.read_csv(path).to_pandas()


def test_ciw_writes_the_same_records_of_the_same_jobs(tmp_path: Path) -> None:
    """Ciw is given the times between arrivals and the services of our log; a queue that fills up, and empties."""
    queue = qu.Queue(3, 7, 1.0, [qu.JobClass("a", 3.2, 1.0)])
    events = qu.simulate(queue, "admit-all", horizon=400.0, seed=2, log=True).events
    ours = records_of(events, tmp_path)
    table = qu.jobs(events)
    services = (table["end"] - table["start"]).dropna().tolist()
    gaps = np.diff(np.concatenate([[0.0], table["arrival"].to_numpy()])).tolist()
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, 1e9])],
        service_distributions=[ciw.dists.Sequential([*services, 1e9])],
        number_of_servers=[3],
        queue_capacities=[4],
    )
    simulation = ciw.Simulation(network)
    # the services of those still there at the end are not known
    until = float(table.loc[table["outcome"] == "unfinished", "arrival"].min())
    simulation.simulate_until_max_time(until)
    theirs = pd.DataFrame(simulation.get_all_records()).sort_values("id_number").reset_index(drop=True)
    theirs["id_number"] -= 1  # counted from 1
    chosen = ours[ours["id_number"].isin(theirs["id_number"])].sort_values("id_number").reset_index(drop=True)
    assert len(theirs) > 1000
    assert set(theirs["record_type"]) == {"service", "rejection"}
    assert list(chosen.columns)[:-1] == list(theirs.columns)
    for name in ("id_number", "node", "queue_size_at_arrival", "record_type"):
        assert chosen[name].tolist() == theirs[name].tolist()
    for name in ("arrival_date", "waiting_time", "service_start_date", "service_time", "service_end_date"):
        np.testing.assert_allclose(chosen[name], theirs[name].astype(float), atol=1e-9)
    for name in ("time_blocked", "exit_date", "destination", "queue_size_at_departure"):
        np.testing.assert_allclose(chosen[name], theirs[name].astype(float), atol=1e-9)


def check(events: pd.DataFrame, records: pd.DataFrame) -> None:
    """The records against the job table, and their counts against the events."""
    table = qu.jobs(events).set_index("job")
    kinds = records["record_type"].value_counts()
    of_jobs = events[events["job"].notna()]["event"].value_counts()
    assert kinds.get("service", 0) == of_jobs["depart"]
    assert kinds.get("renege", 0) == of_jobs["abandon"]
    assert kinds.get("rejection", 0) == of_jobs["block"]
    assert kinds.get("baulk", 0) == of_jobs["reject"]
    assert kinds.get("interrupted service", 0) == of_jobs["breakdown"] + of_jobs["hand-over"]
    assert kinds.get("incomplete", 0) == (table["outcome"] == "unfinished").sum()
    last = records.drop_duplicates("id_number", keep="last").set_index("id_number").sort_index()
    first = records.drop_duplicates("id_number").set_index("id_number").sort_index()
    assert last.index.tolist() == sorted(table.index)
    table = table.sort_index()
    assert last["arrival_date"].tolist() == table["arrival"].tolist()
    assert (last["exit_date"].isna() == (table["outcome"] == "unfinished")).all()
    left = table["outcome"].isin(["served", "abandoned"])
    assert last.loc[left, "exit_date"].tolist() == table.loc[left, "end"].tolist()
    started = table["start"].notna()
    assert first.loc[started, "service_start_date"].tolist() == table.loc[started, "start"].tolist()
    waited = table["wait"].notna()
    np.testing.assert_allclose(first.loc[waited, "waiting_time"], table.loc[waited, "wait"], atol=1e-9)
    assert [original_text(name) for name in last["customer_class"]] == table["job_class"].tolist()
    once = records["record_type"] == "service"
    gone = records.loc[once, "service_end_date"] - records.loc[once, "service_start_date"]
    np.testing.assert_array_equal(records.loc[once, "service_time"], gone)
    changed = records["queue_size_at_departure"].dropna()
    assert changed.tolist() == (events.loc[events["event"].isin(["depart", "abandon"]), "in_system"] - 1).tolist()
    exits = records["exit_date"].dropna()
    assert exits.is_monotonic_increasing


@pytest.mark.parametrize("name", WORLDS)
def test_records_agree_with_the_job_table(tmp_path: Path, name: str) -> None:
    check(world_log(name), records_of(world_log(name), tmp_path))


def test_interruptions_replications_and_stretches(tmp_path: Path) -> None:
    events = every_kind().iloc[:900]
    records = records_of(events, tmp_path)
    check(events, records)
    assert set(records["record_type"]) == {
        *("service", "interrupted service", "renege", "rejection", "baulk", "incomplete")
    }
    both = pd.concat([events, events.assign(replication=1)], ignore_index=True)
    twice = read(export(both, tmp_path / "both.records.csv"))
    pd.testing.assert_frame_equal(twice[twice["replication"] == 0], records)
    pd.testing.assert_frame_equal(
        twice[twice["replication"] == 1].drop(columns="replication").reset_index(drop=True),
        records.drop(columns="replication"),
    )
    export(events.iloc[40:200], tmp_path / "stretch.records.csv")
    export(events.iloc[:0], tmp_path / "empty.records.csv")
    export(events[["time", "event", "job", "job_class"]], tmp_path / "few.csv", format="ciw")


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    with export(hostile_log(), tmp_path / "log.records.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("customer_class", "original_customer_class"):
        found = {row[name] for row in rows}
        assert {original_text(text) for text in found} == set(HOSTILE)
        assert not [text for text in found if text[0] in "=+-@＝"]
