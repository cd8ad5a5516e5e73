"""Controllers by name: the project's own, and those that installed packages offer.

A package offers a controller through the entry-point group `queueing_ucrl.controllers`:

    [options.entry_points]
    queueing_ucrl.controllers =
        my-controller = my_package:MyController
"""

from __future__ import annotations

import difflib
from dataclasses import fields, is_dataclass
from importlib.metadata import entry_points
from typing import Any

from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.learning.fixed import AdmitAll, Oracle, RandomPolicy, TrunkReservation
from queueing_ucrl.learning.ucrl_ac import UcrlAc

GROUP = "queueing_ucrl.controllers"
OWN: dict[str, type[Controller]] = {c.name: c for c in (UcrlAc, Oracle, AdmitAll, TrunkReservation, RandomPolicy)}


def controller_names() -> list[str]:
    """All names that `make_controller` knows."""
    return [*OWN, *sorted(point.name for point in entry_points(group=GROUP) if point.name not in OWN)]


def _controller_class(name: str) -> Any:
    if name in OWN:
        return OWN[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point.load()
    near = difflib.get_close_matches(name, controller_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"no controller is called {name!r}{hint} Known: {', '.join(controller_names())}")


def make_controller(name: str, options: dict[str, Any] | None = None) -> Any:
    """The controller called `name` with these options; a wrong or missing option is named."""
    kind = _controller_class(name)
    options = {} if options is None else options
    if is_dataclass(kind):
        known = [f.name for f in fields(kind)]
        for key in options:
            if key not in known:
                raise ValueError(
                    f"controller {name!r} has no option {key!r}; it has {', '.join(known) or 'no options'}"
                )
    try:
        return kind(**options)
    except TypeError as error:
        message = str(error).split("__init__() ")[-1]
        raise ValueError(f"controller {name!r}: {message}") from None
    except ValueError as error:
        raise ValueError(f"controller {name!r}: {error}") from None
