"""Logs with a known truth: a system is simulated, and what an office would have written down of it becomes a CSV.

For tests of the fit, and for trying it before one's own data is at hand.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.files import write_atomically
from queueing_ucrl.model.system import System
from queueing_ucrl.scenario.columns import UNITS
from queueing_ucrl.simulation.simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

FIRST_DAY = datetime(2024, 1, 1)  # a Monday


def synthetic_log(
    system: System, *, jobs: int = 20_000, horizon: float | None = None, controller: Any = "admit-all", seed: int = 0
) -> pd.DataFrame:
    """One row a job: time, job_class, wait, service, abandoned, decision, start and end, from a run of this length.

    jobs: about how many come. wait: until service or abandonment; nan of jobs that were turned away, or still wait.
    service: nan unless it was seen to its end.
    """
    import pandas as pd

    length = jobs / system.total_arrival_rate if horizon is None else horizon
    events = simulate(system, controller, horizon=length, seed=seed, log=True).events
    assert events is not None
    of = {name: rows.set_index("job") for name, rows in events.groupby("event", observed=True)}
    came = pd.concat([of[name] for name in ("admit", "reject", "block") if name in of]).sort_index()
    none: Any = pd.Series(dtype=float)
    start = of["start"]["time"].reindex(came.index) if "start" in of else none.reindex(came.index)
    left = of["depart"]["time"].reindex(came.index) if "depart" in of else none.reindex(came.index)
    gone = of["abandon"]["time"].reindex(came.index) if "abandon" in of else none.reindex(came.index)
    frame = pd.DataFrame(
        {
            "time": came["time"],
            "job_class": came["job_class"].astype(str),
            "wait": start.fillna(gone) - came["time"],
            "service": left - start,
            "abandoned": gone.notna(),
            "decision": came["event"].astype(str),
            "start": start,
            "end": left.fillna(gone),
        }
    )
    return frame.sort_values("time", kind="stable").reset_index(drop=True)


def write_log(
    log: pd.DataFrame, path: str | Path, *, unit: str | None = None, columns: dict[str, str] | None = None
) -> None:
    """A log as CSV. unit: times become dates from FIRST_DAY on, a unit of time being so long. columns: which of them,
    with their names in the file.
    """
    import pandas as pd

    chosen = log[list(columns)].rename(columns=columns) if columns else log.copy()
    if unit is not None:
        for name in ("time", "start", "end"):
            given = (columns or {}).get(name, name if columns is None else "")
            if given:
                elapsed = np.rint(log[name] * (UNITS[unit] * 1e6))
                chosen[given] = pd.Timestamp(FIRST_DAY) + pd.to_timedelta(elapsed, unit="us")
    write_atomically(Path(path), chosen.to_csv(index=False, lineterminator="\n").encode())
