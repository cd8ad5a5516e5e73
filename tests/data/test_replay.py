"""A log played again: what was earned is earned again; days drawn anew; today's decisions; what is read and refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import QUEUE, as_jobs, jobs_of, logged, write_scenario, write_trace

import queueing_ucrl as qu
from queueing_ucrl.accounts.steady_state import estimate
from queueing_ucrl.data.day_blocks import Blocks, block_interval, blocks_of, resampled
from queueing_ucrl.data.replay import (
    KeepsPolicy,
    check_replay,
    decided_system,
    playable,
    replay,
    replay_system,
    time_in_states,
)
from queueing_ucrl.data.trace_file import ADMIT, BLOCK, REJECT, LoggedJobs, read_trace
from queueing_ucrl.model.balking import GeometricBalking

SETTINGS = qu.RunSettings(1.0, seed=5)
SERVED = [replace(c, service=qu.Exponential(1.0)) for c in QUEUE.classes]
WORLDS = {
    "M/M": QUEUE,
    "impatient": qu.Queue(3, 8, 1.0, [replace(c, abandonment_cost=0.5) for c in QUEUE.classes], qu.Exponential(0.5)),
    "laws": qu.System(3, 8, [replace(SERVED[0], service=qu.LogNormal(1.0, 1.5)), replace(SERVED[1], reward_at="end")]),
    "balking": qu.Queue(3, 8, 1.0, [replace(c, balking=GeometricBalking(0.7, 2)) for c in QUEUE.classes]),
    "shifts": qu.System(qu.Shifts((8.0,), (2, 4), 24.0), 8, SERVED),
}


def earned(run: qu.Run) -> float:
    return math.fsum((*run.curve.reward[-1].tolist(), *(-run.curve.cost[-1]).tolist()))


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
@pytest.mark.parametrize("world", ["M/M", "laws", "shifts"])
@pytest.mark.parametrize("controller", [qu.AdmitAll(), qu.TrunkReservation((8, 3)), qu.RandomPolicy(0.7, 10.0)])
def test_a_run_that_is_played_again_earns_what_it_earned(world, controller) -> None:
    """Same arrivals, works and controller."""
    system = WORLDS[world]
    run, log = logged(system, controller, 5, 150.0)
    played = replay_system(system, playable(as_jobs(log, system.class_names, 150.0), system, 5))
    again = qu.simulate(played, controller, horizon=150.0, seed=5)
    assert earned(again) == earned(run)
    assert np.array_equal(again.ledger.admitted, run.ledger.admitted)


def asked(run: qu.Run, system: qu.System, seed: int, horizon: float) -> LoggedJobs:
    """The log of those who asked; who balked is not in it."""
    events = run.events
    came = events[events["event"].isin(["admit", "reject", "block"])].sort_values(["time", "job"], kind="stable")
    known = jobs_of(system, seed, horizon).set_index("time").loc[came["time"]]
    codes = came["event"].astype(str).map({"admit": ADMIT, "reject": REJECT, "block": BLOCK}).to_numpy(dtype=int)
    classes = came["job_class"].astype(str).map({name: i for i, name in enumerate(system.class_names)})
    times, works = came["time"].to_numpy(), known["work"].to_numpy()
    return LoggedJobs(times, classes.to_numpy(dtype=int), works, codes, begin=0.0, end=horizon)


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
@pytest.mark.parametrize("controller", [qu.AdmitAll(), qu.TrunkReservation((8, 3))])
def test_who_asked_asks_again_and_does_not_balk_again(controller) -> None:
    """Under the same controller the line is the log's, so all of it comes out again; and so does the time in it."""
    system = WORLDS["balking"]
    run = qu.simulate(system, controller, horizon=150.0, seed=5, log=True)
    jobs = asked(run, system, 5, 150.0)
    assert jobs.times.size < jobs_of(system, 5, 150.0).shape[0]
    played = replay_system(system, playable(jobs, system, 5))
    assert not played.balks
    again = qu.simulate(played, controller, horizon=150.0, seed=5)
    assert earned(again) == earned(run)
    assert np.array_equal(again.ledger.admitted, run.ledger.admitted)
    events = run.events
    lasted = np.diff(events["time"].to_numpy(), prepend=0.0)
    states = [float(lasted[events["in_system"].to_numpy() == s].sum()) for s in range(9)]
    assert time_in_states(system, jobs, 5) == pytest.approx(states, abs=1e-9)


def test_a_learner_learns_the_same_from_a_run_that_is_played_again() -> None:
    """One that has to learn how fast jobs are served: else it would be told the mean of the works."""
    learner = qu.CertaintyEquivalent(service_rate="unknown", first_review=2.0)
    run, log = logged(QUEUE, learner, 5, 300.0)
    played = replay_system(QUEUE, playable(as_jobs(log, QUEUE.class_names, 300.0), QUEUE, 5))
    with pytest.warns(qu.GuaranteeWarning):
        again = qu.simulate(played, learner, horizon=300.0, seed=5)
    assert len({segment.policy for segment in run.ledger.segments}) > 1
    assert [s.policy for s in again.ledger.segments] == [s.policy for s in run.ledger.segments]
    assert earned(again) == earned(run)


@pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")
@pytest.mark.parametrize("world", ["M/M", "laws", "shifts"])
@pytest.mark.parametrize("controller", ["admit-all", "random", "certainty-equivalent"])
def test_todays_decisions_of_our_own_log_earn_what_the_log_earned(world, controller) -> None:
    system = WORLDS[world]
    run, log = logged(system, controller, 7, 150.0)
    found = replay(system, as_jobs(log, system.class_names, 150.0), [("a", qu.AdmitAll())], SETTINGS, draws=2)
    assert found.today is not None
    assert found.today.played is not None
    assert found.today.played.earned == pytest.approx(earned(run), rel=1e-13)
    assert found.today.played.admitted == tuple(run.ledger.admitted.sum(axis=0).tolist())
    assert found.today.played.blocked == (0, 0)  # whoever was let in then finds room now
    assert found.today.earned.mean == found.today.played.earned / 150.0


def test_whom_the_log_let_in_is_blocked_in_a_full_house_and_counted() -> None:
    times = np.array([1.0, 1.1, 1.2, 1.3, 9.0])
    jobs = LoggedJobs(times, np.zeros(5, dtype=int), np.full(5, 5.0), np.array([1, 1, 1, 2, 0]), 0.0, 20.0)
    system = qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 10.0)])
    found = replay(system, jobs, [("all", qu.AdmitAll()), ("best", qu.AdmitAll())], SETTINGS, draws=2)
    today = found.today.played
    assert (today.admitted, today.blocked, today.rejected, today.arrivals) == ((3,), (1,), (1,), (5,))
    assert (found.undecided, today.earned) == (1, 30.0)
    assert found.better.mean == 0.0


def test_jobs_at_the_same_instant_are_decided_one_by_one() -> None:
    times = np.array([1.0, 1.0, 1.0, 1.0])
    jobs = LoggedJobs(times, np.array([0, 0, 1, 1]), np.full(4, 1.0), np.array([2, 1, 1, 2]), 0.0, 10.0)
    played = playable(jobs, QUEUE, 0)
    system, table, whose = decided_system(QUEUE, played)
    run = qu.simulate(system, table, horizon=10.0)
    assert whose == [0, 0, 1, 1]
    assert run.ledger.admitted.sum(axis=0).tolist() == [1, 0, 1, 0]
    assert run.ledger.rejected.sum(axis=0).tolist() == [0, 1, 0, 1]


def test_works_that_are_not_known_are_drawn_once_and_for_all_controllers() -> None:
    _, log = logged(QUEUE, "admit-all", 5, 300.0)
    hidden = log.assign(work=log["work"].where(log.index % 2 == 0))
    first, second = (playable(as_jobs(hidden, QUEUE.class_names, 300.0), QUEUE, seed) for seed in (1, 1))
    other = playable(as_jobs(hidden, QUEUE.class_names, 300.0), QUEUE, 2)
    assert np.array_equal(first.log.works, second.log.works)
    assert np.array_equal(first.log.works[::2], log["work"].to_numpy()[::2])
    assert not np.any(first.log.works[1::2] == other.log.works[1::2])
    assert first.drawn_works == log.index.size // 2
    # they are of the law: the mean of n exponential numbers is within 4 standard errors but once in 16,000
    drawn = first.log.works[1::2]
    assert abs(drawn.mean() - 1.0) < 4.0 / math.sqrt(drawn.size)


def test_patience_rides_along_with_the_job_whoever_decides() -> None:
    system = WORLDS["impatient"]
    run, log = logged(system, "admit-all", 3, 300.0)
    jobs = as_jobs(log, system.class_names, 300.0)
    found = replay(system, jobs, [("all", qu.AdmitAll())], SETTINGS, draws=2)
    everybody_in = replace(jobs, decisions=np.ones(jobs.times.size, dtype=np.int64))
    same = replay(system, everybody_in, [("all", qu.AdmitAll())], SETTINGS, draws=2)
    assert same.today.played.earned == pytest.approx(same.rows[0].played.earned, rel=1e-12)
    assert same.today.played.abandoned == same.rows[0].played.abandoned
    assert sum(found.rows[0].played.abandoned) > 0
    assert run.ledger.abandoned.sum() > 0


def test_a_controller_that_cannot_be_tried_says_why_and_others_go_on() -> None:
    _, log = logged(QUEUE, "admit-all", 5, 100.0)
    jobs = as_jobs(log, QUEUE.class_names, 100.0)
    controllers = [("ticks", qu.as_controller("ucrl2")), ("all", qu.AdmitAll())]
    found = replay(QUEUE, jobs, controllers, SETTINGS, draws=2)
    assert "needs a Markov chain" in found.rows[0].refused
    assert found.rows[0].plain_data(QUEUE.class_names) == {"controller": "ticks", "refused": found.rows[0].refused}
    assert found.rows[1].gained is None  # it is the first that was tried


def test_the_clock_of_shifts_is_kept() -> None:
    system = WORLDS["shifts"]
    jobs = LoggedJobs(np.array([30.0, 33.0]), np.array([0, 1]), np.ones(2), np.zeros(2, dtype=int), 29.0, 80.0)
    assert playable(jobs, system, 0).origin == 24.0
    assert playable(jobs, QUEUE, 0).origin == 29.0
    assert playable(replace(jobs, day=12.0), QUEUE, 0).origin == 29.0
    assert playable(replace(jobs, day=12.0), QUEUE, 0, by_day=True).origin == 24.0
    once = qu.System(qu.Shifts((8.0,), (2, 4)), 8, system.classes)
    assert playable(jobs, once, 0).origin == 0.0


def test_time_before_the_log_is_not_played_unless_somebody_looks_at_the_clock() -> None:
    _, log = logged(QUEUE, "admit-all", 5, 100.0)
    jobs = as_jobs(log, QUEUE.class_names, 100.0)
    late = replace(jobs, times=jobs.times + 1000.0, begin=1000.0, end=1100.0, day=24.0)
    learner = [("learner", qu.CertaintyEquivalent(first_review=1.0))]
    (now,), (then,) = (replay(QUEUE, log, learner, SETTINGS, draws=2).rows for log in (jobs, late))
    assert then.played.earned == pytest.approx(now.played.earned)
    assert then.played.admitted == now.played.admitted


def test_the_numbers_do_not_depend_on_the_processes() -> None:
    _, log = logged(QUEUE, "random", 5, 200.0)
    jobs = as_jobs(log, QUEUE.class_names, 200.0, 10.0)
    both = [("all", qu.AdmitAll()), ("learner", qu.CertaintyEquivalent())]
    one, two = (replay(QUEUE, jobs, both, SETTINGS, draws=6, workers=n) for n in (1, 2))
    assert one == two


def test_an_environment_that_scales_arrivals_cannot_take_a_log() -> None:
    environment = qu.Environment([[0.0, 1.0], [1.0, 0.0]], [0.5, 2.0])
    system = qu.System(3, 8, SERVED, environment=environment)
    _, log = logged(QUEUE, "admit-all", 5, 50.0)
    with pytest.raises(ValueError, match="an environment cannot scale its rate"):
        check_replay(system, as_jobs(log, QUEUE.class_names, 50.0), 0)


def test_a_log_of_another_world_is_refused_before_logs_as_long_as_it_are_drawn() -> None:
    _, log = logged(QUEUE, "admit-all", 5, 50.0)
    jobs = as_jobs(log, QUEUE.class_names, 50.0)
    check_replay(QUEUE, jobs, 0)
    rates = [1e6] * len(QUEUE.classes)
    with pytest.raises(
        ValueError, match=rf"1e\+08 jobs are expected here in the time in which the log has {len(jobs.times)}"
    ):
        check_replay(QUEUE.with_arrival_rates(rates), jobs, 0)


def test_a_policy_that_sees_the_environment_can_be_kept() -> None:
    environment = qu.Environment([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0], servers=[3, 1])
    system = qu.System(3, 8, SERVED, environment=environment)
    best = qu.solve(system).policy
    _, log = logged(QUEUE, "admit-all", 5, 50.0)
    found = replay(system, as_jobs(log, QUEUE.class_names, 50.0), [("best", KeepsPolicy(best))], SETTINGS, draws=2)
    assert not found.rows[0].refused


# Days


def log_of(times, begin: float, end: float, day: float | None) -> LoggedJobs:
    times = np.asarray(times, dtype=float)
    return LoggedJobs(
        times, np.zeros(times.size, dtype=int), np.ones(times.size), np.zeros(times.size, dtype=int), begin, end, day
    )


def test_days_are_whole_and_twentieths_where_there_are_none() -> None:
    hours = np.arange(0.0, 240.0, 0.5)
    assert blocks_of(log_of(hours, 0.0, 240.0, 24.0)) == Blocks(
        tuple(24.0 * k for k in range(10)), 24.0, "days", False, 240.0, 0.0
    )
    assert blocks_of(log_of(hours, 0.0, 240.0, None)).count == 20
    assert blocks_of(log_of(hours[hours < 96], 0.0, 96.0, 24.0)).kind == "twentieths"  # four days are too few
    assert blocks_of(log_of(np.arange(0, 672.0), 0.0, 672.0, 24.0)).weekdays
    assert not blocks_of(log_of(np.arange(0, 648.0), 0.0, 648.0, 24.0)).weekdays


def test_a_part_of_a_day_counts_as_one_if_nobody_comes_in_the_rest() -> None:
    open_hours = np.concatenate([24.0 * k + np.arange(9.0, 17.0) for k in range(6)])
    office = blocks_of(log_of(open_hours, 9.0, 136.5, 24.0))
    assert (office.count, office.left_out, office.observed) == (6, 0.0, 127.5)
    longer = blocks_of(log_of(np.arange(9.0, 185.0), 9.0, 185.0, 24.0))
    assert (longer.starts[0], longer.count, longer.left_out, longer.observed) == (24.0, 6, 15.0 + 17.0, 144.0)


def test_a_day_that_lacks_a_moment_is_a_whole_one() -> None:
    blocks = blocks_of(log_of(np.arange(1.0, 143.5), 1.0, 143.0, 24.0))
    assert (blocks.count, blocks.left_out, blocks.observed) == (6, 0.0, 142.0)


@given(st.integers(5, 60), st.integers(0, 10**6))
def test_a_drawn_day_is_of_its_weekday(count: int, seed: int) -> None:
    blocks = Blocks(tuple(map(float, range(count))), 1.0, "days", count >= 28, float(count), 0.0)
    chosen = blocks.draw(np.random.default_rng(seed))
    assert chosen.min() >= 0
    assert chosen.max() < count
    if blocks.weekdays:
        assert np.array_equal(chosen % 7, np.arange(count) % 7)


def test_every_day_is_drawn_as_often_as_the_others() -> None:
    """Chi-squared over 30 days by weekday, 10,000 draws: beyond 1e-6 of its law it is not chance."""
    from scipy.stats import chi2

    blocks = Blocks(tuple(map(float, range(30))), 1.0, "days", True, 30.0, 0.0)
    rng, counts = np.random.default_rng(1), np.zeros(30)
    for _ in range(10_000):
        counts += np.bincount(blocks.draw(rng), minlength=30)
    places = np.arange(30) % 7
    expected = 10_000.0 * np.bincount(places)[places] / np.bincount(places)[places]
    assert np.sum((counts - expected) ** 2 / expected) < chi2.isf(1e-6, 30 - 7)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.lists(st.integers(0, 19), min_size=1, max_size=40))
def test_drawn_blocks_hold_the_jobs_of_theirs_in_order(shares, chosen) -> None:
    jobs = log_of(np.sort(np.array(shares)) * 100.0, 0.0, 100.0, None)
    blocks = blocks_of(jobs)
    log, rows = resampled(jobs, blocks, chosen)
    assert np.all(np.diff(log.times) >= 0)
    assert log.end == len(chosen) * blocks.length
    place = 0
    for k, block in enumerate(chosen):
        start = blocks.starts[block]
        end = start + blocks.length if block < 19 else math.inf
        mine = [t for t in jobs.times.tolist() if start <= t < end]
        got = log.times[place : place + len(mine)]
        assert np.allclose(got, [t - start + k * blocks.length for t in mine], rtol=0, atol=1e-9)
        assert jobs.times[rows[place : place + len(mine)]].tolist() == mine
        place += len(mine)
    assert place == rows.size


def test_all_blocks_in_order_are_the_log() -> None:
    jobs = log_of(np.sort(np.random.default_rng(0).uniform(0, 100, 500)), 0.0, 100.0, None)
    log, rows = resampled(jobs, blocks_of(jobs), range(20))
    assert np.array_equal(rows, np.arange(500))
    assert np.allclose(log.times, jobs.times, rtol=0, atol=1e-9)


def test_the_block_interval_is_that_of_student() -> None:
    """For a mean of n independent days the bootstrap's standard error is s / sqrt(n), so the interval is Student's."""
    rng = np.random.default_rng(4)
    days = rng.normal(10.0, 2.0, 12)
    blocks = Blocks(tuple(map(float, range(12))), 1.0, "days", False, 12.0, 0.0)
    drawn = [days[blocks.draw(rng)].mean() for _ in range(20_000)]
    half, known = block_interval(days.mean(), drawn, blocks).half_width, estimate(days)
    # the spread of 20,000 draws is known to 1 / sqrt(40,000) = 0.5 %; four times that
    assert half == pytest.approx(known.half_width, rel=0.02)


# The file


@pytest.fixture
def load(tmp_path):
    def jobs(log: pd.DataFrame, end: float = 100.0, **change):
        path = write_scenario(tmp_path, log, end)
        if "text" in change:
            path.write_text(change["text"](path.read_text()))
        return read_trace(qu.load_scenario(path))

    return jobs


GOOD = pd.DataFrame(
    {
        "time": [1.0, 2.0, 3.0],
        "job_class": ["orders", "enquiries", "orders"],
        "work": [1.0, np.nan, 0.0],
        "decision": ["admit", None, "block"],
    }
)


def test_a_trace_is_read_as_it_is_written(load, tmp_path) -> None:
    jobs = load(GOOD)
    assert jobs.times.tolist() == [1.0, 2.0, 3.0]
    assert jobs.classes.tolist() == [0, 1, 0]
    assert np.isnan(jobs.works).tolist() == [False, True, False]
    assert jobs.decisions.tolist() == [1, 0, 3]
    assert (jobs.begin, jobs.end, jobs.day, jobs.has_decisions) == (0.0, 100.0, None, True)
    nothing = load(GOOD.assign(decision=None, work=np.nan))
    assert not nothing.has_decisions
    assert np.isnan(nothing.works).all()
    GOOD.to_csv(tmp_path / "calls.csv", index=False)
    read = load(GOOD, text=lambda words: words.replace("calls.trace.parquet", "calls.csv"))
    assert np.array_equal(read.works, jobs.works, equal_nan=True)
    assert np.array_equal(read.decisions, jobs.decisions)


OTHERS = "column 'job_class' must hold classes of this scenario, got"
NUMBERS = "must hold finite numbers of at least 0, got"
BAD = {
    "another class": ({"job_class": ["orders", "spam", "orders"]}, f"{OTHERS} 'spam' in row 2"),
    "no class": ({"job_class": ["orders", None, "enquiries"]}, f"{OTHERS} nothing in row 2"),
    "no row of a class": ({"job_class": "orders"}, "column 'job_class' has no row of class 'enquiries'"),
    "not in order": ({"time": [1.0, 3.0, 2.0]}, "column 'time' must never go back in time, but does in row 3"),
    "negative work": ({"work": [1.0, np.nan, -2.0]}, f"column 'work' {NUMBERS} -2 in row 3"),
    "endless work": ({"work": [1.0, np.nan, np.inf]}, f"column 'work' {NUMBERS} inf in row 3"),
    "after the end": (
        {"time": [1.0, 2.0, 101.0]},
        "column 'time' must lie between begin = 0 and end = 100, got 101 in row 3",
    ),
    "no time": ({"time": [1.0, np.nan, 2.0]}, f"column 'time' {NUMBERS} nothing in row 2"),
    "another decision": (
        {"decision": ["admit", "maybe", None]},
        "column 'decision' must hold admit, reject, block or nothing, got 'maybe' in row 2",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_with_a_trace_is_told_in_one_line(load, bad) -> None:
    change, message = BAD[bad]
    with pytest.raises(qu.ScenarioError) as error:
        load(GOOD.assign(**change))
    assert message in str(error.value)
    assert "calls.trace.parquet" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_trace_that_is_not_there_or_lacks_a_column_is_told(load, tmp_path) -> None:
    with pytest.raises(qu.ScenarioError, match=r"other\.parquet is not there"):
        load(GOOD, text=lambda words: words.replace("calls.trace.parquet", "other.parquet"))
    with pytest.raises(qu.ScenarioError, match="has no rows"):
        load(GOOD[:0])
    path = write_scenario(tmp_path, GOOD, 100.0)
    GOOD.drop(columns="work").to_parquet(tmp_path / "calls.trace.parquet")
    with pytest.raises(qu.ScenarioError, match="has no column 'work'; its columns are 'time', 'job_class', 'decision'"):
        read_trace(qu.load_scenario(path))
    (tmp_path / "calls.trace.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(qu.ScenarioError, match="cannot be read as a table"):
        read_trace(qu.load_scenario(path))
    write_trace(GOOD, tmp_path / "calls.trace.parquet")
    text = path.read_text()
    path.write_text(text.split("[data]")[0])
    with pytest.raises(qu.ScenarioError, match=r"has no table \[data\]"):
        read_trace(qu.load_scenario(path))
