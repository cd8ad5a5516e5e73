"""Studies: controllers side by side over replications (and the points of a sweep), on common random numbers.

The numbers are the same whatever the executor, the number of workers or the order in which trials end: each trial has
its own streams, and results are put in order before anything is added up.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.regret import KINDS, REWARDS
from queueing_ucrl.experiments.trial import Trial, TrialResult, run_trial
from queueing_ucrl.learning.registry import make_controller
from queueing_ucrl.model.quantiles import student_quantile
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.desk import controller_name
from queueing_ucrl.simulation.simulate import GuaranteeWarning, choose_engine, time_grid
from queueing_ucrl.solvers.optimum import optimum

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
QUANTILES = (0.05, 0.25, 0.75, 0.95)

Done = Callable[[TrialResult, int, int], None]  # a result, how many are done, of how many


def interval(samples: FloatArray, level: float = LEVEL) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(mean, low, high) of each column: Student's t interval for the mean; without width for a single sample."""
    count = len(samples)
    mean = samples.mean(axis=0)
    if count < 2:
        return mean, mean, mean
    half = student_quantile(level, float(count - 1)) * samples.std(axis=0, ddof=1) / math.sqrt(count)
    return mean, mean - half, mean + half


@dataclass(frozen=True)
class Cell:
    """One controller at one point of a sweep."""

    point: int
    values: dict[str, Any]  # the swept values
    name: str
    queue: Queue
    controller: Any
    horizon: float
    solver_latency: float = 0.0
    replications: int = 1
    seed: int = 0
    grid: FloatArray | None = None  # times at which regret is noted; None: the default grid
    engine: str = "auto"

    def __post_init__(self) -> None:
        count = self.replications
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"replications must be a whole number of at least 1, got {count!r}")

    def value_columns(self, count: int) -> dict[str, list[Any]]:
        """The swept values as columns of `count` rows; a value may itself be a list."""
        return {key: [value] * count for key, value in self.values.items()}


@dataclass(frozen=True)
class Study:
    """The results of a study, in order: cells, and within each its replications."""

    cells: list[Cell]
    results: list[list[TrialResult]]

    def samples(self, cell: int, kind: str) -> FloatArray:
        """One account or reward of one cell: a row a replication, a column a time."""
        if kind in REWARDS:
            return np.array([result.rewards[kind] for result in self.results[cell]])
        self._check_kind(kind)
        if self.no_optimum(cell):
            raise ValueError(f"{self.cells[cell].name}: no regret: {self.no_optimum(cell)}")
        return np.array([result.regret[kind] for result in self.results[cell]])

    @staticmethod
    def _check_kind(kind: str, kinds: Sequence[str] = (*KINDS, *REWARDS)) -> None:
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")

    def no_optimum(self, cell: int) -> str:
        """Why a cell has no regret; "" where it has."""
        return str(self.results[cell][0].summary["no_optimum"])

    def _cells_with(self, kind: str) -> list[int]:
        """The cells that have an account; a ValueError says why where none has."""
        found = [k for k in range(len(self.cells)) if kind in REWARDS or not self.no_optimum(k)]
        if not found:
            raise ValueError(f"no regret: {self.no_optimum(0)}")
        return found

    def regret(self, kind: str = "gap") -> pd.DataFrame:
        """Tidy: (swept values,) controller, time, mean and its 95 % interval, median and quantile bands.

        Only of cells whose optimum is known; where there is none at all, a ValueError says why.
        """
        self._check_kind(kind, KINDS)
        return self._tidy(kind)

    def rewards(self, kind: str = "expected_reward") -> pd.DataFrame:
        """What was earned so far, tidy as `regret`: "expected_reward" or "realised_reward"."""
        self._check_kind(kind, REWARDS)
        return self._tidy(kind)

    def _tidy(self, kind: str) -> pd.DataFrame:
        import pandas as pd

        frames = []
        for k in self._cells_with(kind):
            cell = self.cells[k]
            samples = self.samples(k, kind)
            mean, low, high = interval(samples)
            times = self.results[k][0].times
            columns: dict[str, Any] = {**cell.value_columns(len(times)), "controller": cell.name, "time": times}
            columns |= {"mean": mean, "low": low, "high": high, "median": np.median(samples, axis=0)}
            columns |= {f"q{round(100 * q):02d}": np.quantile(samples, q, axis=0) for q in QUANTILES}
            frames.append(pd.DataFrame({**columns, "replications": len(samples)}))
        return pd.concat(frames, ignore_index=True)

    def differences(self, baseline: str, kind: str = "gap") -> pd.DataFrame:
        """Tidy: controller minus baseline, replication by replication on the same jobs, with its 95 % interval.

        kind: a regret account, "expected_reward" or "realised_reward".
        """
        import pandas as pd

        self._check_kind(kind)
        if baseline not in {cell.name for cell in self.cells}:
            raise ValueError(f"baseline must be a controller of the study, got {baseline!r}")
        frames = []
        for k in self._cells_with(kind):
            cell = self.cells[k]
            base = next(j for j, c in enumerate(self.cells) if c.point == cell.point and c.name == baseline)
            if base == k:
                continue
            mean, low, high = interval(self.samples(k, kind) - self.samples(base, kind))
            times = self.results[k][0].times
            columns: dict[str, Any] = {**cell.value_columns(len(times)), "controller": cell.name, "baseline": baseline}
            columns |= {"time": times, "mean": mean, "low": low, "high": high}
            frames.append(pd.DataFrame({**columns, "replications": len(self.results[k])}))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def curves(self) -> pd.DataFrame:
        """Every account of every replication: (swept values,) controller, replication, time, and a column a reward,
        and where the optimum is known an account and a cause.
        """
        import pandas as pd

        frames = [
            pd.DataFrame(
                {
                    **cell.value_columns(len(result.times)), "controller": cell.name,
                    "replication": result.replication, "time": result.times, **result.rewards,
                    **result.regret, **{cause: table.sum(axis=1) for cause, table in result.causes.items()},
                }
            )
            for cell, results in zip(self.cells, self.results, strict=True)
            for result in results
        ]  # fmt: skip
        return pd.concat(frames, ignore_index=True)

    def episodes(self) -> pd.DataFrame:
        """The episodes of every trial: (swept values,) controller, replication, and the columns of Run.episodes."""
        import pandas as pd

        return pd.DataFrame(
            [
                {**cell.values, "controller": cell.name, "replication": result.replication, **row}
                for cell, results in zip(self.cells, self.results, strict=True)
                for result in results
                for row in result.episodes
            ]
        )

    def summary(self) -> list[dict[str, Any]]:
        """Each cell in plain data: mean and 95 % interval of every account at the horizon, rewards, and its classes."""
        return [self._cell_summary(k) for k in range(len(self.cells))]

    def _cell_summary(self, k: int) -> dict[str, Any]:
        cell, results = self.cells[k], self.results[k]
        summaries = [result.summary for result in results]

        def spread(values: Sequence[float | None]) -> dict[str, float | None]:
            known = np.array([v for v in values if v is not None])
            if known.size == 0:
                return {"mean": None, "low": None, "high": None}
            mean, low, high = interval(known[:, None])
            return {"mean": float(mean[0]), "low": float(low[0]), "high": float(high[0])}

        numbers = ("arrivals", "admitted", "rejected", "blocked", "mean_wait", "wait_95", "reward", "cost")
        return {
            "controller": cell.name,
            **({"values": cell.values} if cell.values else {}),
            "horizon": cell.horizon,
            "replications": len(results),
            "engine": summaries[0]["engine"],
            "optimal_gain": summaries[0]["optimal_gain"],
            "no_optimum": summaries[0]["no_optimum"],
            "gain": spread([s["gain"] for s in summaries]),
            "reward": spread([s["reward"] for s in summaries]),
            "expected_reward": spread([s["expected_reward"] for s in summaries]),
            "regret": {kind: spread([s["regret"][kind] for s in summaries]) for kind in KINDS},
            "utilisation": spread([s["utilisation"] for s in summaries]),
            "classes": [
                {"name": name, **{n: spread([s["classes"][i][n] for s in summaries]) for n in numbers}}
                for i, name in enumerate(cell.queue.class_names)
            ],
            "unfinished": {
                state: spread([s["unfinished"][state] for s in summaries]) for state in ("waiting", "in_service")
            },
            "cautions": summaries[0]["cautions"],
        }


def named_controllers(controllers: Iterable[Any]) -> list[tuple[str, Any]]:
    """Controllers (objects or names) with names that differ: a second `ucrl-ac` becomes `ucrl-ac (2)`."""
    named: list[tuple[str, Any]] = []
    for item in controllers:
        controller = make_controller(item) if isinstance(item, str) else item
        name = controller_name(controller)
        taken = sum(1 for _, other in named if controller_name(other) == name)
        named.append((name if not taken else f"{name} ({taken + 1})", controller))
    if not named:
        raise ValueError("controllers must name at least one controller")
    return named


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
    """Run the cells' trials, those that `folder` holds already taken from there; each result goes there as it ends."""
    trials = _trials(cells, folder if log else None)
    found: dict[tuple[int, str, int], TrialResult] = {}
    waiting: list[Trial] = []
    for trial in trials:
        result = folder.load(trial) if folder is not None else None
        if result is None:
            waiting.append(trial)
        else:
            found[_place(trial)] = result
    for done, result in enumerate(_run(waiting, executor, jobs, within), start=len(found) + 1):
        if folder is not None:
            folder.save(result)
        found[result.point, result.name, result.replication] = result
        if progress is not None:
            progress(result, done, len(trials))
    results = [[found[cell.point, cell.name, r] for r in range(cell.replications)] for cell in cells]
    return Study(cells, results)


def _place(trial: Trial) -> tuple[int, str, int]:
    return trial.point, trial.name, trial.replication


def _trials(cells: list[Cell], logs: StudyFolder | None) -> list[Trial]:
    trials = []
    for cell in cells:
        choose_engine(cell.engine, cell.controller)
        if hasattr(cell.controller, "cautions"):
            for caution in cell.controller.cautions(cell.queue):
                warnings.warn(f"{cell.name}: {caution}", GuaranteeWarning, stacklevel=4)
        optimum(cell.queue)  # found before the work is shared out: processes that are forked remember it
        times = time_grid(cell.horizon) if cell.grid is None else cell.grid
        for r in range(cell.replications):
            path = logs.event_log(cell.point, cell.name, r) if logs is not None else None
            trials.append(
                Trial(
                    cell.queue, cell.controller, cell.name, cell.horizon, cell.seed, r, times, cell.engine,
                    cell.solver_latency, cell.point, path,
                )
            )  # fmt: skip
    return trials


def _run(
    trials: list[Trial],
    executor: Executor | None,
    jobs: int | None,
    within: Callable[[Trial, float], None] | None,
) -> Iterator[TrialResult]:
    """The trials' results as they end."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(jobs or cores, len(trials))
    if executor is not None:
        yield from _collect(executor, trials)
    elif workers <= 1:
        for trial in trials:
            told = None if within is None else (lambda time, trial=trial: within(trial, time))
            yield trial.run(told)
    else:
        _check_that_they_travel(trials)
        pool = _process_pool(workers)
        try:
            yield from _collect(pool, trials)
        except BaseException:
            for process in list((pool._processes or {}).values()):  # do not wait for trials that nobody wants any more
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


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
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _check_that_they_travel(trials: list[Trial]) -> None:
    """Say now, and in words, that a trial cannot be sent to another process."""
    for trial in {(trial.point, trial.name): trial for trial in trials}.values():
        try:
            pickle.dumps(trial)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{trial.name}: its queue or controller cannot be sent to worker processes ({error}); "
                "define functions and classes at the top level of a module, or use jobs=1"
            ) from error


def _collect(executor: Executor, trials: list[Trial]) -> Iterator[TrialResult]:
    futures: list[Future[TrialResult]] = []
    try:
        futures = [executor.submit(run_trial, trial) for trial in trials]
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
