"""Rows of an event log as arrays, a stretch of it at a time: from a frame, a Parquet or CSV file, or a folder.

Whoever reads a log (`jobs`, `metrics`, `log_checks`) goes through it once, row group by row group, so memory stays flat
however long it is. A log needs the columns time, event, job and job_class; what else it has is used where it is known,
and the same columns from another program are read as well as our own. What cannot be read is a ValueError that names
the file, the column and the row (the first is row 1).

One file, though a long one: the same rows, whatever they are read from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import printable, shortened, shown, shown_path
from queueing_ucrl.model.checks import LONGEST_NAME
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS = (
    *("admit", "reject", "block", "start", "depart", "review"),
    *("abandon", "resume", "breakdown", "repair", "shift", "hand-over", "environment", "initial"),
)
ADMIT, REJECT, BLOCK, START, DEPART, REVIEW = range(6)
ABANDON, RESUME, BREAKDOWN, REPAIR, SHIFT, HAND_OVER, ENVIRONMENT, INITIAL = range(6, 14)

_OF_A_JOB = np.ones(len(EVENTS), dtype=bool)
_OF_A_JOB[[REVIEW, BREAKDOWN, REPAIR, SHIFT, ENVIRONMENT]] = False

NEEDED = ("time", "event", "job", "job_class")
FLOATS = ("wait", "reward", "cost")  # nan: missing
COUNTS = ("server", "in_system", "episode", "replication", "on_duty", "environment")  # -1: missing
BLOCK_ROWS = 250_000  # that are in memory at a time: a row group of our own logs
SHOWN_COLUMNS = 8
HEAD = 1 << 16  # bytes of a file that tell what it is
LONGEST_REASON = 300
LARGEST_COUNT = 2.0**53  # beyond it doubles are no longer whole numbers one apart
LONGEST_LINE = 1 << 25  # bytes of a CSV line
SEPARATORS = (",", ";", "\t")
LARGEST = 1e100  # of times, waits and money: sums and squares of larger ones leave double precision

Source = Any  # a DataFrame, or the path of a file or folder


@dataclass(frozen=True)
class Rows:
    """Some rows of a log, one after the other."""

    first: int  # number of the first one, from 0
    time: FloatArray
    event: IntArray  # its place in EVENTS
    job: Any  # numbers, or other names; 0 or "" where there is none
    has_job: Any  # bool
    job_class: IntArray  # its place in the log's class_names; -1: none
    more: dict[str, Any]  # the columns of FLOATS and COUNTS that were asked for
    places: IntArray | None = None  # the number of each, from 0, where they do not follow one another

    def __len__(self) -> int:
        return int(self.time.size)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["more"][name]
        except KeyError:
            raise AttributeError(name) from None

    def placed(self, at: Any) -> Any:
        """The numbers of these among the log's rows, from 0."""
        return self.first + at if self.places is None else self.places[at]

    def number(self, k: int) -> int:
        """The number by which people know the k-th of them: the log's first row is 1."""
        return int(self.placed(int(k))) + 1

    def only(self, mine: Any) -> Rows:
        """Those that are marked."""
        more = {name: column[mine] for name, column in self.more.items()}
        numbers = self.placed(np.flatnonzero(mine))
        time, event, job_class = self.time[mine], self.event[mine], self.job_class[mine]
        return Rows(self.first, time, event, self.job[mine], self.has_job[mine], job_class, more, numbers)


@dataclass
class EventLog:
    """A log that can be read any number of times, `rows` at a time."""

    name: str  # for messages; "" where there is but one
    columns: tuple[str, ...]
    metadata: dict[str, Any]  # of the run that wrote it; empty: not known
    kind: str  # "frame", "parquet" or "csv"
    path: Path | None = None
    frame: Any = None
    class_names: list[str] = field(default_factory=list)  # those met so far, in order
    separator: str = ","  # of a CSV
    encoding: str = "utf-8-sig"

    def wrong(self, words: str) -> ValueError:
        """An error that names the log."""
        return ValueError(f"{self.name}: {words}" if self.name else words)

    @property
    def controller(self) -> str:
        """Of the run, as its study calls it; "" where nothing says it."""
        return self._told("label") or self._told("controller")

    @property
    def title(self) -> str:
        """Of the scenario; "" where nothing says it."""
        return self._told("title")

    def _told(self, key: str) -> str:
        told = self.metadata.get(key)
        return told if isinstance(told, str) else ""

    @property
    def units(self) -> Units:
        """What time and money are counted in, as far as the metadata say."""
        told = self.metadata.get("units")
        told = told if isinstance(told, dict) else {}
        return Units(*(told[name] if isinstance(told.get(name), str) else "" for name in ("time", "money")))

    def rows(self, columns: Sequence[str] = (*FLOATS, *COUNTS)) -> Iterator[Rows]:
        """All rows in order, with these columns of FLOATS and COUNTS besides the needed ones."""
        wanted = [name for name in (*NEEDED, *columns) if name in self.columns]
        first = 0
        for batch in self._batches(wanted):
            if len(batch):
                yield self._as_rows(batch, first, columns)
                first += len(batch)

    def _batches(self, wanted: list[str]) -> Iterator[pa.Table]:
        import pyarrow as pa

        try:
            if self.kind == "frame":
                for k in range(0, len(self.frame), BLOCK_ROWS):
                    part = self.frame[wanted].iloc[k : k + BLOCK_ROWS]
                    yield pa.Table.from_pandas(part, preserve_index=False)
            elif self.kind == "parquet":
                import pyarrow.parquet as pq

                with pq.ParquetFile(self.path) as file:
                    for batch in file.iter_batches(BLOCK_ROWS, columns=wanted):
                        yield pa.Table.from_batches([batch])
            else:
                yield from self._csv_batches(wanted)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.wrong(f"cannot be read ({_reason(error)})") from None

    def _csv_batches(self, wanted: list[str]) -> Iterator[pa.Table]:
        """Job numbers are read as numbers if all of them are, else as names."""
        import pyarrow as pa

        for job in (pa.int64(), pa.string()):
            try:
                for _ in _csv_reader(self, wanted, job):
                    pass
            except pa.ArrowInvalid as error:
                if job == pa.string():
                    raise self._wrong_cell(error) from None
                continue
            break
        for batch in _csv_reader(self, wanted, job):
            yield pa.Table.from_batches([batch])

    def _wrong_cell(self, error: Exception) -> Exception:
        """What is wrong with a cell, by its row; the error itself where it is of no cell."""
        import csv

        found = re.search(_CELL, str(error), re.DOTALL)
        if found is None or self.path is None:
            return error
        place, value = int(found[1]), found[3]
        try:
            with self.path.open(encoding=self.encoding, errors="replace", newline="") as file:
                rows = (row for row in csv.reader(file, delimiter=self.separator) if row)
                number = next(k for k, row in enumerate(rows) if k and len(row) > place and row[place] == value)
        except (StopIteration, csv.Error, OSError):
            return error
        hint = "; decimals have a point, and thousands no sign" if "," in value else ""
        if re.match(r"\d{4}-\d\d-\d\d", value):
            hint = "; `queueing-ucrl fit` reads logs with dates"
        what = "a whole number" if found[2].startswith("int") else "a number"
        return self.wrong(f"row {number}: {self.columns[place]} must be {what}, got {shown(value)}{hint}")

    def _as_rows(self, table: pa.Table, first: int, columns: Sequence[str]) -> Rows:
        time = self._numbers(table, "time", first)
        missing = ~np.isfinite(time)
        if missing.any():
            k = int(np.argmax(missing))
            given = table.column("time")[k].as_py()
            raise self.wrong(f"row {first + k + 1}: time must be a finite number, got {_given(given)}")
        job, has_job = self._jobs(table)
        more: dict[str, Any] = {}
        for name in columns:
            there = name in table.column_names
            if name in FLOATS:
                more[name] = self._numbers(table, name, first) if there else np.full(len(table), np.nan)
            else:
                more[name] = self._counts(table, name, first) if there else np.full(len(table), -1)
        rows = Rows(first, time, self._events(table, first), job, has_job, self._classes(table, first), more)
        self._check_jobs(rows)
        return rows

    def _check_jobs(self, rows: Rows) -> None:
        """What happens to a job must say to which one, and of which class."""
        for name, wrong in (
            ("job", _OF_A_JOB[rows.event] & ~rows.has_job),
            ("job_class", rows.has_job & (rows.job_class < 0)),
        ):
            if wrong.any():
                k = int(np.argmax(wrong))
                raise self.wrong(f"row {rows.number(k)}: {name} is missing at {EVENTS[rows.event[k]]!r}")

    def _numbers(self, table: pa.Table, name: str, first: int) -> FloatArray:
        """Of a column; nan where there is none."""
        import pyarrow as pa

        column = table.column(name)
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            k, given = next(((k, v) for k, v in enumerate(column.to_pylist()) if v is not None), (0, None))
            dates = "; `queueing-ucrl fit` reads logs with dates" if pa.types.is_temporal(kind) else ""
            raise self.wrong(f"row {first + k + 1}: {name} must be a number, got {_given(given)}{dates}")
        numbers: FloatArray = column.cast(pa.float64()).to_numpy()
        wrong = np.abs(numbers) > LARGEST
        if name in (*FLOATS, "time") and wrong.any():
            k = int(np.argmax(wrong))
            raise self.wrong(f"row {first + k + 1}: {name} must not be beyond {LARGEST:g}, got {numbers[k]:g}")
        return numbers

    def _counts(self, table: pa.Table, name: str, first: int) -> IntArray:
        """Whole numbers of a column; -1 where there is none."""
        import pyarrow as pa

        kind = table.column(name).type
        if pa.types.is_integer(kind):
            column = table.column(name).cast(pa.int64())
            filled: IntArray = (column.fill_null(-1) if column.null_count else column).to_numpy()
            return filled
        numbers = self._numbers(table, name, first)
        known = np.where(np.isnan(numbers), -1.0, numbers)
        wrong = (known != np.trunc(known)) | (np.abs(known) >= LARGEST_COUNT)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise self.wrong(f"row {first + k + 1}: {name} must be a whole number, got {_given(float(known[k]))}")
        return known.astype(np.int64)

    def _codes(self, table: pa.Table, name: str) -> tuple[IntArray, list[Any]]:
        """A column of words as places in a list of them; -1 where there is none."""
        import pyarrow as pa

        kind = table.column(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise self.wrong(f"{name} must be text, but the column's type is {shown(str(kind))}")
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of no chunk
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes: IntArray = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, column.dictionary.to_pylist()

    def _events(self, table: pa.Table, first: int) -> IntArray:
        codes, words = self._codes(table, "event")
        if words == list(EVENTS) and codes.min() >= 0:
            return codes
        known = np.array([EVENTS.index(word) if word in EVENTS else -1 for word in words] + [-1], dtype=np.int64)
        events = known[codes]
        if (events < 0).any():
            k = int(np.argmax(events < 0))
            given = _given(None if codes[k] < 0 else words[codes[k]])
            raise self.wrong(f"row {first + k + 1}: event must be one of {', '.join(EVENTS)}, got {given}")
        return events

    def _classes(self, table: pa.Table, first: int) -> IntArray:
        codes, words = self._codes(table, "job_class")
        long = [k for k, word in enumerate(words) if word is not None and len(str(word)) > LONGEST_NAME]
        if long:
            raise self.wrong(
                f"row {first + int(np.argmax(codes == long[0])) + 1}: job_class must have at most {LONGEST_NAME} "
                f"characters, got {shown(str(words[long[0]]))}"
            )
        places = {name: k for k, name in enumerate(self.class_names)}
        for word in words:
            if word is not None and str(word) not in places:
                places[str(word)] = len(self.class_names)
                self.class_names.append(str(word))
        known = np.array([-1 if word is None else places[str(word)] for word in words] + [-1], dtype=np.int64)
        classes: IntArray = known[codes]
        return classes

    def _jobs(self, table: pa.Table) -> tuple[Any, Any]:
        import pyarrow as pa

        column = table.column("job")
        known = column.is_valid().to_numpy()
        if pa.types.is_floating(column.type):  # whole numbers of which some are missing, as pandas may have them
            column = column.cast(pa.int64(), safe=False) if _are_whole(column) else column
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64())
            return (column.fill_null(0) if column.null_count else column).to_numpy(), known
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        values = np.array(["" if value is None else value for value in column.to_pylist()], dtype=object)
        return values, known


# what pyarrow says of a cell that is none of its column's type
_CELL = r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (\w+): invalid value '(.*)'$"


def _are_whole(column: pa.ChunkedArray) -> bool:
    numbers = column.drop_null().to_numpy()
    return bool(np.all(np.trunc(numbers) == numbers))


def _reason(error: Exception) -> str:
    """What a library says of a file, in one line."""
    return shortened(printable(str(error)).replace("\n", " "), LONGEST_REASON)


def _given(value: Any) -> str:
    return "nothing" if value is None else shown(value)


def _csv_reader(log: EventLog, wanted: list[str], job: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    types = {"event": pa.string(), "job_class": pa.string(), "job": job, "time": pa.float64()}
    types |= {name: pa.float64() for name in FLOATS} | {name: pa.int64() for name in COUNTS}
    encoding = "utf-16" if log.encoding == "utf-16" else "utf8"  # pyarrow's own, which passes over a mark
    return csv.open_csv(
        log.path,
        read_options=csv.ReadOptions(block_size=LONGEST_LINE, encoding=encoding),
        parse_options=csv.ParseOptions(delimiter=log.separator),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=wanted, strings_can_be_null=True, null_values=["", "nan", "NaN"]
        ),
    )


def lacking_column(columns: Sequence[str]) -> str | None:
    """The first of the needed columns that is not there; None where all are."""
    return next((name for name in NEEDED if name not in columns), None)


def _of_jobs(columns: Sequence[str]) -> bool:
    return "job_class" in columns and "arrival" in columns


def _checked(log: EventLog) -> EventLog:
    """The log, if it has the columns that are needed."""
    if (lacking := lacking_column(log.columns)) is not None:
        more = " .." if len(log.columns) > SHOWN_COLUMNS else ""
        listed = ", ".join(map(shown, log.columns[:SHOWN_COLUMNS])) + more
        what = "is a table of jobs, not of events" if _of_jobs(log.columns) else "is no event log"
        if len(log.columns) == 1 and re.search(rf"\b{lacking}\b", log.columns[0]):
            listed += ", as if they were not separated by commas, semicolons or tabs"
        raise log.wrong(
            f"has no column {lacking!r}, so it {what}; its columns are {listed or 'none'}. `queueing-ucrl fit` reads "
            "logs with columns of other names"
        )
    for name in (*NEEDED, *FLOATS, *COUNTS):
        if (count := log.columns.count(name)) > 1:
            raise log.wrong(f"has {count} columns {name!r}; their names must differ")
    return log


def _open_file(path: Path) -> EventLog:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = shown_path(path)
    try:
        if not is_plain_file(path):
            raise ValueError(f"{name}: is not there")
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise ValueError(f"{name}: cannot be read ({error.strerror})") from None
    if not head:
        raise ValueError(f"{name}: is empty")
    path = path.absolute()  # pyarrow would take a leading "~" for the home folder
    if head.startswith(b"PAR1"):
        try:
            schema = pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{name}: cannot be read as Parquet ({_reason(error)})") from None
        return EventLog(name, tuple(schema.names), run_metadata(schema.metadata), "parquet", path)
    columns, separator, encoding = _csv_columns(name, head)
    return EventLog(name, columns, {}, "csv", path, separator=separator, encoding=encoding)


def _csv_columns(name: str, head: bytes) -> tuple[tuple[str, ...], str, str]:
    """The names in a CSV file's first line, what separates them, and the encoding: UTF-8, or UTF-16 with its mark."""
    import csv

    encoding, whole = "utf-8-sig", len(head) == HEAD
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and not head.startswith(b"\xff\xfe\0\0"):
        encoding = "utf-16"
        head = head.decode(encoding, errors="replace").encode()
    if head.lstrip().startswith(b"<"):
        raise ValueError(f"{name}: is XML, no event log; `queueing-ucrl fit` reads XES")
    if b"\0" in head:
        raise ValueError(f"{name}: is neither Parquet nor text")
    line, end, _ = head.partition(b"\n")
    if not end and whole:
        raise ValueError(f"{name}: its first line has no end within {HEAD} bytes, so it is no CSV file")
    try:
        text = line.decode("utf-8-sig").rstrip("\r")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: byte {error.start} of its first line is not UTF-8") from None
    found = {sign: tuple(next(csv.reader([text], delimiter=sign), ())) for sign in SEPARATORS}
    separator = max(SEPARATORS, key=lambda sign: (len(set(NEEDED) & set(found[sign])), len(found[sign])))
    return found[separator], separator, encoding


def run_metadata(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """What a run of ours wrote into a file; nothing where it is another program's."""
    try:
        found = json.loads((metadata or {})[b"queueing_ucrl"])
    except (KeyError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def open_logs(source: Source) -> list[EventLog]:
    """The logs in a frame (one), a Parquet or CSV file (one), or a folder: each of its Parquet files, in order."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        columns = tuple(map(str, source.columns))
        if len(set(columns)) != len(columns):
            raise ValueError("events: has two columns of the same name")
        return [_checked(EventLog("", columns, {}, "frame", frame=source))]
    if not isinstance(source, (str, Path)):
        raise TypeError(f"events must be a DataFrame or the path of a log, got {type(source).__name__}")
    path = Path(source)
    try:
        folder = path.is_dir()
    except (OSError, ValueError) as error:
        raise ValueError(f"{shown_path(path)}: cannot be read ({error})") from None
    if not folder:
        return [_checked(_open_file(path))]
    if (path / "manifest.json").exists():  # of a study: its other Parquet files are no logs
        if not (path / "events").is_dir():
            raise ValueError(f"{shown_path(path)}: is a study without event logs; `queueing-ucrl run --log` keeps them")
        path = path / "events"
    files = sorted(file for file in path.rglob("*.parquet") if not file.is_dir())
    if not files:
        raise ValueError(f"{shown_path(path)}: is a folder without a Parquet file")
    return [_checked(_open_file(file)) for file in files]
