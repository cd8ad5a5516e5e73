"""One trial: a controller on a queue with one replication's random numbers, and its result in a file of its own."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.experiments.files import write_atomically
from queueing_ucrl.experiments.regret import CAUSES, KINDS, REWARDS
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray

if TYPE_CHECKING:
    from queueing_ucrl.simulation.run import Run


@dataclass(frozen=True)
class Trial:
    """All that determines one run; can be sent to another process."""

    queue: Queue
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
                progress=progress,
            )  # fmt: skip
        return TrialResult.of(run, self)


def run_trial(trial: Trial) -> TrialResult:
    """A trial in whatever process it finds itself."""
    return trial.run()


def _plain(value: Any) -> Any:
    """JSON knows neither nan nor infinity: nothing there."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _digest(text: str, columns: dict[str, FloatArray]) -> str:
    """Of everything in a trial's file: a changed bit is found wherever it is."""
    digest = hashlib.sha256(text.encode())
    for name, column in columns.items():
        digest.update(name.encode() + b"\0" + column.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class TrialResult:
    """What a study keeps of a trial."""

    point: int
    name: str
    replication: int
    times: FloatArray
    regret: dict[str, FloatArray]  # by account; none where no optimum is known
    causes: dict[str, FloatArray]  # gap regret by cause, a column a class; likewise
    summary: dict[str, Any]
    episodes: list[dict[str, Any]] = field(default_factory=list)
    rewards: dict[str, FloatArray] = field(default_factory=dict)  # earned so far: expected and realised

    @classmethod
    def of(cls, run: Run, trial: Trial) -> TrialResult:
        """From a run."""
        curve = run.curve
        return cls(
            trial.point,
            trial.name,
            trial.replication,
            curve.times,
            curve.accounts,
            curve.causes,
            {**run.summary(), "controller": trial.name},
            [{key: _plain(value) for key, value in row.items()} for row in run.episode_rows()],
            {kind: curve.earned(kind) for kind in REWARDS},
        )

    def write(self, path: Path, key: str) -> None:
        """To a Parquet file with a digest, whole or not at all; `key` says which study it belongs to."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"time": self.times, **self.rewards, **self.regret}
        for cause, table in self.causes.items():
            for i, column in enumerate(table.T):
                columns[f"{cause}.{i}"] = np.ascontiguousarray(column)
        about = {
            "key": key, "point": self.point, "name": self.name, "replication": self.replication,
            "summary": self.summary, "episodes": self.episodes,
        }  # fmt: skip
        text = json.dumps(about)  # the order of keys is kept: it is the order of columns in the study's tables
        metadata = {"queueing_ucrl": text, "digest": _digest(text, columns)}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), sink, compression="zstd")
        write_atomically(path, sink.getvalue().to_pybytes())

    @classmethod
    def read(cls, path: Path, key: str) -> TrialResult | None:
        """From a file; None if it is not there, not as it was written, or of another study."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(pa.BufferReader(path.read_bytes()))
            text = table.schema.metadata[b"queueing_ucrl"].decode()
            columns = {name: table.column(name).to_numpy() for name in table.column_names}
            metadata = json.loads(text)
            if metadata["key"] != key or table.schema.metadata[b"digest"].decode() != _digest(text, columns):
                return None
            known = [kind for kind in KINDS if kind in columns]
            causes = {
                cause: np.array([columns[n] for n in columns if n.startswith(f"{cause}.")]).T
                for cause in (CAUSES if known else ())
            }
            return cls(
                metadata["point"], metadata["name"], metadata["replication"], columns["time"],
                {kind: columns[kind] for kind in known}, causes, metadata["summary"], metadata["episodes"],
                {kind: columns[kind] for kind in REWARDS},
            )  # fmt: skip
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            return None
