"""Flowcharts written as mermaid, drawn when the site is built: no script, no network.

What is drawn is what architecture.md needs: boxes in rows, the data flowing down, arrows that may carry words.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

BLOCK = re.compile(r"^```mermaid\nflowchart TD\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
BOX = re.compile(r'^\s*(\w+)\["(.*)"\]\s*$')
ARROW = re.compile(r'^\s*(\w+) -->(?:\|"(.*)"\|)? (\w+)\s*$')
WIDTH, HEIGHT, GAP, ROW, MIDDLE = 170, 34, 200, 84, 420  # pixels
LETTER = 7.2  # how wide one is, about

Arrow = tuple[str, str, str]  # from, what it carries, to


def drawn(text: str) -> str:
    """The flowchart as SVG; a line that is neither a box nor an arrow is a ValueError."""
    labels: dict[str, str] = {}
    arrows: list[Arrow] = []
    for line in filter(str.strip, text.splitlines()):
        if box := BOX.match(line):
            labels[box[1]] = box[2]
        elif arrow := ARROW.match(line):
            arrows.append((arrow[1], arrow[2] or "", arrow[3]))
        else:
            raise ValueError(f"not a line of a flowchart that can be drawn: {line}")
    rows = _rows(arrows)
    places = _places(rows, labels)
    height = ROW * (1 + max(rows.values()))
    parts = [_arrow(places, rows, arrow, k) for k, arrow in enumerate(arrows)]
    parts += [_box(*places[name], labels.get(name, name)) for name in rows]
    words = "; ".join(f"{a} to {b}" for a, _, b in arrows)
    return (
        f'<div class="flowchart"><svg role="img" aria-label="{escape(words)}" viewBox="0 0 {2 * MIDDLE} {height}" '
        f'width="{2 * MIDDLE}">{"".join(parts)}</svg></div>'
    )


def _rows(arrows: list[Arrow]) -> dict[str, int]:
    """The row of each box: below all that leads to it."""
    rows = {name: 0 for source, _, target in arrows for name in (source, target)}
    for _ in rows:
        for source, _, target in arrows:
            rows[target] = max(rows[target], rows[source] + 1)
    return rows


def _places(rows: dict[str, int], labels: dict[str, str]) -> dict[str, tuple[float, float, float]]:
    """Middle (x, y) and width of each box."""
    places = {}
    for row in set(rows.values()):
        names = [name for name in rows if rows[name] == row]
        for k, name in enumerate(names):
            x = MIDDLE + (k - (len(names) - 1) / 2) * (WIDTH + GAP)
            places[name] = (x, ROW * (row + 0.5), max(WIDTH, LETTER * len(labels.get(name, name)) + 24))
    return places


def _box(x: float, y: float, width: float, label: str) -> str:
    corner = f'x="{x - width / 2:g}" y="{y - HEIGHT / 2:g}" width="{width:g}" height="{HEIGHT}" rx="6"'
    return f'<rect {corner}/><text x="{x:g}" y="{y + 5:g}" text-anchor="middle">{escape(label)}</text>'


def _arrow(places: dict[str, tuple[float, float, float]], rows: dict[str, int], arrow: Arrow, number: int) -> str:
    """Straight to the next row; around the boxes, left and right in turn, to one further down."""
    source, carries, target = arrow
    (x, y, wide), (to, below, broad) = places[source], places[target]
    if rows[target] - rows[source] == 1:
        y, end = y + HEIGHT / 2, below - HEIGHT / 2
        left = min(x, to) < MIDDLE
        at, level, anchor = (x + to) / 2 + (-14 if left else 8), (y + end) / 2 + 4, "end" if left else "start"
        path, head = f"M{x:g} {y:g}L{to:g} {end - 6:g}", (to, end, 0)
    else:
        aside = x - MIDDLE or to - MIDDLE  # a box that stands aside is left, or reached, on its own side
        side = (1 if number % 2 else -1) if aside == 0 else (1 if aside > 0 else -1)
        x, to = x + side * wide / 2, to + side * broad / 2
        out = MIDDLE + side * 330
        at, level, anchor = out, (y + below) / 2 + 4, "middle"
        path = f"M{x:g} {y:g}C{out:g} {y:g} {out:g} {y:g} {out:g} {(y + below) / 2:g}"
        path += f"S{out:g} {below:g} {to + side * 6:g} {below:g}"
        head = (to, below, 90 * side)
    tip = f'<path class="head" d="M0 0l-5 -9h10z" transform="translate({head[0]:g} {head[1]:g}) rotate({head[2]})"/>'
    words = f'<text class="carries" x="{at:g}" y="{level:g}" text-anchor="{anchor}">{escape(carries)}</text>'
    return f'<path class="arrow" d="{path}"/>{tip}{words}'


def _draw(app: Any, docname: str, text: list[str]) -> None:
    text[0] = BLOCK.sub(lambda block: f"```{{raw}} html\n{drawn(block[1])}\n```", text[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", _draw)
    return {"parallel_read_safe": True}
