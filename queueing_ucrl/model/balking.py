"""Who asks to be let in depends on how many are there: a job that finds s jobs joins with probability b(s), else it
balks, and is gone before anybody decides.

A class whose jobs would come at rate lambda_i asks at rate lambda_i(s) = lambda_i b_i(s). Where b grows with s a crowd
attracts. Each job has a uniform number U of its own and joins if U < b(s), so that it is the same job under every
controller. U is a multiple of 2^-53, and a probability below that is taken for 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed, not_negative, number, positive, read_only, whole

LEAST = 2.0**-53


class Balking(ABC):
    """The probability that a job which finds s jobs in the system asks to be let in."""

    kind: ClassVar[str] = "custom"  # the word for it in scenario files and manifests

    @abstractmethod
    def joins(self, states: int) -> Sequence[float]:
        """b(s) for s = 0 .. states - 1."""

    def probabilities(self, states: int) -> FloatArray:
        """The same, checked: probabilities of which one at least is positive."""
        given = listed(self.joins(states), "balking: probabilities")
        if len(given) != states:
            raise ValueError(f"balking: joins({states}) must give {states} probabilities, got {len(given)}")
        found = [_probability(b, f"balking: the probability to join {s} jobs") for s, b in enumerate(given)]
        return read_only(np.array([b if b >= LEAST else 0.0 for b in found]))


def _probability(value: object, name: str) -> float:
    result = number(value, name)
    if not 0 <= result <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {shown(value)}")
    return result


@dataclass(frozen=True)
class GeometricBalking(Balking):
    """b(s) = ratio^(s - above)^+: each job beyond the first `above` lets the same share of the others go away."""

    kind: ClassVar[str] = "geometric"
    ratio: float
    above: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _probability(self.ratio, "balking: ratio"))
        object.__setattr__(self, "above", whole(self.above, "balking: above", 0))

    def joins(self, states: int) -> list[float]:
        found, b = [], 1.0
        for s in range(states):
            if s > self.above:
                b *= self.ratio
            found.append(b)
        return found


@dataclass(frozen=True)
class LinearBalking(Balking):
    """b(s) = (1 - (s - above)^+ / limit)^+: nobody joins who finds `above` + `limit` jobs or more."""

    kind: ClassVar[str] = "linear"
    limit: float
    above: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", positive(self.limit, "balking: limit"))
        object.__setattr__(self, "above", whole(self.above, "balking: above", 0))

    def joins(self, states: int) -> list[float]:
        return [max(0.0, 1.0 - max(0, s - self.above) / self.limit) for s in range(states)]


@dataclass(frozen=True)
class BalkingTable(Balking):
    """b(s) = probability[s], and from the end of the table on its last one; they may grow with s."""

    kind: ClassVar[str] = "table"
    probability: Sequence[float]

    def __post_init__(self) -> None:
        values = listed(self.probability, "balking: probability")
        if not values:
            raise ValueError("balking: probability must hold at least one number")
        found = tuple(_probability(b, f"balking: probability {s}") for s, b in enumerate(values))
        object.__setattr__(self, "probability", found)
        if not max(found) >= LEAST:
            raise ValueError("balking: a probability at least must be positive, else no job ever joins")

    def joins(self, states: int) -> list[float]:
        table = tuple(self.probability)
        return [table[min(s, len(table) - 1)] for s in range(states)]


def by_state(rates: object, name: str) -> tuple[float, BalkingTable]:
    """Arrival rates by the number of jobs, lambda(0), lambda(1), ..: the largest, and what share of it comes in s."""
    values = [not_negative(rate, f"{name} {s}") for s, rate in enumerate(listed(rates, name))]
    largest = max(values, default=0.0)
    if not largest > 0:
        raise ValueError(f"{name} must hold a positive rate at least, got {shown(rates)}")
    return largest, BalkingTable([rate / largest for rate in values])
