"""`queueing-ucrl optimise`: the best table found by simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from queueing_ucrl.cli.again import given_command
from queueing_ucrl.cli.endings import end, mistakes_told
from queueing_ucrl.cli.options import AsJson, Jobs, ScenarioName
from queueing_ucrl.messages import shown_path

NOTES = """
For systems whose optimum is not known: other laws than the exponential,
arrivals that are not Poisson, rates that change. Every table is simulated
on the same jobs; worse ones are dropped in races; the winner is run again on
jobs that the search has not seen. Nothing is said of other tables.

The page (what was searched, what was dropped when, what each class's level is
worth) is runs/NAME.optimise.html, or --out; for what levels are worth a few
more tables are run.

Keys of --json; each estimate is a table of mean, low, high and level:
  title, units          of the scenario; what time and money are counted in
  comparator            "best table found"
  gain                  reward per unit of time of the best table found, on
                        replications that the search has not seen
  control_levels        by class: the first state that rejects it
  table                 null, or a list of states by classes (1: admitted)
                        where the control levels do not say all
  plan                  the best policy of the M/M/c/S queue of equal means:
                        promised (its gain there; null: not solved), gain
                        (what it earns here), control_levels, table
  improvement           gain less the plan's, on the same jobs
  replications          that gain, plan and improvement are means of
  searched              space, start, tables, runs, replications, horizon,
                        warm_up, tolerance, confidence
  seconds               it took

Exit codes: 0 done, 1 failed, 2 a mistake in the scenario or the options,
130 stopped by Ctrl-C.
"""


def optimise(
    context: typer.Context,
    scenario: ScenarioName,
    search: Annotated[
        str,
        typer.Option(help="levels (a level for each class) or table (from there on any table; takes far longer)."),
    ] = "levels",
    horizon: Annotated[float | None, typer.Option(help="Simulated time of a run.  [default: 50,000 jobs]")] = None,
    precision: Annotated[
        float, typer.Option(help="Half-width of the final interval to aim at, as a part of the gain.")
    ] = 1e-3,
    seed: Annotated[int | None, typer.Option(help="Seed of all chance, instead of the scenario's.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.  [default: runs/NAME.optimise.html]", show_default=False)
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write the page.")] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:  # long: an option a line, each of them checked
    """Find the best admission table by simulation, where no optimum is known."""
    with mistakes_told():
        from queueing_ucrl.experiments.optimise import SEARCHES
        from queueing_ucrl.experiments.optimise import optimise as find_best
        from queueing_ucrl.report.best_table import print_best_table
        from queueing_ucrl.report.layout import open_console
        from queueing_ucrl.report.progress import SearchProgress, in_words
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.simulation.first_use import compile_first

        if search not in SEARCHES:
            raise ValueError(f"--search {search}: must be one of {', '.join(SEARCHES)}")
        if not 0 < precision < 1:
            raise ValueError(f"--precision {precision}: must lie between 0 and 1")
        for name, value, least in (("seed", seed, 0), ("jobs", jobs, 1)):
            if value is not None and value < least:
                raise ValueError(f"--{name} {value}: must be at least {least}")
        loaded = load_scenario(scenario)
        page = None if no_report else _page_for(loaded.path.stem, out)
        seed = loaded.settings.seed if seed is None else seed
        with SearchProgress() as progress:
            try:
                compile_first((), progress.say, loaded.settings.engine, loaded.system)
                found = find_best(
                    loaded.system,
                    search=search,
                    horizon=horizon,
                    precision=precision,
                    seed=seed,
                    engine=loaded.settings.engine,
                    jobs=jobs,
                    on_step=progress.on_step,
                    surface=page is not None,
                )
            except KeyboardInterrupt:
                progress.bar.stop()
                so_far = progress.step
                best = f"; the best so far: {in_words(so_far.best)}, in {so_far.tables} tables" if so_far else ""
                end(f"stopped{best}", 130)
        if page is not None:
            from queueing_ucrl.files import write_atomically
            from queueing_ucrl.report.optimise_page import optimise_html

            page.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(page, optimise_html(loaded.title, found, loaded.units, given_command(context)))
        if as_json:
            about = {"title": loaded.title, "units": loaded.units.plain_data()}
            typer.echo(json.dumps({**about, **found.plain_data()}, indent=2, allow_nan=False))
        else:
            print_best_table(open_console(), loaded.title, found, loaded.units)
            if page is not None:
                typer.echo(f"the report, for a browser: {shown_path(page)}")


def _page_for(name: str, out: Path | None) -> Path:
    """Where the page goes; what is there and is no page is told before anything is run."""
    from queueing_ucrl.report.study_page import check_page

    page = Path("runs") / f"{name}.optimise.html" if out is None else out
    if out is not None and not page.parent.is_dir():
        raise ValueError(f"{shown_path(page)}: there is no folder {shown_path(page.parent)}")
    check_page(page)
    return page
