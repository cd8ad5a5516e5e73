"""Agents that learn while they are in control: one run each, from the first arrival to the horizon.

All are told what a controller is told: the number of jobs, the class at the door, the time, and what an admission is
worth, r_i(s) (where nobody knows that: what was paid and charged since). What their decisions lost against the best is
noted beside them and never shown to them. Jobs are those of `simulate` with the same seed and replication.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray
from queueing_ucrl.learning.agents import Agent
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.seeding import Randomness

if TYPE_CHECKING:
    import gymnasium

SHOWN = ("time", "elapsed", "in_system", "job_class")
NEEDED = ("gymnasium", "torch", "stable_baselines3")


def check_installed() -> dict[str, str]:
    """The versions of what these agents need; a ValueError says what is missing."""
    found = {}
    for name in NEEDED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            raise ValueError(
                f"this experiment needs {', '.join(NEEDED)}, and {name} is not installed: "
                "python -m pip install 'queueing_ucrl[agents]'"
            ) from None
    return found


@dataclass(frozen=True)
class Learner:
    """One kind of agent with its options; a dataclass of plain data, for worker processes and files."""

    kind: str  # ppo, dqn, q-learning, actor-critic, or a controller's name
    options: dict[str, Any] = field(default_factory=dict)

    def told(self) -> str:
        """Its options in words."""
        return ", ".join(f"{key} {value}" for key, value in self.options.items()) or "as installed"


@dataclass(frozen=True)
class Episode:
    """What a run gave: the loss noted at each time, what was earned in all, and the table that it would follow then."""

    lost: FloatArray
    earned: float
    steps: int
    table: Policy


def run_online(
    learner: Learner, system: System, horizon: float, seed: int, replication: int, times: FloatArray
) -> Episode:
    """One run. What is lost is the gap of the wrong decisions (where the optimum is known), else nan."""
    if learner.kind not in KINDS:
        return _controller(learner, system, horizon, seed, replication, times)
    world = online_world(system, horizon, seed, replication)
    drawn = int(Randomness(seed, replication).controller().integers(2**31))
    if learner.kind in ("ppo", "dqn"):
        table = _stable_baselines(learner, world, drawn)
    else:
        table = KINDS[learner.kind](world, np.random.default_rng(drawn), **learner.options)
    noted = world.noted
    lost = np.array([noted.lost_by(time) for time in times])
    return Episode(lost, noted.earned, noted.steps, table)


def _controller(
    learner: Learner, system: System, horizon: float, seed: int, replication: int, times: FloatArray
) -> Episode:
    """A controller of ours on the same jobs, and the table that it has at the end."""
    from queueing_ucrl.simulation.simulate import simulate

    run = simulate(
        system,
        learner.kind,
        horizon=horizon,
        seed=seed,
        replication=replication,
        grid=times,
        options=learner.options,
    )
    lost = np.full(len(times), math.nan) if run.no_optimum else run.regret("gap").iloc[:, -1].to_numpy()
    return Episode(lost, float(run.curve.earned("realised_reward")[-1]), 0, run.ledger.segments[-1].policy)


class Noted:
    """What is noted of an agent's run, and not shown to it."""

    def __init__(self, knows_gaps: bool) -> None:
        self.knows_gaps = knows_gaps
        self.times: list[float] = []  # of the wrong decisions
        self.losses: list[float] = []
        self.earned = math.nan
        self.steps = 0

    def lost_by(self, time: float) -> float:
        """The gaps of all wrong decisions up to a time."""
        if not self.knows_gaps:
            return math.nan
        return math.fsum(self.losses[: int(np.searchsorted(self.times, time, side="right"))])


def online_world(system: System, horizon: float, seed: int, replication: int) -> Any:
    """The world of one replication as an environment: rewards as parts of the largest, losses noted."""
    import gymnasium

    from queueing_ucrl.gym.environment import AdmissionControl

    world_seed = seed

    class OnlineWorld(gymnasium.Env[Any, Any]):
        def __init__(self) -> None:
            expected = "expected" if not _reward_unknown(system) else "realised"
            self.inner = AdmissionControl(system=system, horizon=horizon, reward=expected)
            self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space
            self.scale = system.max_reward
            self.noted = Noted(self.inner.task.advice is not None)
            self.over = False
            self.info: dict[str, Any] = {}

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            """The replication from its beginning, whatever seed a library has in mind."""
            observation, self.info = self.inner.reset(seed=world_seed, options={"replication": replication})
            return observation, self._shown()

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            action, info = int(action), self.info
            if not self.over:
                self.noted.steps += 1
                if self.noted.knows_gaps and action != info["optimal_action"]:
                    self.noted.times.append(info["time"])
                    self.noted.losses.append(info["gap"])
            observation, reward, ended, truncated, self.info = self.inner.step(np.int64(action))
            if truncated and not self.over:
                self.noted.earned = self.info["episode_realised_reward"]
                self.over = True
            return observation, float(reward) / self.scale, ended, truncated, self._shown()

        def _shown(self) -> dict[str, Any]:
            return {key: self.info[key] for key in SHOWN}

    return OnlineWorld()


def _reward_unknown(system: System) -> bool:
    from queueing_ucrl.accounts.regret import no_expected_reward

    return bool(no_expected_reward(system))


def _stable_baselines(learner: Learner, world: gymnasium.Env[Any, Any], seed: int) -> Policy:
    """PPO or DQN of Stable-Baselines3, its `learn` from the first arrival to the horizon; then its greedy table."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    known: Any = world
    options = dict(learner.options)
    if "width" in options:
        width = options.pop("width")
        options["policy_kwargs"] = {"net_arch": [width, width]}

    class UpToTheHorizon(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            return not known.over

    system = known.inner.system
    algorithm = getattr(stable_baselines3, learner.kind.upper())
    model = algorithm("MlpPolicy", DummyVecEnv([lambda: world]), seed=seed, device="cpu", **options)
    rate = sum(c.arrival_process.rate for c in system.classes) * known.inner.horizon
    model.learn(math.ceil(rate + 6 * math.sqrt(rate) + 10), callback=UpToTheHorizon())
    return greedy_table(Agent(model.policy), system)


def greedy_table(agent: Agent, system: System) -> Policy:
    """What an agent would do in every state."""
    policy: Policy = agent.made_for(system).policy  # type: ignore[attr-defined]
    return policy


def q_learning(
    world: Any, rng: np.random.Generator, *, discount: float, exploration: float, power: float, first: float = 1.0
) -> Policy:
    """Q(s, i, a) by Watkins' rule in continuous time: + alpha (r + exp(-discount tau) max Q(next) - Q).

    alpha = (visits of the entry)^-power; exploration: the chance of a random action, as often as not the other one.
    Q begins at `first`, in parts of the largest reward, 1 or more is optimistic for jobs that are admitted.
    """
    system = world.inner.system
    shape = (system.capacity + 1, len(system.classes))
    values = np.zeros((*shape, 2))
    values[..., 1] = first
    visits = np.zeros((*shape, 2), dtype=np.int64)
    _, info = world.reset()
    while not world.over:
        s, i = info["in_system"], info["job_class"]
        action = int(values[s, i, 1] >= values[s, i, 0])
        if rng.random() < exploration:
            action = int(rng.random() < 0.5)
        _, reward, _, _, info = world.step(action)
        ahead = 0.0 if world.over else values[info["in_system"], info["job_class"]].max()
        visits[s, i, action] += 1
        step = float(visits[s, i, action]) ** -power
        values[s, i, action] += step * (reward + math.exp(-discount * info["elapsed"]) * ahead - values[s, i, action])
    return _table(values[..., 1] >= values[..., 0])


def actor_critic(world: Any, rng: np.random.Generator, *, critic: float, actor: float, falling: float = 0.0) -> Policy:
    """Average reward per time: delta = r - rho tau + V(next) - V; V + critic delta, preference + actor delta (a - p).

    p is the chance to admit, the logistic function of the preference of (s, i), 0 at first; rho is all that was earned
    by all the time. Both step sizes fall as visits^-falling.
    """
    system = world.inner.system
    shape = (system.capacity + 1, len(system.classes))
    values, preferences, visits = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    earned = 0.0
    _, info = world.reset()
    while not world.over:
        here = info["in_system"], info["job_class"]
        chance = 1.0 / (1.0 + math.exp(-preferences[here]))
        action = int(rng.random() < chance)
        _, reward, _, _, info = world.step(action)
        earned += reward
        if world.over:
            break
        delta = reward - earned / info["time"] * info["elapsed"] + values[info["in_system"], info["job_class"]]
        delta -= values[here]
        visits[here] += 1
        size = float(visits[here]) ** -falling
        values[here] += critic * size * delta
        preferences[here] = min(30.0, max(-30.0, preferences[here] + actor * size * delta * (action - chance)))
    return _table(preferences >= 0.0)


def _table(admits: BoolArray) -> Policy:
    """The rows in which there is room."""
    return Policy(admits[:-1])


KINDS: dict[str, Any] = {"ppo": None, "dqn": None, "q-learning": q_learning, "actor-critic": actor_critic}
