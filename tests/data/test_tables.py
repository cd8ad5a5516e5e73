"""Somebody's log read as a table of jobs: every bad row counted and shown, every bad file told in one message."""

from __future__ import annotations

import codecs
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueing_ucrl.data.bad_rows import BadRows
from queueing_ucrl.data.stamps import cells_of
from queueing_ucrl.data.tables import Columns, JobTable, read_jobs

PLAIN = Columns("t", "k")
SERVICE = Columns("t", "k", service="s")


def lines_of(rows: list[str], header: str = "t,k,s") -> str:
    return "\n".join([header, *rows]) + "\n"


def good(count: int = 40, gap: float = 1.37) -> list[str]:
    """Rows that nobody could complain of; row k is on line k + 2."""
    return [f"{(k + 1) * gap + 0.3 * math.sin(k):.5f},{'ab'[k % 2]},{1 + k % 5 + 0.125:.4f}" for k in range(count)]


def written(folder: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(folder: Path, rows: list[str], columns: Columns = PLAIN, **options: object) -> JobTable:
    return read_jobs(written(folder, lines_of(rows)), columns, **options)  # type: ignore[arg-type]


def only(table: JobTable) -> BadRows:
    (rows,) = table.bad_rows
    return rows


def test_a_good_log_is_read_as_it_is(tmp_path: Path) -> None:
    rows = good()
    table = read(tmp_path, rows, SERVICE)
    assert table.bad_rows == ()
    assert table.names == ("a", "b")
    assert table.times.tolist() == [float(row.split(",")[0]) for row in rows]
    assert table.works.tolist() == [float(row.split(",")[2]) for row in rows]
    assert [table.names[k] for k in table.classes] == [row.split(",")[1] for row in rows]
    trace = table.trace()
    assert list(trace.columns) == ["time", "job_class", "work", "decision"]
    assert trace["decision"].isna().all()


def test_the_end_of_a_log_is_no_bad_row(tmp_path: Path) -> None:
    """Services under way and jobs in the queue at the end are not refused; a start that is missing amid others is."""
    columns = Columns("t", "k", start="a", end="b")
    rows = [f"{k}.5,a,{k}.75,{k + 3}.25" for k in range(40)]
    ends = [*rows, "40.5,a,40.75,", "41.5,a,,", "42.5,a,,"]

    def table(some: list[str], **options: object) -> JobTable:
        return read_jobs(written(tmp_path, lines_of(some, "t,k,a,b")), columns, **options)  # type: ignore[arg-type]

    found = table(ends, strict=True)
    assert found.bad_rows == ()
    assert np.flatnonzero(~np.isnan(found.running)).tolist() == [40]
    amid = [*rows[:20], "19.6,a,,", *rows[20:]]
    assert only(table(amid)).count == 1
    with pytest.raises(ValueError, match=r"no service time \(line 22\)"):
        table(amid, strict=True)


# --- bad rows ---------------------------------------------------------------------------------------------------------

BAD = {
    "missing time": ({5: ",a,1.0"}, "missing: no time", [7], "left out", 39),
    "missing class": ({5: "8.2, ,1.0"}, "missing: no class", [7], "left out", 39),
    "missing service": ({5: "8.22,a,", 9: "13.7,b,NA"}, "no service time", [7, 11], "service not used", 40),
    "text in a number column": ({5: "8.22,a,soon"}, "text among numbers in column 's'", [7], "not used", 40),
    "text among times": ({5: "noon,a,1.0"}, "text among numbers in column 't'", [7], "left out", 39),
    "negative duration": ({5: "8.22,a,-1.0"}, "negative durations", [7], "service not used", 40),
    "infinite": ({5: "8.22,a,inf"}, "text among numbers", [7], "service not used", 40),
    "unsorted": ({5: "3.111,a,1.0"}, "earlier than a row above", [7], "sorted", 40),
    "duplicate": ({6: good()[5]}, "duplicate", [8], "left out", 39),
    "wrong number of cells": ({5: "8.22,a"}, "not 3 cells", [7], "left out", 39),
    "date among numbers": ({5: "2024-01-01,a,1.0"}, "dates among numbers", [7], "left out", 39),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_counted_and_shown_by_line(tmp_path: Path, name: str) -> None:
    changes, kind, where, done, left = BAD[name]
    rows = good()
    for k, row in changes.items():
        rows[k] = row
    table = read(tmp_path, rows, SERVICE)
    found = only(table)
    assert kind in found.kind
    assert (found.count, list(found.lines)) == (len(where), where)
    assert done in found.done
    assert len(table) == left
    assert str(where[0]) in found.words
    with pytest.raises(ValueError, match="refused") as error:
        read(tmp_path, rows, SERVICE, strict=True)
    assert kind in str(error.value)


def test_lines_are_those_of_the_file_also_behind_quoted_line_ends_and_blank_lines(tmp_path: Path) -> None:
    rows = [f'{row},"a note\nof two lines"' for row in good()]
    rows[3] += "\n"  # a blank line behind it
    rows[8] = "soon" + rows[8]
    text = lines_of(rows, "t,k,s,n")
    number = next(k for k, line in enumerate(text.splitlines(), 1) if line.startswith("soon"))
    assert only(read_jobs(written(tmp_path, text), PLAIN)).lines == (number,)


def test_ends_before_starts_and_starts_before_arrivals(tmp_path: Path) -> None:
    rows = [f"{k + 0.3 * math.sin(k):.5f},a,{k}.5,{k + 2}.5,0" for k in range(1, 41)]
    rows[3] = "4.25,a,4.5,4.4,0"
    rows[7] = "8.25,a,8.0,9.0,0"
    rows[9] = "10.25,a,,12.25,1"  # gave up after 2
    path = written(tmp_path, lines_of(rows, "t,k,a,b,gone"))
    table = read_jobs(path, Columns("t", "k", start="a", end="b", abandoned="gone"))
    told = {rows.kind: (rows.lines, rows.done) for rows in table.bad_rows}
    assert told == {
        "end before start": ((5,), "kept as arrivals, their service not used"),
        "start before arrival": ((9,), "kept, their wait not used"),
    }
    assert np.isnan(table.works[[3, 9]]).all()
    assert table.works[7] == 1.0
    assert table.waits[9] == 2.0
    assert np.isnan(table.waits[7])
    assert table.waits[3] == 0.25


def test_unknown_classes_where_classes_are_given(tmp_path: Path) -> None:
    rows = good()
    rows[4] = rows[4].replace(",a,", ",c,")
    found = only(read(tmp_path, rows, known=["a", "b"]))
    assert (found.kind, found.lines) == ("unknown class", (6,))
    renamed = read(tmp_path, rows, classes={"a": "gold", "b": "basic"})
    assert renamed.names == ("basic", "gold")
    with pytest.raises(ValueError, match=r"no row is of a known class: the log has 'a', 'b'.*known are 'gold'"):
        read(tmp_path, rows, known=["gold"])


def test_duplicates_are_kept_where_stamps_are_rounded(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    stamps = np.sort(rng.integers(0, 60, 100))
    table = read(tmp_path, [f"{t},a,1.0" for t in stamps], seed=3)
    kinds = {rows.kind: rows.done for rows in table.bad_rows}
    assert kinds["duplicate of a row above"] == "kept, since stamps are rounded"
    assert kinds["time stamps rounded to 1"] == "kept, times moved at random within it"
    assert len(table) == 100
    assert table.resolution == pytest.approx(1.0)
    assert np.all(np.diff(table.times) > 0)
    assert np.all(np.floor(table.times) == stamps)
    assert np.array_equal(table.times, read(tmp_path, [f"{t},a,1.0" for t in stamps], seed=3).times)


@pytest.mark.parametrize("form", ["csv", "frame"])
def test_jobs_that_come_together_are_kept_where_no_column_tells_them_apart(tmp_path: Path, form: str) -> None:
    """A batch of three looks like a row written three times; two alike among many would be a mistake."""
    rng = np.random.default_rng(8)
    epochs = np.cumsum(rng.exponential(size=200))
    stamps = np.repeat(epochs, rng.integers(1, 4, 200))
    once = np.append(epochs, epochs[7])
    kinds = {}
    for name, times in (("batches", stamps), ("written twice", np.sort(once))):
        frame = pd.DataFrame({"t": times, "k": "a"})
        frame.to_csv(tmp_path / "log.csv", index=False)
        found = read_jobs(frame if form == "frame" else tmp_path / "log.csv", Columns("t", "k"))
        kinds[name] = {rows.kind: rows.done for rows in found.bad_rows}["duplicate of a row above"]
        assert len(found) == (stamps.size if name == "batches" else epochs.size)
        assert kinds[name].startswith("kept: no column" if name == "batches" else "left out")
    served = pd.DataFrame({"t": stamps, "k": "a", "s": 1.0})
    assert len(read_jobs(served, Columns("t", "k", "s"))) == epochs.size


def test_jobs_by_a_timetable_are_no_rounded_stamps(tmp_path: Path) -> None:
    """On a grid of 1 and never two at once: chance would have given a hundred ties."""
    table = read(tmp_path, [f"{k},a,1.0" for k in range(300)])
    assert table.resolution == 0.0
    assert table.times.tolist() == list(range(300))


def test_coarse_stamps_without_ties_are_jittered_and_noted(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    stamps = np.unique(np.sort(rng.integers(0, 10_000, 40)))
    table = read(tmp_path, [f"{t},a,1.0" for t in stamps])
    assert table.resolution == pytest.approx(1.0)
    assert any("rounded to 1: moved" in note for note in table.notes)


def test_fine_stamps_are_left_as_they_are(tmp_path: Path) -> None:
    assert read(tmp_path, good()).resolution == 0.0


# --- dates and time zones ---------------------------------------------------------------------------------------------


def dates(start: str, count: int = 40, step: str = "7min", form: str = "%Y-%m-%d %H:%M:%S.%f") -> list[str]:
    shift = pd.to_timedelta([abs(20.0 * math.sin(k)) for k in range(count)], unit="s")
    return [f"{d:{form}},a,1" for d in pd.date_range(start, periods=count, freq=step) + shift]


def test_dates_count_from_midnight_of_the_first_day(tmp_path: Path) -> None:
    table = read(tmp_path, dates("2024-03-05 06:30"), time_unit="hours")
    assert table.times[0] == pytest.approx(6.5)
    assert str(table.first_day) == "2024-03-05"
    assert table.day == 24.0
    assert table.unit == "hours"


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%fZ", "%Y-%m-%d %H:%M:%S.%f+01:00"])
def test_iso_dates_in_all_their_forms(tmp_path: Path, form: str) -> None:
    table = read(tmp_path, dates("2024-03-05 06:30", form=form), time_unit="hours")
    assert table.times[0] == pytest.approx(6.5)
    assert table.bad_rows == ()


def test_a_time_zone_moves_dates_with_an_offset_to_its_clock(tmp_path: Path) -> None:
    rows = dates("2024-03-05 23:30", form="%Y-%m-%d %H:%M:%S.%fZ")
    table = read(tmp_path, rows, time_unit="hours", timezone="Europe/Berlin")
    assert table.times[0] == pytest.approx(0.5)
    assert str(table.first_day) == "2024-03-06"


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    """2024-10-27 in Berlin: 02:00 to 03:00 twice. In the order of rows they are told apart."""
    utc = pd.date_range("2024-10-26 23:10:00.77", periods=40, freq="5min", tz="UTC").tz_convert("Europe/Berlin")
    rows = [f"{d:%Y-%m-%d %H:%M:%S.%f},a,1" for d in utc]
    table = read(tmp_path, rows, time_unit="minutes", timezone="Europe/Berlin")
    doubled = [k for k, d in enumerate(utc) if d.hour == 2]
    (found,) = (rows for rows in table.bad_rows if "comes twice" in rows.kind)
    assert found.count == len(doubled) == 24
    assert found.lines[0] == doubled[0] + 2
    assert found.done == "kept, told apart by the order of rows"
    assert not any(rows.done == "sorted" for rows in table.bad_rows)  # no row is earlier than the one above
    assert sum((table.times >= 120) & (table.times < 180)) == 24  # on the clock the hour holds all of them


def test_the_hour_that_there_was_not(tmp_path: Path) -> None:
    rows = dates("2024-03-31 01:00")
    found = [rows for rows in read(tmp_path, rows, timezone="Europe/Berlin").bad_rows if "was not" in rows.kind]
    inside = [k for k, row in enumerate(rows) if row[11:13] == "02"]
    assert found[0].count == len(inside)
    assert found[0].lines[0] == inside[0] + 2


def test_durations_are_physical_over_a_change_of_the_clock(tmp_path: Path) -> None:
    """Served from 01:30 to 03:30 in the night of the change: one hour."""
    minutes = [(k, 6 * (k % 10)) for k in range(30)]
    rows = [f"2024-03-30 {8 + k // 10:02d}:{m:02d}:03.5,a,2024-03-30 12:00,2024-03-30 13:00" for k, m in minutes]
    rows.append("2024-03-31 01:30,a,2024-03-31 01:30,2024-03-31 03:30")
    path = written(tmp_path, lines_of(rows, "t,k,a,b"))
    columns = Columns("t", "k", start="a", end="b")
    assert read_jobs(path, columns, timezone="Europe/Berlin", time_unit="hours").works[-1] == pytest.approx(1.0)
    assert read_jobs(path, columns, time_unit="hours").works[-1] == pytest.approx(2.0)


def test_two_date_formats(tmp_path: Path) -> None:
    rows = dates("2024-03-05 06:30")
    rows[4] = "05/03/2024 07:00,a,1"
    found = only(read(tmp_path, rows))
    assert "two date formats" in found.kind
    assert (found.lines, found.done) == ((6,), "left out")
    rows[4] = "2024-03-05 06:58:01.5Z,a,1"
    assert "with and without an offset" in only(read(tmp_path, rows)).kind
    assert only(read(tmp_path, rows, timezone="UTC")).done.startswith("kept")


def test_dates_with_dots_are_read_where_the_column_shows_that_the_day_is_first(tmp_path: Path) -> None:
    iso = dates("2024-03-05 06:30")
    start = pd.Timestamp("2024-03-05")
    days = [start + pd.Timedelta(days=k) for k in range(len(iso))]  # to the 31st and beyond
    iso = [f"{day:%Y-%m-%d} 08:{k % 60:02d}:07,a,1" for k, day in enumerate(days)]
    dotted = [f"{day.day}.{day.month:02d}.{day.year} 08:{k % 60:02d}:07,a,1" for k, day in enumerate(days)]
    right, found = read(tmp_path, iso), read(tmp_path, dotted)
    assert found.times.tolist() == right.times.tolist()
    assert found.first_day == right.first_day
    assert found.bad_rows == right.bad_rows
    assert [note for note in found.notes if "dots" in note] == [
        "column 't' has dates with dots: read with the day first, as '13.03.2024 08:08:07' shows"
    ]
    odd = [*dotted[:-1], "31.02.2024 08:00,a,1"]  # no such day
    assert only(read(tmp_path, odd)).lines == (len(odd) + 1,)


def test_dates_with_dots_that_show_no_order_or_two_are_refused_with_a_remedy(tmp_path: Path) -> None:
    remedy = r"'t' holds '0.*one way.*log\['t'\] = pandas.to_datetime\(log\['t'\], dayfirst=True\)"
    rows = [f"0{1 + k % 9}.04.2024 08:{k:02d},a,1" for k in range(40)]
    with pytest.raises(ValueError, match=remedy):
        read(tmp_path, rows)
    with pytest.raises(ValueError, match=remedy):
        read(tmp_path, [*rows, "13.04.2024 08:00,a,1", "04.13.2024 08:00,a,1"])


def test_numbers_beside_dates_need_a_unit(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"name the time unit of the numbers \(time_unit, --time-unit\), one of seconds, minutes"
    ):
        read(tmp_path, dates("2024-03-05 06:30"), SERVICE)


WRONG_TABLES = {
    "ambiguous dates": (["03/04/2024 10:00,a,1"] * 40, {}, "line 2: column 't' holds '03/04/2024 10:00'.*one way"),
    "words": (["soon,a,1"] * 40, {}, "must hold numbers or ISO dates such as .*, got 'soon'"),
    "decimal commas in quotes": (['"1,5",a,1'] * 40, {}, "write decimals with a point"),
    "decimal commas": (["1,5,a,2,5"] * 40, {}, "most rows do not have the 3 cells"),
    "decimal commas of services": ([row.rpartition(",")[0] + ',"2,5"' for row in good()], {}, "line 2.*with a point"),
    "unknown zone": (dates("2024-03-05 06:30"), {"timezone": "Mars/Base"}, "Mars/Base.*is not known"),
    "zone of numbers": (good(), {"timezone": "UTC"}, "a time zone is for dates only"),
    "wrong unit": (good(), {"time_unit": "weeks"}, "must be one of seconds, minutes, hours, days"),
    "one row": (good(1), {}, "1 job can be used, at least 20"),
    "no rows": ([], {}, "no rows below its header"),
    "no times": ([",a,1"] * 40, {}, "holds no times"),
    "classes that are numbers of jobs": ([f"{k}.5,{k},1" for k in range(300)], {}, "300 different classes"),
    "a name that steers": ([row.replace(",a,", ",a\x1b[31m,") for row in good()], {}, "characters that print"),
    "no time passes": ([f"5,a,{k}" for k in range(40)], {}, "all jobs came at 5"),
    "times beyond any clock": ([f"{k}.5e299,a,1" for k in range(1, 41)], {}, "beyond 1e-50 to 1e\\+50"),
    "a time unit gone wrong": ([f"{k}.5e9,a,1" for k in range(1, 41)], {"time_unit": "days"}, "is the time unit right"),
    "negative times": ([f"-{row}" for row in reversed(good())], {}, "line 2.*at least 0"),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_a_table_that_cannot_be_used_is_told_in_a_message(tmp_path: Path, name: str) -> None:
    rows, options, message = WRONG_TABLES[name]
    columns = SERVICE if "services" in name else PLAIN
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path, rows, columns, **options)
    assert "\x1b" not in str(error.value)
    assert "log.csv" in str(error.value) or "unit" in name or "zone" in name


def test_columns_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="not both"):
        Columns("t", service="s", start="a", end="b")
    with pytest.raises(ValueError, match="one of their starts too"):
        Columns("t", end="b")
    with pytest.raises(ValueError, match="the time that was waited"):
        Columns("t", abandoned="gone")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
    ],
)
def test_separators_and_encodings(tmp_path: Path, separator: str, encoding: str, mark: bytes) -> None:
    rows = [row.replace(",a,", ",café,") for row in good()]
    text = lines_of(rows).replace(",", separator)
    table = read_jobs(written(tmp_path, mark + text.encode(encoding)), SERVICE)
    assert table.names == ("b", "café")
    assert table.bad_rows == ()


def test_a_wrong_byte_is_named_with_its_line(tmp_path: Path) -> None:
    text = lines_of([row.replace(",b,", ",caf\xe9,") if k == 7 else row for k, row in enumerate(good())])
    with pytest.raises(ValueError, match=r"log.csv: line 9: byte 0xe9 at place \d+ is not UTF-8"):
        read_jobs(written(tmp_path, text.encode("latin-1")), PLAIN)


WHOLE = lines_of(good())
BAD_FILES: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "log.csv", "the file is empty"),
    "blank": (b"\n\n\n", "log.csv", "nothing but blank lines"),
    "no Parquet": (WHOLE.encode(), "log.parquet", "is no Parquet file"),
    "binary": (bytes(range(256)) * 40, "log.csv", "must be a text file"),
    "a spreadsheet": (b"PK\x03\x04" + bytes(100), "log.xlsx", "save the table as CSV"),
    "compressed": (b"\x1f\x8b" + bytes(100), "log.csv.gz", "unpack it first"),
    "UTF-16 without its mark": (WHOLE.encode("utf-16-le"), "log.csv", "UTF-16 without its mark"),
    "UTF-32": (WHOLE.encode("utf-32"), "log.csv", "UTF-32"),
    "a cell of 1 MB": (lines_of([*good(), "1," + "x" * 10**6 + ",2"]).encode(), "log.csv", "line 42: .*longer than"),
    "a header of 1 MB": (b"x" * 10**6, "log.csv", "line 1: .*longer than"),
    "an open quote": (lines_of([*good(), '1,"a,2', *good()]).encode(), "log.csv", "line 42: .*cannot be read as CSV"),
    "500 columns": (",".join(f"c{k}" for k in range(500)).encode() + b"\n", "log.csv", "no column 't'.*500 in all"),
    "a column twice": (lines_of(good(), "t,k,t").encode(), "log.csv", "2 columns 't'"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_told_in_one_message(tmp_path: Path, name: str) -> None:
    content, file, message = BAD_FILES[name]
    with pytest.raises(ValueError, match=message) as error:
        read_jobs(written(tmp_path, content, file), PLAIN)
    assert file in str(error.value)
    assert len(str(error.value)) < 800


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_a_truncated_parquet_file(tmp_path: Path, share: float) -> None:
    path = tmp_path / "log.parquet"
    pd.DataFrame({"t": np.arange(40) * 1.37, "k": ["a", "b"] * 20}).to_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(5, int(share * len(whole)))])
    with pytest.raises(ValueError, match=r"log\.parquet: cannot be read as Parquet"):
        read_jobs(path, PLAIN)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, message in (("pipe.csv", "is not a file"), ("folder.csv", "is not a file"), ("none.csv", "no such file")):
        with pytest.raises(ValueError, match=message):
            read_jobs(tmp_path / name, PLAIN)


def test_parquet_and_frames_are_read_as_csv_is(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"t": pd.date_range("2024-05-01 08:00:00.123", periods=40, freq="61s"), "k": ["a", "b"] * 20, "s": 2.5}
    )
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    files = (frame, tmp_path / "log.parquet", tmp_path / "log.csv")
    tables = [read_jobs(source, SERVICE, time_unit="minutes") for source in files]
    for other in tables[1:]:
        assert np.array_equal(tables[0].times, other.times)
        assert np.array_equal(tables[0].works, other.works)
        assert np.array_equal(tables[0].classes, other.classes)
    aware = frame.assign(t=frame["t"].dt.tz_localize("Europe/Berlin"))
    assert np.array_equal(read_jobs(aware, SERVICE, time_unit="minutes").times, tables[0].times)


def test_several_files_are_classes_by_their_names(tmp_path: Path) -> None:
    one = written(tmp_path, lines_of([row.split(",")[0] for row in good()], "t"), "chat.csv")
    other = written(tmp_path, lines_of(["soon", *(row.split(",")[0] for row in good(30, 1.7))], "t"), "code.csv")
    table = read_jobs([one, other], Columns("t"))
    assert table.names == ("chat", "code")
    assert np.bincount(table.classes).tolist() == [40, 30]
    found = next(rows for rows in table.bad_rows if "text" in rows.kind)
    assert found.lines == ("code.csv:2",)


def test_rows_that_count_jobs(tmp_path: Path) -> None:
    slots = pd.date_range("2024-05-01 08:00", periods=36, freq="5min")
    counts = [k % 4 for k in range(36)]
    rows = [f"{slot:%Y-%m-%dT%H:%M:%SZ},{n}" for slot, n in zip(slots, counts, strict=True)]
    columns = Columns("t", count="n")
    table = read_jobs(written(tmp_path, lines_of(rows, "t,n")), columns, time_unit="minutes")
    assert len(table) == sum(counts)
    assert table.resolution == pytest.approx(5.0)
    assert np.bincount(((table.times - 480.0) // 5.0).astype(int), minlength=36).tolist() == counts
    assert (table.begin, table.end) == (480.0, pytest.approx(660.0))
    rows[3] = rows[3].replace(",3", ",2.5")
    table = read_jobs(written(tmp_path, lines_of(rows, "t,n")), columns, time_unit="minutes")
    assert any("no whole number" in found.kind and found.lines == (5,) for found in table.bad_rows)


@settings(max_examples=60)
@given(st.data())
def test_no_row_is_lost_in_silence(data: st.DataObject) -> None:
    """Whatever stands in the cells: a row is a job, or it is told that it was left out."""
    cell = st.sampled_from(["", "1.5", "nan", "x", "2024-01-01", "7", "1e400", "NA", "0"])
    rows = [{"t": str(1.371 * (k + 1)), "k": "a", "s": "1.0"} for k in range(40)]
    for _ in range(data.draw(st.integers(0, 8))):
        row = rows[data.draw(st.integers(0, 39))]
        row[data.draw(st.sampled_from(["t", "k", "s"]))] = data.draw(cell)
    frame = pd.DataFrame(rows, dtype=object)
    table = read_jobs(frame, SERVICE)
    left_out = sum(rows.count for rows in table.bad_rows if rows.done == "left out")
    assert len(table) + left_out == len(frame)
    assert np.all(np.diff(table.times) >= 0)
    assert not np.any(table.works < 0)


def test_numbers_beside_an_odd_cell_are_read_to_the_last_digit() -> None:
    """Some versions of pandas lose it, and a job that starts when another ends then starts a little before."""
    rng = np.random.default_rng(7)
    times = np.sort(rng.random(2000) * 10.0 ** rng.integers(-3, 6, 2000))
    cells = pd.Series([*map(repr, times.tolist()), "never"], dtype=object)
    read = cells_of(cells)
    assert np.array_equal(read.numbers[:-1], times)
    assert np.isnan(read.numbers[-1])


# --- what offices write -----------------------------------------------------------------------------------------------


def calls(folder: Path, header: str, *rows: str) -> Path:
    return written(folder, lines_of(list(rows), header), "calls.csv")


def test_durations_as_hours_minutes_and_seconds(tmp_path: Path) -> None:
    """00:03:25 is 205 seconds; beside dates they need no unit, beside numbers one must be named."""
    rows = [f"2024-03-04 08:{k:02d}:00,{d}" for k, d in enumerate(["00:03:25", "1:00:00", "100:00:00.5", "soon", ""])]
    rows += [f"2024-03-04 09:{k:02d}:00,0:00:{k:02d}" for k in range(20)]
    path = calls(tmp_path, "t,talk", *rows)
    table = read_jobs(path, Columns("t", service="talk"), time_unit="seconds")
    assert table.works[:3].tolist() == [205.0, 3600.0, 360000.5]
    assert np.isnan(table.works[3:5]).all()
    assert [rows.count for rows in table.bad_rows if rows.kind.startswith("text among numbers")] == [1]
    minutes = read_jobs(path, Columns("t", service="talk"))
    assert minutes.unit == "minutes"
    assert minutes.works[1] == 60.0
    numbers = calls(tmp_path, "t,talk", *(f"{k},0:{k:02d}:00" for k in range(1, 31)))
    with pytest.raises(ValueError, match="name what the times are counted in"):
        read_jobs(numbers, Columns("t", service="talk"))
    assert read_jobs(numbers, Columns("t", service="talk"), time_unit="minutes").works.tolist() == list(range(1, 31))


UNCLEAR = [
    ("t,s", ["1,3:25", "2,4:00"], {}, "which may be hours and minutes or minutes and seconds"),
    ("t,s", ["1,5 s", "2,6 s"], {}, "holds no numbers, but such as '5 s'; write numbers without a unit"),
    ("t,s", ["08:17,1", "08:30,2"], {}, "a time of day: put its date before it"),
    ("t,s", ["1709539200000,1", "1709539300000,2"], {"time_unit": "seconds"}, "to count milliseconds since 1970"),
]


@pytest.mark.parametrize(("header", "rows", "options", "message"), UNCLEAR)
def test_what_can_be_read_in_two_ways_is_refused(header, rows, options, message, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        read_jobs(calls(tmp_path, header, *rows), Columns("t", service="s"), **options)


def test_milliseconds_since_1970_without_a_unit_are_told(tmp_path: Path) -> None:
    path = calls(tmp_path, "t,s", *(f"{1709539200000 + 70001 * k},{k}" for k in range(30)))
    assert any("milliseconds since 1970" in note for note in read_jobs(path, Columns("t", service="s")).notes)


def grouped(value: float, sign: str, point: str) -> str:
    """1234567.5 as an office writes it."""
    return f"{value:,.2f}".replace(",", "\0").replace(".", point).replace("\0", sign)


@pytest.mark.parametrize(
    ("sign", "point"), [(",", "."), (".", ","), (" ", ","), ("\u202f", "."), ("\u2019", "."), ("'", ".")]
)
@settings(max_examples=5)
@given(value=st.integers(100_000, 10**12).map(lambda n: n / 100))
def test_groups_of_digits_are_shown_as_the_number_to_write(sign: str, point: str, value: float) -> None:
    """One such cell among 40 is enough: those from 1,000 on would be left out, and the mean be too small."""
    services = ["2.5"] * 39 + [grouped(value, sign, point)]
    frame = pd.DataFrame({"t": [f"{1.371 * k}" for k in range(40)], "k": "a", "s": services})
    with pytest.raises(ValueError, match=f"row 40: column 's' holds .*: write {value:.2f}, without a sign for thous"):
        read_jobs(frame, SERVICE)
    times = frame.assign(t=[*frame["t"][:39], grouped(value, sign, point)])
    with pytest.raises(ValueError, match=f"row 40: column 't' holds .*: write {value:.2f}, without"):
        read_jobs(times.assign(s="1"), SERVICE)


GROUPS = {
    "1,234": "which may be 1234 or 1.234",
    "-1,234": "which may be -1234 or -1.234",
    "0,125": "write decimals with a point, not with a comma",
    "12,34,567": "write 1234567",
    "1,234,567": "write 1234567",
    "1.234.567": "write 1234567",
    "1 234": "write 1234",
    "1,2345": "write decimals with a point",
}


@pytest.mark.parametrize("cell", GROUPS)
def test_how_a_number_in_groups_may_be_meant(cell: str) -> None:
    frame = pd.DataFrame({"t": np.arange(40) * 1.37, "k": "a", "s": ["2.5"] * 39 + [cell]})
    with pytest.raises(ValueError, match=f"row 40: column 's' holds '{cell}': {GROUPS[cell]}"):
        read_jobs(frame, SERVICE)


def test_of_two_such_numbers_that_which_can_mean_one_thing_is_shown() -> None:
    frame = pd.DataFrame({"t": np.arange(40) * 1.37, "k": "a", "s": ["1,234"] * 39 + ["1,234.5"]})
    with pytest.raises(ValueError, match=r"row 40: column 's' holds '1,234\.5': write 1234\.5"):
        read_jobs(frame, SERVICE)


@pytest.mark.parametrize("cell", ["10.0.0.1", "2024,03", "1,,234", "1234,567,89x", "12 34", "1,23.4", "a,123"])
def test_what_is_no_number_in_groups_stays_text(cell: str) -> None:
    frame = pd.DataFrame({"t": np.arange(40) * 1.37, "k": "a", "s": ["2.5"] * 39 + [cell]})
    if cell == "2024,03":
        with pytest.raises(ValueError, match="decimals with a point"):
            read_jobs(frame, SERVICE)
    else:
        assert only(read_jobs(frame, SERVICE)).kind.startswith("text among numbers")


def test_dates_as_a_spreadsheet_counts_them_are_told(tmp_path: Path) -> None:
    """45000.5 is noon of 15 March 2023: of days, hours of the day are right; of another unit nothing would be."""
    rows = [f"{45000.5 + k / 7:.9f},a,0.5" for k in range(40)]
    for unit, told in ((None, True), ("minutes", True), ("days", False)):
        notes = read(tmp_path, rows, SERVICE, time_unit=unit).notes
        found = [note for note in notes if "a spreadsheet's dates (45000.5 is 2023-03-15 12:00:00)" in note]
        assert len(found) == told
        assert all("--time-unit days" in note and "yyyy-mm-dd" in note for note in found)
    early = [f"{k / 7:.9f},a,0.5" for k in range(40)]
    assert not any("spreadsheet" in note for note in read(tmp_path, early, SERVICE).notes)


def test_hours_of_one_digit_and_seconds_with_a_comma_are_dates(tmp_path: Path) -> None:
    """As spreadsheets and log files write them: the same moments."""
    moments = pd.date_range("2024-03-05 08:59:01.25", periods=40, freq="97s")
    usual = [f"{m:%Y-%m-%d %H:%M:%S.%f},a,1" for m in moments]
    odd = [f'"{m:%Y-%m-%d} {m.hour}:{m:%M:%S},{m:%f}",a,1' for m in moments]
    one, other = (read(tmp_path, rows, time_unit="minutes") for rows in (usual, odd))
    assert np.array_equal(one.times, other.times)
    assert other.bad_rows == ()


def test_a_named_zone_and_another_separator_are_answered(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"write the offset, such as .* for CET, or leave it out and name the time zone"
    ):
        read(tmp_path, [f"{m:%Y-%m-%d %H:%M:%S} CET,a,1" for m in pd.date_range("2024-03-05", periods=40, freq="h")])
    with pytest.raises(ValueError, match=r"there is no column 't'.*Separate them by commas, semicolons or tabs"):
        read_jobs(written(tmp_path, lines_of(good()).replace(",", "|")), PLAIN)


def test_equal_services_by_their_ends_are_equal() -> None:
    """Ends less starts far from 0 differ in their last bits: they have the law of a constant all the same."""
    from queueing_ucrl.data.service_laws import fit_service

    starts = np.round(45000.5 + np.cumsum(np.random.default_rng(1).exponential(0.005, 60)), 9)
    works = np.round(starts + 0.01, 9) - starts
    assert np.unique(works).size > 1
    found = fit_service(works)
    assert found.best.kind == "deterministic"
    assert found.law.mean == pytest.approx(0.01, rel=1e-9)


def test_rows_that_differ_in_another_column_are_no_duplicates(tmp_path: Path) -> None:
    """Two jobs of the same moment, told apart by their numbers: of a CSV, a Parquet file and a frame the same."""
    frame = pd.DataFrame([row.split(",") for row in good()], columns=["t", "k", "s"]).astype({"t": float, "s": float})
    frame = pd.concat([frame.iloc[:1], frame], ignore_index=True)
    for number, left in ((range(len(frame)), 41), ([0, 0, *range(2, len(frame))], 40)):
        table = frame.assign(number=number)
        table.to_csv(tmp_path / "log.csv", index=False)
        table.to_parquet(tmp_path / "log.parquet", index=False)
        for source in (tmp_path / "log.csv", tmp_path / "log.parquet", table):
            assert len(read_jobs(source, SERVICE)) == left


def test_classes_that_are_whole_numbers_are_called_so_where_one_is_missing(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [row.split(",") for row in good()]
    numbers = [None, *(1 + k % 2 for k in range(1, len(rows)))]
    columns = {"t": [float(row[0]) for row in rows], "k": pa.array(numbers, pa.int64())}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    table = read_jobs(tmp_path / "log.parquet", PLAIN)
    assert table.names == ("1", "2")
    assert len(table) == 39


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_line_that_names_the_separator_is_no_header(separator: str, tmp_path: Path) -> None:
    text = f"sep={separator}\r\n" + lines_of(good()).replace(",", separator)
    assert len(read_jobs(written(tmp_path, text), PLAIN)) == 40


def test_a_date_beyond_the_calendar_of_64_bits_is_a_bad_row(tmp_path: Path) -> None:
    """9999-12-31 stands for no end in many a table; nanoseconds since 1970 reach from 1678 to 2261."""
    days = pd.date_range("2024-03-01", periods=40, freq="37min31s")
    frame = pd.DataFrame({"t": days, "a": days, "b": days + pd.Timedelta("5min")}).astype("datetime64[s]")
    frame.loc[3, "b"] = pd.Timestamp("9999-12-31 00:00:00").as_unit("s")
    frame.loc[5, "t"] = pd.Timestamp("1600-01-01 00:00:00").as_unit("s")
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet", index=False)
    for name in ("log.csv", "log.parquet"):
        table = read_jobs(tmp_path / name, Columns("t", start="a", end="b"))
        assert len(table) == 39
        assert sum(np.isnan(table.works)) == 1
        assert {rows.kind for rows in table.bad_rows} >= {
            "text that is no date in column 't'",
            "text that is no date in column 'b'",
        }
    rows = [f"16{k:02d}-01-01 00:00:00,a" for k in range(30)]
    with pytest.raises(ValueError, match=r"log.csv: line 2: column 't' .* years 1678 to 2261"):
        read_jobs(written(tmp_path, lines_of(rows, "t,k")), PLAIN)


def test_clocks_of_several_places_in_one_log_are_told(tmp_path: Path) -> None:
    days = pd.date_range("2024-03-30", periods=60, freq="37min31s")
    summer = [f"{day:%Y-%m-%d %H:%M:%S}+0{1 + k // 30}:00,a,1" for k, day in enumerate(days)]
    assert not any("clocks" in note for note in read(tmp_path, summer, time_unit="minutes").notes)
    places = [f"{day:%Y-%m-%d %H:%M:%S}{('-03:30', '+02:00')[k % 2]},a,1" for k, day in enumerate(days)]
    (note,) = [note for note in read(tmp_path, places, time_unit="minutes").notes if "clocks" in note]
    assert "from -03:30 to +02:00" in note
    assert not any("clocks" in note for note in read(tmp_path, places, timezone="Europe/Berlin").notes)


def test_an_offset_that_no_clock_has_is_no_date(tmp_path: Path) -> None:
    rows = [f"2024-03-30T{k // 60:02d}:{k % 60:02d}:00+99:99,a,1" for k in range(60)]
    with pytest.raises(ValueError, match="must hold numbers or ISO dates"):
        read(tmp_path, rows)


def test_durations_whose_seconds_have_a_comma(tmp_path: Path) -> None:
    """Seconds of a spreadsheet in a country that writes 0,5."""
    cells = [f"{(k + 1) * 1.37};a;00:0{k % 5}:1{k % 7},{k % 4}5" for k in range(40)]
    table = read_jobs(written(tmp_path, lines_of(cells, "t;k;s")), SERVICE, time_unit="seconds")
    assert table.works.tolist() == [60.0 * (k % 5) + float(f"1{k % 7}.{k % 4}5") for k in range(40)]


def test_digits_of_another_script_are_not_turned_into_another_number(tmp_path: Path) -> None:
    wide = str.maketrans("0123456789", "".join(chr(0xFF10 + k) for k in range(10)))
    with pytest.raises(ValueError, match="must hold numbers or ISO dates") as error:
        read(tmp_path, [f"{k + 1}.507,a,1".translate(wide) for k in range(40)])
    assert "thousands" not in str(error.value)


def test_durations_of_pandas_are_no_times() -> None:
    frame = pd.DataFrame({"t": pd.to_timedelta(np.arange(40.0), unit="s"), "k": "a"})
    with pytest.raises(ValueError, match="column 't' holds durations; give the times as numbers or as dates"):
        read_jobs(frame, PLAIN)


def test_a_column_of_decisions_may_be_empty_or_hold_a_few_words_that_are_none(tmp_path: Path) -> None:
    """Nothing is known of the decisions then, and the table is read."""
    columns = Columns("t", "k", service="s", decision="d")
    for words, kinds in (("", 0), ("perhaps", 1)):
        rows = [f"{row},{words if k < 5 else ''}" for k, row in enumerate(good())]
        table = read_jobs(written(tmp_path, lines_of(rows, "t,k,s,d")), columns)
        assert set(table.decisions) == {""}
        assert len(table) == 40
        assert len(table.bad_rows) == kinds


def test_exponential_services_by_stamps_to_the_second_keep_their_level(tmp_path: Path) -> None:
    """Services of 60 s on average, stamped to the second and counted in minutes: their rounding is seen in every log,
    and a test of 5 % rejects at most 9 of 60 true logs, which it exceeds by chance once in 1,300 times. Seeds 0 to 59.
    """
    from queueing_ucrl.data.service_laws import fit_service

    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        starts = np.cumsum(rng.exponential(60.0, 1000))
        ends = starts + rng.exponential(60.0, 1000)
        stamps = [pd.Timestamp("2024-03-31") + pd.to_timedelta(np.floor(times), unit="s") for times in (starts, ends)]
        table = read_jobs(pd.DataFrame({"a": stamps[0], "b": stamps[1]}), Columns("a", start="a", end="b"))
        assert table.unit == "minutes"
        found = fit_service(table.works, only_if_rejected=True)
        assert found.resolution == pytest.approx(1 / 60, rel=1e-9)
        rejected += found.exponential.rejected
    assert rejected <= 9


def test_durations_of_decimal_stamps_have_their_decimals() -> None:
    """Stamps of tenths of seconds at 100,000 s: differences of doubles are none of the tenths, services are."""
    starts = np.round(100_000.0 + 37.3 * np.arange(40), 1)
    ends = np.round(starts + 0.1 * (1 + np.arange(40) % 7), 1)
    assert not np.isin(ends - starts, np.round(ends - starts, 1)).all()
    table = read_jobs(pd.DataFrame({"a": starts, "b": ends}), Columns("a", start="a", end="b"))
    assert np.isin(table.works, np.round(0.1 * np.arange(1, 8), 1)).all()


@pytest.mark.parametrize("form", ["%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d"])
def test_dates_written_as_digits_are_no_numbers(form: str, tmp_path: Path) -> None:
    """Read as numbers they would give a log of other lengths: 20240331 and 20240401 are one day apart, not 70."""
    dates = pd.Timestamp("2024-03-30 23:58:59") + pd.to_timedelta(np.arange(40) * 7, unit="h")
    first = {14: "20240330235859: write 2024-03-30 23:58:59", 12: "202403302358: write 2024-03-30 23:58"}
    told = first.get(len(dates[0].strftime(form)), "20240330: write 2024-03-30")
    with pytest.raises(ValueError, match=f"column 't' seems to hold dates without signs, such as {told}$"):
        read(tmp_path, [f"{date.strftime(form)},a,1" for date in dates])


def test_numbers_as_large_as_dates_are_numbers(tmp_path: Path) -> None:
    assert len(read(tmp_path, [f"{20240331 + 7 * k},a,1" for k in range(40)])) == 40


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_of_exports_that_overlap_count_once(ending: str, tmp_path: Path) -> None:
    """Of two files the rows that both hold; those alike in the named columns alone are different jobs."""
    rows = [[float(t), k, float(s), number] for number, (t, k, s) in enumerate(row.split(",") for row in good())]
    frame = pd.DataFrame(rows, columns=["t", "k", "s", "number"])
    later = frame.iloc[15:].copy()
    later.loc[20, "number"] = 999
    paths = [tmp_path / f"march.{ending}", tmp_path / f"april.{ending}"]
    for part, path in zip((frame.iloc[:25], later), paths, strict=True):
        part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path, index=False)
    table = read_jobs(paths, SERVICE)
    assert len(table) == 41
    (found,) = [rows for rows in table.bad_rows if "duplicate" in rows.kind]
    assert found.count == 9
    assert str(found.lines[0]).startswith(f"april.{ending}:")
    assert len(read_jobs(paths, Columns("t", service="s"))) == 50  # each file a class: no job is in two
    shutil.copy(paths[0], tmp_path / f"copy.{ending}")
    assert len(read_jobs([paths[0], tmp_path / f"copy.{ending}"], SERVICE)) == 25
    with pytest.raises(ValueError, match="is given twice"):
        read_jobs([paths[0], tmp_path / "." / paths[0].name], SERVICE)


def test_a_column_of_starts_without_one_is_told(tmp_path: Path) -> None:
    rows = [f"{row}," for row in good()]
    columns = Columns("t", "k", service="s", start="a")
    told = only(read_jobs(written(tmp_path, lines_of(rows, "t,k,s,a")), columns))
    assert (told.kind, told.count) == ("missing: no time in column 'a'", 40)
    with pytest.raises(ValueError, match="no time in column 'a'"):
        read_jobs(tmp_path / "log.csv", columns, strict=True)


def test_a_gap_that_is_most_of_the_log_is_told_with_its_lines(tmp_path: Path) -> None:
    dates = [f"2024-03-31 08:{k:02d}:{7 * k % 60:02d}" for k in range(40)]
    table = read(tmp_path, [f"{date},a,1" for date in [*dates, "1900-01-01 00:00:00"]])
    (note,) = [note for note in table.notes if "nobody came" in note]
    assert note.startswith("nobody came in 1 of the log, between line 42 and line 2: ")
    assert not [note for note in read(tmp_path, [f"{date},a,1" for date in dates]).notes if "nobody" in note]


def test_basic_iso_dates_are_read(tmp_path: Path) -> None:
    for form, gap in (("%Y%m%dT%H%M%S", 7), ("%Y%m%dT%H%M", 60), ("%Y%m%dT%H%M%SZ", 7), ("%Y%m%dT%H%M%S+0100", 7)):
        dates = pd.Timestamp("2024-03-31 00:01:00") + pd.to_timedelta(gap * np.arange(40), unit="s")
        table = read(tmp_path, [f"{date.strftime(form)},a,1" for date in dates], time_unit="seconds")
        assert str(table.first_day) == "2024-03-31"
        assert table.bad_rows == () or "rounded" in only(table).kind
        assert table.begin == 60.0
        assert len(table) == 40


def test_hours_of_half_a_day_are_answered(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got '2024-03-31 12:01:59 AM'; write hours from 0 to 23, without AM"):
        read(tmp_path, [f"2024-03-31 12:{k:02d}:59 AM,a,1" for k in range(1, 40)])


def test_a_parquet_column_without_a_value_holds_no_durations(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = [float(row.split(",")[0]) for row in good()]
    for kind in (pa.null(), pa.string(), pa.float64()):
        path = tmp_path / "log.parquet"
        pq.write_table(pa.table({"t": times, "s": pa.array([None] * 40, kind)}), path)
        told = only(read_jobs(path, Columns("t", service="s")))
        assert (told.kind, told.count) == ("missing: no service time", 40)


COMPOUND = {
    "list": [["a", "b"]] * 40,
    "struct": [{"a": 1}] * 40,
    "bytes": [b"\xff\xfe"] * 40,
    "some lists": [None] * 3 + [["a"]] * 37,
}


@pytest.mark.parametrize("kind", COMPOUND)
def test_cells_of_several_values_or_bytes_are_no_classes(kind: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "log.parquet"
    times = [float(row.split(",")[0]) for row in good()]
    pq.write_table(pa.table({"t": [times[0], *times], "k": pa.array([COMPOUND[kind][0], *COMPOUND[kind]])}), path)
    with pytest.raises(ValueError, match=r"log\.parquet: row \d: column 'k' must hold one word, number or date a cell"):
        read_jobs(path, PLAIN)
    assert len(read_jobs(path, Columns("t"))) == 40  # in a column that nobody named; the first two rows are alike


def test_columns_of_durations_are_read_exactly(tmp_path: Path) -> None:
    times = [float(row.split(",")[0]) for row in good()]
    lengths = pd.to_timedelta([1 + k % 7 for k in range(39)] + [None], unit="s")
    frame = pd.DataFrame({"t": times, "s": lengths})
    frame.to_parquet(tmp_path / "log.parquet")
    for source in (frame, tmp_path / "log.parquet"):
        table = read_jobs(source, Columns("t", service="s"), time_unit="minutes")
        assert table.works[:39].tolist() == [(1 + k % 7) / 60 for k in range(39)]
        assert np.isnan(table.works[39])
    with pytest.raises(ValueError, match="column 's' holds durations: name what the times are counted in"):
        read_jobs(frame, Columns("t", service="s"))
