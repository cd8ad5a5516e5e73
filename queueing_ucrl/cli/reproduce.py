"""`queueing-ucrl reproduce`: the paper's experiments."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from queueing_ucrl.cli.endings import end, mistakes_told, stops_told, tell, warnings_told
from queueing_ucrl.cli.options import AsJson, Cluster, Jobs, StudyOptions
from queueing_ucrl.messages import shortened
from queueing_ucrl.paper.catalogue import EXPERIMENTS, GROUPS, chosen_experiments, load_experiment

_GROUPS = {"frontier": f"when learning is hard: {', '.join(GROUPS['frontier'])}", "all": "all of these but agents"}
_EXPERIMENT_LINES = "\n".join(
    textwrap.fill(words, 78, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12)
    for name, words in {**EXPERIMENTS, **_GROUPS}.items()
)
NOTES = f"""
Experiments:
{_EXPERIMENT_LINES}

Scales: quick, 6 trajectories to 1e5 (minutes on two cores); full, the paper's
100 to 1e6 (hours). --replications and --horizon choose anything between. The
folder holds the figures (.png) and tables (.md, .csv, .parquet); the same
command run again goes on where it stopped, and more --replications add to
those that are there.

Exit codes: 0 done, 1 failed, 2 a mistake in the options,
130 stopped by Ctrl-C.
"""


def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="EXPERIMENT...", help="What to make again.", show_default=False)
    ],
    scale: Annotated[str, typer.Option("--scale", metavar="SCALE", help="quick or full.")] = "quick",
    replications: Annotated[
        int | None, typer.Option("--replications", help="Trajectories, instead of the scale's number.")
    ] = None,
    horizon: Annotated[float | None, typer.Option("--horizon", help="Simulated time, instead of the scale's.")] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="NAME", help="A controller beside the paper's five, such as ucrl2b."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all chance.")] = 1,
    jobs: Jobs = None,
    cluster: Cluster = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder for the results.  [default: runs/reproduce-KEY]", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:  # long: an option a line
    """Make the paper's figures and numbers again."""
    # long by its options, which typer reads from the parameters
    with mistakes_told():
        from queueing_ucrl.experiments.executors import cluster_executor
        from queueing_ucrl.paper.work import SCALES, SHORTEST, Work, default_folder

        StudyOptions(horizon, replications, seed, jobs=jobs)  # what is wrong with these is told
        chosen = chosen_experiments(names)
        if scale not in SCALES:
            end(f"--scale {shortened(scale)}: must be {' or '.join(SCALES)}", 2)
        if horizon is not None and horizon < SHORTEST:
            end(f"--horizon {horizon:g}: must be at least {SHORTEST:g}", 2)
        experiments = {name: load_experiment(name) for name in chosen}
        horizon = SCALES[scale].horizon if horizon is None else horizon
        count = SCALES[scale].replications if replications is None else replications
        path = out or default_folder(horizon, seed)
        findings = {}
        with warnings_told(), cluster_executor(cluster, tell) as executor, stops_told(path):
            work = Work(path, count, horizon, seed, tuple(dict.fromkeys(also or ())), jobs, executor)
            for name, experiment in experiments.items():
                tell(f"{name} ({work.amount})")
                findings[name] = experiment(work)
                if not as_json:
                    typer.echo(findings[name].text + "\n")
        if as_json:
            results = {name: {"files": found.files, "rows": found.rows} for name, found in findings.items()}
            data = {"folder": str(path), "replications": count, "horizon": horizon, "seed": seed, "results": results}
            typer.echo(json.dumps(data, indent=2, allow_nan=False))
        else:
            typer.echo(f"figures, tables and trials are in {path}")
