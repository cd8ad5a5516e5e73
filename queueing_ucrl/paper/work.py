"""What the experiments share: the paper's queues, how much is simulated, and how findings are written.

Heavy parts are loaded when they are used.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from queueing_ucrl._version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from queueing_ucrl.accounts.totals import Account
    from queueing_ucrl.arrays import FloatArray
    from queueing_ucrl.experiments.folder import StudyFolder
    from queueing_ucrl.experiments.study import Study
    from queueing_ucrl.scenario import ControllerChoice, Scenario

QUEUES = tuple((capacity, rate) for capacity in (20, 50) for rate in (0.3, 0.4, 0.5))  # in the order of Fig. 1
SHORTEST = 100.0  # horizon; the bounds of Fig. 2 begin at time 18


@dataclass(frozen=True)
class Scale:
    """How much is simulated."""

    replications: int
    horizon: float


SCALES = {"quick": Scale(6, 1e5), "full": Scale(100, 1e6)}
PAPER = SCALES["full"]


@dataclass(frozen=True)
class ExperimentResult:
    """What an experiment found."""

    rows: list[dict[str, Any]]  # its table, as plain data
    text: str  # the same for people, in Markdown
    files: list[str]


@dataclass(frozen=True)
class Work:
    """How much to do, where its results go and where it runs."""

    out: Path
    replications: int
    horizon: float
    seed: int = 1
    also: tuple[str, ...] = ()  # controllers beside the paper's
    jobs: int | None = None
    executor: Executor | None = None

    @property
    def amount(self) -> str:
        """How much was simulated, in words; less than in the paper is called so."""
        noun = "trajectory" if self.replications == 1 else "trajectories"
        words = f"{self.replications} {noun} to {self.horizon:,.0f}"
        if self.replications >= PAPER.replications and self.horizon >= PAPER.horizon:
            return words
        return f"{words}; the paper: {PAPER.replications} to {PAPER.horizon:,.0f}"

    @cached_property
    def folder(self) -> StudyFolder:
        """The folder of figures and tables; a folder of something else is refused."""
        from queueing_ucrl.experiments.folder import StudyFolder

        return StudyFolder(self.out, reproduction_identity(self.horizon, self.seed), {"title": "The paper, reproduced"})

    def scenarios(self, controllers: Callable[[Scenario], Iterable[ControllerChoice]]) -> Scenario:
        """The paper's six queues as points of a sweep, each with the controllers that are made for it."""
        from queueing_ucrl.experiments.campaign import with_run
        from queueing_ucrl.scenario import load_scenario
        from queueing_ucrl.scenario.names import INSTALLED

        points = []
        for capacity, rate in QUEUES:
            one = load_scenario(INSTALLED / f"paper-s{capacity}-mu{rate}.toml")
            one = with_run(one, horizon=self.horizon, replications=self.replications, seed=self.seed)
            values = {"capacity": capacity, "service_rate": rate}
            points.append(replace(one, controllers=tuple(controllers(one)), values=values))
        return replace(points[0], title="The paper's six queues", points=tuple(points))

    def study(
        self, name: str, scenario: Scenario, points: Sequence[int] | None = None, accounts: Sequence[Account] = ()
    ) -> Study:
        """Run a study (or some points of it) in a folder of its own within ours; what is there is taken from there.

        accounts: beside the regrets, for `samples`.
        """
        from queueing_ucrl.experiments.campaign import identity, study_cells
        from queueing_ucrl.experiments.folder import StudyFolder
        from queueing_ucrl.experiments.runner import run_study
        from queueing_ucrl.report.progress import StudyProgress
        from queueing_ucrl.simulation.first_use import compile_first
        from queueing_ucrl.simulation.kernel import is_plain

        chosen = [k for k in range(len(scenario.points)) if points is None or k in points]
        cells = [cell for cell in study_cells(scenario, accounts) if cell.point in chosen]
        about = {**identity(scenario), **({"accounts": [one.name for one in accounts]} if accounts else {})}
        folder = StudyFolder(self.folder.path / name, about, {"title": scenario.title})
        with StudyProgress(replace(scenario, points=tuple(scenario.points[k] for k in chosen))) as progress:
            systems = (cell.system for cell in cells)
            compile_first(
                (cell.controller for cell in cells),
                progress.say,
                system=next((system for system in systems if not is_plain(system)), None),
            )
            hooks: dict[str, Any] = {"on_result": progress.on_result, "on_progress": progress.on_progress}
            return run_study(cells, executor=self.executor, jobs=self.jobs, folder=folder, **hooks)

    def publish(
        self, name: str, frame: pd.DataFrame, text: str, figures: dict[str, Figure] | None = None
    ) -> ExperimentResult:
        """Write NAME.md, NAME.csv, NAME.parquet and the figures."""
        from queueing_ucrl.report.drawing import figure_bytes

        folder = self.folder
        folder.write_bytes(f"{name}.md", (text + "\n").encode())
        folder.write_bytes(f"{name}.csv", frame.to_csv(index=False).encode())
        folder.write_table(f"{name}.parquet", frame)
        for file, figure in (figures or {}).items():
            folder.write_bytes(file, figure_bytes(figure))
        files = [f"{name}.md", f"{name}.csv", f"{name}.parquet", *(figures or {})]
        plain = frame.astype(object).where(frame.notna(), None).to_dict("records")
        rows = [{str(key): value for key, value in row.items()} for row in plain]
        return ExperimentResult(rows, text, [str(self.out / file) for file in files])


def reproduction_identity(horizon: float, seed: int) -> dict[str, Any]:
    """What tells one reproduction's folder from another's; more trajectories are more of the same."""
    return {"reproduction": {"version": __version__, "horizon": horizon, "seed": seed}}


def default_folder(horizon: float, seed: int) -> Path:
    """Where a reproduction goes if nothing else is said."""
    from queueing_ucrl.experiments.folder import identity_key

    return Path("runs") / f"reproduce-{identity_key(reproduction_identity(horizon, seed))[:8]}"


def named_cell(study: Study, name: str, point: int) -> int:
    """The number of the cell with this controller at this point of the sweep."""
    return next(k for k, cell in enumerate(study.cells) if (cell.point, cell.name) == (point, name))


def quantiles_cell(samples: FloatArray) -> str:
    """The 50, 90 and 99 % quantiles of what trajectories lost."""
    import numpy as np

    return " / ".join(f"{value:,.0f}" for value in np.quantile(samples, (0.5, 0.9, 0.99)).tolist())


def quantiles_table(study: Study, kind: str = "gap", called: Callable[[str], str] = str) -> str:
    """Quantiles over the trajectories of the regret at the end: a row a controller, a column a queue."""
    rows: dict[str, list[str]] = {}
    queues: dict[int, str] = {}
    for k, cell in enumerate(study.cells):
        queues[cell.point] = f"S {cell.values['capacity']}, µ {cell.values['service_rate']}"
        rows.setdefault(called(cell.name), []).append(quantiles_cell(study.samples(k, kind)[:, -1]))
    return markdown_table(("50 / 90 / 99 %", *queues.values()), ((name, *cells) for name, cells in rows.items()))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table that can also be read as it is: the columns are lined up."""
    table = [list(headings), *([str(entry) for entry in row] for row in rows)]
    widths = [max(3, *(len(row[k]) for row in table)) for k in range(len(headings))]
    first, *rest = (
        "| " + " | ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)) + " |" for row in table
    )
    return "\n".join([first, "|" + "|".join("-" * (width + 2) for width in widths) + "|", *rest])


def paragraph(words: str) -> str:
    """Words in lines of at most 120 characters, and an empty line."""
    return textwrap.fill(words, 120) + "\n\n"
