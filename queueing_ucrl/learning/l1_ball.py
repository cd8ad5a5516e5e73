"""The best law of an l1 ball: the best entry gains half the radius, and the excess is taken from the worst upward.

`order` has the entries from the best to the worst. What the excess is, the caller says: in exact arithmetic what the
best gained is what the sum exceeds 1 by; in doubles the two differ in the last bit.
"""

from __future__ import annotations

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled


@compiled
def raise_best(centre: FloatArray, radius: float, order: IntArray, law: FloatArray) -> float:
    """Fill `law` with the centre, the best entry raised to min(1, p^ + radius / 2); what that one gained. O(m)."""
    for x in range(centre.size):
        law[x] = centre[x]
    best = order[0]
    law[best] = min(1.0, centre[best] + 0.5 * radius)
    gain: float = law[best] - centre[best]
    return gain


@compiled
def take_from_worst(law: FloatArray, order: IntArray, excess: float) -> None:
    """Lower the last entries in `order` by `excess` in all, none below 0, the first left alone. O(m)."""
    for j in range(order.size - 1, 0, -1):
        if excess <= 0.0:
            break
        x = order[j]
        taken = min(excess, law[x])
        law[x] -= taken
        excess -= taken
