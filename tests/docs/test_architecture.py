"""docs/architecture.md is true: its picture is the import graph, its links lead to the lines they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from import_graph import PACKAGE, Graph, import_graph, imported_names
from source_links import LINK, line_of, mended

ROOT = PACKAGE.parent
PAGE = ROOT / "docs" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
ARROW = re.compile(r'^ +(\w+) -->(?:\|"([\w, ]+)"\|)? (\w+)$', flags=re.MULTILINE)
FRONT = {"__main__", PACKAGE.name}  # `python -m` and the package's own names: not in the picture


def picture() -> tuple[set[str], list[tuple[str, str, str]]]:
    """(modules in the box of leaves, arrows from, carries, to)."""
    (drawn,) = re.findall(r"```mermaid\nflowchart TD\n(.*?)```", TEXT, flags=re.DOTALL)
    (box,) = re.findall(r'^ +leaves\["(.*)"\]$', drawn, flags=re.MULTILINE)
    arrows = ARROW.findall(drawn)
    assert len(arrows) + 1 == len(drawn.strip().splitlines()), "a line of the picture that is no arrow"
    return set(box.split(", ")), arrows


def grouped(graph: Graph, leaves: set[str]) -> dict[str, set[str]]:
    """Who imports whom, the leaves as one."""

    def name(node: str) -> str:
        return "leaves" if node in leaves else node

    found: dict[str, set[str]] = {}
    for importer, imported in graph.items():
        if importer not in FRONT:
            found.setdefault(name(importer), set()).update({name(node) for node in imported} - {name(importer)})
    return found


def reached(arrows: list[tuple[str, str, str]], start: str) -> set[str]:
    """All that the arrows lead to."""
    found, ahead = set(), [start]
    while ahead:
        node = ahead.pop()
        for source, _, target in arrows:
            if source == node and target not in found:
                found.add(target)
                ahead.append(target)
    return found


def test_every_room_and_every_leaf_is_in_the_picture() -> None:
    leaves, arrows = picture()
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == {node for start, _, end in arrows for node in (start, end)} - {"leaves"}
    assert leaves == {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    for room in rooms:
        assert f"**`{room}`**" in TEXT, f"the page does not say what {room} holds"


def test_every_arrow_is_an_import_and_every_import_follows_from_arrows() -> None:
    leaves, arrows = picture()
    graph = grouped(import_graph(), leaves)
    for source, _, target in arrows:
        assert source in graph[target], f"{target} does not import {source}"
    for importer, imported in graph.items():
        for node in imported:
            assert importer in reached(arrows, node), f"{importer} imports {node}, which the picture does not say"


def test_an_arrow_carries_what_is_imported() -> None:
    names = imported_names()
    for source, carries, target in picture()[1]:
        for name in filter(None, carries.split(", ")):
            assert name in names[target, source], f"{target} does not import {name} from {source}"


def test_links_lead_to_the_lines_that_define_what_they_name() -> None:
    assert len(LINK.findall(TEXT)) > 50
    assert mended(TEXT, PAGE.parent) == TEXT, (
        f"python tests/docs/source_links.py {PAGE.relative_to(ROOT)} mends the links"
    )


def test_a_link_stands_beside_the_path_it_leads_to() -> None:
    """In the table of questions: what is read is where it goes."""
    rows = [row for row in TEXT.split("## Where would I")[1].splitlines() if LINK.search(row)]
    assert len(rows) >= 10
    for row in rows:
        said = re.findall(r"`([\w/]+\.py)`", row)
        gone = {path.split("queueing_ucrl/")[1] for _, path, _ in LINK.findall(row)}
        assert gone <= set(said), row


def test_definitions_are_found_by_the_names_they_are_reached_by(tmp_path: Path) -> None:
    module = tmp_path / "made.py"
    module.write_text(
        "A, B = 1, 2\nC: int = 3\n\n\nclass D:\n    e = 4\n\n    @property\n    def f(self):\n        pass\n"
    )
    assert [line_of(module, name) for name in ("A", "B", "C", "D", "D.e", "D.f")] == [1, 1, 2, 5, 6, 9]
    for name in ("f", "D.g", "A.b"):
        with pytest.raises(LookupError, match=rf"made.py defines no {name}"):
            line_of(module, name)
    page = "[`D.f`](made.py#L1) [`f`](other.txt#L1) [made](made.py)"
    assert mended(page, tmp_path) == "[`D.f`](made.py#L9) [`f`](other.txt#L1) [made](made.py)"
