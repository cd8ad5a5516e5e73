"""`queueing-ucrl run` on systems without an exact optimum: rewards instead of regret, and a folder that can go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from queueing_ucrl.cli import app

TEXT = """
title = "Calls"
[queue]
servers = 2
capacity = 6
service = { kind = "lognormal", mean = 1.0, cv = 1.2 }
[[class]]
name = "a"
arrival_rate = 1.5
reward = 5.0
holding_cost = { kind = "linear", rate = 0.5 }
day_factor = { cv = 0.2, period = 24.0 }
[[class]]
name = "b"
arrivals = { trace = "jobs.csv", time = "t", work = "s", repeat = true }
reward = 2.0
[[controller]]
name = "certainty-equivalent"
[[controller]]
name = "admit-all"
[run]
horizon = 100.0
replications = 3
grid_points = 20
"""
JOBS = "t,s\n0.5,1.0\n2.0,0.25\n2.0,3.0\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "calls.toml").write_text(TEXT)
    return tmp_path / "calls.toml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_study_without_an_optimum_is_run_shown_and_gone_on_with(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    study = ("run", scenario, "--jobs", "1", "--out", out, "--log")
    first = run(*study)
    assert first.exit_code == 0, first.output
    words = " ".join(first.stdout.split())
    assert "No regret is shown: class 'a' does not come by a Poisson process" in words
    assert "reward minus that of certainty-equivalent" in words
    assert "nan" not in words
    whole = files(out)
    assert {"regret.png", "rewards.parquet", "summary.json", "manifest.json"} <= set(whole)
    assert "regret.parquet" not in whole
    for name in whole:
        if "000001" in name:
            (out / name).unlink()
    assert run(*study).exit_code == 0
    assert files(out) == whole


def test_another_file_of_jobs_is_another_study(scenario: Path, tmp_path: Path) -> None:
    study = ("run", scenario, "--jobs", "1", "--out", tmp_path / "out", "--horizon", "20", "--replications", "1")
    assert run(*study).exit_code == 0
    (tmp_path / "jobs.csv").write_text(JOBS.replace("3.0", "2.0"))
    second = run(*study)
    assert second.exit_code == 2
    assert "another study" in second.stderr


def test_there_is_nothing_to_solve(scenario: Path) -> None:
    solved = run("solve", scenario)
    assert solved.exit_code == 2
    assert "class 'a' does not come by a Poisson process, so the number of jobs is no Markov chain" in solved.stderr
    assert "`queueing-ucrl optimise` finds the best table by simulation" in solved.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            TEXT.replace(", repeat = true", ""),
            "class 'b': the trace ends at 2, before the horizon 100",
        ),
        (TEXT.replace("jobs.csv", "calls.csv"), "calls.csv is not there"),
        (TEXT.replace("mean = 1.0", "mean = -1.0"), "calls.toml:6: queue.service.mean = -1.0 must be positive"),
        (TEXT.replace("capacity = 6", "capacity = 6\nservice_rate = 1.0"), "must not stand beside service: keep one"),
    ],
)
def test_a_mistake_ends_with_two_and_writes_nothing(scenario: Path, tmp_path: Path, text: str, words: str) -> None:
    scenario.write_text(text)
    ended = run("run", scenario, "--jobs", "1", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert words in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
