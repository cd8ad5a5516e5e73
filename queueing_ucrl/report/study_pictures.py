"""A study's curves and policies in plain characters, below its tables, where they fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.learning.fixed_policies import FixedPolicy, Oracle
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.report.layout import GAP, PROSE, print_line, print_words
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.study_panels import first_of, regret_or_difference, reward_words
from queueing_ucrl.report.tables import PICTURE_WIDTH, print_picture
from queueing_ucrl.simulation.episode_log import row_groups
from queueing_ucrl.solvers.optimum import optimum
from queueing_ucrl.units import Units

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
LONGEST, SHORTEST = 50, 10  # cells of a curve
NARROWEST = 30  # columns in which a policy can be seen
MOST_LINES = 40  # of policies
BEST = "the best policy"


def bars_for(console: Console) -> str:
    """The marks of a curve, from low to high, that the console's encoding has."""
    try:
        BARS.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII_BARS
    return BARS


def scale_of(curves: Iterable[FloatArray]) -> tuple[float, float]:
    """From the least of all values and 0 to the greatest."""
    ends = [float(end) for values in curves for end in (values.min(), values.max())]
    return min(0.0, *ends), max(0.0, *ends)


def sparkline(
    times: FloatArray, values: FloatArray, width: int, bars: str = BARS, scale: tuple[float, float] | None = None
) -> str:
    """The curve from time 0 to its end in so many marks; scale: of the lowest and the highest, else `scale_of` it."""
    at = times[-1] * np.arange(1, width + 1) / width
    curve = np.interp(at, times, values)
    low, high = scale_of([values]) if scale is None else scale
    if not high > low:
        return bars[0] * width
    place = np.floor((curve - low) / (high - low) * len(bars)).astype(int)
    return "".join(bars[k] for k in np.clip(place, 0, len(bars) - 1))


def print_pictures(console: Console, study: Study, point: int, units: Units) -> None:
    """Of one point of a study: what each controller lost in time, and whom it let in at the end."""
    width = min(console.width, PROSE)
    cells = [k for k, cell in enumerate(study.cells) if cell.point == point]
    first = first_of(study, point)
    if study.no_optimum(first):
        heading = units.paid(f"{reward_words(study, first)} minus that of {study.cells[first].name}")
        shown = [k for k in cells if k != first]
    else:
        heading, shown = units.paid("reward lost"), cells
    curves = [
        (study.cells[k].name, study.results[k][0].times, regret_or_difference(study, k, "gap").mean(axis=0))
        for k in shown
    ]
    _print_curves(console, heading, curves, width)
    _print_policies(console, study, cells, width)


def _print_curves(
    console: Console, heading: str, curves: Sequence[tuple[str, FloatArray, FloatArray]], width: int
) -> None:
    """A line a controller: its name, the curve, and its last value; on one scale, so that who lost more is higher."""
    lasts = [number(float(values[-1]), 3) for _, _, values in curves]
    room = width - len(GAP) - max(map(len, lasts), default=0)
    if not curves or room < SHORTEST:
        return
    names = max(cell_len(name) for name, _, _ in curves)
    apart = room - names - len(GAP) < SHORTEST
    length = min(LONGEST, room if apart else room - names - len(GAP))
    print_line(console)
    print_words(console, f"{heading}, in time, all on one scale; and the last value", style="bold")
    scale = scale_of(values for _, _, values in curves)
    for (name, times, values), last in zip(curves, lasts, strict=True):
        if apart:
            print_line(console, name)
        beside = "" if apart else name + " " * (names - cell_len(name)) + GAP
        print_line(console, f"{beside}{sparkline(times, values, length, bars_for(console), scale)}{GAP}{last}")


def last_policy(study: Study, cell: int) -> Policy | None:
    """That of the last episode of the first replication, where it is known; else None.

    Episodes tell the control levels. Of a table that these do not tell all of, whoever keeps to it knows it.
    """
    levels, plain = _last_levels(study, cell)
    if levels is None:
        return None
    if plain:
        return Policy.trunk_reservation(levels, study.cells[cell].system.capacity)
    kept = _kept_policy(study, cell)
    return kept if kept is not None and list(kept.control_levels) == levels else None


def _kept_policy(study: Study, cell: int) -> Policy | None:
    """The table that a controller never changes, if it is such a one."""
    controller, system = study.cells[cell].controller, study.cells[cell].system
    if isinstance(controller, FixedPolicy):
        return None if controller.policy.sees_more else controller.policy
    best = optimum(system)[0] if isinstance(controller, Oracle) else None
    return None if best is None or best.policy.sees_more else best.policy


def _last_levels(study: Study, cell: int) -> tuple[list[int] | None, bool]:
    """(control levels, whether they tell all) of the last episode; (None, False) where there are none."""
    source = study.results[cell][0].episodes
    if not source or getattr(study.cells[cell].controller, "decides_each_arrival", False):
        return None, False
    for rows in deque(source if isinstance(source, tuple) else row_groups(source), maxlen=1):
        levels, plain = (rows.column(name)[-1].as_py() for name in ("control_levels", "trunk_reservation"))
        return levels, bool(plain)
    return None, False


def _print_policies(console: Console, study: Study, cells: Sequence[int], width: int) -> None:
    """Each policy once, with the names of those who had it."""
    if width < NARROWEST:
        return
    system = study.cells[cells[0]].system
    found: dict[Policy, list[str]] = {}
    partly: dict[str, list[int]] = {}
    for k in cells:
        policy, (levels, _) = last_policy(study, k), _last_levels(study, k)
        if policy is not None:
            found.setdefault(policy, []).append(study.cells[k].name)
        elif levels is not None:
            partly[study.cells[k].name] = levels
    if not found and not partly:
        return
    best = None if study.no_optimum(cells[0]) else optimum(system)[0]
    if best is not None:
        found = {best.policy: [], **found}
        found[best.policy].insert(0, BEST)
    print_line(console)
    if (len(found) + len(partly)) * (len(system.classes) + 2) > MOST_LINES:
        print_words(console, "policies of so many classes or controllers are in episodes.parquet", style="dim")
        return
    print_words(
        console,
        "who was let in at the end of the first replication, by the number of jobs in the system (# yes, . no, ~ in "
        "part)",
        style="bold",
    )
    for policy, names in found.items():
        print_words(console, ", ".join(names))
        print_picture(console, system.class_names, policy, width)
    for name, levels in partly.items():
        print_words(console, name)
        _print_partly(console, system.class_names, levels, system.capacity, width)


def _print_partly(console: Console, names: Sequence[str], levels: Sequence[int], capacity: int, width: int) -> None:
    """A table that is known up to the first state in which each class is turned away: beyond, a ?."""
    longest = max(map(cell_len, names))
    apart = width - longest - len(GAP) < SHORTEST
    room = width if apart else width - longest - len(GAP)
    block = -(-capacity // min(PICTURE_WIDTH, room))
    for name, level in zip(names, levels, strict=True):
        marks = "#" * (level // block)
        if level < capacity:
            marks += "~" if level % block else "." if block == 1 else "?"
        marks += "?" * (-(-capacity // block) - len(marks))
        if apart:
            print_line(console, name)
        beside = "" if apart else name + " " * (longest - cell_len(name)) + GAP
        print_line(console, f"{beside}{marks}")
    beyond = "? beyond the first state that turns a class away: episodes do not keep it"
    print_words(console, beyond, style="dim")
