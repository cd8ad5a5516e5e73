"""The moving picture in a browser: it plays, steps, seeks, obeys the keyboard, and shows names as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generators import random_system

import queueing_ucrl as qu
from queueing_ucrl.report.animation import animation_page, player_data, stretch_of

HOSTILE = ["<script>alert(1)</script>", "</style>", "{{7*7}}", "\"quotes'", "\u05e9\u05dc\u05d5\u05dd"]
PHONE, WIDE = {"width": 360, "height": 640}, {"width": 1000, "height": 700}


def page_of(system: qu.System, folder: Path, seed: int = 1) -> tuple[Path, dict[str, Any]]:
    horizon = 200 / system.total_arrival_rate
    events = qu.simulate(system, "admit-all", horizon=horizon, seed=seed, log=True).events
    stretch = stretch_of([events], 0.3 * horizon, horizon)
    file = folder / f"{seed}.html"
    file.write_text(animation_page(stretch, "title", "about", "hours"), "utf-8")
    return file, player_data(stretch, "hours")


def small_queue() -> qu.Queue:
    classes = [qu.JobClass(name, 0.6, 1.0) for name in HOSTILE]
    return qu.Queue(2, 8, 1.0, classes, patience=qu.Exponential(0.2))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_plays_pauses_steps_and_seeks(opened: Any, tmp_path: Path, scheme: str) -> None:
    file, data = page_of(small_queue(), tmp_path)
    shown = opened(file, color_scheme=scheme)
    page = shown.page
    status = page.locator(".status")
    page.keyboard.press("Home")
    began = status.inner_text()
    assert f"{sum(server == -1 for *_, server in data['start']['jobs'])} waiting" in began

    page.click(".play")
    page.wait_for_function("began => document.querySelector('.clock').textContent !== began", arg=began)
    page.click(".play")
    page.wait_for_function("began => document.querySelector('.status').textContent !== began", arg=began)

    page.focus(".queue-animation")
    page.keyboard.press("Home")
    assert status.inner_text() == began
    page.keyboard.press("ArrowRight")
    assert status.inner_text() != began
    page.keyboard.press("ArrowLeft")
    assert status.inner_text() == began
    page.keyboard.press("End")
    level = data["events"]["level"][-1]
    assert page.locator("g.job").count() >= level
    page.keyboard.press("Home")
    pace = page.locator(".pace").input_value()
    page.keyboard.press("+")
    assert float(page.locator(".pace").input_value()) > float(pace)

    page.locator(".seek").evaluate("seek => { seek.value = 500; seek.dispatchEvent(new Event('input')) }")
    assert status.inner_text() != began
    assert shown.wrong == []


def test_on_a_page_of_its_own_it_has_all_keys(opened: Any, tmp_path: Path) -> None:
    """Nothing needs to be clicked first, and the focus may be lost again; a click on Play leaves Space to play."""
    file, _ = page_of(small_queue(), tmp_path)
    shown = opened(file)
    page, status = shown.page, shown.page.locator(".status")
    page.keyboard.press("Home")
    began = status.inner_text()
    page.keyboard.press("ArrowRight")
    assert status.inner_text() != began
    page.keyboard.press("Home")
    assert status.inner_text() == began
    page.keyboard.press("Space")
    assert page.locator(".play").inner_text() == "Pause"
    page.keyboard.press("Space")
    assert page.locator(".play").inner_text() == "Play"
    page.click(".play")
    assert page.evaluate("document.activeElement.className") == "play"
    page.keyboard.press("Space")
    assert page.locator(".play").inner_text() == "Play"
    page.click("h1")
    page.keyboard.press("End")
    assert str(shown.page.locator(".seek").input_value()) == "1000"
    assert shown.wrong == []


def test_it_ends_where_the_log_ends_whatever_the_way_there(opened: Any, tmp_path: Path) -> None:
    """Step by step and at once, on systems of every kind: the same words."""
    for number in range(6):
        system = random_system(np.random.default_rng([17, number]), coarse=number % 2 == 0)
        file, data = page_of(system, tmp_path, number)
        shown = opened(file)
        page = shown.page
        page.focus(".queue-animation")
        page.keyboard.press("End")
        at_once = page.locator(".status").inner_text()
        page.keyboard.press("Home")
        page.evaluate(
            """(count) => {
                const root = document.querySelector('.queue-animation');
                for (let k = 0; k < count; k++)
                    root.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
            }""",
            len(set(data["events"]["time"])) + 1,
        )
        assert page.locator(".status").inner_text() == at_once
        assert shown.wrong == []


def test_names_are_shown_as_text(opened: Any, tmp_path: Path) -> None:
    file, _ = page_of(small_queue(), tmp_path)
    shown = opened(file)
    texts = shown.page.locator("svg text").all_text_contents()
    for name in HOSTILE:
        assert any(name[:20] in text for text in texts)
    shown.page.click("summary")
    shown.page.locator("tbody tr").first.wait_for()
    assert shown.page.locator("tbody tr").count() > 100
    assert shown.wrong == []


def test_it_fits_a_phone_and_can_do_without_motion(opened: Any, tmp_path: Path) -> None:
    file, _ = page_of(small_queue(), tmp_path)
    shown = opened(file, viewport=PHONE, reduced_motion="reduce")
    assert shown.overflow() <= 0
    shown.page.click(".forward")
    assert "still" in shown.page.locator(".queue-animation").get_attribute("class")
    assert shown.wrong == []


TEXT_HEIGHTS = """[...document.querySelectorAll('.queue-animation svg text')].map((text) => {
    const matrix = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
})"""


@pytest.mark.parametrize("width", [320, 360, 390, 600, 739, 800, 1000])
def test_its_text_can_be_read_in_any_window(opened: Any, tmp_path: Path, width: int) -> None:
    """At least 10 pixels high, none outside of the picture, none over another."""
    file, _ = page_of(small_queue(), tmp_path)
    shown = opened(file, viewport={"width": width, "height": 800})
    heights = shown.page.evaluate(TEXT_HEIGHTS)
    assert len(heights) > 10
    assert min(heights) >= 10.0
    outside = """(() => {
        const all = document.querySelector('.queue-animation svg').getBoundingClientRect();
        const boxes = [...document.querySelectorAll('.queue-animation svg text')].filter((text) => text.textContent)
            .map((text) => text.getBoundingClientRect());
        const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5;
        const beyond = (box) => Math.max(all.left - box.left, box.right - all.right, box.bottom - all.bottom) > 1;
        return [boxes.filter(beyond).length,
            boxes.filter((a, k) => boxes.some((b, j) => j < k && over(a, b))).length];
    })()"""
    assert shown.page.evaluate(outside) == [0, 0]
    assert shown.overflow() <= 0


def test_another_width_shows_the_same_moment(opened: Any, tmp_path: Path) -> None:
    file, _ = page_of(small_queue(), tmp_path)
    shown = opened(file, viewport=WIDE)
    page = shown.page
    before = page.locator(".status").inner_text(), page.locator("g.job").count()
    page.set_viewport_size(PHONE)
    page.wait_for_function("document.querySelector('.queue-animation.narrow svg').viewBox.baseVal.width < 500")
    assert (page.locator(".status").inner_text(), page.locator("g.job").count()) == before
    assert shown.wrong == []


def test_words_keep_up_with_the_picture_and_are_read_out_when_it_stands(opened: Any, tmp_path: Path) -> None:
    file, _ = page_of(small_queue(), tmp_path)
    page = opened(file).page
    page.click(".play")
    page.wait_for_function("began => document.querySelector('.clock').textContent !== began", arg="0")
    for _ in range(5):
        clock, words, live = page.evaluate(
            "['.clock', '.status'].map((name) => document.querySelector(name).textContent)"
            ".concat(document.querySelector('.status').getAttribute('aria-live'))"
        )
        assert (words.startswith(f"Time {clock} hours"), live) == (True, "off")
        page.wait_for_timeout(50)
    page.click(".play")
    assert page.locator(".status").get_attribute("aria-live") == "polite"


def test_it_opens_on_a_moment_with_most_jobs_and_plays_from_the_beginning(opened: Any, tmp_path: Path) -> None:
    file, data = page_of(small_queue(), tmp_path)
    page = opened(file).page
    classes = len(data["classes"])
    assert page.locator("g.job").count() - classes == max(data["events"]["level"][:-1])
    there = float(page.locator(".seek").input_value())
    page.click(".play")
    page.click(".play")
    assert there > 100.0
    assert float(page.locator(".seek").input_value()) < there
    zero = page.locator("line.zero").get_attribute("y1")
    assert float(zero) > 0.0


@pytest.mark.parametrize("selector", ["body", ".queue-animation", ".queue-animation .server:not(.busy)"])
def test_it_is_printed_dark_on_white(opened: Any, tmp_path: Path, selector: str) -> None:
    """Whatever the scheme of the window."""
    file, _ = page_of(small_queue(), tmp_path)
    page = opened(file, color_scheme="dark").page
    page.keyboard.press("Home")
    page.emulate_media(media="print", color_scheme="dark")
    style = "getComputedStyle(document.querySelector({!r})).{}".format
    assert page.evaluate(style(selector, "fill" if "server" in selector else "backgroundColor")) == "rgb(255, 255, 255)"
    assert page.evaluate(style(".queue-animation svg text", "fill")) == "rgb(0, 0, 0)"
    assert page.evaluate(style("h1", "color")) == "rgb(0, 0, 0)"
