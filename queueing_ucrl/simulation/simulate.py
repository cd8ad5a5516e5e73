"""`simulate`: one run of a queue under a controller, on either engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl._version import __version__
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.checks import not_negative
from queueing_ucrl.model.elementary import power
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.desk import ControlDesk, controller_name, refuse_class
from queueing_ucrl.simulation.episode_log import EpisodeWriter, PolicyGains, StreamedRecords
from queueing_ucrl.simulation.event_log import MemoryLog, ParquetLog
from queueing_ucrl.simulation.outcome import Progress
from queueing_ucrl.simulation.records import Counts, Records, Waits
from queueing_ucrl.simulation.run import Run
from queueing_ucrl.simulation.streams import Streams
from queueing_ucrl.solvers.optimum import optimum

ENGINES = ("auto", "simpy", "compiled")
GRID_POINTS = 200


class GuaranteeWarning(UserWarning):
    """A controller is used outside of what its guarantee covers."""


def time_grid(horizon: float, points: int = GRID_POINTS, scale: str = "log") -> FloatArray:
    """Times at which a run is looked at: `points` of them up to the horizon, evenly spaced on a log or linear scale.

    The log scale starts at a ten-thousandth of the horizon.
    """
    if scale not in ("log", "linear"):
        raise ValueError(f"scale must be log or linear, got {scale!r}")
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    if scale == "linear":
        return horizon * np.arange(1, points + 1) / points
    return np.array([horizon * power(10.0, 4.0 * (k / (points - 1) - 1.0)) for k in range(points - 1)] + [horizon])


def choose_engine(engine: str, controller: Any) -> tuple[str, str]:
    """(engine, why)."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    each = getattr(controller, "decides_each_arrival", False)
    if engine == "auto":
        if each:
            return "simpy", "the controller decides each arrival by code of its own"
        return "compiled", "the controller works by admission tables"
    if engine == "compiled" and each:
        raise ValueError(
            f"controller {controller_name(controller)} decides each arrival by code of its own: "
            "it runs on engine 'simpy' only"
        )
    return engine, "as asked"


def _checked_grid(grid: Sequence[float] | FloatArray | None, horizon: float) -> FloatArray:
    if grid is None:
        return time_grid(horizon)
    times = np.unique(np.asarray(grid, dtype=float))
    if times.size and not (times[0] > 0 and times[-1] <= horizon):
        raise ValueError(f"grid must hold times above 0 and up to the horizon {horizon:g}")
    return times


def _streamed(noted: tuple[Any, ...], writer: EpisodeWriter, *, each: bool) -> StreamedRecords:
    """Records that let episodes and policies go. each: it decides each arrival, and its tables are worth nothing."""
    queue, best = noted[:2]
    known = PolicyGains(queue)

    def gains(policy: Policy) -> float:
        return math.nan if each else known(policy)

    def loss(policy: Policy) -> float:
        return math.nan if best is None else best.gain - gains(policy)

    return StreamedRecords(*noted, writer=writer, gains=gains, loss_of=loss)


def check_run(
    queue: Queue,
    controller: Any,
    horizon: float,
    engine: str,
    grid: Sequence[float] | FloatArray | None,
    solver_latency: float,
) -> FloatArray:
    """The times of the grid, if all this can be run together; else an error that says what cannot."""
    if not isinstance(queue, Queue):
        raise TypeError(f"queue must be a Queue, got {type(queue).__name__}")
    horizon = queue.check_horizon(horizon)
    if not_negative(solver_latency, "solver_latency") > 0 and getattr(controller, "sees_ticks", False):
        raise ValueError("solver_latency must be 0 for a controller that sees ticks: each tick must have one action")
    if queue.drifts and getattr(controller, "sees_ticks", False):
        raise ValueError("a controller that sees ticks needs arrival rates that do not change in time")
    choose_engine(engine, controller)
    return _checked_grid(grid, horizon)


def simulate(
    queue: Queue,
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
    progress: Progress | None = None,
    episodes: EpisodeWriter | None = None,
) -> Run:
    """Run `queue` under `controller` up to `horizon`.

    controller: an object, or a name with `options`. engine: "simpy", "compiled" or "auto"; the paths are the same to
    the last bit. log: True keeps the event log in memory (run.events), a path writes it there as Parquet. grid: times
    at which the regret is noted (default: 200, evenly on a log scale). solver_latency: simulated time the solver takes
    to answer; until then the old policy holds. A queue whose optimum is not known runs too; run.no_optimum says why.
    episodes: takes the episodes as they end, in place of run.episodes (and run.solves), so that memory stays flat.
    """
    if isinstance(controller, str):
        controller = make_controller(controller, dict(options or {}))
    times = check_run(queue, controller, horizon, engine, grid, solver_latency)
    horizon, solver_latency = float(horizon), float(solver_latency)
    chosen, reason = choose_engine(engine, controller)
    refuse_class(controller)
    cautions = list(controller.cautions(queue)) if hasattr(controller, "cautions") else []
    for caution in cautions:
        warnings.warn(f"{controller_name(controller)}: {caution}", GuaranteeWarning, stacklevel=2)
    best, no_optimum = optimum(queue)
    noted = (queue, best, Waits(queue), Counts.none(queue))
    each = getattr(controller, "decides_each_arrival", False)
    records = Records(*noted) if episodes is None else _streamed(noted, episodes, each=each)
    streams = Streams(seed, replication)
    desk = ControlDesk(queue, controller, streams.controller(), records)
    if episodes is not None:
        desk.solver.keeps = False
    sink: MemoryLog | ParquetLog | None = None
    # a log that cannot be opened is told before anything runs
    if isinstance(log, (str, Path)):
        metadata = {
            "version": __version__, "numpy": np.__version__, "seed": int(seed), "replication": int(replication),
            "horizon": horizon, "engine": chosen, "controller": controller_name(controller),
            "solver_latency": solver_latency, "queue": queue.plain_data(),
        }  # fmt: skip
        sink = ParquetLog(queue, replication, Path(log), metadata)
    elif log:
        sink = MemoryLog(queue, replication)
    if chosen == "simpy":
        from queueing_ucrl.simulation.world import World as Engine
    else:
        from queueing_ucrl.simulation.kernel import Kernel as Engine  # type: ignore[assignment]
    world = Engine(
        queue, desk, streams, records, horizon=horizon, grid=times, solver_latency=solver_latency, log=sink,
        progress=progress,
    )  # fmt: skip
    try:
        unfinished = world.run()
        if sink is not None:
            sink.close()
    except BaseException:
        if sink is not None:
            sink.abandon()
        raise
    return Run(
        queue=queue,
        controller=controller_name(controller),
        horizon=horizon,
        seed=int(seed),
        replication=int(replication),
        engine=chosen,
        engine_reason=reason,
        cautions=cautions,
        best=best,
        no_optimum=no_optimum,
        records=records,
        solve_records=desk.solver.records,
        unfinished_jobs=unfinished,
        log=sink,
        decides_each_arrival=each,
    )
