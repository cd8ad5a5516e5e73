"""Exporting in general: what is refused, and that nothing is half-written."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_logs import world_log, world_run

import queueing_ucrl as qu
from queueing_ucrl.data.formats import export
from queueing_ucrl.data.formats.export import SUFFIXES


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"log\.csv is there already: give another name"):
        export(world_log("quickstart"), path)
    assert path.read_text() == "mine"
    export(world_log("quickstart"), path, overwrite=True)
    assert path.read_text().startswith('"time"')
    with pytest.raises(ValueError, match="is there already"):
        export(world_log("quickstart"), tmp_path, format="csv")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_fails_leaves_nothing_behind(tmp_path: Path, suffix: str) -> None:
    events = world_log("quickstart").copy()
    events.loc[len(events) - 1, "time"] = math.nan
    with pytest.raises(ValueError, match=rf"row {len(events) - 1}: time must be a finite number"):
        export(events, tmp_path / f"log{suffix}")
    with pytest.raises(OSError, match="No such file or directory") as error:
        export(world_log("quickstart"), tmp_path / "none" / f"log{suffix}")
    assert error.value.filename == str(tmp_path / "none" / f"log{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_log_gives_the_same_bytes(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = world_log("spot-cluster")
    first = export(events, tmp_path / f"first{suffix}").read_bytes()
    monkeypatch.setattr("queueing_ucrl.data.formats.source.PIECE", 97)  # however it is cut into pieces
    assert export(events, tmp_path / f"second{suffix}").read_bytes() == first


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_log_in_csv_is_written_as_the_frame_is(tmp_path: Path, suffix: str) -> None:
    export(world_log("quickstart"), tmp_path / "kept.csv")
    frame = qu.read_log(tmp_path / "kept.csv")
    expected = export(frame, tmp_path / f"frame{suffix}").read_bytes()
    assert export(tmp_path / "kept.csv", tmp_path / f"again{suffix}").read_bytes() == expected
    (tmp_path / "short.csv").write_text("time,event\n1.0,admit\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"short\.csv has no column"):
        export(tmp_path / "short.csv", tmp_path / f"none{suffix}")
    assert not (tmp_path / f"none{suffix}").exists()


def test_the_end_of_the_name_says_the_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"log\.docx: the name must end in one of .*\.csv"):
        export(world_log("quickstart"), tmp_path / "log.docx")
    with pytest.raises(ValueError, match=r"format must be one of .*csv.* got 'docx'"):
        export(world_log("quickstart"), tmp_path / "log.csv", format="docx")
    assert export(world_log("quickstart"), tmp_path / "log.TXT", format="csv").read_text().startswith('"time"')
    assert export(world_log("quickstart"), tmp_path / "log.CSV").read_text().startswith('"time"')


def test_what_is_no_event_log_is_told(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with pytest.raises(TypeError, match="must be a pandas frame, a Run or the path of a Parquet file, got 3"):
        export(3, out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"none\.parquet is not there"):
        export(tmp_path / "none.parquet", out)
    with pytest.raises(ValueError, match="is not a file"):
        export(tmp_path, out)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"broken\.parquet cannot be read as an event log"):
        export(tmp_path / "broken.parquet", out)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other\.parquet has no column 'time'"):
        export(tmp_path / "other.parquet", out)
    events = world_log("quickstart")
    for column, value, told in (
        ("time", "soon", "the column 'time' must hold numbers"),
        ("event", "explode", "row 0: event must be one of"),
        ("event", None, "row 0: event must be one of"),
        ("job", 1.5, "row 0: job must hold whole numbers of 64 bits, got 1.5"),
        ("job_class", 3, "the column 'job_class' must hold text"),
    ):
        with pytest.raises(ValueError, match=told):
            export(events.assign(**{column: value}), out)
    twice = pd.concat([events, events[["time"]]], axis=1)
    with pytest.raises(ValueError, match="has two columns 'time'"):
        export(twice, out)
    with pytest.raises(ValueError, match="kept no event log"):
        export(qu.simulate(world_run("quickstart").system, "admit-all", horizon=1.0), out)
    assert not out.exists()


def test_rows_out_of_order_are_told(tmp_path: Path) -> None:
    events = world_log("quickstart")
    with pytest.raises(ValueError, match="row 1: time must be a finite number, not before"):
        export(events.iloc[::-1], tmp_path / "log.csv")
    mixed = pd.concat([events, events.assign(replication=3), events]).reset_index(drop=True)
    with pytest.raises(ValueError, match=rf"row {2 * len(events)}: the rows of replication 2 must stand together"):
        export(mixed, tmp_path / "log.csv")
    export(mixed.iloc[: 2 * len(events)], tmp_path / "log.csv")


def test_whole_numbers_that_pandas_made_floating_are_whole_numbers(tmp_path: Path) -> None:
    events = world_log("quickstart")
    floating = events.assign(job=events["job"].astype(float), server=events["server"].astype(float))
    written = [export(frame, tmp_path / f"{k}.csv").read_bytes() for k, frame in enumerate((events, floating))]
    assert written[0] == written[1]


@pytest.mark.parametrize("far", [0, 10**6, 10**15])
@pytest.mark.parametrize("piece", [3, 50_000])
def test_a_job_that_comes_back_is_told(tmp_path: Path, far: int, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueing_ucrl.data.formats.source.PIECE", piece)
    monkeypatch.setattr("queueing_ucrl.data.formats.source._Numbers.dense", 1000)
    events = world_log("quickstart").iloc[:60].copy()
    events["job"] += far
    export(events, tmp_path / "right.csv")
    gone = int(events.loc[events["event"] == "depart", "job"].iloc[0])
    events.loc[59, "job"] = gone
    with pytest.raises(ValueError, match=rf"row 59: job {gone} had left before"):
        export(events, tmp_path / "log.csv")


def refusal(events: pd.DataFrame, path: Path) -> str:
    """What is said against exporting it; "" if it was exported."""
    try:
        export(events, path)
    except ValueError as error:
        return str(error)
    return ""


ODD = {
    "bytes": lambda n: [b"\xff\0"] * n,
    "words": lambda n: ["w"] * n,
    "lists": lambda n: [[1, 2]] * n,
    "truth values": lambda n: [True] * n,
    "dates": lambda n: pd.date_range("2024-01-01", periods=n, freq="1h"),
    "durations": lambda n: pd.to_timedelta(range(n), unit="h"),
    "halves": lambda n: [0.5 + k for k in range(n)],
    "no number of 64 bits": lambda n: [1e300] * n,
    "numbers above 2^63": lambda n: np.full(n, 2**64 - 1, dtype=np.uint64),
    "numbers above 2^31": lambda n: np.full(n, 2**40),
    "infinite": lambda n: [math.inf] * n,
    "nothing": lambda n: [None] * n,
}


@pytest.mark.parametrize("column", [*world_log("call-centre-day").columns, "mine"])
def test_a_column_of_a_wrong_type_is_told_by_its_name(tmp_path: Path, column: str) -> None:
    """Whatever a column holds: one clear message, or a file that is whole."""
    written = 0
    for values in ODD.values():
        events = world_log("call-centre-day").iloc[:12].reset_index(drop=True).copy()
        events[column] = values(len(events))
        for suffix in set(SUFFIXES) - {".json", ".xes.gz"}:
            words = refusal(events, tmp_path / f"{written}{suffix}")
            written += not words
            assert not words or re.search(rf"{column}\b", words), words
            assert len(words) < 400
    assert len(os.listdir(tmp_path)) == written
