"""`queueing-ucrl report`: a study's page made again, or several studies side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told

NOTES = """
A page is one file that needs no network and opens by a double click. Of one
study it is report.html in its folder, which `run` and `compare` write too; of
several it is comparison.html where you work, or --out. An unfinished or
damaged study's page says so. A file that is no such page is never
overwritten.

Exit codes: 0 done, 1 failed, 2 a mistake in the folders or the options.
"""


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", help="Folders of studies.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.  [default: see below]", show_default=False),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Make the page of a study again, or set several studies side by side."""
    with mistakes_told():
        from queueing_ucrl.messages import shown_path
        from queueing_ucrl.report.study_page import write_pages

        page = write_pages(folders, out)
        typer.echo(f"the report, for a browser: {shown_path(page)}")
        if open_it and not typer.launch(page.absolute().as_uri()):
            end("no browser could be started; open the page by a double click", 0)
