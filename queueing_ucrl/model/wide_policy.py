"""Policies that see more than the number of jobs: how many there are of each class, or the state of an environment.

Engines ask any policy at row sum_i class_strides[i] n_i + environment_stride e of its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, IntArray
from queueing_ucrl.model.policy import Policy


class _WidePolicy(Policy):
    """A policy whose rows are not the numbers of jobs."""

    _capacity: int

    @property
    def capacity(self) -> int:
        return self._capacity

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return type(self).__name__, self._capacity, self.admits.shape, self.admits.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.admits, self._capacity)

    @property
    def control_levels(self) -> tuple[int, ...]:
        raise AttributeError(f"{self!r} sees more than the number of jobs: it has no control levels")

    @property
    def is_trunk_reservation(self) -> bool:
        return False


class CountPolicy(_WidePolicy):
    """Sees how many jobs of each class there are: row sum_i n_i S^i of `admits`, for n_1 + .. + n_m < S."""

    def __init__(self, admits: BoolArray, capacity: int) -> None:
        super().__init__(admits)
        self._capacity = capacity
        self.class_strides = tuple(capacity**i for i in range(self.class_count))
        rows = self.class_strides[-1] * (capacity - 1) + 1
        if len(self.admits) != rows:
            raise ValueError(f"a policy by counts needs {rows} rows for capacity {capacity}, got {len(self.admits)}")

    @classmethod
    def of(cls, counts: IntArray, decisions: BoolArray, capacity: int) -> CountPolicy:
        """decisions[k] where counts[k] jobs of each class are there, fewer than the capacity in all."""
        classes = counts.shape[1]
        table = np.zeros(((capacity - 1) * capacity ** (classes - 1) + 1, classes), dtype=np.bool_)
        for row, count in zip(decisions, counts.tolist(), strict=True):
            if sum(count) < capacity:
                table[sum(n * capacity**i for i, n in enumerate(count))] = row
        return cls(table, capacity)

    def at(self, counts: Sequence[int]) -> tuple[bool, ...]:
        """Who is admitted where so many jobs of each class are there."""
        if sum(counts) >= self._capacity:
            return (False,) * self.class_count
        row = sum(n * k for n, k in zip(counts, self.class_strides or (), strict=True))
        return tuple(self.admits[row].tolist())

    def __repr__(self) -> str:
        return f"<CountPolicy: {self.class_count} classes, capacity {self._capacity}>"


class EnvironmentPolicy(_WidePolicy):
    """Sees the state e of the environment: row s + S e of `admits`."""

    def __init__(self, admits: BoolArray, capacity: int) -> None:
        super().__init__(admits)
        self._capacity = capacity
        self.environment_stride = capacity
        if len(self.admits) % capacity:
            raise ValueError(f"a policy by environment needs a multiple of {capacity} rows, got {len(self.admits)}")

    def at(self, environment: int) -> Policy:
        """The table in a state of the environment."""
        return Policy(self.admits[self._capacity * environment : self._capacity * (environment + 1)])

    def __repr__(self) -> str:
        return f"<EnvironmentPolicy: {len(self.admits) // self._capacity} states, capacity {self._capacity}>"
