"""Reading an event log back from another program's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from queueing_ucrl.files import is_plain_file
from queueing_ucrl.messages import shown_path

if TYPE_CHECKING:
    import pandas as pd


def read_log(path: str | Path, *, classes: Sequence[str] | None = None) -> pd.DataFrame:
    """The events of a file that `export_log` wrote (.csv, .xes or .xes.gz), with the types they had.

    classes: of a CSV file, the names of all classes in order; without it they are those that occur, in the order of
    their first rows. `xes_jobs` reads other people's XES files.
    """
    from queueing_ucrl.data.formats.csv import read_csv
    from queueing_ucrl.data.formats.xes_import import read_xes

    file = Path(path)
    try:
        there = is_plain_file(file)
    except OSError as error:
        raise ValueError(f"{shown_path(file)} {error.strerror}") from None
    if not there:
        raise ValueError(f"{shown_path(file)} is not there")
    if file.name.lower().endswith(".csv"):
        return read_csv(file, classes)
    if file.name.lower().endswith((".xes", ".xes.gz")):
        return read_xes(file)
    raise ValueError(f"{shown_path(file)}: the name must end in .csv, .xes or .xes.gz")
