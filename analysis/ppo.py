"""PPO in one file of plain torch, on the vector form of the environment: `python analysis/ppo.py` (some minutes).

The objective is the gain, reward per unit of time: each reward is made r - rho * elapsed, with rho the running gain of
the last rollouts, and values are relative ones (no discount; generalized advantage estimation, Schulman et al. 2016).
What it learned is the greedy table, whose gain is computed exactly and printed beside the optimum.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
import torch
from torch import nn

import queueing_ucrl as qu
import queueing_ucrl.gym as qg
from queueing_ucrl.learning.observations import Rows


class Agent(nn.Module):
    """Two small networks: what to do, and what a state is worth."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(numbers, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
        self.critic = nn.Sequential(nn.Linear(numbers, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def choose(self, seen: torch.Tensor) -> torch.distributions.Categorical:
        return torch.distributions.Categorical(logits=self.actor(seen))

    def value(self, seen: torch.Tensor) -> torch.Tensor:
        return self.critic(seen).squeeze(-1)


def rollout(agent: Agent, envs: gymnasium.vector.VectorEnv, seen: Rows, steps: int) -> tuple[dict, Rows]:
    """`steps` decisions of every world; the last row of values is of what comes after."""
    kept: dict[str, list] = {name: [] for name in ("seen", "action", "log", "value", "reward", "elapsed", "over")}
    with torch.no_grad():
        for _ in range(steps):
            now = torch.as_tensor(seen)
            policy = agent.choose(now)
            action = policy.sample()
            somebody = now[:, 1:].any(dim=1)  # at the horizon nobody is at the door
            seen, reward, _, over, info = envs.step((action * somebody).numpy())
            kept["seen"].append(now)
            kept["action"].append(action)
            kept["log"].append(policy.log_prob(action))
            kept["value"].append(agent.value(now))
            for name, numbers in (("reward", reward), ("elapsed", info["elapsed"]), ("over", over)):
                kept[name].append(torch.as_tensor(numbers, dtype=torch.float32))
        kept["value"].append(agent.value(torch.as_tensor(seen)))
    return {name: torch.stack(rows) for name, rows in kept.items()}, seen


def advantages(data: dict, gain: float, scale: float, weight: float) -> torch.Tensor:
    """Sums of r - rho elapsed + h(next) - h, each step back weighing `weight` less; none goes beyond a horizon."""
    found, ahead = torch.zeros_like(data["reward"]), torch.zeros(data["reward"].shape[1])
    for t in reversed(range(len(found))):
        error = (data["reward"][t] - gain * data["elapsed"][t]) / scale + data["value"][t + 1] - data["value"][t]
        ahead = error + weight * (1.0 - data["over"][t]) * ahead
        found[t] = ahead
    return found


def improve(agent: Agent, optimizer: torch.optim.Optimizer, data: dict, advantage: torch.Tensor) -> None:
    """Some epochs of clipped steps on what was seen."""
    columns = [data[name].flatten(0, 1) for name in ("seen", "action", "log")]
    target = (advantage + data["value"][:-1]).flatten()
    advantage = advantage.flatten()
    for _ in range(4):
        for part in torch.randperm(len(target)).split(len(target) // 4):
            seen, action, log = (column[part] for column in columns)
            policy = agent.choose(seen)
            ratio = (policy.log_prob(action) - log).exp()
            better = (advantage[part] - advantage[part].mean()) / (advantage[part].std() + 1e-8)
            surrogate = torch.min(ratio * better, ratio.clamp(0.8, 1.2) * better).mean()
            loss = (
                -surrogate + 0.5 * (agent.value(seen) - target[part]).square().mean() - 0.01 * policy.entropy().mean()
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def table(agent: Agent, envs: qg.AdmissionControlVector) -> qu.Policy:
    """The greedy decisions."""
    shape = envs.task.observations
    with torch.no_grad():
        admit = agent.actor(torch.as_tensor(shape.grid())).argmax(dim=1).numpy() == 1
    return qu.Policy(admit.reshape(shape.capacity, shape.classes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="quickstart")
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--updates", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(1)
    envs = qg.AdmissionControlVector(given.worlds, given.scenario, reward="expected", horizon=1e5)
    seen, _ = envs.reset(seed=given.seed)
    agent = Agent(envs.single_observation_space.shape[0])
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    system, gain, scale = envs.task.system, 0.0, float(np.abs(envs.task.system.job_rewards).max())
    best = qu.solve(system).gain
    for update in range(given.updates):
        data, seen = rollout(agent, envs, seen, 64)
        seen_gain = float(data["reward"].sum() / data["elapsed"].sum())
        gain = seen_gain if update == 0 else 0.9 * gain + 0.1 * seen_gain
        improve(agent, optimizer, data, advantages(data, gain, scale, 0.95))
        if (update + 1) % 25 == 0:
            greedy = table(agent, envs)
            worth = f"{qu.evaluate(system, greedy).gain:.4f}, the best {best:.4f}"
            decisions = (update + 1) * 64 * given.worlds
            print(f"{decisions:>9,} decisions: earned {seen_gain:.3f} per unit of time; greedy table ", end="")
            print(f"{greedy.control_levels} earns {worth}", flush=True)


if __name__ == "__main__":
    main()
