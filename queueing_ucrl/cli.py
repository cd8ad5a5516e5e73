"""The command line: `queueing-ucrl`, also `python -m queueing_ucrl`.

Everything heavy is imported inside the command that needs it, so that --help answers at once.
A user's mistake ends with one clear message and exit code 2.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="queueing-ucrl",
    help="Learn to control a queue: who gets in when several classes of jobs compete for servers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def _end(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


@contextmanager
def _mistakes_told() -> Iterator[None]:
    """Turn what a user got wrong into a message and exit code 2, and a numerical failure into exit code 1."""
    from queueing_ucrl.errors import SolverError

    try:
        yield
    except ValueError as error:  # a ScenarioError, or an option out of its range
        _end(str(error), 2)
    except SolverError as error:
        _end(str(error), 1)
    except MemoryError:
        _end("not enough memory for a queue of this size", 1)


def _console() -> Console:
    """At least 80 columns: in a narrower window lines are broken, but nothing is left out."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(80, console.width)
    return console


def _version(asked: bool) -> None:
    if asked:
        from queueing_ucrl._version import __version__

        typer.echo(f"queueing-ucrl {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


SOLVE_KEYS = """\b
Keys of --json:
  title, servers, capacity, service_rate  as in the scenario
  load                  total arrival rate over total service rate
  gain                  reward per unit of time of the best policy
  trunk_reservation     whether each class is admitted below a level only
  classes               one table a class, in the scenario's order:
    name, arrival_rate  as in the scenario
    control_level       the first state (jobs present) that rejects it
    admitted_states     where it is admitted: [first, last] pairs of states
    admission_probability, rejection_probability
                        share of its arrivals let in, turned away
    mean_wait           of its admitted jobs; null if there are none
  blocking_probability  share of all arrivals that find the system full
  utilisation           mean share of the servers that are busy
  mean_in_system, mean_waiting
                        mean number of jobs
  throughput            jobs admitted per unit of time
  method, iterations, seconds
                        how the policy was found

Exit codes: 0 solved, 1 no trustworthy answer in double precision, 2 a mistake in the scenario or the options.
"""


@app.command(epilog=SOLVE_KEYS)
def solve(
    scenario: ScenarioFile,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="METHOD",
            help="pi-b or pi (policy iteration; pi-b admits ties), vi (value iteration), vi-ae (with action "
            "elimination), lp (linear program) or trunk-search (every trunk reservation policy of a small queue).",
        ),
    ] = "pi-b",
    epsilon: Annotated[float, typer.Option(help="For vi: how far from the best the gain may be.")] = 1e-9,
    as_json: AsJson = False,
) -> None:
    """Find the best admission policy of a known queue."""
    with _mistakes_told():
        from queueing_ucrl.report.tables import print_solution, solution_data
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.solvers.solve import METHODS, warm_up
        from queueing_ucrl.solvers.solve import solve as find_best

        if method not in METHODS:
            _end(f"--method {method}: must be one of {', '.join(METHODS)}", 2)
        if not 0 < epsilon < math.inf:
            _end(f"--epsilon {epsilon}: must be a positive number", 2)
        loaded = load_scenario(scenario)
        warm_up(method)
        solution = find_best(loaded.queue, method, epsilon=epsilon)
        if as_json:
            typer.echo(json.dumps(solution_data(loaded, solution), indent=2, allow_nan=False))
        else:
            print_solution(_console(), loaded, solution)


@app.command()
def scenarios(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("scenarios"),
    as_json: AsJson = False,
) -> None:
    """List the scenario files of a folder and what each is about.

    The files that cannot be used are told after the others, and the exit code is then 2.
    """
    with _mistakes_told():
        from queueing_ucrl.errors import ScenarioError
        from queueing_ucrl.scenario import load_scenario

        if not folder.is_dir():
            _end(f"{folder}: no such folder; name one that holds scenario files", 2)
        rows, broken = [], []
        for path in sorted(folder.glob("*.toml")):
            try:
                queue = (loaded := load_scenario(path)).queue
            except ScenarioError as error:
                broken.append(str(error))
                continue
            rows.append(
                {
                    "file": str(path), "title": loaded.title, "servers": queue.servers, "capacity": queue.capacity,
                    "classes": len(queue.classes), "load": queue.load,
                }
            )  # fmt: skip
        if as_json:
            typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        elif rows:
            _print_scenarios(rows)
        if broken:
            _end("\n".join(broken), 2)
        if not rows:
            typer.echo(f"{folder}: no scenario files (*.toml)", err=True)


def _print_scenarios(rows: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from queueing_ucrl.report.tables import plain_table

    table = plain_table("file", "servers", "capacity", "classes", "load", "title", text=("file", "title"))
    table.columns[0].min_width = min(40, max(len(Path(row["file"]).name) for row in rows))
    for row in rows:
        table.add_row(
            Text(Path(row["file"]).name), str(row["servers"]), str(row["capacity"]), str(row["classes"]),
            f"{row['load']:.3g}", Text(row["title"]),
        )  # fmt: skip
    _console().print(table)


def main() -> None:
    """The program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except OSError as error:
        sys.exit(f"the output cannot be written ({error.strerror})")
