"""Text in XML attributes: escaped, and refused where XML 1.0 has no way to say it."""

from __future__ import annotations

import re
from typing import Any

from queueing_ucrl.messages import shown

LONGEST_VALUE = 500_000  # characters, of one attribute
# all but these may stand in XML 1.0; the others are line ends and tabs, which must be written by number to survive
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def escaped(text: str, column: str) -> str:
    """For a value in double quotes."""
    wrong = _ILLEGAL.search(text)
    if wrong:
        raise ValueError(f"the column {shown(column)} holds {shown(text)}: XML has no way to write {wrong.group()!r}")
    if len(text) > LONGEST_VALUE:
        raise ValueError(f"the column {shown(column)} holds a text of more than {LONGEST_VALUE} characters")
    return "".join(_ESCAPES.get(c, c) for c in text) if any(c in text for c in _ESCAPES) else text


def double(value: float) -> str:
    """In as many digits as bring the same number back; xs:double has its own words for what is not finite."""
    text = repr(value)
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(text, text)


def is_name(text: str) -> bool:
    """Whether it can stand where XML wants a name (a part of those that can)."""
    return _NAME.fullmatch(text) is not None


def kind_of(arrow_type: Any) -> str | None:
    """float, int, boolean, string or date, as both XES and OCEL have them; None: neither has it."""
    import pyarrow as pa

    types = pa.types
    kinds = {
        "float": types.is_floating(arrow_type),
        "int": types.is_integer(arrow_type),
        "boolean": types.is_boolean(arrow_type),
        "string": types.is_string(arrow_type) or types.is_null(arrow_type),
        "date": types.is_timestamp(arrow_type),
    }
    return next((kind for kind, right in kinds.items() if right), None)
