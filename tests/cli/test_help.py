"""--help of every command: as it was written, and in 80 columns."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from queueing_ucrl.cli import app

PROGRAM = typer.main.get_command(app)
COMMANDS = list(PROGRAM.commands)
LINES = [[], *([name] for name in COMMANDS), *(["scenarios", name] for name in PROGRAM.commands["scenarios"].commands)]
EPILOGS = {name: command.epilog for name, command in PROGRAM.commands.items() if command.epilog}


def help_of(*command: str) -> list[str]:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    return result.stdout.splitlines()


def test_most_commands_explain_their_results():
    assert {"solve", "run", "compare", "reproduce", "controllers"} <= EPILOGS.keys()


@pytest.mark.parametrize("command", EPILOGS)
def test_notes_are_printed_line_by_line_as_written(command):
    written = [line for line in EPILOGS[command].splitlines() if line != "\b"]
    while not written[-1]:
        written.pop()
    shown = help_of(command)
    while not shown[-1]:
        shown.pop()
    assert [line.removeprefix("  ") for line in shown[-len(written) :]] == written
    assert len(written) > (2 if command == "new" else 5)  # the others explain what --json holds, line by line


@pytest.mark.parametrize("command", LINES, ids=" ".join)
def test_help_fits_into_80_columns(command):
    lines = help_of(*command)
    assert max(map(len, lines)) <= 80
    assert "\b" not in "".join(lines)


def test_every_command_is_listed_with_a_line():
    lines = help_of()
    for name in COMMANDS:
        assert any(line.split()[:1] == [name] and len(line.split()) > 2 for line in lines), name
