"""What several commands can be told, each option in one place."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from queueing_ucrl.cli.endings import mistakes_told
from queueing_ucrl.messages import shortened

ScenarioName = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A scenario file (TOML), or its name.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processes to use.  [default: all cores]", show_default=False)]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A dask scheduler to run on, such as tcp://host:8786."),
]


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run, where, and what becomes of its results; None: as the scenario says, or the default."""

    horizon: Annotated[float | None, typer.Option(help="Simulated time, instead of the scenario's.")] = None
    replications: Annotated[
        int | None,
        typer.Option(help="How often to repeat, instead of the scenario's number."),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of all chance, instead of the scenario's.")] = None
    precision: Annotated[
        float | None,
        typer.Option(help="Add replications until the measure is known so well (0.01: to 1 %)."),
    ] = None
    measure: Annotated[
        str | None, typer.Option(help="What the precision is of, such as wait or earned.", show_default=False)
    ] = None
    target_wait: Annotated[
        float | None, typer.Option(help="For the measure service_level: a wait up to which service is good.")
    ] = None
    jobs: Jobs = None
    cluster: Cluster = None
    engine: Annotated[str | None, typer.Option(help="auto, simpy or compiled: the same paths, other speeds.")] = None
    log: Annotated[bool, typer.Option("--log", help="Also write every event to Parquet files in the folder.")] = False
    out: Annotated[
        Path | None, typer.Option(help="The folder for the results.  [default: runs/NAME-KEY]", show_default=False)
    ] = None
    trust: Annotated[
        list[str] | None,
        typer.Option(
            "--trust",
            metavar="FILE",
            help="Load an agent from this file (or sha256:DIGEST), which runs code that it holds.",
        ),
    ] = None
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False
    measures: Annotated[bool, typer.Option("--measures", help="Also print waits, shares and money by class.")] = False
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if self.horizon is not None and not 0 < self.horizon < math.inf:
            raise ValueError(f"--horizon {self.horizon}: must be a positive number")
        for name, least in (("replications", 1), ("seed", 0), ("jobs", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"--{name} {shortened(str(value))}: must be at least {least}")
        if self.engine not in (None, "auto", "simpy", "compiled"):
            raise ValueError(f"--engine {shortened(str(self.engine))}: must be auto, simpy or compiled")

    @property
    def settings(self) -> dict[str, Any]:
        """Those that stand in a scenario's table [run] too."""
        names = ("horizon", "replications", "seed", "engine", "precision", "measure", "target_wait")
        return {name: getattr(self, name) for name in names}


def with_study_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each of StudyOptions, in place of its last parameter, which is all of them."""
    *own, whole = inspect.signature(command, eval_str=True).parameters.values()
    options = inspect.signature(StudyOptions, eval_str=True).parameters

    def told(**given: Any) -> None:
        with mistakes_told():
            study = StudyOptions(**{name: given.pop(name) for name in options})
            command(**given, **{whole.name: study})

    told.__name__, told.__doc__ = command.__name__, command.__doc__
    told.__signature__ = inspect.Signature([*own, *options.values()])  # type: ignore[attr-defined]
    return told
