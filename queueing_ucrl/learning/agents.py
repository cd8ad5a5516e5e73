"""Agents that learned elsewhere, put in control: a callable, or an object with `predict` as Gymnasium's libraries have.

An agent that is a function of the number of jobs and the class (and the environment's state) is asked about all of them
once, and its table runs on both engines. One that is shown the time, draws its actions at random, or is not to be
tabulated is asked at every arrival, in the SimPy world. What agents are shown is made by `observations`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import BoolArray
from queueing_ucrl.learning.controller import Controller, FixedSession, Knowledge, Plan, Session, Tally
from queueing_ucrl.learning.observations import KINDS, Observations
from queueing_ucrl.learning.option_checks import check_choice, check_flag, check_positive
from queueing_ucrl.messages import printable, shortened, shown
from queueing_ucrl.model.checks import one_line, whole
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.model.wide_policy import EnvironmentPolicy

REJECT, ADMIT = 0, 1
LONGEST_WORDS = 300  # of somebody else's exception


@dataclass(frozen=True, kw_only=True)
class AgentOptions(Controller):
    """What an agent is shown, and how it is asked.

    Options:
        observation: what it is shown: "box" is s / S and the class one-hot, "integers" is s and the number of the class
        elapsed: also show the time, as a share of this horizon
        period: also show where in a period of this length it is: the phase, or (integers) the hour of 24
        environments: also show which of so many states the environment is in
        deterministic: whether it takes its best action, and does not draw one at random
        tabulated: whether it is asked about every state once, and not at every arrival, where that is the same
    """

    observation: str = "box"
    elapsed: float | None = None
    period: float | None = None
    environments: int = 0
    deterministic: bool = True
    tabulated: bool = True

    def __post_init__(self) -> None:
        check_choice("observation", self.observation, *KINDS)
        check_positive("elapsed", self.elapsed)
        check_positive("period", self.period)
        whole(self.environments, "environments", 0)
        check_flag("deterministic", self.deterministic)
        check_flag("tabulated", self.tabulated)
        Observations(1, 1, self.observation, self.elapsed, self.period, self.environments)

    @property
    def each_arrival_because(self) -> str:
        """Why it is asked at every arrival; "" where a table does as well."""
        if self.elapsed is not None or self.period is not None:
            return "it is shown the time"
        if not self.deterministic:
            return "it draws its actions at random"
        return "" if self.tabulated else "it is not to be tabulated"

    @property
    def decides_each_arrival(self) -> bool:  # type: ignore[override]
        return bool(self.each_arrival_because)

    def encoder(self, capacity: int, classes: int) -> Observations:
        """What it is shown of a queue with room for so many jobs of so many classes."""
        return Observations(capacity, classes, self.observation, self.elapsed, self.period, self.environments)

    def cautions(self, queue: Queue) -> list[str]:
        why = self.each_arrival_because
        return [f"asked at every arrival, as {why}: on the SimPy engine only, and many times slower"] if why else []

    def model_gap(self, system: System) -> str:
        return ""  # it plans for nothing


@dataclass(frozen=True)
class Agent(AgentOptions):
    """A policy that learned elsewhere, put in control of a queue.

    policy(observation) is 0 (reject) or 1 (admit), or policy.predict(observation, deterministic=...) is, alone or with
    a state after it, as in Stable-Baselines3. With deterministic=False a callable is policy(observation, rng), to draw
    from the controller's own random numbers; a `predict` finds the generators of `random`, numpy and torch seeded from
    them, and nobody else notices.

    Options:
        policy: the policy
        name: what it is called
        batches: whether it is asked about many observations at once, and then answers with as many actions; without
            it, an object with `predict` is, and a callable is not
    """

    policy: Any = field(repr=False)
    name: str = "agent"  # type: ignore[misc]
    batches: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", one_line(self.name, "an agent's name"))
        if self.batches is not None:
            check_flag("batches", self.batches)
        if isinstance(self.policy, type) or not (callable(self.policy) or has_predict(self.policy)):
            raise TypeError(f"policy must be a callable or an object with `predict`, got {shown(self.policy)}")

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        asked = Asked(self, self.encoder(knowledge.capacity, knowledge.class_count))
        if self.decides_each_arrival:
            everybody = Policy.admit_all(knowledge.capacity, knowledge.class_count)
            return AgentSession(asked, rng, everybody, self.environments > 0)
        return FixedSession(asked.table())

    def made_for(self, system: System) -> Controller:
        """Its table is made once, and goes to other processes without the agent."""
        if self.decides_each_arrival:
            return self
        asked = Asked(self, self.encoder(system.capacity, len(system.classes)))
        return TabulatedAgent(asked.table(), self.name)


@dataclass(frozen=True)
class TabulatedAgent(Controller):
    """What an agent answers in every state."""

    policy: Policy
    name: str = "agent"  # type: ignore[misc]

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        return FixedSession(self.policy)

    def model_gap(self, system: System) -> str:
        return ""


def _normaliser(policy: Any) -> Callable[[Any], Any] | None:
    """How a model of Stable-Baselines3 that learned under VecNormalize had its observations changed; None: not at all.

    (x - mean) / sqrt(variance + epsilon), clipped, with the moments as they are now.
    """
    learned_under = getattr(policy, "get_vec_normalize_env", None)
    normalising = learned_under() if callable(learned_under) else None
    return None if normalising is None else normalising.normalize_obs


def has_predict(policy: Any) -> bool:
    """Whether it is asked as the libraries of Gymnasium ask."""
    return callable(getattr(policy, "predict", None))


class Asked:
    """An agent with its observations: questions, and answers that are checked."""

    def __init__(self, agent: Agent, encoder: Observations) -> None:
        self.agent, self.encoder = agent, encoder
        self.who = f"agent {agent.name}"
        self._check_spaces()
        self.normalised = _normaliser(agent.policy)

    def _check_spaces(self) -> None:
        """Of a policy that says what it observes and does: whether that is what it will be shown and asked."""
        observed: Any = getattr(self.agent.policy, "observation_space", None)
        shape, size = getattr(observed, "shape", None), self.encoder.size
        integers = hasattr(observed, "nvec")
        kind = "integers" if integers else "box"
        if shape is not None and (tuple(shape) != (size,) or integers != (self.encoder.kind == "integers")):
            raise ValueError(
                f"{self.who}: its policy expects observations of shape {tuple(shape)} ({kind}), but is shown ({size},) "
                f"({self.encoder.kind}) of this queue: see the options observation, elapsed, period and environments"
            )
        counts = self.encoder.counts
        nobody = counts + (np.arange(len(counts)) == 1)  # our environments have a class more: nobody is at the door
        if integers and not any(np.array_equal(observed.nvec, known) for known in (counts, nobody)):
            raise ValueError(f"{self.who}: its policy expects numbers below {observed.nvec}, of this queue {counts}")
        actions = getattr(getattr(self.agent.policy, "action_space", None), "n", 2)
        if actions != 2:
            raise ValueError(f"{self.who}: its policy has {actions} actions, not reject (0) and admit (1)")

    def answer(self, observation: npt.NDArray[Any], rng: np.random.Generator | None = None) -> Any:
        """What the policy says; an exception of its own in words."""
        agent, shown_rows = self.agent, observation
        try:
            if self.normalised is not None:
                observation = self.normalised(observation)
            if not has_predict(agent.policy):
                return agent.policy(observation) if rng is None else agent.policy(observation, rng)
            if rng is None:
                answer = agent.policy.predict(observation, deterministic=True)
            else:
                with shared_generators_seeded(rng, agent.policy):
                    answer = agent.policy.predict(observation, deterministic=False)
        except Exception as error:
            words = shortened(printable(str(error)), LONGEST_WORDS).replace("\n", " ")
            raise ValueError(
                f"{self.who}: its policy raises {type(error).__name__} ({words}) when it is shown "
                f"{shown(shown_rows.tolist())}"
            ) from error
        if not isinstance(answer, tuple):
            return answer
        if len(answer) != 2:
            raise ValueError(f"{self.who}: predict() must give an action, or (action, state), got {shown(answer)}")
        if answer[1] is not None:
            raise ValueError(f"{self.who}: its policy keeps a state between answers, which cannot be kept here")
        return answer[0]

    def action(self, observation: npt.NDArray[Any], rng: np.random.Generator | None = None) -> bool:
        """Whether it admits."""
        answer = self.answer(observation, rng)
        if _shape(answer) not in ((), (1,)):
            raise ValueError(f"{self.who}: must answer one observation with one action, got {_told(answer)}")
        return bool(self._checked(answer)[0])

    def table(self) -> Policy:
        """All states and classes: a row for each (environment and) number of jobs."""
        encoder, rows = self.encoder, self.encoder.grid()
        batches = has_predict(self.agent.policy) if self.agent.batches is None else self.agent.batches
        if batches:
            answer = self.answer(rows)
            if _shape(answer) != (len(rows),):
                raise ValueError(
                    f"{self.who}: was shown {len(rows)} observations and must answer with as many actions, got "
                    f"{_told(answer)}; one that is to be shown one at a time says batches=False"
                )
            admits = self._checked(answer)
        else:
            admits = np.array([self.action(row) for row in rows])
        table = admits.reshape(-1, encoder.classes)
        return EnvironmentPolicy(table, encoder.capacity) if encoder.environments else Policy(table)

    def _checked(self, answer: Any) -> BoolArray:
        """Actions, which are 0 or 1."""
        actions = np.asarray(answer).reshape(-1)
        if actions.dtype.kind not in "biu" or not np.isin(actions, (REJECT, ADMIT)).all():
            raise ValueError(f"{self.who}: its actions must be 0 (reject) or 1 (admit), got {_told(answer)}")
        return actions.astype(np.bool_)


def _shape(answer: Any) -> tuple[int, ...] | None:
    """As an array; None of what is none."""
    try:
        return np.shape(answer)
    except (TypeError, ValueError):  # rows of different lengths
        return None


def _told(answer: Any) -> str:
    shape = getattr(answer, "shape", ())
    return f"an array of shape {shape}: {shown(answer)}" if shape else shown(answer)


class AgentSession:
    """An agent that is asked at every arrival."""

    def __init__(self, asked: Asked, rng: np.random.Generator, policy: Policy, sees_environment: bool) -> None:
        self.asked, self.policy = asked, policy
        self.rng = None if asked.agent.deterministic else rng
        self.sees_environment = sees_environment

    def first(self) -> Plan:
        return Plan(policy=self.policy)

    def review(self, tally: Tally) -> Plan:
        return self.first()

    def decide(self, job_class: int, in_system: int, now: float, environment: int = 0) -> bool:
        encoder = self.asked.encoder
        if environment >= max(encoder.environments, 1):
            raise ValueError(
                f"{self.asked.who}: is shown {encoder.environments} states of the environment, and this one is in "
                f"state {environment} (of 0, 1, ..)"
            )
        return self.asked.action(encoder.encode(in_system, job_class, now, environment), self.rng)


@contextmanager
def shared_generators_seeded(rng: np.random.Generator, policy: Any) -> Iterator[None]:
    """Random numbers that all programs share come from `rng` within, and go on as they were after."""
    seed = int(rng.integers(2**32))
    torch = sys.modules.get("torch")
    kept = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()  # noqa: NPY002
    space: Any = getattr(policy, "action_space", None)
    try:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        if torch is not None:
            torch.manual_seed(seed)
        if hasattr(space, "seed"):
            space.seed(seed)
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(kept[2])
