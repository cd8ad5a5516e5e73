"""Scenario files gone wrong in every way, generated from the file's own models: new keys and kinds come by themselves.

`mutated_files(seed)` gives (what was done, a function that makes the file's bytes), in an order that the seed fixes.
"""

from __future__ import annotations

import copy
import json
import pathlib
import random as randomness
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, get_args

import pandas as pd
from pydantic import BaseModel

from queueing_ucrl.learning.registry import OWN
from queueing_ucrl.scenario import keys, parts

Tree = dict[str, Any]
Path = tuple[int | str, ...]
Case = tuple[str, Callable[[], bytes]]


class Raw(str):
    """TOML as it stands, right or wrong."""


# What a key must be given to be legal, where its type alone does not say so.
EXAMPLES: dict[str, Any] = {
    "points": [[1.0, 1.0], [2.0, 4.0]],
    "times": [1.0, 2.0],
    "factors": [0.5, 1.5, 1.0],
    "period": 8.0,
    "amplitude": 0.5,
    "arrival_rate_bounds": [0.5, 9.0],
    "first_episode": 10.0,
    "levels": [3, 2],
    "values": [0.5, 2.0],
    "file": "jobs.csv",
    "column": "work",
    "trace": "jobs.csv",
    "time": "date",
    "job_class": "kind",
    "work": "work",
    "duration": 30.0,
    "shape": 2.5,
    "high": 3.0,
    "law": {"kind": "gamma", "mean": 0.5, "cv": 0.7},
    "sizes": {"kind": "geometric", "mean": 2.0},
    "rates": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]],
    "arrival_factors": [0.5, 1.5, 1.0],
    "counts": [2, 1, 2],
    "initial": {"gold": 1},
    "precision": 0.5,
    "measure": "wait",
    "replications": 2,
}

JOBS = """date,work,kind,time
2024-01-01T00:00:00Z,0.5,gold,0.0
2024-01-01T00:00:07Z,1.5,tin,7.0
2024-01-01T00:00:09Z,0.25,gold,9.0
2024-01-01T00:00:25Z,2.0,tin,25.0
"""

DEEP = 5000
NUMBERS = """0 1 -1 2 3 1.0 0.0 -0.0 0.5 1.5 -3.5 1e-320 5e-324 1e-300 1e-12 1e16 1e160 1e300 -1e308 10000001
    1.7976931348623157e308 nan -nan inf -inf true false 0x10 0b1 1_000 2024-01-01 2024-01-01T00:00:00Z 12:30:00"""
TABLES = """[] {} [[]] [{}] [1] [1.0,2.0] [1,2,3] [nan,inf] [-1,-2] [0] ['a'] [true] {a=1} {kind=1} {kind='x'}
    {kind='linear'} ['a',1,{b=2}] 1e999999"""
LONG_NUMBERS = ["1" + "0" * 30, "-1" + "0" * 30, "1" + "0" * 400, "0x" + "f" * 3000, "1" * 4400]
DEEP_TABLES = ["[" * 60 + "]" * 60, "[" * DEEP + "]" * DEEP, "{a=" * 60 + "1" + "}" * 60, "{" + "a." * DEEP + "a=1}"]
LONG_TEXTS = ["[" + "1.5," * 10_000 + "]", "'''\n'''"]
WORDS = (
    "x nan 1.0 客户 👩\u200d🚒 \U0010ffff [bold]x[/bold] ../../x /etc/passwd %s%n{} \x1b[31mred \u202etxt.exe \ufeff"
)
WILD: list[str] = [
    *map(Raw, [*NUMBERS.split(), *TABLES.split(), *LONG_NUMBERS, *DEEP_TABLES, *LONG_TEXTS]),
    *WORDS.split(" "),
    *["", " ", "a b", "\n", "\t", "\x00", "\u2028", "é" * 30, "x" * 50_000, "a" * 41],
]

_TYPICAL: dict[type, Any] = {float: 1.0, int: 2, str: "x", bool: True}


def legal_value(name: str, annotation: Any) -> Any:
    """Something of the type; by name where the type does not suffice."""
    if name in EXAMPLES:
        return copy.deepcopy(EXAMPLES[name])
    if annotation in _TYPICAL:
        return _TYPICAL[annotation]
    for argument in get_args(annotation):
        if isinstance(argument, str):  # of a Literal, the first
            return argument
        if argument is not type(None):
            return legal_value(name, argument)
    raise LookupError(f"give an example of {name} in EXAMPLES")


def legal_table(model: type[BaseModel], **given: Any) -> Tree:
    """A table with every key of a section's model."""
    return {
        field.alias or name: given.get(name, legal_value(name, field.annotation))
        for name, field in model.model_fields.items()
    }


def controller_tables() -> list[Tree]:
    """Every controller, once with what it needs and once with all of its options spelled out."""
    tables = []
    for name, kind in OWN.items():
        needed = {f.name: EXAMPLES[f.name] for f in fields(kind) if f.default is MISSING}
        spelled = {f.name: f.default for f in fields(kind) if f.default not in (MISSING, None)}
        tables += [{"name": name, **needed}, {"name": name, **needed, **spelled}]
    return copy.deepcopy(tables)


def legal_tree(**sections: Any) -> Tree:
    """A small legal scenario of two classes."""
    tree: Tree = {
        "title": "Two classes",
        "queue": {"servers": 2, "capacity": 5, "service_rate": 1.0},
        "class": [
            {"name": "gold", "arrival_rate": 1.5, "reward": 5.0, "holding_cost": {"kind": "linear", "rate": 0.5}},
            {"name": "tin", "arrival_rate": 1.0, "reward": 2.0},
        ],
        "controller": [{"name": "oracle"}],
        "run": {"horizon": 20.0, "replications": 1, "seed": 3},
    }
    return {**tree, **sections}


def furnish(folder: pathlib.Path) -> None:
    """The files that the scenarios speak of."""
    (folder / "jobs.csv").write_text(JOBS)
    rows = [(0.5 * k, "gold" if k % 3 else "tin", 1.0 + 0.1 * (k % 7), "admit" if k % 5 else None) for k in range(60)]
    log = pd.DataFrame(rows, columns=["time", "job_class", "work", "decision"])
    log.to_parquet(folder / "log.parquet", index=False)


def with_class(**keys: Any) -> Tree:
    """The first class with these keys; None takes one away."""
    tree = legal_tree()
    tree["class"][0] = {key: value for key, value in {**tree["class"][0], **keys}.items() if value is not None}
    return tree


def with_queue(**keys: Any) -> Tree:
    """The table [queue] with these keys; None takes one away."""
    tree = legal_tree()
    tree["queue"] = {key: value for key, value in {**tree["queue"], **keys}.items() if value is not None}
    return tree


def laws() -> list[Tree]:
    """Every law, an empirical one from a list and from a file."""
    found = []
    for kind, model in parts.KINDS["service"].items():
        table = legal_table(model)
        if kind == "empirical":
            found.append({key: value for key, value in table.items() if key != "values"})
            table = {"kind": kind, "values": table["values"]}
        found.append(table)
    return found


def world_trees() -> list[Tree]:
    """Legal scenarios beyond patient jobs and servers that are always there."""
    some = {"kind": "erlang", "mean": 2.0, "stages": 2}
    trace = legal_table(parts.TraceTable)
    trees = [with_class(service=table) for table in laws()]
    trees += [with_class(patience=some, abandonment_cost=0.5, reward_at="start")]
    trees += [with_class(day_factor={"cv": 0.3, "period": 8.0})]
    trees += [with_class(balking={"kind": "geometric", "ratio": 0.8, "above": 1})]
    trees += [with_class(balking={"kind": "linear", "limit": 4.0, "above": 1})]
    trees += [with_class(balking={"kind": "table", "probability": [1.0, 0.5, 0.75]})]
    trees += [with_class(arrival_rate=None, arrival_rates=[2.0, 1.5, 1.0, 0.5, 0.25])]
    trees += [with_class(reward=None, pays={"kind": "two-point", "mean": 5.0, "probability": 0.2})]
    for kind, model in parts.KINDS["arrivals"].items():
        table = trace if kind == "trace" else legal_table(model)
        trees.append(with_class(arrival_rate=None, arrivals=table))
    trees += [with_class(arrival_rate=None, arrivals={"kind": "batches", "rate": 1.0, "sizes": s}) for s in (2, [1, 3])]
    trees.append(with_queue(service_rate=None, service=some))
    trees.append(with_queue(patience={"kind": "exponential", "rate": 0.5}, initial={"gold": 1}, discipline="fifo"))
    trees.append(with_queue(servers=legal_table(keys.ShiftsTable)))
    trees.append(legal_tree(breakdowns={"uptime": some, "downtime": some, "interrupted": "restart"}))
    trees.append(legal_tree(environment=legal_table(keys.EnvironmentTable, servers=[1, 2, 2])))
    trees.append(legal_tree(setup={"time": some, "after": 1.0}))
    bare = [{"name": name, "reward": 1.0} for name in ("gold", "tin")]
    trees.append({**with_queue(service_rate=None), "class": bare, "arrivals": trace})
    trees.append(legal_tree(data=legal_table(keys.DataTable, trace="log.parquet", begin=0.0, end=30.0, day=6.0)))
    return trees


def legal_trees() -> list[Tree]:
    """Legal scenarios that hold every key of every section, every kind of cost and pattern, and every controller."""
    trees = [legal_tree(run=legal_table(keys.Run, horizon=20.0, solver_latency=0.0, grid_points=20))]
    trees += [with_class(**{p: legal_table(m)}) for p in ("holding_cost", "pattern") for m in parts.KINDS[p].values()]
    trees += world_trees()
    trees += [legal_tree(controller=[table]) for table in controller_tables()]
    trees.append(legal_tree(controller=[{"name": "oracle"}, {"name": "thompson", "memory": 4.0}, {"name": "thompson"}]))
    trees.append(legal_tree(controller={"name": "admit-all"}))
    trees.append(legal_tree(controller={"name": "admit-all", "label": "everybody"}))
    trees.append(legal_tree(units=legal_table(keys.UnitNames)))
    trees.append(legal_tree(sweep={"queue.service_rate": [0.5, 1.0], "class.gold.reward": [1.0, 2.0, 3.0]}))
    return trees


# ---- as TOML


def literal(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, bool) else str(value).lower()


def toml_lines(tree: Tree) -> list[str]:
    """A tree as TOML: plain keys first, then tables."""
    lines = [f"{key} = {literal(value)}" for key, value in tree.items() if not _is_section(value)]
    for key, value in tree.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", *(f"{k} = {literal(v)}" for k, v in value.items())]
        elif _is_section(value):
            for table in value:
                lines += [f"[[{key}]]", *(f"{k} = {literal(v)}" for k, v in table.items())]
    return lines


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def toml(tree: Tree) -> bytes:
    return ("\n".join(toml_lines(tree)) + "\n").encode("utf-8", "surrogatepass")


# ---- mutations of the tree


def places(tree: Any, before: Path = ()) -> Iterator[Path]:
    """The paths of all keys."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from places(value, (*before, key))


def holder(tree: Any, path: Path) -> Any:
    for part in path[:-1]:
        tree = tree[part]
    return tree


def changed(tree: Tree, path: Path, value: Any) -> Tree:
    tree = copy.deepcopy(tree)
    holder(tree, path)[path[-1]] = value
    return tree


def words(path: Path) -> str:
    return ".".join(map(str, path))


def distinct_places(trees: list[Tree]) -> list[tuple[Tree, Path]]:
    """Every place of every tree, each kind of place once."""
    found: dict[tuple[object, ...], tuple[Tree, Path]] = {}
    for tree in trees:
        for path in places(tree):
            owner = holder(tree, path)
            kind = owner.get("kind", owner.get("name")) if isinstance(owner, dict) and path[0] != "class" else None
            kind = owner.get("kind", kind) if isinstance(owner, dict) else kind
            found.setdefault((path, kind), (tree, path))
    return list(found.values())


def replaced(trees: list[Tree]) -> Iterator[Case]:
    """Every value of every kind of place by every wild one."""
    for tree, path in distinct_places(trees):
        for value in WILD:
            yield f"{words(path)} = {literal(value)[:40]}", partial(_replaced, tree, path, value)


def _replaced(tree: Tree, path: Path, value: Any) -> bytes:
    return toml(changed(tree, path, value))


def _deleted(tree: Tree, path: Path) -> bytes:
    less = copy.deepcopy(tree)
    del holder(less, path)[path[-1]]
    return toml(less)


def _renamed(tree: Tree, path: Path, key: str) -> bytes:
    other = copy.deepcopy(tree)
    owner = holder(other, path)
    owner[Raw(key)] = owner.pop(path[-1])
    return toml(other)


def deleted_doubled_renamed(trees: list[Tree]) -> Iterator[Case]:
    for tree, path in distinct_places(trees):
        yield f"without {words(path)}", partial(_deleted, tree, path)
        if isinstance(path[-1], str):
            name = path[-1]
            like = [name + "x", name.upper(), f"{name}.{name}", f'"{name}"']
            unlike = ['"\\u001b[31m"', "''", "客", '"客"', '"' + "k" * 5000 + '"', "a" + ".a" * DEEP]
            for key in like + unlike:
                yield f"{words(path)} called {key[:30]}", partial(_renamed, tree, path, key)
    for tree in trees:
        lines = toml_lines(tree)
        for k in range(len(lines)):
            yield f"line {k} twice", partial(_joined, [*lines[: k + 1], *lines[k:]])
            yield f"line {k} gone", partial(_joined, [*lines[:k], *lines[k + 1 :]])


def _joined(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


NO_PLACES = r""". .. x title queue queue. queue.servers.x class class.gold class.x.reward class.0.reward run sweep.x
    controller \u001b"""


def swept(trees: list[Tree]) -> Iterator[Case]:
    """Every place as a sweep's key, with lists of wild values; and keys that are no places."""
    numbers: list[Any] = [[], [0], [1], [1.0, 2.0], [0.5, -1], [1e-300] * 3, Raw(literal(list(range(1, 12_000))))]
    odd: list[Any] = [["x"], ["admit-all", "oracle"], [[1.0, 2.0]], [{}], 3, "x", True]
    lists = numbers + odd + [Raw(text) for text in ("[nan]", "[inf, 1e300]", "[1, 2024-01-01]")]
    names = {0: "gold", 1: "tin"}
    for tree, path in distinct_places(trees):
        key = ".".join(names.get(p, str(p)) if isinstance(p, int) else p for p in path)
        if path[0] == "controller":
            key = ".".join(str(p) for p in path if not isinstance(p, int))
        for values in lists:
            yield f"sweep {key} {literal(values)[:30]}", partial(toml, {**tree, "sweep": {f'"{key}"': values}})
    base = legal_tree()
    for key in ("", *NO_PLACES.split(), "a" + ".a" * 30, "a" + ".a" * DEEP):
        for values in lists:
            yield f"sweep {key[:30]}", partial(toml, {**base, "sweep": {f'"{key}"': values}})
            if key:
                yield f"sweep {key[:30]} unquoted", partial(toml, {**base, "sweep": {key: values}})
    many = {f'"run.{key}"': list(range(1, 60)) for key in ("horizon", "seed", "grid_points")}
    yield "sweep of many points", partial(toml, {**base, "sweep": many})


NAMES = """service_rate arrival_rate reward rate coefficient exponent ceiling penalty due points times factors period
    phase"""
NUMBERS_OF_A_QUEUE = frozenset(NAMES.split())


def far_fetched(trees: list[Tree], random: randomness.Random, count: int) -> Iterator[Case]:
    """Numbers of a queue far from all that is usual, most of them legal; the horizon such that few jobs come."""
    kinds = [
        tree
        for tree in trees
        if tree["controller"] == [{"name": "oracle"}]
        and "service_rate" in tree["queue"]
        and all("arrival_rate" in c for c in tree["class"])
    ]
    for _ in range(count):
        tree = copy.deepcopy(random.choice(kinds))
        tree["controller"] = [copy.deepcopy(random.choice(controller_tables()))]
        decades = random.choice([1, 5, 20, 60, 140, 300])
        chosen = [
            path
            for path in places(tree)
            if any(part in NUMBERS_OF_A_QUEUE for part in path) and isinstance(_at(tree, path), float)
        ]
        for path in random.sample(chosen, random.randrange(1, 1 + min(4, len(chosen)))):
            tree = changed(tree, path, float(f"{10.0 ** random.uniform(-decades, decades):.3g}"))
        tree["queue"]["capacity"] = random.choice([1, 2, 5, 30])
        rates = [tree["queue"]["service_rate"], *(c["arrival_rate"] for c in tree["class"])]
        factor = max([1.0, *(f for c in tree["class"] for f in c.get("pattern", {}).get("factors", []))])
        tree["run"]["horizon"] = min(1e300, 20.0 / min(1e300, max(rates) * factor))
        yield f"far-fetched: {decades} decades, {tree['controller'][0]['name']}", partial(toml, tree)


def _at(tree: Any, path: Path) -> Any:
    return holder(tree, path)[path[-1]]


# ---- mutations of the text


def garbled(trees: list[Tree], random: randomness.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """Cut, flipped, shuffled, spliced, in other encodings."""
    texts = [toml(tree) for tree in trees]
    encodings = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xae"]
    controls = [b"\x00", b"\r", b"\x1b[2J"]
    syntax = [*b""" " ' [ ] { } = . \\ # """.split(), b'"""', b"'''", b"\n[[class]]\n", b"\n[queue]\n"]
    marks = encodings + controls + syntax
    for n in range(count):
        text = random.choice(texts)
        at, kind = random.randrange(len(text)), n % 8
        if kind == 0:
            yield "cut", text[:at]
        elif kind == 1:
            flipped = bytearray(text)
            for _ in range(random.choice([1, 1, 1, 3, 20])):
                flipped[random.randrange(len(text))] ^= 1 << random.randrange(8)
            yield "flipped", bytes(flipped)
        elif kind == 2:
            mark = random.choice(marks) * random.choice([1, 1, 2, 1000])
            yield f"{mark[:20]!r} put in", text[:at] + mark + text[at:]
        elif kind == 3:
            lines = text.splitlines(keepends=True)
            random.shuffle(lines)
            yield "shuffled", b"".join(lines)
        elif kind == 4:
            other = random.choice(texts)
            yield "spliced", text[:at] + other[random.randrange(len(other)) :]
        elif kind == 5:
            encoding = random.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037", "utf-7"])
            yield encoding, text.decode().encode(encoding, "replace")
        elif kind == 6:
            end = random.choice([b"\r\n", b"\r", b"\n\n", b" \n", b"\x0b", b"\xe2\x80\xa8", b"\x00\n", b""])
            yield f"lines that end in {end!r}", text.replace(b"\n", end)
        else:
            length = random.randrange(1, 40)
            yield "a piece gone", text[:at] + text[at + length :]


def whole_files() -> Iterator[tuple[str, bytes]]:
    """Files that are something else, or far too much."""
    good = toml(legal_tree())
    yield "empty", b""
    yield "zeros", bytes(1000)
    yield "every byte", bytes(range(256))
    yield "too large", b"#" * 1_000_001
    yield "a megabyte of comment", b"#" * 900_000 + b"\n" + good
    yield "a megabyte of brackets", b"a = " + b"[" * 900_000
    yield "a megabyte of braces", b"a = " + b"{a=" * 300_000
    yield "a megabyte of quotes", b"a = " + b'"' * 900_000
    yield "a megabyte of escaped quotes", b'a = """' + b'\\"""' * 200_000
    yield "a megabyte of dots", good + b"a" + b".a" * 400_000 + b" = 1\n"
    yield (
        "a megabyte of dotted keys",
        good + b"".join(b"sweep." + b".".join(b"%x%d" % (k, j) for j in range(35)) + b" = 1\n" for k in range(6000)),
    )
    yield "a megabyte of headings", b"".join(b"[a%d.b.c]\n" % k for k in range(60_000))
    yield (
        "thousands of classes",
        good + b"".join(b'[[class]]\nname="%x"\narrival_rate=1\nreward=1\n' % k for k in range(15_000)),
    )
    yield "thousands of classes of one name", good + b'[[class]]\nname="a"\narrival_rate=1\nreward=1\n' * 15_000
    yield "thousands of empty classes", good + b"[[class]]\n" * 80_000
    yield "thousands of controllers", good + b'[[controller]]\nname="oracle"\n' * 20_000
    yield "thousands of unknown keys", b"".join(b"k%d = 1\n" % k for k in range(80_000)) + good
    yield "a sweep of large queues", toml(legal_tree(sweep={'"queue.capacity"': list(range(100_000, 100_400))}))
    yield "JSON", b'{"queue": {"servers": 1}}'
    yield "YAML", b"queue:\n  servers: 1\n"
    yield "HTML", b"<html><body>404</body></html>"
    yield "an executable", b"\x7fELF\x02\x01\x01" + bytes(100)


def mutated_files(seed: int, garbled_count: int = 1500) -> list[Case]:
    """All of them, in a random order that the seed fixes; whole files first."""
    random = randomness.Random(seed)
    trees = legal_trees()
    texts = [(what, partial(bytes, content)) for what, content in garbled(trees, random, garbled_count)]
    cases = [*replaced(trees), *deleted_doubled_renamed(trees), *swept(trees), *texts]
    random.shuffle(cases)
    return [*((what, partial(bytes, content)) for what, content in whole_files()), *cases]
