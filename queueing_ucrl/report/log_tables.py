"""An event log for the terminal: what it is, its measures, its course in time as a picture, the laws it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from queueing_ucrl.accounts.log_checks import Law
from queueing_ucrl.accounts.log_summary import Course, LogSummary
from queueing_ucrl.accounts.measures import LOG_MEASURES
from queueing_ucrl.files import plain_data
from queueing_ucrl.messages import printable, shown, shown_path
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.measures import SHARES, measure_words
from queueing_ucrl.report.numbers import NOTHING, number, with_interval

if TYPE_CHECKING:
    import pandas as pd

BLOCKS, PLAIN = " ▁▂▃▄▅▆▇█", " .:-=+*#@"  # heights of a picture's columns, where the terminal has the first
CUTS = ("from", "episode", "replication", "controller")  # columns that cut time or runs
KEYS = (*CUTS, "job_class", "server")  # columns that say whose measures they are
MOST_BESIDE = 8  # classes or servers that stand beside one another: more have a line each
IN_A_LINE = ("arrivals", "admitted", "abandoned", "wait", "wait_95", "service_level", "in_system", "earned")
SHORT = {
    "arrivals": "arrivals",
    "admitted": "admitted\n(%)",
    "abandoned": "gave up\n(%)",
    "wait": "mean\nwait",
    "wait_95": "95%\nwait",
    "service_level": "in time\n(%)",
    "utilisation": "busy\n(%)",
    "throughput": "joined",
    "wait_50": "50%\nwait",
    "in_system": "in\nsystem",
    "earned": "earned",
}
NAMES = {
    "time": "time runs forwards",
    "jobs": "a job's events follow one another",
    "conservation": "jobs in the system are those that came and have not left",
    "capacity": "there is room for those who are let in",
    "servers": "a server has one job at a time, and is on duty",
    "fifo": "first in, first out",
    "waits": "a wait is from arrival to start",
    "little": "Little's law",
}


def print_log(console: Console, summary: LogSummary, target: float) -> None:
    """All of it."""
    for line in kind_of(summary):
        print_words(console, line)
    print_line(console)
    print_words(console, extent(summary))
    print_line(console)
    _print_course(console, summary.course)
    print_line(console)
    _print_measures(console, summary.measures, summary, target)
    if summary.windows is not None:
        print_line(console)
        _print_lines(console, summary.windows, summary)
    _print_notes(console, summary)
    if summary.laws is not None:
        print_line(console)
        _print_laws(console, summary.laws)


def kind_of(summary: LogSummary) -> list[str]:
    """Sentences that say what kind of log it is."""
    logs = summary.logs
    first = logs[0]
    kinds = {"parquet": "a Parquet file", "csv": "a CSV file", "frame": "a frame"}
    what = f"{len(logs)} event logs, {shown_path(first.name)} and others" if len(logs) > 1 else first.name
    if not any(log.metadata for log in logs):
        origin = "with the columns of an event log; nothing in it says which run it is of"
        return [f"{what or 'event log'}: {kinds[first.kind] if len(logs) == 1 else 'files'} {origin}."]
    about = [log.metadata for log in logs]
    words = [f"{what}: event log of a simulation by queueing_ucrl {_all_of(about, 'version')}."]
    if summary.title:
        words.append(f"Scenario: {printable(summary.title)}.")
    named = [{"controller": log.controller or None} for log in logs]
    words.append(
        f"Controller {_all_of(named, 'controller')}, seed {_all_of(about, 'seed')}, replication "
        f"{_all_of(about, 'replication')}, engine {_all_of(about, 'engine')}, horizon {_all_of(about, 'horizon')}."
    )
    if len({log.controller for log in logs}) > 1:
        words.append("Controllers are told apart; the picture is a mean over all runs (--controller NAME: of one).")
    queue, queues = first.metadata.get("queue"), len({str(entry.get("queue")) for entry in about})
    if queues > 1:
        words.append(f"The logs are of {queues} different queues: the measures are means over them.")
    elif isinstance(queue, dict):
        servers = f"{queue.get('servers')} servers" if isinstance(queue.get("servers"), int) else "servers by shifts"
        names = ", ".join(printable(name) for name in first.class_names)
        words.append(f"Queue: {servers}, room for {shown(queue.get('capacity'))}, classes {names}.")
    return words


def _all_of(about: Sequence[dict[str, Any]], key: str) -> str:
    """The values of a key, each once."""
    values = list(dict.fromkeys(_plain(entry.get(key)) for entry in about))
    return ", ".join(values[:8]) + (f", .. ({len(values)})" if len(values) > 8 else "")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 6)
    return "not said" if value is None else printable(str(value))


def extent(summary: LogSummary) -> str:
    """How much there is."""
    events = sum(summary.events.values())
    span = f"from {number(summary.begin, 6)} to {number(summary.last, 6)}"
    unit = f" {summary.units.time}" if summary.units.time else ""
    runs = f" in {len(summary.runs):,} runs" if len(summary.runs) > 1 else ""
    kinds = ", ".join(f"{count:,} {name}" for name, count in summary.events.items())
    return f"{events:,} events of {summary.jobs:,} jobs{runs}, {span}{unit}: {kinds}."


def heights(values: Sequence[float], marks: str) -> str:
    """A character for each value, the highest for the largest."""
    top = max(values, default=0.0)
    if not top > 0.0:
        return marks[0] * len(values)
    return "".join(marks[0 if v <= 0.0 else max(1, math.ceil(v / top * (len(marks) - 1) - 1e-9))] for v in values)


def _print_course(console: Console, course: Course) -> None:
    marks = BLOCKS if (console.encoding or "").lower().startswith("utf") else PLAIN
    for name, values in (("in system", course.in_system), ("arrivals", course.arrivals)):
        print_line(console, f"{name:<9} {heights(values.tolist(), marks)} {number(float(values.max()), 3)}")
    begin, end = number(float(course.edges[0]), 4), number(float(course.edges[-1]), 4)
    print_line(console, f"{'':<10}{begin}{end:>{len(course.arrived) - len(begin)}}", style="dim")


def _cell(measure: str, mean: float, high: float) -> str:
    factor = 100.0 if measure in SHARES else 1.0
    if math.isnan(mean):
        return NOTHING
    return number(factor * mean, 3) if math.isnan(high) else with_interval(factor * mean, factor * (high - mean))


def _print_measures(console: Console, table: pd.DataFrame, summary: LogSummary, target: float) -> None:
    """A row a measure, a column a class or server; a line each where time is cut."""
    column = next((key for key in ("job_class", "server") if key in table), None)
    names = list(dict.fromkeys(table[column])) if column else ["all"]
    if any(key in table for key in CUTS) or len(names) > MOST_BESIDE:
        _print_lines(console, table, summary)
        return
    heading = "server" if column == "server" else "measure"
    shown_table = Table(heading, *map(printable, names))
    for measure in LOG_MEASURES:
        mine = table[table["measure"] == measure]
        if not len(mine) or mine["mean"].isna().all() or (measure == "abandoned" and not (mine["mean"] > 0).any()):
            continue
        by_name = {row[column] if column else "all": row for row in mine.to_dict("records")}
        cells = [_cell(measure, by_name[n]["mean"], by_name[n]["high"]) if n in by_name else NOTHING for n in names]
        shown_table.add(measure_words(measure, target, summary.units), *cells)
    shown_table.print(console)


def _print_lines(console: Console, table: pd.DataFrame, summary: LogSummary) -> None:
    """A line for each window (hour, episode, replication) and class, with the measures that matter most."""
    keys = [key for key in KEYS if key in table]
    told = table.groupby("measure")["mean"].apply(lambda means: bool((means.notna() & (means != 0)).any()))
    measures = IN_A_LINE if "server" not in keys else ("throughput", "wait", "wait_50", "wait_95", "utilisation")
    columns = [measure for measure in measures if told.get(measure, False)]
    headings = [key.replace("job_class", "class") for key in keys]
    lines = Table(*headings, *(SHORT[measure] for measure in columns), names=len(keys))
    found: dict[tuple[Any, ...], dict[str, str]] = {}
    shown_rows = table[table["measure"].isin(columns)]
    for measure, mean, *about in zip(*(shown_rows[name].tolist() for name in ("measure", "mean", *keys)), strict=True):
        name = tuple(number(part, 6) if isinstance(part, float) else printable(str(part)) for part in about)
        found.setdefault(name, {})[measure] = _cell(measure, mean, math.nan)
    for name, cells in found.items():
        lines.add(*name, *(cells.get(measure, NOTHING) for measure in columns))
    lines.print(console)


def _print_notes(console: Console, summary: LogSummary) -> None:
    runs = len(summary.runs)
    how = f"{runs} runs" if runs > 1 else "batch means, 20 stretches of the run"
    ends = f"the log ends at {number(summary.horizon, 6)} ({summary.horizon_from})"
    print_words(console, f"{ends}; ± half of the 95 % interval, by {how}", style="dim")


def _print_laws(console: Console, laws: Sequence[Law]) -> None:
    """Which hold, which do not and where first, which could not be checked and why."""
    kept = [law for law in laws if law.holds]
    broken = [law for law in laws if law.holds is False]
    if not broken:
        print_words(console, f"Laws of event logs: all {len(kept)} that could be checked hold.")
    else:
        print_words(console, f"This log breaks {len(broken)} of the laws that event logs keep:", style="bold")
        for law in broken:
            of = "" if law.replication is None else f"replication {law.replication}, "
            print_words(console, f"- {NAMES[law.name]}: {of}{printable(str(law))}")
    for law in laws:
        if law.holds is None:
            print_words(console, f"not checked: {NAMES[law.name]} ({law.words})", style="dim")


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def log_data(summary: LogSummary) -> dict[str, Any]:
    """The same as plain data, for JSON: a long list of its keys."""

    def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
        return [{str(key): _or_none(value) for key, value in row.items()} for row in table.to_dict("records")]

    laws = None
    if summary.laws is not None:
        laws = [
            {
                "law": law.name,
                "holds": law.holds,
                "words": law.words,
                "row": law.row,
                "time": law.time,
                "job": plain_data(law.job),
                "replication": law.replication,
                "log": law.log or None,
            }
            for law in summary.laws
        ]
    course = summary.course
    return {
        "logs": [
            {"file": log.name, "kind": log.kind, "columns": list(log.columns), "metadata": log.metadata or None}
            for log in summary.logs
        ],
        "title": summary.title or None,
        "units": summary.units.plain_data(),
        "runs": len(summary.runs),
        "events": summary.events,
        "jobs": summary.jobs,
        "begin": summary.begin,
        "last": summary.last,
        "horizon": summary.horizon,
        "horizon_from": summary.horizon_from,
        "measures": rows(summary.measures),
        "windows": None if summary.windows is None else rows(summary.windows),
        "course": {
            "edges": course.edges.tolist(),
            "in_system": course.in_system.tolist(),
            "arrivals": course.arrivals.tolist(),
        },
        "laws": laws,
    }
