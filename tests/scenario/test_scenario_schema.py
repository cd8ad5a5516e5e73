"""The JSON Schema of scenario files: it takes what the loader takes, and rejects most of what the loader refuses."""

from __future__ import annotations

import json
import sys
import tomllib
from itertools import islice
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.scenario.json_schema import DIRECTIVE, FILE_NAME, own_schema_text
from queueing_ucrl.scenario.key_words import KEY_WORDS
from queueing_ucrl.scenario.keys import SECTIONS, Controller
from queueing_ucrl.scenario.parts import KINDS
from queueing_ucrl.scenario.toml import read_toml

sys.path.append(str(Path(__file__).parents[1] / "attack"))
import mutations

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SCHEMA = json.loads(own_schema_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SEED = 20240


def test_it_is_a_schema_and_the_program_prints_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    printed = CliRunner().invoke(app, ["scenarios", "schema"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == SCHEMA  # no package with more controllers is installed here


def test_the_one_beside_the_scenarios_is_up_to_date() -> None:
    written = (SCENARIOS / FILE_NAME).read_text(encoding="utf-8")
    assert written == own_schema_text(), f"queueing-ucrl scenarios schema > scenarios/{FILE_NAME} mends it"


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_names_it_and_is_accepted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == DIRECTIVE
    assert [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))] == []


def test_what_holds_every_key_and_kind_is_accepted() -> None:
    for tree in mutations.legal_trees():
        found = [error.message for error in VALIDATOR.iter_errors(tomllib.loads(mutations.toml(tree).decode()))]
        assert not found, (tree, found)


def test_it_never_rejects_what_the_loader_takes_and_rejects_most_of_the_rest(tmp_path: Path) -> None:
    """Of files gone wrong: 130 that the loader refuses, whatever it takes on the way. At least 100 are seen by an
    editor too; the others hold nan, lists that do not fit together, columns that a file has not.
    """
    mutations.furnish(tmp_path)
    path = tmp_path / "x.toml"
    whole = len(list(mutations.whole_files()))
    refused = rejected = 0
    for what, make in islice(mutations.mutated_files(SEED), whole, None):
        path.write_bytes(make())
        try:
            tables, _ = read_toml(path)
        except qu.ScenarioError:
            continue  # not TOML at all
        if "sweep" in tables:
            continue  # its keys are the scenario's own
        accepted = VALIDATOR.is_valid(tables)
        try:
            qu.load_scenario(path)
        except qu.ScenarioError:
            refused, rejected = refused + 1, rejected + (not accepted)
        else:
            assert accepted, what
        if refused == 130:
            break
    assert rejected >= 100


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("servers = 0", "0 is not valid under any"),
        ("servers = 2.5", "2.5 is not valid under any"),
        ("capacity = 0", "0 is less than the minimum of 1"),
        ("capacity = '?'", "'?' is not of type 'integer'"),
        ("capcity = 3", "'capcity' was unexpected"),
        ("discipline = 'lifo'", "'lifo' is not one of ['fifo', 'processor-sharing']"),
        ("patience = { kind = 'exponential', rat = 1.0 }", "not valid under any"),
        ("service = { kind = 'exponential', rate = 1.0 }", "should not be valid"),
    ],
)
def test_what_an_editor_says(change: str, told: str) -> None:
    tree = mutations.legal_tree()
    tree["queue"] |= tomllib.loads(change)
    assert any(told in error.message for error in VALIDATOR.iter_errors(tree))


@pytest.mark.parametrize(
    "controller",
    [
        {"name": "ucrl"},
        {"name": "ucrl-ac"},
        {"name": "thompson", "forgeting": "window"},
        {"name": "thompson", "memory": "1"},
        {"name": "ucrl-ac", "arrival_rate_bounds": [1.0, 4.0], "first_episode": 0.0},
    ],
)
def test_options_of_controllers_are_checked(controller: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(mutations.legal_tree(controller=[controller]))


def test_the_first_episode_must_be_positive_for_the_schema_and_for_the_controller() -> None:
    table = {"name": "ucrl-ac", "arrival_rate_bounds": [1.0, 4.0]}
    for length in (-1.0, 0.0):
        assert not VALIDATOR.is_valid(mutations.legal_tree(controller=[{**table, "first_episode": length}]))
        with pytest.raises(ValueError, match="first_episode must be a positive number"):
            qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=length)
    assert VALIDATOR.is_valid(mutations.legal_tree(controller=[{**table, "first_episode": 1e-9}]))


def test_every_key_is_described_and_nothing_else() -> None:
    models = [*SECTIONS.values(), Controller, *(part for kinds in KINDS.values() for part in kinds.values())]
    for model in models:
        keys = {field.alias or name for name, field in model.model_fields.items()} - {"kind"}
        assert keys == set(KEY_WORDS.get(model.__name__, {})), model.__name__
    assert set(KEY_WORDS) <= {model.__name__ for model in models}
    for table in (SCHEMA, *SCHEMA["definitions"].values(), *SCHEMA["definitions"]["controller"]["oneOf"]):
        for key, node in table.get("properties", {}).items():
            assert node.get("description"), key


def test_the_page_of_scenario_files_names_every_key() -> None:
    page = (SCENARIOS.parent / "docs" / "scenarios.md").read_text(encoding="utf-8")
    for words in KEY_WORDS.values():
        for key in words:
            assert any(said in page for said in (f"`{key}`", f"{key} =", f"[{key}]")), key


def test_a_copy_has_the_schema_beside_it(tmp_path: Path) -> None:
    def copy(name: str) -> None:
        done = CliRunner().invoke(app, ["scenarios", "copy", name, "--to", str(tmp_path)])
        assert done.exit_code == 0, done.output

    copy("quickstart")
    schema = tmp_path / FILE_NAME
    assert (tmp_path / "quickstart.toml").read_text(encoding="utf-8").startswith(f"{DIRECTIVE}\n")
    assert schema.read_text(encoding="utf-8") == own_schema_text()
    schema.write_text(json.dumps({"$comment": SCHEMA["$comment"]}), encoding="utf-8")  # of an older version
    copy("rush-hours")
    assert schema.read_text(encoding="utf-8") == own_schema_text()
    for theirs in ("mine", "{}", "[1]", '{"$comment": "mine"}'):
        schema.write_text(theirs, encoding="utf-8")
        (tmp_path / "quickstart.toml").unlink()
        copy("quickstart")
        assert schema.read_text(encoding="utf-8") == theirs
