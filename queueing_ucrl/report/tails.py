"""What bad luck costs: quantiles over replications, beside the means wherever controllers are ranked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queueing_ucrl.report.numbers import number

LOST = {"median": "50%", "q90": "90%", "q99": "99%"}  # the worst are the largest
EARNED = {"median": "50%", "q10": "10%", "q01": "1%"}  # the worst are the smallest
TELLS = 100  # replications from which on the outermost quantile is more than the worst of them


def tail_headings(*, lost: bool) -> list[str]:
    """What the columns are called."""
    return list((LOST if lost else EARNED).values())


def tail_cells(spread: Mapping[str, Any], *, lost: bool) -> list[str]:
    """The quantiles of an account in a study's summary; nothing where an older version wrote none."""
    return [number(spread.get(name)) for name in (LOST if lost else EARNED)]


def tail_words(count: int, *, lost: bool) -> str:
    """What they are, and how far they can be trusted."""
    names = ", ".join(tail_headings(lost=lost)).replace("%,", ",")
    few = ""
    if count < TELLS:
        few = f"; of {count:,} the outermost is hardly more than the worst of them"
    return f"{names}: quantiles over the replications, that share of which {'lost' if lost else 'earned'} no more{few}"
