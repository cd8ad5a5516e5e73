"""An account of one's own: from the counts of decisions, in runs, logs, studies and folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from both_engines import on_both, studies_agree

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.simulation import ledger

ACCOUNTS = ("turned away", "mistakes", "own gap")


class TurnedAway:
    """What those who were not let in would have paid."""

    name = "turned away"

    def __call__(self, counts, comparator):
        lost = counts.rejected.sum(axis=1) + counts.blocked
        return lost @ comparator.system.job_rewards


class Mistakes:
    """How many decisions were not the best policy's."""

    name = "mistakes"

    def __call__(self, counts, comparator):
        best = comparator.best.policy.admits
        return np.where(best, counts.rejected, counts.admitted).sum(axis=(1, 2))


@dataclass(frozen=True)
class OwnGap:
    """The gap account, as a stranger would write it: what each mistake costs, times how often it was made."""

    name: str = "own gap"

    def __call__(self, counts, comparator):
        best = comparator.best
        loss = np.abs(comparator.system.rewards - best.relative_bias[:, None])
        wrong = np.where(best.policy.admits, counts.rejected, counts.admitted)
        return (wrong * loss).sum(axis=(1, 2))


QUEUE = qu.Queue(
    servers=2,
    capacity=8,
    service_rate=0.5,
    classes=[qu.JobClass("gold", 0.8, 20.0, qu.Linear(0.3)), qu.JobClass("basic", 1.6, 4.0, qu.Linear(0.3))],
)
OWN = [TurnedAway(), Mistakes(), OwnGap()]


@pytest.mark.parametrize(
    "controller", ["admit-all", "thompson", qu.RandomPolicy(0.7, 20.0)], ids=["admit-all", "thompson", "random"]
)
def test_accounts_stand_beside_the_four(controller, monkeypatch):
    run = on_both(QUEUE, controller, horizon=400.0, seed=3, accounts=OWN)
    slow = qu.simulate(QUEUE, controller, horizon=400.0, seed=3, accounts=OWN, engine="simpy")
    events, times = run.events, run.regret()["time"]
    for name in ACCOUNTS:
        pd.testing.assert_frame_equal(run.regret(name), slow.regret(name), check_exact=True)
        pd.testing.assert_frame_equal(run.regret(name), run.regret(name, times=times), check_exact=True)
    away = events[events["event"].isin(["reject", "block"])]["job_class"].astype(str)
    assert run.regret("turned away")["regret"].iloc[-1] == away.map({"gold": 20.0, "basic": 4.0}).sum()
    assert run.regret("own gap")["regret"].to_numpy() == pytest.approx(
        run.regret("gap")["regret"].to_numpy(), rel=1e-12
    )
    assert run.regret("mistakes")["regret"].iloc[-1] > 0
    monkeypatch.setattr(ledger, "NOTED", 3 * QUEUE.capacity * 2)  # counts are turned into accounts three at a time
    again = qu.simulate(QUEUE, controller, horizon=400.0, seed=3, accounts=OWN)
    for name in ACCOUNTS:
        pd.testing.assert_frame_equal(run.regret(name), again.regret(name), check_exact=True)


def test_studies_have_them_too():
    study = studies_agree(QUEUE, ["thompson", "admit-all"], ["gap", *ACCOUNTS], horizon=200.0, accounts=OWN)
    pd.testing.assert_frame_equal(study.regret("own gap"), study.regret("gap"), rtol=1e-12)
    run = qu.simulate(QUEUE, "admit-all", horizon=200.0, accounts=OWN, replication=2)
    assert study.samples(1, "turned away")[2].tolist() == run.regret("turned away")["regret"].tolist()
    assert study.differences("thompson", kind="mistakes")["mean"].iloc[-1] > 0
    assert list(study.curves().columns[-3:]) == list(ACCOUNTS)
    with pytest.raises(ValueError, match="kind must be one of realised, expected, gap, pseudo, turned away, mistakes"):
        study.regret("turned")


def test_a_folder_keeps_them_and_reads_them_again(tmp_path):
    scenario = qu.load_scenario(Path(__file__).parents[2] / "scenarios" / "quickstart.toml")
    from queueing_ucrl.experiments.campaign import choose_controllers, with_run

    small = with_run(choose_controllers(scenario, ["thompson", "admit-all"]), horizon=100.0, replications=2)
    first, _ = run_scenario(small, tmp_path / "out", accounts=OWN, jobs=1)
    again, _ = run_scenario(small, tmp_path / "out", accounts=OWN, jobs=1)
    for name in ACCOUNTS:
        pd.testing.assert_frame_equal(first.regret(name), again.regret(name), check_exact=True)
    tidy = pd.read_parquet(tmp_path / "out" / "regret.parquet")
    assert set(tidy["account"]) == {"realised", "expected", "gap", "pseudo", *ACCOUNTS}
    assert set(pd.read_parquet(tmp_path / "out" / "differences.parquet")["account"]) >= set(ACCOUNTS)
    assert set(pd.read_parquet(tmp_path / "out" / "curves.parquet").columns) >= set(ACCOUNTS)
    with pytest.raises(qu.FolderError, match=r"belongs to another study.*\n *accounts: \[.*\] there, null now"):
        run_scenario(small, tmp_path / "out", jobs=1)


def test_one_that_needs_no_optimum_works_where_there_is_none():
    jobs = [qu.JobClass(c.name, c.arrival_rate, c.reward, service=qu.Deterministic(2.0)) for c in QUEUE.classes]
    system = qu.System(2, 8, jobs)
    run = on_both(system, "admit-all", horizon=200.0, accounts=[TurnedAway()])
    assert run.no_optimum
    assert run.regret("turned away")["regret"].iloc[-1] > 0
    with pytest.raises(
        ValueError, match=r"account 'mistakes' fails .*; there is no comparator\.best: class 'gold': its"
    ):
        qu.simulate(system, "admit-all", horizon=200.0, accounts=OWN)
    study = studies_agree(system, ["admit-all"], ["turned away"], horizon=200.0, accounts=[TurnedAway()])
    with pytest.raises(ValueError, match="no regret"):
        study.regret("gap")


# ---- mistakes


class Named:
    def __init__(self, name, function=lambda counts, comparator: counts.times):
        self.name, self.function = name, function

    def __call__(self, counts, comparator):
        return self.function(counts, comparator)


def both(account):
    """The same account in a run and in a study."""
    yield lambda: qu.simulate(QUEUE, "oracle", horizon=10.0, accounts=account)
    yield lambda: qu.replicate(QUEUE, ["oracle"], horizon=10.0, replications=1, jobs=1, accounts=account)


@pytest.mark.parametrize("name", ["gap", "pseudo", "reward", "cost", "expected_reward", "realised_reward", "time"])
def test_names_that_are_taken_are_refused(name):
    for ask in both([Named(name)]):
        with pytest.raises(ValueError, match=f"account '{name}': there is another of that name"):
            ask()


def test_two_of_a_name_are_refused():
    for ask in both([Named("x"), Named("x")]):
        with pytest.raises(ValueError, match="account 'x': there is another of that name"):
            ask()


@pytest.mark.parametrize("account", [lambda counts, comparator: counts.times, TurnedAway, "gap", Named(3)])
def test_what_is_no_account_is_refused(account):
    for ask in both([account]):
        with pytest.raises(TypeError, match="an account must be an object with a `name` and __call__"):
            ask()


def test_numbers_that_are_not_one_a_time_are_refused_before_the_run():
    class Never(qu.AdmitAll):
        def begin(self, knowledge, rng):
            raise AssertionError("it must not begin")

    wrong = Named("x", lambda counts, comparator: counts.blocked)
    with pytest.raises(ValueError, match=r"account 'x' .*must give one number a time, \(1,\), got \(1, 2\)"):
        qu.simulate(QUEUE, Never(), horizon=10.0, accounts=[wrong])
    for ask in both([wrong]):
        with pytest.raises(ValueError, match=r"account 'x' .*must give one number a time"):
            ask()


def test_an_account_that_is_not_in_a_list_is_refused():
    for ask in both(TurnedAway()):
        with pytest.raises(TypeError, match="accounts must be a list"):
            ask()


def test_one_that_cannot_travel_is_told():
    local = Named("x", lambda counts, comparator: counts.times)
    with pytest.raises(ValueError, match="cannot be sent to worker processes"):
        qu.replicate(QUEUE, ["oracle"], horizon=10.0, replications=2, jobs=2, accounts=[local])
