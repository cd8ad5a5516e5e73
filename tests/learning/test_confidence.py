"""Confidence about the arrival rates: against numbers worked out by hand, and against the definition on the log."""

import math

import numpy as np
import pytest
from generators import paper_queue, two_class_queue

import queueing_ucrl as qu
from queueing_ucrl.learning.confidence import (
    ConfidenceSet,
    gap_radius,
    share_radius,
    total_rate_interval,
    truncated_mean,
    truncation,
)

E1 = math.exp(-1)  # log(1/delta) = 1
E2 = math.exp(-2)


def test_truncation_by_hand():
    """b = 2 / (Lambda_min^2 log(1/delta))."""
    assert truncation(1.0, E1) == pytest.approx(2.0, rel=1e-15)
    assert truncation(0.5, E2) == pytest.approx(4.0, rel=1e-15)
    assert truncation(0.0, E1) == math.inf


def test_truncated_mean_by_hand():
    """B_t = sqrt(2 t): 1.41, 2, 2.45, 2.83. Of 1.5, 1.9, 2.5, 2.8 the first and the third are too long."""
    assert truncated_mean(np.array([1.5, 1.9, 2.5, 2.8]), 1.0, E1) == pytest.approx((1.9 + 2.8) / 4, rel=1e-15)
    assert truncated_mean(np.array([2.8, 2.5, 1.9, 1.5]), 1.0, E1) == pytest.approx((1.9 + 1.5) / 4, rel=1e-15)
    assert truncated_mean(np.array([9.0, 99.0]), 0.0, E1) == 54.0


def test_radii_by_hand():
    """e = (4 / Lambda_min) sqrt((2 / nu) log(1/delta)); eps_p = sqrt((2m / N) log(2/delta))."""
    assert gap_radius(8, 2.0, E1) == pytest.approx(2 * 0.5, rel=1e-15)
    assert gap_radius(200, 1.0, E2) == pytest.approx(4 * math.sqrt(0.02), rel=1e-15)
    assert gap_radius(0, 1.0, E1) == gap_radius(5, 0.0, E1) == math.inf
    assert share_radius(100, 2, 2 * E1) == pytest.approx(0.2, rel=1e-15)
    assert share_radius(54, 3, 2 * math.exp(-9)) == pytest.approx(1.0, rel=1e-15)
    assert share_radius(0, 3, 0.5) == 2.0


@pytest.mark.parametrize(
    ("estimate", "radius", "bounds", "learned", "interval"),
    [
        # Prop. 4.2: Lambda^ -+ Lambda_max^2 e
        (2.0, 0.01, (1.0, 4.0), False, (1.84, 2.16)),
        (2.0, 0.1, (1.0, 4.0), False, (1.0, 3.6)),
        (2.0, 0.2, (1.0, 4.0), False, (1.0, 4.0)),
        # Prop. 7.1: at most Lambda^ / (1 - Lambda^ e), 2 / 0.98 and 2 / 0.6; nothing new from Lambda^ e = 1 on
        (2.0, 0.01, (1.0, 4.0), True, (1.84, 2 / 0.98)),
        (2.0, 0.2, (1.0, 4.0), True, (1.0, 2 / 0.6)),
        (2.0, 0.5, (1.0, 4.0), True, (1.0, 4.0)),
        (2.0, math.inf, (1.0, 4.0), True, (1.0, 4.0)),
        # an estimate beyond the bounds: the bound is all that is left
        (2.0, 0.001, (5.0, 6.0), True, (5.0, 5.0)),
        (9.0, 0.01, (1.0, 4.0), True, (4.0, 4.0)),
    ],
)
def test_interval_for_the_rate_by_hand(estimate, radius, bounds, learned, interval):
    assert total_rate_interval(estimate, radius, bounds, learn_upper_bound=learned) == pytest.approx(
        interval, rel=1e-14
    )


def test_a_confidence_set_by_hand():
    """nu = 8 arrivals with truncated gaps of 4 in all, N = 20 in classes 15 and 5, delta = e^-2, bounds [1, 4]."""
    found = ConfidenceSet.from_episode(8, 4.0, np.array([15, 5]), E2, (1.0, 4.0), learn_upper_bound=True)
    assert found.rate_estimate == 2.0
    assert found.rate_radius == pytest.approx(16 * 4 * math.sqrt(0.5), rel=1e-15)
    assert found.rate_interval == (1.0, 4.0)
    assert found.shares.tolist() == [0.75, 0.25]
    assert found.share_radius == pytest.approx(math.sqrt(0.2 * (2 + math.log(2))), rel=1e-15)


@pytest.mark.parametrize(("arrivals", "total"), [(0, 0.0), (3, 0.0)])
def test_an_episode_that_taught_nothing_leaves_the_bounds(arrivals, total):
    """No arrivals, or only gaps too long to be believed."""
    found = ConfidenceSet.from_episode(arrivals, total, np.array([4, 4]), E1, (1.0, 4.0), learn_upper_bound=True)
    assert found.rate_interval == (1.0, 4.0)
    assert math.isnan(found.rate_estimate)
    assert found.shares.tolist() == [0.5, 0.5]  # the classes are known from before


def test_what_a_set_contains():
    found = ConfidenceSet(2.0, 0.5, (1.5, 2.5), np.array([0.5, 0.5]), 0.25, 0.1)
    assert found.contains(np.array([1.0, 1.0]))
    assert found.contains(np.array([1.25, 1.25]))
    assert not found.contains(np.array([1.3, 1.3]))
    assert not found.contains(np.array([0.7, 0.7]))
    assert found.contains(np.array([1.25, 0.75]))  # l1 distance 0.25
    assert not found.contains(np.array([1.3, 0.7]))  # 0.3
    prior = ConfidenceSet.prior(2, (1.0, 4.0))
    assert prior.contains(np.array([3.99, 0.01]))
    assert not prior.contains(np.array([4.0, 0.01]))


# --- in a run --------------------------------------------------------------------------------------------------------


def arrival_gaps(run, episode):
    """Times between arrivals of one episode, the first counted from its beginning."""
    chosen = run.events["event"].isin(["admit", "reject", "block"]) & (run.events["episode"] == episode)
    start = run.episodes.set_index("episode").loc[episode, "start"]
    return np.diff(run.events.loc[chosen, "time"].to_numpy(), prepend=start)


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
@pytest.mark.parametrize("low", [0.4, 1.0, 2.0])
def test_the_online_estimate_is_the_truncated_mean_of_the_logged_gaps(engine, low):
    """1/Lambda^ = (1/nu) sum L_t 1{L_t <= B_t}, B_t = sqrt(2 t / (Lambda_min^2 log(1/delta_k))), with
    delta_k = 1 / (mu t_k), t_1 and t_2 alike, then doubling; Lambda^ and delta are of the episode just ended.
    """
    queue = two_class_queue(servers=2, capacity=6, load=1.0)  # Lambda = 2, mu = 1
    first = 3.0
    run = qu.simulate(queue, qu.UcrlAc((low, 4.0), first), horizon=96.0, seed=21, engine=engine, log=True)
    episodes = run.episodes
    assert episodes["start"].tolist() == [0.0, 3.0, 6.0, 12.0, 24.0, 48.0]
    cut = 0
    for k in range(1, 6):
        length = first if k == 1 else first * 2 ** (k - 2)
        log_term = math.log(queue.service_rate * length)  # log(1 / delta_k)
        gaps = arrival_gaps(run, k)
        bounds = np.sqrt(2 * np.arange(1, len(gaps) + 1) / (low**2 * log_term))
        kept = gaps[gaps <= bounds]
        cut += len(gaps) - len(kept)
        row = episodes.iloc[k]
        assert row["rate_estimate"] == pytest.approx(len(gaps) / kept.sum(), rel=1e-12)
        error = 4 / low * math.sqrt(2 / len(gaps) * log_term)
        assert row["rate_radius"] == pytest.approx(16 * error, rel=1e-12)
        upper = [4.0, row["rate_estimate"] + 16 * error]
        if row["rate_estimate"] * error < 1:
            upper.append(row["rate_estimate"] / (1 - row["rate_estimate"] * error))
        assert row["optimistic_rate"] == pytest.approx(max(low, min(upper)), rel=1e-12)
        chosen = run.events["event"].isin(["admit", "reject", "block"]) & (run.events["episode"] <= k)
        seen = run.events.loc[chosen, "job_class"].value_counts()[["gold", "basic"]].to_numpy()
        np.testing.assert_allclose(row["share_estimates"], seen / seen.sum(), rtol=1e-14)
        radius = math.sqrt(2 * 2 / seen.sum() * (math.log(2) + log_term))
        assert row["share_radius"] == pytest.approx(radius, rel=1e-12)
    assert cut > 0 or low < 2.0  # the truncation was put to the test


def test_learn_upper_bound_off_uses_the_wider_interval():
    queue = paper_queue()
    learned, plain = (
        qu.simulate(queue, qu.UcrlAc((1.0, 4.0), 10.0, learn_upper_bound=on), horizon=20480.0, seed=3, log=True)
        for on in (True, False)
    )
    row, other = learned.episodes.iloc[-1], plain.episodes.iloc[-1]
    assert row["rate_estimate"] == other["rate_estimate"]  # the same arrivals, whatever was decided
    error = row["rate_radius"] / 16
    assert row["optimistic_rate"] == pytest.approx(row["rate_estimate"] / (1 - row["rate_estimate"] * error), rel=1e-12)
    assert other["optimistic_rate"] == pytest.approx(min(4.0, other["rate_estimate"] + 16 * error), rel=1e-12)
    assert row["optimistic_rate"] < other["optimistic_rate"]
