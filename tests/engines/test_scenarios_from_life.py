"""The scenarios beyond M/M/c/S that come with the package: the same on both engines, and clear answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from twin_engines import differing, left_behind, new_engine
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.world import World
from queueing_ucrl.solvers.beyond import gain_beyond

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
# scenario -> (horizon of a short run, what must happen in it)
WORLDS = {
    "call-centre-day": (16.5, {"abandon", "shift"}),
    "dispatch": (12.0, {"abandon"}),
    "emergency-department": (200.0, {"abandon", "shift"}),
    "llm-inference": (400.0, {"abandon"}),
    "spot-cluster": (20.0, {"breakdown", "repair", "resume"}),
}
EXACT = {"ev-charging-vans": (40.0, {"block"}), "network-bursts": (200.0, {"environment", "reject"})}
each_world = pytest.mark.parametrize("name", WORLDS)


def loaded(name: str) -> qu.Scenario:
    return qu.load_scenario(ROOT / "scenarios" / f"{name}.toml")


def test_every_scenario_without_a_markov_chain_is_among_them() -> None:
    shipped = {path.stem for path in (ROOT / "scenarios").glob("*.toml") if loaded(path.stem).system.not_markov}
    assert shipped == {*WORLDS, *EXACT}


@pytest.mark.parametrize("name", [*WORLDS, *EXACT])
def test_both_engines_agree_and_what_the_file_is_about_happens(name: str) -> None:
    horizon, told = {**WORLDS, **EXACT}[name]
    results = []
    for kind in (World, Kernel):
        controller: qu.Controller = qu.AdmitAll() if name in WORLDS else qu.Oracle()
        engine = new_engine(kind, loaded(name).system, controller, horizon=horizon, seed=3, grid=[horizon / 2])
        results.append(left_behind(engine, engine.run()))
    assert differing(*results) == []
    seen = {EVENTS[event] for event in np.concatenate(engine.log.blocks)["event"].tolist()}  # type: ignore[union-attr]
    assert told | {"admit", "start", "depart"} <= seen


@each_world
def test_solve_says_why_not_and_what_to_do(name: str) -> None:
    solved = CliRunner().invoke(app, ["solve", str(ROOT / "scenarios" / f"{name}.toml")])
    assert solved.exit_code == 2
    assert len(solved.stderr.splitlines()) == 1
    assert "`queueing-ucrl optimise` finds the best table by simulation" in solved.stderr


@pytest.mark.parametrize("name", ["call-centre-day", "llm-inference"])
def test_optimise_answers(name: str) -> None:
    short = str(60.0 / loaded(name).system.total_arrival_rate)
    options = ["--horizon", short, "--precision", "0.5", "--jobs", "1", "--json"]
    found = CliRunner().invoke(app, ["optimise", str(ROOT / "scenarios" / f"{name}.toml"), *options])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["comparator"] == "best table found"


@each_world
def test_the_plan_of_the_page_is_the_plan_of_the_file(name: str) -> None:
    """What the M/M plan promises is exact, so the page must have this number."""
    promised = qu.solve(loaded(name).system.queue.on_average()).gain
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| [{name}]")]
    assert float(row.split("|")[2].replace(",", "").split()[0]) == pytest.approx(promised, rel=5e-4)


@each_world
def test_patterns_and_bursts_average_one(name: str) -> None:
    """The rates in the files are the long-run rates."""
    system = loaded(name).system
    for job_class in system.classes:
        assert job_class.pattern.mean == pytest.approx(1.0, abs=1e-3)
    if name == "llm-inference":
        assert system.total_arrival_rate == pytest.approx(5.53 + 2.57, rel=1e-3)
    if name == "dispatch":
        assert system.total_arrival_rate == pytest.approx(54.0 + 60.0 + 12.0)


# ---- richer ones with an exact optimum


@pytest.mark.parametrize("name", EXACT)
def test_solve_gives_the_optimum_and_what_the_plan_earns(name: str) -> None:
    solved = CliRunner().invoke(app, ["solve", str(ROOT / "scenarios" / f"{name}.toml"), "--json"])
    assert solved.exit_code == 0, solved.output
    told = json.loads(solved.stdout)
    system = loaded(name).system
    assert told["gain"] == qu.solve(system).gain
    assert told["plan"]["promised"] == qu.solve(system.queue).gain
    assert told["plan"]["gain"] < 0.96 * told["gain"]
    if told["sees"] == "counts":
        assert told["plan"]["gain"] < told["best_table"]["gain"] < told["gain"]
    text = CliRunner().invoke(app, ["solve", str(ROOT / "scenarios" / f"{name}.toml")]).stdout
    for value in (told["gain"], told["plan"]["gain"], told["plan"]["promised"]):
        assert f"{value:.6g}" in text
        assert f"{value:.5g}" in PAGE, value


@pytest.mark.parametrize("name", EXACT)
def test_the_oracle_earns_the_optimum_and_the_plan_what_is_told(name: str) -> None:
    """20 replications; a fails for one seed in a thousand each (Student's t)."""
    system = loaded(name).system
    best, plan = qu.solve(system), qu.solve(system.queue).policy
    assert qu.Oracle().model_gap(system) == ""
    horizon = 4000.0 / system.total_arrival_rate
    for controller, gain in (("oracle", best.gain), (plan, gain_beyond(system, plan))):
        earned = []
        for k in range(20):
            run = qu.simulate(system, controller, horizon=horizon, seed=3, replication=k, grid=[0.1 * horizon, horizon])
            early, late = run.rewards("realised_reward")["reward"].to_numpy()
            earned.append((late - early) / (0.9 * horizon))
        assert stats.ttest_1samp(earned, gain).pvalue > 1e-3
