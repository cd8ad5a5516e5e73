"""From a scenario to a study's folder: cells, trials, tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl._version import __version__
from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.regret import KINDS, REWARDS
from queueing_ucrl.experiments.study import Cell, Done, Study, run_study
from queueing_ucrl.experiments.trial import Trial
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.registry import check_options, make_controller
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.simulate import choose_engine, time_grid


def choose_controllers(scenario: Scenario, names: list[str]) -> Scenario:
    """The scenario with controllers of these names: with the file's options where it has them, else the defaults."""
    chosen = []
    for name in names:
        listed = [choice for choice in scenario.controllers if choice.name == name]
        if not listed:
            for key, message in check_options(name, {}):
                raise ScenarioError(f"{scenario.path}: controller {name}: {key}{message}; add it under [controller]")
            listed = [ControllerChoice(name, {}, make_controller(name))]
        chosen += listed
    return replace(
        scenario,
        controllers=tuple(chosen),
        points=tuple(choose_controllers(point, names) for point in scenario.points),
    )


def with_run(scenario: Scenario, **settings: Any) -> Scenario:
    """The scenario (and every point of its sweep) with other run settings; None leaves one as it is."""
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if any(f"run.{key}" in point.values for point in scenario.points):
            raise ScenarioError(f"--{key}: {scenario.path} sweeps over run.{key}; take it out of one of the two")
    return replace(scenario, **given, points=tuple(replace(point, **given) for point in scenario.points))


def study_cells(scenario: Scenario) -> list[Cell]:
    """A cell for each controller at each point of the sweep; a controller that cannot work says so now."""
    cells = []
    for k, point in enumerate(scenario.points or (scenario,)):
        taken: dict[str, int] = {}
        for choice in point.controllers:
            taken[choice.name] = number = taken.get(choice.name, 0) + 1
            name = choice.name if number == 1 else f"{choice.name} ({number})"
            cells.append(
                Cell(
                    k, point.values, name, point.queue, choice.controller, point.horizon, point.solver_latency,
                    point.replications, point.seed, time_grid(point.horizon, point.grid_points, point.grid_scale),
                    point.engine,
                )
            )  # fmt: skip
    if not cells:
        raise ScenarioError(f"{scenario.path}: names no controller; add a table [controller] or use --controller")
    for cell in cells:
        _try_to_begin(cell, scenario)
    return cells


def _try_to_begin(cell: Cell, scenario: Scenario) -> None:
    """Let the controller say now, before anything is written, that it cannot work on its queue."""
    controller = cell.controller
    try:
        cell.queue.check_horizon(cell.horizon)
    except ValueError as error:
        raise ScenarioError(f"{scenario.path}: {error}") from None
    truth, ticks = getattr(controller, "knows_truth", False), getattr(controller, "sees_ticks", False)
    try:
        controller.begin(Knowledge.of(cell.queue, truth=truth, ticks=ticks), np.random.default_rng(0))
    except ValueError as error:
        raise ScenarioError(f"{scenario.path}: controller {cell.name}: {error}") from error


def identity(scenario: Scenario) -> dict[str, Any]:
    """All that determines the numbers of a study but how many replications there are."""
    return {
        "version": __version__,
        "seed": scenario.seed,
        "grid": [scenario.grid_points, scenario.grid_scale],
        "points": [
            {
                "values": point.values,
                "queue": point.queue.plain_data(),
                "controllers": [{"name": choice.name, "options": choice.options} for choice in point.controllers],
                "horizon": point.horizon,
                "solver_latency": point.solver_latency,
            }
            for point in (scenario.points or (scenario,))
        ],
    }


def run_scenario(
    scenario: Scenario,
    out: Path,
    *,
    log: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Done | None = None,
    within: Callable[[Trial, float], None] | None = None,
) -> tuple[Study, StudyFolder]:
    """Run a scenario's study into its folder, taking what is done already from there."""
    cells = study_cells(scenario)
    engines = {cell.name: dict(zip(("engine", "because"), choose_engine(cell.engine, cell.controller), strict=True))
               for cell in cells}  # fmt: skip
    facts = {
        "title": scenario.title,
        "units": scenario.units.plain_data(),
        "replications": scenario.replications,
        "engines": engines,
        "cautions": sorted({c for cell in cells for c in _cautions(cell)}),
    }
    folder = StudyFolder(out, identity(scenario), facts)
    study = run_study(
        cells, executor=executor, jobs=jobs, log=log, folder=folder, progress=progress, within=within
    )  # fmt: skip
    write_results(study, scenario, folder)
    return study, folder


def _cautions(cell: Cell) -> list[str]:
    found = cell.controller.cautions(cell.queue) if hasattr(cell.controller, "cautions") else []
    return [f"{cell.name}: {caution}" for caution in found]


def write_results(study: Study, scenario: Scenario, folder: StudyFolder) -> None:
    """Tables and figures of a finished study; the same bytes however it was run."""
    import pandas as pd

    from queueing_ucrl.report.plots import regret_figure

    about = {"title": scenario.title, "units": scenario.units.plain_data()}
    folder.write_json("summary.json", {**about, "results": study.summary()})
    known = any(not study.no_optimum(k) for k in range(len(study.cells)))
    if known:
        curves = pd.concat([study.regret(kind).assign(account=kind) for kind in KINDS], ignore_index=True)
        folder.write_table("regret.parquet", curves)
    earned = pd.concat([study.rewards(kind).assign(account=kind) for kind in REWARDS], ignore_index=True)
    folder.write_table("rewards.parquet", earned)
    folder.write_table("curves.parquet", study.curves())
    if len({cell.name for cell in study.cells}) > 1:
        first = study.cells[0].name
        differences = [
            study.differences(first, kind).assign(account=kind) for kind in ((*KINDS, *REWARDS) if known else REWARDS)
        ]
        folder.write_table("differences.parquet", pd.concat(differences, ignore_index=True))
    folder.write_table("episodes.parquet", study.episodes())
    for k, point in enumerate(scenario.points or (scenario,)):
        name = "regret.png" if not scenario.points else f"regret-{k:04d}.png"
        folder.write_bytes(name, regret_figure(study, point, k))
