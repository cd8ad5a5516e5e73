"""The result of one run: tables of events, episodes and solves, regret curves, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_measures import metrics, warm_up
from queueing_ucrl.accounts.measures import EVERYBODY, MEASURES, Observed, batch_estimate
from queueing_ucrl.accounts.regret import KINDS, RegretCurve, decompose, pseudo_regret, totals_from_events
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import not_negative
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.simulation.episode_log import StreamedLedger, episode_row, policy_gains
from queueing_ucrl.simulation.event_log import MemoryLog, ParquetLog, read_events
from queueing_ucrl.simulation.ledger import Ledger, Unfinished
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.solvers.service import SolveRecord
from queueing_ucrl.solvers.solution import Solution

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Run:
    """One run of a system under a controller."""

    controller: str
    decides_each_arrival: bool  # then its table says nothing, and there is no pseudo account
    settings: RunSettings
    replication: int
    engine: str
    engine_reason: str
    cautions: list[str]
    ledger: Ledger
    solve_records: list[SolveRecord]
    unfinished_jobs: list[Unfinished]
    log: MemoryLog | ParquetLog | None = None

    def __repr__(self) -> str:
        which = f"seed {self.settings.seed}, replication {self.replication}"
        return f"<Run: {self.controller} up to time {self.settings.horizon:g}, {which}, engine {self.engine}>"

    @property
    def system(self) -> System:
        """What was simulated."""
        return self.ledger.comparator.system

    @property
    def queue(self) -> Queue:
        """The system as an M/M/c/S queue."""
        return self.system.queue

    @property
    def best(self) -> Solution | None:
        """The best policy of the true queue, with rho* and g*; None where no optimum is known."""
        return self.ledger.comparator.best

    @property
    def no_optimum(self) -> str:
        """Why no optimum is known; "" where there is one."""
        return self.ledger.comparator.no_optimum

    @property
    def horizon(self) -> float:
        """How long it was."""
        return self.settings.horizon

    @property
    def seed(self) -> int:
        """Of its random numbers."""
        return self.settings.seed

    @cached_property
    def events(self) -> pd.DataFrame:
        """The event log; a run without `log` has none."""
        if isinstance(self.log, MemoryLog):
            return self.log.frame()
        if isinstance(self.log, ParquetLog):
            return read_events(self.log.path)
        raise ValueError("this run kept no event log: simulate(..., log=True) keeps one")

    @cached_property
    def _gains(self) -> Callable[[Policy], float]:
        return policy_gains(self.system)

    def _worth(self, policy: Policy) -> float:
        """The gain of a table; of one that a controller which decides each arrival does not keep to, nan."""
        return np.nan if self.decides_each_arrival else self._gains(policy)

    @property
    def _segments(self) -> list[tuple[float, float]]:
        """(start, gain) of the policies in force; a controller that decides each arrival has none to speak of."""
        return [(segment.start, self._worth(segment.policy)) for segment in self.ledger.segments]

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row an episode: when, what was seen, what was believed, the policy and what it is truly worth."""
        import pandas as pd

        return pd.DataFrame(self.episode_rows())

    def episode_rows(self) -> list[dict[str, Any]]:
        """The episode table as plain data."""
        return [episode_row(e, self._worth(e.policy)) for e in self.ledger.episodes]

    @cached_property
    def solves(self) -> pd.DataFrame:
        """One row a solve: when, by what method, in how many iterations and seconds, and the model's gain."""
        import pandas as pd

        columns = ["time", "method", "iterations", "seconds", "gain", "states", "classes"]
        return pd.DataFrame(self.solve_records, columns=columns)

    @cached_property
    def unfinished(self) -> pd.DataFrame:
        """Jobs still in the system at the horizon; the holding costs of those waiting are in no account."""
        import pandas as pd

        names = self.system.class_names
        rows = [
            {
                "job": job.job,
                "job_class": names[job.job_class],
                "arrival": job.arrival,
                "state": "waiting" if job.waiting else "interrupted" if job.interrupted else "in service",
                "so_far": self.horizon - (job.arrival if job.waiting else job.start),
            }
            for job in self.unfinished_jobs
        ]
        return pd.DataFrame(rows, columns=["job", "job_class", "arrival", "state", "so_far"])

    @cached_property
    def curve(self) -> RegretCurve:
        """All accounts on the run's grid."""
        ledger = self.ledger
        streamed = isinstance(ledger, StreamedLedger)  # then the policies are gone, but what they lost is known
        pseudo = ledger.pseudo if streamed else self._pseudo(ledger.times)  # type: ignore[attr-defined]
        return RegretCurve.of(ledger.times, ledger.totals, ledger.comparator, pseudo)

    def _pseudo(self, times: FloatArray) -> FloatArray | None:
        return None if self.best is None else pseudo_regret(times, self.best.gain, self._segments)

    def regret(
        self, kind: str = "expected", times: Sequence[float] | FloatArray | None = None, by: str | None = None
    ) -> pd.DataFrame:
        """The regret as a frame with columns time and regret; a ValueError says why where no optimum is known.

        kind: "realised", "expected", "gap" or "pseudo", or the name of an account of one's own. times: other times than
        the run's grid (needs the event log). by: for "gap", "class" or "cause" (wrongly admitted, wrongly rejected):
        one column each.
        """
        kinds = (*KINDS, *(account.name for account in self.ledger.accounts))
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")
        curve = self.curve if times is None else self.curve_at(times)
        return curve.frame(kind, by, self.system.class_names)

    def rewards(self, kind: str = "expected_reward", times: Sequence[float] | FloatArray | None = None) -> pd.DataFrame:
        """What was earned so far, as a frame with columns time and reward.

        kind: "expected_reward" (the sum of r_i(s) over admitted jobs) or "realised_reward" (of R_i, less the costs of
        the waits as they were). times: other times than the run's grid (needs the event log).
        """
        import pandas as pd

        curve = self.curve if times is None else self.curve_at(times)
        return pd.DataFrame({"time": curve.times, "reward": curve.earned(kind)})

    def curve_at(self, times: Sequence[float] | FloatArray) -> RegretCurve:
        """All accounts at any times, in order, from the event log: the same numbers as from the tallies."""
        asked = np.unique(np.asarray(times, dtype=float))
        if asked.size and not 0 <= asked[0] <= asked[-1] <= self.horizon:  # nan sorts last, and is refused
            raise ValueError(f"times must lie between 0 and the horizon {self.horizon:g}")
        ledger = self.ledger
        found = totals_from_events(self.events, ledger.comparator, asked, ledger.accounts)
        return RegretCurve.of(asked, found, ledger.comparator, self._pseudo(asked))

    def decomposition(self) -> dict[str, float]:
        """The expected regret by the paper's Section 5: out, bad, good; a ValueError says why where there is none."""
        if self.best is None:
            raise ValueError(f"no regret: {self.no_optimum}")
        self.queue.must_not_balk("the decomposition of Section 5")
        return decompose(self.ledger.episodes, self.best.gain, self.queue.total_arrival_rate)

    @property
    def _duty_time(self) -> float:
        """Server time on duty; of a server that finishes its job when its shift is over, until then."""
        on_duty = self.ledger.duty_time
        return self.horizon * self.system.most_servers if on_duty is None else on_duty

    @cached_property
    def _observed(self) -> Observed:
        """What was counted in the whole run, as one stretch of time."""
        ledger, waits = self.ledger, self.ledger.waits
        counted = {"rejected": ledger.rejected.sum(axis=0), "blocked": ledger.blocked, "started": waits.started}
        counted |= {"admitted": ledger.admitted.sum(axis=0), "abandoned": ledger.abandoned}
        sums = {**counted, "wait": waits.wait_sum, "reward": self.curve.reward[-1], "cost": self.curve.cost[-1]}
        return Observed(
            self.system.class_names,
            np.array([self.horizon]),
            {name: np.asarray(values, dtype=float)[None] for name, values in sums.items()},
            np.array([ledger.busy_time]),
            np.array([self._duty_time]),
            waits.histogram[None],
        )

    def measures(
        self,
        *,
        target_wait: float | None = None,
        start: float | str = 0.0,
        period: float | None = None,
        parts: int = 24,
    ) -> pd.DataFrame:
        """Waits, shares, utilisation and money: measure, job_class, mean and its 95 % interval (`accounts.measures`).

        target_wait: for service_level, instead of the run's setting. start: the time from which on things count, or
        "mser-5" to have it found. period: by parts of a period (hours of the day). With an event log every measure has
        an interval by batch means; without one only money has, if the grid is linear with 40 times at least, and
        neither start nor period can be given.
        """
        import pandas as pd

        target = self.settings.target_wait if target_wait is None else not_negative(target_wait, "target_wait")
        if self.log is not None:
            if start == "mser-5":
                start = self.warm_up()
            if isinstance(start, str):
                raise ValueError(f'start must be a time or "mser-5", got {start!r}')
            options: dict[str, Any] = {"start": start, "servers": self.system.most_servers}
            options |= {"period": period, "parts": parts}
            found = metrics(self.events, self.horizon, target_wait=target, **options)
            return found[found["measure"].isin(MEASURES)].reset_index(drop=True)
        if start != 0.0 or period is not None:
            raise ValueError("measures of a part of the run need its event log: simulate(..., log=True) keeps one")
        table = pd.DataFrame(self._observed.rows(target))
        curve = self.curve
        for measure, totals in (("revenue", curve.reward), ("cost", curve.cost), ("earned", curve.reward - curve.cost)):
            for name, total in zip((EVERYBODY, *self.system.class_names), (totals.sum(axis=1), *totals.T), strict=True):
                row = (table["measure"] == measure) & (table["job_class"] == name)
                known = batch_estimate(curve.times, total)
                table.loc[row, ["low", "high"]] = known.low, known.high
        return table

    def warm_up(self) -> float:
        """When the run is warm, by MSER-5 on the number of jobs in the system; needs the event log."""
        time, settled = warm_up(self.events, self.horizon)
        if not settled:
            raise ValueError(
                f"the run is too short to tell when it is warm: MSER-5 would drop half of it, up to {time:g}; take a "
                "longer horizon, or name a time"
            )
        return time

    def summary(self) -> dict[str, Any]:
        """The run in plain data: regrets, rewards, classes, utilisation."""
        curve, ledger, waits = self.curve, self.ledger, self.ledger.waits
        reward, cost, expected = curve.reward[-1], curve.cost[-1], float(curve.expected_reward[-1].sum())
        admitted, rejected = ledger.admitted.sum(axis=0), ledger.rejected.sum(axis=0)
        classes = [
            {
                "name": name,
                "arrivals": int(admitted[i] + rejected[i] + ledger.blocked[i]),
                "admitted": int(admitted[i]),
                "rejected": int(rejected[i]),
                "blocked": int(ledger.blocked[i]),
                **({"abandoned": int(ledger.abandoned[i])} if self.system.patience_of(i) is not None else {}),
                "mean_wait": _or_none(waits.wait_sum[i] / waits.started[i] if waits.started[i] else np.nan),
                "wait_95": _or_none(waits.quantile(i, 0.95)),
                "reward": float(reward[i]),
                "cost": float(cost[i]),
            }
            for i, name in enumerate(self.system.class_names)
        ]
        waiting = sum(job.waiting for job in self.unfinished_jobs)
        return {
            "controller": self.controller,
            "horizon": self.horizon,
            "seed": self.seed,
            "replication": self.replication,
            "engine": self.engine,
            "reward": float(reward.sum() - cost.sum()),
            "expected_reward": _or_none(expected),
            "optimal_gain": None if self.best is None else self.best.gain,
            "no_optimum": self.no_optimum,
            "gain": _or_none(expected / self.horizon),
            "last_policy_gain": _or_none(self._worth(self.ledger.segments[-1].policy)),
            "regret": {kind: None if self.best is None else _or_none(curve.total(kind)[-1]) for kind in KINDS},
            "classes": classes,
            "utilisation": self.ledger.busy_time / self._duty_time if self._duty_time else 0.0,
            "measures": self._observed.values(self.settings.target_wait),
            "episodes": self.ledger.episode_count,
            "unfinished": {"waiting": waiting, "in_service": len(self.unfinished_jobs) - waiting},
            "cautions": self.cautions,
        }


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
