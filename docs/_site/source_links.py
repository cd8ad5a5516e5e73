"""Links from pages to files outside docs/, such as ../queueing_ucrl/model/system.py#L180: they lead to the file itself.

Every file that a page links to becomes a page of its own in the site, each line with an anchor, so that the site works
without a network and without a clone.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[2]
FOLDER = "_code"  # of the site
LINK = re.compile(r"\]\((\.\./[^)#\s]+)(?:#([\w.-]+))?\)")
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width"><style>{style}
body {{ margin: 1em; background: #fff; color: #222; font-family: sans-serif; }} pre {{ font-size: 14px; }}
h1 {{ overflow-wrap: anywhere; }} .highlight {{ overflow-x: auto; }}
:target {{ background: #ffec99; display: inline-block; width: 100%; }}</style></head>
<body><h1>{name}</h1>{code}</body></html>
"""


def _lead_to_sources(app: Any, docname: str, text: list[str]) -> None:
    """Links that leave docs/ go to the pages that `_write_sources` makes."""
    up = "../" * docname.count("/")

    def led(link: re.Match[str]) -> str:
        where = Path(ROOT, "docs", docname).parent.joinpath(link[1]).resolve().relative_to(ROOT)
        if where.parts[:1] == ("docs",):
            return link[0]
        path, place = where.as_posix(), link[2]
        if (ROOT / path).is_dir():
            path += "/index"
        elif not (ROOT / path).is_file():
            raise ValueError(f"{docname}: {link[0]} leads to no file")
        app.env.linked_sources.add(path)
        return f"](source:{up}{FOLDER}/{path}.html#{place or 'L1'})"

    text[0] = LINK.sub(led, text[0])


def _list_others(app: Any, docname: str, text: list[str]) -> None:
    """In index.md `? page` stands for a page if it is there, and `? *` for all that no list names: none is missing."""
    if docname != "index":
        return
    pages = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index")
    text[0] = re.sub(r"^\? (?!\*)(.*)$", lambda one: one[1] if one[1] in pages else "", text[0], flags=re.MULTILINE)
    lists = re.findall(r"```\{toctree\}\n(.*?)```", text[0], flags=re.DOTALL)
    named = [line.strip() for part in lists for line in part.splitlines() if line.strip() != "? *"]
    others = [page for page in pages if not any(fnmatch(page, name) for name in named)]
    text[0] = text[0].replace("? *", "\n".join(others))


def _begin(app: Any) -> None:
    if not hasattr(app.env, "linked_sources"):
        app.env.linked_sources = set()


def _lexer(path: str) -> Any:
    try:
        return get_lexer_for_filename(path)
    except ClassNotFound:
        return TextLexer()


def _content(path: Path) -> str:
    """A file's text; of a folder (`folder/index`) the names in it."""
    if path.name == "index" and path.parent.is_dir():
        return "\n".join(sorted(one.name for one in path.parent.iterdir() if one.name[0] not in "._"))
    return path.read_text(encoding="utf-8")


def _write_sources(app: Any, failure: Exception | None) -> None:
    """A page for each file that is linked."""
    if failure is not None or app.builder.format != "html":
        return
    formatter = HtmlFormatter(lineanchors="L", linenos="inline", nowrap=False)
    for path in sorted(app.env.linked_sources):
        if not (ROOT / path).exists() and not path.endswith("/index"):
            continue  # linked when the pages were built before
        code = highlight(_content(ROOT / path), _lexer(path), formatter)
        code = re.sub(r'<a id="L-(\d+)" name="L-\d+"', r'<a id="L\1"', code)
        target = Path(app.outdir, FOLDER, f"{path}.html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(PAGE.format(name=escape(path), style=formatter.get_style_defs(), code=code), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", _begin)
    app.connect("source-read", _lead_to_sources)
    app.connect("source-read", _list_others)
    app.connect("build-finished", _write_sources)
    return {"parallel_read_safe": False}
