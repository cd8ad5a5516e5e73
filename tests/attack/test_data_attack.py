"""The attack with data: logs, event logs and fitted scenarios gone wrong, on the command line.

Each command ends with 0, or with 2 and one message, having written and changed nothing; with 1 only where an event log
breaks a law, or double precision gives no answer. No traceback, no warning, no more than 60 s of CPU or 1 GB, nothing
half-written, and no file that was there is written over unasked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import data_cases
import numpy as np
import pandas as pd
import pytest
from test_mutation_attack import LONGEST_MESSAGE, MEGABYTES, SECONDS
from typer.testing import CliRunner
from warm_program import Ending, WarmProgram

import queueing_ucrl as qu
from queueing_ucrl.messages import printable

SEED = 20241


@pytest.fixture(scope="module")
def program():
    warm = WarmProgram()
    yield warm
    warm.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return data_cases.Furniture(tmp_path_factory.mktemp("furniture"))


def seen(folder: Path) -> dict[str, str]:
    """What is in a folder: digests of files, and what else there is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(folder))
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else stat.filemode(mode)
    return found


def fault_of(case: data_cases.Case, ending: Ending, before: dict[str, str], after: dict[str, str]) -> str | None:
    """What is wrong with how a command ended; None if all is well."""
    message = ending.stderr.decode("utf-8", "replace")
    if ending.code is None:
        return f"did not end within {ending.cpu:.1f} s of CPU, {ending.wall:.1f} s"
    excuses = ("breaks", "double precision", "trust", "too far apart")
    if ending.code not in (0, 1, 2) or (ending.code == 1 and not any(word in message for word in excuses)):
        return f"exit code {ending.code}: {message[-1500:]}"
    if "Traceback" in message or "Warning:" in message or "Traceback" in ending.stdout.decode("utf-8", "replace"):
        return message[-1500:]
    if ending.code != 0 and (not message.strip() or len(message) > LONGEST_MESSAGE):
        return f"a message of {len(message)} characters"
    for text in (message, ending.stdout.decode("utf-8", "replace")):
        if printable(text) != text:
            return f"words that do not print: {text[:300]!a}"
    changed = [name for name in before if after.get(name) != before[name]]
    if changed and "--force" not in case.line:
        return f"changed {changed}: {message[-300:]}"
    if any(name in case.line[1:2] for name in changed):
        return f"wrote over its own input {changed}"
    if ending.code == 2 and after != before:
        return f"wrote {sorted(after.keys() - before.keys())} and ended with 2: {message[-300:]}"
    if any(name.endswith(".part") for name in after):
        return f"left {[name for name in after if name.endswith('.part')]}"
    if ending.cpu > SECONDS or ending.megabytes > MEGABYTES:
        return f"took {ending.cpu:.1f} s of CPU and {ending.megabytes:.0f} MB"
    return None


def attack(program: WarmProgram, cases: list[data_cases.Case], folder: Path) -> None:
    faults = []
    for case in cases:
        (here := folder / "here").mkdir()
        for name, placed in case.files.items():
            (here / name).write_bytes(placed) if isinstance(placed, bytes) else placed(here / name)
        before = seen(here)
        ending = program.run(*case.line, folder=here)
        if (fault := fault_of(case, ending, before, seen(here))) is not None:
            faults.append(f"{case.what}: {fault}")
        shutil.rmtree(here)
    assert not faults, "\n".join(faults[:20])


@pytest.mark.slow
def test_odd_data_end_well(program, made, tmp_path):
    found = data_cases.cases(made, SEED)
    assert len(found) > 1500
    attack(program, [case for case in found if case.line[0] != "run"][::120], tmp_path)  # runs take longer


@pytest.mark.slow
@pytest.mark.skipif("WIDE_ATTACK" not in os.environ, reason="takes long, and finds what is not mended: WIDE_ATTACK=1")
@pytest.mark.parametrize("part", range(4))
def test_all_odd_data_end_well(program, made, tmp_path, part):
    attack(program, data_cases.cases(made, SEED)[part::4], tmp_path)


# What the attack found, each by name


def test_a_log_of_another_program_moves_as_ours_does(made, tmp_path):
    """Words instead of categories, another order of classes, a CSV: the same stretch."""
    from queueing_ucrl.report.animation import frames_of, player_data, stretch_of

    (tmp_path / "ours.parquet").write_bytes(made.parquet)
    (tmp_path / "theirs.parquet").write_bytes(made.log_of())
    qu.export_log(made.events, tmp_path / "theirs.csv")
    ours, theirs, text = (
        player_data(stretch_of(frames_of(tmp_path / name), 5.0, 15.0, 2))
        for name in ("ours.parquet", "theirs.parquet", "theirs.csv")
    )
    assert ours["events"]["time"]
    for other in (theirs, text):
        named = [ours["classes"][k] for k in ours["events"]["group"]]
        assert [other["classes"][k] for k in other["events"]["group"]] == named
        for key in ("time", "kind", "job", "server", "level"):
            assert other["events"][key] == ours["events"][key]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("time", -1.0, "row 21: time runs backwards"),
        ("server", 1e300, "row 21: server must be a whole number"),
        ("server", 1e8, "row 21: server must be from 0 to"),
        ("in_system", float("nan"), "row 21: in_system must be from 0 to"),
    ],
)
def test_what_cannot_be_drawn_is_named(made, tmp_path, column, value, words):
    from queueing_ucrl.report.animation import frames_of

    def change(old):
        return [value if k == 20 else x for k, x in enumerate(old.astype(float))]

    (tmp_path / "e.parquet").write_bytes(made.log_of(**{column: change}))
    with pytest.raises(ValueError, match=words):
        list(frames_of(tmp_path / "e.parquet"))


def test_columns_of_lists_are_refused(made, tmp_path):
    for column in ("event", "job_class"):
        (tmp_path / "e.parquet").write_bytes(made.log_of(**{column: lambda c: [[1, 2]] * len(c)}))
        with pytest.raises(ValueError, match=f"e.parquet: {column} must be text"):
            qu.jobs(tmp_path / "e.parquet")


def test_the_log_itself_is_never_written_over(made, tmp_path):
    from queueing_ucrl.cli import app

    (tmp_path / "log.trace.parquet").write_bytes(made.trace_bytes())
    columns = ["--time", "time", "--class", "job_class", "--service", "work", "--no-figure", "--no-report"]
    (tmp_path / "e.parquet").write_bytes(made.parquet)
    (tmp_path / "link.html").hardlink_to(tmp_path / "e.parquet")
    log, out = str(tmp_path / "e.parquet"), str(tmp_path / "link.html")
    before = seen(tmp_path)
    for line in (["fit", str(tmp_path / "log.trace.parquet"), *columns], ["animate", log, "--out", out]):
        result = CliRunner().invoke(app, [*line, "--force"])
        assert result.exit_code == 2
        assert "is the log itself" in result.stderr
        assert seen(tmp_path) == before


def test_a_spreadsheets_line_on_its_separator_is_no_header(made, tmp_path):
    plain, marked = tmp_path / "plain.csv", tmp_path / "marked.csv"
    content = data_cases.csv_bytes(made.rows, separator=";")
    plain.write_bytes(content)
    for first in (b"sep=;\r\n", b"\xef\xbb\xbfsep=;\n"):
        marked.write_bytes(first + content)
        found = qu.fit(marked, time="t", job_class="k", service="s")
        assert found.trace.equals(qu.fit(plain, time="t", job_class="k", service="s").trace)


def test_rounded_numbers_make_no_servers():
    """Back to back services of one server, all numbers rounded to 0.001: ends seem to lie after the next starts."""
    rng = np.random.default_rng(1)
    times, works = np.cumsum(rng.exponential(1.0, 2000)), rng.exponential(0.9, 2000)
    starts, free = np.empty(2000), 0.0
    for k in range(2000):
        starts[k] = max(times[k], free)
        free = starts[k] + works[k]
    frame = pd.DataFrame({"t": times, "q": starts - times, "s": works}).round(3)
    found = qu.fit(frame, time="t", patience="q", service="s")
    assert found.servers is not None
    assert found.servers.at_least == found.servers.servers == 1
