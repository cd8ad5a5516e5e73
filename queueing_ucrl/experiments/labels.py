"""What the controllers of a study are called: names that differ, and say in what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from queueing_ucrl.messages import unlike

LONGEST = 80  # characters


def _unlike_default(controller: Any) -> dict[str, Any]:
    """The options that are not left at their defaults."""
    if not is_dataclass(controller):
        return {}
    options = {}
    for option in (one for one in fields(controller) if one.repr):  # what is not to be shown is no name
        value = getattr(controller, option.name)
        default = option.default
        if default is MISSING and option.default_factory is not MISSING:
            default = option.default_factory()
        if default is MISSING or repr(value) != repr(default):
            options[option.name] = value
    return options


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str) else repr(list(value) if isinstance(value, tuple) else value)


def _with_differences(name: str, options: dict[str, Any], others: Iterable[dict[str, Any]]) -> str:
    """`certainty-equivalent (memory=4.0)`: the options in which it differs from any of the others."""
    missing = object()
    differing = [
        key for key, value in options.items() if any(repr(other.get(key, missing)) != repr(value) for other in others)
    ]
    words = ", ".join(f"{key}={_shown(options[key])}" for key in differing)
    if not words:
        return name
    label = f"{name} ({words})"
    return label if len(label) <= LONGEST else label[: LONGEST - 4] + " ..."


def labels(controllers: Sequence[tuple[str, Any]], given: Sequence[str | None] = ()) -> list[str]:
    """A name for each (name, controller) that no other has.

    given: the labels that somebody chose; two that are the same are an error. Others have the controller's name; where
    several share it, also the options in which they differ and that are not left at their defaults. What is the same
    even then gets a number, such as `oracle (2)`.
    """
    chosen = list(given) or [None] * len(controllers)
    taken: set[str] = set()
    for label in chosen:
        if label is not None and label in taken:
            raise ValueError(f"the label {label!r} is given to two controllers; labels must differ")
        taken |= {label} if label is not None else set()
    options = [_unlike_default(controller) for _, controller in controllers]
    named = []
    for k, (name, _) in enumerate(controllers):
        label = chosen[k]
        if label is None:
            alike = [j for j, (other, _) in enumerate(controllers) if other == name and chosen[j] is None]
            wanted = _with_differences(name, options[k], [options[j] for j in alike])
            label = unlike(wanted, taken)
            taken.add(label)
        named.append(label)
    return named
