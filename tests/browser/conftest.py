"""Headless Chromium, without a network; tests are skipped where it or playwright is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import OpenPage

# no sandbox: tests may run as root in a container; no traffic of the browser's own
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """A function that opens a file, with options of the window."""
    pages: list[OpenPage] = []

    def open_file(file: Path, **options: Any) -> OpenPage:
        pages.append(OpenPage(browser, file, **options))
        return pages[-1]

    yield open_file
    for page in pages:
        page.context.close()
