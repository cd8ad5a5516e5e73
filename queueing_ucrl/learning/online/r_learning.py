r"""R-learning (Schwartz 1993, in the form of Singh 1994 and of Sutton and Barto's book, 1st edition, 6.7).

At a tick from s under action a that pays r and ends in s',

    R(s,a) += alpha [r - rho + max_b R(s',b) - R(s,a)],
    rho    += beta  [r - rho + max_b R(s',b) - max_b R(s,b)]      where a was a best action of s,

with actions that are best but for a share epsilon of ticks, at which any is taken. Ties go to the action least often
taken in the state, of those to any. The book's queueing example has alpha = beta = 0.01 and epsilon = 0.1 for ever,
which are the defaults; the original article's constants and exploration were not found. With `falling` the three are
multiplied by (floor(n / 100) + 1)^-0.6, n the visits of the pair, the ticks, and the visits of the state: rho and the
policy then converge, as neither does with constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import power
from queueing_ucrl.learning.online.memory import Memory, take_action, uniform


@compiled
def highest(pairs: np.ndarray[Any, Any], s: int) -> float:
    """max_b R(s,b)."""
    best = pairs[s, 0].value
    for a in range(1, pairs.shape[1]):
        best = max(best, pairs[s, a].value)
    return best


@compiled
def damping(n: int) -> float:
    """(floor(n / 100) + 1)^-0.6."""
    return power(float(n // 100 + 1), -0.6)


@compiled
def update(memory: Memory, s: int, reward: float, after: int) -> None:
    """One tick."""
    run, pairs = memory.run[0], memory.pairs
    pair = pairs[s, memory.states[s].action]
    memory.states[s].visits += 1
    pair.visits += 1
    step, gain_step = run.step, run.gain_step
    if run.falling:
        step *= damping(pair.visits)
        gain_step *= damping(run.ticks)
    best = highest(pairs, s)
    was_best = pair.value == best
    ahead = reward - run.gain + highest(pairs, after)
    pair.value += step * (ahead - pair.value)
    if was_best:
        run.gain += gain_step * (ahead - best)


@compiled
def choose(memory: Memory, s: int) -> None:
    """An action for s: any, or a best one."""
    run, pairs = memory.run[0], memory.pairs
    actions = pairs.shape[1]
    exploration = run.exploration
    if run.falling:
        exploration *= damping(memory.states[s].visits)
    if uniform(run) < exploration:
        take_action(memory, s, min(actions - 1, int(uniform(run) * actions)))
        return
    best, chosen, tied = highest(pairs, s), -1, 0
    for a in range(actions):
        if pairs[s, a].value < best:
            continue
        if chosen < 0 or pairs[s, a].visits < pairs[s, chosen].visits:
            chosen, tied = a, 1
        elif pairs[s, a].visits == pairs[s, chosen].visits:
            tied += 1
            if uniform(run) * tied < 1.0:
                chosen = a
    take_action(memory, s, chosen)
