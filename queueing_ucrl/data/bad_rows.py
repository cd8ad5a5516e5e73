"""Rows of a table that are not as they should be: counted by kind, shown by line, never dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queueing_ucrl.arrays import IntArray
from queueing_ucrl.messages import shown

SHOWN_LINES = 5  # of each kind

LEFT_OUT = "left out"
SORTED = "sorted"
UNKNOWN_WORK = "kept as arrivals, their service not used"
UNKNOWN_WAIT = "kept, their wait not used"
KEPT = "kept"


@dataclass(frozen=True)
class BadRows:
    """The rows of one kind: how many, where the first are, and what was done with them."""

    kind: str  # such as "end before start"
    count: int
    lines: tuple[int | str, ...]  # the first few; of several files with the file's name
    done: str  # such as "left out"
    place: str = "line"  # what is counted: a file's lines, or a table's rows
    example: str = ""  # the first value, as it stands in the file

    @property
    def where(self) -> str:
        """lines 3, 7, 12 .."""
        if not self.lines:
            return ""
        more = " .." if self.count > len(self.lines) else ""
        plural = "s" if self.count > 1 else ""
        return f"{self.place}{plural} {', '.join(map(str, self.lines))}{more}"

    @property
    def words(self) -> str:
        """One line: 3 rows with end before start (lines 3, 7, 12): kept as arrivals, their service not used."""
        rows = f"{self.count:,} row{'s' if self.count > 1 else ''}"
        example = f", such as {self.example}" if self.example else ""
        return f"{rows}: {self.kind}{example} ({self.where}): {self.done}"

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        about = {"kind": self.kind, "count": self.count, "done": self.done}
        return {**about, "first": list(self.lines), "counted_in": f"{self.place}s", "example": self.example or None}


@dataclass
class Findings:
    """What was found while a table is read."""

    place: str = "line"
    found: list[BadRows] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was taken for granted
    files: list[tuple[int, str]] = field(default_factory=list)  # of several: the line before each's first

    def label(self, line: int) -> int | str:
        """A row's line; of several files, whose lines are numbered on and on, with its file."""
        for before, name in reversed(self.files):
            if line > before:
                return f"{name}:{line - before}"
        return int(line)

    def at(self, line: int) -> str:
        """line 17."""
        return f"{self.place} {self.label(line)}"

    def add(self, kind: str, lines: IntArray | list[int], done: str, example: Any = None) -> None:
        """Rows of a kind by their lines; none is no finding."""
        where = np.unique(np.asarray(lines, dtype=np.int64))
        if where.size:
            text = "" if example is None else shown(example)
            first = tuple(self.label(line) for line in where[:SHOWN_LINES].tolist())
            self.found.append(BadRows(kind, int(where.size), first, done, self.place, text))

    def refuse(self, name: str) -> None:
        """With --strict: an error that names them all."""
        if self.found:
            told = "\n".join(f"{name}: {rows.words}" for rows in self.found)
            raise ValueError(f"{told}\n{name}: refused, since bad rows are not allowed (strict)")
