"""From a scenario to a study's folder: cells, trials and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl._version import __version__
from queueing_ucrl.accounts.regret import KINDS, REWARDS
from queueing_ucrl.accounts.totals import Account
from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.experiments.runner import OnResult, run_study
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.experiments.trial import OnProgress
from queueing_ucrl.files import plain_data
from queueing_ucrl.learning.agent_files import FileAgent
from queueing_ucrl.learning.registry import as_controller, check_options, make_controller
from queueing_ucrl.messages import shown
from queueing_ucrl.scenario import ControllerChoice, Scenario
from queueing_ucrl.simulation.choose_engine import choose_engine
from queueing_ucrl.simulation.episode_log import as_column, fitted
from queueing_ucrl.simulation.event_log import LogColumn

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
    return replace(
        scenario,
        settings=replace(scenario.settings, **given),
        points=tuple(replace(point, settings=replace(point.settings, **given)) for point in scenario.points),
    )


def study_cells(
    scenario: Scenario, accounts: Sequence[Account] = (), log_columns: Sequence[LogColumn] = ()
) -> list[Cell]:
    """A cell for each controller at each point of the sweep; whatever cannot be run says so now."""
    cells = []
    words = {key: word for key, word in scenario.units.plain_data().items() if word}
    origin = ({"title": scenario.title} if scenario.title else {}) | ({"units": words} if words else {})
    own = (tuple(accounts), tuple(log_columns), origin)
    for k, point in enumerate(scenario.points or (scenario,)):
        for name, choice in zip(_labels(point), point.controllers, strict=True):
            try:
                made = as_controller(choice.controller).made_for(point.system)
                cell = Cell(k, point.values, name, point.system, made, point.settings, *own)
                cell.check()
            except (ValueError, ArithmeticError) as error:
                where = "".join(f", {key} = {value}" for key, value in point.values.items())
                raise ScenarioError(f"{scenario.path}: controller {name}{where}: {error}") from error
            cells.append(cell)
    if not cells:
        raise ScenarioError(f"{scenario.path}: names no controller; add a table [controller] or use --controller")
    return cells


def with_files_opened(scenario: Scenario, trust: Sequence[str] = ()) -> Scenario:
    """The scenario with what the files of its agents hold: tables, and those agents whose files somebody trusts.

    trust: their files, by name, by path or as sha256:DIGEST. A word that no file answers to is refused.
    """
    files = {
        choice.controller.path: choice.controller
        for point in (scenario, *scenario.points)
        for choice in point.controllers
        if isinstance(choice.controller, FileAgent)
    }
    for word in trust:
        if not any(one.needs_trust and one.trusted_as(word) for one in files.values()):
            raise ScenarioError(f"--trust {shown(word)}: {scenario.path} has no controller from such a file")

    def opened(choice: ControllerChoice) -> ControllerChoice:
        if not isinstance(choice.controller, FileAgent):
            return choice
        try:
            return replace(choice, controller=choice.controller.opened(trust))
        except ValueError as error:
            raise ScenarioError(f"{scenario.path}: controller agent: {error}") from error

    return replace(
        scenario,
        controllers=tuple(map(opened, scenario.controllers)),
        points=tuple(replace(point, controllers=tuple(map(opened, point.controllers))) for point in scenario.points),
    )


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
            "seed": scenario.settings.seed,
            "grid": [scenario.settings.grid_points, scenario.settings.grid_scale],
            "points": [
                {
                    "values": point.values,
                    "queue": point.system.plain_data(),
                    "controllers": [
                        {"name": choice.name, "label": label, "options": choice.options, **_digest(choice)}
                        for label, choice in zip(_labels(point), point.controllers, strict=True)
                    ],
                    "horizon": point.settings.horizon,
                    "solver_latency": point.settings.solver_latency,
                    **({"target_wait": point.settings.target_wait} if point.settings.target_wait else {}),
                }
                for point in (scenario.points or (scenario,))
            ],
            **_log_identity(scenario),
        }
    )
    return found


def _digest(choice: ControllerChoice) -> dict[str, str]:
    """What tells the file of an agent, which may change under its name."""
    digest = choice.controller.digest if isinstance(choice.controller, FileAgent) else None
    return {} if digest is None else {"sha256": digest}


def _log_identity(scenario: Scenario) -> dict[str, Any]:
    """What tells the log that the scenario was fitted from, where there is one."""
    if scenario.data is None:
        return {}
    try:
        return {"data": scenario.data.plain_data(scenario.path.parent)}
    except ValueError as error:
        raise ScenarioError(f"{scenario.path}: data.trace: {error}") from None


def run_scenario(
    scenario: Scenario,
    out: Path,
    *,
    log: bool = False,
    accounts: Sequence[Account] = (),
    log_columns: Sequence[LogColumn] = (),
    jobs: int | None = None,
    executor: Executor | None = None,
    on_result: OnResult | None = None,
    on_progress: OnProgress | None = None,
    command: Sequence[str] = (),
) -> tuple[Study, StudyFolder]:  # long: an option a line, and what each does
    """Run a scenario's study into its folder, taking what is done already from there.

    accounts, log_columns: of one's own, for the study's tables and its event logs. command: the words of the command
    that was given, for those who want to run it again.
    """
    scenario = with_files_opened(scenario)
    cells = study_cells(scenario, accounts, log_columns)
    settings = scenario.settings
    facts: dict[str, Any] = {
        "title": scenario.title,
        "units": scenario.units.plain_data(),
        "replications": settings.replications,
        "engines": _engines((cell, *_planned(cell)) for cell in cells),
        "cautions": sorted({caution for cell in cells for caution in cell.cautions}),
        **({"command": list(command)} if command else {}),
    }
    own = {"accounts": [a.name for a in accounts], "log_columns": [c.name for c in log_columns]}
    about = {**identity(scenario), **{key: names for key, names in own.items() if names}}
    folder = StudyFolder(out, about, facts)
    where: dict[str, Any] = {"executor": executor, "jobs": jobs, "log": log, "folder": folder}
    try:
        study = run_study(cells, **where, on_result=on_result, on_progress=on_progress)
    except Exception as error:  # a trial's, whatever it is: the study's page tells it
        with suppress(OSError):
            folder.write_manifest({**facts, "failed": f"{type(error).__name__}: {error}"})
        raise
    write_results(study, scenario, folder)
    if settings.precision > 0.0:
        facts |= {"precision": settings.precision, "measure": settings.measure}
        facts["replications"] = study.cells[0].settings.replications
    folder.write_manifest({**facts, "engines": _engines(_engines_that_ran(study))})
    return study, folder


def _planned(cell: Cell) -> tuple[str, str]:
    engine, reason = choose_engine(cell.settings.engine, cell.system, cell.controller)
    return engine.name, reason


def _engines_that_ran(study: Study) -> Iterator[tuple[Cell, str, str]]:
    """Trials that were found in the folder may be of another engine than the one now asked for."""
    for cell, result in zip(study.cells, study.summary(), strict=True):
        planned, reason = _planned(cell)
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


def write_results(study: Study, scenario: Scenario, folder: StudyFolder) -> None:
    """Tables of a finished study; the same bytes however it was run. Cell by cell, in bounded memory."""
    about = {"title": scenario.title, "units": scenario.units.plain_data()}
    folder.write_json("summary.json", {**about, "results": study.summary()})
    count, own = range(len(study.cells)), study.own_accounts
    having = {account: set(study.cells_with(account)) for account in (*KINDS, *own, *REWARDS)}
    for name, accounts in (("regret.parquet", (*KINDS, *own)), ("rewards.parquet", REWARDS)):
        if kept := [(k, a) for k in count for a in accounts if k in having[a]]:
            _write(folder, name, study, (study.account_of(k, a).assign(account=a) for k, a in kept))
    _write(folder, "curves.parquet", study, (frame for k in count for frame in study.curves_of(k)))
    if len({cell.point for cell in study.cells}) < len(study.cells):
        found = ((study.differences_of(k, None, a), a) for k in count for a in having if k in having[a])
        differences = (frame.assign(account=a) for frame, a in found if frame is not None)
        _write(folder, "differences.parquet", study, differences)
    schema = study.episode_schema()
    folder.write_tables("episodes.parquet", schema, study.episode_tables(schema))


def _write(folder: StudyFolder, name: str, study: Study, frames: Iterator[pd.DataFrame]) -> None:
    """Frames that begin with the swept values as one Parquet file, a row group each."""
    import pyarrow as pa

    values = study.value_schema()
    first = next(frames)
    own = pa.Table.from_pandas(first.drop(columns=values.names), preserve_index=False).schema.remove_metadata()
    schema = pa.schema([*values, *own])

    def fitting(frame: pd.DataFrame) -> pa.Table:
        columns = {c: pa.array(frame[c]) if c in own.names else as_column(frame[c]) for c in frame}
        return fitted(pa.table(columns), schema)

    folder.write_tables(name, schema, map(fitting, chain([first], frames)))
