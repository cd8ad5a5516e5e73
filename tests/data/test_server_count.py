"""How many servers overlapping services tell of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_paths import served_jobs, steady

from queueing_ucrl.data.server_count import server_count


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=25), st.integers(0, 9))
def test_the_largest_overlap_by_looking_between_all_times(services: list[tuple[int, int]], seed: int) -> None:
    starts = np.array([s for s, _ in services], dtype=float)
    ends = starts + np.array([length for _, length in services])
    order = np.random.default_rng(seed).permutation(starts.size)
    most = max(int(np.sum((starts <= t) & (t < ends))) for t in np.arange(0.5, 30))
    assert server_count(starts[order], ends[order]).at_least == most


@pytest.mark.parametrize("servers", [1, 3, 7])
def test_a_queue_tells_its_servers(servers: int) -> None:
    jobs = served_jobs(np.random.default_rng(1), 2000, steady(0.9 * servers), 0.9 * servers, servers, 1.0)
    found = server_count(jobs[:, 1], jobs[:, 2], waits=jobs[:, :2])
    assert (found.servers, found.at_least, found.share) == (servers, servers, pytest.approx(1.0))
    assert found.words == str(servers)
    assert found.waiting_time == pytest.approx(union(jobs[:, :2]))


def union(pairs: np.ndarray) -> float:
    """The time in which somebody waits."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(map(tuple, pairs.tolist())):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def test_without_waits_there_is_a_lower_bound_only() -> None:
    jobs = served_jobs(np.random.default_rng(2), 300, steady(2.0), 2.0, 100, 1.0)
    found = server_count(jobs[:, 1], jobs[:, 2])
    assert found.servers is None
    assert found.words == f"at least {found.at_least}"
    assert math.isnan(found.share)


def test_waits_beside_free_servers_leave_the_number_open() -> None:
    """Somebody waits while one is served, and at another time three are served at once."""
    starts, ends = [0.0, 10.0, 10.0, 10.0], [5.0, 12.0, 12.0, 12.0]
    found = server_count(starts, ends, waits=[(1.0, 4.0)] * 12)
    assert (found.at_least, found.servers, found.words) == (3, None, "at least 3")
    assert found.while_waiting == {1: 1.0}


def by_shifts(days: int, night: int, day: int) -> np.ndarray:
    """A queue that is always full: `night` servers until 8 and from 18 on, `day` between; services of 0.1."""
    rows = []
    for hour in range(24 * days):
        for _ in range(day if 8 <= hour % 24 < 18 else night):
            rows += [(max(hour - 0.5, 0.0), hour + 0.1 * k, hour + 0.1 * k + 0.1) for k in range(10)]
    return np.array(rows)


def test_shifts_are_noticed_and_told_by_the_hour() -> None:
    jobs = by_shifts(5, 2, 4)
    found = server_count(jobs[:, 1], jobs[:, 2], waits=jobs[:, :2], day=24.0, tolerance=1e-9)
    assert found.shifts
    assert found.servers is None
    assert found.words == "2 to 4, by the hour"
    assert [part.servers for part in found.by_slot] == [2] * 8 + [4] * 10 + [2] * 6


def test_a_change_for_good_is_noticed_by_the_day() -> None:
    early, late = by_shifts(4, 3, 3), by_shifts(4, 5, 5) + 96.0
    jobs = np.concatenate([early, late])
    found = server_count(jobs[:, 1], jobs[:, 2], waits=jobs[:, :2], day=24.0, tolerance=1e-9)
    assert (found.changes, found.words) == (True, "3 to 5, by the day")
    assert [part.servers for part in found.by_day] == [3] * 4 + [5] * 4


def test_ends_that_were_rounded_up_do_not_add_a_server() -> None:
    jobs = served_jobs(np.random.default_rng(3), 500, steady(0.9), 0.9, 1, 1.0)
    ends = np.ceil(jobs[:, 2] * 100) / 100
    assert server_count(jobs[:, 1], ends).at_least > 1
    assert server_count(jobs[:, 1], ends, tolerance=0.01 + 1e-9).at_least == 1


@given(st.integers(-10, 10))
def test_nothing_depends_on_the_unit_of_time(power: int) -> None:
    jobs = served_jobs(np.random.default_rng(4), 100, steady(1.8), 1.8, 2, 1.0)
    unit = 2.0**power
    one = server_count(jobs[:, 1], jobs[:, 2], waits=jobs[:, :2], day=24.0)
    other = server_count(jobs[:, 1] * unit, jobs[:, 2] * unit, waits=jobs[:, :2] * unit, day=24.0 * unit)
    assert (one.words, one.share, one.while_waiting) == (other.words, other.share, other.while_waiting)
    assert one.waiting_time * unit == other.waiting_time


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="there are none"):
        server_count([], [])
    with pytest.raises(ValueError, match="services must not end before they begin: 2 to 1"):
        server_count([2.0], [1.0])
    with pytest.raises(ValueError, match="leave unfinished ones out"):
        server_count([2.0], [math.inf])
