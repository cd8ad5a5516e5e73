"""The named columns of somebody's table, as they stand in a CSV or Parquet file or in a pandas frame.

A file is data: nothing in it is run. What cannot be read is a ValueError that names the file, the place and what would
be right. A CSV's cells stay text here; what they mean is for `stamps` and `tables`.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import BoolArray, IntArray
from queueing_ucrl.data.bad_rows import LEFT_OUT, Findings
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown, shown_path

if TYPE_CHECKING:
    import pandas as pd

LARGEST_FILE = 2_000_000_000  # bytes
MOST_ROWS = 5_000_000
SHOWN_COLUMNS = 8
SEPARATORS = (",", ";", "\t")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_ARCHIVES = {
    b"PK\x03\x04": "a spreadsheet or a zip archive: save the table as CSV",
    b"\x1f\x8b": "compressed: unpack it first",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: save the table as CSV",
    b"SQLite format 3": "a database: export the table as CSV",
    b"ARROW1": "an Arrow file: write the table as Parquet",
}
_COMPOUND = (bytes, bytearray, list, tuple, dict, set, np.ndarray)
_LOOKED_AT = 65536  # bytes at the head of a file, to see what it is


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns as they stand in a file."""

    columns: dict[str, pd.Series]
    lines: IntArray  # where each row is: the line of a CSV, the row of another table, from 1
    repeated: BoolArray  # whether a row is, in every column, one that was there before
    name: str  # of the file, for messages
    marks: Callable[[IntArray], list[int]] | None = None  # of whole rows: equal ones have the same
    elsewhere: int = 0  # how many of the repeated are of another file
    width: int = 0  # how many columns the table has, named or not; 0: it is not known


def checked_path(path: Path) -> bytes:
    """The head of a file that can be read; a ValueError says why it cannot."""
    words = shown_path(path)
    try:
        if not is_plain_file(path):
            raise ValueError(f"{words}: there is no such file")
        size = path.stat().st_size
        if not size:
            raise ValueError(f"{words}: the file is empty")
        if size > LARGEST_FILE:
            raise ValueError(f"{words}: the file has {size:,} bytes, more than {LARGEST_FILE:,}; give a part of it")
        with path.open("rb") as file:
            return file.read(_LOOKED_AT)
    except OSError as error:
        raise ValueError(f"{words}: cannot be read ({error.strerror or error})") from None


def read_source(path: Path, wanted: Sequence[str], findings: Findings) -> RawTable:
    """These columns of a CSV or Parquet file."""
    head = checked_path(path)
    words = shown_path(path)
    for magic, reason in _ARCHIVES.items():
        if head.startswith(magic):
            raise ValueError(f"{words}: must be a CSV or Parquet file, but is {reason}")
    if head.startswith(b"PAR1"):
        return _parquet(path, wanted, findings)
    if path.suffix.lower() in (".parquet", ".pq"):
        raise ValueError(f"{words}: is no Parquet file, whatever its name says: it does not begin with PAR1")
    return _csv(path, _encoding(words, head), wanted, findings)


def frame_source(frame: pd.DataFrame, wanted: Sequence[str], findings: Findings, name: str) -> RawTable:
    """These columns of a pandas frame."""
    findings.place = "row"
    for column in wanted:
        _one_of(name, column, list(map(str, frame.columns)))
    if not len(frame):
        raise ValueError(f"{name}: the table has no rows")
    if len(frame) > MOST_ROWS:
        raise ValueError(f"{name}: the table has {len(frame):,} rows, more than {MOST_ROWS:,}; give a part of it")
    chosen = frame.set_axis([str(c) for c in frame.columns], axis="columns").loc[:, list(dict.fromkeys(wanted))]
    chosen = chosen.reset_index(drop=True)
    for column in chosen.columns:
        _refuse_compound(name, column, chosen[column])
    lines = np.arange(1, len(frame) + 1, dtype=np.int64)
    repeated = _repeated(chosen, lambda rows: frame.iloc[rows])
    return RawTable({c: chosen[c] for c in chosen.columns}, lines, repeated, name, width=frame.shape[1])


def _refuse_compound(name: str, column: str, values: pd.Series) -> None:
    """A cell holds one word, number or date: bytes are no text, and a list of words is no class."""
    if values.dtype.kind != "O":
        return
    for row, value in enumerate(values, 1):
        if isinstance(value, _COMPOUND):
            what = "bytes, whose encoding is not known" if isinstance(value, (bytes, bytearray)) else "several values"
            raise ValueError(
                f"{name}: row {row}: column {shown(column)} must hold one word, number or date a cell, but holds "
                f"{what}: {shown(str(value))}"
            )


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells as text; bytes, lists and what else a column may hold as Python writes them."""
    return frame.apply(lambda cells: cells.map(repr) if cells.dtype == object else cells.astype(str))


def _repeated(chosen: pd.DataFrame, whole: Callable[[IntArray], pd.DataFrame]) -> BoolArray:
    """Which rows are, in every column of the whole table, ones that were there before: only those that are alike in the
    chosen columns are looked up there.
    """
    text = chosen.astype(str)
    repeated: BoolArray = text.duplicated().to_numpy(copy=True)
    if repeated.any():
        alike = np.flatnonzero(text.duplicated(keep=False).to_numpy())
        repeated[alike] = _as_text(whole(alike)).duplicated().to_numpy()
    return repeated


def _one_of(name: str, column: str, known: Sequence[str]) -> None:
    """Whether a column is there, and once."""
    count = list(known).count(column)
    if count > 1:
        raise ValueError(f"{name}: there are {count} columns {shown(column)}; their names must differ")
    if not count:
        more = f" .. ({len(known)} in all)" if len(known) > SHOWN_COLUMNS else ""
        listed = ", ".join(shown(c) for c in known[:SHOWN_COLUMNS]) + more
        one = len(known) == 1 and column in known[0] and column != known[0].strip()
        hint = "; is it several? Separate them by commas, semicolons or tabs" if one else ""
        raise ValueError(f"{name}: there is no column {shown(column)}; the columns are {listed or 'none'}{hint}")


def _parquet(path: Path, wanted: Sequence[str], findings: Findings) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = shown_path(path)
    try:
        with pq.ParquetFile(path) as file:
            known, rows = file.schema_arrow.names, file.metadata.num_rows
            for column in wanted:
                _one_of(words, column, known)
            if rows > MOST_ROWS:
                raise ValueError(f"{words}: the table has {rows:,} rows, more than {MOST_ROWS:,}; give a part of it")
            frame = _frame(file, list(dict.fromkeys(wanted)))
            raw = frame_source(frame, wanted, findings, words)
            if raw.repeated.any():
                raw = replace(raw, repeated=_repeated(frame, lambda alike: _rows(file, alike)))
            raw = replace(raw, width=len(known))
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{words}: cannot be read as Parquet ({shown(str(error))})") from None
    return replace(raw, marks=lambda rows: _marks(path, rows))


def _frame(file: Any, columns: list[str]) -> pd.DataFrame:
    """Columns of a Parquet file; whole numbers stay such where one is missing: a class is 1, not 1.0."""
    frame: pd.DataFrame = file.read(columns=columns).to_pandas(ignore_metadata=True, integer_object_nulls=True)
    return frame


def _marks(path: Path, rows: IntArray) -> list[int]:
    """Of rows of a Parquet file, in every column."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return [hash(row) for row in _as_text(_rows(file, rows)).fillna("").itertuples(index=False, name=None)]


def repeated_across(tables: Sequence[RawTable], kinds: Sequence[str]) -> BoolArray:
    """Which rows of several files, one below the other, were there before, in the same file or in one above of the same
    kind: only those that are alike in the chosen columns are looked up in their files.
    """
    import pandas as pd

    parts = [pd.DataFrame(t.columns).astype(str).assign(kind=k) for t, k in zip(tables, kinds, strict=True)]
    text = pd.concat([part.set_axis(range(part.shape[1]), axis="columns") for part in parts], ignore_index=True)
    alike = text.duplicated(keep=False).to_numpy()
    marks = np.zeros(len(text), dtype=np.int64)
    first = 0
    for table in tables:
        rows = np.flatnonzero(alike[first : first + table.lines.size])
        if rows.size and table.marks is not None:
            marks[first + rows] = table.marks(rows)
        first += table.lines.size
    repeated: BoolArray = text.assign(mark=marks).duplicated().to_numpy()
    return repeated


def _rows(file: Any, rows: IntArray) -> pd.DataFrame:
    """Rows of a Parquet file, column after column: there may be many that nobody named."""
    import pandas as pd

    columns = [_frame(file, [name]).iloc[rows] for name in dict.fromkeys(file.schema_arrow.names)]
    return pd.concat(columns, axis="columns")


# --- CSV --------------------------------------------------------------------------------------------------------------


def _encoding(words: str, head: bytes) -> str:
    if head.startswith(_UTF32):
        raise ValueError(f"{words}: is written in UTF-32; save it as UTF-8")
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if b"\0" in head:
        place = head.index(b"\0")
        raise ValueError(
            f"{words}: must be a text file (CSV) or Parquet, but byte {place + 1} is 0: it is binary, or UTF-16 "
            "without its mark; save it as UTF-8"
        )
    return "utf-8"


def _csv(path: Path, encoding: str, wanted: Sequence[str], findings: Findings) -> RawTable:
    import pandas as pd

    words = shown_path(path)
    try:
        separator, header = _header(path, encoding, wanted)
        for column in wanted:
            _one_of(words, column, header)
        with path.open(encoding=encoding, newline="") as file:
            places = [header.index(column) for column in dict.fromkeys(wanted)]
            cells, lines, marks = _cells(words, file, separator, len(header), places, findings)
    except UnicodeDecodeError as error:
        raise ValueError(_wrong_byte(path, words, encoding, error)) from None
    if not lines:
        raise ValueError(f"{words}: the table has no rows below its header")
    columns = {c: pd.Series(v, dtype=object) for c, v in zip(dict.fromkeys(wanted), cells, strict=True)}
    repeated = pd.DataFrame({**columns, "all cells": marks}).duplicated().to_numpy()
    return RawTable(
        columns,
        np.asarray(lines, dtype=np.int64),
        repeated,
        words,
        lambda rows: [marks[k] for k in rows.tolist()],
        width=len(header),
    )


def _records(words: str, file: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of each record that is not blank."""
    reader = csv.reader(file, delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        first = line == 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error)
            if "field limit" in reason:
                reason = f"a cell is longer than {csv.field_size_limit():,} characters"
            raise ValueError(f"{words}: line {line}: cannot be read as CSV ({reason})") from None
        if first and _names_separator(cells, separator):
            continue  # by which a spreadsheet names the separator
        if cells and any(cells):
            yield line, cells


def _names_separator(cells: list[str], separator: str) -> bool:
    text = separator.join(cells).removeprefix(codecs.BOM_UTF8.decode()).strip(" \r\n")
    return text.lower() == f"sep={separator}"


def _header(path: Path, encoding: str, wanted: Sequence[str]) -> tuple[str, list[str]]:
    """The separator with which the first line holds the wanted columns (or else the most of any), and its names."""
    words = shown_path(path)
    found: list[tuple[int, int, str, list[str]]] = []
    for separator in SEPARATORS:
        with path.open(encoding=encoding, newline="") as file:
            try:
                first = next(_records(words, file, separator), None)
            except ValueError:
                if separator != SEPARATORS[-1] or found:
                    continue
                raise
        if first is not None:
            names = [name.strip() for name in first[1]]
            found.append((sum(name in names for name in wanted), len(names), separator, names))
    if not found:
        raise ValueError(f"{words}: the file holds nothing but blank lines")
    best = max(found, key=lambda f: (f[0], f[1]))
    return best[2], best[3]


def _cells(
    words: str, file: IO[str], separator: str, width: int, places: list[int], findings: Findings
) -> tuple[list[list[str]], list[int], list[int]]:
    """The wanted cells by column, their lines, and a mark of the whole row by which equal ones are found."""
    columns: list[list[str]] = [[] for _ in places]
    lines, marks, uneven = [], [], []
    records = _records(words, file, separator)
    next(records)  # the header
    for line, cells in records:
        if len(cells) != width:
            uneven.append(line)
            continue
        for column, place in zip(columns, places, strict=True):
            column.append(cells[place])
        lines.append(line)
        marks.append(hash(tuple(cells)))
        if len(lines) > MOST_ROWS:
            raise ValueError(f"{words}: the table has more than {MOST_ROWS:,} rows; give a part of it")
    if len(uneven) > len(lines):
        raise ValueError(
            f"{words}: line {uneven[0]}: most rows do not have the {width} cells of the header, as if cells held the "
            f"separator {shown(separator)} unquoted (decimal commas?)"
        )
    findings.add(f"not {width} cells as in the header", uneven, LEFT_OUT)
    return columns, lines, marks


def _wrong_byte(path: Path, words: str, encoding: str, error: UnicodeDecodeError) -> str:
    """Which byte is not of the encoding; a decoder that reads ahead does not know its line."""
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    where: Any = "it"
    if encoding != "utf-16":
        with path.open("rb") as file:
            for line, content in enumerate(file, 1):
                try:
                    content.decode("utf-8")
                except UnicodeDecodeError as found:
                    where = f"line {line}: byte 0x{content[found.start]:02x} at place {found.start + 1}"
                    break
    return f"{words}: {where} is not {name} ({error.reason}); save the file as UTF-8"
