"""The mutation attack: thousands of scenario files and command lines gone wrong, none of which may end badly.

A file is loaded or refused in words. A command ends with 0, or with 2 and a message, having written nothing; with 1
only where double precision gives no answer. No traceback, no warning of numpy's, no more than 60 s of CPU, 1 GB, or a
few kB of message. Files and command lines are generated from the program's own models and options, with a fixed seed.
"""

from __future__ import annotations

import json
import math
import random as randomness
import resource
import shutil
import time
from pathlib import Path

import commands
import mutations
import pytest
from warm_program import Ending, WarmProgram

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import identity
from queueing_ucrl.messages import printable

SEED = 20240
SECONDS = 60.0  # of CPU: what hangs, or grows without bound; not what is slow
MEGABYTES = 1000.0
LONGEST_MESSAGE = 12_000  # characters: twenty mistakes, each with its file's name


@pytest.fixture(scope="module")
def program():
    warm = WarmProgram()
    yield warm
    warm.close()


# Loading


def test_what_the_mutations_start_from_is_legal(tmp_path):
    path = tmp_path / "x.toml"
    mutations.furnish(tmp_path)
    for tree in mutations.legal_trees():
        path.write_bytes(mutations.toml(tree))
        scenario = qu.load_scenario(path)
        assert json.dumps(identity(scenario), allow_nan=False)


def test_every_key_of_a_scenario_is_attacked():
    """Every key of every section's model, and every option of every controller, stands in one of the legal files."""
    from dataclasses import fields

    from queueing_ucrl.learning.registry import OWN
    from queueing_ucrl.scenario.keys import SECTIONS
    from queueing_ucrl.scenario.parts import KINDS

    trees = mutations.legal_trees()
    keys = {part for tree in trees for path in mutations.places(tree) for part in path}
    for model in [*SECTIONS.values(), *(part for kinds in KINDS.values() for part in kinds.values())]:
        assert {field.alias or name for name, field in model.model_fields.items()} <= keys
    attacked = {what.split(" ")[0] for what, _ in mutations.mutated_files(SEED)}
    for kind in OWN.values():
        spelled = {f.name for f in fields(kind) if f.default is not None}
        assert {f"controller.0.{name}" for name in spelled} <= attacked


def fault_of_loading(path: Path) -> str | None:
    """What is wrong with how a file was loaded or refused; None if all is well."""
    began = time.process_time()
    try:
        scenario = qu.load_scenario(path)
        json.dumps(identity(scenario), allow_nan=False)
        if not all(math.isfinite(rate) for rate in scenario.queue.arrival_rates):
            return "rates that are not finite"
    except qu.ScenarioError as error:
        message = str(error)
        if not message or len(message) > LONGEST_MESSAGE:
            return f"a message of {len(message)} characters"
        if printable(message) != message or not all(message.split("\n")):  # joiners print: words are spelled with them
            return f"a message that does not print: {message[:200]!a}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    seconds = time.process_time() - began
    return None if seconds < SECONDS else f"{seconds:.1f} s"


def load_all(cases: list[mutations.Case], path: Path) -> None:
    mutations.furnish(path.parent)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faults = []
    for what, make in cases:
        path.write_bytes(make())
        if (fault := fault_of_loading(path)) is not None:
            faults.append(f"{what}: {fault}")
    assert not faults, "\n".join(faults[:20])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * MEGABYTES


WHOLE = len(list(mutations.whole_files()))


def test_mutated_files_are_loaded_or_refused_in_words(tmp_path):
    load_all(mutations.mutated_files(SEED)[WHOLE : WHOLE + 400], tmp_path / "x.toml")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_thousands_of_mutated_files_are_loaded_or_refused_in_words(tmp_path, part):
    cases = mutations.mutated_files(SEED)
    load_all(cases[part : WHOLE + 8000 : 4], tmp_path / "x.toml")


# The command line


def fault_of_ending(ending: Ending, written: list[str]) -> str | None:
    """What is wrong with how a command ended; None if all is well."""
    message = ending.stderr.decode("utf-8", "replace")
    if ending.code is None:
        return f"did not end within {ending.cpu:.1f} s of CPU, {ending.wall:.1f} s"
    if ending.code == 1 and not ("double precision" in message or "trust" in message or "too far apart" in message):
        return f"exit code 1: {message[-300:]}"
    if ending.code not in (0, 1, 2):
        return f"exit code {ending.code}: {message[-300:]}"
    if "Traceback" in message or "Warning:" in message:
        return message[-500:]
    if ending.code != 0 and (not message.strip() or len(message) > LONGEST_MESSAGE):
        return f"a message of {len(message)} characters"
    if printable(message) != message:
        return f"a message that does not print: {message[:300]!a}"
    if ending.code == 2 and written:
        return f"wrote {written} and ended with 2: {message[-300:]}"
    if ending.cpu > SECONDS or ending.megabytes > MEGABYTES:
        return f"took {ending.cpu:.1f} s of CPU and {ending.megabytes:.0f} MB"
    return None


METHODS = ("pi-b", "pi", "vi", "vi-ae", "lp", "trunk-search")


def command_for(n: int, path: Path) -> list[str]:
    """Most files are run, the others solved."""
    if n % 3 == 0:
        return ["solve", str(path), "--method", METHODS[n // 3 % len(METHODS)], *(["--json"] if n % 2 else [])]
    line = ["run", str(path), "--replications", "1", "--jobs", "1", "--out", "out", *(["--json"] if n % 5 == 0 else [])]
    return line if n % 10 == 1 else [*line, "--horizon", "20"]


def attack_with_files(program: WarmProgram, cases: list[mutations.Case], folder: Path) -> None:
    mutations.furnish(folder)
    faults = []
    for n, (what, make) in enumerate(cases):
        path = folder / f"{n}.toml"
        path.write_bytes(make())
        (here := folder / "here").mkdir()
        line = command_for(n, path)
        ending = program.run(*line, folder=here)
        if (fault := fault_of_ending(ending, [p.name for p in here.iterdir()])) is not None:
            faults.append(f"{line[0]} {what}: {fault}")
        shutil.rmtree(here)
        path.unlink()
    assert not faults, "\n".join(faults[:20])


def test_mutated_files_end_well_on_the_command_line(program, tmp_path):
    attack_with_files(program, mutations.mutated_files(SEED)[WHOLE + 8000 :][:60], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_mutated_files_end_well_on_the_command_line(program, tmp_path, part):
    cases = mutations.mutated_files(SEED)
    attack_with_files(program, [*cases[part:WHOLE:4], *cases[WHOLE + 8060 + part :: 4][:150]], tmp_path)


def attack_with_options(program: WarmProgram, lines: list[list[str]], folder: Path) -> None:
    commands.furnish(folder)
    furniture = {p.name for p in folder.iterdir()}
    faults = []
    for line in lines:
        ending = program.run(*line, folder=folder)
        written = [p for p in folder.iterdir() if p.name not in furniture]
        if (fault := fault_of_ending(ending, [p.name for p in written])) is not None:
            faults.append(f"{' '.join(ascii(part)[:60] for part in line)}: {fault}")
        for path in written:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not faults, "\n".join(faults[:20])


def test_option_combinations_end_well(program, tmp_path):
    attack_with_options(program, list(commands.option_combinations(SEED, pairs=200))[::12], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_option_combinations_end_well(program, tmp_path, part):
    lines = list(commands.option_combinations(SEED, pairs=200))
    assert len(lines) > 400
    attack_with_options(program, lines[part::4], tmp_path)


def test_a_folder_of_pipes_and_ruins_is_listed_at_once(program, tmp_path):
    commands.furnish(tmp_path)
    for n, (_, make) in enumerate(mutations.mutated_files(SEED)[WHOLE : WHOLE + 40]):
        (tmp_path / f"{n:02d}\x1b[31m.toml").write_bytes(make())
    ending = program.run("scenarios", ".", folder=tmp_path)
    assert ending.code == 2
    assert b"pipe.toml: is not a file but a pipe or a device" in ending.stderr
    assert rb"caf\xe9\x1b.toml" in ending.stdout
    for text in (ending.stdout.decode(), ending.stderr.decode()):
        assert all(line.isprintable() for line in text.split("\n"))
    assert ending.cpu < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_queues_far_from_all_that_is_usual_end_well(program, tmp_path, part):
    cases = list(mutations.far_fetched(mutations.legal_trees(), randomness.Random(SEED), 200))
    mutations.furnish(tmp_path)
    faults = []
    for n, (what, make) in enumerate(cases[part::2]):
        path = tmp_path / f"{n}.toml"
        path.write_bytes(make())
        (here := tmp_path / "here").mkdir()
        study = ["run", str(path), "--replications", "1", "--jobs", "1", "--out", "out"]
        ending = program.run(*(["solve", str(path)] if n % 3 == 0 else study), folder=here)
        if (fault := fault_of_ending(ending, [p.name for p in here.iterdir()])) is not None:
            faults.append(f"{what}: {fault}")
        shutil.rmtree(here)
    assert not faults, "\n".join(faults[:20])
