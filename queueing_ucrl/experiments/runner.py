"""Running a study's trials: in this process, in worker processes or on any executor, and from a folder.

Trials are made one by one as there is room for them, and results that a folder holds are read again when they are
asked for once they are too many: memory does not grow with the number of replications.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from functools import lru_cache, partial
from itertools import islice
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

import numpy as np

from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.experiments.regret import CAUSES, KINDS, REWARDS
from queueing_ucrl.experiments.study import Cell, StoredResults, Study
from queueing_ucrl.experiments.trial import Trial, TrialResult, run_trial
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.checks import listed
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.desk import begin_session, controller_name
from queueing_ucrl.simulation.simulate import GuaranteeWarning, check_run, time_grid
from queueing_ucrl.solvers.service import SolverService

Done = Callable[[TrialResult, int, int], None]  # a result, how many are done, of how many

LARGEST_CELL = 10**8  # numbers in the curves of all replications of a cell: 800 MB
KEPT = 10**8  # numbers in the curves of a study, up to which they are kept in memory
IN_FLIGHT = 256  # trials that an executor has at once, at least
PATIENCE = 5.0  # seconds without a result after which an executor is asked what it is waiting for


def check_cell(cell: Cell) -> None:
    """Let a controller that cannot work on its queue say so now, before anything is run or written."""
    grid = check_run(cell.queue, cell.controller, cell.horizon, cell.engine, cell.grid, cell.solver_latency)
    if isinstance(cell.seed, bool) or not isinstance(cell.seed, (int, np.integer)) or cell.seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, got {cell.seed!r}")
    numbers = _numbers(cell, len(grid))
    if numbers * cell.replications > LARGEST_CELL:
        raise ValueError(
            f"{cell.replications} replications of {len(grid)} times are too many for the memory that their tables "
            f"take: at most {LARGEST_CELL // numbers} replications, or fewer times (run.grid_points)"
        )
    plan = begin_session(cell.queue, cell.controller, np.random.default_rng(0)).first()
    if getattr(plan, "request", None) is not None:
        SolverService().answer(plan.request, 0.0)


def _numbers(cell: Cell, times: int | None = None) -> int:
    """In the curves of one of its trials."""
    points = times or len(time_grid(cell.horizon) if cell.grid is None else cell.grid)
    return max(1, points) * (1 + len(KINDS) + len(REWARDS) + len(CAUSES) * len(cell.queue.classes))


def named_controllers(controllers: Iterable[Any]) -> list[tuple[str, Any]]:
    """Controllers (objects or names) with names that differ."""
    controllers = listed(controllers, "controllers")
    made = [make_controller(item) if isinstance(item, str) else item for item in controllers]
    if not made:
        raise ValueError("controllers must name at least one controller")
    return list(zip(labels([(controller_name(one), one) for one in made]), made, strict=True))


def replicate(
    queue: Queue,
    controllers: Sequence[Any],
    *,
    horizon: float,
    replications: int,
    seed: int = 0,
    executor: Executor | None = None,
    jobs: int | None = None,
    engine: str = "auto",
    grid: Sequence[float] | FloatArray | None = None,
    solver_latency: float = 0.0,
    progress: Done | None = None,
) -> Study:
    """Run each controller `replications` times on the same jobs.

    executor: any concurrent.futures.Executor; without one, `jobs` processes (default: all cores; 1: this process).
    progress: called after each trial with its result, how many are done, and of how many.
    """
    times = None if grid is None else np.asarray(grid, dtype=float)
    cells = [
        Cell(0, {}, name, queue, controller, float(horizon), solver_latency, replications, seed, times, engine)
        for name, controller in named_controllers(controllers)
    ]
    for cell in cells:
        check_cell(cell)
    return run_study(cells, executor=executor, jobs=jobs, progress=progress)


def run_study(
    cells: list[Cell],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    log: bool = False,
    folder: StudyFolder | None = None,
    progress: Done | None = None,
    within: Callable[[Trial, float], None] | None = None,
) -> Study:
    """Run the cells' trials, those that `folder` holds already taken from there; each result goes there as it ends.

    The cells have passed `check_cell`.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    _tell_cautions(cells)
    total = sum(cell.replications for cell in cells)
    keeps = folder is None or sum(_numbers(cell) * cell.replications for cell in cells) <= KEPT
    found: dict[tuple[int, str, int], TrialResult] = {}
    done = 0

    def take(result: TrialResult) -> None:
        nonlocal done
        done += 1
        if keeps:
            found[result.point, result.name, result.replication] = result

    def missing() -> Iterator[Trial]:
        for trial in _trials(cells, folder, log=log, here=executor is None):
            result = folder.load(trial) if folder is not None else None
            if result is None:
                yield trial
            else:
                take(result)

    try:
        for result in _run(missing(), cells, executor, jobs, within):
            kept = result if folder is None else folder.save(result)
            take(kept)
            if progress is not None:
                progress(kept, done, total)
    finally:
        if folder is not None:
            folder.tidy()  # of workers that were killed
    if keeps or folder is None:
        return Study(cells, [[found[c.point, c.name, r] for r in range(c.replications)] for c in cells])
    return Study(cells, _stored(cells, folder))


def _stored(cells: list[Cell], folder: StudyFolder) -> list[StoredResults]:
    """Results that are read from the folder when they are asked for; those of two cells at a time are at hand."""

    @lru_cache(maxsize=2)
    def load(k: int) -> list[TrialResult]:
        cell = cells[k]
        return [folder.read(cell.point, cell.name, r) for r in range(cell.replications)]

    return [StoredResults(cell.replications, partial(load, k)) for k, cell in enumerate(cells)]


def _tell_cautions(cells: list[Cell]) -> None:
    for cell in cells:
        if hasattr(cell.controller, "cautions"):
            for caution in cell.controller.cautions(cell.queue):
                warnings.warn(f"{cell.name}: {caution}", GuaranteeWarning, stacklevel=4)


def _trials(cells: list[Cell], folder: StudyFolder | None, *, log: bool, here: bool) -> Iterator[Trial]:
    """One after the other, as they are asked for. here: they run on this machine, and can write to the folder."""
    for cell in cells:
        times = time_grid(cell.horizon) if cell.grid is None else cell.grid
        for r in range(cell.replications):
            place = (cell.point, cell.name, r)
            yield Trial(
                cell.queue, cell.controller, cell.name, cell.horizon, cell.seed, r, times, cell.engine,
                cell.solver_latency, cell.point, folder.event_log(*place) if folder is not None and log else None,
                folder.episodes(*place) if folder is not None and here else None,
            )  # fmt: skip


# --- where they run --------------------------------------------------------------------------------------------------


def _run(
    trials: Iterator[Trial],
    cells: list[Cell],
    executor: Executor | None,
    jobs: int | None,
    within: Callable[[Trial, float], None] | None,
) -> Iterator[TrialResult]:
    """The trials' results as they end."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(jobs or cores, sum(cell.replications for cell in cells))
    if executor is not None:
        yield from _collect(executor, run_trial, trials, max(IN_FLIGHT, getattr(executor, "in_flight", 0)))
    elif workers <= 1:
        for trial in trials:
            told = None if within is None else (lambda time, trial=trial: within(trial, time))
            yield trial.run(told)
    else:
        _check_that_they_travel(cells)
        pool = _process_pool(workers)
        try:
            yield from _collect(pool, _run_in_worker, trials, 2 * workers + 2, cancels=False)
        except BaseException:
            _stop(pool)  # do not wait for trials that nobody wants any more
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _stop(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5.0)
        if process.is_alive():
            process.kill()


def _process_pool(workers: int) -> ProcessPoolExecutor:
    """Worker processes; on Linux by fork, which costs milliseconds where an import costs a second.

    The workers only compute, so what threads of the parent may have held at the fork does not matter to them.
    """
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    method = "fork" if sys.platform == "linux" else None
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context(method), initializer=_enter_worker
    )  # fmt: skip


def _enter_worker() -> None:
    """Ctrl-C is for the parent to handle, and no worker outlives a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _leave(number: int, frame: Any) -> NoReturn:
    """Unwind, so that a log which is being written is closed and can be read."""
    raise SystemExit(128 + number)


def _run_in_worker(trial: Trial) -> TrialResult:
    try:
        return run_trial(trial)
    except SystemExit as stop:  # the pool would take it for the trial's own error, and go on with the next
        os._exit(int(stop.code or 1))


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _check_that_they_travel(cells: list[Cell]) -> None:
    """Say now, and in words, that a trial cannot be sent to another process."""
    for cell in cells:
        try:
            pickle.dumps((cell.queue, cell.controller))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{cell.name}: its queue or controller cannot be sent to worker processes ({error}); "
                "define functions and classes at the top level of a module, or use jobs=1"
            ) from error


def _collect(
    executor: Executor, run: Callable[[Trial], TrialResult], trials: Iterator[Trial], most: int, *, cancels: bool = True
) -> Iterator[TrialResult]:
    """Results as they end; no more than `most` trials are handed out at a time.

    cancels: those that nobody wants any more. A pool whose workers are about to be ended stumbles over that.
    """
    running: set[Future[TrialResult]] = set()
    try:
        while True:
            running.update(executor.submit(run, trial) for trial in islice(trials, most - len(running)))
            if not running:
                return
            ended, running = wait(running, timeout=PATIENCE, return_when=FIRST_COMPLETED)
            if not ended and hasattr(executor, "tell_what_it_waits_for"):
                executor.tell_what_it_waits_for()
            for future in ended:
                yield future.result()
    finally:
        for future in running if cancels else ():
            future.cancel()
