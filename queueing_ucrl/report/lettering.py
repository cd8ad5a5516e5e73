"""Text in figures: drawn as it is written, in whatever script, if this machine has a font for it.

A character that no font here has would be drawn as an empty box; its code is written in its place, and a warning says
so once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import matplotlib

from queueing_ucrl.errors import LetteringWarning
from queueing_ucrl.report.layout import wrapped

FAMILY = "DejaVu Sans"  # comes with matplotlib
PREFERRED = ("Noto Sans", "Source Han Sans")  # before other fonts that have the character


@cache
def _characters(path: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a file that is no font, or gone
        return frozenset()


@cache
def _fallbacks() -> tuple[tuple[str, str], ...]:
    """(family, file) of the upright fonts of this machine, always in the same order."""
    from matplotlib.font_manager import fontManager

    upright = {
        (font.name, font.fname)
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in (400, "normal", "regular") and "LastResort" not in font.fname
    }

    def rank(font: tuple[str, str]) -> tuple[bool, str, str]:
        return (not font[0].startswith(PREFERRED), *font)

    return tuple(sorted(upright, key=rank))


def _families(text: str) -> tuple[list[str], set[str]]:
    """The fonts that are needed for a text, and the characters that none has."""
    from matplotlib.font_manager import FontProperties, findfont

    own = _characters(findfont(FontProperties(family=FAMILY)))
    missing = {c for c in text if ord(c) not in own and c != "\n"}
    families = [FAMILY]
    for family, path in _fallbacks() if missing else ():
        found = {c for c in missing if ord(c) in _characters(path)}
        if found:
            families.append(family)
            missing -= found
        if not missing:
            break
    return families, missing


class Lettering:
    """The texts of one figure, ready to be drawn."""

    def __init__(self, missing: set[str]) -> None:
        self.missing = missing

    def __call__(self, text: str, width: int | None = None) -> str:
        """The text for matplotlib: no part of it is mathematics; in lines of at most `width` cells."""
        shown = "".join(c.encode("ascii", "backslashreplace").decode() if c in self.missing else c for c in text)
        if width is not None:
            shown = "\n".join(wrapped(shown, width))
        return shown.replace("$", r"\$")


@contextmanager
def lettering(texts: Iterable[str]) -> Iterator[Lettering]:
    """While a figure is made and saved: fonts for all these texts."""
    families, missing = _families("".join(texts))
    if missing:
        shown = "".join(sorted(missing)[:20])
        warnings.warn(
            f"no font of this machine has {shown}: the figure shows the characters' codes; install a font that has "
            "them, such as Noto Sans CJK",
            LetteringWarning,
            stacklevel=4,
        )
    with matplotlib.rc_context({"font.family": families}):
        yield Lettering(missing)
