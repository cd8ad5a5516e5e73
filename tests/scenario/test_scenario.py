"""Scenario files: what is read from them, and what their authors are told when something is wrong."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import queueing_ucrl as qu
from queueing_ucrl.scenario.parts import KINDS

QUEUE = "[queue]\nservers = 1\ncapacity = 5\nservice_rate = 1.0\n"
CLASS = '[[class]]\nname = "a"\narrival_rate = 1.0\nreward = 1.0\n'
GOOD = QUEUE + CLASS
SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))


def with_cost(cost: str) -> str:
    return f"{GOOD}holding_cost = {cost}\n"


@pytest.fixture
def told(tmp_path):
    """What the author of a file is told, a line each, the folder left out."""

    def lines(content: str | bytes) -> list[str]:
        path = tmp_path / "x.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(qu.ScenarioError) as error:
            qu.load_scenario(path)
        message = str(error.value)
        assert all(line.startswith(str(path)) for line in message.splitlines())
        return message.replace(f"{tmp_path}/", "").splitlines()

    return lines


@pytest.fixture
def load(tmp_path):
    def scenario(content: str | bytes) -> qu.Scenario:
        path = tmp_path / "x.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return qu.load_scenario(path)

    return scenario


# What is read


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{ kind = "free" }', qu.Free()),
        ('{ kind = "linear", rate = 0.25 }', qu.Linear(0.25)),
        ('{ kind = "power", coefficient = 2, exponent = 1.5 }', qu.Power(2.0, 1.5)),
        ('{ kind = "saturating", ceiling = 3.0, rate = 0.5 }', qu.Saturating(3.0, 0.5)),
        ('{ kind = "deadline", penalty = 4.0, due = 0.0 }', qu.Deadline(4.0, 0.0)),
        (
            '{ kind = "piecewise-linear", points = [[1, 2], [3, 8.0]] }',
            qu.PiecewiseLinear([(0.0, 0.0), (1.0, 2.0), (3.0, 8.0)]),
        ),
    ],
)
def test_every_kind_of_cost_is_read_as_written(load, written, meant):
    queue = load(with_cost(written)).queue
    assert queue.classes[0].holding_cost == meant
    assert from_manifest(queue, "holding_cost") == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{ kind = "sinusoid", amplitude = 0.5, period = 24 }', qu.Sinusoid(0.5, 24.0)),
        ('{ kind = "steps", times = [1, 2.5], factors = [1, 0, 2] }', qu.Steps([1.0, 2.5], [1.0, 0.0, 2.0])),
        ('{ kind = "steps", times = [4.0], factors = [0.5, 1.5], period = 8 }', qu.Steps([4.0], [0.5, 1.5], 8.0)),
    ],
)
def test_every_kind_of_pattern_is_read_as_written(load, written, meant):
    queue = load(f"{GOOD}pattern = {written}\n").queue
    assert queue.classes[0].pattern == meant
    assert from_manifest(queue, "pattern") == meant


def from_manifest(queue: qu.Queue, key: str) -> object:
    """A cost or pattern as a scenario file would give it that used the words of the manifest."""
    written = json.loads(json.dumps(queue.plain_data()["classes"][0][key]))
    table = {name: value for name, value in written.items() if value is not None}
    return KINDS[key][table["kind"]].model_validate(table).made()


def test_a_cost_of_somebody_else_is_named_in_the_manifest_with_its_numbers():
    @dataclass(frozen=True)
    class Doubled(qu.HoldingCost):
        rate: float

        def __call__(self, wait):
            return 2 * self.rate * np.asarray(wait, dtype=float)

        def expected(self, waits):
            return 2 * self.rate * waits.mean

    queue = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 1.0, Doubled(0.5)), qu.JobClass("b", 1.0, 1.0, abs)])
    first, second = (c["holding_cost"] for c in queue.plain_data()["classes"])
    assert first == {"kind": "custom", "class": Doubled.__qualname__, "rate": 0.5}
    assert second == {"kind": "custom", "function": "abs"}


def test_the_queue_is_read_as_written(load):
    text = 'title = "Two"\n[queue]\nservers = 2\ncapacity = 7\nservice_rate = 3\n' + (
        '[[class]]\nname = "b"\narrival_rate = 4\nreward = 0\n[[class]]\nname = "a"\narrival_rate = 0.5\nreward = 6.5\n'
    )
    scenario = load(text)
    assert scenario.title == "Two"
    assert scenario.queue == qu.Queue(2, 7, 3.0, [qu.JobClass("b", 4.0, 0.0), qu.JobClass("a", 0.5, 6.5)])


def test_a_file_without_title_is_called_by_its_name(load):
    assert load(GOOD).title == "x"


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf" + GOOD.encode(), GOOD.replace("\n", "\r\n")], ids=["byte order mark", "CRLF"]
)
def test_files_from_other_editors_are_read(load, content):
    assert load(content).queue == load(GOOD).queue


@pytest.mark.parametrize("name", ["[red]", "日本語 ñ", "a.b = c", "x" * 40])
def test_a_name_may_be_any_printable_text(load, name):
    assert load(GOOD.replace('"a"', f'"{name}"')).queue.class_names == (name,)


# What is refused: one line of the message, its start and its end


@pytest.mark.parametrize(
    ("changed", "to", "line"),
    [
        ("service_rate = 1.0", "service_rate = 0", "x.toml:4: queue.service_rate = 0 must be positive"),
        ("arrival_rate = 1.0", "arrival_rate = -2", "x.toml:7: class[1].arrival_rate = -2 must be positive"),
        ("servers = 1", "servers = 0", "x.toml:2: queue.servers = 0 must be at least 1"),
        ("capacity = 5", "capacity = 0", "x.toml:3: queue.capacity = 0 must be at least 1"),
        ("capacity = 5", f"capacity = {10**9}", "x.toml:3: queue.capacity = 1000000000 must be at most 10000000"),
        ("reward = 1.0", "reward = -1", "x.toml:8: class[1].reward = -1 must be at least 0"),
        ("reward = 1.0", "reward = nan", "x.toml:8: class[1].reward = nan must be a finite number"),
        ("service_rate = 1.0", "service_rate = inf", "x.toml:4: queue.service_rate = inf must be a finite number"),
        ("arrival_rate = 1.0", "arrival_rate = -inf", "x.toml:7: class[1].arrival_rate = -inf must be a finite number"),
        ("servers = 1", 'servers = "one"', "x.toml:2: queue.servers = 'one' must be a whole number"),
        ("servers = 1", "servers = 1.0", "x.toml:2: queue.servers = 1.0 must be a whole number"),
        ("servers = 1", "servers = true", "x.toml:2: queue.servers = true must be a whole number"),
        ("reward = 1.0", 'reward = "1.0"', "x.toml:8: class[1].reward = '1.0' must be a number"),
        ("reward = 1.0", "reward = true", "x.toml:8: class[1].reward = true must be a number"),
        ("reward = 1.0", "reward = 2024-01-01", "x.toml:8: class[1].reward = 2024-01-01 must be a number"),
        ('"a"', "3", "x.toml:6: class[1].name = 3 must be a text in quotes"),
        ('"a"', '""', "x.toml:6: class[1].name = '' must not be empty"),
        ("reward", "rewrd", "x.toml:8: class[1].rewrd = 1.0 is not a known key; did you mean reward?"),
        ("servers", "servrs", "x.toml:2: queue.servrs = 1 is not a known key; did you mean servers?"),
        ("servers", "servrs", "x.toml:1: queue.servers is missing"),
        ("[[class]]", "[[clas]]", "x.toml: class is missing; add a table [[class]] for each class of jobs"),
        ("[queue]", "[que]", "x.toml: queue is missing; add a table [queue]"),
    ],
)
def test_a_wrong_value_is_told_with_its_place_and_what_would_be_right(told, changed, to, line):
    assert changed in GOOD
    assert line in told(GOOD.replace(changed, to))


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ('{ kind = "linear", rate = -1 }', ".rate = -1 must be at least 0"),
        ('{ kind = "linear" }', ".rate is missing"),
        ('{ kind = "linear", rate = 1, due = 3 }', ".due = 3 is not a known key; known here: kind, rate"),
        ('{ kind = "deadline", penalty = 1, due = 2, deu = 3 }', ".deu = 3 is not a known key; did you mean due?"),
        ('{ kind = "power", coefficient = 1, exponent = 0 }', ".exponent = 0 must be positive"),
        ('{ kind = "saturating", ceiling = inf, rate = 1 }', ".ceiling = inf must be a finite number"),
        (
            '{ kind = "linaer", rate = 1 }',
            ".kind = 'linaer' must be one of free, linear, power, saturating, deadline, piecewise-linear",
        ),
        ("{ rate = 1 }", " = {'rate': 1} needs a kind: free, linear, power, saturating, deadline, piecewise-linear"),
        ("3", ' = 3 must be a table such as { kind = "linear", rate = 0.1 }'),
        (
            '{ kind = "piecewise-linear", points = [[1, 5], [2, 3]] }',
            ": piecewise-linear cost: costs must not decrease, got 3.0 after 5.0",
        ),
        (
            '{ kind = "piecewise-linear", points = [[1, 5], [1, 7]] }',
            ": piecewise-linear cost: waits must increase from 0, got 1.0 after 1.0",
        ),
        ('{ kind = "piecewise-linear", points = [[1, -5]] }', ".points[1][2] = -5 must be at least 0"),
        ('{ kind = "piecewise-linear", points = [[1, 2, 3]] }', ".points[1] = [1, 2, 3] must be a pair [wait, cost]"),
        ('{ kind = "piecewise-linear", points = [4] }', ".points[1] = 4 must be a pair [wait, cost]"),
        ('{ kind = "piecewise-linear", points = [] }', ".points = [] must not be empty"),
    ],
)
def test_a_wrong_cost_is_told_with_its_place_and_what_would_be_right(told, cost, message):
    assert told(with_cost(cost)) == [f"x.toml:9: class[1].holding_cost{message}"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", ["queue is missing; add a table [queue]", "class is missing; add a table [[class]]"]),
        ("class = []\n" + QUEUE, [":1: class = [] must be tables, each with the heading [[class]], at least one"]),
        ("queue = 3\n" + CLASS, [":1: queue = 3 must be a table"]),
        ("colour = 1\n" + GOOD, [":1: colour = 1 is not a known key; known here: title, queue, class"]),
        ("title = 3\n" + GOOD, [":1: title = 3 must be a text in quotes"]),
        (GOOD.replace("servers = 1", "servers 1"), ["not valid TOML: Expected '=' after a key", "line 2"]),
        (GOOD.replace("servers = 1", "servers = 1\nservers = 2"), ["not valid TOML: Cannot overwrite", "line 3"]),
        (2 * '[controller]\nname = "oracle"\n' + GOOD, ["twice (at line 3", "each begins with [[controller]]"]),
        (GOOD.replace("\n", "\r"), ["not valid TOML"]),
        (b"\0" * 100, ["not valid TOML"]),
        (bytes(range(256)), ["byte 128 is not UTF-8"]),
        (GOOD.encode("utf-16"), ["byte 0 is not UTF-8"]),
        ("[" * 10_000_000, ["larger than 1 MB"]),
        ("a = " + "[" * 500_000, ["nested too deeply"]),
        ("a = " + "{a = " * 100_000, ["nested too deeply"]),
    ],
)
def test_a_file_that_is_no_scenario_is_told_as_such(told, content, lines):
    message = "\n".join(told(content))
    assert all(line in message for line in lines)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("".join(CLASS.replace('"a"', f'"{k}"') for k in range(1001)), "must be at most 1000 tables"),
        (CLASS + 201 * '[[controller]]\nname = "oracle"\n', "must be at most 200 tables"),
    ],
)
def test_there_are_not_more_classes_or_controllers_than_anybody_can_use(told, tables, message):
    (line,) = told(QUEUE + tables)
    assert line.endswith(message)
    assert len(line) < 200


def test_single_brackets_around_class_are_explained(told):
    (line,) = told(GOOD.replace("[[class]]", "[class]"))
    assert line.startswith("x.toml:5: class = {")
    assert line.endswith("must be tables, each with the heading [[class]], at least one")


def test_all_mistakes_are_told_at_once(told):
    text = (
        "[queue]\nservers = 0\ncapacity = 'x'\n"
        '[[class]]\nname = "a"\narrival_rate = -1\nreward = 1\nholding_cost = { kind = "lin" }\n'
        '[[class]]\nname = "a"\nreward = 1\ncolour = "red"\n'
    )
    assert [line.split(" ")[:2] for line in told(text)] == [
        ["x.toml:2:", "queue.servers"],
        ["x.toml:3:", "queue.capacity"],
        ["x.toml:1:", "queue.service_rate"],
        ["x.toml:6:", "class[1].arrival_rate"],
        ["x.toml:8:", "class[1].holding_cost.kind"],
        ["x.toml:9:", "class[2].arrival_rate"],
        ["x.toml:12:", "class[2].colour"],
        ["x.toml:10:", "class[2].name"],
    ]


def test_each_repeated_name_is_told(told):
    assert told(GOOD + CLASS + CLASS) == [
        "x.toml:10: class[2].name = 'a' is also the name of class[1]; names must differ",
        "x.toml:14: class[3].name = 'a' is also the name of class[1]; names must differ",
    ]


def test_of_a_hopeless_file_only_the_first_mistakes_are_told(told):
    lines = told(QUEUE + "[[class]]\n" * 1000)
    assert len(lines) == 21
    assert lines[-1] == "x.toml: and 2980 more mistakes"


@pytest.mark.parametrize("name", ["a\\u001b[31m", "a\\nb", "\\u202egnp.exe", " ", "a "])
def test_a_name_that_would_steer_the_terminal_is_refused(told, name):
    (line,) = told(GOOD.replace('"a"', f'"{name}"'))
    assert line.startswith("x.toml:6: class[1].name = ")
    assert line.endswith("must be one line of printable characters, with no space around it")
    assert line.isprintable()


def test_a_key_that_would_steer_the_terminal_is_shown_escaped(told):
    (line,) = told('"a\\u001b[31m" = 1\n' + GOOD)
    assert r"'a\x1b[31m' = 1 is not a known key" in line
    assert line.isprintable()


def test_a_long_value_is_shown_in_part(told):
    (line,) = told(GOOD.replace('"a"', '"' + "a" * 10_000 + '"'))
    assert line.endswith(" ... must have at most 40 characters")
    assert len(line) < 200


@pytest.mark.parametrize(
    ("key", "number", "message"),
    [
        ("service_rate = 1.0", "1" + "0" * 400, "is too large for a number"),
        ("service_rate = 1.0", "0x1" + "f" * 5000, "is too large for a number"),
        ("service_rate = 1.0", "1" + "0" * 5000, "a number has thousands of digits"),
        ("capacity = 5", "1" + "0" * 30, "must be at most 10000000"),
        ("servers = 1", "0x1" + "f" * 5000, "must be at most 10000000"),
    ],
)
def test_a_huge_integer_is_refused(told, key, number, message):
    (line,) = told(GOOD.replace(key, f"{key.split()[0]} = {number}"))
    assert line.endswith(message)


DEEP = 60_000 * ".a"


@pytest.mark.parametrize(
    "text",
    [
        f"a{DEEP} = 1\n{GOOD}",
        f"a{DEEP.replace('.', ' . ')} = 1\n",
        f"{GOOD}[sweep]\na{DEEP} = [1]\n",
        f"{GOOD}[sweep.a{DEEP}]\nb = [1]\n",
        f"{GOOD}[[sweep.a{DEEP}]]\nb = [1]\n",
        f'{GOOD}[controller]\nname = "oracle"\na{DEEP} = 1\n',
        f"{GOOD}holding_cost = {{ a{DEEP} = 1 }}\n",
        f'{GOOD}holding_cost = {{ x = """"""", a{DEEP} = 1 }}\n',
        f"{GOOD}holding_cost = {{ x = '''''''', a{DEEP} = 1 }}\n",
        f"{GOOD}[sweep]\n'a'" + 40_000 * '."a"' + " = [1]\n",
        GOOD + "[sweep]\n" + "a = { " * 39 + ".".join("a" * 39) + " = 1" + " }" * 39 + "\n",
        GOOD + "[sweep]\na = " + "[" * 200 + "]" * 200 + "\n",
        GOOD + "".join(f"[sweep{'.a' * k}]\n" for k in range(1, 60)),
    ],
    ids=[
        "key",
        "key with spaces",
        "sweep",
        "sweep's heading",
        "heading of a list",
        "option",
        "inline table",
        "behind seven quotes",
        "behind eight apostrophes",
        "quoted parts",
        "keys in tables",
        "lists",
        "headings",
    ],
)
def test_tables_in_tables_in_tables_are_refused_before_they_take_memory(told, text):
    """tomllib would take 1.7 GB for the keys of 40 kB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    assert told(text) == ["x.toml: tables are nested too deeply, at most 40 in one another"]
    assert time.process_time() - started < 5.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_what_only_looks_like_a_deep_key_is_read(load):
    """Dots in comments, texts and lists of numbers are no keys."""
    dots = "a" + 100 * ".a"
    text = f'# {dots}\ntitle = """\\\n{dots[:150]}"""  # {dots}\n' + GOOD.replace("1.0", '1.0 # "')
    numbers = ", ".join(f"[{t}.5, {t}.25]" for t in range(1, 200))
    assert load(f'{text}holding_cost = {{ kind = "piecewise-linear", points = [{numbers}] }}\n').title == dots[:150]
    assert load(f"title = '{dots[:150]}'\n" + GOOD).title == dots[:150]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            (with_cost('{ kind = "power", coefficient = 1, exponent = 500 }') + CLASS.replace('"a"', '"b"'))
            + 'holding_cost = { kind = "power", coefficient = 1, exponent = 600 }\n',
            ["class 'a': the expected holding cost is too large", "class 'b': the expected holding cost is too large"],
        ),
        (GOOD.replace("arrival_rate = 1.0", "arrival_rate = 1e120"), ["rates from 1.0 to 1e+120 are too far apart"]),
        (GOOD.replace("service_rate = 1.0", "service_rate = 1e-120"), ["rates from 1e-120 to 1.0 are too far apart"]),
        (
            GOOD.replace("arrival_rate = 1.0", "arrival_rate = 1e200"),
            ["class 'a': arrival_rate must lie between 1e-150 and 1e+150, got 1e+200"],
        ),
        (
            GOOD.replace("service_rate = 1.0", "service_rate = 5e-324"),
            ["service_rate must lie between 1e-150 and 1e+150, got 4.94066e-324"],
        ),
        (
            GOOD.replace("capacity = 5", "capacity = 9000000") + CLASS.replace('"a"', '"b"'),
            ["capacity x classes must be at most 10000000, got 9000000 x 2"],
        ),
    ],
)
def test_numbers_beyond_double_precision_are_refused(told, text, lines):
    found = told(text)
    assert len(found) == len(lines)
    assert all(part in line for part, line in zip(lines, found, strict=True))


def test_a_missing_file_is_told_with_the_nearest_name(tmp_path):
    (tmp_path / "my-queue.toml").write_text(GOOD)
    with pytest.raises(qu.ScenarioError, match=r"my-queu\.toml: no such file; did you mean .*/my-queue\.toml\?$"):
        qu.load_scenario(tmp_path / "my-queu.toml")
    with pytest.raises(qu.ScenarioError, match=r"nowhere/x\.toml: no such file$"):
        qu.load_scenario(tmp_path / "nowhere" / "x.toml")


def test_a_folder_is_no_scenario(tmp_path):
    with pytest.raises(qu.ScenarioError, match="is a folder; name a scenario file"):
        qu.load_scenario(tmp_path)


def test_an_unreadable_file_is_told_as_such(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may read anything, so permissions prove nothing
    with pytest.raises(qu.ScenarioError, match=r"x\.toml: cannot be read \(Permission denied\)"):
        qu.load_scenario(tmp_path / "x.toml")


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # the length of a socket's name is limited


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize(
    "make", [os.mkfifo, socket_at, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(os.devnull)]
)
def test_a_pipe_a_socket_or_a_device_is_told_at_once(tmp_path, monkeypatch, make):
    """Opening a pipe that nobody writes to would wait for ever, and /dev/zero never ends."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x.toml")
    with pytest.raises(
        qu.ScenarioError, match=r"x\.toml: (is not a file but a pipe or a device|cannot be read \(No such)"
    ):
        qu.load_scenario(tmp_path / "x.toml")


def test_a_name_that_is_no_name_of_a_file_is_told_as_such(tmp_path):
    for name in ("a\0b.toml", "x" * 300 + ".toml", "\udcff.toml", "\ud800.toml"):
        with pytest.raises(qu.ScenarioError) as error:
            qu.load_scenario(tmp_path / name)
        assert str(error.value).isprintable()


def test_a_file_whose_name_is_not_utf8_is_read_like_any_other(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b.toml")
    path.write_text(GOOD)
    assert qu.load_scenario(path).title == r"caf\xe9\x1b"
    path.write_text(GOOD + "x = 1\n")
    with pytest.raises(qu.ScenarioError) as error:
        qu.load_scenario(path)
    assert str(error.value).isprintable()
    assert r"caf\xe9\x1b.toml:9: class[1].x = 1 is not a known key" in str(error.value)


# The scenarios that come with the project


def test_the_six_queues_of_the_paper_are_shipped():
    for capacity in (20, 50):
        for service_rate in (0.3, 0.4, 0.5):
            (path,) = [p for p in SHIPPED if p.name == f"paper-s{capacity}-mu{service_rate}.toml"]
            assert qu.load_scenario(path).queue == qu.Queue(
                5,
                capacity,
                service_rate,
                [qu.JobClass("gold", 1.0, 20.0, qu.Linear(0.1)), qu.JobClass("basic", 1.0, 10.0, qu.Linear(0.1))],
            )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_a_shipped_scenario_explains_itself_and_turns_somebody_away(path):
    comment = re.match(r"(#.*\n)+", path.read_text())
    assert comment is not None
    assert "Teaches" in comment[0]
    assert len(comment[0].splitlines()) >= 5
    scenario = qu.load_scenario(path)
    policy = qu.solve(scenario.queue.on_average()).policy
    assert policy.admits[0].all()
    assert not policy.admits.all()


def test_scenarios_from_life_show_every_kind_of_cost():
    life = ("call-centre", "network-traffic", "ev-charging", "cloud-jobs")
    queues = [qu.load_scenario(p).queue for p in SHIPPED if p.stem in life]
    kinds = {type(c.holding_cost) for queue in queues for c in queue.classes}
    assert kinds == {qu.Free, qu.Linear, qu.Power, qu.Saturating, qu.Deadline, qu.PiecewiseLinear}
    assert all(len(queue.classes) >= 3 for queue in queues)
    assert len(queues) >= 4


def test_in_network_traffic_the_class_worth_most_is_not_the_last_to_be_turned_away():
    queue = qu.load_scenario(next(p for p in SHIPPED if p.stem == "network-traffic")).queue
    levels = qu.solve(queue).policy.control_levels
    assert queue.priorities[0].tolist() == [0, 1, 2]
    assert int(np.argmax(levels)) == 1
