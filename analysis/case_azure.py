"""The Azure LLM inference trace of 2023, worked through: docs/case-azure.md.

    python analysis/case_azure.py prepare FOLDER azure.csv
    queueing-ucrl fit azure.csv --time time --class class --service service --time-unit seconds --like llm-inference
    queueing-ucrl run azure.toml
    python analysis/case_azure.py worth azure.toml [--places 40 48 56 64] [--figure docs/case-azure.png]

`prepare` reads conv.csv and code.csv of the trace (Azure Public Dataset, Microsoft, CC-BY 4.0; Patel et al., ISCA 2024)
from a folder and writes a log with a time of service, which the trace does not have: SECONDS a token, assumed.
`worth` compares three tables in the fitted world and on the log: everybody let in, the best that treats both classes
alike, and the recommended one.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import queueing_ucrl as qu
from queueing_ucrl.accounts.steady_state import Estimate, estimate
from queueing_ucrl.data.recommend import recommend, run_length
from queueing_ucrl.data.replay import KeepsPolicy, replay
from queueing_ucrl.data.trace_file import LoggedJobs, read_trace
from queueing_ucrl.experiments.racing import TableRun, earned_per_time
from queueing_ucrl.paper.work import markdown_table
from queueing_ucrl.report.drawing import names_below
from queueing_ucrl.report.palette import BLUE, GREEN, GREY, VERMILION
from queueing_ucrl.report.study_figure import figure_bytes

FILES = {"conv.csv": "conversation", "code.csv": "code"}
SECONDS = {"ContextTokens": 0.0001, "GeneratedTokens": 0.04}  # a token; those of scenarios/llm-inference.toml
REPLICATIONS = 20
ADMIT_ALL, ALIKE, BY_CLASS = "everybody", "both alike", "by class"


def prepare(folder: Path, out: Path) -> pd.DataFrame:
    """The requests of both services in order of time, with a service of so many seconds a token."""
    parts = [pd.read_csv(folder / file).assign(kind=kind) for file, kind in FILES.items()]
    requests = pd.concat(parts, ignore_index=True).sort_values("TIMESTAMP", kind="stable")
    service = sum(seconds * requests[column] for column, seconds in SECONDS.items())
    log = pd.DataFrame({"time": requests["TIMESTAMP"], "class": requests["kind"], "service": service.round(4)})
    log.to_csv(out, index=False)
    return log


@dataclass(frozen=True)
class Worth:
    """Three tables at one number of places."""

    places: int
    load: float
    levels: dict[str, tuple[int, ...]]
    gains: dict[str, Estimate]  # in the fitted world
    earned: dict[str, Estimate]  # on the log
    more: dict[tuple[bool, str], Estimate]  # (on the log, than what): by class less that, on the same jobs

    def row(self) -> tuple[str, ...]:
        """For the table."""
        alike, (chat, code) = self.levels[ALIKE][0], self.levels[BY_CLASS]
        return (
            f"{self.places}",
            f"{self.load:.2f}",
            f"{alike}",
            f"{chat}, {code}",
            *(f"{self.earned[name].mean:.3f}" for name in (ADMIT_ALL, ALIKE, BY_CLASS)),
            *(_written(self.more[where, than]) for than in (ADMIT_ALL, ALIKE) for where in (True, False)),
        )


HEAD = (
    "places",
    "load",
    "alike: until",
    "by class: until",
    "everybody",
    "alike",
    "by class",
    "more than everybody, log",
    "fitted",
    "more than alike, log",
    "fitted",
)


def _written(found: Estimate) -> str:
    return f"{found.mean:.3f} ±{found.half_width:.3f}"


def simulated(system: qu.System, policy: qu.Policy, replications: int, seed: int) -> list[float]:
    """What a table earns in the fitted world, per second; the same jobs for every table."""
    length, skipped = run_length(system, 0.0)
    settings = qu.RunSettings(length, seed=seed, grid=(skipped, length), engine="compiled")
    return [earned_per_time(TableRun(system, policy, settings, 1000 + k)) for k in range(replications)]


def best_alike(system: qu.System, replications: int, step: int, seed: int) -> qu.Policy:
    """The best table that lets both classes in up to the same number in the system, among every `step`-th number."""
    capacity = system.capacity
    tables = [qu.Policy.trunk_reservation([n, n], capacity) for n in range(system.servers // 2, capacity + 1, step)]
    return max(tables, key=lambda table: sum(simulated(system, table, replications, seed)))


def worth(
    fitted: qu.System,
    jobs: LoggedJobs,
    places: int,
    *,
    replications: int = REPLICATIONS,
    draws: int = 100,
    step: int = 2,
) -> Worth:
    """What treating the classes differently is worth with so many places, and as many requests waiting at most."""
    system = qu.System(places, 2 * places, fitted.classes)
    tables = {
        ADMIT_ALL: qu.Policy.admit_all(2 * places, 2),
        ALIKE: best_alike(system, max(2, replications // 4), step, seed=2),
        BY_CLASS: recommend(system, horizon=jobs.duration, seed=1, workers=None).policy,
    }
    runs = {name: simulated(system, table, replications, seed=3) for name, table in tables.items()}
    more, earned = {}, {}
    for than in (ADMIT_ALL, ALIKE):
        pair = [(name, KeepsPolicy(tables[name], name)) for name in (than, BY_CLASS)]
        played = replay(system, jobs, pair, qu.RunSettings(jobs.duration, seed=1), draws=draws, workers=None)
        for row in played.rows:
            assert row.earned is not None
            earned[row.label] = row.earned
        last = played.rows[-1].gained
        assert last is not None
        more[True, than] = last
        more[False, than] = estimate([a - b for a, b in zip(runs[BY_CLASS], runs[than], strict=True)])
    load = sum(c.arrival_rate * system.law(i).mean for i, c in enumerate(system.classes)) / places
    levels = {name: table.control_levels for name, table in tables.items()}
    return Worth(places, load, levels, {n: estimate(v) for n, v in runs.items()}, earned, more)


def draw(path: Path, jobs: LoggedJobs, names: tuple[str, ...], found: list[Worth]) -> None:
    """The log by minutes; what the tables earn more than letting everybody in, on the log."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    minutes = (jobs.times - jobs.begin) / 60.0
    edges = np.arange(0.0, minutes[-1], 1.0)
    for i, (name, colour) in enumerate(zip(names, (BLUE, VERMILION), strict=True)):
        mine = jobs.classes == i
        left.step(edges[:-1], np.histogram(minutes[mine], edges)[0] / 60.0, color=colour, label=name)
    work = np.histogram(minutes, edges, weights=jobs.works)[0] / 60.0
    left.step(edges[:-1], work / 10.0, color=GREY, linestyle="--", label="places asked for, in tens (no requests)")
    left.set(title="the log, minute by minute", xlabel="minutes", ylabel="requests a second", ylim=(0.0, None))
    places = [one.places for one in found]
    for shift, than, colour in ((-0.4, ADMIT_ALL, BLUE), (0.4, ALIKE, GREEN)):
        more = [one.more[True, than] for one in found]
        at, mean, half = [p + shift for p in places], [m.mean for m in more], [m.half_width for m in more]
        right.errorbar(at, mean, half, fmt="o", capsize=3, color=colour, label=f"than {than}, on the log")
        fitted = [one.more[False, than].mean for one in found]
        right.plot(at, fitted, "_", markersize=14, color=colour, label=f"than {than}, fitted world")
    right.axhline(0.0, color=GREY, linewidth=0.8)
    right.set(title="the table by class earns more", xlabel="places", ylabel="cents a second", xticks=places)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        names_below(axes)
    path.write_bytes(figure_bytes(figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("prepare", help="write a log with assumed times of service")
    one.add_argument("folder", type=Path)
    one.add_argument("out", type=Path)
    two = parts.add_parser("worth", help="what the classes are worth treating differently")
    two.add_argument("scenario", type=Path)
    two.add_argument("--places", type=int, nargs="+", default=[40, 48, 56, 64])
    two.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.part == "prepare":
        print(f"{len(prepare(arguments.folder, arguments.out)):,} requests written to {arguments.out}")
        return
    scenario = qu.load_scenario(arguments.scenario)
    jobs = read_trace(scenario)
    found = [worth(scenario.system, jobs, places) for places in arguments.places]
    print(markdown_table(HEAD, [one.row() for one in found]))
    if arguments.figure:
        draw(arguments.figure, jobs, scenario.system.class_names, found)


if __name__ == "__main__":
    main()
