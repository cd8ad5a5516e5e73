"""The program, warm: a process that has everything loaded and forks for each command line, as fast as a function call.

Requests come as JSON lines on stdin ({"argv": [...], "folder": ...}), answers go to stdout: exit code, both streams,
CPU and wall seconds, the largest resident memory. A command that takes too long is killed with all its children: by its
CPU time, which does not depend on what else the machine does; one that only waits is given a wall time.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

CPU_SECONDS = 75.0
WALL_SECONDS = 300.0
MEMORY = 6 << 30  # of address space: a runaway must not take the machine with it


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    code: int | None  # None: it had to be killed
    stdout: bytes
    stderr: bytes
    cpu: float
    wall: float
    megabytes: float


class WarmProgram:
    """A server for one test process; `close` ends it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="ascii"
        )

    def run(self, *arguments: str | Path, folder: Path) -> Ending:
        """`queueing-ucrl arguments` in `folder`."""
        request = {"argv": [str(a) for a in arguments], "folder": str(folder)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        streams = {name: bytes.fromhex(answer.pop(name)) for name in ("stdout", "stderr")}
        return Ending(**answer, **streams)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def warm_up() -> None:
    """Load what the commands load, and have their machine code made: solve, both engines, tables and figures."""
    from queueing_ucrl.cli import app

    scenario = (
        "[queue]\nservers = 1\ncapacity = 4\nservice_rate = 1.0\n"
        '[[class]]\nname = "a"\narrival_rate = 1.0\nreward = 1.0\n'
        'holding_cost = { kind = "deadline", penalty = 1, due = 1 }\n'
        '[[controller]]\nname = "thompson"\n[[controller]]\nname = "oracle"\n[[controller]]\nname = "r-learning"\n'
        "[run]\nhorizon = 20.0\n"
    )
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        path = Path(folder) / "warm.toml"
        world = scenario.replace("capacity = 4", 'capacity = 4\npatience = { kind = "exponential", rate = 1.0 }')
        for k, text in enumerate((scenario, world)):
            path.write_text(text)
            for arguments in (["solve", str(path)], ["run", str(path), "--jobs", "1", "--out", f"{folder}/out{k}"]):
                app(arguments, standalone_mode=False)


def serve_one(request: dict[str, object], answers: int) -> None:
    """Fork, run, wait, answer."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        child = os.fork()
        if child == 0:
            be_the_program(request, out.fileno(), err.fileno())
        code, usage = wait(child)
        wall = time.perf_counter() - began
        streams = {}
        for name, file in (("stdout", out), ("stderr", err)):
            file.seek(0)
            streams[name] = file.read(1 << 20).hex()
    used = {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "megabytes": usage.ru_maxrss / 1024}
    answer = {"code": code, **used, **streams}
    os.write(answers, (json.dumps(answer) + "\n").encode())


def wait(child: int) -> tuple[int | None, resource.struct_rusage]:
    """The exit code (None if it was killed for taking too long; minus the signal if one killed it) and what it used."""
    until = time.monotonic() + WALL_SECONDS
    process, pause, killed = psutil.Process(child), 0.002, False
    while True:
        found, status, usage = os.wait4(child, 0 if killed else os.WNOHANG)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # workers that it left behind
            return (None if killed else os.waitstatus_to_exitcode(status)), usage
        times = process.cpu_times()
        if time.monotonic() > until or times.user + times.system > CPU_SECONDS:
            os.killpg(child, signal.SIGKILL)
            killed = True
        else:
            time.sleep(pause)
            pause = min(0.1, 1.2 * pause)


def be_the_program(request: dict[str, object], out: int, err: int) -> None:
    """In the child: what the interpreter would do with `queueing-ucrl argv`."""
    import traceback

    os.setpgid(0, 0)
    code: object = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(str(request["folder"]))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        argv = request["argv"]
        assert isinstance(argv, list)
        sys.argv = ["queueing-ucrl", *argv]
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        from queueing_ucrl.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


def main() -> None:
    answers = os.dup(1)  # what is printed on the way must not get among the answers
    os.dup2(2, 1)
    warm_up()
    for line in sys.stdin:
        serve_one(json.loads(line), answers)


if __name__ == "__main__":
    main()
