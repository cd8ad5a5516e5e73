"""Policy evaluation against arithmetic with 60 digits and more: gain, relative bias and stationary law."""

import numpy as np
import pytest
from exact import RationalModel, precise_value, rational_value
from generators import closed_in_the_middle, paper_queue, random_policy, random_queue, two_class_queue
from scipy.linalg import solve as dense_solve

import queueing_ucrl as qu

CLAIM = 1e-11  # relative to max(|g|, R_max)
LOADS = (0.1, 0.3, 0.7, 1.0, 1.5, 2.7, 10.0)
POLICIES = ("admit all", "random", "nearly open", "optimal", "closed in the middle", "optimal, closed in the middle")


def policy_named(name, queue, seed=20240):
    random = np.random.default_rng(seed)
    everybody = qu.Policy.admit_all(queue.capacity, len(queue.classes))
    if name == "admit all":
        return everybody
    if name == "random":
        return random_policy(random, queue.capacity, len(queue.classes))
    if name == "nearly open":
        return random_policy(random, queue.capacity, len(queue.classes), share=0.99)
    if name == "optimal":
        return qu.solve(queue).policy
    if name == "closed in the middle":
        return closed_in_the_middle(everybody)
    return closed_in_the_middle(qu.solve(queue).policy)


def assert_exact(model, policy, claim=CLAIM):
    """Gain, relative bias and law within the claim; infinite exactly where the true bias leaves the doubles."""
    value, exact = qu.evaluate(model, policy), precise_value(model, policy.admits)
    bias, truth = value.relative_bias, exact.relative_bias
    inside = np.isfinite(truth)
    np.testing.assert_array_equal(bias[~inside], truth[~inside])
    error = np.abs(bias[inside] - truth[inside]) / np.maximum(np.abs(truth[inside]), model.reward_scale)
    assert error.max(initial=0.0) <= claim
    assert value.gain == pytest.approx(exact.gain, rel=claim, abs=1e-300)
    likely = exact.stationary > 1e-140  # below 1e-150 of the largest the law may be lost
    np.testing.assert_allclose(value.stationary[likely], exact.stationary[likely], rtol=claim)
    assert np.all((value.stationary[~likely] >= 0) & (value.stationary[~likely] < 1e-139))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("servers", [1, 5, 50, "S"])
@pytest.mark.parametrize("capacity", [20, 50, 200, 1000])
def test_value_matches_exact_arithmetic(capacity, servers, policy):
    for load in LOADS:
        queue = two_class_queue(capacity if servers == "S" else servers, capacity, load)
        assert_exact(queue.model, policy_named(policy, queue))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (5, 2.7), (50, 1.0), (10_000, 1.5)])
def test_value_matches_exact_arithmetic_with_ten_thousand_places(servers, load, policy):
    queue = two_class_queue(servers, 10_000, load)
    assert_exact(queue.model, policy_named(policy, queue))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("servers", [1, 5, 50, 10_000])
def test_value_matches_exact_arithmetic_with_ten_thousand_places_at_all_loads(servers, policy):
    for load in LOADS:
        queue = two_class_queue(servers, 10_000, load)
        assert_exact(queue.model, policy_named(policy, queue))


def test_value_matches_exact_arithmetic_for_all_kinds_of_cost():
    random = np.random.default_rng(11)
    for _ in range(200):
        queue = random_queue(random, largest_capacity=60)
        assert_exact(queue.model, random_policy(random, queue.capacity, len(queue.classes), share=random.uniform()))


def two_peaks(depth, tilt):
    """The law falls from state 0 to 10^-depth in the middle and rises again to about the same height in S."""
    S = 1000
    ratio = np.where(np.arange(S) < S // 2, 10.0 ** (-2 * depth / S), 10.0 ** (2 * depth / S))
    ratio[-5:] *= tilt
    return qu.AdmissionModel(ratio[:, None], np.linspace(20.0, 1.0, S)[:, None], np.append(0.0, np.ones(S)))


@pytest.mark.parametrize("tilt", [0.9, 1.0, 1.1])  # the median in the left peak, in either, in the right one
@pytest.mark.parametrize("depth", [100, 300, 330, 900])
def test_value_behind_a_deep_valley_of_the_law(depth, tilt):
    """The relative bias overflows at the bottom of the valley and must come back on the other side."""
    model = two_peaks(depth, tilt)
    assert_exact(model, qu.Policy.admit_all(model.capacity, 1))


def test_value_where_the_bias_overflows_and_returns_among_transient_states():
    S = 1200
    rates = np.ones((S, 1))
    rates[800:] = 10.0  # downward from S the bias grows to 1e400 ..
    rates[300:800] = 0.1  # .. and shrinks to nothing again
    model = qu.AdmissionModel(rates, np.linspace(5.0, -5.0, S)[:, None], np.append(0.0, np.ones(S)))
    admits = np.ones((S, 1), dtype=bool)
    admits[100] = False
    value = qu.evaluate(model, qu.Policy(admits))
    assert np.isinf(value.relative_bias).any()
    assert np.isfinite(value.relative_bias[:350]).all()
    assert_exact(model, qu.Policy(admits))


def test_value_where_all_but_the_last_state_earn_the_same():
    """Two peaks with a valley between, R(s) = 1 but R(S) = 0: rho is 1 less a chance of 2^-200.

    In the valley g is that chance over the law there, about a half: it is lost when rho is rounded first.
    """
    rate = np.repeat([0.5, 2.0, 0.5, 0.5], [200, 201, 100, 99])  # down 2^-200, up 2^201, down 2^-199
    S = rate.size
    model = qu.AdmissionModel(rate[:, None], 1.0 / rate[:, None], np.append(0.0, np.ones(S)))
    everybody = qu.Policy.admit_all(S, 1)
    assert qu.evaluate(model, everybody).gain == 1.0
    assert qu.evaluate(model, everybody).relative_bias[200] > 0.1
    assert_exact(model, everybody)


def test_value_where_the_most_likely_state_is_far_from_the_bulk():
    """A plateau of 10^5 states, a valley, and a single state somewhat more likely than any of the plateau's.

    Carried from the plateau through the valley, the sums would have to cancel to 10^-5: the median, not the mode.
    """
    plateau, slope = 100_000, 60
    ratio = np.concatenate([np.ones(plateau), np.full(slope, 0.5), [2.0 ** (slope + 1)]])
    reward = np.linspace(20.0, 1.0, ratio.size)
    model = qu.AdmissionModel(ratio[:, None], reward[:, None], np.append(0.0, np.ones(ratio.size)))
    everybody = qu.Policy.admit_all(ratio.size, 1)
    assert qu.evaluate(model, everybody).stationary.argmax() == ratio.size
    assert_exact(model, everybody)


@pytest.mark.parametrize("decades", [1, 3, 6, 12, 30])
def test_value_with_rates_over_many_decades(decades):
    """Rates that jump at random from state to state: a law with valleys of any depth anywhere."""
    random = np.random.default_rng(decades)
    for _ in range(24):
        S, m = int(random.choice([5, 30, 200, 1000])), int(random.integers(1, 4))
        model = qu.AdmissionModel(
            10.0 ** random.uniform(-decades, decades, (S, m)),
            np.sort(random.uniform(-5.0, 20.0, (S, m)), axis=0)[::-1],
            np.append(0.0, 10.0 ** random.uniform(-decades, decades, S)),
        )
        assert_exact(model, qu.Policy.admit_all(S, m))
        assert_exact(model, random_policy(random, S, m, share=0.97))


def test_nobody_admitted_earns_nothing():
    queue = paper_queue()
    value = qu.evaluate(queue, qu.Policy(np.zeros((20, 2), dtype=bool)))
    assert value.gain == 0.0
    assert value.relative_bias.tolist() == [0.0] * 20
    assert value.stationary.tolist() == [1.0] + [0.0] * 20


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="the policy is for 20 states and 3 classes, the queue has 20 and 2"):
        qu.evaluate(paper_queue(), qu.Policy.admit_all(20, 3))
    with pytest.raises(ValueError, match="two-sided, dense, closed-form, forward, backward"):
        qu.evaluate(paper_queue(), qu.Policy.admit_all(20, 2), method="sideways")


# --- the references themselves ---------------------------------------------------------------------------------------


def test_the_two_exact_references_agree():
    """Decimals from both ends and rationals from one end are different computations of the same numbers."""
    random = np.random.default_rng(3)
    for _ in range(50):
        queue = random_queue(random, largest_capacity=12)
        policy = random_policy(random, queue.capacity, len(queue.classes), share=0.8)
        decimal = precise_value(queue.model, policy.admits)
        rational = rational_value(RationalModel.of(queue.model), policy.admits.tolist())
        assert decimal.gain == float(rational.gain)
        assert decimal.relative_bias.tolist() == [float(g) for g in rational.relative_bias]
        assert decimal.stationary.tolist() == [float(p) for p in rational.stationary]


# --- the other ways, kept for teaching -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["dense", "closed-form", "forward", "backward"])
def test_every_way_to_evaluate_agrees_on_an_easy_queue(method):
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.5)), qu.JobClass("b", 0.75, 3.0)])
    for policy in (qu.Policy.admit_all(6, 2), qu.Policy.trunk_reservation([6, 3], 6)):
        value, other = qu.evaluate(queue, policy), qu.evaluate(queue, policy, method=method)
        assert other.gain == pytest.approx(value.gain, rel=1e-13)
        np.testing.assert_allclose(other.relative_bias, value.relative_bias, rtol=1e-11)
        np.testing.assert_allclose(other.stationary, value.stationary, rtol=1e-13)


def test_bias_solves_the_equations_as_a_matrix():
    """eq. 3 by a matrix of its own: columns g(0) .. g(S-1), rho."""
    queue = paper_queue()
    value = qu.evaluate(queue, qu.Policy.trunk_reservation([20, 9], 20))
    birth = np.append(np.where(np.arange(20) < 9, 2.0, 1.0), 0.0)
    reward = np.append(queue.rewards[:, 0] + np.where(np.arange(20) < 9, queue.rewards[:, 1], 0.0), 0.0)
    matrix = np.diag(birth) - np.diag(queue.service_rates[1:], -1)
    matrix[:, -1] = 1.0
    expected = dense_solve(matrix, reward)
    np.testing.assert_allclose(np.append(value.relative_bias, value.gain), expected, rtol=1e-9)


@pytest.mark.parametrize("method", ["backward", "closed-form"])
def test_the_recursion_from_above_loses_all_digits_under_overload(method):
    """Admit-all, S = 50, load 2.7, rewards of 20: each step downward multiplies the error by 2.7."""
    queue = two_class_queue(5, 50, 2.7)
    policy = qu.Policy.admit_all(50, 2)
    truth = precise_value(queue.model, policy.admits).relative_bias
    assert np.abs(qu.evaluate(queue, policy, method=method).relative_bias - truth).max() > 1e3
    assert np.abs(qu.evaluate(queue, policy).relative_bias - truth).max() < CLAIM


def test_the_recursion_from_below_loses_all_digits_in_light_traffic():
    """Admit-all, S = 50, load 0.3: each step upward multiplies the error by 1 / 0.3."""
    queue = two_class_queue(5, 50, 0.3)
    policy = qu.Policy.admit_all(50, 2)
    truth = precise_value(queue.model, policy.admits).relative_bias
    assert np.abs(qu.evaluate(queue, policy, method="forward").relative_bias - truth).max() > 1e3
    assert np.abs(qu.evaluate(queue, policy).relative_bias - truth).max() < CLAIM
