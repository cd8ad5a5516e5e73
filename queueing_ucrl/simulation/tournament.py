"""Whose time comes first: a knock-out tournament in which every server, or every job in the system, has a place.

Node 1 is the final, node n is played between the winners of nodes 2n and 2n + 1, and below are the players; who has no
time ahead plays with an infinite one. A new time of one player replays the matches on its way to the final and no
others: O(log n), always as many steps, and nothing that the processor could guess wrong as it does in a heap, since a
match is won by selection and not by a jump. The loops play it in place: a function that takes the arrays counts
references to them, which costs more than the matches.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled


class Tournament(NamedTuple):
    """Of each player its time and, at equal times, its rank: the lower one wins. winner[1] won the final."""

    time: FloatArray
    rank: IntArray
    winner: IntArray


def tournament(players: int) -> Tournament:
    """Nobody has a time ahead."""
    size = 1
    while size < players:
        size *= 2
    winner = np.zeros(2 * size, dtype=np.int64)
    winner[size:] = np.arange(size)
    for node in range(size - 1, 0, -1):
        winner[node] = winner[2 * node]
    return Tournament(np.full(size, math.inf), np.zeros(size, dtype=np.int64), winner)


@compiled
def replay(times: FloatArray, ranks: IntArray, winners: IntArray, player: int) -> None:
    """The matches of a player whose time has changed, where times may be equal: then the lower rank wins."""
    node = player + times.size
    while node > 1:
        one, other = winners[node], winners[node ^ 1]
        if times[other] < times[one] or (times[other] == times[one] and ranks[other] < ranks[one]):
            one = other
        node >>= 1
        winners[node] = one
