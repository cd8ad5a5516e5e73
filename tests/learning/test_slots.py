"""Certainty equivalence with rates by slot of a known period."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.learning.slots import SHAPE, SlotCounts

QUEUE = qu.Queue(
    3,
    8,
    1.0,
    [
        qu.JobClass("a", 2.0, 10.0, qu.Linear(1.0), qu.Steps([6.0], [0.2, 2.0], 12.0)),
        qu.JobClass("b", 2.0, 3.0, qu.Linear(1.0)),
    ],
)


def tally(now: float, duration: float, arrivals: list[int]) -> qu.Tally:
    none = np.zeros((1, 2), dtype=np.int64)
    return qu.Tally(now, duration, np.array(arrivals), 0.0, 0.0, none, np.zeros(2), 0, 0.0)


def test_jobs_count_for_the_slot_that_they_came_in():
    counts = SlotCounts(12.0, 4, 2)
    counts.add(tally(3.0, 3.0, [5, 0]))
    counts.add(tally(14.0, 2.0, [1, 1]))  # the first slot of the second period
    counts.add(tally(24.0, 3.0, [0, 7]))
    assert counts.arrivals.tolist() == [[6, 1], [0, 0], [0, 0], [0, 7]]
    assert counts.time.tolist() == [5.0, 0.0, 0.0, 3.0]
    mean = np.array([6, 8]) / 8.0
    assert counts.rates()[1] == pytest.approx(mean)  # never seen: like the others
    assert counts.rates()[0] == pytest.approx((np.array([6, 1]) + SHAPE) / (5.0 + SHAPE / mean))


def test_boundaries_are_multiples_of_a_slot():
    counts = SlotCounts(24.0, 7, 1)
    now, seen = 0.0, []
    while now < 48.0 - 1e-9:
        now = counts.boundary(now)
        seen.append(now)
    assert seen == pytest.approx([24.0 / 7 * k for k in range(1, 15)])
    assert [counts.slot(t - 1e-6) for t in seen] == [*range(7), *range(7)]


@pytest.mark.parametrize("looking", ["anticipating", "following"])
def test_it_reviews_at_every_slot_and_both_engines_agree(looking):
    controller = qu.CertaintyEquivalent(period=12.0, slots=6, looking=looking)
    runs = [
        qu.simulate(QUEUE, controller, horizon=60.0, seed=4, engine=engine, log=True)
        for engine in ("simpy", "compiled")
    ]
    assert runs[0].events.equals(runs[1].events)
    ends = runs[0].episodes["end"].to_numpy()
    assert np.isin(np.arange(2.0, 60.0, 2.0), ends).all()
    assert qu.check_controller(controller, [QUEUE]).ok


def test_after_long_it_plans_what_the_best_policy_in_time_does():
    """The best policy for the estimates of 100 periods earns all but two thousandths of the optimum."""
    session = {}
    qu.simulate(
        QUEUE,
        qu.CertaintyEquivalent(period=12.0, slots=2),
        horizon=1200.0,
        seed=1,
        on_review=lambda seen, plan: session.setdefault("plans", []).append((seen, plan)),
    )
    best = qu.solve_periodic(QUEUE)
    last = [(seen.now, plan) for seen, plan in session["plans"][1:] if seen.now >= 1188.0 - 1e-6]
    edges = [*(now - 1188.0 for now, _ in last), 12.0]
    edges[0] = 0.0
    assert qu.periodic_gain(QUEUE, edges, [plan.policy for _, plan in last]) > 0.998 * best.gain


def test_dynamic_regret_is_what_the_best_policy_in_time_earns_more():
    """Of the best policy itself: bounded, and zero up to the state at the end; 30 runs within 4.5 standard errors."""
    best = qu.solve_periodic(QUEUE)
    loss = [
        qu.simulate(QUEUE, "oracle-anticipating", horizon=600.0, seed=9, replication=r, accounts=[qu.DynamicRegret()])
        .regret("dynamic")["regret"]
        .iloc[-1]
        for r in range(30)
    ]
    error = 4.5 * np.std(loss, ddof=1) / np.sqrt(30)
    assert -best.relative_bias[0].sum() - error < np.mean(loss) < error
    run = qu.simulate(QUEUE, "admit-all", horizon=600.0, seed=9, accounts=[qu.DynamicRegret()])
    earned = run.rewards("expected_reward")["reward"]
    assert run.regret("dynamic")["regret"].to_numpy() == pytest.approx(
        best.best_reward(run.curve.times) - earned.to_numpy(), rel=1e-12
    )
    assert run.regret("dynamic")["regret"].iloc[-1] > np.mean(loss) + 2 * error


def test_dynamic_regret_of_a_system_by_counts_is_against_its_optimum():
    classes = [qu.JobClass(n, 3.0, r, service=qu.Exponential(m)) for n, r, m in (("a", 5.0, 2.0), ("b", 6.0, 0.25))]
    system = qu.System(4, 4, classes)
    run = qu.simulate(system, "admit-all", horizon=500.0, seed=2, accounts=[qu.DynamicRegret()])
    earned = run.rewards("realised_reward")["reward"].to_numpy()
    assert run.regret("dynamic")["regret"].to_numpy() == pytest.approx(qu.solve(system).gain * run.curve.times - earned)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"period": -1.0}, "period"),
        ({"period": 24.0, "memory": 3.0}, "memory"),
        ({"period": 24.0, "service_rate": "unknown"}, "service_rate"),
        ({"period": 24.0, "slots": 0}, "slots"),
        ({"looking": "back"}, "looking"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        qu.CertaintyEquivalent(**options)


def test_a_period_that_nobody_could_plan_for_is_refused():
    with pytest.raises(ValueError, match="period must be at most"):
        qu.simulate(QUEUE, qu.CertaintyEquivalent(period=1e7), horizon=10.0)


@pytest.mark.slow
def test_over_thirty_days_of_rush_hours_looking_ahead_earns_more_than_following():
    """Both learn the rates hour by hour, 12 replications on the same jobs: 500 to 600 euros of 56,000 more.

    If looking ahead earned nothing, the t statistic would be so large for one seed in a thousand.
    """
    queue = qu.load_scenario("rush-hours").queue

    def earned(looking, replication):
        learner = qu.CertaintyEquivalent(period=24.0, slots=24, looking=looking)
        run = qu.simulate(queue, learner, horizon=720.0, seed=1, replication=replication, grid=[720.0])
        return float(run.rewards()["reward"].iloc[-1])

    more = [earned("anticipating", k) - earned("following", k) for k in range(12)]
    assert stats.ttest_1samp(more, 0.0, alternative="greater").pvalue < 1e-3
