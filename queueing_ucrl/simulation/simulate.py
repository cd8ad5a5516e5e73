"""`simulate`: one run of a system under a controller, on either engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl._version import __version__
from queueing_ucrl.accounts.regret import checked_accounts
from queueing_ucrl.accounts.totals import Account, Comparator
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.learning.registry import as_controller
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.changes import Changes
from queueing_ucrl.simulation.choose_engine import choose_engine
from queueing_ucrl.simulation.control_loop import ControlLoop, OnReview
from queueing_ucrl.simulation.engine import Engine, OnProgress
from queueing_ucrl.simulation.episode_log import EpisodeWriter, StreamedLedger, policy_gains
from queueing_ucrl.simulation.event_log import LogColumn, MemoryLog, ParquetLog
from queueing_ucrl.simulation.ledger import Ledger, Unfinished
from queueing_ucrl.simulation.run import Run
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.sources import environment_factors, job_sources, tick_source
from queueing_ucrl.solvers.optimum import optimum


class GuaranteeWarning(UserWarning):
    """A controller is used outside of what its guarantee covers."""


def check_run(system: System, controller: Controller, settings: RunSettings) -> None:
    """Whether all this can be run together; else an error that says what cannot."""
    if not isinstance(system, System):
        raise TypeError(f"queue must be a Queue or a System, got {type(system).__name__}")
    system.check_horizon(settings.horizon)
    if controller.sees_ticks:
        if settings.solver_latency > 0:
            raise ValueError(
                "solver_latency must be 0 for a controller that sees ticks: each tick must have one action"
            )
        if system.drifts:
            raise ValueError("a controller that sees ticks needs arrival rates that do not change in time")
        if system.not_markov:
            raise ValueError(f"a controller that sees ticks needs a Markov chain, but {system.not_markov}")
    if controller.counts_visits and settings.solver_latency > 0:
        raise ValueError("solver_latency must be 0 for a controller that counts visits: they would not wait for it")
    for i in range(len(system.classes)):
        environment_factors(system, i)
    choose_engine(settings.engine, system, controller)


def cautions(system: System, controller: Controller) -> list[str]:
    """What is wrong with using this controller on that system."""
    found = list(controller.cautions(system.queue))
    gap = controller.model_gap(system)
    if gap:
        found.append(f"{gap}; it plans for the M/M/c/S queue of the same means, and others may beat it")
    return found


def simulate(
    queue: System,
    controller: Any = "oracle",
    *,
    horizon: float,
    seed: int = 0,
    replication: int = 0,
    engine: str = "auto",
    log: bool | str | Path = False,
    grid: Sequence[float] | FloatArray | None = None,
    solver_latency: float = 0.0,
    options: Mapping[str, Any] | None = None,
    **observers: Any,
) -> Run:
    """Run `queue` (or a `System`) under `controller` up to `horizon`.

    controller: an object, or a name with `options`. engine: "simpy", "compiled" or "auto"; the paths are the same to
    the last bit. log: True keeps the event log in memory (run.events), a path writes it there as Parquet. grid: times
    at which the regret is noted (default: 200, evenly on a log scale). solver_latency: simulated time the solver takes
    to answer; until then the old policy holds. A system whose optimum is not known runs too; run.no_optimum says why.
    observers: log_columns, log_about, accounts, on_review and on_progress, as in `run_once`.
    """
    times = None if grid is None else tuple(np.asarray(grid, dtype=float).tolist())
    settings = RunSettings(horizon, seed=seed, engine=engine, solver_latency=solver_latency, grid=times)
    return run_once(queue, as_controller(controller, options), settings, replication, log=log, **observers)


def run_once(
    system: System,
    controller: Any,
    settings: RunSettings,
    replication: int = 0,
    *,
    log: bool | str | Path = False,
    log_columns: Sequence[LogColumn] = (),
    log_about: Mapping[str, Any] | None = None,
    accounts: Sequence[Account] = (),
    episodes: EpisodeWriter | None = None,
    on_review: OnReview | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    """One replication of `simulate`, from settings.

    log_columns: columns of one's own for the event log. log_about: what its file says besides of where it is from, such
    as title (of the scenario) and units ({"time": "minutes", "money": "euros"}); plain data, for JSON. accounts: of
    one's own, for run.regret(kind=name). episodes: takes the episodes as they end, in place of run.episodes (and
    run.solves), so that memory stays flat. on_review: is told the tally and the plan of each review. on_progress: is
    told the simulated time now and then.
    Long by its parameters, in and out: it only puts the parts of a run together.
    """
    controller = as_controller(controller)
    check_run(system, controller, settings)
    kind, reason = choose_engine(settings.engine, system, controller)
    if log_columns and not log:
        raise ValueError("log_columns are columns of the event log: they need log=True, or a path")
    cautioned = cautions(system, controller)
    for caution in cautioned:
        warnings.warn(f"{controller.name}: {caution}", GuaranteeWarning, stacklevel=3)
    randomness = Randomness(settings.seed, replication)
    ledger = _ledger(system, controller, settings, accounts, episodes)
    control = ControlLoop(controller, randomness.controller(), ledger, on_review)
    control.solver.keeps = episodes is None
    sources = job_sources(system, randomness, settings.horizon)
    if controller.sees_ticks:
        sources.append(tick_source(system, randomness, settings.horizon))
    # a log that cannot be opened is told before anything runs
    sink: MemoryLog | ParquetLog | None = None
    if isinstance(log, (str, Path)):
        metadata = {**(log_about or {}), **_metadata(system, controller, settings, replication, kind.name)}
        sink = ParquetLog(system, replication, log_columns, Path(log), metadata)
    elif log:
        sink = MemoryLog(system, replication, log_columns)
    changes = Changes(system, randomness, settings.horizon)
    unfinished = _run(kind(control, sources, changes, settings, sink, on_progress), sink)
    return Run(
        controller=controller.name,
        decides_each_arrival=controller.decides_each_arrival or controller.learns_each_tick,
        settings=settings,
        replication=int(replication),
        engine=kind.name,
        engine_reason=reason,
        cautions=cautioned,
        ledger=ledger,
        solve_records=control.solver.records,
        unfinished_jobs=unfinished,
        log=sink,
    )


def _run(engine: Engine, sink: MemoryLog | ParquetLog | None) -> list[Unfinished]:
    """The jobs still there at the horizon. A run that fails leaves its log up to there."""
    try:
        unfinished = engine.run()
        if sink is not None:
            sink.close()
    except BaseException:
        if sink is not None:
            with suppress(OSError, ValueError):  # no room for them either
                engine.flush_log()
            sink.abandon()
        raise
    return unfinished


def _ledger(
    system: System,
    controller: Controller,
    settings: RunSettings,
    accounts: Sequence[Account],
    episodes: EpisodeWriter | None,
) -> Ledger:
    """An empty ledger; one that lets episodes and policies go where there is a writer for them."""
    times = settings.times
    noted = np.append(times[times < settings.horizon], settings.horizon)
    comparator = Comparator(system, *optimum(system))
    accounts = checked_accounts(accounts, comparator)
    if episodes is None:
        return Ledger(comparator, noted, accounts)
    known = policy_gains(system)

    def gains(policy: Policy) -> float:
        own = controller.decides_each_arrival or controller.learns_each_tick
        return math.nan if own else known(policy)  # its tables are worth nothing

    return StreamedLedger(comparator, noted, accounts, writer=episodes, gains=gains)


def _metadata(
    system: System, controller: Controller, settings: RunSettings, replication: int, engine: str
) -> dict[str, Any]:
    """What travels with an event log."""
    run = {name: getattr(settings, name) for name in ("seed", "horizon", "solver_latency")}
    versions = {"version": __version__, "numpy": np.__version__}
    about = {"replication": int(replication), "engine": engine, "controller": controller.name}
    return {**versions, **run, **about, "queue": system.plain_data()}
