"""Thm 5.1: what a place in the queue is worth. 0 < g(s) <= rho / mu_max for gain-optimal policies.

mu_max is min(S, c) mu. Also where the arrival rates depend on the state as in the optimistic model of Thm 4.3: in each
state the class shares of an l1 ball that pay best there, the total rate the same in all, rewards R_i > 0 that fall with
the state (also below zero) and may change their order; and where jobs give up, however fast. "Gain-optimal" is meant as
the paper uses it: the policy solves the Bellman equation, as policy iteration's answers do. (A policy may have the best
gain and do anything in states it never visits.)
"""

from fractions import Fraction

import numpy as np
from exact import RationalModel, rational_optimum, rational_value
from generators import optimistic_model, optimistic_shares, queues, random_policy, seeds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import queueing_ucrl as qu

SLACK = 1e-9  # ties are equal up to 1e-11 of g, and two policies that tie may differ in g by a little more


def assert_place_is_worth_what_the_theorem_says(solution, model, queue):
    scale = model.reward_scale
    ceiling = solution.gain / (min(queue.servers, queue.capacity) * queue.service_rate)
    assert np.all(solution.relative_bias > -SLACK * scale)
    assert np.all(solution.relative_bias <= ceiling + SLACK * max(scale, ceiling))


@settings(max_examples=300)
@given(queues(), seeds, st.sampled_from(["pi", "pi-b"]))
def test_a_place_is_worth_something_and_at_most_the_gain_per_service(queue, seed, method):
    start = random_policy(np.random.default_rng(seed), queue.capacity, len(queue.classes))
    assert_place_is_worth_what_the_theorem_says(qu.solve(queue, method, start=start), queue.model, queue)


@settings(max_examples=300)
@given(queues(), st.floats(0.0, 2.0), seeds, st.sampled_from(["pi", "pi-b"]))
def test_the_same_with_optimistic_rates_that_depend_on_the_state(queue, radius, seed, method):
    model = optimistic_model(queue, radius)
    start = random_policy(np.random.default_rng(seed), queue.capacity, len(queue.classes))
    assert_place_is_worth_what_the_theorem_says(qu.solve(model, method, start=start), model, queue)


@st.composite
def rational_optimistic_models(draw):
    """Whole numbers throughout: linear costs of different slopes, so that the order of the classes changes with s."""
    capacity, m = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    servers = draw(st.integers(1, capacity))
    total, mu = Fraction(draw(st.integers(1, 12))), Fraction(draw(st.integers(1, 4)))
    weights = [draw(st.integers(1, 5)) for _ in range(m)]
    estimate = np.array([Fraction(w, sum(weights)) for w in weights])
    radius = Fraction(draw(st.integers(0, 8)), 4)
    rewards = [Fraction(draw(st.integers(1, 20))) for _ in range(m)]
    slopes = [Fraction(draw(st.integers(0, 10))) for _ in range(m)]
    theta = mu * Fraction(draw(st.sampled_from([0, 0, 1, 4, 20])), 4)
    late = [draw(st.booleans()) for _ in range(m)]  # pays when it is served only
    table = []
    for s in range(capacity):
        k = max(0, s - servers + 1)
        wait = k / (servers * mu + k * theta)
        terms = zip(rewards, slopes, late, strict=True)
        table.append(tuple(r * (1 - theta * wait * at_start) - h * wait for r, h, at_start in terms))
    orders = [np.array(sorted(range(m), key=lambda i, row=row: -row[i])) for row in table]
    rates = tuple(tuple(total * p for p in optimistic_shares(estimate, radius, order)) for order in orders)
    service = tuple(min(s, servers) * mu + max(0, s - servers) * theta for s in range(capacity + 1))
    return RationalModel(rates, tuple(table), service), servers * mu


@settings(max_examples=300)
@given(rational_optimistic_models())
def test_without_rounding_a_place_is_worth_more_than_nothing(drawn):
    model, largest_rate = drawn
    _, value = rational_optimum(model)
    assert all(0 < g <= value.gain / largest_rate for g in value.relative_bias)
    assert value.relative_bias[-1] == value.gain / model.service_rates[-1]


@settings(max_examples=100)
@given(rational_optimistic_models(), seeds)
def test_no_policy_earns_more_than_everybody_at_an_empty_queue(drawn, seed):
    """Thm 5.1 (i): rho <= sum_i lambda_i(0) R_i."""
    model, _ = drawn
    admits = random_policy(np.random.default_rng(seed), model.capacity, model.class_count).admits.tolist()
    everybody = sum(rate * r for rate, r in zip(model.arrival_rates[0], model.rewards[0], strict=True))
    assert rational_value(model, admits).gain <= everybody


@settings(max_examples=200)
@given(queues(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_wider_ball_promises_more(queue, radius, more):
    """Thm 4.3, part 2: more weight on the classes that pay best never lowers the best gain."""
    gains = [qu.solve(model).gain for model in (queue, optimistic_model(queue, radius))]
    gains.append(qu.solve(optimistic_model(queue, radius + more)).gain)
    assert gains[0] <= gains[1] * (1 + SLACK)
    assert gains[1] <= gains[2] * (1 + SLACK)


@settings(max_examples=200)
@given(queues(), st.floats(1.0, 10.0))
def test_more_arrivals_promise_more(queue, factor):
    """Thm 4.3, part 1: who may reject loses nothing by more arrivals."""
    busier = queue.with_arrival_rates([rate * factor for rate in queue.arrival_rates])
    assert qu.solve(queue).gain <= qu.solve(busier).gain * (1 + SLACK)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.floats(0.0, 2.0), seeds)
def test_optimistic_shares_are_the_best_of_the_ball(weights, radius, seed):
    """The generator of these tests: a distribution within the ball, and no random one in the ball pays more."""
    random = np.random.default_rng(seed)
    estimate = np.array(weights) / sum(weights)
    rewards = random.normal(size=len(weights))
    shares = optimistic_shares(estimate, radius, np.argsort(-rewards))
    assert np.all(shares >= 0)
    assert abs(shares.sum() - 1) < 1e-12
    assert np.abs(shares - estimate).sum() <= radius + 1e-12
    for _ in range(20):
        other = random.dirichlet(np.ones(len(weights)))
        distance = np.abs(other - estimate).sum()
        assume(distance > 0)
        inside = estimate + min(1.0, radius / distance) * (other - estimate)
        assert inside @ rewards <= shares @ rewards + 1e-12
