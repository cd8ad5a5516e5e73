"""Jobs that pay different amounts: the same jobs under every controller, engine and event, and accounts that are right.

Each statistical test fails for one seed in a thousand if the program is right.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from generators import any_pay, paper_queue, random_queue, random_system, seeds, with_pays
from hypothesis import given, settings
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.accounts.regret import totals_from_events
from queueing_ucrl.simulation.seeding import PURPOSES, Randomness

ERROR = 1e-3
PAID_AT = {"admission": "admit", "start": "start", "end": "depart"}


def paid(queue: qu.Queue, *laws: qu.Law | None, **more: Any) -> qu.Queue:
    """The queue whose classes pay by these laws."""
    classes = [
        c if law is None else replace(c, reward=law.mean, pays=law, **more)
        for c, law in zip(queue.classes, laws, strict=True)
    ]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes, queue.patience, queue.initial)


# --- the value objects ------------------------------------------------------------------------------------------------


@given(seeds)
@settings(max_examples=60)
def test_the_mean_is_the_reward_of_the_model(seed: int) -> None:
    """What jobs pay in the mean is all that policies, gains and bounds depend on."""
    random = np.random.default_rng(seed)
    queue = random_queue(random)
    other = paid(queue, *(any_pay(random, c.reward) for c in queue.classes))
    alike = [replace(c, reward=law.reward) for c, law in zip(queue.classes, other.classes, strict=True)]
    plain = qu.Queue(queue.servers, queue.capacity, queue.service_rate, alike, queue.patience)
    assert np.array_equal(other.rewards, plain.rewards)
    assert qu.solve(other).gain == qu.solve(plain).gain
    assert other.pays_differ
    assert not plain.pays_differ


def test_a_class_says_what_is_wrong() -> None:
    law = qu.TwoPoint(20.0, 0.2)
    assert qu.JobClass("a", 1.0, pays=law).reward == 20.0
    assert qu.JobClass("a", 1.0, 20.0, pays=law).reward == 20.0  # as `replace` has it
    with pytest.raises(
        ValueError, match=r"class 'a': reward and pays must not both be given: the reward is the mean, 20"
    ):
        qu.JobClass("a", 1.0, 19.0, pays=law)
    with pytest.raises(ValueError, match="class 'a': pays must be a law such as"):
        qu.JobClass("a", 1.0, pays=20.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="class 'a': reward must be"):
        qu.JobClass("a", 1.0)


def test_purposes_of_random_numbers_differ() -> None:
    assert len(set(PURPOSES.values())) == len(PURPOSES)


# --- runs -------------------------------------------------------------------------------------------------------------


def test_amounts_change_nothing_else_in_a_run() -> None:
    """The same jobs, decisions and waits to the last bit as if all paid alike: amounts have a stream of their own."""
    queue = paper_queue()
    one = qu.simulate(queue, "certainty-equivalent", horizon=400.0, seed=3, log=True)
    other = qu.simulate(
        paid(queue, qu.TwoPoint(20.0, 0.2), None), "certainty-equivalent", horizon=400.0, seed=3, log=True
    )
    assert one.events.drop(columns="reward").equals(other.events.drop(columns="reward"))
    basic = one.events["job_class"] == "basic"
    assert one.events["reward"][basic].equals(other.events["reward"][basic])
    gold = other.events[(other.events["event"] == "admit") & ~basic]["reward"]
    assert set(gold.tolist()) == {0.0, 100.0}
    for kind in ("gap", "expected", "pseudo"):
        assert one.regret(kind=kind).equals(other.regret(kind=kind))


@pytest.mark.parametrize("when", PAID_AT)
def test_a_job_pays_its_own_amount_at_its_event(when: str) -> None:
    """Job n of a class pays the n-th number of its stream, whoever else is let in, at the event of its class."""
    law = qu.LogNormal(20.0, 1.5)
    queue = paid(paper_queue(7, 0.3), law, qu.Uniform(5.0, 15.0), reward_at=when)
    queue = qu.Queue(5, 7, 0.3, queue.classes, patience=qu.Exponential(0.2))
    run = qu.simulate(queue, qu.RandomPolicy(0.7, 50.0), horizon=300.0, seed=11, log=True)
    events = run.events
    for i, c in enumerate(queue.classes):
        mine = events[events["job_class"] == c.name]
        numbers = mine[mine["event"].isin(["admit", "reject", "block"])]["job"].tolist()
        drawn = np.empty(len(numbers))
        assert c.pays is not None
        c.pays.stream(Randomness(11, 0).rng(i, "pay")).fill(drawn)
        expected = dict(zip(numbers, drawn.tolist(), strict=True))
        paying = mine[mine["event"] == PAID_AT[when]]
        assert len(paying) > 20
        assert paying["reward"].tolist() == [expected[job] for job in paying["job"]]
        assert mine[mine["event"] != PAID_AT[when]]["reward"].isna().all()


@pytest.mark.parametrize("number", range(12))
def test_both_engines_and_the_log_give_the_same_accounts(number: int) -> None:
    """The world, its compiled twin and a reader of the log: to the last bit, tallies included."""
    random = np.random.default_rng([41, number])
    system = with_pays(random, random_system(random), share=1.0)
    horizon = 300.0 / system.total_arrival_rate
    kept: list[list[bytes]] = []
    runs = []
    for engine in ("simpy", "compiled"):
        tallies: list[bytes] = []
        kept.append(tallies)
        runs.append(
            qu.simulate(
                system,
                Watcher(horizon / 7.0),
                horizon=horizon,
                seed=number,
                log=True,
                engine=engine,
                grid=np.linspace(0.1 * horizon, horizon, 9),
                solver_latency=[0.0, horizon / 31.0][number % 2],
                on_review=lambda tally, plan, tallies=tallies: tallies.append(
                    b"" if tally is None else pickle.dumps(tally)
                ),
            )
        )
    assert len(kept[0]) > 5
    assert kept[0] == kept[1]
    for run in runs:
        again = totals_from_events(run.events, run.ledger.comparator, run.curve.times)
        assert np.array_equal(again["reward"], run.curve.reward)
        assert np.array_equal(run.curve.reward, runs[0].curve.reward)
        for i, name in enumerate(system.class_names):
            mine = run.events[run.events["job_class"] == name]
            assert mine["reward"].sum() == pytest.approx(run.curve.reward[-1, i], rel=1e-12)


class Watcher(qu.Controller):
    """Sees neither rewards nor costs nor those who are rejected; tosses a coin for each state and class."""

    name = "watcher"
    knows_rewards = knows_holding_costs = sees_rejected = False  # type: ignore[assignment]

    def __init__(self, period: float) -> None:
        self.period = period

    def begin(self, knowledge: qu.Knowledge, rng: np.random.Generator) -> Any:
        return WatcherSession(knowledge.rewards.shape, rng, self.period)


class WatcherSession:
    def __init__(self, shape: tuple[int, ...], rng: np.random.Generator, period: float) -> None:
        self.shape, self.rng, self.period = shape, rng, period

    def first(self) -> qu.Plan:
        return self._plan(0.0)

    def review(self, tally: qu.Tally) -> qu.Plan:
        return self._plan(tally.now)

    def _plan(self, now: float) -> qu.Plan:
        return qu.Plan(until=now + self.period, policy=qu.Policy(self.rng.random(self.shape) < 0.7))


@pytest.mark.parametrize("pays", [True, False], ids=["amounts", "all alike"])
@pytest.mark.parametrize("latency", [0.0, 2.5])
def test_tallies_are_what_the_log_says(pays: bool, latency: float) -> None:
    """Amounts, waits, and the time in which each class would have been let in, from the event log alone."""
    queue = paper_queue(9, 0.3)
    classes = [replace(queue.classes[0], reward_at="start"), queue.classes[1]]
    queue = qu.Queue(5, 9, 0.3, classes, patience=qu.Exponential(0.1))
    if pays:
        queue = paid(queue, qu.LogNormal(20.0, 2.0), qu.TwoPoint(10.0, 0.3))
    seen: list[tuple[qu.Tally, qu.Policy]] = []
    policies: list[qu.Policy] = []

    def note(tally: qu.Tally | None, plan: qu.Plan) -> None:
        if tally is not None:
            seen.append((tally, policies[-1]))
        assert plan.policy is not None
        policies.append(plan.policy)

    run = qu.simulate(
        queue, Watcher(20.0), horizon=400.0, seed=5, log=True, on_review=note, solver_latency=latency, grid=[400.0]
    )
    events, begin, largest = run.events, 0.0, np.zeros(2)
    before = policies[0]
    for tally, policy in seen:
        stretch = events[(events["time"] >= begin) & (events["time"] < tally.now)]
        for i, c in enumerate(queue.classes):
            mine = stretch[stretch["job_class"] == c.name]
            amounts = mine["reward"].dropna().to_numpy()
            assert tally.paid_count[i] == amounts.size
            assert tally.paid_sum[i] == pytest.approx(amounts.sum())
            assert tally.paid_square_sum[i] == pytest.approx((amounts * amounts).sum())
            largest[i] = max(largest[i], amounts.max(initial=0.0))
            assert tally.most_paid[i] == largest[i]
            over = mine[(mine["event"] == "abandon") | ((mine["event"] == "start") & (mine["wait"] > 0.0))]
            assert tally.wait_count[i] == len(over)
            assert tally.wait_sum[i] == pytest.approx(over["wait"].sum())
            assert tally.wait_cost_sum[i] == pytest.approx(over["cost"].sum())
            assert tally.arrivals[i] == (mine["event"] == "admit").sum()
        assert np.isnan(tally.gap_sum)
        open_time, change = np.zeros(2), min(begin + latency, tally.now)
        for table, start, end in ((before, begin, change), (policy, change, tally.now)):
            if end > start:
                open_time += table.admits.T @ time_in_states(events, queue.capacity, start, end)[:-1]
        np.testing.assert_allclose(tally.open_time, open_time, atol=1e-9)
        begin, before = tally.now, policy
    assert len(seen) == 19


def time_in_states(events: Any, capacity: int, start: float, end: float) -> np.ndarray:
    """How long there were s = 0 .. S jobs in the system between two times, from the rows that change their number."""
    change = events["event"].map({"admit": 1, "depart": -1, "abandon": -1}).astype(float).fillna(0.0).to_numpy()
    moves = change != 0.0
    times, states = events["time"].to_numpy()[moves], np.cumsum(change[moves]).astype(int)
    edges = np.concatenate([[0.0], times, [np.inf]])
    lengths = np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], start), 0.0, None)
    return np.bincount(np.concatenate([[0], states]), weights=lengths, minlength=capacity + 1)


def test_realised_regret_has_the_mean_of_the_expected_one() -> None:
    """E[realised - expected] is what jobs still in the system owe: with free waits, and paid at admission, 0."""
    classes = [
        qu.JobClass("a", 1.0, pays=qu.TwoPoint(20.0, 0.2)),
        qu.JobClass("b", 1.0, pays=qu.LogNormal(10.0, 1.0)),
    ]
    queue = qu.Queue(5, 20, 0.3, classes)
    study = qu.replicate(queue, ["oracle"], horizon=200.0, replications=400, seed=2, grid_points=2, jobs=1)
    realised, expected = (study.samples(0, kind)[:, -1] for kind in ("realised", "expected"))
    difference = realised - expected
    assert difference.std() > 100.0
    assert stats.ttest_1samp(difference, 0.0).pvalue > ERROR
    # given who is let in, amounts are independent of them: the variance of the difference is what their laws say
    admitted = np.array([[c["admitted"] for c in r.summary["classes"]] for r in study.results[0]], dtype=float)
    variance = float((admitted * [classes[0].pays.variance, classes[1].pays.variance]).sum(axis=1).mean())  # type: ignore[union-attr]
    ratio = float((difference**2).mean() / variance)
    assert abs(ratio - 1.0) < 5.0 * np.sqrt(2.0 / 400)
