"""Event logs as XES: as the standard has it, read by pm4py without complaint, and back to the same frame."""

from __future__ import annotations

import gzip
import math
import re
import warnings
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from made_logs import HOSTILE, WORLDS, every_kind, hostile_log, many_kinds, own_columns_log, world_log

import queueing_ucrl as qu
from queueing_ucrl.data.formats import export

SPACE = "{http://www.xes-standard.org/}"


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_comes_back_as_it_was(tmp_path: Path, name: str) -> None:
    events = world_log(name)
    path = export(events, tmp_path / "log.xes")
    pd.testing.assert_frame_equal(qu.read_log(path), events, check_exact=True)
    packed = export(events, tmp_path / "log.xes.gz")
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    pd.testing.assert_frame_equal(qu.read_log(packed), events, check_exact=True)


def test_a_file_gives_what_the_frame_gives(tmp_path: Path) -> None:
    run = qu.simulate(many_kinds(), "admit-all", horizon=50.0, seed=1, log=tmp_path / "log.parquet")
    written = [export(source, tmp_path / f"{k}.xes").read_bytes() for k, source in enumerate((run, run.events))]
    assert written[0] == written[1]


# ---- the standard's rules, read from its text


def checked_against_the_standard(path: Path) -> ElementTree.Element:
    """The log's element, if all in the file is as IEEE 1849 wants it."""
    root = ElementTree.parse(path).getroot()
    kinds = ("string", "date", "int", "float", "boolean", "id", "list", "container")
    assert root.tag == SPACE + "log"
    assert float(root.attrib["xes.version"]) > 0
    order = ("extension", "global", "classifier", "attribute", "trace", "event")

    def place(element: ElementTree.Element) -> str:
        name = element.tag.removeprefix(SPACE)
        return "attribute" if name in kinds else name

    def check_attribute(element: ElementTree.Element, prefixes: set[str]) -> None:
        kind, value = element.tag.removeprefix(SPACE), element.attrib["value"]
        assert set(element.attrib) == {"key", "value"}
        assert re.fullmatch(r"[A-Za-z_][\w.:-]*", element.attrib["key"])
        prefix, colon, _ = element.attrib["key"].partition(":")
        assert not colon or prefix in prefixes
        if kind == "date":
            assert re.fullmatch(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)
            datetime.fromisoformat(value)
        elif kind == "int":
            assert -(2**63) <= int(value) < 2**63
        elif kind == "float":
            assert value in ("INF", "-INF", "NaN") or math.isfinite(float(value))
        elif kind == "boolean":
            assert value in ("true", "false")

    places = [order.index(place(child)) for child in root]
    assert places == sorted(places)
    prefixes = {child.attrib["prefix"] for child in root if place(child) == "extension"}
    always: dict[str, set[str]] = {}
    for child in root:
        if place(child) == "global":
            always[child.attrib["scope"]] = {entry.attrib["key"] for entry in child}
        if place(child) == "classifier":
            assert set(child.attrib["keys"].split()) <= always["event"]
        if place(child) == "attribute":
            check_attribute(child, prefixes)
    for trace in root.iter(SPACE + "trace"):
        inside = [place(child) for child in trace]
        assert inside == sorted(inside), "attributes come before events"
        for element in (trace, *trace.iter(SPACE + "event")):
            entries = [child for child in element if place(child) == "attribute"]
            keys = [child.attrib["key"] for child in entries]
            assert len(keys) == len(set(keys))
            assert always[element.tag.removeprefix(SPACE)] <= set(keys)
            for entry in entries:
                check_attribute(entry, prefixes)
    return root


def attributes(element: ElementTree.Element) -> dict[str, str]:
    return {child.attrib["key"]: child.attrib["value"] for child in element if "key" in child.attrib}


@pytest.mark.parametrize("made", [every_kind, hostile_log, own_columns_log])
def test_the_file_is_as_the_standard_has_it(tmp_path: Path, made: Any) -> None:
    events = made()
    root = checked_against_the_standard(export(events, tmp_path / "log.xes"))
    assert len(list(root.iter(SPACE + "event"))) == len(events)
    pd.testing.assert_frame_equal(qu.read_log(tmp_path / "log.xes"), events, check_exact=True)


def test_traces_are_jobs_and_services_are_intervals(tmp_path: Path) -> None:
    events = every_kind()
    assert set(events["event"].cat.categories) - set(events["event"]) == {"environment"}
    root = checked_against_the_standard(export(events, tmp_path / "log.xes", unit="minutes", epoch="2026-03-01T08:00Z"))
    traces = {attributes(trace)["concept:name"]: trace for trace in root.iter(SPACE + "trace")}
    assert traces.keys() == {f"0/{job}" for job in events["job"].dropna()} | {"0/system"}
    table = qu.jobs(events).set_index("job")
    for name, trace in traces.items():
        rows = [attributes(event) for event in trace.iter(SPACE + "event")]
        assert [int(row["row"]) for row in rows] == sorted(int(row["row"]) for row in rows)
        if name == "0/system":
            assert {row["concept:name"] for row in rows} == {"review", "shift", "repair", "breakdown"}
            continue
        job = table.loc[int(attributes(trace)["job"])]
        assert (attributes(trace)["outcome"], attributes(trace)["job_class"]) == (job["outcome"], job["job_class"])
        services = [row["lifecycle:transition"] for row in rows if row["concept:name"] == "service"]
        assert re.fullmatch(r"(start (suspend resume )*(suspend |complete )?)?", "".join(f"{s} " for s in services))
        for row in rows:
            date = datetime.fromisoformat(row["time:timestamp"]) - datetime.fromisoformat("2026-03-01T08:00Z")
            assert date.total_seconds() == pytest.approx(60 * float(row["time"]), abs=1e-6)
            assert row.get("org:resource") == row.get("server")
        starts = [float(row["time"]) for row in rows if row["lifecycle:transition"] == "start"]
        assert starts == ([] if math.isnan(job["start"]) else [job["start"]])


def test_jobs_only_and_several_replications(tmp_path: Path) -> None:
    events = every_kind()
    both = pd.concat([events, events.assign(replication=pd.array([1] * len(events), dtype="int32"))])
    both = both.astype({"replication": "int32"}).reset_index(drop=True)
    path = export(both, tmp_path / "both.xes")
    names = [attributes(trace)["concept:name"] for trace in checked_against_the_standard(path).iter(SPACE + "trace")]
    assert len(set(names)) == len(names) == 2 * (events["job"].nunique() + 1)
    pd.testing.assert_frame_equal(qu.read_log(path), both, check_exact=True)
    path = export(events, tmp_path / "jobs.xes", jobs_only=True)
    left = events[events["job"].notna()].reset_index(drop=True)
    pd.testing.assert_frame_equal(qu.read_log(path), left, check_exact=True)


def test_a_stretch_of_a_log_can_be_exported(tmp_path: Path) -> None:
    events = every_kind().iloc[40:200].reset_index(drop=True)
    pd.testing.assert_frame_equal(qu.read_log(export(events, tmp_path / "log.xes")), events, check_exact=True)
    pd.testing.assert_frame_equal(
        qu.read_log(export(events.iloc[:0], tmp_path / "empty.xes")), events.iloc[:0], check_exact=True
    )


def test_the_jobs_of_our_own_file_are_those_of_the_log(tmp_path: Path) -> None:
    events = every_kind()
    path = export(events, tmp_path / "log.xes")
    pd.testing.assert_frame_equal(qu.xes_jobs(path), qu.jobs(events), check_exact=True)
    with pytest.raises(ValueError, match="is a log of ours"):
        qu.xes_jobs(path, start="service+start")


def test_dates_that_no_calendar_has_are_told(tmp_path: Path) -> None:
    events = world_log("quickstart")
    with pytest.raises(ValueError, match="is not between the years 1 and 9999: give a shorter `unit`"):
        export(events, tmp_path / "log.xes", unit=1e12)
    for wrong in ("fortnights", "", "0"):
        with pytest.raises(ValueError, match="unit must be one of milliseconds, seconds, minutes, hours, days, weeks"):
            export(events, tmp_path / "log.xes", unit=wrong)
    with pytest.raises(ValueError, match=r"epoch must be a date such as .* got 'yesterday'"):
        export(events, tmp_path / "log.xes", epoch="yesterday")
    with pytest.raises(ValueError, match="the format csv has no dates"):
        export(events, tmp_path / "log.csv", unit="hours")
    with pytest.raises(ValueError, match="jobs_only is for the format xes"):
        export(events, tmp_path / "log.csv", jobs_only=True)
    assert list(tmp_path.iterdir()) == []


def test_what_xml_cannot_say_is_told(tmp_path: Path) -> None:
    events = world_log("quickstart").iloc[:5]
    for cell, told in (
        ("bell \x07", r"'note' holds 'bell \\x07': XML has no way to write '\\x07'"),
        ("x" * 10**6, "more than"),
    ):
        with pytest.raises(ValueError, match=told):
            export(events.assign(note=cell), tmp_path / "log.xes")
    with pytest.raises(ValueError, match=r"'lists' holds list.* XES has no such attribute"):
        export(events.assign(lists=[[1]] * len(events)), tmp_path / "log.xes")
    kept = events.assign(**{"row": 3, "concept:name": "x", "outcome": 1.5, "when": pd.Timestamp("2026-01-01")})
    again = qu.read_log(export(kept, tmp_path / "log.xes"))
    pd.testing.assert_frame_equal(again, kept, check_exact=True)


# ---- pm4py


def read_by_pm4py(path: Path) -> pd.DataFrame:
    pm4py = pytest.importorskip("pm4py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Install the optional requirement")  # an advertisement
        frame: pd.DataFrame = pm4py.read_xes(str(path))
    return frame


@pytest.mark.parametrize("suffix", [".xes", ".xes.gz"])
@pytest.mark.parametrize("made", [every_kind, hostile_log])
def test_pm4py_reads_it_without_complaint(tmp_path: Path, made: Any, suffix: str) -> None:
    events = made()
    frame = read_by_pm4py(export(events, tmp_path / f"log{suffix}"))
    assert len(frame) == len(events)
    assert Counter(frame["event"]) == Counter(events["event"])
    jobs = frame[frame["case:job"].notna()]
    assert jobs["case:concept:name"].nunique() == events["job"].nunique()
    frame = frame.sort_values("row", ignore_index=True)
    assert frame["time"].tolist() == events["time"].tolist()
    assert frame["job_class"].fillna("").tolist() == events["job_class"].astype(object).fillna("").tolist()
    if made is hostile_log:
        assert set(jobs["case:job_class"]) == set(HOSTILE)
    import pm4py

    counted = pm4py.get_event_attribute_values(frame, "concept:name")
    assert counted["service"] == int(events["event"].isin(["start", "depart", "resume", "hand-over"]).sum()) + int(
        ((events["event"] == "breakdown") & events["job"].notna()).sum()
    )
    assert len(pm4py.get_variants(jobs)) > 3
