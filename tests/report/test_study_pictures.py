"""Curves and policies in plain characters: right, in any width, in any encoding, beside names of any script."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_studies import made_study
from rich.cells import cell_len
from rich.console import Console

import queueing_ucrl as qu
from queueing_ucrl.report.layout import PROSE
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.study_pictures import (
    ASCII_BARS,
    BARS,
    SHORTEST,
    last_policy,
    print_pictures,
    scale_of,
    sparkline,
)
from queueing_ucrl.units import Units


def console_of(width, encoding="utf-8"):
    return Console(width=width, file=io.TextIOWrapper(io.BytesIO(), encoding=encoding), highlight=False)


def printed(study, width=80, encoding="utf-8", units=None):
    console = console_of(width, encoding)
    print_pictures(console, study, 0, units or Units())
    console.file.flush()
    return console.file.buffer.getvalue().decode(encoding).splitlines()


def the_queue():
    return qu.Queue(2, 12, 1.0, [qu.JobClass("gold", 1.5, 20.0, qu.Linear(1.0)), qu.JobClass("basic", 1.5, 2.0)])


@pytest.fixture(scope="module")
def study():
    choices = ["oracle", "certainty-equivalent", qu.TrunkReservation([12, 3]), "admit-all"]
    return qu.replicate(the_queue(), choices, horizon=300.0, replications=2, seed=1, jobs=1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(1, 60), st.sampled_from([BARS, ASCII_BARS]))
def test_a_curve_rises_and_falls_as_its_values(values, width, bars):
    values = np.array(values)
    times = np.arange(1.0, values.size + 1)
    line = sparkline(times, values, width, bars)
    assert len(line) == width
    heights = [bars.index(mark) for mark in line]
    at = np.interp(times[-1] * np.arange(1, width + 1) / width, times, values)
    order = np.argsort(at, kind="stable")
    assert (np.diff(np.array(heights)[order]) >= 0).all()
    low, high = min(0.0, values.min()), max(0.0, values.max())
    if at[-1] == high > low:
        assert line[-1] == bars[-1]
    if at[-1] == low:
        assert line[-1] == bars[0]


def test_a_curve_is_drawn_on_an_even_scale_of_time_from_zero():
    times = np.geomspace(0.01, 80.0, 500)  # as studies keep them
    assert sparkline(times, times, 8) == BARS[1:] + BARS[-1]
    assert sparkline(times, np.zeros(500), 5) == BARS[0] * 5
    assert sparkline(times, -times, 4) == "▇▅▃▁"


def test_lines_hold_each_controller_s_mean_and_its_last_value(study):
    lines = printed(study)
    scale = scale_of(study.samples(k, "gap").mean(axis=0) for k in range(len(study.cells)))
    for k, cell in enumerate(study.cells):
        mean = study.samples(k, "gap").mean(axis=0)
        (line,) = [one for one in lines if one.startswith(f"{cell.name} ") and any(bar in one for bar in BARS)]
        marks = line.removeprefix(cell.name).split()[0]
        assert marks == sparkline(study.results[k][0].times, mean, len(marks), scale=scale)
    assert any(line.startswith("reward lost, in time") for line in lines)
    assert printed(study, units=Units("hours", "euros"))[1].startswith("reward lost (euros)")


def test_who_lost_least_has_the_lowest_marks(study):
    """All curves on one scale: heights at the end are in the order of the losses."""
    lines = printed(study)
    heights = {}
    for cell in study.cells:
        (line,) = [one for one in lines if one.startswith(f"{cell.name} ") and any(bar in one for bar in BARS)]
        heights[cell.name] = BARS.index(line.removeprefix(cell.name).split()[0][-1])
    losses = {cell.name: study.samples(k, "gap").mean(axis=0)[-1] for k, cell in enumerate(study.cells)}
    order = sorted(losses, key=losses.get)
    assert [heights[name] for name in order] == sorted(heights.values())
    assert (heights["oracle"], max(heights.values())) == (0, len(BARS) - 1)


def test_policies_are_the_last_ones_each_once(study):
    best = qu.solve(the_queue()).policy
    assert last_policy(study, 0) == best
    assert last_policy(study, 2).control_levels == (12, 3)
    lines = printed(study)
    text = "\n".join(lines)
    start = next(k for k, line in enumerate(lines) if line.startswith("who was let in"))
    drawn = [line for line in lines[start:] if line.startswith(("gold ", "basic "))]
    tables = {best.marks()[1], "###.........", "############", last_policy(study, 1).marks()[1]}
    assert {line.split()[1] for line in drawn if line.startswith("basic")} == tables
    assert len(drawn) == 2 * len(tables)
    assert "the best policy, oracle" in text


@pytest.mark.parametrize("width", [10, 20, 30, 40, 60, 80, 100_000])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_any_width_and_encoding(study, width, encoding):
    lines = printed(study, width, encoding)
    assert max(map(cell_len, lines), default=0) <= min(max(width, 30), PROSE)
    curves = [line for line in lines if any(bar in line for bar in (BARS if encoding == "utf-8" else "@"))]
    assert bool(curves) == (width >= 20)
    assert ("\n".join(lines).isascii()) == (encoding == "ascii" or width < 20)
    assert any("###" in line and "0-" in line for line in lines) == (width >= 30)


@pytest.mark.parametrize("width", [24, 50, 80])
def test_names_of_any_script_stand_whole_and_in_line(width):
    names = ["客户服务中心", "é" * 30, "[bold]x[/bold]", "a"]
    lines = printed(made_study(names), width)
    assert all(any(name in line for line in lines) for name in names)
    curves = [line for line in lines if any(bar in line for bar in BARS)]
    assert len(curves) == 4
    assert max(map(cell_len, lines)) <= max(width, 30)
    begins = {cell_len(line[: min(line.index(bar) for bar in BARS if bar in line)]) for line in curves}
    assert len(begins) == 1
    assert all(sum(line.count(bar) for bar in BARS) >= SHORTEST for line in curves)


def test_without_an_optimum_rewards_are_set_against_the_first():
    classes = [qu.JobClass("a", 1.0, 1.0, service=qu.Deterministic(1.0))]
    choices = ["admit-all", qu.TrunkReservation([1])]
    study = qu.replicate(qu.System(1, 3, classes), choices, horizon=50.0, replications=2, jobs=1)
    lines = printed(study)
    assert lines[1].startswith("realised reward minus that of admit-all, in time")
    assert not any(line.startswith("admit-all ") for line in lines)
    more = study.samples(1, "realised_reward") - study.samples(0, "realised_reward")
    times = study.results[0][0].times
    (line,) = [one for one in lines if any(bar in one for bar in BARS)]
    assert sparkline(times, more.mean(axis=0), 50) in line
    assert line.endswith(number(float(more.mean(axis=0)[-1]), 3))
    assert "the best policy" not in "\n".join(lines)


def test_too_many_policies_are_left_to_the_folder():
    classes = [qu.JobClass(f"c{i}", 0.1, 1.0 + i) for i in range(50)]
    study = qu.replicate(qu.Queue(2, 4, 1.0, classes), ["admit-all"], horizon=5.0, replications=1, jobs=1)
    lines = printed(study)
    assert lines[-1].startswith("policies of so many classes or controllers are in episodes.parquet")
    assert not any("###" in line for line in lines)


def holes(capacity=12):
    """A table that control levels do not tell: a class gets in again in fuller states."""
    admits = np.ones((capacity, 2), dtype=bool)
    admits[3:5, 1] = False
    return qu.Policy(admits)


@pytest.mark.parametrize("width", [12, 30, 40, 80])
def test_any_table_that_is_kept_to_is_drawn_whole(width):
    queue = the_queue()
    study = qu.replicate(
        queue, [qu.FixedPolicy(holes(queue.capacity)), "admit-all"], horizon=50.0, replications=1, jobs=1
    )
    assert last_policy(study, 0) == holes(queue.capacity)
    text = "\n".join(printed(study, width))
    assert all(cell_len(line) <= width for line in text.splitlines() if "#" in line)
    if width == 80:
        assert "###..#######" in text
        assert "0-2, 5-11" in text


@pytest.mark.parametrize("width", [30, 80])
def test_a_table_that_episodes_do_not_tell_is_drawn_as_far_as_they_do(width):
    queue = the_queue()
    study = qu.replicate(queue, [qu.RandomPolicy(0.6, 1000.0), "admit-all"], horizon=50.0, replications=1, jobs=1)
    assert last_policy(study, 0) is None
    text = "\n".join(printed(study, width))
    assert "? beyond the first state" in " ".join(text.split())
    marked = [line.split()[-1] for line in text.splitlines() if line.endswith("?")]
    assert len(marked) == 2
    for marks, level in zip(marked, _levels(study), strict=True):
        assert marks == ("#" * level + "." + "?" * queue.capacity)[: queue.capacity]


def _levels(study):
    from queueing_ucrl.report.study_pictures import _last_levels

    return _last_levels(study, 0)[0]
