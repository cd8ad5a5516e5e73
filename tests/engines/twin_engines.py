"""Both engines side by side: random queues, controllers of every kind, and all that a run leaves behind as bytes."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from generators import random_cost

import queueing_ucrl as qu
from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.model.costs import HoldingCost
from queueing_ucrl.simulation.changes import Changes
from queueing_ucrl.simulation.control_loop import ControlLoop
from queueing_ucrl.simulation.engine import Engine
from queueing_ucrl.simulation.event_log import MemoryLog
from queueing_ucrl.simulation.ledger import Ledger, Unfinished
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import Source, job_sources, tick_source
from queueing_ucrl.solvers.optimum import optimum


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def squared(wait: float) -> float:
    return wait * wait


def any_cost(random: np.random.Generator, reward: float, mean_wait: float) -> HoldingCost:
    """A cost of any kind, also a function of Python."""
    return qu.Custom(squared) if random.integers(7) == 0 else random_cost(random, reward, mean_wait)


def engine_queue(random: np.random.Generator, number: int = 0) -> qu.Queue:
    """m 1 to 8, c 1 to 60, S 1 to 300, loads 0.1 to 5, every kind of cost.

    Where `any_controller` asks for a solver that large queues are too much for, S is 1 to 40.
    """
    largest = 40 if number % 10 in (2, 3, 4) else 300
    m, servers, capacity = (int(random.integers(1, most + 1)) for most in (8, 60, largest))
    service_rate = log_uniform(random, 0.01, 100.0)
    total = log_uniform(random, 0.1, 5.0) * min(servers, capacity) * service_rate
    shares = random.dirichlet(np.ones(m)) + 0.01
    mean_wait = (1 + 0.3 * max(0, capacity - servers)) / (servers * service_rate)
    classes = []
    for i, share in enumerate(shares / shares.sum()):
        reward = float(random.uniform(1.0, 20.0))
        classes.append(qu.JobClass(f"class {i}", total * float(share), reward, any_cost(random, reward, mean_wait)))
    return qu.Queue(servers, capacity, service_rate, classes)


# ---- controllers


class Ticker(qu.Controller):
    """Tosses a coin for each state and class, again whenever a state was seen as often as in all time before."""

    name = "ticker"
    sees_ticks = True

    def __init__(self, period: float = np.inf) -> None:
        self.period = period

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Any:
        return TickerSession(knowledge, rng, self.period)


class TickerSession:
    def __init__(self, knowledge: Knowledge, rng: np.random.Generator, period: float) -> None:
        self.shape, self.rng, self.period = knowledge.rewards.shape, rng, period
        self.seen = np.zeros(knowledge.capacity + 1, dtype=np.int64)

    def first(self) -> qu.Plan:
        return self._plan(0.0)

    def review(self, tally: qu.Tally) -> qu.Plan:
        assert tally.ticks is not None
        self.seen += tally.ticks.visits
        return self._plan(tally.now)

    def _plan(self, now: float) -> qu.Plan:
        policy = qu.Policy(self.rng.random(self.shape) < 0.6)
        return qu.Plan(until=now + self.period, policy=policy, visit_limits=np.maximum(1, self.seen))


@dataclass
class Recorder:
    """Keeps every tally that a session is handed, as it was then."""

    tallies: list[qu.Tally] = field(default_factory=list)

    def __call__(self, tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            self.tallies.append(pickle.loads(pickle.dumps(tally)))


def any_controller(number: int, queue: qu.Queue, horizon: float, random: np.random.Generator) -> tuple[Any, float]:
    """(controller, solver latency): all kinds in turn."""
    rate = queue.total_arrival_rate
    solvers = ("pi-b", "pi", "vi", "vi-ae", "lp")
    kind, latency = number % 10, [0.0, horizon / 37][number // 10 % 2]
    if kind < len(solvers):
        bounds = (rate * random.uniform(0.3, 1.0), rate * random.uniform(1.0, 3.0))
        first = max(1.5 / queue.service_rate, horizon / 40)
        return qu.UcrlAc(bounds, first, solver=solvers[kind], learn_upper_bound=bool(number % 2)), latency
    if kind == 5:
        return qu.Oracle(), latency
    if kind == 6:
        return qu.RandomPolicy(0.7, horizon / 23.3), latency
    if kind == 7:
        levels = random.integers(0, queue.capacity + 1, len(queue.classes))
        return qu.TrunkReservation(tuple(int(level) for level in levels)), latency
    return Ticker(np.inf if kind == 8 else horizon / 11.1), 0.0


# ---- runs


def new_engine(
    kind: type[Engine],
    queue: qu.Queue,
    controller: Any,
    *,
    horizon: float,
    seed: int = 0,
    latency: float = 0.0,
    grid: Any = (),
    sources: list[Source] | None = None,
) -> Engine:
    """An engine before its run, as `simulate` makes it, with a log in memory."""
    settings = qu.RunSettings(horizon, seed=seed, solver_latency=latency)
    randomness = Randomness(seed, 0)
    times = np.append(np.asarray(grid, dtype=float), horizon)
    ledger = Ledger(Comparator(queue, *optimum(queue)), times)
    control = ControlLoop(controller, randomness.controller(), ledger, Recorder())
    if sources is None:
        sources = job_sources(queue, randomness, horizon)
    if controller.sees_ticks and len(sources) == len(queue.classes):
        sources = [*sources, tick_source(queue, randomness, horizon)]
    changes = Changes(queue, randomness, horizon)
    return kind(control, sources, changes, settings, MemoryLog(queue, 0))


def as_story(table: str) -> list[tuple[Any, ...]]:
    """(time, event, whole numbers) of each line of a table; its first line has the names of the columns."""
    lines = [line.split() for line in table.split("\n") if line.strip()]
    return [(float(time), event, *map(int, numbers)) for time, event, *numbers in lines[1:]]


def tallies(engine: Engine) -> list[qu.Tally]:
    """What the controller was handed in a run of `new_engine`."""
    assert isinstance(engine.control.on_review, Recorder)
    return engine.control.on_review.tallies


def plain(item: Any) -> Any:
    """Anything as nested tuples that are equal only if every bit is."""
    if isinstance(item, np.ndarray):
        return (item.dtype.str, item.shape, item.tobytes())
    if isinstance(item, qu.Policy):
        return plain(item.admits)
    if is_dataclass(item):
        return tuple((f.name, plain(getattr(item, f.name))) for f in fields(item))
    if isinstance(item, (list, tuple)):
        return tuple(plain(each) for each in item)
    if isinstance(item, dict):
        return tuple((key, plain(value)) for key, value in item.items())
    if isinstance(item, (float, np.floating)):
        return float(item).hex()
    return item


def left_behind(engine: Engine, unfinished: list[Unfinished]) -> dict[str, Any]:
    """The event log and all else that a run leaves behind, by name."""
    ledger = engine.ledger
    blocks = engine.log.blocks  # type: ignore[union-attr]
    return {
        "log": b"".join(block.tobytes() for block in blocks),
        "totals": plain(ledger.totals),
        "episodes": plain(ledger.episodes),
        "segments": plain(ledger.segments),
        "busy_time": ledger.busy_time,
        "waits": plain([ledger.waits.cost_sum, ledger.waits.wait_sum, ledger.waits.histogram]),
        "started": plain(ledger.waits.started),
        "counts": plain([ledger.admitted, ledger.rejected, ledger.blocked]),
        "tallies": plain(tallies(engine)),
        "solves": [(r.time, r.method, r.iterations, r.gain) for r in engine.control.solver.records],
        "unfinished": plain(unfinished),
    }


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs, by name."""
    return [name for name in one if one[name] != other[name]]


def is_compiled_once(loop: Any) -> bool:
    """Whether all calls of a loop so far, of whatever test, needed one machine code: one more where somebody learns."""
    signatures = loop.signatures
    return len({of[:-1] for of in signatures}) == 1 and len(signatures) <= 2
