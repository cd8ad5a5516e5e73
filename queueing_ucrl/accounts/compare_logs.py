r"""Two event logs side by side: their measures with differences and intervals, and where their decisions differ.

Two runs on the same jobs (common random numbers: the same job numbers, classes and times of arrival) are compared
stretch by stretch, so that what the jobs have in common cancels. With ratios r = sum x / sum y of each log and n
stretches (batches of a run, or replications) the difference r_b - r_a has the half-width

    t_{n-1} s / sqrt(n),    s^2 = sum e_j^2 / (n - 1),    e_j = (x_j^b - r_b y_j^b) / mean(y^b) - (the same of a).

Runs on different jobs are compared as independent ones: the squares of both half-widths add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from queueing_ucrl.accounts.log_cuts import Cut, CutOptions
from queueing_ucrl.accounts.log_measures import Measuring
from queueing_ucrl.accounts.log_rows import ADMIT, BLOCK, EVENTS, INITIAL, REJECT, EventLog, open_logs
from queueing_ucrl.accounts.log_runs import read_runs, survey
from queueing_ucrl.accounts.log_sums import READ
from queueing_ucrl.accounts.measures import EVERYBODY, IN_TIME, LOG_MEASURES, QUANTILES, RATIOS, Observed
from queueing_ucrl.accounts.steady_state import LEVEL
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import not_negative, positive
from queueing_ucrl.model.quantiles import student_quantile

if TYPE_CHECKING:
    import pandas as pd

_KEYS = ["replication", "job"]


@dataclass(frozen=True)
class LogComparison:
    """What two logs, a and b, have in common and where they differ."""

    paired: bool  # whether both are of the same jobs
    why: str  # or why not
    horizon: float  # up to which both are compared: the shorter one's
    measures: pd.DataFrame  # measure, job_class, a, b, difference (b - a), low, high
    decisions: (
        pd.DataFrame | None
    )  # job_class, in_system and decision in a and b, jobs: those that differ; None: unpaired
    first_difference: dict[str, Any] | None  # the first job on which the two decide differently; None: there is none

    def __str__(self) -> str:
        how = "on the same jobs" if self.paired else f"unpaired: {self.why}"
        lines = [f"up to {self.horizon:g}, {how}", self.measures.to_string(index=False)]
        if self.decisions is not None:
            count = int(self.decisions["jobs"].sum())
            lines.append(f"{count:,} decisions differ")
        if self.first_difference is not None:
            first = self.first_difference
            a, b = (f"{first[f'decision_{x}']} with {first[f'in_system_{x}']} in the system" for x in "ab")
            lines.append(f"first at {first['time']:g}, job {first['job']} ({first['job_class']}): a {a}, b {b}")
        return "\n".join(lines)


def compare_logs(
    a: pd.DataFrame | str | Path,
    b: pd.DataFrame | str | Path,
    horizon: float | None = None,
    *,
    target_wait: float = 0.0,
    servers: float | None = None,
) -> LogComparison:
    """Two logs (frames, files or folders) side by side, up to `horizon`, or the end of the one that ends first.

    Paired where both are of the same jobs, else not, and `why` says so. Measures need flat memory, pairing holds a few
    numbers of each arrival.
    """
    logs = {"a": open_logs(a), "b": open_logs(b)}
    runs = {name: [run for log in found for run in survey(log)] for name, found in logs.items()}
    for name, found in runs.items():
        if not found:
            raise ValueError(f"log {name} has no rows")
    end = min(run.horizon for found in runs.values() for run in found) if horizon is None else horizon
    end = positive(end, "horizon")
    target = not_negative(target_wait, "target_wait")
    arrivals = {name: _arrivals(found, end) for name, found in logs.items()}
    why = _unlike(arrivals["a"], arrivals["b"])
    if not why and [run.replication for run in runs["a"]] != [run.replication for run in runs["b"]]:
        why = "they are of different replications"
    options = CutOptions(servers=servers, target_wait=target)
    cuts = {name: Cut.of(logs[name], runs[name], options, end) for name in logs}
    sums = {name: _measured(logs[name], cuts[name]) for name in logs}
    table = _differences(sums["a"], sums["b"], cuts, paired=not why)
    if why:
        return LogComparison(False, why, end, table, None, None)
    decisions, first = _decisions(arrivals["a"], arrivals["b"])
    return LogComparison(True, "", end, table, decisions, first)


def _measured(logs: list[EventLog], cut: Cut) -> Measuring:
    measuring = Measuring.of(cut)
    for key, rows in read_runs(logs, READ):
        measuring.take(key, rows, logs[key[0]].class_names, cut.stretches)
    return measuring


def _arrivals(logs: list[EventLog], end: float) -> pd.DataFrame:
    """A row for each arrival up to the end: replication, job, time, class, decision, in_system."""
    import pandas as pd

    pieces = []
    for log in logs:
        for rows in log.rows(("in_system", "replication")):
            came = np.isin(rows.event, [ADMIT, REJECT, BLOCK, INITIAL]) & (rows.time <= end)
            names = np.array([*log.class_names, ""], dtype=object)
            columns = {"replication": np.maximum(rows.replication, 0)[came], "job": rows.job[came]}
            columns |= {"time": rows.time[came], "job_class": names[rows.job_class[came]]}
            pieces.append(pd.DataFrame({**columns, "event": rows.event[came], "in_system": rows.in_system[came]}))
    return pd.concat(pieces, ignore_index=True).sort_values(_KEYS, ignore_index=True)


def _unlike(a: pd.DataFrame, b: pd.DataFrame) -> str:
    """Why two logs are not of the same jobs; "" where they are."""
    for name, table in (("a", a), ("b", b)):
        if table.duplicated(_KEYS).any():
            return f"log {name} has jobs of the same number; logs of several runs must be compared one by one"
    if len(a) != len(b):
        return f"{len(a):,} jobs come in a, {len(b):,} in b"
    if a["job"].dtype != b["job"].dtype or not (a[_KEYS] == b[_KEYS]).all().all():
        return "their jobs have different numbers"
    differ = (a["time"] != b["time"]) | (a["job_class"] != b["job_class"])
    if differ.any():
        k = int(np.argmax(differ.to_numpy()))
        x, y = a.loc[k], b.loc[k]
        return f"job {x['job']} is {x['job_class']} at {x['time']:g} in a, {y['job_class']} at {y['time']:g} in b"
    return ""


def _decisions(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any] | None]:
    """The decisions that differ, by class and state, and the first of them."""
    differ = (a["event"] != b["event"]).to_numpy()
    words = np.array(EVENTS, dtype=object)
    both = a[[*_KEYS, "time", "job_class"]][differ].copy()
    for name, table in (("a", a), ("b", b)):
        both[f"in_system_{name}"] = table["in_system"][differ]
        both[f"decision_{name}"] = words[table["event"][differ].to_numpy()]
    both = both.sort_values(["time", "job"], ignore_index=True)
    groups = ["job_class", "in_system_a", "decision_a", "in_system_b", "decision_b"]
    counted = both.groupby(groups, observed=True).size().rename("jobs").reset_index()
    first = None if both.empty else {str(key): value for key, value in both.iloc[0].to_dict().items()}
    return counted.sort_values("jobs", ascending=False, kind="stable", ignore_index=True), first


def _residuals(of: Observed, measure: str, target: float) -> tuple[float, FloatArray | None]:
    """(the ratio, how far each stretch is from it, in its own units); None where chance cannot be judged."""
    above, below = (of._sum(name, None, target) for name in (RATIOS | IN_TIME)[measure])
    if not (np.isfinite(above).all() and np.isfinite(below).all()) or math.fsum(below) == 0.0:
        return math.nan, None
    ratio = math.fsum(above) / math.fsum(below)
    return ratio, (above - ratio * below) / (math.fsum(below) / below.size)


def _half_width(a: FloatArray, b: FloatArray, paired: bool) -> float:
    if min(a.size, b.size) < 2:
        return math.nan

    def spread(e: FloatArray) -> float:
        return math.sqrt(math.fsum((e * e).tolist()) / (e.size - 1) / e.size)

    if paired:
        return student_quantile(LEVEL, float(a.size - 1)) * spread(b - a)
    return math.hypot(*(student_quantile(LEVEL, float(e.size - 1)) * spread(e) for e in (a, b)))


def _differences(a: Measuring, b: Measuring, cuts: dict[str, Cut], *, paired: bool) -> pd.DataFrame:
    import pandas as pd

    (_, chosen_a), (_, chosen_b) = (cuts[name].stretches.bundles[0] for name in "ab")
    target, rows = cuts["a"].target, []
    names = list(dict.fromkeys([*a.names(), *b.names()]))
    known = {name: (a.observed(name, chosen_a), b.observed(name, chosen_b)) for name in (None, *names)}
    for measure in LOG_MEASURES:
        for name, (one, other) in known.items():
            if measure == "utilisation" and name is not None:
                continue
            half = math.nan
            if measure in QUANTILES:
                x, y = (found.estimate(measure, None, target).mean for found in (one, other))
            else:
                (x, of_x), (y, of_y) = (_residuals(found, measure, target) for found in (one, other))
                if of_x is not None and of_y is not None:
                    half = _half_width(of_x, of_y, paired)
            told = {"measure": measure, "job_class": EVERYBODY if name is None else name, "a": x, "b": y}
            rows.append({**told, "difference": y - x, "low": y - x - half, "high": y - x + half})
    return pd.DataFrame(rows)
