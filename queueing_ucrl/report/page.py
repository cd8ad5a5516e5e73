"""What a page of results is made of: sections of words, charts, tables; and the page as one HTML file.

A page holds everything it needs (Vega, the data, the player of moving pictures) and asks for nothing: it opens from a
file, without a network, and may be sent to somebody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from queueing_ucrl.report.charts import CONFIG, DATA, Chart
from queueing_ucrl.report.html import render, source
from queueing_ucrl.report.vega_bundle import vega

LONGEST_NAME = 24  # characters; longer entries in a column of names are sentences


@dataclass(frozen=True)
class PageTable:
    """A small table; the first columns are names, the others numbers as words."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    grouped: bool = False  # the first names stand on rows of their own, so that numbers have room on a phone

    @property
    def wide(self) -> list[bool]:
        """Of each column of names whether it holds sentences, which need more room than names."""
        return [any(len(row[k]) > LONGEST_NAME for row in self.rows) for k in range(self.names)]


@dataclass(frozen=True)
class Stepper:
    """A slider in front of a chart: at each step the chart shows the rows of that step, and words say what is seen."""

    label: str
    chart: Chart
    steps: Sequence[dict[str, Any]]  # each: who (one of `choices`), step (as in the chart's data), words
    choices: Sequence[str]


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    name: str  # an anchor; no user's text
    title: str
    words: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[PageTable] = ()
    stepper: Stepper | None = None
    wide: bool = False  # a chart a row
    animation: str = ""  # HTML of `report.animation`
    code: Sequence[str] = ()  # lines to copy
    data: str = ""  # long text to be opened: how the study is defined
    data_title: str = "Everything that determines the numbers"
    notes: Sequence[str] = ()  # small print
    fold: str = ""  # sections of one fold follow each other, and are opened together; its title


@dataclass(frozen=True)
class Page:
    """A page: a title, what was run in a sentence, what it means, and the sections."""

    title: str
    sentence: str
    meaning: Sequence[str]
    sections: Sequence[Section]
    warnings: Sequence[str] = field(default_factory=tuple)  # such as: the study is not finished

    @property
    def parts(self) -> list[tuple[str, list[Section]]]:
        """The sections, those of a fold together with its title."""
        return [(title, list(sections)) for title, sections in groupby(self.sections, key=lambda one: one.fold)]


def chart_data(chart: Chart) -> dict[str, Any]:
    """What the page's script is given of a chart."""
    return {"spec": chart.spec, "name": DATA, "data": chart.data, "headings": dict(chart.headings)}


def page_html(page: Page) -> str:
    """The page as one file; the same bytes for the same page."""
    drawn = any(section.charts or section.stepper for section in page.sections)
    moves = any(section.animation for section in page.sections)
    return render(
        "report.html",
        page=page,
        chart_data=chart_data,
        config=CONFIG,
        style=source("report.css", file=True),
        script=source("report.js", file=True),
        vega=source(vega()) if drawn else "",
        player_style=source("animation.css", file=True) if moves else "",
        player=source("animation.js", file=True) if moves else "",
        as_it_is=source,
    )
