"""Regret, four accounts: from the log and from the tallies the same numbers, and parts that sum to the whole."""

import numpy as np
import pandas as pd
import pytest
from generators import paper_queue, random_queue

import queueing_ucrl as qu

KINDS = ("realised", "expected", "gap", "pseudo")
ENGINES = ["compiled", "simpy"]


def all_costs():
    """Every kind of cost, so that sums in another order or by another way would show in the last digit."""
    bends = qu.PiecewiseLinear([(0.2, 0.0), (1.0, 2.0), (2.0, 5.0)])
    costs = [qu.Linear(0.31), qu.Power(0.4, 1.3), qu.Saturating(3.0, 0.7), qu.Deadline(2.0, 0.5), bends]
    classes = [qu.JobClass(f"class {i}", 0.3 + 0.1 * i, 9.0 - 1.3 * i, cost) for i, cost in enumerate(costs)]
    return qu.Queue(2, 9, 1.0, classes)


def wrong_decisions(queue, rate):
    return [
        qu.UcrlAc((rate / 2, 2 * rate), 3.0 / queue.service_rate),
        qu.RandomPolicy(0.6, period=7.0 / queue.service_rate),
        qu.AdmitAll(),
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("latency", [0.0, 1.7])
def test_the_log_gives_the_same_numbers_as_the_tallies_at_any_times(engine, latency):
    """To the last bit, at times nobody else knows about: two runs, one that noted them and one that kept its log."""
    queue = all_costs()
    times = np.sort(np.random.default_rng(3).uniform(0, 500.0, 37))
    for controller in wrong_decisions(queue, queue.total_arrival_rate):
        settings = {"horizon": 500.0, "seed": 14, "engine": engine, "solver_latency": latency}
        noted = qu.simulate(queue, controller, grid=times, **settings)
        logged = qu.simulate(queue, controller, grid=[250.0], log=True, **settings)
        for kind in KINDS:
            from_tallies = noted.regret(kind).set_index("time")["regret"]
            from_log = logged.regret(kind, times=[*times, 500.0]).set_index("time")["regret"]
            assert from_log.tolist() == from_tallies.tolist()
        for by in ("class", "cause"):
            pd.testing.assert_frame_equal(
                logged.regret("gap", times=[*times, 500.0], by=by), noted.regret("gap", by=by), check_exact=True
            )


def test_each_account_by_its_definition_from_the_log():
    """Row by row from the log, with none of the package's accounting."""
    queue = all_costs()
    for controller in wrong_decisions(queue, queue.total_arrival_rate):
        run = qu.simulate(queue, controller, horizon=300.0, seed=15, log=True)
        best = qu.solve(queue)
        events, total = run.events, {}
        admitted, rejected = (events[events["event"] == kind] for kind in ("admit", "reject"))
        total["expected"] = 300.0 * best.gain - admitted["expected_reward"].sum()
        total["realised"] = 300.0 * best.gain - admitted["reward"].sum() + events["cost"].sum()
        gap = 0.0
        for rows, decision in ((admitted, True), (rejected, False)):
            for s, name in rows[["in_system", "job_class"]].itertuples(index=False):
                i = queue.class_names.index(name)
                if best.policy.admits[s, i] != decision:
                    gap += abs(queue.rewards[s, i] - best.relative_bias[s])
        total["gap"] = gap
        edges = [*(segment.start for segment in run.ledger.segments), 300.0]
        total["pseudo"] = sum(
            (best.gain - qu.evaluate(queue, segment.policy).gain) * (end - start)
            for segment, start, end in zip(run.ledger.segments, edges, edges[1:], strict=False)
        )
        for kind, value in total.items():
            assert run.regret(kind)["regret"].iloc[-1] == pytest.approx(value, rel=1e-10), kind
        assert gap > 0


def test_an_event_counts_only_for_later_times():
    run = qu.simulate(paper_queue(), "admit-all", horizon=50.0, seed=1, log=True)
    first = run.events["time"].iloc[0]
    at, after = run.regret("expected", times=[first, np.nextafter(first, np.inf)])["regret"]
    assert at == first * run.best.gain
    assert after == pytest.approx(at - run.events["expected_reward"].iloc[0], rel=1e-12)


def test_times_may_come_in_any_order_and_must_lie_in_the_run():
    run = qu.simulate(paper_queue(), "admit-all", horizon=50.0, seed=1, log=True)
    ordered = run.regret("expected", times=[0.0, 10.0, 30.0, 50.0])
    shuffled = run.regret("expected", times=[30.0, 50.0, 0.0, 10.0, 30.0])
    pd.testing.assert_frame_equal(ordered, shuffled)
    assert ordered["regret"].iloc[0] == 0.0
    for times in ([51.0], [-1.0], [10.0, float("nan")]):
        with pytest.raises(ValueError, match="times must lie between 0 and the horizon 50"):
            run.regret("expected", times=times)


@pytest.mark.parametrize("seed", range(6))
def test_classes_and_causes_sum_to_the_total(seed):
    queue = random_queue(np.random.default_rng(seed), patience=0.0)
    rate = queue.total_arrival_rate
    for controller in wrong_decisions(queue, rate):
        run = qu.simulate(queue, controller, horizon=400.0 / rate, seed=seed)
        total = run.regret("gap")["regret"]
        for by in ("class", "cause"):
            parts = run.regret("gap", by=by).drop(columns="time")
            np.testing.assert_allclose(parts.sum(axis=1), total, rtol=1e-12, atol=1e-9)
            assert (parts >= -1e-9).all(axis=None)
    assert list(run.regret("gap", by="class").columns) == ["time", *queue.class_names]
    assert list(run.regret("gap", by="cause").columns) == ["time", "wrongly_admitted", "wrongly_rejected"]


def test_causes_are_what_they_say():
    """Who lets all in never rejects wrongly, who lets nobody in never admits wrongly."""
    queue = paper_queue()
    admit_all = qu.simulate(queue, "admit-all", horizon=500.0, seed=2).regret("gap", by="cause").iloc[-1]
    reject_all = (
        qu.simulate(queue, qu.TrunkReservation((0, 0)), horizon=500.0, seed=2).regret("gap", by="cause").iloc[-1]
    )
    assert admit_all["wrongly_rejected"] == reject_all["wrongly_admitted"] == 0.0
    assert admit_all["wrongly_admitted"] > 0
    assert reject_all["wrongly_rejected"] > 0


@pytest.mark.parametrize("latency", [0.0, 3.0])
def test_out_bad_and_good_sum_to_the_expected_regret(latency):
    for seed in range(10):
        run = qu.simulate(paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0), horizon=1500.0, seed=seed, solver_latency=latency)
        parts = run.decomposition()
        assert sum(parts.values()) == pytest.approx(run.regret("expected")["regret"].iloc[-1], rel=1e-9)
        first = run.episodes.iloc[0]
        assert parts["out"] == pytest.approx(10.0 * run.best.gain - first["expected_reward"]) or not (
            run.episodes["truth_inside"].all()
        )


def test_each_part_holds_the_episodes_that_section_5_puts_there():
    """out: the truth outside the set, and the first episode; bad: fewer than half the expected arrivals in the episode
    before; good: the rest. A queue with so few arrivals that all of it happens.
    """
    queue = qu.Queue(1, 4, 1.0, [qu.JobClass("a", 0.6, 3.0, qu.Linear(0.5)), qu.JobClass("b", 0.4, 1.0)])
    rate = queue.total_arrival_rate
    seen = {"out": 0, "bad": 0, "good": 0}
    for seed in range(60):
        run = qu.simulate(queue, qu.UcrlAc((0.9, 1.1), 1.5), horizon=48.0, seed=seed)
        rows = run.episode_rows()
        parts = dict.fromkeys(seen, 0.0)
        for k, row in enumerate(rows):
            before = rows[k - 1]
            few = before["arrivals"] < 0.5 * rate * (before["end"] - before["start"])
            part = "out" if k == 0 or not row["truth_inside"] else "bad" if few else "good"
            seen[part] += k > 0
            parts[part] += (row["end"] - row["start"]) * run.best.gain - row["expected_reward"]
        assert run.decomposition() == pytest.approx(parts, rel=1e-9, abs=1e-9)
    assert min(seen.values()) > 0


@pytest.mark.parametrize("kind", ["realised", "expected", "pseudo"])
def test_only_the_gap_account_divides(kind):
    run = qu.simulate(paper_queue(), "admit-all", horizon=20.0)
    with pytest.raises(ValueError, match="only the gap account divides"):
        run.regret(kind, by="class")


def test_wrong_words_are_told():
    run = qu.simulate(paper_queue(), "admit-all", horizon=20.0)
    with pytest.raises(ValueError, match="kind must be one of realised, expected, gap, pseudo, got 'total'"):
        run.regret("total")
    with pytest.raises(ValueError, match="by must be class or cause, got 'state'"):
        run.regret("gap", by="state")
    with pytest.raises(ValueError, match="kept no event log"):
        run.regret("gap", times=[1.0])
    for scale, points, message in (("square", 5, "scale must be log or linear"), ("log", 0, "points must be at least")):
        with pytest.raises(ValueError, match=message):
            qu.time_grid(10.0, points, scale)


def test_the_grid_ends_at_the_horizon():
    assert qu.time_grid(10.0, 5, "linear").tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    log = qu.time_grid(1e6, 9)
    assert log[-1] == 1e6
    np.testing.assert_allclose(np.diff(np.log(log)), np.log(1e4) / 8, rtol=1e-9)
    assert qu.time_grid(7.0, 1).tolist() == [7.0]
    run = qu.simulate(paper_queue(), "admit-all", horizon=100.0, grid=[50.0, 20.0, 20.0])
    assert run.regret()["time"].tolist() == [20.0, 50.0, 100.0]
