"""From a scenario to a study's folder: cells, trials, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl._version import __version__
from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.experiments.regret import KINDS, REWARDS
from queueing_ucrl.experiments.runner import Done, check_cell, run_study
from queueing_ucrl.experiments.study import Cell, Study
from queueing_ucrl.experiments.trial import Trial
from queueing_ucrl.files import plain_data
from queueing_ucrl.learning.registry import check_options, make_controller
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.episode_log import as_column, fitted
from queueing_ucrl.simulation.simulate import choose_engine, time_grid

if TYPE_CHECKING:
    import pandas as pd


def choose_controllers(scenario: Scenario, names: list[str]) -> Scenario:
    """The scenario with controllers of these names: with the file's options where it has them, else the defaults."""
    if "controller.name" in scenario.values or any("controller.name" in point.values for point in scenario.points):
        raise ScenarioError(f"--controller: {scenario.path} sweeps over controller.name; take it out of one of the two")
    chosen = []
    for name in names:
        listed = [choice for choice in scenario.controllers if choice.name == name]
        if not listed:
            for key, message in check_options(name, {}):
                raise ScenarioError(
                    f"{scenario.path}: controller {name}: {key}{message}; add a table [[controller]] for it"
                )
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
    """A cell for each controller at each point of the sweep; whatever cannot be run says so now."""
    cells = []
    for k, point in enumerate(scenario.points or (scenario,)):
        for name, choice in zip(_labels(point), point.controllers, strict=True):
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
        try:
            check_cell(cell)
        except (ValueError, ArithmeticError) as error:
            where = "".join(f", {key} = {value}" for key, value in cell.values.items())
            raise ScenarioError(f"{scenario.path}: controller {cell.name}{where}: {error}") from error
    return cells


def _labels(point: Scenario) -> list[str]:
    try:
        return labels([(c.name, c.controller) for c in point.controllers], [c.label for c in point.controllers])
    except ValueError as error:
        raise ScenarioError(f"{point.path}: {error}") from None


def identity(scenario: Scenario) -> dict[str, Any]:
    """All that determines the numbers of a study but how many replications there are."""
    found: dict[str, Any] = plain_data(
        {
            "version": __version__,
            "seed": scenario.seed,
            "grid": [scenario.grid_points, scenario.grid_scale],
            "points": [
                {
                    "values": point.values,
                    "queue": point.queue.plain_data(),
                    "controllers": [
                        {"name": choice.name, "label": label, "options": choice.options}
                        for label, choice in zip(_labels(point), point.controllers, strict=True)
                    ],
                    "horizon": point.horizon,
                    "solver_latency": point.solver_latency,
                }
                for point in (scenario.points or (scenario,))
            ],
        }
    )
    return found


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
    facts = {
        "title": scenario.title,
        "units": scenario.units.plain_data(),
        "replications": scenario.replications,
        "engines": _engines((cell, *choose_engine(cell.engine, cell.controller)) for cell in cells),
        "cautions": sorted({c for cell in cells for c in _cautions(cell)}),
    }
    folder = StudyFolder(out, identity(scenario), facts)
    study = run_study(
        cells, executor=executor, jobs=jobs, log=log, folder=folder, progress=progress, within=within
    )  # fmt: skip
    write_results(study, scenario, folder)
    folder.write_manifest({**facts, "engines": _engines(_engines_that_ran(study))})
    return study, folder


def _engines_that_ran(study: Study) -> Iterator[tuple[Cell, str, str]]:
    """Trials that were found in the folder may be of another engine than the one now asked for."""
    for cell, result in zip(study.cells, study.summary(), strict=True):
        planned, reason = choose_engine(cell.engine, cell.controller)
        ran = result["engine"]
        yield cell, ran, reason if ran == planned else "as asked by the runs that made the trials"


def _engines(found: Iterable[tuple[Cell, str, str]]) -> dict[str, dict[str, str]]:
    """By controller; at the points of a sweep they may differ."""
    by_name: dict[str, dict[str, set[str]]] = {}
    for cell, engine, reason in found:
        about = by_name.setdefault(cell.name, {"engine": set(), "because": set()})
        about["engine"] |= set(engine.split(" and "))
        about["because"].add(reason)
    return {
        name: {"engine": " and ".join(sorted(about["engine"])), "because": "; ".join(sorted(about["because"]))}
        for name, about in by_name.items()
    }


def _cautions(cell: Cell) -> list[str]:
    found = cell.controller.cautions(cell.queue) if hasattr(cell.controller, "cautions") else []
    return [f"{cell.name}: {caution}" for caution in found]


def write_results(study: Study, scenario: Scenario, folder: StudyFolder) -> None:
    """Tables and figures of a finished study; the same bytes however it was run. Cell by cell, in bounded memory."""
    from queueing_ucrl.report.plots import regret_figure

    about = {"title": scenario.title, "units": scenario.units.plain_data()}
    folder.write_json("summary.json", {**about, "results": study.summary()})
    for name, accounts in (("regret.parquet", KINDS), ("rewards.parquet", REWARDS)):
        if cells := study.cells_with(accounts[0]):
            _write(folder, name, study, (study.account_of(k, a).assign(account=a) for k in cells for a in accounts))
    count = range(len(study.cells))
    _write(folder, "curves.parquet", study, (frame for k in count for frame in study.curves_of(k)))
    if len({cell.point for cell in study.cells}) < len(study.cells):
        differences = (
            frame.assign(account=a)
            for k in count for a in (*KINDS, *REWARDS)
            if k in study.cells_with(a) and (frame := study.differences_of(k, None, a)) is not None
        )  # fmt: skip
        _write(folder, "differences.parquet", study, differences)
    schema = study.episode_schema()
    folder.write_tables("episodes.parquet", schema, study.episode_tables(schema))
    for k, point in enumerate(scenario.points or (scenario,)):
        name = "regret.png" if not scenario.points else f"regret-{k:04d}.png"
        folder.write_bytes(name, regret_figure(study, point, k))


def _write(folder: StudyFolder, name: str, study: Study, frames: Iterator[pd.DataFrame]) -> None:
    """Frames that begin with the swept values as one Parquet file, a row group each."""
    import pyarrow as pa

    values = study.value_schema()
    first = next(frames)
    own = pa.Table.from_pandas(first.drop(columns=values.names), preserve_index=False).schema.remove_metadata()
    schema = pa.schema([*values, *own])
    tables = (
        fitted(pa.table({c: pa.array(frame[c]) if c in own.names else as_column(frame[c]) for c in frame}), schema)
        for frame in chain([first], frames)
    )  # fmt: skip
    folder.write_tables(name, schema, tables)
