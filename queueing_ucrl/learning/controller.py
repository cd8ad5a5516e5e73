"""The interface between a queue and whoever controls it.

A controller is a description (its options); `begin` opens a session, which lives for one run. A session answers two
questions, the admission table now and when to be asked again, and at each review gets a `Tally` of what was seen since
the last one. It sees what an operator sees, never the true arrival rates.

To write a controller, subclass `Controller` (or give any object a `begin` method) and return a session with `first()`
and `review(tally)`. A session with a method `decide(job_class, in_system, now)` is asked at every arrival instead of
its table (with `sees_environment = True`: `decide(job_class, in_system, now, environment)`); such a controller says
`decides_each_arrival = True` and runs in the SimPy world only. One that says `learns_each_tick = True` has a `memory`
that compiled code updates at every tick (`online`), on both engines.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import ReadOnlyArrays, read_only, real
from queueing_ucrl.model.costs import HoldingCost, Payment, Unknown
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.solvers.multi_count import not_by_counts
from queueing_ucrl.solvers.service import SolveRequest


def planned_by_counts(system: System) -> bool:
    """Whether the number of jobs is no Markov chain, but the counts of each class are."""
    return bool(system.not_markov) and not not_by_counts(system)


@dataclass(frozen=True)
class Knowledge(ReadOnlyArrays):
    """What the operator knows: everything about the queue but how often jobs come.

    For controllers that say `knows_service_rate = False` not how fast they are served either: service_rate and the two
    tables that follow from it are nan. For those that say `knows_patience = False` not how soon jobs give up: there
    patience_rate is nan, and so are the tables where jobs wait. For those that say `knows_rewards = False` not what a
    job pays in the mean: job_rewards, max_reward, the payments' rewards and r_i(s) are nan. For those that say
    `knows_holding_costs = False` not what a wait costs: the costs are `Unknown`, and r_i(s) where jobs wait is nan.
    """

    servers: int
    capacity: int
    service_rate: float
    class_names: tuple[str, ...]
    rewards: FloatArray  # r_i(s), S rows, m columns
    service_rates: FloatArray  # mu(s), s = 0 .. S
    max_reward: float  # R_max
    tick_rate: float  # U = Lambda + mu(S), for controllers that see ticks; nan for others
    job_rewards: FloatArray  # R_i
    holding_costs: tuple[HoldingCost, ...]  # C_i
    payments: tuple[Payment, ...]  # R_i, C_i, what it costs when a job gives up, and when R_i is collected
    patience_rate: float  # theta, at which a waiting job gives up; 0: never
    class_service_rates: FloatArray  # 1 / E[service] of each class
    discipline: str  # "fifo" or "processor-sharing"
    by_counts: bool  # whether classes differ in service and nobody waits: then the counts of each are a Markov chain
    sees_classes: bool = True  # whether the class of a job is seen before it is let in
    truth: Queue | None = None  # only for controllers that say `knows_truth`
    system: System | None = None  # likewise: all of it, of which `truth` is the M/M/c/S queue of the same means

    @classmethod
    def of(
        cls,
        system: System,
        *,
        truth: bool = False,
        ticks: bool = False,
        service_rate: bool = True,
        patience: bool = True,
        rewards: bool = True,
        holding_costs: bool = True,
        classes: bool = True,
    ) -> Knowledge:  # long: an option a line, a field a line
        """What the operator of `system` knows, who reckons with the M/M/c/S queue of the same means."""
        queue = system.queue
        shown = 1.0 if service_rate else math.nan
        table, service_rates = shown * queue.rewards, shown * queue.service_rates
        if not patience:
            service_rates[queue.servers + 1 :] = math.nan
        if not (patience and holding_costs):
            table[queue.servers :] = math.nan
        pays = 1.0 if rewards else math.nan
        costs = tuple(c.holding_cost if holding_costs else Unknown() for c in queue.classes)
        return cls(
            servers=queue.servers,
            capacity=queue.capacity,
            service_rate=shown * queue.service_rate,
            class_names=queue.class_names,
            rewards=pays * table,
            service_rates=service_rates,
            max_reward=pays * queue.max_reward,
            tick_rate=queue.total_arrival_rate + queue.max_service_rate if ticks else math.nan,  # who balks is a tick
            job_rewards=np.array([pays * c.reward for c in queue.classes]),
            holding_costs=costs,
            payments=tuple(
                Payment(c.name, pays * c.reward, cost, c.abandonment_cost, c.reward_at)
                for c, cost in zip(queue.classes, costs, strict=True)
            ),
            patience_rate=queue.patience_rate if patience else math.nan,
            class_service_rates=shown * np.array([1.0 / system.law(i).mean for i in range(len(system.classes))]),
            discipline=system.discipline,
            by_counts=planned_by_counts(system),
            sees_classes=classes,
            truth=queue if truth else None,
            system=system if truth else None,
        )

    @classmethod
    def shown_to(cls, controller: Controller, system: System) -> Knowledge:
        """What `controller` may see of `system`: the one place where that is decided."""
        return cls.of(
            system,
            truth=controller.knows_truth,
            ticks=controller.sees_ticks,
            service_rate=controller.knows_service_rate,
            patience=controller.knows_patience,
            rewards=controller.knows_rewards,
            holding_costs=controller.knows_holding_costs,
            classes=controller.sees_classes,
        )

    @property
    def class_count(self) -> int:
        """m."""
        return len(self.class_names)

    @property
    def max_service_rate(self) -> float:
        """mu_max = mu(S); of the servers alone where nobody knows how soon jobs give up."""
        if math.isnan(self.patience_rate):
            return min(self.servers, self.capacity) * self.service_rate
        return float(self.service_rates[-1])


@dataclass(frozen=True)
class TickTally:
    """What a general-purpose learner saw since the last review: the chain uniformized at U = Lambda + mu(S).

    A tick is an arrival, a departure, or (at rate U less those) nothing. All arrays by state s = 0 .. S, for the one
    action that the policy took there.
    """

    visits: IntArray  # ticks that found the chain in s
    ups: IntArray  # of those, to s + 1
    downs: IntArray  # to s - 1
    reward_sum: FloatArray  # of r_i(s) / R_max over admitted arrivals
    reward_square_sum: FloatArray


_NOT_TOLD = read_only(np.zeros(0, dtype=np.int64))


def _not_told() -> Any:
    """Stands for zeros."""
    return _NOT_TOLD


# what a tally need not tell, by class
_COUNTS = ("abandonments", "starts", "departures_by_class", "blocked", "paid_count", "wait_count")
_TIMES = ("busy_time_by_class", "wait_sum", "open_time")
_AMOUNTS = ("paid_sum", "paid_square_sum", "most_paid", "wait_cost_sum")


@lru_cache
def _untold(classes: int) -> dict[str, np.ndarray[Any, Any]]:
    """A zero for each class, by what is not told: the same arrays for all tallies."""
    counts, sums = read_only(np.zeros(classes, dtype=np.int64)), read_only(np.zeros(classes))
    return {**dict.fromkeys(_COUNTS, counts), **dict.fromkeys(_TIMES + _AMOUNTS, sums)}


@dataclass(frozen=True)
class Tally:
    """What was seen since the last review.

    Of rewards, by class, for controllers that say `knows_rewards = False`: how many jobs have paid, the sum and the sum
    of squares of their amounts, and the largest so far. Of waits, for those that say `knows_holding_costs = False`: how
    many were over (of jobs that joined a server after a wait, or gave up), how long they were, and what they cost. For
    those that say `sees_rejected = False`, arrivals are of jobs that were let in, and sums of gaps are nan.
    """

    now: float
    duration: float
    arrivals: IntArray  # by class
    gap_sum: float  # of the times between arrivals of any class, the first counted from the last review
    truncated_gap_sum: float  # of those gaps L_t with L_t^2 <= truncation * t
    admissions: IntArray  # by state and class
    time_in_state: FloatArray  # s = 0 .. S
    departures: int
    busy_time: float  # server time spent serving
    ticks: TickTally | None = None  # only for controllers that say `sees_ticks`
    abandonments: IntArray = field(default_factory=_not_told)  # by class: jobs that gave up
    starts: IntArray = field(default_factory=_not_told)  # by class: jobs that joined a server for the first time
    departures_by_class: IntArray = field(default_factory=_not_told)
    busy_time_by_class: FloatArray = field(default_factory=_not_told)
    waiting_time: float = 0.0  # the integral of the number of jobs that wait
    environment: int = 0  # its state now
    rejections: IntArray = field(default_factory=_not_told)  # by state and class, as `admissions`
    blocked: IntArray = field(default_factory=_not_told)  # by class: who found no room
    paid_count: IntArray = field(default_factory=_not_told)
    paid_sum: FloatArray = field(default_factory=_not_told)
    paid_square_sum: FloatArray = field(default_factory=_not_told)
    most_paid: FloatArray = field(default_factory=_not_told)
    wait_count: IntArray = field(default_factory=_not_told)
    wait_sum: FloatArray = field(default_factory=_not_told)
    wait_cost_sum: FloatArray = field(default_factory=_not_told)
    open_time: FloatArray = field(default_factory=_not_told)  # by class: in which its jobs would have been let in

    def __post_init__(self) -> None:
        told = self.__dict__
        for name, zeros in _untold(len(self.arrivals)).items():
            if not told[name].size:
                told[name] = zeros

    @cached_property
    def requests(self) -> IntArray:
        """N_i(s): who asked to be let in, by state s = 0 .. S and class; with `time_in_state` all there is to know of
        arrival rates by state.
        """
        decided = self.admissions + self.rejections if self.rejections.size else self.admissions
        return np.vstack([decided, self.blocked])

    @property
    def arrival_count(self) -> int:
        """nu: arrivals of all classes."""
        return sum(self.arrivals.tolist())


class Belief(Protocol):
    """What a session holds to be possible; for the episode table and for checking coverage."""

    def contains(self, arrival_rates: FloatArray) -> bool | None:
        """Whether these rates are among the plausible ones; None where the belief excludes nothing."""
        ...

    def columns(self) -> dict[str, Any]:
        """The belief as columns of the episode table."""
        ...


@dataclass(frozen=True)
class Plan:
    """What to do until the next review: a policy, or a model whose best policy is to be found."""

    policy: Policy | None = None
    until: float = math.inf  # when to be asked again
    request: SolveRequest | None = None
    visit_limits: IntArray | None = None  # by state: also be asked once so many ticks (visits) found the chain there
    departure_limit: int | None = None  # also be asked once so many jobs have left since this review
    arrival_limit: int | None = None  # also be asked before a job is decided on, once so many have come since then
    truncation: float = math.inf  # of the gaps that go into Tally.truncated_gap_sum
    belief: Belief | None = None

    def __post_init__(self) -> None:
        if (self.policy is None) == (self.request is None):
            raise ValueError("a plan holds either a policy or a request to the solver, not both or neither")
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise TypeError(f"a plan's policy must be a Policy, got {shown(self.policy)}")
        if self.request is not None and not isinstance(self.request, SolveRequest):
            raise TypeError(f"a plan's request must be a SolveRequest, got {shown(self.request)}")
        object.__setattr__(self, "until", real(self.until, "a plan's `until`", "a time"))
        object.__setattr__(self, "truncation", real(self.truncation, "a plan's `truncation`"))
        if self.truncation < 0:
            raise ValueError(f"a plan's `truncation` must be a number that is not negative, got {self.truncation}")
        for name in ("departure_limit", "arrival_limit"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 1):
                raise ValueError(f"a plan's `{name}` must be a whole number of at least 1, got {limit!r}")

    @property
    def asks_again(self) -> bool:
        """Whether there is to be another review."""
        return self.until < math.inf or self.limited

    @property
    def limited(self) -> bool:
        """Whether a review may come before its time."""
        return not (self.visit_limits is None and self.departure_limit is None and self.arrival_limit is None)


class Session(Protocol):
    """A controller at work in one run."""

    def first(self) -> Plan:
        """The plan at time 0."""
        ...

    def review(self, tally: Tally) -> Plan:
        """The plan from now on."""
        ...


class Controller(ABC):
    """A way to control the queue: options, and `begin` to put them to work."""

    name: ClassVar[str]
    knows_truth: ClassVar[bool] = False  # whether begin() is shown the true rates
    decides_each_arrival: ClassVar[bool] = False  # whether the session has `decide`
    sees_ticks: ClassVar[bool] = False  # whether its tallies hold the ticks of the uniformized chain
    counts_visits: ClassVar[bool] = False  # whether it limits visits of states: requests and departures, not idle ticks
    learns_each_tick: ClassVar[bool] = (
        False  # whether the session has a `memory`, and its table changes at each of them
    )

    @property
    def knows_service_rate(self) -> bool:
        """Whether begin() is shown how fast jobs are served."""
        return True

    @property
    def knows_patience(self) -> bool:
        """Whether begin() is shown how soon waiting jobs give up."""
        return True

    @property
    def knows_rewards(self) -> bool:
        """Whether begin() is shown what a job of each class pays in the mean."""
        return True

    @property
    def knows_holding_costs(self) -> bool:
        """Whether begin() is shown what a wait costs."""
        return True

    @property
    def sees_rejected(self) -> bool:
        """Whether its tallies hold the arrivals that were not let in."""
        return True

    @property
    def sees_classes(self) -> bool:
        """Whether the class of a job is seen before it is let in; if not, its policies must treat all classes alike."""
        return True

    @abstractmethod
    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        """A session for one run; `rng` is the controller's own stream of random numbers."""

    def made_for(self, system: System) -> Controller:
        """What runs on that system: itself. For what can be worked out once, before it goes to other processes."""
        return self

    def cautions(self, queue: Queue) -> list[str]:
        """What is wrong with using this controller on that queue, for the person who runs it."""
        return []

    def model_gap(self, system: System) -> str:
        """Where the model that it plans for is not the system, in words; "" where it is, or it plans for none.

        By default it plans for the M/M/c/S queue of the same means.
        """
        return system.not_markov


# what a controller may say of itself, and what it says where it says nothing
TRAITS = {
    **dict.fromkeys(("knows_truth", "decides_each_arrival", "sees_ticks", "counts_visits", "learns_each_tick"), False),
    **dict.fromkeys(("knows_service_rate", "knows_patience", "knows_rewards", "knows_holding_costs"), True),
    **dict.fromkeys(("sees_rejected", "sees_classes"), True),
}


class _Forwarded:
    """A trait of a `StandIn`: that of the object it stands for."""

    def __init__(self, trait: str) -> None:
        self.trait = trait

    def __get__(self, instance: StandIn | None, owner: type) -> bool:
        return bool(getattr(getattr(instance, "given", None), self.trait, TRAITS[self.trait]))


class StandIn(Controller):
    """A controller in the place of a given object, with the traits that this one has."""

    def __init__(self, given: Any, name: str) -> None:
        self.given = given
        self.name = name  # type: ignore[misc]


for _trait in TRAITS:
    setattr(StandIn, _trait, _Forwarded(_trait))


@dataclass(frozen=True)
class FixedSession:
    """One policy for ever."""

    policy: Policy

    def first(self) -> Plan:
        return Plan(policy=self.policy)

    def review(self, tally: Tally) -> Plan:
        return Plan(policy=self.policy)
