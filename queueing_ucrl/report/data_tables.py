"""What a scenario's own log says of its controllers, for the terminal: the section "On the log itself"."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from queueing_ucrl.report import data_words
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.units import Units

SWEPT = "The log itself is tried without a sweep only: take [sweep] out of the scenario for that."


def print_log_study(console: Console, found: dict[str, Any], units: Units) -> None:
    """Controllers on the log, what is recommended, what it earns, and what today's decisions earned."""
    played = found["replay"]
    print_line(console)
    print_words(console, "On the log itself", style="bold")
    print_words(console, data_words.played_words(found, units), style="dim")
    print_line(console)
    table = Table(*data_words.headings(played, units))
    for row in data_words.rows(played):
        table.add(*row)
    table.print(console)
    if words := data_words.as_it_came_words(played):
        print_words(console, words, style="dim")
    print_line(console)
    for words in data_words.refused_words(played):
        print_words(console, words)
    print_words(console, data_words.today_words(played, units))
    print_line(console)
    print_words(console, f"Recommended: {data_words.recommendation(found)}", style="bold")
    for words in data_words.gain_words(found, units):
        print_words(console, words)
