"""Event logs as OCEL 2.0, in JSON and in XML: jobs, servers, classes and episodes as objects (see `objects`).

An event's type is the log's `event`; its attributes are the log's other columns, numbers in all their digits, but for
those that its relations say: job, job_class, server, replication. All values are text, as the specification's schema
of the JSON format has it; their types are declared. The log is gone through three times, so that memory does not grow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from queueing_ucrl.data.formats.dates import EPOCH, Calendar
from queueing_ucrl.data.formats.objects import OBJECT_TYPES, LogObject, Objects
from queueing_ucrl.data.formats.source import LogSource
from queueing_ucrl.data.formats.xml_text import double, escaped, kind_of
from queueing_ucrl.messages import shown
from queueing_ucrl.simulation.event_log import EVENTS

if TYPE_CHECKING:
    import pyarrow as pa

RELATED = ("event", "job", "job_class", "server", "replication")  # columns that are not attributes
OCEL_TYPES = {"float": "float", "int": "integer", "boolean": "boolean", "string": "string", "date": "time"}
Relations = list[tuple[str, str]]  # id of an object, and what it is


def attribute_types(log: LogSource) -> dict[str, str]:
    """OCEL's types of the columns that become attributes."""
    found = {}
    for entry in log.schema:
        kind = kind_of(entry.type)
        if kind is None:
            raise ValueError(
                f"{log.name}: the column {shown(entry.name)} holds {entry.type}: OCEL has no such attribute"
            )
        if entry.name not in RELATED:
            found[entry.name] = OCEL_TYPES[kind]
    return found


def event_types(log: LogSource) -> dict[str, dict[str, str]]:
    """The events that occur, each with the attributes that are known in some of its rows, and their types."""
    import pyarrow.compute as pc

    types = attribute_types(log)
    known: dict[str, set[str]] = {}
    for piece in log:
        for event in piece.column("event").unique().to_pylist():
            rows = piece.filter(pc.equal(piece.column("event"), event))
            counted = {name for name in types if rows.column(name).null_count < rows.num_rows}
            known.setdefault(event, set()).update(counted)
    return {event: {name: types[name] for name in types if name in known[event]} for event in EVENTS if event in known}


def as_text(value: Any) -> str:
    """A value as text, from which the same value comes back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def events_of(
    piece: pa.Table, names: list[str], calendar: Calendar, objects: Objects, row: int
) -> Iterator[tuple[str, str, str, dict[str, Any], list[LogObject], Relations]]:
    """(id, type, date, attributes that are known, objects that are new, relations) of each row."""
    dates = calendar.stamps(piece.column("time").to_numpy(zero_copy_only=False))
    cells = zip(*(piece.column(name).to_pylist() for name in names), strict=True)
    kinds = piece.column("event").to_pylist()
    for k, (date, values, kind, (new, related)) in enumerate(
        zip(dates, cells, kinds, objects.rows(piece), strict=True), start=row
    ):
        known = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        yield f"event/{k}", kind, date, known, new, related


def write_ocel_text(log: LogSource, file: BinaryIO, calendar: Calendar, kind: str) -> None:
    """The log in one of the two text formats, `ocel-json` or `ocel-xml`."""
    form = _Json() if kind == "ocel-json" else _Xml()
    types = event_types(log)
    file.write(form.head(types).encode())
    objects = Objects.of(log)
    for piece in log:
        texts = [form.object(entry) for new, _ in objects.rows(piece) for entry in new]
        file.write("".join(texts).encode())
    file.write(form.middle.encode())
    objects, row = Objects.of(log), 0
    for piece in log:
        rows = events_of(piece, list(attribute_types(log)), calendar, objects, row)
        texts = [form.event(name, kind, date, known, related) for name, kind, date, known, _, related in rows]
        file.write("".join(texts).encode())
        row += piece.num_rows
    file.write(form.foot.encode())


class _Json:
    """Four lists; an object or an event a line."""

    middle = '\n],\n"events": ['
    foot = "\n]\n}\n"

    def __init__(self) -> None:
        self.first = True

    def head(self, types: dict[str, dict[str, str]]) -> str:
        """Up to the first object."""

        def listed(said: dict[str, dict[str, str]]) -> str:
            lines = [
                _line({"name": name, "attributes": [{"name": key, "type": kind} for key, kind in attributes.items()]})
                for name, attributes in said.items()
            ]
            return "[" + ",".join(f"\n{line}" for line in lines) + "\n]"

        return f'{{\n"objectTypes": {listed(OBJECT_TYPES)},\n"eventTypes": {listed(types)},\n"objects": ['

    def _next(self, entry: dict[str, Any], relations: Relations) -> str:
        entry["relationships"] = [{"objectId": name, "qualifier": what} for name, what in relations]
        comma, self.first = "" if self.first else ",", False
        return f"{comma}\n{_line(entry)}"

    def object(self, entry: LogObject) -> str:
        """An object."""
        known = {name: value for name, value in entry.attributes.items() if value is not None}
        said = [{"name": name, "time": EPOCH, "value": as_text(value)} for name, value in known.items()]
        return self._next({"id": entry.id, "type": entry.type, "attributes": said}, list(entry.related))

    def event(self, name: str, kind: str, date: str, known: dict[str, Any], related: Relations) -> str:
        """An event."""
        if name == "event/0":
            self.first = True
        said = [{"name": key, "value": as_text(value)} for key, value in known.items()]
        return self._next({"id": name, "type": kind, "time": date, "attributes": said}, related)


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


class _Xml:
    """Elements in elements; values as their text."""

    middle = "</objects>\n<events>\n"
    foot = "</events>\n</log>\n"

    def head(self, types: dict[str, dict[str, str]]) -> str:
        """Up to the first object."""
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<log>"]
        for word, said in (("object", OBJECT_TYPES), ("event", types)):
            lines.append(f"<{word}-types>")
            for name, attributes in said.items():
                lines.append(f'<{word}-type name="{escaped(name, "event")}"><attributes>')
                for key, kind in attributes.items():
                    lines.append(f'<attribute name="{escaped(key, key)}" type="{kind}"/>')
                lines.append(f"</attributes></{word}-type>")
            lines.append(f"</{word}-types>")
        return "\n".join([*lines, "<objects>", ""])

    def object(self, entry: LogObject) -> str:
        """An object."""
        said = "".join(
            f'<attribute name="{name}" time="{EPOCH}">{escaped(as_text(value), name)}</attribute>'
            for name, value in entry.attributes.items()
            if value is not None
        )
        head = f'<object id="{escaped(entry.id, "job_class")}" type="{entry.type}">'
        return f"{head}<attributes>{said}</attributes>{_relations(list(entry.related))}</object>\n"

    def event(self, name: str, kind: str, date: str, known: dict[str, Any], related: Relations) -> str:
        """An event."""
        said = "".join(
            f'<attribute name="{escaped(key, key)}">{escaped(as_text(value), key)}</attribute>'
            for key, value in known.items()
        )
        head = f'<event id="{name}" type="{kind}" time="{date}">'
        return f"{head}<attributes>{said}</attributes>{_relations(related)}</event>\n"


def _relations(related: Relations) -> str:
    texts = [f'<relationship object-id="{escaped(name, "job_class")}" qualifier="{what}"/>' for name, what in related]
    return f"<objects>{''.join(texts)}</objects>"
