"""A real dask scheduler and two worker processes, on the loopback interface only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_studies import contents, numbers, scenario_file, small_study, started, without_progress
from typer.testing import CliRunner

from queueing_ucrl.cli import app
from queueing_ucrl.experiments.executors import cluster_executor

distributed = pytest.importorskip("distributed")


class Cluster:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
        self._wait(lambda: self.file.exists() and self.file.read_text().endswith("}"))  # all of it is written
        import json

        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self.file), *arguments]
        with (self.folder / f"{module}-{len(self.processes)}.log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        self.processes.append(process)
        return process

    def _wait(self, ready: Any) -> None:
        for _ in range(600):
            if ready():
                return
            time.sleep(0.1)
        logs = "\n".join(path.read_text() for path in self.folder.glob("*.log"))
        raise RuntimeError(f"the cluster did not start:\n{logs}")

    def add_workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        options = ("--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        added = [self._start("dask_worker", *options) for _ in range(count)]
        with distributed.Client(self.address) as client:
            running = sum(process.poll() is None for process in self.processes) - 1
            client.wait_for_workers(running, timeout=60)
        return added

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.add_workers(2)
        yield cluster
    finally:
        cluster.close()


def test_a_cluster_gives_the_numbers_of_one_process(cluster: Cluster) -> None:
    with cluster_executor(cluster.address) as executor:
        assert numbers(small_study(executor=executor)) == numbers(small_study(jobs=1))


def test_a_worker_killed_in_the_middle_changes_no_number(cluster: Cluster) -> None:
    victims = cluster.add_workers(1) + [p for p in cluster.processes[1:2] if p.poll() is None]
    killed = []

    def kill_at_the_third(result: Any, done: int, total: int) -> None:
        if done == 3:
            for victim in victims:
                os.kill(victim.pid, signal.SIGKILL)
                killed.append(victim.wait())

    settings = {"horizon": 500.0, "replications": 6, "engine": "simpy"}  # slow enough for trials to be in flight
    with cluster_executor(cluster.address) as executor:
        study = small_study(executor=executor, on_result=kill_at_the_third, **settings)
    assert killed == [-signal.SIGKILL] * 2
    assert numbers(study) == numbers(small_study(jobs=1, **settings))


def test_the_command_runs_on_a_cluster_and_writes_the_same_folder(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = scenario_file(tmp_path)
    here = CliRunner().invoke(app, ["run", str(scenario), "--out", "here", "--jobs", "1", "--log"])
    there = CliRunner().invoke(app, ["run", str(scenario), "--out", "there", "--log", "--cluster", cluster.address])
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_scheduler_that_dies_is_told_and_the_same_command_goes_on(tmp_path: Path) -> None:
    scenario, out = scenario_file(tmp_path, horizon="1000.0", replications="8"), tmp_path / "out"
    own = Cluster(tmp_path)
    try:
        own.add_workers(1)
        command = [sys.executable, "-m", "queueing_ucrl", "run", str(scenario), "--out", str(out), "--engine", "simpy"]
        process = subprocess.Popen(
            [*command, "--cluster", own.address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        own._wait(lambda: list(out.rglob("00*.parquet")) or process.poll() is not None)
        own.processes[0].kill()
        told = without_progress(process.communicate(timeout=120)[1])
    finally:
        own.close()
    if process.returncode != 0:  # unless all trials were done by then
        assert process.returncode == 1
        assert told.startswith("the cluster was lost; finished trials are kept in")
        assert told.count("\n") == 1
    for folder in (out, tmp_path / "whole"):
        options = ["--out", str(folder), "--engine", "simpy", "--jobs", "1"]
        assert CliRunner().invoke(app, ["run", str(scenario), *options]).exit_code == 0
    assert contents(out) == contents(tmp_path / "whole")


def test_a_cluster_without_workers_says_what_it_waits_for(tmp_path: Path) -> None:
    """At once, and where; when a worker joins the study runs."""
    scenario, out = scenario_file(tmp_path, horizon="50.0", replications="2"), tmp_path / "out"
    own = Cluster(tmp_path)
    try:
        process = started("run", scenario, "--out", out, "--cluster", own.address)
        assert process.stderr is not None
        while not without_progress(told := process.stderr.readline()):
            assert told, "it ended"
        assert told.startswith(f"--cluster {own.address}: has no workers; waiting for some to join")
        own.add_workers(1)
        _, more = process.communicate(timeout=120)
    finally:
        own.close()
    assert (process.returncode, without_progress(more)) == (0, "")


def test_a_missing_scheduler_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueing_ucrl.experiments.executors.CONNECT_TIMEOUT", "1s")
    result = CliRunner().invoke(app, ["run", str(scenario_file(tmp_path)), "--cluster", "tcp://127.0.0.1:9"])
    assert result.exit_code == 2
    assert result.stderr.startswith("--cluster tcp://127.0.0.1:9: no scheduler answers there")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "foo://127.0.0.1:1",
        "tcp://127.0.0.1",
        "tls://127.0.0.1:9",
        "ucx://127.0.0.1:9",
        "tcp://:::",
        "inproc://x",
    ],
)
def test_an_address_that_is_none_is_told_in_one_line(address: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", str(scenario_file(tmp_path)), "--cluster", address])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"--cluster {address}: ")
    assert result.stderr.count("\n") == 1


def test_without_dask_the_way_to_get_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = CliRunner().invoke(app, ["run", str(scenario_file(tmp_path)), "--cluster", "tcp://127.0.0.1:9"])
    assert result.exit_code == 2
    assert "queueing_ucrl[cluster]" in result.stderr
