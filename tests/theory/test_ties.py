"""Exact ties r_i(s) = g*(s), built and solved in rational arithmetic: PI-B must admit them all, and never cycle.

All numbers are dyadic, so that the model in doubles equals the rational one; each instance checks that.
"""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from exact import RationalModel, all_policies, rational_optimum, rational_value, solves_bellman
from generators import (
    any_model,
    any_queue,
    first_episode_model,
    large_mixed_model,
    overloaded_queue_with_a_deadline,
    queue_of_wide_rewards,
    random_policy,
    two_class_queue_flat_at_first,
)

import queueing_ucrl as qu
from queueing_ucrl.solvers.policy_iteration import TIE


def queue_as_rationals(servers, capacity, mu, rates, rewards, cost_rates):
    """r_i(s) = R_i - h_i (s - c + 1)^+ / (c mu)."""
    nu = servers * mu
    table = tuple(
        tuple(r - h * max(0, s - servers + 1) / nu for r, h in zip(rewards, cost_rates, strict=True))
        for s in range(capacity)
    )
    service = tuple(min(s, servers) * mu for s in range(capacity + 1))
    return RationalModel((tuple(map(Fraction, rates)),) * capacity, table, service)


def queue_tied_at(level, servers, capacity, mu, rates, cost_rates):
    """A two-class queue in which the second class's reward equals g* in state `level`; None if there is none.

    With class 1 admitted below `level` only, g(level) is affine in R_1: two evaluations tell where it meets
    r_1(level) = R_1 - h_1 W(level). All rewards are then scaled to whole numbers.
    """
    admits = tuple((True, s < level) for s in range(capacity))

    def tied_bias(reward):
        model = queue_as_rationals(servers, capacity, mu, rates, (Fraction(1), reward), cost_rates)
        return rational_value(model, admits).relative_bias[level]

    at_zero = tied_bias(Fraction(0))
    slope = tied_bias(Fraction(1)) - at_zero
    waiting = cost_rates[1] * max(0, level - servers + 1) / (servers * mu)
    reward = (at_zero + waiting) / (1 - slope)
    model = queue_as_rationals(servers, capacity, mu, rates, (Fraction(1), reward), cost_rates)
    if reward < 0 or not solves_bellman(model, rational_value(model, admits)):
        return None
    scale = reward.denominator
    if scale * 8 > 2**50:
        return None
    classes = [
        qu.JobClass(name, float(rate), float(r * scale), qu.Linear(float(h * scale)))
        for name, rate, r, h in zip("ab", rates, (Fraction(1), reward), cost_rates, strict=True)
    ]
    queue = qu.Queue(servers, capacity, float(mu), classes)
    scaled = queue_as_rationals(servers, capacity, mu, rates, (scale, reward * scale), [h * scale for h in cost_rates])
    assert RationalModel.of(queue.model) == scaled
    return queue


@functools.cache
def tied_queues(largest_capacity):
    """All that exist over a grid of small queues."""
    half, eighth = Fraction(1, 2), Fraction(1, 8)
    found = []
    for servers, capacity in itertools.product((1, 2, 4), range(2, largest_capacity + 1)):
        for mu, rates, costs, level in itertools.product(
            (half, Fraction(1), Fraction(4)),
            ((1, 1), (3, 1), (2, 5)),
            ((Fraction(0), Fraction(0)), (eighth / 4, eighth / 8)),
            range(capacity),
        ):
            queue = queue_tied_at(level, servers, capacity, mu, rates, costs)
            if queue is not None:
                found.append((queue, level))
    return found


def tied_model(random, capacity, classes):
    """A model whose Bellman equation has a chosen dyadic solution: g rises, each class above, below or equal to it.

    sum_i lambda_i(s) (r_i(s) - g(s))^+ must be D(s) = rho - mu(s) g(s-1): D(s) is shared among the classes above.
    """

    def dyadic(low, high):
        return Fraction(int(random.integers(low * 16, high * 16 + 1)), 16)

    servers = int(random.integers(1, capacity + 1))
    mu = [min(s, servers) * Fraction(3, 4) for s in range(capacity + 1)]
    g = sorted(dyadic(1, 20) for _ in range(capacity))
    gain = mu[-1] * g[-1]
    rates, rewards = [], []
    for s in range(capacity):
        due = gain - (mu[s] * g[s - 1] if s else 0)
        rate = [Fraction(2) ** int(random.integers(-2, 3)) for _ in range(classes)]
        kind = random.choice(["above", "tie", "below"], size=classes, p=[0.25, 0.5, 0.25])
        above = [i for i in range(classes) if kind[i] == "above"] or [0]
        shares = [Fraction(1, 2 ** (n + 1)) for n in range(len(above) - 1)]
        shares.append(1 - sum(shares))
        row = [g[s] if k == "tie" else g[s] - dyadic(1, 5) for k in kind]
        for i, share in zip(above, shares, strict=True):
            row[i] = g[s] + share * due / rate[i]
        rates.append(tuple(rate))
        rewards.append(tuple(row))
    exact = RationalModel(tuple(rates), tuple(rewards), tuple(mu))
    model = qu.AdmissionModel(np.array(rates, dtype=float), np.array(rewards, dtype=float), np.array(mu, dtype=float))
    assert RationalModel.of(model) == exact
    return model, gain, tuple(tuple(r >= b for r in row) for row, b in zip(rewards, g, strict=True))


def decaying_model(random, capacity, classes):
    """A model in which r - g halves (or so) from state to state, past what can be told from a tie, and ties besides.

    g(s) = G - 2^-k(s), k rising; the first class pays G, so its lead is 2^-k(s), and its rate D(s) 2^k(s) makes the
    optimality equation hold, D(s) = rho - mu(s) g(s-1). The others tie, exactly, or pay clearly less.
    """
    top = Fraction(int(random.integers(1, 9)))
    servers = int(random.integers(1, 3))
    service = Fraction(2) ** int(random.integers(-2, 3))
    mu = [min(s, servers) * service for s in range(capacity + 1)]
    steps = np.minimum(np.cumsum(random.integers(0, 3, capacity)), 40)
    g = [top - Fraction(1, 2 ** int(k)) for k in steps]
    gain = mu[-1] * g[-1]
    rates, rewards = [], []
    for s in range(capacity):
        due = gain - (mu[s] * g[s - 1] if s else 0)
        row = [top, *(g[s] if tied else g[s] - Fraction(1, 8) for tied in random.random(classes - 1) < 0.5)]
        rates.append((due * 2 ** int(steps[s]), *(Fraction(2) ** int(k) for k in random.integers(-2, 3, classes - 1))))
        rewards.append(tuple(row))
    exact = RationalModel(tuple(rates), tuple(rewards), tuple(mu))
    model = qu.AdmissionModel(np.array(rates, dtype=float), np.array(rewards, dtype=float), np.array(mu, dtype=float))
    assert RationalModel.of(model) == exact
    return model, gain, tuple(tuple(r >= b for r in row) for row, b in zip(rewards, g, strict=True))


def as_table(policy):
    return tuple(map(tuple, policy.admits.tolist()))


def test_the_family_of_tied_queues_is_large():
    assert len(tied_queues(6)) >= 300


def test_pi_b_admits_the_tied_class_on_every_tied_queue():
    for queue, level in tied_queues(6):
        exact = RationalModel.of(queue.model)
        best, value = rational_optimum(exact)
        assert exact.rewards[level][1] == value.relative_bias[level]  # the tie is exact
        solution = qu.solve(queue, "pi-b")
        assert as_table(solution.policy) == best
        assert solution.policy.control_levels[1] >= level + 1
        assert solution.gain == pytest.approx(float(value.gain), rel=1e-12)


@pytest.mark.parametrize("method", ["pi-b", "vi-ae", "lp"])
def test_the_answer_on_tied_queues_does_not_depend_on_method_or_start(method):
    random = np.random.default_rng(7)
    for queue, _ in tied_queues(4):
        best = qu.solve(queue).policy
        start = random_policy(random, queue.capacity, 2)
        assert qu.solve(queue, method, start=start).policy == best


def test_pi_b_is_bias_optimal_by_definition():
    """Of all policies of the best gain, all 2^(2S) tried in rationals, PI-B's has the largest bias in every state."""
    for queue, level in tied_queues(3):
        exact = RationalModel.of(queue.model)
        values = {admits: rational_value(exact, admits) for admits in all_policies(queue.capacity, 2)}
        top = max(value.gain for value in values.values())
        best = {admits: value.bias for admits, value in values.items() if value.gain == top}
        assert len(best) > 1
        found = as_table(qu.solve(queue).policy)
        assert all(max(h[s] for h in best.values()) == best[found][s] for s in range(queue.capacity + 1))
        trunk = [qu.Policy(admits) for admits in best if qu.Policy(admits).is_trunk_reservation]
        assert qu.Policy(found).control_levels == tuple(
            max(policy.control_levels[i] for policy in trunk) for i in range(2)
        ), level


def test_pi_b_admits_every_tie_of_models_with_many():
    random = np.random.default_rng(2024)
    for _ in range(300):
        capacity, classes = int(random.integers(1, 40)), int(random.integers(1, 5))
        model, gain, best = tied_model(random, capacity, classes)
        solution = qu.solve(model, "pi-b")
        assert as_table(solution.policy) == best
        assert solution.gain == pytest.approx(float(gain), rel=1e-12)
        for share in (0.2, 0.8):
            start = random_policy(random, capacity, classes, share)
            assert as_table(qu.solve(model, "pi-b", start=start).policy) == best


def test_pi_b_admits_every_tie_where_leads_fall_below_what_can_be_told():
    random = np.random.default_rng(40)
    for _ in range(300):
        capacity, classes = int(random.integers(1, 60)), int(random.integers(1, 5))
        model, gain, best = decaying_model(random, capacity, classes)
        solution = qu.solve(model, "pi-b")
        assert as_table(solution.policy) == best
        assert solution.gain == pytest.approx(float(gain), rel=1e-12)
        start = random_policy(random, capacity, classes)
        assert as_table(qu.solve(model, "pi-b", start=start).policy) == best
        assert qu.solve(model, "pi", start=start).gain == pytest.approx(float(gain), rel=1e-10)


NEARLY_TIED = {
    "overloaded, with a deadline": lambda random: overloaded_queue_with_a_deadline(random, 5, 40),
    "two classes, flat at first": lambda random: two_class_queue_flat_at_first(random, 40),
    "mixed, optimistic": lambda random: large_mixed_model(random, 20),
    "first episode": lambda random: first_episode_model(random, 20),
    "rewards over twelve decades": lambda random: queue_of_wide_rewards(random),
    "any queue": lambda random: any_queue(random, 20),
    "any model": lambda random: any_model(random, 20),
}


def nearly_tied_models(family, count):
    """Models of at most 45 states; those of exact ties, and of rewards and g that no double tells apart, among them."""
    random = np.random.default_rng(len(family))
    found = []
    while len(found) < count:
        drawn = NEARLY_TIED[family](random)
        model = drawn.model if isinstance(drawn, qu.Queue) else drawn
        if model.capacity <= 45:
            found.append(model)
    return found


@pytest.mark.parametrize("family", NEARLY_TIED)
def test_pi_b_gives_the_largest_of_the_policies_that_cannot_be_told_apart(family):
    """Against rationals: it admits all that the bias-optimal policy does. What it admits besides pays g* but for a few
    TIE, and together costs a few TIE of the gain at most. The gain it states is right.
    """
    for model in nearly_tied_models(family, 40):
        exact = RationalModel.of(model)
        best, value = rational_optimum(exact)
        solution = qu.solve(model)
        admits, best = solution.policy.admits, np.array(best)
        bias = np.array([float(g) for g in value.relative_bias])[:, None]
        near = np.abs(model.rewards - bias) <= 1e-9 * (np.abs(model.rewards) + np.abs(bias))
        assert np.all(admits[best])
        assert np.all((admits == best) | near)
        gain = rational_value(exact, as_table(solution.policy)).gain
        assert value.gain - gain <= 10 * TIE * abs(value.gain)
        assert solution.gain == pytest.approx(float(gain), rel=1e-12)


@pytest.mark.parametrize("method", ["vi-ae", "lp", "trunk-search"])
@pytest.mark.parametrize("family", [f for f in NEARLY_TIED if f != "rewards over twelve decades"])
def test_other_methods_give_the_same_of_them(family, method):
    tried = 0
    for model in nearly_tied_models(family, 15):
        best = qu.solve(model).policy
        if method == "trunk-search" and (
            not best.is_trunk_reservation or (model.capacity + 1) ** model.class_count > 20_000
        ):
            continue
        assert qu.solve(model, method).policy == best
        tried += 1
    assert tried >= 3


def test_rational_policy_iteration_finds_the_policy_the_ties_were_built_for():
    random = np.random.default_rng(12)
    for _ in range(40):
        model, gain, best = tied_model(random, int(random.integers(1, 9)), int(random.integers(1, 4)))
        admits, value = rational_optimum(RationalModel.of(model))
        assert admits == best
        assert value.gain == gain


def test_plain_pi_is_gain_optimal_at_ties():
    random = np.random.default_rng(99)
    for _ in range(300):
        capacity, classes = int(random.integers(1, 40)), int(random.integers(1, 5))
        model, gain, best = tied_model(random, capacity, classes)
        start = random_policy(random, capacity, classes)
        for solution in (qu.solve(model, "pi"), qu.solve(model, "pi", start=start)):
            assert solution.gain == pytest.approx(float(gain), rel=1e-12)
            assert np.all(solution.policy.admits <= np.array(best))


def test_plain_pi_keeps_an_optimal_policy_whatever_it_does_at_ties():
    random = np.random.default_rng(5)
    for _ in range(100):
        model, _, best = tied_model(random, 20, 3)
        ties = np.abs(model.rewards - qu.solve(model).relative_bias[:, None]) < 1e-9
        start = qu.Policy(np.array(best) & ~(ties & (random.random(ties.shape) < 0.5)))
        assert start != qu.Policy(best)
        solution = qu.solve(model, "pi", start=start)
        assert solution.policy == start
        assert solution.iterations == 1


def test_equal_classes_are_treated_alike():
    """Two classes with the same rewards tie with each other everywhere."""
    random = np.random.default_rng(6)
    for _ in range(100):
        cost = qu.Linear(random.uniform(0, 1))
        reward = random.uniform(1, 20)
        classes = [qu.JobClass(name, random.uniform(0.1, 5), reward, cost) for name in "ab"]
        classes.append(qu.JobClass("c", random.uniform(0.1, 5), random.uniform(1, 20)))
        admits = qu.solve(qu.Queue(int(random.integers(1, 9)), 30, 1.0, classes)).policy.admits
        assert np.array_equal(admits[:, 0], admits[:, 1])


def test_a_class_that_pays_nothing_is_rejected_where_it_takes_a_place_from_another():
    """g > 0 (Thm 5.1), so r = 0 is below g everywhere; alone, everybody paying 0, all are ties and all are admitted."""
    paying, idle = qu.JobClass("pays", 1.0, 5.0), qu.JobClass("pays nothing", 1.0, 0.0)
    assert qu.solve(qu.Queue(2, 10, 1.0, [paying, idle])).policy.control_levels == (10, 0)
    assert qu.solve(qu.Queue(2, 10, 1.0, [idle])).policy.control_levels == (10,)
