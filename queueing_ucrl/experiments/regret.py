r"""Regret, four accounts of the same thing.

    realised   T rho* - sum over jobs of R_i - C_i(W) with the sampled waits
    expected   T rho* - sum over admitted jobs of r_i(s)                                    (the paper's)
    gap        sum over arrivals of |r_i(s) - g*(s)| where the decision is not the best one
    pseudo     sum over policies of (rho* - rho^pi) times how long each was in force

E[expected] = E[gap] - (h*(s_0) - E h*(s_T)): the gap account has the same mean up to the state at the end, and less
noise; far less (a tenth to a hundredth) for controllers that are nearly always right. All but `pseudo` follow from
counts of decisions; events before time t count for t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.solvers.solution import Solution

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("realised", "expected", "gap", "pseudo")
CAUSES = ("wrongly_admitted", "wrongly_rejected")


@dataclass(frozen=True)
class RegretCurve:
    """The accounts on a grid of times; arrays of one row a time, one column a class."""

    times: FloatArray
    best_gain: float
    expected_reward: FloatArray
    reward: FloatArray
    cost: FloatArray
    wrongly_admitted: FloatArray
    wrongly_rejected: FloatArray
    pseudo: FloatArray  # one number a time

    @classmethod
    def from_snapshots(
        cls, snapshots: Sequence[Any], best_gain: float, segments: Sequence[tuple[float, float]]
    ) -> RegretCurve:
        """From what a run noted at the times of its grid; segments are (start, gain) of the policies in force."""

        def column(name: str) -> FloatArray:
            return np.array([getattr(snapshot, name) for snapshot in snapshots])

        times = column("time")
        names = ("expected_reward", "reward", "cost", *CAUSES)
        columns = {name: column(name) for name in names}
        return cls(times, best_gain, **columns, pseudo=pseudo_regret(times, best_gain, segments))

    def total(self, kind: str) -> FloatArray:
        """The account over all classes."""
        if kind == "pseudo":
            return self.pseudo
        if kind == "gap":
            return (self.wrongly_admitted + self.wrongly_rejected).sum(axis=1)
        earned = self.expected_reward if kind == "expected" else self.reward - self.cost
        return self.times * self.best_gain - earned.sum(axis=1)

    def frame(self, kind: str, by: str | None, class_names: Sequence[str]) -> pd.DataFrame:
        """time and regret; by class or by cause a column each (gap only: the others do not divide)."""
        import pandas as pd

        if by is None:
            return pd.DataFrame({"time": self.times, "regret": self.total(kind)})
        if kind != "gap":
            raise ValueError(f"only the gap account divides by class or cause, not {kind!r}")
        if by == "class":
            table = self.wrongly_admitted + self.wrongly_rejected
            names = ["time"]
            for name in class_names:  # a class may be called "time"
                numbered = (name if k == 1 else f"{name} ({k})" for k in count(1))
                names.append(next(candidate for candidate in numbered if candidate not in names))
            return pd.DataFrame(dict(zip(names, [self.times, *table.T], strict=True)))
        if by == "cause":
            return pd.DataFrame({"time": self.times, **{cause: getattr(self, cause).sum(axis=1) for cause in CAUSES}})
        raise ValueError(f"by must be class or cause, got {by!r}")


def pseudo_regret(times: FloatArray, best_gain: float, segments: Sequence[tuple[float, float]]) -> FloatArray:
    """sum over policies of (rho* - rho^pi) times how long each was in force, up to each time."""
    starts = np.array([start for start, _ in segments])
    losses = best_gain - np.array([gain for _, gain in segments])
    lengths = np.diff(starts)
    before = np.concatenate([[0.0], np.cumsum(losses[:-1] * lengths)])
    k = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    return before[k] + losses[k] * (times - starts[k])


def curve_from_events(
    events: pd.DataFrame, queue: Queue, best: Solution, times: FloatArray, segments: Sequence[tuple[float, float]]
) -> RegretCurve:
    """The accounts from an event log alone, at any times: the same numbers as from the tallies."""
    m, S = len(queue.classes), queue.capacity
    rewards = np.array([c.reward for c in queue.classes])
    time = events["time"].to_numpy()
    kind = events["event"].astype(str).to_numpy()
    job_class = events["job_class"].cat.set_categories(queue.class_names).cat.codes.to_numpy()
    state = events["in_system"].to_numpy()
    cost = events["cost"].to_numpy(dtype=float, na_value=0.0)
    distance = queue.rewards - best.relative_bias[:, None]
    rows = []
    counts = {name: np.zeros((S, m), dtype=np.int64) for name in ("admit", "reject")}
    paid = np.zeros(m)
    position = 0
    for end in np.searchsorted(time, times, side="left"):
        piece = slice(position, end)
        for name, table in counts.items():
            chosen = kind[piece] == name
            np.add.at(table, (state[piece][chosen], job_class[piece][chosen]), 1)
        started = kind[piece] == "start"
        for i in range(m):
            costs = cost[piece][started & (job_class[piece] == i)]
            paid[i] = np.cumsum(np.concatenate([[paid[i]], costs]))[-1]
        position = end
        admitted, rejected = counts["admit"], counts["reject"]
        rows.append(
            (
                (admitted * queue.rewards).sum(axis=0),
                admitted.sum(axis=0) * rewards,
                paid.copy(),
                np.where(best.policy.admits, 0.0, admitted * -distance).sum(axis=0),
                np.where(best.policy.admits, rejected * distance, 0.0).sum(axis=0),
            )
        )
    names = ("expected_reward", "reward", "cost", *CAUSES)
    columns = {name: np.array([row[k] for row in rows]).reshape(len(rows), m) for k, name in enumerate(names)}
    return RegretCurve(times, best.gain, **columns, pseudo=pseudo_regret(times, best.gain, segments))


def decompose(episodes: Sequence[Any], best_gain: float, arrival_rate: float) -> dict[str, float]:
    """The expected regret by Section 5: episodes with the truth outside the confidence set (`out`, and the first one),
    with too few arrivals in the one before (`bad`: nu_{k-1} < Lambda t_{k-1} / 2), and the rest (`good`).
    """
    parts = {"out": 0.0, "bad": 0.0, "good": 0.0}
    before = None
    for episode in episodes:
        regret = (episode.end - episode.start) * best_gain - episode.expected_reward
        if before is None or episode.truth_inside is False:
            parts["out"] += regret
        elif before.arrivals < 0.5 * arrival_rate * (before.end - before.start):
            parts["bad"] += regret
        else:
            parts["good"] += regret
        before = episode
    return parts
