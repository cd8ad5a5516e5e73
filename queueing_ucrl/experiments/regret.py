r"""Regret, four accounts of the same thing.

    realised   T rho* - sum over jobs of R_i - C_i(W) with the sampled waits
    expected   T rho* - sum over admitted jobs of r_i(s)                                    (the paper's)
    gap        sum over arrivals of |r_i(s) - g*(s)| where the decision is not the best one
    pseudo     sum over policies of (rho* - rho^pi) times how long each was in force

E[expected] = E[gap] - (h*(s_0) - E h*(s_T)): the gap account has the same mean up to the state at the end, and less
noise; far less (a tenth to a hundredth) for controllers that are nearly always right. All but `pseudo` follow from
counts of decisions; events before time t count for t.

They are measured against the optimum. Where none is known there is no regret, only what was earned:

    expected_reward   sum over admitted jobs of r_i(s)
    realised_reward   sum over admitted jobs of R_i, less C_i(W) of those that joined a server
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.records import Snapshot, wrong_decisions
from queueing_ucrl.solvers.solution import Solution

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("realised", "expected", "gap", "pseudo")
REWARDS = ("expected_reward", "realised_reward")
CAUSES = ("wrongly_admitted", "wrongly_rejected")


@dataclass(frozen=True)
class RegretCurve:
    """The accounts on a grid of times; arrays of one row a time, one column a class."""

    times: FloatArray
    expected_reward: FloatArray
    reward: FloatArray
    cost: FloatArray
    best_gain: float = math.nan  # this and what follows only where there is an optimum
    wrongly_admitted: FloatArray | None = None
    wrongly_rejected: FloatArray | None = None
    pseudo: FloatArray | None = None  # one number a time
    no_optimum: str = ""  # why there is no regret

    @classmethod
    def from_snapshots(
        cls,
        snapshots: Sequence[Snapshot],
        classes: int,
        best: Solution | None,
        segments: Sequence[tuple[float, float]],
        no_optimum: str,
    ) -> RegretCurve:
        """From what a run noted at the times of its grid; segments are (start, gain) of the policies in force."""

        def column(name: str) -> FloatArray:
            return np.array([getattr(snapshot, name) for snapshot in snapshots]).reshape(len(snapshots), classes)

        times = np.array([snapshot.time for snapshot in snapshots])
        earned = (column("expected_reward"), column("reward"), column("cost"))
        if best is None:
            return cls(times, *earned, no_optimum=no_optimum)
        wrong = (column("wrongly_admitted"), column("wrongly_rejected"))
        return cls(times, *earned, best.gain, *wrong, pseudo_regret(times, best.gain, segments))

    def _needs_an_optimum(self) -> None:
        if self.no_optimum:
            raise ValueError(f"no regret: {self.no_optimum}")

    def earned(self, kind: str) -> FloatArray:
        """What was earned, over all classes."""
        if kind not in REWARDS:
            raise ValueError(f"kind must be one of {', '.join(REWARDS)}, got {kind!r}")
        return (self.expected_reward if kind == "expected_reward" else self.reward - self.cost).sum(axis=1)

    def total(self, kind: str) -> FloatArray:
        """The account over all classes."""
        self._needs_an_optimum()
        if kind == "pseudo":
            assert self.pseudo is not None
            return self.pseudo
        if kind == "gap":
            return self.gap_by_class.sum(axis=1)
        return self.times * self.best_gain - self.earned(f"{kind}_reward")

    @property
    def gap_by_class(self) -> FloatArray:
        """The gap account, a column a class."""
        self._needs_an_optimum()
        assert self.wrongly_admitted is not None
        assert self.wrongly_rejected is not None
        return self.wrongly_admitted + self.wrongly_rejected

    @property
    def accounts(self) -> dict[str, FloatArray]:
        """Every regret account over all classes; none where no optimum is known."""
        return {} if self.no_optimum else {kind: self.total(kind) for kind in KINDS}

    @property
    def causes(self) -> dict[str, FloatArray]:
        """The gap account by cause, a column a class; none where no optimum is known."""
        return {} if self.no_optimum else {cause: getattr(self, cause) for cause in CAUSES}

    def frame(self, kind: str, by: str | None, class_names: Sequence[str]) -> pd.DataFrame:
        """time and regret; by class or by cause a column each (gap only: the others do not divide)."""
        import pandas as pd

        if by is None:
            return pd.DataFrame({"time": self.times, "regret": self.total(kind)})
        if kind != "gap":
            raise ValueError(f"only the gap account divides by class or cause, not {kind!r}")
        if by == "class":
            names = ["time"]
            for name in class_names:  # a class may be called "time"
                numbered = (name if k == 1 else f"{name} ({k})" for k in count(1))
                names.append(next(candidate for candidate in numbered if candidate not in names))
            return pd.DataFrame(dict(zip(names, [self.times, *self.gap_by_class.T], strict=True)))
        if by == "cause":
            self._needs_an_optimum()
            return pd.DataFrame({"time": self.times, **{name: t.sum(axis=1) for name, t in self.causes.items()}})
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
    events: pd.DataFrame,
    queue: Queue,
    best: Solution | None,
    times: FloatArray,
    segments: Sequence[tuple[float, float]],
    no_optimum: str,
) -> RegretCurve:
    """The accounts from an event log alone, at any times: the same numbers as from the tallies."""
    m, S = len(queue.classes), queue.capacity
    rewards = np.array([c.reward for c in queue.classes])
    time = events["time"].to_numpy()
    kind = events["event"].astype(str).to_numpy()
    job_class = events["job_class"].cat.set_categories(queue.class_names).cat.codes.to_numpy()
    state = events["in_system"].to_numpy()
    cost = events["cost"].to_numpy(dtype=float, na_value=0.0)
    snapshots = []
    counts = {name: np.zeros((S, m), dtype=np.int64) for name in ("admit", "reject")}
    paid = np.zeros(m)
    position = 0
    for at, end in zip(times, np.searchsorted(time, times, side="left"), strict=True):
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
        wrong = wrong_decisions(queue, best, admitted, rejected)
        expected = (admitted * queue.rewards).sum(axis=0)
        snapshots.append(Snapshot(at, expected, admitted.sum(axis=0) * rewards, paid.copy(), *wrong))
    return RegretCurve.from_snapshots(snapshots, m, best, segments, no_optimum)


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
