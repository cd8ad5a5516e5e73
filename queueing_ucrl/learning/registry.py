"""Controllers by name: the project's own, and those that installed packages offer.

A package offers a controller through the entry-point group `queueing_ucrl.controllers`:

    [options.entry_points]
    queueing_ucrl.controllers =
        my-controller = my_package:MyController
"""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import entry_points
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.learning.direct import CertaintyEquivalent, Thompson
from queueing_ucrl.learning.fixed import (
    AdmitAll,
    BestStationary,
    FollowingOracle,
    Oracle,
    RandomPolicy,
    TrunkReservation,
)
from queueing_ucrl.learning.optimistic import UcrlAcClasswise, UcrlAcExact
from queueing_ucrl.learning.tabular import KlUcrl, Psrl, Ucrl2, Ucrl2B, Ucrl3
from queueing_ucrl.learning.ucrl_ac import UcrlAc
from queueing_ucrl.messages import shown

LARGEST = sys.float_info.max
GROUP = "queueing_ucrl.controllers"
_CLASSES: tuple[type[Controller], ...] = (
    UcrlAc, UcrlAcExact, UcrlAcClasswise, Thompson, CertaintyEquivalent, Ucrl2, Ucrl2B, KlUcrl, Psrl, Ucrl3, Oracle,
    FollowingOracle, BestStationary, AdmitAll, TrunkReservation, RandomPolicy,
)  # fmt: skip
OWN: dict[str, type[Controller]] = {kind.name: kind for kind in _CLASSES}


def controller_names() -> list[str]:
    """All names that `make_controller` knows."""
    return [*OWN, *sorted(point.name for point in entry_points(group=GROUP) if point.name not in OWN)]


def _controller_class(name: str) -> Any:
    if name in OWN:
        return OWN[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                return point.load()
            except (ImportError, AttributeError) as error:
                raise ValueError(f"controller {name!r} cannot be loaded from {point.value}: {error}") from error
    near = difflib.get_close_matches(name, controller_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise ValueError(f"no controller is called {shown(name)}{hint} Known: {', '.join(controller_names())}")


def check_options(name: str, options: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with options that came from a file: (key, message) pairs, the message to follow the key."""
    kind = _controller_class(name)
    if not is_dataclass(kind):
        return [
            (key, f" = {shown(value)} must be a text, true or false, a finite number, or a list of these")
            for key, value in options.items()
            if not _plain(value)
        ]
    known = {f.name: f for f in fields(kind)}
    types = get_type_hints(kind)
    wrong = []
    for key, value in options.items():
        if key not in known:
            near = difflib.get_close_matches(key, list(known), n=1)
            hint = f"did you mean {near[0]}?" if near else f"{name} knows {', '.join(known) or 'no options'}"
            wrong.append((key, f" is not a known option; {hint}"))
            continue
        try:  # as JSON: a list may be a tuple, but a text is no number, a date no text, and no number is infinite
            right = _plain(value) and _plain(TypeAdapter(types[key]).validate_json(json.dumps(value), strict=True))
        except ValueError:
            right = False
        if not right:
            wrong.append((key, f" = {shown(value)} must be {_words(types[key])}"))
    missing = [f.name for f in known.values() if f.default is MISSING and f.default_factory is MISSING]
    return wrong + [(key, f" is missing; {name} needs it") for key in missing if key not in options]


def _plain(value: Any) -> bool:
    """Whether a value can stand in a study's manifest: texts, doubles, true or false, and lists of these."""
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(map(_plain, value.values()))
    return value is None or isinstance(value, str) or (isinstance(value, (int, float)) and abs(value) <= LARGEST)


def _words(kind: Any) -> str:
    """A type, for people."""
    words = {
        float: "a number", int: "a whole number", str: "a text", bool: "true or false",
        tuple[float, float]: "two numbers [low, high]", tuple[int, ...]: "a list of whole numbers",
        float | None: "a number", tuple[float, float] | None: "two numbers [low, high]",
    }  # fmt: skip
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return words.get(kind, str(kind))


def make_controller(name: str, options: dict[str, Any] | None = None) -> Any:
    """The controller called `name` with these options; a wrong or missing option is named."""
    kind = _controller_class(name)
    options = {} if options is None else options
    if is_dataclass(kind):
        known = [f.name for f in fields(kind)]
        for key in options:
            if key not in known:
                raise ValueError(
                    f"controller {name!r} has no option {shown(key)}; it has {', '.join(known) or 'no options'}"
                )
    try:
        return kind(**options)
    except TypeError as error:
        message = str(error).split("__init__() ")[-1]
        raise ValueError(f"controller {name!r}: {message}") from None
    except ValueError as error:
        raise ValueError(f"controller {name!r}: {error}") from None
