"""A stretch of a log as a moving picture: the player is given what a plain replay of the whole log finds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generators import paper_queue, random_system
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.report.animation import (
    CODES,
    SHARED,
    WAITING,
    animation_page,
    player_data,
    some_events_later,
    stretch_of,
)

HOSTILE = ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "</style>"]


def events_of(number: int) -> pd.DataFrame:
    random = np.random.default_rng([41, number])
    system = random_system(random, coarse=number % 3 == 0)
    return qu.simulate(system, "admit-all", horizon=300 / system.total_arrival_rate, seed=number, log=True).events


class Replay:
    """Who is where after each event of the log, event by event."""

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[str, int]] = {}
        self.down: set[int] = set()
        self.duty: int | None = None

    def take(self, row: Any) -> None:
        event, job = row.event, row.job
        server = None if row.server is pd.NA else int(row.server)
        if event in ("admit", "initial"):
            self.jobs[job] = (row.job_class, WAITING)
        elif event in ("start", "resume"):
            self.jobs[job] = (row.job_class, SHARED if server is None else server)
        elif event in ("depart", "abandon"):
            del self.jobs[job]
        elif event == "hand-over":
            self.jobs[job] = (row.job_class, WAITING)
        elif event == "breakdown":
            self.down.add(server)
            if job is not pd.NA:
                self.jobs[job] = (row.job_class, WAITING)
        elif event == "repair":
            self.down.remove(server)
        elif event == "shift":
            self.duty = int(row.on_duty)


def replayed(data: dict[str, Any]) -> tuple[dict[int, tuple[int, int]], set[int], int]:
    """What the player's data say of the end of the stretch, by the rules of the player."""
    jobs = {number: (k, server) for number, k, server in data["start"]["jobs"]}
    down, duty = set(data["start"]["down"]), data["start"]["duty"]
    names = list(CODES)
    columns = (data["events"][name] for name in ("kind", "job", "group", "server", "level"))
    for code, job, k, server, level in zip(*columns, strict=True):
        event = names[code]
        if event in ("admit", "initial"):
            jobs[job] = (k, WAITING)
        elif event in ("start", "resume"):
            jobs[job] = (k, server)
        elif event in ("depart", "abandon"):
            del jobs[job]
        elif event in ("hand-over", "breakdown"):
            if event == "breakdown":
                down.add(server)
            if job >= 0:
                jobs[job] = (k, WAITING)
        elif event == "repair":
            down.discard(server)
        elif event == "shift":
            duty = server
        assert level == len(jobs)
    return jobs, down, duty


@pytest.mark.parametrize("number", range(40))
def test_the_player_knows_who_is_where(number: int) -> None:
    events = events_of(number)
    random = np.random.default_rng(number)
    begin, end = np.sort(random.uniform(0.0, events["time"].iloc[-1], 2))
    cuts = np.sort(random.integers(0, len(events) + 1, 3))  # row groups of any size
    frames = [events.iloc[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    stretch = stretch_of(frames, begin, end)
    replay = Replay()
    for row in events[events["time"] <= begin].itertuples():
        replay.take(row)
    codes = {name: k for k, name in enumerate(stretch.classes)}
    assert stretch.present == tuple((job, codes[name], server) for job, (name, server) in sorted(replay.jobs.items()))
    assert set(stretch.down) == replay.down
    for row in events[(events["time"] > begin) & (events["time"] <= end)].itertuples():
        replay.take(row)
    jobs, down, duty = replayed(player_data(stretch))
    assert jobs == {job: (codes[name], server) for job, (name, server) in replay.jobs.items()}
    assert down == replay.down
    assert duty == (stretch.servers if replay.duty is None else replay.duty)
    assert all(server < stretch.servers for _, server in jobs.values())


def test_a_stretch_from_0_has_the_jobs_that_are_there_at_time_0() -> None:
    queue = qu.Queue(1, 9, 1.0, [qu.JobClass("a", 1.0, 1.0)], initial={"a": 4})
    events = qu.simulate(queue, "admit-all", horizon=20.0, seed=1, log=True).events
    stretch = stretch_of([events], 0.0, 20.0)
    assert stretch.present == ()
    assert (stretch.events["event"] == "initial").sum() == 4
    assert len(stretch.events) == len(events)


def log_file(folder: Path) -> Path:
    qu.simulate(paper_queue(), "oracle", horizon=150.0, seed=2, log=folder / "log.parquet")
    return folder / "log.parquet"


def animate(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["animate", *map(str, arguments)])


def data_of(page: Path) -> dict[str, Any]:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page.read_text(), re.S)[1])


def test_the_page_holds_the_stretch_and_needs_no_network(tmp_path: Path) -> None:
    log = log_file(tmp_path)
    assert animate(log, "--from", 10, "--to", 70).exit_code == 0
    page = tmp_path / "log.html"
    events = qu.read_events(log)
    data = data_of(page)
    inside = events[(events["time"] > 10) & (events["time"] <= 70)]
    assert data["events"]["kind"] == [CODES[event] for event in inside["event"]]
    assert data["servers"] == 5
    assert page.stat().st_size < 60_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.read_text())
    again = tmp_path / "again.html"
    assert animate(log, "--from", 10, "--to", 70, "--out", again).exit_code == 0
    assert again.read_bytes() == page.read_bytes()


def test_a_log_of_a_study_has_the_title_and_the_unit_of_its_scenario(tmp_path: Path) -> None:
    from page_studies import made

    log = next(made("learners", tmp_path).rglob("events/*/oracle/000000.parquet"))
    assert animate(log, "--from", 10, "--to", 20, "--out", tmp_path / "page.html").exit_code == 0
    text = (tmp_path / "page.html").read_text()
    assert "<h1>Learners: oracle</h1>" in text
    assert "From time 10 to 20 minutes, seed 1." in text
    assert data_of(tmp_path / "page.html")["unit"] == "minutes"


def test_without_an_end_it_shows_500_events(tmp_path: Path) -> None:
    log = log_file(tmp_path)
    assert animate(log, "--from", 3).exit_code == 0
    events = qu.read_events(log)
    after = events.loc[events["time"] > 3, "time"]
    assert len(data_of(tmp_path / "log.html")["events"]["time"]) == (after <= after.iloc[499]).sum() < len(after)
    assert some_events_later([events.iloc[:100], events.iloc[100:]], 3.0) == some_events_later([events], 3.0)


def test_names_are_text_wherever_they_come_from(tmp_path: Path) -> None:
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass(name, 1.0, 1.0) for name in HOSTILE])
    events = qu.simulate(queue, "admit-all", horizon=20.0, seed=1, log=True).events
    page = animation_page(stretch_of([events], 1.0, 20.0), HOSTILE[0], HOSTILE[1], HOSTILE[3])
    for name in HOSTILE[:2]:
        assert name not in page
    assert page.count("</script>") == 2
    assert page.count("</style>") == 1
    assert json.loads(re.search(r'application/json">(.*?)</script>', page, re.S)[1])["classes"] == HOSTILE


def refusals(folder: Path) -> dict[str, tuple[list[object], str]]:
    log = log_file(folder)
    (folder / "text.parquet").write_text("not Parquet")
    (folder / "cut.parquet").write_bytes(log.read_bytes()[:2000])
    pd.DataFrame({"time": [1.0]}).to_parquet(folder / "other.parquet")
    (folder / "there.html").write_text("mine")
    return {
        "missing": ([folder / "none.parquet"], "is not there; an event log is needed"),
        "folder": ([folder], "is a folder; name the log of one run"),
        "text": ([folder / "text.parquet"], "so it is no event log"),
        "cut": ([folder / "cut.parquet"], "cannot be read as Parquet"),
        "other": ([folder / "other.parquet"], "has no column 'event'"),
        "backwards": ([log, "--from", 20, "--to", 10], "a stretch must begin at 0 or later and end after that"),
        "negative": ([log, "--from", -1], "a stretch must begin at 0 or later"),
        "nan": ([log, "--to", "nan"], "a stretch must begin at 0 or later"),
        "late": ([log, "--from", 1e6], "after 1e+06 the log holds no events"),
        "too late": ([log, "--from", 1e6, "--to", 2e6], "the log ends at"),
        "overwrites": ([log, "--out", folder / "there.html"], "is there already"),
    }


@pytest.mark.parametrize("case", range(11))
def test_mistakes_are_told(case: int, tmp_path: Path) -> None:
    name, (arguments, message) = list(refusals(tmp_path).items())[case]
    before = sorted(tmp_path.iterdir())
    result = animate(*arguments)
    told = " ".join(result.stderr.split())
    assert (result.exit_code, message in told) == (2, True), (name, told)
    assert sorted(tmp_path.iterdir()) == before
    assert "Traceback" not in told


def test_too_many_events_to_watch_are_refused() -> None:
    events = qu.simulate(paper_queue(), "oracle", horizon=100.0, seed=2, log=True).events
    with pytest.raises(ValueError, match="more than 50 events, too many to watch"):
        stretch_of([events], 0.0, 100.0, most=50)
