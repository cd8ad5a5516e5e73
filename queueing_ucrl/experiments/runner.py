"""A study is run: every trial of every cell, those that a folder holds already taken from there.

Trials are made one by one as there is room for them, and results that a folder holds are read again when they are
asked for once they are too many: memory does not grow with the number of replications.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from queueing_ucrl.accounts.steady_state import estimate
from queueing_ucrl.accounts.totals import Account
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.errors import PrecisionWarning
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.executors import Backend, choose_backend
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.experiments.study import StoredResults, Study
from queueing_ucrl.experiments.trial import OnProgress, Place, Trial, TrialResult
from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.learning.registry import as_controller, make_controller
from queueing_ucrl.model.checks import listed
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import GuaranteeWarning

OnResult = Callable[[TrialResult, int, int], None]  # a result, how many are done, of how many

KEPT = 10**8  # numbers in the curves of a study, up to which they are kept in memory


def replicate(
    queue: System,
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
    accounts: Sequence[Account] = (),
    on_result: OnResult | None = None,
    **steady_state: Any,
) -> Study:
    """Run each controller `replications` times on the same jobs.

    executor: any concurrent.futures.Executor; without one, `jobs` processes (default: all cores; 1: this process).
    accounts: of one's own, for study.regret(kind=name). on_result: called after each trial with its result, how many
    are done, and of how many. steady_state: precision, measure, most_replications and target_wait, as in `RunSettings`:
    with a precision, `replications` more are run until the measure is known so well for each controller.
    """
    times = None if grid is None else tuple(np.asarray(grid, dtype=float).tolist())
    settings = RunSettings(horizon, replications, seed, engine, solver_latency, grid=times, **steady_state)
    named, own = named_controllers(controllers), listed(accounts, "accounts")
    cells = [Cell(0, {}, name, queue, one.made_for(queue), settings, own) for name, one in named]
    for cell in cells:
        cell.check()
    return run_study(cells, executor=executor, jobs=jobs, on_result=on_result)


def named_controllers(controllers: Iterable[Any]) -> list[tuple[str, Controller]]:
    """Controllers (objects or names) with names that differ."""
    controllers = listed(controllers, "controllers")
    given = [make_controller(item) if isinstance(item, str) else item for item in controllers]
    if not given:
        raise ValueError("controllers must name at least one controller")
    made = [as_controller(one) for one in given]
    names = labels([(one.name, item) for one, item in zip(made, given, strict=True)])
    return list(zip(names, made, strict=True))


def run_study(
    cells: list[Cell],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    log: bool = False,
    folder: StudyFolder | None = None,
    on_result: OnResult | None = None,
    on_progress: OnProgress | None = None,
) -> Study:
    """Run the cells' trials, those that `folder` holds already taken from there; each result goes there as it ends.

    With a precision, so many replications as the settings say are added until the measure is known so well in every
    cell: what is added depends on whole rounds only, never on the order in which trials end; all cells get the same
    number. The cells have passed `Cell.check`.
    """
    total = sum(cell.settings.replications for cell in cells)
    backend = choose_backend(executor, jobs, total, on_progress)
    for caution in (caution for cell in cells for caution in cell.cautions):
        warnings.warn(caution, GuaranteeWarning, stacklevel=3)
    backend.check(cells)
    trials = _Trials(cells, backend, folder, log, on_result)
    try:
        step = max(cell.settings.replications for cell in cells)
        most = max((c.settings.most_replications for c in cells if c.settings.precision > 0.0), default=0)
        trials.run_to(step if most else None)
        for count in range(2 * step, most + step, step):
            if not trials.missed():
                break
            trials.run_to(min(count, most))
        if most and (missed := trials.missed()):
            warnings.warn(missed, PrecisionWarning, stacklevel=3)
    finally:
        if folder is not None:
            folder.tidy()  # of workers that were killed
    return trials.study()


class _Trials:
    """The trials of a study, as many as were asked for so far."""

    def __init__(
        self, cells: list[Cell], backend: Backend, folder: StudyFolder | None, log: bool, on_result: OnResult | None
    ) -> None:
        self.cells, self.backend, self.folder, self.log, self.on_result = cells, backend, folder, log, on_result
        self.found: dict[Place, TrialResult] = {}
        self.measured: dict[Place, float | None] = {}  # what the precision is of
        self.measures = {(cell.point, cell.name): cell.settings.measure for cell in cells}
        self.asked = self.done = 0  # replications of each cell; trials
        self.keeps = True

    def run_to(self, count: int | None) -> None:
        """Run what is missing of so many replications of each cell (None: as its settings say)."""
        first, self.asked = self.asked, count or 0
        if count is not None:
            self.cells = [replace(cell, settings=replace(cell.settings, replications=count)) for cell in self.cells]
        if self.keeps and self.folder is not None and sum(cell.numbers for cell in self.cells) > KEPT:
            self.keeps = False
            self.found.clear()
        total = sum(cell.settings.replications for cell in self.cells)
        for result in self.backend.results(self._missing(first)):
            kept = result if self.folder is None else self.folder.save(result)
            self._take(kept)
            if self.on_result is not None:
                self.on_result(kept, self.done, total)

    def _take(self, result: TrialResult) -> None:
        self.done += 1
        self.measured[result.place] = result.measure(self.measures[result.point, result.name])
        if self.keeps:
            self.found[result.place] = result

    def _missing(self, first: int) -> Iterator[Trial]:
        folder, log = self.folder, self.log
        for cell in self.cells:
            for r in range(first, cell.settings.replications):
                result = None if folder is None else folder.load((cell.point, cell.name, r), log=log)
                if result is not None:
                    self._take(result)
                elif folder is None:
                    yield Trial(cell, r)
                else:
                    yield folder.trial(cell, r, log=log, shares_disk=self.backend.shares_disk)

    def missed(self) -> str:
        """The first cell whose measure is not known well enough, in words; "" where there is none."""
        for cell in (cell for cell in self.cells if cell.settings.precision > 0.0):
            places = [(cell.point, cell.name, r) for r in range(cell.settings.replications)]
            known = [value for place in places if (value := self.measured[place]) is not None]
            width = estimate(known).relative_half_width if len(known) > 1 else math.inf
            if width > cell.settings.precision:
                return (
                    f"{cell.name}: after {len(places):,} replications (most_replications) the half-width of "
                    f"{cell.settings.measure} is {width:.2g} of its mean, not {cell.settings.precision:g}"
                )
        return ""

    def study(self) -> Study:
        """All results in order."""
        cells, folder = self.cells, self.folder
        if not self.keeps and folder is not None:
            return Study(cells, _stored(cells, folder))
        return Study(cells, [[self.found[c.point, c.name, r] for r in range(c.settings.replications)] for c in cells])


def _stored(cells: list[Cell], folder: StudyFolder) -> list[StoredResults]:
    """Results that are read from the folder when they are asked for; those of two cells at a time are at hand."""

    @lru_cache(maxsize=2)
    def load(k: int) -> list[TrialResult]:
        cell = cells[k]
        return [folder.read((cell.point, cell.name, r)) for r in range(cell.settings.replications)]

    return [StoredResults(cell.settings.replications, partial(load, k)) for k, cell in enumerate(cells)]
