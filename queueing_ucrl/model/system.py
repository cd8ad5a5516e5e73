"""What is simulated, and its Markov case: c servers, room for S jobs, m classes.

A `System` takes any law of service and patience, any way of coming, and servers that come and go; a `Queue` is the
M/M/c/S case, whose `model` can be solved.

Symbols: c = servers, S = capacity, mu = service_rate, lambda_i = arrival_rate, R_i = reward, C_i = holding_cost;
theta = patience_rate, a_i = abandonment_cost; b_i(s) = balking, lambda_i(s) = lambda_i b_i(s);
mu(s) = min(s, c) mu + (s - c)^+ theta and
r_i(s) = R_i P(paid) - E[C_i(W(s))] - a_i P(abandon), with W(s) = 0 for s < c, and above Erlang(s - c + 1, c mu) without
patience, as `impatience` says with it.

One file, though a long one: what a system may have is checked against all else that it has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.messages import shortened, shown
from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.arrivals import ArrivalProcess, Poisson
from queueing_ucrl.model.balking import Balking, by_state
from queueing_ucrl.model.checks import (
    ReadOnlyArrays,
    listed,
    not_negative,
    one_line,
    positive,
    read_only,
    whole,
)
from queueing_ucrl.model.costs import Custom, Free, HoldingCost, check_own_cost, expected_rewards
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.model.impatience import death_rates, waits_of
from queueing_ucrl.model.laws import Exponential, Law
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Steady
from queueing_ucrl.model.servers import Breakdowns, Setup, Shifts
from queueing_ucrl.model.waits import Waits

LARGEST_TABLE = 10**7  # entries of a state-by-class table


SLOWEST, FASTEST = 1e-150, 1e150  # rates whose squares, and the squares of the times between events, are doubles
LONGEST_RUN = 1e13  # arrivals: at ten million a second, more than ten days
REWARD_AT = ("admission", "start", "end")
DISCIPLINES = ("fifo", "processor-sharing")
SHORTEST_PERIOD = 1e-12  # of a pattern, of the horizon: the clock has 16 digits, of which the phase needs four


@dataclass(frozen=True)
class JobClass:
    """Jobs of one kind: how they come, what they pay, what their waiting costs, and how long they take.

    They come by a Poisson process of rate arrival_rate * pattern, or as `arrivals` says. `service` is for a `System`;
    in a `Queue` all classes are served at the queue's service rate. A job that is not served within its `patience`
    gives up, and that costs `abandonment_cost`; the holding cost is of its time in the queue either way. With `balking`
    not all who come ask to be let in: that depends on how many jobs they find. `arrival_rates` says the same by the
    rates lambda_i(s) of those who ask where there are s jobs (the last one for all s beyond), and takes the place of
    arrival_rate and balking.
    """

    name: str
    arrival_rate: float = math.nan  # lambda_i, jobs per unit of time
    reward: float = math.nan  # R_i, collected when `reward_at` says; where `pays` is given, its mean
    holding_cost: HoldingCost = field(default_factory=Free)
    pattern: ArrivalPattern = field(default_factory=Steady)  # how the arrival rate changes in time
    arrivals: ArrivalProcess | None = None
    service: Law | None = None
    patience: Law | None = None  # for its start; None: the system's, and if that has none, it waits for ever
    abandonment_cost: float = 0.0  # a_i
    reward_at: str = "admission"  # | "start" | "end" of service
    balking: Balking | None = None  # who asks to be let in; None: everybody who comes
    arrival_rates: Sequence[float] | None = None  # lambda_i(s); None from the start on: see `_settle_rates`
    pays: Law | None = None  # what a job pays, where that differs from job to job; nobody knows before it has paid

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", one_line(self.name, "a class's name"))
        words = f"class {self.name!r}:"
        self._settle_rates(words)
        if not isinstance(self.pattern, ArrivalPattern):
            raise ValueError(f"{words} pattern must be an arrival pattern such as Sinusoid(0.5, 24.0)")
        self._settle_arrivals(words)
        self._settle_reward(words)
        if not isinstance(self.holding_cost, HoldingCost):
            if not callable(self.holding_cost) or isinstance(self.holding_cost, type):
                raise ValueError(f"{words} holding_cost must be a cost such as Linear(0.1) or a function")
            function = cast(Callable[[float], float], self.holding_cost)
            object.__setattr__(self, "holding_cost", Custom(function))
        try:
            check_own_cost(self.holding_cost)
        except ValueError as error:
            raise ValueError(f"{words} {error}") from error
        for part in ("service", "patience"):
            if not isinstance(getattr(self, part), Law | None):
                raise ValueError(
                    f"{words} {part} must be a law such as Exponential(0.3), got {shown(getattr(self, part))}"
                )
        cost = not_negative(self.abandonment_cost, f"{words} abandonment_cost")
        object.__setattr__(self, "abandonment_cost", cost)
        if self.reward_at not in REWARD_AT:
            raise ValueError(f"{words} reward_at must be one of {', '.join(REWARD_AT)}, got {shown(self.reward_at)}")
        for rate, which in ((self.arrival_rate, ""), (self.peak_rate, " times the pattern's largest factor")):
            if not SLOWEST <= rate <= FASTEST:
                raise ValueError(
                    f"{words} arrival_rate{which} must lie between {SLOWEST:g} and {FASTEST:g}, got {rate:g}"
                )

    def _settle_rates(self, words: str) -> None:
        """Rates by state are a largest rate, and balking."""
        if not isinstance(self.balking, Balking | None):
            raise ValueError(f"{words} balking must be such as GeometricBalking(0.8), got {shown(self.balking)}")
        if self.arrival_rates is None:
            return
        for name in ("arrivals", "balking"):
            if getattr(self, name) is not None:
                raise ValueError(f"{words} arrival_rates and {name} must not both be given")
        largest, balking = by_state(self.arrival_rates, f"{words} arrival_rates")
        if self.arrival_rate == self.arrival_rate and self.arrival_rate != largest:  # nan: not given
            raise ValueError(f"{words} arrival_rates and arrival_rate must not both be given")
        object.__setattr__(self, "arrival_rate", largest)
        object.__setattr__(self, "balking", balking)
        object.__setattr__(self, "arrival_rates", None)

    def _settle_arrivals(self, words: str) -> None:
        """Where `arrivals` are given, the rate and the pattern are theirs; a Poisson process is nothing else."""
        if self.arrivals is None:
            object.__setattr__(self, "arrival_rate", positive(self.arrival_rate, f"{words} arrival_rate"))
            return
        if not isinstance(self.arrivals, ArrivalProcess):
            raise ValueError(
                f"{words} arrivals must be an arrival process such as Poisson(1.0), got {shown(self.arrivals)}"
            )
        theirs = {"arrival_rate": getattr(self.arrivals, "rate", None), "pattern": Steady()}
        poisson = self.arrivals.as_poisson()
        if poisson is not None:
            theirs = {"arrival_rate": poisson.base_rate, "pattern": poisson.pattern}
        positive(theirs["arrival_rate"], f"{words} the rate of its arrivals")
        for (name, value), default in zip(theirs.items(), (math.nan, Steady()), strict=True):
            given = getattr(self, name)
            if given == given and given not in (value, default):  # nan: not given
                raise ValueError(f"{words} arrivals and {name} must not both be given")
            object.__setattr__(self, name, value)
        works = self.arrivals.service_law()
        if works is not None:
            if self.service not in (None, works):
                raise ValueError(f"{words} its arrivals come with their work: service must not be given too")
            object.__setattr__(self, "service", works)
        if poisson is not None:
            object.__setattr__(self, "arrivals", None)

    def _settle_reward(self, words: str) -> None:
        """Where it is said what its jobs pay, the reward is the mean of that."""
        if self.pays is not None:
            if not isinstance(self.pays, Law):
                raise ValueError(f"{words} pays must be a law such as LogNormal(20.0, 1.5), got {shown(self.pays)}")
            mean = positive(getattr(self.pays, "mean", None), f"{words} the mean of what its jobs pay")
            if self.reward == self.reward and self.reward != mean:  # nan: not given
                raise ValueError(f"{words} reward and pays must not both be given: the reward is the mean, {mean:g}")
            object.__setattr__(self, "reward", mean)
        object.__setattr__(self, "reward", not_negative(self.reward, f"{words} reward"))

    @property
    def arrival_process(self) -> ArrivalProcess:
        """How its jobs come."""
        return Poisson(self.arrival_rate, self.pattern) if self.arrivals is None else self.arrivals

    @property
    def peak_rate(self) -> float:
        """The largest arrival rate over time: of the candidates for jobs that are made."""
        return self.arrival_process.peak_rate


@dataclass(frozen=True)
class System(ReadOnlyArrays):
    """What can be simulated: c servers, room for S jobs, first in first out, m classes of jobs.

    servers: how many, or `Shifts`. patience: of classes that have none of their own. initial: jobs there at time 0, by
    class. With discipline "processor-sharing" nobody waits: n jobs are served at min(n, c) / n of a server each.
    """

    servers: int | Shifts
    capacity: int
    classes: Sequence[JobClass]
    patience: Law | None = None
    breakdowns: Breakdowns | None = None
    environment: Environment | None = None
    setup: Setup | None = None
    initial: Mapping[str, int] | tuple[tuple[str, int], ...] | None = None
    discipline: str = "fifo"

    def __post_init__(self) -> None:
        if not isinstance(self.servers, Shifts):
            object.__setattr__(self, "servers", whole(self.servers, "servers"))
        object.__setattr__(self, "capacity", whole(self.capacity, "capacity"))
        object.__setattr__(self, "classes", listed(self.classes, "classes"))
        if not self.classes:
            raise ValueError("classes must hold at least one job class")
        if not all(isinstance(c, JobClass) for c in self.classes):
            raise TypeError("classes must be JobClass objects")
        twice = sorted(name for name, count in Counter(c.name for c in self.classes).items() if count > 1)
        if twice:
            named = shortened(", ".join(map(repr, twice)))
            raise ValueError(f"class names must differ, got {named} more than once")
        if self.most_servers > LARGEST_TABLE:
            raise ValueError(f"servers must be at most {LARGEST_TABLE}, got {shown(self.most_servers)}")
        if self.capacity * len(self.classes) > LARGEST_TABLE:
            raise ValueError(
                f"capacity x classes must be at most {LARGEST_TABLE}, got {shown(self.capacity)} x {len(self.classes)}"
            )
        for c in self.classes:
            if c.balking is not None and not c.balking.probabilities(self.capacity).any():
                raise ValueError(f"class {c.name!r}: balking: none of its jobs ever joins fewer than {self.capacity}")
        self._check_service()
        self._check_world()

    def _check_world(self) -> None:
        """What goes beyond c servers that are always there, and patient jobs."""
        kinds = {"patience": Law, "breakdowns": Breakdowns, "environment": Environment, "setup": Setup}
        for name, kind in kinds.items():
            part = getattr(self, name)
            if not isinstance(part, kind | None):
                raise TypeError(f"{name} must be a {kind.__name__}, got {shown(part)}")
        for i, c in enumerate(self.classes):
            law = self.patience_of(i)
            if law is not None:
                positive(getattr(law, "mean", None), f"class {c.name!r}: the mean of its patience")
        if self.discipline not in DISCIPLINES:
            raise ValueError(f"discipline must be one of {', '.join(DISCIPLINES)}, got {shown(self.discipline)}")
        if self.environment is not None:
            factors = self.environment.arrival_factors
            if factors.ndim == 2 and factors.shape[1] != len(self.classes):
                raise ValueError(
                    f"environment: arrival_factors must have a column for each of {len(self.classes)} classes, "
                    f"got {factors.shape[1]}"
                )
            if self.environment.servers is not None and isinstance(self.servers, Shifts):
                raise ValueError("the environment and the shifts cannot both say how many servers are on duty")
        self._check_initial()
        if self.discipline != "fifo" and (self.breakdowns or self.setup or isinstance(self.servers, Shifts)):
            raise ValueError("processor sharing is for servers that are always there: no shifts, breakdowns or set-up")
        if self.discipline != "fifo" and any(self.patience_of(i) is not None for i in range(len(self.classes))):
            raise ValueError("processor sharing has no patience: jobs are served at once, and nobody waits to give up")

    def _check_initial(self) -> None:
        if self.initial is None:
            return
        try:
            given = dict(self.initial)
        except (TypeError, ValueError):
            raise TypeError(
                f"initial must say how many jobs of each class there are, got {shown(self.initial)}"
            ) from None
        unknown = [name for name in given if name not in self.class_names]
        if unknown:
            raise ValueError(f"initial: there is no class {shown(unknown[0])}")
        counts = {name: whole(given.get(name, 0), f"initial: {name}", 0) for name in self.class_names}
        if sum(counts.values()) > self.capacity:
            raise ValueError(f"initial: {sum(counts.values())} jobs are more than the capacity {self.capacity}")
        present = tuple((name, count) for name, count in counts.items() if count)
        object.__setattr__(self, "initial", present or None)

    def _check_service(self) -> None:
        for c in self.classes:
            if c.service is None:
                raise ValueError(
                    f"class {c.name!r}: service must be a law such as Exponential(0.3); a System needs one"
                )
            positive(getattr(c.service, "mean", None), f"class {c.name!r}: the mean of its service")

    @property
    def most_servers(self) -> int:
        """The largest number of servers on duty at any time."""
        if isinstance(self.servers, Shifts):
            return self.servers.most
        if self.environment is not None and self.environment.servers is not None:
            return max(self.environment.servers)
        return self.servers

    def patience_of(self, job_class: int) -> Law | None:
        """How long jobs of a class wait for their start; None: for ever."""
        own = self.classes[job_class].patience
        return self.patience if own is None else own

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes' names, in order."""
        return tuple(c.name for c in self.classes)

    @cached_property
    def arrival_rates(self) -> FloatArray:
        """lambda_i: of all who come, also of those who balk."""
        return read_only(np.array([c.arrival_rate for c in self.classes]))

    @property
    def total_arrival_rate(self) -> float:
        """Lambda = sum_i lambda_i; where jobs balk, all who come."""
        return float(self.arrival_rates.sum())

    @cached_property
    def class_probabilities(self) -> FloatArray:
        """p_i = lambda_i / Lambda."""
        return read_only(self.arrival_rates / self.arrival_rates.sum())

    @property
    def balks(self) -> bool:
        """Whether it depends on the number of jobs who asks to be let in."""
        return any(c.balking is not None for c in self.classes)

    @cached_property
    def joins(self) -> FloatArray:
        """b_i(s): the probability that a job of class i which finds s = 0 .. S jobs asks, one column a class."""
        table = np.ones((self.capacity + 1, len(self.classes)))
        for i, c in enumerate(self.classes):
            if c.balking is not None:
                table[:, i] = c.balking.probabilities(self.capacity + 1)
        return read_only(table)

    @cached_property
    def rates_by_state(self) -> FloatArray:
        """lambda_i(s) = lambda_i b_i(s) of those who ask, for s = 0 .. S, one column a class."""
        return read_only(self.arrival_rates * self.joins)

    @cached_property
    def job_rewards(self) -> FloatArray:
        """R_i."""
        return read_only(np.array([c.reward for c in self.classes]))

    @property
    def max_reward(self) -> float:
        """R_max = max_i R_i."""
        return max(c.reward for c in self.classes)

    @property
    def pays_differ(self) -> bool:
        """Whether jobs of one class may pay different amounts, of which R_i is the mean."""
        return any(c.pays is not None for c in self.classes)

    @property
    def drifts(self) -> bool:
        """Whether arrival rates change in time."""
        return any(not isinstance(c.pattern, Steady) for c in self.classes)

    def law(self, job_class: int) -> Law:
        """How long jobs of a class take."""
        law = self.classes[job_class].service
        assert law is not None
        return law

    @cached_property
    def not_markov(self) -> str:
        """Why the number of jobs is no Markov chain, in words; "" where it is."""
        for c in self.classes:
            if c.arrivals is not None:
                return f"class {c.name!r} does not come by a Poisson process"
            if c.service is None or not c.service.memoryless:
                return f"class {c.name!r}: its service times are not exponential"
        everybody = range(len(self.classes))
        if len({self.law(i).mean for i in everybody}) > 1:
            return "the classes' service times differ"
        patience = [self.patience_of(i) for i in everybody]
        if any(law is not None and not law.memoryless for law in patience):
            return "patience is not exponential"
        if len({None if law is None else law.mean for law in patience}) > 1:
            return "the classes' patience differs"
        return self.unsteady

    @property
    def unsteady(self) -> str:
        """Why there are not c servers at all times, first come first served; "" where there are."""
        reasons = {
            "the number of servers changes in time": isinstance(self.servers, Shifts),
            "servers break down": self.breakdowns is not None,
            "an environment changes rates and servers": self.environment is not None,
            "servers need a set-up after idling": self.setup is not None,
            "jobs share the servers": self.discipline != "fifo",
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    @cached_property
    def queue(self) -> Queue:
        """The M/M/c/S queue with the same means: what the operator reckons with.

        Of service, weighted by arrival rates (of all who come); of servers on duty and up, rounded; of the rate at
        which jobs give up.
        Exact where the system is Markov; else nobody promises that it earns what its model says.
        """
        mean = float(sum(p * self.law(i).mean for i, p in enumerate(self.class_probabilities)))
        patience = [self.patience_of(i) for i in range(len(self.classes))]
        theta = float(sum(p * _rate(law) for p, law in zip(self.class_probabilities, patience, strict=True)))
        if not self.not_markov:
            mean = self.law(0).mean
            theta = _rate(patience[0])
        servers, factors = float(self.most_servers), [1.0] * len(self.classes)
        if isinstance(self.servers, Shifts):
            servers = self.servers.mean
        if self.environment is not None:
            law = self.environment.stationary
            factors = [float((law * self.environment.factors(i)).sum()) for i in range(len(self.classes))]
            if self.environment.servers is not None:
                servers = float((law * self.environment.servers).sum())
        if self.breakdowns is not None:
            servers *= self.breakdowns.availability
        classes = [
            replace(c, arrival_rate=f * c.arrival_rate, arrivals=None, service=None, patience=None)
            for c, f in zip(self.classes, factors, strict=True)
        ]
        return Queue(
            max(1, round(servers)), self.capacity, 1.0 / mean, classes, patience=Exponential(theta) if theta else None
        )

    @cached_property
    def rewards(self) -> FloatArray:
        """r_i(s) for s = 0 .. S - 1, one column a class; nan where it is not known."""
        if self.not_markov:
            return read_only(np.full((self.capacity, len(self.classes)), math.nan))
        return self.queue.rewards

    @property
    def model(self) -> AdmissionModel:
        """The system as a decision model; a ValueError says why where it is none."""
        if self.not_markov:
            raise ValueError(f"no model to solve: {self.not_markov}")
        return self.queue.model

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
            refused = c.arrival_process.refuses(horizon)
            if refused:
                raise ValueError(f"class {c.name!r}: {refused}")
            period = c.arrival_process.period
            if period < SHORTEST_PERIOD * horizon:
                raise ValueError(
                    f"class {c.name!r}: a period of {period:g} cannot be told from the next at a time of "
                    f"{horizon:g} in double precision; choose a longer period or a shorter horizon"
                )
        if isinstance(self.servers, Shifts) and self.servers.period < SHORTEST_PERIOD * horizon:
            raise ValueError(
                f"shifts: a period of {self.servers.period:g} cannot be told from the next at a time of {horizon:g} in "
                "double precision; choose a longer period or a shorter horizon"
            )
        return horizon

    def plain_data(self) -> dict[str, Any]:
        """The system as it can be written to a JSON file, in the words of a scenario file; of a cost that is a
        function, and of a kind that is not ours, its name.
        """
        classes = []
        for c in self.classes:
            about = {"name": c.name, "arrival_rate": c.arrival_rate, "reward": c.reward}
            parts = {"holding_cost": c.holding_cost, "pattern": c.pattern}
            if c.service is not None:
                parts["service"] = c.service
            if c.arrivals is not None:
                parts["arrivals"] = c.arrivals
            if c.patience is not None:
                parts["patience"] = c.patience
            if c.balking is not None:
                parts["balking"] = c.balking
            if c.pays is not None:
                parts["pays"] = c.pays
            about |= {name: value for name, value in _beyond_default(c).items() if name not in (*about, *parts)}
            classes.append({**about, **{name: _parts(part) for name, part in parts.items()}})
        world = {
            name: dict(value) if name == "initial" else _plain(value)
            for name, value in _beyond_default(self).items()
            if name not in ("servers", "capacity", "classes", "service_rate")
        }
        return {"servers": _plain(self.servers), "capacity": self.capacity, "classes": classes, **world}


def _rate(law: Law | None) -> float:
    """1 / E[X], without a rounding where the rate is what is given; 0 for what never comes."""
    if law is None:
        return 0.0
    return law.rate if isinstance(law, Exponential) else 1.0 / law.mean


def _beyond_default(item: Any) -> dict[str, Any]:
    """The fields of a value object that are not as they are if nobody says anything."""
    return {f.name: getattr(item, f.name) for f in fields(item) if getattr(item, f.name) != f.default}


def _parts(item: Any) -> dict[str, Any]:
    """A cost, a pattern or a law as plain data, in the words of a scenario file."""
    kind = item.kind
    if isinstance(item, Custom):
        return {"kind": kind, "function": getattr(item.function, "__qualname__", "")}
    name = {"class": type(item).__qualname__} if kind == Custom.kind else {}
    return {"kind": kind, **name, **_values(item)}


def _values(item: Any) -> dict[str, Any]:
    """What a part says of itself, else the fields of a dataclass; of anything else none."""
    if hasattr(item, "plain_data"):
        return dict(item.plain_data())
    return {f.name: _plain(getattr(item, f.name)) for f in fields(item)} if is_dataclass(item) else {}


def _plain(value: Any) -> Any:
    """As JSON can say it, as far as it can; infinity as None."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value)) if isinstance(value, tuple) else [*map(_plain, value)]
    if value is None or isinstance(value, str | int | float):
        return None if value == math.inf else value
    if hasattr(value, "kind"):
        return _parts(value)
    named = value if hasattr(value, "__qualname__") else type(value)  # a function, or an object of some kind
    return _values(value) or named.__qualname__


@dataclass(frozen=True, init=False)
class Queue(System):
    """An M/M/c/S queue with first-in-first-out waiting and m classes of jobs: the Markov case, with a `model`.

    With an exponential `patience`, the same for all, it is M/M/c/S+M (Erlang-A), and Markov still.
    """

    servers: int
    service_rate: float  # type: ignore[misc]  # without a default: Queue has an __init__ of its own
    breakdowns: None = field(default=None, init=False)  # all that a Queue does not have
    environment: None = field(default=None, init=False)
    setup: None = field(default=None, init=False)
    discipline: str = field(default="fifo", init=False)

    def __init__(
        self,
        servers: int,
        capacity: int,
        service_rate: float,
        classes: Sequence[JobClass],
        patience: Law | None = None,
        initial: Mapping[str, int] | tuple[tuple[str, int], ...] | None = None,
    ) -> None:
        given = {"servers": servers, "capacity": capacity, "service_rate": service_rate, "classes": classes}
        for name, value in {**given, "patience": patience, "initial": initial}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _check_service(self) -> None:
        object.__setattr__(self, "service_rate", positive(self.service_rate, "service_rate"))
        if not SLOWEST <= self.service_rate <= FASTEST:
            raise ValueError(f"service_rate must lie between {SLOWEST:g} and {FASTEST:g}, got {self.service_rate:g}")
        for c in self.classes:
            if c.service is not None or c.arrivals is not None or c.patience is not None:
                raise ValueError(
                    f"class {c.name!r}: in a Queue jobs come by Poisson processes, are served at its service_rate "
                    "and have its patience; a System takes other laws"
                )
        if self.patience is not None and not (isinstance(self.patience, Law) and self.patience.memoryless):
            raise ValueError(
                f"patience must be a law such as Exponential(0.3), got {shown(self.patience)}; a System takes others"
            )
        if self.patience is not None and not SLOWEST <= self.patience_rate <= FASTEST:
            raise ValueError(
                f"patience must have a rate between {SLOWEST:g} and {FASTEST:g}, got {self.patience_rate:g}"
            )
        if isinstance(self.servers, Shifts):
            raise TypeError("servers must be a whole number of at least 1; a System takes Shifts")

    def law(self, job_class: int) -> Law:
        """How long jobs take: all alike."""
        return Exponential(self.service_rate)

    @property
    def not_markov(self) -> str:
        """It is."""
        return ""

    @property
    def unsteady(self) -> str:
        """It is not."""
        return ""

    @property
    def queue(self) -> Queue:
        """Itself."""
        return self

    def must_be_steady(self) -> None:
        """Refuse a queue whose arrival rates change in time, for what holds with constant ones only."""
        if self.drifts:
            raise ValueError(
                "the queue's arrival rates change in time, so no one model holds: take queue.on_average() for their "
                "means, queue.at(time) for those of a moment, solve_periodic(queue) for the best policy in time, or "
                "Drift(queue) for what a policy earns as they change"
            )

    def must_not_balk(self, what: str) -> None:
        """Refuse a queue where it depends on the state who asks, for what holds with rates that do not only."""
        if self.balks:
            raise ValueError(f"{what}: for arrival rates that are the same in all states, but jobs of this queue balk")

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
    def patience_rate(self) -> float:
        """theta: how often a waiting job gives up, per unit of time; 0 where jobs wait for ever."""
        return _rate(self.patience)

    @property
    def load(self) -> float:
        """Lambda / (min(S, c) mu): above 1 more comes than can be served; where jobs balk, if none of them did."""
        return self.total_arrival_rate / (min(self.servers, self.capacity) * self.service_rate)

    @property
    def max_service_rate(self) -> float:
        """mu_max = mu(S) = min(S, c) mu + (S - c)^+ theta: departures of a full house, those who give up among them."""
        return float(self.service_rates[-1])

    @property
    def abandons(self) -> bool:
        """Whether jobs give up: they have a patience, and room to wait. Then trunk reservation need not be optimal."""
        return self.patience is not None and self.capacity > self.servers

    @cached_property
    def service_rates(self) -> FloatArray:
        """mu(s) = min(s, c) mu + (s - c)^+ theta for s = 0 .. S."""
        return read_only(death_rates(self.servers, self.service_rate, self.patience_rate, self.capacity))

    @cached_property
    def waits(self) -> Waits:
        """The times in queue of jobs admitted in s = c .. S - 1."""
        return waits_of(self.servers, self.service_rate, self.patience_rate, self.capacity)

    @cached_property
    def mean_waits(self) -> FloatArray:
        """E[W(s)] for s = 0 .. S - 1."""
        return read_only(np.concatenate([np.zeros(min(self.servers, self.capacity)), self.waits.mean]))

    @cached_property
    def rewards(self) -> FloatArray:
        """r_i(s) = R_i P(paid) - E[C_i(W(s))] - a_i P(abandon) for s = 0 .. S - 1, one column a class."""
        return read_only(expected_rewards(self.classes, self.waits, self.capacity))

    @cached_property
    def priorities(self) -> IntArray:
        """In each state the classes by decreasing r_i(s), the first named first among equals."""
        return read_only(np.argsort(-self.rewards, axis=1, kind="stable"))

    @cached_property
    def model(self) -> AdmissionModel:
        """The queue as a decision model: lambda_i(s), the same at all times; in every state too where nobody balks."""
        self.must_be_steady()
        rates = read_only(self.rates_by_state[:-1].copy())
        return AdmissionModel(rates, self.rewards, self.service_rates)

    def plain_data(self) -> dict[str, Any]:
        return {**super().plain_data(), "service_rate": self.service_rate}

    def with_arrival_rates(self, rates: Sequence[float]) -> Queue:
        """The same queue with other arrival rates, the same at all times; those who come balk as before."""
        classes = [replace(c, arrival_rate=rate, pattern=Steady()) for c, rate in zip(self.classes, rates, strict=True)]
        return Queue(self.servers, self.capacity, self.service_rate, classes, self.patience, self.initial)
