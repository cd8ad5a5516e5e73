"""The JSON Schema (draft 7) of scenario files, made of the models that check them: for editors.

It takes every file that `load_scenario` takes. It also takes some that `load_scenario` refuses: what depends on other
files, on the sizes of lists beside each other, on names that two classes share or on the queue as a whole, is said
when the scenario is loaded.
An editor finds it by the first line of a file, `DIRECTIVE`: the schema lies beside the scenario.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter

from queueing_ucrl.accounts.measures import MEASURES
from queueing_ucrl.learning.catalogue import Entry, catalogue
from queueing_ucrl.model.batches import LARGEST_BATCH
from queueing_ucrl.model.system import LARGEST_TABLE
from queueing_ucrl.scenario.key_words import KEY_WORDS, KIND_WORDS, KINDS_OF, TOP
from queueing_ucrl.scenario.keys import MOST_CONTROLLERS, File, ShiftsTable
from queueing_ucrl.scenario.parts import KINDS, GeometricTable

FILE_NAME = "scenario.schema.json"
DIRECTIVE = f"#:schema ./{FILE_NAME}"
DRAFT = "http://json-schema.org/draft-07/schema#"
POSITIVE = ("first_episode",)  # options of our own controllers, which refuse 0 and below
SAYS_NOTHING = ("title", "discriminator", "description", "propertyNames")  # of what pydantic writes

Node = dict[str, Any]


def scenario_schema(entries: Iterable[Entry] | None = None) -> Node:
    """The schema, with these controllers: without any, all that are known here, those of installed packages too."""
    definitions: Node = {}
    top = _model(File, definitions)
    for model in (ShiftsTable, GeometricTable):  # of keys that may be a table or something else
        definitions[model.__name__] = _model(model, definitions)
    _share_unions(top, definitions)
    _put_free_keys(top, definitions)
    definitions["controller"] = {"oneOf": [_controller(entry) for entry in entries or catalogue()]}
    for name, node in definitions.items():
        _describe(node, KEY_WORDS.get(name, {}))
    for kind, part in ((kind, part) for kinds in KINDS.values() for kind, part in kinds.items()):
        node = definitions[part.__name__]
        node["description"] = " ".join((part.makes.__doc__ or "").split("\n\n")[0].split())
        node["properties"]["kind"] = {"const": kind, "description": KIND_WORDS}
    definitions["GeometricTable"]["properties"]["kind"]["description"] = KIND_WORDS
    definitions["TraceTable"]["required"].remove("kind")  # a table with a key `trace` is one
    _describe(top, KEY_WORDS[TOP])
    top["allOf"] = _between_tables()
    definitions["Class"]["allOf"] = [_one_of("reward", "pays"), _WAYS, *_RATES_ALONE]
    definitions["Servers"]["allOf"] = [_not_both("service", "service_rate")]
    about = {"$schema": DRAFT, "title": "A scenario of queueing_ucrl", "$comment": f"named by {DIRECTIVE}"}
    return {**about, **top, "definitions": dict(sorted(definitions.items()))}


@cache
def schema_text() -> str:
    """The schema as a file holds it, with all controllers that are known here."""
    return _text(scenario_schema())


@cache
def own_schema_text() -> str:
    """With the project's own controllers only: the one that lies beside the scenarios of the package."""
    return _text(scenario_schema(entry for entry in catalogue() if entry.own))


def _text(schema: Node) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def put_schema_beside(scenario: Path) -> Path | None:
    """Write the schema where a scenario's first line names it, and say where that is.

    None: a file is there that is no such schema; it is not touched.
    """
    from queueing_ucrl.files import write_atomically

    path, text = scenario.with_name(FILE_NAME), schema_text().encode()
    try:
        found = json.loads(path.read_bytes()).get("$comment") if path.exists() else None
        ours = not path.exists() or found == f"named by {DIRECTIVE}"
    except (OSError, ValueError, AttributeError):
        ours = False
    if ours and not (path.exists() and path.read_bytes() == text):
        write_atomically(path, text)
    return path if ours else None


# ---- from pydantic's schema to one for TOML and draft 7


def _model(model: Any, definitions: Node) -> Node:
    """A model's own part; those that it refers to go to `definitions`."""
    node = cast(Node, _plain(model.model_json_schema(ref_template="#/definitions/{model}")))
    definitions.update(node.pop("$defs", {}))
    return node


def _plain(node: Any) -> Any:
    """Without what TOML does not have (null), what draft 7 does not know, and what says nothing to a reader."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if isinstance(node, float) and node.is_integer():
        return int(node)
    if not isinstance(node, dict):
        return node
    found: Node = {}
    for key, value in node.items():
        if key == "properties" or key == "$defs":
            found[key] = {name: _plain(item) for name, item in value.items()}
        elif key not in SAYS_NOTHING and not (key == "default" and value in (None, [], {}, math.inf)):
            found[key] = _plain(value)
    if "prefixItems" in found:  # of one type
        found["items"] = found.pop("prefixItems")[0]
    for choice in ("anyOf", "allOf"):
        if choice in found:
            left = [item for item in found.pop(choice) if item != {"type": "null"}]
            found = {**found, choice: left} if len(left) > 1 else {**left[0], **found}
    for alone, less in (("enum", "type"), ("const", "type"), ("const", "enum")):  # as it depends on the version
        if alone in found:
            found.pop(less, None)
    return found


def _share_unions(top: Node, definitions: Node) -> None:
    """Choices between kinds, each in one place: they stand under many keys."""
    names = {"law": "service", "holding_cost": "holding_cost", "pattern": "pattern", "balking": "balking"}
    unions = {}
    for name, key in {**names, "arrivals": "arrivals"}.items():
        choice = [{"$ref": f"#/definitions/{part.__name__}"} for part in KINDS[key].values()]
        unions[json.dumps(choice)] = name
        definitions[name] = {"description": KINDS_OF[name], "oneOf": choice}
    for table in (top, *definitions.values()):
        for node in table.get("properties", {}).values():
            if json.dumps(node.get("oneOf")) in unions:
                node["$ref"] = f"#/definitions/{unions[json.dumps(node.pop('oneOf'))]}"


def _put_free_keys(top: Node, definitions: Node) -> None:
    """Keys that a model takes as they come, and checks itself."""
    count, size = {"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1, "maximum": LARGEST_BATCH}
    shifts, geometric = ({"$ref": f"#/definitions/{name}"} for name in ("ShiftsTable", "GeometricTable"))
    definitions["Servers"]["properties"]["servers"] = {"anyOf": [{**count, "maximum": LARGEST_TABLE}, shifts]}
    sizes = [size, {"type": "array", "minItems": 1, "items": size}, geometric]
    definitions["BatchesTable"]["properties"]["sizes"] = {"anyOf": sizes}
    definitions["Run"]["properties"]["measure"] = {"enum": list(MEASURES), "default": "earned"}
    one = {"$ref": "#/definitions/controller"}
    many = {"type": "array", "items": one, "maxItems": MOST_CONTROLLERS}
    top["properties"]["controller"] = {"anyOf": [many, one]}
    values = {"type": "array", "minItems": 1}
    again = {"$ref": "#/definitions/sweep"}
    definitions["sweep"] = {"type": "object", "additionalProperties": {"anyOf": [values, again]}}
    top["properties"]["sweep"] = {"$ref": "#/definitions/sweep"}
    del definitions["Controller"]


def _describe(table: Node, words: dict[str, str]) -> None:
    """Descriptions of keys. Beside a reference draft 7 reads nothing else: it goes one level down."""
    for key, text in words.items():
        node = table["properties"][key]
        if "$ref" in node:
            node["allOf"] = [{"$ref": node.pop("$ref")}]
        table["properties"][key] = {"description": text, **node}


def _controller(entry: Entry) -> Node:
    """A table [[controller]] of this name."""
    from queueing_ucrl.learning.registry import _controller_class

    names = KEY_WORDS["Controller"]
    label = {"description": names["label"], "type": "string", "minLength": 1}
    properties: Node = {"name": {"const": entry.name, "description": names["name"]}, "label": label}
    kind = _controller_class(entry.name) if entry.own or entry.options else None
    known = is_dataclass(kind)
    types = get_type_hints(kind) if known else {}
    for option in entry.options:
        node = _plain(TypeAdapter(types[option.name]).json_schema()) if option.name in types else {}
        if entry.own and option.name in POSITIVE:
            node["exclusiveMinimum"] = 0
        if option.default not in (None, math.inf):  # no JSON is infinite
            node["default"] = option.plain_data()["default"]
        properties[option.name] = {"description": option.help, **node}
    required = ["name", *(option.name for option in entry.options if option.required)]
    node = {"type": "object", "description": entry.about, "properties": properties, "required": required}
    return {**node, "additionalProperties": False} if known else node


# ---- keys that need others, or must not stand beside them


def _has(*keys: str) -> Node:
    return {"required": list(keys)}


def _one_of(*keys: str) -> Node:
    return {"oneOf": [_has(key) for key in keys]}


def _not_both(one: str, other: str) -> Node:
    return {"not": _has(one, other)}


_WAYS = _not_both("arrivals", "arrival_rate")
_RATES_ALONE = [_not_both("arrival_rates", key) for key in ("arrivals", "arrival_rate", "day_factor", "balking")]
_WORK = {"required": ["arrivals"], "properties": {"arrivals": {"required": ["work"]}}}


def _between_tables() -> list[Node]:
    """A class comes in some way unless a trace brings it; a queue serves unless every class has its work."""
    comes = {"anyOf": [_has(key) for key in ("arrival_rate", "arrivals", "arrival_rates")]}
    serves = {"anyOf": [_has("service"), _has("service_rate")]}
    works = {"anyOf": [_has("service"), _WORK]}
    return [
        {"anyOf": [_has("arrivals"), {"properties": {"class": {"items": comes}}}]},
        {"anyOf": [{"properties": {"queue": serves}}, {"properties": {"class": {"items": works}}}, _WORK]},
    ]
