"""The optimistic model of a confidence set (Thm 4.3): the largest rate, in each state the best mix of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.confidence import ConfidenceSet
from queueing_ucrl.learning.controller import Knowledge
from queueing_ucrl.model.queue import AdmissionModel, IntArray
from queueing_ucrl.model.waits import FloatArray


@compiled
def _l1_optimistic(shares, radius, order, result):  # type: ignore[no-untyped-def]
    """Fill `result`: the first class in `order` gets min(1, p^ + radius/2), the excess goes from the last upward."""
    classes = shares.size
    for i in range(classes):
        result[i] = shares[i]
    best = order[0]
    result[best] = min(1.0, shares[best] + 0.5 * radius)
    total = 0.0
    for i in range(classes):
        total += result[i]
    excess = total - 1.0
    for j in range(classes - 1, 0, -1):
        if excess <= 0.0:
            break
        taken = min(excess, result[order[j]])
        result[order[j]] -= taken
        excess -= taken


@compiled
def _optimistic_shares(shares, radius, priorities, table):  # type: ignore[no-untyped-def]
    for s in range(priorities.shape[0]):
        _l1_optimistic(shares, radius, priorities[s], table[s])


def l1_optimistic(shares: FloatArray, radius: float, order: IntArray) -> FloatArray:
    """The distribution in the l1 ball around `shares` that favours classes in `order` (Thm 4.3). O(m).

    The first class gains radius / 2 at most; the excess is taken from the last upward. A radius of 2 or more, or no
    estimate at all (shares of 0), puts all mass on the first class.
    """
    result = np.empty(shares.size)
    _l1_optimistic(shares, radius, order, result)
    return result


def optimistic_shares(shares: FloatArray, radius: float, priorities: IntArray) -> FloatArray:
    """p~(s) for all states, a row each. O(mS)."""
    table = np.empty(priorities.shape)
    _optimistic_shares(shares, radius, priorities, table)
    return table


def optimistic_model(knowledge: Knowledge, plausible: ConfidenceSet, priorities: IntArray) -> AdmissionModel:
    """The model of the confidence set with the largest gain: rates Lambda~ p~_i(s). O(mS)."""
    shares = optimistic_shares(plausible.shares, plausible.share_radius, priorities)
    return AdmissionModel(plausible.optimistic_rate * shares, knowledge.rewards, knowledge.service_rates)


def shares_where_they_change(shares: FloatArray) -> list[dict[str, Any]]:
    """p~(s) at each state where it differs from the state before: [{"from_state": 0, "shares": [..]}, ..]."""
    changes = np.flatnonzero(np.any(shares[1:] != shares[:-1], axis=1)) + 1
    return [{"from_state": int(s), "shares": shares[s].tolist()} for s in (0, *changes)]
