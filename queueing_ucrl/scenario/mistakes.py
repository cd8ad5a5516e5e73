"""What the author of a scenario file is told: every mistake, its place, and what would be right.

The words are here for what `keys` finds. What a value object or a controller refuses is said in its own words
(`model`, `learning.registry.check_options`); of files and names that are not there, `toml` and `names` tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.messages import SHOWN_VALUE, printable, shortened, shown, shown_path
from queueing_ucrl.scenario.keys import SECTIONS
from queueing_ucrl.scenario.parts import KINDS, LAW_KEYS, Section

SHOWN_MISTAKES = 20
LONGEST_MESSAGE = 600  # characters

Place = tuple[int | str, ...]  # ("class", 1, "holding_cost", "linear", "rate"), as pydantic gives it
Mistake = tuple[Place, str]


def refusal(path: Path, message: str) -> ScenarioError:
    """A file that cannot be used at all."""
    return ScenarioError(printable(f"{shown_path(path)}: {message}"))


def nearest(word: str, known: list[str]) -> str:
    """The known word that was probably meant; "" if none is near."""
    return next(iter(get_close_matches(word, known, n=1)), "")


def _line(text: str, place: Place) -> int | None:
    """The line of a key in a plainly laid out file; None where it cannot be told."""
    names = [p for p in place if isinstance(p, str)]
    if not names:
        return None
    number = place[1] if len(place) > 1 and isinstance(place[1], int) else 0
    in_table, seen, header = len(names) == 1, -1, None
    for count, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = stripped.split("#")[0].strip("[] \t")
            seen += table == names[0]
            in_table = table == names[0] and seen == number
            header = count if in_table else header
        elif header is None and seen < 0 and "=" in line and stripped.split("=")[0].strip() == names[0]:
            header = count  # a key at the top, before all tables
        elif in_table and stripped.split("=")[0].split(".")[0].strip() == names[min(1, len(names) - 1)]:
            return count
    return header


def path_of_keys(place: Place) -> str:
    """("class", 1, "holding_cost", "linear", "rate") -> class[2].holding_cost.rate: counted from 1, kinds left out."""
    words = ""
    for k, part in enumerate(place):
        if isinstance(part, int):
            words += f"[{part + 1}]"
        elif not (k > 0 and part in KINDS.get(str(place[k - 1]), ())):
            key = part if part.replace("_", "").replace("-", "").isalnum() else repr(part)
            words += f".{shortened(key)}" if words else shortened(key)
    return shortened(words, 3 * SHOWN_VALUE) or "the file"


def _table(place: Place) -> type[Section]:
    """What a table at this place may hold."""
    for k in range(len(place) - 1, -1, -1):
        kinds = KINDS.get(str(place[k - 1]), {}) if k else {}
        if place[k] in kinds:
            return kinds[str(place[k])]
        if place[k] in SECTIONS:
            return SECTIONS[str(place[k])]
    return SECTIONS[""]


def _unknown(place: Place) -> str:
    """An unknown key: the nearest known one, or all that are known there."""
    known = [field.alias or name for name, field in _table(place[:-1]).model_fields.items()]
    near = nearest(str(place[-1]), known)
    return "is not a known key; " + (f"did you mean {near}?" if near else f"known here: {', '.join(known)}")


_EXAMPLES = {
    **dict.fromkeys(LAW_KEYS, '{ kind = "lognormal", mean = 5.0, cv = 1.2 }'),
    "holding_cost": '{ kind = "linear", rate = 0.1 }',
    "pattern": '{ kind = "sinusoid", amplitude = 0.5, period = 24.0 }',
    "arrivals": '{ kind = "renewal", law = { kind = "gamma", mean = 0.5, cv = 0.7 } }',
    "day_factor": "{ cv = 0.1, period = 24.0 }",
}


def _remedy(error: Any) -> str:
    """What would be right, in words."""
    kind, context, place = error["type"], error.get("ctx", {}), error["loc"]
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "float_type" and type(error["input"]) is int:
        return "is too large for a number"
    if kind == "too_long" and place[-1:] in (("class",), ("controller",)):
        return f"must be at most {context['max_length']} tables"
    if place == ("class",):
        return "must be tables, each with the heading [[class]], at least one"
    if len(place) > 1 and place[-2] == "points":
        return "must be a pair [wait, cost]"
    key = str(place[-1]) if place else ""
    kinds = ", ".join(KINDS.get(key, KINDS["holding_cost"]))
    example = _EXAMPLES.get(key, '{ kind = "linear", rate = 0.1 }').replace("{", "{{").replace("}", "}}")
    words = {
        "greater_than": "must be positive",
        "greater_than_equal": "must be at least {ge:g}",
        "less_than_equal": "must be at most {le}",
        "less_than": "must be below {lt:g}",
        "finite_number": "must be a finite number",
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be a text in quotes",
        "string_too_short": "must not be empty",
        "string_too_long": "must have at most {max_length} characters",
        "list_type": "must be a list",
        "too_short": "must not be empty",
        "too_long": "must hold at most {max_length} items",
        "model_attributes_type": f"must be a table such as {example}",
        "model_type": f"must be a table such as {example}" if key in _EXAMPLES else "must be a table",
        "literal_error": "must be {expected}",
        "bool_type": "must be true or false",
        "dict_type": "must be a table",
        "union_tag_not_found": f"needs a kind: {kinds}",
        "union_tag_invalid": f"must be one of {kinds}",
    }.get(kind, "{error}" if "error" in context else error["msg"])
    return words.format(**context)


def unreadable(error: ValidationError) -> Iterator[Mistake]:
    """What pydantic found."""
    for item in error.errors():
        kind, place, value = item["type"], item["loc"], item["input"]
        if kind == "union_tag_invalid":
            place, value = (*place, "kind"), value["kind"]
        keys = path_of_keys(place)
        if kind == "missing":
            remedy = {"queue": "; add a table [queue]", "class": "; add a table [[class]] for each class of jobs"}
            yield place, f"{keys} is missing{remedy.get(keys, '')}"
        elif kind == "value_error" and isinstance(value, dict):  # numbers that do not fit together
            yield place, f"{keys}: {_remedy(item)}"
        else:
            yield place, f"{keys} = {shown(value)} {_remedy(item)}"


def same_names(tables: dict[str, Any]) -> Iterator[Mistake]:
    """Classes that share a name; looked for in the raw tables, so that it is told along with all else."""
    classes = tables.get("class")
    seen: dict[str, int] = {}
    for k, table in enumerate(classes if isinstance(classes, list) else []):
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str) and seen.setdefault(name, k) < k:
            message = f"class[{k + 1}].name = {shown(name)} is also the name of class[{seen[name] + 1}]"
            yield ("class", k, "name"), f"{message}; names must differ"


def told(path: Path, text: str, mistakes: list[Mistake]) -> Iterator[str]:
    """A line each, with the file and, where it can be told, the line; of a hopeless file only the first."""
    for place, message in mistakes[:SHOWN_MISTAKES]:
        line = _line(text, place)
        where = f"{shown_path(path)}:{line}" if line else shown_path(path)
        yield printable(f"{where}: {shortened(message, LONGEST_MESSAGE)}").replace("\n", "\\n")
    if len(mistakes) > SHOWN_MISTAKES:
        yield f"{shown_path(path)}: and {len(mistakes) - SHOWN_MISTAKES} more mistakes"
