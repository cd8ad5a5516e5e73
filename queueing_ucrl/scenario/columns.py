"""Columns of numbers that a scenario names: CSV and Parquet files, read beside the scenario file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.model.laws import MOST_VALUES

if TYPE_CHECKING:
    import pandas as pd

LARGEST_FILE = 2_000_000_000  # bytes
SHOWN_COLUMNS = 8
UNITS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0, "days": 86400.0}


def checked_file(folder: Path, file: str) -> Path:
    """A file that can be opened and is of a size to be read; a ValueError says why not."""
    path = folder / file
    words = f"the file {shown_path(path)}"
    try:
        if not is_plain_file(path):
            raise ValueError(f"{words} is not there")
        about = path.stat()
    except OSError as error:
        raise ValueError(f"{words} cannot be read ({error.strerror})") from None
    except ValueError as error:  # a null character
        raise ValueError(str(error) if str(error).startswith("the file") else f"{words}: {error}") from None
    if about.st_size > LARGEST_FILE:
        raise ValueError(f"{words} is larger than {LARGEST_FILE // 10**9} GB")
    return path


def read_columns(folder: Path, file: str, names: tuple[str, ...]) -> pd.DataFrame:
    """These columns of a CSV or Parquet file; a ValueError says what is wrong with it."""
    path = checked_file(folder, file)
    about = path.stat()
    frame, problem = _frame(path, names, about.st_mtime_ns, about.st_size)
    if problem:
        raise ValueError(f"the file {shown_path(path)} {problem}")
    return frame


@lru_cache(maxsize=4)
def _frame(path: Path, names: tuple[str, ...], changed: int, size: int) -> tuple[Any, str]:
    """(the columns, ""), or (None, what is wrong); remembered, since the points of a sweep ask for the same ones."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix not in (".csv", ".parquet"):
        return None, "must be a CSV or a Parquet file, by the end of its name: .csv or .parquet"
    try:
        parquet = path.suffix == ".parquet"
        known = pq.read_schema(path).names if parquet else pd.read_csv(path, nrows=0).columns.tolist()
        for name in names:
            if name not in known:
                more = " .." if len(known) > SHOWN_COLUMNS else ""
                listed = ", ".join(map(shown, known[:SHOWN_COLUMNS])) + more
                return None, f"has no column {shown(name)}; its columns are {listed or 'none'}"
        wanted = list(dict.fromkeys(names))
        frame = pq.read_table(path, columns=wanted).to_pandas() if parquet else pd.read_csv(path, usecols=wanted)
    except (OSError, ValueError, pa.ArrowException) as error:  # pandas' errors are ValueErrors
        return None, f"cannot be read as a table ({shown(str(error))})"
    if not len(frame):
        return None, "has no rows"
    if len(frame) > MOST_VALUES:
        return None, f"has more than {MOST_VALUES} rows"
    return frame, ""


def numbers_of(frame: pd.DataFrame, column: str) -> FloatArray:
    """A column of finite numbers that are not negative; a ValueError names the first row that holds none."""
    values = frame[column]
    if values.dtype.kind not in "iuf":
        raise ValueError(f"column {shown(column)} must hold numbers, got {_first(values, map(_is_number, values))}")
    array = values.to_numpy(dtype=np.float64)
    wrong = ~((array >= 0.0) & (array < np.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        given = "nothing" if np.isnan(array[row]) else f"{array[row]:g}"
        raise ValueError(f"column {shown(column)} must hold finite numbers of at least 0, got {given} in row {row + 1}")
    return array


def _is_number(value: object) -> bool:
    """Whether a value is a number, or text that is one."""
    try:
        return not isinstance(value, bool) and float(value) == float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _first(values: pd.Series, good: Iterable[bool]) -> str:
    """The first value that is not good, in words; the first of all where each by itself is."""
    row = next((k for k, fine in enumerate(good) if not fine), 0)
    return f"{shown(values.tolist()[row])} in row {row + 1}"


def times_of(frame: pd.DataFrame, column: str, unit: str | None) -> FloatArray:
    """A column of times: numbers as they stand, or dates, counted from the first in the given unit."""
    import pandas as pd

    values = frame[column]
    if values.dtype.kind in "iufb":
        if unit is not None:
            raise ValueError(f"column {shown(column)} holds numbers: time_unit is for dates only")
        return numbers_of(frame, column)
    try:
        dates = pd.to_datetime(values, format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError):
        dates = pd.to_datetime(values, format="ISO8601", utc=True, errors="coerce")
        good = map(_is_number, values) if _is_number(values.iloc[0]) else dates.notna()
        raise ValueError(f"column {shown(column)} must hold numbers or ISO dates, got {_first(values, good)}") from None
    if dates.isna().any():
        raise ValueError(f"column {shown(column)} holds no date in row {int(dates.isna().argmax()) + 1}")
    if unit is None:
        raise ValueError(f"column {shown(column)} holds dates: name their time_unit, one of {', '.join(UNITS)}")
    nanoseconds = dates.astype("datetime64[ns, UTC]").astype("int64").to_numpy()
    return (nanoseconds - nanoseconds[0]) / (UNITS[unit] * 1e9)


def names_of(frame: pd.DataFrame, column: str) -> Any:
    """A column of names; a ValueError names the first row that holds none."""
    missing = frame[column].isna()
    if missing.any():
        raise ValueError(f"column {shown(column)} names nothing in row {int(missing.argmax()) + 1}")
    return frame[column].astype(str).to_numpy()
