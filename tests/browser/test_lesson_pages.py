"""The pages of the lessons in a browser: without a network; choices change what is seen, answers are hidden."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import OpenPage
from test_report import drawn, has_marks

LESSONS = Path(__file__).parents[2] / "analysis" / "lessons"
NAMES = sorted(path.stem for path in LESSONS.glob("[0-9][0-9]_*.py"))
VIEWS = {"wide light": ({"width": 1000, "height": 700}, "light"), "phone dark": ({"width": 360, "height": 640}, "dark")}
HIDE = "[...document.querySelectorAll('.variant[hidden]')].forEach((part) => part.remove())"


@pytest.fixture(scope="session")
def built(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, made once, with all choices."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    sys.path.insert(0, str(LESSONS))
    from lesson_pages import build

    folder = tmp_path_factory.mktemp("lessons")
    build(folder)
    return folder


@pytest.fixture
def page(browser: Any, built: Path, name: str) -> Iterator[OpenPage]:
    shown = OpenPage(browser, built / f"{name}.html")
    yield shown
    shown.context.close()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_every_lesson_opens_whole(opened: Any, built: Path, name: str, view: str) -> None:
    size, scheme = VIEWS[view]
    shown = opened(built / f"{name}.html", viewport=size, color_scheme=scheme)
    shown.page.evaluate(HIDE)  # those are drawn when they are chosen
    assert drawn(shown.page) >= 2
    assert has_marks(shown.page) == []
    assert shown.page.locator("math").count() >= 10
    assert not any(sign in shown.page.locator("main").inner_text() for sign in ("||(", "||[", "\\lambda", "$"))
    assert shown.page.locator("marimo-tex").count() == 0
    assert (shown.overflow() <= 0, shown.wrong) == (True, [])


@pytest.mark.parametrize("name", NAMES)
def test_choices_change_what_is_seen_by_keyboard(page: OpenPage, name: str) -> None:
    shown = "[...document.querySelectorAll('.variant:not([hidden])')].map((part) => part.dataset.key).join()"
    slider = page.page.locator(".control input").first
    before = page.page.evaluate(shown)
    slider.focus()
    moves = page.page.locator(".control").first.locator("input")
    backward = slider.get_attribute("type") == "range" and slider.input_value() == slider.get_attribute("max")
    page.page.keyboard.press("ArrowLeft" if backward else "ArrowRight")
    after = page.page.evaluate(shown)
    assert (moves.count() >= 1, after != before, after.count(",") == before.count(",")) == (True, True, True)
    page.page.evaluate(HIDE)
    drawn(page.page)
    assert (has_marks(page.page), page.wrong) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_hidden_until_asked_for(page: OpenPage, name: str) -> None:
    answers = page.page.locator("details:not(.code):not(.numbers)")
    assert answers.count() == 3
    for k in range(3):
        assert not answers.nth(k).locator(".paragraph").first.is_visible()
        answers.nth(k).locator("summary").click()
        assert answers.nth(k).locator(".paragraph").first.is_visible()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_serious_stands_in_a_readers_way(opened: Any, built: Path, name: str, view: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    size, scheme = VIEWS[view]
    shown = opened(built / f"{name}.html", viewport=size, color_scheme=scheme)
    found = axe.Axe().run(shown.page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")] == []


def test_the_first_page_leads_to_all(opened: Any, built: Path) -> None:
    shown = opened(built / "index.html")
    targets = shown.page.locator("main ol a").evaluate_all("links => links.map((link) => link.getAttribute('href'))")
    assert targets == [f"{name}.html" for name in NAMES]
    assert all((built / target).is_file() for target in targets)
    assert (shown.overflow() <= 0, shown.wrong) == (True, [])
