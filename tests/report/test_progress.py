"""Progress where there is no terminal: a line now and then, on the error stream."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import made_scenario, made_study

from queueing_ucrl.report import progress
from queueing_ucrl.report.progress import BETWEEN_LINES, FIRST_LINE, STEP, PlainLines, StudyProgress
from queueing_ucrl.scenario import ControllerChoice
from queueing_ucrl.simulation.settings import RunSettings


@given(st.lists(st.tuples(st.floats(0.01, 40), st.floats(0, 0.2)), max_size=60))
def test_lines_are_apart_in_time_and_in_work(steps):
    lines, seconds, share, told = PlainLines(), 0.0, 0.0, []
    for more_seconds, more_share in steps:
        seconds, share = seconds + more_seconds, min(1.0, share + more_share)
        if lines.due(seconds, share):
            told.append((seconds, share))
    assert (seconds >= FIRST_LINE) == bool(told)
    for (t, s), (u, v) in pairwise(told):
        assert u >= t + BETWEEN_LINES
        assert v - s >= STEP - 1e-12
    assert len(told) <= 1 + 1 / STEP


@pytest.fixture
def study_progress():
    choices = tuple(ControllerChoice(name, {}, None) for name in "ab")
    scenario = replace(made_scenario(made_study(["a"])), controllers=choices, settings=RunSettings(1e5, 5))
    return lambda: StudyProgress(scenario)


def test_a_long_study_writes_lines_of_what_is_done_and_left(study_progress, capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with study_progress() as one:
        one.on_result(None, 1, 10)
        for _ in range(100):
            time.sleep(0.05)
            if one.lines.told_at >= 0:
                break
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(("1 of 10 trials after 0:0", "0 of 10 trials"))
    assert "left" in captured.err


def test_trials_found_in_the_folder_do_not_shorten_what_is_left(study_progress, capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 1e9)
    with study_progress() as one:
        one.on_result(None, 8, 10)  # seven were there
        one.began -= 60.0  # one trial in a minute, two to go
        monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
        for _ in range(100):
            time.sleep(0.05)
            if one.lines.told_at >= 0:
                break
    assert "8 of 10 trials after 1:0" in (words := capsys.readouterr().err)
    assert "about 2:0" in words


def test_a_short_study_is_silent(study_progress, capsys):
    with study_progress() as one:
        one.on_result(None, 10, 10)
    assert capsys.readouterr().err == ""


def test_what_must_be_said_is_said_at_once(study_progress, capsys):
    with study_progress() as one:
        one.say("compiling [numeric] code")
        assert capsys.readouterr().err == "compiling [numeric] code\n"


@pytest.mark.parametrize(("seconds", "words"), [(0, "0:00"), (65.9, "1:05"), (3600, "1:00:00"), (36061, "10:01:01")])
def test_a_clock(seconds, words):
    assert progress._clock(seconds) == words
