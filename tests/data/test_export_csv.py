"""Event logs as CSV: back to the same frame, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_logs import HOSTILE, WORLDS, hostile_log, own_columns_log, world_log

import queueing_ucrl as qu
from queueing_ucrl.data.formats import export
from queueing_ucrl.data.formats.csv import original_text, safe_text

FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    events = world_log(name)
    path = export(events, tmp_path / "log.csv")
    classes = list(events["job_class"].cat.categories)
    pd.testing.assert_frame_equal(qu.read_log(path, classes=classes), events, check_exact=True)
    seen = qu.read_log(path)["job_class"].cat.categories.tolist()
    assert seen == events["job_class"].dropna().unique().tolist()


def test_a_file_a_run_and_a_frame_give_the_same_bytes(tmp_path: Path) -> None:
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 2.0, 1.0)])
    runs = [qu.simulate(queue, "admit-all", horizon=50.0, seed=1, log=log) for log in (True, tmp_path / "log.parquet")]
    sources = [runs[0], runs[1], runs[0].events, tmp_path / "log.parquet", str(tmp_path / "log.parquet")]
    written = [export(source, tmp_path / f"{k}.csv").read_bytes() for k, source in enumerate(sources)]
    assert len(set(written)) == 1
    assert b"\r" not in written[0]


@given(st.text())
def test_safe_text_is_safe_and_loses_nothing(text: str) -> None:
    assert original_text(safe_text(text)) == text
    assert not FORMULA.match(safe_text(text)) or not safe_text(text).strip(" ")


@given(st.text(alphabet="'=+-@\t\r\n a1"), st.text(alphabet="'=+-@\t\r\n a1"))
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (safe_text(one) == safe_text(other)) == (one == other)


def test_no_cell_of_hostile_names_is_a_formula(tmp_path: Path) -> None:
    events = hostile_log()
    assert set(events["job_class"].dropna()) == set(HOSTILE)
    path = export(events, tmp_path / "log.csv")
    pd.testing.assert_frame_equal(qu.read_log(path, classes=HOSTILE), events, check_exact=True)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    text = [rows[0].index(name) for name in ("event", "job_class")]
    assert not [row[k] for row in rows for k in text if FORMULA.match(row[k])]
    assert sorted({row[text[1]] for row in rows if "cmd" in row[text[1]]}) == ["'=cmd()"]


def test_columns_of_ones_own_come_back(tmp_path: Path) -> None:
    events = own_columns_log()
    path = export(events, tmp_path / "log.csv")
    again = qu.read_log(path)
    pd.testing.assert_frame_equal(again, events, check_exact=True)
    assert (events["halves"] < 0).all()
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][-4:] == ["'=words", "halves", "even", "codes"]
    assert not [row[-4] for row in rows if FORMULA.match(row[-4])]
    assert [float(row[-3]) for row in rows[1:]] == events["halves"].tolist()  # numbers stay numbers


def test_numbers_lose_no_digit(tmp_path: Path) -> None:
    events = world_log("quickstart").iloc[:6].copy()
    events["time"] = [0.0, 5e-324, 0.1, 0.1 + 2**-55, 1 / 3, 1.7976931348623157e308]
    events["wait"] = [math.nan, -0.0, 1e-7, 123456789.123456789, 2**53 + 2.0, 1e22]
    again = qu.read_log(export(events, tmp_path / "log.csv"), classes=["gold", "basic"])
    assert again["time"].tolist() == events["time"].tolist()
    assert str(again["wait"].tolist()) == str(events["wait"].tolist())


def test_a_log_without_rows(tmp_path: Path) -> None:
    events = world_log("quickstart").iloc[:0]
    path = export(events, tmp_path / "log.csv")
    pd.testing.assert_frame_equal(qu.read_log(path, classes=["gold", "basic"]), events)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "cannot be read as the CSV file of an event log"),
        (b"a,b\n1,2\n", "has no column 'time'"),
        (b"time,event,job,job_class\n1,start,0,a\nx,start,0,a\n", "cannot be read as the CSV"),
        (b"time,event,job,job_class\n1,explode,0,a\n", "row 0: event must be one of 'admit', .* got 'explode'"),
        (b"time,event,job,job_class\n1,admit,0,\xff\n", "cannot be read as the CSV"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "cannot be read as the CSV|has no column"),
        (b"time,event,job,job_class\n1,admit,0\n", "cannot be read as the CSV"),
    ],
)
def test_a_csv_that_is_no_log_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=told) as error:
        qu.read_log(path)
    assert "log.csv" in str(error.value)
    assert len(str(error.value)) < 600
