"""Sweeps: a scenario may list values for any of its numbers, and is run for every combination.

[sweep]
queue.service_rate = [0.3, 0.4, 0.5]
class.gold.arrival_rate = [1.0, 2.0]       # a class by its name
controller.first_episode = [10.0, 20.0]
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from queueing_ucrl.messages import SHOWN_VALUE, shortened, shown
from queueing_ucrl.scenario.mistakes import Mistake, path_of_keys

LARGEST_SWEEP = 10_000
DEEPEST = 8  # keys within keys; class.gold.holding_cost.rate has four


def _listed_values(table: dict[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Dotted keys and their lists, whether the file wrote `a.b = []` or `"a.b" = []`; others are too deep."""
    for key, value in table.items():
        if isinstance(value, dict):
            if depth == DEEPEST:
                yield f"{before}{key} ...", None
            else:
                yield from _listed_values(value, f"{before}{key}.", depth + 1)
        else:
            yield f"{before}{key}", value


def _put(tables: dict[str, Any], key: str, value: Any) -> bool:
    """Set a dotted key; False if the scenario has no such place."""
    section, *rest = key.split(".")
    target: Any = tables.get(section)
    if section == "class" and isinstance(target, list) and len(rest) > 1:
        name, *rest = rest
        target = next((t for t in target if t.get("name") == name), None)
    elif section == "controller" and isinstance(target, list):
        targets = target
        return bool(rest) and bool(targets) and all(_put({"controller": t}, key, value) for t in targets)
    elif section == "run" and target is None:
        target = tables.setdefault("run", {})
    for part in rest[:-1]:
        target = target.get(part) if isinstance(target, dict) else None
    if not isinstance(target, dict) or not rest or section == "sweep":
        return False
    target[rest[-1]] = value
    return True


def sweep_points(tables: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[Mistake]]]:
    """(values, the scenario's tables with them, what is wrong) for each combination; nothing without a sweep."""
    lists = dict(_listed_values(tables.get("sweep", {})))
    plain = {key: value for key, value in tables.items() if key != "sweep"}
    wrong: list[Mistake] = []
    for key, values in lists.items():
        if not isinstance(values, list) or not values:
            wrong.append((("sweep", key.split(".")[0]), f"sweep.{key} must be a list of values, not empty"))
        elif any(value in values[:k] for k, value in enumerate(values[:LARGEST_SWEEP])):
            wrong.append((("sweep", key.split(".")[0]), f"sweep.{key} must be a list of different values"))
        elif not _put(copy.deepcopy(plain), key, values[0]):
            wrong.append(
                (("sweep", key.split(".")[0]), f"sweep.{key} is not a key of this scenario (such as queue.servers)")
            )
    if not wrong and prod(len(values) for values in lists.values()) > LARGEST_SWEEP:
        wrong.append((("sweep",), f"sweep has more than {LARGEST_SWEEP} combinations"))
    if wrong:
        yield {}, {}, wrong
        return
    for combination in product(*lists.values()) if lists else ():
        changed = copy.deepcopy(plain)
        values = dict(zip(lists, combination, strict=True))
        for key, value in values.items():
            _put(changed, key, value)
        yield values, changed, []


def unlike_values(sweep: Any, before: str = "") -> Iterator[Mistake]:
    """Lists of a sweep whose values do not fit into one column of a table: texts beside numbers, whole numbers beyond
    64 bits.
    """
    for key, values in sweep.items() if isinstance(sweep, dict) else ():
        if isinstance(values, dict):
            yield from unlike_values(values, f"{before}{key}.")
        elif isinstance(values, list) and len({_kind(value) for value in values}) > 1:
            yield ("sweep", key), f"{path_of_keys(('sweep', before + key))} must hold values of one kind"
        elif isinstance(values, list) and any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
            yield ("sweep", key), f"{path_of_keys(('sweep', before + key))} holds a whole number of more than 64 bits"


def _kind(value: Any) -> Any:
    if isinstance(value, list):
        return ("list", *sorted({str(_kind(item)) for item in value}))
    return "number" if type(value) in (int, float) else type(value)


def in_words(values: dict[str, Any]) -> str:
    """The values of a point, for a message."""
    return shortened(", ".join(f"{shortened(key)} = {shown(value)}" for key, value in values.items()), 3 * SHOWN_VALUE)
