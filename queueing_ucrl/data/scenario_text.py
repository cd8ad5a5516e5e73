"""The scenario file that a fit gives: TOML with a comment on every number that says where it comes from.

Numbers have six significant digits. What a log cannot tell and nobody said stands as "?", which the loader refuses with
a line of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from queueing_ucrl.model.batches import BatchSizes, EmpiricalSizes, FixedSizes
from queueing_ucrl.model.laws import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Pareto,
    Uniform,
    Weibull,
)
from queueing_ucrl.scenario.missing import MARK

DIGITS = 6
WIDTH = 116  # of comments


def rounded(value: float, digits: int = DIGITS) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits}g}")


def law_table(law: Law) -> dict[str, Any]:
    """A law as it stands in a scenario file."""
    match law:
        case Exponential():
            numbers: dict[str, Any] = {"rate": rounded(law.rate)}
        case Deterministic():
            numbers = {"value": rounded(law.value)}
        case Erlang():
            numbers = {"mean": rounded(law.mean), "stages": law.stages}
        case Gamma() | HyperExponential() | LogNormal() | Weibull():
            numbers = {"mean": rounded(law.mean), "cv": rounded(law.cv)}
        case Pareto():
            numbers = {"mean": rounded(law.mean), "shape": rounded(law.shape)}
        case Empirical():
            numbers = {"values": [rounded(value) for value in law.values.tolist()]}
        case Uniform():
            numbers = {"low": rounded(law.low), "high": rounded(law.high)}
        case _:
            raise TypeError(f"a scenario file has no law {type(law).__name__}")
    return {"kind": law.kind, **numbers}


def sizes_value(sizes: BatchSizes) -> Any:
    """The sizes of batches as they stand in a scenario file: a number, a list, or a table."""
    match sizes:
        case FixedSizes():
            return sizes.size
        case EmpiricalSizes():
            return list(sizes.values)
        case _:
            return {"kind": sizes.kind, "mean": rounded(sizes.mean)}


def toml_value(value: Any) -> str:
    """A value as TOML: numbers, words, lists, tables in a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "inf" if value > 0 else "-inf" if value < 0 else "nan"
        text = repr(value)
        return text if "." in text or "e" in text else f"{text}.0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else toml_value(key)


def comment_lines(words: str) -> list[str]:
    """Words as comments, broken between words."""
    lines, line = [], "#"
    for word in words.split():
        if len(line) + 1 + len(word) > WIDTH and line != "#":
            lines.append(line)
            line = "#"
        line = f"{line} {word}"
    return [*lines, line]


@dataclass
class Block:
    """A table of the file: its keys in order, each with comments above it."""

    heading: str  # "queue", "class"; "" for the top
    many: bool = False  # whether it is one of several: [[class]]
    entries: list[tuple[str, Any, tuple[str, ...]]] = field(default_factory=list)
    about: tuple[str, ...] = ()

    def put(self, key: str, value: Any, *comments: str) -> None:
        """A key with its value; floats are rounded by who gives them."""
        self.entries.append((key, value, comments))

    def has(self, key: str) -> bool:
        """Whether there is such a key."""
        return any(name == key for name, _, _ in self.entries)

    def missing(self, key: str, wanted: str) -> None:
        """A mark in place of a value that nobody has said yet."""
        self.put(key, MARK, wanted)

    def text(self) -> str:
        """As TOML."""
        lines = [line for words in self.about for line in comment_lines(words)]
        if self.heading:
            lines.append(f"[[{self.heading}]]" if self.many else f"[{self.heading}]")
        for key, value, comments in self.entries:
            lines += [line for words in comments for line in comment_lines(words)]
            lines.append(f"{_key(key)} = {toml_value(value)}")
        return "\n".join(lines) + "\n"


def tables_of(blocks: Iterable[Block]) -> dict[str, Any]:
    """What a reader of the text finds."""
    tables: dict[str, Any] = {}
    for block in blocks:
        content = {key: value for key, value, _ in block.entries}
        if not block.heading:
            tables.update(content)
        elif block.many:
            tables.setdefault(block.heading, []).append(content)
        else:
            tables[block.heading] = content
    return tables


def text_of(blocks: Iterable[Block]) -> str:
    """The whole file."""
    return "\n".join(block.text() for block in blocks)


def outward(begin: float, end: float) -> tuple[float, float]:
    """The same stretch, never shorter, the first rounded down, the second up: to six decimals, and to nine digits of
    its length where it is short.
    """
    span = Decimal(end) - Decimal(begin)
    grain = Decimal(1).scaleb(min(-6, span.adjusted() - 9))
    exact = Context(prec=200)  # digits from 1e50 down to the grain of a short stretch
    first = Decimal(begin).quantize(grain, ROUND_FLOOR, exact)
    last = Decimal(end).quantize(grain, ROUND_CEILING, exact)
    return float(first), float(last)
