"""`queueing-ucrl animate`: a stretch of an event log as a moving picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told

NOTES = """
The page needs no network and opens by a double click. Play, pause, step, seek
and change the speed by mouse or keyboard (space, arrows, + and -, Home, End).
`queueing-ucrl run SCENARIO --log` writes event logs into the folder of its
results, such as events/0000/oracle/000000.parquet.

Exit codes: 0 done, 2 a mistake in the log or the options.
"""


def animate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="An event log (Parquet or CSV).", show_default=False)],
    begin: Annotated[float, typer.Option("--from", help="Where the stretch begins.")] = 0.0,
    until: Annotated[
        float | None, typer.Option("--to", help="Where it ends.  [default: 500 events later]", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.  [default: LOG with .html]", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a page that is there.")] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:  # long: an option a line
    """Show a stretch of an event log as a moving picture."""
    with mistakes_told():
        from queueing_ucrl.files import same_file, write_atomically
        from queueing_ucrl.messages import shown_path
        from queueing_ucrl.report.animation import animation_page, frames_of, known_of, some_events_later, stretch_of

        if log.is_dir():
            raise ValueError(f"{shown_path(log)}: is a folder; name the log of one run")
        last = some_events_later(frames_of(log), begin) if until is None else until
        page = log.with_suffix(".html") if out is None else out
        if same_file(page, log):
            raise ValueError(f"{shown_path(page)}: is the log itself; choose another --out")
        if os.path.lexists(page) and not force:
            raise ValueError(f"{shown_path(page)}: is there already; choose another --out, or --force")
        known = known_of(log)
        queue = known.get("queue")
        servers = queue.get("servers") if isinstance(queue, dict) else None
        found = stretch_of(frames_of(log), begin, last, servers if isinstance(servers, int) else None)
        who = known.get("label") or known.get("controller", "")
        what = str(known.get("title") or log.stem)
        title = f"{what}: {who}" if who else what
        units = known.get("units")
        unit = str(units.get("time") or "") if isinstance(units, dict) else ""
        words = f"From time {begin:g} to {last:g} {unit}".rstrip()
        about = words + (f", seed {known['seed']}." if "seed" in known else ".")
        write_atomically(page, animation_page(found, title, about, unit or None).encode())
        typer.echo(f"the moving picture: {shown_path(page)}")
        if open_it and not typer.launch(page.absolute().as_uri()):
            end("no browser could be started; open the page by a double click", 0)
