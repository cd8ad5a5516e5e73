"""Scenarios by name: which file a name means, the list of them, and copies to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = sorted(path.stem for path in SCENARIOS.glob("*.toml"))
OWN = """title = "My own"
[queue]
servers = 1
capacity = 5
service_rate = 1.0
[[class]]
name = "a"
arrival_rate = 1.0
reward = 1.0
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder in which one works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def program(*arguments: str | Path):
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, list(map(str, arguments)))
    assert "Traceback" not in result.output
    return result


def listed(*arguments: str) -> dict[str, dict]:
    result = program("scenarios", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return {row["name"]: row for row in json.loads(result.stdout)}


def title(name: str | Path) -> str:
    return json.loads(program("solve", name, "--json").stdout)["title"]


# which file a name means


def test_python_and_the_program_take_a_name():
    loaded = qu.load_scenario("paper-s20-mu0.3")
    assert loaded.path.samefile(SCENARIOS / "paper-s20-mu0.3.toml")
    assert title("paper-s20-mu0.3") == loaded.title == "Paper, Fig. 1(a): overloaded, S = 20"
    assert qu.load_scenario(Path("quickstart")).title == "Quickstart: learn whom to let in"


@pytest.mark.parametrize(
    ("command", "options"), [("run", ["--controller", "oracle"]), ("compare", ["--controllers", "oracle,admit-all"])]
)
def test_a_study_by_name_goes_to_a_folder_of_that_name(here, command, options):
    result = program(command, "paper-s20-mu0.3", *options, "--horizon", "20", "--replications", "1", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    (folder,) = (here / "runs").iterdir()
    assert folder.name.startswith("paper-s20-mu0.3-")


def test_one_s_own_goes_before_what_comes_with_the_package(here):
    """Here, then in a folder `scenarios` here; the list names the file that would be run."""
    (here / "scenarios").mkdir()
    for folder, name in (("scenarios", "in the folder"), (".", "here")):
        (here / folder / "quickstart.toml").write_text(OWN.replace("My own", name))
        assert title("quickstart") == listed()["quickstart"]["title"] == name
    assert title(SCENARIOS / "quickstart.toml") == "Quickstart: learn whom to let in"


@pytest.mark.parametrize("name", ["./quickstart", "nowhere/quickstart", "quickstart.tml/"])
def test_what_names_a_folder_is_a_path(name):
    result = program("solve", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such file" in result.stderr or "cannot be read" in result.stderr


def test_a_file_without_an_ending_goes_before_a_name(here):
    (here / "quickstart").write_text(OWN)
    assert title("quickstart") == "My own"


def test_a_folder_hides_no_name(here):
    (here / "quickstart").mkdir()
    assert title("quickstart") == "Quickstart: learn whom to let in"
    (here / "results").mkdir()
    assert program("solve", "results").stderr == "results: is a folder; name a scenario file (TOML) in it\n"


@pytest.mark.parametrize("command", [["solve"], ["run"], ["compare", "--controllers", "oracle"], ["scenarios", "copy"]])
def test_an_unknown_name_gets_the_nearest_and_the_list(here, command):
    result = program(*command, "quickstrat")
    assert (result.exit_code, result.stdout) == (2, "")
    known = ", ".join(NAMES)
    assert result.stderr == f"no scenario is called 'quickstrat'; did you mean quickstart? Known: {known}\n"
    assert program(*command, "\x1b[31m").stderr.startswith(r"no scenario is called '\x1b[31m'. Known: call-centre, ")
    assert list(here.iterdir()) == []


def test_a_path_to_where_it_is_not_gets_the_name():
    result = program("solve", "scenarios/quickstart.toml")
    assert (result.exit_code, result.stderr) == (
        2,
        "scenarios/quickstart.toml: no such file; did you mean quickstart?\n",
    )


# the list


def test_the_list_has_what_comes_with_the_package_and_one_s_own(here):
    assert list(listed()) == NAMES
    (here / "scenarios").mkdir()
    (here / "scenarios" / "mine.toml").write_text(OWN)
    assert list(listed()) == sorted([*NAMES, "mine"])
    assert listed()["mine"]["file"] == "scenarios/mine.toml"
    assert list(listed("list", "scenarios")) == list(listed("scenarios")) == ["mine"]
    assert title("mine") == "My own"


def test_the_list_for_people_has_the_names(here):
    lines = program("scenarios").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.split()[0] in NAMES] == NAMES


# copies


def test_a_copy_is_the_file_itself_and_is_run_from_then_on(here):
    result = program("scenarios", "copy", "quickstart")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "queueing-ucrl run quickstart.toml" in result.stdout
    copy = here / "quickstart.toml"
    assert copy.read_bytes() == (SCENARIOS / "quickstart.toml").read_bytes()
    copy.write_text(copy.read_text().replace("Quickstart: learn", "Changed: learn"))
    assert title("quickstart") == title("quickstart.toml") == "Changed: learn whom to let in"


def test_a_copy_goes_where_it_is_told(here):
    (here / "folder").mkdir()
    for to in ("folder", "other.toml"):
        assert program("scenarios", "copy", "rush-hours", "--to", to).exit_code == 0
    for path in ("folder/rush-hours.toml", "other.toml"):
        assert (here / path).read_bytes() == (SCENARIOS / "rush-hours.toml").read_bytes()


@pytest.mark.parametrize("to", [[], ["--to", "quickstart.toml"], ["--to", "."]])
def test_a_copy_overwrites_nothing(here, to):
    (here / "quickstart.toml").write_text("years of work")
    result = program("scenarios", "copy", "quickstart", *to)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "quickstart.toml: is there already; name another file with --to\n"
    assert (here / "quickstart.toml").read_text() == "years of work"
    assert len(list(here.iterdir())) == 1


def test_a_copy_is_of_what_comes_with_the_package(here):
    """Also beside a changed one of the same name."""
    (here / "quickstart.toml").write_text(OWN)
    assert program("scenarios", "copy", "quickstart", "--to", "again.toml").exit_code == 0
    assert (here / "again.toml").read_bytes() == (SCENARIOS / "quickstart.toml").read_bytes()


def test_a_copy_into_a_folder_that_is_not_there_is_told(here):
    result = program("scenarios", "copy", "quickstart", "--to", "nowhere/mine.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "nowhere/mine.toml: cannot be written (No such file or directory)\n"
    assert list(here.iterdir()) == []
