"""How curves are told apart: by colours that the colour-blind can tell (Okabe and Ito's), and dashes beside them.

Dots are for what curves are measured against: a best, a truth, a law, a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


# so that a controller looks the same in every study, page and figure, whoever stands beside it: its colour, and which
# of DASHES; those that are often compared differ in colour
_OWN: dict[str, dict[str, int]] = {
    BLUE: {"ucrl-ac": 0, "ucrl-ac-exact": 1, "integer-gradient": 4},
    VERMILION: {"certainty-equivalent": 1, "day-following": 3, "salmut": 0},
    GREEN: {"ucrl-ac-classwise": 2, "ucrl2": 0, "r-learning": 4, "fixed-policy": 5},
    PURPLE: {"oracle": 3, "oracle-following": 0, "oracle-anticipating": 1, "kl-ucrl": 5},
    ORANGE: {"admit-all": 4, "psrl": 0, "ucrl-ac-states": 5, "agent": 1, "actor-critic": 2},
    SKY: {"thompson": 5, "ucrl2b": 1, "random": 2},
    GREY: {"trunk-reservation": 0, "ucrl3": 1, "best-stationary": 2, "best-table-found": 3, "deadline": 4},
}
KIND_LOOKS = {name: Look(hue, DASHES[k]) for hue, kinds in _OWN.items() for name, k in kinds.items()}
CONTROLLERS = tuple(KIND_LOOKS)
OF_A_HUE = 3  # looks of a kind's variants in its own colour; more of them could hardly be told apart


def kind_of(name: str) -> str:
    """The registered controller that a name begins with, as `thompson, doubling` does; "" if there is none."""
    ours = (kind for kind in KIND_LOOKS if name == kind or name.startswith((f"{kind},", f"{kind} ")))
    return max(ours, key=len, default="")


def controller_looks(names: Iterable[str], kinds: Mapping[str, str] | None = None) -> dict[str, Look]:
    """A look for each controller; all different.

    A controller of ours has its own look, and one that was given another name has it, too, where `kinds` says what it
    is (name: registered name); the first of several variants, if none goes by the registered name itself. The others
    have its colour in other dashes, then colours that nobody has.
    """
    distinct = list(dict.fromkeys(names))
    told = {name: (kinds or {}).get(name, "") for name in distinct}
    kind = {name: told[name] if told[name] in KIND_LOOKS else kind_of(name) for name in distinct}
    found = {name: KIND_LOOKS[name] for name in distinct if name in KIND_LOOKS and kind[name] == name}
    for name in distinct:
        if kind[name] and name not in found and KIND_LOOKS[kind[name]] not in found.values():
            found[name] = KIND_LOOKS[kind[name]]
    for name in distinct:
        if name not in found:
            found[name] = _free(found, [other for other in found if kind[name] and kind[other] == kind[name]])
    return {name: found[name] for name in distinct}


def _free(found: Mapping[str, Look], alike: Sequence[str]) -> Look:
    """A look that nobody has: of the variants' colour while they are few, else of a colour not in use, else any."""
    used = set(found.values())
    taken = {look.colour for look in used}
    reserved = set(KIND_LOOKS.values())
    hue = found[alike[0]].colour if alike else ""
    near = sum(found[name].colour == hue for name in alike) < OF_A_HUE
    choices = (
        (look for look in LOOKS if near and look.colour == hue and look not in reserved),
        (look for look in LOOKS if look.colour not in taken and look not in reserved),
        iter(LOOKS),
    )
    return next(look for some in choices for look in some if look not in used)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, by its place among those that differ; all different up to a few hundred."""
    distinct = list(dict.fromkeys(names))
    return {name: LOOKS[k % len(LOOKS)] for k, name in enumerate(distinct)}
