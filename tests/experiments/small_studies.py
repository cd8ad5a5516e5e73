"""A study that takes a moment, its numbers as bytes, and a folder's bytes as a digest."""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from generators import paper_queue

import queueing_ucrl as qu

SCENARIO = """
title = "small"

[queue]
servers = 2
capacity = 6
service_rate = 0.5

[[class]]
name = "gold"
arrival_rate = 1.0
reward = 20.0
holding_cost = { kind = "linear", rate = 0.3 }

[[class]]
name = "basic"
arrival_rate = 1.0
reward = 10.0
holding_cost = { kind = "deadline", penalty = 3.0, due = 1.0 }

[controller]
name = "ucrl-ac"
arrival_rate_bounds = [1.0, 4.0]
first_episode = 10.0

[run]
horizon = 300.0
replications = 4
seed = 1
grid_points = 12
"""


def scenario_file(folder: Path, more: str = "", **replaced: str) -> Path:
    """The scenario above in a file, with lines `key = ...` replaced and more at its end."""
    lines = SCENARIO.splitlines()
    for key, value in replaced.items():
        lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in lines]
    path = folder / "small.toml"
    path.write_text("\n".join(lines) + "\n" + more, encoding="utf-8")
    return path


def hear_ctrl_c() -> None:
    """In a child process before it becomes the program: Ctrl-C counts there even if nobody listens to it here."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """The program in a process of its own."""
    command = [sys.executable, "-m", "queueing_ucrl", *map(str, arguments)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command, preexec_fn=hear_ctrl_c, **streams)


def without_progress(told: str) -> str:
    """What the program said, less the lines that it adds on a slow machine."""
    return re.sub(r"(compiling numeric code|\d+ of \d+ trials(, time [^\n]*)? after).*\n", "", told)


def small_study(**settings: object) -> qu.Study:
    controllers = [qu.UcrlAc((1.0, 4.0), 10.0), "oracle", "random"]
    arguments = {"horizon": 200.0, "replications": 5, "seed": 9, **settings}
    return qu.replicate(paper_queue(), controllers, **arguments)  # type: ignore[arg-type]


def numbers(study: qu.Study) -> bytes:
    """All numbers of a study, to the last bit."""
    frame = study.curves()
    values = np.ascontiguousarray(frame.drop(columns="controller").to_numpy(dtype=float))
    return values.tobytes() + repr(study.summary()).encode() + repr(study.episodes().to_dict("list")).encode()


def contents(folder: Path) -> dict[str, str]:
    """A digest of each file under a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
