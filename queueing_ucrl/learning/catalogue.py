"""What controllers there are and what can be said to each: read from their classes, so that it is never out of date.

A controller's first sentence is that of its docstring. Its options are the fields of its dataclass; what they mean
stands in the docstring, its own or one that it inherits, under a line `Options:`, a paragraph each:

    Options:
        levels: the control level of each class; for example [20, 10]

An option without a default needs such an example, in TOML: together they are a table [[controller]] that works.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import tomllib
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from queueing_ucrl.learning.registry import _controller_class, _words, controller_names, is_own

_OPTION = re.compile(r"(\w+): (.*)")
_EXAMPLE = re.compile(r"for example (.+?)\.?$")


@dataclass(frozen=True)
class Option:
    """One thing that can be set."""

    name: str
    type: str  # in words
    required: bool
    default: Any  # None: left out, or none
    help: str

    @property
    def example(self) -> str | None:
        """A value in TOML: the default, or for an option that has none the one its words give."""
        if not self.required:
            return None if self.default is None else as_toml(self.default)
        found = _EXAMPLE.search(self.help)
        return found.group(1) if found else None

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        default = json.loads(json.dumps(self.default, default=str)) if _is_json(self.default) else str(self.default)
        return {"name": self.name, "type": self.type, "required": self.required, "default": default, "help": self.help}


@dataclass(frozen=True)
class Entry:
    """A controller as its class describes it."""

    name: str
    about: str  # a sentence
    options: tuple[Option, ...]
    knows_rates: bool  # to compare with, not a learner
    own: bool  # the project's, not an installed package's

    @property
    def toml(self) -> str:
        """A table for a scenario: as it stands it works, and what else can be set is there behind a #."""
        needed = [
            f"{one.name} = {one.example}" if one.example else f"# {one.name} = ...  (required)"
            for one in self.options
            if one.required
        ]
        others = [f"# {one.name} = {one.example}" for one in self.options if not one.required and one.example]
        return "\n".join(["[[controller]]", f"name = {as_toml(self.name)}", *needed, *others])

    @property
    def example_options(self) -> dict[str, Any]:
        """The options of `toml`."""
        (table,) = tomllib.loads(self.toml)["controller"]
        return {key: value for key, value in table.items() if key != "name"}

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: getattr(self, name) for name in ("name", "about", "knows_rates", "own")}
        return {**plain, "options": [option.plain_data() for option in self.options], "toml": self.toml}


def catalogue() -> list[Entry]:
    """All controllers that a scenario can name; one that cannot be loaded says why."""
    return [entry(name) for name in controller_names()]


def entry(name: str) -> Entry:
    """The controller called `name`; a name that is not known is a ValueError."""
    known = name in controller_names()
    try:
        kind = _controller_class(name)
    except ValueError as error:
        if not known:
            raise
        return Entry(name, str(error), (), knows_rates=False, own=False)
    return Entry(name, _sentence(kind), tuple(_options(kind)), bool(getattr(kind, "knows_truth", False)), is_own(name))


def _sentence(kind: Any) -> str:
    """The first sentence of a docstring."""
    words = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", words)[0]


def option_words(kind: Any) -> dict[str, str]:
    """What the docstrings of a class and its ancestors say under `Options:`, the nearest first."""
    words: dict[str, str] = {}
    for ancestor in getattr(kind, "__mro__", ()):
        text = inspect.cleandoc(ancestor.__dict__.get("__doc__") or "")
        name = None
        found: dict[str, str] = {}
        for line in text.partition("\nOptions:\n")[2].splitlines():
            new = _OPTION.fullmatch(line.strip()) if line.startswith("    ") and not line.startswith(" " * 5) else None
            if new:
                name = new.group(1)
                found[name] = new.group(2)
            elif name and line.strip():
                found[name] += " " + line.strip()
        words = {**found, **words}
    return words


def _options(kind: Any) -> list[Option]:
    words = option_words(kind)
    if not is_dataclass(kind):
        return [
            Option(p.name, "", p.default is p.empty, None if p.default is p.empty else p.default, words.get(p.name, ""))
            for p in _parameters(kind)
        ]
    types = get_type_hints(kind)
    found = []
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        required = default is MISSING
        about = words.get(field.name, "")
        found.append(Option(field.name, _words(types[field.name]), required, None if required else default, about))
    return found


def _parameters(kind: Any) -> list[inspect.Parameter]:
    """Of a controller that is no dataclass: what can be given to it by name."""
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p for p in signature.parameters.values() if p.kind in named]


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, bool, int, list, tuple))


def as_toml(value: Any) -> str:
    """A plain value as TOML writes it."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
