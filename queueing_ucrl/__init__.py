"""Learning admission control of a queue.

    import queueing_ucrl as qu
    queue = qu.load_scenario("quickstart").queue
    print(qu.solve(queue).policy)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

import ast
from importlib import import_module
from pathlib import Path

from queueing_ucrl._version import __version__

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_HOME = {
    alias.name: str(node.module) for node in ast.walk(_STUB) if isinstance(node, ast.ImportFrom) for alias in node.names
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = getattr(home, name) if hasattr(home, name) else import_module(f"{_HOME[name]}.{name}")  # plot: a module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
