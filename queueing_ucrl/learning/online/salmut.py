r"""SALMUT (Roy, Borkar, Karandikar, Chaporkar 2022): a threshold for each class, learned by its gradient.

Class i is let in where s < tau_i. At a tick from s to s' that pays r, with n the visits of s so far,

    V(s) <- (1 - a) V(s) + a [r + V(s') - V(s_0)],     a = (floor(n / 100) + 2)^-0.6,

and if it is an arrival of class i in s < S, the n-th arrival in all, on the slower time scale

    tau_i += (b / n) sigma'(s - tau_i - 1/2) [r_i(s) + V(s + 1) - V(s)],     sigma(x) = 1 / (1 + e^-x),

sigma(s - tau_i - 1/2) being the share turned away by the threshold made smooth. Thresholds stay within [0, S] and in
the order of the classes' rewards: a class has no higher one than a class that pays more.

A reconstruction. From the article, or from a published implementation of it: both updates, both time scales, b = 10,
the order. Not found, and chosen here: the article draws by a coin whether the value after admitting (+) or turning away
(-) enters the second update; here is the difference itself, since an operator knows both next states, with less
noise. b = 10 goes with rewards counted in their own money; ours are in R_max, so b = 200 by default, as for a largest
reward of 20. s_0 is the middle of the states, as in the implementation. It starts with all thresholds at S (the
implementation: 0, where nobody is ever let in, and nothing but the empty system seen). The smooth threshold's gradient
weighs several states, so where it vanishes need not be the best level: on small queues it may stop one beside it.
"""

from __future__ import annotations

from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import exp
from queueing_ucrl.learning.online.memory import Memory, falling_step


@compiled
def slope(x: float) -> float:
    """sigma'(x) = sigma(x) (1 - sigma(x))."""
    share = 1.0 / (1.0 + exp(-abs(x)))
    return share * (1.0 - share)


@compiled
def keep_in_order(memory: Memory, rank: int) -> None:
    """After a move of the class of this rank: within [0, the threshold before it], and none after it is higher."""
    classes = memory.classes
    limit = float(memory.states.size - 1)
    if rank > 0:
        limit = classes[classes[rank - 1].ranked].threshold
    for k in range(rank, classes.size):
        one = classes[classes[k].ranked]
        one.threshold = min(max(one.threshold, 0.0), limit)
        limit = one.threshold


@compiled
def update(memory: Memory, s: int, event: int, reward: float, after: int) -> None:
    """One tick."""
    run, states, classes = memory.run[0], memory.states, memory.classes
    states[s].visits += 1
    step = falling_step(states[s].visits)
    fixed = states[states.size // 2].value
    states[s].value += step * (reward + states[after].value - fixed - states[s].value)
    if event < 0 or s == states.size - 1:
        return
    one = classes[event]
    advantage = memory.jobs[s, event].reward + states[s + 1].value - states[s].value
    one.threshold += run.actor_step / float(run.arrivals) * slope(s - one.threshold - 0.5) * advantage
    for rank in range(classes.size):
        if classes[rank].ranked == event:
            keep_in_order(memory, rank)


@compiled
def choose(memory: Memory, s: int) -> None:
    """The row for s: everybody whose threshold is above it."""
    table = memory.table
    if s < table.shape[0]:
        for i in range(table.shape[1]):
            table[s, i] = s < memory.classes[i].threshold
