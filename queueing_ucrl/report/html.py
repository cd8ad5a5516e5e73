"""Pages: templates filled in with everything escaped that is not marked as ours."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from queueing_ucrl.messages import printable

PAGES = "pages"


@cache
def _environment(folder: Path | None) -> Any:
    import jinja2
    import markupsafe

    def finalize(value: Any) -> Any:
        """Tables and lists become JSON that no markup can be hidden in; text has no marks that turn its direction."""
        if isinstance(value, (dict, list)):
            return source(as_json(value))
        return printable(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value

    loader: Any = jinja2.PackageLoader("queueing_ucrl.report", PAGES)
    if folder is not None:
        loader = jinja2.ChoiceLoader([loader, jinja2.FileSystemLoader(folder)])
    return jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _printable(value: Any) -> Any:
    """The same with its texts as they may be shown."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(entry) for key, entry in value.items()}
    return [_printable(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def as_json(value: Any) -> str:
    """JSON for a script element: the signs of markup escaped, so that no text can end the element."""
    text = json.dumps(_printable(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def source(text: str, *, file: bool = False) -> Any:
    """Text (or a file of the folder pages/) that is ours, and goes into a page as it stands."""
    import markupsafe

    return markupsafe.Markup(files(__package__).joinpath(PAGES, text).read_text("utf-8") if file else text)


def render(template: str, folder: Path | None = None, **values: Any) -> str:
    """A template (of ours, or of a folder) filled in; text is escaped, tables and lists become JSON."""
    text: str = _environment(folder).get_template(template).render(**values)
    return text
