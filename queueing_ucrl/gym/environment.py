"""`AdmissionControl`: one world, in which a step is an arrival that has room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from queueing_ucrl.accounts.regret import RegretCurve
from queueing_ucrl.arrays import BoolArray
from queueing_ucrl.gym.task import make_task
from queueing_ucrl.learning.observations import Rows
from queueing_ucrl.learning.option_checks import check_flag
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import whole
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.simulation.event_log import MemoryLog
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.stepping.one_run import SteppedKernel

if TYPE_CHECKING:
    import pandas as pd

LAST_REPLICATION = 2**62  # a vector's are counted in 64 bits
NOBODY = -1  # the class of who is at the door when the horizon is reached


class AdmissionControl(gymnasium.Env[Rows, np.int64]):
    """Jobs of several classes ask to be let into a queue; an agent says 0 (reject) or 1 (admit), one by one.

    scenario: a name, a file or a `Scenario`; or system: a `Queue` or a `System`. horizon: when an episode ends (that of
    the scenario). reward: "realised" (paid and charged when it happens) or "expected" (r_i(s) when a job of class i is
    admitted to s others). observation: "box" or "integers"; time, hour, environment: show these too, in this order.
    log: keep the event log of the episode, for `events`. docs/gymnasium.md has more.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(
        self,
        scenario: str | Path | Scenario | None = None,
        *,
        system: System | None = None,
        horizon: float | None = None,
        reward: str = "realised",
        observation: str = "box",
        time: bool = False,
        hour: bool = False,
        environment: bool = False,
        log: bool = False,
        render_mode: None = None,
    ) -> None:
        check_render_mode(render_mode)
        check_flag("log", log)
        self.task = make_task(scenario, system, horizon, reward, observation, time, hour, environment)
        self.observation_space = self.task.observation_space
        self.action_space = spaces.Discrete(2)
        self._log = log
        self._sink: MemoryLog | None = None
        self._kernel: SteppedKernel | None = None
        self._seed: int | None = None
        self._replication = 0
        self._over = False

    @property
    def system(self) -> System:
        """The world."""
        return self.task.system

    @property
    def horizon(self) -> float:
        """How long an episode is."""
        return self.task.horizon

    @property
    def events(self) -> pd.DataFrame:
        """The event log of this episode so far, as `Run.events` has it."""
        if self._sink is None or self._kernel is None:
            raise ValueError("no event log is kept: make the environment with log=True, and reset it")
        self._kernel.flush_log()
        return self._sink.frame()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Rows, dict[str, Any]]:
        """Begin an episode, up to its first arrival.

        With a seed it is replication 0 of `simulate` with that seed, without one the next replication of the same
        seed; options={"replication": k}: replication k.
        """
        seed = None if seed is None else whole(seed, "seed", 0)
        first = seed is not None or self._seed is None
        replication = replication_in(options, 0 if first else self._replication + 1)
        super().reset(seed=seed)
        if seed is not None:
            self._seed = seed
        elif self._seed is None:
            self._seed = int(self.np_random.integers(2**63))
        self._replication = replication
        settings = RunSettings(self.horizon, seed=self._seed)
        self._sink = MemoryLog(self.system, self._replication) if self._log else None
        self._kernel = SteppedKernel.at_time_0(self.task.comparator, settings, self._replication, self._sink)
        if self.task.advice is not None:
            self._kernel.show_rows_of(self.task.advice.policy)
        self._time, self._over = 0.0, False
        return self._to_arrival()

    def step(self, action: np.int64) -> tuple[Rows, float, bool, bool, dict[str, Any]]:
        """Admit or reject the job at the door, and go on to the next arrival that has room, or to the horizon."""
        if self._kernel is None:
            raise ResetNeeded("reset the environment before its first step: env.reset(seed=...)")
        if self._over:
            raise ResetNeeded(f"the episode is over, its horizon {self.horizon:g} is reached: call reset")
        admit = checked_action(action)
        if admit and self._job_class == NOBODY:
            raise ValueError("action 1 (admit) is masked: nobody is at the door, the horizon is reached")
        expected = float(self.system.rewards[self._in_system, self._job_class]) if admit else 0.0
        self._kernel.decide(admit)
        observation, info = self._to_arrival()
        self._over = self._job_class == NOBODY
        reward = expected if self.task.reward == "expected" else self._kernel.earned()
        if self._over:
            info |= self._earned_in_all()
        return observation, reward, False, self._over, info

    def action_masks(self) -> BoolArray:
        """Which actions make sense: of an arrival with room both, at the horizon to reject nobody."""
        if self._kernel is None:
            raise ResetNeeded("reset the environment first: env.reset(seed=...)")
        return np.array([True, self._job_class != NOBODY])

    def _to_arrival(self) -> tuple[Rows, dict[str, Any]]:
        """Run on to the next arrival with room, or to the horizon."""
        kernel, task, before = self._kernel, self.task, self._time
        assert kernel is not None
        found = kernel.to_arrival()
        nobody = (self.horizon, int(kernel.clock["in_system"]), NOBODY)
        self._time, self._in_system, self._job_class = nobody if found is None else found
        environment = int(kernel.clock["environment"])
        where = (np.array([n]) for n in (self._in_system, self._job_class, self._time, environment))
        info: dict[str, Any] = {
            "time": self._time,
            "elapsed": self._time - before,
            "in_system": self._in_system,
            "job_class": self._job_class,
            "action_mask": self.action_masks().astype(np.int8),
        }
        if task.advice is not None:
            info |= self._advised()
        rows: Rows = task.observed(*where)
        return rows[0], info

    def _advised(self) -> dict[str, Any]:
        """What the best policy would do with the job at the door; with nobody, reject."""
        assert self.task.advice is not None
        assert self._kernel is not None
        door = (np.array([n]) for n in (self._kernel.table_row, self._job_class, self._time))
        best, gap = self.task.advice.of(*door)
        return {"optimal_action": int(best[0]), "gap": float(gap[0])}

    def _earned_in_all(self) -> dict[str, Any]:
        """What the episode has earned, as `Run.rewards` has it, to the last bit."""
        kernel = self._kernel
        assert kernel is not None
        kernel.finish()
        curve = RegretCurve.of(kernel.ledger.times, kernel.ledger.totals, self.task.comparator, None)
        return {f"episode_{kind}": float(values[-1]) for kind, values in curve.rewards.items()}


def check_render_mode(given: Any) -> None:
    """There is nothing to see; a TypeError, as of an option that is not there, is what other libraries look for."""
    if given is not None:
        raise TypeError(f"render_mode must be None: there are no pictures of an environment, got {shown(given)}")


def replication_in(options: dict[str, Any] | None, otherwise: int, others: str = "") -> int:
    """The replication that options of a reset ask for; others: what else they may hold, for the message."""
    if not isinstance(options, (dict, type(None))):
        raise TypeError(f"options of a reset must be a dict, got {shown(options)}")
    unknown = [name for name in options or {} if name != "replication"]
    if unknown:
        raise ValueError(f"options of a reset may hold replication{others}, got {shown(unknown[0])}")
    replication = (options or {}).get("replication", otherwise)
    if isinstance(replication, bool) or not isinstance(replication, (int, np.integer)) or replication < 0:
        raise ValueError(f"replication must be a whole number of at least 0, got {shown(replication)}")
    if replication > LAST_REPLICATION:
        raise ValueError(f"replication must be at most {LAST_REPLICATION}, got {shown(replication)}")
    return int(replication)


def as_array(given: Any) -> np.ndarray[Any, Any]:
    """What was given as actions; of lists of several lengths, an array of objects."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.empty(0, dtype=object)


def checked_action(action: Any) -> bool:
    """Whether to admit; an error for all but 0 and 1."""
    given = as_array(action)
    if given.shape != () or given.dtype.kind not in "iub":
        raise TypeError(f"an action must be the whole number 0 (reject) or 1 (admit), got {shown(action)}")
    if given not in (0, 1):
        raise ValueError(f"an action must be 0 (reject) or 1 (admit), got {shown(action)}")
    return bool(given)
