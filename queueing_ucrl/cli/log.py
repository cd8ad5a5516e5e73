"""`queueing-ucrl log`: what an event log is and says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told, tell
from queueing_ucrl.cli.options import AsJson

NOTES = """
FILE is an event log in Parquet or CSV (columns time, event, job, job_class,
and what else there is), or a folder of Parquet logs, of which each file and
replication is a run. Runs of different controllers are never mixed: their
measures stand apart. It is read row group by row group: memory does not grow
with its length. The picture shows the mean number in the system and the
arrivals in 60 equal parts of the time; the number after it is its peak.

The laws: time runs forwards; a job's events follow one another; in_system is
the number that came in and has not left; capacity; a server has one job at a
time and is on duty; first in, first out; a wait is start less arrival;
Little's law. Of one that is broken the first row is told (the first row of a
log is 1).

Keys of --json (null: not known):
  logs                  file, kind (parquet or csv), columns, metadata of each
  title, units          of the scenario; what time and money are counted in
  runs, jobs            how many
  events                rows by kind
  begin, last           times of the first and last row
  horizon, horizon_from when the log ends, and where that is known from
  measures              rows of measure, mean, low, high, by what --by says
                        (job_class, server, episode, replication, controller,
                        from, to)
  windows               the same for each window (from, to), at most 10,000;
                        null without one
  course                edges, in_system, arrivals: the picture's numbers,
                        means over all runs
  laws                  law, holds (null: not checked), words, row, time, job,
                        replication, log; null with --no-check

Exit codes: 0 read, 1 the log breaks a law, 2 it cannot be read, or a mistake
in the options, 130 stopped by Ctrl-C.
"""


def log(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An event log, or a folder of them.", show_default=False)],
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="class, server, episode, hour (of the day), replication, controller, or none.  [default: class; "
            "controller, if there are several]",
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="LENGTH", help="Also a line for each window: 1h, or a number."),
    ] = None,
    controller: Annotated[
        str | None, typer.Option("--controller", metavar="NAME", help="Of a folder: read the logs of this one only.")
    ] = None,
    target_wait: Annotated[float, typer.Option("--target-wait", help="For the service level.")] = 0.0,
    time_unit: Annotated[
        str | None,
        typer.Option("--time-unit", help="What time is counted in: seconds, minutes, hours, days.  [default: as told]"),
    ] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Whether the log keeps the laws.")] = True,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="OUT", help="Write it in another format, by the end of OUT's name."),
    ] = None,
    as_json: AsJson = False,
) -> None:  # long: an option a line
    """Read an event log: what it is, its measures and its course in time, and whether it keeps the laws of a queue."""
    with mistakes_told():
        from queueing_ucrl.accounts.log_runs import SECONDS
        from queueing_ucrl.accounts.log_summary import DEFAULT, summarise
        from queueing_ucrl.report.layout import open_console
        from queueing_ucrl.report.log_tables import log_data, print_log

        if time_unit is not None and time_unit not in SECONDS:
            raise ValueError(f"--time-unit {time_unit}: must be one of {', '.join(SECONDS)}")
        try:
            summary = summarise(
                file,
                by=DEFAULT if by is None else None if by == "none" else by,
                window=window,
                target_wait=target_wait,
                time_unit=time_unit or "",
                controller=controller,
                check=check,
            )
        except KeyboardInterrupt:
            end("stopped", 130)
        if export is not None:
            from queueing_ucrl.data.formats.export import DATED, export_log, format_of

            dates = format_of(export) in DATED and time_unit is not None
            export_log(file, export, unit=time_unit if dates else None)
            tell(f"written: {export}")
        if as_json:
            typer.echo(json.dumps(log_data(summary), indent=2, allow_nan=False))
        else:
            print_log(open_console(), summary, target_wait)
        if summary.broken:
            end(f"{file}: breaks {len(summary.broken)} of the laws that event logs keep", 1)
