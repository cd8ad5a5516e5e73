"""Windows, slots and exposures of stretches of time that begin and end anywhere."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.data.observed import (
    counts_in,
    in_order,
    observed_time,
    slot_exposure,
    slot_of,
    spans,
    windows,
    within,
)


@st.composite
def stretches(draw: st.DrawFn) -> np.ndarray:
    """One to four stretches, in order and apart; some of them long, some short, some touching."""
    edges = np.cumsum(draw(st.lists(st.floats(0.01, 50.0), min_size=2, max_size=8)))
    edges += draw(st.floats(-100.0, 100.0))
    return edges[: len(edges) // 2 * 2].reshape(-1, 2)


@given(stretches(), st.floats(0.5, 40.0), st.integers(1, 30))
def test_exposures_add_up_to_what_was_observed(observed: np.ndarray, period: float, slots: int) -> None:
    assert slot_exposure(observed, period, slots).sum() == pytest.approx(observed_time(observed), rel=1e-6)


@given(stretches(), st.floats(0.5, 40.0), st.integers(1, 12))
def test_exposure_of_a_slot_is_the_time_spent_in_it(observed: np.ndarray, period: float, slots: int) -> None:
    """Cut at every edge of a slot: each piece lies in the slot of its middle."""
    expected = np.zeros(slots)
    width = period / slots
    for begin, end in observed:
        first = int(np.floor(begin / width))
        edges = [begin, *(x for k in range(first, first + 5000) if begin < (x := k * width) < end), end]
        for a, b in pairwise(edges):
            expected[int(slot_of([0.5 * (a + b)], period, slots)[0])] += b - a
    assert slot_exposure(observed, period, slots) == pytest.approx(expected, abs=1e-6)


@given(stretches(), st.floats(0.3, 60.0))
def test_windows_tile_what_was_observed(observed: np.ndarray, length: float) -> None:
    starts, ends = windows(observed, length)
    assert np.all(ends > starts)
    assert np.all(ends - starts <= length * (1 + 2e-6))
    assert (ends - starts).sum() == pytest.approx(observed_time(observed))
    for begin, end in observed:
        own = (starts >= begin) & (ends <= end)
        assert starts[own][0] == begin
        assert ends[own][-1] == end
        assert np.all(starts[own][1:] == ends[own][:-1])


@given(stretches(), st.floats(0.3, 60.0), st.integers(0, 2**32 - 1))
def test_every_arrival_is_in_one_window(observed: np.ndarray, length: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    which = rng.integers(len(observed), size=40)
    times = np.sort(observed[which, 0] + rng.random(40) * (observed[which, 1] - observed[which, 0]) * 0.999)
    times = np.append(times[times < observed[-1, 1]], observed[-1, 1])
    starts, ends = windows(observed, length)
    assert counts_in(within(times, observed)[0], starts, ends)[1].sum() == times.size


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="must end after it begins, got 3 to 3"):
        spans((3.0, 3.0))
    with pytest.raises(ValueError, match="in order and apart"):
        spans([(0.0, 2.0), (1.0, 3.0)])
    with pytest.raises(ValueError, match="never go back: number 3 is 1 after 2"):
        in_order([0.0, 2.0, 1.0])
    with pytest.raises(ValueError, match="1 of 3 times lie outside of what was observed, the first of them 7"):
        within([1.0, 2.0, 7.0], [(0.0, 3.0), (8.0, 9.0)])
    with pytest.raises(ValueError, match="a positive finite number, got 0"):
        windows((0.0, 1.0), 0.0)


@given(st.integers(-2000, 2000), st.sampled_from([1, 2, 3, 4, 24, 48]), st.sampled_from([24.0, 6.0, 86400.0]))
def test_a_time_on_the_edge_of_a_slot_belongs_to_the_slot_that_begins(edge: int, slots: int, period: float) -> None:
    """Widths here are whole numbers or halves, so that edges are exact."""
    assert slot_of([edge * (period / slots)], period, slots)[0] == edge % slots


def test_windows_are_those_of_each_stretch() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        edges = np.cumsum(rng.exponential(1.0, 2 * rng.integers(1, 8)))
        parts, length = edges.reshape(-1, 2), float(rng.choice([0.01, 0.3, 1.0, 10.0]))
        starts, ends = windows(parts, length)
        expected = []
        for begin, end in parts.tolist():
            count = max(1, math.ceil((end - begin) / length - 1e-6))
            inside = [begin + length * k for k in range(count)]
            expected += list(zip(inside, [*inside[1:], end], strict=True))
        assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected
