r"""Extended value iteration: the best policy of the best plausible decision process, for any kind of confidence set.

With r+(s,a) the largest plausible reward and P(s,a) the plausible transition laws,

    (L u)(s) = max_a [ r+(s,a) + max_{p in P(s,a)} p . u ],

until span(L u - u) = max(L u - u) - min(L u - u) < epsilon: then min and max of L u - u enclose the optimistic gain,
and the actions that attain L u are within epsilon of it. Both hold for every u, so the steps may be damped:

    u <- u + alpha (L u - u),   alpha = 0.9,

which is value iteration on the chains (1 - alpha) I + alpha P with the same gain a step (Puterman, 8.5.4). The damped
chains are aperiodic, whatever the inner maximum makes of them; plain sweeps may swing for ever, and on a queue all of
whose servers are busy they nearly do. From u = 0 the span of u stays below the diameter, as in the undamped iteration.

Ties: of a state's actions whose values differ by rounding alone, the one least visited so far is taken, and of equally
visited ones any, by the learner's own stream of random numbers. (Early on all actions tie. By a fixed order the first,
which lets nobody in, would win every time.) States of equal u are ranked by their number. No cap on the sweeps, unless
one is given: if rounding keeps the span from falling, an error says so.

A kind of confidence set is a NamedTuple of arrays with a compiled function `look_ahead`, registered by `kind_of_set`;
numba picks the function by the tuple's type, so all kinds share this file's loop at no cost.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.errors import SolverError
from queueing_ucrl.solvers.policy_iteration import TIE

DAMPING = 0.9  # alpha
SWEEP_WORK = 50_000_000  # entries of transition laws between two returns to Python, so that Ctrl-C is heard
PATIENCE = 10_000  # sweeps that must make the span fall, by a millionth at least


def look_ahead(sets: Any, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray) -> None:
    """Fill table[s, a] with max_{p in P(s,a)} p . u. `order` has the states by falling u, `law` is scratch space."""
    raise NotImplementedError("called from compiled code only")


def kind_of_set(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the decorated function the `look_ahead` of sets of this kind (a NamedTuple of arrays)."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def choose(
            sets: Any, u: FloatArray, order: IntArray, law: FloatArray, table: FloatArray
        ) -> Callable[..., None] | None:
            return function if getattr(sets, "instance_class", None) is kind else None

        choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        overload(look_ahead)(choose)  # numba compares the two signatures, annotations and all
        return function

    return register


class Optimum(NamedTuple):
    """What extended value iteration found."""

    actions: IntArray  # by state
    gain: float  # optimistic gain a step, within half of epsilon (unless the sweeps were cut short)
    values: FloatArray  # u, its smallest entry 0
    sweeps: int


@compiled
def rank(u: FloatArray, order: IntArray) -> None:
    """Sort `order` so that u falls along it, equals by number. O(X) if nearly sorted, as it is from sweep to sweep."""
    for i in range(1, order.size):
        x = order[i]
        j = i - 1
        while j >= 0 and (u[order[j]] < u[x] or (u[order[j]] == u[x] and order[j] > x)):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = x


@compiled
def _sweeps(
    sets: Any,
    rewards: FloatArray,
    u: FloatArray,
    order: IntArray,
    table: FloatArray,
    epsilon: float,
    limit: int,
) -> tuple[int, float, float]:
    """Sweep until the span is below epsilon or `limit` sweeps are done; (sweeps, min, max of L u - u).

    `table` is left with r+(s,a) + max p . u of the last sweep.
    """
    states, choices = rewards.shape
    change = np.empty(states)
    law = np.empty(states)
    for done in range(limit):
        rank(u, order)
        look_ahead(sets, u, order, law, table)
        lowest = np.inf
        highest = -np.inf
        for s in range(states):
            best = -np.inf
            for a in range(choices):
                table[s, a] += rewards[s, a]
                best = max(best, table[s, a])
            change[s] = best - u[s]
            lowest = min(lowest, change[s])
            highest = max(highest, change[s])
        if highest - lowest < epsilon:
            return done + 1, lowest, highest
        smallest = np.inf
        for s in range(states):
            u[s] += DAMPING * change[s]
            smallest = min(smallest, u[s])
        for s in range(states):
            u[s] -= smallest
    return limit, lowest, highest


def best_actions(table: FloatArray, allowance: float, visits: IntArray, rng: np.random.Generator) -> IntArray:
    """For each state an action within `allowance` of the best value: of these the least visited, of those any."""
    tied = table >= table.max(axis=1, keepdims=True) - allowance
    least = np.where(tied, visits, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
    return np.argmax(np.where(tied & (visits == least), rng.random(table.shape), -1.0), axis=1)


def extended_value_iteration(
    sets: Any,
    rewards: FloatArray,
    epsilon: float,
    visits: IntArray,
    rng: np.random.Generator,
    most_sweeps: float = math.inf,
) -> Optimum:
    """The best actions over all processes with these rewards r+ (X by A) and transition laws in `sets`, from u = 0.

    visits (X by A) and rng decide between equal actions. most_sweeps: so many sweeps at most; the actions are then
    those that are best for about so many steps to come.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be a positive number, got {epsilon}")
    states, choices = rewards.shape
    u = np.zeros(states)
    order = np.arange(states)
    table = np.empty((states, choices))
    limit = max(2, SWEEP_WORK // (states * states * choices))
    total = checked = 0
    last = np.inf
    while True:
        sweeps, lowest, highest = _sweeps(sets, rewards, u, order, table, epsilon, int(min(limit, most_sweeps - total)))
        total += sweeps
        span = highest - lowest
        if span < epsilon or total >= most_sweeps:
            # 1 + the span of u bounds the values that are compared; rounding moves them by 1e-14 of it
            actions = best_actions(table, TIE * (1.0 + float(u.max())), visits, rng)
            return Optimum(actions, 0.5 * (lowest + highest), u, total)
        if total - checked < PATIENCE or most_sweeps < math.inf:
            continue
        if not span < last * (1.0 - 1e-6):
            raise SolverError(
                f"extended value iteration cannot reach epsilon = {epsilon:.3g}: the span of the change stays at "
                f"{span:.3g} after {total} sweeps, with values up to {u.max():.3g}"
            )
        last, checked = span, total
