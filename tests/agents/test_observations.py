"""What agents are shown of an arrival: one by one or all at once, the same numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.learning.observations import HOURS, KINDS, Observations


@st.composite
def encoders(draw):
    kind = draw(st.sampled_from(KINDS))
    lengths = st.none() | st.floats(0.5, 1e6)
    return Observations(
        draw(st.integers(1, 60)),
        draw(st.integers(1, 5)),
        kind,
        horizon=draw(lengths) if kind == "box" else None,
        period=draw(lengths),
        environments=draw(st.integers(0, 4)),
    )


@given(encoders(), st.data())
def test_arrivals_at_once_give_the_rows_that_each_gives_alone(encoder, data):
    count = data.draw(st.integers(1, 6))

    def column(values):
        return np.array(data.draw(st.lists(values, min_size=count, max_size=count)))

    s, i = column(st.integers(0, encoder.capacity)), column(st.integers(0, encoder.classes - 1))
    t, e = column(st.floats(0, 1e7)), column(st.integers(0, max(encoder.environments, 1) - 1))
    rows = encoder.encode(s, i, t, e)
    assert rows.shape == (count, encoder.size)
    assert rows.dtype == encoder.dtype
    alone = [encoder.encode(*one) for one in zip(s.tolist(), i.tolist(), t.tolist(), e.tolist(), strict=True)]
    assert np.array_equal(rows, np.array(alone))
    if encoder.kind == "box":
        assert np.all((rows >= encoder.low) & (rows <= encoder.high))
    else:
        assert len(encoder.counts) == encoder.size
        assert np.all((rows >= 0) & (rows < encoder.counts))


@given(encoders())
def test_the_grid_is_every_state_and_class_once(encoder):
    rows = encoder.grid()
    environments = max(encoder.environments, 1)
    assert rows.shape == (environments * encoder.capacity * encoder.classes, encoder.size)
    assert len(np.unique(rows, axis=0)) == len(rows)
    e, s, i = environments - 1, encoder.capacity // 2, encoder.classes - 1
    assert np.array_equal(rows[(e * encoder.capacity + s) * encoder.classes + i], encoder.encode(s, i, 0.0, e))


def test_what_stands_where():
    box = Observations(20, 2, "box", horizon=100.0, period=24.0, environments=3)
    assert box.encode(5, 1, 30.0, 2).tolist() == np.float32([0.25, 0, 1, 0.3, 0.25, 0, 0, 1]).tolist()
    integers = Observations(20, 2, "integers", period=24.0, environments=3)
    assert integers.encode(5, 1, 30.0, 2).tolist() == [5, 1, 6, 2]
    assert Observations(20, 2).encode(20, 0).tolist() == [1.0, 1.0, 0.0]


@given(st.floats(0, 1e9), st.floats(1e-3, 1e6))
def test_the_hour_is_that_of_exact_arithmetic_but_at_its_edges(now, period):
    hour = Observations(4, 1, "integers", period=period).encode(0, 0, now)[2]
    exact = Fraction(now) % Fraction(period) / Fraction(period) * HOURS
    assert hour == math.floor(exact) or abs(exact - round(exact)) < 1e-12


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "pictures"}, "must be box or integers, got 'pictures'"),
        ({"capacity": 0}, "capacity must be a whole number of at least 1"),
        ({"kind": "integers", "horizon": 10.0}, "elapsed time is no whole number"),
        ({"period": -1.0}, "period must be a positive finite number"),
        ({"environments": -1}, "environments must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_shown_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Observations(**{"capacity": 3, "classes": 2, **wrong})


def test_the_caller_owns_the_rows():
    encoder = Observations(4, 2)
    first = encoder.encode(1, 1)
    first[:] = 7
    assert encoder.encode(1, 1).tolist() == [0.25, 0.0, 1.0]
