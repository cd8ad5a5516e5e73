r"""What a learner that updates at every tick remembers: records that compiled code and Python share.

It lives on the same decision process as the general-purpose learners of `tabular`: the uniformized chain, X = S + 1
states, rewards in R_max. At each tick it sees the state s, what happened (an arrival of a class, a departure, nothing),
what was paid and the next state, changes its memory, and sets the row of the admission table for the next state. So the
engines need one call a tick and no policy: `learn` of this package. One type of memory serves all rules, so that the
engines' loops are compiled once for them all, and once without a learner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from queueing_ucrl.arrays import BoolArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.elementary import power
from queueing_ucrl.learning.controller import Knowledge

R_LEARNING, ACTOR_CRITIC, SALMUT, INTEGER_GRADIENT = range(4)  # rules
LEFT, NOTHING = -1, -2  # what a tick may be besides an arrival, which is told by its class: a job left, or nothing

RUN = np.dtype(
    [
        ("rule", np.int64),
        ("random", np.uint64),  # the state of its own random numbers
        ("ticks", np.int64),  # so far
        ("arrivals", np.int64),  # of those
        ("gain", np.float64),  # its estimate of rho, in R_max a tick
        ("step", np.float64),  # step sizes and exploration as options give them
        ("gain_step", np.float64),
        ("actor_step", np.float64),
        ("exploration", np.float64),
        ("falling", np.bool_),  # whether those fall as states are seen more often
        ("phase", np.int64),  # ticks between two moves of the thresholds
    ]
)
STATE = np.dtype([("value", np.float64), ("visits", np.int64), ("action", np.int64)])  # action: that of the table's row
PAIR = np.dtype([("value", np.float64), ("visits", np.int64), ("preference", np.float64), ("probability", np.float64)])
JOB = np.dtype([("reward", np.float64), ("ranked", np.int64)])  # r_i(s) / R_max, and the class of each rank
CLASS = np.dtype([("threshold", np.float64), ("ranked", np.int64)])  # and the class of each rank in the empty system


class Memory(NamedTuple):
    """All of it."""

    run: np.ndarray[Any, Any]  # one record
    states: np.ndarray[Any, Any]  # X
    pairs: np.ndarray[Any, Any]  # X by A
    jobs: np.ndarray[Any, Any]  # X by m; nothing is paid in state S
    classes: np.ndarray[Any, Any]  # m
    table: BoolArray  # the admission table, S by m


def fresh_memory(knowledge: Knowledge, rule: int, rng: np.random.Generator, **numbers: float) -> Memory:
    """At the start of a run; `numbers` are fields of RUN."""
    states, classes = knowledge.capacity + 1, knowledge.class_count
    memory = Memory(
        np.zeros(1, RUN),
        np.zeros(states, STATE),
        np.zeros((states, classes + 1), PAIR),
        np.zeros((states, classes), JOB),
        np.zeros(classes, CLASS),
        np.zeros((states - 1, classes), dtype=np.bool_),
    )
    memory.run["rule"] = rule
    memory.run["random"] = rng.integers(np.iinfo(np.uint64).max, dtype=np.uint64, endpoint=True)
    for name, value in numbers.items():
        memory.run[name] = value
    memory.jobs["reward"][:-1] = knowledge.rewards / (knowledge.max_reward or 1.0)
    memory.jobs["ranked"][:-1] = np.argsort(-knowledge.rewards, axis=1, kind="stable")
    memory.jobs["ranked"][-1] = memory.jobs["ranked"][-2]
    memory.classes["ranked"] = memory.jobs["ranked"][0]
    memory.classes["threshold"] = knowledge.capacity
    return memory


@compiled
def uniform(run: Any) -> float:
    """The next number of its own stream, in [0, 1): splitmix64 (Steele, Lea, Flood 2014), its first 53 bits."""
    run.random += np.uint64(0x9E3779B97F4A7C15)
    z = run.random
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return float(z >> np.uint64(11)) * 2.0**-53


@compiled
def falling_step(visits: int) -> float:
    """a(n) = (floor(n / 100) + 2)^-0.6: its sum is infinite, that of its squares is not."""
    return power(float(visits // 100 + 2), -0.6)


@compiled
def take_action(memory: Memory, s: int, action: int) -> None:
    """The table's row for s lets in the `action` best classes there."""
    memory.states[s].action = action
    if s < memory.table.shape[0]:
        for rank in range(memory.table.shape[1]):
            memory.table[s, memory.jobs[s, rank].ranked] = rank < action
