"""Episodes as a table that goes to its file as they end: memory does not grow with the number of reviews.

`simulate` keeps every episode; a trial of a study hands them to an `EpisodeWriter`, a row group at a time, and of the
policies in force keeps only what the regret accounts need of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.files import naming, part_of, put_in_place
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.ledger import Episode, Ledger, PolicySegment

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 4096  # of a row group, at most
VALUES = 500_000  # numbers and texts in a row group, about
REMEMBERED = 4096  # policies whose gains are at hand


def policy_gains(system: System) -> Callable[[Policy], float]:
    """The true gain of each policy that is asked about, of which thousands are remembered; nan where rates change in
    time, or the system is not Markov.
    """
    queue, known = system.queue, not (system.drifts or system.not_markov)

    @lru_cache(maxsize=REMEMBERED)
    def gain(policy: Policy) -> float:
        return evaluate(queue, policy).gain if known and not policy.sees_more else math.nan

    return gain


def episode_row(episode: Episode, gain: float) -> dict[str, Any]:
    """One row of the episode table: when, what was seen, what was believed, the policy and what it is truly worth."""
    return {
        "episode": episode.number,
        "start": episode.start,
        "end": episode.end,
        "arrivals": episode.arrivals,
        "expected_reward": episode.expected_reward,
        "control_levels": None if episode.policy.sees_more else list(episode.policy.control_levels),
        "trunk_reservation": episode.policy.is_trunk_reservation,
        "gain": gain,
        "truth_inside": episode.truth_inside,
        "solver_iterations": episode.solver_iterations,
        **episode.belief,
    }


@dataclass(kw_only=True)
class StreamedLedger(Ledger):
    """The ledger of a run whose episodes go to a writer as they end; of the policies in force only the last is kept.

    pseudo(t) = sum over policies of (rho* - rho^pi) times how long each was in force up to t, added up in their order:
    the bits of `pseudo_regret`.
    """

    writer: EpisodeWriter
    gains: Callable[[Policy], float]
    lost: float = 0.0  # up to the start of the policy in force
    loss: float = 0.0  # of the policy in force, per unit of time: rho* - rho^pi
    ended: int = 0  # episodes

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pseudo = np.empty(self.times.size)
        self._passed = 0  # times of the grid

    def adopt(self, start: float, policy: Policy) -> None:
        if self.segments:
            self._pass(start)
            self.lost += self.loss * (start - self.segments[-1].start)
        best = self.comparator.best
        self.loss = math.nan if best is None else best.gain - self.gains(policy)
        self.segments[:] = [PolicySegment(start, policy)]

    def _pass(self, now: float) -> None:
        """The pseudo account at the times of the grid up to now."""
        upto = int(np.searchsorted(self.times, now, side="right"))
        some = slice(self._passed, upto)
        self._pseudo[some] = self.lost + self.loss * (self.times[some] - self.segments[-1].start)
        self._passed = max(upto, self._passed)

    @property
    def pseudo(self) -> FloatArray:
        """The account at the times of the grid; of a run that has come to its end."""
        self._pass(math.inf)
        return self._pseudo

    def close_episode(self, episode: Episode) -> None:
        self.ended += 1
        self.writer.append(episode_row(episode, self.gains(episode.policy)))

    @property
    def episode_count(self) -> int:
        return self.ended


# --- the table -------------------------------------------------------------------------------------------------------


def _known_columns() -> dict[str, pa.DataType]:
    """Columns of every episode table, whatever the controller believes."""
    import pyarrow as pa

    return {
        "episode": pa.int64(),
        "start": pa.float64(),
        "end": pa.float64(),
        "arrivals": pa.int64(),
        "expected_reward": pa.float64(),
        "control_levels": pa.list_(pa.int64()),
        "trunk_reservation": pa.bool_(),
        "gain": pa.float64(),
        "truth_inside": pa.bool_(),
        "solver_iterations": pa.int64(),
    }


def _weight(value: Any) -> int:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return 1
    return 1 + sum(map(_weight, value))


def _as_text(values: Iterable[Any]) -> pa.Array:
    """What has no common type is kept as JSON."""
    import pyarrow as pa

    return pa.array([None if v is None else json.dumps(v, default=str) for v in values], pa.string())


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of plain data as typed columns, in the order in which they first appear."""
    import pyarrow as pa

    known = _known_columns()
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: as_column([row.get(name) for row in rows], known.get(name)) for name in names})


def as_column(values: Iterable[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Values as a typed column."""
    import pyarrow as pa

    listed = list(values)
    try:
        return pa.array(listed, kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return _as_text(listed)


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all, each of a type that holds them all; where there is none, text."""
    import pyarrow as pa

    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for column in schema:
            before = types.setdefault(column.name, column.type)
            if before != column.type:
                fields = [pa.schema([(column.name, kind)]) for kind in (before, column.type)]
                try:
                    types[column.name] = pa.unify_schemas(fields, promote_options="permissive").field(0).type
                except pa.ArrowException:
                    types[column.name] = pa.string()
    return pa.schema(list(types.items()))


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of a schema that `common_schema` made; what it lacks is missing there."""
    import pyarrow as pa

    columns = []
    for wanted in schema:
        if wanted.name not in table.column_names:
            columns.append(pa.nulls(len(table), wanted.type))
            continue
        column = table.column(wanted.name)
        try:
            columns.append(column.cast(wanted.type) if column.type != wanted.type else column)
        except pa.ArrowException:
            columns.append(_as_text(column.to_pylist()))
    return pa.table(columns, schema=schema)


class EpisodeWriter:
    """Writes episodes to a Parquet file in row groups, whose borders depend on the rows alone.

    Without a path the file's bytes are kept in memory, compressed. A belief may grow new columns: the file so far is
    then written again with them, which happens once or twice in a run if at all.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._rows: list[dict[str, Any]] = []
        self._values = 0
        self._schema: pa.Schema | None = None
        self._sink: Any = None  # a file that is being written, or a buffer
        self._writer: Any = None

    @contextmanager
    def _naming(self) -> Iterator[None]:
        with nullcontext() if self.path is None else naming(self.path):
            yield

    def append(self, row: dict[str, Any]) -> None:
        """Take the next row; a full row group goes to the file."""
        self._rows.append(row)
        self._values += sum(map(_weight, row.values()))
        if len(self._rows) >= ROWS or self._values >= VALUES:
            self._row_group()

    def _open(self, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._schema = schema
        self._sink = pa.BufferOutputStream() if self.path is None else part_of(self.path)
        self._writer = pq.ParquetWriter(self._sink, schema, compression="snappy")

    def _row_group(self) -> None:
        table = as_table(self._rows)
        self._rows, self._values = [], 0
        schema = common_schema([table.schema] if self._schema is None else [self._schema, table.schema])
        with self._naming():
            if self._writer is None:
                self._open(schema)
            elif schema != self._schema:
                self._begin_again(schema)
            self._writer.write_table(fitted(table, schema))

    def _begin_again(self, schema: pa.Schema) -> None:
        self._writer.close()
        old = self._sink
        self._open(schema)
        for table in row_groups(old if self.path is not None else old.getvalue()):
            self._writer.write_table(fitted(table, schema))
        if self.path is not None:
            old.unlink()

    def close(self) -> Path | bytes:
        """Write what is left; the file under its name, or its bytes."""
        if self._rows:
            self._row_group()
        with self._naming():
            self._writer.close()
            if self.path is None:
                return bytes(self._sink.getvalue().to_pybytes())
            put_in_place(self._sink, self.path)
        return self.path

    def abandon(self) -> None:
        """The run was stopped: its episodes are of no use."""
        if self._writer is not None:
            with suppress(OSError, ValueError):  # no room for what it still had to write
                self._writer.close()
            if self.path is not None:
                self._sink.unlink(missing_ok=True)


def _opened(source: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(source.absolute() if isinstance(source, Path) else pa.BufferReader(source))


def schema_of(source: Any) -> pa.Schema:
    """The columns of an episode table, from its file or the file's bytes."""
    with _opened(source) as file:
        return file.schema_arrow.remove_metadata()


def row_groups(source: Any) -> Iterator[pa.Table]:
    """An episode table, a row group at a time, from its file or the file's bytes."""
    with _opened(source) as file:
        for k in range(file.num_row_groups):
            yield file.read_row_group(k, use_threads=False).replace_schema_metadata(None)  # many are small
