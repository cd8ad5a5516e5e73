"""One trial: a controller on a queue with one replication's random numbers, and its result in files of its own.

The curves and the summary are one Parquet file that holds its own digest; the episodes are a table of their own,
written as they end, whose digest the first file holds. That file is written last: with it the trial is done.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.regret import CAUSES, KINDS, REWARDS
from queueing_ucrl.files import UNSEALED, digest_of, is_plain_file, is_sealed, sealed, write_atomically
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
    episodes: Path | None = None  # where its episodes go; None: they come back with the result

    def run(self, progress: Any = None) -> TrialResult:
        """Simulate."""
        import warnings

        from queueing_ucrl.simulation.episode_log import EpisodeWriter
        from queueing_ucrl.simulation.simulate import GuaranteeWarning, simulate

        writer = EpisodeWriter(self.episodes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GuaranteeWarning)  # told once, by the study
                run = simulate(
                    self.queue, self.controller, horizon=self.horizon, seed=self.seed, replication=self.replication,
                    engine=self.engine, log=self.log or False, grid=self.grid, solver_latency=self.solver_latency,
                    progress=progress, episodes=writer,
                )  # fmt: skip
            return TrialResult.of(run, self, writer.close())
        except BaseException:
            writer.abandon()
            raise


def run_trial(trial: Trial) -> TrialResult:
    """A trial in whatever process it finds itself."""
    return trial.run()


def _digest_of(episodes: Path | bytes) -> str:
    return digest_of(episodes) if isinstance(episodes, Path) else hashlib.sha256(episodes).hexdigest()


def _as_column(table: FloatArray) -> Any:
    """A row a time; of more numbers than one a list."""
    import pyarrow as pa

    if table.ndim == 1:
        return pa.array(table)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(table).ravel()), table.shape[1])


def _as_array(column: Any) -> FloatArray:
    """The inverse of `_as_column`."""
    import pyarrow as pa

    whole = column.combine_chunks()
    if pa.types.is_fixed_size_list(whole.type):
        return whole.flatten().to_numpy().reshape(len(whole), whole.type.list_size)
    return whole.to_numpy()


@dataclass(frozen=True)
class TrialResult:
    """What a study keeps of a trial."""

    point: int
    name: str
    replication: int
    times: FloatArray
    rewards: dict[str, FloatArray]  # earned so far: expected and realised
    regret: dict[str, FloatArray]  # by account; none where no optimum is known
    causes: dict[str, FloatArray]  # gap regret by cause, a column a class; likewise
    summary: dict[str, Any]
    episodes: Path | bytes = field(repr=False)  # their table's Parquet file, or its bytes
    log_digest: str | None = None  # of the event log's file, where one was written

    @classmethod
    def of(cls, run: Run, trial: Trial, episodes: Path | bytes) -> TrialResult:
        """From a run."""
        curve = run.curve
        return cls(
            trial.point,
            trial.name,
            trial.replication,
            curve.times,
            {kind: curve.earned(kind) for kind in REWARDS},
            curve.accounts,
            curve.causes,
            {**run.summary(), "controller": trial.name},
            episodes,
            None if trial.log is None else digest_of(trial.log),
        )

    def write(self, path: Path, key: str) -> None:
        """To a Parquet file with a digest, whole or not at all; `key` says which study it belongs to."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"time": self.times, **self.rewards, **self.regret, **self.causes}
        about = {
            "key": key, "point": self.point, "name": self.name, "replication": self.replication,
            "summary": self.summary, "episodes": _digest_of(self.episodes),
        }  # fmt: skip
        text = json.dumps(about)  # the order of keys is kept: it is the order of columns in the study's tables
        metadata = {"queueing_ucrl": text, "digest": UNSEALED}
        table = pa.table({name: _as_column(column) for name, column in columns.items()})
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
        write_atomically(path, sealed(sink.getvalue().to_pybytes()))

    @classmethod
    def read(cls, path: Path, key: str, episodes: Path) -> TrialResult | None:
        """From its files; None if there is none. `DamagedFile`: not as it was written, or of another study."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if not is_plain_file(path):
                return None
            content = path.read_bytes()
            if not is_sealed(content):
                raise DamagedFile(path, "it is not what was written")
            table = pq.read_table(pa.BufferReader(content))
            columns = {name: _as_array(table.column(name)) for name in table.column_names}
            about = json.loads(table.schema.metadata[b"queueing_ucrl"])
            if about["key"] != key:
                raise DamagedFile(path, "it is of another study")
            result = cls(
                about["point"], about["name"], about["replication"], columns["time"],
                {kind: columns[kind] for kind in REWARDS}, {kind: columns[kind] for kind in KINDS if kind in columns},
                {cause: columns[cause] for cause in CAUSES if cause in columns}, about["summary"], episodes,
            )  # fmt: skip
        except OSError as error:
            raise DamagedFile(path, error.strerror or str(error)) from None
        except (pa.ArrowException, KeyError, TypeError, ValueError, RecursionError, MemoryError):
            raise DamagedFile(path, "it is not a trial's file") from None
        try:
            if not is_plain_file(episodes) or digest_of(episodes) != about["episodes"]:
                raise DamagedFile(episodes, "it is not what was written, or missing")
        except OSError as error:
            raise DamagedFile(episodes, error.strerror or str(error)) from None
        return result
