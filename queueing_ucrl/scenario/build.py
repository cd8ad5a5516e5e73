"""From the tables of a scenario file to the system that they describe."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from queueing_ucrl.messages import shown
from queueing_ucrl.model.arrivals import ArrivalProcess, Poisson
from queueing_ucrl.model.costs import Free
from queueing_ucrl.model.laws import Exponential, Law
from queueing_ucrl.model.rate_patterns import Steady
from queueing_ucrl.model.servers import Breakdowns, Setup
from queueing_ucrl.model.system import FASTEST, SLOWEST, JobClass, Queue, System
from queueing_ucrl.scenario.keys import Class, File, ShiftsTable
from queueing_ucrl.scenario.parts import Rows, TraceTable, WayOfComing


def system_of(file: File, folder: Path) -> System:
    """What is simulated; a `Queue` where the number of jobs is a Markov chain. Files are looked for in the folder."""
    rows = None if file.arrivals is None else file.arrivals.made(folder)
    if rows is not None:
        _check_names(file.arrivals, rows, file.classes)
    classes = [_job_class(c, file, rows, folder) for c in file.classes]
    service = _service(file, folder)
    if service is not None and all(c.service is not None for c in classes):
        key = "service_rate" if file.queue.service is None else "service"
        raise ValueError(f"queue.{key} is for classes that have no service of their own, but all have one")
    if file.queue.patience is not None and all(c.patience is not None for c in classes):
        raise ValueError("queue.patience is for classes that have no patience of their own, but all have one")
    classes = [c if c.service is not None else replace(c, service=service) for c in classes]
    servers = file.queue.servers.made() if isinstance(file.queue.servers, ShiftsTable) else file.queue.servers
    system = _as_queue(System(servers, file.queue.capacity, classes, **_world(file, folder)))
    with np.errstate(over="ignore"):
        _ = system.queue.on_average().model  # costs that overflow, rates too far apart: told now, with the file's name
    return system


def _world(file: File, folder: Path) -> dict[str, Any]:
    """All that goes beyond c servers that are always there, and patient jobs."""
    queue, world = file.queue, cast(dict[str, Any], {})
    if queue.patience is not None:
        world["patience"] = queue.patience.made(folder)
    if file.breakdowns is not None:
        laws = (file.breakdowns.uptime.made(folder), file.breakdowns.downtime.made(folder))
        world["breakdowns"] = Breakdowns(*laws, file.breakdowns.interrupted)
    if file.environment is not None:
        world["environment"] = file.environment.made()
    if file.setup is not None:
        world["setup"] = Setup(file.setup.time.made(folder), file.setup.after)
    if queue.initial:
        world["initial"] = queue.initial
    if queue.discipline != "fifo":
        world["discipline"] = queue.discipline
    return world


def _service(file: File, folder: Path) -> Law | None:
    """The law of service of classes that have none of their own."""
    if file.queue.service is not None:
        law: Law = file.queue.service.made(folder)
        return law
    rate = file.queue.service_rate
    if rate is not None and not SLOWEST <= rate <= FASTEST:
        raise ValueError(f"service_rate must lie between {SLOWEST:g} and {FASTEST:g}, got {rate:g}")
    return None if rate is None else Exponential(rate)


def _job_class(c: Class, file: File, rows: Rows | None, folder: Path) -> JobClass:
    cost, pattern = c.holding_cost.made() if c.holding_cost else Free(), c.pattern.made() if c.pattern else Steady()
    parts = {"service": c.service, "patience": c.patience, "pays": c.pays}
    laws = {name: part.made(folder) for name, part in parts.items() if part}
    reward = math.nan if c.reward is None else c.reward  # then what its jobs pay says it
    more: dict[str, Any] = {**laws, "abandonment_cost": c.abandonment_cost, "reward_at": c.reward_at}
    if c.balking is not None:
        more["balking"] = c.balking.made()
    if c.arrival_rates is not None:
        return JobClass(
            c.name, reward=reward, holding_cost=cost, pattern=pattern, arrival_rates=c.arrival_rates, **more
        )
    try:
        arrivals = _arrivals(c, file, rows, folder)
    except ValueError as error:
        raise ValueError(f"class {c.name!r}: {error}") from None
    if arrivals is None:
        assert c.arrival_rate is not None
        return JobClass(c.name, c.arrival_rate, reward, cost, pattern, **more)
    return JobClass(c.name, reward=reward, holding_cost=cost, arrivals=arrivals, **more)


def _arrivals(c: Class, file: File, rows: Rows | None, folder: Path) -> ArrivalProcess | None:
    """How jobs of a class come; None: by a Poisson process of its rate and pattern."""
    pattern = c.pattern.made() if c.pattern else None
    if isinstance(c.arrivals, WayOfComing):
        return c.arrivals.process(folder, pattern, c.day_factor)
    if c.arrival_rate is not None:
        if c.day_factor is None:
            return None
        return c.day_factor.around(Poisson(c.arrival_rate) if pattern is None else Poisson(c.arrival_rate, pattern))
    if pattern is not None or c.day_factor is not None:
        raise ValueError("a trace has no pattern and no day_factor")
    own = cast(Any, c.arrivals)
    table = cast(TraceTable, file.arrivals if own is None else own)
    found = rows if own is None else table.made(folder)
    assert found is not None
    return table.process(found, c.name)


def _check_names(table: TraceTable | None, rows: Rows, classes: list[Class]) -> None:
    """A trace for several classes must say whose each job is, and none of them may come in another way too."""
    assert table is not None
    names = [c.name for c in classes]
    if rows.classes is None and len(names) > 1:
        raise ValueError('arrivals: with several classes a trace needs the column that tells them: class = ".."')
    present = set(names) if rows.classes is None else set(np.unique(rows.classes).tolist())
    unknown = sorted(present - set(names))
    if unknown:
        raise ValueError(
            f"arrivals: column {shown(table.job_class)} of {shown(table.trace)} holds {shown(unknown[0])}, which is no "
            f"class of this scenario"
        )
    for c in classes:
        keys = [key for key in ("arrival_rate", "arrivals", "arrival_rates") if getattr(c, key) is not None]
        if c.name in present and keys:
            key = keys[0]
            raise ValueError(
                f"class {c.name!r}: {key} must not stand beside the trace of all classes, which has its jobs: keep one "
                f"of the two"
            )


def _as_queue(system: System) -> System:
    """The same as a `Queue`, where it is one."""
    if system.not_markov:
        return system
    law, patience = system.law(0), system.patience_of(0)
    rate = law.rate if isinstance(law, Exponential) else 1.0 / law.mean
    classes = [replace(c, service=None, patience=None) for c in system.classes]
    return Queue(cast(int, system.servers), system.capacity, rate, classes, patience, system.initial)
