"""Admission policies: which classes are let in, in which states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from queueing_ucrl.arrays import BoolArray, FloatArray, IntArray
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed, whole

PICTURE_WIDTH = 60
NO, PART, YES = range(3)  # whether a class gets in: in the states of a block


def stretches(marked: BoolArray) -> list[tuple[int, int]]:
    """(first, last + 1) of each stretch of places that are marked."""
    edges = np.flatnonzero(np.diff(marked, prepend=False, append=False)).reshape(-1, 2)
    return [(int(first), int(end)) for first, end in edges]


def blocks(shares: FloatArray | BoolArray, block: int) -> IntArray:
    """NO, PART or YES for each row (a class) and block of so many columns (states), from the shares let in there."""
    starts = np.arange(0, shares.shape[1], block)
    least, greatest = (extreme.reduceat(shares, starts, axis=1) for extreme in (np.minimum, np.maximum))
    return np.where(least == 1.0, YES, np.where(greatest > 0.0, PART, NO))


class Policy:
    """A stationary deterministic policy: admits[s, i] for s = 0 .. S - 1 and classes i = 0 .. m - 1."""

    # what the engines ask: row sum_i class_strides[i] n_i + environment_stride e, with n_i jobs of class i in the
    # system and e the state of the environment; class_strides None: all 1, so that the row is s
    class_strides: tuple[int, ...] | None = None
    environment_stride: int = 0

    @property
    def sees_more(self) -> bool:
        """Whether it sees more than the number of jobs in the system."""
        return self.class_strides is not None or self.environment_stride != 0

    def __init__(self, admits: npt.ArrayLike) -> None:
        try:
            table = np.array(admits, order="C")
        except ValueError:
            raise ValueError("admits must be a table: its rows have different lengths") from None
        if table.dtype != np.bool_:
            if table.dtype.kind not in "iuf" or not np.isin(table, (0, 1)).all():
                raise ValueError("admits must hold true and false (or 1 and 0)")
            table = table.astype(np.bool_)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"admits must be a table of S states by m classes, got shape {table.shape}")
        table.setflags(write=False)
        self.admits: BoolArray = table

    @classmethod
    def _trusted(cls, admits: BoolArray) -> Policy:
        """A table that a solver made itself: no copy, no check."""
        policy = cls.__new__(cls)
        admits.setflags(write=False)
        policy.admits = admits
        return policy

    @classmethod
    def trunk_reservation(cls, levels: Sequence[int], capacity: int) -> Policy:
        """Class i is admitted iff s < levels[i]."""
        capacity = whole(capacity, "capacity")
        checked = [whole(level, "a control level", least=None) for level in listed(levels, "levels")]
        for level in checked:
            if not 0 <= level <= capacity:
                raise ValueError(f"control levels must lie between 0 and the capacity {capacity}, got {shown(level)}")
        return cls(np.arange(capacity)[:, None] < np.array(checked, dtype=np.int64)[None, :])

    @classmethod
    def admit_all(cls, capacity: int, classes: int) -> Policy:
        """Everybody gets in while there is room."""
        return cls(np.ones((whole(capacity, "capacity"), whole(classes, "classes")), dtype=np.bool_))

    @property
    def capacity(self) -> int:
        """S."""
        return len(self.admits)

    @property
    def class_count(self) -> int:
        """m."""
        return self.admits.shape[1]

    @cached_property
    def control_levels(self) -> tuple[int, ...]:
        """M_i: the first state in which class i is rejected (S if it never is)."""
        rejects = np.vstack([~self.admits, np.ones((1, self.class_count), dtype=np.bool_)])
        return tuple(int(level) for level in rejects.argmax(axis=0))

    @cached_property
    def is_trunk_reservation(self) -> bool:
        """Whether each class is admitted below its control level and nowhere else."""
        return bool(np.array_equal(self.admits, np.arange(self.capacity)[:, None] < np.array(self.control_levels)))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Policy) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[tuple[int, ...], bytes]:
        return self.admits.shape, self.admits.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy._trusted, (self.admits,)  # a copy of an array can be written to: a policy never

    def stretches(self, job_class: int) -> list[tuple[int, int]]:
        """(first, last + 1) of each stretch of states in which a class gets in."""
        return stretches(self.admits[:, job_class])

    def marks(self, block: int = 1, *, full: str = "#", empty: str = ".") -> list[str]:
        """One line a class, one mark for each block of states; a block that is partly admitted is marked `~`."""
        mark = {NO: empty, PART: "~", YES: full}
        return ["".join(map(mark.__getitem__, row)) for row in blocks(self.admits[: self.capacity].T, block).tolist()]

    def picture(self, class_names: Sequence[str] | None = None, *, full: str = "#", empty: str = ".") -> str:
        """One line a class, one mark a state; of a long queue, each mark stands for a block of states."""
        names = list(class_names or (f"class {i + 1}" for i in range(self.class_count)))
        block = -(-self.capacity // PICTURE_WIDTH)
        drawn, lines = self.marks(block, full=full, empty=empty), []
        for name, marks, level in zip(names, drawn, self.control_levels, strict=True):
            note = f"admitted below {level}" if self.is_trunk_reservation else ""
            lines.append(f"{name:>{max(map(len, names))}}  {marks}  {note}".rstrip())
        scale = "" if block == 1 else f", {block} states a mark"
        lines.append(f"{'':>{max(map(len, names))}}  states 0 to {self.capacity - 1}{scale}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.picture()

    def __repr__(self) -> str:
        kind = "trunk reservation" if self.is_trunk_reservation else "general"
        return f"<Policy: {kind}, capacity {self.capacity}, control levels {self.control_levels}>"
