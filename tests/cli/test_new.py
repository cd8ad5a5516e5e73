"""`queueing-ucrl new`: questions, checked answers, and a file that runs; or nothing at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import queueing_ucrl as qu
from queueing_ucrl.cli import app

ANSWERS = {
    "title": "Bakery",
    "time": "hours",
    "money": "francs",
    "servers": "3",
    "service": "0.05",
    "capacity": "12",
    "classes": "walk-in, order",
    "walk-in rate": "40",
    "walk-in pays": "6.5",
    "walk-in waits": "3",
    "order rate": "30",
    "order pays": "18",
    "order waits": "0",
    "horizon": "50",
    "replications": "2",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def program(*arguments: str, answers: str = "") -> Result:
    result = CliRunner().invoke(app, list(arguments), input=answers)
    assert "Traceback" not in result.output
    return result


def lines(**changed: str) -> str:
    return "".join(f"{changed.get(name, answer)}\n" for name, answer in ANSWERS.items())


def test_answers_make_the_scenario(here: Path) -> None:
    done = program("new", "bakery.toml", answers=lines())
    assert done.exit_code == 0, done.output
    assert "bakery.toml is written. What comes in is 1.17 times the work" in done.stdout
    assert "scenario.schema.json is beside it: editors complete and check the file's keys by it." in done.stdout
    assert Path("scenario.schema.json").is_file()
    scenario = qu.load_scenario("bakery.toml")
    assert (scenario.title, scenario.units.time, scenario.units.money) == ("Bakery", "hours", "francs")
    queue = scenario.queue
    assert (queue.servers, queue.capacity, queue.service_rate) == (3, 12, 20.0)
    found = [(c.name, c.arrival_rate, c.reward, c.holding_cost) for c in queue.classes]
    assert found == [("walk-in", 40.0, 6.5, qu.Linear(3.0)), ("order", 30.0, 18.0, qu.Linear(0.0))]
    assert (scenario.settings.horizon, scenario.settings.replications) == (50.0, 2)
    ran = program("run", "bakery.toml", "--jobs", "1", "--no-report")
    assert ran.exit_code == 0, ran.output
    assert "certainty-equivalent" in ran.stdout


def test_a_file_that_is_no_schema_of_ours_is_neither_touched_nor_told(here: Path) -> None:
    Path("scenario.schema.json").write_text("{}")
    done = program("new", "mine.toml", "--yes")
    assert done.exit_code == 0, done.output
    assert "schema" not in done.stdout
    assert Path("scenario.schema.json").read_text() == "{}"


@pytest.mark.parametrize("answers", ["--yes", "\n" * 13], ids=["--yes", "empty answers"])
def test_the_defaults_make_a_queue_that_must_turn_somebody_away(answers: str) -> None:
    done = (
        program("new", "mine.toml", "--yes") if answers == "--yes" else program("new", "mine.toml", answers=answers * 2)
    )
    assert done.exit_code == 0, done.output
    queue = qu.load_scenario("mine.toml").queue
    assert queue.load == pytest.approx(1.2)
    levels = qu.solve(queue).policy.control_levels
    assert levels is not None
    assert min(levels) < queue.capacity


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("title", "x" * 201, "must be 0 to 200 printable characters"),
        ("time", "min\x1b[31m", "printable characters"),
        ("servers", "0", "must be a whole number from 1 to 10000, got '0'"),
        ("servers", "2.5", "must be a whole number from 1 to 10000, got '2.5'"),
        ("servers", "9" * 5000, "must be a whole number"),
        ("service", "0,05", "write a point, not a comma"),
        ("service", "nan", "must be a number from 1e-06 to 1e+09, got 'nan'"),
        ("service", "-1", "must be a number from"),
        ("capacity", "2", "must be a whole number from 3 to"),
        ("classes", "a, a", "must be names that differ"),
        ("classes", "a,,b", "must be 1 to 40 printable characters"),
        ("walk-in rate", "many", "must be a number from"),
        ("order waits", "-0.5", "or 0, got '-0.5'"),
        ("horizon", "inf", "must be a number from"),
        ("replications", "none", "must be a whole number"),
    ],
)
def test_a_wrong_answer_is_told_and_asked_for_again(name: str, wrong: str, told: str) -> None:
    done = program("new", "again.toml", answers=lines(**{name: f"{wrong}\n{ANSWERS[name]}"}))
    assert done.exit_code == 0, done.output
    assert done.stderr.count(told) == 1
    program("new", "once.toml", answers=lines())
    assert Path("again.toml").read_bytes() == Path("once.toml").read_bytes()


@pytest.mark.parametrize("given", range(len(ANSWERS)))
def test_answers_that_end_too_soon_write_nothing(given: int, here: Path) -> None:
    done = program("new", "mine.toml", answers="".join(lines().splitlines(keepends=True)[:given]))
    assert done.exit_code == 2
    assert "the answers end here, before the last question: nothing was written" in done.stderr
    assert not list(here.iterdir())


def test_a_file_that_is_there_is_not_touched(here: Path) -> None:
    Path("mine.toml").write_text("mine")
    done = program("new", "mine.toml", answers=lines())
    assert (done.exit_code, done.stderr) == (2, "mine.toml: is there already; name another file\n")
    assert [(path.name, path.read_text()) for path in here.iterdir()] == [("mine.toml", "mine")]


@pytest.mark.parametrize(
    ("file", "told"),
    [("mine", "the name of a scenario file ends in .toml: mine.toml"), ("no/mine.toml", "no: no such folder")],
)
def test_a_place_that_cannot_be_is_told_before_anything_is_asked(file: str, told: str, here: Path) -> None:
    done = program("new", file, answers=lines())
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert "What is it" not in done.stderr
    assert not list(here.iterdir())


def test_a_stop_writes_nothing(here: Path) -> None:
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
    command = [sys.executable, "-c", f"{heed}; from queueing_ucrl.__main__ import main; main()", "new", "mine.toml"]
    env = {**os.environ, "PYTHONPATH": str(Path(qu.__file__).parents[1])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, **pipes) as running:
        assert running.stderr
        assert running.stderr.read(10) == b"What is it"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == b""
    assert err.endswith(b"\nstopped: nothing was written\n")
    assert not list(here.iterdir())
