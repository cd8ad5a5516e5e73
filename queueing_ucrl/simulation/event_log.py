"""The event log: one row an event, in time order; in memory as pandas, on disk as Parquet.

Columns: time; event (see EVENTS); job (its number among all arrivals); job_class; server (that a job joins or leaves,
that breaks down or is repaired); in_system (before the event); episode (counted from 1); wait and cost (at start and
abandon); reward (at admit, start or depart, as the class has it) and expected_reward (at admit); replication. Where
servers come and go: on_duty (from a shift on); where there is an environment: its state from an environment's row on.
What does not apply to an event is missing. A rejection is by the policy, a block for lack of room.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from queueing_ucrl.accounts.log_rows import EVENTS as EVENTS
from queueing_ucrl.arrays import BoolArray, FloatArray, Int8, Int32, record_type
from queueing_ucrl.files import naming, part_of, put_in_place
from queueing_ucrl.messages import shown
from queueing_ucrl.model.checks import listed
from queueing_ucrl.model.system import System

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ADMIT, REJECT, BLOCK, START, DEPART, REVIEW = range(6)
ABANDON, RESUME, BREAKDOWN, REPAIR, SHIFT, HAND_OVER, ENVIRONMENT, INITIAL = range(6, 14)
REWARDED = {"admission": ADMIT, "start": START, "end": DEPART}  # by JobClass.reward_at


class Row:
    """What an engine writes down of an event; the other columns follow from it."""

    time: float
    job: int
    wait: float
    in_system: Int32
    episode: Int32
    job_class: Int32
    server: Int32  # -1: none; at a shift: servers on duty, at an environment's row: its state
    event: Int8
    pay: float  # of the job at this event; 0 where all jobs of a class pay alike, which is known


ROW = record_type(Row)
ROW_GROUP = 250_000


class EventSink(Protocol):
    """Whatever takes the rows of the event log."""

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows (dtype ROW), which are the sink's from now on."""
        ...

    def close(self) -> None:
        """No more rows."""
        ...

    def abandon(self) -> None:
        """The run was stopped."""
        ...


class LogColumn(Protocol):
    """A column of one's own: what else an event says, from its raw row and nothing else (rows come in stretches)."""

    name: str

    def __call__(self, rows: np.ndarray[Any, Any], system: System) -> Any:
        """A value for each row (dtype ROW): a numpy array, or anything that pyarrow takes for a column."""
        ...


class EventTable:
    """Turns raw rows into the log's typed columns."""

    def __init__(self, system: System, replication: int, own: Sequence[LogColumn] = ()) -> None:
        import pyarrow as pa

        self.system = system
        self.replication = replication
        self.own: list[tuple[LogColumn, pa.DataType]] = []  # with the type of its values
        self.classes = pa.array(system.class_names)
        self.events = pa.array(EVENTS)
        for column in listed(own, "log_columns"):
            self._add(column)

    def _add(self, column: LogColumn) -> None:
        """Take a column of one's own, if it works: it is tried on a row of each event."""
        import pyarrow as pa

        name = getattr(column, "name", None)
        if not isinstance(name, str) or not callable(column) or isinstance(column, type):
            raise TypeError(f"a log column must be an object with a `name` and __call__(rows, system): {shown(column)}")
        rows = np.zeros(len(EVENTS), dtype=ROW)
        rows["event"] = range(len(EVENTS))
        of_no_job = [REVIEW, REPAIR, SHIFT, ENVIRONMENT]
        rows["job"][of_no_job] = rows["job_class"][of_no_job] = -1
        if name in self.columns(rows).column_names:
            raise ValueError(f"log column {name!r}: the event log has a column of that name already")
        kind = self._values(column, rows).type
        if pa.types.is_null(kind):
            raise ValueError(f"log column {name!r}: must not be missing for all events, or be a typed pyarrow array")
        self.own.append((column, kind))

    def _values(self, column: LogColumn, rows: np.ndarray[Any, Any]) -> pa.Array:
        import pyarrow as pa

        try:
            values = pa.array(column(rows, self.system))
        except (pa.ArrowException, TypeError) as error:
            raise ValueError(f"log column {column.name!r}: {error}") from error
        if len(values) != len(rows):
            raise ValueError(
                f"log column {column.name!r}: must give a value for each of {len(rows)} rows, got {len(values)}"
            )
        return values

    def _paid_and_charged(
        self, rows: np.ndarray[Any, Any], waited: BoolArray
    ) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Of each row: the reward, whether it has one, and the cost of those that have waited."""
        event, job_class = rows["event"], rows["job_class"]
        (reward, cost), rewarded = np.zeros((2, len(rows))), np.zeros(len(rows), dtype=bool)
        for i, kind in enumerate(self.system.classes):
            mine = job_class == i
            rewarded |= mine & (event == REWARDED[kind.reward_at])
            chosen = mine & waited
            cost[chosen] = kind.holding_cost(rows["wait"][chosen])
            cost[mine & (event == ABANDON)] += kind.abandonment_cost
        differ = self.system.pays_differ
        reward[rewarded] = rows["pay"][rewarded] if differ else self.system.job_rewards[job_class[rewarded]]
        return reward, rewarded, cost

    def columns(self, rows: np.ndarray[Any, Any]) -> pa.Table:
        """A table of the log's columns."""
        import pyarrow as pa

        event, job_class, in_system = rows["event"], rows["job_class"], rows["in_system"]
        server = np.ascontiguousarray(rows["server"])
        admitted, waited, nobody = event == ADMIT, (event == START) | (event == ABANDON), job_class < 0
        expected = np.zeros(len(rows))
        expected[admitted] = self.system.rewards[in_system[admitted], job_class[admitted]]
        reward, rewarded, cost = self._paid_and_charged(rows, waited)

        def dictionary(codes: np.ndarray[Any, Any], values: pa.Array, missing: Any = None) -> pa.Array:
            return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), values)

        columns = {
            "time": pa.array(np.ascontiguousarray(rows["time"])),
            "event": dictionary(np.ascontiguousarray(event), self.events),
            "job": pa.array(np.ascontiguousarray(rows["job"]), mask=nobody),
            "job_class": dictionary(np.ascontiguousarray(job_class), self.classes, nobody),
            "server": pa.array(server, mask=(server < 0) | (event == SHIFT) | (event == ENVIRONMENT)),
            "in_system": pa.array(np.ascontiguousarray(in_system)),
            "episode": pa.array(np.ascontiguousarray(rows["episode"])),
            "wait": pa.array(np.ascontiguousarray(rows["wait"]), mask=~waited),
            "reward": pa.array(reward, mask=~rewarded),
            "cost": pa.array(cost, mask=~waited),
            "expected_reward": pa.array(expected, mask=~admitted | np.isnan(expected)),  # nan: not known
            "replication": pa.array(np.full(len(rows), self.replication, dtype=np.int32)),
        }
        if self.system.unsteady:
            columns["on_duty"] = pa.array(server, mask=event != SHIFT)
        if self.system.environment is not None:
            columns["environment"] = pa.array(server, mask=event != ENVIRONMENT)
        for column, kind in self.own:
            columns[column.name] = self._values(column, rows).cast(kind)
        return pa.table(columns)


class MemoryLog:
    """Keeps the whole log in memory."""

    def __init__(self, system: System, replication: int, own: Sequence[LogColumn] = ()) -> None:
        self.table = EventTable(system, replication, own)
        self.blocks: list[np.ndarray[Any, Any]] = []

    def write(self, rows: np.ndarray[Any, Any]) -> None:
        """Take the next rows."""
        self.blocks.append(rows)

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

    def __init__(
        self, system: System, replication: int, own: Sequence[LogColumn], path: Path, metadata: dict[str, Any]
    ) -> None:
        import pyarrow.parquet as pq

        self.table = EventTable(system, replication, own)
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
        self.waiting.append(rows)
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
    """A table of the log as pandas: events and classes categorical, numbers of jobs and servers nullable integers."""

    numbers = {"job": "Int64", "server": "Int32", "on_duty": "Int32", "environment": "Int32"}
    there = [name for name in numbers if name in table.column_names]
    frame: pd.DataFrame = table.drop_columns(there).to_pandas()
    for name in there:
        values = table.column(name).to_pandas().astype(numbers[name])
        frame.insert(table.column_names.index(name), name, values)
    return frame


def read_events(path: str | Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """An event log from a Parquet file, or those of a folder of them, one after the other."""
    import pyarrow.parquet as pq

    source = Path(path).absolute()  # pyarrow would take a leading "~" for the home folder
    table = pq.read_table(source, columns=list(columns) if columns else None)
    return as_frame(table)


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Scenario, seed, versions and engine, from a log's file."""
    import pyarrow.parquet as pq

    metadata: dict[str, Any] = json.loads(pq.read_schema(path).metadata[b"queueing_ucrl"])
    return metadata
