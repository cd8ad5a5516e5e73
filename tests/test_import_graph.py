"""Data flows one way: no two rooms of the package import each other, however late or indirectly."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_graph import PACKAGE, Graph, import_graph, mermaid, shortest_cycle, told

from queueing_ucrl.compiled import APART


def without(graph: Graph, pairs: list[tuple[str, str]]) -> Graph:
    return {a: {b: places for b, places in imported.items() if (a, b) not in pairs} for a, imported in graph.items()}


def test_no_room_imports_one_that_imports_it() -> None:
    graph = import_graph()
    cycle = shortest_cycle(graph)
    assert not cycle, f"an import cycle:\n{told(graph, cycle)}"


def test_the_graph_has_the_package_in_it() -> None:
    graph = import_graph()
    assert {"compiled", "model", "solvers", "learning", "simulation", "experiments", "report", "cli"} <= set(graph)
    assert not graph["compiled"]
    assert {"model", "compiled"} <= set(graph["solvers"])
    assert "solvers" not in graph["model"]


def test_nothing_is_compiled_of_what_stands_apart() -> None:
    """Machine code is named after the other rooms alone: they must not import these, nor may these use numba."""
    graph = import_graph()
    rooms = {name if name != "__init__" else PACKAGE.name for name in APART}
    for importer in graph.keys() - rooms:
        for imported, places in graph[importer].items():
            assert imported not in rooms, f"{importer} imports {imported}, which stands apart: {', '.join(places)}"
    for name in APART:
        for path in [PACKAGE / f"{name}.py", *(PACKAGE / name).rglob("*.py")]:
            assert not path.exists() or "numba" not in path.read_text(encoding="utf-8"), path


# ---- the graph itself


def made(folder: Path, **modules: str) -> Path:
    """A package of these modules; `a__b` is the module b in the folder a."""
    for name, text in {"__init__": "", **modules}.items():
        path = folder / "made" / f"{name.replace('__', '/') if name != '__init__' else name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "made"


LATE = "def f():\n    from made.b import x\n"
HINT = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import made.b.c\n"
NAMED = "import importlib\nfrom importlib import import_module\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import made.b", 1),
        ("import os, made.b.c as c", 1),
        ("from made import b", 1),
        ("from made.b import c, d", 1),
        (LATE, 2),
        (HINT, 3),
        ("from ..b import c", 1),
        ("from .. import b", 1),
        (NAMED + "import_module('made.b.c')", 3),
        (NAMED + "importlib.import_module('made.b')", 3),
    ],
)
def test_every_kind_of_import_is_seen_and_placed(tmp_path: Path, text: str, line: int) -> None:
    graph = import_graph(made(tmp_path, a__deep=text, b__c="import os\n", b__d="from made.b import c\n"))
    assert graph == {"made": {}, "a": {"b": [f"a/deep.py:{line}"]}, "b": {}}


def test_names_of_the_package_itself_are_imports_of_its_face(tmp_path: Path) -> None:
    graph = import_graph(made(tmp_path, a="import made\nfrom made import version\nimport maden\n"))
    assert graph == {"made": {}, "a": {"made": ["a.py:1", "a.py:2"]}}


def test_a_cycle_is_found_and_its_imports_are_named(tmp_path: Path) -> None:
    package = made(
        tmp_path, a="import made.b.x", b__x="import made.c", c="def f():\n    import made.a", d="import made.a"
    )
    graph = import_graph(package)
    cycle = shortest_cycle(graph)
    assert cycle == ["a", "b", "c", "a"]
    assert told(graph, cycle) == "a imports b: a.py:1\nb imports c: b/x.py:1\nc imports a: c.py:2"
    assert shortest_cycle(without(graph, [("c", "a")])) == []


def test_the_picture_has_the_arrows_that_do_not_follow_from_others(tmp_path: Path) -> None:
    package = made(tmp_path, a="", b="import made.a", c="import made.a\nimport made.b", d="import made.b")
    assert mermaid(import_graph(package)) == "flowchart TD\n    b --> a\n    c --> b\n    d --> b"
