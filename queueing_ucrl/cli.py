"""The command line: `queueing-ucrl`, also `python -m queueing_ucrl`.

Everything heavy is imported inside the command that needs it, so that --help answers at once.
A user's mistake ends with one clear message and exit code 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

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


def _refuse(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)


@contextmanager
def _mistakes_told() -> Iterator[None]:
    """Turn what a user got wrong into a message and exit code 2, and a numerical failure into exit code 1."""
    from queueing_ucrl.errors import ScenarioError, SolverError

    try:
        yield
    except (ScenarioError, ValueError) as error:
        _refuse(str(error))
    except SolverError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


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


@app.command()
def solve(
    scenario: ScenarioFile,
    method: Annotated[
        str, typer.Option("--method", help="pi-b, pi, vi, vi-ae, lp or trunk-search.", metavar="METHOD")
    ] = "pi-b",
    epsilon: Annotated[float, typer.Option(help="For vi: how far the gain may be from the best.")] = 1e-9,
    as_json: AsJson = False,
) -> None:
    """Tell the best admission policy of a queue whose rates are known."""
    with _mistakes_told():
        from queueing_ucrl.report.tables import print_solution, solution_data
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.solvers.solve import METHODS, warm_up
        from queueing_ucrl.solvers.solve import solve as find_best

        if method not in METHODS:
            _refuse(f"--method {method}: must be one of {', '.join(METHODS)}")
        loaded = load_scenario(scenario)
        warm_up(method)
        solution = find_best(loaded.queue, method, epsilon=epsilon)
        if as_json:
            typer.echo(json.dumps(solution_data(loaded, solution), indent=2, allow_nan=False))
        else:
            from rich.console import Console

            print_solution(Console(highlight=False), loaded, solution)


@app.command()
def scenarios(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("scenarios"),
    as_json: AsJson = False,
) -> None:
    """List the scenario files of a folder and what each is about."""
    with _mistakes_told():
        from queueing_ucrl.scenario import load_scenario

        if not folder.is_dir():
            _refuse(f"{folder}: no such folder; name one that holds scenario files")
        rows = []
        for path in sorted(folder.glob("*.toml")):
            queue = (loaded := load_scenario(path)).queue
            rows.append(
                {
                    "file": str(path), "title": loaded.title, "servers": queue.servers, "capacity": queue.capacity,
                    "classes": len(queue.classes), "load": queue.load,
                }
            )  # fmt: skip
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("file", "servers", "capacity", "classes", "load", "title"):
            table.add_column(heading, justify="left" if heading in ("file", "title") else "right")
        for row in rows:
            table.add_row(
                escape(str(row["file"])), str(row["servers"]), str(row["capacity"]), str(row["classes"]),
                f"{row['load']:.3g}", escape(str(row["title"])),
            )  # fmt: skip
        Console(highlight=False).print(table)


def main() -> None:
    """The program."""
    app()
