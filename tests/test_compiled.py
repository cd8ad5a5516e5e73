"""Machine code on disk is never older than the sources it was made of, and never a reason to fail."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.extending import overload

import queueing_ucrl
from queueing_ucrl import compiled as module
from queueing_ucrl.compiled import compiled, has_cache, uncounted

PACKAGE = Path(queueing_ucrl.__file__).parent

# what a compiled function can take from another file: a function, a constant, and an overload that numba finds by type
PROBES = {
    "probe_function.py": """
from queueing_ucrl.compiled import compiled
@compiled
def inner(x): return x + 1.0
""",
    "probe_constant.py": "CONSTANT = 1.0\n",
    "probe_overload.py": """
from numba.extending import overload
def by_type(x): raise NotImplementedError
@overload(by_type)
def _choose(x): return lambda x: x + 1.0
""",
    "probe.py": """
from queueing_ucrl.compiled import compiled
from queueing_ucrl.probe_constant import CONSTANT
from queueing_ucrl.probe_function import inner
from queueing_ucrl.probe_overload import by_type
@compiled
def calls(x): return inner(x)
@compiled
def reads(x): return x + CONSTANT
@compiled
def finds(x): return by_type(x)
""",
}
LOOK = """
import json, sys
from queueing_ucrl.compiled import has_cache
from queueing_ucrl.probe import calls, finds, reads
known = has_cache()
{between}
values = [calls(1.0), reads(1.0), finds(1.0)]
hits = sum(sum(function.stats.cache_hits.values()) for function in (calls, reads, finds))
print(json.dumps([values, hits, known, has_cache()]))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, with the probes, and no machine code."""
    shutil.copytree(PACKAGE, tmp_path / "queueing_ucrl", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in PROBES.items():
        (tmp_path / "queueing_ucrl" / name).write_text(text, encoding="utf-8")
    return tmp_path


def start(copy: Path, program: str, **environment: str) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    own |= {"PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(copy / "cache")} | environment
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=copy,
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=300)
    assert (process.returncode, error) == (0, "")
    return out


def look(copy: Path, between: str = "", **environment: str) -> list[Any]:
    """[values of the probes, how many came from the disk, whether there was machine code before, and is now]."""
    return json.loads(output(start(copy, LOOK.format(between=between), **environment)))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and module.FOLDER in str(path))


# ---- never stale


def test_a_change_of_anything_that_a_function_is_made_of_is_seen(copy: Path) -> None:
    assert look(copy) == [[2.0, 2.0, 2.0], 0, False, True]
    for path in (copy / "queueing_ucrl").rglob("*.py"):  # a date alone is no change
        os.utime(path, (path.stat().st_mtime + 10, path.stat().st_mtime + 10))
    assert look(copy) == [[2.0, 2.0, 2.0], 3, True, True]
    expected = [2.0, 2.0, 2.0]
    for which, name in enumerate(("probe_function.py", "probe_constant.py", "probe_overload.py")):
        path = copy / "queueing_ucrl" / name
        date = path.stat().st_mtime_ns
        path.write_text(path.read_text().replace("1.0", "5.0"), encoding="utf-8")
        os.utime(path, ns=(date, date))  # nor is an old date a promise
        expected[which] = 6.0
        assert look(copy) == [expected, 0, False, True]


def test_what_is_built_upon_the_numeric_code_may_change(copy: Path) -> None:
    look(copy)
    for name in ("__init__.py", "cli.py", "scenario.py", "report/tables.py", "experiments/study.py"):
        with (copy / "queueing_ucrl" / name).open("a", encoding="utf-8") as file:
            file.write("\nEDITED = True\n")
    assert look(copy) == [[2.0, 2.0, 2.0], 3, True, True]
    (copy / "queueing_ucrl" / "report" / "tables.py").unlink()
    assert look(copy)[1:] == [3, True, True]
    with (copy / "queueing_ucrl" / "model" / "queue.py").open("a", encoding="utf-8") as file:
        file.write("\nEDITED = True\n")
    assert look(copy)[1:] == [0, False, True]


def test_a_solver_changes_with_the_evaluation_that_it_calls(copy: Path) -> None:
    program = """
import queueing_ucrl as qu
queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 3.0, qu.Linear(0.1)), qu.JobClass("b", 2.0, 1.0)])
solution = qu.solve(queue)
print(solution.gain, qu.evaluate(queue, solution.policy).gain)
"""
    before, evaluated = map(float, output(start(copy, program)).split())
    assert before == pytest.approx(evaluated, rel=1e-12)
    path = copy / "queueing_ucrl" / "model" / "evaluation.py"
    text = path.read_text(encoding="utf-8")
    edited, count = re.subn(r"(def evaluate_chain\(.*?\n    return )(?=\w)", r"\g<1>1.0 + ", text, flags=re.DOTALL)
    assert count == 1
    path.write_text(edited, encoding="utf-8")
    after, evaluated = map(float, output(start(copy, program)).split())
    assert after == pytest.approx(before + 1.0, rel=1e-12)
    assert after == pytest.approx(evaluated, rel=1e-12)


def test_an_edit_under_way_is_not_kept_under_the_old_name(copy: Path) -> None:
    edit = "path = 'queueing_ucrl/probe_constant.py'; open(path, 'w').write('CONSTANT = 7.0')"
    assert look(copy, edit) == [[2.0, 2.0, 2.0], 0, False, False]
    assert not files(copy)
    assert look(copy) == [[2.0, 8.0, 2.0], 0, False, True]


def test_another_processor_has_machine_code_of_its_own(copy: Path) -> None:
    look(copy)
    assert look(copy, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="") == [[2.0, 2.0, 2.0], 0, False, True]


# ---- interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_function_is_compiled(number: signal.Signals) -> None:
    """Here it comes while numba asks for a type; nested compilations wait too, and the handler is as it was."""
    told = []

    def by_type(x):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    @overload(by_type)
    def _choose(x):  # type: ignore[no-untyped-def]
        signal.raise_signal(number)
        assert not told
        return lambda x: x + 1.0

    def stop(number: int, frame: Any) -> None:
        told.append(number)
        raise KeyboardInterrupt

    inner = compiled(lambda x: by_type(x))
    function: Any = compiled(lambda x: inner(x))
    before = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            function(1.0)
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert told == [number] * len(told) != []
    assert function(1.0) == 2.0


# ---- where it is kept


def test_beside_the_sources_else_with_the_user_else_nowhere(copy: Path) -> None:
    look(copy)
    assert files(copy) == files(copy / "queueing_ucrl" / "__pycache__") != []
    shutil.rmtree(copy / "queueing_ucrl" / "__pycache__")
    (copy / "queueing_ucrl" / "__pycache__").write_text("not a folder, and not one that can be made")
    assert look(copy) == [[2.0, 2.0, 2.0], 0, False, True]
    assert files(copy) == files(copy / "cache" / "queueing_ucrl") != []
    assert look(copy, XDG_CACHE_HOME=os.devnull) == [[2.0, 2.0, 2.0], 0, False, False]
    assert look(copy, NUMBA_CACHE_DIR=str(copy / "own"))[1:] == [0, False, True]
    assert files(copy / "own" / "queueing_ucrl")


def test_processes_that_compile_at_once_do_not_disturb_each_other(copy: Path) -> None:
    together = [start(copy, LOOK.format(between="")) for _ in range(3)]
    assert [json.loads(output(process))[0] for process in together] == [[2.0, 2.0, 2.0]] * 3
    assert look(copy) == [[2.0, 2.0, 2.0], 3, True, True]
    assert all(path.suffix == module.SUFFIX for path in files(copy))  # nothing half-written is left


# ---- never a reason to fail


def own_function(x: float) -> float:
    return 2.0 * x + 1.0


own_function.__module__ = "queueing_ucrl.probe"  # functions of other packages are not kept


def keep_code_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """As a variable and as a setting: numba reads its variables once more when it first compiles."""
    patch.setenv("NUMBA_CACHE_DIR", str(folder))
    patch.setattr(module.config, "CACHE_DIR", str(folder))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for machine code."""
    keep_code_in(tmp_path, monkeypatch)
    return tmp_path


def called(argument: Any = 3.0) -> tuple[float, int]:
    """(result, whether it came from the disk) of a function as a new process would have it."""
    function: Any = compiled(own_function)
    return function(argument), sum(function.stats.cache_hits.values())


@pytest.mark.parametrize("home", ["elsewhere.solvers", "queueing_ucrl", "queueing_ucrl.cli", "queueing_ucrl.report.x"])
def test_only_functions_of_the_numeric_code_are_kept(folder: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_function, "__module__", home)
    assert called() == called() == (7.0, 0)
    assert not files(folder)


class Foreign(NamedTuple):
    """A type of another package: numba may find functions by it that nobody knows the age of."""

    x: float


@pytest.mark.parametrize("argument", [Foreign(3.0), (1.0, Foreign(3.0))])
def test_functions_of_other_packages_types_are_not_kept(folder: Path, argument: Any) -> None:
    def last(numbers: Any) -> Any:
        return numbers[-1]

    last.__module__ = "queueing_ucrl.probe"
    assert compiled(last)(argument) == argument[-1]
    assert not files(folder)
    assert compiled(last)((1.0, 3.0)) == 3.0
    assert len(files(folder)) == 1


def test_one_file_for_each_signature(folder: Path) -> None:
    assert not has_cache()
    assert called() == (7.0, 0)
    assert called() == (7.0, 1)
    assert called(3) == (7.0, 0)
    assert called(3) == (7.0, 1)
    assert len(files(folder)) == 2
    assert has_cache()
    assert has_cache("queueing_ucrl.probe")
    assert not has_cache("queueing_ucrl.simulation")


@st.composite
def damages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    kind = draw(st.sampled_from(["empty", "cut", "flipped", "garbage", "longer", "garbage within"]))
    share, seed = draw(st.floats(0.0, 1.0, exclude_max=True)), draw(st.integers(0, 2**32))

    def damage(content: bytes) -> bytes:
        where, rng = int(share * len(content)), random.Random(seed)
        if kind == "flipped":
            return content[:where] + bytes([content[where] ^ (1 << rng.randrange(8))]) + content[where + 1 :]
        return {
            "empty": b"",
            "cut": content[:where],
            "garbage": rng.randbytes(where),
            "longer": content + rng.randbytes(1 + where),
            "garbage within": content[:where] + rng.randbytes(len(content) - where),
        }[kind]

    return damage


@settings(max_examples=40)
@given(damage=damages())
def test_a_damaged_file_is_compiled_again(tmp_path_factory: pytest.TempPathFactory, damage: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("damaged")
        keep_code_in(folder, patch)
        assert called() == (7.0, 0)
        (path,) = files(folder)
        content = path.read_bytes()
        path.write_bytes(damage(content))
        assert called() == (7.0, 0)
        assert called() == (7.0, 1)  # and mended
        shutil.rmtree(folder)


def test_what_is_sound_but_of_another_kind_is_compiled_again(folder: Path) -> None:
    import hashlib
    import pickle

    called()
    (path,) = files(folder)
    for content in (pickle.dumps(None), pickle.dumps((1, 2)), b"not a pickle", b""):
        path.write_bytes(hashlib.sha256(content).digest() + content)
        assert called() == (7.0, 0)
        assert called() == (7.0, 1)


def test_a_folder_in_the_place_of_a_file(folder: Path) -> None:
    called()
    (path,) = files(folder)
    path.unlink()
    path.mkdir()
    assert called() == called() == (7.0, 0)
    assert not files(folder)


def test_a_folder_that_vanishes(folder: Path) -> None:
    called()
    shutil.rmtree(folder / "queueing_ucrl")
    assert called() == (7.0, 0)
    assert called() == (7.0, 1)


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_until_full(path: Path, content: bytes) -> None:
        with path.open("wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", write_until_full)
    assert called() == called() == (7.0, 0)
    assert not files(folder)


def test_a_limit_on_the_size_of_files(copy: Path) -> None:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))"
    assert look(copy, limit) == [[2.0, 2.0, 2.0], 0, False, False]
    assert not files(copy)


# ---- old builds


def test_old_builds_go_and_those_in_use_stay(folder: Path) -> None:
    root = folder / "queueing_ucrl"
    day, now = 24 * 3600.0, time.time()
    for age in range(20):  # in days
        build = root / f"{module.FOLDER}{age}"
        build.mkdir(parents=True)
        (build / "old.code").write_bytes(b"")
        os.utime(build, (now - age * day - 60.0,) * 2)
    (root / "something else").mkdir()
    called()
    left = {path.name for path in root.iterdir()}
    # the new one and the seven most recent; of the others those that were used within a day, here none
    assert left == {module._build(), "something else"} | {
        f"{module.FOLDER}{age}" for age in range(module.BUILDS_KEPT - 1)
    }
    for age in range(100, 120):  # as many of today are all kept: they may be of other checkouts at work
        (root / f"{module.FOLDER}{age}").mkdir()
    shutil.rmtree(root / module._build())
    called()
    assert len(list(root.glob(module.FOLDER + "*"))) == 20 + 1 + 1  # today's, the new one, and that of a minute ago


def test_a_build_in_use_looks_new(folder: Path) -> None:
    called()
    build = folder / "queueing_ucrl" / module._build()
    os.utime(build, (0.0, 0.0))
    module._mark_used.cache_clear()
    called()
    assert build.stat().st_mtime > time.time() - 3600.0


def test_what_an_uncounted_function_calls_may_make_arrays() -> None:
    """numba would compile it as its caller is compiled, if it did not say how."""

    @compiled
    def pair(number: float) -> float:
        return float(np.array([number, 2.0]).sum())

    @uncounted
    def through(number: float) -> float:
        return pair(number)

    assert through(1.0) == 3.0
    assert uncounted(pair).py_func is pair.py_func  # type: ignore[attr-defined]
