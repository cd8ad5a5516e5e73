"""A page in a browser, and all that went wrong on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class OpenPage:
    """A page of a file, and all that went wrong on it."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **{"viewport": {"width": 1000, "height": 700}, **options})
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(request.url))
        self.page.goto(file.absolute().as_uri())

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
