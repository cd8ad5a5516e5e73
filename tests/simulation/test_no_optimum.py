"""A run needs no optimum: where none is known there are rewards, no regret, and the reason."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.trial import TrialResult
from queueing_ucrl.report.study_panels import gain_panel, regret_panel
from queueing_ucrl.solvers import optimum as optima

SCENARIOS = Path(__file__).parents[2] / "scenarios"
ENGINES = ["simpy", "compiled"]
PATTERNS = {
    "sinusoid": qu.Sinusoid(0.7, 30.0, 1.0),
    "steps": qu.Steps([5.0, 20.0], [1.0, 0.0, 2.0], period=40.0),
    "steps that average above 1": qu.Steps([5.0], [0.5, 9.5], period=10.0),
    "steps that come once": qu.Steps([50.0], [1.0, 0.3]),
}
CONTROLLERS = ["admit-all", "random", "oracle", "oracle-following", "certainty-equivalent", "thompson"]


def drifting(pattern: qu.ArrivalPattern, rate: float = 1.0) -> qu.Queue:
    a, b = qu.JobClass("a", rate, 10.0, qu.Linear(0.5), pattern), qu.JobClass("b", 0.8, 4.0, qu.Linear(0.2))
    return qu.Queue(3, 8, 0.5, [a, b])


def unsolvable(monkeypatch: pytest.MonkeyPatch) -> qu.Queue:
    """A queue that no solver call for an optimum gets through (its rate makes it one that nobody has asked for)."""

    def fail(queue: qu.Queue) -> None:
        raise qu.SolverError("two policies that cannot be told apart")

    monkeypatch.setattr(optima, "solve", fail)
    optima.optimum.forget()
    return drifting(qu.Steady(), rate=1.23456)


@pytest.fixture(autouse=True)
def _forget() -> object:
    yield
    optima.optimum.forget()


@pytest.mark.filterwarnings("ignore::queueing_ucrl.simulation.simulate.GuaranteeWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_drifting_queue_runs_without_an_optimum(pattern, controller, engine):
    run = qu.simulate(drifting(pattern), controller, horizon=200.0, seed=4, engine=engine, log=True, grid=[70.0])
    assert run.best is None
    assert "rates change in time" in run.no_optimum
    summary = json.loads(json.dumps(run.summary(), allow_nan=False))
    assert summary["optimal_gain"] is summary["last_policy_gain"] is None
    assert summary["no_optimum"] == run.no_optimum
    assert set(summary["regret"].values()) == {None}
    assert run.episodes["gain"].isna().all()
    assert run.episodes["truth_inside"].isna().all()
    divided = [partial(run.regret, "gap", by="class"), partial(run.regret, "gap", by="cause")]
    for ask in (run.regret, *divided, partial(run.regret, times=[10.0]), run.decomposition):
        with pytest.raises(ValueError, match="no regret: the arrival rates change in time"):
            ask()
    events = run.events
    for kind, column in (("expected_reward", "expected_reward"), ("realised_reward", "reward")):
        early = events[events["time"] < 70.0]
        paid = early["cost"].sum() if kind == "realised_reward" else 0.0
        assert run.rewards(kind)["reward"].iloc[0] == pytest.approx(early[column].sum() - paid, rel=1e-9)
        times = [70.0, 200.0]
        assert run.rewards(kind, times=times)["reward"].tolist() == run.rewards(kind)["reward"].tolist()
    assert summary["expected_reward"] == run.rewards()["reward"].iloc[-1]
    assert summary["reward"] == pytest.approx(run.rewards("realised_reward")["reward"].iloc[-1], rel=1e-12)
    with pytest.raises(ValueError, match="kind must be one of expected_reward, realised_reward, got 'gap'"):
        run.rewards("gap")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("controller", ["admit-all", "random", qu.TrunkReservation((8, 4))])
def test_a_controller_that_asks_for_no_optimum_runs_where_the_solver_fails(monkeypatch, controller, engine):
    queue = unsolvable(monkeypatch)
    run = qu.simulate(queue, controller, horizon=100.0, seed=1, engine=engine)
    assert run.best is None
    assert run.rewards()["reward"].iloc[-1] > 0
    assert run.summary()["last_policy_gain"] == pytest.approx(
        qu.evaluate(queue, run.ledger.segments[-1].policy).gain, rel=1e-12
    )
    with pytest.raises(ValueError, match=r"no regret: the solver found no best policy.*cannot be told apart"):
        run.regret()


def test_a_study_of_a_queue_that_the_solver_fails_on(monkeypatch):
    study = qu.replicate(
        unsolvable(monkeypatch), ["admit-all", "random"], horizon=100.0, replications=3, seed=1, jobs=1
    )
    assert (study.rewards().groupby("controller").last()["mean"] > 0).all()
    for ask in (study.regret, lambda: study.differences("random", "gap"), lambda: study.samples(0, "pseudo")):
        with pytest.raises(ValueError, match="no regret: the solver found no best policy"):
            ask()


def test_an_optimum_is_that_of_the_queue_and_is_found_once(monkeypatch):
    asked = []
    monkeypatch.setattr(optima, "solve", lambda queue: asked.append(queue) or qu.solve(queue))
    optima.optimum.forget()
    queues = [drifting(qu.Steady(), rate) for rate in (1.0, 2.0)]
    for queue in (*queues, *queues):
        best = qu.simulate(queue, "admit-all", horizon=10.0).best
        assert best.gain == qu.solve(queue).gain
    assert asked == queues


def study_of(pattern: qu.ArrivalPattern) -> qu.Study:
    return qu.replicate(
        drifting(pattern), ["oracle-following", "admit-all", "random"], horizon=200.0, replications=4, seed=3, jobs=1
    )


def test_rewards_and_their_differences_are_those_of_the_runs():
    study = study_of(PATTERNS["sinusoid"])
    for kind in ("expected_reward", "realised_reward"):
        runs = [
            [qu.simulate(cell.queue, cell.controller, horizon=200.0, seed=3, replication=r) for r in range(4)]
            for cell in study.cells
        ]
        samples = np.array([[run.rewards(kind)["reward"] for run in row] for row in runs])
        for k in range(3):
            np.testing.assert_array_equal(study.samples(k, kind), samples[k])
        ends = study.rewards(kind).groupby("controller", sort=False).last()
        np.testing.assert_allclose(ends["mean"], samples[:, :, -1].mean(axis=1), rtol=1e-12)
        assert ((ends["low"] < ends["mean"]) & (ends["mean"] < ends["high"])).all()
        more = study.differences("oracle-following", kind).groupby("controller", sort=False).last()
        np.testing.assert_allclose(more["mean"], (samples[1:] - samples[0])[:, :, -1].mean(axis=1), rtol=1e-9)
    assert {"expected_reward", "realised_reward"} < set(study.curves().columns)
    assert not {"gap", "expected", "pseudo", "wrongly_admitted"} & set(study.curves().columns)
    for cell in study.summary():
        assert cell["optimal_gain"] is None
        assert cell["no_optimum"]
        assert set(cell["regret"]["gap"].values()) == {None}


def test_wrong_kinds_are_told():
    study = study_of(PATTERNS["steps"])
    with pytest.raises(ValueError, match="kind must be one of realised, expected, gap, pseudo, got 'expected_reward'"):
        study.regret("expected_reward")
    with pytest.raises(ValueError, match="kind must be one of expected_reward, realised_reward, got 'gap'"):
        study.rewards("gap")
    with pytest.raises(ValueError, match=r"kind must be one of realised, .*, realised_reward, got 'total'"):
        study.differences("random", "total")


@pytest.mark.parametrize("pattern", [qu.Steady(), PATTERNS["steps"]], ids=["steady", "drifting"])
def test_a_trial_s_file_gives_back_what_was_written(pattern, tmp_path):
    result = study_of(pattern).results[2][1]
    result.write(tmp_path / "trial.parquet", "key")
    (tmp_path / "episodes.parquet").write_bytes(result.episodes)
    again = TrialResult.read(tmp_path / "trial.parquet", "key", tmp_path / "episodes.parquet")
    assert again.summary == result.summary
    for name in ("regret", "causes", "rewards"):
        before, after = getattr(result, name), getattr(again, name)
        assert list(before) == list(after)
        for key in before:
            np.testing.assert_array_equal(before[key], after[key])
    assert bool(again.regret) == isinstance(pattern, qu.Steady)


def test_with_an_optimum_rewards_and_regrets_are_two_sides_of_one_thing():
    run = qu.simulate(drifting(qu.Steady()), "random", horizon=300.0, seed=2)
    assert run.no_optimum == ""
    for kind in ("expected", "realised"):
        best = run.curve.times * run.best.gain
        np.testing.assert_array_equal(run.regret(kind)["regret"], best - run.rewards(f"{kind}_reward")["reward"])


def test_of_a_sweep_only_points_with_an_optimum_have_regret():
    steady, moving = study_of(qu.Steady()), study_of(PATTERNS["steps"])
    cells = [replace(cell, values={"x": k}, point=k) for k, s in enumerate((steady, moving)) for cell in s.cells]
    study = qu.Study(cells, steady.results + moving.results)
    assert set(study.regret("gap")["x"]) == set(study.differences("random", "gap")["x"]) == {0}
    assert set(study.rewards()["x"]) == {0, 1}
    assert study.curves().groupby("x")["gap"].count().tolist() == [3 * 4 * 200, 0]
    assert study.samples(0, "gap").shape == (4, 200)
    with pytest.raises(ValueError, match="oracle-following: no regret: the arrival rates change"):
        study.samples(3, "gap")


def curves(axes) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_ydata() for line in axes.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize("pattern", [qu.Steady(), PATTERNS["sinusoid"]], ids=["steady", "drifting"])
def test_the_figure_shows_what_was_earned(pattern):
    """The right panel is the reward over the time; the left one the gap, or the reward minus that of the first."""
    study = study_of(pattern)
    left, right = Figure().subplots(1, 2)
    regret_panel(left, study, 0)
    gain_panel(right, study, 0)
    times = study.results[0][0].times
    late = times >= 2.0
    steady = isinstance(pattern, qu.Steady)
    assert ("best possible" in curves(right)) == steady
    earned = {cell.name: study.samples(k, "expected_reward") for k, cell in enumerate(study.cells)}
    for k, cell in enumerate(study.cells):
        np.testing.assert_allclose(curves(right)[cell.name], (earned[cell.name].mean(axis=0) / times)[late], rtol=1e-12)
        lost = study.samples(k, "gap") if steady else earned[cell.name] - earned["oracle-following"]
        np.testing.assert_allclose(curves(left)[cell.name], lost.mean(axis=0), rtol=1e-9, atol=1e-9)
    assert left.get_ylabel() == ("reward lost so far" if steady else "difference in reward so far")


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_what_needs_one_model_refuses_rates_that_change(pattern):
    queue = drifting(pattern)
    policy = qu.Policy.admit_all(8, 2)
    asked = (
        qu.solve,
        lambda queue: qu.solve(queue, "vi"),
        lambda queue: qu.solve(queue, "lp"),
        qu.diameter,
        qu.diameter_lower_bound,
        lambda queue: qu.evaluate(queue, policy),
        lambda queue: qu.performance(queue, policy),
        lambda queue: qu.policy_iteration_bound(queue, 1.0, (1.0, 4.0), 10.0),
    )
    for ask in asked:
        with pytest.raises(ValueError, match=r"rates change in time.*queue.on_average\(\)"):
            ask(queue)
    assert qu.solve(queue.on_average()).gain > 0


def test_the_mean_of_a_queue_is_over_the_long_run():
    rates = [drifting(pattern).on_average().arrival_rates[0] for pattern in PATTERNS.values()]
    assert rates == pytest.approx([1.0, 1.125, 5.0, 0.3], rel=1e-12)
    steady = drifting(qu.Steady())
    assert steady.on_average() is steady


TEXT = """
title = "Waves"
[queue]
servers = 2
capacity = 6
service_rate = 1.0
[[class]]
name = "a"
arrival_rate = 1.0
reward = 5.0
pattern = { kind = "steps", times = [5.0], factors = [0.5, 9.5]PERIOD }
[[controller]]
name = "admit-all"
[[controller]]
name = "oracle"
[run]
horizon = 200.0
replications = 3
seed = 4
grid_points = 20
"""


@pytest.fixture(params=[", period = 10.0", ""], ids=["periodic", "once"])
def scenario(request, tmp_path):
    path = tmp_path / "waves.toml"
    path.write_text(TEXT.replace("PERIOD", request.param), encoding="utf-8")
    return path


def program(*arguments: object):
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in arguments])
    assert "Traceback" not in result.output
    return result


def test_solve_says_that_it_is_for_the_means(scenario):
    words = " ".join(program("solve", scenario).stdout.split())
    assert "rates change in time" in words
    assert "for their means" in words
    assert "no policy is promised" in words
    assert "best that any policy can earn" not in words
    data = json.loads(program("solve", scenario, "--json").stdout)
    queue = qu.load_scenario(scenario).queue
    best = qu.solve(queue.on_average())
    assert data["rates"] == "mean"
    assert data["gain"] == best.gain
    assert data["load"] == queue.on_average().load
    assert data["classes"][0]["arrival_rate"] == queue.on_average().arrival_rates[0]
    if math.isinf(queue.classes[0].pattern.period):
        assert data["drifting_gain"] is None
        assert "needs a horizon" in words
    else:
        assert data["drifting_gain"] == qu.Drift(queue).gain(best.policy)
        assert f"of the same policy as they change: {data['drifting_gain']:.10g}, in the long run" in words


def test_solve_of_a_steady_queue_promises_the_best():
    data = json.loads(program("solve", SCENARIOS / "quickstart.toml", "--json").stdout)
    assert (data["rates"], data["drifting_gain"]) == ("steady", None)
    assert "the best that any policy can earn" in program("solve", SCENARIOS / "quickstart.toml").stdout


@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_drifting_study_tells_rewards_and_no_regret(command, scenario, tmp_path):
    chosen = ["--controllers", "admit-all,oracle"] if command == "compare" else []
    result = program(command, scenario, *chosen, "--out", tmp_path / "out", "--jobs", 1)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "No regret is shown: the arrival rates change in time" in words
    assert "reward minus that of admit-all" in words
    for absent in ("would earn", "pseudo", "gap"):
        assert absent not in words
    assert "oracle: the arrival rates change in time; it keeps to the best policy for their means" in result.stderr
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert "rewards.parquet" in files
    assert "regret.parquet" not in files
    differences = pd.read_parquet(tmp_path / "out" / "differences.parquet")
    assert set(differences["account"]) == {"expected_reward", "realised_reward"}
    study = qu.replicate(qu.load_scenario(scenario).queue, ["admit-all"], horizon=200.0, replications=3, seed=4, jobs=1)
    earned = pd.read_parquet(tmp_path / "out" / "rewards.parquet")
    last = earned[(earned["controller"] == "admit-all") & (earned["account"] == "expected_reward")]["mean"].iloc[-1]
    assert last == study.rewards()["mean"].iloc[-1]
    data = json.loads(program(command, scenario, *chosen, "--out", tmp_path / "out", "--jobs", 1, "--json").stdout)
    for cell in data["results"]:
        assert cell["optimal_gain"] is None
        assert cell["no_optimum"]
        assert cell["expected_reward"]["mean"] / 200.0 == pytest.approx(cell["gain"]["mean"], rel=1e-12)


def test_best_stationary_on_periods_too_far_apart_ends_at_once(tmp_path):
    text = TEXT.replace("PERIOD", ", period = 24.0").replace('name = "oracle"', 'name = "best-stationary"')
    pattern = '{ kind = "sinusoid", amplitude = 0.5, period = 1e-6 }'
    fast = f'[[class]]\nname = "b"\narrival_rate = 1.0\nreward = 1.0\npattern = {pattern}\n[[controller]]\n'
    path = tmp_path / "fast.toml"
    path.write_text(text.replace("[[controller]]\n", fast, 1), encoding="utf-8")
    result = program("run", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "best-stationary: rates that change" in result.stderr
    assert not (tmp_path / "out").exists()
