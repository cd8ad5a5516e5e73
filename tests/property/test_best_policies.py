"""The best policy belongs to the model: units, the order of the classes, where the search began leave it as it is."""

import numpy as np
import pytest
from generators import models, random_policy, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import queueing_ucrl as qu


@settings(max_examples=100)
@given(models, st.integers(-30, 30), st.integers(-30, 30))
def test_the_best_policy_does_not_depend_on_the_units(model, time, money):
    """All rates times a power of two, all rewards times another: nothing is rounded, so nothing may change."""
    solution = qu.solve(model)
    in_other_units = qu.AdmissionModel(
        model.arrival_rates * 2.0**time, model.rewards * 2.0**money, model.service_rates * 2.0**time
    )
    other = qu.solve(in_other_units)
    assert other.policy == solution.policy
    assert other.gain == solution.gain * 2.0 ** (time + money)
    assert other.iterations == solution.iterations


@settings(max_examples=100)
@given(models, seeds, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_the_best_policy_does_not_depend_on_the_start(model, seed, share):
    solution = qu.solve(model)
    start = random_policy(np.random.default_rng(seed), *model.rewards.shape, share)
    for begun in (start, solution.policy, qu.solve(model, "pi").policy):
        other = qu.solve(model, start=begun)
        assert other.policy == solution.policy
        assert other.gain == solution.gain
        assert np.array_equal(other.relative_bias, solution.relative_bias)


@settings(max_examples=100)
@given(models, seeds)
def test_the_best_policy_does_not_depend_on_the_order_of_the_classes(model, seed):
    order = np.random.default_rng(seed).permutation(model.class_count)
    turned = qu.AdmissionModel(model.arrival_rates[:, order], model.rewards[:, order], model.service_rates)
    solution, other = qu.solve(model), qu.solve(turned)
    assert np.array_equal(other.policy.admits, solution.policy.admits[:, order])
    assert other.gain == pytest.approx(solution.gain, rel=1e-12, abs=0.0)


@settings(max_examples=100)
@given(models)
def test_a_class_listed_twice_is_decided_alike(model):
    """Half of a class and its other half: the same rewards, so the same decisions, and the same gain."""
    split = qu.AdmissionModel(
        np.hstack([model.arrival_rates[:, :1] / 2, model.arrival_rates[:, :1] / 2, model.arrival_rates[:, 1:]]),
        np.hstack([model.rewards[:, :1], model.rewards]),
        model.service_rates,
    )
    solution, other = qu.solve(model), qu.solve(split)
    assert np.array_equal(other.policy.admits[:, 0], other.policy.admits[:, 1])
    assert other.gain == pytest.approx(solution.gain, rel=1e-10, abs=0.0)
