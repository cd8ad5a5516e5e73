"""Servers that come and go, and environments, as values: what they say of themselves, and what they refuse."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queueing_ucrl as qu

CLASSES = [
    qu.JobClass("a", 1.0, 2.0, service=qu.Exponential(0.5)),
    qu.JobClass("b", 3.0, 1.0, service=qu.Exponential(0.5)),
]


def test_shifts_by_the_clock() -> None:
    shifts = qu.Shifts([8.0, 16.0], [2, 5, 3], period=24.0)
    assert shifts == qu.Shifts([0.0, 8.0, 16.0], [2, 5, 3], period=24.0)
    assert [shifts.at(t) for t in (0.0, 7.9, 8.0, 15.0, 16.0, 23.0, 24.0, 32.0)] == [2, 2, 5, 5, 3, 3, 2, 5]
    assert shifts.mean == pytest.approx((2 * 8 + 5 * 8 + 3 * 8) / 24)
    assert shifts.most == 5
    assert qu.Shifts([8.0], [2, 5]).mean == 5.0


@given(st.integers(1, 5), st.data())
def test_the_stationary_law_balances(states: int, data: st.DataObject) -> None:
    rates = [[data.draw(st.integers(1, 50)) for _ in range(states)] for _ in range(states)]
    law = [Fraction(p) for p in qu.Environment(rates, [1.0] * states).stationary.tolist()]
    assert float(sum(law)) == pytest.approx(1.0, abs=1e-15)
    for e in range(states):
        flow_in = sum(law[f] * rates[f][e] for f in range(states) if f != e)
        flow_out = law[e] * sum(rates[e][f] for f in range(states) if f != e)
        assert float(flow_in) == pytest.approx(float(flow_out), rel=1e-13)


def test_an_environment_is_a_value() -> None:
    environment = qu.Environment([[0, 1], [2, 0]], [[1.0, 0.5], [2.0, 0.0]], servers=[1, 4])
    assert environment == pickle.loads(pickle.dumps(environment))
    assert hash(environment) == hash(pickle.loads(pickle.dumps(environment)))
    assert environment != qu.Environment([[0, 1], [2, 0]], [1.0, 2.0], servers=[1, 4])
    assert environment.factors(1).tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        environment.rates[0, 1] = 5.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: qu.Shifts([8.0], [0, 0], 24.0), "leave nobody on duty"),
        (lambda: qu.Shifts([8.0], [3, 0]), "leave nobody on duty"),
        (lambda: qu.Shifts([8.0], [3], 24.0), "one count more than times"),
        (lambda: qu.Shifts([8.0, 7.0], [3, 1, 2], 24.0), "increase"),
        (lambda: qu.Shifts([8.0, 24.0], [3, 1, 2], 24.0), "increase"),
        (lambda: qu.Shifts([8.0], [3, 1.5], 24.0), "whole number"),
        (lambda: qu.Shifts([8.0], [3, 1], 24.0, leaving="run"), "finish, hand-over"),
        (lambda: qu.Breakdowns(qu.Exponential(1.0), qu.Exponential(1.0), interrupted="drop"), "resume, restart"),
        (lambda: qu.Breakdowns(1.0, qu.Exponential(1.0)), "must be a law"),
        (lambda: qu.Setup(qu.Exponential(1.0), after=-1.0), "at least 0"),
        (lambda: qu.Environment([[0, 1], [0, 0]], [1.0, 2.0]), "reached from every other"),
        (lambda: qu.Environment([[0, -1], [1, 0]], [1.0, 2.0]), "must not be negative"),
        (lambda: qu.Environment([[0, 1], [1, 0]], [1.0]), "for each of the 2 states"),
        (lambda: qu.Environment([[0, 1], [1, 0]], [0.0, 0.0]), "one of them positive"),
        (lambda: qu.Environment([[0, 1], [1, 0]], [1.0, 1.0], start=2), "below 2"),
        (lambda: qu.System(2, 5, CLASSES, initial={"c": 1}), "there is no class"),
        (lambda: qu.System(2, 5, CLASSES, initial={"a": 6}), "more than the capacity"),
        (lambda: qu.System(2, 5, CLASSES, discipline="lifo"), "fifo, processor-sharing"),
        (lambda: qu.System(2, 5, CLASSES, breakdowns=3), "must be a Breakdowns"),
        (lambda: qu.JobClass("a", 1.0, 1.0, reward_at="never"), "admission, start, end"),
        (lambda: qu.JobClass("a", 1.0, 1.0, abandonment_cost=-1.0), "at least 0"),
        (lambda: qu.JobClass("a", 1.0, 1.0, patience=3.0), "patience must be a law"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_a_world_knows_what_it_is() -> None:
    system = qu.System(2, 5, CLASSES)
    assert system.not_markov == ""
    assert system.plain_data() == qu.System(2, 5, CLASSES, initial={"a": 0}).plain_data()
    reasons = {
        "servers changes": {"servers": qu.Shifts([8.0], [2, 5], 24.0)},
        "break down": {"breakdowns": qu.Breakdowns(qu.Exponential(1.0), qu.Exponential(1.0))},
        "environment": {"environment": qu.Environment([[0, 1], [1, 0]], [1.0, 2.0])},
        "set-up": {"setup": qu.Setup(qu.Exponential(1.0))},
        "share": {"discipline": "processor-sharing"},
    }
    for words, parts in reasons.items():
        world = qu.System(**{"servers": 2, "capacity": 5, "classes": CLASSES, **parts})
        assert words in world.not_markov
        assert world != system
        assert isinstance(hash(world), int)
        assert pickle.loads(pickle.dumps(world)) == world


def test_the_operators_queue_has_the_means() -> None:
    environment = qu.Environment([[0, 1], [3, 0]], [1.0, 3.0], servers=[2, 6])  # 3/4 and 1/4 of the time
    queue = qu.System(2, 8, CLASSES, environment=environment).queue
    np.testing.assert_allclose(queue.arrival_rates, [1.5, 4.5])
    assert queue.servers == 3
    broken = qu.Breakdowns(qu.Exponential(1.0), qu.Exponential(1.0))
    assert qu.System(4, 8, CLASSES, breakdowns=broken).queue.servers == 2
