"""How much work interrupted jobs were, from an event log: from start to end is also what interrupted them.

A breakdown cuts a job's service into pieces. If jobs go on where they were ("resume"), the work is the sum of the
pieces; if they begin again ("restart"), it is the last piece, and no earlier one is longer. A log does not name which,
but shows it: the last piece is shorter than an earlier one in about half of the jobs that resume, and in none that
restart. A hand-over at the end of a shift loses nothing. What an unfinished job took at least is its longest piece, or
the sum of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_rows import BREAKDOWN, DEPART, HAND_OVER, RESUME, START, EventLog, open_logs

if TYPE_CHECKING:
    import pandas as pd

TELLING = 7  # jobs that were interrupted and served: all of 7 last pieces are the longest in 1 % of logs that resume
_KEY = ["replication", "job"]


def interrupted_works(events: Any) -> tuple[pd.DataFrame | None, str]:
    """(replication, job, work and least of the interrupted jobs; what was found, in words); None: there are none.

    `work` is missing of unfinished jobs, `least` of the others.
    """
    import pandas as pd

    pieces = [piece for log in open_logs(events) for piece in _pieces(log)]
    if not pieces:
        return None, ""
    rows = pd.concat(pieces, ignore_index=True)
    begun, broken = rows["event"].isin([START, RESUME]), rows["event"] == BREAKDOWN
    key = [rows[name] for name in _KEY]
    until = rows["time"].groupby(key, sort=False).shift(-1).fillna(rows["until"])
    spent = (until - rows["time"]).where(begun, 0.0)
    piece = broken.astype(int).groupby(key, sort=False).cumsum()
    sums = spent.groupby([*key, piece.rename("piece")], sort=False).sum()
    by_job = sums.groupby(level=_KEY, sort=False)
    last, longest, total = by_job.last(), by_job.max(), by_job.sum()
    served = (rows["event"] == DEPART).groupby(key, sort=False).any().reindex(last.index)
    cut = broken.groupby(key, sort=False).any().reindex(last.index)
    found = pd.DataFrame({"cut": cut, "served": served, "last": last, "longest": longest, "total": total})
    return _worked(found)


def _worked(found: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Which of both it is, and what the work is then."""
    told = found[found["cut"] & found["served"]]
    tolerance = 1e-9 * float(found["total"].max())
    resumes = bool((told["last"] < told["longest"] - tolerance).any())
    of_one_piece = ~found["cut"]  # handed over only
    if resumes or not found["cut"].any():
        work, least = found["total"], found["total"]
        words = "go on where they were: their work is the time in service"
    elif len(told) >= TELLING:
        work = found["total"].where(of_one_piece, found["last"])
        least = found["total"].where(of_one_piece, found["longest"])
        words = "begin again: their work is the last stretch in service"
    else:
        work, least = found["total"].where(of_one_piece), found["total"].where(of_one_piece)
        words = "are too few to tell whether they go on or begin again: their service times are not used"
    frame = found[[]].assign(work=work.where(found["served"]), least=least.where(~found["served"]))
    return frame.reset_index(), f"{len(found):,} jobs were interrupted, and {words}"


def _pieces(log: EventLog) -> list[pd.DataFrame]:
    """The rows of interrupted jobs: read twice, so that only these are held."""
    import pandas as pd

    names, last, parts = [], 0.0, []
    for rows in log.rows(("replication",)):
        cut = rows.has_job & np.isin(rows.event, [BREAKDOWN, HAND_OVER])
        names.append(np.asarray(rows.job)[cut])
        last = max(last, float(rows.time[-1]))
    wanted = np.concatenate(names) if names else np.empty(0)
    if not wanted.size:
        return []
    for rows in log.rows(("replication",)):
        own = rows.has_job & np.isin(rows.event, [START, RESUME, BREAKDOWN, HAND_OVER, DEPART])
        own &= pd.Series(rows.job).isin(wanted).to_numpy()
        at = {"replication": np.maximum(rows.replication[own], 0), "job": np.asarray(rows.job)[own]}
        parts.append(pd.DataFrame({**at, "event": rows.event[own], "time": rows.time[own], "until": last}))
    return parts
