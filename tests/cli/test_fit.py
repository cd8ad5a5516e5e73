"""`queueing-ucrl fit`: files, words, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.data.synthetic import synthetic_log, write_log

NAMES = {"time": "t", "job_class": "k", "start": "a", "end": "b", "decision": "d"}
COLUMNS = ["--time", "t", "--class", "k", "--start", "a", "--end", "b", "--decision", "d"]


@pytest.fixture(scope="module")
def calls() -> str:
    """A CSV with dates, of the call centre under its best policy."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = synthetic_log(qu.load_scenario("call-centre").system, jobs=1500, controller="oracle", seed=1)
        write_log(log, Path(folder) / "calls.csv", unit="minutes", columns=NAMES)
        return (Path(folder) / "calls.csv").read_text()


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, ["fit", *arguments])


def test_two_commands(calls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fit writes what run takes, and says what comes next."""
    monkeypatch.chdir(tmp_path)
    Path("calls.csv").write_text(calls)
    result = run("calls.csv", *COLUMNS, "--like", "call-centre", "--no-figure", "--no-report")
    assert result.exit_code == 0, result.output
    assert 'Arrivals of "sales"' in result.stdout
    assert "next: queueing-ucrl run calls.toml" in result.stdout
    files = ["calls.csv", "calls.toml", "calls.trace.parquet", "scenario.schema.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    short = ["--horizon", "50", "--replications", "2", "--jobs", "1", "--out", "out"]
    second = CliRunner().invoke(app, ["run", "calls.toml", *short])
    assert second.exit_code == 0, second.output
    assert "On the log itself" in second.stdout
    assert "Recommended: " in second.stdout


def test_the_figure_is_a_picture(calls: str, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(calls)
    result = run(str(tmp_path / "calls.csv"), *COLUMNS)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "calls.fit.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "calls.report.html").read_text()
    assert "queueing-ucrl fit calls.csv --time t" in page  # files by their names: where they lie is of this machine
    assert '<h1 dir="auto">Fit of calls.csv</h1>' in page
    assert "calls.report.html" in "".join(result.stdout.split())
    assert "A log cannot tell" in result.stdout
    assert "next:" not in result.stdout


def test_files_are_never_overwritten_silently(calls: str, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(calls)
    (tmp_path / "calls.toml").write_text("mine")
    arguments = [str(tmp_path / "calls.csv"), *COLUMNS, "--no-figure", "--no-report"]
    result = run(*arguments)
    assert result.exit_code == 2
    assert "calls.toml: is there already; --force" in result.stderr
    assert (tmp_path / "calls.toml").read_text() == "mine"
    assert not (tmp_path / "calls.trace.parquet").exists()
    assert run(*arguments, "--force").exit_code == 0
    assert "Fitted from" in (tmp_path / "calls.toml").read_text()
    elsewhere = run(*arguments, "--out", str(tmp_path / "other.toml"))
    assert elsewhere.exit_code == 0
    assert (tmp_path / "other.trace.parquet").exists()


def test_json(calls: str, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(calls)
    given = ["--servers", "20", "--capacity", "45", "--reward", "sales=30", "--reward", "contract=12"]
    more = ["--reward", "enquiry=4", "--holding-cost", "enquiry=0.25", "--no-figure", "--no-report", "--json"]
    result = run(str(tmp_path / "calls.csv"), *COLUMNS, *given, *more)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["missing"] == []
    assert data["promise"]["promised"] > 0
    assert [row["job_class"] for row in data["rates"]] == ["contract", "enquiry", "sales"]
    assert [Path(path).name for path in data["written"]] == ["calls.toml", "calls.trace.parquet"]
    assert qu.load_scenario(tmp_path / "calls.toml").queue.servers == 20


def test_strict_refuses_bad_rows(calls: str, tmp_path: Path) -> None:
    lines = calls.splitlines()
    lines[6] = lines[6].replace("2024", "soon")
    (tmp_path / "calls.csv").write_text("\n".join(lines))
    lenient = run(
        str(tmp_path / "calls.csv"), *COLUMNS, "--no-figure", "--no-report", "--out", str(tmp_path / "l.toml")
    )
    assert lenient.exit_code == 0
    assert "line 7" in lenient.stdout
    strict = run(str(tmp_path / "calls.csv"), *COLUMNS, "--no-figure", "--no-report", "--strict")
    assert strict.exit_code == 2
    assert "line 7" in strict.stderr
    assert "refused" in strict.stderr
    assert not (tmp_path / "calls.toml").exists()


MISTAKES = {
    "no such column": (["--time", "when"], "there is no column 'when'; the columns are 't', 'k', 'a', 'b', 'd'"),
    "reward without a number": (["--time", "t", "--reward", "gold"], "--reward gold: must be NAME=VALUE"),
    "reward of a word": (["--time", "t", "--reward", "gold=much"], "--reward gold=much: must be a number"),
    "reward twice": (["--time", "t", "--reward", "a=1", "--reward", "a=2"], "a is given twice"),
    "reward of nobody": (["--time", "t", "--class", "k", "--reward", "x=1"], "the log has no such class"),
    "no servers": (["--time", "t", "--servers", "0"], "--servers 0: must be at least 1"),
    "seed": (["--time", "t", "--seed", "-1"], "--seed -1: must be at least 0"),
    "service twice": (["--time", "t", "--service", "a", "--start", "a", "--end", "b"], "not both"),
    "unknown scenario": (["--time", "t", "--like", "quickstrat"], "did you mean quickstart"),
    "unit": (["--time", "t", "--time-unit", "weeks"], "must be one of seconds, minutes, hours, days"),
    "zone": (["--time", "t", "--timezone", "Mars/Base"], "is not known"),
    "out": (["--time", "t", "--out", "x.csv"], "must end in .toml"),
    "out in no folder": (["--time", "t", "--out", "nowhere/x.toml"], "there is no folder"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_message_and_exit_code_2(
    calls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calls.csv").write_text(calls)
    arguments, message = MISTAKES[name]
    result = run("calls.csv", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["calls.csv"]
