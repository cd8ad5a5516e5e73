"""Questions on the terminal: each has a default, and is asked again until its answer can be used."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TypeVar

from queueing_ucrl.cli.endings import end, tell
from queueing_ucrl.messages import printable, shown

T = TypeVar("T")
LONGEST_ANSWER = 10_000  # characters


class Asker:
    """Asks, on the error stream, and reads a line for each answer; without `asks` every answer is the default."""

    def __init__(self, asks: bool) -> None:
        self.asks = asks

    def __call__(self, question: str, default: str, read: Callable[[str], T]) -> T:
        """The answer, as `read` makes it of a text; a ValueError of `read` says what would be right."""
        while self.asks:
            sys.stderr.write(printable(f"{question} [{default}]: "))
            sys.stderr.flush()
            line = sys.stdin.readline(LONGEST_ANSWER)
            if not line:
                tell("")
                end("the answers end here, before the last question: nothing was written", 2)
            try:
                return read(line.strip() or default)
            except ValueError as error:
                tell(printable(f"  {error}"))
        return read(default)


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number in these limits."""

    def read(text: str) -> int:
        right = f"must be a whole number from {least} to {most}, got {shown(text)}"
        if len(text) > 20 or not text.isascii() or not text.removeprefix("-").isdecimal():
            raise ValueError(right)
        if not least <= int(text) <= most:
            raise ValueError(right)
        return int(text)

    return read


def number(least: float, most: float, zero: bool = False) -> Callable[[str], float]:
    """A number in these limits, or zero."""

    def read(text: str) -> float:
        right = f"must be a number from {least:g} to {most:g}{', or 0' if zero else ''}, got {shown(text)}"
        try:
            value = float(text)
        except ValueError:
            hint = "; write a point, not a comma" if "," in text else ""
            raise ValueError(right + hint) from None
        if not (math.isfinite(value) and (least <= value <= most or (zero and value == 0.0))):
            raise ValueError(right)
        return value

    return read


def line(longest: int, least: int = 0) -> Callable[[str], str]:
    """A text of one line."""

    def read(text: str) -> str:
        from queueing_ucrl.messages import is_one_line

        if not (least <= len(text) <= longest and is_one_line(text)):
            raise ValueError(f"must be {least} to {longest} printable characters, got {shown(text)}")
        return text

    return read


def names(longest: int, most: int) -> Callable[[str], list[str]]:
    """Different names, with commas between them."""

    def read(text: str) -> list[str]:
        found = [line(longest, 1)(part.strip()) for part in text.split(",")]
        if len(set(found)) < len(found):
            raise ValueError(f"must be names that differ, got {shown(text)}")
        if len(found) > most:
            raise ValueError(f"must be at most {most} names, got {len(found)}")
        return found

    return read
