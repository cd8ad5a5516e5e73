"""The table [data] of a scenario, and values that are marked as missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.campaign import identity
from queueing_ucrl.scenario.keys import SECTIONS
from queueing_ucrl.scenario.missing import WANTED, marked

WORLD = """title = "calls"
[queue]
servers = 2
capacity = 5
service_rate = 1.0
[[class]]
name = "a"
arrival_rate = 1.0
reward = 1.0
"""
DATA = '[data]\ntrace = "calls.trace.parquet"\nbegin = 8.5\nend = 240\nday = 24\n'


@pytest.fixture
def load(tmp_path):
    def scenario(text: str) -> qu.Scenario:
        path = tmp_path / "x.toml"
        path.write_text(text)
        return qu.load_scenario(path)

    return scenario


@pytest.fixture
def told(tmp_path, load):
    """What the author of a file is told, line by line, the folder left out."""

    def lines(text: str) -> list[str]:
        with pytest.raises(qu.ScenarioError) as error:
            load(text)
        return str(error.value).replace(f"{tmp_path}/", "").splitlines()

    return lines


def test_the_table_is_read_and_its_file_is_left_alone(load):
    assert load(WORLD).data is None
    data = load(WORLD + DATA).data  # there is no such file: it is opened when it is used
    assert (data.trace, data.begin, data.end, data.day) == ("calls.trace.parquet", 8.5, 240.0, 24.0)
    assert load(WORLD + DATA.replace("day = 24\n", "")).data.day is None


def test_every_point_of_a_sweep_has_it(load):
    swept = load(WORLD + DATA + "[sweep]\nqueue.servers = [1, 2]\ndata.day = [12.0, 24.0]\n")
    assert [(point.system.servers, point.data.day) for point in swept.points] == [
        (1, 12.0),
        (1, 24.0),
        (2, 12.0),
        (2, 24.0),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("begin = 8.5", "begin = 300"), "x.toml:10: data: begin must be before end, got 300 and 240"),
        (("begin = 8.5", "begin = 240"), "x.toml:10: data: begin must be before end, got 240 and 240"),
        (("begin = 8.5", "begin = -1"), "x.toml:12: data.begin = -1 must be at least 0"),
        (("begin = 8.5\n", ""), "x.toml:10: data.begin is missing"),
        (("day = 24", "day = 0"), "x.toml:14: data.day = 0 must be positive"),
        (("end = 240", "end = inf"), "x.toml:13: data.end = inf must be a finite number"),
        (
            ("trace = ", "trase = "),
            "x.toml:11: data.trase = 'calls.trace.parquet' is not a known key; did you mean trace?",
        ),
        (('"calls.trace.parquet"', "7"), "x.toml:11: data.trace = 7 must be a text in quotes"),
    ],
)
def test_mistakes_in_it_are_told_with_their_line(told, change, message):
    assert message in told(WORLD + DATA.replace(*change))


def test_a_study_is_of_its_log(load, tmp_path):
    plain, with_data = load(WORLD), load(WORLD + DATA)
    with pytest.raises(ValueError, match=r"calls\.trace\.parquet is not there"):
        identity(with_data)
    (tmp_path / "calls.trace.parquet").write_bytes(b"one")
    first = identity(with_data)
    assert {key: value for key, value in first.items() if key != "data"} == identity(plain)
    assert "data" not in identity(plain)
    (tmp_path / "calls.trace.parquet").write_bytes(b"two")
    assert identity(with_data) != first
    assert identity(replace(with_data, data=None)) == identity(plain)


def test_days_that_cannot_be_counted_are_refused(told):
    """A bootstrap of days would make a list of them."""
    (message,) = told(WORLD + DATA.replace("day = 24", "day = 1e-300"))
    assert message.endswith("data: day = 1e-300 must be at least 0.0024: a log of 100,000 days at most")


# Marks


MARKED = """title = "calls"
[queue]
servers = "?"  # the log does not tell
capacity = "?"
service = { kind = "lognormal", mean = "?", cv = 1.0 }
[[class]]
name = "a"
arrival_rate = 1.0
reward = "?"
[[class]]
name = "b"
arrival_rate = -1.0
reward = 2.0
holding_cost = '?'
[[controller]]
name = "ucrl-ac"
first_episode = "?"
"""


def test_each_mark_is_told_once_with_what_to_put_there(told):
    assert told(MARKED) == [
        'x.toml:3: queue.servers = "?" is missing; put there: how many servers there are, such as 4',
        'x.toml:4: queue.capacity = "?" is missing; put there: how many jobs there is room for, waiting or served, '
        "such as 20",
        'x.toml:5: queue.service.mean = "?" is missing; put there: a mean, in the unit of time, such as 5.0',
        'x.toml:9: class[1].reward = "?" is missing; put there: what a job of this class pays, such as 5.0',
        'x.toml:14: class[2].holding_cost = "?" is missing; put there: what a wait costs, such as '
        '{ kind = "linear", rate = 0.1 }',
        'x.toml:17: controller[1].first_episode = "?" is missing; put there: a value, see docs/scenarios.md',
        "x.toml:12: class[2].arrival_rate = -1.0 must be positive",
    ]


def test_marks_are_found_wherever_they_are(told):
    assert list(marked({"a": ["?", {"b": "?"}], "c": "??", "d": 1})) == [("a", 0), ("a", 1, "b")]
    assert told(WORLD + "[sweep]\nqueue.servers = ['?']\n")[0].startswith('x.toml:11: sweep.queue.servers[1] = "?"')
    assert told(WORLD + DATA.replace("day = 24", "day = " + "'?'"))[0].startswith('x.toml:14: data.day = "?"')
    assert told(WORLD + "[data]\ntrace = '?'\nbegin = 0\nend = 1\n")[0].startswith('x.toml:11: data.trace = "?"')


def test_what_is_wanted_is_a_key_of_a_scenario():
    kinds = {"rate", "mean", "cv", "kind"}
    known = {name for section in SECTIONS.values() for name in section.model_fields} | kinds
    assert {end[-1] for end in WANTED} <= known


def test_a_marked_file_is_refused_by_every_command(tmp_path: Path):
    path = tmp_path / "x.toml"
    path.write_text(MARKED)
    for command in (["run"], ["solve"], ["optimise"]):
        ended = CliRunner().invoke(
            app, [*command, str(path), *(["--out", str(tmp_path / "o")] if command == ["run"] else [])]
        )
        assert ended.exit_code == 2
        assert ended.output.count('= "?" is missing') == 6
    assert not (tmp_path / "o").exists()
