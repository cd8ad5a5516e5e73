"""docs/extending.md is true: every example runs as it stands, in a file of its own, and the links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
PRINTED = {
    "A holding cost": r"\(6, 2\).*regret",
    "A law of service": "class 'gold': its service times are not exponential.*reward",
    "Arrivals": r"1\.0+ +admit.*2\.25\d* +block",
    "A learner": r"count-and-hope \(margin=0.0\).*oracle +0\.0",
    "An account": "regret.*thompson +oracle",
    "A column of the event log": "servers_free.*0.* 2",
    "Whether a controller is fit to run": "controller thompson: nothing wrong.*'planned_rates'",
}


def test_every_part_has_its_section():
    assert list(SECTIONS) == list(PRINTED)


@pytest.mark.parametrize("name", SECTIONS)
def test_the_example_runs_as_printed(name, tmp_path):
    """As a stranger's: a file in a folder of its own."""
    (example,) = re.findall(r"```python\n(.*?)```", SECTIONS[name], flags=re.DOTALL)
    (tmp_path / "mine.py").write_text(example, encoding="utf-8")
    run = [sys.executable, "mine.py"]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTED[name], done.stdout, flags=re.DOTALL), done.stdout


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
    for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE):
        assert anchor in {title.lower().replace(" ", "-") for title in SECTIONS}
