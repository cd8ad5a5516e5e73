"""A scenario: a system, its controllers and how to run them; and how it is made from a file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.learning.agent_files import FileAgent
from queueing_ucrl.learning.registry import check_options, make_controller
from queueing_ucrl.messages import printable
from queueing_ucrl.model.system import LARGEST_TABLE, Queue, System
from queueing_ucrl.scenario.build import system_of
from queueing_ucrl.scenario.idle_keys import idle_keys
from queueing_ucrl.scenario.keys import DEFAULTS, DataTable, File, context_of
from queueing_ucrl.scenario.missing import with_marks
from queueing_ucrl.scenario.mistakes import Mistake, Place, path_of_keys, refusal, same_names, told, unreadable
from queueing_ucrl.scenario.names import find_scenario
from queueing_ucrl.scenario.sweep import in_words, sweep_points, unlike_values
from queueing_ucrl.scenario.toml import read_toml
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.units import Units

MOST_MISTAKES = 1000  # after so many no more are looked for
RECOMMENDED = "certainty-equivalent"  # where a file names no controller


@dataclass(frozen=True)
class ControllerChoice:
    """A controller with its name and options, as the file gives them."""

    name: str
    options: dict[str, Any]
    controller: Any
    label: str | None = None  # what it is called in tables and figures; None: its name, and what is special about it


@dataclass(frozen=True)
class Scenario:
    """A system, its controllers and how to run them, as a scenario file describes it."""

    title: str
    system: System  # a `Queue` where the number of jobs is a Markov chain
    path: Path
    controllers: tuple[ControllerChoice, ...] = ()
    settings: RunSettings = DEFAULTS
    values: dict[str, Any] = field(default_factory=dict)  # of a sweep's point
    points: tuple[Scenario, ...] = ()  # of the sweep; without one, none
    units: Units = field(default_factory=Units)  # words for tables and axes
    data: DataTable | None = None  # the log that it was fitted from

    @property
    def queue(self) -> Queue:
        """The system itself where it is a `Queue`, else the one of the same means that the operator reckons with."""
        return self.system.queue

    @property
    def controller(self) -> Any:
        """The first controller."""
        if not self.controllers:
            raise refusal(self.path, "names no controller; add a table [controller]")
        return self.controllers[0].controller


def load_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario, by its file or its name; every mistake is told at once in a `ScenarioError`."""
    path = find_scenario(path)
    tables, text = read_toml(path)
    scenario, mistakes = _scenario(path, tables)
    mistakes += unlike_values(tables.get("sweep"))
    mistakes = with_marks(tables, mistakes)
    points: list[Scenario] = []
    entries = 0  # of the points' tables
    if scenario is not None and not mistakes:
        for values, changed, wrong in sweep_points(tables):
            if len(mistakes) > MOST_MISTAKES:
                break
            point, found = (None, []) if wrong else _scenario(path, changed)
            mistakes += wrong
            mistakes += [((), f"with {in_words(values)}: {message}") for _, message in found]
            if point is not None:
                points.append(replace(point, values=values))
                entries += point.system.capacity * len(point.system.classes)
                if entries > LARGEST_TABLE:
                    mistakes.append(
                        (("sweep",), f"sweep: capacity x classes, over all points, must be at most {LARGEST_TABLE}")
                    )
                    break
    if scenario is None or mistakes:
        raise ScenarioError("\n".join(told(path, text, mistakes)))
    return replace(scenario, points=tuple(points))


def _scenario(path: Path, tables: dict[str, Any]) -> tuple[Scenario | None, list[Mistake]]:
    """A scenario without its sweep, or all that is wrong with it."""
    mistakes = list(same_names(tables))
    try:
        file = File.model_validate(tables, context={**context_of(tables), "folder": path.parent})
        mistakes += idle_keys(file)
        controllers = _controllers(file, path.parent, mistakes)
        if not mistakes:
            if not controllers:
                controllers = (ControllerChoice(RECOMMENDED, {}, make_controller(RECOMMENDED)),)
            title = file.title or printable(path.stem)
            settings, units = RunSettings(**file.run.model_dump()), Units(file.units.time, file.units.money)
            system = system_of(file, path.parent)
            return Scenario(title, system, path, controllers, settings, units=units, data=file.data), []
    except ValidationError as error:
        mistakes = [*unreadable(error), *mistakes]
    except (ValueError, OverflowError) as error:
        mistakes = [((), line) for line in str(error).splitlines()]
    return None, mistakes


def _controllers(file: File, folder: Path, mistakes: list[Mistake]) -> tuple[ControllerChoice, ...]:
    """The file's controllers, made; what is wrong with their options goes to `mistakes`. No agent's file is opened."""
    choices = []
    for k, section in enumerate(file.controller):
        place: Place = ("controller", k) if len(file.controller) > 1 else ("controller",)
        options = dict(section.model_extra or {})
        try:
            wrong = check_options(section.name, options)
            mistakes += [((*place, key), f"{path_of_keys((*place, key))}{message}") for key, message in wrong]
            if not wrong:
                made = make_controller(section.name, options)
                if isinstance(made, FileAgent):
                    made = made.placed(folder)
                choices.append(ControllerChoice(section.name, options, made, section.label))
        except ValueError as error:
            mistakes.append(((*place, "name"), f"{path_of_keys(place)}: {error}"))
    return tuple(choices)
