"""The screenshots of docs/report.md and docs/fitting.md, taken in Chromium of pages that today's code makes.

    python analysis/screenshots.py [--out docs]

It needs the extra `browser` and a `chromium`; the study of the quickstart takes a minute.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.data.synthetic import synthetic_log, write_log

FIT = ["--time", "came", "--class", "kind", "--start", "begun", "--end", "done", "--decision", "decided"]
COLUMNS = {"time": "came", "job_class": "kind", "start": "begun", "end": "done", "decision": "decided"}
COLOURS = 256  # of a picture: fewer, and thin lines lose theirs


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


def taken(page: Any, path: Path, **options: Any) -> None:
    """What is seen of a page, in few colours."""
    picture = Image.open(BytesIO(page.screenshot(**options)))
    picture.convert("RGB").quantize(COLOURS).save(path, optimize=True)


def opened(browser: Any, page: Path, width: int, height: int) -> Any:
    """A page with all its charts drawn."""
    found = browser.new_page(viewport={"width": width, "height": height})
    found.goto(page.absolute().as_uri())
    while found.locator("figure.chart:not(.drawn)").count():
        found.wait_for_timeout(50)
    return found


def command(*words: str | Path) -> None:
    app([*map(str, words)], standalone_mode=False)


def study(browser: Any, work: Path, out: Path) -> None:
    """The beginning of a report."""
    command("run", "quickstart", "--out", work / "quickstart")
    taken(opened(browser, work / "quickstart" / "report.html", 1000, 1560), out / "report.png")


def animation(browser: Any, work: Path, out: Path) -> None:
    """A moment of an hour at the lunch counter, some steps of the keyboard after its beginning."""
    command(
        "run", "lunch-counter", "--horizon", 200, "--replications", 2, "--log", "--no-report", "--out", work / "lunch"
    )
    log = next((work / "lunch").rglob("events/*/ucrl-ac-states/000000.parquet"))
    command("animate", log, "--from", 60, "--to", 120, "--out", work / "moving.html")
    page = opened(browser, work / "moving.html", 900, 640)
    page.keyboard.press("Home")
    for _ in range(58):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    taken(page, out / "animation.png")


def fits(browser: Any, work: Path, out: Path) -> None:
    """The beginning of a fit's page, and its picture of a crowd."""
    log = synthetic_log(qu.load_scenario("lunch-counter").system, jobs=6000, controller="admit-all", seed=3)
    write_log(log, work / "lunch.csv", unit="minutes", columns=COLUMNS)
    command("fit", work / "lunch.csv", *FIT, "--like", "lunch-counter", "--no-figure")
    page = opened(browser, work / "lunch.report.html", 1000, 1200)
    taken(page, out / "report-fit.png")
    page.locator("#crowd").scroll_into_view_if_needed()
    box = page.locator("#crowd").bounding_box()
    taken(page, out / "fit-crowd.png", full_page=True, clip={**box, "y": box["y"] + page.evaluate("scrollY")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--only", choices=("study", "animation", "fits"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        for make in (study, animation, fits):
            if options.only in (None, make.__name__):
                make(browser, Path(work), options.out)


if __name__ == "__main__":
    main()
