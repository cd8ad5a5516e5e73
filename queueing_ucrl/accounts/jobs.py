"""From an event log to its jobs, one row a job.

    job, job_class      as in the log
    arrival             when it came; of a job that was there at time 0, 0
    decision            admit, reject (by the policy), block (no room), initial (there at time 0)
    start               when it first joined a server
    end                 when it left, served or for lack of patience
    outcome             served, abandoned, rejected, blocked, or unfinished when the log ends
    wait                from arrival to the first start, or to giving up
    sojourn             end - arrival
    server              the one it was at last
    reward, cost        what it paid, and what its wait (and giving up) cost
    episode             the controller's, when it came
    replication         as in the log; 0 where it has no such column

What does not apply to a job, or has not come to pass within the log, is missing. A job whose arrival lies before the
log (a stretch cut out of one) has no arrival and no decision. Interrupted jobs (breakdowns, hand-over) are one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_rows import (
    ABANDON,
    BLOCK,
    DEPART,
    EVENTS,
    REJECT,
    RESUME,
    START,
    EventLog,
    Rows,
    Source,
    open_logs,
)
from queueing_ucrl.messages import shown

if TYPE_CHECKING:
    import pandas as pd

DECISIONS = ("admit", "reject", "block", "initial")
OUTCOMES = ("served", "abandoned", "rejected", "blocked", "unfinished")
SERVED, ABANDONED, REJECTED, BLOCKED, UNFINISHED = range(5)
COLUMNS = (
    *("job", "job_class", "arrival", "decision", "start", "end", "outcome", "wait", "sojourn", "server"),
    *("reward", "cost", "episode", "replication"),
)
_READ = ("server", "episode", "wait", "reward", "cost", "replication")
_FLOATS = ("arrival", "start", "end", "wait", "reward", "cost")  # nan: missing
_CODES = ("job_class", "decision", "outcome", "server", "episode")  # -1: missing

# by event: the decision it tells, the outcome, whether it names the job's server
_DECISION = np.array([DECISIONS.index(name) if name in DECISIONS else -1 for name in EVENTS])
_OUTCOME = np.full(len(EVENTS), -1)
_OUTCOME[[DEPART, ABANDON, REJECT, BLOCK]] = SERVED, ABANDONED, REJECTED, BLOCKED
_AT_SERVER = np.isin(np.arange(len(EVENTS)), [START, RESUME, DEPART])
_OF_JOBS = (_DECISION >= 0) | (_OUTCOME >= 0) | _AT_SERVER


class JobTable:
    """Puts the rows of jobs together, a stretch of the log at a time; holds the jobs that have not ended yet."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.open: dict[str, Any] = {name: np.empty(0) for name in _FLOATS}
        self.open |= {name: np.empty(0, dtype=np.int64) for name in (*_CODES, "job", "replication", "row")}

    def take(self, rows: Rows) -> dict[str, Any]:
        """The next rows of the log; the jobs that ended in them, in order of arrival."""
        chosen = np.flatnonzero(rows.has_job & _OF_JOBS[rows.event])
        codes, table = self._gathered(rows, chosen)
        self._fill(table, rows, chosen, codes)
        ended = table["outcome"] >= 0
        self.open = {name: values[~ended] for name, values in table.items()}
        return {name: values[ended] for name, values in table.items()}

    def rest(self) -> dict[str, Any]:
        """The jobs that have not ended, once the log has."""
        table, self.open = self.open, {name: values[:0] for name, values in self.open.items()}
        table["outcome"] = np.full(table["row"].size, UNFINISHED)
        return table

    def _gathered(self, rows: Rows, chosen: Any) -> tuple[Any, dict[str, Any]]:
        """The place of each chosen row's job in a table of the open jobs and the new ones, which are empty yet."""
        import pandas as pd

        before = self.open["row"].size
        job, replication = rows.job[chosen], rows.replication[chosen]
        jobs = np.concatenate([self.open["job"], job]) if before else job
        replications = np.concatenate([self.open["replication"], replication])
        codes = pd.factorize(jobs)[0]
        if replications.size and (replications != replications[0]).any():
            several = pd.factorize(replications)[0]
            codes = pd.factorize(several * (codes.max() + 1) + codes)[0]
        count = int(codes.max()) + 1 if codes.size else 0
        first = np.empty(count, dtype=np.int64)
        first[codes[::-1]] = np.arange(codes.size)[::-1]
        new = first[before:] - before  # among the chosen rows
        at = chosen[new]
        table = {name: np.concatenate([self.open[name], np.full(count - before, np.nan)]) for name in _FLOATS}
        table |= {name: np.concatenate([self.open[name], np.full(count - before, -1)]) for name in _CODES}
        table["job"], table["replication"] = jobs[first], replications[first]
        table["row"] = np.concatenate([self.open["row"], rows.placed(at)])
        table["job_class"][before:], table["episode"][before:] = rows.job_class[at], rows.episode[at]
        return codes[before:], table

    def _fill(self, table: dict[str, Any], rows: Rows, chosen: Any, codes: Any) -> None:
        """What the rows say of their jobs; of several rows of a kind the first one counts, of servers the last."""
        event, time = rows.event[chosen], rows.time[chosen]

        def first(name: str, which: Any, values: Any, missing: Any) -> None:
            at = codes[which]
            fresh = missing(table[name][at])
            table[name][at[fresh][::-1]] = values[which][fresh][::-1]

        decision, outcome = _DECISION[event], _OUTCOME[event]
        came = decision >= 0
        self._check_arrivals(table, rows, chosen, codes, came)
        table["arrival"][codes[came]], table["decision"][codes[came]] = time[came], decision[came]
        first("start", event == START, time, np.isnan)
        waited = (event == START) | (event == ABANDON)
        first("wait", waited, rows.wait[chosen], np.isnan)
        first("end", (event == DEPART) | (event == ABANDON), time, np.isnan)
        first("outcome", outcome >= 0, outcome, lambda codes: codes < 0)
        server = rows.server[chosen]
        named = _AT_SERVER[event] & (server >= 0)
        table["server"][codes[named]] = server[named]
        for name in ("reward", "cost"):
            first(name, ~np.isnan(getattr(rows, name)[chosen]), getattr(rows, name)[chosen], np.isnan)

    def _check_arrivals(self, table: dict[str, Any], rows: Rows, chosen: Any, codes: Any, came: Any) -> None:
        at = codes[came]
        first = np.empty(table["row"].size, dtype=np.int64)
        first[at[::-1]] = np.arange(at.size)[::-1]
        twice = (table["decision"][at] >= 0) | (first[at] != np.arange(at.size))
        if twice.any():
            k = int(chosen[came][np.argmax(twice)])
            raise self.log.wrong(
                f"row {rows.number(k)}: job {shown(rows.job[k])} arrives a second time; logs of several runs must be "
                "read apart, or differ in their column 'replication'"
            )


def _frame(pieces: list[dict[str, Any]], log: EventLog) -> pd.DataFrame:
    """Jobs as a typed frame."""
    import pandas as pd

    table = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]} if pieces[1:] else pieces[0]
    ended = np.where(np.isnan(table["start"]) & (table["outcome"] != ABANDONED), np.nan, table["arrival"])
    until = np.where(table["outcome"] == ABANDONED, table["end"], table["start"])
    wait = np.where(np.isnan(table["wait"]), until - ended, table["wait"])

    def words(name: str, known: Any) -> Any:
        return pd.Categorical.from_codes(np.asarray(table[name], dtype=np.int64), pd.Index(list(known)))

    def whole(name: str) -> Any:
        return pd.arrays.IntegerArray(table[name].astype(np.int32), table[name] < 0)

    return pd.DataFrame(
        {
            "job": table["job"],
            "job_class": words("job_class", log.class_names),
            "arrival": table["arrival"],
            "decision": words("decision", DECISIONS),
            "start": table["start"],
            "end": table["end"],
            "outcome": words("outcome", OUTCOMES),
            "wait": wait,
            "sojourn": table["end"] - table["arrival"],
            "server": whole("server"),
            "reward": table["reward"],
            "cost": table["cost"],
            "episode": whole("episode"),
            "replication": np.maximum(table["replication"], 0).astype(np.int32),
        }
    )


def _pieces(log: EventLog) -> Iterator[dict[str, Any]]:
    table = JobTable(log)
    for rows in log.rows(_READ):
        yield table.take(rows)
    yield table.rest()


def iter_jobs(events: Source) -> Iterator[pd.DataFrame]:
    """The jobs of a log as they end, a frame for each row group: memory stays flat however long the log.

    A frame holds the jobs whose last row is in the row group (for a rejected job that is its arrival), in order of
    arrival; a last one those that are unfinished when the log ends. events: a path of a Parquet or CSV log, a folder
    of Parquet logs (one after the other), or a frame.
    """
    for log in open_logs(events):
        for piece in _pieces(log):
            if piece["row"].size:
                yield _frame([piece], log)


def jobs(events: pd.DataFrame | str | Path) -> pd.DataFrame:
    """The jobs of an event log in order of arrival, one row a job; the columns are those of this module's docstring.

    events: a frame (`run.events`), the path of a Parquet or CSV log, or a folder of Parquet logs of different
    replications. `iter_jobs` gives them piece by piece where they do not fit into memory.
    """
    import pandas as pd

    logs = open_logs(events)
    tables: list[pd.DataFrame] = []
    seen: dict[int, str] = {}
    for log in logs:
        pieces = list(_pieces(log))
        order = np.argsort(np.concatenate([piece["row"] for piece in pieces]), kind="stable")
        table = _frame(pieces, log).iloc[order]
        again = table.duplicated(["replication", "job"])
        if again.any():
            row = table[again].iloc[0]
            raise log.wrong(f"job {shown(row['job'])} comes again after its end, at {row['arrival']:g}")
        for replication in table["replication"].unique().tolist():
            if replication in seen:
                raise ValueError(
                    f"{seen[replication]} and {log.name} are both of replication {replication}: read logs of different "
                    "runs apart"
                )
            seen[replication] = log.name
        tables.append(table)
    if len(tables) == 1:
        return tables[0].reset_index(drop=True)
    names = list(dict.fromkeys(name for table in tables for name in table["job_class"].cat.categories))
    for table in tables:
        table["job_class"] = table["job_class"].cat.set_categories(names)
    return pd.concat(tables, ignore_index=True)
