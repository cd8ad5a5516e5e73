"""`queueing-ucrl controllers`: every controller with its options, read from its class."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tomllib
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.learning.catalogue import catalogue, entry, option_words
from queueing_ucrl.learning.registry import GROUP, OWN, controller_names
from queueing_ucrl.scenario import RECOMMENDED

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.toml"


def controllers(*arguments: str, width: int = 80):
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["controllers", *arguments])
    assert "Traceback" not in result.output
    return result


def as_scenario(snippet: str, path: Path) -> qu.Scenario:
    """The quickstart queue with this table for its controllers."""
    text = QUICKSTART.read_text()
    head, tail = text[: text.index("# the paper's controller")], text[text.index("[run]") :]
    path.write_text(f"{head}\n{snippet}\n{tail}")
    return qu.load_scenario(path)


def test_every_controller_is_listed_with_a_sentence():
    lines = controllers().stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name in controller_names():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert len(line.split()) > 3
    assert "Recommended." in " ".join(lines)


@pytest.mark.parametrize("name", OWN)
def test_every_option_has_its_words_and_there_are_no_others(name):
    kind = OWN[name]
    words = option_words(kind)
    assert {field.name for field in fields(kind)} <= words.keys()
    assert all(len(text.split()) >= 3 for text in words.values())
    ancestors = filter(is_dataclass, kind.__mro__)
    assert words.keys() <= {field.name for ancestor in ancestors for field in fields(ancestor)}


@pytest.mark.parametrize("name", OWN)
def test_the_example_works_as_it_stands(name, tmp_path):
    one = entry(name)
    scenario = as_scenario(one.toml, tmp_path / "x.toml")
    (choice,) = scenario.controllers
    assert (choice.name, type(choice.controller)) == (name, OWN[name])
    study = qu.replicate(scenario.queue, [choice.controller], horizon=20.0, replications=1, jobs=1)
    assert study.results[0][0].times[-1] == 20.0


@pytest.mark.parametrize("name", OWN)
def test_what_stands_behind_a_number_sign_is_the_default(name, tmp_path):
    one = entry(name)
    lines = [line.removeprefix("# ") for line in one.toml.splitlines()]
    plain, full = (as_scenario("\n".join(text), tmp_path / "x.toml") for text in (one.toml.splitlines(), lines))
    assert plain.controller == full.controller


@pytest.mark.parametrize("name", OWN)
def test_one_controller_is_told_in_full(name):
    result = controllers(name)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80
    for option in entry(name).options:
        assert f"{option.name} " in text
        assert option.type in text
        assert " ".join(option.help.split()) in text
        assert ("required" if option.required else "default" if option.default is not None else "left out") in text
    assert entry(name).toml in result.stdout


def test_json_holds_the_same():
    data = json.loads(controllers("--json").stdout)
    assert [one["name"] for one in data] == controller_names()
    assert [one for one in data if one["name"] == RECOMMENDED] == [
        json.loads(controllers(RECOMMENDED, "--json").stdout)
    ]
    keys = {*data[0], *data[0]["options"][0]}
    text = " ".join(CliRunner().invoke(app, ["controllers", "--help"]).stdout.split())
    assert all(key in text for key in keys)
    for one in data:
        assert tomllib.loads(one["toml"])["controller"][0]["name"] == one["name"]
        assert one["knows_rates"] == one["name"].startswith(("oracle", "best-stationary", "day-following"))


def test_a_name_that_is_not_known_is_told():
    result = controllers("orcale")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean oracle?" in result.stderr


# of installed packages


@dataclass(frozen=True)
class Foreign(qu.Controller):
    """Comes from elsewhere, and from far away. It is not ours.

    Options:
        patience: how long it waits, in words that go on
            over two lines
    """

    name: ClassVar[str] = "foreign"
    patience: float
    tint: str = 'a "red"'

    def begin(self, knowledge, rng):
        raise NotImplementedError


class NoDataclass:
    """Any object will do."""

    def __init__(self, size: int, shape="round", **others):
        self.size = size

    def begin(self, knowledge, rng):
        raise NotImplementedError


@pytest.fixture
def installed(monkeypatch):
    module = ModuleType("foreign_controllers")
    module.Foreign, module.NoDataclass = Foreign, NoDataclass
    monkeypatch.setitem(sys.modules, "foreign_controllers", module)
    offers = {
        "foreign": "foreign_controllers:Foreign",
        "a-plain-one-with-a-name-of-many-letters": "foreign_controllers:NoDataclass",
        "gone": "nowhere_at_all:Gone",
    }
    points = [importlib.metadata.EntryPoint(name, place, GROUP) for name, place in offers.items()]
    monkeypatch.setattr("queueing_ucrl.learning.registry.entry_points", lambda group: points)


@pytest.mark.usefixtures("installed")
def test_controllers_of_installed_packages_are_told_too():
    found = {one.name: one for one in catalogue()}
    assert found["foreign"].about == "Comes from elsewhere, and from far away."
    waits, other = found["foreign"].options
    assert (waits.help, other.help) == ("how long it waits, in words that go on over two lines", "")
    assert not found["foreign"].own
    plain = found["a-plain-one-with-a-name-of-many-letters"]
    assert [(o.name, o.required, o.default) for o in plain.options] == [("size", True, None), ("shape", False, "round")]
    result = controllers()
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "cannot be loaded from nowhere_at_all:Gone" in " ".join(result.stdout.split())
    for name in ("foreign", "gone", plain.name):
        assert controllers(name).exit_code == 0
        tomllib.loads(found[name].toml)
    assert '# tint = "a \\"red\\""' in controllers("foreign").stdout
    json.loads(controllers("--json").stdout)


@pytest.mark.parametrize("width", [30, 40, 60, 200])
def test_a_narrow_window_loses_nothing(width):
    words = [" ".join(controllers(RECOMMENDED, width=w).stdout.split()) for w in (80, width)]
    assert words[0] == words[1]
