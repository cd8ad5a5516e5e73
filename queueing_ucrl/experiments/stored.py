"""A study's folder, to be read only: what was run, how far it is, and its tables, trials and event logs.

Nothing is locked or written, so a study that is still running can be looked at: every file is there whole or not at
all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl.errors import DamagedFile
from queueing_ucrl.experiments.folder import LARGEST_MANIFEST, MANIFEST, file_in
from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown_path
from queueing_ucrl.units import Units

if TYPE_CHECKING:
    import pandas as pd

SUMMARY = "summary.json"
ON_LOG = "data.json"  # of a scenario that was fitted from a log


@dataclass(frozen=True)
class StoredStudy:
    """What a study's folder holds."""

    path: Path
    manifest: dict[str, Any] = field(repr=False)

    @classmethod
    def at(cls, path: Path) -> StoredStudy:
        """The study in a folder; a ValueError says why there is none."""
        if not path.is_dir():
            raise ValueError(f"{shown_path(path)}: is not a folder; the folder of a study's results is needed")
        found = _json(path / MANIFEST)
        if found is None:
            raise ValueError(
                f"{shown_path(path)}: holds no study (there is no {MANIFEST}); `run` and `compare` make one"
            )
        try:
            for point in found["identity"]["points"]:
                _ = (point["values"], point["queue"]["classes"], point["horizon"])
                _ = [(choice["label"], choice["name"]) for choice in point["controllers"]]
            _ = (int(found["replications"]), found["identity"]["seed"], str(found["title"]), found["units"]["time"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(f"{shown_path(path / MANIFEST)}: is not a study's manifest") from None
        return cls(path, found)

    # --- what was run ------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """Of the scenario."""
        return str(self.manifest["title"])

    @property
    def units(self) -> Units:
        """What time and money are counted in."""
        found = self.manifest["units"]
        return Units(str(found.get("time") or ""), str(found.get("money") or ""))

    @property
    def command(self) -> list[str]:
        """The words of the command that made it, files by their names; none where it was made from Python."""
        found = self.manifest.get("command")
        return list(map(str, found)) if isinstance(found, list) else []

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep (one without a sweep): values, queue, controllers, horizon."""
        return list(self.manifest["identity"]["points"])

    @property
    def cells(self) -> list[tuple[int, str]]:
        """(point, controller), in order."""
        return [(k, c["label"]) for k, point in enumerate(self.points) for c in point["controllers"]]

    # --- how far it is -----------------------------------------------------------------------------------------------

    @property
    def failure(self) -> str:
        """What ended the study's last run before its time; "" where nothing did."""
        return str(self.manifest.get("failed") or "")

    @cached_property
    def finished(self) -> dict[tuple[int, str], int]:
        """How many trials of each cell are done."""
        return {cell: len(self._trials(*cell)) for cell in self.cells}

    def _trials(self, point: int, name: str) -> list[Path]:
        """The files of a cell's trials, in order."""
        folder = file_in(self.path, "trials", (point, name, 0)).parent
        if not folder.is_dir():
            return []
        return sorted(item for item in folder.iterdir() if re.fullmatch("[0-9]{6,}[.]parquet", item.name))

    @property
    def wanted(self) -> int:
        """How many trials the study has in all."""
        return int(self.manifest["replications"]) * len(self.cells)

    @cached_property
    def results(self) -> list[dict[str, Any]] | None:
        """What `Study.summary` says, a table a cell; None where the study has not come to its end."""
        found = _json(self.path / SUMMARY)
        if found is None:
            return None
        results = found.get("results")
        if not isinstance(results, list) or len(results) != len(self.cells):
            raise DamagedFile(SUMMARY, "is not this study's summary")
        return results

    @cached_property
    def on_log(self) -> dict[str, Any] | None:
        """What came out on the log that the scenario was fitted from; None where there is none, or not yet."""
        return _json(self.path / ON_LOG)

    # --- its tables --------------------------------------------------------------------------------------------------

    def table(
        self, name: str, point: int, columns: list[str] | None = None, optional: Sequence[str] = ()
    ) -> pd.DataFrame | None:
        """The rows of one point of the sweep in a table of the folder, such as regret.parquet; None: there is none.

        optional: columns that are read if they are there, which an older version may not have written.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = (self.path / name).absolute()
        try:
            if not is_plain_file(path):
                return None
            values = self.points[point]["values"]
            wanted = None if columns is None else [*values, *columns]
            if wanted is not None and optional:
                wanted += [column for column in optional if column in pq.read_schema(path).names]
            frame = pq.read_table(path, columns=wanted).to_pandas()
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise self._damaged(path) from error
        if values:
            same = [frame[key].map(_canonical) == _canonical(value) for key, value in values.items()]
            frame = frame[[all(row) for row in zip(*same, strict=True)]]
        return frame.reset_index(drop=True)

    def episodes(self, point: int, name: str, replication: int = 0) -> pd.DataFrame | None:
        """The episodes of one trial; None where there are none."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = file_in(self.path, "episodes", (point, name, replication)).absolute()
        try:
            if not is_plain_file(path):
                return None
            table = pq.read_table(path)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(path) from error
        listed = {
            c: table.column(c).to_pylist() for c in table.column_names if pa.types.is_nested(table.schema.field(c).type)
        }
        plain = {c: table.column(c).to_pandas() for c in table.column_names if c not in listed}
        return pd.DataFrame(
            {c: pd.Series(listed[c], dtype=object) if c in listed else plain[c] for c in table.column_names}
        )

    def trial_columns(self, point: int, name: str, columns: list[str]) -> Iterator[Any]:
        """Some columns of each of a cell's trials (tables of pyarrow), replication by replication."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for path in self._trials(point, name):
            try:
                yield pq.read_table(path.absolute(), columns=columns)
            except (pa.ArrowException, OSError) as error:
                raise self._damaged(path) from error

    def _damaged(self, path: Path) -> DamagedFile:
        """Named within the folder: where that is, is no part of the study."""
        return DamagedFile(path.relative_to(self.path.absolute()), "cannot be read")

    def log(self, point: int, name: str, replication: int = 0) -> Path | None:
        """The event log of a trial; None where none was written."""
        path = file_in(self.path, "events", (point, name, replication)).absolute()
        return path if path.is_file() else None


def _canonical(value: Any) -> Any:
    """A swept value as it may be compared: lists come back from Parquet as arrays, numbers perhaps as floats."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _json(path: Path) -> dict[str, Any] | None:
    """A JSON file of the folder; None where there is none."""
    try:
        if not is_plain_file(path):
            return None
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError("it is too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it holds no table")
    except (ValueError, RecursionError):
        raise DamagedFile(path.name, "cannot be read") from None
    return found
