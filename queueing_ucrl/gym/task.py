"""What an environment is made of: a system, how long an episode is, what is paid, and what an agent is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from queueing_ucrl.accounts.regret import no_expected_reward
from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.arrays import IntArray
from queueing_ucrl.gym.advice import Advice, AdviceInTime, best_advice
from queueing_ucrl.learning.fixed_policies import AdmitAll
from queueing_ucrl.learning.observations import Observations, Rows
from queueing_ucrl.learning.option_checks import check_flag
from queueing_ucrl.messages import shown
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario import Scenario, load_scenario
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import check_run
from queueing_ucrl.solvers.optimum import optimum

REWARDS = ("realised", "expected")
LARGEST_IN_BOX = 2**22  # s / S has 24 binary digits as float32


@dataclass(frozen=True)
class Task:
    """A checked one; all worlds of a vector environment share it."""

    system: System
    horizon: float
    reward: str
    observations: Observations
    comparator: Comparator

    @cached_property
    def advice(self) -> Advice | AdviceInTime | None:
        """What the best policy would do; None where no optimum is known."""
        return best_advice(self.comparator)

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """In which one class is more: nobody, where the horizon is reached."""
        shape = self.observations
        if shape.kind == "box":
            return spaces.Box(shape.low, np.minimum(shape.high, 1.0), dtype=np.float32)
        counts = shape.counts.copy()
        counts[1] += 1
        return spaces.MultiDiscrete(counts)

    def observed(self, in_system: IntArray, job_class: IntArray, now: Any, environment: IntArray) -> Rows:
        """What is shown of these arrivals; of class -1 (nobody, at the horizon) no class."""
        nobody = job_class < 0
        some = bool(nobody.any())
        shown_class = np.where(nobody, 0, job_class) if some else job_class
        rows = self.observations.encode(in_system, shown_class, now, environment)
        if some and self.observations.kind == "box":
            rows[nobody, 1 : 1 + self.observations.classes] = 0.0
        elif some:
            rows[nobody, 1] = self.observations.classes
        return rows


def make_task(
    scenario: str | Path | Scenario | None,
    system: System | None,
    horizon: float | None,
    reward: str,
    observation: str,
    time: bool,
    hour: bool,
    environment: bool,
) -> Task:
    """Checked, or an error in words."""
    for name, flag in (("time", time), ("hour", hour), ("environment", environment)):
        check_flag(name, flag)
    system, horizon = _world(scenario, system, horizon)
    check_run(system, AdmitAll(), RunSettings(horizon))
    if reward not in REWARDS:
        raise ValueError(f"reward must be {' or '.join(REWARDS)}, got {shown(reward)}")
    if reward == "expected" and no_expected_reward(system):
        raise ValueError(f"{no_expected_reward(system)}: take reward='realised'")
    if observation == "box" and system.capacity > LARGEST_IN_BOX:
        raise ValueError(
            f"a capacity of {system.capacity} cannot be told in single precision: take observation='integers'"
        )
    if environment and system.environment is None:
        raise ValueError("environment=True shows the state of the environment, but the system has none")
    shape = Observations(
        system.capacity,
        len(system.classes),
        observation,
        horizon=horizon if time else None,
        period=_period(system) if hour else None,
        environments=system.environment.states if environment and system.environment is not None else 0,
    )
    return Task(system, horizon, reward, shape, Comparator(system, *optimum(system)))


def _world(
    scenario: str | Path | Scenario | None, system: System | None, horizon: float | None
) -> tuple[System, float]:
    """The system, and how long an episode is."""
    if (scenario is None) == (system is None):
        both = "both" if scenario is not None else "neither"
        raise ValueError(
            "give a scenario (a name such as 'quickstart', a file, or what load_scenario gave) or a system "
            f"(a Queue or a System), got {both}"
        )
    if system is not None:
        if not isinstance(system, System):
            raise ValueError(f"system must be a Queue or a System, got {type(system).__name__}")
        if horizon is None:
            raise ValueError("with system=... say how long an episode is: horizon=...")
        return system, RunSettings(horizon).horizon
    if not isinstance(scenario, Scenario):
        if not isinstance(scenario, (str, Path)):
            raise ValueError(f"scenario must be a name, a file or a Scenario, got {shown(scenario)}")
        scenario = load_scenario(scenario)
    if scenario.points:
        raise ValueError(
            f"the scenario {scenario.path.name} has a sweep of {len(scenario.points)} points, and an environment is "
            "one world: give one of load_scenario(...).points as scenario"
        )
    return scenario.system, scenario.settings.horizon if horizon is None else RunSettings(horizon).horizon


def _period(system: System) -> float:
    """After which the rates, or the servers on duty, are the same again: the longest, if the others divide it."""
    found = {c.arrival_process.period for c in system.classes}
    if isinstance(system.servers, Shifts):
        found.add(system.servers.period)
    periods = sorted(p for p in found if p < math.inf)
    if not periods:
        raise ValueError("hour=True shows the phase of a period, but nothing in this system repeats")
    longest = periods[-1]
    if any(abs(longest / p - round(longest / p)) > 1e-9 for p in periods):
        told = ", ".join(f"{p:g}" for p in periods)
        raise ValueError(f"hour=True shows the phase of a period, but the system has periods {told}: none fits all")
    return longest
