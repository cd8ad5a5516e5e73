"""An event log for a picture, whatever it comes as: a run, a frame of pandas, or a Parquet file by row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl.messages import shown
from queueing_ucrl.report.animation import frames_of
from queueing_ucrl.simulation.event_log import ParquetLog
from queueing_ucrl.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd


def log_frames(events: Any, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The log in time order, a frame at a time, with these columns at least."""
    import pandas as pd

    if isinstance(events, Run):
        events = events.log.path if isinstance(events.log, ParquetLog) else events.events
    if isinstance(events, (str, Path)):
        yield from frames_of(Path(events).absolute(), columns)  # pyarrow would take a leading "~" for the home folder
        return
    if not isinstance(events, pd.DataFrame):
        raise TypeError(
            "events must be an event log (a run with log=True, its events, or the path of a Parquet log), got "
            f"{shown(type(events).__name__)}"
        )
    for name in columns:
        if name not in events.columns:
            raise ValueError(f"events: is no event log: it has no column {name!r}")
    yield events[list(columns)]
