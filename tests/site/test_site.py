"""The documentation site: builds without a warning, no dead link, everything in it, and works from files alone."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(out / "trees"), "docs"]
    done = subprocess.run([*command, str(out / "html")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_no_link_within_the_site_is_dead_and_none_asks_the_network_for_its_look(pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                dead.append(f"{path.name}: {link}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in pages[target].anchors:
                dead.append(f"{path.name}: {link} (no such place)")
    assert not dead, "\n".join(dead[:20])


def test_every_page_is_in_the_navigation(site: Path, pages: dict[Path, Page]) -> None:
    links = set(pages[site / "index.html"].links)
    reference = [f"reference/{path.stem}" for path in (ROOT / "docs" / "reference").glob("*.md")]
    assert len(reference) > 10
    assert {f"{name}.html" for name in [*PAGES, *reference]} - {"index.html"} <= links


def test_every_name_key_column_command_and_controller_is_in_the_reference(pages: dict[Path, Page]) -> None:
    import typer

    from queueing_ucrl import __all__ as names
    from queueing_ucrl.cli import app
    from queueing_ucrl.learning.registry import OWN
    from queueing_ucrl.scenario.key_words import KEY_WORDS
    from queueing_ucrl.simulation.log_words import COLUMN_WORDS

    anchors = set().union(*(page.anchors for page in pages.values()))
    text = {path.stem: html.unescape(page.text) for path, page in pages.items() if path.parent.name == "reference"}
    modules = {"__version__", "plot"}
    assert {f"queueing_ucrl.{name}" for name in set(names) - modules} <= anchors
    gym = pytest.importorskip("queueing_ucrl.gym")
    assert "TablePolicy" in vars(gym)
    for name, thing in vars(gym).items():
        if name[0] != "_" and getattr(thing, "__module__", "").startswith("queueing_ucrl"):
            assert f"queueing_ucrl.gym.{name}" in anchors, name
    assert not re.search(r"[A-Z]\w*Table\b|{'", re.sub("<[^>]*>", "", text["scenario-keys"]))  # names of the inside
    for key in {key for words in KEY_WORDS.values() for key in words}:
        assert f">{key}</span>" in text["scenario-keys"], key
    for name in COLUMN_WORDS:
        assert f">{name}</span>" in text["event-log"], name
    for name in OWN:
        assert f"<h2>{name}<" in text["controllers"], name
    for name, command in typer.main.get_command(app).commands.items():
        assert f"<h2>queueing-ucrl {name}<" in text["commands"]
        for option in [one for p in command.params for one in p.opts if one.startswith("--")]:
            assert option in text["commands"], option


def test_it_works_from_files_without_a_network(site: Path) -> None:
    sync = pytest.importorskip("playwright.sync_api")
    from shutil import which

    if which("chromium") is None:
        pytest.skip("no chromium")
    with sync.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.goto((site / "search.html").as_uri() + "?q=trunk")
        found = page.locator("#search-results li")  # one comes after the other
        found.filter(has_text="TrunkReservation").first.wait_for()
        page.goto((site / "search.html").as_uri() + "?q=lesson")
        page.locator("#search-results li").filter(has_text="Lessons, to learn and to teach").first.wait_for()
        page.set_viewport_size({"width": 390, "height": 800})
        for path in sorted(site.rglob("*.html")):  # on a telephone only boxes scroll to the side, never the page
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path.name
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto((site / "architecture.html").as_uri())
        assert page.locator(".flowchart svg rect").count() >= 11
        assert page.locator(".flowchart text", has_text="simulation").first.is_visible()
        assert not faults
        browser.close()
