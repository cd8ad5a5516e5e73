"""Event logs as CSV: UTF-8, text in quotes, numbers in as many digits as bring the same number back.

A spreadsheet takes a cell for a formula that begins with = + - @, a tab or a line's end, quotes or not. Text that does
so is written after an apostrophe (and so is text that begins with apostrophes before one of these, so that nothing
becomes ambiguous); `read_csv` takes it away again. Numbers stay numbers. Where a cell is empty, nothing is known; an
empty text is "".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from queueing_ucrl.data.formats.source import LogSource, check_columns
from queueing_ucrl.messages import shown, shown_path
from queueing_ucrl.model.checks import listed
from queueing_ucrl.simulation.event_log import EVENTS, as_frame

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RISKY = "[ ]*[=+@\t\r\n＝＋－＠-]"  # how a formula begins; the wide signs are for East Asian keyboards
ESCAPED = re.compile(f"'+{RISKY}")
PEEKED = 1_000_000  # characters in which it must show whether a column of one's own is text


def safe_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if re.match(f"'*{RISKY}", text) else text


def original_text(text: str) -> str:
    """The inverse of `safe_text`."""
    return text[1:] if ESCAPED.match(text) else text


def _changed(column: Any, change: Any) -> Any:
    """Text with `change` made of each different one of it."""
    import pyarrow as pa

    codes = column.combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.combine_chunks()
    values = pa.array([None if text is None else change(text) for text in codes.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(codes.indices, values).cast(pa.string())


def write_csv(log: LogSource, file: BinaryIO) -> None:
    """The log's rows as they are."""
    import pyarrow as pa
    import pyarrow.csv

    texts = [entry.name for entry in log.schema if pa.types.is_string(entry.type)]
    for entry in log.schema:
        if pa.types.is_nested(entry.type) or pa.types.is_binary(entry.type):
            raise ValueError(f"{log.name}: the column {shown(entry.name)} holds {entry.type}: a CSV file cannot")
    names = [safe_text(name) for name in log.columns]
    schema = pa.schema([pa.field(name, entry.type) for name, entry in zip(names, log.schema, strict=True)])
    with pa.csv.CSVWriter(file, schema) as writer:
        for piece in log:
            columns = [
                _changed(piece.column(name), safe_text) if name in texts else piece.column(name) for name in log.columns
            ]
            writer.write_table(pa.table(columns, schema=schema))


def read_csv(path: Path, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The event log of a CSV file that `write_csv` wrote.

    The log's own columns have their types; classes are in the order of their first rows, or as `classes` lists them.
    Columns of one's own are text where they stood in quotes, else numbers, truth values or dates.
    """
    import pyarrow as pa
    import pyarrow.csv

    words = shown_path(path)
    numbers = dict.fromkeys(("time", "wait", "reward", "cost", "expected_reward"), pa.float64())
    numbers |= dict.fromkeys(("server", "in_system", "episode", "replication", "on_duty", "environment"), pa.int32())
    known = {**numbers, "job": pa.int64(), "event": pa.string(), "job_class": pa.string()}
    try:
        types = {**dict.fromkeys(_text_columns(path), pa.string()), **known}
        options = pa.csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        table = pa.csv.read_csv(path.absolute(), parse_options=parsing, convert_options=options)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(f"{words} cannot be read as the CSV file of an event log ({shown(str(error))})") from None
    check_columns(table.column_names, words)
    for name in table.column_names:
        if pa.types.is_string(table.schema.field(name).type):
            place = table.column_names.index(name)
            table = table.set_column(place, name, _changed(table.column(name), original_text))
    table = table.rename_columns([original_text(name) for name in table.column_names])
    table = categories(table, "event", EVENTS, words)
    seen = [name for name in table.column("job_class").unique().to_pylist() if name is not None]
    table = categories(table, "job_class", listed(seen if classes is None else classes, "classes"), words)
    return as_frame(table)


def categories(table: pa.Table, name: str, values: Sequence[str], words: str) -> pa.Table:
    """The table with a text column as codes of `values`, in their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    kinds = pa.array(list(values), pa.string())
    codes = pc.index_in(column, value_set=kinds)
    wrong = pc.index(pc.and_(pc.is_null(codes), pc.is_valid(column)), True).as_py()
    if wrong >= 0:
        raise ValueError(
            f"{words}, row {wrong}: {name} must be one of {', '.join(map(shown, values))}, "
            f"got {shown(column[wrong].as_py())}"
        )
    codes = codes.combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.DictionaryArray.from_arrays(codes, kinds))


def _text_columns(path: Path) -> list[str]:
    """Names (as written) of the columns whose first known cell is in quotes: text, even if it looks like a number."""
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read(PEEKED)
    cell = re.compile(r'("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|\Z)')
    names: list[str] = []
    found: dict[str, bool] = {}
    at, row, header = 0, 0, True
    while at < len(text) and (match := cell.match(text, at)):
        content, end = match.groups()
        quoted = content.startswith('"')
        if header:
            names.append(content[1:-1].replace('""', '"') if quoted else content)
        elif content and row < len(names):
            found.setdefault(names[row], quoted)
        row, header = (row + 1, header) if end == "," else (0, False)
        at = match.end()
    return [name for name, quoted in found.items() if quoted]
