"""Links from a page to the lines of the sources: `python tests/docs/source_links.py docs/architecture.md` mends them.

A link is written [`World.arrive`](../queueing_ucrl/simulation/world.py#L115), by the name's way from its module.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

LINK = re.compile(r"\[`([\w.]+)`\]\(([^)#]+\.py)#L(\d+)\)")


def line_of(module: Path, name: str) -> int:
    """Where `name` (a class, a function, `Class.method` or a variable) is defined in a module."""
    body: list[ast.stmt] = ast.parse(module.read_text(encoding="utf-8")).body
    line = 0
    for part in name.split("."):
        found = [node for node in body if part in _defined(node)]
        if not found:
            raise LookupError(f"{module.name} defines no {name}")
        line, body = found[0].lineno, getattr(found[0], "body", [])
    return line


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    match node:
        case ast.ClassDef(name) | ast.FunctionDef(name):
            return {name}
        case ast.Assign(targets):
            return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        case ast.AnnAssign(ast.Name(name)):
            return {name}
    return set()


def mended(text: str, folder: Path) -> str:
    """The page with every link at the line where its name is defined; links are relative to `folder`."""
    return LINK.sub(lambda link: f"[`{link[1]}`]({link[2]}#L{line_of(folder / link[2], link[1])})", text)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(mended(page.read_text(encoding="utf-8"), page.parent), encoding="utf-8")
