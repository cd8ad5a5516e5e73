"""What the paper claims of its experiments, where it holds at a small scale; docs/reproduction.md has the whole of it.

Verdicts are by paired t tests on the same jobs: if the claim were false by nothing, a test would still pass for one
seed in 1 / ERROR, and the differences are so large that it fails for about as few if the program is right.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import queueing_ucrl as qu
from queueing_ucrl.model.tabular_bounds import TabularBound

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
ERROR = 1e-3
OURS = qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0)


def paper_queue(capacity: int, rate: float) -> qu.Queue:
    return qu.load_scenario(SCENARIOS / f"paper-s{capacity}-mu{rate}.toml").queue


def finals(queue: qu.Queue, controllers: list, horizon: float, replications: int) -> dict[str, np.ndarray]:
    study = qu.replicate(queue, controllers, horizon=horizon, replications=replications, seed=1, jobs=1)
    return {cell.name: study.samples(k, "gap")[:, -1] for k, cell in enumerate(study.cells)}


def surely_less(one: np.ndarray, other: np.ndarray) -> bool:
    return stats.ttest_rel(one, other, alternative="less").pvalue < ERROR


@pytest.mark.parametrize(("capacity", "rate"), [(20, 0.4), (20, 0.5), (50, 0.4), (50, 0.5)])
def test_ucrl_ac_loses_less_than_optimism_that_knows_no_structure(capacity, rate):
    found = finals(paper_queue(capacity, rate), [OURS, "ucrl2", "kl-ucrl", "ucrl3"], 1e4, 4)
    for name in ("ucrl2", "kl-ucrl", "ucrl3"):
        assert surely_less(found["ucrl-ac"], found[name]), name


@pytest.mark.parametrize("prior", [None, 1.0])
def test_psrl_is_ahead_at_the_beginning_of_panel_a(prior):
    found = finals(paper_queue(20, 0.3), [OURS, qu.Psrl(transition_prior=prior)], 2000.0, 12)
    assert surely_less(found["psrl"], found["ucrl-ac"])


@pytest.mark.parametrize(("capacity", "rate"), [(20, 0.3), pytest.param(50, 0.3, marks=pytest.mark.slow)])
def test_the_prior_decides_what_psrl_loses(capacity, rate):
    """On two queues where it shows early; docs/reproduction.md has all six."""
    queue = paper_queue(capacity, rate)
    few, many = (finals(queue, [qu.Psrl(transition_prior=a)], 1e4, 6)["psrl"] for a in (None, 1.0))
    assert surely_less(few, many)


@pytest.mark.parametrize("rate", [0.3, 0.4, 0.5])
def test_room_costs_ucrl_ac_little(rate):
    """S = 50 instead of 20: at most half as much again; general-purpose learners, which see every state, lose more."""
    small, large = (finals(paper_queue(S, rate), [OURS], 1e4, 5)["ucrl-ac"].mean() for S in (20, 50))
    assert large < 1.5 * small


def test_the_bound_of_ucrl_ac_is_an_order_of_magnitude_lower():
    """At every time from the first that all hold for up to 1e6, on the queue of Fig. 2."""
    queue = paper_queue(20, 0.3)
    times = np.geomspace(20.0, 1e6, 200)
    ours = qu.policy_iteration_bound(queue, qu.solve(queue).gain, (1.0, 4.0), 10.0)(times)
    theirs = TabularBound.of(queue)
    assert np.all(theirs.ucrl2(times) > 100 * ours)
    assert np.all(theirs.ucrl3(times) > 10 * ours)


def test_the_diameter_is_exponential_in_the_room_only_when_underloaded():
    def growth(rate: float) -> float:
        return qu.log10_diameter(paper_queue_of(100, rate)) - qu.log10_diameter(paper_queue_of(50, rate))

    def paper_queue_of(capacity: int, rate: float) -> qu.Queue:
        return qu.Queue(5, capacity, rate, paper_queue(20, 0.3).classes)

    assert growth(0.5) == pytest.approx(50 * np.log10(2.5 / 2), rel=1e-3)  # (c mu / Lambda)^50
    assert 10 ** growth(0.4) == pytest.approx(4, rel=0.05)  # quadratic
    assert 10 ** growth(0.3) == pytest.approx(2, rel=0.1)  # linear
