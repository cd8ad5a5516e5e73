"""The page of a study: its numbers are the study's own, its words follow from them, and nothing breaks it."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from page_studies import HOSTILE, TEXTS, stored
from rich.console import Console
from scipy.integrate import quad
from scipy.stats import gamma
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.accounts.regret import CAUSES
from queueing_ucrl.cli import app
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.experiments.queue_again import queue_again
from queueing_ucrl.experiments.study import interval
from queueing_ucrl.files import plain_data
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.report.charts import END_HEIGHT, HEIGHT, lines
from queueing_ucrl.report.learning_sections import stretches, thinned
from queueing_ucrl.report.log_scan import FIRST_CHANGES, Extremes, LogScan
from queueing_ucrl.report.log_sections import wait_law
from queueing_ucrl.report.numbers import number, with_interval
from queueing_ucrl.report.page import page_html
from queueing_ucrl.report.palette import BLUE, Look
from queueing_ucrl.report.study_page import study_page, write_study_page
from queueing_ucrl.report.study_panels import regret_panel
from queueing_ucrl.report.study_sections import CAUSE_COLOURS, cause_looks
from queueing_ucrl.report.study_tables import print_study
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.simulation.event_log import read_events

KINDS = sorted(TEXTS)
pytestmark = pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")


class Reader(HTMLParser):
    """The elements, the text and the JSON of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.json, self._raw = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._raw = dict(attributes).get("type", "script") if tag == "script" else tag if tag == "style" else None

    def handle_endtag(self, tag):
        self._raw = None

    def handle_data(self, data):
        if self._raw is None:
            self.texts.append(data)
        elif self._raw == "application/json":
            self.json.append(json.loads(data))


def charts(page):
    found = [c for section in page.sections for c in section.charts]
    found += [section.stepper.chart for section in page.sections if section.stepper]
    return {chart.name: chart for chart in found}


def section(page, name):
    return next(s for s in page.sections if s.name == name)


def names(page):
    return [s.name.split("-", 1)[-1] for s in page.sections]


def run_cli(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


# --- numbers and words -----------------------------------------------------------------------------------------------


def test_a_study_with_an_optimum_has_every_section(study_folder):
    page = study_page(stored(study_folder("learners")))
    expected = ["summary", "regret", "policy", "moving", "rewards", "differences", "causes", "quantiles", "levels"]
    assert names(page) == [*expected, "beliefs", "waits", "queue", "accounts", "bound", "work", "again"]
    accounts = [c.name for name in ("p0-regret", "p0-accounts") for c in section(page, name).charts]
    assert accounts[0] == "p0-regret-gap"
    assert sorted(accounts) == [f"p0-regret-{kind}" for kind in ("expected", "gap", "pseudo", "realised")]
    for chart in charts(page).values():
        assert chart.words
        assert len({len(column) for column in chart.data.values()}) == 1
        assert set(chart.headings) <= set(chart.data)


def test_words_are_made_from_the_numbers(study_folder):
    folder = study_folder("learners")
    page = study_page(stored(folder))
    results = json.loads((folder / "summary.json").read_text())["results"]
    gaps = {r["controller"]: r["regret"]["gap"] for r in results}
    best = min(gaps, key=lambda name: gaps[name]["mean"])
    total = results[0]["optimal_gain"] * results[0]["horizon"]
    lost = with_interval(gaps[best]["mean"], gaps[best]["high"] - gaps[best]["mean"])
    assert page.meaning[0].startswith(f"{best} lost the least: {lost} of the {number(total, 6)} euros")
    assert all(name in page.meaning[0] for name in gaps)
    assert "4 controllers" in page.sentence
    assert "3 replications each up to time 300 minutes, all on the same jobs" in page.sentence
    frame = pd.read_parquet(folder / "differences.parquet")
    last = frame[(frame["account"] == "gap")].groupby("controller", sort=False).last()
    for name, row in last.iterrows():
        told = next(words for words in page.meaning[1:] if name in words)
        assert ("do not tell" in told) == (row["low"] <= 0.0 <= row["high"])
        if "do not tell" not in told:
            size = with_interval(abs(row["mean"]), row["high"] - row["mean"])
            assert f"{name} lost {size} {'more' if row['mean'] > 0 else 'less'}" in told


def test_curves_are_those_of_the_tables(study_folder):
    folder = study_folder("learners")
    found = charts(study_page(stored(folder)))
    frame = pd.read_parquet(folder / "regret.parquet")
    for kind in ("gap", "expected", "realised", "pseudo"):
        rows, chart = frame[frame["account"] == kind], found[f"p0-regret-{kind}"]
        assert chart.data["who"] == rows["controller"].tolist()
        for name in ("time", "mean", "low", "high"):
            np.testing.assert_allclose(chart.data[name], rows[name], rtol=1e-5, atol=1e-12)


def test_class_and_cause_add_up_to_the_gap(study_folder):
    folder = study_folder("learners")
    found = charts(study_page(stored(folder)))
    results = json.loads((folder / "summary.json").read_text())["results"]
    for k, result in enumerate(results):
        total = sum(found[f"p0-cause-{k}"].data["mean"])
        assert total == pytest.approx(result["regret"]["gap"]["mean"], rel=1e-5, abs=1e-9)
    trial = pd.read_parquet(folder / "trials" / "0000" / "ucrl-ac" / "000000.parquet")
    assert len(trial["wrongly_admitted"].iloc[-1]) == 2  # a number a class


def test_causes_have_a_colour_and_classes_have_dashes():
    """In bars and curves alike, and every curve can be told without its colour from those of its cause."""
    names = [f"class {k}" for k in range(14)]
    looks = cause_looks(names)
    assert len(looks) == 2 * len(names)
    for words, look in looks.items():
        cause = words.rsplit(", ", 1)[1].replace(" ", "_")
        assert look.colour == CAUSE_COLOURS[cause]
    assert len(set(CAUSE_COLOURS.values())) == len(CAUSES)
    for cause in CAUSES:
        mine = [look.dashes for words, look in looks.items() if words.endswith(cause.replace("_", " "))]
        assert len(set(mine)) == len(names)
        assert all(min(dashes, default=1.0) > 0.0 and len(dashes) % 2 == 0 for dashes in mine)


def test_what_cannot_be_below_nothing_is_drawn_from_nothing_on(study_folder):
    found = charts(study_page(stored(study_folder("learners"))))
    for k in range(4):
        chart = found[f"p0-cause-{k}"]
        for layer in chart.spec["layer"]:
            assert layer["encoding"]["x"]["scale"]["domainMin"] == 0
            assert layer["mark"]["clip"]
    assert any(low < 0.0 for k in range(4) for low in found[f"p0-cause-{k}"].data["low"])  # or this tells nothing


@pytest.mark.parametrize("count", [2, 4, 5, 9])
def test_up_to_four_curves_have_bands_and_more_have_dots_at_their_ends(count):
    looks = {f"'{k}\"": Look(BLUE) for k in range(count)}
    spec = lines(looks, "time", "lost")
    kinds = [layer["mark"]["type"] for layer in spec["layer"]]
    assert kinds.count("area") == (1 if count <= 4 else 0)
    assert kinds.count("point") == kinds.count("rule") == (0 if count <= 4 else count)
    told = [layer["transform"][0]["filter"]["equal"] for layer in spec["layer"] if layer["mark"]["type"] == "point"]
    assert told == (list(looks) if count > 4 else [])


def test_curves_of_accounts_tell_their_last_values(study_folder):
    folder = study_folder("learners")
    chart = charts(study_page(stored(folder)))["p0-regret-gap"]
    results = json.loads((folder / "summary.json").read_text())["results"]
    (layer,) = [layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "text"]
    rows = layer["data"]["values"]
    assert [row["said"] for row in rows] == [number(r["regret"]["gap"]["mean"], 3) for r in results]
    places = sorted(row["place"] for row in rows)
    top = max(chart.data["high"])
    assert all(b - a >= 0.99 * top * END_HEIGHT / HEIGHT for a, b in pairwise(places))


def test_every_replication_is_a_mark(study_folder):
    folder = study_folder("learners")
    data = charts(study_page(stored(folder)))["p0-strip"].data
    frame = pd.read_parquet(folder / "curves.parquet")
    last = frame.groupby(["controller", "replication"], sort=False)["gap"].last()
    np.testing.assert_allclose(data["value"], last.to_numpy(), rtol=1e-5)


def test_the_bound_is_the_theorem(study_folder):
    chart = charts(study_page(stored(study_folder("learners"))))["p0-bound"]
    view = StudyView(stored(study_folder("learners")), 0)
    bound = qu.policy_iteration_bound(view.queue, qu.solve(view.queue).gain, (1.0, 4.0), 10.0)
    rows = [k for k, who in enumerate(chart.data["who"]) if who == "bound for ucrl-ac"]
    times = np.array([chart.data["time"][k] for k in rows])
    np.testing.assert_allclose([chart.data["mean"][k] for k in rows], bound(times), rtol=1e-4)
    assert set(chart.data["who"]) == {"ucrl-ac", "bound for ucrl-ac"}


def test_the_slider_goes_through_the_policies(study_folder):
    folder = study_folder("learners")
    page = study_page(stored(folder))
    stepper = section(page, "p0-policy").stepper
    frame = pd.read_parquet(folder / "episodes" / "0000" / "certainty-equivalent" / "000000.parquet")
    levels = [tuple(row) for row in frame["control_levels"]]
    changes = [row for k, row in enumerate(levels) if k == 0 or row != levels[k - 1]]
    who = list(stepper.choices).index("certainty-equivalent")
    mine = [step["step"] for step in stepper.steps if step["who"] == who]
    data = stepper.chart.data
    shown = [tuple(last for last, step in zip(data["last"], data["step"], strict=True) if step == s) for s in mine]
    assert shown == changes
    best = qu.solve(StudyView(stored(folder), 0).queue).policy
    of_best = [last for last, which in zip(data["last"], data["which"], strict=True) if which == "best possible"]
    assert tuple(of_best) == tuple(level for level in best.control_levels if level)


def test_stretches_cover_the_run(study_folder):
    view = StudyView(stored(study_folder("learners")), 0)
    for name in view.names:
        found = stretches(view, name)
        assert found[0].start == 0.0
        assert found[-1].end == view.horizon
        assert all(a.end == b.start and a.last + 1 == b.first for a, b in pairwise(found))
        assert all((a.levels, a.trunk) != (b.levels, b.trunk) for a, b in pairwise(found))


@pytest.mark.parametrize("kind", ["learners", "drifting"])
def test_time_is_linear_where_rates_repeat(study_folder, kind):
    """On a log scale the last days of a run would shrink to blocks."""
    found = charts(study_page(stored(study_folder(kind))))
    scales = [
        layer["encoding"]["x"]["scale"].get("type")
        for name, chart in found.items()
        if re.match("p0-(levels|belief|worth)", name)
        for layer in chart.spec["layer"]
        if "scale" in layer["encoding"].get("x", {})  # what is true has the axis of what is believed
    ]
    assert scales
    assert set(scales) == ({"log"} if kind == "learners" else {None})


def test_what_was_planned_for_is_drawn_where_it_is_not_the_estimate(study_folder):
    """Certainty equivalence plans for what it estimates, optimism for more."""
    view = StudyView(stored(study_folder("learners")), 0)
    found = charts(study_page(view.study))
    drawn = {chart.title: chart for name, chart in found.items() if name.startswith("p0-belief")}
    for name, more in (("certainty-equivalent", False), ("ucrl-ac-classwise", True)):
        chart = drawn[name]
        assert any(value is not None for value in chart.data["planned"]) == more
        assert ("planned" in chart.headings) == more
        assert any(key.words == "planned for" for key in chart.legend) == more
        assert ('"planned"' in json.dumps(chart.spec)) == more


def test_the_solver_s_work_is_that_of_the_episodes(study_folder):
    folder = study_folder("learners")
    (table,) = section(study_page(stored(folder)), "p0-work").tables
    frame = pd.read_parquet(folder / "episodes.parquet")
    for row in table.rows:
        solves = frame.loc[frame["controller"] == row[0], "solver_iterations"].dropna()
        told = [solves.size / 3, solves.sum() / 3, solves.mean()] if solves.size else []
        assert row[2:6] == ([number(v, 3) for v in told] + [f"{int(solves.max()):,}"] if told else ["-"] * 4)


@given(st.integers(0, 5000), st.integers(2, 400))
def test_thinning_keeps_both_ends_and_the_order(count, most):
    places = thinned(count, most)
    assert len(places) <= max(most, 0) or len(places) == count
    assert places == sorted(set(places))
    if count:
        assert (places[0], places[-1]) == (0, count - 1)


# --- without an optimum ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["drifting", "general"])
def test_without_an_optimum_rewards_are_shown_and_it_is_said_why(study_folder, kind):
    folder = study_folder(kind)
    page = study_page(stored(folder))
    why = json.loads((folder / "summary.json").read_text())["results"][0]["no_optimum"]
    assert f"No regret is shown: {why}." in page.meaning
    assert not {"regret", "causes", "bound"} & set(names(page))
    assert {"rewards", "differences", "quantiles"} <= set(names(page))
    assert not any("lost" in words for words in page.meaning)
    assert ("hours" in names(page)) == (kind == "drifting")


@pytest.mark.parametrize("kind", ["drifting", "learners"])
def test_differences_have_one_sign_and_one_account_wherever_they_are_told(study_folder, tmp_path, kind):
    """Page, its table, the terminal's table and curve, and the figure: each controller's minus the first's."""
    folder = copied(study_folder, tmp_path, kind)
    scenario = qu.load_scenario(study_folder(kind).with_suffix(".toml"))
    study, _ = run_scenario(scenario, folder, log=(folder / "events").exists(), jobs=1)  # all is there
    page, view = study_page(stored(folder)), StudyView(stored(folder), 0)
    first, other = view.names[:2]
    frame = pd.read_parquet(folder / "differences.parquet")
    account = "gap" if kind == "learners" else "expected_reward"
    last = frame[(frame["account"] == account) & (frame["controller"] == other)].iloc[-1]
    samples = [study.samples(k, account)[:, -1] for k in range(2)]
    assert last["mean"] == pytest.approx(np.mean(samples[1] - samples[0]), rel=1e-6)
    part = section(page, "p0-differences")
    (chart,), (table,) = part.charts, part.tables
    assert f"minus that of {first}" in chart.title
    at = max(k for k, who in enumerate(chart.data["who"]) if who == other)
    assert chart.data["mean"][at] == pytest.approx(last["mean"], rel=1e-5)
    told = with_interval(last["mean"], last["high"] - last["mean"])
    assert told in table.rows[0]
    assert account.replace("_", " ") in table.headings
    console = open_in_memory()
    print_study(console, "title", study)
    words = " ".join(console.file.getvalue().split())
    assert told in words
    assert not re.search("(reward|regret) less", words + page_html(page))
    if kind == "drifting":
        assert f"expected reward minus that of {first}, in time" in words
        assert any("by the expected reward" in said for said in page.meaning)
        axes = Figure().subplots()
        regret_panel(axes, study, 0)
        curve = next(line for line in axes.get_lines() if line.get_label() == other)
        assert curve.get_ydata()[-1] == pytest.approx(last["mean"], rel=1e-6)


def open_in_memory():
    return Console(width=80, file=io.StringIO(), highlight=False)


def test_one_replication_says_that_chance_is_not_known(study_folder):
    page = study_page(stored(study_folder("single")))
    assert any("one replication" in words for words in page.meaning)
    assert "quantiles" not in names(page)
    assert "±" not in page_html(page).replace("± half", "")


def test_a_sweep_has_a_table_of_all_points_and_its_sections(study_folder):
    page = study_page(stored(study_folder("sweep")))
    (table,) = section(page, "sweep").tables
    assert [row[:2] for row in table.rows] == [
        [f"queue.servers = {n}", name] for n in (1, 2) for name in ("certainty-equivalent", "admit-all")
    ]
    frame = pd.read_parquet(study_folder("sweep") / "regret.parquet")
    for k, servers in enumerate((1, 2)):
        chart = charts(page)[f"p{k}-regret-gap"]
        rows = frame[(frame["queue.servers"] == servers) & (frame["account"] == "gap")]
        np.testing.assert_allclose(chart.data["mean"], rows["mean"], rtol=1e-5, atol=1e-12)


def test_a_sweep_is_drawn_against_what_was_swept(study_folder):
    folder = study_folder("sweep")
    page = study_page(stored(folder))
    (chart,) = section(page, "sweep").charts
    frame = pd.read_parquet(folder / "regret.parquet")
    last = frame[frame["account"] == "gap"].groupby(["queue.servers", "controller"], sort=False).last()
    assert list(zip(chart.data["at"], chart.data["who"], strict=True)) == list(last.index)
    for column in ("mean", "low", "high"):
        np.testing.assert_allclose(chart.data[column], last[column], rtol=1e-5, atol=1e-12)
    assert [title for title, _ in page.parts] == ["", "queue.servers = 1", "queue.servers = 2", ""]
    assert all(one.fold == "queue.servers = 2" for one in page.sections if one.name.startswith("p1-"))


def test_where_expected_costs_are_not_known_earnings_are_as_the_waits_were(study_folder, tmp_path):
    """In the page's table and in the terminal's, and both say so; elsewhere they are the expected ones."""
    folder = copied(study_folder, tmp_path, "general")
    study, _ = run_scenario(qu.load_scenario(study_folder("general").with_suffix(".toml")), folder, jobs=1)
    page = study_page(stored(folder))
    table = section(page, "p0-summary").tables[0]
    at = list(table.headings).index("earned per minute")
    console = open_in_memory()
    print_study(console, "title", study)
    words = " ".join(console.file.getvalue().split())
    for k, row in enumerate(table.rows):
        mean, _, high = interval(study.samples(k, "realised_reward")[:, -1:] / 300.0)
        assert row[at] == with_interval(float(mean[0]), float(high[0] - mean[0]))
        assert row[at] in words
    assert "per minute: with the waits as they were" in section(page, "p0-summary").notes[1]
    assert "per time: with the waits as they were" in words
    known = section(study_page(stored(study_folder("learners"))), "p0-summary").notes[1]
    assert "per minute: with the waits' expected costs" in known


# --- logs ------------------------------------------------------------------------------------------------------------


@st.composite
def step_functions(draw):
    horizon = draw(st.floats(0.5, 1e4))
    steps = draw(st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 30)), max_size=60))
    times = np.sort(np.array([share * horizon for share, _ in steps], dtype=float))
    return horizon, times, np.array([value for _, value in steps], dtype=np.int64)


@given(step_functions(), st.integers(1, 12), st.integers(1, 7))
def test_no_peak_is_lost(function, count, chunk):
    """Against every value that holds at any time of a stretch, one by one; in whatever pieces the log comes."""
    horizon, times, values = function
    found = Extremes(horizon, count)
    for k in range(0, len(times), chunk):
        found.take(times[k : k + chunk], values[k : k + chunk])
    found.finish()
    place = np.minimum((times * (count / horizon)).astype(np.int64), count - 1)
    for bucket in range(count):
        before = values[place < bucket]
        held = [int(before[-1]) if before.size else 0, *values[place == bucket].tolist()]
        assert (found.low[bucket], found.high[bucket]) == (min(held), max(held))
        assert found.low[bucket] - 1e-6 <= found.means[bucket] <= found.high[bucket] + 1e-6


@given(step_functions(), st.integers(1, 12), st.integers(1, 7))
def test_means_are_integrals_of_the_stretches(function, count, chunk):
    """Against the sum over all pieces between changes and borders; in whatever pieces the log comes."""
    horizon, times, values = function
    found = Extremes(horizon, count)
    for k in range(0, len(times), chunk):
        found.take(times[k : k + chunk], values[k : k + chunk])
    found.finish()
    borders = horizon * np.arange(count + 1) / count
    knots = np.unique(np.concatenate([[0.0], times, borders]))
    held = np.concatenate([[0], values])[np.searchsorted(times, knots[:-1], side="right")]
    pieces = held * np.diff(knots)
    place = np.searchsorted(borders, knots[:-1], side="right") - 1
    meant = np.bincount(place, pieces, minlength=count)[:count] * (count / horizon)
    np.testing.assert_allclose(found.means, meant, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.first[0], [0.0, *times])
    np.testing.assert_array_equal(found.first[1], [0, *values])


def test_the_queue_in_time_has_the_extremes_of_the_log(study_folder):
    folder = study_folder("learners")
    chart = charts(study_page(stored(folder)))["p0-queue-0"]
    events = read_events(folder / "events" / "0000" / "ucrl-ac" / "000000.parquet")
    step = events["event"].map({"admit": 1, "depart": -1}).astype(float).fillna(0.0).to_numpy()
    level = events["in_system"].to_numpy() + step
    assert max(chart.data["high"]) == level.max()
    assert min(chart.data["low"]) == 0
    changes = level[step != 0.0]
    bucket = np.minimum((events["time"].to_numpy()[step != 0.0] * (1000 / 300.0)).astype(int), 999)
    for k in np.unique(bucket):
        assert chart.data["high"][k] >= changes[bucket == k].max()
        assert chart.data["low"][k] <= changes[bucket == k].min()
    area = np.diff([*events["time"], 300.0]) @ level  # time by time; no job before the first event
    assert np.mean(chart.data["mean"][:-1]) == pytest.approx(area / 300.0, rel=1e-4)
    held = (chart.data["low"], chart.data["mean"], chart.data["high"])
    assert all(low <= mean + 1e-6 and mean <= high + 1e-6 for low, mean, high in zip(*held, strict=True))


def test_the_beginning_of_the_queue_is_drawn_change_by_change(study_folder):
    folder = study_folder("learners")
    found = charts(study_page(stored(folder)))
    view = StudyView(stored(folder), 0)
    for k, name in enumerate(view.names[:3]):
        events = read_events(folder / "events" / "0000" / name / "000000.parquet")
        step = events["event"].map({"admit": 1, "depart": -1}).astype(float).fillna(0.0).to_numpy()
        level = (events["in_system"].to_numpy() + step)[step != 0.0]
        assert (f"p0-queue-start-{k}" in found) == (level.size >= FIRST_CHANGES)
        if level.size >= FIRST_CHANGES:
            assert found[f"p0-queue-start-{k}"].data["jobs"] == [0, *level[:FIRST_CHANGES]]


def test_waits_and_arrivals_are_those_of_the_log(study_folder):
    folder = study_folder("drifting")
    path = folder / "events" / "0000" / "admit-all" / "000000.parquet"
    scan = LogScan(path, ["gold", "basic"], 300.0, [24.0, np.inf])
    events = read_events(path)
    for i, name in enumerate(("gold", "basic")):
        waits = events.loc[(events["event"] == "start") & (events["job_class"] == name), "wait"].to_numpy()
        edges, shares = scan.longer_than(i)
        assert scan.started[i] == waits.size
        for edge, share in zip(edges[1:], shares[1:], strict=True):
            assert share == pytest.approx((waits >= edge).mean())
        assert shares[0] == pytest.approx((waits > 0).mean())
    gold = events[(events["job_class"] == "gold") & events["event"].isin(["admit", "reject", "block"])]
    hours = np.floor(gold["time"].to_numpy() % 24.0).astype(int)
    np.testing.assert_array_equal(scan.arrivals[0], np.bincount(hours, minlength=24))
    np.testing.assert_allclose(scan.exposure(0), [13.0] * 12 + [12.0] * 12)  # 300 = 12 days and a half


def test_what_policies_are_worth_is_drawn_from_one_time_on(study_folder):
    """On a log scale all curves, which begin at 0, begin at the same place: one that never changes, too."""
    data = pd.DataFrame(charts(study_page(stored(study_folder("learners"))))["p0-worth"].data)
    begins = data.groupby("who")["time"].min()
    assert len(begins) == 4
    assert begins.nunique() == 1


def test_controllers_that_did_the_same_are_said_to(tmp_path):
    """Nobody is turned away by the best policy here, so that it and admit-all are one."""
    file = tmp_path / "same.toml"
    file.write_text(
        "[queue]\nservers = 2\ncapacity = 4\nservice_rate = 1.0\n"
        "[[class]]\nname = 'a'\narrival_rate = 0.5\nreward = 1.0\n"
        "[[controller]]\nname = 'oracle'\n[[controller]]\nname = 'admit-all'\n"
        "[run]\nhorizon = 100.0\nreplications = 3\n",
        encoding="utf-8",
    )
    run_scenario(qu.load_scenario(file), tmp_path / "same", jobs=1)
    said = study_page(stored(tmp_path / "same")).meaning
    assert "In every replication admit-all lost exactly what oracle did." in said
    assert not any("do not tell" in words for words in said)


def test_the_moving_picture_does_not_wait_for_the_first_job(study_folder, tmp_path):
    """Nobody comes before 12: the picture begins shortly before the first job, elsewhere at 0."""
    file = tmp_path / "night.toml"
    night = "pattern = { kind = 'steps', period = 24.0, times = [12.0], factors = [0.0, 2.0] }"
    file.write_text(
        "[queue]\nservers = 2\ncapacity = 4\nservice_rate = 1.0\n"
        f"[[class]]\nname = 'a'\narrival_rate = 9.0\nreward = 1.0\n{night}\n[run]\nhorizon = 20.0\n",
        encoding="utf-8",
    )
    run_scenario(qu.load_scenario(file), tmp_path / "night", log=True, jobs=1)
    events = read_events(tmp_path / "night" / "events" / "0000" / "certainty-equivalent" / "000000.parquet")
    first = events.loc[events["job"].notna(), "time"].iloc[0]
    (words,) = section(study_page(stored(tmp_path / "night")), "p0-moving").words
    begin = re.fullmatch(r"The first \d+ events under certainty-equivalent, from time ([0-9.]+) on\. .*", words)
    assert 12.0 - 0.05 * 8.0 - 0.01 < float(begin[1]) < first
    (words,) = section(study_page(stored(study_folder("learners"))), "p0-moving").words
    assert "from time" not in words


def test_rates_of_a_period_are_those_of_the_scenario(study_folder):
    """0.7 times 0.5 until 8, 1.5 until 18, then 1: the factors' mean is 25 / 24."""
    page = study_page(stored(study_folder("drifting")))
    data = charts(page)["p0-hours"].data
    said = [m for m, who in zip(data["mean"], data["who"], strict=True) if who == "gold, as the scenario says"]
    np.testing.assert_allclose(said, [0.35] * 8 + [1.05] * 10 + [0.7] * 6 + [0.7], rtol=1e-5)
    view = StudyView(stored(study_folder("drifting")), 0)
    assert view.mean_rates == pytest.approx([0.7 * 25 / 24, 0.9])
    day = {"identity": {"points": [{"queue": qu.load_scenario("call-centre-day").system.plain_data()}]}}
    system = qu.load_scenario("call-centre-day").system
    assert StudyView(replace(view.study, manifest=day), 0).mean_rates == pytest.approx(system.arrival_rates)


def test_the_law_of_waits_is_the_exact_one():
    """Against a sum of Gamma laws over the stationary law of a birth-death chain; its integral is the mean wait."""
    view_queue = queue_again(plain_data(paper().plain_data()))
    policy = Policy.trunk_reservation([7, 4], 8)
    queue, times = paper(), np.array([0.0, 0.5, 2.0, 7.0])
    rates = [sum(c.arrival_rate for c, level in zip(queue.classes, (7, 4), strict=True) if s < level) for s in range(8)]
    weights = np.cumprod([1.0, *(rates[s] / (0.5 * min(s + 1, 2)) for s in range(8))])
    law = weights / weights.sum()
    found = wait_law(view_queue, policy, times)
    for i, level in enumerate((7, 4)):
        for k, t in enumerate(times):
            longer = sum(law[s] * gamma.sf(t, s - 1, scale=1.0) for s in range(2, level))  # c mu = 1
            assert found[k, i] == pytest.approx(longer / law[:level].sum(), rel=1e-10)
        mean = quad(lambda t, i=i: wait_law(view_queue, policy, np.array([t]))[0, i], 0.0, 60.0, limit=200)[0]
        assert mean == pytest.approx(qu.performance(queue, policy).mean_wait[i], rel=1e-6)


def paper():
    gold = qu.JobClass("gold", 0.7, 20.0, qu.Linear(0.3))
    return qu.Queue(2, 8, 0.5, [gold, qu.JobClass("basic", 0.9, 6.0)])


def test_queues_are_made_again_from_the_manifest():
    for text in ("quickstart", "call-centre", "rush-hours", "cloud-jobs"):
        system = qu.load_scenario(text).system
        assert queue_again(plain_data(system.plain_data())) == system
    assert queue_again(plain_data(qu.load_scenario("llm-inference").system.plain_data())) is None
    own = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 1.0, 1.0, lambda wait: wait)])
    assert queue_again(plain_data(own.plain_data())) is None


# --- the same bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_study_gives_the_same_bytes_wherever_it_is(study_folder, kind, tmp_path):
    here = page_html(study_page(stored(study_folder(kind))))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(study_folder(kind), elsewhere)
    assert page_html(study_page(stored(elsewhere))) == here
    assert str(tmp_path) not in here
    assert len(here.encode()) < 5e6


def test_another_process_gives_the_same_bytes(study_folder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(study_folder("learners"), folder)
    done = subprocess.run(
        [sys.executable, "-m", "queueing_ucrl", "report", str(folder)],
        env={"PYTHONHASHSEED": "77", "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "report.html").read_text() == page_html(study_page(stored(folder)))


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_are_shown_as_text(study_folder):
    text = page_html(study_page(stored(study_folder("hostile"))))
    page = Reader(text)
    shown = " ".join(page.texts)
    for name in HOSTILE:
        assert name in shown
    assert "<img src=x onerror=alert(1)> {{7*7}} </title>" in shown
    assert "<b>hours</b>" in shown
    assert not {"img", "b"} & set(page.tags)
    plain = Reader(page_html(study_page(stored(study_folder("learners")))))
    assert page.tags.count("script") - len(page.json) == plain.tags.count("script") - len(plain.json)
    assert page.tags.count("style") == 1
    data = json.dumps(page.json, ensure_ascii=False)
    assert HOSTILE[0] in data.replace('\\"', '"')


def test_marks_that_turn_the_writing_direction_are_shown_as_text(study_folder, tmp_path):
    folder = tmp_path / "turned"
    shutil.copytree(study_folder("learners"), folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["title"] = "left \u202e right \u2066"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    text = page_html(study_page(stored(folder)))
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    assert "left \\u202e right \\u2066" in text


# --- studies that are not whole --------------------------------------------------------------------------------------


def copied(study_folder, tmp_path, kind="learners"):
    folder = tmp_path / "study"
    shutil.copytree(study_folder(kind), folder)
    return folder


def test_an_unfinished_study_says_how_far_it_is(study_folder, tmp_path):
    folder = copied(study_folder, tmp_path)
    for name in ("summary.json", "regret.parquet", "trials/0000/oracle/000002.parquet"):
        (folder / name).unlink()
    page = study_page(stored(folder))
    assert "not finished: 11 of 12 trials" in page.warnings[0]
    assert ["-", "oracle", "2 of 3"] in section(page, "progress").tables[0].rows
    assert page.warnings[0] in " ".join(Reader(page_html(page)).texts)


def test_an_empty_study_says_so(study_folder, tmp_path):
    folder = copied(study_folder, tmp_path)
    for item in folder.iterdir():
        if item.name != "manifest.json":
            shutil.rmtree(item) if item.is_dir() else item.unlink()
    result = run_cli("report", folder)
    assert result.exit_code == 0
    assert "This study is empty" in (folder / "report.html").read_text()


def test_a_failed_study_says_so_until_it_has_come_to_its_end(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(TEXTS["learners"], encoding="utf-8")
    scenario, folder = qu.load_scenario(file), tmp_path / "out"
    done = []

    def fails(result, *_):
        done.append(result)
        if len(done) == 5:
            raise RuntimeError("no <b>gain</b>\x1b " + "x" * 400)

    with pytest.raises(RuntimeError, match="no <b>gain"):
        run_scenario(scenario, folder, jobs=1, on_result=fails)
    page = study_page(stored(folder))
    assert page.warnings[0].startswith("This study failed: RuntimeError: no <b>gain</b>\\x1b xxx")
    assert "5 of 12 trials are done. The same command goes on from there." in page.warnings[0]
    assert len(page.warnings[0]) < 500
    html = page_html(page)
    assert "<b>gain" not in html
    assert page.warnings[0] in " ".join(Reader(html).texts)
    run_scenario(scenario, folder, jobs=1)
    assert study_page(stored(folder)).warnings == []
    run_scenario(scenario, tmp_path / "at once", jobs=1)
    for name in ("manifest.json", "summary.json"):
        assert (folder / name).read_bytes() == (tmp_path / "at once" / name).read_bytes()


def test_a_study_that_is_being_extended_says_so(study_folder, tmp_path):
    folder = copied(study_folder, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "replications": 5}))
    page = study_page(stored(folder))
    assert "being extended: 12 of 20 trials" in page.warnings[0]
    assert "regret" in names(page)


@pytest.mark.parametrize(
    "file",
    [
        "summary.json",
        "regret.parquet",
        "curves.parquet",
        "episodes/0000/oracle/000000.parquet",
        "events/0000/ucrl-ac/000000.parquet",
        "trials/0000/ucrl-ac/000001.parquet",
    ],
)
def test_a_damaged_study_says_which_file(study_folder, tmp_path, file):
    folder = copied(study_folder, tmp_path)
    (folder / file).write_bytes(b"PAR1 no more")
    page = study_page(stored(folder))
    assert f"cannot be shown: {file}" in page.warnings[-1]
    assert str(tmp_path) not in page_html(page)
    assert run_cli("report", folder).exit_code == 0


def test_no_study_is_a_mistake(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text('{"identity": 3}')
    (tmp_path / "worse").mkdir()
    (tmp_path / "worse" / "manifest.json").write_text("{")
    for name, told in (
        ("none", "is not a folder"),
        ("other", "holds no study"),
        ("bad", "manifest"),
        ("worse", "manifest"),
    ):
        result = run_cli("report", tmp_path / name)
        assert result.exit_code == 2
        assert told in result.stderr
        assert not list(tmp_path.rglob("report.html"))


# --- the commands ----------------------------------------------------------------------------------------------------


def test_run_writes_the_page_that_report_makes_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("single.toml").write_text(TEXTS["single"], encoding="utf-8")
    result = run_cli("run", "single.toml", "--out", "out", "--jobs", "1")
    assert "the report, for a browser: out/report.html" in result.stdout
    written = Path("out/report.html").read_bytes()
    Path("out/report.html").unlink()
    assert run_cli("report", "out").stdout == "the report, for a browser: out/report.html\n"
    assert Path("out/report.html").read_bytes() == written


def test_no_report_for_those_in_a_hurry(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("single.toml").write_text(TEXTS["single"], encoding="utf-8")
    result = run_cli("run", "single.toml", "--out", "out", "--jobs", "1", "--no-report")
    assert result.exit_code == 0
    assert "browser" not in result.stdout
    assert not Path("out/report.html").exists()


def test_several_studies_are_set_side_by_side(study_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = ("learners", "drifting", "sweep")
    result = run_cli("report", *(study_folder(kind) for kind in kinds))
    assert result.stdout == "the report, for a browser: comparison.html\n"
    page = Reader(Path("comparison.html").read_text())
    shown = " ".join(page.texts)
    for kind in kinds:
        for cell in json.loads((study_folder(kind) / "summary.json").read_text())["results"]:
            assert cell["controller"] in shown
    # one chart a study and point, all on one scale; drifting: no optimum, nothing lost
    places = ("Learners", "Sweep, queue.servers = 1", "Sweep, queue.servers = 2")
    charts = [chart for chart in page.json if "share" in chart.get("data", ())]
    assert len(charts) == len(places)
    assert all(place in shown for place in places)
    scales = {json.dumps(layer["encoding"]["x"]["scale"]) for chart in charts for layer in chart["spec"]["layer"]}
    assert len(scales) == 1


def test_only_pages_of_ours_are_overwritten(study_folder, tmp_path):
    file = tmp_path / "thesis.html"
    file.write_text("my thesis")
    result = run_cli("report", study_folder("single"), "--out", file)
    assert (result.exit_code, file.read_text()) == (2, "my thesis")
    page = tmp_path / "page.html"
    assert run_cli("report", study_folder("single"), "--out", page).exit_code == 0
    assert run_cli("report", study_folder("learners"), "--out", page).exit_code == 0
    assert "Learners" in page.read_text()


def test_the_page_is_opened_where_asked(study_folder, tmp_path, monkeypatch):
    import typer

    seen = []
    monkeypatch.setattr(typer, "launch", lambda address: seen.append(address) or True)
    assert run_cli("report", study_folder("single"), "--out", tmp_path / "page.html", "--open").exit_code == 0
    assert seen == [(tmp_path / "page.html").as_uri()]


def test_a_page_is_written_whole_or_not_at_all(study_folder, tmp_path, monkeypatch):
    folder = copied(study_folder, tmp_path, "single")
    write_study_page(folder)
    before = (folder / "report.html").read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "fsync", full)
    result = run_cli("report", folder)
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)
    assert (folder / "report.html").read_bytes() == before
    assert not list(folder.glob("*.part"))
