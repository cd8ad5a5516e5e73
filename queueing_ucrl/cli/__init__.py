"""The command line: `queueing-ucrl`, also `python -m queueing_ucrl`. A file a command.

Everything heavy is imported inside the command that needs it, so that --help answers at once.
"""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from queueing_ucrl.cli import animate, controllers, fit, log, new, optimise, report, reproduce, scenarios, solve, study
from queueing_ucrl.messages import printable, shortened

LONGEST_MESSAGE = 400  # characters of what is wrong with an argument


class _Program(TyperGroup):
    """All commands. What the parser has to say of a wrong argument repeats only as much of it as fits into a line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        standalone_mode = extra.pop("standalone_mode", True)
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except Exception as error:
            if not standalone_mode or not hasattr(error, "show") or not hasattr(error, "message"):
                raise
            error.message = printable(shortened(str(error.message), LONGEST_MESSAGE))
            error.show()
            code = getattr(error, "exit_code", 2)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


app = typer.Typer(
    cls=_Program,
    name="queueing-ucrl",
    help="Learn to control a queue: who gets in when several classes of jobs compete for servers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _as_written(text: str) -> str:
    """An epilog that is printed line by line: every paragraph must say so, or its lines are run together."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in text.strip("\n").split("\n\n"))


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


app.command(epilog=_as_written(solve.NOTES))(solve.solve)
app.command(epilog=_as_written(study.NOTES))(study.run)
app.command(epilog=_as_written(study.NOTES))(study.compare)
app.command(epilog=_as_written(optimise.NOTES))(optimise.optimise)
app.command(epilog=_as_written(fit.NOTES))(fit.fit)
app.command(epilog=_as_written(log.NOTES))(log.log)
app.command(epilog=_as_written(report.NOTES))(report.report)
app.command(epilog=_as_written(animate.NOTES))(animate.animate)
app.command(epilog=_as_written(reproduce.NOTES))(reproduce.reproduce)
_scenarios = typer.Typer(cls=scenarios.ScenariosGroup, help=scenarios.ABOUT)
_scenarios.command("list")(scenarios.list_scenarios)
_scenarios.command("copy")(scenarios.copy_scenario)
_scenarios.command("schema")(scenarios.print_schema)
app.add_typer(_scenarios, name="scenarios")
app.command(epilog=_as_written(new.NOTES))(new.new)
app.command(epilog=_as_written(controllers.NOTES))(controllers.controllers)


def main() -> None:
    """The program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except OSError as error:
        sys.exit(f"the output cannot be written ({error.strerror})")
