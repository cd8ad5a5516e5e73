"""One tick of a learner at work, whichever rule it follows: what both engines call."""

from __future__ import annotations

from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.online import actor_critic, integer_gradient, r_learning, salmut
from queueing_ucrl.learning.online.memory import ACTOR_CRITIC, R_LEARNING, SALMUT, Memory

_update_r, _choose_r = r_learning.update, r_learning.choose
_update_actor, _choose_actor = actor_critic.update, actor_critic.choose
_update_salmut, _choose_salmut = salmut.update, salmut.choose
_update_integer, _choose_integer = integer_gradient.update, integer_gradient.choose


@compiled
def choose(memory: Memory, s: int) -> None:
    """Set the row of the admission table for s."""
    rule = memory.run[0].rule
    if rule == R_LEARNING:
        _choose_r(memory, s)
    elif rule == ACTOR_CRITIC:
        _choose_actor(memory, s)
    elif rule == SALMUT:
        _choose_salmut(memory, s)
    else:
        _choose_integer(memory, s)


@compiled
def learn(memory: Memory, s: int, event: int, change: int) -> None:
    """A tick found the chain in s: an arrival of class `event` (or LEFT, NOTHING), and it moves by `change`.

    Changes the memory, and the row of the admission table for the next state.
    """
    run, rule, after = memory.run[0], memory.run[0].rule, s + change
    reward = 0.0
    if change > 0:
        reward = memory.jobs[s, event].reward
    run.ticks += 1
    run.arrivals += event >= 0
    if rule == R_LEARNING:
        _update_r(memory, s, reward, after)
    elif rule == ACTOR_CRITIC:
        _update_actor(memory, s, reward, after)
    elif rule == SALMUT:
        _update_salmut(memory, s, event, reward, after)
    else:
        _update_integer(memory, s, reward, after)
    choose(memory, after)
