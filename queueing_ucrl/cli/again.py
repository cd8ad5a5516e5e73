"""The command that was given, as it can be given again: for pages, which are sent to others."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import typer

PROGRAM = "queueing-ucrl"
# what changes nothing that is computed, only where it goes and how it is told
OF_THIS_TIME = ("as_json", "force", "no_report", "report", "figure", "jobs", "cluster", "measures", "out")


def given_command(context: typer.Context, left_out: Collection[str] = OF_THIS_TIME) -> list[str]:
    """The words of the command under way: what was said on the command line, files by their names alone.

    Where files lie, how many processes there were and the like is of one machine, and left out.
    """
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in left_out or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            arguments += map(_word, values)
        elif isinstance(value, bool):
            options.append(parameter.opts[0] if value else (parameter.secondary_opts or parameter.opts)[0])
        else:
            options += [word for one in values for word in (parameter.opts[0], _word(one))]
    return [PROGRAM, str(context.info_name), *arguments, *options]


def _word(value: Any) -> str:
    """A value as it is typed; of a file its name."""
    # a scenario may be a name, and older versions of typer hold a list of files as the words that were given
    if isinstance(value, Path) or (isinstance(value, str) and (value.endswith(".toml") or os.sep in value)):
        return Path(value).name
    if isinstance(value, float):
        return f"{value:.17g}" if float(f"{value:g}") != value else f"{value:g}"
    return str(value)
