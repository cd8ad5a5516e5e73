"""Who imports whom in the package, from its sources: `python tests/import_graph.py` prints the picture in Mermaid.

The nodes are the package's folders and its top-level modules. An import counts wherever it stands: at the top, inside a
function, for type checkers only, relative, or by `import_module` with a name written out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "queueing_ucrl"

Graph = dict[str, dict[str, list[str]]]  # importer, imported, and the places of the imports, "model/system.py:19"


def import_graph(package: Path = PACKAGE) -> Graph:
    """The imports between the nodes of `package`. The package's own `__init__.py` is a node of the package's name."""
    graph: Graph = {_node(package, name): {} for name, _ in _modules(package)}
    for importer, node, where, _ in _crossing(package):
        places = graph[importer].setdefault(node, [])
        if where not in places:
            places.append(where)
    return graph


def imported_names(package: Path = PACKAGE) -> dict[tuple[str, str], set[str]]:
    """What one node takes from another by name: {("report", "experiments"): {"Study", ...}}."""
    names: dict[tuple[str, str], set[str]] = {}
    for importer, node, _, target in _crossing(package):
        names.setdefault((importer, node), set()).add(target.rpartition(".")[2])
    return names


def _modules(package: Path) -> list[tuple[str, Path]]:
    """(full name, path) of every module."""
    paths = sorted(package.rglob("*.py"))
    return [(".".join((package.name, *path.relative_to(package).with_suffix("").parts)), path) for path in paths]


def _crossing(package: Path) -> Iterator[tuple[str, str, str, str]]:
    """(importer, imported, place, full name) of every import between two nodes."""
    for name, path in _modules(package):
        importer, place = _node(package, name), path.relative_to(package).as_posix()
        for line, target in _imports(ast.parse(path.read_text(encoding="utf-8")), name):
            node = _node(package, target)
            if target.split(".")[0] == package.name and node != importer:
                yield importer, node, f"{place}:{line}", target


def _imports(tree: ast.AST, importer: str) -> Iterator[tuple[int, str]]:
    """(line, full name) of every import in a module."""
    for part in ast.walk(tree):
        match part:
            case ast.Import(names):
                yield from ((part.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module, names, level):
                parents = importer.split(".")[:-level] if level else []
                home = ".".join([*parents, module] if module else parents)
                yield from ((part.lineno, f"{home}.{alias.name}") for alias in names)
            case ast.Call(
                ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                [ast.Constant(str(name)), *_],
            ):
                yield part.lineno, name


def _node(package: Path, module: str) -> str:
    """The folder or top-level module that `module` (or a name in it) belongs to; else the package itself."""
    for name in module.split(".")[1:2]:
        if name != "__init__" and ((package / name).is_dir() or (package / f"{name}.py").is_file()):
            return name
    return package.name


def shortest_cycle(graph: Graph) -> list[str]:
    """The nodes of a shortest cycle, the first of them again at the end; empty if there is none."""
    cycles = [path for node in sorted(graph) if (path := _way(graph, node, node))]
    return min(cycles, key=len, default=[])


def _way(graph: Graph, start: str, end: str) -> list[str]:
    """A shortest way of at least one import; empty if there is none."""
    ways, reached = [[start]], set()
    for way in ways:
        for node in sorted(graph.get(way[-1], {})):
            if node == end:
                return [*way, node]
            if node not in reached:
                reached.add(node)
                ways.append([*way, node])
    return []


def told(graph: Graph, cycle: list[str]) -> str:
    """A cycle in words, with the places of its imports."""
    return "\n".join(f"{a} imports {b}: {', '.join(graph[a][b])}" for a, b in pairwise(cycle))


def mermaid(graph: Graph) -> str:
    """A graph without cycles as a Mermaid flowchart, without the arrows that follow from others."""
    lines = ["flowchart TD"]
    for importer, imported in sorted(graph.items()):
        for node in sorted(imported):
            others = {importer: {other: [] for other in imported if other != node}}
            if not _way({**graph, **others}, importer, node):
                lines.append(f"    {importer} --> {node}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(mermaid(import_graph()))
