"""The M/M/c/S queue with m classes of jobs, and the birth-death decision model it yields.

Symbols: c = servers, S = capacity, mu = service_rate, lambda_i = arrival_rate, R_i = reward, C_i = holding_cost;
mu(s) = min(s, c) mu, r_i(s) = R_i - E[C_i(W(s))], with W(s) = 0 for s < c and Erlang(s - c + 1, c mu) above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from queueing_ucrl.messages import shortened, shown
from queueing_ucrl.model.checks import (
    ReadOnlyArrays,
    listed,
    not_negative,
    one_line,
    positive,
    read_only,
    table_of_numbers,
    whole,
)
from queueing_ucrl.model.costs import Custom, Free, HoldingCost
from queueing_ucrl.model.patterns import ArrivalPattern, Steady
from queueing_ucrl.model.waits import ErlangWaits, FloatArray

IntArray = npt.NDArray[np.int64]

LARGEST_TABLE = 10**7  # entries of a state-by-class table
RATE_RANGE = 1e100  # largest over smallest positive rate; beyond it products of ratios leave double precision


SLOWEST, FASTEST = 1e-150, 1e150  # rates whose squares, and the squares of the times between events, are doubles
LONGEST_RUN = 1e13  # arrivals: at ten million a second, more than ten days
SHORTEST_PERIOD = 1e-12  # of a pattern, of the horizon: the clock has 16 digits, of which the phase needs four


@dataclass(frozen=True)
class JobClass:
    """Jobs of one kind: how often they come, what they pay, what their waiting costs."""

    name: str
    arrival_rate: float  # lambda_i, jobs per unit of time
    reward: float  # R_i, collected at admission
    holding_cost: HoldingCost = field(default_factory=Free)
    pattern: ArrivalPattern = field(default_factory=Steady)  # how the arrival rate changes in time

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", one_line(self.name, "a class's name"))
        words = f"class {self.name!r}:"
        object.__setattr__(self, "arrival_rate", positive(self.arrival_rate, f"{words} arrival_rate"))
        object.__setattr__(self, "reward", not_negative(self.reward, f"{words} reward"))
        if not isinstance(self.holding_cost, HoldingCost):
            if not callable(self.holding_cost) or isinstance(self.holding_cost, type):
                raise ValueError(f"{words} holding_cost must be a cost such as Linear(0.1) or a function")
            function = cast(Callable[[float], float], self.holding_cost)
            object.__setattr__(self, "holding_cost", Custom(function))
        if not isinstance(self.pattern, ArrivalPattern):
            raise ValueError(f"{words} pattern must be an arrival pattern such as Sinusoid(0.5, 24.0)")
        for rate, which in ((self.arrival_rate, ""), (self.peak_rate, " times the pattern's largest factor")):
            if not SLOWEST <= rate <= FASTEST:
                raise ValueError(
                    f"{words} arrival_rate{which} must lie between {SLOWEST:g} and {FASTEST:g}, got {rate:g}"
                )

    @property
    def peak_rate(self) -> float:
        """The largest arrival rate over time: of the candidates for jobs that are made."""
        return self.arrival_rate * self.pattern.ceiling


@dataclass(frozen=True, eq=False)
class AdmissionModel(ReadOnlyArrays):
    """A controlled birth-death chain on 0 .. S: what every solver takes.

    arrival_rates[s, i] and rewards[s, i] for s = 0 .. S - 1 (an arrival in S is blocked), service_rates[s] = mu(s)
    for s = 0 .. S. The rates may depend on the state: the optimistic model of the paper (Thm 4.3) needs it.
    """

    arrival_rates: FloatArray
    rewards: FloatArray
    service_rates: FloatArray

    def __post_init__(self) -> None:
        for name in ("arrival_rates", "rewards", "service_rates"):
            object.__setattr__(self, name, table_of_numbers(getattr(self, name), name))
        rates, rewards, service = self.arrival_rates, self.rewards, self.service_rates
        if rates.ndim != 2 or 0 in rates.shape or rewards.shape != rates.shape:
            raise ValueError(
                "arrival_rates and rewards must be tables of the same shape (S states, m classes), "
                f"got {rates.shape} and {rewards.shape}"
            )
        if service.shape != (len(rates) + 1,):
            raise ValueError(f"service_rates must hold S + 1 = {len(rates) + 1} rates, got shape {service.shape}")
        if np.any(rates < 0):
            raise ValueError("arrival_rates must not be negative")
        if service[0] != 0 or np.any(service[1:] <= 0):
            raise ValueError("service_rates must be 0 in state 0 and positive above")
        positive = rates[rates > 0]
        largest = max(float(service.max()), float(positive.max(initial=0.0)))
        smallest = min(float(service[1:].min()), float(positive.min(initial=math.inf)))
        if largest > RATE_RANGE * smallest:
            raise ValueError(f"rates from {smallest} to {largest} are too far apart for double precision")

    @property
    def capacity(self) -> int:
        """S."""
        return len(self.arrival_rates)

    @property
    def class_count(self) -> int:
        """m."""
        return self.arrival_rates.shape[1]

    @cached_property
    def reward_scale(self) -> float:
        """max_i |r_i(0)|: what numerical errors are measured against."""
        return float(np.abs(self.rewards[0]).max())

    @cached_property
    def uniformization_rate(self) -> float:
        """U = max_s Lambda(s) + max_s mu(s)."""
        return float(self.arrival_rates.sum(axis=1).max() + self.service_rates.max())


@dataclass(frozen=True)
class Queue(ReadOnlyArrays):
    """An M/M/c/S queue with first-in-first-out waiting and m classes of jobs."""

    servers: int
    capacity: int
    service_rate: float
    classes: Sequence[JobClass]

    def __post_init__(self) -> None:
        object.__setattr__(self, "servers", whole(self.servers, "servers"))
        object.__setattr__(self, "capacity", whole(self.capacity, "capacity"))
        object.__setattr__(self, "service_rate", positive(self.service_rate, "service_rate"))
        object.__setattr__(self, "classes", listed(self.classes, "classes"))
        if not self.classes:
            raise ValueError("classes must hold at least one job class")
        if not all(isinstance(c, JobClass) for c in self.classes):
            raise TypeError("classes must be JobClass objects")
        twice = sorted(name for name, count in Counter(c.name for c in self.classes).items() if count > 1)
        if twice:
            named = shortened(", ".join(map(repr, twice)))
            raise ValueError(f"class names must differ, got {named} more than once")
        if not SLOWEST <= self.service_rate <= FASTEST:
            raise ValueError(f"service_rate must lie between {SLOWEST:g} and {FASTEST:g}, got {self.service_rate:g}")
        if self.servers > LARGEST_TABLE:
            raise ValueError(f"servers must be at most {LARGEST_TABLE}, got {shown(self.servers)}")
        if self.capacity * len(self.classes) > LARGEST_TABLE:
            raise ValueError(
                f"capacity x classes must be at most {LARGEST_TABLE}, got {shown(self.capacity)} x {len(self.classes)}"
            )

    @property
    def drifts(self) -> bool:
        """Whether arrival rates change in time."""
        return any(not isinstance(c.pattern, Steady) for c in self.classes)

    def must_be_steady(self) -> None:
        """Refuse a queue whose arrival rates change in time, for what holds with constant ones only."""
        if self.drifts:
            raise ValueError(
                "the queue's arrival rates change in time, so no one model holds: take queue.on_average() for their "
                "means, queue.at(time) for those of a moment, or Drift(queue) for what a policy earns as they change"
            )

    def at(self, time: float) -> Queue:
        """The queue as it would be for ever with the arrival rates of `time`; classes that do not come then come at a
        billionth of their rate.
        """
        return self._steady([c.pattern.factor(time) for c in self.classes])

    def on_average(self) -> Queue:
        """The queue with the arrival rates' long-run means: over a period; of steps that do not come again, the rate
        after the last one. No policy is promised the gain of this queue: its best policy may earn more or less on the
        drifting one. A queue that does not drift is its own mean.
        """
        return self._steady([c.pattern.mean for c in self.classes]) if self.drifts else self

    def _steady(self, factors: Sequence[float]) -> Queue:
        rates = [max(c.arrival_rate * max(f, 1e-9), SLOWEST) for c, f in zip(self.classes, factors, strict=True)]
        return self.with_arrival_rates(rates)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes' names, in order."""
        return tuple(c.name for c in self.classes)

    @cached_property
    def arrival_rates(self) -> FloatArray:
        """lambda_i."""
        return read_only(np.array([c.arrival_rate for c in self.classes]))

    @property
    def total_arrival_rate(self) -> float:
        """Lambda = sum_i lambda_i."""
        return float(self.arrival_rates.sum())

    @cached_property
    def class_probabilities(self) -> FloatArray:
        """p_i = lambda_i / Lambda."""
        return read_only(self.arrival_rates / self.arrival_rates.sum())

    @property
    def load(self) -> float:
        """Lambda / mu_max: above 1 the queue is overloaded."""
        return self.total_arrival_rate / self.max_service_rate

    @property
    def max_service_rate(self) -> float:
        """mu_max = mu(S) = min(S, c) mu."""
        return min(self.servers, self.capacity) * self.service_rate

    @property
    def max_reward(self) -> float:
        """R_max = max_i R_i."""
        return max(c.reward for c in self.classes)

    @cached_property
    def service_rates(self) -> FloatArray:
        """mu(s) = min(s, c) mu for s = 0 .. S."""
        return read_only(np.minimum(np.arange(self.capacity + 1), self.servers) * self.service_rate)

    @cached_property
    def waits(self) -> ErlangWaits:
        """The waits of jobs admitted in s = c .. S - 1."""
        return ErlangWaits(self.servers, self.service_rate, max(0, self.capacity - self.servers))

    @cached_property
    def mean_waits(self) -> FloatArray:
        """E[W(s)] for s = 0 .. S - 1."""
        return read_only(np.concatenate([np.zeros(min(self.servers, self.capacity)), self.waits.mean]))

    @cached_property
    def rewards(self) -> FloatArray:
        """r_i(s) = R_i - E[C_i(W(s))] for s = 0 .. S - 1, one column a class."""
        table = np.empty((self.capacity, len(self.classes)))
        problems = []
        for i, job_class in enumerate(self.classes):
            table[:, i] = job_class.reward
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    table[self.servers :, i] -= job_class.holding_cost.expected(self.waits)
                if not np.all(np.isfinite(table[:, i])):
                    raise OverflowError
            except ValueError as error:
                problems.append(f"class {job_class.name!r}: {error}")
            except OverflowError:
                problems.append(f"class {job_class.name!r}: the expected holding cost is too large for a double")
        if problems:
            raise ValueError("\n".join(problems))
        return read_only(table)

    @cached_property
    def priorities(self) -> IntArray:
        """In each state the classes by decreasing r_i(s), the first named first among equals."""
        return read_only(np.argsort(-self.rewards, axis=1, kind="stable"))

    @cached_property
    def model(self) -> AdmissionModel:
        """The queue as a decision model, its rates the same in every state (and at all times)."""
        self.must_be_steady()
        rates = read_only(np.tile(self.arrival_rates, (self.capacity, 1)))
        return AdmissionModel(rates, self.rewards, self.service_rates)

    def check_horizon(self, horizon: float) -> float:
        """A horizon that a run can come to the end of; a run of more than LONGEST_RUN arrivals is refused."""
        horizon = positive(horizon, "horizon")
        rate = sum(c.peak_rate for c in self.classes)
        if horizon * rate > LONGEST_RUN:
            raise ValueError(
                f"horizon {horizon:g} at up to {rate:g} arrivals per unit of time means {horizon * rate:.3g} arrivals: "
                f"more than {LONGEST_RUN:g} would take weeks; choose a shorter horizon"
            )
        for c in self.classes:
            if c.pattern.period < SHORTEST_PERIOD * horizon:
                raise ValueError(
                    f"class {c.name!r}: a period of {c.pattern.period:g} cannot be told from the next at a time of "
                    f"{horizon:g} in double precision; choose a longer period or a shorter horizon"
                )
        return horizon

    def plain_data(self) -> dict[str, Any]:
        """The queue as it can be written to a JSON file; of a cost that is a function, its name."""

        def parts(item: Any) -> dict[str, Any]:
            if isinstance(item, Custom):
                return {"kind": "Custom", "function": getattr(item.function, "__qualname__", "")}
            numbers = {key: None if value == math.inf else value for key, value in asdict(item).items()}
            return {"kind": type(item).__name__, **numbers}

        return {
            "servers": self.servers,
            "capacity": self.capacity,
            "service_rate": self.service_rate,
            "classes": [
                {
                    "name": c.name,
                    "arrival_rate": c.arrival_rate,
                    "reward": c.reward,
                    "holding_cost": parts(c.holding_cost),
                    "pattern": parts(c.pattern),
                }
                for c in self.classes
            ],
        }

    def with_arrival_rates(self, rates: Sequence[float]) -> Queue:
        """The same queue with other arrival rates, the same at all times."""
        classes = [
            JobClass(c.name, rate, c.reward, c.holding_cost) for c, rate in zip(self.classes, rates, strict=True)
        ]
        return Queue(self.servers, self.capacity, self.service_rate, classes)
