"""docs/gymnasium.md is true: its example runs as it stands, in a file of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

ROOT = Path(__file__).parents[2]


def test_the_example_runs_as_printed(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gymnasium.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "mine.py").write_text(example, encoding="utf-8")
    run = [sys.executable, "mine.py"]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(run, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^earned 2\d\.\d per unit of time; the best would 24\.2\n2\d\.\d per unit.*64 worlds$", done.stdout
    )
