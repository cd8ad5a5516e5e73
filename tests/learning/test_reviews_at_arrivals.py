"""Certainty equivalence reviewed before arrivals: when, with what estimate, the same on both engines; refusals."""

from __future__ import annotations

import pytest
from generators import paper_queue
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.learning.schedules import ArrivalGrid

AT_ARRIVALS = {"review_at": "arrivals", "review_ratio": 1.1}


def test_the_grid_is_every_arrival_at_first_and_then_a_share_of_them() -> None:
    grid, found = ArrivalGrid(1.1), []
    for _ in range(40):
        found.append(grid.limit)
        grid.add(grid.limit)
    assert found[:20] == [1] * 20
    assert grid.seen == sum(found)
    assert found[-1] == int(0.1 * sum(found[:-1]) + 1e-9)
    assert max(found) > 3


@pytest.mark.parametrize("options", [{}, {"prior": "load"}, {"arrivals": "state-dependent"}, {"review_period": 3.0}])
def test_both_engines_give_the_same_run(options: dict) -> None:
    queue = qu.load_scenario("lunch-counter").queue if "arrivals" in options else paper_queue(20, 0.4)
    controller = qu.CertaintyEquivalent(**AT_ARRIVALS, **options)
    runs = [qu.simulate(queue, controller, horizon=80.0, seed=3, engine=kind) for kind in ("simpy", "compiled")]
    assert (
        runs[0]
        .episodes.drop(columns="solve_seconds", errors="ignore")
        .equals(runs[1].episodes.drop(columns="solve_seconds", errors="ignore"))
    )
    assert len(runs[0].episodes) > 30


def test_the_estimate_counts_those_who_came_before_over_the_time_up_to_now() -> None:
    """N arrivals in the time up to arrival N + 1: the mean of N / t is lambda. Paired over runs, error rate 1e-4."""
    queue, limit = qu.Queue(1, 3, 1.0, [qu.JobClass("a", 2.0, 1.0)]), 5
    found = []
    for r in range(300):
        seen: list[tuple[int, float]] = []

        def keep(tally: qu.Tally | None, plan: qu.Plan, seen: list[tuple[int, float]] = seen) -> None:
            if tally is not None:
                seen.append((tally.arrival_count, tally.now))

        qu.simulate(queue, qu.CertaintyEquivalent(**AT_ARRIVALS), horizon=30.0, seed=5, replication=r, on_review=keep)
        assert [count for count, _ in seen[:limit]] == [1] * limit
        found.append(limit / seen[limit - 1][1])
    assert stats.ttest_1samp(found, 2.0).pvalue > 1e-4


def test_the_unit_of_time_plays_no_part() -> None:
    queue = paper_queue(20, 0.4)
    fast = qu.Queue(
        queue.servers,
        queue.capacity,
        1024.0 * queue.service_rate,
        [qu.JobClass(c.name, 1024.0 * c.arrival_rate, c.reward, qu.Linear(102.4)) for c in queue.classes],
    )
    runs = [
        qu.simulate(one, qu.CertaintyEquivalent(prior="load", **AT_ARRIVALS), horizon=horizon, seed=2)
        for one, horizon in ((queue, 256.0), (fast, 0.25))
    ]
    levels = [run.episodes["control_levels"].astype(str).tolist() for run in runs]
    assert levels[0] == levels[1]


@pytest.mark.parametrize(
    "options",
    [
        {"service_rate": "unknown"},
        {"patience": "unknown"},
        {"rewards": "unknown"},
        {"observation": "admitted"},
        {"memory": 100.0},
        {"period": 24.0},
        {"first_review": 1.0},
    ],
)
def test_it_is_refused_where_it_has_no_meaning(options: dict) -> None:
    with pytest.raises(ValueError, match='review_at "arrivals" is for known service_rate'):
        qu.CertaintyEquivalent(**AT_ARRIVALS, **options)


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="review_at must be times or arrivals, got 'departures'"):
        qu.CertaintyEquivalent(review_at="departures")  # type: ignore[arg-type]


def test_our_check_finds_nothing_wrong_with_it() -> None:
    report = qu.check_controller(qu.CertaintyEquivalent(prior="load", **AT_ARRIVALS))
    assert report.ok, report
