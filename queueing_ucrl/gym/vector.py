"""`AdmissionControlVector`: many worlds stepped by one call of the compiled engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from queueing_ucrl.accounts.regret import RegretCurve
from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.gym.environment import as_array, check_render_mode, replication_in
from queueing_ucrl.gym.task import make_task
from queueing_ucrl.learning.observations import Rows
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import read_only, whole
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.simulation.stepping.many_runs import stepped_runs
from queueing_ucrl.simulation.stepping.plain_loop import NOBODY

MASKED = " and reset_mask"
INSTEAD = {
    "log": ": only one world by itself keeps an event log",
    "max_episode_steps": ": an episode ends at the horizon, say horizon=",
}


class AdmissionControlVector(VectorEnv[Rows, IntArray, Any]):
    """`AdmissionControl` num_envs times over: path by path what SyncVectorEnv makes of it, in far less time.

    autoreset_mode: "NextStep" (the step after the horizon begins the next episode, its action is not looked at),
    "SameStep", or "Disabled" (worlds at the horizon are reset by options={"reset_mask": ...}). There is no event log.
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
        render_mode: None = None,
        **others: Any,
    ) -> None:
        check_render_mode(render_mode)
        for name in others:
            raise TypeError(f"many worlds at once have no option {name}{INSTEAD.get(name, '')}")
        self.num_envs = whole(num_envs, "num_envs")
        self.task = make_task(scenario, system, horizon, reward, observation, time, hour, environment)
        self.metadata = {"render_modes": [], "autoreset_mode": _mode(autoreset_mode)}
        self.single_observation_space = self.task.observation_space
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        best = None if self.task.advice is None else self.task.advice.policy
        self._runs = stepped_runs(self.task.comparator, self.task.horizon, self.num_envs, best)
        self._all = np.arange(self.num_envs)
        nothing = np.zeros((1, len(self.task.system.classes)))
        self._worth = np.vstack([self.task.system.rewards, nothing])  # r_i(s); nobody gets in where the house is full
        self._seeds: list[int] | None = None
        self._replications = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        self._waiting = np.zeros(self.num_envs, dtype=np.bool_)  # for the step that begins their next episode
        self._some_wait = False
        self._goes_on = self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        self._time = np.zeros(self.num_envs)
        self._everybody = read_only(np.ones(self.num_envs, dtype=np.bool_))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, Any]]:
        """Begin an episode in each world: world w with seed + w, or with the seed of its own; without one the next
        replication of its seed. options={"replication": k, or one for each world}; "reset_mask": only in these worlds.
        """
        if not isinstance(options, (dict, type(None))):
            raise TypeError(f"options of a reset must be a dict, got {shown(options)}")
        given = self._given(seed)
        chosen = self._chosen(options)
        replications = np.array(self._asked_for(options, given), dtype=np.int64)
        super().reset(seed=seed if isinstance(seed, int) else None)
        if self._seeds is None:
            self._seeds = self.np_random.integers(2**63, size=self.num_envs).tolist()
        for w in self._all[chosen].tolist():
            asked = given[w]
            self._seeds[w] = self._seeds[w] if asked is None else asked
        self._replications[chosen] = replications[chosen]
        self._over[chosen] = self._waiting[chosen] = False
        self._some_wait = bool(self._waiting.any())
        self._begin(self._all[chosen])
        self._time = self._runs.door.time.copy()
        infos = self._infos(np.zeros(self.num_envs))
        return self._observed(), infos if chosen.all() else _only(chosen, infos)

    def _given(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        """The seed that each world is given; None: none."""
        if seed is None:
            return [None] * self.num_envs
        any_of: Any = seed  # an array without an axis is one number
        if isinstance(seed, (str, bytes)) or not isinstance(seed, Iterable) or np.shape(any_of) == ():
            first = whole(seed, "seed", 0)
            return [first + w for w in range(self.num_envs)]
        given = [None if one is None else whole(one, "seed", 0) for one in seed]
        if len(given) != self.num_envs:
            raise ValueError(f"seed must be a number, or one for each of {self.num_envs} worlds, got {len(given)}")
        return given

    def _chosen(self, options: dict[str, Any] | None) -> BoolArray:
        """The worlds that are to be reset."""
        if "reset_mask" not in (options or {}):
            return self._everybody
        mask = np.asarray((options or {})["reset_mask"])
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(
                f"reset_mask must be a truth value for each of {self.num_envs} worlds, of which one at least is true, "
                f"got an array of {mask.dtype} and shape {mask.shape}"
            )
        if self._seeds is None and not mask.all():
            raise ResetNeeded("reset all worlds before some of them: envs.reset(seed=...)")
        return mask

    def _asked_for(self, options: dict[str, Any] | None, seeds: Sequence[int | None]) -> list[int]:
        """The replication of each world, if it is reset."""
        others = {name: value for name, value in (options or {}).items() if name != "reset_mask"}
        first = self._seeds is None
        following = [
            0 if first or seed is not None else k + 1
            for seed, k in zip(seeds, self._replications.tolist(), strict=True)
        ]
        given = others.get("replication")
        if given is None or np.ndim(given) == 0:
            return [replication_in(others, replication, MASKED) for replication in following]
        if len(given) != self.num_envs:
            raise ValueError(f"replication must be a number, or one for each of {self.num_envs} worlds")
        return [replication_in({**others, "replication": one}, 0, MASKED) for one in given]

    def step(self, actions: IntArray) -> tuple[Rows, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """One step of every world."""
        if self._seeds is None:
            raise ResetNeeded("reset the environment before its first step: envs.reset(seed=...)")
        admit, door, before = self._checked(actions), self._runs.door, self._time
        acting, beginning = self._all, self._all[:0]
        if self._some_wait:
            beginning, acting = np.flatnonzero(self._waiting), np.flatnonzero(~self._waiting)
            admit, before = admit[acting], np.where(self._waiting, 0.0, before)
        rewards = np.zeros(self.num_envs)
        if self.task.reward == "expected":
            s, i = door.in_system[acting], door.job_class[acting]
            rewards[acting] = np.where(admit, self._worth[s, i], 0.0)
        self._runs.decide(acting, admit)
        if self.task.reward == "realised":
            rewards[acting] = self._runs.earned()[acting]
        truncated: BoolArray = door.job_class == NOBODY
        infos: dict[str, Any] = {}
        if beginning.size:
            self._next_episode(beginning)
            truncated[beginning] = False
        over = bool(truncated.any())
        last = self._earned_in_all(truncated) if over else {}
        same = self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        if over and same:
            infos = self._last(before, truncated, last)
            before = np.where(truncated, 0.0, before)
            self._next_episode(self._all[truncated])
        self._over, self._waiting = truncated & (not same), truncated & self._goes_on
        self._some_wait = over and self._goes_on
        self._time = door.time.copy()
        infos |= self._infos(before) | ({} if same else last)
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

    def _last(self, before: FloatArray, truncated: BoolArray, earned: dict[str, Any]) -> dict[str, Any]:
        """What the worlds whose episode ends were in: what the same step hides by beginning the next."""
        final = np.full(self.num_envs, None, dtype=object)
        for w, row in zip(self._all[truncated].tolist(), self._observed()[truncated], strict=True):
            final[w] = row.copy()
        return {
            "final_obs": final,
            "_final_obs": truncated.copy(),
            "final_info": _only(truncated, self._infos(before)) | earned,
            "_final_info": truncated.copy(),
        }

    def _earned_in_all(self, over: BoolArray) -> dict[str, Any]:
        """What the episodes of these worlds have earned, as `Run.rewards` has it, to the last bit."""
        which = self._all[over]
        infos: dict[str, Any] = {}
        found, comparator = self._runs.totals(which), self.task.comparator
        curve = RegretCurve.of(np.full(which.size, self.task.horizon), found, comparator, None)
        for kind, values in curve.rewards.items():
            earned = np.zeros(self.num_envs)
            earned[which] = values
            infos[f"episode_{kind}"], infos[f"_episode_{kind}"] = earned, over.copy()
        return infos

    def _infos(self, before: FloatArray) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for name, value in self._told(before):
            infos[name], infos[f"_{name}"] = value, self._everybody
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
            best, gap = advice.of(door.row, door.job_class, door.time)
            told += [("optimal_action", best), ("gap", gap)]
        return told

    def _checked(self, actions: Any) -> BoolArray:
        """Whether to admit, world by world; the action of one that begins an episode is not looked at."""
        given = as_array(actions)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "iub":
            raise TypeError(
                f"actions must be {self.num_envs} whole numbers, 0 (reject) or 1 (admit), got an array of "
                f"{given.dtype} and shape {given.shape}"
            )
        if self._over.any() and not self._goes_on:
            w = int(np.argmax(self._over))
            raise ResetNeeded(
                f"the episode of world {w} is over, its horizon {self.task.horizon:g} is reached: "
                "call reset, or reset(options={'reset_mask': ...}) with the worlds that are over"
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


def _only(chosen: BoolArray, infos: dict[str, Any]) -> dict[str, Any]:
    """What is said of these worlds; 0 of the others."""
    values = {name: value for name, value in infos.items() if not name.startswith("_")}
    told = {name: np.where(_like(chosen, value), value, np.zeros_like(value)) for name, value in values.items()}
    return told | {f"_{name}": chosen.copy() for name in told}


def _like(mask: BoolArray, values: np.ndarray[Any, Any]) -> BoolArray:
    """The mask with as many axes as the values."""
    return mask.reshape(-1, *(1,) * (values.ndim - 1))


def _mode(given: Any) -> AutoresetMode:
    try:
        return AutoresetMode(given)
    except ValueError:
        raise ValueError(
            f"autoreset_mode must be NextStep, SameStep or Disabled, got {shown(getattr(given, 'value', given))}"
        ) from None
