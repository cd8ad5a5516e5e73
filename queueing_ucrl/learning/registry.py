"""Controllers by name: the project's own, and those that installed packages offer; and by any object with `begin`.

A package offers a controller through the entry-point group `queueing_ucrl.controllers`:

    [options.entry_points]
    queueing_ucrl.controllers =
        my-controller = my_package:MyController
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import entry_points
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import TypeAdapter

from queueing_ucrl.learning.agent_files import FileAgent
from queueing_ucrl.learning.certainty_equivalence import CertaintyEquivalent, Thompson
from queueing_ucrl.learning.controller import Controller, Knowledge, Session, StandIn
from queueing_ucrl.learning.days import DayFollowing
from queueing_ucrl.learning.fixed_policies import (
    AdmitAll,
    AnticipatingOracle,
    BestStationary,
    FixedPolicy,
    FollowingOracle,
    Oracle,
    RandomPolicy,
    TrunkReservation,
)
from queueing_ucrl.learning.online.controllers import ActorCritic, IntegerGradient, RLearning, Salmut
from queueing_ucrl.learning.tabular import KlUcrl, Psrl, Ucrl2, Ucrl2B, Ucrl3
from queueing_ucrl.learning.ucrl_ac import UcrlAc, UcrlAcClasswise, UcrlAcExact, UcrlAcStates
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import one_line
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue, System

LARGEST = sys.float_info.max
LONGEST_NAME = 200  # characters of a controller's name
GROUP = "queueing_ucrl.controllers"
_RATE_LEARNERS = (UcrlAc, UcrlAcExact, UcrlAcClasswise, UcrlAcStates, Thompson, CertaintyEquivalent)
_TABULAR = (Ucrl2, Ucrl2B, KlUcrl, Psrl, Ucrl3)
_ONLINE = (RLearning, ActorCritic, Salmut, IntegerGradient)
_LEARNERS = (*_RATE_LEARNERS, *_TABULAR, *_ONLINE)
_ORACLES = (Oracle, FollowingOracle, AnticipatingOracle, DayFollowing, BestStationary)
_BASELINES = (*_ORACLES, AdmitAll, TrunkReservation, RandomPolicy)
OWN: dict[str, type[Controller]] = {kind.name: kind for kind in (*_LEARNERS, *_BASELINES)}
FROM_FILES: dict[str, type[FileAgent]] = {FileAgent.name: FileAgent}


def is_own(name: str) -> bool:
    """Whether a controller is the project's."""
    return name in OWN or name in FROM_FILES


def controller_names() -> list[str]:
    """All names that `make_controller` knows."""
    offered = sorted(point.name for point in entry_points(group=GROUP) if not is_own(point.name))
    return [*OWN, *FROM_FILES, *offered]


def _controller_class(name: str) -> Any:
    if is_own(name):
        return {**OWN, **FROM_FILES}[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                return point.load()
            except (ImportError, AttributeError) as error:
                raise ValueError(f"controller {name!r} cannot be loaded from {point.value}: {error}") from error
    near = difflib.get_close_matches(name, controller_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise ValueError(
        f"no controller is called {shown(name)}{hint} Known: {', '.join(controller_names())}. One of your own is an "
        f"object given in Python, or a name that an installed package offers as an entry point of {GROUP}"
    )


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
    types, only_with = get_type_hints(kind), getattr(kind, "only_with", {})
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
        elif value != known[key].default and _is_idle(known, options, needed := only_with.get(key, key)):
            wrong.append((key, f" = {shown(value)} has no meaning without {_other_than_default(known, types, needed)}"))
    missing = [f.name for f in known.values() if f.default is MISSING and f.default_factory is MISSING]
    return wrong + [(key, f" is missing; {name} needs it") for key in missing if key not in options]


def _is_idle(known: Mapping[str, Any], options: Mapping[str, Any], key: str) -> bool:
    """Whether an option is as it is when nothing is said."""
    return bool(options.get(key, known[key].default) == known[key].default)


def _other_than_default(known: Mapping[str, Any], types: Mapping[str, Any], key: str) -> str:
    """An option with the value that it must have to be other than when nothing is said: rewards = 'unknown'."""
    others = [
        value for value in get_args(types[key]) if get_origin(types[key]) is Literal and value != known[key].default
    ]
    return f"{key} = {' or '.join(map(shown, others))}" if others else key


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
        float: "a number",
        float | None: "a number",
        int: "a whole number",
        str: "a text",
        bool: "true or false",
        tuple[float, float]: "two numbers [low, high]",
        tuple[float, float] | None: "two numbers [low, high]",
        tuple[int, ...]: "a list of whole numbers",
    }
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


class _Adapter(StandIn):
    """An object with `begin` and whatever else it has of a controller; what it does not say is as in `Controller`."""

    def begin(self, knowledge: Knowledge, rng: np.random.Generator) -> Session:
        session: Session = self.given.begin(knowledge, rng)
        return session

    def model_gap(self, system: System) -> str:
        """Of a controller of somebody's own nobody knows what it plans for, unless it says."""
        return str(self.given.model_gap(system)) if hasattr(self.given, "model_gap") else ""

    def cautions(self, queue: Queue) -> list[str]:
        found: list[str] = self.given.cautions(queue) if hasattr(self.given, "cautions") else []
        return found


def as_controller(given: Any, options: Mapping[str, Any] | None = None) -> Controller:
    """The controller that is meant by a name (with options), a Controller, a Policy, or any object with `begin`.

    A Controller comes back as it is. Any other object with `begin` is adapted: its name is that of its class, unless it
    says another, and it sees no more than every controller does, unless it says so.
    """
    if isinstance(given, str):
        given = make_controller(given, dict(options or {}))
    if isinstance(given, FileAgent):
        given = given.opened()
    if isinstance(given, Policy):
        given = FixedPolicy(given)
    if not callable(getattr(given, "begin", None)):
        raise TypeError(f"controller must be a controller's name or an object with `begin`, got {shown(type(given))}")
    if isinstance(given, type):
        raise TypeError(f"controller {given.__name__} is a class: give an object of it, {given.__name__}(...)")
    name = one_line(getattr(given, "name", type(given).__name__), "a controller's name", LONGEST_NAME)
    return given if isinstance(given, Controller) and hasattr(given, "name") else _Adapter(given, name)
