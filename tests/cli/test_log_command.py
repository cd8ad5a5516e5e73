"""`queueing-ucrl log`: what it says of good logs, of logs that break a law, and of files that are no log at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app

QUEUE = qu.Queue(2, 6, 1.0, [qu.JobClass("gold", 1.0, 20.0, qu.Linear(0.1)), qu.JobClass("basic", 1.5, 10.0)])
HEAD = "time,event,job,job_class"


def run(*arguments: str | Path, width: int = 80):
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["log", *map(str, arguments)])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    qu.simulate(QUEUE, qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0), horizon=96.0, seed=3, log=path)
    return path


def test_a_log_is_told_in_80_columns(log: Path) -> None:
    result = run(log, "--window", "24", "--target-wait", "0.5")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "event log of a simulation by queueing_ucrl" in words
    assert "Controller ucrl-ac, seed 3, replication 0, engine compiled, horizon 96." in words
    assert "Queue: 2 servers, room for 6, classes gold, basic." in words
    assert "all 8 that could be checked hold" in words
    assert "the log ends at 96 (the log's metadata)" in words
    assert max(map(len, result.stdout.replace(str(log), "").splitlines())) <= 80
    measured = qu.metrics(log, target_wait=0.5).set_index(["measure", "job_class"])["mean"]
    line = next(line for line in result.stdout.splitlines() if line.startswith("mean number in the system"))
    assert float(line.split()[5]) == pytest.approx(measured["in_system", "all"], rel=0.01)


def test_json_holds_what_is_printed_and_more(log: Path) -> None:
    result = run(log, "--json", "--window", "30")
    assert result.exit_code == 0
    found = json.loads(result.stdout, parse_constant=lambda constant: pytest.fail(constant))
    events = qu.read_events(log)
    assert found["events"] == {k: v for k, v in events["event"].value_counts(sort=False).items() if v}
    assert found["jobs"] == len(qu.jobs(log))
    assert (found["begin"], found["last"]) == (events["time"].iloc[0], events["time"].iloc[-1])
    table = qu.metrics(log)
    for row, told in zip(table.to_dict("records"), found["measures"], strict=True):
        assert told["measure"] == row["measure"]
        assert told["mean"] is None if pd.isna(row["mean"]) else told["mean"] == row["mean"]
    assert len(found["windows"]) == 4 * len(table)
    assert [law["holds"] for law in found["laws"]] == [True] * 8
    course = found["course"]
    lengths = [b - a for a, b in zip(course["edges"], course["edges"][1:], strict=False)]
    arrived = sum(rate * length for rate, length in zip(course["arrivals"], lengths, strict=True))
    assert arrived == pytest.approx(events["event"].isin(["admit", "reject", "block"]).sum())
    area = sum(n * length for n, length in zip(course["in_system"], lengths, strict=True))
    mean = table[(table["measure"] == "in_system") & (table["job_class"] == "all")]["mean"].iloc[0]
    assert area / 96.0 == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("by", ["server", "episode", "replication", "none"])
def test_by(log: Path, by: str) -> None:
    assert run(log, "--by", by).exit_code == 0
    found = json.loads(run(log, "--by", by, "--json").stdout)["measures"]
    assert (by in found[0]) == (by != "none")


def test_hours_and_units_are_known_or_asked_for(log: Path) -> None:
    result = run(log, "--by", "hour")
    assert result.exit_code == 2
    assert "time_unit must say" in result.stderr
    assert "hours" in run(log, "--by", "hour", "--time-unit", "hours").stdout
    assert run(log, "--window", "1h").exit_code == 2
    assert run(log, "--window", "1d", "--time-unit", "hours").exit_code == 0
    result = run(log, "--time-unit", "moons")
    assert result.exit_code == 2
    assert "seconds, minutes, hours, days" in result.stderr


def test_a_study_says_its_title_and_units(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    options = ["--horizon", "20", "--replications", "2", "--jobs", "1", "--log", "--out", str(folder)]
    result = CliRunner().invoke(app, ["run", "call-centre", *options, "--controller", "oracle"])
    assert result.exit_code == 0, result.output
    told = run(folder, "--window", "600s")
    assert told.exit_code == 0, told.output
    words = " ".join(told.stdout.split())
    assert "2 event logs" in words
    assert qu.load_scenario("call-centre").title in words
    assert "arrivals per minute" in words
    assert "in 2 runs" in words


def test_pictures_have_plain_characters_where_the_terminal_has_no_others(log: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    command = [sys.executable, "-m", "queueing_ucrl", "log", str(log), "--no-check"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=100)
    assert done.returncode == 0
    lines = done.stdout.decode("ascii").splitlines()
    assert any(line.startswith("in system ") and "@" in line for line in lines)


def test_a_csv_log_and_an_exported_one(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "log.csv"
    result = run(log, "--export", out)
    assert result.exit_code == 0, result.output
    told = run(out)
    assert told.exit_code == 0, told.output
    assert "a CSV file with the columns of an event log" in " ".join(told.stdout.split())
    pd.testing.assert_frame_equal(qu.jobs(out), qu.jobs(log), check_categorical=False)
    assert run(log, "--export", out).exit_code == 2  # never overwritten
    assert run(log, "--export", tmp_path / "log.docx").exit_code == 2


def test_a_log_that_breaks_a_law_is_told_with_its_row_and_exit_code_1(log: Path, tmp_path: Path) -> None:
    table = pq.read_table(log)
    count = table.column("in_system").to_pylist()
    count[41] += 2
    column = pa.array(count, table.schema.field("in_system").type)
    pq.write_table(table.set_column(table.column_names.index("in_system"), "in_system", column), tmp_path / "x.parquet")
    result = run(tmp_path / "x.parquet")
    assert result.exit_code == 1
    assert "row 42, time " in result.stdout
    assert "breaks" in result.stderr
    assert run(tmp_path / "x.parquet", "--no-check").exit_code == 0
    assert run(tmp_path / "x.parquet", "--json").exit_code == 1


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "bad.csv").write_bytes(content.encode(encoding))
        return folder / "bad.csv"

    return write


def raw(content: bytes, name: str = "bad.parquet") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def truncated(folder: Path) -> Path:
    frame = pd.DataFrame({"time": [0.0] * 1000, "event": "admit", "job": range(1000), "job_class": "a"})
    frame.to_parquet(folder / "bad.parquet")
    content = (folder / "bad.parquet").read_bytes()
    (folder / "bad.parquet").write_bytes(content[: len(content) // 2])
    return folder / "bad.parquet"


def damaged(folder: Path) -> Path:
    """The footer is whole, a page of the data is not."""
    frame = pd.DataFrame({"time": [0.5 * k for k in range(5000)], "event": "admit", "job": range(5000)})
    frame.assign(job_class="a").to_parquet(folder / "bad.parquet", compression="zstd")
    content = bytearray((folder / "bad.parquet").read_bytes())
    content[100:400] = b"\xa5" * 300
    (folder / "bad.parquet").write_bytes(bytes(content))
    return folder / "bad.parquet"


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.parquet")
    return folder / "pipe.parquet"


def fifo_inside(folder: Path) -> Path:
    (folder / "logs").mkdir()
    os.mkfifo(folder / "logs" / "pipe.parquet")
    return folder / "logs"


def wide(folder: Path) -> Path:
    return text(",".join(f"column {k}" for k in range(500)) + "\n" + ",".join("1" * 500) + "\n")(folder)


def job_table(folder: Path) -> Path:
    rows = [(0.0, "admit", 0, "x"), (1.0, "start", 0, "x")]
    qu.jobs(pd.DataFrame(rows, columns=HEAD.split(","))).to_csv(folder / "jobs.csv", index=False)
    return folder / "jobs.csv"


def study_without_logs(folder: Path) -> Path:
    (folder / "manifest.json").write_text("{}")
    return folder


def dated(folder: Path) -> Path:
    frame = pd.DataFrame({"time": pd.to_datetime(["2024-01-01"]), "event": "admit", "job": 1, "job_class": "a"})
    frame.to_parquet(folder / "bad.parquet")
    return folder / "bad.parquet"


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "empty": (raw(b""), "bad.parquet: is empty"),
    "header only": (text(f"{HEAD}\n"), "bad.csv: has no rows"),
    "not there": (lambda folder: folder / "none.parquet", "none.parquet: is not there"),
    "truncated": (truncated, "bad.parquet: cannot be read as Parquet ("),
    "damaged": (damaged, "bad.parquet: cannot be read ("),
    "four bytes": (raw(b"PAR1"), "bad.parquet: cannot be read as Parquet ("),
    "binary": (raw(bytes(range(256)) * 40, "bad.csv"), "bad.csv: is neither Parquet nor text"),
    "UTF-32": (text(f"{HEAD}\n0,admit,1,a\n", "utf-32"), "bad.csv: is neither Parquet nor text"),
    "no UTF-16": (
        raw(f"{HEAD}\n0,admit,1,a\n".encode("utf-16") + 2 * b"\0\xd8" + b"\n\0", "bad.csv"),
        "bad.csv: cannot be read (",
    ),
    "Latin-1 header": (text(f"{HEAD},zeit für\n0,admit,1,a,2\n", "latin-1"), "of its first line is not UTF-8"),
    "Latin-1 class": (text(f"{HEAD}\n0,admit,1,Büro\n1,start,1,Büro\n", "latin-1"), "bad.csv: cannot be read ("),
    "500 columns": (wide, "has no column 'time', so it is no event log; its columns are 'column 0', 'column 1'"),
    "empty folder": (lambda folder: folder, "is a folder without a Parquet file"),
    "study": (study_without_logs, "is a study without event logs; `queueing-ucrl run --log` keeps them"),
    "fifo": (fifo, "pipe.parquet: cannot be read (is not a file)"),
    "fifo in a folder": (fifo_inside, "pipe.parquet: cannot be read (is not a file)"),
    "missing column": (text("time,event,job\n0,admit,1\n"), "bad.csv: has no column 'job_class'"),
    "job table": (job_table, "is a table of jobs, not of events"),
    "XML": (text("<?xml version='1.0'?><log/>"), "bad.csv: is XML, no event log; `queueing-ucrl fit` reads XES"),
    "unknown event": (text(f"{HEAD}\n0,admit,1,a\n1,begin,1,a\n"), "row 2: event must be one of admit, reject, block"),
    "no event": (text(f"{HEAD}\n0,admit,1,a\n1,,1,a\n"), "row 2: event must be one of"),
    "no time": (text(f"{HEAD}\n0,admit,1,a\n,start,1,a\n"), "row 2: time must be a finite number, got nothing"),
    "infinite time": (text(f"{HEAD}\ninf,admit,1,a\n"), "row 1: time must not be beyond 1e+100, got inf"),
    "infinite reward": (
        text(f"{HEAD},reward\n1,admit,1,a,2\n2,start,1,a,-inf\n"),
        "row 2: reward must not be beyond 1e+100, got -inf",
    ),
    "class of 1 MB": (
        text(f"{HEAD}\n0,admit,1,a\n1,admit,2,{'x' * 1_000_000}\n"),
        "row 2: job_class must have at most 40 characters, got 'xxx",
    ),
    "one row later": (text(f"{HEAD}\n1,admit,1,a\n"), "all rows of the log are at 1, where it ends (its last event)"),
    "words as times": (text(f"{HEAD}\nnoon,admit,1,a\n"), "bad.csv: row 1: time must be a number, got 'noon'"),
    "thousands": (
        text(f'{HEAD}\n0,admit,1,a\n\n"1,234.5",start,1,a\n'),
        "row 2: time must be a number, got '1,234.5'; decimals have a point, and thousands no sign",
    ),
    "half a job": (
        text(f"{HEAD},in_system\n0,admit,1,a,0\n1,start,1,a,0.5\n"),
        "row 2: in_system must be a whole number, got '0.5'",
    ),
    "dates in a CSV": (
        text(f"{HEAD}\n2024-03-31 08:00,admit,1,a\n"),
        "row 1: time must be a number, got '2024-03-31 08:00'; `queueing-ucrl fit` reads logs with dates",
    ),
    "bars": (text(f"{HEAD}\n0,admit,1,a\n".replace(",", "|")), "as if they were not separated by commas, semicolons"),
    "decimal commas": (
        text(f"{HEAD}\n0,admit,1,a\n1,start,1,a\n2.5,depart,1,a\n".replace(",", ";").replace(".", ",")),
        "row 3: time must be a number, got '2,5'; decimals have a point",
    ),
    "a column twice": (text(f"{HEAD},time\n0,admit,1,a,0\n"), "bad.csv: has 2 columns 'time'; their names must differ"),
    "dates": (
        dated,
        "row 1: time must be a number, got 2024-01-01 00:00:00; `queueing-ucrl fit` reads logs with dates",
    ),
    "no job": (text(f"{HEAD}\n0,admit,,a\n"), "row 1: job is missing at 'admit'"),
    "no class": (text(f"{HEAD}\n0,admit,1,\n"), "row 1: job_class is missing at 'admit'"),
    "ragged": (text(f"{HEAD}\n0,admit,1,a,9,9\n"), "bad.csv: cannot be read ("),
    "one row": (text(f"{HEAD}\n0,admit,1,a\n"), "the log ends at 0 (its last event), so it covers no time after 0"),
    "a long line": (raw(b"x" * 200_000, "bad.csv"), "its first line has no end within 65536 bytes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_log_is_told_in_one_message(kind: str, tmp_path: Path) -> None:
    make, words = BAD[kind]
    result = run(make(tmp_path))
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) < 1000
    assert not result.stdout


def test_a_one_megabyte_cell_is_a_long_name_and_no_more(tmp_path: Path) -> None:
    path = text(f"{HEAD}\n0,admit,{'x' * 1_000_000},a\n1,block,{'y' * 1_000_000},a\n")(tmp_path)
    result = run(path)
    assert result.exit_code == 0, result.output[-300:]
    assert "x" * 100 not in result.output
    path = text(f"{HEAD}\n0,{'x' * 1_000_000},1,a\n")(tmp_path)
    result = run(path)
    assert result.exit_code == 2
    assert len(result.stderr) < 1000


def test_times_that_run_backwards_and_mixed_replications(tmp_path: Path) -> None:
    result = run(text(f"{HEAD}\n1,admit,1,a\n0.5,start,1,a\n2,depart,1,a\n")(tmp_path))
    assert result.exit_code == 1
    assert "row 2, time 0.5: time runs backwards, from 1" in " ".join(result.stdout.split())
    lines = [
        f"{HEAD},replication",
        "0,admit,1,a,0",
        "0.5,admit,1,a,1",
        "1,start,1,a,0",
        "2,start,1,a,1",
        "3,depart,1,a,1",
    ]
    result = run(text("\n".join(lines) + "\n")(tmp_path))
    assert result.exit_code == 0, result.output
    assert "in 2 runs" in result.stdout
    without = "\n".join(line.rsplit(",", 1)[0] for line in lines)
    result = run(text(without + "\n")(tmp_path))
    assert result.exit_code == 1
    assert "job 1 has 'admit' after its 'admit'" in " ".join(result.stdout.split())


def test_names_that_would_steer_a_terminal_are_shown_harmless(tmp_path: Path) -> None:
    result = run(text(f"{HEAD}\n0,admit,1,\x1b[31mred\n1,start,1,\x1b[31mred\n2,depart,1,\x1b[31mred\n")(tmp_path))
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout


def test_controllers_of_a_study_are_told_apart(tmp_path: Path) -> None:
    """Two of them have one name but for what they remember."""
    (tmp_path / "s.toml").write_text(
        'title = "Two memories"\n[units]\ntime = "minutes"\nmoney = "pounds"\n'
        "[queue]\nservers = 2\ncapacity = 5\nservice_rate = 1.0\n"
        '[[class]]\nname = "a"\narrival_rate = 2.0\nreward = 1.0\n'
        '[[controller]]\nname = "certainty-equivalent"\n[[controller]]\nname = "certainty-equivalent"\nmemory = 5.0\n'
        "[run]\nhorizon = 30.0\nreplications = 2\n"
    )
    folder = tmp_path / "out"
    result = CliRunner().invoke(app, ["run", str(tmp_path / "s.toml"), "--jobs", "1", "--log", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    found = json.loads(run(folder, "--json").stdout)
    names = {row["controller"] for row in found["measures"]}
    assert len(names) == 2
    words = " ".join(run(folder).stdout.split())
    assert "Controllers are told apart" in words
    assert run(folder, "--by", "class").exit_code == 2
    alone = json.loads(run(folder, "--controller", min(names), "--json").stdout)
    assert (alone["runs"], found["runs"]) == (2, 4)
    assert "job_class" in alone["measures"][0]
    # a log that left its study's folder still knows what it is of, and in which unit
    moved = tmp_path / "moved.parquet"
    moved.write_bytes(next((folder / "events").rglob("*.parquet")).read_bytes())
    told = json.loads(run(moved, "--window", "600s", "--json").stdout)
    assert (told["title"], told["units"]) == ("Two memories", {"time": "minutes", "money": "pounds"})
    assert qu.metrics(moved, window="600s")["to"].max() == 30.0
    qu.export_log(moved, tmp_path / "moved.xes")
    minutes, seconds = (tmp_path / "moved.xes").read_text(), tmp_path / "seconds.xes"
    qu.export_log(moved, seconds, unit="seconds")
    last = qu.read_events(moved)["time"].max()
    assert f"1970-01-01T00:{int(last):02d}:" in minutes
    assert f"1970-01-01T00:00:{int(last):02d}." in seconds.read_text()


def test_many_servers_and_windows_fit_the_terminal(tmp_path: Path) -> None:
    queue = qu.Queue(24, 40, 1.0, [qu.JobClass("a", 20.0, 1.0)])
    qu.simulate(queue, "admit-all", horizon=20.0, seed=1, log=tmp_path / "l.parquet")
    shown = run(tmp_path / "l.parquet", "--by", "server").stdout.replace(str(tmp_path), "")
    assert max(map(len, shown.splitlines())) <= 80
    assert {f"{k}" for k in range(24)} <= {line.split()[0] for line in shown.splitlines() if line.strip()}
    result = run(tmp_path / "l.parquet", "--window", "0.001")
    assert result.exit_code == 2
    assert "20,000 windows, and at most 10,000 are told" in " ".join(result.stderr.split())


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separators_and_encodings_are_those_of_fit(separator: str, encoding: str, tmp_path: Path) -> None:
    lines = f"{HEAD}\n0,admit,1,Büro\n1,start,1,Büro\n2.5,depart,1,Büro\n"
    path = text(lines.replace(",", separator), encoding)(tmp_path)
    table = qu.jobs(path)
    assert table["job_class"].tolist() == ["Büro"]
    assert table[["arrival", "start", "end"]].to_numpy().tolist() == [[0.0, 1.0, 2.5]]
