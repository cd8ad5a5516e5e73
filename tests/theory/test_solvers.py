"""Every way to the best policy leads to the same one; for small queues all policies are tried."""

import functools
from fractions import Fraction

import numpy as np
import pytest
from exact import RationalModel, all_policies, precise_value, rational_optimum, rational_value
from generators import optimistic_model, paper_queue, random_policy, random_queue, two_class_queue

import queueing_ucrl as qu
from queueing_ucrl.solvers.policy_iteration import CYCLED, iterate
from queueing_ucrl.solvers.solve import METHODS

GAIN_CLAIM = 1e-8  # relative to max(1, gain)
SEARCHABLE = 20_000  # trunk reservation policies


@functools.cache
def random_queues():
    random = np.random.default_rng(500)
    return [random_queue(random) for _ in range(500)]


@functools.cache
def best(number):
    return qu.solve(random_queues()[number])


def assert_same_gain(solution, reference):
    assert abs(solution.gain - reference.gain) <= GAIN_CLAIM * max(1.0, reference.gain)


@pytest.mark.parametrize("method", ["pi", "vi"])
def test_gain_agrees_with_pi_b_on_500_random_queues(method):
    for number, queue in enumerate(random_queues()):
        assert_same_gain(qu.solve(queue, method, epsilon=1e-9), best(number))


@pytest.mark.parametrize("method", ["vi-ae", "lp"])
def test_policy_and_gain_agree_with_pi_b_on_500_random_queues(method):
    for number, queue in enumerate(random_queues()):
        solution = qu.solve(queue, method)
        assert_same_gain(solution, best(number))
        assert solution.policy == best(number).policy


def test_the_best_trunk_reservation_agrees_with_pi_b_on_random_queues():
    """With rates that do not depend on the state, and patient jobs, such a policy is best (Feinberg and Yang)."""
    tried = 0
    for number, queue in enumerate(random_queues()):
        policies = (queue.capacity + 1) ** len(queue.classes)
        if policies <= SEARCHABLE and not queue.abandons:
            solution = qu.solve(queue, "trunk-search")
            assert solution.iterations == policies
            assert solution.policy == best(number).policy
            assert_same_gain(solution, best(number))
            tried += 1
    assert tried >= 200


def test_pi_b_gives_a_trunk_reservation_policy_on_random_queues():
    for number in range(500):
        assert best(number).policy.is_trunk_reservation or random_queues()[number].abandons


@pytest.mark.parametrize("method", ["pi", "vi-ae", "lp"])
def test_methods_agree_on_larger_queues_and_state_dependent_rates(method):
    random = np.random.default_rng(77)
    for _ in range(60):
        queue = random_queue(random, largest_capacity=120, most_classes=4)
        for model in (queue.model, optimistic_model(queue, random.uniform(0.05, 1.5))):
            reference, solution = qu.solve(model), qu.solve(model, method)
            assert_same_gain(solution, reference)
            if method != "pi":
                # where a class never comes, or r and g differ by less than any method can tell, either will do
                distance = np.abs(model.rewards - reference.relative_bias[:, None])
                matters = (model.arrival_rates > 0) & (distance > 1e-9 * model.reward_scale)
                assert np.array_equal(solution.policy.admits[matters], reference.policy.admits[matters])


@pytest.mark.parametrize(("capacity", "classes", "count"), [(8, 1, 10), (5, 2, 5), (3, 3, 10), (2, 4, 10), (1, 6, 10)])
def test_no_policy_at_all_beats_pi_b(capacity, classes, count):
    """All 2^(mS) policies, each evaluated in rationals."""
    random = np.random.default_rng(capacity)
    done = 0
    while done < count:
        queue = random_queue(random, largest_capacity=capacity, most_classes=classes)
        if (queue.capacity, len(queue.classes)) != (capacity, classes):
            continue
        exact = RationalModel.of(queue.model)
        solution = qu.solve(queue)
        largest = max(rational_value(exact, admits).gain for admits in all_policies(capacity, classes))
        found = rational_value(exact, solution.policy.admits.tolist())
        assert found.gain == largest
        assert solution.gain == pytest.approx(float(largest), rel=1e-13)
        assert tuple(map(tuple, solution.policy.admits.tolist())) == rational_optimum(exact)[0]
        done += 1


def assert_certified(model, policy, slack=1e-10):
    """In 60 digits: admitted only where r_i(s) >= g(s), rejected only where r_i(s) < g(s), up to the tie allowance."""
    bias = precise_value(model, policy.admits).relative_bias[:, None]
    assert np.all(np.isfinite(bias))
    allowed = slack * (np.abs(bias) + np.abs(model.rewards))
    admitted = policy.admits
    assert np.all((model.rewards >= bias - allowed)[admitted])
    assert np.all((model.rewards <= bias + allowed)[~admitted])


@pytest.mark.parametrize("load", [0.1, 0.9, 1.0, 2.7, 10.0])
@pytest.mark.parametrize(("servers", "capacity"), [(1, 1000), (50, 1000), (1000, 1000), (5, 10_000)])
def test_pi_b_is_certified_by_exact_arithmetic_on_large_queues(servers, capacity, load):
    queue = two_class_queue(servers, capacity, load)
    everybody = qu.Policy.admit_all(capacity, 2)
    solution = qu.solve(queue)
    assert_certified(queue.model, solution.policy)
    assert qu.solve(queue, start=everybody).policy == solution.policy


def test_pi_b_is_certified_on_models_with_rates_over_many_decades():
    """Valleys of the stationary law that no double can hold lie between the start and the best policy."""
    random = np.random.default_rng(31)
    for _ in range(40):
        S, m, decades = int(random.integers(2, 300)), int(random.integers(1, 4)), random.uniform(0.5, 6)
        model = qu.AdmissionModel(
            10.0 ** random.uniform(-decades, decades, (S, m)),
            np.sort(random.uniform(-5.0, 20.0, (S, m)), axis=0)[::-1],
            np.append(0.0, 10.0 ** random.uniform(-decades, decades, S)),
        )
        solution = qu.solve(model)
        assert_certified(model, solution.policy)
        assert_same_gain(qu.solve(model, start=qu.Policy.admit_all(S, m)), solution)


# --- what each method promises ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-4, 1e-6, 1e-9])
def test_value_iteration_ends_within_epsilon_of_the_best_gain(epsilon):
    for number in range(0, 500, 5):
        solution = qu.solve(random_queues()[number], "vi", epsilon=epsilon)
        rounding = 1e-12 * best(number).gain
        assert best(number).gain - epsilon - rounding <= solution.gain <= best(number).gain + rounding


def test_a_loose_epsilon_can_cost_gain():
    """Else the promise above would be tested on nothing: at epsilon = 1 some answers are not the best."""
    gains = [qu.solve(random_queues()[number], "vi", epsilon=1.0).gain for number in range(0, 500, 5)]
    assert any(gain < best(5 * n).gain - 1e-3 for n, gain in enumerate(gains))


@pytest.mark.parametrize("method", ["pi", "pi-b", "vi", "vi-ae"])
def test_the_start_changes_the_work_and_not_the_answer(method):
    random = np.random.default_rng(1)
    for number in range(0, 500, 10):
        queue = random_queues()[number]
        start = random_policy(random, queue.capacity, len(queue.classes))
        assert_same_gain(qu.solve(queue, method, start=start), best(number))
        warm = qu.solve(queue, method, start=best(number).policy)
        assert_same_gain(warm, best(number))
        if method.startswith("pi"):
            assert warm.iterations == 1


@pytest.mark.parametrize("method", ["vi", "vi-ae"])
def test_a_warm_start_saves_sweeps(method):
    queue = paper_queue(50, 0.3)
    cold, warm = qu.solve(queue, method), qu.solve(queue, method, start=qu.solve(queue).policy)
    assert warm.iterations < cold.iterations / 2


@pytest.mark.parametrize("method", ["vi", "vi-ae"])
def test_a_larger_uniformization_rate_gives_the_same_answer(method):
    queue = paper_queue()
    reference = qu.solve(queue)
    solution = qu.solve(queue, method, uniformization=10 * queue.model.uniformization_rate)
    assert solution.policy == reference.policy
    assert solution.iterations > qu.solve(queue, method).iterations


def test_solutions_carry_the_value_of_their_policy():
    for number in range(0, 500, 25):
        queue = random_queues()[number]
        for method in ("pi-b", "pi", "vi", "vi-ae", "lp"):
            solution = qu.solve(queue, method)
            value = qu.evaluate(queue, solution.policy)
            assert solution.method == method
            assert solution.gain == value.gain
            assert np.array_equal(solution.relative_bias, value.relative_bias)
            assert np.array_equal(solution.stationary, value.stationary)


def test_known_answer_of_a_loss_system():
    """c = S = 1, lambda = (1, 1), R = (3, 1), mu = 1: alone, class 1 earns 3/2; with both, 4/3. g = 3/2 > 1."""
    queue = qu.Queue(1, 1, 1.0, [qu.JobClass("a", 1.0, 3.0), qu.JobClass("b", 1.0, 1.0)])
    for method in METHODS:
        solution = qu.solve(queue, method)
        assert solution.gain == pytest.approx(1.5, rel=1e-15)
        assert solution.policy.control_levels == (1, 0)
        assert solution.relative_bias.tolist() == pytest.approx([1.5], rel=1e-15)


@pytest.mark.parametrize("method", list(METHODS))
def test_a_class_that_costs_more_than_it_pays_is_let_in_only_where_it_does_not_wait(method):
    queue = qu.Queue(2, 8, 1.0, [qu.JobClass("impatient", 1.0, 1.0, qu.Linear(1e6))])
    assert qu.solve(queue, method).policy.control_levels == (2,)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [0, 10])
@pytest.mark.parametrize("start", [(0, 0), (1, 0), (1, 1)])
def test_a_cycle_ends_with_its_best_policy(start, patience):
    """On rates that are none (a negative death rate) improvement goes round in circles, of gains 0 and 4."""
    rates, rewards, service = np.array([[1.0, 2.0]]), np.array([[2.0, 0.0]]), np.array([0.0, -2.0])
    table = np.array([start], dtype=bool)
    gain, _, bias, _, iterations, why = iterate(table, rates, rewards, service, patience)
    assert (why, gain, table.tolist()) == (CYCLED, 4.0, [[True, False]])
    assert bias.tolist() == [-2.0]
    assert iterations < 10


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method must be one of pi-b, pi, vi, vi-ae, lp, trunk-search, got 'magic'"):
        qu.solve(paper_queue(), "magic")


def test_a_start_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"start is a policy for \(3, 2\), the model is \(20, 2\)"):
        qu.solve(paper_queue(), start=qu.Policy.admit_all(3, 2))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_value_iteration_refuses_an_epsilon_that_is_not_positive(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        qu.solve(paper_queue(), "vi", epsilon=epsilon)


@pytest.mark.parametrize("method", ["vi", "vi-ae"])
def test_value_iteration_refuses_too_small_a_uniformization_rate(method):
    with pytest.raises(ValueError, match="uniformization must be at least"):
        qu.solve(paper_queue(), method, uniformization=1.0)


def test_value_iteration_says_when_rounding_stops_it():
    with pytest.raises(qu.SolverError, match="value iteration cannot reach epsilon"):
        qu.solve(paper_queue(50), "vi", epsilon=1e-18)


def test_trunk_search_refuses_a_search_without_end():
    with pytest.raises(ValueError, match=r"too many, use pi-b"):
        qu.solve(two_class_queue(5, 5000, 1.0), "trunk-search")


def test_rewards_that_nobody_pays_give_a_gain_of_zero():
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 0.0, qu.Linear(1.0))])
    for method in METHODS:
        assert qu.solve(queue, method).gain == 0.0


def test_gain_scales_with_rewards_and_time():
    """Rewards times 8 and rates times 4, both without rounding: the gain times 32, the same policy."""
    queue = paper_queue()
    model = queue.model
    faster = qu.AdmissionModel(4.0 * model.arrival_rates, 8.0 * model.rewards, 4.0 * model.service_rates)
    reference, scaled = qu.solve(model), qu.solve(faster)
    assert Fraction(scaled.gain) == 32 * Fraction(reference.gain)
    assert scaled.policy == reference.policy
