"""Queue, JobClass and AdmissionModel check themselves; what they derive follows its definition."""

import math

import numpy as np
import pytest
from generators import paper_queue

import queueing_ucrl as qu

A = qu.JobClass("a", 1.0, 1.0)


def test_what_the_paper_calls_its_symbols():
    queue = paper_queue()
    assert queue.total_arrival_rate == 2.0
    assert queue.class_probabilities.tolist() == [0.5, 0.5]
    assert queue.max_service_rate == 1.5
    assert queue.max_reward == 20.0
    assert queue.load == pytest.approx(4 / 3, rel=1e-15)
    np.testing.assert_allclose(queue.service_rates, [0.3 * min(s, 5) for s in range(21)], rtol=1e-15)
    assert queue.class_names == ("gold", "basic")
    assert queue.model.uniformization_rate == pytest.approx(3.5, rel=1e-15)
    assert queue.model.reward_scale == 20.0


def test_priorities_follow_the_expected_reward_in_each_state():
    """Gold pays more and hates waiting: behind the third in line it is overtaken; equals keep their order."""
    queue = qu.Queue(1, 6, 1.0, [qu.JobClass("gold", 1.0, 5.0, qu.Linear(1.0)), qu.JobClass("tin", 1.0, 2.0)])
    assert queue.priorities.tolist() == [[0, 1], [0, 1], [0, 1], [0, 1], [1, 0], [1, 0]]


def test_other_arrival_rates_leave_the_rest_as_it_is():
    queue = paper_queue()
    other = queue.with_arrival_rates([3.0, 0.5])
    assert other.arrival_rates.tolist() == [3.0, 0.5]
    assert [c.reward for c in other.classes] == [20.0, 10.0]
    assert np.array_equal(other.rewards, queue.rewards)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        queue.with_arrival_rates([1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qu.Queue(0, 5, 1.0, [A]), "servers must be a whole number of at least 1, got 0"),
        (lambda: qu.Queue(1, 0, 1.0, [A]), "capacity must be a whole number of at least 1, got 0"),
        (lambda: qu.Queue(1.5, 5, 1.0, [A]), "servers must be a whole number"),
        (lambda: qu.Queue(1, 5, 0.0, [A]), "service_rate must be a positive finite number, got 0.0"),
        (lambda: qu.Queue(1, 5, -1.0, [A]), "service_rate must be a positive finite number"),
        (lambda: qu.Queue(1, 5, math.nan, [A]), "service_rate must be a positive finite number"),
        (lambda: qu.Queue(1, 5, 1.0, []), "classes must hold at least one job class"),
        (lambda: qu.Queue(1, 5, 1.0, [A, A]), "class names must differ, got 'a' more than once"),
        (lambda: qu.Queue(1, 10**9, 1.0, [A]), "capacity x classes must be at most"),
        (lambda: qu.JobClass("", 1.0, 1.0), "name must be a text that is not empty"),
        (lambda: qu.JobClass("a", 0.0, 1.0), "class 'a': arrival_rate must be a positive finite number, got 0.0"),
        (lambda: qu.JobClass("a", math.inf, 1.0), "class 'a': arrival_rate must be a positive finite number"),
        (lambda: qu.JobClass("a", 1.0, -1.0), "class 'a': reward must be a finite number of at least 0"),
        (lambda: qu.JobClass("a", 1.0, math.nan), "class 'a': reward must be a finite number of at least 0"),
        (lambda: qu.JobClass("a", 1.0, 1.0, 0.5), "class 'a': holding_cost must be a cost such as"),
    ],
)
def test_bad_queues_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("rates", "rewards", "service", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], [0.0, 1.0], "must be tables of the same shape"),
        ([1.0], [1.0], [0.0, 1.0], "must be tables of the same shape"),
        ([[1.0]], [[1.0]], [0.0, 1.0, 1.0], "service_rates must hold S \\+ 1 = 2 rates"),
        ([[-1.0]], [[1.0]], [0.0, 1.0], "arrival_rates must not be negative"),
        ([[1.0]], [[math.nan]], [0.0, 1.0], "rewards must be finite numbers"),
        ([[1.0]], [[1.0]], [1.0, 1.0], "0 in state 0 and positive above"),
        ([[1.0]], [[1.0]], [0.0, 0.0], "0 in state 0 and positive above"),
        ([[1e-60]], [[1.0]], [0.0, 1e60], "too far apart for double precision"),
    ],
)
def test_bad_models_are_refused(rates, rewards, service, message):
    with pytest.raises(ValueError, match=message):
        qu.AdmissionModel(np.array(rates), np.array(rewards), np.array(service))


def test_a_cost_too_large_for_a_double_is_refused():
    queue = qu.Queue(1, 200, 1.0, [qu.JobClass("a", 1.0, 1.0, qu.Power(1.0, 500.0))])
    with pytest.raises(ValueError, match="class 'a': the expected holding cost is too large for a double"):
        _ = queue.rewards
