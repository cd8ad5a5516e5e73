"""A study that was stopped, whatever stopped it, goes on and ends with the same bytes as one that never was."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
import typer
from small_studies import contents, scenario_file, started, without_progress
from typer.testing import CliRunner

from queueing_ucrl.cli import app
from queueing_ucrl.cli.endings import stops_told
from queueing_ucrl.errors import DamagedFile, DamageWarning, FolderError
from queueing_ucrl.experiments.campaign import identity, study_cells
from queueing_ucrl.experiments.folder import StudyFolder
from queueing_ucrl.experiments.trial import TrialResult
from queueing_ucrl.scenario import load_scenario

PROGRAM = [sys.executable, "-m", "queueing_ucrl"]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(scenario, folder of its uninterrupted run), with event logs."""
    folder = tmp_path_factory.mktemp("whole")
    scenario = scenario_file(folder)
    assert run(scenario, "--out", folder / "out", "--jobs", 1, "--log").exit_code == 0
    return scenario, folder / "out"


def trial_files(folder: Path) -> list[Path]:
    return sorted((folder / "trials").rglob("*.parquet"))


# ---- killed


ENDS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}


def kill_and_go_on(scenario: Path, out: Path, kills: list[tuple[int, int, float]], *options: str) -> int:
    """Start the command again and again, each time with a signal, then let it end; how often it was stopped.

    A signal comes when so many trials are done, and so many seconds later: moments by the clock alone would be others
    on a machine that is busy. What it says when it can is one line, and it leaves no file that is half written.
    """
    command = ["run", scenario, "--out", out, *options]
    killed = 0
    for number, trials, delay in kills:
        process = started(*command)
        while process.poll() is None and not ((out / "manifest.json").exists() and len(trial_files(out)) >= trials):
            time.sleep(0.002)
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            told = without_progress(process.communicate(timeout=60)[1])
            before_it_listened = not told and process.returncode in (-number, ENDS[signal.Signals(number)])
            if process.returncode == 0 or (number != signal.SIGKILL and before_it_listened):
                continue
            killed += 1
            assert process.returncode == ENDS[signal.Signals(number)], told
            if number != signal.SIGKILL:
                assert told.startswith("stopped; finished trials are kept in")
                assert told.count("\n") == 1
                assert not list(out.rglob("*.part"))
    with started(*command) as process:
        told = without_progress(process.communicate()[1])
    assert (process.returncode, told) == (0, "")
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_random_moments(jobs: str, number: int, tmp_path: Path) -> None:
    scenario = scenario_file(tmp_path, horizon="20000.0", replications="12")
    options = ("--jobs", jobs, "--log")
    assert kill_and_go_on(scenario, tmp_path / "first", [], *options) == 0  # what has to be compiled is, after it
    began = time.monotonic()
    assert kill_and_go_on(scenario, tmp_path / "whole", [], *options) == 0
    whole_run = time.monotonic() - began
    trials = len(trial_files(tmp_path / "whole"))
    random = np.random.default_rng([int(jobs), number])
    # the earliest first: what is left to do grows less with each, and once all is done there is nothing to stop
    after = np.sort(random.integers(0, trials - 2, 8))
    kills = [(number, int(done), float(random.uniform(0.0, whole_run / trials))) for done in after]
    assert kill_and_go_on(scenario, tmp_path / "killed", kills, *options) >= 1
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_with_logs_being_written_by_workers(number: int, tmp_path: Path) -> None:
    """One line, nothing half written; what is left of the logs can be read, and the end is as if never stopped."""
    scenario = scenario_file(tmp_path, horizon="100000.0", replications="4")
    out, options = tmp_path / "out", ("--jobs", "2", "--log")
    process = started("run", scenario, "--out", out, *options)
    wait_for(lambda: any(path.stat().st_size > 100_000 for path in out.rglob("*.part")), process=process)
    process.send_signal(number)
    told = without_progress(process.communicate(timeout=60)[1])
    assert process.returncode == ENDS[signal.Signals(number)], told
    assert told == f"stopped; finished trials are kept in {out}, and the same command goes on from there\n"
    assert not list(out.rglob("*.part"))
    for path in out.rglob("*.partial.parquet"):  # the other worker's may have no rows yet
        assert pd.read_parquet(path)["time"].is_monotonic_increasing
    for folder in (out, tmp_path / "whole"):
        assert run(scenario, "--out", folder, *options).exit_code == 0
    assert contents(out) == contents(tmp_path / "whole")


class StopsAsItGoes:
    """A signal while Python cleans up: whatever is raised there is dropped."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)
        for _ in range(1000):  # the handler runs between two steps of Python
            pass


def stopped_as_it_goes(number: int, folder: Path) -> None:
    with stops_told(folder):
        going = StopsAsItGoes(number)
        del going
        for _ in range(1000):
            time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_falls_into_a_callback_is_not_lost(number: int, tmp_path: Path) -> None:
    before = sys.unraisablehook, signal.getsignal(signal.SIGTERM)
    with pytest.raises(typer.Exit) as stop:
        stopped_as_it_goes(number, tmp_path)
    assert stop.value.exit_code == ENDS[signal.Signals(number)]
    assert (sys.unraisablehook, signal.getsignal(signal.SIGTERM)) == before


def wait_for(happened: Any, seconds: float = 120.0, process: subprocess.Popen[str] | None = None) -> None:
    """Until something has happened; that the process which should do it has ended is told with what it said."""
    until = time.monotonic() + seconds
    while not happened():
        assert process is None or process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def test_killed_with_trials_in_flight_its_workers_end_too(tmp_path: Path) -> None:
    scenario = scenario_file(tmp_path, horizon="30000.0", replications="8")
    command = [*PROGRAM, "run", str(scenario), "--jobs", "2", "--log", "--out"]
    out = tmp_path / "killed"
    process = subprocess.Popen([*command, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(trial_files(out)) >= 1, process=process)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    assert workers
    wait_for(lambda: not any(w.is_running() and w.status() != psutil.STATUS_ZOMBIE for w in workers))
    kept = contents(out / "trials")
    for folder in (out, tmp_path / "whole"):
        assert run(scenario, "--jobs", 2, "--log", "--out", folder).exit_code == 0
    assert contents(out) == contents(tmp_path / "whole")
    finished = {name: digest for name, digest in kept.items() if not name.endswith(".part")}
    assert finished.items() <= contents(out / "trials").items()


@pytest.mark.slow
def test_a_killed_worker_is_told_and_the_same_command_goes_on(whole: tuple[Path, Path], tmp_path: Path) -> None:
    scenario = scenario_file(tmp_path, horizon="50000.0", replications="10")
    command = [*PROGRAM, "run", str(scenario), "--jobs", "2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(trial_files(tmp_path / "out")) >= 1, process=process)
    psutil.Process(process.pid).children()[0].kill()
    _, told = process.communicate()
    if process.returncode != 0:  # unless all trials were done by then
        assert process.returncode == 1
        assert "a worker process was killed" in told
        assert "Traceback" not in told
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_stopped_by_ctrl_c_in_the_middle_of_a_log(tmp_path: Path) -> None:
    """What is kept of the log of an unfinished trial goes once that trial is done."""
    scenario = scenario_file(tmp_path, horizon="300000.0", replications="1")
    command = [*PROGRAM, "run", str(scenario), "--jobs", "1", "--log", "--out"]
    out = tmp_path / "stopped"
    process = started(*command[3:], out)
    wait_for(lambda: any(path.stat().st_size > 100_000 for path in out.rglob("*.part")), process=process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on from there" in told
    assert list(out.rglob("*.partial.parquet"))
    for folder in (out, tmp_path / "whole"):
        assert run(scenario, "--jobs", 1, "--log", "--out", folder).exit_code == 0
    assert contents(out) == contents(tmp_path / "whole")


# ---- damaged files


def copied(whole: tuple[Path, Path], to: Path) -> Path:
    return Path(shutil.copytree(whole[1], to))


def test_every_flipped_byte_of_a_trial_file_is_found(whole: tuple[Path, Path], tmp_path: Path) -> None:
    original = trial_files(whole[1])[0]
    key = json.loads((whole[1] / "manifest.json").read_text())["key"]
    episodes = Path(str(original).replace("/trials/", "/episodes/"))
    assert TrialResult.read(original, key, episodes) is not None
    content, damaged = original.read_bytes(), tmp_path / "damaged.parquet"
    random = np.random.default_rng(0)
    for place in range(0, len(content), 23):
        changed = bytearray(content)
        changed[place] ^= int(random.integers(1, 256))
        damaged.write_bytes(bytes(changed))
        with pytest.raises(DamagedFile):
            TrialResult.read(damaged, key, episodes)


def test_a_truncated_trial_file_is_found(whole: tuple[Path, Path], tmp_path: Path) -> None:
    original = trial_files(whole[1])[0].read_bytes()
    cut = tmp_path / "cut.parquet"
    for length in (0, 1, 4, 100, len(original) // 2, len(original) - 8, len(original) - 1):
        cut.write_bytes(original[:length])
        with pytest.raises(DamagedFile, match=r"cut\.parquet: "):
            TrialResult.read(cut, "any", cut)
    cut.unlink()
    assert TrialResult.read(cut, "any", cut) is None


@pytest.mark.parametrize("kind", ["episodes", "events"])
def test_every_flipped_bit_of_episodes_and_logs_is_found(
    kind: str, whole: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is: the trial is not taken from the folder, and somebody is told."""
    out, scenario = copied(whole, tmp_path / "out"), load_scenario(whole[0])
    (cell,) = study_cells(scenario)
    folder = StudyFolder(out, identity(scenario), {})
    trial = folder.trial(cell, 1, log=True, shares_disk=True)
    assert folder.load(trial.place, log=True) is not None
    path = trial.log if kind == "events" else trial.episodes
    assert path is not None
    content = path.read_bytes()
    random = np.random.default_rng(7)
    for bit in [0, 8 * len(content) - 1, *random.integers(0, 8 * len(content), 100).tolist()]:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        with pytest.warns(DamageWarning, match=f"{path}: it is not what was written, or missing; the trial is made"):
            assert folder.load(trial.place, log=True) is None
    path.write_bytes(content)
    assert folder.load(trial.place, log=True) is not None


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garble(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _half_written(path: Path) -> None:
    path.replace(path.with_name(path.name + ".0123456789ab.part"))


@pytest.mark.parametrize("harm", [_truncate, _garble, _empty, _half_written, Path.unlink])
@pytest.mark.parametrize("kind", ["trials", "events", "."])
def test_damaged_files_are_made_again(harm: Any, kind: str, whole: tuple[Path, Path], tmp_path: Path) -> None:
    out = copied(whole, tmp_path / "out")
    harmed = sorted((out / kind).rglob("*.parquet"))[::2] if kind != "." else sorted(out.glob("*.parquet"))
    for path in harmed:
        harm(path)
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


def test_trials_of_another_study_are_not_taken_for_ones_own(whole: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(whole[0], "--out", tmp_path / "other", "--seed", 77, "--jobs", 1).exit_code == 0
    out = copied(whole, tmp_path / "out")
    for mine, other in zip(trial_files(out), trial_files(tmp_path / "other"), strict=True):
        shutil.copy(other, mine)
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


def test_a_trial_of_another_replication_is_not_taken(whole: tuple[Path, Path], tmp_path: Path) -> None:
    out = copied(whole, tmp_path / "out")
    first, second, *_ = trial_files(out)
    shutil.copy(first, second)
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


def test_finished_trials_are_not_run_again(whole: tuple[Path, Path], tmp_path: Path, monkeypatch: Any) -> None:
    out = copied(whole, tmp_path / "out")
    monkeypatch.setattr("queueing_ucrl.experiments.trial.Trial.run", lambda *_: pytest.fail("it was run again"))
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


def test_more_replications_go_on_in_the_same_folder(whole: tuple[Path, Path], tmp_path: Path) -> None:
    out = copied(whole, tmp_path / "out")
    for folder in (out, tmp_path / "at once"):
        result = run(whole[0], "--out", folder, "--replications", 6, "--jobs", 1, "--log")
        assert result.exit_code == 0, result.output
    assert contents(out) == contents(tmp_path / "at once")


# ---- full disk


@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8, 11])
def test_a_disk_that_fills_up_is_told_and_the_same_command_goes_on(
    nth: int, whole: tuple[Path, Path], tmp_path: Path
) -> None:
    out, calls = tmp_path / "out", 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = run(whole[0], "--out", out, "--jobs", 1, "--log")
    assert result.exit_code == 1
    assert "cannot be written (No space left on device)" in result.stderr
    assert str(out) in result.stderr
    assert not list(out.rglob("*.part"))
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "tiny"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(mount)]
    possible = shutil.which("mount") and sys.platform == "linux"
    if not possible or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system needs root on Linux")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_is_truly_full(jobs: int, whole: tuple[Path, Path], tiny_disk: Path, tmp_path: Path) -> None:
    arguments = (whole[0], "--out", tiny_disk / "out", "--log", "--jobs", jobs)
    result = run(*arguments)
    assert result.exit_code == 1
    assert "cannot be written (No space left on device)" in result.stderr
    subprocess.run(["mount", "-o", "remount,size=10m", str(tiny_disk)], check=True)
    assert run(*arguments).exit_code == 0
    assert contents(tiny_disk / "out") == contents(whole[1])


# ---- whose folder it is


def test_a_folder_of_another_scenario_seed_or_version_is_refused(
    whole: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = copied(whole, tmp_path / "out")
    before = contents(out)
    for arguments, difference in (
        ((whole[0], "--seed", 2), "seed: 1 there, 2 now"),
        ((whole[0], "--horizon", 10), "horizon: 300.0 there, 10.0 now"),
        ((scenario_file(tmp_path, servers="3"),), "servers: 2 there, 3 now"),
        ((whole[0], "--controller", "oracle"), 'name: "ucrl-ac" there, "oracle" now'),
    ):
        result = run(*arguments, "--out", out)
        assert result.exit_code == 2
        assert "belongs to another study; name another folder with --out" in result.stderr
        assert difference in result.stderr
    monkeypatch.setattr("queueing_ucrl.experiments.campaign.__version__", "99.0")
    result = run(whole[0], "--out", out)
    assert result.exit_code == 2
    assert '"99.0" now' in result.stderr
    assert contents(out) == before


@pytest.mark.parametrize("name", ["precious.txt", "manifest.json"])
def test_a_folder_of_something_else_is_not_touched(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("precious", encoding="utf-8")
    result = run(scenario_file(tmp_path), "--out", out)
    assert result.exit_code == 2
    assert "name another" in result.stderr
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text(encoding="utf-8") == "precious"


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("", encoding="utf-8")
    result = run(scenario_file(tmp_path), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "is not a folder" in result.stderr


def test_a_folder_that_a_killed_run_had_only_begun_is_used(whole: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json.0123456789ab.part").write_text('{"iden', encoding="utf-8")
    assert run(whole[0], "--out", out, "--jobs", 1, "--log").exit_code == 0
    assert contents(out) == contents(whole[1])


def test_a_folder_in_use_by_another_run_is_refused(tmp_path):
    """The other run holds the folder as long as it lives, and no longer."""
    hold = (
        "import sys, pathlib; from queueing_ucrl.experiments.folder import StudyFolder\n"
        "folder = StudyFolder(pathlib.Path(sys.argv[1]), {'a': 1}, {})\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "out")]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(FolderError, match="another run is using this folder"):
            StudyFolder(tmp_path / "out", {"a": 1}, {})
    finally:
        other.kill()
        other.wait()
    StudyFolder(tmp_path / "out", {"a": 1}, {})
