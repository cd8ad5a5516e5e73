"""Agents of Stable-Baselines3: in control as they are, and from files that somebody trusts."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from agent_scenarios import QUEUE, RUN
from click.testing import CliRunner
from typer.main import get_command

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.learning.agent_files import load_model
from queueing_ucrl.learning.observations import Observations

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is an extra: queueing_ucrl[agents]")
pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is an extra: queueing_ucrl[agents]")

SCENARIO = f"""{QUEUE}
[[controller]]
name = "agent"
file = "agent.zip"
{RUN}
seed = 3
"""


class Spaces(gymnasium.Env):
    """What it observes and does; nobody steps it."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, dtype=np.float32), {}


@pytest.fixture(scope="module", params=["PPO", "DQN"])
def model(request):
    import stable_baselines3

    kind = getattr(stable_baselines3, request.param)
    made = kind("MlpPolicy", Spaces(), seed=4, device="cpu", policy_kwargs={"net_arch": [8]})
    made.exploration_rate = 0.5  # of DQN, as after some learning
    return made


def test_a_network_in_control_is_the_table_of_its_best_actions(model):
    queue = qu.Queue(2, 6, 0.5, [qu.JobClass("gold", 0.8, 20.0), qu.JobClass("basic", 1.6, 4.0)])
    rows = Observations(6, 2).grid()
    admits = np.array([model.predict(row, deterministic=True)[0] for row in rows]).reshape(6, 2)
    told = {"horizon": 60.0, "seed": 3, "log": True}
    fixed = qu.simulate(queue, qu.Policy(admits), **told)
    assert qu.simulate(queue, qu.Agent(model), engine="compiled", **told).events.equals(fixed.events)
    with pytest.warns(qu.GuaranteeWarning):
        asked = qu.simulate(queue, qu.Agent(model, tabulated=False), **told)
    assert asked.events.equals(fixed.events)


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
def test_its_chance_is_the_controllers(model):
    queue = qu.Queue(2, 6, 0.5, [qu.JobClass("gold", 0.8, 20.0), qu.JobClass("basic", 1.6, 4.0)])
    agent = qu.Agent(model, deterministic=False)
    first, again = (qu.simulate(queue, agent, horizon=60.0, seed=3, log=True).events for _ in range(2))
    assert first.equals(again)
    assert {"admit", "reject"} <= set(first["event"])


def test_a_trusted_file_runs_as_the_agent_that_was_saved(model, tmp_path):
    (tmp_path / "x.toml").write_text(SCENARIO)
    model.save(tmp_path / "agent.zip")
    content = (tmp_path / "agent.zip").read_bytes()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    command = ["run", str(tmp_path / "x.toml"), "--json", "--no-report", "--jobs", "1", "--out", str(tmp_path / "out")]
    for word in ("agent.zip", digest):
        result = CliRunner().invoke(get_command(app), [*command, "--trust", word])
        assert result.exit_code == 0, result.output
        assert digest in result.stderr
    told = json.loads(result.stdout)["results"][0]
    table = qu.Agent(load_model(content)).made_for(qu.load_scenario(tmp_path / "x.toml").system)
    queue = qu.load_scenario(tmp_path / "x.toml").queue
    study = qu.replicate(queue, [table], horizon=60.0, replications=2, seed=3, jobs=1)
    assert told["regret"]["gap"]["mean"] == pytest.approx(study.samples(0, "gap")[:, -1].mean(), rel=1e-12)
    assert told["engine"] == "compiled"
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert digest.removeprefix("sha256:") in json.dumps(manifest)
