"""`queueing-ucrl run`: from a scenario to a table, a figure and a folder; and all that can go wrong on the way."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.learning.catalogue import entry
from queueing_ucrl.learning.registry import OWN, make_controller
from queueing_ucrl.report import progress
from queueing_ucrl.report.numbers import number, percent, with_interval
from queueing_ucrl.simulation import first_use, simulate

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
QUICKSTART = SCENARIOS / "quickstart.toml"
README = SCENARIOS.parent / "README.md"
PROGRAM = [sys.executable, "-m", "queueing_ucrl"]
TEXT = """
title = "A small one"
[queue]
servers = 2
capacity = 6
service_rate = 1.0
[[class]]
name = "a"
arrival_rate = 1.5
reward = 5.0
holding_cost = { kind = "linear", rate = 0.5 }
[[class]]
name = "b"
arrival_rate = 1.0
reward = 2.0
[controller]
name = "ucrl-ac"
arrival_rate_bounds = [1.0, 5.0]
first_episode = 2.0
[run]
horizon = 200.0
replications = 3
seed = 4
grid_points = 20
"""


PROGRESS = re.compile(r"compiling|\d+ of \d+ trials")  # what a slow machine may add to the error stream


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    """However slow the machine, and whatever was compiled before."""
    monkeypatch.setattr(progress, "FIRST_LINE", math.inf)
    monkeypatch.setattr(first_use, "is_compiled", lambda engine="auto": True)


def run(*arguments: str | Path, width: int = 80):
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, [str(a) for a in ("run", *arguments)])
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def scenario(tmp_path):
    def write(text: str = TEXT) -> Path:
        path = tmp_path / "small.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def strict_json(text: str):
    def refuse(constant: str):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_quickstart_as_a_newcomer_runs_it(tmp_path):
    """A process of its own, in an empty folder, with the file's own settings."""
    result = subprocess.run([*PROGRAM, "run", str(QUICKSTART)], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0
    assert all(PROGRESS.match(line) for line in result.stderr.splitlines())
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("quickstart-")
    title, conditions, _, *lines = result.stdout.splitlines()
    assert title == "Quickstart: learn whom to let in"
    assert conditions == "mean of 20 replications up to time 200,000, ± half of the 95 % interval"
    # the first thing to be read is the answer: what could be had, and what each lost of it, the least first
    assert lines[0].startswith("The best policy")
    answer = [line.split() for line in lines[: lines.index("", 4)]]
    assert "\n".join(f"    {line}".rstrip() for line in lines[: lines.index("", 4)]) in README.read_text()
    rows = [row for row in answer if row and row[0] in ("certainty-equivalent", "ucrl-ac")]
    assert [row[0] for row in rows] == ["certainty-equivalent", "ucrl-ac"]
    assert all(row[2].startswith("±") and row[3].endswith("%") for row in rows)
    assert lines[-3:] == [
        f"the picture: runs/{folder.name}/regret.png",
        f"the report, for a browser: runs/{folder.name}/report.html",
        f"tables and trials are in runs/{folder.name}",
    ]
    assert (folder / "regret.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_the_table_tells_all_that_was_promised(scenario, tmp_path):
    """Reward, regret by each account, gain against the best, fates and waits by class, utilisation; in 80 columns."""
    path = scenario()
    result = run(path, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert max(map(len, lines[:-3])) <= 80  # the last ones name the folder
    (cell,) = strict_json((tmp_path / "out" / "summary.json").read_text())["results"]
    answer, earned, first, regret, curve = (line for line in lines if line.startswith("ucrl-ac "))
    assert curve.split()[-1] == number(cell["regret"]["gap"]["mean"], 3)
    second = next(line for line in lines if line.strip().startswith("b "))

    def shown(spread):
        return with_interval(spread["mean"], spread["high"] - spread["mean"])

    accounts = ("gap", "expected", "realised", "pseudo")
    heading = next(line for line in lines if line.startswith("regret "))
    assert heading.split() == ["regret", *accounts]
    assert regret.split() == ["ucrl-ac", *(w for kind in accounts for w in shown(cell["regret"][kind]).split())]
    best = qu.solve(qu.load_scenario(path).queue).gain
    text = " ".join(result.stdout.split())
    assert f"would earn {number(best, 6)} per unit of time, {number(200 * best, 6)} in all" in text
    share = percent(cell["regret"]["gap"]["mean"] / (200 * best), 2)
    tails = [number(cell["regret"]["gap"][name], 4) for name in ("median", "q90", "q99")]
    assert answer.split() == ["ucrl-ac", *shown(cell["regret"]["gap"]).split(), share, *tails]
    busy = percent(cell["utilisation"]["mean"])
    assert earned.split() == ["ucrl-ac", *shown(cell["reward"]).split(), *shown(cell["gain"]).split(), busy]
    for line, job_class in ((first.removeprefix("ucrl-ac"), cell["classes"][0]), (second, cell["classes"][1])):
        count = job_class["arrivals"]["mean"]
        fates = [percent(job_class[fate]["mean"] / count) for fate in ("admitted", "rejected", "blocked")]
        waits = [number(job_class[name]["mean"], 3) for name in ("mean_wait", "wait_95")]
        assert line.split() == [job_class["name"], *fates, *waits]
    assert "waiting (their costs are not in)" in text
    assert "below 0 is a lucky draw" in text


def test_one_replication_has_no_interval_and_says_so(scenario, tmp_path):
    result = run(scenario(), "--out", tmp_path / "out", "--replications", "1")
    _, conditions, *rest = result.stdout.splitlines()
    assert "one replication" in conditions
    assert "±" not in "\n".join(rest).replace("(no ±)", "")
    assert "one replication cannot tell" in " ".join(result.stdout.split())


def test_units_are_words_and_nothing_else(scenario, tmp_path):
    """They stand in the tables, the manifest and the JSON; the numbers and the study's key are the same."""
    plain = run(scenario(), "--out", tmp_path / "out", "--json")
    path = scenario(TEXT + '[units]\ntime = "minutes"\nmoney = "euros"\n')
    again = run(path, "--out", tmp_path / "out", "--json")  # the same folder: it is the same study
    assert again.exit_code == 0, again.stderr
    old, new = strict_json(plain.stdout), strict_json(again.stdout)
    assert old.pop("units") == {"time": None, "money": None}
    assert new.pop("units") == {"time": "minutes", "money": "euros"}
    assert old == new
    for name in ("manifest.json", "summary.json"):
        assert strict_json((tmp_path / "out" / name).read_text())["units"] == {"time": "minutes", "money": "euros"}
    table = run(path, "--out", tmp_path / "out").stdout
    assert "per minute" in table
    assert "regret (euros)" in table


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("time = 3", "units.time = 3 must be a text in quotes"),
        ('time = ""', "units.time = '' must not be empty"),
        ('money = "\\u0007"', "must be one line of printable characters"),
        ('tiem = "hours"', "units.tiem = 'hours' is not a known key; did you mean time?"),
        (f'time = "{"x" * 21}"', "must have at most 20 characters"),
    ],
)
def test_a_mistake_in_the_units_is_told(scenario, tmp_path, units, message):
    result = run(scenario(f"{TEXT}[units]\n{units}\n"), "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_title_that_no_font_can_draw_is_noted_once(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr("queueing_ucrl.report.lettering._fallbacks", lambda: ())
    text = TEXT.replace("A small one", "客户") + "[sweep]\nqueue.service_rate = [1.0, 2.0]\n"
    result = run(scenario(text), "--out", tmp_path / "out")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("note: no font of this machine has 客户: ")
    assert "the picture: " in result.stdout
    assert (tmp_path / "out" / "regret-0000.png").exists()


def test_what_is_not_compiled_yet_is_compiled_once_and_told(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(first_use, "is_compiled", lambda engine="auto": False)
    result = run(scenario(), "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (0, "compiling numeric code, once (about 10 s)\n")
    wrong = run(scenario(TEXT.replace("first_episode = 2.0", "first_episode = 0.5")), "--out", tmp_path / "other")
    assert wrong.exit_code == 2
    assert wrong.stderr.count("\n") == 2


@pytest.mark.parametrize("name", OWN)
def test_every_controller_can_be_compiled_ahead(name, monkeypatch):
    monkeypatch.setattr(first_use, "is_compiled", lambda engine="auto": False)
    seen, told = [], []
    original = simulate.simulate
    monkeypatch.setattr(simulate, "simulate", lambda *args, **kw: seen.append(original(*args, **kw)))
    controller = make_controller(name, entry(name).example_options)
    first_use.compile_first([controller, controller, object()], told.append)
    assert told == [first_use.NOTICE]
    assert [run.controller for run in seen] == [name]


def test_the_folder_holds_what_help_says(scenario, tmp_path):
    two = TEXT.replace("[controller]", '[[controller]]\nname = "oracle"\n[[controller]]', 1)
    run(scenario(two), "--out", tmp_path / "out")
    told = set(re.findall(r"[a-z]+\.(?:json|parquet|png|html)", run("--help").stdout))
    without_log = told - {"data.json"}  # that is of a scenario with a table [data]: test_run_data.py
    assert without_log == {path.name for path in (tmp_path / "out").iterdir() if path.is_file()} - {".lock"}
    assert len(list((tmp_path / "out" / "trials").rglob("*.parquet"))) == 6
    manifest = strict_json((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["title"] == "A small one"
    assert manifest["replications"] == 3
    assert manifest["engines"]["ucrl-ac"]["engine"] == "compiled"
    assert manifest["identity"]["seed"] == 4
    assert manifest["identity"]["version"] == qu.__version__
    assert manifest["identity"]["points"][0]["queue"]["classes"][0]["holding_cost"] == {"kind": "linear", "rate": 0.5}


def test_json_is_valid_and_its_keys_are_explained(scenario, tmp_path):
    result = run(scenario(), "--out", tmp_path / "out", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = strict_json(result.stdout)
    assert data["folder"] == str(tmp_path / "out")
    assert data["title"] == "A small one"
    (cell,) = data["results"]
    assert cell["controller"] == "ucrl-ac"
    assert (cell["horizon"], cell["replications"]) == (200.0, 3)
    assert set(cell["regret"]) == {"realised", "expected", "gap", "pseudo"}
    assert cell["regret"]["gap"]["low"] < cell["regret"]["gap"]["mean"] < cell["regret"]["gap"]["high"]

    def keys(item):
        if isinstance(item, dict):
            return {*item}.union(*map(keys, item.values()))
        return set().union(*map(keys, item)) if isinstance(item, list) else set()

    text = run("--help").stdout
    assert {key for key in keys(data) if not re.search(rf"\b{key}\b", text)} == set()


def test_the_numbers_are_those_of_the_python_face(scenario, tmp_path):
    path = scenario()
    data = strict_json(run(path, "--out", tmp_path / "out", "--replications", "1", "--json").stdout)["results"][0]
    loaded = qu.load_scenario(path)
    alone = qu.simulate(loaded.queue, loaded.controller, horizon=200.0, seed=4, replication=0).summary()
    assert {kind: spread["mean"] for kind, spread in data["regret"].items()} == alone["regret"]
    assert set(data["reward"].values()) == {alone["reward"]}


def test_options_override_the_scenario(scenario, tmp_path):
    path = scenario()

    def results(name, *options):
        result = run(path, "--out", tmp_path / name, "--json", *options)
        assert result.exit_code == 0, result.output
        return strict_json(result.stdout)["results"][0]

    base = results("base")
    assert results("seed", "--seed", "5")["reward"] != base["reward"]
    assert results("horizon", "--horizon", "50")["horizon"] == 50.0
    assert results("replications", "--replications", "2")["replications"] == 2
    assert results("controller", "--controller", "oracle")["controller"] == "oracle"
    simpy = results("engine", "--engine", "simpy")
    assert simpy.pop("engine") == "simpy"
    assert simpy == {key: value for key, value in base.items() if key != "engine"}


def test_the_log_is_written_where_asked_and_changes_nothing(scenario, tmp_path):
    path = scenario()
    run(path, "--out", tmp_path / "plain")
    run(path, "--out", tmp_path / "logged", "--log")
    logs = sorted((tmp_path / "logged" / "events").rglob("*"))
    assert [log.name for log in logs if log.is_file()] == [f"00000{r}.parquet" for r in range(3)]
    loaded = qu.load_scenario(path)
    events = qu.simulate(loaded.queue, loaded.controller, horizon=200.0, seed=4, replication=1, log=True).events
    assert qu.read_events(next(log for log in logs if log.name == "000001.parquet")).equals(events)
    logged, plain = contents(tmp_path / "logged"), contents(tmp_path / "plain")
    digests = {f"trials/0000/ucrl-ac/00000{r}.json" for r in range(3)}  # of the logs
    assert {name for name in logged if not name.startswith("events/")} == {*plain, *digests}
    del plain["report.html"]  # it shows more where there is a log
    del plain["manifest.json"]  # the command asked for one
    assert {name: logged[name] for name in plain} == plain
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("plain", "logged")]
    commands = [manifest.pop("command") for manifest in manifests]
    assert commands[1] == [*commands[0], "--log"]
    assert manifests[0] == manifests[1]


# --- again, and in the wrong place -----------------------------------------------------------------------------------


def test_the_same_command_again_takes_what_is_there(scenario, tmp_path):
    path, out = scenario(), tmp_path / "out"
    first = run(path, "--out", out, "--jobs", "1")
    before = contents(out)
    trials = sorted((out / "trials").rglob("*.parquet"))
    stamps = [trial.stat().st_mtime_ns for trial in trials]
    assert run(path, "--out", out, "--jobs", "1").stdout == first.stdout
    assert [trial.stat().st_mtime_ns for trial in trials] == stamps
    assert contents(out) == before
    trials[1].unlink()
    (out / "summary.json").unlink()
    assert run(path, "--out", out, "--jobs", "1").exit_code == 0
    assert contents(out) == before
    assert trials[0].stat().st_mtime_ns == stamps[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--seed", "9"], "seed: 4 there, 9 now"),
        (["--horizon", "20"], "horizon: 200.0 there, 20.0 now"),
        (["--controller", "oracle"], '"ucrl-ac" there, "oracle" now'),
    ],
)
def test_a_folder_of_another_study_is_never_touched(scenario, tmp_path, change, told):
    path, out = scenario(), tmp_path / "out"
    run(path, "--out", out)
    before = contents(out)
    result = run(path, "--out", out, *change)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "belongs to another study; name another folder with --out" in result.stderr
    assert told in result.stderr
    assert contents(out) == before


def test_a_folder_of_something_else_is_never_touched(scenario, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.tex").write_text("years of work")
    result = run(scenario(), "--out", out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{out}: holds files of something else; name another folder with --out\n"
    assert os.listdir(out) == ["chapter.tex"]


def test_a_file_in_place_of_the_folder_is_told(scenario, tmp_path):
    (tmp_path / "out").write_text("")
    result = run(scenario(), "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (2, f"{tmp_path}/out: is not a folder; name another with --out\n")


def test_a_folder_that_cannot_be_made_is_told(scenario, tmp_path):
    (tmp_path / "file").write_text("")
    result = run(scenario(), "--out", tmp_path / "file" / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(rf"{tmp_path}/file(/out)?: cannot be used \(Not a directory\); .*\n", result.stderr)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_told(scenario, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    result = run(scenario(), "--out", tmp_path / "locked" / "out")
    assert result.exit_code == 2
    assert "cannot be used (Permission denied)" in result.stderr


# --- mistakes: exit code 2, one message, nothing written -------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizon", "0"], "--horizon 0.0: must be a positive number"),
        (["--horizon", "-5"], "--horizon -5.0: must be a positive number"),
        (["--horizon", "nan"], "--horizon nan: must be a positive number"),
        (["--horizon", "inf"], "--horizon inf: must be a positive number"),
        (["--horizon", "long"], "--horizon"),
        (["--replications", "0"], "--replications 0: must be at least 1"),
        (["--seed", "-1"], "--seed -1: must be at least 0"),
        (["--seed", "1.5"], "--seed"),
        (["--jobs", "0"], "--jobs 0: must be at least 1"),
        (["--engine", "fast"], "--engine fast: must be auto, simpy or compiled"),
        (["--controller", "orcale"], "no controller is called 'orcale'; did you mean oracle?"),
        (["--controller", "trunk-reservation"], "controller trunk-reservation: levels is missing"),
    ],
)
def test_a_bad_value_ends_with_one_message_and_nothing_written(scenario, tmp_path, options, message):
    result = run(scenario(), "--out", tmp_path / "out", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "first_episode = 2.0",
            "first_episode = 0.5",
            "first_episode must be longer than 1 / service_rate = 1, got 0.5",
        ),
        ('name = "ucrl-ac"', 'name = "ucrl"', "did you mean"),
        ("first_episode = 2.0", "frist_episode = 2.0", "did you mean first_episode?"),
        ("[1.0, 5.0]", "[5.0, 1.0]", "arrival_rate_bounds must be two numbers 0 <= low <= high"),
        ("servers = 2", "servers = 0", "queue.servers = 0 must be at least 1"),
    ],
)
def test_a_mistake_in_the_scenario_ends_with_its_place_and_nothing_written(scenario, tmp_path, old, new, message):
    path = scenario(TEXT.replace(old, new))
    result = run(path, "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(str(path))
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_levels_that_do_not_fit_the_queue_leave_nothing_behind(scenario, tmp_path):
    controller = TEXT[TEXT.index("[controller]") : TEXT.index("[run]")]
    path = scenario(TEXT.replace(controller, '[controller]\nname = "trunk-reservation"\nlevels = [9, 1]\n'))
    result = run(path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "controller trunk-reservation: control levels must lie between 0 and the capacity 6, got 9" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_scenario_without_a_controller_gets_the_recommended_one(scenario, tmp_path):
    controller = TEXT[TEXT.index("[controller]") : TEXT.index("[run]")]
    path = scenario(TEXT.replace(controller, ""))
    result = run(path, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "certainty-equivalent" in result.stdout
    assert run(path, "--out", tmp_path / "oracle", "--controller", "oracle").exit_code == 0
    result = run(path, "--out", tmp_path / "other", "--controller", "ucrl-ac")
    assert result.exit_code == 2
    assert "controller ucrl-ac: arrival_rate_bounds is missing" in result.stderr
    assert not (tmp_path / "other").exists()


def test_bounds_that_exclude_the_truth_are_noted(scenario, tmp_path):
    result = run(scenario(TEXT.replace("[1.0, 5.0]", "[3.0, 5.0]")), "--out", tmp_path / "out")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("note: ucrl-ac: the total arrival rate 2.5 is outside")
    assert "guarantee is void" in line
    (caution,) = strict_json((tmp_path / "out" / "summary.json").read_text())["results"][0]["cautions"]
    assert "guarantee is void" in caution


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupted(arguments, wait_for: Path) -> subprocess.CompletedProcess:
    """Start the program, send it SIGINT soon after `wait_for` is there, and see how it ends."""
    process = subprocess.Popen(
        [*PROGRAM, "run", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored where the tests run
    )
    try:
        while not wait_for.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    told = "\n".join(line for line in err.decode().splitlines() if not PROGRESS.match(line))
    return subprocess.CompletedProcess(arguments, process.returncode, out.decode(), told)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a process")
def test_ctrl_c_in_a_long_run_stops_and_says_how_to_go_on(scenario, tmp_path):
    """One SimPy run that would take hours, in the process itself."""
    out = tmp_path / "out"
    arguments = [scenario(), "--out", out, "--engine", "simpy", "--horizon", "1e9", "--replications", "1"]
    result = interrupted(arguments, out / "manifest.json")
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr.strip() == (
        f"stopped; finished trials are kept in {out}, and the same command goes on from there"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a process")
def test_after_ctrl_c_the_same_command_goes_on(scenario, tmp_path):
    """Stopped after the first of several trials; the end is as if nothing had happened."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    options = ["--engine", "simpy", "--horizon", "2e4", "--replications", "2", "--jobs", "1"]
    first = out / "trials" / "0000" / "ucrl-ac" / "000000.parquet"
    result = interrupted([scenario(), "--out", out, *options], first)
    assert result.returncode == 130
    assert result.stderr.startswith("stopped; finished trials are kept")
    assert len(result.stderr.splitlines()) == 1
    stamp = first.stat().st_mtime_ns
    assert run(scenario(), "--out", out, *options).exit_code == 0
    assert first.stat().st_mtime_ns == stamp
    assert run(scenario(), "--out", whole, *options[2:]).exit_code == 0  # by the other engine, without a stop
    numbers = [contents(folder) for folder in (out, whole)]
    for name in ("regret.parquet", "curves.parquet", "episodes.parquet", "regret.png"):
        assert numbers[0][name] == numbers[1][name]
