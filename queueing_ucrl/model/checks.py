"""Checks that value objects make of what they are given, and arrays that nobody can change.

A thing of the wrong kind is a TypeError, a wrong value a ValueError; both name the field and say what would be right.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any, SupportsIndex, cast

import numpy as np

from queueing_ucrl.messages import is_one_line, shown

LONGEST_NAME = 40  # characters


def _as_float(value: object, name: str, wanted: str) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {wanted}, got {_given(value)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf if cast(int, value) > 0 else -math.inf


def real(value: object, name: str, wanted: str = "a number") -> float:
    """A real number of any kind (int, float, Fraction, numpy's), as a float: infinite beyond its range, never nan."""
    result = _as_float(value, name, wanted)
    if math.isnan(result):
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}")
    return result


def number(value: object, name: str, wanted: str = "a finite number") -> float:
    """A finite number."""
    result = _as_float(value, name, "a number")
    if not math.isfinite(result):
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}")
    return result


def positive(value: object, name: str) -> float:
    """A finite number above 0."""
    wanted = "a positive finite number"
    result = number(value, name, wanted)
    if not result > 0:
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}")
    return result


def not_negative(value: object, name: str) -> float:
    """A finite number of at least 0."""
    wanted = "a finite number of at least 0"
    result = number(value, name, wanted)
    if result < 0:
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}")
    return result


def whole(value: object, name: str, least: int | None = 1) -> int:
    """A whole number, also numpy's; 2.0 is none."""
    wanted = "a whole number" if least is None else f"a whole number of at least {least}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {wanted}, got {_given(value)}")
    try:
        result = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}") from None
    if least is not None and result < least:
        raise ValueError(f"{name} must be {wanted}, got {_given(value)}")
    return result


def one_line(text: object, name: str, longest: int = LONGEST_NAME) -> str:
    """A text for tables and file names: one line that prints, not empty and not too long."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a text, got {_given(text)}")
    if not text:
        raise ValueError(f"{name} must be a text that is not empty")
    if len(text) > longest:
        raise ValueError(f"{name} = {shown(text)} must have at most {longest} characters")
    if not is_one_line(text):
        raise ValueError(f"{name} = {shown(text)} must be one line of printable characters, with no space around it")
    return str(text)


def listed(values: object, name: str) -> tuple[Any, ...]:
    """The items of a list, an array or anything else that can be gone through once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list, got {_given(values)}")
    return tuple(values)


def _given(value: object) -> str:
    return repr(value) if isinstance(value, (bool, np.generic)) else shown(value)


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself, which can no longer be written to."""
    array.setflags(write=False)
    return array


def table_of_numbers(values: object, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array of finite numbers of the object's own, which nobody can write to."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a table of numbers")
    own = (
        _own(array)
        if array.dtype == np.float64 and array.flags.c_contiguous
        else read_only(np.array(array, dtype=np.float64, order="C"))
    )
    if not np.all(np.isfinite(own)):
        raise ValueError(f"{name} must be finite numbers")
    return own


def _own(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array if nobody can write to it, else a copy to which nobody can."""
    return array if _is_safe(array) else read_only(np.array(array, order="C"))


def _is_safe(array: np.ndarray[Any, Any]) -> bool:
    """Whether nobody can write to it."""
    flags, base = array.flags, array.base
    return not flags.writeable and (base is None or not getattr(base, "flags", flags).writeable)


class ReadOnlyArrays:
    """For value objects that hold arrays: those of the caller are copied, and nobody can write to the object's own."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and not _is_safe(value):
                object.__setattr__(self, name, _own(value))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and pickles: numpy gives arrays back writeable."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(state)
