"""The event log: one row an event, in time order; in memory as pandas, on disk as Parquet.

Columns: time; event (admit, reject, block, start, depart, review); job (its number among all arrivals); job_class;
in_system (before the event); episode (counted from 1); wait and cost (at start); reward and expected_reward (at
admit); replication. What does not apply to an event is missing. A rejection is by the policy, a block for lack of room.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.files import naming, part_of, put_in_place
from queueing_ucrl.model.queue import Queue

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EVENTS = ("admit", "reject", "block", "start", "depart", "review")
ADMIT, REJECT, BLOCK, START, DEPART, REVIEW = range(6)

# what an engine writes down of an event; the other columns follow from it
ROW = np.dtype(
    [
        ("time", np.float64),
        ("job", np.int64),
        ("wait", np.float64),
        ("in_system", np.int32),
        ("episode", np.int32),
        ("job_class", np.int32),
        ("event", np.int8),
    ]
)
ROW_GROUP = 250_000


class EventTable:
    """Turns raw rows into the log's typed columns."""

    def __init__(self, queue: Queue, replication: int) -> None:
        import pyarrow as pa

        self.queue = queue
        self.replication = replication
        self.classes = pa.array(queue.class_names)
        self.events = pa.array(EVENTS)
        self.rewards = np.array([c.reward for c in queue.classes])

    def columns(self, rows: np.ndarray[Any, Any]) -> pa.Table:
        """A table of the log's columns."""
        import pyarrow as pa

        event, job_class, in_system = rows["event"], rows["job_class"], rows["in_system"]
        admitted, started, review = event == ADMIT, event == START, event == REVIEW
        count = len(rows)
        reward = np.zeros(count)
        expected = np.zeros(count)
        reward[admitted] = self.rewards[job_class[admitted]]
        expected[admitted] = self.queue.rewards[in_system[admitted], job_class[admitted]]
        cost = np.zeros(count)
        for i, kind in enumerate(self.queue.classes):
            chosen = started & (job_class == i)
            cost[chosen] = kind.holding_cost(rows["wait"][chosen])

        def dictionary(codes: np.ndarray[Any, Any], values: pa.Array, missing: Any = None) -> pa.Array:
            return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), values)

        return pa.table(
            {
                "time": pa.array(np.ascontiguousarray(rows["time"])),
                "event": dictionary(np.ascontiguousarray(event), self.events),
                "job": pa.array(np.ascontiguousarray(rows["job"]), mask=review),
                "job_class": dictionary(np.ascontiguousarray(job_class), self.classes, review),
                "in_system": pa.array(np.ascontiguousarray(in_system)),
                "episode": pa.array(np.ascontiguousarray(rows["episode"])),
                "wait": pa.array(np.ascontiguousarray(rows["wait"]), mask=~started),
                "reward": pa.array(reward, mask=~admitted),
                "cost": pa.array(cost, mask=~started),
                "expected_reward": pa.array(expected, mask=~admitted),
                "replication": pa.array(np.full(count, self.replication, dtype=np.int32)),
            }
        )


class MemoryLog:
    """Keeps the whole log in memory."""

    def __init__(self, queue: Queue, replication: int) -> None:
        self.table = EventTable(queue, replication)
        self.blocks: list[np.ndarray[Any, Any]] = []

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows."""
        self.blocks.append(rows.copy())

    def close(self) -> None:
        """Nothing to do."""

    def abandon(self) -> None:
        """Nothing to do."""

    def frame(self) -> pd.DataFrame:
        """The log as a pandas frame."""
        rows = np.concatenate(self.blocks) if self.blocks else np.empty(0, dtype=ROW)
        return as_frame(self.table.columns(rows))


class ParquetLog:
    """Writes the log to a file in row groups: memory stays flat however long the run.

    The file has its name only once it is whole; until then it ends in `.part`.
    """

    def __init__(self, queue: Queue, replication: int, path: Path, metadata: dict[str, Any]) -> None:
        import pyarrow.parquet as pq

        self.table = EventTable(queue, replication)
        self.path = path
        self.part = part_of(path)
        self.waiting: list[np.ndarray[Any, Any]] = []
        self.count = 0
        schema = self.table.columns(np.empty(0, dtype=ROW)).schema
        schema = schema.with_metadata({"queueing_ucrl": json.dumps(metadata, sort_keys=True)})
        self.schema: pa.Schema = schema
        with naming(self.path):
            self.writer = pq.ParquetWriter(self.part.absolute(), schema, compression="zstd")

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows; a full row group goes to the file. Its borders do not depend on how rows come."""
        self.waiting.append(rows.copy())
        self.count += len(rows)
        while self.count >= ROW_GROUP:
            pending = np.concatenate(self.waiting)
            rest = pending[ROW_GROUP:].copy()
            self.waiting, self.count = [rest], len(rest)  # first: a stop in between must not write them twice
            self._row_group(pending[:ROW_GROUP])

    def _row_group(self, rows: np.ndarray[Any, Any]) -> None:
        table = self.table.columns(rows).replace_schema_metadata(self.schema.metadata)
        with naming(self.path):
            self.writer.write_table(table, row_group_size=ROW_GROUP)

    def _finish(self, path: Path) -> None:
        """Write what is left and give the file a name, once all of it is on the disk."""
        if self.count:
            rows = np.concatenate(self.waiting)
            self.waiting, self.count = [], 0
            self._row_group(rows)
        with naming(self.path):
            self.writer.close()
            put_in_place(self.part, path)

    def close(self) -> None:
        """Write what is left and give the file its name; what an earlier, stopped run left behind goes."""
        self._finish(self.path)
        self._partial.unlink(missing_ok=True)

    @property
    def _partial(self) -> Path:
        return self.path.with_suffix(".partial.parquet")

    def abandon(self) -> None:
        """The run was stopped: keep what it wrote so far, as `<name>.partial.parquet`."""
        try:
            self._finish(self._partial)
        except (OSError, ValueError):  # no room for it either, or the file was already closed for lack of it
            self.part.unlink(missing_ok=True)


def as_frame(table: Any) -> pd.DataFrame:
    """A table of the log as pandas: events and classes categorical, job numbers nullable integers."""

    frame: pd.DataFrame = table.drop_columns(["job"]).to_pandas()
    frame.insert(2, "job", table.column("job").to_pandas().astype("Int64"))
    return frame


def read_events(path: str | Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """An event log from a Parquet file, or those of a folder of them, one after the other."""
    import pyarrow.parquet as pq

    source = Path(path).absolute()  # pyarrow would take a leading "~" for the home folder
    table = pq.read_table(source, columns=list(columns) if columns else None)
    return as_frame(table) if "job" in table.column_names else table.to_pandas()


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Scenario, seed, versions and engine, from a log's file."""
    import pyarrow.parquet as pq

    metadata: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"queueing_ucrl"])
    return metadata
