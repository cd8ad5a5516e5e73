r"""What follows from counts of decisions: rewards, and the cost of wrong decisions.

With N_i(s) the jobs of class i that were admitted in state s up to a time, and M_i(s) those rejected,

    expected_reward    sum_s N_i(s) r_i(s)
    reward             sum_s N_i(s) R_i, or R_i for each start or departure where the class pays then; what was really
                       paid, where that differs from job to job
    cost               of the time in the queue of jobs that joined a server or gave up, and of giving up
    wrongly_admitted   sum_s N_i(s) (g*(s) - r_i(s))  over the states where the best policy rejects class i
    wrongly_rejected   sum_s M_i(s) (r_i(s) - g*(s))  over the states where it admits it

Counts are whole numbers, so whoever counts the same decisions (either engine, or a reader of the event log) gets the
same numbers to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.system import System
from queueing_ucrl.solvers.solution import Solution


@dataclass(frozen=True)
class Comparator:
    """What decisions are worth, and which would have been best."""

    system: System
    best: Solution | None = None  # rho*, g* and the best policy; None where no optimum is known
    no_optimum: str = ""  # why not


@dataclass(frozen=True)
class Counts:
    """What was counted up to each of some times: k times, S states, m classes."""

    times: FloatArray
    admitted: IntArray  # k, S, m
    rejected: IntArray  # k, S, m: by the policy
    blocked: IntArray  # k, m: for lack of room
    cost: FloatArray  # k, m: of the time in queue of jobs that joined a server or gave up, and of giving up
    started: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # k, m: joined a server
    departed: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # k, m: were served
    abandoned: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))  # k, m: gave up
    paid: FloatArray | None = None  # k, m: what was paid, where jobs of a class may pay different amounts

    def __post_init__(self) -> None:
        for name in ("started", "departed", "abandoned"):
            if getattr(self, name).size == 0:
                object.__setattr__(self, name, np.zeros_like(self.blocked))


class Account(Protocol):
    """An account of one's own: a number for each time, from the counts up to it and from nothing else.

    It is asked about some times at once, or one by one: a number must not depend on the other times it is asked about.
    """

    name: str

    def __call__(self, counts: Counts, comparator: Comparator) -> FloatArray:
        """One number a time."""
        ...


Totals = dict[str, FloatArray]  # by name; a row a time, a column a class
SUMS = ("expected_reward", "reward", "cost", "wrongly_admitted", "wrongly_rejected")  # those that `totals` always knows


def _paying(counts: Counts, system: System) -> IntArray:
    """How many jobs have paid up to each time, by class."""
    paying = counts.admitted.sum(axis=1)
    for i, c in enumerate(system.classes):
        if c.reward_at != "admission":
            paying[:, i] = (counts.started if c.reward_at == "start" else counts.departed)[:, i]
    return paying


def totals(counts: Counts, comparator: Comparator, accounts: Sequence[Account] = ()) -> Totals:
    """Rewards, costs and what wrong decisions cost up to each time, by class; and any accounts of one's own. O(kmS)."""
    system, best = comparator.system, comparator.best
    found = {
        "expected_reward": (counts.admitted * system.rewards).sum(axis=1),
        "reward": _paying(counts, system) * system.job_rewards if counts.paid is None else counts.paid,
        "cost": counts.cost,
    }
    if best is not None:
        distance = system.rewards - best.relative_bias[:, None]
        right = best.policy.admits
        found["wrongly_admitted"] = (counts.admitted * np.where(right, 0.0, -distance)).sum(axis=1)
        found["wrongly_rejected"] = (counts.rejected * np.where(right, distance, 0.0)).sum(axis=1)
    for account in accounts:
        values = np.asarray(account(counts, comparator), dtype=float)
        if values.shape != counts.times.shape:
            raise ValueError(
                f"account {account.name!r} must give one number a time, {counts.times.shape}, got {values.shape}"
            )
        found[account.name] = values
    return found


def joined(pieces: Sequence[Totals]) -> Totals:
    """The totals of several stretches of time, one after the other."""
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
