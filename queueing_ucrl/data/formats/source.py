"""An event log that is to be written down elsewhere: from pandas, from a run, or from a Parquet file piece by piece.

Whatever it comes from, its rows are looked at as they pass: they must be in time order, of events that the log knows,
and those of one replication must stand together. So every format is written from the same, checked rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_rows import COUNTS, FLOATS, NEEDED, lacking_column, run_metadata
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.simulation.event_log import EVENTS, ParquetLog
from queueing_ucrl.simulation.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 50_000  # rows that are in memory at once
NUMBERS = ("time", *FLOATS, "expected_reward")
# events after which a job is no longer there, and what has become of it
LEAVES = {"depart": "served", "abandon": "abandoned", "reject": "rejected", "block": "blocked"}


@dataclass(frozen=True)
class LogSource:
    """The columns of a log, and its rows in pieces; they can be gone through more than once."""

    name: str  # for messages
    schema: pa.Schema
    metadata: dict[str, Any]
    pieces: Callable[[], Iterator[pa.Table]]
    classes: Callable[[], list[str]]  # names of all classes, in order, also of those of which no job came

    @property
    def columns(self) -> list[str]:
        """Names, in order."""
        return list(self.schema.names)

    def __iter__(self) -> Iterator[pa.Table]:
        """The rows in pieces, checked; text columns are plain text, however they were kept."""
        checks = _RowChecks(self.name)
        for piece in self.pieces():
            checks.see(piece)
            yield piece


class _Numbers:
    """A set of whole numbers from 0 on, a bit each; those far beyond the others' number are kept one by one."""

    dense = 80_000_000  # so many take 10 MB whatever they are

    def __init__(self) -> None:
        self.bits = np.zeros(0, dtype=np.uint8)
        self.sparse: set[int] = set()
        self.count = 0

    def has(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Which of them are in it."""
        inside = numbers < 8 * len(self.bits)
        found = np.zeros(len(numbers), dtype=bool)
        near = numbers[inside]
        found[inside] = (self.bits[near >> 3] >> (near & 7).astype(np.uint8)) & 1 == 1
        if self.sparse:
            far = np.flatnonzero(~inside)
            found[far] = [int(number) in self.sparse for number in numbers[far]]
        return found

    def add(self, numbers: np.ndarray[Any, Any]) -> None:
        """Put them in."""
        self.count += len(numbers)
        near = numbers < self.dense + 8 * self.count
        self.sparse.update(numbers[~near].tolist())
        chosen = numbers[near]
        most = int(chosen.max(initial=-1)) // 8 + 1
        if most > len(self.bits):
            longer = np.zeros(max(most, 2 * len(self.bits)), dtype=np.uint8)
            longer[: len(self.bits)] = self.bits
            self.bits = longer
        np.bitwise_or.at(self.bits, chosen >> 3, np.left_shift(1, chosen & 7).astype(np.uint8))


@dataclass
class _RowChecks:
    """What is wrong with the next rows, if anything is."""

    name: str
    rows: int = 0
    last: float = -math.inf
    replication: int | None = None
    finished: set[int] = field(default_factory=set)
    left: _Numbers = field(default_factory=lambda: _Numbers())

    def see(self, piece: pa.Table) -> None:
        """Take the next rows; a ValueError names the first bad one, counted from 0."""
        times = piece.column("time").to_numpy(zero_copy_only=False)
        for begin, end, replication in self._stretches(piece):
            if replication != self.replication:
                self._next_replication(replication, begin)
            inside = times[begin:end]
            before = np.concatenate([[self.last], inside[:-1]])
            wrong = np.flatnonzero(~(np.isfinite(inside) & (inside >= before)))
            if wrong.size:
                where = int(wrong[0])
                raise ValueError(
                    f"{self.name}, row {self.rows + begin + where}: time must be a finite number, not before that of "
                    f"the row above, got {shown(float(inside[where]))}"
                )
            self.last = float(inside[-1])
            self._jobs(piece, begin, end)
        self._events(piece)
        self.rows += len(times)

    def _stretches(self, piece: pa.Table) -> list[tuple[int, int, int]]:
        """(begin, end, replication) of the rows of one replication after the other."""
        if not piece.num_rows:
            return []
        if "replication" not in piece.column_names:
            return [(0, piece.num_rows, 0)]
        column = piece.column("replication")
        if column.null_count:
            raise ValueError(f"{self.name}: the column replication must be a whole number in every row")
        numbers = column.to_numpy(zero_copy_only=False)
        borders = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        return [(begin, end, int(numbers[begin])) for begin, end in pairwise(borders)]

    def _next_replication(self, replication: int, begin: int) -> None:
        if replication in self.finished:
            raise ValueError(
                f"{self.name}, row {self.rows + begin}: the rows of replication {replication} must stand together"
            )
        self.finished.add(replication)
        self.replication, self.last, self.left = replication, -math.inf, _Numbers()

    def _jobs(self, piece: pa.Table, begin: int, end: int) -> None:
        """No job has events after it has left."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pc.fill_null(piece.column("job").slice(begin, end - begin), -1)
        numbers = column.to_numpy(zero_copy_only=False)
        leaves = pc.is_in(piece.column("event").slice(begin, end - begin), value_set=pa.array(list(LEAVES)))
        there = np.flatnonzero(numbers >= 0)
        jobs, leaving = numbers[there], leaves.to_numpy(zero_copy_only=False)[there]
        wrong = self.left.has(jobs)
        order = np.argsort(jobs, kind="stable")
        wrong[order[1:]] |= (jobs[order[1:]] == jobs[order[:-1]]) & leaving[order[:-1]]
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{self.name}, row {self.rows + begin + int(there[first])}: job {jobs[first]} had left before"
            )
        self.left.add(jobs[leaving])

    def _events(self, piece: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = piece.column("event")
        wrong = pc.invert(pc.is_in(column, value_set=pa.array(EVENTS)))
        where = pc.index(wrong, True).as_py()
        if where >= 0:
            raise ValueError(
                f"{self.name}, row {self.rows + where}: event must be one of {', '.join(EVENTS)}, "
                f"got {shown(column[where].as_py())}"
            )


def open_log(source: object) -> LogSource:
    """An event log: a pandas frame, a `Run` that kept one, or the path of a Parquet file."""
    import pandas as pd

    if isinstance(source, Run):
        log = source.log
        return _of_file(log.path) if isinstance(log, ParquetLog) else _of_frame(source.events, "the run's event log")
    if isinstance(source, pd.DataFrame):
        return _of_frame(source, "the event log")
    if isinstance(source, (str, Path)):
        return _of_file(Path(source))
    raise TypeError(f"an event log must be a pandas frame, a Run or the path of a Parquet file, got {shown(source)}")


def _of_frame(frame: Any, name: str) -> LogSource:
    import pyarrow as pa

    repeated = [column for column in frame.columns if list(frame.columns).count(column) > 1]
    if repeated:
        raise ValueError(f"{name} has two columns {shown(repeated[0])}")
    with told_by_arrow(name):
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    schema = _checked(table.schema, name)

    def pieces() -> Iterator[pa.Table]:
        for begin in range(0, table.num_rows, PIECE):
            with told_by_arrow(name):
                piece = _plain(table.slice(begin, PIECE), schema, name, begin)
            yield piece

    return LogSource(name, schema, {}, pieces, lambda: _values([table.column("job_class")]))


def _of_file(path: Path) -> LogSource:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = shown_path(path)
    try:
        there = is_plain_file(path)
    except OSError as error:
        raise ValueError(f"{name} {error.strerror}: an event log is a Parquet file") from None
    if not there:
        raise ValueError(f"{name} is not there")
    with told_by_arrow(name), pq.ParquetFile(path.absolute()) as file:
        kept = file.schema_arrow
    schema = _checked(kept.remove_metadata(), name)

    def pieces() -> Iterator[pa.Table]:
        first = 0
        with told_by_arrow(name), pq.ParquetFile(path.absolute()) as file:
            for batch in file.iter_batches(PIECE):
                yield _plain(pa.Table.from_batches([batch]), schema, name, first)
                first += batch.num_rows

    def classes() -> list[str]:
        with told_by_arrow(name), pq.ParquetFile(path.absolute()) as file:
            batches = file.iter_batches(PIECE, columns=["job_class"])
            return _values(pa.chunked_array([batch.column(0)]) for batch in batches)

    return LogSource(name, schema, run_metadata(kept.metadata), pieces, classes)


def _values(columns: Iterable[pa.ChunkedArray]) -> list[str]:
    """The different texts of a column that comes in parts; of one in categories also those that do not occur."""
    found: dict[str, None] = {}
    for column in columns:
        for chunk in column.chunks:
            values = chunk.dictionary if hasattr(chunk, "dictionary") else chunk.unique()
            found |= dict.fromkeys(value for value in values.to_pylist() if value is not None)
    return list(found)


@contextmanager
def told_by_arrow(name: str) -> Iterator[None]:
    """What pyarrow cannot read is a user's mistake, and named."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{name} cannot be read as an event log ({shown(str(error))})") from None


def check_columns(columns: Sequence[str], name: str) -> None:
    """A ValueError if a log lacks a column."""
    if (lacking := lacking_column(columns)) is not None:
        raise ValueError(f"{name} has no column {lacking!r}: an event log has {', '.join(NEEDED)}, and more")


def _checked(schema: pa.Schema, name: str) -> pa.Schema:
    """The columns with text as plain text; a ValueError if a log has other ones."""
    import pyarrow as pa

    check_columns(schema.names, name)
    fields = []
    for entry in schema:
        kind = entry.type.value_type if pa.types.is_dictionary(entry.type) else entry.type
        wanted = _known_type(entry.name)
        if pa.types.is_large_string(kind) or (hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind)):
            kind = pa.string()
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if wanted is not None:
            right = pa.types.is_string(kind) if pa.types.is_string(wanted) else is_number
            if not right and not pa.types.is_null(kind):
                raise ValueError(f"{name}: the column {entry.name!r} must hold {_words_of(wanted)}, not {entry.type}")
            kind = wanted
        fields.append(pa.field(entry.name, kind))
    return pa.schema(fields)


def _known_type(column: str) -> pa.DataType | None:
    """Of a column that event logs have; None of one's own."""
    import pyarrow as pa

    if column in ("event", "job_class"):
        return pa.string()
    if column == "job":
        return pa.int64()
    return pa.int32() if column in COUNTS else pa.float64() if column in NUMBERS else None


def _words_of(kind: pa.DataType) -> str:
    import pyarrow as pa

    return "text" if pa.types.is_string(kind) else "numbers" if pa.types.is_floating(kind) else "whole numbers"


def _plain(table: pa.Table, schema: pa.Schema, name: str, first: int) -> pa.Table:
    """The table with columns of these types; a ValueError names the column and row (from `first`) that cannot be."""
    import pyarrow as pa

    columns = []
    for column, entry in zip(table.columns, schema, strict=True):
        try:
            columns.append(column.cast(entry.type))
        except pa.ArrowException:
            k = next(k for k, value in enumerate(column) if not _can_be(value, entry.type))
            given = shown(column[k].as_py())
            raise ValueError(
                f"{name}, row {first + k}: {entry.name} must hold {_words_of(entry.type)} of {entry.type.bit_width} "
                f"bits, got {given}"
            ) from None
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks()


def _can_be(value: pa.Scalar, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        value.cast(kind)
    except pa.ArrowException:
        return False
    return True
