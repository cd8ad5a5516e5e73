"""How a queue is run: one value that travels from the file and the command line to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from pydantic import Field

from queueing_ucrl.accounts.measures import MEASURES
from queueing_ucrl.accounts.regret import KINDS
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.elementary import power
from queueing_ucrl.model.checks import not_negative, positive, read_only

ENGINES = ("auto", "simpy", "compiled")
SCALES = ("log", "linear")
REGRETS = ("regret", *KINDS)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class RunSettings:
    """How long, how often, with which random numbers and on which engine; what is noted when.

    What a setting may be stands in its type, in this place only: numbers with their limits (the upper ones are those
    of a scenario file), or one of some words.
    """

    horizon: Positive  # simulated time
    replications: Annotated[int, Field(ge=1, le=10**7)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0  # of all random numbers
    engine: Annotated[str, ENGINES] = "auto"
    solver_latency: NotNegative = 0.0  # simulated time until a new policy is in force
    grid_points: Annotated[int, Field(ge=1, le=100_000)] = 200  # times at which the accounts are noted, evenly spaced
    grid_scale: Annotated[str, SCALES] = "log"
    target_wait: NotNegative = 0.0  # of the measure service_level: a wait up to which service is good
    precision: Annotated[float, Field(ge=0, lt=1)] = (
        0.0  # replications are added until `measure` is known so well; 0: not
    )
    measure: Annotated[str, MEASURES] = "earned"  # see `accounts.measures`
    most_replications: Annotated[int, Field(ge=1, le=10**7)] = 1000  # where they are added
    grid: tuple[float, ...] | None = None  # these times instead; not in a scenario file

    def __post_init__(self) -> None:
        if self.measure in REGRETS:
            raise ValueError(
                f"measure cannot be {self.measure!r}: a regret is of the transient, and has no steady state; "
                f"must be one of {', '.join(MEASURES)}"
            )
        for name, kind in setting_types().items():
            object.__setattr__(self, name, _checked(getattr(self, name), name, kind))
        if self.precision > 0.0 and self.replications < 2:
            raise ValueError(
                "replications must be at least 2 with a precision: so many are run between two looks at it"
            )
        if self.grid is not None:
            times = np.unique(np.asarray(self.grid, dtype=float))
            if times.size and not (times[0] > 0 and times[-1] <= self.horizon):
                raise ValueError(f"grid must hold times above 0 and up to the horizon {self.horizon:g}")
            object.__setattr__(self, "grid", tuple(times.tolist()))

    @cached_property
    def times(self) -> FloatArray:
        """The times at which the accounts are noted."""
        if self.grid is None:
            return read_only(time_grid(self.horizon, self.grid_points, self.grid_scale))
        return read_only(np.array(self.grid))


@cache
def setting_types() -> dict[str, Any]:
    """The types of all settings that a scenario file may hold."""
    return {name: kind for name, kind in get_type_hints(RunSettings, include_extras=True).items() if name != "grid"}


def _checked(value: Any, name: str, kind: Any) -> Any:
    """The value of a setting, or an error that says what would be right."""
    (limits,) = kind.__metadata__
    if kind.__origin__ is str:
        if value not in limits:
            raise ValueError(f"{name} must be one of {', '.join(limits)}, got {value!r}")
        return value
    least = limits.metadata[0]
    if name == "precision" and not (isinstance(value, (int, float)) and 0 <= value < 1):
        raise ValueError(f"precision must be a number of at least 0 and below 1, got {value!r}")
    if kind.__origin__ is int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least.ge:
            raise ValueError(f"{name} must be a whole number of at least {least.ge}, got {value!r}")
        return int(value)
    return positive(value, name) if hasattr(least, "gt") else not_negative(value, name)


def time_grid(horizon: float, points: int = 200, scale: str = "log") -> FloatArray:
    """Times at which a run is looked at: `points` of them up to the horizon, evenly spaced on a log or linear scale.

    The log scale starts at a ten-thousandth of the horizon.
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be log or linear, got {scale!r}")
    if points < 1:
        raise ValueError(f"points must be at least 1, got {points}")
    if scale == "linear":
        return horizon * np.arange(1, points + 1) / points
    return np.array([*_log_grid(horizon, points)])


@lru_cache(maxsize=8)
def _log_grid(horizon: float, points: int) -> tuple[float, ...]:
    return (*(horizon * power(10.0, 4.0 * (k / (points - 1) - 1.0)) for k in range(points - 1)), horizon)
