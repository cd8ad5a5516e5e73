"""Vega, Vega-Lite and Vega-Embed in one script for pages: made once by the package vl-convert, then kept on the disk.

Making it takes two seconds. It is kept in the user's folder for caches, under the name of vl-convert's version and
with its own digest: what is damaged, or of another version, is made again. Where nothing can be kept, nothing is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from queueing_ucrl.files import UNSEALED, is_plain_file, is_sealed, sealed, write_atomically

OVERRIDE = "QUEUEING_UCRL_CACHE"  # another folder; empty: none
HEAD = b"// " + UNSEALED + b"\n"
LARGEST = 20_000_000  # bytes


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """Where the platform keeps what can be made again; None: nothing is to be kept, or there is no such place."""
    if OVERRIDE in environment:
        return Path(environment[OVERRIDE]) if environment[OVERRIDE] else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if platform == "win32":
        above = Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        above = home / "Library" / "Caches"
    else:
        named = Path(environment.get("XDG_CACHE_HOME") or "")
        above = named if named.is_absolute() else home / ".cache"  # a relative one is to be ignored, says XDG
    return above / "queueing_ucrl"


@cache
def vega() -> str:
    """The script, from the disk where it is kept there."""
    folder = cache_folder()
    kept = None if folder is None else folder / f"vega-{version('vl-convert-python')}.js"
    if kept is not None and (found := _read(kept)) is not None:
        return found
    bundle = _made()
    if kept is not None:
        with suppress(OSError):  # a disk that is full or may not be written to: then it is made each time
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, sealed(HEAD + bundle.encode()))
    return bundle


def _read(path: Path) -> str | None:
    """What is kept; None where it is not there, or not as it was written."""
    try:
        if not is_plain_file(path) or path.stat().st_size > LARGEST:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return content[len(HEAD) :].decode() if is_sealed(content) else None


def _made() -> str:
    vl_convert: Any = import_module("vl_convert")
    bundle: str = vl_convert.javascript_bundle()
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise ValueError("this version of vl-convert-python makes a script that cannot stand in a page")
    return bundle
