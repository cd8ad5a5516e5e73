"""Whose folder it is: everything is checked before anything is written, and of several at once one wins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_studies import contents, scenario_file, without_progress
from typer.testing import CliRunner

from queueing_ucrl.cli import app
from queueing_ucrl.errors import FolderError
from queueing_ucrl.experiments.folder import StudyFolder

RACER = """
import sys, pathlib
from queueing_ucrl.errors import FolderError
from queueing_ucrl.experiments.folder import StudyFolder

for line in sys.stdin:  # a folder a line: all racers are told at once
    try:
        folder = StudyFolder(pathlib.Path(line.strip()), {"who": sys.argv[1]}, {})
        folder.write_bytes("computed.txt", sys.argv[1].encode())
        del folder
        print("won", flush=True)
    except FolderError as error:
        print("lost", flush=True)
"""


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def races(count: int, folder: Path) -> None:
    """Four processes, each with a study of its own, want the same folder: one gets it and computes something there."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for k in range(4)
    ]
    try:
        for n in range(count):
            out = folder / f"{n}" / "deep" / "out"
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{out}\n")
                racer.stdin.flush()
            ends = [racer.stdout.readline().strip() for racer in racers if racer.stdout is not None]
            assert sorted(ends) == ["lost", "lost", "lost", "won"], (n, ends)
            winner = str(ends.index("won"))
            assert json.loads((out / "manifest.json").read_text())["identity"] == {"who": winner}
            assert (out / "computed.txt").read_text() == winner
            assert sorted(os.listdir(out)) == [".lock", "computed.txt", "manifest.json"]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_of_four_at_once_one_wins(tmp_path: Path) -> None:
    races(100, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_of_four_at_once_one_wins_every_time(tmp_path: Path) -> None:
    races(1000, tmp_path)


MISTAKES = {
    "ticks on drifting queues": (
        {"reward": '20.0\npattern = { kind = "sinusoid", amplitude = 0.5, period = 9.0 }'},
        "psrl",
    ),
    "latency with ticks": ({"seed": "1\nsolver_latency = 2.0"}, "psrl"),
    "an engine that cannot": ({}, "nobody"),
    "too many replications": ({"replications": "1000000", "grid_points": "200"}, None),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_the_folder_is_made(mistake: str, tmp_path: Path) -> None:
    replaced, controller = MISTAKES[mistake]
    path, out = scenario_file(tmp_path, **replaced), tmp_path / "some" / "where" / "out"
    options = [] if controller is None else ["--controller", controller]
    result = run(path, "--out", out, "--jobs", 1, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert without_progress(result.stderr).count("\n") == 1
    assert not (tmp_path / "some").exists()


@pytest.mark.parametrize("bounds", ["[1e300, 1e308]", "[0.0, 1e308]", "[5e-324, 1e-323]"])
def test_absurd_bounds_work_or_are_told_before_the_folder_is_made(bounds: str, tmp_path: Path) -> None:
    path, out = scenario_file(tmp_path, arrival_rate_bounds=bounds, horizon="20.0"), tmp_path / "out"
    result = run(path, "--out", out, "--jobs", 1)
    assert result.exit_code in (0, 2), result.output
    assert "Traceback" not in result.output
    assert out.exists() == (result.exit_code == 0)


@pytest.mark.parametrize("option", ["inf", "nan", "1e308"])
def test_numbers_that_json_cannot_say(option: str, tmp_path: Path) -> None:
    lines = '[[controller]]\nname = "certainty-equivalent"\nreview_ratio = ' + option
    path = scenario_file(tmp_path, horizon="20.0", replications="2")
    text = path.read_text()
    start, end = text.index("[controller]"), text.index("[run]")
    path.write_text(text[:start] + lines + "\n" + text[end:])
    out = tmp_path / "out"
    result = run(path, "--out", out, "--jobs", 1, "--json")
    assert result.exit_code in (0, 2), result.output
    assert out.exists() == (result.exit_code == 0)
    if result.exit_code == 0:
        again = run(path, "--out", out, "--jobs", 1, "--json")
        assert (again.exit_code, again.stdout) == (0, result.stdout)


def test_a_folder_in_which_nothing_was_computed_can_be_used_for_another_study(tmp_path: Path) -> None:
    out = tmp_path / "out"
    StudyFolder(out, {"a": 1}, {})
    (out / "trials" / "0000" / "oracle").mkdir(parents=True)
    (out / "trials" / "0000" / "oracle" / "000000.parquet.0123456789ab.part").write_bytes(b"half")
    StudyFolder(out, {"a": 2}, {})
    assert json.loads((out / "manifest.json").read_text())["identity"] == {"a": 2}
    assert not list(out.rglob("*.part"))
    (out / "trials" / "0000" / "oracle" / "000000.parquet").write_bytes(b"whole")
    with pytest.raises(FolderError, match="belongs to another study"):
        StudyFolder(out, {"a": 3}, {})


def test_a_file_of_somebody_else_that_is_half_written_is_left_alone(tmp_path: Path) -> None:
    """Browsers and others end the names of what they have not finished in `.part` too."""
    (tmp_path / "film.mp4.part").write_bytes(b"half")
    with pytest.raises(FolderError, match="holds files of something else"):
        StudyFolder(tmp_path, {"a": 1}, {})
    study = StudyFolder(tmp_path / "out", {"a": 1}, {})
    (study.path / "film.mp4.part").write_bytes(b"half")
    study.tidy()
    assert (study.path / "film.mp4.part").exists()


def test_a_folder_whose_name_begins_with_a_tilde_is_a_folder_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shell turns `--out=~/results` into a place in the home folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = scenario_file(tmp_path)
    for _ in range(2):  # made, and read again
        result = run(path, "--horizon", 20, "--jobs", 1, "--log", "--out", "~/results")
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "~" / "results" / "curves.parquet").exists()
    assert not (tmp_path / "home").exists()


def test_a_folder_within_a_folder_of_studies_is_left_alone_when_tidying(tmp_path: Path) -> None:
    inner = StudyFolder(tmp_path / "out" / "figure1", {"a": 1}, {})
    (inner.path / "summary.json.0123456789ab.part").write_bytes(b"half")
    (tmp_path / "out" / "manifest.json").write_text('{"identity": {"b": 1}}')
    StudyFolder(tmp_path / "out", {"b": 1}, {})
    assert (inner.path / "summary.json.0123456789ab.part").exists()


@pytest.mark.parametrize("length", [200, 300, 3000, 5000])
@pytest.mark.parametrize("part", ["a", "a" * 100])
def test_a_folder_ever_so_deep_is_used_or_refused(length: int, part: str, tmp_path: Path) -> None:
    out = Path(str(tmp_path) + ("/" + part) * (length // (1 + len(part))))
    before = contents(tmp_path)
    path = scenario_file(tmp_path, horizon="20.0", replications="1")
    result = run(path, "--out", out, "--jobs", 1)
    made = out.exists() if length < 4000 else False
    subprocess.run(["rm", "-rf", str(tmp_path / part)], check=True)  # deeper than others can remove
    assert result.exit_code == (2 if length > 4000 else 0), result.stderr
    assert made == (result.exit_code == 0)
    if result.exit_code:
        assert "cannot be used (File name too long)" in result.stderr
        assert list(tmp_path.iterdir()) == [path]
        assert before == {}


@pytest.mark.parametrize("out", ["/dev/null", "/dev/null/out", "/proc/out", "x" * 300])
def test_a_place_that_cannot_be_a_folder_is_told(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = scenario_file(tmp_path)
    result = run(path, "--out", out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert without_progress(result.stderr).count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]
