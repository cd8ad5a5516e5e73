"""The decision model of a queue: a controlled birth-death chain, which is what every solver takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.checks import ReadOnlyArrays, table_of_numbers

RATE_RANGE = 1e100  # largest over smallest positive rate; beyond it products of ratios leave double precision


def _is_table(value: object, dimensions: int) -> bool:
    """Whether it is an array of doubles as compiled functions take them."""
    return (
        type(value) is np.ndarray
        and value.ndim == dimensions
        and value.dtype == np.float64
        and value.flags.c_contiguous
    )


@compiled
def _is_model(rates: FloatArray, rewards: FloatArray, service: FloatArray) -> bool:
    """Whether all is well, in one pass: a learner makes a model at each review."""
    states, classes = rewards.shape
    if rates.shape != rewards.shape or rewards.size == 0 or service.shape[0] != states + 1 or service[0] != 0.0:
        return False
    smallest, largest = math.inf, 0.0
    for s in range(1, states + 1):
        smallest, largest = min(smallest, service[s]), max(largest, service[s])
        if not service[s] > 0.0:
            return False
    for s in range(states):
        for i in range(classes):
            rate = rates[s, i]
            if not rate >= 0.0 or not math.isfinite(rewards[s, i]):
                return False
            if rate > 0.0:
                smallest, largest = min(smallest, rate), max(largest, rate)
    return largest < math.inf and largest <= RATE_RANGE * smallest


@dataclass(frozen=True, eq=False)
class AdmissionModel(ReadOnlyArrays):
    """A controlled birth-death chain on 0 .. S: what every solver takes.

    arrival_rates[s, i] and rewards[s, i] for s = 0 .. S - 1 (an arrival in S is blocked), service_rates[s] = mu(s)
    for s = 0 .. S. The rates may depend on the state: the optimistic model of the paper (Thm 4.3) needs it.
    """

    arrival_rates: FloatArray
    rewards: FloatArray
    service_rates: FloatArray

    def __post_init__(self) -> None:
        rates, rewards, service = self.arrival_rates, self.rewards, self.service_rates
        tables = _is_table(rates, 2) and _is_table(rewards, 2) and _is_table(service, 1)
        if not tables or not _is_model(rates, rewards, service):
            self._check()
        super().__post_init__()

    def _check(self) -> None:
        """Convert what can be converted, and say what is wrong."""
        for name in ("arrival_rates", "rewards", "service_rates"):
            object.__setattr__(self, name, table_of_numbers(getattr(self, name), name))
        rates, rewards, service = self.arrival_rates, self.rewards, self.service_rates
        if rates.ndim != 2 or 0 in rates.shape or rewards.shape != rates.shape:
            raise ValueError(
                "arrival_rates and rewards must be tables of the same shape (S states, m classes), "
                f"got {rates.shape} and {rewards.shape}"
            )
        if service.shape != (len(rates) + 1,):
            raise ValueError(f"service_rates must hold S + 1 = {len(rates) + 1} rates, got shape {service.shape}")
        if np.any(rates < 0):
            raise ValueError("arrival_rates must not be negative")
        if service[0] != 0 or np.any(service[1:] <= 0):
            raise ValueError("service_rates must be 0 in state 0 and positive above")
        positive = rates[rates > 0]
        largest = max(float(service.max()), float(positive.max(initial=0.0)))
        smallest = min(float(service[1:].min()), float(positive.min(initial=math.inf)))
        if largest > RATE_RANGE * smallest:
            raise ValueError(f"rates from {smallest} to {largest} are too far apart for double precision")

    @property
    def capacity(self) -> int:
        """S."""
        return len(self.arrival_rates)

    @property
    def class_count(self) -> int:
        """m."""
        return self.arrival_rates.shape[1]

    @cached_property
    def reward_scale(self) -> float:
        """max_i |r_i(0)|: what numerical errors are measured against."""
        return float(np.abs(self.rewards[0]).max())

    @cached_property
    def uniformization_rate(self) -> float:
        """U = max_s Lambda(s) + max_s mu(s)."""
        return float(self.arrival_rates.sum(axis=1).max() + self.service_rates.max())
