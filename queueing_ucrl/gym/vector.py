"""`AdmissionControlVector`: many worlds stepped by one call of the compiled engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.gym.environment import replication_in
from queueing_ucrl.gym.task import make_task
from queueing_ucrl.learning.observations import Rows
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import whole
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.simulation.many_steps import NOBODY, SteppedRuns

MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


class AdmissionControlVector(VectorEnv[Rows, IntArray, Any]):
    """`AdmissionControl` num_envs times over: path by path what SyncVectorEnv makes of it, in far less time.

    autoreset_mode: "NextStep" (the step after the horizon begins the next episode, its action is not looked at) or
    "SameStep". There is no event log, and no sums of an episode in the infos.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Scenario | None = None,
        *,
        system: System | None = None,
        horizon: float | None = None,
        reward: str = "realised",
        observation: str = "box",
        time: bool = False,
        hour: bool = False,
        environment: bool = False,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.num_envs = whole(num_envs, "num_envs")
        self.task = make_task(scenario, system, horizon, reward, observation, time, hour, environment)
        self.metadata = {"render_modes": [], "autoreset_mode": _mode(autoreset_mode)}
        self.single_observation_space = self.task.observation_space
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._runs = SteppedRuns(
            self.task.comparator,
            self.task.horizon,
            self.num_envs,
            charging=reward == "realised",
            policy=None if self.task.advice is None else self.task.advice.policy,
        )
        self._all = np.arange(self.num_envs)
        nothing = np.zeros((1, len(self.task.system.classes)))
        self._worth = np.vstack([self.task.system.rewards, nothing])  # r_i(s); nobody gets in where the house is full
        self._seeds: list[int] | None = None
        self._replications = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        self._waiting = np.zeros(self.num_envs, dtype=np.bool_)  # for the step that begins their next episode
        self._time = np.zeros(self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, Any]]:
        """Begin an episode in each world: world w with seed + w, or with the seed of its own; without one the next
        replication of its seed. options={"replication": k, or one for each world}.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        given: Sequence[int | None] = [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            given = [int(seed) + w for w in range(self.num_envs)]
        elif seed is not None:
            given = list(seed)
        if len(given) != self.num_envs:
            raise ValueError(f"seed must be a number, or one for each of {self.num_envs} worlds, got {len(given)}")
        if self._seeds is None:
            self._seeds = self.np_random.integers(2**63, size=self.num_envs).tolist()
        else:
            self._replications += 1
        for w, one in enumerate(given):
            if one is not None:
                self._seeds[w], self._replications[w] = one, 0
        self._replications[:] = self._asked_for(options)
        self._over[:] = self._waiting[:] = False
        self._begin(self._all)
        return self._observed(), self._infos(np.zeros(self.num_envs))

    def _asked_for(self, options: dict[str, Any] | None) -> list[int]:
        """The replication of each world."""
        now, given = self._replications.tolist(), (options or {}).get("replication")
        if given is None or np.ndim(given) == 0:
            return [replication_in(options, replication) for replication in now]
        if len(given) != self.num_envs:
            raise ValueError(f"replication must be a number, or one for each of {self.num_envs} worlds")
        return [replication_in({**(options or {}), "replication": one}, 0) for one in given]

    def step(self, actions: IntArray) -> tuple[Rows, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """One step of every world."""
        if self._seeds is None:
            raise ResetNeeded("reset the environment before its first step: envs.reset(seed=...)")
        admit, door, before = self._checked(actions), self._runs.door, self._time
        rewards = np.zeros(self.num_envs)
        beginning = np.flatnonzero(self._waiting)
        acting = self._all
        if beginning.size:
            acting, before = np.flatnonzero(~self._waiting), np.where(self._waiting, 0.0, before)
            admit = admit[acting]
        if self.task.reward == "expected":
            s, i = door.in_system[acting], door.job_class[acting]
            rewards[acting] = np.where(admit, self._worth[s, i], 0.0)
        self._runs.decide(acting, admit)
        if self.task.reward == "realised":
            rewards[acting] = self._runs.earned()[acting]
        self._over = door.job_class == NOBODY
        if beginning.size:
            self._next_episode(beginning)
            self._over[beginning] = False
        truncated, infos = self._over.copy(), {}
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP and truncated.any():
            infos = self._last(before, truncated)
            before = np.where(truncated, 0.0, before)
            self._next_episode(self._all[truncated])
        else:
            self._waiting = truncated.copy()
        self._time = door.time.copy()
        infos |= self._infos(before)
        return self._observed(), rewards, np.zeros(self.num_envs, dtype=np.bool_), truncated, infos

    def action_masks(self) -> BoolArray:
        """Which actions make sense in each world: a row each."""
        if self._seeds is None:
            raise ResetNeeded("reset the environment first: envs.reset(seed=...)")
        return np.stack([np.ones(self.num_envs, dtype=np.bool_), self._runs.door.job_class != NOBODY], axis=1)

    def _begin(self, worlds: IntArray) -> None:
        assert self._seeds is not None
        seeds = [self._seeds[w] for w in worlds.tolist()]
        self._runs.begin(worlds.tolist(), seeds, self._replications[worlds].tolist())
        self._time[worlds] = self._runs.door.time[worlds]

    def _next_episode(self, worlds: IntArray) -> None:
        self._replications[worlds] += 1
        self._begin(worlds)

    def _observed(self) -> Rows:
        door = self._runs.door
        return self.task.observed(door.in_system, door.job_class, door.time, door.environment)

    def _last(self, before: FloatArray, truncated: BoolArray) -> dict[str, Any]:
        """What the worlds whose episode ends were in: what the same step hides by beginning the next."""
        final = np.full(self.num_envs, None, dtype=object)
        for w, row in zip(self._all[truncated].tolist(), self._observed()[truncated], strict=True):
            final[w] = row.copy()
        infos = {
            name: np.where(_like(truncated, value), value, np.zeros_like(value)) for name, value in self._told(before)
        }
        infos |= {f"_{name}": truncated.copy() for name in infos}
        return {
            "final_obs": final,
            "_final_obs": truncated.copy(),
            "final_info": infos,
            "_final_info": truncated.copy(),
        }

    def _infos(self, before: FloatArray) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for name, value in self._told(before):
            infos[name], infos[f"_{name}"] = value, np.ones(self.num_envs, dtype=np.bool_)
        return infos

    def _told(self, before: FloatArray) -> list[tuple[str, np.ndarray[Any, Any]]]:
        """What the infos say, world by world."""
        door, advice = self._runs.door, self.task.advice
        nobody = door.job_class == NOBODY
        some = bool(nobody.any())
        mask = np.ones((self.num_envs, 2), dtype=np.int8)
        if some:
            mask[nobody, 1] = 0
        told: list[tuple[str, np.ndarray[Any, Any]]] = [
            ("time", door.time.copy()),
            ("elapsed", door.time - before),
            ("in_system", door.in_system.copy()),
            ("job_class", door.job_class.copy()),
            ("action_mask", mask),
        ]
        if advice is not None:
            row, i = door.row, door.job_class
            if some:
                row, i = np.where(nobody, 0, row), np.where(nobody, 0, i)
            best, gap = advice.admits[row, i].astype(np.int64), advice.gap[row, i]
            if some:
                best[nobody], gap[nobody] = 0, 0.0
            told += [("optimal_action", best), ("gap", gap)]
        return told

    def _checked(self, actions: Any) -> BoolArray:
        """Whether to admit, world by world; the action of one that begins an episode is not looked at."""
        given = np.asarray(actions)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "iub":
            raise TypeError(
                f"actions must be {self.num_envs} whole numbers, 0 (reject) or 1 (admit), got an array of "
                f"{given.dtype} and shape {given.shape}"
            )
        admit: BoolArray = given != 0
        wrong = (given != admit) & ~self._waiting
        if wrong.any():
            w = int(np.argmax(wrong))
            raise ValueError(f"actions must be 0 (reject) or 1 (admit), got {shown(given[w])} in world {w}")
        masked = admit & (self._runs.door.job_class == NOBODY) & ~self._waiting
        if masked.any():
            w = int(np.argmax(masked))
            raise ValueError(f"action 1 (admit) is masked in world {w}: nobody is at the door, the horizon is reached")
        return admit


def _like(mask: BoolArray, values: np.ndarray[Any, Any]) -> BoolArray:
    """The mask with as many axes as the values."""
    return mask.reshape(-1, *(1,) * (values.ndim - 1))


def _mode(given: Any) -> AutoresetMode:
    try:
        mode = AutoresetMode(given)
    except ValueError:
        mode = None
    if mode not in MODES:
        raise ValueError(f"autoreset_mode must be NextStep or SameStep, got {shown(getattr(given, 'value', given))}")
    return mode
