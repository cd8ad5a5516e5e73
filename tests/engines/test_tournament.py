"""The tournament of times ahead, against a search of all players: times that are equal, infinite, changed at will."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from queueing_ucrl.simulation.tournament import replay, tournament

TIMES = st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 2.0, 2.0, 3.5, 1e300, math.inf])


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), TIMES, st.integers(-5, 5)), max_size=60))
@settings(max_examples=200, deadline=None)
def test_the_final_is_won_by_the_first_time_and_at_equal_times_by_the_lower_rank(
    players: int, changes: list[tuple[int, float, int]]
) -> None:
    times, ranks, winners = tournament(players)
    for player, time, rank in changes:
        times[player % players], ranks[player % players] = time, rank
        replay(times, ranks, winners, player % players)
        first = min(zip(times.tolist(), ranks.tolist(), strict=True))
        won = int(winners[1])
        assert (times[won], ranks[won]) == first
        size = times.size  # every match below has been played too
        for node in range(1, size):
            below = [int(winners[2 * node]), int(winners[2 * node + 1])]
            assert winners[node] in below
            assert (times[winners[node]], ranks[winners[node]]) == min((times[k], ranks[k]) for k in below)


def test_nobody_has_a_time_ahead_at_first() -> None:
    for players in (1, 2, 3, 8, 9):
        times, ranks, winners = tournament(players)
        assert np.all(np.isinf(times))
        assert not ranks.any()
        assert times.size >= players
        assert 0 <= winners[1] < times.size
