"""`reproduce structure` at a tiny scale: regrets, quantiles, steps and differences against runs of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.paper import structure
from queueing_ucrl.paper import work as paper_work
from queueing_ucrl.paper.work import Work

QUEUES = ((20, 0.4), (20, 0.5))
HORIZON, COUNT = 100.0, 3  # a 50th of the horizon is asked for, three trajectories at least
OURS = qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0)


TOLD = {name: structure.TOLD[name] for name in ("ucrl2", "psrl, prior 1")}
MODEL_FREE = {name: structure.MODEL_FREE[name] for name in ("r-learning", "salmut")}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pd.DataFrame]:
    """The rows of a tiny run: a few of the learners, two of the queues."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "TOLD", TOLD)
        patch.setattr(structure, "MODEL_FREE", MODEL_FREE)
        patch.setattr(paper_work, "QUEUES", QUEUES)
        work = Work(tmp_path_factory.mktemp("structure") / "out", 2, 50 * HORIZON, jobs=1)
        yield structure.regrets(structure.structure_study(work))


def finals(queue: qu.Queue, controller: qu.Controller) -> np.ndarray:
    runs = [qu.simulate(queue, controller, horizon=HORIZON, seed=1, replication=k) for k in range(COUNT)]
    return np.array([run.regret("gap")["regret"].iloc[-1] for run in runs])


def half_of_student(samples: np.ndarray) -> float:
    return float(stats.t.ppf(0.975, len(samples) - 1) * samples.std(ddof=1) / np.sqrt(len(samples)))


def row_of(frame: pd.DataFrame, capacity: int, rate: float, name: str) -> dict[str, Any]:
    mine = (frame["capacity"] == capacity) & (frame["service_rate"] == rate) & (frame["controller"] == name)
    (row,) = frame[mine].to_dict("records")
    return row


def test_every_learner_is_there_with_every_step_on_every_queue(found):
    names = [structure.label(name, step) for name in TOLD for step in structure.STEPS]
    names += [structure.OURS, structure.DIRECT, *MODEL_FREE]
    assert sorted(found["controller"]) == sorted(names * len(QUEUES))
    assert set(found["time"]) == {HORIZON}
    assert set(found["replications"]) == {COUNT}


@pytest.mark.parametrize(
    ("name", "controller", "before"),
    [
        ("ucrl2, support", qu.Ucrl2(structure="support"), qu.Ucrl2()),
        (
            "psrl, prior 1, departures",
            qu.Psrl(transition_prior=1.0, structure="departures"),
            qu.Psrl(transition_prior=1.0, structure="rewards"),
        ),
    ],
)
def test_a_step_is_paired_with_the_one_before(found, name, controller, before):
    queue = qu.load_scenario("paper-s20-mu0.4").queue
    mine, less, ours = (finals(queue, one) for one in (controller, before, OURS))
    row = row_of(found, 20, 0.4, name)
    assert row["regret"] == pytest.approx(mine.mean(), rel=1e-12)
    assert row["half_interval"] == pytest.approx(half_of_student(mine), rel=1e-9)
    assert [row["q50"], row["q90"], row["q99"]] == pytest.approx(np.quantile(mine, [0.5, 0.9, 0.99]).tolist())
    assert row["above_ucrl_ac"] == pytest.approx((mine - ours).mean(), rel=1e-9)
    assert row["above_half_interval"] == pytest.approx(half_of_student(mine - ours), rel=1e-9)
    value = mine.mean() / less.mean()
    assert row["step_ratio"] == pytest.approx(value, rel=1e-12)
    assert row["step_half_interval"] == pytest.approx(half_of_student(mine - value * less) / less.mean(), rel=1e-9)


def test_where_a_learner_stays_is_what_its_event_log_says(found):
    """The share of requests that find a server free, and what it costs to turn jobs away then."""
    queue = qu.load_scenario("paper-s20-mu0.5").queue
    best, shares, costs = qu.solve(queue), [], []
    for k in range(COUNT):
        run = qu.simulate(queue, qu.Ucrl2(structure="support"), horizon=HORIZON, seed=1, replication=k, log=True)
        asked = run.events[run.events["event"].isin(["admit", "reject", "block"])]
        free = asked[asked["in_system"] < queue.servers]
        shares.append(len(free) / len(asked))
        cost = 0.0
        for job in free[free["event"] == "reject"].itertuples():
            i = [c.name for c in queue.classes].index(job.job_class)
            if best.policy.admits[job.in_system, i]:
                cost += queue.model.rewards[job.in_system, i] - best.relative_bias[job.in_system]
        costs.append(cost)
    assert sum(costs) > 0.0
    row = row_of(found, 20, 0.5, "ucrl2, support")
    assert row["found_a_server_free"] == pytest.approx(np.mean(shares), rel=1e-12)
    assert row["found_a_server_free_half_interval"] == pytest.approx(half_of_student(np.array(shares)), rel=1e-9)
    assert row["turned_away_from_a_free_server"] == pytest.approx(np.mean(costs), rel=1e-9)


@pytest.mark.parametrize(("rate", "sign"), [(0.3, 1.0), (0.5, -1.0)])
def test_the_support_alone_leads_ucrl2_to_what_it_does_not_know(rate, sign):
    """Down where the queue is overloaded, up where it is not; once it knows what jobs pay, not down any more.

    95 % intervals of paired differences over five trajectories; docs/structure.md tells of them.
    """
    learners = [qu.Ucrl2(), qu.Ucrl2(structure="support"), qu.Ucrl2(structure="rewards")]
    queue = qu.load_scenario(f"paper-s20-mu{rate}").queue
    study = qu.replicate(queue, learners, horizon=1e4, replications=5, seed=1, accounts=structure.WHEREABOUTS)
    none, support, rewards = (
        {kind: study.samples(k, kind)[:, -1] for kind in ("gap", *(one.name for one in structure.WHEREABOUTS))}
        for k in range(3)
    )
    for kind, found in support.items():
        more = sign * (found - none[kind])
        assert more.mean() - half_of_student(more) > 0.0, kind
    less = support["found_a_server_free"] - rewards["found_a_server_free"]
    assert less.mean() - half_of_student(less) > 0.0


def test_the_table_of_where_they_stay_has_the_best_policys_share(found):
    """P(fewer than c jobs) under the best policy, by its stationary law."""
    words = structure.whereabouts_text(found)
    queue = qu.load_scenario("paper-s20-mu0.4").queue
    law = qu.evaluate(queue, qu.solve(queue).policy).stationary
    first = next(line for line in words.splitlines() if line.startswith("| the best policy "))
    assert first.split("|")[2].strip() == f"{100 * law[: queue.servers].sum():.1f} %"
    row = row_of(found, 20, 0.5, "ucrl2, rewards")
    line = next(line for line in words.splitlines() if line.startswith("| ucrl2, rewards "))
    assert line.split("|")[3].strip().startswith(f"{100 * row['found_a_server_free']:.1f} ±")


def test_the_overview_is_the_geometric_mean_of_parts_of_ucrl_acs(found):
    parts = []
    for capacity, rate in QUEUES:
        theirs, ours = (row_of(found, capacity, rate, name)["regret"] for name in ("ucrl2, rewards", "ucrl-ac"))
        parts.append(theirs / ours)
    words = structure.overview(found)
    line = next(line for line in words.splitlines() if line.startswith("| ucrl2 "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert float(cells[1 + list(structure.STEPS).index("rewards")]) == pytest.approx(stats.gmean(parts), rel=0.02)


def test_all_six_panels_are_drawn_and_tabled(found: pd.DataFrame) -> None:
    six = pd.concat([found.assign(capacity=found["capacity"] + k) for k in range(3)])
    figure = structure.draw(six)
    assert len(figure.axes) == 6
    assert all(len(axes.lines) > len(TOLD) + len(MODEL_FREE) for axes in figure.axes)
    words = structure.queue_text(six[six["capacity"] == 21])
    assert words.count("| ucrl2, support ") == 2


def test_who_is_told_less():
    assert structure.before("ucrl2") is None
    assert structure.before("psrl, prior 1, support") == "psrl, prior 1"
    assert structure.before("psrl, prior 1, departures") == "psrl, prior 1, rewards"
    assert structure.before("salmut") is None
