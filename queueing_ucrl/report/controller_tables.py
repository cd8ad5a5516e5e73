"""The controllers and their options for the terminal."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console

from queueing_ucrl.learning.catalogue import Entry, Option
from queueing_ucrl.report.layout import PROSE, print_line, print_words, wrapped
from queueing_ucrl.scenario import RECOMMENDED

COLUMN = 22  # where the words begin, if the name leaves room


def print_catalogue(console: Console, entries: list[Entry]) -> None:
    """A line or two each: those for a queue whose rates nobody knows, then those that they are measured against."""
    for heading, knows_rates in (
        ("controllers that are not told the arrival rates", False),
        ("controllers that are told them, to measure the others by", True),
    ):
        chosen = [one for one in entries if one.knows_rates == knows_rates]
        if chosen:
            print_line(console, heading, style="bold")
        for one in chosen:
            _print_pair(console, one.name, one.about + (" Recommended." if one.name == RECOMMENDED else ""))
        if chosen:
            print_line(console)
    print_words(console, "`queueing-ucrl controllers NAME` shows the options of one, with an example.", style="dim")


def print_entry(console: Console, one: Entry) -> None:
    """One controller: what it is, its options, and a table for a scenario."""
    print_words(console, one.name, style="bold")
    print_words(console, one.about)
    print_line(console)
    if one.options:
        print_line(console, "options", style="bold")
    for option in one.options:
        _print_pair(console, option.name, _about(option))
    if not one.options:
        print_line(console, "no options")
    print_line(console)
    print_line(console, "in a scenario", style="bold")
    for line in one.toml.splitlines():
        print_line(console, line)


def _about(option: Option) -> str:
    kind = f"{option.type}, " if option.type else ""
    use = "required" if option.required else "may be left out"
    if not option.required and option.example is not None:
        use = f"default {option.example}"
    return f"{kind}{use}: {option.help}" if option.help else f"{kind}{use}"


def _print_pair(console: Console, name: str, words: str) -> None:
    """A name and its words beside it; a long name has a line of its own."""
    width = min(PROSE, console.width)
    if width < 2 * COLUMN:
        print_line(console, name)
        for line in wrapped(words, width - 4):
            print_line(console, "    " + line)
        return
    first = f"{name}{' ' * (COLUMN - cell_len(name))}"
    if cell_len(name) > COLUMN - 2:
        print_line(console, name)
        first = " " * COLUMN
    for k, line in enumerate(wrapped(words, width - COLUMN)):
        print_line(console, (first if k == 0 else " " * COLUMN) + line)
