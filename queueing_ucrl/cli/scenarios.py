"""`queueing-ucrl scenarios`: which there are, and a copy of one to change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from queueing_ucrl.cli.endings import end, mistakes_told, tell
from queueing_ucrl.cli.options import AsJson
from queueing_ucrl.messages import printable, shown_path

ABOUT = """List the scenarios, or copy one to change it.

Without a command: list.
"""


class ScenariosGroup(TyperGroup):
    """`scenarios [FOLDER]` is short for `scenarios list [FOLDER]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in ("--help", *self.commands):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def list_scenarios(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="A folder of scenario files.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List scenarios and what each is about.

    Without a folder those that can be run by name: the ones that come with the program, and those of a folder
    `scenarios` here. Files that cannot be used are listed after the others, and the exit code is then 2.
    """
    with mistakes_told():
        from queueing_ucrl.errors import ScenarioError
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.scenario.names import known_scenarios

        files = known_scenarios() if folder is None else {path.name: path for path in _files(folder)}
        rows, broken = {}, []
        for name, path in files.items():
            try:
                system = (loaded := load_scenario(path)).system
            except ScenarioError as error:
                broken.append(str(error))
                continue
            size = {"servers": system.most_servers, "capacity": system.capacity, "classes": len(system.classes)}
            about = {"name": path.stem, "file": str(path), "title": loaded.title}
            rows[name] = {**about, **size, "load": loaded.queue.on_average().load}
        if as_json:
            typer.echo(json.dumps(list(rows.values()), indent=2, allow_nan=False))
        elif rows:
            _print(rows)
        if broken:
            end("\n".join(broken), 2)
        if not rows:
            tell(f"{shown_path(folder or '.')}: no scenario files (*.toml)")


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.name.endswith(".toml"))
    except (FileNotFoundError, NotADirectoryError):
        end(f"{shown_path(folder)}: no such folder; name one that holds scenario files", 2)
    except OSError as error:
        end(f"{shown_path(folder)}: cannot be read ({error.strerror})", 2)


def _print(rows: dict[str, dict[str, Any]]) -> None:
    from rich.cells import cell_len

    from queueing_ucrl.report.layout import GAP, Table, open_console

    names = [printable(name) for name in rows]
    width = min(40, max(map(cell_len, names)))  # a name that is longer moves its title
    table = Table("scenario", "servers", "capacity", "classes", "load")
    for name, row in zip(names, rows.values(), strict=True):
        titled = name + " " * (width - cell_len(name)) + GAP + row["title"]
        table.add(titled, str(row["servers"]), str(row["capacity"]), str(row["classes"]), f"{row['load']:.3g}")
    table.print(open_console())


def copy_scenario(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that comes with the program.", show_default=False)],
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The file to write, or its folder.  [default: NAME.toml]", show_default=False),
    ] = None,
) -> None:
    """Copy a scenario that comes with the program.

    The copy is for you to change. A file that is there already is not touched, and the exit code is then 2. The schema
    that its first line names, for editors, is put beside it.
    """
    with mistakes_told():
        from queueing_ucrl.files import write_atomically
        from queueing_ucrl.scenario.json_schema import put_schema_beside
        from queueing_ucrl.scenario.names import installed_scenario

        source = installed_scenario(name)
        path = Path(source.name) if to is None else to / source.name if os.path.isdir(to) else to
        if os.path.lexists(path):
            end(f"{shown_path(path)}: is there already; name another file with --to", 2)
        write_atomically(path, source.read_bytes())
        put_schema_beside(path)
        typer.echo(f"{shown_path(path)} is yours to change; `queueing-ucrl run {shown_path(path)}` runs it")


def print_schema() -> None:
    """Print the JSON Schema of scenario files.

    Editors that know TOML take it from the first line of a file, which names it, and then complete and check keys:
    `queueing-ucrl scenarios schema > scenario.schema.json` puts it beside your files. Controllers of installed packages
    are in it.
    """
    with mistakes_told():
        from queueing_ucrl.scenario.json_schema import schema_text

        typer.echo(schema_text(), nl=False)
