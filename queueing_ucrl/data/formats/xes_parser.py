"""XES files as they come from anywhere, event by event: a file is data, and may be meant to hurt.

The parser is expat, fed block by block: no tree is built, so memory does not grow with the file or its depth. A file
with a DTD is refused, so there are no entities to expand and nothing to fetch; so are values longer than half a million
characters, elements more than 100 deep, and a packed file that unpacks to far more than logs do.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast
from xml.parsers import expat

from queueing_ucrl.data.formats.xml_text import LONGEST_VALUE
from queueing_ucrl.messages import shown, shown_path

BLOCK = 65_536  # bytes that are parsed at once
DEEPEST = 100
LARGEST_TAG = 4 * LONGEST_VALUE  # bytes
UNPACKED = 100_000_000  # bytes that a packed file may have however small it is, and then times its size:
LARGEST_RATIO = 200  # logs reach 20 to 50, a bomb a thousand


@dataclass(slots=True)
class Trace:
    """What a trace says of itself, and which one it is in the file; events of no trace have number -1."""

    number: int
    attributes: dict[str, Any]


@dataclass
class XesFile:
    """The events of an XES file; `about` has the log's own attributes, all of them once the first event was seen."""

    path: Path
    about: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[Trace, dict[str, Any]]]:
        """Each event with its trace; also traces without events, once, with {}. Dates are text, as they stand."""
        words = shown_path(self.path)
        reader = _Reader(words, self.about)
        fed = 0
        for block in _blocks(self.path, words):
            reader.feed(block, last=False)
            fed += len(block)
            if fed - max(reader.parser.CurrentByteIndex, 0) > LARGEST_TAG:
                raise reader.wrong(f"an element's tag has more than {LARGEST_TAG} bytes")
            yield from reader.take()
        reader.feed(b"", last=True)
        yield from reader.take()


def _blocks(path: Path, words: str) -> Iterator[bytes]:
    """The file, unpacked where its name ends in .gz."""
    packed = path.name.lower().endswith(".gz")
    most = UNPACKED + LARGEST_RATIO * path.stat().st_size
    read = 0
    with path.open("rb") as raw:
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
        while True:
            try:
                block = stream.read(BLOCK)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{words} cannot be unpacked ({error})") from None
            if not block:
                return
            read += len(block)
            if packed and read > most:
                raise ValueError(f"{words} unpacks to more than {LARGEST_RATIO} times its size: no event log does")
            yield block


class _Reader:
    """Takes tags as they come; events that are complete wait in `found`."""

    def __init__(self, words: str, about: dict[str, Any]) -> None:
        self.words = words
        self.about = about
        self.found: list[tuple[Trace, dict[str, Any]]] = []
        self.depth = 0
        self.traces = 0
        self.trace: Trace | None = None
        self.empty = False  # whether the trace has had no event yet
        self.event: dict[str, Any] | None = None
        self.event_depth = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype

    def wrong(self, what: str) -> ValueError:
        """With the line at which the parser is."""
        return ValueError(f"{self.words} cannot be read as XES: line {self.parser.CurrentLineNumber}: {what}")

    def feed(self, block: bytes, *, last: bool) -> None:
        """Parse the next bytes."""
        try:
            self.parser.Parse(block, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise ValueError(
                f"{self.words} cannot be read as XES: line {error.lineno}: it is not whole, well-formed XML ({reason})"
            ) from None
        except (LookupError, UnicodeError, ValueError) as error:
            if str(error).startswith(self.words):
                raise
            raise self.wrong(shown(str(error))) from None  # an encoding that Python does not know

    def take(self) -> list[tuple[Trace, dict[str, Any]]]:
        """The events since the last call."""
        found, self.found = self.found, []
        return found

    def _doctype(self, *_: Any) -> None:
        raise self.wrong("it declares a document type, and may hold entities: such files are not read")

    def _start(self, tag: str, said: dict[str, str]) -> None:
        self.depth += 1
        name = tag.rpartition(":")[2]
        if self.depth > DEEPEST:
            raise self.wrong(f"elements are more than {DEEPEST} deep")
        if self.depth == 1:
            if name != "log":
                raise self.wrong(f"the outermost element is {shown(tag)}, not 'log'")
        elif name == "trace" and self.depth == 2:
            self.trace, self.empty = Trace(self.traces, {}), True
            self.traces += 1
        elif name == "event" and self.depth == (3 if self.trace else 2):
            self.event, self.event_depth = {}, self.depth
        elif name in _KINDS:
            self._attribute(name, said)

    def _attribute(self, kind: str, said: dict[str, str]) -> None:
        """What an attribute of the log, the trace or the event says; attributes of attributes are passed over."""
        if self.event is not None:
            target, depth = self.event, self.event_depth + 1
        elif self.trace is not None:
            target, depth = self.trace.attributes, 3
        else:
            target, depth = self.about, 2
        if self.depth != depth or kind in ("list", "container"):
            return
        key, text = said.get("key"), said.get("value")
        if key is None or text is None:
            raise self.wrong(f"<{kind}> must have a key and a value")
        if len(text) > LONGEST_VALUE:
            raise self.wrong(f"the value of {shown(key)} has more than {LONGEST_VALUE} characters")
        try:
            target[key] = _KINDS[kind](text)
        except ValueError:
            raise self.wrong(f"the value of {shown(key)} must be of type {kind}, got {shown(text)}") from None

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "event" and self.event is not None and self.depth == self.event_depth:
            self.found.append((self.trace or Trace(-1, {}), self.event))
            self.event, self.empty = None, False
        elif name == "trace" and self.depth == 2 and self.trace is not None:
            if self.empty:
                self.found.append((self.trace, {}))
            self.trace = None
        self.depth -= 1


def _boolean(text: str) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return found


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _int(text: str) -> int:
    if "_" in text or len(text) > 30:
        raise ValueError(text)
    return int(text)


_KINDS: dict[str, Any] = {
    **{"string": str, "id": str, "date": str, "boolean": _boolean, "float": _float, "int": _int},
    **{"list": str, "container": str},
}
