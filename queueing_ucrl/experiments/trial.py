"""One trial: a controller on a queue with one replication's random numbers, and its result in files of its own.

The curves and the summary are one Parquet file that holds its own digest; the episodes are a table of their own,
written as they end, whose digest the first file holds. That file is written last: with it the trial is done.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from queueing_ucrl.accounts.regret import CAUSES, KINDS, REWARDS
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.files import UNSEALED, digest_of, is_plain_file, is_sealed, sealed, write_atomically
from queueing_ucrl.simulation.episode_log import EpisodeWriter, row_groups
from queueing_ucrl.simulation.run import Run
from queueing_ucrl.simulation.simulate import GuaranteeWarning, run_once

SMALL = 100_000  # bytes of a table of episodes that is kept in memory once it was read

Place = tuple[int, str, int]  # a trial within its study: the point of the sweep, the controller, the replication
Episodes = Path | bytes | tuple[Any, ...]  # their Parquet file, its bytes, or the row groups (tables) of a small one
OnProgress = Callable[["Trial", float], None]  # is told the simulated time of a trial now and then


@dataclass(frozen=True)
class Trial:
    """One replication of a cell; can be sent to another process."""

    cell: Cell
    replication: int
    log: Path | None = None  # where its event log goes
    episodes: Path | None = None  # where its episodes go; None: they come back with the result

    @property
    def place(self) -> Place:
        """Where it belongs in its study."""
        return self.cell.point, self.cell.name, self.replication

    def run(self, on_progress: OnProgress | None = None) -> TrialResult:
        """Simulate."""
        cell, writer = self.cell, EpisodeWriter(self.episodes)
        now = None if on_progress is None else lambda time: on_progress(self, time)
        columns = cell.log_columns if self.log else ()
        options: dict[str, Any] = {"log": self.log or False, "log_columns": columns, "accounts": cell.accounts}
        options |= {"log_about": cell.log_about, "episodes": writer, "on_progress": now}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GuaranteeWarning)  # told once, by the study
                run = run_once(cell.system, cell.controller, cell.settings, self.replication, **options)
            return TrialResult.of(run, self, writer.close())
        except BaseException:
            writer.abandon()
            raise


def run_trial(trial: Trial) -> TrialResult:
    """A trial in whatever process it finds itself."""
    return trial.run()


def _as_column(table: FloatArray) -> Any:
    """A row a time; of more numbers than one a list."""
    import pyarrow as pa

    if table.ndim == 1:
        return pa.array(table)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(table).ravel()), table.shape[1])


def _as_array(column: Any) -> FloatArray:
    """The inverse of `_as_column`."""
    import pyarrow as pa

    if isinstance(column, pa.FixedSizeListArray):
        return column.flatten().to_numpy().reshape(len(column), column.type.list_size)
    return column.to_numpy()


@dataclass(frozen=True)
class TrialResult:
    """What a study keeps of a trial."""

    point: int
    name: str
    replication: int
    times: FloatArray
    rewards: dict[str, FloatArray]  # earned so far: expected (where it is known) and realised
    regret: dict[str, FloatArray]  # by account; none where no optimum is known
    causes: dict[str, FloatArray]  # gap regret by cause, a column a class; likewise
    summary: dict[str, Any]
    episodes: Episodes = field(repr=False)
    log_digest: str | None = None  # of the event log's file, where one was written
    own: dict[str, FloatArray] = field(default_factory=dict)  # accounts of one's own, by name

    @property
    def place(self) -> Place:
        """Where it belongs in its study."""
        return self.point, self.name, self.replication

    def measure(self, name: str) -> float | None:
        """A measure over all classes (`accounts.measures`); None where there was nothing to measure."""
        value: float | None = self.summary["measures"][name][0]
        return value

    @classmethod
    def of(cls, run: Run, trial: Trial, episodes: Path | bytes) -> TrialResult:
        """From a run."""
        curve = run.curve
        return cls(
            *trial.place,
            curve.times,
            curve.rewards,
            curve.accounts,
            curve.causes,
            {**run.summary(), "controller": trial.cell.name},
            episodes,
            None if trial.log is None else digest_of(trial.log),
            curve.own,
        )

    def write(self, path: Path, key: str) -> None:
        """To a Parquet file with a digest, whole or not at all; `key` says which study it belongs to."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"time": self.times, **self.rewards, **self.regret, **self.causes, **self.own}
        place = dict(zip(("point", "name", "replication"), self.place, strict=True))
        source = self.episodes
        assert not isinstance(source, tuple)  # it was just made
        digest = hashlib.sha256(source).hexdigest() if isinstance(source, bytes) else digest_of(source)
        about = {"key": key, **place, "summary": self.summary, "episodes": digest}
        text = json.dumps(about)  # the order of keys is kept: it is the order of columns in the study's tables
        metadata = {"queueing_ucrl": text, "digest": UNSEALED}
        table = pa.table({name: _as_column(column) for name, column in columns.items()})
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink, compression="snappy", use_dictionary=False)
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
            with pq.ParquetFile(pa.BufferReader(content)) as file:  # for small files far cheaper than pq.read_table
                (batch,) = file.read(use_threads=False).combine_chunks().to_batches()
            columns = dict(zip(batch.schema.names, map(_as_array, batch.columns), strict=True))
            about = json.loads(batch.schema.metadata[b"queueing_ucrl"])
            if about["key"] != key:
                raise DamagedFile(path, "it is of another study")
            place = (about["point"], about["name"], about["replication"])
            times = columns.pop("time")
            rewards, regret, causes = (
                {kind: columns.pop(kind) for kind in kinds if kind in columns} for kinds in (REWARDS, KINDS, CAUSES)
            )
            rows = _checked_episodes(episodes, about["episodes"])
            return cls(*place, times, rewards, regret, causes, about["summary"], rows, own=columns)
        except OSError as error:
            raise DamagedFile(path, error.strerror or str(error)) from None
        except (pa.ArrowException, KeyError, TypeError, ValueError, RecursionError, MemoryError):
            raise DamagedFile(path, "it is not a trial's file") from None


def _checked_episodes(path: Path, digest: str) -> Episodes:
    """The file if it is as it was written; a small one is read while it is at hand, so that nobody opens it again."""
    try:
        if is_plain_file(path):
            if path.stat().st_size > SMALL:
                if digest_of(path) == digest:
                    return path
            elif hashlib.sha256(content := path.read_bytes()).hexdigest() == digest:
                return tuple(row_groups(content))
    except OSError as error:
        raise DamagedFile(path, error.strerror or str(error)) from None
    raise DamagedFile(path, "it is not what was written, or missing")
