"""One way to compile a numeric function: IEEE arithmetic as written, the machine code kept on disk.

No `fastmath`: sums keep their order, so the same input gives the same bits on every run.
Division follows IEEE 754 (x / 0 = inf) as in numpy, instead of raising.

Machine code is kept in a folder named after the build: a digest of the package's sources, of the versions of Python,
numba, llvmlite and numpy, and of the processor. A compiled function contains those it calls, those that numba finds by
the types of its arguments, wherever they stand, and the constants of the files it imports; so it is as old as the
oldest of them: a change of any gives another folder, and nothing stale is ever run. numba's own cache knows the date of
one file alone. Only the rooms that are built upon the numeric code, and give nothing to it, may change freely (APART).

What cannot be read, written or trusted is compiled again: a cache is never a reason to fail.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

# Intel's vector library, where it is installed, has an exp and a log of its own with other last bits
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).resolve().parent
# no other room imports these, and their functions are not kept: tests/test_import_graph.py holds them to it
APART = {"__init__", "__main__", "cli", "data", "experiments", "gym", "paper", "report", "scenario"}
FOLDER = "machine-code-"  # and the build's digest
SUFFIX = ".code"
BUILDS_KEPT = 8  # the most recently used stay, whatever their age
UNUSED_FOR = 24 * 3600.0  # seconds after which the others may go
_CHECK = hashlib.sha256().digest_size  # bytes at the head of a file that vouch for the rest


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba at its first call; machine code of the package's own functions is kept on disk.

    To a type checker it stays the function that it is. numba makes one for each type of arguments that it meets, and
    does not read annotations: they say what the callers give.
    """
    return _compiled(function, inline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, for a step of a loop: it becomes part of those that call it. A call counts references to every
    array that it is given, which costs more than a short step itself.
    """
    return _compiled(function, inline=True)


def uncounted(function: Callable[P, R]) -> Callable[P, R]:
    """As `compiled`, but that no references to arrays are counted: for code that makes no array and keeps none, and is
    called so often that counting would be most of its time. A function that is compiled already is compiled once more.
    """
    return _compiled(getattr(function, "py_func", function), inline=False, counts=False)


def uncounted_inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As `inlined`, for functions that are `uncounted`."""
    return _compiled(function, inline=True, counts=False)


def _compiled(function: Callable[P, R], *, inline: bool, counts: bool = True) -> Callable[P, R]:
    # said in either case: one that says nothing is compiled as whoever calls it first
    dispatcher: Any = numba.njit(error_model="numpy", nogil=True, forceinline=inline, _nrt=counts)(function)
    own = _is_kept(function.__module__) and not getattr(function, "__closure__", None)
    if dispatcher is not function:  # it is, under NUMBA_DISABLE_JIT
        dispatcher.compile = _uninterrupted()(dispatcher.compile)
        if own:
            dispatcher._cache = _MachineCode(function, "" if counts else "-uncounted")
    return dispatcher


def _is_kept(module: str) -> bool:
    """Whether machine code of the module's functions is kept: that changes of it are seen."""
    package, *inside = module.split(".")
    return package == __package__ and bool(inside) and inside[0] not in APART


def _is_foreign(kind: Any) -> bool:
    """Whether a type of numba's is a named tuple from elsewhere: what is found by it may change unseen."""
    home = getattr(getattr(kind, "instance_class", None), "__module__", None)
    return (home is not None and not _is_kept(home)) or any(map(_is_foreign, getattr(kind, "types", ())))


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until LLVM is done: raised within one of its calls back to Python they crash it."""
    came: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for which in (signal.SIGINT, signal.SIGTERM):
            if callable(signal.getsignal(which)):
                handlers[which] = signal.signal(which, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            handlers[number](number, None)


def has_cache(module: str = "") -> bool:
    """Whether machine code of this build (of functions of `module`, if given) is on disk and need not be compiled."""
    for folder in _folders():
        with contextlib.suppress(OSError), os.scandir(folder) as files:
            if any(file.name.startswith(module) and file.name.endswith(SUFFIX) for file in files):
                return True
    return False


class _MachineCode:
    """The machine code of one function on disk, a file for each signature: what numba's dispatcher asks of a cache.

    A file is written beside its place and moved there, so that two processes may compile at once, and starts with the
    SHA-256 digest of the rest, so that one that was cut or damaged is not run.
    """

    def __init__(self, function: Any, suffix: str = "") -> None:
        self._name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}{suffix}"

    @property
    def cache_path(self) -> str | None:
        return next((str(folder) for folder in _folders()), None)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The function compiled for `signature`, or None."""
        target_context.refresh()
        # whatever is wrong with a file, compiling anew is right
        with contextlib.suppress(Exception):
            name = self._file(signature, target_context.codegen())
            for folder in _folders() if name else ():
                try:
                    content = (folder / name).read_bytes()
                except OSError:
                    continue
                if hashlib.sha256(content[_CHECK:]).digest() == content[:_CHECK]:
                    of, reduced = pickle.loads(content[_CHECK:])
                    if of == signature:
                        _mark_used(folder)
                        return CompileResult._rebuild(target_context, *reduced)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep the function compiled for `signature`, in the first folder that takes it, if any does."""
        with contextlib.suppress(Exception):
            name = self._file(signature, result.codegen)
            if name and not result.library.has_dynamic_globals and all(loop.can_cache for loop in result.lifted):
                payload = dumps((signature, result._reduce()))
                any(_write(folder, name, hashlib.sha256(payload).digest() + payload) for folder in _folders())

    def _file(self, signature: Any, codegen: Any) -> str:
        """The name of the file for `signature` on this processor, or "" for one that no other process can know."""
        text = repr((str(signature), codegen.magic_tuple()))
        if " at 0x" in text or any(map(_is_foreign, signature)):
            return ""
        return f"{self._name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}{SUFFIX}"

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...


def _source_files() -> list[str]:
    found = []
    for folder, subfolders, names in os.walk(PACKAGE):
        apart = APART if folder == str(PACKAGE) else set()
        subfolders[:] = [name for name in subfolders if name not in apart and name != "__pycache__"]
        sources = [name for name in names if name.endswith(".py") and not name.startswith(".")]
        found += [os.path.join(folder, name) for name in sources if name[:-3] not in apart]
    return sorted(found)


def _dates_of_sources() -> list[tuple[str, int, int]]:
    return [(path, (stat := os.stat(path)).st_mtime_ns, stat.st_size) for path in _source_files()]


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in _source_files():
        content = Path(path).read_bytes()
        digest.update(f"{os.path.relpath(path, PACKAGE)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class _Sources:
    """The sources as they were when the package was imported: the dates for a quick look, the digest to be sure."""

    def __init__(self) -> None:
        try:
            self.dates = _dates_of_sources()
            self.digest = _digest_of_sources() if self.dates else ""
        except OSError:  # inside an archive, say
            self.dates, self.digest = [], ""

    def are_as_imported(self) -> bool:
        """Whether code compiled now has the sources that its folder is named after: not after an edit under way."""
        if not self.digest:
            return False
        with contextlib.suppress(OSError):
            dates = _dates_of_sources()
            if dates != self.dates and _digest_of_sources() == self.digest:
                self.dates = dates
            return dates == self.dates
        return False


_sources = _Sources()


@cache
def _build() -> str:
    """The name of this build."""
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    settings = [getattr(config, name, None) for name in ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK")]
    python = (platform.python_implementation(), platform.python_version(), platform.machine())
    versions = (numba.__version__, llvmlite.__version__, np.__version__)
    text = repr((_sources.digest, python, versions, processor, features, settings, config.USING_SVML))
    return FOLDER + hashlib.sha256(text.encode()).hexdigest()[:24]


def _roots() -> Iterator[Path]:
    """Where builds may be kept, the best place first: numba's own setting, beside the sources, the user's cache."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / PACKAGE.name
        return
    yield PACKAGE / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if user.is_absolute():
        yield user / PACKAGE.name


def _folders() -> list[Path]:
    return [root / _build() for root in _roots()] if _sources.are_as_imported() else []


def _write(folder: Path, name: str, content: bytes) -> bool:
    """Write a file whole or not at all; whether it was written."""
    part = folder / f"{name}.{uuid.uuid4().hex}.part"
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_old_builds(folder)
        try:
            part.write_bytes(content)
            part.replace(folder / name)
        finally:
            part.unlink(missing_ok=True)
    except OSError:  # no permission, no space
        return False
    return True


@cache
def _mark_used(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(folder)


def _remove_old_builds(new: Path) -> None:
    """Remove the builds beside `new` that nobody has used for long. A process that still runs one compiles again."""
    used = []
    for folder in new.parent.glob(FOLDER + "*"):
        with contextlib.suppress(OSError):
            used.append((folder.stat().st_mtime, folder))
    for when, folder in sorted(used, reverse=True)[BUILDS_KEPT:]:
        if when < time.time() - UNUSED_FOR:
            shutil.rmtree(folder, ignore_errors=True)
