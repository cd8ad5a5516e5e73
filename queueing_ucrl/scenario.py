"""Scenario files: TOML in, a checked `Scenario` out. A file is data; nothing in it is ever run.

All mistakes of a file are told at once, each with its place, the value found and what would be right.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.model.costs import Deadline, Free, HoldingCost, Linear, PiecewiseLinear, Power, Saturating
from queueing_ucrl.model.queue import JobClass, Queue

LARGEST_FILE = 1_000_000  # bytes
SHOWN_VALUE = 60  # characters of a wrong value that are repeated to its author

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Free(_Section):
    kind: Literal["free"]

    def cost(self) -> HoldingCost:
        return Free()


class _Linear(_Section):
    kind: Literal["linear"]
    rate: NotNegative

    def cost(self) -> HoldingCost:
        return Linear(self.rate)


class _Power(_Section):
    kind: Literal["power"]
    coefficient: NotNegative
    exponent: Positive

    def cost(self) -> HoldingCost:
        return Power(self.coefficient, self.exponent)


class _Saturating(_Section):
    kind: Literal["saturating"]
    ceiling: NotNegative
    rate: Positive

    def cost(self) -> HoldingCost:
        return Saturating(self.ceiling, self.rate)


class _Deadline(_Section):
    kind: Literal["deadline"]
    penalty: NotNegative
    due: NotNegative

    def cost(self) -> HoldingCost:
        return Deadline(self.penalty, self.due)


class _PiecewiseLinear(_Section):
    kind: Literal["piecewise-linear"]
    points: Annotated[list[Annotated[list[NotNegative], Field(min_length=2, max_length=2)]], Field(min_length=1)]

    def cost(self) -> HoldingCost:
        return PiecewiseLinear([(t, c) for t, c in self.points])


_Cost = Annotated[_Free | _Linear | _Power | _Saturating | _Deadline | _PiecewiseLinear, Field(discriminator="kind")]


class _Class(_Section):
    name: Name
    arrival_rate: Positive
    reward: NotNegative
    holding_cost: _Cost = _Free(kind="free")


class _Queue(_Section):
    servers: Count
    capacity: Count
    service_rate: Positive


class _File(_Section):
    title: str = ""
    queue: _Queue
    classes: Annotated[list[_Class], Field(alias="class", min_length=1)]


@dataclass(frozen=True)
class Scenario:
    """A queue with its title, as a scenario file describes it."""

    title: str
    queue: Queue
    path: Path


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The file's tables and its text; any way in which it is not a TOML file is one `ScenarioError`."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise ScenarioError(f"{path}: no such file; name a TOML file such as scenarios/quickstart.toml") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: is a directory; name a scenario file in it") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > LARGEST_FILE:
        raise ScenarioError(f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, too large for a scenario file")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: not a text file (byte {error.start} is not UTF-8); a scenario is TOML") from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ScenarioError(f"{path}: not valid TOML: {reason}") from None


def _line(text: str, place: tuple[int | str, ...]) -> int | None:
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
        elif in_table and stripped.split("=")[0].strip() == names[min(1, len(names) - 1)]:
            return count
    return header


def _place(place: tuple[int | str, ...]) -> str:
    """("class", 1, "holding_cost", "linear", "rate") -> class[2].holding_cost.rate: counted from 1, kinds left out."""
    kinds = {"free", "linear", "power", "saturating", "deadline", "piecewise-linear"}
    words = ""
    for k, part in enumerate(place):
        if isinstance(part, int):
            words += f"[{part + 1}]"
        elif not (part in kinds and k > 0 and place[k - 1] == "holding_cost"):
            words += f".{part}" if words else part
    return words


def _remedy(error: Any) -> str:
    """What would be right, in words."""
    kind, context = error["type"], error.get("ctx", {})
    simple = {
        "missing": "is missing",
        "extra_forbidden": "is not a known key",
        "greater_than": "must be positive",
        "finite_number": "must be a finite number",
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be a text in quotes",
        "bool_type": "must be true or false",
        "list_type": "must be a list",
        "string_too_short": "must not be empty",
        "union_tag_not_found": "needs a kind: free, linear, power, saturating, deadline or piecewise-linear",
        "union_tag_invalid": "must have the kind free, linear, power, saturating, deadline or piecewise-linear",
    }
    if kind in simple:
        return simple[kind]
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    if kind == "too_short":
        return f"needs at least {context['min_length']} of them"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return "must be a table"
    return str(error["msg"]).removeprefix("Value error, ")


def explain(path: Path, text: str, error: ValidationError) -> ScenarioError:
    """All mistakes of a file in one message, a line each."""
    lines = []
    for item in error.errors():
        place = item["loc"]
        line = _line(text, place)
        value = "" if item["type"] in ("missing", "model_type") else _shown(item["input"])
        where = f"{path}:{line}" if line else str(path)
        lines.append(f"{where}: {_place(place) or 'the file'}{value} {_remedy(item)}")
    return ScenarioError("\n".join(lines))


def _shown(value: object) -> str:
    words = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else repr(value)
    if isinstance(value, bool):
        words = str(value).lower()
    return f" = {words if len(words) <= SHOWN_VALUE else words[:SHOWN_VALUE] + ' ...'}"


def _queue(file: _File) -> Queue:
    classes = [JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost.cost()) for c in file.classes]
    queue = Queue(file.queue.servers, file.queue.capacity, file.queue.service_rate, classes)
    _ = queue.model  # expected costs that overflow, rates too far apart: told now, with the file's name
    return queue


def load_scenario(path: str | Path) -> Scenario:
    """Read and check a scenario file; every mistake is told at once in a `ScenarioError`."""
    path = Path(path)
    tables, text = read_toml(path)
    try:
        file = _File.model_validate(tables)
    except ValidationError as error:
        raise explain(path, text, error) from None
    try:
        queue = _queue(file)
    except (ValueError, OverflowError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    return Scenario(file.title or path.stem, queue, path)
