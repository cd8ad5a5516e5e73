"""Replications are added until a measure is known well enough: as many whoever runs them, and never by regret."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from generators import paper_queue
from small_studies import contents, numbers, scenario_file
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.accounts.steady_state import estimate
from queueing_ucrl.cli import app
from queueing_ucrl.errors import PrecisionWarning
from queueing_ucrl.experiments.campaign import run_scenario, with_run

CONTROLLERS = ["oracle", "admit-all"]


def precise_study(precision: float, **more: object) -> qu.Study:
    options = {"horizon": 300.0, "replications": 3, "seed": 2, "jobs": 1, "precision": precision, "measure": "wait"}
    return qu.replicate(paper_queue(), CONTROLLERS, **{**options, **more})  # type: ignore[arg-type]


def widths(study: qu.Study, measure: str) -> list[float]:
    return [estimate([r.measure(measure) for r in results]).relative_half_width for results in study.results]


def test_replications_are_added_until_the_measure_is_known_well_enough() -> None:
    study = precise_study(0.1)
    count = len(study.results[0])
    assert count % 3 == 0
    assert [len(results) for results in study.results] == [count, count]
    assert max(widths(study, "wait")) <= 0.1
    before = [estimate([r.measure("wait") for r in results[: count - 3]]) for results in study.results]
    assert max(one.relative_half_width for one in before) > 0.1  # one round less would not have done
    assert [cell.settings.replications for cell in study.cells] == [count, count]
    plain = precise_study(0.0, replications=count)
    assert numbers(plain) == numbers(study)  # they are the replications of any study


def test_a_study_ends_at_its_largest_number_and_says_so() -> None:
    with pytest.warns(PrecisionWarning, match="after 7 replications .* the half-width of wait is 0"):
        study = precise_study(0.001, most_replications=7)
    assert len(study.results[0]) == 7


def test_the_number_does_not_depend_on_who_computes_it() -> None:
    assert numbers(precise_study(0.1, jobs=2)) == numbers(precise_study(0.1))


@pytest.fixture
def scenario(tmp_path: Path) -> qu.Scenario:
    more = 'precision = 0.08\nmeasure = "wait"\ntarget_wait = 1.0\n'
    return qu.load_scenario(scenario_file(tmp_path, more, replications="2"))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_study_that_was_stopped_ends_with_the_same_bytes(scenario: qu.Scenario, tmp_path: Path, after: int) -> None:
    run_scenario(scenario, tmp_path / "whole", jobs=1)
    whole = contents(tmp_path / "whole")
    trials = [name for name in whole if name.startswith("trials/")]
    assert len(trials) > 6
    manifest = json.loads((tmp_path / "whole" / "manifest.json").read_text())
    assert manifest["replications"] == len(trials)
    assert (manifest["precision"], manifest["measure"]) == (0.08, "wait")

    def stop(result: object, done: int, total: int) -> None:
        if done == after:
            raise Stopped

    with pytest.raises(Stopped):
        run_scenario(scenario, tmp_path / "stopped", jobs=1, on_result=stop)
    run_scenario(scenario, tmp_path / "stopped", jobs=2)
    assert contents(tmp_path / "stopped") == whole


def test_trials_that_are_there_and_not_needed_do_not_count(scenario: qu.Scenario, tmp_path: Path) -> None:
    """A folder that holds more replications gives the same tables: whole rounds are looked at in order."""
    study, _ = run_scenario(with_run(scenario, precision=0.3), tmp_path / "coarse", jobs=1)
    run_scenario(scenario, tmp_path / "both", jobs=1)
    shutil.copytree(tmp_path / "both", tmp_path / "again")
    again, _ = run_scenario(with_run(scenario, precision=0.3), tmp_path / "again", jobs=1)
    assert numbers(again) == numbers(study)
    one, other = contents(tmp_path / "coarse"), contents(tmp_path / "again")
    for name in ("summary.json", "curves.parquet", "rewards.parquet"):
        assert one[name] == other[name]


@pytest.mark.parametrize("measure", ["regret", "gap", "expected", "pseudo", "realised"])
def test_never_on_regret(measure: str) -> None:
    with pytest.raises(ValueError, match=f"measure cannot be '{measure}': a regret is of the transient"):
        precise_study(0.1, measure=measure)


def test_mistakes_are_told(tmp_path: Path) -> None:
    for options, message in (
        ({"precision": 1.0}, "precision must be a number of at least 0 and below 1, got 1.0"),
        ({"precision": -0.1}, "precision must be a number of at least 0 and below 1"),
        ({"precision": float("nan")}, "precision must be a number of at least 0 and below 1"),
        ({"measure": "waits"}, "measure must be one of arrivals, throughput"),
        ({"replications": 1}, "replications must be at least 2 with a precision"),
        ({"most_replications": 0}, "most_replications must be a whole number of at least 1"),
        ({"target_wait": -1.0}, "target_wait must be a finite number of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            precise_study(**{"precision": 0.1, **options})  # type: ignore[arg-type]
    program = CliRunner()
    for line, message in (
        ('measure = "gap"', "small.toml: measure cannot be 'gap': a regret is of the transient"),
        ('precision = "high"', "precision"),
        ("precision = 1.5", "precision"),
        ("most_replications = 0", "most_replications"),
    ):
        refused = program.invoke(app, ["run", str(scenario_file(tmp_path, line + "\n")), "--out", str(tmp_path / "o")])
        assert refused.exit_code == 2
        assert message in refused.output
        assert not (tmp_path / "o").exists()
    path = str(scenario_file(tmp_path))
    for options in (["--precision", "2"], ["--precision", "0.1", "--measure", "regret"], ["--target-wait", "-1"]):
        refused = program.invoke(app, ["run", path, *options, "--out", str(tmp_path / "o")])
        assert refused.exit_code == 2, refused.output
        assert "must" in refused.output


def test_the_command_prints_measures_with_units(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, '[units]\ntime = "hours"\nmoney = "euros"\n')
    out = ["--out", str(tmp_path / "out"), "--jobs", "1", "--target-wait", "0.5"]
    shown = CliRunner().invoke(app, ["run", str(path), "--measures", *out])
    assert shown.exit_code == 0, shown.output
    for words in ("measures of ucrl-ac", "mean wait (hours)", "95% wait (hours)", "served within 0.5 (%)"):
        assert words in shown.output
    assert "earned per hour (euros)" in shown.output
    assert "gave up" not in shown.output
    told = json.loads(CliRunner().invoke(app, ["run", str(path), "--json", *out]).stdout)["results"][0]["measures"]
    study = run_scenario(with_run(qu.load_scenario(path), target_wait=0.5), tmp_path / "out", jobs=1)[0]
    frame = study.measures().set_index(["measure", "job_class"])
    for measure, spreads in told.items():
        for name, spread in zip(("all", "gold", "basic"), [spreads["all"], *spreads["classes"]], strict=False):
            mean = frame.loc[(measure, name), "mean"]
            assert spread["mean"] == mean or (spread["mean"] is None and np.isnan(mean))
    assert [len(told[measure]["classes"]) for measure in ("service_level", "utilisation")] == [2, 0]
