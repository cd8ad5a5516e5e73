"""Thm 5.2 for the paper's first queue, worked out by hand: c = 5, S = 20, mu = 0.3, Lambda = 2, R_max = 20, m = 2."""

import math

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu
from queueing_ucrl.model.bounds import value_iteration_bias_bound

GAIN = 24.0  # any number will do for rho*
LEARNING = 14 * (4 * 16 / (1 * math.sqrt(2)) + 2)  # 14 (4 Lambda_max^2 / (Lambda_min sqrt(Lambda)) + sqrt(m Lambda))


def test_coefficients_with_policy_iteration():
    bound = qu.policy_iteration_bound(paper_queue(), GAIN, (1.0, 4.0), 10.0)
    # 1 + Lambda_max / mu_max = 1 + 4 / 1.5 = 11 / 3
    assert bound.a == pytest.approx(LEARNING * (11 / 3) * 20, rel=1e-14)
    assert bound.a == pytest.approx(48514.963, abs=1e-3)
    # (4 / 0.3 + 14 / 2) 24 + 20 * 4 * 20 / 1.5 = 488 + 3200 / 3
    assert bound.b == pytest.approx(488 + 3200 / 3, rel=1e-14)
    assert bound.c == 240.0


def test_the_bound_at_a_time():
    """T = 640: log2(640 / 10) = 6, so 7 episodes; 2 mu T = 384."""
    bound = qu.policy_iteration_bound(paper_queue(), GAIN, (1.0, 4.0), 10.0)
    by_hand = LEARNING * (11 / 3) * 20 * math.sqrt(640 * math.log(384)) + (488 + 3200 / 3) * 7 + 240
    assert bound(640.0) == pytest.approx(by_hand, rel=1e-14)
    np.testing.assert_allclose(bound([10.0, 640.0])[1], by_hand, rtol=1e-14)
    assert np.all(np.diff(bound(np.geomspace(10, 1e6, 50))) > 0)


def direct_bias_bound(queue, largest_rate, rates):
    """V = max_s (Lambda_max R_max / mu) sum_{q>s} prod_{s<p<q} Lambda~(p) / mu(p + 1), term by term."""
    mu = queue.service_rates
    sums = [
        sum(math.prod(rates[p] / mu[p + 1] for p in range(s + 1, q)) for q in range(s + 1, queue.capacity + 1))
        for s in range(queue.capacity)
    ]
    return largest_rate * queue.max_reward / queue.service_rate * max(sums)


def test_coefficients_with_value_iteration():
    queue = paper_queue()
    bias = direct_bias_bound(queue, 4.0, [4.0] * 20)
    assert value_iteration_bias_bound(queue, 4.0) == pytest.approx(bias, rel=1e-13)
    bound = qu.value_iteration_bound(queue, GAIN, (1.0, 4.0), 10.0)
    assert bound.a == pytest.approx(LEARNING * (20 + bias), rel=1e-13)
    assert bound.b == pytest.approx(488 + 20 + 20 * bias, rel=1e-13)
    assert bound.c == 240.0


def test_bias_bound_of_two_places_by_hand():
    """c = 1, S = 2, mu = 1, Lambda_max = 3, R = 5: s = 0 gives 1 + 3, s = 1 gives 1; V = 15 * 4."""
    queue = qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 5.0)])
    assert value_iteration_bias_bound(queue, 3.0) == pytest.approx(60.0, rel=1e-15)


def test_bias_bound_with_a_policy_counts_only_the_admitted():
    queue = paper_queue()
    policy = qu.Policy.trunk_reservation([20, 8], 20)
    rates = [4.0 if s < 8 else 2.0 for s in range(20)]
    bias = direct_bias_bound(queue, 4.0, rates)
    assert value_iteration_bias_bound(queue, 4.0, policy) == pytest.approx(bias, rel=1e-13)
    assert bias < value_iteration_bias_bound(queue, 4.0)
    assert qu.value_iteration_bound(queue, GAIN, (1.0, 4.0), 10.0, policy).b == pytest.approx(
        488 + 20 + 20 * bias, rel=1e-13
    )


def test_bias_bound_beyond_the_doubles_is_infinite():
    queue = paper_queue(capacity=3000)
    assert value_iteration_bias_bound(queue, 4.0) == math.inf
    assert qu.value_iteration_bound(queue, GAIN, (1.0, 4.0), 10.0)(1e3) == math.inf


def test_no_bias_of_a_best_policy_exceeds_the_bias_bound():
    for capacity in (5, 20, 50):
        queue = paper_queue(capacity)
        assert np.abs(qu.solve(queue).relative_bias).max() <= value_iteration_bias_bound(queue, 2.0)


@pytest.mark.parametrize("bound", [qu.policy_iteration_bound, qu.value_iteration_bound])
def test_bad_input_is_refused(bound):
    queue = paper_queue()
    for rates in ((0.0, 4.0), (4.0, 1.0), (-1.0, 1.0)):
        with pytest.raises(ValueError, match="arrival_rate_bounds must be 0 < low <= high"):
            bound(queue, GAIN, rates, 10.0)
    with pytest.raises(ValueError, match="first_episode must be longer than 1 / service_rate"):
        bound(queue, GAIN, (1.0, 4.0), 3.0)
    with pytest.raises(ValueError, match="from the first episode's end"):
        bound(queue, GAIN, (1.0, 4.0), 10.0)(5.0)
