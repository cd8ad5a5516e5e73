"""What is told to people: values shortened, and nothing in them that would steer a terminal.

Text from a file, a command line or another program may hold anything; what of it is repeated in a message goes through
`shown`, and a message as a whole through `printable`.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from pathlib import Path

SHOWN_VALUE = 60  # characters of a wrong value that are repeated to its author
SHOWN_PATH = 240
# neither prints by itself, but words are spelled with them in Persian and the Indic scripts
_JOINERS = "\u200c\u200d"


def _prints(character: str) -> bool:
    return character.isprintable() or character in _JOINERS


def is_one_line(text: str) -> bool:
    """Whether text can stand in a table: letters of any script, but no control character, no line separator, no
    override of the writing direction, no byte that is not UTF-8, and no space around it.
    """
    return all(map(_prints, text)) and text == text.strip()


def printable(text: str) -> str:
    """The text with what does not print escaped, line ends apart; bytes that are not UTF-8 as `\\xff`."""
    if text.isprintable():
        return text
    return "".join(c if _prints(c) or c == "\n" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    if 0xDC80 <= ord(character) <= 0xDCFF:  # how Python keeps the byte 0x80 .. 0xff of a name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def shortened(text: str, limit: int = SHOWN_VALUE) -> str:
    """The text, or its beginning and three dots."""
    return text if len(text) <= limit else text[:limit] + " ..."


def shown(value: object) -> str:
    """A wrong value as its author may recognise it."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return printable(shortened(repr(value) if isinstance(value, str) else str(value))).replace("\n", "\\n")
    except (ValueError, RecursionError):  # a number of thousands of digits, tables in tables in tables
        return "(too large to show)"


def shown_path(path: str | Path) -> str:
    """A file's name, its end if it is very long."""
    text = printable(str(path)).replace("\n", "\\n")
    return text if len(text) <= SHOWN_PATH else "... " + text[-SHOWN_PATH:]


def unlike(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name (2)`, `name (3)`, .. that is not taken."""
    numbered = (name if n == 1 else f"{name} ({n})" for n in count(1))
    return next(candidate for candidate in numbered if candidate not in taken)
