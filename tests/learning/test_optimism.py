"""The optimistic model is the best of the confidence set (Thm 4.3): against the dual program, and against rivals."""

import numpy as np
import pytest
from generators import queues, random_queue, seeds
from hypothesis import given, settings
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.learning.beliefs import shares_where_they_change
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.learning.planners import ConfidenceOptimism, optimistic_shares
from queueing_ucrl.learning.tabular.ucrl2 import best_in_l1_ball


def l1_optimistic(shares, radius, order):
    """The mix of a state whose classes are in this order."""
    return optimistic_shares(shares, radius, order[None, :])[0]


def best_by_duality(shares, radius, values):
    """max sum p_i v_i over distributions with |p - p^|_1 <= radius, as the minimum of the dual program.

    For every alpha and beta >= max(v) - alpha, beta >= 0, no such p earns more than
    alpha + beta radius + sum p^_i max(v_i - alpha, -beta), convex and piecewise linear in alpha at the smallest beta:
    its minimum, the optimum, is at a kink.
    """
    top = values.max()
    alpha = np.append(0.5 * (values + top), top)[:, None]
    beta = top - alpha
    return (alpha[:, 0] + radius * beta[:, 0] + np.maximum(values - alpha, -beta) @ shares).min()


def test_the_mix_of_classes_solves_its_linear_program():
    """For every level g at once: what is maximised is sum p_i (r_i - g)^+, and the mix does not depend on g."""
    random = np.random.default_rng(51)
    for _ in range(150):
        m = int(random.integers(1, 7))
        shares = random.dirichlet(np.full(m, random.choice([0.3, 1.0, 5.0])))
        shares[random.random(m) < 0.2] = 0.0
        shares = shares / shares.sum() if shares.sum() else np.eye(m)[0]
        radius = float(random.choice([0.0, random.uniform(0, 0.3), random.uniform(0, 2.2), 2.0]))
        rewards = random.choice([random.normal(size=m), random.integers(0, 3, m).astype(float)])
        mix = l1_optimistic(shares, radius, np.argsort(-rewards, kind="stable"))
        assert mix.min() >= 0
        assert mix.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.abs(mix - shares).sum() <= radius + 1e-12
        for level in (-10.0, *rewards, rewards.mean()):
            values = np.maximum(rewards - level, 0.0)
            assert mix @ values == pytest.approx(best_by_duality(shares, radius, values), abs=1e-12)


def test_a_mix_by_hand():
    """The best class gains 0.1; it comes from the worst, and from the next once that is gone."""
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(l1_optimistic(np.array([0.3, 0.2, 0.5]), 0.2, order), [0.3, 0.1, 0.6], rtol=1e-14)
    np.testing.assert_allclose(l1_optimistic(np.array([0.45, 0.05, 0.5]), 0.2, order), [0.4, 0.0, 0.6], atol=1e-15)
    np.testing.assert_allclose(l1_optimistic(np.array([0.2, 0.2, 0.6]), 1.5, order), [0.0, 0.0, 1.0], atol=1e-15)


def test_without_an_estimate_all_mass_is_on_the_best_class():
    assert l1_optimistic(np.zeros(3), 2.0, np.array([1, 0, 2])).tolist() == [0.0, 1.0, 0.0]
    assert l1_optimistic(np.ones(1), 0.7, np.array([0])).tolist() == [1.0]


def test_the_best_law_of_a_ball_is_the_same_for_classes_and_for_states():
    """To the last bit where all numbers are 64ths; else to rounding, since what the best gains is not what the sum
    exceeds 1 by.
    """
    random, differ = np.random.default_rng(53), 0
    for _ in range(300):
        m = int(random.integers(2, 9))
        counts = random.multinomial(64, np.full(m, 1 / m))
        radius, u = float(random.integers(1, 40)) / 16, random.permutation(m).astype(float)
        order, law = np.argsort(-u), np.empty(m)
        best_in_l1_ball(counts / 64, radius, u, order, law)
        assert l1_optimistic(counts / 64, radius, order).tolist() == law.tolist()
        radius *= 1 / 3
        shares = (counts + 1) / (64 + m)
        best_in_l1_ball(shares, radius, u, order, law)
        mix = l1_optimistic(shares, radius, order)
        np.testing.assert_allclose(mix, law, rtol=0, atol=1e-15)
        differ += mix.tolist() != law.tolist()
    assert differ


@given(queues(largest_capacity=12), seeds, st.floats(0.0, 1.0), st.floats(1.0, 4.0))
@settings(max_examples=60)
def test_no_model_of_the_set_has_a_larger_gain(queue, seed, radius, width):
    """Rivals may even change their mix of classes and their rate from state to state."""
    random = np.random.default_rng(seed)
    m, rate = len(queue.classes), queue.total_arrival_rate
    interval = (rate / width, rate * width)
    plausible = ConfidenceSet(rate, rate, interval, queue.class_probabilities, radius, 0.1)
    model = ConfidenceOptimism(Knowledge.of(queue))(plausible).model
    best = qu.solve(model).gain
    scale = max(abs(best), 1e-12)
    assert best >= qu.solve(queue).gain - 1e-9 * scale
    for _ in range(6):
        mixes = []
        for _ in range(queue.capacity):
            toward = random.dirichlet(np.full(m, 0.5))
            distance = np.abs(toward - queue.class_probabilities).sum()
            step = min(1.0, radius / distance) if distance > 0 else 0.0
            mixes.append(
                queue.class_probabilities
                + step * random.choice([1.0, random.random()]) * (toward - queue.class_probabilities)
            )
        rates = (
            random.uniform(*interval, queue.capacity) if random.random() < 0.7 else np.full(queue.capacity, interval[1])
        )
        rival = qu.AdmissionModel(rates[:, None] * np.array(mixes), queue.rewards, queue.service_rates)
        assert qu.solve(rival).gain <= best + 1e-9 * scale


def test_the_table_of_mixes_is_the_mix_of_each_state():
    random = np.random.default_rng(52)
    for _ in range(30):
        queue = random_queue(random)
        radius = random.uniform(0, 1.5)
        table = optimistic_shares(queue.class_probabilities, radius, queue.priorities)
        for s, order in enumerate(queue.priorities):
            assert table[s].tolist() == l1_optimistic(queue.class_probabilities, radius, order).tolist()


def test_a_mix_that_changes_with_the_state_is_told_where_it_changes():
    """Voice is worth most in a short queue, video in a long one: the favoured class changes on the way."""
    queue = qu.Queue(
        1, 10, 1.0, [qu.JobClass("voice", 1.0, 10.0, qu.Linear(3.0)), qu.JobClass("video", 1.0, 6.0, qu.Linear(0.1))]
    )
    turn = int(np.argmax(queue.rewards[:, 0] < queue.rewards[:, 1]))
    assert turn > 0
    told = shares_where_they_change(optimistic_shares(np.array([0.5, 0.5]), 0.4, queue.priorities))
    assert [row["from_state"] for row in told] == [0, turn]
    assert told[0]["shares"] == pytest.approx([0.7, 0.3])
    assert told[1]["shares"] == pytest.approx([0.3, 0.7])
    run = qu.simulate(queue, qu.UcrlAc((0.5, 4.0), 5.0), horizon=40.0, seed=1)
    for mixes in run.episodes["optimistic_shares"]:
        assert [row["from_state"] for row in mixes] == [0, turn]
