"""Model-free and threshold learners as controllers: they learn at every tick, and never plan."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Tally
from queueing_ucrl.learning.online.learn import choose
from queueing_ucrl.learning.online.memory import (
    ACTOR_CRITIC,
    INTEGER_GRADIENT,
    R_LEARNING,
    SALMUT,
    Memory,
    fresh_memory,
)
from queueing_ucrl.learning.option_checks import check_positive
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System

LONGEST_PHASE = 10**15  # ticks


@dataclass(frozen=True)
class OnlineSession:
    """A learner at work: the engine calls `learn` with its memory at each tick."""

    memory: Memory
    policy: Policy  # of the first moment

    def first(self) -> Plan:
        return Plan(policy=self.policy)

    def review(self, tally: Tally) -> Plan:
        return Plan(policy=self.policy)


@dataclass(frozen=True)
class OnlineLearner(Controller):
    """A learner that updates at every tick of the uniformized chain, and keeps no model."""

    sees_ticks: ClassVar[bool] = True
    learns_each_tick: ClassVar[bool] = True

    @abstractmethod
    def memory(self, knowledge: Knowledge, rng: np.random.Generator) -> Memory:
        """What it knows before the first tick."""

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> OnlineSession:
        memory = self.memory(knowledge, rng)
        for s in range(knowledge.capacity + 1):
            choose(memory, s)
        return OnlineSession(memory, Policy(memory.table.copy()))

    def model_gap(self, system: System) -> str:
        return ""  # it plans for none


def _share(name: str, value: float) -> None:
    if isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value!r}")


@dataclass(frozen=True)
class RLearning(OnlineLearner):
    """R-learning: action values and the gain by temporal differences, with actions at random now and then.

    Options:
        step_size: alpha, of the action values
        gain_step_size: beta, of the gain
        exploration: epsilon, the share of ticks at which any action is taken
        falling: whether the three fall as states are seen more often
    """

    name: ClassVar[str] = "r-learning"
    step_size: float = 0.01
    gain_step_size: float = 0.01
    exploration: float = 0.1
    falling: bool = False

    def __post_init__(self) -> None:
        for name in ("step_size", "gain_step_size", "exploration"):
            _share(name, getattr(self, name))

    def memory(self, knowledge: Knowledge, rng: np.random.Generator) -> Memory:
        return fresh_memory(
            knowledge,
            R_LEARNING,
            rng,
            step=self.step_size,
            gain_step=self.gain_step_size,
            exploration=self.exploration,
            falling=self.falling,
        )


@dataclass(frozen=True)
class ActorCritic(OnlineLearner):
    """An average-reward actor-critic (constants second-hand): preferences, moved by temporal differences.

    Options:
        critic_step_size: alpha_0, of the values at first
        actor_step_size: beta_0, of the preferences at first
    """

    name: ClassVar[str] = "actor-critic"
    critic_step_size: float = 0.1
    actor_step_size: float = 0.01

    def __post_init__(self) -> None:
        _share("critic_step_size", self.critic_step_size)
        _share("actor_step_size", self.actor_step_size)

    def memory(self, knowledge: Knowledge, rng: np.random.Generator) -> Memory:
        return fresh_memory(knowledge, ACTOR_CRITIC, rng, step=self.critic_step_size, actor_step=self.actor_step_size)


@dataclass(frozen=True)
class Salmut(OnlineLearner):
    """SALMUT (reconstructed): a threshold for each class, moved along its gradient.

    Options:
        threshold_step: b of the thresholds' steps b / n, for rewards in units of the largest
    """

    name: ClassVar[str] = "salmut"
    threshold_step: float = 200.0

    def __post_init__(self) -> None:
        check_positive("threshold_step", self.threshold_step)

    def memory(self, knowledge: Knowledge, rng: np.random.Generator) -> Memory:
        return fresh_memory(knowledge, SALMUT, rng, actor_step=self.threshold_step)


@dataclass(frozen=True)
class IntegerGradient(OnlineLearner):
    """Integer gradient ascent (reconstructed): whole thresholds, moved by one where both neighbours agree.

    Options:
        phase: ticks between two moves
        exploration: the share of ticks at which a class is decided against the rule next to its threshold
    """

    name: ClassVar[str] = "integer-gradient"
    phase: int = 2000
    exploration: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.phase, bool) or not isinstance(self.phase, int) or not 1 <= self.phase <= LONGEST_PHASE:
            raise ValueError(f"phase must be a whole number from 1 to {LONGEST_PHASE:g}, got {self.phase!r}")
        _share("exploration", self.exploration)

    def memory(self, knowledge: Knowledge, rng: np.random.Generator) -> Memory:
        memory = fresh_memory(knowledge, INTEGER_GRADIENT, rng, phase=self.phase, exploration=self.exploration)
        memory.classes["threshold"] = knowledge.capacity // 2
        return memory
