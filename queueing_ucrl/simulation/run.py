"""The result of one run: tables of events, episodes and solves, regret curves, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.experiments.regret import KINDS, RegretCurve, curve_from_events, decompose
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.simulation.episode_log import PolicyGains, StreamedRecords, episode_row
from queueing_ucrl.simulation.event_log import MemoryLog, ParquetLog, read_events
from queueing_ucrl.simulation.outcome import Unfinished
from queueing_ucrl.simulation.records import Records
from queueing_ucrl.solvers.service import SolveRecord
from queueing_ucrl.solvers.solution import Solution

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Run:
    """One run of a queue under a controller."""

    queue: Queue
    controller: str
    horizon: float
    seed: int
    replication: int
    engine: str
    engine_reason: str
    cautions: list[str]
    best: Solution | None  # of the true queue: rho*, g*; None where no optimum is known
    no_optimum: str  # why not; "" where there is one
    records: Records
    solve_records: list[SolveRecord]
    unfinished_jobs: list[Unfinished]
    log: MemoryLog | ParquetLog | None = None
    decides_each_arrival: bool = False  # then its table says nothing, and there is no pseudo account

    @cached_property
    def events(self) -> pd.DataFrame:
        """The event log; a run without `log` has none."""
        if isinstance(self.log, MemoryLog):
            return self.log.frame()
        if isinstance(self.log, ParquetLog):
            return read_events(self.log.path)
        raise ValueError("this run kept no event log: simulate(..., log=True) keeps one")

    @cached_property
    def _gains(self) -> PolicyGains:
        return PolicyGains(self.queue)

    def _worth(self, policy: Policy) -> float:
        """The gain of a table; of one that a controller which decides each arrival does not keep to, nan."""
        return np.nan if self.decides_each_arrival else self._gains(policy)

    @property
    def _segments(self) -> list[tuple[float, float]]:
        """(start, gain) of the policies in force; a controller that decides each arrival has none to speak of."""
        return [(segment.start, self._worth(segment.policy)) for segment in self.records.segments]

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row an episode: when, what was seen, what was believed, the policy and what it is truly worth."""
        import pandas as pd

        return pd.DataFrame(self.episode_rows())

    def episode_rows(self) -> list[dict[str, Any]]:
        """The episode table as plain data."""
        return [episode_row(e, self._worth(e.policy)) for e in self.records.episodes]

    @cached_property
    def solves(self) -> pd.DataFrame:
        """One row a solve: when, by what method, in how many iterations and seconds, and the model's gain."""
        import pandas as pd

        columns = ["time", "method", "iterations", "seconds", "gain", "states", "classes"]
        return pd.DataFrame([asdict(record) for record in self.solve_records], columns=columns)

    @cached_property
    def unfinished(self) -> pd.DataFrame:
        """Jobs still in the system at the horizon; the holding costs of those waiting are in no account."""
        import pandas as pd

        names = self.queue.class_names
        rows = [
            {
                "job": job.job,
                "job_class": names[job.job_class],
                "arrival": job.arrival,
                "state": "waiting" if job.waiting else "in service",
                "so_far": self.horizon - (job.arrival if job.waiting else job.start),
            }
            for job in self.unfinished_jobs
        ]
        return pd.DataFrame(rows, columns=["job", "job_class", "arrival", "state", "so_far"])

    @cached_property
    def curve(self) -> RegretCurve:
        """All accounts on the run's grid."""
        classes, streamed = len(self.queue.classes), isinstance(self.records, StreamedRecords)
        segments = [(0.0, np.nan)] if streamed else self._segments
        curve = RegretCurve.from_snapshots(self.records.snapshots, classes, self.best, segments, self.no_optimum)
        if self.best is None or not isinstance(self.records, StreamedRecords):
            return curve
        return replace(curve, pseudo=np.array(self.records.pseudo))  # the policies are gone, what they lost is known

    def regret(
        self, kind: str = "expected", times: Sequence[float] | FloatArray | None = None, by: str | None = None
    ) -> pd.DataFrame:
        """The regret as a frame with columns time and regret; a ValueError says why where no optimum is known.

        kind: "realised", "expected", "gap" or "pseudo". times: other times than the run's grid (needs the event log).
        by: for "gap", "class" or "cause" (wrongly admitted, wrongly rejected): one column each.
        """
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
        curve = self.curve if times is None else self.curve_at(times)
        return curve.frame(kind, by, self.queue.class_names)

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
        return curve_from_events(self.events, self.queue, self.best, asked, self._segments, self.no_optimum)

    def decomposition(self) -> dict[str, float]:
        """The expected regret by the paper's Section 5: out, bad, good; a ValueError says why where there is none."""
        if self.best is None:
            raise ValueError(f"no regret: {self.no_optimum}")
        return decompose(self.records.episodes, self.best.gain, self.queue.total_arrival_rate)

    def summary(self) -> dict[str, Any]:
        """The run in plain data: regrets, rewards, classes, utilisation."""
        curve, waits, counts = self.curve, self.records.waits, self.records.counts
        last = self.records.snapshots[-1]
        admitted, rejected = counts.admitted.sum(axis=0), counts.rejected.sum(axis=0)
        classes = [
            {
                "name": name,
                "arrivals": int(admitted[i] + rejected[i] + counts.blocked[i]),
                "admitted": int(admitted[i]),
                "rejected": int(rejected[i]),
                "blocked": int(counts.blocked[i]),
                "mean_wait": _or_none(waits.wait_sum[i] / waits.started[i] if waits.started[i] else np.nan),
                "wait_95": _or_none(waits.quantile(i, 0.95)),
                "reward": float(last.reward[i]),
                "cost": float(last.cost[i]),
            }
            for i, name in enumerate(self.queue.class_names)
        ]
        waiting = sum(job.waiting for job in self.unfinished_jobs)
        return {
            "controller": self.controller,
            "horizon": self.horizon,
            "seed": self.seed,
            "replication": self.replication,
            "engine": self.engine,
            "reward": float(last.reward.sum() - last.cost.sum()),
            "expected_reward": float(last.expected_reward.sum()),
            "optimal_gain": None if self.best is None else self.best.gain,
            "no_optimum": self.no_optimum,
            "gain": float(last.expected_reward.sum()) / self.horizon,
            "last_policy_gain": _or_none(self._worth(self.records.segments[-1].policy)),
            "regret": {kind: None if self.best is None else _or_none(curve.total(kind)[-1]) for kind in KINDS},
            "classes": classes,
            "utilisation": self.records.busy_time / (self.horizon * self.queue.servers),
            "episodes": self.records.episode_count,
            "unfinished": {"waiting": waiting, "in_service": len(self.unfinished_jobs) - waiting},
            "cautions": self.cautions,
        }


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
