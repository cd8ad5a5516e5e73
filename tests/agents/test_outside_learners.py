"""Agents that learn online: on the jobs of `simulate`, from the first arrival, their losses as in its accounts."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import queueing_ucrl as qu
from queueing_ucrl.paper import agents, outside_learners
from queueing_ucrl.paper.outside_learners import SHOWN, Learner, check_installed, run_online

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is an extra: python -m pip install 'queueing_ucrl[rl]'")
from queueing_ucrl.paper.agents import CANDIDATES, AgentTrial, seventh_world  # noqa: E402
from queueing_ucrl.paper.work import Work  # noqa: E402

QUEUE = qu.Queue(2, 8, 0.5, [qu.JobClass("gold", 0.8, 20.0, qu.Linear(0.3)), qu.JobClass("basic", 1.6, 4.0)])
TIMES = np.array([10.0, 25.0, 40.0])


@pytest.mark.parametrize("rule", ["admit-all", "trunk-reservation"])
def test_losses_and_earnings_are_those_of_the_same_decisions_in_a_run(rule):
    levels = (8, 8) if rule == "admit-all" else (3, 2)
    world = outside_learners.online_world(QUEUE, 40.0, seed=3, replication=2)
    _, info = world.reset(seed=99)  # a library's own seed changes nothing
    while not world.over:
        assert set(info) == set(SHOWN)  # it is not shown what is best
        *_, info = world.step(int(info["in_system"] < levels[info["job_class"]]))
    told = {"horizon": 40.0, "seed": 3, "replication": 2, "grid": TIMES}
    run = qu.simulate(QUEUE, qu.Policy.trunk_reservation(levels, 8), **told)
    lost = [world.noted.lost_by(time) for time in TIMES]
    assert lost == pytest.approx(run.regret("gap")["regret"].tolist(), rel=1e-12)
    assert lost[-1] > 0
    assert world.noted.earned == run.rewards("realised_reward")["reward"].iloc[-1]


@pytest.mark.parametrize("kind", ["q-learning", "actor-critic", "certainty-equivalent"])
def test_the_same_numbers_twice_and_others_for_other_jobs(kind):
    learner = Learner(kind, CANDIDATES[kind][0] if kind in CANDIDATES else {})
    first, again, other = (run_online(learner, QUEUE, 40.0, 3, k, TIMES) for k in (0, 0, 1))
    assert np.array_equal(first.lost, again.lost)
    assert (first.earned, first.table) == (again.earned, again.table)
    assert np.all(np.diff(first.lost) >= 0)
    assert first.earned != other.earned


def test_tabular_agents_find_what_is_plain():
    """Jobs that pay nothing and cost much are turned away, jobs that pay are let in where there is room for all."""
    queue = qu.Queue(4, 4, 2.0, [qu.JobClass("good", 1.0, 1.0), qu.JobClass("bad", 4.0, 0.01, qu.Linear(0.0))])
    full = qu.Queue(1, 1, 0.2, list(queue.classes))  # the bad stand in the way of the good
    for kind, k in (("q-learning", 0), ("actor-critic", 2)):
        learner = Learner(kind, CANDIDATES[kind][k])
        easy = run_online(learner, queue, 300.0, 1, 0, TIMES).table
        assert easy.admits[0, 0]
        assert not run_online(learner, full, 3000.0, 1, 0, TIMES).table.admits[0, 1]


def test_a_world_without_an_optimum_has_earnings_and_no_losses():
    episode = run_online(Learner("q-learning", CANDIDATES["q-learning"][0]), seventh_world(), 40.0, 1, 0, TIMES)
    assert np.isnan(episode.lost).all()
    assert np.isfinite(episode.earned)


def test_a_trial_is_taken_from_its_file_and_made_again_where_that_is_damaged_or_of_another(tmp_path):
    learner = Learner("q-learning", CANDIDATES["q-learning"][0])
    trial = AgentTrial(tmp_path / "x.json", "key", learner, QUEUE, 40.0, 1, 0, tuple(TIMES.tolist()), None)
    made = trial.run()
    assert 0 < made["greedy"] <= 1
    content = trial.file.read_bytes()
    trial.file.write_bytes(content.replace(b'"steps": ', b'"steps": 1'))
    assert trial.run()["steps"] != made["steps"]  # as the file says
    for damaged in (content[:50], b"[]", content.replace(b'"key": "key"', b'"key": "other"')):
        trial.file.write_bytes(damaged)
        assert trial.run() == made
    assert trial.file.read_bytes() == content


def test_what_is_not_installed_is_told(monkeypatch):
    def version(name):
        if name == "stable_baselines3":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(outside_learners, "version", version)
    with pytest.raises(ValueError, match="stable_baselines3 is not installed: python -m pip install 'queueing_ucrl"):
        check_installed()


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_deep_learners_decide_from_the_first_arrival_to_the_horizon(kind):
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is an extra: queueing_ucrl[agents]")
    short = {"n_steps": 16, "batch_size": 16, "n_epochs": 1} if kind == "ppo" else {"learning_starts": 10}
    learner = Learner(kind, {**short, "width": 8})
    first, again = (run_online(learner, QUEUE, 20.0, 3, 0, TIMES) for _ in range(2))
    assert np.array_equal(first.lost, again.lost)
    assert first.table == again.table
    events = qu.simulate(QUEUE, "admit-all", horizon=20.0, seed=3, log=True).events["event"]
    assert 0 < first.steps <= events.isin(["admit", "reject", "block"]).sum()


def fake_run(learner, system, horizon, seed, replication, times):
    """As if it had learned: what it lost is its options and replication, its table admits a class less or all."""
    worth = 10.0 * list(CANDIDATES).index(learner.kind) if learner.kind in CANDIDATES else 0.0
    rank = [json.dumps(one) for one in CANDIDATES.get(learner.kind, ())]
    worth += 1.0 + (rank.index(json.dumps(learner.options)) * -1.0 + 5.0 if rank else 0.0) + replication % 2
    admits = np.ones((system.capacity, len(system.classes)), dtype=bool)
    admits[:, 1] = learner.kind != "dqn"
    return outside_learners.Episode(worth * times / horizon, 50.0 - worth, 7, qu.Policy(admits))


def test_the_whole_comparison_is_put_together_from_its_trials(tmp_path, monkeypatch):
    """Of each kind the last candidate loses least here; intervals and shares are those of the trials."""
    best = SimpleNamespace(policy=SimpleNamespace(control_levels=(20, 10)), gain=qu.Estimate(1.0, 0.1, 2))
    for name, value in (
        ("run_online", fake_run),
        ("check_installed", lambda: {"stable_baselines3": "0"}),
        ("optimise", lambda *_, **__: best),
        ("LONG", 50.0),
    ):
        monkeypatch.setattr(agents, name, value)
    agents.reproduce(Work(tmp_path / "out", 20, 1e4, jobs=1))
    table = pd.read_csv(tmp_path / "out" / "agents.csv").set_index(["world", "agent"])
    assert len(table) == 7 * 6
    learners = {kind: Learner(kind, options[-1]) for kind, options in CANDIDATES.items()}
    learners["admit-all"] = Learner("admit-all")
    queue = qu.load_scenario("paper-s20-mu0.3").system
    for kind, learner in learners.items():
        row = table.loc[("S = 20, µ = 0.3", kind)]
        episodes = [fake_run(learner, queue, 100.0, 1, k, np.array([100.0])) for k in range(2)]
        lost = [float(one.lost[-1]) for one in episodes]
        assert row["lost"] == pytest.approx(np.mean(lost))
        assert row["lost_half_interval"] == pytest.approx(scipy.stats.t.ppf(0.975, 1) * np.std(lost, ddof=1) / 2**0.5)
        gain = qu.evaluate(queue, episodes[0].table).gain / qu.solve(queue).gain
        assert row["greedy"] == row["greedy_worst"] == pytest.approx(gain)
    assert table.loc[("S = 20, µ = 0.3", "dqn"), "greedy"] < table.loc[("S = 20, µ = 0.3", "ppo"), "greedy"]
    assert (tmp_path / "out" / "agents.png").stat().st_size > 10_000
