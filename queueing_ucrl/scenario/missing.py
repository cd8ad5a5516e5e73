"""Marks for what nobody has said yet: `servers = "?"`.

A log does not tell everything. What it cannot tell stands as "?" in the scenario file that is made from it, and such a
file is refused with a line for each of them: where it is, and what to put there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from queueing_ucrl.scenario.mistakes import Mistake, Place, path_of_keys

MARK = "?"
# by the last keys of the place, the longer first
WANTED: dict[tuple[str, ...], str] = {
    ("environment", "servers"): "how many servers there are in each state, such as [4, 2]",
    ("servers",): "how many servers there are, such as 4",
    ("capacity",): "how many jobs there is room for, waiting or served, such as 20",
    ("service_rate",): "how many jobs one busy server finishes per unit of time, such as 0.25",
    ("arrival_rate",): "how many jobs of this class come per unit of time, such as 1.5",
    ("arrival_rates",): "how many ask to be let in per unit of time, by the number of jobs, such as [2.0, 1.5, 1.0]",
    ("balking",): 'who asks to be let in, such as { kind = "geometric", ratio = 0.8 }',
    ("reward",): "what a job of this class pays, such as 5.0",
    ("reward_at",): 'when it pays: "admission", "start" or "end"',
    ("abandonment_cost",): "what it costs when a job of this class gives up, such as 2.0",
    ("holding_cost",): 'what a wait costs, such as { kind = "linear", rate = 0.1 }',
    ("service",): 'a law of service, such as { kind = "lognormal", mean = 5.0, cv = 1.2 }',
    ("patience",): 'a law of patience, such as { kind = "exponential", rate = 0.2 }',
    ("discipline",): '"fifo" or "processor-sharing"',
    ("horizon",): "up to which time to simulate, such as 1000.0",
    ("trace",): "the file that holds the jobs as they came, beside this one",
    ("begin",): "the time from which on the log was kept, such as 0.0",
    ("end",): "the time up to which the log was kept",
    ("day",): "the period of the clock, such as 24.0",
    ("data",): "a table with the keys trace, begin and end",
    ("kind",): "the kind, as docs/scenarios.md lists them",
    ("name",): "a name",
    ("rate",): "a number per unit of time, such as 0.1",
    ("mean",): "a mean, in the unit of time, such as 5.0",
    ("cv",): "a coefficient of variation, such as 1.0",
}


def marked(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where the marks are, in the order of the file."""
    if value == MARK:
        yield place
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from marked(entry, (*place, key))
    elif isinstance(value, list):
        for k, entry in enumerate(value):
            yield from marked(entry, (*place, k))


def with_marks(tables: dict[str, Any], mistakes: list[Mistake]) -> list[Mistake]:
    """All marks as mistakes, then the others; what else is wrong with a key that is marked is not told."""
    places = list(marked(tables))
    told: list[Mistake] = [
        (place, f'{path_of_keys(place)} = "?" is missing; put there: {wanted(place)}') for place in places
    ]
    keys = [_as_told(place, tables) for place in places]
    return told + [mistake for mistake in mistakes if not any(_within(key, mistake[0]) for key in keys)]


def wanted(place: Place) -> str:
    """What to put in the place of a mark."""
    keys = tuple(part for part in place if isinstance(part, str))
    return next((words for end, words in WANTED.items() if keys[-len(end) :] == end), "a value, see docs/scenarios.md")


def _as_told(place: Place, tables: dict[str, Any]) -> Place:
    """As `load` names the place: one controller needs no number."""
    alone = place[:1] == ("controller",) and isinstance(tables["controller"], list) and len(tables["controller"]) == 1
    return (place[0], *place[2:]) if alone else place


def _within(key: Place, found: Place) -> bool:
    """Whether a mistake is of a marked key; between the parts of its place there may be kinds."""
    rest = iter(found)
    return all(part in rest for part in key)
