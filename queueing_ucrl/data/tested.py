"""One line of what was tested: on what, how it came out, and how large the effect is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queueing_ucrl.data.finding import plain


@dataclass(frozen=True)
class Tested:
    """A test, told in words. The size of the effect matters more than p: with enough data every real log fails."""

    what: str  # such as "arrivals are Poisson (Lewis' test, 30 in a window)"
    on: str  # a class, or "all"
    statistic: float
    p_value: float
    verdict: str
    effect: str  # its size, in words
    part: bool = False  # one of several tests of the same, which are also told together

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        data: dict[str, Any] = plain(vars(self))
        return {key: value for key, value in data.items() if key != "part"}


def p_words(p: float) -> str:
    """p < 0.001, p = 0.43."""
    if math.isnan(p):
        return "not tested"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def quoted(names: Sequence[str]) -> str:
    """Names of classes within a sentence: "a", "b" and "c"."""
    marked = [f'"{name}"' for name in names]
    return marked[0] if len(marked) == 1 else f"{', '.join(marked[:-1])} and {marked[-1]}"
