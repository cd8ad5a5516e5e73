"""Jobs that balk, in both engines: the same to the last bit, the same jobs under every controller, the right rates."""

from __future__ import annotations

import numpy as np
import pytest
from generators import balking_queue
from scipy import stats
from twin_engines import Ticker, differing, left_behind, new_engine, tallies

import queueing_ucrl as qu
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.sources import job_sources, one_by_one
from queueing_ucrl.simulation.world import World

STATES = {"arrivals": "state-dependent"}


def controllers(queue: qu.Queue) -> list[qu.Controller]:
    largest = float(queue.rates_by_state.sum(axis=1).max())
    return [
        Ticker(),
        qu.CertaintyEquivalent(**STATES),
        qu.CertaintyEquivalent(by_state="plain", **STATES),
        qu.Thompson(**STATES),
        qu.UcrlAcStates((0.0, 2.0 * largest), by_state="any"),
        qu.RandomPolicy(0.7, 20.0 / queue.total_arrival_rate),
    ]


@pytest.mark.parametrize("number", range(12))
def test_engines_agree_on_queues_of_jobs_that_balk(number: int) -> None:
    random = np.random.default_rng([31, number])
    queue = balking_queue(random)
    controller = controllers(queue)[number % 6]
    horizon = 400 / queue.total_arrival_rate
    runs = []
    for kind in (World, Kernel):
        engine = new_engine(kind, queue, controller, horizon=horizon, seed=number, grid=[0.3 * horizon])
        runs.append(left_behind(engine, engine.run()))
    assert differing(*runs) == []


def test_a_job_is_the_same_job_under_every_controller() -> None:
    """Its number, class and time do not depend on who else balked; rows are of those who asked only."""
    queue = qu.load_scenario("lunch-counter").queue
    drawn = []
    for i, source in enumerate(job_sources(queue, Randomness(4, 0), 300.0)):
        for time, *_, join in one_by_one(source, queue):
            if time >= 300.0:
                break
            drawn.append((time, i, join))
    drawn.sort()
    asked = []
    for controller in ("admit-all", "oracle"):
        events = qu.simulate(queue, controller, horizon=300.0, seed=4, log=True).events
        mine = events[events["event"].isin(["admit", "reject", "block"])]
        for row in mine.itertuples():
            time, i, join = drawn[row.job]
            assert (time, queue.class_names[i]) == (row.time, row.job_class)
            assert join < queue.joins[row.in_system, i]
        asked.append(set(mine["job"]))
        assert len(asked[-1]) < len(drawn)
    assert asked[0] != asked[1]


def test_a_class_that_does_not_balk_keeps_its_path() -> None:
    """The uniform numbers are a stream of their own: a probability of 1 is as if nothing had been said."""
    plain = qu.load_scenario("quickstart").queue
    classes = [qu.JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost) for c in plain.classes]
    sure = [
        qu.JobClass(c.name, c.arrival_rate, c.reward, c.holding_cost, balking=qu.GeometricBalking(1.0)) for c in classes
    ]
    runs = [
        qu.simulate(
            qu.Queue(plain.servers, plain.capacity, plain.service_rate, some), "oracle", horizon=500.0, seed=2, log=True
        ).events
        for some in (classes, sure)
    ]
    assert runs[0].equals(runs[1])


def test_requests_and_times_in_state_add_up() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    controller = qu.RandomPolicy(0.6, 40.0)
    engine = new_engine(Kernel, queue, controller, horizon=2000.0, seed=5)
    engine.run()
    for tally in tallies(engine):
        assert tally.requests.shape == (21, 2)
        assert tally.requests.sum(axis=0).tolist() == tally.arrivals.tolist()
        assert np.all(tally.requests[:-1] >= tally.admissions)
        assert tally.requests[-1].tolist() == tally.blocked.tolist()
        assert tally.time_in_state.sum() == pytest.approx(tally.duration)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_requests_by_state_are_poisson_at_their_rates(engine: str) -> None:
    """sum over states and classes of (N - lambda t)^2 / (lambda t) is chi-square; error rate 1e-4, fixed seed."""
    queue = qu.load_scenario("lunch-counter").queue
    seen: list[qu.Tally] = []

    def keep(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            seen.append(tally)

    horizon = 3000.0 if engine == "simpy" else 100_000.0
    qu.simulate(queue, qu.RandomPolicy(0.7, 10.0), horizon=horizon, seed=6, engine=engine, on_review=keep)
    requests = sum(tally.requests for tally in seen)
    mean = sum(tally.time_in_state for tally in seen)[:, None] * queue.rates_by_state
    large = mean > 25.0
    statistic = float(((requests - mean)[large] ** 2 / mean[large]).sum())
    assert large.sum() >= 10
    assert stats.chi2.sf(statistic, large.sum()) > 1e-4
    assert stats.chi2.cdf(statistic, large.sum()) > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_expected_and_gap_regret_agree_in_the_mean(seed: int) -> None:
    """E[expected] = E[gap] - (h(s_0) - E h(s_T)) also where jobs balk: paired over runs, error rate 1e-4."""
    queue = balking_queue(np.random.default_rng([8, seed]))
    best = qu.solve(queue)
    h = np.concatenate([[0.0], -np.cumsum(best.relative_bias)])
    differences = []
    for r in range(200):
        horizon = 30 / queue.total_arrival_rate
        run = qu.simulate(queue, qu.RandomPolicy(0.6, horizon), horizon=horizon, seed=seed, replication=r)
        totals = {kind: float(run.regret(kind)["regret"].iloc[-1]) for kind in ("expected", "gap")}
        differences.append(totals["expected"] - totals["gap"] + h[0] - h[len(run.unfinished)])
    assert stats.ttest_1samp(differences, 0.0).pvalue > 1e-4
