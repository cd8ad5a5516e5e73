"""The types of arrays: of numbers, of whole numbers, of truth values, and of records with named fields."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Protocol, TypeVar, get_type_hints, overload

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# fields of records that are kept in fewer bytes
Int32 = Annotated[int, np.int32]
Int8 = Annotated[int, np.int8]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Records(Protocol[R_co]):
    """An array whose elements have the fields of a class (`record_type`): what a type checker knows of it."""

    @property
    def size(self) -> int: ...
    def __array__(self) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, which: int | np.integer[Any], /) -> R_co: ...
    @overload
    def __getitem__(self, which: str | slice | npt.NDArray[Any], /) -> npt.NDArray[Any]: ...
    def __setitem__(self, field: str, value: Any, /) -> None: ...


class RecordRows(Protocol[R_co]):
    """An array of rows of records."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, which: int | np.integer[Any], /) -> Records[R_co]: ...
    @overload
    def __getitem__(self, which: npt.NDArray[Any], /) -> npt.NDArray[Any]: ...


_STORED = {float: np.float64, int: np.int64, bool: np.bool_}


@cache
def record_type(kind: type) -> np.dtype[np.void]:
    """The record with the annotated fields of a class, in their order."""
    fields: list[tuple[str, Any]] = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        (stored,) = getattr(hint, "__metadata__", None) or (_STORED[hint],)
        fields.append((name, stored))
    return np.dtype(fields)


def records(kind: type[R], count: int) -> Records[R]:
    """So many of them, all zero."""
    array: Any = np.zeros(count, dtype=record_type(kind))  # type: ignore[arg-type]  # a class is hashable
    return array
