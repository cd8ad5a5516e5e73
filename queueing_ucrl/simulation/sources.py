"""The sample path is an input: jobs with all their chance, drawn before anybody decides.

A service time, a patience, a set-up time and what it would pay are drawn for every job, admitted or not: job n of class
i is the same job under every controller, so controllers are compared on common random numbers. Engines see absolute
times and the numbers of each job; laws, patterns and thinning end here (how each works: `model.laws`, `model.arrivals`;
the generators: `seeding`). What happens by the clock and is no job: `changes`. A job that balks has a number among the
others, and a uniform number that says at how many jobs it would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.messages import shown
from queueing_ucrl.model.arrivals import ArrivalStream, PoissonStream, add_up
from queueing_ucrl.model.chain_path import ChainPath
from queueing_ucrl.model.laws import Exponential, Law, Stream
from queueing_ucrl.model.rate_patterns import ArrivalPattern, Steady, pattern_factor
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.environment_path import environment_path
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.variates import Exponentials, Uniforms

JOBS_AT_A_TIME = 4096  # the numbers do not depend on it


class JobBlock(NamedTuple):
    """Room for a stretch of jobs; a column that no engine asks for is empty."""

    time: FloatArray  # when each comes
    work: FloatArray  # the service it needs
    patience: FloatArray  # how long it waits for its start; infinite: for ever
    setup: FloatArray  # the set-up that an idle server would need for it
    pay: FloatArray  # what it pays, if it is let in
    join: FloatArray  # a uniform number: it asks to be let in if that is below b_i(s), else it balks


def job_block(system: System, size: int) -> JobBlock:
    """An empty one, with the columns that jobs of a system need."""
    impatient = any(system.patience_of(i) is not None for i in range(len(system.classes)))
    columns = (True, True, impatient, system.setup is not None, system.pays_differ, system.balks)
    return JobBlock(*(np.empty(size if needed else 0) for needed in columns))


class Source(Protocol):
    """Jobs of one class, one stretch after the other."""

    def fill(self, block: JobBlock) -> int:
        """How many jobs there are in this stretch, one at least. After the last job there is one that comes at
        infinity.
        """
        ...


@dataclass
class JobSource:
    """The jobs that an arrival process and laws of service, patience, set-up and pay make up to a horizon."""

    arrivals: ArrivalStream
    services: Stream
    horizon: float
    patience: Stream | None = None
    setup: Stream | None = None
    pay: Stream | None = None
    reward: float = 0.0  # what each pays where `pay` is None
    join: Stream | None = None

    def fill(self, block: JobBlock) -> int:
        times = block.time
        while True:
            kept = self.arrivals.fill(times)
            self.draw(block)
            if kept is None:
                return times.size
            last, count = float(times[-1]), int(np.count_nonzero(kept))
            if count:
                for column in block:
                    if column.size:
                        column[:count] = column[kept]
                return count
            if last > self.horizon:  # nobody comes any more
                times[0] = math.inf
                return 1

    def draw(self, block: JobBlock) -> None:
        """All numbers of the jobs but when they come."""
        self.services.fill(block.work)
        others = ((self.patience, math.inf), (self.setup, 0.0), (self.pay, self.reward), (self.join, 0.0))
        for column, (stream, otherwise) in zip(block[2:], others, strict=True):
            if column.size and stream is None:
                column[:] = otherwise
            elif column.size and stream is not None:
                stream.fill(column)


def _check_stream(stream: Any, whose: str) -> None:
    if not callable(getattr(stream, "fill", None)):
        raise TypeError(f"{whose}: stream() must return an object with `fill`, got {shown(stream)}")


class CheckedArrivals:
    """The arrivals of a process that is not ours: times that no engine could follow are an error, not a wrong path."""

    def __init__(self, name: str, stream: ArrivalStream) -> None:
        self.whose, self.stream, self.now = f"class {name!r}: its arrivals", stream, 0.0
        _check_stream(stream, self.whose)

    def fill(self, times: FloatArray) -> BoolArray | None:
        times[:] = math.nan
        kept = self.stream.fill(times)
        before = np.concatenate(([self.now], times[:-1]))
        wrong = ~(times >= before)  # nan: not filled
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(f"{self.whose} must never go back in time, got {times[k]} after {before[k]}")
        self.now = float(times[-1])
        if kept is not None and (getattr(kept, "dtype", None) != np.bool_ or kept.shape != times.shape):
            raise TypeError(f"{self.whose}: fill() must return None, or a truth value for each time, got {shown(kept)}")
        return kept


class CheckedTimes:
    """Times of a law that is not ours, such as service times: likewise."""

    def __init__(self, whose: str, stream: Stream) -> None:
        self.whose, self.stream = whose, stream
        _check_stream(stream, self.whose)

    def fill(self, out: FloatArray) -> None:
        out[:] = math.nan
        self.stream.fill(out)
        wrong = ~((out >= 0.0) & (out < math.inf))
        if wrong.any():
            raise ValueError(f"{self.whose} must be finite numbers of at least 0, got {out[int(np.argmax(wrong))]}")


def checked_stream(law: Law, rng: np.random.Generator, whose: str) -> Stream:
    """The numbers of a law, checked where they are not ours."""
    stream = law.stream(rng)
    return stream if type(law) is Exponential else CheckedTimes(whose, stream)


class PoissonInEnvironment:
    """A Poisson process whose rate a pattern and an environment scale: candidates at the largest rate, thinned."""

    def __init__(self, rate: float, pattern: ArrivalPattern, factors: FloatArray, path: ChainPath, rng: Any):
        self.pattern, self.factors, self.path = pattern, factors, path
        self.ceiling = pattern.ceiling * float(factors.max())
        self.mean_gap = 1.0 / (rate * self.ceiling)
        self.gaps, self.thinning = Exponentials(rng("gaps")), rng("thinning")
        self.now = 0.0

    def fill(self, times: FloatArray) -> BoolArray | None:
        self.gaps.fill(times)
        self.now = add_up(self.now, self.mean_gap, times)
        kind, numbers = self.pattern.code
        states, uniforms = self.path.at(times), self.thinning.random(times.size)
        return _thinned(kind, numbers, self.ceiling, self.factors, states, times, uniforms)


@compiled
def _thinned(
    kind: int,
    numbers: FloatArray,
    ceiling: float,
    factors: FloatArray,
    states: IntArray,
    times: FloatArray,
    uniforms: FloatArray,
) -> BoolArray:
    """Which candidates are jobs: one at time t whose uniform number is below factor(t) factors[e(t)] / ceiling."""
    kept = np.empty(times.size, dtype=np.bool_)
    for k in range(times.size):
        kept[k] = uniforms[k] * ceiling < pattern_factor(kind, numbers, times[k]) * factors[states[k]]
    return kept


def environment_factors(system: System, i: int) -> FloatArray | None:
    """How an environment scales the arrivals of a class; None: not at all. It can scale Poisson processes only."""
    if system.environment is None or np.all(system.environment.factors(i) == 1.0):
        return None
    if system.classes[i].arrivals is not None:
        name = system.classes[i].name
        raise ValueError(
            f"class {name!r} does not come by a Poisson process, so an environment cannot scale its rate: "
            "its arrival_factors must be 1"
        )
    return np.array(system.environment.factors(i))


def _arrivals(system: System, i: int, randomness: Randomness) -> ArrivalStream:
    """When jobs of a class come."""
    c, rng, factors = system.classes[i], partial(randomness.for_arrivals, i), environment_factors(system, i)
    if factors is not None:
        assert system.environment is not None
        path = environment_path(system.environment, randomness)
        return PoissonInEnvironment(c.arrival_rate, c.pattern, factors, path, rng)
    arrivals = c.arrival_process.stream(rng)
    return arrivals if c.arrivals is None else CheckedArrivals(c.name, arrivals)


def job_sources(system: System, randomness: Randomness, horizon: float) -> list[Source]:
    """A source for each class."""
    return [_job_source(system, i, randomness, horizon) for i in range(len(system.classes))]


def _job_source(system: System, i: int, randomness: Randomness, horizon: float, initial: str = "") -> JobSource:
    """initial: before the purposes of random numbers for jobs that are there at time 0."""
    name, patience, pays = f"class {system.classes[i].name!r}:", system.patience_of(i), system.classes[i].pays
    patiences = setups = amounts = joins = None
    if patience is not None:
        patiences = checked_stream(patience, randomness.rng(i, f"{initial}patience"), f"{name} its patience")
    if system.setup is not None:
        setups = checked_stream(system.setup.time, randomness.rng(i, f"{initial}setup"), "setup: time")
    if pays is not None:
        amounts = checked_stream(pays, randomness.rng(i, f"{initial}pay"), f"{name} what its jobs pay")
    if system.classes[i].balking is not None and not initial:
        joins = Uniforms(randomness.rng(i, "join"))
    services = checked_stream(system.law(i), randomness.rng(i, f"{initial}services"), f"{name} its service times")
    arrivals, reward = _arrivals(system, i, randomness), system.classes[i].reward
    return JobSource(arrivals, services, horizon, patiences, setups, amounts, reward, joins)


def initial_jobs(system: System, randomness: Randomness) -> tuple[IntArray, JobBlock]:
    """The jobs that are there at time 0, class by class: their classes and their numbers."""
    counts = dict(system.initial or ())
    classes = [i for i, name in enumerate(system.class_names) for _ in range(counts.get(name, 0))]
    jobs = job_block(system, len(classes))
    jobs.time[:] = 0.0
    done = 0
    for i, name in enumerate(system.class_names):
        count = counts.get(name, 0)
        if count:
            mine = JobBlock(*(column[done : done + count] for column in jobs))
            _job_source(system, i, randomness, 0.0, "initial ").draw(mine)
            done += count
    return np.array(classes, dtype=np.int64), jobs


def tick_source(system: System, randomness: Randomness, horizon: float) -> Source:
    """Candidates for ticks of the uniformized chain at which nothing happens, at rate mu(S); uniform numbers for work:
    one that finds the chain in s is a tick if its number is at least mu(s) / mu(S).
    """
    gaps, uniforms = Exponentials(randomness.rng(0, "ticks")), Uniforms(randomness.rng(1, "ticks"))
    mean_gap = 1.0 / float(system.queue.service_rates[-1])
    return JobSource(PoissonStream(mean_gap, gaps, Steady(), None), uniforms, horizon)


def one_by_one(source: Source, system: System) -> Iterator[tuple[float, ...]]:
    """(time, work, patience, set-up, pay, join) of one job after the other."""
    block = job_block(system, JOBS_AT_A_TIME)
    while True:
        count = source.fill(block)
        yield from listed_jobs(JobBlock(*(column[:count] for column in block)))


def listed_jobs(block: JobBlock) -> Iterator[tuple[float, ...]]:
    """(time, work, patience, set-up, pay, join) of each job; without a column, infinite patience, 0 for the others."""
    patience = block.patience.tolist() if block.patience.size else repeat(math.inf)
    others = (column.tolist() if column.size else repeat(0.0) for column in (block.setup, block.pay, block.join))
    return zip(block.time.tolist(), block.work.tolist(), patience, *others, strict=False)
