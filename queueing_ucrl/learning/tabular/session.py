r"""What all general-purpose learners share: what they have seen, the doubling rule, and the plan.

The queue is an unknown decision process to them: X = S + 1 states, A = m + 1 actions in every one of them, a reward and
a next state after each tick. Action a lets in the a best classes of the state (the way the actions are wired to the
queue, not something the learner reasons with); in state S, where every arrival is blocked, all actions do the same,
which it has to find out like everything else.

An episode ends with the tick at which the visits of a pair in it reach max(1, visits before it).

Rewards are scaled to [0, 1] by R_max. Where an admitted job's expected cost exceeds its reward the scaled reward is
below 0, outside of what the confidence sets and the beta prior are made for: it is counted as it is, so that means
are right, and `cautions` says that the guarantee is void.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.learning.controller import Controller, Knowledge, Plan, Tally, TickTally
from queueing_ucrl.learning.tabular.evi import Optimum, extended_value_iteration
from queueing_ucrl.learning.tabular.structure import OutcomeCounts, Structure
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue

LEAST_DELTA = 1e-100  # its inverse is a number
LARGEST_TABLE = 3 * 10**7  # entries: 240 MB, a handful of such tables at a time


@dataclass(frozen=True)
class TabularLearner(Controller):
    """A learner that sees ticks of the uniformized chain and nothing of the queue's structure.

    Options:
        delta: the guarantee holds with probability 1 - delta (of ucrl3: 1 - 4 delta)
    """

    sees_ticks: ClassVar[bool] = True
    delta: float = 0.05  # the guarantees hold with probability 1 - delta (UCRL3: 1 - 4 delta)

    def __post_init__(self) -> None:
        if isinstance(self.delta, bool) or not LEAST_DELTA <= self.delta < 1:
            raise ValueError(f"delta must be a number between 0 and 1, got {self.delta!r}")
        object.__setattr__(self, "delta", float(self.delta))

    def cautions(self, queue: Queue) -> list[str]:
        if not np.any(queue.rewards < 0):
            return []
        s, i = np.argwhere(queue.rewards < 0)[0]
        return [
            f"class {queue.class_names[i]!r} is paid less than its waiting costs from state {s} on: "
            "rewards below 0, the guarantee is for rewards between 0 and R_max"
        ]


@dataclass(frozen=True)
class StructuredLearner(TabularLearner):
    """A general-purpose learner that may be told some of the queue's structure.

    Options:
        structure: what it is told: "none"; "support", that the state moves by one at most; "rewards", and what a job
            of each class pays; "departures", and how often jobs leave
    """

    structure: Structure = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.structure not in get_args(Structure):
            known = ", ".join(map(repr, get_args(Structure)))
            raise ValueError(f"structure must be one of {known}, got {self.structure!r}")


class Experience:
    """All that was seen of the decision process so far."""

    def __init__(self, states: int, actions: int) -> None:
        self.states = states  # X
        self.actions = actions  # A
        self.steps = 0  # t
        self.visits: IntArray = np.zeros((states, actions), dtype=np.int64)  # N(s, a)
        self.transitions: IntArray = np.zeros((states, actions, states), dtype=np.int64)
        self.reward_sums: FloatArray = np.zeros((states, actions))
        self.reward_square_sums: FloatArray = np.zeros((states, actions))

    def add(self, ticks: TickTally, taken: IntArray) -> None:
        """Add an episode in which state s always met with action taken[s]."""
        s = np.arange(self.states)
        stays = ticks.visits - ticks.ups - ticks.downs
        self.steps += int(ticks.visits.sum())
        self.visits[s, taken] += ticks.visits
        self.transitions[s, taken, s] += stays
        self.transitions[s[:-1], taken[:-1], s[1:]] += ticks.ups[:-1]
        self.transitions[s[1:], taken[1:], s[:-1]] += ticks.downs[1:]
        self.reward_sums[s, taken] += ticks.reward_sum
        self.reward_square_sums[s, taken] += ticks.reward_square_sum

    @property
    def floored_visits(self) -> IntArray:
        """N = max(1, N(s, a))."""
        return np.maximum(1, self.visits)

    @property
    def frequencies(self) -> FloatArray:
        """p^(x | s, a); all 0 for a pair never seen."""
        return self.transitions / self.floored_visits[:, :, None]

    @property
    def mean_rewards(self) -> FloatArray:
        """r^(s, a); 0 for a pair never seen."""
        return self.reward_sums / self.floored_visits

    @property
    def reward_variances(self) -> FloatArray:
        """The mean square less the squared mean (divided by N, not N - 1), of each pair."""
        return np.maximum(0.0, self.reward_square_sums / self.floored_visits - self.mean_rewards**2)


class TabularSession(ABC):
    """A general-purpose learner in one run."""

    def __init__(self, knowledge: Knowledge, rng: np.random.Generator, structure: Structure = "none") -> None:
        states, actions = knowledge.capacity + 1, knowledge.class_count + 1
        if states * actions * states > LARGEST_TABLE:
            raise ValueError(
                f"a general-purpose learner keeps tables of (S + 1)^2 (m + 1) entries: {states**2 * actions:.3g} "
                f"for capacity {knowledge.capacity}, at most {LARGEST_TABLE:.3g} are allowed"
            )
        self.priorities = np.argsort(-knowledge.rewards, axis=1, kind="stable")
        self.rng = rng  # its own stream of random numbers
        self.seen = Experience(states, actions)
        self.told = None if structure == "none" else OutcomeCounts(knowledge, self.priorities, structure)
        self.optimum: Optimum | None = None  # of the current episode

    @property
    def knows_rewards(self) -> bool:
        """Whether what happens at a tick says what is paid."""
        return self.told is not None and self.told.by_class

    @abstractmethod
    def best(self, seen: Experience) -> Optimum:
        """What to do from now on."""

    def first(self) -> Plan:
        return self._plan()

    def review(self, tally: Tally) -> Plan:
        assert tally.ticks is not None, "the engine must count ticks for a controller that sees them"
        assert self.optimum is not None, "first() comes before review()"
        self.seen.add(tally.ticks, self.optimum.actions)
        if self.told is not None:
            self.told.add(tally, self.optimum.actions)
        return self._plan()

    def _plan(self) -> Plan:
        self.optimum = self.best(self.seen)
        actions = self.optimum.actions
        visits = self.seen.visits[np.arange(actions.size), actions]
        return Plan(policy=self._policy(actions), visit_limits=np.maximum(1, visits))

    def _policy(self, actions: IntArray) -> Policy:
        """Action a in state s admits the a first classes of priorities[s]."""
        admits = np.zeros(self.priorities.shape, dtype=np.bool_)
        chosen = np.arange(self.priorities.shape[1]) < actions[:-1, None]
        np.put_along_axis(admits, self.priorities, chosen, axis=1)
        return Policy(admits)


class OptimisticSession(TabularSession):
    """A learner that acts as if the best plausible process were the true one."""

    def __init__(
        self, knowledge: Knowledge, rng: np.random.Generator, delta: float, structure: Structure = "none"
    ) -> None:
        super().__init__(knowledge, rng, structure)
        self.delta = delta

    @abstractmethod
    def reward_limits(self, seen: Experience) -> FloatArray:
        """r+, X by A."""

    @abstractmethod
    def transition_laws(self, seen: Experience) -> Any:
        """The plausible laws of the next state."""

    def outcome_laws(self, seen: Experience, told: OutcomeCounts) -> Any:
        """The plausible laws of outcomes, for a learner that is told what outcomes there are."""
        raise NotImplementedError(f"{type(self).__name__} is for the queue as an unknown decision process")

    def best(self, seen: Experience) -> Optimum:
        sets = self.transition_laws(seen) if self.told is None else self.outcome_laws(seen, self.told)
        rewards = np.zeros(seen.visits.shape) if self.knows_rewards else self.reward_limits(seen)
        epsilon = 1.0 / math.sqrt(max(1, seen.steps))
        return extended_value_iteration(sets, rewards, epsilon, seen.visits, self.rng)
