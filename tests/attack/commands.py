"""Command lines gone wrong in every way: generated from the program's own commands and options.

`option_combinations(seed, ...)` gives command lines for the scenario `good.toml` and the things around it.
"""

from __future__ import annotations

import os
import random as randomness
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from queueing_ucrl.cli import app

LONG = "x" * 100_000
WORDS = """0 -1 -0 1 2 1.5 nan inf -inf 1e300 1e-300 1e400 0x10 1_0 x oracle pi compiled
    客户 é , a,,b oracle,oracle oracle,thompson --json -x -- %s {} [bold] ../good.toml . /
    /dev/null /dev/full pipe.toml nowhere/at/all good.toml broken.toml folder.toml ~"""
ODD = ["9" * 400, LONG, "a/" * 3000, "\x1b[31mred", "a\nb", "\t", "\u202egnp", "\udcff\udcfe"]
WILD = ["", " ", *WORDS.split(), *ODD]
FEW = {
    "--cluster": ["", "x", LONG],  # whoever asks for a scheduler waits ten seconds for it
    # what it names is written
    "--to": ["", ".", "good.toml", "pipe.toml", "nowhere/at/all", "/dev/full", "\udcff", LONG],
}
GOOD = """title = "good"
[queue]
servers = 1
capacity = 4
service_rate = 1.0
[[class]]
name = "a"
arrival_rate = 1.0
reward = 1.0
[[controller]]
name = "oracle"
[[controller]]
name = "thompson"
[run]
horizon = 20.0
"""
STUDY = {"--horizon": "20", "--replications": "1", "--jobs": "1", "--out": "out"}


def furnish(folder: Path) -> None:
    """What the command lines speak of; `out` and `runs` are left to them."""
    (folder / "good.toml").write_text(GOOD)
    (folder / "broken.toml").write_text(GOOD.replace("servers = 1", "servers = 0"))
    (folder / "folder.toml").mkdir()
    os.mkfifo(folder / "pipe.toml")
    (folder / os.fsdecode(b"caf\xe9\x1b.toml")).write_text(GOOD)


def commands() -> dict[str, Any]:
    """The program's commands and their own, by name."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        found[name] = inner.get("list", command)  # `scenarios .` is `scenarios list .`
        found |= {f"{name} {word}": sub for word, sub in inner.items()}
    return found


def options(command: Any) -> dict[str, bool]:
    """A command's options and whether each takes a value."""
    return {
        parameter.opts[-1]: not getattr(parameter, "is_flag", False)
        for parameter in command.params
        if parameter.opts[-1].startswith("--")
    }


def base(name: str, command: Any, **changes: str) -> list[str]:
    """A legal command line: its arguments, and of the options those that keep it short."""
    first = {"reproduce": ["diameter"], "scenarios": ["."], "scenarios list": ["."], "scenarios copy": ["quickstart"]}
    takes = [p for p in command.params if not p.opts[-1].startswith("--")]
    line = [*name.split(), *(first.get(name, ["good.toml"]) if takes else [])]
    short = {**STUDY, "--horizon": "100"} if name == "reproduce" else STUDY
    given = {key: value for key, value in short.items() if key in options(command)}
    if name == "compare":
        given["--controllers"] = "oracle,admit-all"
    for key, value in {**given, **changes}.items():
        line += [key, value]
    return line


def option_combinations(seed: int, pairs: int) -> Iterator[list[str]]:
    """Each option of each command with wild values, wild arguments, and random combinations of options."""
    random = randomness.Random(seed)
    everything = commands()
    for name, command in everything.items():
        line, known = base(name, command), options(command)
        yield line
        yield name.split()
        yield [*line, "--help"]
        yield [*line, LONG]
        yield [*line, f"--{LONG}"]
        yield [*line, "--\x1b[31m", "\udcff"]
        for value in random.sample(WILD, 12):
            yield [*name.split(), value]
        for option, valued in known.items():
            yield [*line, option]
            for value in FEW.get(option, random.sample(WILD, 8)) if valued else ():
                yield [*line, option, value]
    yield []
    yield from ([value] for value in WILD)
    with_options = sorted(name for name, command in everything.items() if options(command))
    for _ in range(pairs):
        name = random.choice(with_options)
        line = base(name, everything[name])
        for option, valued in random.choices(sorted(options(everything[name]).items()), k=2):
            line += [option, random.choice(FEW.get(option, WILD))] if valued else [option]
        yield line
