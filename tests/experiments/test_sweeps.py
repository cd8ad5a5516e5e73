"""Sweeps: a scenario lists values, the study runs over their product, and results carry them as columns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from small_studies import contents, scenario_file
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.campaign import run_scenario


def run(path: Path, out: Path, *more: str) -> dict:  # type: ignore[type-arg]
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--jobs", "1", "--json", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_a_sweep_runs_over_the_product_and_its_values_are_columns(tmp_path: Path) -> None:
    path = scenario_file(
        tmp_path,
        "[sweep]\nqueue.servers = [1, 2]\nclass.gold.arrival_rate = [0.5, 1.0, 2.0]\n",
        horizon="50.0",
        replications="2",
    )
    data = run(path, tmp_path / "out")
    expected = [
        {"queue.servers": servers, "class.gold.arrival_rate": rate} for servers in (1, 2) for rate in (0.5, 1.0, 2.0)
    ]
    assert [cell["values"] for cell in data["results"]] == expected
    for name in ("regret", "curves", "episodes"):
        table = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        points = table[["queue.servers", "class.gold.arrival_rate"]].drop_duplicates()
        assert points.to_dict("records") == expected, name
    assert len(list((tmp_path / "out").glob("regret-*.png"))) == 6


def test_a_point_of_a_sweep_has_the_numbers_of_its_own_scenario(tmp_path: Path) -> None:
    swept = scenario_file(
        tmp_path, "[sweep]\nqueue.service_rate = [0.4, 0.6]\ncontroller.first_episode = [5.0, 20.0]\n"
    )
    study, _ = run_scenario(qu.load_scenario(swept), tmp_path / "swept", jobs=1)
    (tmp_path / "alone").mkdir()
    alone = scenario_file(tmp_path / "alone", service_rate="0.6", first_episode="5.0")
    single, _ = run_scenario(qu.load_scenario(alone), tmp_path / "single", jobs=1)
    chosen = study.curves().query("`queue.service_rate` == 0.6 and `controller.first_episode` == 5.0")
    assert single.curves().equals(chosen[list(single.curves().columns)].reset_index(drop=True))


def test_every_key_of_run_may_be_swept_and_is_heeded(tmp_path: Path) -> None:
    path = scenario_file(
        tmp_path,
        "[sweep]\nrun.horizon = [40.0, 80.0]\nrun.seed = [1, 2]\nrun.replications = [2]\nrun.grid_points = [5]\n"
        'run.solver_latency = [3.0]\nrun.engine = ["simpy"]\nrun.grid_scale = ["linear"]\n',
    )
    study, _ = run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    assert len(study.cells) == 4
    for k, cell in enumerate(study.cells):
        values, times = cell.values, study.results[k][0].times
        assert (times[-1], len(times)) == (values["run.horizon"], values["run.grid_points"])
        assert times[0] == pytest.approx(values["run.horizon"] / values["run.grid_points"])
        assert len(study.results[k]) == values["run.replications"]
        assert study.results[k][0].summary["seed"] == values["run.seed"]
        assert study.results[k][0].summary["engine"] == values["run.engine"]
        assert cell.settings.solver_latency == values["run.solver_latency"]
    ends = study.regret("realised").query("time == 80.0")
    assert ends["run.seed"].tolist() == [1, 2]
    assert ends["mean"].nunique() == 2


def test_an_option_that_is_a_list_may_be_swept(tmp_path: Path) -> None:
    path = scenario_file(
        tmp_path,
        "[sweep]\ncontroller.arrival_rate_bounds = [[1.0, 4.0], [0.5, 8.0]]\n",
        horizon="50.0",
        replications="2",
    )
    study, _ = run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    found = pd.read_parquet(tmp_path / "out" / "regret.parquet")["controller.arrival_rate_bounds"]
    assert {tuple(item) for item in found} == {(1.0, 4.0), (0.5, 8.0)}
    assert len(study.differences("ucrl-ac")) == 0


def test_a_cost_inside_a_class_may_be_swept(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nclass.gold.holding_cost.rate = [0.1, 0.9]\n")
    points = qu.load_scenario(path).points
    assert [point.queue.classes[0].holding_cost for point in points] == [qu.Linear(0.1), qu.Linear(0.9)]


def test_a_swept_folder_can_be_continued(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nqueue.servers = [1, 2]\n", horizon="50.0")
    run(path, tmp_path / "one")
    run(path, tmp_path / "two")
    for trial in list((tmp_path / "two" / "trials").rglob("*.parquet"))[::2]:
        trial.unlink()
    run(path, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("queue.servers = 3", "sweep.queue.servers must be a list of values, not empty"),
        ("queue.servers = []", "sweep.queue.servers must be a list of values, not empty"),
        ("queue.nonsense = [1]", "queue.nonsense = 1 is not a known key"),
        ("kew.servers = [1]", "sweep.kew.servers is not a key of this scenario"),
        ("class.silver.reward = [1.0]", "sweep.class.silver.reward is not a key of this scenario"),
        ("queue.servers = [1, 0]", "with queue.servers = 0: queue.servers = 0 must be at least 1"),
        ("queue.servers = [1, 2.5]", "with queue.servers = 2.5: queue.servers = 2.5 must be a whole number"),
        ("controller.first_episode = [0.1]", "first_episode"),
        ("controller.speed = [1]", "speed"),
        ("sweep.queue = [1]", "is not a key of this scenario"),
        (".".join("a" * 500) + " = [1]", "tables are nested too deeply, at most 40 in one another"),
        ("queue.servers = [2, 3, 2]", "sweep.queue.servers must be a list of different values"),
        (f"queue.servers = {list(range(1, 102))}\nqueue.capacity = {list(range(1, 102))}", "more than 10000"),
    ],
)
def test_mistakes_in_a_sweep_are_named(sweep: str, message: str, tmp_path: Path) -> None:
    path = scenario_file(tmp_path, f"[sweep]\n{sweep}\n")
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_option_of_the_command_does_not_overrule_a_swept_value(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nrun.horizon = [40.0, 80.0]\n")
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out"), "--horizon", "10"])
    assert result.exit_code == 2
    assert "sweeps over run.horizon" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_sweep_may_be_over_controllers(tmp_path: Path) -> None:
    """One controller a point: nothing to compare with within it."""
    path = scenario_file(
        tmp_path, '[sweep]\ncontroller.name = ["oracle", "admit-all", "random"]\n', horizon="50.0", replications="2"
    )
    text = path.read_text()
    start, end = text.index("[controller]"), text.index("[run]")
    path.write_text(text[:start] + '[controller]\nname = "oracle"\n' + text[end:])
    data = run(path, tmp_path / "out")
    assert [cell["controller"] for cell in data["results"]] == ["oracle", "admit-all", "random"]
    assert [cell["values"] for cell in data["results"]] == [
        {"controller.name": name} for name in ("oracle", "admit-all", "random")
    ]
    assert not (tmp_path / "out" / "differences.parquet").exists()
    assert run(path, tmp_path / "out") == data
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "x"), "--controller", "oracle"])
    assert result.exit_code == 2
    assert "sweeps over controller.name" in result.stderr
    assert not (tmp_path / "x").exists()


def test_differences_are_to_the_first_controller_of_each_point(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nqueue.servers = [1, 2]\n", horizon="50.0", replications="2")
    text = path.read_text()
    start, end = text.index("[controller]"), text.index("[run]")
    lines = "".join(f'[[controller]]\nname = "{name}"\n' for name in ("oracle", "admit-all"))
    path.write_text(text[:start] + lines + text[end:])
    study, _ = run_scenario(qu.load_scenario(path), tmp_path / "out", jobs=1)
    written = pd.read_parquet(tmp_path / "out" / "differences.parquet")
    gap = written[written["account"] == "gap"].drop(columns="account").reset_index(drop=True)
    pd.testing.assert_frame_equal(gap, study.differences("oracle"), check_dtype=False)
    pd.testing.assert_frame_equal(study.differences(), study.differences("oracle"))


def test_swept_values_of_different_types_share_a_column(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "[sweep]\nclass.gold.reward = [3, 4.5]\n", horizon="50.0", replications="1")
    run(path, tmp_path / "out")
    assert set(pd.read_parquet(tmp_path / "out" / "regret.parquet")["class.gold.reward"]) == {3.0, 4.5}


def test_the_summary_and_the_manifest_name_the_engines_that_ran(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, '[sweep]\nrun.engine = ["simpy", "compiled"]\n', horizon="50.0", replications="2")
    data = run(path, tmp_path / "swept")
    assert [cell["engine"] for cell in data["results"]] == ["simpy", "compiled"]
    manifest = json.loads((tmp_path / "swept" / "manifest.json").read_text())
    assert manifest["engines"]["ucrl-ac"]["engine"] == "compiled and simpy"
    path = scenario_file(tmp_path, horizon="50.0", replications="2")
    run(path, tmp_path / "out", "--engine", "simpy")
    for count, expected in ((2, "simpy"), (3, "compiled and simpy")):  # found in the folder, and one more
        data = run(path, tmp_path / "out", "--engine", "compiled", "--replications", str(count))
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        assert data["results"][0]["engine"] == manifest["engines"]["ucrl-ac"]["engine"] == expected
