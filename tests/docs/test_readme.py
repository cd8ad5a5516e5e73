"""The README is one screen, and its links lead somewhere; what it shows is tried in test_code_blocks.py."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_two_commands_stand_on_the_first_screen():
    first_screen = "\n".join(README.splitlines()[:24])
    assert "python -m pip install -e . && queueing-ucrl run scenarios/quickstart.toml" in first_screen
    assert "python -m pip install -e '.[test]' && python -m pytest" in first_screen
    assert re.search(r"!\[.*\]\(docs/.*\.png\)", first_screen)


def test_files_that_the_readme_names_exist():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"(scenarios/[\w.-]+\.toml)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_it_is_one_screen_of_words_and_three_uses():
    assert len(README.splitlines()) <= 70
    uses = README.split("## Three uses")[1].split("\n## ")[0]
    assert len(re.findall(r"^    queueing-ucrl ", uses, flags=re.MULTILINE)) == 3
