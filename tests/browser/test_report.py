"""Pages in a browser, of studies, fits and searches: every chart is drawn, sliders and pictures move, names are text.

A page is made once, and opened once a view: what only looks at it looks at the same window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import OpenPage
from page_fits import FITS, made_fit, made_search
from page_studies import HOSTILE, LONG_NAMES, TEXTS, made

from queueing_ucrl.report.fit_page import fit_html
from queueing_ucrl.report.optimise_page import optimise_html
from queueing_ucrl.report.study_page import write_pages, write_study_page
from queueing_ucrl.units import Units

PHONE, WIDE = {"width": 360, "height": 640}, {"width": 1000, "height": 700}
pytestmark = pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")


PAGES = (*sorted(TEXTS), *(f"fit {kind}" for kind in FITS), "search plain", "search hostile")
VIEWS = {"wide light": (WIDE, "light"), "phone dark": (PHONE, "dark")}
COMMAND = ["queueing-ucrl", "--name", HOSTILE[0]]


def _page(kind: str, folder: Path) -> Path:
    """The file of a page of a kind."""
    what, _, which = kind.partition(" ")
    if not which:
        return write_study_page(made(kind, folder))
    file = folder / f"{what}-{which}.html"
    if what == "fit":
        file.write_bytes(fit_html(made_fit(which), "calls.toml", "calls.trace.parquet", COMMAND))
    else:
        found = made_search(tuple(HOSTILE[:2])) if which == "hostile" else made_search()
        title = "<img src=x onerror=alert(1)>" if which == "hostile" else "Calls"
        file.write_bytes(optimise_html(title, found, Units("hours", "euros"), COMMAND))
    return file


@pytest.fixture(scope="session")
def page_of(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a kind; made once."""
    folder, known = tmp_path_factory.mktemp("pages"), {}

    def of(kind: str) -> Path:
        if kind not in known:
            known[kind] = _page(kind, folder)
        return known[kind]

    return of


@pytest.fixture(scope="module")
def seen(browser: Any, page_of: Callable[[str], Path]) -> Iterator[Callable[[str, str], OpenPage]]:
    """A page of a kind in one of VIEWS, all its charts drawn; to be looked at, not touched."""
    known: dict[tuple[str, str], OpenPage] = {}

    def of(kind: str, view: str) -> OpenPage:
        if (kind, view) not in known:
            size, scheme = VIEWS[view]
            known[kind, view] = OpenPage(browser, page_of(kind), viewport=size, color_scheme=scheme)
            drawn(known[kind, view].page)
        return known[kind, view]

    yield of
    for page in known.values():
        page.context.close()


def wait_until(page: Any, expression: str) -> None:
    """The page's policy forbids `eval`, so playwright's own waiting does not work there."""
    for _ in range(2400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"in two minutes never true: {expression}")


def settled(page: Any, expression: str) -> Any:
    """What an expression is once it has stayed as it was for a second."""
    before = page.evaluate(expression)
    for _ in range(120):
        page.wait_for_timeout(1000)
        now = page.evaluate(expression)
        if now == before:
            return now
        before = now
    raise AssertionError(f"in two minutes never the same for a second: {expression}")


def drawn(page: Any) -> int:
    """Scroll through the page until all charts are there; how many."""
    missing = page.evaluate("""async () => {
        for (const fold of document.querySelectorAll('details.fold')) fold.open = true;
        const figures = [...document.querySelectorAll('figure.chart')];
        const until = performance.now() + 120000;
        for (const figure of figures) {
            figure.scrollIntoView();
            while (!figure.classList.contains('drawn') && performance.now() < until)
                await new Promise((done) => setTimeout(done, 5));
        }
        return figures.filter((figure) => !figure.classList.contains('drawn')).map((figure) => figure.id);
    }""")
    assert missing == []
    return page.locator("figure.chart").count()


def has_marks(page: Any) -> list[str]:
    """The charts without any mark that is of some size."""
    return page.evaluate("""[...document.querySelectorAll('figure.chart')].filter((figure) =>
        ![...figure.querySelectorAll('.drawing svg .role-mark path, .drawing svg .role-mark line')].some((mark) => {
            const box = mark.getBoundingClientRect();
            return box.width + box.height > 2;
        })).map((figure) => figure.id)""")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", PAGES)
def test_every_page_opens_whole(seen: Callable[[str, str], OpenPage], kind: str, view: str) -> None:
    shown = seen(kind, view)
    assert shown.page.locator("figure.chart").count() >= (3 if kind in ("fit short", "fit plain") else 4)
    assert has_marks(shown.page) == []
    assert shown.overflow() <= 0
    wide = (
        "[...document.querySelectorAll('.drawing svg')].some((svg) => svg.getBoundingClientRect().right > innerWidth)"
    )
    assert not shown.page.evaluate(wide)
    assert shown.wrong == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["learners", "general", "sweep", "fit daily", "fit hostile", "search plain"])
def test_nothing_serious_stands_in_a_readers_way(seen: Callable[[str, str], OpenPage], kind: str, view: str) -> None:
    """The rules of axe-core for pages that everybody can use."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(seen(kind, view).page).response["violations"]
    serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]
    assert serious == []


def test_text_can_be_read_in_the_dark_and_in_print(
    seen: Callable[[str, str], OpenPage], opened: Any, page_of: Callable[[str], Path]
) -> None:
    colour = "getComputedStyle(document.querySelector('.drawing svg .role-axis-label text')).fill"
    found = {view: seen("single", view).page.evaluate(colour) for view in VIEWS}
    assert found == {"wide light": "rgb(27, 27, 27)", "phone dark": "rgb(236, 236, 236)"}
    page = opened(page_of("single"), color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    drawn(page)
    assert page.evaluate(colour) == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_moving_picture_of_a_page_is_printed_dark_on_white(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("learners"), color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    style = "getComputedStyle(document.querySelector('.queue-animation {}')).{}".format
    assert page.evaluate(style("svg text", "fill")) == "rgb(0, 0, 0)"
    assert page.evaluate(style("", "backgroundColor")) == "rgb(255, 255, 255)"
    assert page.evaluate(style(".server", "fill")) in ("rgb(255, 255, 255)", "rgb(238, 238, 238)")
    assert page.evaluate("getComputedStyle(document.querySelector('h2')).breakAfter") == "avoid"


def test_all_charts_come_without_scrolling(opened: Any, page_of: Callable[[str], Path]) -> None:
    """Those far below the window while nothing else is to do: a page that is printed or searched is whole."""
    page = opened(page_of("learners"), viewport={"width": 390, "height": 640}).page
    wait_until(page, "!document.querySelector('figure.chart:not(.drawn)')")
    assert page.evaluate("scrollY") == 0
    assert has_marks(page) == []


def test_a_page_that_is_printed_at_once_is_whole(opened: Any, page_of: Callable[[str], Path]) -> None:
    shown = opened(page_of("learners"))
    at_once = len(shown.page.pdf())
    assert shown.page.locator("figure.chart:not(.drawn)").count() == 0
    assert len(shown.page.pdf()) == at_once


def test_what_was_asked_has_room_on_a_phone(seen: Callable[[str, str], OpenPage]) -> None:
    page = seen("fit daily", "phone dark").page
    rows = page.locator("#tests tbody tr")
    assert rows.count() >= 9
    for row in rows.all():
        box = row.locator("th").nth(1).bounding_box()
        assert box["width"] >= 220
        assert box["height"] < 110  # three lines


def test_points_of_a_sweep_are_folded_and_opened_by_their_link(opened: Any, page_of: Callable[[str], Path]) -> None:
    """A link a point; what is folded is drawn when it is opened, as wide as the page, and what is not is not long."""
    page = opened(page_of("sweep")).page
    links = page.locator("nav a")
    assert links.all_inner_texts() == ["All points", "queue.servers = 1", "queue.servers = 2", "How to run it again"]
    wait_until(page, "!document.querySelector('#sweep figure.chart:not(.drawn)')")
    closed = page.evaluate("document.documentElement.scrollHeight")
    assert closed < 2500
    assert page.locator("details.fold figure.chart.drawn").count() == 0
    links.nth(2).click()
    wait_until(page, "!document.querySelector('#fold-2 figure.chart:not(.drawn)')")
    assert page.locator("#fold-1 figure.chart.drawn").count() == 0
    assert page.evaluate("document.querySelector('#p1-regret-gap .drawing svg').getBoundingClientRect().width") > 500
    assert page.evaluate("document.documentElement.scrollHeight") > closed + 2000


def test_a_folded_page_is_printed_whole(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("sweep")).page
    page.pdf()
    assert page.locator("details.fold:not([open])").count() == 0
    assert page.locator("figure.chart:not(.drawn)").count() == 0


LABELS_TOUCH = """[...document.querySelectorAll('.drawing svg .role-axis-label')].filter((axis) => {
    const texts = [...axis.querySelectorAll('text')].filter((text) => text.textContent);
    const boxes = texts.filter((text) => text.getAttribute('opacity') !== '0')
        .map((text) => text.getBoundingClientRect());
    return boxes.some((a, k) => boxes.some((b, j) => j < k && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
        && Math.min(a.right, b.right) - Math.max(a.left, b.left) > -4));
}).map((axis) => axis.closest('figure').id)"""


@pytest.mark.parametrize("kind", ["learners", "impatient", "drifting"])
def test_marks_of_axes_stand_apart_on_a_phone(seen: Callable[[str, str], OpenPage], kind: str) -> None:
    assert seen(kind, "phone dark").page.evaluate(LABELS_TOUCH) == []


def test_numbers_of_classes_are_seen_on_a_phone(seen: Callable[[str, str], OpenPage]) -> None:
    page = seen("learners", "phone dark").page
    rows = page.locator("#p0-summary table").nth(1).locator("tbody tr:has(td)")
    assert rows.count() == 8
    for row in rows.all():
        box = row.locator("td").nth(2).bounding_box()
        assert box["x"] + box["width"] <= PHONE["width"]


@pytest.mark.parametrize("view", VIEWS)
def test_names_that_begin_alike_can_be_told_beside_an_axis(seen: Callable[[str, str], OpenPage], view: str) -> None:
    page = seen("impatient", view).page
    labels = page.locator("#p0-strip .role-axis-label text")
    told = [" ".join(part.text_content().strip() for part in label.locator("tspan").all()) for label in labels.all()]
    names = [name for name in LONG_NAMES if name in told]
    assert names == list(LONG_NAMES), told


def test_the_slider_moves_the_policy(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("learners")).page
    drawn(page)
    bars = "[...document.querySelectorAll('.stepper svg .role-mark path')].map((bar) => bar.getAttribute('d')).join()"
    page.select_option(".stepper .choice", label="certainty-equivalent")
    wait_until(page, "Number(document.querySelector('.stepper .step').max) > 0")
    before = settled(page, bars)
    words = page.locator(".stepper .seen").inner_text()
    page.focus(".stepper .step")
    page.keyboard.press("Home")
    assert page.locator(".stepper .seen").inner_text() != words
    wait_until(page, f"{bars} !== {before!r}")
    page.keyboard.press("End")
    assert page.locator(".stepper .seen").inner_text() == words
    wait_until(page, f"{bars} === {before!r}")


def test_the_moving_picture_moves(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("learners")).page
    page.focus(".queue-animation")
    before = page.locator(".queue-animation .status").inner_text()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator(".queue-animation .status").inner_text() != before
    jobs = page.locator(".queue-animation g.job").count()
    assert jobs >= 1


def test_keys_that_no_element_has_go_to_the_picture_in_the_window(opened: Any, page_of: Callable[[str], Path]) -> None:
    """Arrows, + and -; what moves the page, such as Home, stays the page's."""
    page = opened(page_of("learners")).page
    status = page.locator(".queue-animation .status")
    before = status.inner_text()
    page.keyboard.press("ArrowRight")  # the picture is far below
    assert status.inner_text() == before
    page.locator(".queue-animation svg").scroll_into_view_if_needed()
    page.keyboard.press("ArrowRight")
    assert status.inner_text() != before
    there = page.evaluate("scrollY")
    page.keyboard.press("Home")
    assert status.inner_text() != before
    wait_until(page, f"scrollY < {there}")


def test_the_queue_in_time_zooms(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("learners")).page
    drawn(page)
    axis = "[...document.querySelectorAll('#p0-queue-0 .role-axis-label text')].map((text) => text.textContent).join()"
    before = page.evaluate(axis)
    page.locator("#p0-queue-0 .drawing svg").scroll_into_view_if_needed()
    box = page.locator("#p0-queue-0 .drawing svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(200)
    assert page.evaluate(axis) == before  # the wheel alone moves the page
    page.locator("#p0-queue-0 .drawing svg").scroll_into_view_if_needed()
    box = page.locator("#p0-queue-0 .drawing svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Shift")
    wait_until(page, f"{axis} !== {before!r}")


def test_a_chart_has_its_words_and_numbers(opened: Any, page_of: Callable[[str], Path]) -> None:
    page = opened(page_of("learners")).page
    figure = page.locator("#p0-regret-gap")
    assert figure.locator(".drawing").get_attribute("aria-label").startswith("Regret, gap")
    figure.locator("summary").click()
    figure.locator("details tbody tr").first.wait_for()
    assert figure.locator("details tbody tr").count() == 4 * 30  # controllers, times
    assert figure.locator("details thead th").all_inner_texts()[0] == "controller"


@pytest.mark.parametrize("kind", ["hostile", "fit hostile", "search hostile"])
def test_names_are_text(opened: Any, page_of: Callable[[str], Path], kind: str) -> None:
    shown = opened(page_of(kind))
    asked: list[str] = []
    shown.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    drawn(shown.page)
    names = HOSTILE[:2] if kind == "search hostile" else HOSTILE
    text = shown.page.locator("body").inner_text()
    assert all(name in text for name in names)
    labels = shown.page.locator(".drawing svg text").all_text_contents()
    assert any(name in label for label in labels for name in names[:3])
    assert shown.page.locator("main img").count() == 0
    assert asked == shown.wrong == []


def test_several_studies_on_one_page(opened: Any, page_of: Callable[[str], Path], tmp_path: Path) -> None:
    folders = [page_of(kind).parent for kind in ("learners", "drifting", "sweep")]
    shown = opened(write_pages(folders, tmp_path / "all.html"), viewport=PHONE)
    assert drawn(shown.page) == 3  # of the drifting study nothing is known to be lost; of the sweep each point has one
    assert has_marks(shown.page) == []
    assert (shown.overflow() <= 0, shown.wrong) == (True, [])
