"""Event logs as OCEL 2.0: whole, as the specification has it, and read by pm4py without complaint."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from made_logs import HOSTILE, WORLDS, every_kind, hostile_log, own_columns_log, world_log

from queueing_ucrl.data.formats import export

SUFFIXES = (".jsonocel", ".sqlite", ".xmlocel")
READ = {"float": float, "integer": int, "string": str, "boolean": lambda text: {"true": True, "false": False}[text]}


# ---- a reader of each, of our own: {"events": {id: ..}, "objects": {id: ..}, "eventTypes": .., "objectTypes": ..}


def read_json(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert set(found) == {"eventTypes", "objectTypes", "events", "objects"}
    types = {
        word: {t["name"]: {a["name"]: a["type"] for a in t["attributes"]} for t in found[word]}
        for word in ("eventTypes", "objectTypes")
    }
    read: dict[str, Any] = {**types, "events": {}, "objects": {}}
    for word in ("events", "objects"):
        for entry in found[word]:
            kinds = types[f"{word[:-1]}Types"][entry["type"]]
            assert entry["id"] not in read[word]
            assert all(isinstance(a["value"], str) for a in entry["attributes"])  # as the schema has it
            assert word == "events" or all(a["time"] == "1970-01-01T00:00:00Z" for a in entry["attributes"])
            values = {a["name"]: READ[kinds[a["name"]]](a["value"]) for a in entry["attributes"]}
            related = [(r["objectId"], r["qualifier"]) for r in entry["relationships"]]
            read[word][entry["id"]] = (entry["type"], entry.get("time"), values, related)
    return read


def read_xml(path: Path) -> dict[str, Any]:
    root = ElementTree.parse(path).getroot()
    assert [child.tag for child in root] == ["object-types", "event-types", "objects", "events"]
    read: dict[str, Any] = {"events": {}, "objects": {}}
    for word in ("event", "object"):
        types = {
            t.attrib["name"]: {a.attrib["name"]: a.attrib["type"] for a in t.iter("attribute")}
            for t in root.iter(f"{word}-type")
        }
        read[f"{word}Types"] = types
        for entry in root.find(f"{word}s") or []:
            kinds = types[entry.attrib["type"]]
            values = {a.attrib["name"]: READ[kinds[a.attrib["name"]]](a.text or "") for a in entry.iter("attribute")}
            related = [(r.attrib["object-id"], r.attrib["qualifier"]) for r in entry.iter("relationship")]
            read[f"{word}s"][entry.attrib["id"]] = (entry.attrib["type"], entry.get("time"), values, related)
    return read


def read_sqlite(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = {"events": {}, "objects": {}}
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        pairs = {"event": "event_object", "object": "object_object"}
        for word, table in pairs.items():
            related: dict[str, list[tuple[str, str]]] = {}
            for source, target, what in database.execute(f"SELECT * FROM {table}"):
                related.setdefault(source, []).append((target, what))
            types: dict[str, dict[str, str]] = {}
            for kind, mapped in database.execute(f"SELECT * FROM {word}_map_type").fetchall():
                columns = database.execute(f"PRAGMA table_info({word}_{mapped})").fetchall()
                types[kind] = {c["name"]: c["type"] for c in columns if not c["name"].startswith("ocel_")}
                for row in database.execute(f"SELECT * FROM {word}_{mapped}"):
                    values = {name: row[name] for name in types[kind] if row[name] is not None}
                    read[f"{word}s"][row["ocel_id"]] = (kind, row["ocel_time"], values, related.get(row["ocel_id"], []))
            assert dict(database.execute(f"SELECT * FROM {word}").fetchall()) == {
                name: entry[0] for name, entry in read[f"{word}s"].items()
            }
            read[f"{word}Types"] = types
    return read


READERS: dict[str, Callable[[Path], dict[str, Any]]] = dict(
    zip(SUFFIXES, (read_json, read_sqlite, read_xml), strict=True)
)


def rows_of(read: dict[str, Any], columns: list[str]) -> list[dict[str, Any]]:
    """The log's rows, from the events and their relations alone."""
    rows = []
    for k in range(len(read["events"])):
        kind, _, values, related = read["events"][f"event/{k}"]
        row = {**values, "event": kind}
        for name, what in related:
            replication, _, rest = name.partition("/")
            if what == "job":
                row |= {"job": int(rest.removeprefix("job/")), "replication": int(replication)}
                said = read["objects"][name]
                row |= {"job_class": said[2]["job_class"]} if "job_class" in said[2] else {}
            elif what == "server":
                row |= {"server": int(rest.removeprefix("server/")), "replication": int(replication)}
            elif what == "queue":
                row |= {"replication": int(replication)}
        rows.append({name: row.get(name) for name in columns})
    return rows


def rows_as_they_are(events: pd.DataFrame) -> list[dict[str, Any]]:
    plain = events.astype(object).where(events.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def check(events: pd.DataFrame, path: Path) -> dict[str, Any]:
    read = READERS[path.suffix](path)
    assert rows_of(read, list(events.columns)) == rows_as_they_are(events)
    objects = read["objects"]
    counted = Counter(kind for kind, *_ in objects.values())
    assert counted["job"] == events["job"].nunique()
    assert counted["server"] == events["server"].nunique()
    assert counted["class"] == events["job_class"].dropna().nunique()
    for kind, _, _, related in read["events"].values():
        assert related
        assert {name for name, _ in related} <= set(objects)
        assert kind in read["eventTypes"]
        assert all(objects[name][0] == what for name, what in related)
    first = events.dropna(subset="job").drop_duplicates("job")
    arrivals = dict(zip(first["job"], zip(first["job_class"], first["time"], strict=True), strict=True))
    for name, (kind, _, values, related) in objects.items():
        if kind == "job":
            assert (values["job_class"], values["arrival"]) == arrivals[int(name.rpartition("/")[2])]
            assert related == [(f"class/{values['job_class']}", "class")]
    return read


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", WORLDS)
def test_a_world_is_all_there(tmp_path: Path, name: str, suffix: str) -> None:
    check(world_log(name), export(world_log(name), tmp_path / f"log{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("made", [every_kind, hostile_log])
def test_every_event_and_hostile_names(tmp_path: Path, made: Any, suffix: str) -> None:
    events = made()
    read = check(events, export(events, tmp_path / f"log{suffix}", unit="minutes", epoch="2026-03-01T08:00+01:00"))
    assert set(read["eventTypes"]) == set(events["event"])
    assert list(read["eventTypes"]["review"]) == ["time", "in_system", "episode"]
    _, first, values, _ = read["events"]["event/9"]
    date = pd.Timestamp(first) - pd.Timestamp("2026-03-01T07:00Z")
    assert date.total_seconds() == pytest.approx(60 * values["time"], abs=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_of_ones_own(tmp_path: Path, suffix: str) -> None:
    events = own_columns_log()
    if suffix == ".xmlocel":  # an element without text is empty text; what cannot be told apart is not in the test
        events = events.assign(**{"=words": events["=words"].where(events["=words"] != "")})
    check(events, export(events, tmp_path / f"log{suffix}"))


def test_what_sqlite_cannot_tell_apart_is_told(tmp_path: Path) -> None:
    events = world_log("quickstart").assign(Wait=1.0)
    with pytest.raises(ValueError, match="SQLite cannot tell the column 'Wait' from another"):
        export(events, tmp_path / "log.sqlite")
    check(events, export(events, tmp_path / "log.json", format="ocel-json").rename(tmp_path / "log.jsonocel"))
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonocel"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_stretches_and_several_replications(tmp_path: Path, suffix: str) -> None:
    events = every_kind()
    both = pd.concat([events, events.assign(replication=1)], ignore_index=True).astype({"replication": "int32"})
    read = READERS[suffix](export(both, tmp_path / f"both{suffix}"))
    assert rows_of(read, list(both.columns)) == rows_as_they_are(both)
    counted = Counter(kind for kind, *_ in read["objects"].values())
    assert counted["job"] == 2 * events["job"].nunique()
    assert (counted["class"], counted["queue"]) == (2, 2)
    stretch = events.iloc[40:200]
    read = READERS[suffix](export(stretch, tmp_path / f"stretch{suffix}"))
    assert rows_of(read, list(events.columns)) == rows_as_they_are(stretch)
    without = every_kind().drop(columns="replication")
    read = READERS[suffix](export(without, tmp_path / f"without{suffix}"))
    assert {"queue", "server/0", "job/0"} <= set(read["objects"])
    empty = READERS[suffix](export(events.iloc[:0], tmp_path / f"empty{suffix}"))
    assert not empty["events"]
    assert not empty["objects"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("made", [every_kind, hostile_log])
def test_pm4py_reads_it_without_complaint(tmp_path: Path, made: Any, suffix: str) -> None:
    pm4py = pytest.importorskip("pm4py")
    events = made()
    path = str(export(events, tmp_path / f"log{suffix}"))
    readers = {".jsonocel": pm4py.read_ocel2_json, ".sqlite": pm4py.read_ocel2_sqlite, ".xmlocel": pm4py.read_ocel2_xml}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ocel = readers[suffix](path)
    assert Counter(ocel.events["ocel:activity"]) == Counter(events["event"])
    types = Counter(ocel.objects["ocel:type"])
    assert types["job"] == events["job"].nunique() == len(ocel.o2o)
    assert types["server"] == events["server"].nunique()
    assert types["class"] == events["job_class"].dropna().nunique()
    related = Counter(ocel.relations["ocel:qualifier"])
    assert related["job"] == events["job"].notna().sum()
    assert related["server"] == events["server"].notna().sum()
    assert related["class"] == types["job"]
    assert related["episode"] == events["event"].isin(["admit", "reject", "review"]).sum()
    order = ocel.events["ocel:eid"].str.removeprefix("event/").astype(int)
    assert ocel.events.set_index(order).sort_index()["time"].tolist() == events["time"].tolist()
    waits = ocel.events.set_index(order).sort_index()["wait"].astype(float)
    assert [w for w in waits if not math.isnan(w)] == events["wait"].dropna().tolist()
    if made is hostile_log:
        names = set(ocel.objects["name"].dropna())
        assert names == set(HOSTILE) - ({"NULL"} if suffix == ".jsonocel" else set())  # pm4py takes that for no value
    if suffix == ".sqlite":
        validation = pytest.importorskip("pm4py.objects.ocel.validation.ocel20_rel_validation")
        assert validation.apply(path)[1] == []
