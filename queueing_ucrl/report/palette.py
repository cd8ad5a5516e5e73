"""How curves are told apart: by colours that the colour-blind can tell (Okabe and Ito's), and dashes beside them.

Dots are for what curves are measured against: a best, a truth, a law, a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# without their yellow, which is faint on white, and their black, which is for axes and reference lines
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
GREY, PALE, FAINT = "#6b6b6b", "#8a8a8a", "#e3e3e3"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (7, 2, 1, 2), (2.5, 1), (11, 3), (4, 1.5, 1, 1.5, 1, 1.5))
DOTS = (1, 1.5)
MARKS = ("", "o", "s", "^", "D", "x", "*")


@dataclass(frozen=True)
class Look:
    """One curve's colour, dashes and marks."""

    colour: str
    dashes: tuple[float, ...] = ()  # on, off, on, off, ... in line widths; none: a full line
    mark: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """For matplotlib's plot()."""
        style: dict[str, Any] = {"color": self.colour, "linestyle": (0, self.dashes) if self.dashes else "-"}
        return {**style, "marker": self.mark, "markevery": 0.1, "markersize": 4} if self.mark else style


# 7 colours and 6 dashes have no common divisor: neighbours differ in both, and a pair comes again after 42
PAIRS = len(COLOURS) * len(DASHES)
LOOKS = [Look(COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)], MARKS[k // PAIRS]) for k in range(PAIRS * len(MARKS))]


# so that a controller looks the same in every study, page and figure, whoever stands beside it
CONTROLLERS = (
    *("ucrl-ac", "certainty-equivalent", "ucrl-ac-classwise", "oracle", "admit-all", "thompson", "trunk-reservation"),
    *("ucrl-ac-exact", "ucrl2", "ucrl2b", "ucrl3", "kl-ucrl", "psrl", "best-stationary", "oracle-following"),
    *("oracle-anticipating", "day-following", "random", "best-table-found", "fixed-policy", "deadline"),
    *("r-learning", "actor-critic", "salmut", "integer-gradient"),
    *("ucrl-ac-states", "agent"),
)


def controller_looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each controller: its own if it is one of ours, else the first that is free; all different."""
    distinct = list(dict.fromkeys(names))
    mine = {name: LOOKS[k] for k, name in enumerate(CONTROLLERS) if name in distinct}
    free = [look for look in LOOKS if look not in mine.values()]
    others = [name for name in distinct if name not in mine]
    mine |= {name: free[k % len(free)] for k, name in enumerate(others)}
    return {name: mine[name] for name in distinct}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, by its place among those that differ; all different up to a few hundred."""
    distinct = list(dict.fromkeys(names))
    return {name: LOOKS[k % len(LOOKS)] for k, name in enumerate(distinct)}
