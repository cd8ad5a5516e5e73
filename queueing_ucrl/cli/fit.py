"""`queueing-ucrl fit`: from a log to a scenario file."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from queueing_ucrl.cli.again import given_command
from queueing_ucrl.cli.endings import mistakes_told, tell, warnings_told
from queueing_ucrl.cli.options import AsJson
from queueing_ucrl.messages import printable, shortened

NOTES = """
calls.csv gives calls.toml, calls.trace.parquet (the jobs as they came),
calls.fit.png and calls.report.html (each test with its picture, for a
browser); then `queueing-ucrl run calls.toml` tries controllers on them.

Columns are named; times are numbers or ISO dates (2024-03-31 08:15:00), with
an offset, or on the clock of --timezone. Several files are fitted together;
without --class each of them is a class, by its name. A row that is not as it
should be is counted, shown by its line, and it is said what was done with it.
An event log of ours (--log) and an XES file need no names.

What a log cannot tell (servers, capacity, rewards, costs) is given here or
taken from a scenario (--like). What is still missing stands in the file as
"?", and `run` says what to put there.

Keys of --json:
  source, rows, jobs, begin, end, unit, first_day
                        what was read; begin and end in the unit, from
                        midnight of the first day where dates are known
  words                 what was found, in sentences
  bad_rows              kind, count, first lines, and what was done
  notes                 what was taken for granted
  rates                 by class, and for each step of its pattern: rate, low
                        and high of the 95 % interval, count and exposure
  service, patience     laws compared: mean, cv, delta_aic, ks, chosen
  tests                 what, on, statistic, p_value, verdict, effect
  servers, balking      what overlapping services and the crowd tell
  load                  servers that the work keeps busy, servers there,
                        and what can hardly be (cautions)
  promise               what the M/M plan promises, and earns (with interval)
  missing               keys that hold a "?", and what to put there
  written               the files

Exit codes: 0 done (also where something is missing), 2 a mistake in the log
or the options, 130 stopped by Ctrl-C.
"""


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """NAME=VALUE, each name once; a name may hold an equals sign itself."""
    found: dict[str, str] = {}
    for text in given or ():
        name, sign, value = text.rpartition("=")
        if not sign or not name.strip() or not value.strip():
            raise ValueError(f"{option} {shortened(text)}: must be NAME=VALUE, such as gold=20")
        if name.strip() in found:
            raise ValueError(f"{option} {shortened(text)}: {shortened(name.strip())} is given twice")
        found[name.strip()] = value.strip()
    return found


def _numbers(option: str, given: list[str] | None) -> dict[str, float]:
    found = {}
    for name, text in _pairs(option, given).items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = math.nan
        if not math.isfinite(found[name]):
            raise ValueError(f"{option} {shortened(name)}={shortened(text)}: must be a number, such as {name}=20")
    return found


def fit(
    context: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE..", help="A log: CSV, Parquet or XES.", show_default=False)
    ],
    time: Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="When a job came.")] = None,
    job_class: Annotated[str | None, typer.Option("--class", metavar="COLUMN", help="Its class.")] = None,
    service: Annotated[str | None, typer.Option(metavar="COLUMN", help="How long its service took.")] = None,
    start: Annotated[str | None, typer.Option(metavar="COLUMN", help="Or when its service began,")] = None,
    end: Annotated[str | None, typer.Option(metavar="COLUMN", help="and ended (or it gave up).")] = None,
    patience: Annotated[str | None, typer.Option(metavar="COLUMN", help="How long it was in the queue.")] = None,
    abandoned: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whether it gave up (1 or 0).")] = None,
    decision: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What was decided: admit, reject, block.")
    ] = None,
    count: Annotated[str | None, typer.Option(metavar="COLUMN", help="How many jobs a row stands for.")] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Of dates, such as Europe/Berlin.")] = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="What numbers are in: seconds, minutes, hours, days.")
    ] = None,
    servers: Annotated[int | None, typer.Option(help="How many servers there are.")] = None,
    capacity: Annotated[int | None, typer.Option(help="Room for so many jobs, waiting or served.")] = None,
    reward: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What a job of a class pays; for each class.")
    ] = None,
    holding_cost: Annotated[
        list[str] | None, typer.Option(metavar="NAME=RATE", help="What a wait costs, per unit of time.")
    ] = None,
    abandonment_cost: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What it costs when a job gives up.")
    ] = None,
    like: Annotated[
        str | None, typer.Option(metavar="SCENARIO", help="Take servers, room, rewards and costs from it.")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="Another name for a class of the log.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The scenario file to write.", show_default=False)] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a log that has bad rows.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the fit.")] = True,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write the page for a browser.")] = False,
    seed: Annotated[int, typer.Option(help="Of all chance.")] = 0,
    as_json: AsJson = False,
) -> None:  # long: an option a line, each of them handed on
    """Fit a scenario to a log of your own: rates, laws, patience, and what was tested."""
    with mistakes_told():
        from queueing_ucrl.data.fit import fit as fit_log
        from queueing_ucrl.data.fit_files import files_for, write_fit

        if seed < 0:
            raise ValueError(f"--seed {seed}: must be at least 0")
        targets = files_for(files, out)
        columns: dict[str, Any] = {
            "service": service,
            "start": start,
            "end": end,
            "patience": patience,
            "abandoned": abandoned,
        }
        given: dict[str, Any] = {
            "rewards": _numbers("--reward", reward),
            "holding_costs": _numbers("--holding-cost", holding_cost),
            "abandonment_costs": _numbers("--abandonment-cost", abandonment_cost),
            "classes": _pairs("--rename", rename) or None,
        }
        for name, value in (("servers", servers), ("capacity", capacity)):
            if value is not None and value < 1:
                raise ValueError(f"--{name} {shortened(str(value))}: must be at least 1")
        targets.check(force, figure, files, page=not no_report)
        with warnings_told(), _Stages() as stages:
            found = fit_log(
                list(files),
                time,
                job_class,
                **columns,
                decision=decision,
                count=count,
                timezone=timezone,
                time_unit=time_unit,
                servers=servers,
                capacity=capacity,
                like=like,
                strict=strict,
                seed=seed,
                on_stage=stages.say,
                **given,
            )
            picture = None
            if figure:
                from queueing_ucrl.report.fit_figure import fit_figure

                stages.say("drawing")
                picture = fit_figure(found)
            page = None
            if not no_report:
                from queueing_ucrl.report.fit_page import fit_html

                stages.say("writing the page")
                page = fit_html(found, targets.scenario.name, targets.trace.name, given_command(context))
            written = write_fit(found, targets, picture, page, force=force)
        if as_json:
            data = {**found.plain_data(), "written": [printable(str(path)) for path in written]}
            typer.echo(json.dumps(data, indent=2, allow_nan=False))
        else:
            from queueing_ucrl.report.fit_tables import print_fit
            from queueing_ucrl.report.layout import open_console

            print_fit(open_console(), found, written)
            if not found.missing:
                typer.echo(f"next: queueing-ucrl run {printable(str(targets.scenario))}")


class _Stages:
    """What is being done, on a terminal; elsewhere nothing."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def __enter__(self) -> _Stages:
        return self

    def say(self, words: str) -> None:
        """The next stage."""
        if self.shown:
            tell(f"{printable(words)} ..")

    def __exit__(self, *error: object) -> None:
        pass
