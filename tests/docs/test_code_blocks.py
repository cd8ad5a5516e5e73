"""What the pages show is true: Python blocks run and print what they should, commands are ones that the program parses.

Sybil finds the Python blocks; those of a page share their names, and those of extending.md stand each for itself, in a
file of its own. recipes.md, which needs other programs, has tests of its own (test_recipes.py), and so has
gymnasium.md (tests/gymnasium_worlds/test_page.py).
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import queueing_ucrl as qu
from queueing_ucrl.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PROGRAM: Any = typer.main.get_command(app)
SYBIL = Sybil([PythonCodeBlockParser()], path=str(ROOT))
APART = {"recipes.md", "extending.md", "gymnasium.md"}
WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.name not in APART]
PRINTED = {  # what a page's blocks print, all together
    "agents.md": r"regret.* compiled.*everybody",
    "engines.md": "^True$",
    "event-logs.md": r"gold +served.*on the same jobs.*decisions differ.*little True.*conservation: row 101, time",
    "fitting.md": r"service times pass as exponential.*low +high.*5 \(11, 20\).*servers = 5.*arrival_rate = ",
    "formats.md": r"True [0-9]+ jobs",
    "model.md": r"24\.177\d* 24\.177\d* \(20, 10\)",
    "optimise.md": r"\(2, 3\).*Searched\(space='levels'.*admit-all",
    "plots.md": "^regret, policy, beliefs, queue, waits$",
    "report.md": r"^quickstart-results/report\.html$",
    "replay.md": r"turn enquiries away when \d or more.*admit all \d.*recommended \d.*\d to \d",
    "start.md": r"\(20, \d+\).*certainty-equivalent",
    "uses.md": r"^24\.177.*\(20, 10\).*oracle",
    "steady-state.md": r"oracle +arrivals.*earned.*from +to +measure",
}
PARTS = {  # of extending.md, by the heading
    "A holding cost": r"\(6, 2\).*regret",
    "A law of service": "class 'gold': its service times are not exponential.*reward",
    "Arrivals": r"1\.0+ +admit.*2\.25\d* +block",
    "The smallest controller": r"12\.0 +\[8, 0\].*13\.0 +\[8, 8\].*lunch-break +\d",
    "A learner": r"count-and-hope \(margin=0.0\).*oracle +0\.0",
    "An account": "regret.*thompson +oracle",
    "A column of the event log": "servers_free.*0.* 2",
    "Whether a controller is fit to run": "controller thompson: nothing wrong.*'planned_rates'",
}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_blocks_run_and_print_what_they_should(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    printed = io.StringIO()
    document = SYBIL.parse(page)
    document.namespace["__name__"] = "__page__"
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", qu.GuaranteeWarning)
        for example in document.examples():
            example.evaluate()
    assert re.search(PRINTED.get(page.name, "."), printed.getvalue(), flags=re.DOTALL), printed.getvalue()


def parts() -> dict[str, str]:
    """The blocks of extending.md by the headings above them."""
    page = ROOT / "docs" / "extending.md"
    text = page.read_text(encoding="utf-8")
    found = SYBIL.parse(page).examples()
    return {re.findall(r"^## (.*)$", text[: one.region.start], flags=re.MULTILINE)[-1]: one.parsed for one in found}


def test_every_part_of_ones_own_has_its_example() -> None:
    assert list(parts()) == list(PARTS)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_ones_own_works_in_a_file_of_its_own(name: str, tmp_path: Path) -> None:
    """As a stranger's: a file in a folder of its own."""
    (tmp_path / "mine.py").write_text(parts()[name], encoding="utf-8")
    run = [sys.executable, "mine.py"]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(PARTS[name], done.stdout, flags=re.DOTALL), done.stdout


def commands(text: str) -> Iterator[str]:
    """Commands of the program: in lines of their own, one after another, or in a sentence."""
    blocks = re.findall(r"^(?:    |)(?:\$ )?((?:\w+ && |.* && )?queueing-ucrl .*)$", text, flags=re.MULTILINE)
    for line in blocks:
        yield from (part.strip() for part in line.split("&&") if part.strip().startswith("queueing-ucrl "))
    yield from re.findall(r"`(queueing-ucrl [^`\n]+)`", text)


def fault(line: str) -> str:
    """Why the program would not take a command; "" if it would."""
    command, words = PROGRAM, shlex.split(re.split(r" [|>] ", line)[0], comments=True)[1:]
    while hasattr(command, "commands"):
        if words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        elif hasattr(command, "parse_args") and command is not PROGRAM:  # `scenarios` alone is `scenarios list`
            command = command.commands["list"]
        elif words in (["--help"], ["--version"]):
            return ""
        else:
            return f"no command {words[:1]}"
    needed = [p for p in command.params if p.required]
    if (not words and needed) or "--help" in words:  # the command itself is meant
        return ""
    try:
        command.make_context("queueing-ucrl", words)
    except Exception as error:  # of whichever click typer has
        return getattr(error, "message", str(error))
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_ones_that_the_program_takes(page: Path) -> None:
    for line in commands(page.read_text(encoding="utf-8")):
        assert not fault(line), line


def test_a_command_that_is_none_is_found() -> None:
    page = "Text `queueing-ucrl solve x --sevrers 3`.\n\n    queueing-ucrl rum quickstart  # a comment\n"
    assert [bool(fault(line)) for line in commands(page)] == [True, True]
    good = "    queueing-ucrl run quickstart --jobs 8   # a comment\n    queueing-ucrl scenarios copy quickstart\n"
    assert [fault(line) for line in commands(good)] == ["", ""]
