"""Where the values at the ends of curves stand: beside them, none over another."""

from __future__ import annotations

from collections.abc import Sequence


def apart(places: Sequence[float], least: float, most: float) -> list[float]:
    """Places in [0, most] moved until they are `least` apart, in the same order, as far up as down where there is room.

    Halfway between the places moved up only and those moved down only: both are `least` apart, and so is their mean.
    """
    order = sorted(range(len(places)), key=lambda k: places[k])
    up = [places[k] for k in order]
    down, last = list(up), len(up) - 1
    for j in range(1, len(up)):
        up[j] = max(up[j], up[j - 1] + least)
        down[last - j] = min(down[last - j], down[last - j + 1] - least)
    found = {}
    for j, k in enumerate(order):
        middle = max(0.5 * (up[j] + down[j]), j * least)
        found[k] = min(middle, most - (last - j) * least)
    return [found[k] for k in range(len(places))]
