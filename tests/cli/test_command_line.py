"""The command line as a person and as a script meet it: exit codes, streams, widths, JSON."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.report.tables import print_solution, solution_data
from queueing_ucrl.scenario import load_scenario
from queueing_ucrl.solvers.solve import METHODS

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
PAPER = str(SCENARIOS / "paper-s20-mu0.3.toml")
GOOD = (
    '[queue]\nservers = 1\ncapacity = 5\nservice_rate = 1.0\n[[class]]\nname = "a"\narrival_rate = 1.0\nreward = 1.0\n'
)
OTHER_CLASS = '[[class]]\nname = "b"\narrival_rate = 1.0\nreward = 1e-3\n'
SOLVED = [path for path in sorted(SCENARIOS.glob("*.toml")) if not load_scenario(path).system.not_markov]
PROGRAM = [sys.executable, "-m", "queueing_ucrl"]


def run(*arguments: str | Path, width: int = 80):
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, [str(a) for a in arguments])


def program(*arguments: str | Path, **options):
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, timeout=100, **options)


def strict_json(text: str):
    def refuse(constant: str):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def scenario(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "x.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


# solve


def test_solve_tells_the_policy_and_its_worth():
    result = run("solve", PAPER)
    assert result.exit_code == 0
    assert "gain 24.17749554 " in result.stdout
    assert "gold   ####################  0-19" in result.stdout
    assert "basic  ##########..........  0-9" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("path", SOLVED, ids=lambda p: p.stem)
def test_solve_fits_into_80_columns(path):
    result = run("solve", path)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "…" not in result.stdout


@pytest.mark.parametrize("path", SOLVED, ids=lambda p: p.stem)
def test_a_narrow_window_hides_nothing(path):
    wide, narrow = (run("solve", path, width=width).stdout for width in (80, 40))
    assert max(map(len, narrow.splitlines())) <= 42  # a heading with its unit keeps its number beside it
    words = {word for word in wide[: wide.index("found by")].split() if not re.fullmatch(r"[#.~]+|\d+", word)}
    assert words <= set(narrow.split()) | {"class"}
    numbers = re.findall(r"\d+-\d+$", wide, flags=re.MULTILINE)
    assert re.findall(r"\d+-\d+$", narrow, flags=re.MULTILINE) == numbers


def test_a_pipe_has_no_width(scenario):
    name = "x" * 40
    path = scenario(GOOD.replace('"a"', f'"{name}"').replace("capacity = 5", "capacity = 1000"))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    lines = program("solve", path, env=environment).stdout.decode().splitlines()
    assert [line for line in lines if line.startswith(name) and len(line.split()) == 6]
    assert [line for line in lines if line.startswith(name) and "#" in line and line.endswith("-999")]


def test_solve_shows_long_and_foreign_names_in_full(scenario):
    name = "客户 [red]" + "x" * 30
    text = GOOD.replace('"a"', f'"{name}"').replace("capacity = 5", "capacity = 1000")
    result = run("solve", scenario(text))
    assert result.exit_code == 0
    first_words = "".join(line.split("  ")[0].strip() for line in result.stdout.splitlines())
    assert name.replace(" ", "") in first_words.replace(" ", "")


def test_a_title_is_printed_as_written(scenario):
    result = run("solve", scenario('title = "[bold]50%[/bold] [/] \\\\"\n' + GOOD))
    assert result.stdout.splitlines()[0] == "[bold]50%[/bold] [/] \\"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_gain(method):
    result = run("solve", PAPER, "--method", method, "--json")
    assert result.exit_code == 0
    data = strict_json(result.stdout)
    assert data["method"] == method
    assert data["gain"] == pytest.approx(24.17749554469175, abs=1e-8)


def test_solve_agrees_with_the_erlang_loss_formula(scenario):
    """One class and no room to wait: everybody is admitted, and Erlang B tells who is lost."""
    servers, rate, service, reward = 4, 3.0, 0.5, 7.0
    text = (
        f"[queue]\nservers = {servers}\ncapacity = {servers}\nservice_rate = {service}\n"
        f'[[class]]\nname = "a"\narrival_rate = {rate}\nreward = {reward}\n'
        'holding_cost = { kind = "linear", rate = 9 }\n'
    )
    data = strict_json(run("solve", scenario(text), "--json").stdout)
    offered = rate / service
    terms = [offered**n / math.factorial(n) for n in range(servers + 1)]
    loss = terms[-1] / sum(terms)
    assert data["blocking_probability"] == pytest.approx(loss, rel=1e-12)
    assert data["throughput"] == pytest.approx(rate * (1 - loss), rel=1e-12)
    assert data["gain"] == pytest.approx(reward * rate * (1 - loss), rel=1e-12)
    assert data["utilisation"] == pytest.approx(offered * (1 - loss) / servers, rel=1e-12)
    assert data["mean_in_system"] == pytest.approx(offered * (1 - loss), rel=1e-12)
    assert data["mean_waiting"] == 0
    assert data["load"] == pytest.approx(1.5)
    assert data["trunk_reservation"] is True
    (job_class,) = data["classes"]
    assert job_class["control_level"] == servers
    assert job_class["admitted_states"] == [[0, servers - 1]]
    assert job_class["admission_probability"] == pytest.approx(1 - loss, rel=1e-12)
    assert job_class["rejection_probability"] == 0
    assert job_class["mean_wait"] == 0


def test_a_class_that_never_gets_in_has_no_mean_wait(scenario):
    path = scenario(GOOD.replace("reward = 1.0", "reward = 1e6") + OTHER_CLASS)
    data = strict_json(run("solve", path, "--json").stdout)["classes"][1]
    assert data["control_level"] == 0
    assert data["admitted_states"] == []
    assert data["admission_probability"] == 0
    assert data["mean_wait"] is None
    of_the_class = [line.split() for line in run("solve", path).stdout.splitlines() if line.startswith("b ")]
    assert [words[-1] for words in of_the_class] == ["-", "none"]


def test_a_policy_with_gaps_is_told_in_full(scenario):
    loaded = load_scenario(scenario(GOOD))
    policy = qu.Policy([[True], [False], [True], [True], [False]])
    solution = replace(qu.solve(loaded.queue), policy=policy)
    assert solution_data(loaded, solution)["classes"][0]["admitted_states"] == [[0, 0], [2, 3]]
    print_solution(console := Console(width=80, record=True, file=StringIO()), loaded, solution)
    assert "a  #.##.  0, 2-3" in console.export_text()


def test_help_explains_every_key_of_the_json():
    text = run("solve", "--help").stdout
    data = strict_json(run("solve", PAPER, "--json").stdout)
    keys = {*data, *(key for job_class in data["classes"] for key in job_class)}
    assert {key for key in keys if not re.search(rf"\b{key}\b", text)} == set()


def test_help_names_every_method():
    text = run("solve", "--help").stdout
    assert {method for method in METHODS if not re.search(rf"(?<![\w-]){method}(?![\w-])", text)} == set()


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "nowhere.toml"], "nowhere.toml: no such file\n"),
        (["solve", SCENARIOS], f"{SCENARIOS}: is a folder; name a scenario file (TOML) in it\n"),
        (
            ["solve", PAPER, "--method", "magic"],
            "--method magic: must be one of pi-b, pi, vi, vi-ae, lp, trunk-search\n",
        ),
        (["solve", PAPER, "--epsilon", "0"], "--epsilon 0.0: must be a positive number\n"),
        (["solve", PAPER, "--epsilon", "nan"], "--epsilon nan: must be a positive number\n"),
        (["scenarios", "nowhere"], "nowhere: no such folder; name one that holds scenario files\n"),
    ],
)
def test_a_mistake_ends_with_one_message_and_exit_code_2(arguments, message):
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_the_mistakes_of_a_file_are_all_told_on_stderr(scenario, option):
    path = scenario(GOOD.replace("servers = 1", "servers = 0").replace("reward", "rewrd"))
    result = run("solve", path, *option)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"{path}:2: queue.servers = 0 must be at least 1",
        f"{path}:5: class[1].reward is missing",
        f"{path}:8: class[1].rewrd = 1.0 is not a known key; did you mean reward?",
    ]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (qu.SolverError("no answer can be trusted"), "no answer can be trusted\n"),
        (MemoryError(), "not enough memory for a queue of this size\n"),
    ],
)
def test_a_failure_of_the_solver_ends_with_one_line_and_exit_code_1(monkeypatch, failure, message):
    def fail(*_args, **_kwargs):
        raise failure

    monkeypatch.setattr("queueing_ucrl.solvers.solve.solve", fail)
    monkeypatch.setattr("queueing_ucrl.solvers.solve.warm_up", lambda method: None)
    result = run("solve", PAPER)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)


# scenarios


def test_scenarios_lists_every_file_in_80_columns():
    result = run("scenarios", SCENARIOS)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    listed = [line.split()[0] for line in result.stdout.splitlines() if ".toml" in line]
    assert listed == sorted(path.name for path in SCENARIOS.glob("*.toml"))


def test_scenarios_as_json_name_files_that_can_be_solved():
    rows = strict_json(run("scenarios", SCENARIOS, "--json").stdout)
    assert {row["file"] for row in rows} == {str(path) for path in SCENARIOS.glob("*.toml")}
    (row,) = [row for row in rows if row["file"] == PAPER]
    assert row == {
        "name": "paper-s20-mu0.3",
        "file": PAPER,
        "title": "Paper, Fig. 1(a): overloaded, S = 20",
        "servers": 5,
        "capacity": 20,
        "classes": 2,
        "load": pytest.approx(4 / 3),
    }


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_a_broken_scenario_is_told_beside_the_good_ones(scenario, tmp_path, option):
    scenario('title = "[red]kept[/red]"\n' + GOOD)
    (tmp_path / "broken.toml").write_text(GOOD.replace("servers = 1", "servers = 0"))
    (tmp_path / "folder.toml").mkdir()
    result = run("scenarios", tmp_path, *option)
    assert result.exit_code == 2
    assert "x.toml" in result.stdout
    assert "[red]kept[/red]" in result.stdout
    assert "broken.toml" not in result.stdout
    assert result.stderr.splitlines() == [
        f"{tmp_path}/broken.toml:2: queue.servers = 0 must be at least 1",
        f"{tmp_path}/folder.toml: is a folder; name a scenario file (TOML) in it",
    ]


def test_a_long_file_name_is_never_cut(scenario, tmp_path):
    name = "a-" * 40 + ".toml"
    scenario(GOOD).rename(tmp_path / name)
    lines = run("scenarios", tmp_path).stdout.splitlines()
    assert name in "".join(line.split(" ")[0] for line in lines[1:])


def test_a_folder_without_scenarios_is_no_mistake(tmp_path):
    result = run("scenarios", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{tmp_path}: no scenario files (*.toml)\n"
    assert strict_json(run("scenarios", tmp_path, "--json").stdout) == []


# The program itself


def test_a_file_of_brackets_ends_the_program_without_a_traceback(scenario):
    result = program("solve", scenario("a = " + "[" * 900_000))
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.endswith(b"tables are nested too deeply, at most 40 in one another\n")


def test_a_reader_that_leaves_early_causes_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)  # the first write already fails, as it may under `| head -1`
    with os.fdopen(writing, "wb") as pipe:
        result = subprocess.run([*PROGRAM, "solve", PAPER], stdout=pipe, stderr=subprocess.PIPE, timeout=100)
    assert result.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_told_in_one_line():
    with open("/dev/full", "wb") as full:
        result = subprocess.run([*PROGRAM, "solve", PAPER, "--json"], stdout=full, stderr=subprocess.PIPE, timeout=100)
    assert result.returncode == 1
    assert result.stderr == b"the output cannot be written (No space left on device)\n"


def test_a_name_that_the_terminal_cannot_show_is_escaped(scenario):
    path = scenario(GOOD.replace('"a"', '"客"'))
    result = program("solve", path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert rb"\u5ba2" in result.stdout
    assert result.stderr == b""


def test_help_does_not_load_the_numerical_libraries():
    code = "import sys; from queueing_ucrl.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert "solve" in result.stdout
    assert not {"numpy", "scipy", "numba", "pandas", "pydantic", "matplotlib"} & set(result.stdout.split())


def test_the_version_is_the_package_s():
    result = program("--version")
    assert (result.returncode, result.stdout.decode().split()) == (0, ["queueing-ucrl", qu.__version__])
