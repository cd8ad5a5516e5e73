"""Scenarios by name: those that come with the package, and one's own.

In a clone they are in the folder scenarios/ beside the package; a wheel has the same files inside it.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

from queueing_ucrl.errors import ScenarioError
from queueing_ucrl.messages import printable, shown

_PACKAGE = Path(__file__).resolve().parent.parent
INSTALLED = _PACKAGE / "scenarios" if (_PACKAGE / "scenarios").is_dir() else _PACKAGE.parent / "scenarios"
OWN = Path("scenarios")  # in the folder where one works


def _file_of(name: str) -> Path | None:
    """NAME.toml where one works, then in a folder `scenarios` there, then of those that come with the package."""
    paths = (folder / f"{name}.toml" for folder in (Path(), OWN, INSTALLED))
    return next((path for path in paths if os.path.lexists(path)), None)


def known_scenarios() -> dict[str, Path]:
    """The file that each name means, of those that come with the package and of those in a folder `scenarios` here."""
    names = sorted({path.stem for folder in (OWN, INSTALLED) for path in folder.glob("*.toml")})
    return {name: path for name in names if (path := _file_of(name)) is not None}


def installed_scenario(name: str) -> Path:
    """The file of one that comes with the package."""
    files = {path.stem: path for path in sorted(INSTALLED.glob("*.toml"), key=lambda path: path.stem)}
    if name not in files:
        raise _unknown(name, list(files))
    return files[name]


def find_scenario(name: str | os.PathLike[str]) -> Path:
    """The file that a name or a path means; a path is what ends in .toml, names a folder on the way, or is a file."""
    text = os.fspath(name)
    there, is_folder = os.path.lexists(text), os.path.isdir(text)
    if text.endswith(".toml") or os.path.basename(text) != text or (there and not is_folder):
        return Path(text)
    path = _file_of(text)
    if path is None and not is_folder:
        raise _unknown(text, list(known_scenarios()))
    return path or Path(text)


def _unknown(name: str, known: list[str]) -> ScenarioError:
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return ScenarioError(printable(f"no scenario is called {shown(name)}{hint} Known: {', '.join(known)}"))
