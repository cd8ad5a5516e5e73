"""Scenario files: TOML in, a checked `Scenario` out. A file is data; nothing in it is ever run.

All mistakes of a file are told at once, each with its place, the value found and what would be right.
"""

from __future__ import annotations

import math
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.messages import SHOWN_VALUE, is_one_line, printable, shortened, shown, shown_path
from queueing_ucrl.model.checks import LONGEST_NAME
from queueing_ucrl.model.costs import Deadline, Free, HoldingCost, Linear, PiecewiseLinear, Power, Saturating
from queueing_ucrl.model.patterns import ArrivalPattern, Sinusoid, Steady, Steps
from queueing_ucrl.model.queue import LARGEST_TABLE, JobClass, Queue
from queueing_ucrl.sweep import sweep_points
from queueing_ucrl.units import Units

LARGEST_FILE = 1_000_000  # bytes
DEEPEST = 40  # tables in tables; a scenario needs four
MOST_CLASSES = 1000  # a run keeps 64 kB of random numbers for each
MOST_CONTROLLERS = 200
SHOWN_MISTAKES = 20
MOST_MISTAKES = 1000  # after so many no more are looked for
LONGEST_MESSAGE = 600  # characters
RECOMMENDED = "certainty-equivalent"  # where a file names no controller

Place = tuple[int | str, ...]  # ("class", 1, "holding_cost", "linear", "rate"), as pydantic gives it
Mistake = tuple[Place, str]


def _one_line(text: str) -> str:
    """What is printed to a terminal must not steer it, nor break a table."""
    if not is_one_line(text):
        raise ValueError("must be one line of printable characters, with no space around it")
    return text


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=LARGEST_TABLE)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_one_line)]
Unit = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(_one_line)]
Title = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
Point = Annotated[list[NotNegative], Field(min_length=2, max_length=2)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Cost(_Section):
    makes: ClassVar[Callable[..., HoldingCost]]

    def cost(self) -> HoldingCost:
        return type(self).makes(**self.model_dump(exclude={"kind"}))

    @model_validator(mode="after")
    def _is_a_cost(self) -> _Cost:
        self.cost()
        return self


class _Free(_Cost):
    makes = Free
    kind: Literal["free"]


class _Linear(_Cost):
    makes = Linear
    kind: Literal["linear"]
    rate: NotNegative


class _Power(_Cost):
    makes = Power
    kind: Literal["power"]
    coefficient: NotNegative
    exponent: Positive


class _Saturating(_Cost):
    makes = Saturating
    kind: Literal["saturating"]
    ceiling: NotNegative
    rate: Positive


class _Deadline(_Cost):
    makes = Deadline
    kind: Literal["deadline"]
    penalty: NotNegative
    due: NotNegative


class _PiecewiseLinear(_Cost):
    makes = PiecewiseLinear
    kind: Literal["piecewise-linear"]
    points: Annotated[list[Point], Field(min_length=1)]


class _Steps(_Section):
    kind: Literal["steps"]
    times: list[Positive]
    factors: Annotated[list[NotNegative], Field(min_length=1)]
    period: Positive = math.inf

    @model_validator(mode="after")
    def _is_a_pattern(self) -> _Steps:
        self.pattern()
        return self

    def pattern(self) -> ArrivalPattern:
        return Steps(self.times, self.factors, self.period)


class _Sinusoid(_Section):
    kind: Literal["sinusoid"]
    amplitude: Annotated[float, Field(ge=0, le=1)]
    period: Positive
    phase: Annotated[float, Field(allow_inf_nan=False)] = 0.0

    def pattern(self) -> ArrivalPattern:
        return Sinusoid(self.amplitude, self.period, self.phase)


class _Class(_Section):
    name: Name
    arrival_rate: Positive
    reward: NotNegative
    holding_cost: Annotated[
        _Free | _Linear | _Power | _Saturating | _Deadline | _PiecewiseLinear, Field(discriminator="kind")
    ] = _Free(kind="free")
    pattern: Annotated[_Steps | _Sinusoid, Field(discriminator="kind")] | None = None


class _Queue(_Section):
    servers: Count
    capacity: Count
    service_rate: Positive


class _Controller(_Section):
    """A controller's name; its options are checked by the controller itself."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    name: Name
    label: Name | None = None


class _Run(_Section):
    horizon: Positive = 1e5
    replications: Count = 1
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    engine: Literal["auto", "simpy", "compiled"] = "auto"
    solver_latency: NotNegative = 0.0
    grid_points: Annotated[int, Field(ge=1, le=100_000)] = 200
    grid_scale: Literal["log", "linear"] = "log"


class _Units(_Section):
    time: Unit = ""
    money: Unit = ""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


class _File(_Section):
    title: Title = ""
    queue: _Queue
    classes: Annotated[list[_Class], Field(alias="class", min_length=1, max_length=MOST_CLASSES)]
    controller: Annotated[list[_Controller], BeforeValidator(_listed), Field(max_length=MOST_CONTROLLERS)] = []
    run: _Run = _Run()
    sweep: dict[str, Any] = {}
    units: _Units = _Units()


_COSTS: dict[str, type[_Section]] = {
    "free": _Free, "linear": _Linear, "power": _Power, "saturating": _Saturating, "deadline": _Deadline,
    "piecewise-linear": _PiecewiseLinear,
}  # fmt: skip
_PATTERNS: dict[str, type[_Section]] = {"steps": _Steps, "sinusoid": _Sinusoid}
_KINDS = {"holding_cost": _COSTS, "pattern": _PATTERNS}
_SECTIONS: dict[str, type[_Section]] = {
    "": _File, "queue": _Queue, "class": _Class, "run": _Run, "units": _Units, **_COSTS, **_PATTERNS,
}  # fmt: skip


@dataclass(frozen=True)
class ControllerChoice:
    """A controller with its name and options, as the file gives them."""

    name: str
    options: dict[str, Any]
    controller: Any
    label: str | None = None  # what it is called in tables and figures; None: its name, and what is special about it


@dataclass(frozen=True)
class Scenario:
    """A queue, its controllers and how to run them, as a scenario file describes it."""

    title: str
    queue: Queue
    path: Path
    controllers: tuple[ControllerChoice, ...] = ()
    horizon: float = 1e5
    replications: int = 1
    seed: int = 1
    engine: str = "auto"
    solver_latency: float = 0.0
    grid_points: int = 200
    grid_scale: str = "log"
    values: dict[str, Any] = field(default_factory=dict)  # of a sweep's point
    points: tuple[Scenario, ...] = ()  # of the sweep; without one, none
    units: Units = field(default_factory=Units)  # words for tables and axes

    @property
    def controller(self) -> Any:
        """The first controller."""
        if not self.controllers:
            raise _refusal(self.path, "names no controller; add a table [controller]")
        return self.controllers[0].controller


def _refusal(path: Path, message: str) -> ScenarioError:
    return ScenarioError(printable(f"{shown_path(path)}: {message}"))


def _content(path: Path) -> bytes:
    """The first LARGEST_FILE + 1 bytes of a regular file; a pipe or a device, which may never end, is not read."""
    try:
        # without O_NONBLOCK the opening of a pipe would wait for somebody to write to it
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _refusal(path, "is not a file but a pipe or a device; write the scenario to a file (TOML)")
            return file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        near = _nearest(path.name, [p.name for p in path.parent.glob("*.toml")])
        hint = f"; did you mean {shown_path(path.parent / near)}?" if near else ""
        raise _refusal(path, "no such file" + hint) from None
    except IsADirectoryError:
        raise _refusal(path, "is a folder; name a scenario file (TOML) in it") from None
    except OSError as error:
        raise _refusal(path, f"cannot be read ({error.strerror})") from None
    except ValueError as error:
        if isinstance(error, ScenarioError):
            raise
        raise _refusal(path, f"is no name of a file ({error})") from None  # a null character


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The file's tables and its text; any way in which it is not a TOML file is one `ScenarioError`."""
    content = _content(path)
    if len(content) > LARGEST_FILE:
        raise _refusal(path, f"larger than {LARGEST_FILE // 1_000_000} MB, too large for a scenario file")
    try:
        text = content.decode("utf-8-sig")
        if _longest_key(text) > DEEPEST:
            raise RecursionError
        tables = tomllib.loads(text)
        _check_depth(tables)
        return tables, text
    except UnicodeDecodeError as error:
        raise _refusal(path, f"byte {error.start} is not UTF-8; a scenario is a TOML text file") from None
    except tomllib.TOMLDecodeError as error:
        twice = re.match(r"Cannot declare \('(class|controller)',\) twice", str(error))
        hint = f"; of several, each begins with [[{twice[1]}]]" if twice else ""
        raise _refusal(path, f"not valid TOML: {shortened(str(error), 3 * SHOWN_VALUE)}{hint}") from None
    except RecursionError:
        raise _refusal(path, f"tables are nested too deeply, at most {DEEPEST} in one another") from None
    except ValueError:  # Python reads no decimal number of more than 4300 digits
        raise _refusal(path, "not valid TOML: a number has thousands of digits") from None


_TOKEN = re.compile(
    r"""(?P<skip>\#[^\n]*|[^\#"'.A-Za-z0-9_-]+) | (?P<quotes>\"{3}|'{3}) | (?P<dot>\.)
    | (?P<part>[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*') | (?P<other>.)""",
    re.VERBOSE,
)
_END_OF_TEXT = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+"{3,5}', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*+'{3,5}"),
}


def _longest_key(text: str) -> int:
    """The parts of the longest dotted key, `a.b.c`: `tomllib` takes memory by their square. O(length of the text).

    What stands in comments and in texts of several lines does not count; of a text that does not end, nothing after it.
    """
    longest, parts, at = 0, 0, 0
    dotted = False  # the last token was a dot
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None
        at = token.end()
        if token.lastgroup == "quotes":
            end = _END_OF_TEXT[token.group()].match(text, at)
            if end is None:
                return longest
            at, parts = end.end(), 0
        elif token.lastgroup == "part":
            parts = parts + 1 if dotted else 1
            longest = max(longest, parts)
        elif token.lastgroup != "dot":
            parts = parts if token.group().strip(" \t") == "" else 0
        dotted = token.lastgroup == "dot" or (dotted and token.group().strip(" \t") == "")
    return longest


def _check_depth(tables: dict[str, Any]) -> None:
    """A RecursionError if tables and lists are more than DEEPEST in one another; without going down by recursion."""
    level: list[Any] = [tables]
    for _ in range(DEEPEST + 1):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise RecursionError


def _nearest(word: str, known: list[str]) -> str:
    return next(iter(get_close_matches(word, known, n=1)), "")


def _line(text: str, place: Place) -> int | None:
    """The line of a key in a plainly laid out file; None where it cannot be told."""
    names = [p for p in place if isinstance(p, str)]
    if not names:
        return None
    number = next((p for p in place if isinstance(p, int)), 0)
    in_table, seen, header = len(names) == 1, -1, None
    for count, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = stripped.split("#")[0].strip("[] \t")
            seen += table == names[0]
            in_table = table == names[0] and seen == number
            header = count if in_table else header
        elif in_table and stripped.split("=")[0].split(".")[0].strip() == names[min(1, len(names) - 1)]:
            return count
    return header


def _path_of_keys(place: Place) -> str:
    """("class", 1, "holding_cost", "linear", "rate") -> class[2].holding_cost.rate: counted from 1, kinds left out."""
    words = ""
    for k, part in enumerate(place):
        if isinstance(part, int):
            words += f"[{part + 1}]"
        elif not (k > 0 and part in _KINDS.get(str(place[k - 1]), ())):
            key = part if part.replace("_", "").replace("-", "").isalnum() else repr(part)
            words += f".{shortened(key)}" if words else shortened(key)
    return shortened(words, 3 * SHOWN_VALUE) or "the file"


def _unknown(place: Place) -> str:
    """An unknown key: the nearest known one, or all that are known there."""
    parent = next((p for p in reversed(place[:-1]) if p in _SECTIONS), "")
    known = [field.alias or name for name, field in _SECTIONS[str(parent)].model_fields.items()]
    near = _nearest(str(place[-1]), known)
    return "is not a known key; " + (f"did you mean {near}?" if near else f"known here: {', '.join(known)}")


def _remedy(error: Any) -> str:
    """What would be right, in words."""
    kind, context, place = error["type"], error.get("ctx", {}), error["loc"]
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "float_type" and type(error["input"]) is int:
        return "is too large for a number"
    if kind == "too_long" and place[-1:] in (("class",), ("controller",)):
        return f"must be at most {context['max_length']} tables"
    if place and place[-1] == "class":
        return "must be tables, each with the heading [[class]], at least one"
    if len(place) > 1 and place[-2] == "points":
        return "must be a pair [wait, cost]"
    kinds = ", ".join(_KINDS.get(str(place[-1]), _COSTS)) if place else ""
    words = {
        "greater_than": "must be positive",
        "greater_than_equal": "must be at least {ge:g}",
        "less_than_equal": "must be at most {le}",
        "finite_number": "must be a finite number",
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be a text in quotes",
        "string_too_short": "must not be empty",
        "string_too_long": "must have at most {max_length} characters",
        "list_type": "must be a list",
        "too_short": "must not be empty",
        "model_type": "must be a table",
        "model_attributes_type": 'must be a table such as {{ kind = "linear", rate = 0.1 }}',
        "union_tag_not_found": f"needs a kind: {kinds}",
        "union_tag_invalid": f"must be one of {kinds}",
    }.get(kind, "{error}" if "error" in context else error["msg"])
    return words.format(**context)


def _unreadable(error: ValidationError) -> Iterator[Mistake]:
    """What pydantic found."""
    for item in error.errors():
        kind, place, value = item["type"], item["loc"], item["input"]
        if kind == "union_tag_invalid":
            place, value = (*place, "kind"), value["kind"]
        keys = _path_of_keys(place)
        if kind == "missing":
            remedy = {"queue": "; add a table [queue]", "class": "; add a table [[class]] for each class of jobs"}
            yield place, f"{keys} is missing{remedy.get(keys, '')}"
        elif kind == "value_error" and isinstance(value, dict):  # numbers that do not fit together
            yield place, f"{keys}: {_remedy(item)}"
        else:
            yield place, f"{keys} = {shown(value)} {_remedy(item)}"


def _same_names(tables: dict[str, Any]) -> Iterator[Mistake]:
    """Classes that share a name; looked for in the raw tables, so that it is told along with all else."""
    classes = tables.get("class")
    seen: dict[str, int] = {}
    for k, table in enumerate(classes if isinstance(classes, list) else []):
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str) and seen.setdefault(name, k) < k:
            message = f"class[{k + 1}].name = {shown(name)} is also the name of class[{seen[name] + 1}]"
            yield ("class", k, "name"), f"{message}; names must differ"


def _told(path: Path, text: str, mistakes: list[Mistake]) -> Iterator[str]:
    """A line each, with the file and, where it can be told, the line; of a hopeless file only the first."""
    for place, message in mistakes[:SHOWN_MISTAKES]:
        line = _line(text, place)
        where = f"{shown_path(path)}:{line}" if line else shown_path(path)
        yield printable(f"{where}: {shortened(message, LONGEST_MESSAGE)}").replace("\n", "\\n")
    if len(mistakes) > SHOWN_MISTAKES:
        yield f"{shown_path(path)}: and {len(mistakes) - SHOWN_MISTAKES} more mistakes"


def _queue(file: _File) -> Queue:
    classes = [
        JobClass(
            c.name, c.arrival_rate, c.reward, c.holding_cost.cost(), c.pattern.pattern() if c.pattern else Steady()
        )
        for c in file.classes
    ]
    queue = Queue(file.queue.servers, file.queue.capacity, file.queue.service_rate, classes)
    with np.errstate(over="ignore"):
        _ = queue.on_average().model  # costs that overflow, rates too far apart: told now, with the file's name
    return queue


def _controllers(file: _File, mistakes: list[Mistake]) -> tuple[ControllerChoice, ...]:
    """The file's controllers, made; what is wrong with their options goes to `mistakes`."""
    from queueing_ucrl.learning.registry import check_options, make_controller

    choices = []
    for k, section in enumerate(file.controller):
        place: Place = ("controller", k) if len(file.controller) > 1 else ("controller",)
        options = dict(section.model_extra or {})
        try:
            wrong = check_options(section.name, options)
            mistakes += [((*place, key), f"{_path_of_keys((*place, key))}{message}") for key, message in wrong]
            if not wrong:
                made = make_controller(section.name, options)
                choices.append(ControllerChoice(section.name, options, made, section.label))
        except ValueError as error:
            mistakes.append(((*place, "name"), f"{_path_of_keys(place)}: {error}"))
    return tuple(choices)


def _scenario(path: Path, tables: dict[str, Any]) -> tuple[Scenario | None, list[Mistake]]:
    """A scenario without its sweep, or all that is wrong with it."""
    from queueing_ucrl.learning.registry import make_controller

    mistakes = list(_same_names(tables))
    try:
        file = _File.model_validate(tables)
        controllers = _controllers(file, mistakes)
        if not mistakes:
            if not controllers:
                controllers = (ControllerChoice(RECOMMENDED, {}, make_controller(RECOMMENDED)),)
            title = file.title or printable(path.stem)
            run, units = file.run.model_dump(), Units(file.units.time, file.units.money)
            return Scenario(title, _queue(file), path, controllers, **run, units=units), []
    except ValidationError as error:
        mistakes = [*_unreadable(error), *mistakes]
    except (ValueError, OverflowError) as error:
        mistakes = [((), line) for line in str(error).splitlines()]
    return None, mistakes


def load_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file; every mistake is told at once in a `ScenarioError`."""
    path = Path(path)
    tables, text = read_toml(path)
    scenario, mistakes = _scenario(path, tables)
    mistakes += _unlike(tables.get("sweep"))
    points: list[Scenario] = []
    entries = 0  # of the points' tables
    if scenario is not None and not mistakes:
        for values, changed, wrong in sweep_points(tables):
            if len(mistakes) > MOST_MISTAKES:
                break
            point, found = (None, []) if wrong else _scenario(path, changed)
            mistakes += wrong
            mistakes += [((), f"with {_words(values)}: {message}") for _, message in found]
            if point is not None:
                points.append(replace(point, values=values))
                entries += point.queue.capacity * len(point.queue.classes)
                if entries > LARGEST_TABLE:
                    mistakes.append(
                        (("sweep",), f"sweep: capacity x classes, over all points, must be at most {LARGEST_TABLE}")
                    )
                    break
    if scenario is None or mistakes:
        raise ScenarioError("\n".join(_told(path, text, mistakes)))
    return replace(scenario, points=tuple(points))


def _unlike(sweep: Any, before: str = "") -> Iterator[Mistake]:
    """Lists of a sweep whose values do not fit into one column of a table: texts beside numbers, whole numbers beyond
    64 bits.
    """
    for key, values in sweep.items() if isinstance(sweep, dict) else ():
        if isinstance(values, dict):
            yield from _unlike(values, f"{before}{key}.")
        elif isinstance(values, list) and len({_kind(value) for value in values}) > 1:
            yield ("sweep", key), f"{_path_of_keys(('sweep', before + key))} must hold values of one kind"
        elif isinstance(values, list) and any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            yield ("sweep", key), f"{_path_of_keys(('sweep', before + key))} holds a whole number of more than 64 bits"


def _kind(value: Any) -> Any:
    if isinstance(value, list):
        return ("list", *sorted({str(_kind(item)) for item in value}))
    return "number" if type(value) in (int, float) else type(value)


def _words(values: dict[str, Any]) -> str:
    return shortened(", ".join(f"{shortened(key)} = {shown(value)}" for key, value in values.items()), 3 * SHOWN_VALUE)
