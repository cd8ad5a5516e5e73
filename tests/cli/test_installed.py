"""Installed from a wheel, in an empty folder: everything works, and nothing is taken from the clone.

The source distribution is made first and the wheel from that, so that both hold what they must. The wheel goes into a
virtual environment of its own that borrows the libraries of the one in which the tests run, but none of its packages
in editable mode: Python reads .pth files in the site-packages of an environment itself, not in folders they name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

from queueing_ucrl.compiled import _folders

ROOT = Path(__file__).parents[2]
SOURCES = ("queueing_ucrl", "scenarios", "README.md", "LICENSE", "pyproject.toml", "setup.cfg", "setup.py")
FOLDER = "queueing_ucrl/scenarios"  # in the wheel
WATCH = """
import sys

def see(event, arguments, clone={clone!r}, seen={seen!r}):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(clone):
        with open(seen, "a") as file:
            file.write(f"{{arguments[0]}}\\n")

sys.addaudithook(see)
"""


def build(hook: str, source: Path, out: Path) -> Path:
    """What setuptools makes of a source tree by a hook of PEP 517, in a process of its own."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.{hook}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, out], cwd=source, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


def build_wheel(folder: Path) -> Path:
    """Made from the source distribution, which is made from a copy of the clone."""
    copy = folder / "copy"
    copy.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy)
    with tarfile.open(build("build_sdist", copy, folder)) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (source,) = (folder / "sdist").iterdir()
    return build("build_wheel", source, folder)


def without_ours() -> dict[str, str]:
    """The environment without what points to the clone."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}


def install(wheel: Path, environment: Path, seen: Path) -> Path:
    """The folder of programs of an environment with the wheel; what is opened of the clone is noted in `seen`."""
    venv.create(environment, symlinks=os.name != "nt")
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    command = ["--python", programs / "python", "install", "--no-deps", "--no-index", "--quiet", wheel]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, timeout=100, env=without_ours())
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))
    borrowed = [path for path in sys.path if path.endswith("-packages")]
    (packages / "watch.pth").write_text("\n".join(["import watch", *borrowed]))
    for folder in _folders():  # the same sources have the same machine code, which takes long to make
        if folder.is_dir():
            code = packages / "queueing_ucrl" / "__pycache__" / folder.name
            shutil.copytree(folder, code, ignore=shutil.ignore_patterns("*.part"))
            break
    clone = tuple(str(ROOT / name) for name in ("queueing_ucrl", "scenarios", "analysis"))
    (packages / "watch.py").write_text(WATCH.format(clone=clone, seen=str(seen)))
    return programs


def test_a_wheel_needs_no_clone(tmp_path):
    wheel, seen, here = build_wheel(tmp_path), tmp_path / "seen", tmp_path / "empty"
    packed = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "queueing_ucrl").rglob("*.py")}
    scenarios = {path.stem for path in (ROOT / "scenarios").glob("*.toml")}
    assert {name for name in packed if name.endswith(".py")} == modules
    assert {name for name in packed if name.endswith(".toml")} == {f"{FOLDER}/{name}.toml" for name in scenarios}

    programs = install(wheel, tmp_path / "environment", seen)
    here.mkdir()

    def program(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs / "queueing-ucrl", *arguments],
            cwd=here,
            env=without_ours(),
            capture_output=True,
            text=True,
            timeout=300,
        )

    listed = program("scenarios", "--json")
    assert {row["name"] for row in json.loads(listed.stdout)} == scenarios
    assert list(here.iterdir()) == []
    reproduced = program("reproduce", "diameter")
    assert (reproduced.returncode, "| M/M/5/S | 0.3 | 20  | 106.8" in reproduced.stdout) == (0, True), reproduced.stderr
    assert len(list(here.glob("runs/reproduce-*/diameter.png"))) == 1
    ran = program("run", "quickstart", "--horizon", "2000")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Quickstart: learn whom to let in\n")
    assert len(list(here.glob("runs/quickstart-*/regret.png"))) == 1
    assert program("scenarios", "copy", "quickstart").returncode == 0
    assert (here / "quickstart.toml").read_bytes() == (ROOT / "scenarios" / "quickstart.toml").read_bytes()
    assert not seen.exists(), seen.read_text()

    # the watch does see: of the clone's package, if that is what is run
    subprocess.run([programs / "python", "-c", "import queueing_ucrl"], cwd=ROOT, check=True, timeout=100)
    assert str(ROOT / "queueing_ucrl" / "__init__.py") in seen.read_text()
