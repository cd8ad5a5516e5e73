"""Round trip: a world is simulated, its event log fitted, and the truth compared with the fit's intervals.

A log must be long enough to know what it is asked: 14 periods of a clock, 60 sojourns of a hidden state, else so many
jobs.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from queueing_ucrl.data.balking_fit import fit_all_arrivals
from queueing_ucrl.data.known_logs import OF_JOBS, known_jobs
from queueing_ucrl.data.service_fit import fit_patiences, fit_services
from queueing_ucrl.data.tables import JobTable, read_jobs
from queueing_ucrl.model.random_rates import DayFactor, Modulated
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario.columns import UNITS
from queueing_ucrl.simulation.simulate import simulate

if TYPE_CHECKING:
    from queueing_ucrl.scenario import Scenario

PERIODS = 14.0
SOJOURNS = 60.0
JOBS = 2000.0
OF_INTERRUPTED = 8000.0  # jobs, where servers break down: of long services the log has few

NO_INTERVAL, MISSED, HELD = "no interval", "missed", "held"


def log_length(system: System) -> float:
    """How long a log has to be: so many jobs, periods, and sojourns of what changes rates at random, at least."""
    jobs = JOBS if system.breakdowns is None else OF_INTERRUPTED
    found = [jobs / system.total_arrival_rate]
    for c in system.classes:
        found.append(PERIODS * (c.pattern.period if math.isfinite(c.pattern.period) else 0.0))
        if isinstance(c.arrivals, DayFactor):
            found.append(PERIODS * c.arrivals.period)
        if isinstance(c.arrivals, Modulated):
            found.append(SOJOURNS / min(sum(row) for row in c.arrivals.rates))
    if system.environment is not None and np.ptp(system.environment.arrival_factors, axis=0).any():
        found.append(SOJOURNS / float(system.environment.rates.sum(axis=1).min()))
    return max(found)


def log_of(scenario: Scenario, seed: int, length: float | None = None) -> JobTable:
    """The table of jobs of a log of this world."""
    system = scenario.system
    events = simulate(system, "admit-all", horizon=length or log_length(system), seed=seed, log=True).events
    unit = scenario.units.time if scenario.units.time in UNITS else None
    jobs, _ = known_jobs(events, unit)
    return read_jobs(jobs, OF_JOBS, time_unit=unit)


def seeds_of(name: str, count: int) -> range:
    """So many seeds, other ones for each world: worlds with one seed share random numbers, and would miss together."""
    first = zlib.crc32(name.encode())
    return range(first, first + count)


def _verdict(low: float, truth: float, high: float) -> str:
    if high == float("inf"):
        return NO_INTERVAL
    return HELD if low <= truth <= high else MISSED


def verdicts(scenario: Scenario, table: JobTable) -> dict[str, str]:
    """Of each interval whether it holds the truth: mean arrival rates and mean services of all classes, rates of
    exponential patience. What no interval depends on is not computed.
    """
    system, found = scenario.system, {}
    services = fit_services(table, intervals_only=True)
    patiences = fit_patiences(table, intervals_only=True)
    fits = fit_all_arrivals(table, table.names, capacity=system.capacity, intervals_only=True)
    for k, c in enumerate(system.classes):
        arrivals = fits[c.name]
        truth = c.arrival_rate * c.pattern.mean if c.arrivals is None else c.arrival_process.rate
        found[f"arrivals of {c.name}"] = _verdict(arrivals.low, truth, arrivals.high)
        part = services.of(c.name)
        if part is not None:
            found[f"service of {c.name}"] = _verdict(part.low, system.law(k).mean, part.high)
        patience, own = system.patience_of(k), patiences.of(c.name)
        if patience is not None and patience.memoryless and own is not None:
            found[f"patience of {c.name}"] = _verdict(own.rate.low, 1.0 / patience.mean, own.rate.high)
    return found


def coverage(scenario: Scenario, seeds: Iterable[int]) -> dict[str, dict[str, int]]:
    """Of each interval how often it held the truth, missed it, and was not given, over logs of these seeds."""
    counts: dict[str, dict[str, int]] = {}
    for seed in seeds:
        for what, verdict in verdicts(scenario, log_of(scenario, seed)).items():
            one = counts.setdefault(what, {HELD: 0, MISSED: 0, NO_INTERVAL: 0})
            one[verdict] += 1
    return counts
