r"""Regret, four accounts of the same thing.

    realised   T rho* - sum over jobs of what they paid, R_i or an amount of mean R_i, less C_i(W) with the sampled
               waits and less what giving up cost
    expected   T rho* - sum over admitted jobs of r_i(s)                                    (the paper's)
    gap        sum over arrivals of |r_i(s) - g*(s)| where the decision is not the best one
    pseudo     sum over policies of (rho* - rho^pi) times how long each was in force

E[expected] = E[gap] - (h*(s_0) - E h*(s_T)): the gap account has the same mean up to the state at the end, and less
noise; far less (a tenth to a hundredth) for controllers that are nearly always right. All but `pseudo` follow from
counts of decisions; events before time t count for t.

They are measured against the optimum. Where none is known there is no regret, only what was earned:

    expected_reward   sum over admitted jobs of r_i(s)
    realised_reward   sum of what was paid, less C_i(W) of those that joined a server or gave up, and
                      less what giving up cost
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.totals import SUMS, Account, Comparator, Counts, Totals, joined, totals
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.messages import shown, unlike
from queueing_ucrl.model.checks import listed
from queueing_ucrl.model.system import System

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("realised", "expected", "gap", "pseudo")
REWARDS = ("expected_reward", "realised_reward")
CAUSES = ("wrongly_admitted", "wrongly_rejected")
OTHER_COLUMNS = ("controller", "replication", "time")  # of tables of curves


def no_expected_reward(system: System) -> str:
    """Why a system has no expected rewards r_i(s); "" where it has."""
    if not system.not_markov:
        return ""
    return (
        f"no expected reward: {system.not_markov}, so what a wait costs on average is not known; "
        "realised_reward has the waits as they were"
    )


def checked_accounts(accounts: object, comparator: Comparator) -> tuple[Account, ...]:
    """The accounts, or an error that says what is wrong with one: before a run rather than after it."""
    accounts = listed(accounts, "accounts")
    names = [*KINDS, *REWARDS, *SUMS, *OTHER_COLUMNS]
    for account in accounts:
        name = getattr(account, "name", None)
        if not isinstance(name, str) or not callable(account) or isinstance(account, type):
            raise TypeError(
                f"an account must be an object with a `name` and __call__(counts, comparator), got {shown(account)}"
            )
        if name in names:
            raise ValueError(f"account {name!r}: there is another of that name")
        names.append(name)
        _try(account, comparator)
    return tuple(accounts)


def _try(account: Account, comparator: Comparator) -> None:
    """Ask an account about a time before anything was counted, as it will be asked in any run."""
    m, S = len(comparator.system.classes), comparator.system.capacity
    none = np.zeros((1, S, m), dtype=np.int64)
    try:
        with np.errstate(all="ignore"):
            totals(Counts(np.zeros(1), none, none, none[:, 0], np.zeros((1, m))), comparator, [account])
    except Exception as error:
        why = f"; there is no comparator.best: {comparator.no_optimum}" if comparator.best is None else ""
        raise ValueError(f"account {account.name!r} fails before anything was counted: {error}{why}") from error


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
    no_expected_reward: str = ""  # why there is none
    own: dict[str, FloatArray] = field(default_factory=dict)  # accounts of one's own, by name; one number a time

    @classmethod
    def of(cls, times: FloatArray, found: Totals, comparator: Comparator, pseudo: FloatArray | None) -> RegretCurve:
        """From the totals at these times; pseudo: the account that does not follow from them."""
        sums: dict[str, Any] = {name: values for name, values in found.items() if name in SUMS}
        own = {name: values for name, values in found.items() if name not in SUMS}
        best = comparator.best
        regret: dict[str, Any] = {} if best is None else {"best_gain": best.gain, "pseudo": pseudo}
        missing: dict[str, Any] = {
            "no_optimum": comparator.no_optimum,
            "no_expected_reward": no_expected_reward(comparator.system),
        }
        return cls(times, **sums, **regret, **missing, own=own)

    def _needs_an_optimum(self) -> None:
        if self.no_optimum:
            raise ValueError(f"no regret: {self.no_optimum}")

    def earned(self, kind: str) -> FloatArray:
        """What was earned, over all classes."""
        if kind not in REWARDS:
            raise ValueError(f"kind must be one of {', '.join(REWARDS)}, got {kind!r}")
        if kind == "expected_reward" and self.no_expected_reward:
            raise ValueError(self.no_expected_reward)
        return (self.expected_reward if kind == "expected_reward" else self.reward - self.cost).sum(axis=1)

    def earned_per_time(self) -> float:
        """Rewards less costs of the waits as they were, per unit of time after the first time of the grid.

        Where there is but one time, per unit of time up to it.
        """
        times, earned = self.times.tolist(), self.earned("realised_reward").tolist()
        if len(times) == 1:
            return float(earned[0] / times[0])
        return float((earned[-1] - earned[0]) / (times[-1] - times[0]))

    def total(self, kind: str) -> FloatArray:
        """The account over all classes."""
        if kind in self.own:
            return self.own[kind]
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
    def rewards(self) -> dict[str, FloatArray]:
        """What was earned, over all classes, as far as it is known."""
        kinds = REWARDS[1:] if self.no_expected_reward else REWARDS
        return {kind: self.earned(kind) for kind in kinds}

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
                names.append(unlike(name, names))
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


def totals_from_events(
    events: pd.DataFrame, comparator: Comparator, times: FloatArray, accounts: Sequence[Account] = ()
) -> Totals:
    """The totals from an event log alone, at any times in order: the same numbers as a run notes."""
    system = comparator.system
    m, S = len(system.classes), system.capacity
    time = events["time"].to_numpy()
    kind = events["event"].astype(str).to_numpy()
    job_class = events["job_class"].cat.set_categories(system.class_names).cat.codes.to_numpy()
    state = events["in_system"].to_numpy()
    cost = events["cost"].to_numpy(dtype=float, na_value=0.0)
    admitted, rejected = np.zeros((S, m), dtype=np.int64), np.zeros((S, m), dtype=np.int64)
    by_class = {name: np.zeros(m, dtype=np.int64) for name in ("block", "start", "depart", "abandon")}
    reward = events["reward"].to_numpy(dtype=float, na_value=0.0)
    paid, collected = np.zeros(m), np.zeros(m)
    found, position = [], 0
    for at, end in zip(times, np.searchsorted(time, times, side="left"), strict=True):
        event, who, where = (column[position:end] for column in (kind, job_class, state))
        for name, table in (("admit", admitted), ("reject", rejected)):
            np.add.at(table, (where[event == name], who[event == name]), 1)
        for name, counted in by_class.items():
            np.add.at(counted, who[event == name], 1)
        for i in range(m):
            costs = cost[position:end][((event == "start") | (event == "abandon")) & (who == i)]
            paid[i] = _added(paid[i], costs)
            collected[i] = _added(collected[i], reward[position:end][who == i])
        position = end
        blocked, started, departed, abandoned = (counted[None] for counted in by_class.values())
        amounts = collected[None].copy() if system.pays_differ else None
        decided = (admitted[None], rejected[None], blocked)
        counts = Counts(np.array([at]), *decided, paid[None].copy(), started, departed, abandoned, amounts)
        found.append(totals(counts, comparator, accounts))
    if not found:
        none = np.zeros((0, S, m), dtype=np.int64)
        return totals(Counts(times, none, none, none[:, 0], np.zeros((0, m))), comparator, accounts)
    return joined(found)


def _added(total: float, numbers: FloatArray) -> float:
    """Number after number, in order."""
    return float(np.cumsum(np.concatenate([[total], numbers]))[-1])


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
