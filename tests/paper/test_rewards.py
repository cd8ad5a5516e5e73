"""`reproduce rewards` at a tiny scale: shares, intervals and paired differences against computations of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import comb, log

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.paper import rewards
from queueing_ucrl.paper.work import QUEUES

HORIZON, COUNT = 400.0, 3
FEWER = 2  # a third of the trajectories, two at least
LEARNERS = {name: rewards.LEARNERS[name] for name in ("plain", "ucb", "rewards known")}
UNSEEN = {name: rewards.UNSEEN[name] for name in ("all is known and seen", "rejected arrivals unseen", rewards.BLIND)}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """(rows by study, the page) of a tiny run."""
    out = tmp_path_factory.mktemp("rewards") / "out"
    arguments = ["reproduce", "rewards", "--horizon", str(HORIZON), "--replications", str(COUNT), "--jobs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewards, "LEARNERS", LEARNERS)
        patch.setattr(rewards, "UNSEEN", UNSEEN)
        result = CliRunner().invoke(app, [*arguments, "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    frame = pd.DataFrame(json.loads(result.stdout)["results"]["rewards"]["rows"])
    return {name: frame[frame["study"] == name] for name in ("rewards", "coverage", "unseen")}, out


def paper_queue(capacity: int, rate: float) -> qu.Queue:
    return qu.load_scenario(f"paper-s{capacity}-mu{rate}").queue


def all_or_nothing(queue: qu.Queue) -> qu.Queue:
    classes = [replace(c, pays=qu.TwoPoint(c.reward, 0.2)) for c in queue.classes]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes)


def runs_of(queue: qu.Queue, controller: qu.Controller, count: int = COUNT) -> list[qu.Run]:
    return [qu.simulate(queue, controller, horizon=HORIZON, seed=1, replication=k) for k in range(count)]


def finals(runs: list[qu.Run]) -> np.ndarray:
    return np.array([run.regret("gap")["regret"].iloc[-1] for run in runs])


def half_of_student(samples: np.ndarray) -> float:
    return float(stats.t.ppf(0.975, len(samples) - 1) * samples.std(ddof=1) / np.sqrt(len(samples)))


def row_of(frame: pd.DataFrame, capacity: int, rate: float, learner: str) -> dict:
    mine = (frame["capacity"] == capacity) & (frame["service_rate"] == rate) & (frame["learner"] == learner)
    (row,) = frame[mine].to_dict("records")
    return row


@given(st.integers(1, 80), st.data())
@settings(max_examples=40, deadline=None)
def test_the_interval_of_a_share_is_clopper_and_pearsons(total: int, data: st.DataObject) -> None:
    """Where exact binomial sums, as fractions, leave 2.5 % on either side: to 1e-9 of the bounds."""
    count = data.draw(st.integers(0, total))
    low, high = rewards.share_interval(count, total)
    assert 0.0 <= low <= count / total <= high <= 1.0

    def at_most(k: int, share: float) -> float:
        p = Fraction(share)
        return float(sum(comb(total, j) * p**j * (1 - p) ** (total - j) for j in range(k + 1)))

    assert low == 0.0 if count == 0 else 1.0 - at_most(count - 1, low) == pytest.approx(0.025, rel=1e-6)
    assert high == 1.0 if count == total else at_most(count, high) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize(("capacity", "rate"), [(20, 0.3), (50, 0.5)])
def test_regrets_parts_and_differences_against_runs_of_their_own(found, capacity, rate):
    frame = found[0]["rewards"]
    assert len(frame) == len(QUEUES) * len(LEARNERS)
    queue = all_or_nothing(paper_queue(capacity, rate))
    plain = finals(runs_of(queue, qu.CertaintyEquivalent(rewards="unknown", exploration="none")))
    ours = finals(runs_of(queue, qu.CertaintyEquivalent(rewards="unknown", reward_bound=100.0)))
    row = row_of(frame, capacity, rate, "ucb")
    assert row["regret"] == pytest.approx(ours.mean(), rel=1e-12)
    assert row["half_interval"] == pytest.approx(half_of_student(ours), rel=1e-9)
    assert [row["q50"], row["q90"], row["q99"]] == pytest.approx(np.quantile(ours, [0.5, 0.9, 0.99]).tolist())
    assert row["largest"] == ours.max()
    assert row["part"] == pytest.approx(ours.mean() / plain.mean(), rel=1e-12)
    assert row["difference"] == pytest.approx((ours - plain).mean(), rel=1e-9)
    assert row["difference_half_interval"] == pytest.approx(half_of_student(ours - plain), rel=1e-9)


def test_the_stuck_are_those_whose_last_policy_shuts_out_who_should_come(found):
    """Counted from the admission tables of runs of their own."""
    frame = found[0]["rewards"]
    for capacity, rate in QUEUES[:2]:
        queue = all_or_nothing(paper_queue(capacity, rate))
        wanted = qu.solve(queue).policy.admits.any(axis=0)
        runs = runs_of(queue, qu.CertaintyEquivalent(rewards="unknown", exploration="none"))
        tables = [run.ledger.segments[-1].policy.admits.any(axis=0) for run in runs]
        stuck = sum(bool(np.any(wanted & ~table)) for table in tables)
        row = row_of(frame, capacity, rate, "plain")
        assert row["stuck"] == stuck
        assert (row["stuck_low"], row["stuck_high"]) == pytest.approx(rewards.share_interval(stuck, COUNT))
    assert frame[frame["learner"] == "plain"]["stuck"].sum() > 0  # else nothing was tested
    assert frame[frame["learner"] == "rewards known"]["stuck"].sum() == 0


def test_coverage_counts_the_limits_of_late_reviews(found):
    """From the episode tables of runs of their own: R^ + sigma^ sqrt(2 L / n) + 3 b L / n against R."""
    frame = found[0]["coverage"]
    (row,) = frame[(frame["capacity"] == 20) & (frame["service_rate"] == 0.5)].to_dict("records")
    queue = all_or_nothing(paper_queue(20, 0.5))
    limits, missed, below, promised = 0, 0, 0, []
    for run in runs_of(queue, qu.CertaintyEquivalent(rewards="unknown", reward_bound=100.0)):
        for episode in run.episodes.to_dict("records"):
            services = 0.5 * episode["start"]
            if services < 30.0:
                continue
            assert episode["reward_level"] == pytest.approx(log(2 * services))
            limits += 2
            below += sum(e < r for e, r in zip(episode["reward_estimates"], (20.0, 10.0), strict=True))
            missed += sum(p < r for p, r in zip(episode["planned_rewards"], (20.0, 10.0), strict=True))
            promised.append(3.0 / (2 * services))
    assert (row["limits"], row["missed"], row["replications"]) == (limits, missed, COUNT)
    assert row["estimates_below"] == below
    assert 0 < below < limits
    assert row["promised"] == pytest.approx(np.mean(promised))


def test_what_is_lost_by_not_seeing_is_paired_with_who_sees(found):
    frame = found[0]["unseen"]
    queue = paper_queue(50, 0.3)
    seeing = finals(runs_of(queue, qu.CertaintyEquivalent(), FEWER))
    unseen = finals(runs_of(queue, qu.CertaintyEquivalent(observation="admitted"), FEWER))
    row = row_of(frame, 50, 0.3, "rejected arrivals unseen")
    assert row["regret"] == pytest.approx(unseen.mean(), rel=1e-12)
    assert row["difference"] == pytest.approx((unseen - seeing).mean(), rel=1e-9, abs=1e-9)
    assert row["difference_half_interval"] == pytest.approx(half_of_student(unseen - seeing), rel=1e-9, abs=1e-9)
    blind = row_of(frame, 50, 0.3, rewards.BLIND)
    alike = qu.Queue(5, 50, 0.3, [qu.JobClass("any", 2.0, 15.0, qu.Linear(0.1))])  # both classes come equally often
    assert blind["blind_share"] == pytest.approx(qu.solve(alike).gain / qu.solve(queue).gain, rel=1e-9)
    lost = [
        HORIZON * (qu.solve(alike).gain - qu.solve(queue).gain) + run.regret("pseudo")["regret"].iloc[-1]
        for run in runs_of(queue, qu.CertaintyEquivalent(observation="class-after-admission"), FEWER)
    ]
    assert blind["regret"] == pytest.approx(np.mean(lost), rel=1e-6)


def test_the_page_and_the_figure_are_written(found):
    words = (found[1] / "rewards.md").read_text(encoding="utf-8")
    for learner in (*LEARNERS, *UNSEEN):
        assert f"| {learner} " in words
    assert (found[1] / "rewards.png").read_bytes().startswith(b"\x89PNG")
