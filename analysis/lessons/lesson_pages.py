r"""The lessons as pages: each cell of a notebook is run, and what it shows is laid out by the report's machinery.

A lesson is written once, as a marimo notebook. Its sliders (`mo.ui.slider(steps=[...])`, `mo.ui.dropdown`,
`mo.ui.radio`) become choices that were computed before: a cell that depends on one, however far, is run for each of
its values, and the page shows what belongs to the values chosen. Mathematics becomes MathML. A page holds all it
needs and asks for nothing: it opens from a file.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import quote

from lesson_charts import Picture, Table

from queueing_ucrl.files import write_atomically
from queueing_ucrl.report.charts import CONFIG
from queueing_ucrl.report.html import render, source
from queueing_ucrl.report.page import PageTable, chart_data
from queueing_ucrl.report.vega_bundle import vega

FOLDER = Path(__file__).parent
PAGES = FOLDER / "pages"
OUT = FOLDER / "build"
DOCS = FOLDER.parents[1] / "docs"
TO_DOCS = 'href="../../docs/'  # what a notebook writes, from its own folder
MATHS = re.compile(r'<marimo-tex class="arithmatex">(.*?)</marimo-tex>', re.DOTALL)
MOST_VARIANTS = 30  # of one cell; more would make the page heavy


class LessonError(Exception):
    """A notebook that cannot be made a page, and why."""


@dataclass(frozen=True)
class Control:
    """A slider or a choice of a notebook, with its values."""

    name: str
    label: str  # HTML
    values: Sequence[Any]
    words: Sequence[str]
    default: int
    is_slider: bool


@dataclass(frozen=True)
class Variant:
    """What a cell shows for some values of the controls that it depends on."""

    key: str  # places of the values, as "load:2 servers:0"
    chosen: bool  # whether these are the values that the lesson begins with
    html: Any


@dataclass(frozen=True)
class Part:
    """A cell in a page: what it shows, and its code where a student should see it."""

    variants: Sequence[Variant]
    code: str = ""
    control: Control | None = None

    @property
    def is_chart(self) -> bool:
        """Whether it shows a picture, whose words need not be read out at each move of a slider."""
        return any("<figure" in str(variant.html) for variant in self.variants)


def mathml(text: str) -> str:
    """HTML of marimo's markdown with MathML in the place of its TeX."""
    from latex2mathml.converter import convert

    def one(found: re.Match[str]) -> str:
        tex = html.unescape(found[1]).strip()
        display = tex.startswith("||[")
        made: str = convert(tex[3:-3].strip(), display="block" if display else "inline")
        if "\\" in made:
            raise LessonError(f"latex2mathml does not know all of {tex[3:-3].strip()!r}")
        return f'<div class="display">{made}</div>' if display else made

    return MATHS.sub(one, text)


def control_of(name: str, element: Any) -> Control | None:
    """The control that a value of a notebook is; None: it is none."""
    import marimo as mo

    if isinstance(element, mo.ui.slider):
        if not element.steps:
            raise LessonError(f"slider {name!r}: give it steps=[...], which the page computes before")
        values, words = list(element.steps), [f"{value:,.6g}" for value in element.steps]
    elif isinstance(element, (mo.ui.dropdown, mo.ui.radio)):
        values, words = list(element.options.values()), list(element.options)
    else:
        return None
    label = mathml(mo.md(element._args.label or name).text)
    return Control(name, label, values, words, values.index(element.value), isinstance(element, mo.ui.slider))


class Lesson:
    """A notebook, its cells run for all values of its controls."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = loaded(path)
        self.controls: dict[str, Control] = {}
        self._depends: dict[str, tuple[str, ...]] = {}  # a name: the controls that it depends on
        self._known: dict[tuple[str, tuple[int, ...]], Any] = {}  # a name, and places of their values: its value
        self.parts = list(self._parts())

    @cached_property
    def title(self) -> str:
        """Its first heading."""
        return self._first("h1")

    @cached_property
    def question(self) -> str:
        """Its first line: what a practitioner would ask."""
        return self._first('p|span class="paragraph"')

    def defs(self, **places: int) -> dict[str, Any]:
        """The names of the notebook and their values, the controls at places (those not named: where they begin)."""
        at = {name: places.get(name, control.default) for name, control in self.controls.items()}
        names = {name for name, _ in self._known}
        return {name: self._known[name, self._places(self._depends[name], at)] for name in names}

    def _first(self, tag: str) -> str:
        shown = str(self.parts[0].variants[0].html) if self.parts and self.parts[0].variants else ""
        found = re.search(rf"<({tag})[^>]*>(.*?)</", shown, re.DOTALL)
        if found is None:
            raise LessonError(f"{self.path.name}: its first cell has no heading, or no line below it")
        return html.unescape(re.sub("<[^>]*>", "", found[2])).strip()

    def _parts(self) -> Iterator[Part]:
        """The cells in the order of the file, run; those that show nothing are run too."""
        shared = vars(self.module)
        for data in self.module.app._cell_manager.cell_data():
            cell = data.cell
            if cell is None:
                raise LessonError(f"{self.path.name}: a cell is not valid Python")
            if data.name == "setup":
                continue
            wanted = sorted(name for name in cell.refs if name not in shared and name in self._depends)
            controls = tuple(name for name in self.controls if any(name in self._depends[ref] for ref in wanted))
            variants = list(self._run(cell, wanted, controls))
            made = {name: control_of(name, self._known[name, ()]) for name in cell.defs if not controls}
            control = next((found for found in made.values() if found is not None), None)
            if control is not None:
                self._declare(control)
            code = "" if data.config.hide_code else data.code.strip()
            if code or control is not None or any(variant.html for variant in variants):
                yield Part([variant for variant in variants if variant.html], code, control)

    def _declare(self, control: Control) -> None:
        """From now on its values are what a page can choose."""
        self.controls[control.name] = control
        self._depends[control.name] = (control.name,)
        del self._known[control.name, ()]
        for place, value in enumerate(control.values):
            self._known[control.name, (place,)] = SimpleNamespace(value=value)

    def _places(self, controls: Sequence[str], at: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(at[name] for name in controls)

    def _run(self, cell: Any, wanted: Sequence[str], controls: tuple[str, ...]) -> Iterator[Variant]:
        """A cell for all values of the controls that it depends on; what it defines is kept."""
        ranges = [range(len(self.controls[name].values)) for name in controls]
        if (count := len(list(itertools.product(*ranges)))) > MOST_VARIANTS:
            raise LessonError(f"{self.path.name}: {count} values of {', '.join(controls)}; at most {MOST_VARIANTS}")
        self._depends |= dict.fromkeys(cell.defs, controls)
        for places in itertools.product(*ranges):
            at = dict(zip(controls, places, strict=True))
            refs = {name: self._known[name, self._places(self._depends[name], at)] for name in wanted}
            output, defs = cell.run(**refs)
            for name in cell.defs:
                self._known[name, places] = defs[name]
            key = " ".join(f"{name}:{place}" for name, place in at.items())
            chosen = all(place == self.controls[name].default for name, place in at.items())
            label = f"{self.path.stem}-{len(self._known)}"
            yield Variant(key, chosen, _html_of(output, re.sub(r"\W", "-", label)))


def laid_out(parts: Sequence[Part]) -> Iterator[Part]:
    """Parts as a page shows them: steps of code that show nothing stand with the next one's, in one place."""
    codes: list[str] = []
    for part in parts:
        if codes and not part.code:
            yield Part([], "\n\n\n".join(codes))
            codes = []
        codes += [part.code] if part.code else []
        if part.variants or part.control is not None:
            yield replace(part, code="\n\n\n".join(codes))
            codes = []
    if codes:
        yield Part([], "\n\n\n".join(codes))


def loaded(path: Path) -> ModuleType:
    """A notebook as a module, which runs nothing yet but its imports."""
    spec = importlib.util.spec_from_file_location(f"lesson_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise LessonError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _html_of(output: Any, name: str) -> Any:
    """What a cell shows, for a page."""
    import marimo as mo

    if output is None or isinstance(output, mo.ui.slider | mo.ui.dropdown | mo.ui.radio):
        return ""
    if isinstance(output, Picture):
        return source(render("show.html", PAGES, chart_of=output.named(name), table_of=None, chart_data=chart_data))
    if isinstance(output, Table):
        shown = PageTable(output.caption, [str(heading) for heading in output.frame.columns], output.cells())
        return source(render("show.html", PAGES, chart_of=None, table_of=shown, chart_data=chart_data))
    if type(output).__name__ == "_md":
        return source(mathml(output.text))
    raise LessonError(f"a lesson shows mo.md, a chart or a table, not {type(output).__name__}")


def notebooks() -> list[Path]:
    """The lessons, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def page_of(lesson: Lesson, names: Sequence[tuple[str, str]]) -> str:
    """The page of a lesson; names: file and title of all lessons, for the way to the others."""
    return render(
        "lesson.html",
        PAGES,
        lesson=lesson,
        parts=list(laid_out(lesson.parts)),
        names=names,
        source=source,
        page=f"{lesson.path.stem}.html",
        config=CONFIG,
        style=source("report.css", file=True) + source((PAGES / "lesson.css").read_text("utf-8")),
        script=source("report.js", file=True) + source((PAGES / "lesson.js").read_text("utf-8")),
        vega=source(vega()),
    )


def _way(folder: Path, to: Path) -> str:
    """The link from a page in a folder to a file of the repository."""
    return quote(Path(os.path.relpath(to, folder.resolve())).as_posix())


def build(folder: Path, paths: Sequence[Path] | None = None) -> list[Path]:
    """Make the pages of the lessons, and of all lessons the first page."""
    lessons = [Lesson(path) for path in (notebooks() if paths is None else paths)]
    names = [(f"{lesson.path.stem}.html", lesson.title) for lesson in lessons]
    folder.mkdir(parents=True, exist_ok=True)
    to_docs = f'href="{html.escape(_way(folder, DOCS))}/'
    files = []
    for lesson, (name, _) in zip(lessons, names, strict=True):
        files.append(folder / name)
        write_atomically(files[-1], page_of(lesson, names).replace(TO_DOCS, to_docs).encode())
    first = render(
        "index.html",
        PAGES,
        lessons=[(name, lesson.title, lesson.question) for lesson, (name, _) in zip(lessons, names, strict=True)],
        teaching=_way(folder, FOLDER / "TEACHING.md"),
        style=source("report.css", file=True) + source((PAGES / "lesson.css").read_text("utf-8")),
    )
    write_atomically(folder / "index.html", first.encode())
    return [*files, folder / "index.html"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    about = "Lessons on queues, their control and learning: notebooks in analysis/lessons, and pages made of them."
    parser = argparse.ArgumentParser(prog="python -m analysis.lessons", description=about)
    commands = parser.add_subparsers(dest="command", title="commands", metavar="build")
    make = commands.add_parser("build", help="run all lessons and write a page for each, and index.html")
    make.add_argument("folder", nargs="?", type=Path, default=OUT, help="where to (analysis/lessons/build)")
    wanted = parser.parse_args(arguments)
    if wanted.command is None:
        parser.print_help(sys.stderr)
        return 2
    if wanted.folder.exists() and not wanted.folder.is_dir():
        print(f"{wanted.folder}: not a folder", file=sys.stderr)
        return 2
    began = time.perf_counter()
    try:
        files = build(wanted.folder)
    except (LessonError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(files) - 1} lessons in {time.perf_counter() - began:.0f} s; open {files[-1]}")
    return 0
