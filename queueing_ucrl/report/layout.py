"""Tables and words laid out for the terminal at hand: nothing is cut, and no number is broken over lines.

A table takes the first of three forms that fits: a line a row; names on lines of their own, so that the numbers have
the whole width; and a line for each number. In a pipe there is no width to keep to (see `open_console`).
Widths are of cells as the terminal shows them: two for a CJK character, none for a combining one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

PROSE = 80  # columns: longer lines are hard to read
UNBOUNDED = 100_000  # columns of a pipe
GAP = "  "


def open_console() -> Console:
    """What results are printed to: as wide as the window (or $COLUMNS); a pipe or a file has no width."""
    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = UNBOUNDED
    return console


def print_line(console: Console, words: str | Text = "", style: str = "") -> None:
    """A line as it is, however long; what is in it is text, not markup."""
    console.print(Text(words, style=style) if isinstance(words, str) else words, soft_wrap=True)


def print_words(console: Console, words: str, style: str = "") -> None:
    """Sentences, broken between words."""
    for line in wrapped(words, min(PROSE, console.width)):
        print_line(console, line, style)


def wrapped(words: str, width: int) -> list[str]:
    """Words in lines of at most so many cells; only a word that is longer is broken, and it loses nothing."""
    width = max(2, width)  # a CJK character takes two
    lines, line = [], ""
    for word in words.split(" "):
        if line.strip() and cell_len(f"{line} {word}") > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
        while cell_len(line) > width:
            end = next(k for k in range(len(line), 0, -1) if cell_len(line[:k]) <= width)
            lines.append(line[:end])
            line = line[end:]
    return [*lines, line]


def _left(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


class Table:
    """Rows of names and numbers. A heading may have two lines; a name that is the row before's is not repeated."""

    def __init__(self, *headings: str, names: int = 1) -> None:
        self.headings = headings
        self.names = names  # the first so many columns are names
        self.rows: list[tuple[str, ...]] = []

    def add(self, *cells: str) -> None:
        """A row, a cell for each heading."""
        if len(cells) != len(self.headings):
            raise ValueError(f"a row of {len(self.headings)} cells is needed, got {len(cells)}")
        self.rows.append(cells)

    def print(self, console: Console) -> None:
        """In the form that fits the console."""
        for line in self.lines(console.width):
            print_line(console, line)

    def lines(self, width: int) -> list[Text]:
        """The table's lines in the first form that fits, or else the narrowest."""
        for form in (self._a_line_a_row, self._names_apart, self._a_line_a_number):
            lines = list(form())
            if max((line.cell_len for line in lines), default=0) <= width:
                break
        return lines

    def _new_names(self, k: int) -> Iterator[tuple[int, str]]:
        """The names of row k that are not those of the row before, with their columns."""
        before = self.rows[k - 1][: self.names] if k else ()
        for column, name in enumerate(self.rows[k][: self.names]):
            if self.rows[k][: column + 1] != before[: column + 1]:
                yield column, name

    def _widths(self, columns: Iterable[int]) -> list[int]:
        cells = [[*self.headings[c].split("\n"), *(row[c] for row in self.rows)] for c in columns]
        return [max(map(cell_len, column)) for column in cells]

    def _joined(self, cells: Sequence[str], widths: Sequence[int], names: int) -> str:
        words = [
            _left(cell, width) if c < names else _right(cell, width)
            for c, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return GAP.join(words).rstrip()

    def _heading_lines(self, columns: Sequence[int], widths: Sequence[int], names: int) -> Iterator[str]:
        split = [self.headings[c].split("\n") for c in columns]
        height = max(map(len, split), default=0)
        for parts in zip(*([""] * (height - len(lines)) + lines for lines in split), strict=True):
            yield self._joined(parts, widths, names)

    def _a_line_a_row(self) -> Iterator[Text]:
        columns = range(len(self.headings))
        widths = self._widths(columns)
        for line in self._heading_lines(columns, widths, self.names):
            yield Text(line, style="bold")
        for k, row in enumerate(self.rows):
            new = dict(self._new_names(k))
            shown = [new.get(c, "") if c < self.names else cell for c, cell in enumerate(row)]
            if self.names == 1:
                shown[0] = row[0]
            yield Text(self._joined(shown, widths, self.names))

    def _name_heading(self) -> Text:
        return Text(", ".join(" ".join(h.split("\n")) for h in self.headings[: self.names]), style="bold")

    def _name_lines(self, k: int) -> Iterator[Text]:
        for column, name in self._new_names(k) if self.names > 1 else [(0, self.rows[k][0])]:
            yield Text(GAP * column + name)

    def _names_apart(self) -> Iterator[Text]:
        columns = range(self.names, len(self.headings))
        widths = self._widths(columns)
        yield self._name_heading()
        for line in self._heading_lines(columns, widths, 0):
            yield Text(GAP * self.names + line, style="bold")
        for k, row in enumerate(self.rows):
            yield from self._name_lines(k)
            if widths:
                yield Text(GAP * self.names + self._joined(row[self.names :], widths, 0))

    def _a_line_a_number(self) -> Iterator[Text]:
        headings = [" ".join(heading.split("\n")) for heading in self.headings]
        numbers = range(self.names, len(headings))
        first = max((cell_len(headings[c]) for c in numbers), default=0)
        second = max((cell_len(row[c]) for row in self.rows for c in numbers), default=0)
        yield self._name_heading()
        for k, row in enumerate(self.rows):
            yield from self._name_lines(k)
            for c in numbers:
                yield Text(GAP * self.names + _left(headings[c], first) + GAP + _right(row[c], second))
