"""The README is true: its example runs as printed, its commands and links exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import typer
from typer.testing import CliRunner

from queueing_ucrl.cli import app
from queueing_ucrl.simulation.event_log import EVENTS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_example_works_as_printed():
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue().startswith("24.177")
    assert "(20, 10)" in printed.getvalue()
    assert "oracle" in printed.getvalue()


def test_the_two_commands_stand_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:24])
    assert "python -m pip install -e . && queueing-ucrl run scenarios/quickstart.toml" in first_screen
    assert "python -m pip install -e '.[test]' && python -m pytest" in first_screen
    assert re.search(r"!\[.*\]\(docs/.*\.png\)", first_screen)


def test_every_command_of_the_readme_is_one_of_the_program():
    used = set(re.findall(r"queueing-ucrl ([a-z]+)", README))
    assert used <= set(typer.main.get_command(app).commands)
    for name in used:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


def test_files_that_the_readme_names_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"(scenarios/[\w.-]+\.toml)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_event_log_columns_are_all_told():
    import queueing_ucrl as qu

    queue = qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    events = qu.simulate(queue, "admit-all", horizon=5.0, log=True).events
    section = README.split("## The event log")[1].split("\n## ")[0]
    for name in (*events.columns, *EVENTS):
        assert f"`{name}`" in section
