"""UCRL-AC in a run: its clock, its solvers, slow answers, and the corners of its domain."""

import math
from itertools import pairwise

import numpy as np
import pytest
from generators import paper_queue, random_queue, two_class_queue

import queueing_ucrl as qu

ENGINES = ["compiled", "simpy"]


def ucrl(bounds=(1.0, 4.0), first=10.0, **options):
    return qu.UcrlAc(bounds, first, **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_episodes_double(engine):
    """T_k = 2^(k-1) t_1; a solve at the start of each."""
    run = qu.simulate(paper_queue(), ucrl(), horizon=500.0, seed=1, engine=engine)
    assert run.episodes["start"].tolist() == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0]
    assert run.episodes["end"].tolist() == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 500.0]
    assert run.solves["time"].tolist() == run.episodes["start"].tolist()


def test_the_first_episode_is_optimistic_about_everything():
    """Lambda~ = Lambda_max, all of it of the class that pays best in the state."""
    queue = paper_queue()
    run = qu.simulate(queue, ucrl(), horizon=5.0, seed=1)
    (row,) = run.episode_rows()
    assert row["optimistic_rate"] == 4.0
    assert row["optimistic_shares"] == [{"from_state": 0, "shares": [1.0, 0.0]}]
    model = qu.AdmissionModel(np.tile([4.0, 0.0], (20, 1)), queue.rewards, queue.service_rates)
    assert run.ledger.episodes[0].policy == qu.solve(model).policy
    assert run.solves["gain"].tolist() == [qu.solve(model).gain]


def test_the_episode_table_tells_what_each_policy_is_truly_worth():
    queue = paper_queue()
    run = qu.simulate(queue, ucrl(), horizon=3000.0, seed=2)
    for episode, gain, levels in zip(
        run.ledger.episodes, run.episodes["gain"], run.episodes["control_levels"], strict=True
    ):
        assert gain == qu.evaluate(queue, episode.policy).gain <= run.best.gain + 1e-12
        assert tuple(levels) == episode.policy.control_levels


@pytest.mark.parametrize("seed", [1, 2])
def test_every_solver_gives_the_same_policies(seed):
    """The confidence sets depend on the arrivals only, so the models are the same. vi may stop within eps_k =
    R_max / t_k of the best gain, and does no worse.
    """
    random = np.random.default_rng(seed)
    for queue in (paper_queue(), random_queue(random, patience=0.0), random_queue(random, patience=0.0)):
        rate = queue.total_arrival_rate
        first = 2.0 / queue.service_rate
        runs = {
            solver: qu.simulate(queue, ucrl((rate / 2, 2 * rate), first, solver=solver), horizon=130 * first, seed=seed)
            for solver in ("pi-b", "pi", "vi", "vi-ae", "lp")
        }
        reference = runs["pi-b"]
        policies = [episode.policy for episode in reference.ledger.episodes]
        for solver in ("pi", "vi-ae", "lp"):
            assert [episode.policy for episode in runs[solver].ledger.episodes] == policies
            assert set(runs[solver].solves["method"]) == {solver}
        lengths = [first, *(first * 2 ** (k - 2) for k in range(2, len(policies) + 1))]
        lost = reference.solves["gain"].to_numpy() - runs["vi"].solves["gain"].to_numpy()
        assert (lost <= queue.max_reward / np.array(lengths) + 1e-9).all()
        assert (lost >= -1e-9).all()
        for run in runs.values():
            np.testing.assert_array_equal(run.episodes["optimistic_rate"], reference.episodes["optimistic_rate"])


# --- slow answers ----------------------------------------------------------------------------------------------------


class Switch(qu.Controller):
    """All get in; from the answer to the review at time 10 on, nobody."""

    name = "switch"

    def begin(self, knowledge, rng):
        class Session:
            def first(self):
                return qu.Plan(until=10.0, policy=qu.Policy.admit_all(knowledge.capacity, knowledge.class_count))

            def review(self, tally):
                return qu.Plan(policy=qu.Policy(np.zeros((knowledge.capacity, knowledge.class_count), dtype=bool)))

        return Session()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("latency", [0.0, 4.0])
def test_the_old_policy_holds_until_the_answer(engine, latency):
    run = qu.simulate(
        two_class_queue(4, 30, 2.0), Switch(), horizon=20.0, seed=4, engine=engine, solver_latency=latency, log=True
    )
    arrivals = run.events[run.events["event"].isin(["admit", "reject"])]
    before = arrivals["time"] < 10.0 + latency
    assert (arrivals["event"] == np.where(before, "admit", "reject")).all()
    assert arrivals["time"].between(10.0, 10.0 + latency).any() == (latency > 0)
    assert [segment.start for segment in run.ledger.segments] == [0.0, 10.0 + latency]
    assert run.episodes["start"].tolist() == [0.0, 10.0]
    review = run.events[run.events["event"] == "review"]
    assert review["time"].tolist() == [10.0]
    # the pseudo account follows the policies in force, not the reviews
    gains = [qu.evaluate(run.queue, segment.policy).gain for segment in run.ledger.segments]
    assert gains[1] == 0.0
    expected = (run.best.gain - gains[0]) * (10.0 + latency) + run.best.gain * (10.0 - latency)
    assert run.regret("pseudo")["regret"].iloc[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_that_takes_longer_than_an_episode_delays_the_next_review(engine):
    """t_1 = 4, latency 7. The answer to the review at 4 comes at 11, past T_2 = 8: the next review is then and there,
    its episode ends at 16; that answer comes at 18, past 16. From 32 on episodes are longer than answers take.
    """
    run = qu.simulate(
        two_class_queue(2, 6, 1.0), ucrl((1.0, 4.0), 4.0), horizon=100.0, seed=5, engine=engine, solver_latency=7.0
    )
    assert run.episodes["start"].tolist() == [0.0, 4.0, 11.0, 18.0, 32.0, 64.0]
    assert run.solves["time"].tolist() == [0.0, 11.0, 18.0, 25.0, 39.0, 71.0]
    assert run.episodes["truth_inside"].all()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_that_comes_after_the_horizon_changes_nothing(engine):
    run = qu.simulate(paper_queue(), ucrl(), horizon=30.0, seed=5, engine=engine, solver_latency=100.0)
    assert run.episodes["start"].tolist() == [0.0, 10.0]
    assert len(run.solves) == len(run.ledger.segments) == 1


# --- the corners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [1.0, 3.3333333333333335])
def test_a_first_episode_of_at_most_one_mean_service_is_refused(first):
    """delta_1 = 1 / (mu t_1) must be below 1."""
    with pytest.raises(ValueError, match=r"first_episode must be longer than 1 / service_rate = 3.33333, got"):
        qu.simulate(paper_queue(service_rate=0.3), ucrl(first=first), horizon=100.0)
    qu.simulate(paper_queue(service_rate=0.3), ucrl(first=3.4), horizon=100.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arrival_rate_bounds": (4.0, 1.0)}, "0 <= low <= high"),
        ({"arrival_rate_bounds": (-1.0, 1.0)}, "0 <= low <= high"),
        ({"arrival_rate_bounds": (0.0, 0.0)}, "high positive"),
        ({"arrival_rate_bounds": (1.0, math.inf)}, "0 <= low <= high"),
        ({"arrival_rate_bounds": (1.0, math.nan)}, "0 <= low <= high"),
        ({"arrival_rate_bounds": (1.0,)}, "two numbers"),
        ({"first_episode": 0.0}, "first_episode must be a positive number"),
        ({"first_episode": math.nan}, "first_episode must be a positive number"),
        ({"solver": "magic"}, "solver must be one of pi-b, pi, vi, vi-ae, lp"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        qu.UcrlAc(**{"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0, **options})


@pytest.mark.parametrize(("bounds", "expected"), [((2.5, 4.0), 2.5), ((0.5, 1.5), 1.5)])
def test_bounds_that_exclude_the_truth_are_allowed_with_a_warning(bounds, expected):
    with pytest.warns(qu.GuaranteeWarning, match=r"total arrival rate 2 is outside .* guarantee is void"):
        run = qu.simulate(paper_queue(), ucrl(bounds), horizon=200_000.0, seed=6)
    assert any("guarantee is void" in caution for caution in run.cautions)
    assert not run.episodes["truth_inside"].any()
    rates = run.episodes[["rate_low", "optimistic_rate"]]
    assert rates.stack().between(*bounds).all()
    assert (rates["rate_low"] <= rates["optimistic_rate"]).all()
    assert rates["optimistic_rate"].iloc[-1] == pytest.approx(expected, rel=0.1)  # as near the truth as it may
    assert run.decomposition()["out"] == pytest.approx(run.regret("expected")["regret"].iloc[-1], rel=1e-9)


def test_a_lower_bound_of_zero_learns_the_shares_only():
    with pytest.warns(qu.GuaranteeWarning, match="the rate is never learned, only the classes' shares"):
        run = qu.simulate(paper_queue(), ucrl((0.0, 4.0)), horizon=5000.0, seed=7)
    assert (run.episodes["optimistic_rate"] == 4.0).all()
    assert (run.episodes["rate_low"] == 0.0).all()
    assert run.episodes["truth_inside"].all()
    assert run.episodes["share_radius"].iloc[-1] < 0.2
    assert np.isfinite(run.episodes["rate_estimate"].iloc[1:]).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("horizon", [0.01, 9.0, 10.0])
def test_a_horizon_that_ends_with_or_before_the_first_episode(engine, horizon):
    run = qu.simulate(paper_queue(), ucrl(), horizon=horizon, seed=8, engine=engine, log=True)
    assert run.episodes[["start", "end"]].to_numpy().tolist() == [[0.0, horizon]]
    assert len(run.solves) == 1
    assert not (run.events["event"] == "review").any()
    expected = run.regret("expected")["regret"].iloc[-1]
    assert run.decomposition() == {"out": pytest.approx(expected), "bad": 0.0, "good": 0.0}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_episode_without_arrivals_teaches_nothing(engine):
    """Then Lambda~ = Lambda_max; the shares keep what was seen before, and with nothing seen all is possible."""
    queue = qu.Queue(1, 4, 1.0, [qu.JobClass("a", 0.05, 3.0), qu.JobClass("b", 0.05, 1.0, qu.Linear(0.1))])
    blank = later = 0
    for replication in range(20):
        run = qu.simulate(queue, ucrl((0.05, 0.5), 3.0), horizon=48.0, seed=9, replication=replication, engine=engine)
        rows = run.episode_rows()
        for before, row in pairwise(rows):
            if before["arrivals"] == 0:
                assert row["optimistic_rate"] == 0.5
                assert math.isnan(row["rate_estimate"])
                seen = sum(r["arrivals"] for r in rows[: row["episode"] - 1])
                if seen == 0:
                    blank += 1
                    assert row["optimistic_shares"] == [{"from_state": 0, "shares": [1.0, 0.0]}]
                else:
                    later += 1
                    assert sum(row["share_estimates"]) == pytest.approx(1.0)
            else:
                assert math.isfinite(row["rate_estimate"])
    assert blank > 0
    assert later > 0


CORNERS = {
    "one class": qu.Queue(2, 6, 1.0, [qu.JobClass("a", 2.5, 3.0, qu.Linear(0.05))]),
    "no waiting room": qu.Queue(4, 4, 1.0, [qu.JobClass("a", 2.0, 9.0, qu.Linear(1.0)), qu.JobClass("b", 3.0, 1.0)]),
    "more servers than places": qu.Queue(
        6, 3, 1.0, [qu.JobClass("a", 2.0, 9.0, qu.Linear(1.0)), qu.JobClass("b", 3.0, 1.0)]
    ),
    "one place": qu.Queue(1, 1, 1.0, [qu.JobClass("a", 0.5, 9.0, qu.Linear(1.0)), qu.JobClass("b", 2.0, 1.0)]),
    "one place, two servers, one class": qu.Queue(2, 1, 1.0, [qu.JobClass("a", 0.5, 9.0)]),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("queue", CORNERS.values(), ids=CORNERS)
def test_small_shapes(queue, engine):
    rate = queue.total_arrival_rate
    run = qu.simulate(queue, ucrl((rate / 2, rate * 2), 3.0), horizon=400.0, seed=10, engine=engine, log=True)
    assert run.episodes["truth_inside"].all()
    assert (run.solves["gain"] >= run.best.gain - 1e-9).all()
    started = run.events[run.events["event"] == "start"]
    if queue.servers >= queue.capacity:  # nobody ever waits, so nothing is left to chance in the accounts
        assert run.events["in_system"].max() == queue.capacity
        assert (started["wait"] == 0).all()
        assert (started["cost"] == 0).all()
        assert run.unfinished["state"].isin(["in service"]).all()
        realised, expected = (run.regret(kind)["regret"] for kind in ("realised", "expected"))
        np.testing.assert_allclose(realised, expected, rtol=1e-12, atol=1e-9)
    else:
        assert (started["wait"] > 0).any()
    if len(queue.classes) == 1:
        assert run.episodes["share_estimates"].iloc[1] == [1.0]
    regret = run.regret("gap")["regret"].to_numpy()
    assert (np.diff(regret) >= 0).all()


def test_where_all_should_be_admitted_and_are_there_is_no_gap():
    run = qu.simulate(CORNERS["one place, two servers, one class"], ucrl((0.25, 1.0), 3.0), horizon=400.0, seed=10)
    assert run.regret("gap")["regret"].iloc[-1] == 0.0
    assert run.regret("pseudo")["regret"].iloc[-1] == pytest.approx(0.0, abs=1e-9)
