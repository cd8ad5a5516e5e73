"""A study's folder that somebody or something has damaged: the same command mends it, or says that it cannot.

Every place of a folder by every way to harm it: exit code 0 and the bytes of a folder that was never harmed, or exit
code 2 and a message; no traceback, no waiting for ever. A handful by default, all of them with `pytest -m slow`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_studies import contents, scenario_file, without_progress
from typer.testing import CliRunner

from queueing_ucrl.cli import app

OPTIONS = ("--jobs", "1", "--log")


def run(scenario: Path, out: Path) -> Any:
    return CliRunner().invoke(app, ["run", str(scenario), "--out", str(out), *OPTIONS])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("whole")
    scenario = scenario_file(folder, horizon="100.0", replications="2")
    assert run(scenario, folder / "out").exit_code == 0
    return scenario, folder / "out"


# ---- places

PLACES = {
    "a trial": "trials/0000/ucrl-ac/000000.parquet",
    "episodes": "episodes/0000/ucrl-ac/000001.parquet",
    "an event log": "events/0000/ucrl-ac/000000.parquet",
    "the digest of a log": "trials/0000/ucrl-ac/000001.json",
    "the manifest": "manifest.json",
    "the lock": ".lock",
    "the summary": "summary.json",
    "the curves": "curves.parquet",
    "the figure": "regret.png",
    "a trial's folder": "trials/0000/ucrl-ac",
    "all episodes": "episodes",
}


# ---- harms


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def other_of(path: Path) -> Path:
    """A file of the same kind, of another trial if there is one."""
    return next((p for p in sorted(path.parent.glob(f"*{path.suffix}")) if p != path and p.is_file()), path)


def content_of(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def as_file(path: Path, content: bytes) -> None:
    remove(path)
    path.write_bytes(content)


def flip_a_bit(path: Path) -> None:
    content = bytearray(content_of(path) or b"x")
    content[len(content) // 3] ^= 4
    as_file(path, bytes(content))


def swap(path: Path) -> None:
    other = other_of(path)
    mine, theirs = content_of(path), content_of(other)
    as_file(path, theirs)
    if other.is_file():
        other.write_bytes(mine)


def replace_by_a_folder(path: Path) -> None:
    remove(path)
    (path / "in it").mkdir(parents=True)


def replace_by_a_link(path: Path, to: Path) -> None:
    remove(path)
    path.symlink_to(to)


def replace_by_a_pipe(path: Path) -> None:
    remove(path)
    os.mkfifo(path)


def forbid(path: Path) -> None:
    path.chmod(0)


HARMS: dict[str, Callable[[Path], None]] = {
    "removed": remove,
    "emptied": lambda path: as_file(path, b""),
    "cut in half": lambda path: as_file(path, content_of(path)[: len(content_of(path)) // 2]),
    "a bit flipped": flip_a_bit,
    "zeros": lambda path: as_file(path, bytes(len(content_of(path)) or 100)),
    "noise": lambda path: as_file(path, np.random.default_rng(3).bytes(len(content_of(path)) or 100)),
    "longer": lambda path: as_file(path, content_of(path) + b"\0"),
    "text": lambda path: as_file(path, b"{}\n"),
    "brackets": lambda path: as_file(path, b"[" * 100_000),
    "swapped": swap,
    "a folder": replace_by_a_folder,
    "a link to itself": lambda path: replace_by_a_link(path, path),
    "a link to nowhere": lambda path: replace_by_a_link(path, path / "no" / "where"),
    "a link to a device": lambda path: replace_by_a_link(path, Path("/dev/null")),
    "a pipe": replace_by_a_pipe,
    "forbidden": forbid,
}

FEW = {
    "a trial": ("a bit flipped", "a pipe", "a folder"),
    "episodes": ("swapped",),
    "an event log": ("a bit flipped",),
    "the digest of a log": ("brackets",),
    "the manifest": ("brackets", "a pipe"),
    "the lock": ("a pipe",),
    "all episodes": ("emptied",),
}
CASES = [
    pytest.param(place, harm, marks=() if harm in FEW.get(place, ()) else pytest.mark.slow)
    for place in PLACES
    for harm in HARMS
]


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
@pytest.mark.parametrize(("place", "harm"), CASES)
def test_a_damaged_folder_is_mended_or_refused(place: str, harm: str, whole: tuple[Path, Path], tmp_path: Path) -> None:
    scenario, original = whole
    out = tmp_path / "out"
    shutil.copytree(original, out)
    HARMS[harm](out / PLACES[place])
    result = run(scenario, out)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    if result.exit_code == 0:
        assert contents(out) == contents(original)
        assert all(
            line.startswith("note: ") and "made again" in line for line in without_progress(result.stderr).splitlines()
        )
    else:
        assert result.exit_code == 2, result.output
        assert str(out) in result.stderr
        assert result.stderr.count("\n") < 8


def test_what_cannot_be_read_back_is_told(whole: tuple[Path, Path], tmp_path: Path) -> None:
    scenario, original = whole
    out = tmp_path / "out"
    shutil.copytree(original, out)
    path = out / PLACES["a trial"]
    flip_a_bit(path)
    result = run(scenario, out)
    assert result.exit_code == 0
    assert re.fullmatch(f"note: {path}: .*; the trial is made again\n", without_progress(result.stderr))
    assert without_progress(run(scenario, out).stderr) == ""
    (out / PLACES["episodes"]).unlink()
    assert f"note: {out / PLACES['episodes']}: it is not what was written, or missing" in run(scenario, out).stderr


MANIFESTS = {
    "of another version": lambda about: {**about, "identity": {**about["identity"], "version": "0.0.1"}},
    "of another seed": lambda about: {**about, "identity": {**about["identity"], "seed": 2}},
    "with another key": lambda about: {**about, "key": "0" * 64},
    "without an identity": lambda about: {"key": about["key"]},
    "whose identity is a list": lambda about: {**about, "identity": [1, 2, 3]},
    "whose points are numbers": lambda about: {**about, "identity": {**about["identity"], "points": [1]}},
    "with facts of somebody else": lambda about: {**about, "title": "mine", "engines": 7},
    "that is a number": lambda about: 7,
    "that is nothing": lambda about: None,
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_that_says_something_else(kind: str, whole: tuple[Path, Path], tmp_path: Path) -> None:
    scenario, original = whole
    out = tmp_path / "out"
    shutil.copytree(original, out)
    about = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps(MANIFESTS[kind](about)))
    before = contents(out)
    result = run(scenario, out)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    if result.exit_code == 0:  # what determines the numbers is as it was
        assert contents(out) == contents(original)
    else:
        assert result.exit_code == 2
        assert "name another folder with --out" in result.stderr
        assert contents(out) == before
