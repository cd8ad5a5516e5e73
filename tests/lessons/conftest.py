"""The lessons: notebooks run in this process, the controls where they begin. Skipped without the extra `teach`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LESSONS = Path(__file__).parents[2] / "analysis" / "lessons"
sys.path.insert(0, str(LESSONS))  # where marimo and python look for a notebook's own modules, too


@pytest.fixture(scope="session")
def defs_of() -> Callable[[str], Mapping[str, Any]]:
    """The names that a lesson defines, and their values, after `app.run()`; each lesson runs once."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    from lesson_pages import loaded

    @cache
    def run(name: str) -> Mapping[str, Any]:
        module = loaded(LESSONS / f"{name}.py")
        _, defs = module.app.run()
        return {**vars(module), **defs}

    return run
