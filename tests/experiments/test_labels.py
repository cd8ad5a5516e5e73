"""What the controllers of a study are called: names that differ, whatever they are, and say in what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from generators import paper_queue
from hypothesis import given
from hypothesis import strategies as st
from small_studies import scenario_file
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.labels import labels
from queueing_ucrl.learning.registry import make_controller

NAMES = ("oracle", "oracle (2)", "oracle (2) (2)", "certainty-equivalent", "certainty-equivalent (memory=4.0)", "a")


class Named(qu.Controller):
    """A controller of somebody else, with any name."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def begin(self, knowledge: qu.Knowledge, rng: Any) -> Any:
        return qu.make_controller("admit-all").begin(knowledge, rng)


def made(name: str, memory: float | None) -> Any:
    if name != "certainty-equivalent":
        return Named(name)
    return make_controller(name, {} if memory is None else {"memory": memory})


ITEMS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([None, 4.0, 5.0])), min_size=1, max_size=7)


@given(ITEMS, st.data())
def test_no_two_are_called_the_same(items: list[tuple[str, float | None]], data: st.DataObject) -> None:
    given = data.draw(st.lists(st.sampled_from((*NAMES, None)), min_size=len(items), max_size=len(items)))
    chosen = [label for label in given if label is not None]
    controllers = [(name, made(name, memory)) for name, memory in items]
    if len(set(chosen)) < len(chosen):
        with pytest.raises(ValueError, match="labels must differ"):
            labels(controllers, given)
        return
    found = labels(controllers, given)
    assert len(set(found)) == len(found) == len(items)
    assert all(label in (None, name) for label, name in zip(given, found, strict=True))
    for (name, _), label, name_found in zip(items, given, found, strict=True):
        assert label is not None or name_found.startswith(name)


def test_controllers_of_one_kind_are_told_apart_by_what_differs() -> None:
    kinds = [{}, {"memory": 4.0}, {"memory": 8.0, "review_ratio": 3.0}]
    controllers = [("certainty-equivalent", make_controller("certainty-equivalent", options)) for options in kinds]
    assert labels([*controllers, ("oracle", make_controller("oracle"))]) == [
        "certainty-equivalent",
        "certainty-equivalent (memory=4.0)",
        "certainty-equivalent (review_ratio=3.0, memory=8.0)",
        "oracle",
    ]
    assert labels(controllers[1:2]) == ["certainty-equivalent"]  # nothing to tell it from
    assert labels(controllers[:1] * 2) == ["certainty-equivalent", "certainty-equivalent (2)"]


def test_replicate_and_scenarios_use_the_same_names(tmp_path: Path) -> None:
    lines = "".join(f'[[controller]]\nname = "certainty-equivalent"\n{more}\n' for more in ("", "memory = 4.0"))
    lines += '[[controller]]\nname = "oracle"\nlabel = "all-knowing"\n'
    path = scenario_file(tmp_path, horizon="20.0", replications="2")
    text = path.read_text()
    path.write_text(text[: text.index("[controller]")] + lines + text[text.index("[run]") :])
    expected = ["certainty-equivalent", "certainty-equivalent (memory=4.0)", "all-knowing"]
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out"), "--jobs", "1", "--json"])
    assert result.exit_code == 0, result.output
    assert [cell["controller"] for cell in json.loads(result.stdout)["results"]] == expected
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [about["label"] for about in manifest["identity"]["points"][0]["controllers"]] == expected
    assert list(manifest["engines"]) == sorted(expected)
    assert len(list((tmp_path / "out" / "trials" / "0000").iterdir())) == 3
    choices = [choice.controller for choice in qu.load_scenario(path).controllers[:2]]
    study = qu.replicate(paper_queue(), choices, horizon=10.0, replications=1, jobs=1)
    assert [cell.name for cell in study.cells] == expected[:2]


@pytest.mark.parametrize("label", ["..", ".", "a/b", "../../x", "Ucrl-ac", "日本", "con"])
def test_a_label_is_a_name_and_not_a_place(label: str, tmp_path: Path) -> None:
    path = scenario_file(tmp_path, first_episode=f'10.0\nlabel = "{label}"', horizon="20.0", replications="1")
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(out), "--jobs", "1", "--log", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["results"][0]["controller"] == label
    for kind in ("trials", "events", "episodes"):
        (found,) = (out / kind).rglob("000000.parquet")
        assert found.relative_to(out / kind).parts[0] == "0000"
        assert len(found.relative_to(out / kind).parts) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "small.toml"]


def test_two_equal_labels_are_a_mistake(tmp_path: Path) -> None:
    lines = "".join(f'[[controller]]\nname = "{name}"\nlabel = "x"\n' for name in ("oracle", "admit-all"))
    path = scenario_file(tmp_path)
    text = path.read_text()
    path.write_text(text[: text.index("[controller]")] + lines + text[text.index("[run]") :])
    result = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.stderr == f"{path}: the label 'x' is given to two controllers; labels must differ\n"
    assert not (tmp_path / "out").exists()
