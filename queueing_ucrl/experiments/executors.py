"""Where trials run: in this process, in worker processes, on a dask cluster, on any concurrent.futures.Executor.

Each is a `Backend`: trials go in, one by one as there is room for them, and results come out as they end.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, Protocol

from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.trial import OnProgress, Trial, TrialResult, run_trial
from queueing_ucrl.messages import shown

IN_FLIGHT = 256  # trials that an executor has at once, at least
STALL = 5.0  # seconds without a result after which an executor is asked what it is waiting for
MOST_PROCESSES = 10_000
CONNECT_TIMEOUT = "10s"  # for a scheduler to answer


class Backend(Protocol):
    """Where trials run."""

    shares_disk: bool  # a trial there can write to the study's folder

    def check(self, cells: Sequence[Cell]) -> None:
        """An error says that trials of a cell cannot be run there."""

    def results(self, trials: Iterator[Trial]) -> Iterator[TrialResult]:
        """The trials' results as they end."""


def choose_backend(
    executor: Executor | None, jobs: int | None, trials: int, on_progress: OnProgress | None = None
) -> Backend:
    """The executor that is given, or else `jobs` processes (None: all cores) for so many trials."""
    workers = min(_workers(jobs), trials)
    if executor is not None:
        return OnExecutor(executor)
    return ThisProcess(on_progress) if workers <= 1 else WorkerProcesses(workers)


def _workers(jobs: int | None) -> int:
    """How many processes; None: as many as there are cores."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    return jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class ThisProcess:
    """One trial after the other; on_progress is told how far each is."""

    shares_disk = True

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        self._on_progress = on_progress

    def check(self, cells: Sequence[Cell]) -> None:
        """Everything can be run here."""

    def results(self, trials: Iterator[Trial]) -> Iterator[TrialResult]:
        for trial in trials:
            yield trial.run(self._on_progress)


class OnExecutor:
    """A concurrent.futures.Executor, perhaps on other machines."""

    shares_disk = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def check(self, cells: Sequence[Cell]) -> None:
        """It says itself what it cannot run."""

    def results(self, trials: Iterator[Trial]) -> Iterator[TrialResult]:
        cluster = self._executor if isinstance(self._executor, ClusterExecutor) else None
        most = IN_FLIGHT if cluster is None else max(IN_FLIGHT, cluster.in_flight)
        running: set[Future[TrialResult]] = set()
        on_stall = None if cluster is None else cluster.tell_what_it_waits_for
        try:
            yield from _collect(self._executor, run_trial, trials, running, most, on_stall)
        finally:
            for future in running:
                future.cancel()


def _collect(
    executor: Executor,
    run: Callable[[Trial], TrialResult],
    trials: Iterator[Trial],
    running: set[Future[TrialResult]],
    most: int,
    on_stall: Callable[[], None] | None = None,
) -> Iterator[TrialResult]:
    """Results as they end; no more than `most` trials are `running` at a time."""
    while True:
        running.update(executor.submit(run, trial) for trial in islice(trials, most - len(running)))
        if not running:
            return
        ended, _ = wait(running, timeout=STALL, return_when=FIRST_COMPLETED)
        if not ended and on_stall is not None:
            on_stall()
        running -= ended
        for future in ended:
            yield future.result()


# --- worker processes ------------------------------------------------------------------------------------------------


class WorkerProcesses:
    """Processes of this machine; on Linux by fork, which costs milliseconds where an import costs a second.

    The workers only compute, so what threads of the parent may have held at the fork does not matter to them.
    """

    shares_disk = True

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def check(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            cell.check_that_it_travels()

    def results(self, trials: Iterator[Trial]) -> Iterator[TrialResult]:
        pool = _process_pool(self._workers)
        try:
            yield from _collect(pool, _run_in_worker, trials, set(), 2 * self._workers + 2)
        except BaseException:
            _stop(pool)  # do not wait for trials that nobody wants any more; to cancel them would make it stumble
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _process_pool(workers: int) -> ProcessPoolExecutor:
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_enter_worker)


def _stop(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5.0)
        if process.is_alive():
            process.kill()


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


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _run_in_worker(trial: Trial) -> TrialResult:
    return _in_worker(run_trial, trial)


def _in_worker(function: Callable[[Any], Any], task: Any) -> Any:
    try:
        return function(task)
    except SystemExit as stop:  # the pool would take it for the task's own error, and go on with the next
        os._exit(int(stop.code or 1))


class TaskPool:
    """Calls of a function in this process, or in `jobs` others (None: all cores); answers in the order of the tasks."""

    def __init__(self, jobs: int | None = None, executor: Executor | None = None) -> None:
        self._workers = _workers(jobs)
        if self._workers > MOST_PROCESSES:
            raise ValueError(f"jobs must be at most {MOST_PROCESSES:,}, so many processes, got {shown(jobs)}")
        self._pool = executor
        self._own: ProcessPoolExecutor | None = None
        if executor is None and self._workers > 1:
            self._pool = self._own = _process_pool(self._workers)

    def __enter__(self) -> TaskPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: Any) -> None:
        if self._own is not None:
            if kind is not None:
                _stop(self._own)
            self._own.shutdown(cancel_futures=True)

    def map(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        """The function's answers, in order."""
        if self._pool is None:
            return [function(task) for task in tasks]
        size = max(1, min(16, len(tasks) // (4 * self._workers)))
        return list(self._pool.map(partial(_in_worker, function), tasks, chunksize=size))


# --- a dask cluster --------------------------------------------------------------------------------------------------


class ClusterExecutor(Executor):
    """Trials on a dask cluster; one whose worker dies is run again elsewhere: the result is the same."""

    def __init__(self, client: Any, address: str, on_message: Callable[[str], None]) -> None:
        self._client, self._address, self._on_message = client, address, on_message
        self._executor = client.get_executor(pure=False, retries=5)
        self._waits = False
        self.tell_what_it_waits_for()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    @property
    def in_flight(self) -> int:
        """How many trials it should have at once, so that no worker waits for one."""
        return 4 * sum(self._workers().values())

    def _workers(self) -> dict[str, int]:
        """Threads by worker; none where the scheduler does not answer."""
        with suppress(Exception):
            return {name: int(about["nthreads"]) for name, about in self._client.scheduler_info()["workers"].items()}
        return {}

    def tell_what_it_waits_for(self) -> None:
        """Say once, each time it is so, that there is nobody to do the work."""
        waits = not self._workers()
        if waits and not self._waits:
            self._on_message(
                f"--cluster {self._address}: has no workers; waiting for some to join (dask worker {self._address})"
            )
        self._waits = waits


@contextmanager
def cluster_executor(address: str | None, on_message: Callable[[str], None] = print) -> Iterator[Executor | None]:
    """An executor on the dask scheduler at `address` (extra `cluster`); None without an address.

    on_message: is told in words that it has to wait for workers.
    """
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--cluster needs dask.distributed: python -m pip install 'queueing_ucrl[cluster]'") from None
    for name in [*logging.root.manager.loggerDict]:  # what they say of a lost cluster, we say in one line
        if name.split(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        client = Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except Exception as error:  # each protocol has errors of its own
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(f"--cluster {address}: no scheduler answers there ({reason})") from None
    try:
        yield ClusterExecutor(client, address, on_message)
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be told goodbye
            client.close(timeout=5)
