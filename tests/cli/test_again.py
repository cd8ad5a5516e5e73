"""The command on a page makes the same page again."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_studies import TEXTS
from typer.testing import CliRunner

from queueing_ucrl.cli import app
from queueing_ucrl.experiments.stored import StoredStudy
from queueing_ucrl.report.study_page import study_page


def test_a_page_with_waits_and_a_queue_is_made_again_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--log decides what the page shows; where results lie and how many processes there were do not."""
    monkeypatch.chdir(tmp_path)
    Path("single.toml").write_text(TEXTS["single"], encoding="utf-8")
    given = ["run", "single.toml", "--log", "--out", "out", "--jobs", "1", "--no-report"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    study = StoredStudy.at(Path("out"))
    assert study.command == ["queueing-ucrl", "run", "single.toml", "--log"]
    again = next(section for section in study_page(study).sections if section.name == "again")
    assert again.code[0] == "queueing-ucrl run single.toml --log --out FOLDER"
    assert "put a folder for the new results in the place of FOLDER" in again.words[0]
