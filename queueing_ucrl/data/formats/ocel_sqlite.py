"""Event logs as OCEL 2.0 in a SQLite database: a table for each type of event and of object, with its keys."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from queueing_ucrl.data.formats.dates import Calendar
from queueing_ucrl.data.formats.objects import OBJECT_TYPES, Objects
from queueing_ucrl.data.formats.ocel import attribute_types, event_types, events_of
from queueing_ucrl.data.formats.source import LogSource
from queueing_ucrl.messages import shown

COLUMN_TYPES = {"float": "REAL", "integer": "INTEGER", "boolean": "INTEGER", "string": "TEXT", "time": "TIMESTAMP"}
ALWAYS = "1970-01-01T00:00:00+00:00"  # of attributes that do not change
TABLES = """
CREATE TABLE event_map_type (ocel_type TEXT PRIMARY KEY, ocel_type_map TEXT);
CREATE TABLE object_map_type (ocel_type TEXT PRIMARY KEY, ocel_type_map TEXT);
CREATE TABLE event (
    ocel_id TEXT PRIMARY KEY, ocel_type TEXT, FOREIGN KEY (ocel_type) REFERENCES event_map_type (ocel_type)
);
CREATE TABLE object (
    ocel_id TEXT PRIMARY KEY, ocel_type TEXT, FOREIGN KEY (ocel_type) REFERENCES object_map_type (ocel_type)
);
CREATE TABLE event_object (
    ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT,
    PRIMARY KEY (ocel_event_id, ocel_object_id, ocel_qualifier),
    FOREIGN KEY (ocel_event_id) REFERENCES event (ocel_id), FOREIGN KEY (ocel_object_id) REFERENCES object (ocel_id)
) WITHOUT ROWID;
CREATE TABLE object_object (
    ocel_source_id TEXT, ocel_target_id TEXT, ocel_qualifier TEXT,
    PRIMARY KEY (ocel_source_id, ocel_target_id, ocel_qualifier),
    FOREIGN KEY (ocel_source_id) REFERENCES object (ocel_id), FOREIGN KEY (ocel_target_id) REFERENCES object (ocel_id)
) WITHOUT ROWID;
"""

LARGEST = 2**63 - 1  # of a whole number in SQLite


def write_sqlite(log: LogSource, path: Path, calendar: Calendar) -> None:
    """The log as a database at `path`, an empty file."""
    types = event_types(log)
    names = list(attribute_types(log))
    taken = ["ocel_id", "ocel_time", "ocel_changed_field"]
    for name in names:
        if name.lower() in taken or "\0" in name:
            raise ValueError(
                f"{log.name}: SQLite cannot tell the column {shown(name)} from another of the same letters"
            )
        taken.append(name.lower())
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            # nobody else sees the file before it is whole: neither a journal nor waiting for the disk is needed
            database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + TABLES)
            _make_tables(database, types)
            database.execute("BEGIN")
            _fill(database, log, calendar, names, types)
            database.execute("COMMIT")
            database.execute("VACUUM")  # the same pages, however the log came in pieces
    except sqlite3.OperationalError as error:
        code = errno.ENOSPC if "full" in str(error) else errno.EIO
        raise OSError(code, str(error), str(path)) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _mapped(kind: str) -> str:
    """The end of a table's name."""
    return kind.replace("-", "_")


def _make_tables(database: sqlite3.Connection, types: dict[str, dict[str, str]]) -> None:
    for word, said in (("event", types), ("object", OBJECT_TYPES)):
        for kind, attributes in said.items():
            database.execute(f"INSERT INTO {word}_map_type VALUES (?, ?)", (kind, _mapped(kind)))
            columns = [f"{_quoted(name)} {COLUMN_TYPES[of]}" for name, of in attributes.items()]
            changed = ["ocel_changed_field TEXT"] if word == "object" else []
            key = "ocel_id TEXT PRIMARY KEY" if word == "event" else "ocel_id TEXT"
            columns = [
                key,
                "ocel_time TIMESTAMP",
                *changed,
                *columns,
                f"FOREIGN KEY (ocel_id) REFERENCES {word} (ocel_id)",
            ]
            database.execute(f"CREATE TABLE {word}_{_mapped(kind)} ({', '.join(columns)})")


def _fill(
    database: sqlite3.Connection,
    log: LogSource,
    calendar: Calendar,
    names: list[str],
    types: dict[str, dict[str, str]],
) -> None:
    objects, row = Objects.of(log), 0
    for piece in log:
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for name, kind, date, known, new, related in events_of(piece, names, calendar, objects, row):
            rows.setdefault("event", []).append((name, kind))
            values = (_cell(known.get(key), key, log.name) for key in types[kind])
            rows.setdefault(f"event_{_mapped(kind)}", []).append((name, date, *values))
            rows.setdefault("event_object", []).extend((name, *relation) for relation in related)
            for entry in new:
                rows.setdefault("object", []).append((entry.id, entry.type))
                said = entry.attributes.values()
                rows.setdefault(f"object_{_mapped(entry.type)}", []).append((entry.id, ALWAYS, None, *said))
                rows.setdefault("object_object", []).extend((entry.id, *relation) for relation in entry.related)
        for table, entries in rows.items():
            _insert(database, table, entries)
        row += piece.num_rows


def _cell(value: Any, column: str, log: str) -> Any:
    if isinstance(value, int) and value > LARGEST:
        raise ValueError(f"{log}: the column {shown(column)} holds {value}: SQLite has whole numbers up to {LARGEST}")
    return value.isoformat() if hasattr(value, "isoformat") else value


def _insert(database: sqlite3.Connection, table: str, entries: Iterable[tuple[Any, ...]]) -> None:
    entries = list(entries)
    if entries:
        places = ", ".join("?" * len(entries[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({places})", entries)
