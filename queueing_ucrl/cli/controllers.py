"""`queueing-ucrl controllers`: who can be put in control."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import mistakes_told
from queueing_ucrl.cli.options import AsJson

NOTES = """
A controller is named in a scenario's table [[controller]], with its options,
or by --controller and --controllers. Installed packages offer more through
the entry-point group queueing_ucrl.controllers.

Keys of --json, a table a controller:
  name, about           its name; what it does
  knows_rates           whether it is told the arrival rates
  own                   whether it comes with this program
  options               one table each, in order:
    name, type, help    its name; what it may be; what it does
    required, default   whether it must be given; what it is otherwise
  toml                  a table for a scenario, with what is required
"""


def controllers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The controller to describe.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the controllers, or describe one and its options."""
    with mistakes_told():
        from queueing_ucrl.learning.catalogue import catalogue, entry
        from queueing_ucrl.report.controller_tables import print_catalogue, print_entry
        from queueing_ucrl.report.layout import open_console

        entries = catalogue() if name is None else [entry(name)]
        if as_json:
            data = [one.plain_data() for one in entries]
            typer.echo(json.dumps(data if name is None else data[0], indent=2, allow_nan=False))
        elif name is None:
            print_catalogue(open_console(), entries)
        else:
            print_entry(open_console(), entries[0])
