"""The columns and events of the event log are all described, and docs/event-logs.md says the same as the reference."""

from __future__ import annotations

from pathlib import Path

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import EVENTS
from queueing_ucrl.simulation.log_words import COLUMN_WORDS, EVENT_WORDS

PAGE = (Path(__file__).parents[2] / "docs" / "event-logs.md").read_text(encoding="utf-8")


def test_every_event_and_column_is_described() -> None:
    assert tuple(EVENT_WORDS) == tuple(EVENTS)
    classes = [qu.JobClass("a", 1.0, 1.0, service=qu.Exponential(1.0))]
    environment = qu.Environment([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0], servers=[1, 2])
    events = qu.simulate(
        qu.System(2, 3, classes, environment=environment), "admit-all", horizon=5.0, engine="simpy", log=True
    ).events
    assert set(events.columns) <= set(COLUMN_WORDS)
    plain = qu.simulate(
        qu.Queue(1, 2, 1.0, classes=[qu.JobClass("a", 1.0, 1.0)]), "oracle", horizon=5.0, engine="simpy", log=True
    )
    assert list(COLUMN_WORDS)[:12] == list(plain.events.columns)
    assert set(COLUMN_WORDS) - set(plain.events.columns) == {"on_duty", "environment"}


def test_the_page_describes_them_in_the_same_words() -> None:
    for name, words in (*COLUMN_WORDS.items(), *EVENT_WORDS.items()):
        assert f"| `{name}` | {words} |" in PAGE
