"""What holds of every queue under every policy: balance, Bellman's equations, invariances."""

from dataclasses import replace

import numpy as np
import pytest
from generators import queues, random_policy, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import queueing_ucrl as qu

shares = st.sampled_from([0.1, 0.5, 0.9, 1.0])


def rates_under(queue, policy):
    birth = np.append(policy.admits @ queue.arrival_rates, 0.0)
    reward = np.append((policy.admits * queue.rewards) @ queue.arrival_rates, 0.0)
    return birth, reward


def queue_with(queue, classes):
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes, queue.patience)


def policy_for(queue, seed, share):
    return random_policy(np.random.default_rng(seed), queue.capacity, len(queue.classes), share)


@settings(max_examples=200)
@given(queues(largest_capacity=80), seeds, shares)
def test_flow_up_equals_flow_down(queue, seed, share):
    policy = policy_for(queue, seed, share)
    law = qu.evaluate(queue, policy).stationary
    birth, _ = rates_under(queue, policy)
    assert law.sum() == pytest.approx(1.0, rel=1e-13)
    np.testing.assert_allclose(law[:-1] * birth[:-1], law[1:] * queue.service_rates[1:], rtol=1e-12, atol=1e-140)


@settings(max_examples=200)
@given(queues(largest_capacity=80), seeds, shares)
def test_gain_is_the_mean_reward_and_the_bias_solves_its_equations(queue, seed, share):
    """eq. 3 in every state, also in the one where the recursions meet: each term to 1e-11."""
    policy = policy_for(queue, seed, share)
    value = qu.evaluate(queue, policy)
    birth, reward = rates_under(queue, policy)
    assert value.gain == pytest.approx(value.stationary @ reward, rel=1e-11, abs=1e-11 * np.abs(reward).max())
    finite = np.isfinite(value.relative_bias)
    up = birth * np.append(np.where(finite, value.relative_bias, 0.0), 0.0)
    down = queue.service_rates * np.append(0.0, np.where(finite, value.relative_bias, 0.0))
    usable = np.append(finite, True) & np.append(True, finite)
    size = np.abs(reward) + np.abs(up) + np.abs(down) + abs(value.gain)
    residual = np.abs(value.gain - (reward - up + down))
    assert np.all(residual[usable] <= 1e-11 * size[usable])


@given(queues(), seeds, shares)
def test_the_order_of_the_classes_does_not_matter(queue, seed, share):
    policy = policy_for(queue, seed, share)
    turned = queue_with(queue, queue.classes[::-1])
    value, other = qu.evaluate(queue, policy), qu.evaluate(turned, qu.Policy(policy.admits[:, ::-1]))
    assert other.gain == pytest.approx(value.gain, rel=1e-12, abs=1e-12 * queue.max_reward * queue.total_arrival_rate)
    assert np.array_equal(qu.solve(turned).policy.admits[:, ::-1], qu.solve(queue).policy.admits)


@given(queues(), seeds, shares)
def test_a_class_split_in_two_is_the_same_queue(queue, seed, share):
    """Poisson streams split: half of a class and its other half are the class."""
    policy = policy_for(queue, seed, share)
    first = queue.classes[0]
    halves = [replace(first, name=name, arrival_rate=first.arrival_rate / 2) for name in ("one", "two")]
    split = queue_with(queue, [*halves, *queue.classes[1:]])
    admits = np.hstack([policy.admits[:, :1], policy.admits])
    value, other = qu.evaluate(queue, policy), qu.evaluate(split, qu.Policy(admits))
    assert other.gain == pytest.approx(value.gain, rel=1e-12, abs=1e-12 * queue.max_reward * queue.total_arrival_rate)
    np.testing.assert_allclose(other.stationary, value.stationary, rtol=1e-11, atol=1e-140)


@given(queues(), seeds, shares)
def test_the_best_policy_is_at_least_as_good_as_any(queue, seed, share):
    best = qu.solve(queue).gain
    assert qu.evaluate(queue, policy_for(queue, seed, share)).gain <= best + 1e-10 * max(best, queue.max_reward)


@given(queues())
def test_the_best_policy_is_a_trunk_reservation_and_lets_somebody_into_free_servers(queue):
    """Feinberg and Yang, Thms 3.1 and 3.5, with R_i > 0; where jobs give up the second holds."""
    policy = qu.solve(queue).policy
    assert policy.is_trunk_reservation or queue.abandons
    assert max(policy.control_levels) >= min(queue.servers, queue.capacity)
