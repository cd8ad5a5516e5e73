"""Laws of event logs: every world keeps them, and a log in which a row was changed is told with that row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from log_worlds import InBlocks, logged_world

import queueing_ucrl as qu
from queueing_ucrl.accounts.log_checks import LAWS, Law
from queueing_ucrl.accounts.log_rows import EVENTS


def broken(events: pd.DataFrame | Path, **more: int) -> dict[str, Law]:
    return {law.name: law for law in qu.check_log(events, **more) if law.holds is False}


@pytest.mark.parametrize("seed", [*range(16), 32, 56])
def test_every_world_keeps_the_laws(seed: int, tmp_path: Path) -> None:
    run = logged_world(seed, engine=["compiled", "simpy"][seed % 2], log=tmp_path / "log.parquet")
    laws = qu.check_log(tmp_path / "log.parquet")
    assert [law.name for law in laws] == list(LAWS)
    assert not broken(tmp_path / "log.parquet")
    assert not broken(run.events)
    with InBlocks(13):
        assert qu.check_log(tmp_path / "log.parquet") == laws
    checked = {law.name for law in laws if law.holds}
    assert checked >= set(LAWS) - {"servers"}
    assert ("servers" in checked) == (run.system.discipline != "processor-sharing")


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    """Of a busy queue, with waits."""
    return qu.simulate(paper_queue(), "admit-all", horizon=80.0, seed=6, log=True).events


def at(log: pd.DataFrame, event: str, which: int = 20) -> int:
    """The place of the so-many-th row of a kind."""
    return int(log.index[log["event"] == event][which])


def test_the_log_is_whole(log: pd.DataFrame) -> None:
    assert not broken(log, capacity=20, servers=5)
    assert all(law.holds for law in qu.check_log(log, capacity=20, servers=5))


def one_row_earlier(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "admit")
    changed = log.copy()
    changed.loc[k, "time"] = log.loc[k - 1, "time"] - 0.5
    return changed, k


def a_lost_departure(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "depart")
    return log.drop(index=k).reset_index(drop=True), k


def a_lost_admission(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Told at the job's first row after it, its start."""
    k = at(log, "admit")
    changed = log.drop(index=k).reset_index(drop=True)
    mine = changed.index[(changed["job"] == log.loc[k, "job"])]
    return changed, int(mine[0])


def a_start_twice(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "start")
    rows = [*range(k + 1), *range(k, len(log))]
    return log.iloc[rows].reset_index(drop=True), k + 1


def a_departure_of_a_rejected_job(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "depart")
    changed = log.copy()
    changed.loc[k, "job"] = 100_000
    return changed, k


def a_wrong_count(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    changed = log.copy()
    changed.loc[77, "in_system"] += 1
    return changed, 77


def a_wrong_wait(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "start", 30)
    changed = log.copy()
    changed.loc[k, "wait"] += 1e-3
    return changed, k


def starts_swapped(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The second of two jobs that wait starts before the first: told where the first one does."""
    starts = log[(log["event"] == "start") & (log["wait"] > 0.0)]
    for one, other in zip(starts.index[10:-1], starts.index[11:], strict=True):
        came = log[(log["job"] == starts.loc[other, "job"]) & (log["event"] == "admit")]["time"].iloc[0]
        if came < starts.loc[one, "time"]:
            break
    changed = log.copy()
    for name in ("job", "job_class"):
        changed.loc[[one, other], name] = log.loc[[other, one], name].to_numpy()
    return changed, int(other)


def another_server(log: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    k = at(log, "start")
    changed = log.copy()
    changed.loc[k, "server"] = (log.loc[k, "server"] + 1) % 5
    return changed, k


@pytest.mark.parametrize(
    ("law", "change"),
    [
        ("time", one_row_earlier),
        ("conservation", a_lost_departure),
        ("jobs", a_lost_admission),
        ("jobs", a_start_twice),
        ("jobs", a_departure_of_a_rejected_job),
        ("conservation", a_wrong_count),
        ("waits", a_wrong_wait),
        ("fifo", starts_swapped),
        ("servers", another_server),
    ],
)
@pytest.mark.parametrize("block", [9, 10_000])
def test_a_broken_law_is_told_with_its_first_row(
    log: pd.DataFrame, law: str, change: Callable[[pd.DataFrame], tuple[pd.DataFrame, int]], block: int
) -> None:
    changed, k = change(log)
    with InBlocks(block):
        found = broken(changed, capacity=20, servers=5)
    assert law in found, found
    breach = found[law]
    assert breach.row == k + 1, str(breach)
    assert breach.time == changed.loc[k, "time"]
    if not pd.isna(changed.loc[k, "job"]):
        assert breach.job == changed.loc[k, "job"]
    assert str(breach).startswith(f"row {k + 1}, time ")


def test_littles_law_alone_may_be_broken(log: pd.DataFrame) -> None:
    """A job's time in the system moved while all counts stay: only the times of its rows tell."""
    found = broken(log.assign(in_system=log["in_system"] + (log.index > 100)), capacity=20)
    assert "little" in found
    assert found["little"].row is None
    assert "adds up to" in found["little"].words


def test_capacity_and_servers(log: pd.DataFrame) -> None:
    assert (log["event"] == "block").any()
    found = broken(log, capacity=19)["capacity"]
    assert found.row == int(log.index[(log["event"] == "admit") & (log["in_system"] == 19)][0]) + 1
    assert "is let in with 19 in the system, which has room for 19" in found.words
    found = broken(log, capacity=21)["capacity"]
    assert found.row == int(log.index[log["event"] == "block"][0]) + 1
    found = broken(log, servers=4)["servers"]
    assert "5 jobs are at servers, of which 4 are on duty" in found.words


def test_what_a_log_does_not_tell_is_not_checked(log: pd.DataFrame) -> None:
    bare = log[["time", "event", "job", "job_class"]]
    told = {law.name: law for law in qu.check_log(bare)}
    assert {name for name, law in told.items() if law.holds is None} == {"capacity", "servers", "waits", "little"}
    assert all(law.words for law in told.values() if law.holds is None)


def test_a_log_of_which_the_beginning_is_cut_off(log: pd.DataFrame) -> None:
    later = log.iloc[200:].reset_index(drop=True)
    assert later["in_system"].iloc[0] > 5
    assert not broken(later, servers=5, capacity=20)
    assert "conservation" in broken(later.assign(in_system=later["in_system"] + (later.index > 50)))


def test_the_file_and_the_replication_are_named(log: pd.DataFrame, tmp_path: Path) -> None:
    for k in range(2):
        qu.simulate(paper_queue(), "oracle", horizon=30.0, seed=1, replication=k, log=tmp_path / f"{k}.parquet")
    assert not broken(tmp_path)
    frame = pd.concat([qu.read_events(tmp_path / f"{k}.parquet") for k in range(2)], ignore_index=True)
    assert not broken(frame.sort_values("time", kind="stable").reset_index(drop=True))
    k = at(frame[frame["replication"] == 1], "depart", 3)
    frame.loc[k, "in_system"] += 1
    breach = broken(frame)["conservation"]
    assert (breach.row, breach.replication) == (k + 1, 1)
    breach = broken(frame[frame["replication"] == 1].reset_index(drop=True))["conservation"]
    assert breach.replication is None


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_no_row_can_be_lost_unseen(log: pd.DataFrame, data: st.DataObject) -> None:
    """Of jobs that leave within the log: their admission, start or departure. Without the very first row, and without
    metadata, it is a log that begins later.
    """
    left = set(log[log["event"] == "depart"]["job"])
    rows = log.index[log["event"].isin(["admit", "start", "depart"]) & log["job"].isin(left)][1:-5]
    lost = data.draw(st.sampled_from(rows.tolist()))
    assert broken(log.drop(index=lost), capacity=20, servers=5)


EVENT_ROWS = st.tuples(
    st.floats(-10.0, 10.0, width=16),
    st.sampled_from(EVENTS),
    st.integers(0, 3),
    st.sampled_from(["a", "b"]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.one_of(st.none(), st.floats(0.0, 5.0, width=16)),
    st.integers(0, 1),
)


@given(st.lists(EVENT_ROWS, min_size=1, max_size=25), st.integers(1, 30), st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_rows_are_read_or_refused_in_words(rows: list[tuple[object, ...]], block: int, names: bool) -> None:
    """Rows in any order: an answer, or a ValueError."""
    columns = ["time", "event", "job", "job_class", "server", "in_system", "wait", "replication"]
    events = pd.DataFrame(rows, columns=columns)
    events["wait"] = events["wait"].astype(float)
    if names:
        events["job"] = "job " + events["job"].astype(str)
    whole = qu.check_log(events, capacity=2, servers=2)
    with InBlocks(block):
        again = qu.check_log(events, capacity=2, servers=2)
    # that a number is used again after its job's end is seen within a row group only: memory is flat
    for one, other in zip(whole, again, strict=True):
        assert one.name not in ("time", "conservation", "capacity", "servers") or one == other
    for read in (qu.jobs, qu.metrics, lambda log: qu.metrics(log, window=1.0), lambda log: qu.compare_logs(log, log)):
        with contextlib.suppress(ValueError):
            read(events)
