"""The page of every scenario of the folder, of a short study: it opens whole, wide and light, narrow and dark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser_page import OpenPage
from test_report import drawn, has_marks, wait_until

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.report.study_page import write_study_page

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))
JOBS = 150.0  # that come, about, in a replication
OF_EACH_KIND = ("call-centre-day", "lunch-counter", "network-bursts", "rush-hours", "spot-cluster")
PHONE = {"width": 360, "height": 640}
pytestmark = pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")


@pytest.fixture(scope="module")
def page_of(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The page of a short study of a scenario, with event logs; made once."""
    folder, known = tmp_path_factory.mktemp("scenarios"), {}

    def of(file: Path) -> Path:
        if file not in known:
            scenario = qu.load_scenario(file)
            horizon = JOBS / scenario.system.total_arrival_rate
            settings = replace(scenario.settings, horizon=horizon, replications=2, grid_points=20)
            short = replace(scenario, settings=settings, controllers=scenario.controllers[:3])
            run_scenario(short, folder / file.stem, log=True, jobs=1)
            known[file] = write_study_page(folder / file.stem)
        return known[file]

    return of


def serious(page: Any) -> list[tuple[str, str]]:
    """What axe-core finds serious, where it is installed."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        return []
    found = Axe().run(page).response["violations"]
    return [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]


def check_whole(shown: OpenPage) -> None:
    drawn(shown.page)
    assert has_marks(shown.page) == []
    assert (shown.overflow() <= 0, shown.wrong) == (True, [])


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_the_page_of_every_scenario_opens_whole(opened: Any, page_of: Callable[[Path], Path], file: Path) -> None:
    """Without a network: all charts, no word of the console, no overflow; the picture and the policy's slider move."""
    shown = opened(page_of(file))
    page = shown.page
    check_whole(shown)
    if file.stem in OF_EACH_KIND:
        assert serious(page) == []
    assert page.locator("figure.chart").count() >= 4
    title = qu.load_scenario(file).title
    assert title in page.locator("h1").inner_text()
    status = page.locator(".queue-animation .status")
    before = status.inner_text()
    page.locator(".queue-animation svg").scroll_into_view_if_needed()
    page.keyboard.press("ArrowRight")  # nothing has the focus
    assert status.inner_text() != before
    slider = page.locator(".stepper .step")
    if slider.count() and slider.first.is_enabled():
        words = page.locator(".stepper .seen").first
        last = words.inner_text()
        slider.first.focus()
        page.keyboard.press("Home")
        assert words.inner_text() != last
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wide = (
        "[...document.querySelectorAll('.drawing svg')].some((svg) => svg.getBoundingClientRect().right > innerWidth)"
    )
    wait_until(page, f"!{wide}")
    check_whole(shown)
