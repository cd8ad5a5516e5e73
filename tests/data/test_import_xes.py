"""Other people's XES files as jobs; and files that are broken, or meant to break the reader."""

from __future__ import annotations

import gzip
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from made_logs import world_log

import queueing_ucrl as qu
from queueing_ucrl.accounts.jobs import COLUMNS
from queueing_ucrl.data.formats import export

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0" xmlns="http://www.xes-standard.org/">\n'


def event(name: str, when: str, transition: str = "", **more: str) -> str:
    said = {"concept:name": name, "lifecycle:transition": transition, **more}
    texts = [f'<string key="{key}" value="{value}"/>' for key, value in said.items() if value]
    return f'<event>{"".join(texts)}<date key="time:timestamp" value="{when}"/></event>\n'


def trace(name: str, *events: str, said: str = "") -> str:
    return f'<trace><string key="concept:name" value="{name}"/>{said}{"".join(events)}</trace>\n'


def written(folder: Path, *traces: str) -> Path:
    path = folder / "log.xes"
    path.write_text(HEAD + "".join(traces) + "</log>\n", encoding="utf-8")
    return path


CALLS = (
    trace(
        "c2",
        event("call", "2026-05-04T09:10:00+02:00", "start", **{"org:resource": "Ann"}),
        event("call", "2026-05-04T09:12:30+02:00", "complete", **{"org:resource": "Bob"}),
        event("call", "2026-05-04T09:08:00.500+02:00", "schedule"),
        said='<string key="job_class" value="gold"><string key="meta" value="x"/></string>',
    ),
    trace("c1", event("call", "2026-05-04T06:59:00Z", "schedule"), event("call", "2026-05-04T07:01:00Z", "WITHDRAW")),
    trace("c3", event("call", "2026-05-04T09:30:00+02:00", "schedule")),
    trace("c4", event("call", "2026-05-04T09:31:00+02:00"), event("note", "2026-05-04T10:31:00+02:00")),
    trace("c5"),
)


def test_jobs_of_a_log_with_transitions(tmp_path: Path) -> None:
    table = qu.xes_jobs(written(tmp_path, *CALLS), unit="minutes")
    assert tuple(table.columns) == COLUMNS
    assert table["job"].tolist() == ["c1", "c2", "c3", "c4"]  # in order of arrival; a trace without events is no job
    assert table.attrs == {"epoch": "2026-05-04T00:00:00+00:00", "unit": 60.0}  # the first event's own time zone
    assert table["arrival"].tolist() == [419.0, 428 + 0.5 / 60, 450.0, 451.0]
    assert table["outcome"].tolist() == ["abandoned", "served", "unfinished", "served"]
    assert table["job_class"].tolist() == ["job", "gold", "job", "job"]
    second = table.loc[1]
    assert (second["start"], second["end"], second["server"]) == (430.0, 432.5, "Ann")
    assert second["wait"] == pytest.approx(2 - 0.5 / 60)
    assert (table.loc[0, "wait"], table.loc[0, "end"]) == (2.0, 421.0)
    assert math.isnan(table.loc[0, "start"])
    assert math.isnan(table.loc[2, "end"])
    assert (table.loc[3, "end"], table.loc[3, "sojourn"]) == (511.0, 60.0)
    for column in ("decision", "reward", "cost", "episode", "replication"):
        assert table[column].isna().all()


def test_names_and_epoch_can_be_given(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        trace(
            "1",
            event("Register", "2026-05-04T09:00:00"),
            event("Triage", "2026-05-04T09:05:00", kind="minor"),
            event("Treat", "2026-05-04T09:20:00", "start"),
            event("Treat", "2026-05-04T09:50:00", "complete"),
            event("Bill", "2026-05-05T09:50:00"),
        ),
        trace("2", event("Triage", "2026-05-04T10:00:00"), event("Left", "2026-05-04T11:00:00")),
    )
    table = qu.xes_jobs(
        path,
        arrival="Triage",
        start="Treat+start",
        end="Treat+complete",
        abandoned="Left",
        job_class="kind",
        unit="hours",
        epoch="2026-05-04T09:00Z",
    )
    assert table["arrival"].tolist() == [5 / 60, 1.0]
    assert table["start"].tolist()[0] == 20 / 60
    assert table["end"].tolist() == [50 / 60, 2.0]
    assert table["outcome"].tolist() == ["served", "abandoned"]
    assert table["job_class"].tolist() == ["minor", "job"]
    with pytest.raises(ValueError, match=r"log\.xes has no event 'Triaje' \(arrival\)"):
        qu.xes_jobs(path, arrival="Triaje")


def test_prefixed_names_other_encodings_and_events_of_no_trace(tmp_path: Path) -> None:
    path = written(tmp_path, *CALLS, event("noise", "2026-05-01T00:00:00Z"))
    plain = qu.xes_jobs(path)
    text = path.read_text(encoding="utf-8")
    prefixed = re.sub(r"<(/?)(?=[a-z])", r"<\1xes:", text).replace("xmlns=", "xmlns:xes=")
    (tmp_path / "prefixed.xes").write_text(prefixed, encoding="utf-8")
    pd.testing.assert_frame_equal(qu.xes_jobs(tmp_path / "prefixed.xes"), plain)
    for encoding in ("UTF-16", "ISO-8859-1", "windows-1252"):
        other = text.replace("UTF-8", encoding).replace("c3", "ç3")
        (tmp_path / "other.xes").write_bytes(other.encode(encoding))
        assert qu.xes_jobs(tmp_path / "other.xes")["job"].tolist() == ["c1", "c2", "ç3", "c4"]
    (tmp_path / "packed.xes.gz").write_bytes(gzip.compress(path.read_bytes()))
    pd.testing.assert_frame_equal(qu.xes_jobs(tmp_path / "packed.xes.gz"), plain)


@pytest.mark.filterwarnings("ignore:Install the optional requirement")
def test_pm4py_finds_the_same_times(tmp_path: Path) -> None:
    pm4py = pytest.importorskip("pm4py")
    path = written(tmp_path, *(call.replace("+02:00", "Z") for call in CALLS[:4]))  # pm4py 2.7.20 passes over offsets
    frame = pm4py.read_xes(str(path))
    table = qu.xes_jobs(path, epoch="1970-01-01T00:00Z").set_index("job")
    first = frame.groupby("case:concept:name")["time:timestamp"].min()
    for job, when in first.items():
        assert table.loc[job, "arrival"] == when.timestamp()


LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE log [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{10 * f"&{a};"}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + ']>\n<log><trace><string key="concept:name" value="&j;"/></trace></log>'
)
OUTSIDE = '<?xml version="1.0"?>\n<!DOCTYPE log [<!ENTITY x SYSTEM "file:///etc/hostname">]>\n<log>&x;</log>'
GOOD = HEAD + CALLS[1] + "</log>\n"
DEEP = 100_000
BROKEN = {
    "truncated": (GOOD[:-20].encode(), "line 4: it is not whole, well-formed XML"),
    "empty": (b"", "line 1: it is not whole"),
    "not XML": (b"time,event\n1,start\n", "line 1: it is not whole, well-formed XML"),
    "binary": (bytes(range(256)) * 10, "line 1: it is not whole, well-formed XML"),
    "entity bomb": (LAUGHS.encode(), "line 2: it declares a document type"),
    "outer entity": (OUTSIDE.encode(), "line 2: it declares a document type"),
    "wrong encoding": (GOOD.replace("c1", "ç1").encode("latin-1"), "line 3: it is not whole, well-formed XML"),
    "unknown encoding": (GOOD.replace("UTF-8", "klingon").encode(), "line 1: "),
    "half an encoding": (GOOD.replace("UTF-8", "UTF-16").encode(), "line 1: "),
    "long value": (GOOD.replace("c1", "c" * 1_000_000).encode(), "the value of 'concept:name' has more than 500000"),
    "long tag": (GOOD.replace("c1", "c" * 10_000_000).encode(), "line 3: "),
    "deep": ((HEAD + DEEP * "<list key='a'>" + DEEP * "</list>" + "</log>").encode(), "more than 100 deep"),
    "HTML": (b"<html><body/></html>", "the outermost element is 'html', not 'log'"),
    "no traces": ((HEAD + "</log>").encode(), "has no trace with an event"),
    "no value": ((HEAD + '<string key="a"/></log>').encode(), "<string> must have a key and a value"),
    "no number": ((HEAD + '<int key="a" value="1_0"/></log>').encode(), "'a' must be of type int, got '1_0'"),
    "huge number": ((HEAD + f'<int key="a" value="{"9" * 5000}"/></log>').encode(), "'a' must be of type int"),
    "no date": ((HEAD + trace("t", event("a", "today")) + "</log>").encode(), "must have a date .* got 'today'"),
    "two logs": ((GOOD + GOOD.partition("\n")[2]).encode(), "junk after document element"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("reader", [qu.xes_jobs, qu.read_log])
def test_a_broken_file_gives_one_clear_message(tmp_path: Path, name: str, reader: object) -> None:
    content, told = BROKEN[name]
    path = tmp_path / "log.xes"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"log\.xes") as error:
        reader(path)  # type: ignore[operator]
    said = str(error.value)
    assert len(said) < 400
    assert said.isprintable()
    assert re.search(told, said) or (reader is qu.read_log and "is not an event log that `export_log` wrote" in said)
    if reader is qu.xes_jobs:
        assert re.search(told, said)


def test_a_good_file_of_others_is_no_event_log(tmp_path: Path) -> None:
    path = written(tmp_path, *CALLS)
    with pytest.raises(ValueError, match=r"is not an event log that `export_log` wrote: `xes_jobs` reads the jobs"):
        qu.read_log(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (lambda: b"no gzip", "cannot be unpacked"),
        (lambda: gzip.compress(GOOD.encode())[:-30], "cannot be unpacked"),
        (lambda: gzip.compress(HEAD.encode() + b" " * 200_000_000), "unpacks to more than 200 times its size"),
    ],
    ids=["not packed", "cut off", "a bomb"],
)
def test_packed_files_that_cannot_be_unpacked(tmp_path: Path, content: Callable[[], bytes], told: str) -> None:
    path = tmp_path / "log.xes.gz"
    path.write_bytes(content())
    with pytest.raises(ValueError, match=told):
        qu.xes_jobs(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for reader in (qu.read_log, qu.xes_jobs):
        with pytest.raises(ValueError, match=r"none\.xes is not there"):
            reader(tmp_path / "none.xes")
        with pytest.raises(ValueError, match="is not a file"):
            reader(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match=r"the name must end in \.csv, \.xes or \.xes\.gz"):
        qu.read_log(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("&quot;double&quot;", "&quot;os.system&quot;"),
        ("&quot;columns&quot;", "&quot;column&quot;"),
        ('value="{', 'value="['),
        ('<string key="event" value="start"/>', '<string key="event" value="explode"/>'),
        ('<int key="in_system"', '<string key="in_system"'),
        ('<int key="row" value="3"/>', '<string key="row" value="x"/>'),
    ],
)
def test_our_own_file_that_somebody_changed(tmp_path: Path, old: str, new: str) -> None:
    path = export(world_log("quickstart"), tmp_path / "log.xes")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=r"log\.xes"):
        qu.read_log(path)


def test_a_huge_value_does_not_fill_the_memory(tmp_path: Path) -> None:
    """A tag of 300 MB is given up after some megabytes; a process that may not have much memory lives on."""
    path = tmp_path / "log.xes"
    with path.open("wb") as file:
        file.write(HEAD.encode() + b'<string key="a" value="')
        for _ in range(300):
            file.write(b"x" * 1_000_000)
    script = (
        "import resource, sys\nimport queueing_ucrl as qu\nimport pandas, pyarrow\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    qu.xes_jobs(sys.argv[1])\nexcept ValueError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
    said, grown = done.stdout.splitlines()
    assert "an element's tag has more than" in said
    assert int(grown) * (1 if sys.platform != "darwin" else 1 / 1024) < 100_000  # kilobytes
