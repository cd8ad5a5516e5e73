r"""Integer gradient ascent (Massaro, De Pellegrini, Maggi 2019): whole thresholds, moved by one where both sides agree.

Class i is let in where s < K_i. The advantage of admitting it in s over turning it away is

    A_i(s) = r_i(s) + V(s + 1) - V(s),

V the relative values under the present thresholds. After every phase of so many ticks,

    K_i <- K_i + 1  if A_i(K_i - 1) > 0 and A_i(K_i) > 0,     K_i - 1  if both are negative,     else it stays:

the signs of the left and of the right gradient of the gain, which are these advantages times positive numbers. Where
the values are the true ones of a queue with one class, it goes to the best threshold and stops there.

A reconstruction: abstract and definition of the two gradients are known, the article's estimator of V is not. Here V is
learned by temporal differences at each tick, V(s) += a [r - rho + V(s') - V(s)], a = (floor(n / 100) + 2)^-0.6 with n
the visits of s, and rho the mean reward so far of the phase and those before, with the weight of the gain's own step
(floor(t / 100) + 2)^-0.6. Near its threshold, in K_i - 1 and K_i, a class is decided against the rule in a share of
`exploration` of the ticks, since V(K_i + 1) would not be known else (in the article a policy of steps is random there).
It starts with every threshold in the middle.
"""

from __future__ import annotations

from queueing_ucrl.compiled import compiled
from queueing_ucrl.learning.online.memory import Memory, falling_step, uniform


@compiled
def moved(threshold: float, capacity: int, below: float, at: float) -> float:
    """K after a phase: below = A(K - 1), at = A(K); there is no state below 0 to close, nor one above S to open."""
    K = int(threshold)
    upward = (K == 0 or below > 0.0) and at > 0.0
    downward = below < 0.0 and (capacity == K or at < 0.0)
    if upward and capacity > K:
        return threshold + 1.0
    if downward and K > 0:
        return threshold - 1.0
    return threshold


@compiled
def advantage(memory: Memory, s: int, i: int) -> float:
    """A_i(s); 0 where nobody can be let in."""
    if s < 0 or s >= memory.states.size - 1:
        return 0.0
    return memory.jobs[s, i].reward + memory.states[s + 1].value - memory.states[s].value


@compiled
def update(memory: Memory, s: int, reward: float, after: int) -> None:
    """One tick, and at the end of a phase the moves."""
    run, states, classes = memory.run[0], memory.states, memory.classes
    states[s].visits += 1
    run.gain += falling_step(run.ticks) * (reward - run.gain)
    delta = reward - run.gain + states[after].value - states[s].value
    states[s].value += falling_step(states[s].visits) * delta
    if run.ticks % run.phase == 0:
        for i in range(classes.size):
            K = int(classes[i].threshold)
            below, at = advantage(memory, K - 1, i), advantage(memory, K, i)
            classes[i].threshold = moved(classes[i].threshold, states.size - 1, below, at)


@compiled
def choose(memory: Memory, s: int) -> None:
    """The row for s."""
    run = memory.run[0]
    table = memory.table
    if s < table.shape[0]:
        for i in range(table.shape[1]):
            K = int(memory.classes[i].threshold)
            near = s in (K - 1, K)
            table[s, i] = (s < K) != (near and uniform(run) < run.exploration)
