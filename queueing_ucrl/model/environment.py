"""An environment that everybody sees: a Markov chain on K states that scales arrivals and sets the servers.

Bursts (factors), breakdowns of the whole house or set-up (servers) in one mechanism. The state of the system is (s, e).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import ReadOnlyArrays, listed, read_only, table_of_numbers, whole


def _reached(rates: FloatArray, start: int) -> set[int]:
    """The states that a chain can come to."""
    reached, new = {start}, [start]
    while new:
        found = {f for e in new for f in np.flatnonzero(rates[e]).tolist()}
        new = sorted(found - reached)
        reached |= found
    return reached


@dataclass(frozen=True, eq=False)
class Environment(ReadOnlyArrays):
    """In state e arrival rates are times arrival_factors[e] (or, class by class, [e, i]), and servers[e] are on duty.

    rates[e, f]: from e to f per unit of time; the diagonal does not count. It begins in `start`.
    """

    kind: ClassVar[str] = "environment"
    rates: Any
    arrival_factors: Any
    servers: Sequence[int] | None = None
    start: int = 0

    def __post_init__(self) -> None:
        rates = table_of_numbers(self.rates, "environment: rates")
        if rates.ndim != 2 or rates.shape[0] != rates.shape[1] or not rates.size:
            raise ValueError(f"environment: rates must be a square table, got shape {rates.shape}")
        rates = np.where(np.eye(len(rates), dtype=bool), 0.0, rates)
        if np.any(rates < 0):
            raise ValueError("environment: rates must not be negative (the diagonal does not count)")
        factors = table_of_numbers(self.arrival_factors, "environment: arrival_factors")
        if factors.ndim not in (1, 2) or len(factors) != len(rates) or not factors.size:
            raise ValueError(
                f"environment: arrival_factors must be a number (or a number for each class) for each of the "
                f"{len(rates)} states, got shape {factors.shape}"
            )
        if np.any(factors < 0) or not np.all(factors.reshape(len(rates), -1).max(axis=0) > 0):
            raise ValueError("environment: arrival_factors must be at least 0, for each class one of them positive")
        object.__setattr__(self, "rates", read_only(rates))
        object.__setattr__(self, "arrival_factors", factors)
        if self.servers is not None:
            servers = tuple(whole(c, "environment: a count of servers", 0) for c in listed(self.servers, "servers"))
            if len(servers) != len(rates) or max(servers) == 0:
                raise ValueError(
                    f"environment: servers must be a count for each of the {len(rates)} states, one of them positive"
                )
            object.__setattr__(self, "servers", servers)
        object.__setattr__(self, "start", whole(self.start, "environment: start", 0))
        if self.start >= len(rates):
            raise ValueError(f"environment: start must be a state below {len(rates)}, got {self.start}")
        if any(len(_reached(way, 0)) < len(rates) for way in (rates, rates.T)):
            raise ValueError("environment: every state must be reached from every other")
        super().__post_init__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Environment):
            return NotImplemented
        return (
            np.array_equal(self.rates, other.rates)
            and np.array_equal(self.arrival_factors, other.arrival_factors)
            and (self.servers, self.start) == (other.servers, other.start)
        )

    def __hash__(self) -> int:
        return hash((self.rates.tobytes(), self.arrival_factors.tobytes(), self.servers, self.start))

    @property
    def states(self) -> int:
        """K."""
        return len(self.rates)

    def factors(self, job_class: int) -> FloatArray:
        """The factor of a class's arrival rate in each state."""
        return self.arrival_factors if self.arrival_factors.ndim == 1 else self.arrival_factors[:, job_class].copy()

    @cached_property
    def stationary(self) -> FloatArray:
        """The long-run share of time in each state: state reduction (Grassmann, Taksar and Heyman), no subtraction."""
        a = [row.tolist() for row in self.rates]
        n = len(a)
        for k in range(n - 1, 0, -1):
            out = math.fsum(a[k][:k])
            for i in range(k):
                a[i][k] /= out
                for j in range(k):
                    a[i][j] += a[i][k] * a[k][j] if i != j else 0.0
        law = [1.0]
        for k in range(1, n):
            law.append(math.fsum(law[i] * a[i][k] for i in range(k)))
        total = math.fsum(law)
        return read_only(np.array([p / total for p in law]))
