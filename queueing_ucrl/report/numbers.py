"""Numbers for people, the same in every table and figure.

A mean and the half-width of its interval have the same decimals, as many as show two significant digits of the
half-width, and never fewer than the units. Thousands are separated; where a number is too large or too small to be
read so, a power of ten stands behind it (behind both, if there is an interval): (1.234 ±0.056)e12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

LARGEST_PLAIN, SMALLEST_PLAIN = 1e9, 1e-4  # beyond these by powers of ten
MOST_DECIMALS = 6  # with more, by powers of ten too, where that is shorter
NOISE = 1e-14  # an interval smaller than this part of the mean is rounding error

NOTHING = "-"


def _power(value: float) -> int:
    """The power of ten of the first digit: 2 for 123, -3 for 0.00123."""
    return Decimal(abs(value)).adjusted()


def _plain(values: Sequence[float], last: int) -> list[str]:
    """To the digit of 10^last, and to the units at least."""
    return [f"{Decimal(value):,.{max(0, -last)}f}" for value in values]


def _by_power(values: Sequence[float], last: int) -> tuple[list[str], str]:
    """To the digit of 10^last, the power of ten of the largest taken out."""
    power = _power(max(map(abs, values)))
    return [f"{Decimal(value).scaleb(-power):.{max(0, power - last)}f}" for value in values], f"e{power}"


def _aligned(values: Sequence[float], last: int) -> tuple[list[str], str]:
    """The values to the digit of 10^last, plain where that can be read or is no longer than by a power of ten."""
    plain, (short, power) = _plain(values, last), _by_power(values, last)
    if max(map(abs, values)) < LARGEST_PLAIN and -last <= MOST_DECIMALS:
        return plain, ""
    return (plain, "") if len("".join(plain)) <= len("".join((*short, power))) else (short, power)


def _without_minus_zero(words: str) -> str:
    return words.removeprefix("-") if not words.strip("-0.,") else words


def number(value: float | None, digits: int = 4) -> str:
    """A number by itself, to so many significant digits (but to the units, if it is of a readable size)."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value) or value == 0:
        return f"{value:.0f}"
    last = _power(value) - digits + 1
    if SMALLEST_PLAIN <= abs(value) < LARGEST_PLAIN:
        (words,), power = _plain([value], last), ""
    else:
        words, exponent = f"{value:.{digits - 1}e}".split("e")
        power = f"e{int(exponent)}"
    return (words.rstrip("0").rstrip(".") if "." in words else words) + power


def percent(share: float | None, digits: int = 3) -> str:
    """A share of one as a percentage; one that would need a power of ten is only said to be small."""
    if share is not None and 0.0 < 100.0 * share < SMALLEST_PLAIN:
        return "<0.01%"
    return NOTHING if share is None or math.isnan(share) else f"{number(100.0 * share, digits)}%"


def with_interval(mean: float | None, half: float | None) -> str:
    """A mean and the half-width of its interval; the mean alone where there is none (a single replication)."""
    if mean is None or math.isnan(mean):
        return NOTHING
    if half is None:
        return number(mean, 6)
    if not (math.isfinite(mean) and math.isfinite(half)):
        return f"{number(mean, 6)} ±{number(half, 2)}"
    if half <= NOISE * abs(mean):
        return f"{number(mean, 6)} ±0"
    (first, second), power = _aligned([mean, half], _power(half) - 1)
    words = f"{_without_minus_zero(first)} ±{second}"
    return f"({words}){power}" if power else words


def tick_labels(values: Sequence[float]) -> list[str]:
    """The marks of an axis, all with the same decimals: as many as tell one from the next."""
    steps = [b - a for a, b in pairwise(values) if b > a]
    size = max(map(abs, values), default=0.0)
    if not steps or size == 0:
        return [number(value) for value in values]
    step = min(steps)
    last = _power(step)
    fine = step / 10.0**last
    if abs(fine - round(fine)) > 1e-3:  # marks at steps of 2.5
        last -= 1
    words, power = _aligned(values, last)
    return [
        "0" if abs(value) < 1e-9 * step else _without_minus_zero(text) + power
        for value, text in zip(values, words, strict=True)
    ]
