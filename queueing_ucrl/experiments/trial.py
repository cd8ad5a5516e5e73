"""One trial: a controller on a queue with one replication's random numbers, and its result in a file of its own."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.experiments.regret import CAUSES, KINDS
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.solvers.solution import Solution

if TYPE_CHECKING:
    from queueing_ucrl.simulation.run import Run


@dataclass(frozen=True)
class Trial:
    """All that determines one run; can be sent to another process."""

    queue: Queue
    best: Solution
    controller: Any
    name: str  # of the controller within the study
    horizon: float
    seed: int
    replication: int
    grid: FloatArray
    engine: str = "auto"
    solver_latency: float = 0.0
    point: int = 0  # of the sweep
    log: Path | None = None  # where its event log goes

    def run(self, progress: Any = None) -> TrialResult:
        """Simulate."""
        import warnings

        from queueing_ucrl.simulation.simulate import GuaranteeWarning, simulate

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)  # told once, by the study
            run = simulate(
                self.queue, self.controller, horizon=self.horizon, seed=self.seed, replication=self.replication,
                engine=self.engine, log=self.log or False, grid=self.grid, solver_latency=self.solver_latency,
                progress=progress, best=self.best,
            )  # fmt: skip
        return TrialResult.of(run, self)


def run_trial(trial: Trial) -> TrialResult:
    """A trial in whatever process it finds itself."""
    return trial.run()


def _plain(value: Any) -> Any:
    """JSON knows neither nan nor infinity: nothing there."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class TrialResult:
    """What a study keeps of a trial."""

    point: int
    name: str
    replication: int
    times: FloatArray
    regret: dict[str, FloatArray]  # by account
    causes: dict[str, FloatArray]  # gap regret by cause, a column a class
    summary: dict[str, Any]
    episodes: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, run: Run, trial: Trial) -> TrialResult:
        """From a run."""
        curve = run.curve
        return cls(
            trial.point,
            trial.name,
            trial.replication,
            curve.times,
            {kind: curve.total(kind) for kind in KINDS},
            {cause: getattr(curve, cause) for cause in CAUSES},
            {**run.summary(), "controller": trial.name},
            [{key: _plain(value) for key, value in row.items()} for row in run.episode_rows()],
        )

    def write(self, path: Path, key: str) -> None:
        """To a Parquet file with checksums, whole or not at all; `key` says which study it belongs to."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"time": self.times, **self.regret}
        for cause, table in self.causes.items():
            for i, column in enumerate(table.T):
                columns[f"{cause}.{i}"] = np.ascontiguousarray(column)
        metadata = {
            "key": key, "point": self.point, "name": self.name, "replication": self.replication,
            "summary": self.summary, "episodes": self.episodes,
        }  # fmt: skip
        table = pa.table(columns).replace_schema_metadata({"queueing_ucrl": json.dumps(metadata, sort_keys=True)})
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file:
                pq.write_table(table, file, write_page_checksum=True)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: Path, key: str) -> TrialResult | None:
        """From a file; None if it is not there, not whole, or of another study."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path, page_checksum_verification=True)
            metadata = json.loads(table.schema.metadata[b"queueing_ucrl"])
            if metadata["key"] != key:
                return None
            columns = {name: table.column(name).to_numpy() for name in table.column_names}
            causes = {cause: np.array([columns[n] for n in columns if n.startswith(f"{cause}.")]).T for cause in CAUSES}
            return cls(
                metadata["point"], metadata["name"], metadata["replication"], columns["time"],
                {kind: columns[kind] for kind in KINDS}, causes, metadata["summary"], metadata["episodes"],
            )  # fmt: skip
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            return None
