"""Checks of what controllers are told: their options, by themselves and beside the queue."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.messages import shown
from queueing_ucrl.model.system import Queue

SOLVERS = ("pi-b", "pi", "vi", "vi-ae", "lp")
LARGEST_NUMBER = 1e100  # its square is a number too
SHORTEST_PERIOD = 1e-4  # of the mean time between departures of a full house


def check_choice(name: str, value: str, *choices: str) -> None:
    """An option that must be one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(choices)}, got {value!r}")


def check_positive(name: str, value: float | None) -> None:
    """An option that must be a positive number, if it is given; of a size that can be multiplied and divided by."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Real) or not (1 / LARGEST_NUMBER <= value <= LARGEST_NUMBER):
        raise ValueError(f"{name} must be a positive number from 1e-100 to 1e100, got {shown(value)}")


def check_flag(name: str, flag: object) -> None:
    """An option that is true or false."""
    if not isinstance(flag, (bool, np.bool_)):
        raise ValueError(f"{name} must be true or false, got {shown(flag)}")


def check_period(name: str, value: float, knowledge: Knowledge, least: float = SHORTEST_PERIOD) -> None:
    """A time between reviews that would let nothing else happen is refused, where the operator can know."""
    shortest = least / knowledge.max_service_rate
    if value < shortest:  # never where it is not known
        raise ValueError(
            f"{name} must be at least {least:g} of 1 / mu_max, the mean time between departures of a full house: "
            f"{shortest:g} here, got {value:g}"
        )


def checked_rate_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Lambda_min and Lambda_max as an option gives them."""
    low, high = (float(b) for b in bounds) if len(bounds) == 2 else (math.nan, math.nan)
    if not (0 <= low <= high <= LARGEST_NUMBER and high > 0) or 0 < low < 1 / LARGEST_NUMBER:
        raise ValueError(
            f"arrival_rate_bounds must be two numbers 0 <= low <= high with high positive, got {tuple(bounds)}"
        )
    return low, high


def rate_bounds_cautions(bounds: tuple[float, float], queue: Queue) -> list[str]:
    """What to say where the bounds do not hold the queue's total arrival rate."""
    low, high = bounds
    if low <= queue.total_arrival_rate <= high:
        return []
    return [
        f"the total arrival rate {queue.total_arrival_rate:g} is outside arrival_rate_bounds "
        f"[{low:g}, {high:g}]: the regret guarantee is void"
    ]


def balking_cautions(queue: Queue) -> list[str]:
    """What to say of rates that depend on the state to a controller that takes them to be constant."""
    if not queue.balks:
        return []
    return ["arrival rates depend on the number of jobs, and it takes them to be constant: its guarantee is void"]
