"""Studies that are made once for all tests of pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from page_studies import made


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a study of a kind; tests that change it take a copy."""
    folder, known = tmp_path_factory.mktemp("studies"), {}

    def of(kind: str) -> Path:
        if kind not in known:
            known[kind] = made(kind, folder)
        return known[kind]

    return of
