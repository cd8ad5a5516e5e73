"""The worlds from life (docs/worlds.md): what the M/M plan promises and earns in each, and what the best found earns.

    python analysis/worlds.py [NAME ...]            prints what `queueing-ucrl optimise` prints, and the row of the page
    python analysis/worlds.py [NAME ...] --write    puts them into docs/worlds.md and docs/world-NAME.md, with a picture

With the names of all five it takes twenty minutes on one core; results do not depend on the number of processes.
"""

from __future__ import annotations

import argparse
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

import queueing_ucrl as qu
from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.report.best_table import print_best_table
from queueing_ucrl.report.numbers import number, percent, with_interval
from queueing_ucrl.report.palette import BLUE, GREY, ORANGE, VERMILION
from queueing_ucrl.report.study_figure import figure_bytes

DOCS = Path(__file__).parents[1] / "docs"
PRECISION = 0.005
COLUMNS = 96  # of what is printed
BEGIN, END = "<!-- printed -->\n", "<!-- end -->\n"


@dataclass(frozen=True)
class Shown:
    """How a world is searched and drawn."""

    horizon: float | None  # of a replication; None: as `optimise` chooses
    stretch: tuple[float, float]  # of the path that is drawn, in the scenario's unit of time
    ticks: float  # between the marks of its axis
    money: str  # of the row: "euros an hour"

    def command(self, name: str) -> str:
        """What gives the figures of the page."""
        horizon = "" if self.horizon is None else f" --horizon {self.horizon:g}"
        return f"queueing-ucrl optimise {name} --precision {PRECISION:g}{horizon}"


WORLDS = {
    "call-centre-day": Shown(None, (24.0, 48.0), 6.0, "euros an hour"),
    "llm-inference": Shown(3600.0, (600.0, 1200.0), 200.0, "cents a second"),
    "emergency-department": Shown(2400.0, (240.0, 336.0), 24.0, "euros an hour"),
    "dispatch": Shown(144.0, (24.0, 36.0), 2.0, "euros an hour"),
    "spot-cluster": Shown(500.0, (50.0, 86.0), 12.0, "dollars an hour"),
}


def find(name: str) -> qu.BestTable:
    """What the command of the page finds."""
    scenario = qu.load_scenario(name)
    settings = scenario.settings
    return qu.optimise(
        scenario.system,
        horizon=WORLDS[name].horizon,
        precision=PRECISION,
        seed=settings.seed,
        engine=settings.engine,
    )


def printed(name: str, found: qu.BestTable) -> str:
    """What the command prints, but for the seconds it took."""
    scenario, out = qu.load_scenario(name), io.StringIO()
    print_best_table(Console(file=out, width=COLUMNS, highlight=False), scenario.title, found, scenario.units)
    text = re.sub(r"\s*\b[0-9.e+]+\s+seconds\.\s*$", "\n", out.getvalue())
    return f"    {WORLDS[name].command(name)}\n\n```text\n{text}```\n"


def row(name: str, found: qu.BestTable) -> str:
    """The line of docs/worlds.md."""
    plan, best, more = found.plan_gain, found.gain, found.improvement
    assert found.promised is not None
    cells = [
        f"[{name}](world-{name}.md), {WORLDS[name].money}",
        number(found.promised, 5),
        with_interval(plan.mean, plan.half_width),
        with_interval(best.mean, best.half_width),
        f"{with_interval(more.mean, more.half_width)} ({percent(more.mean / plan.mean, 2)})",
        str(best.count),
    ]
    return f"| {' | '.join(cells)} |"


# --- the picture ------------------------------------------------------------------------------------------------------


def path_of(events: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """The times at which the number of jobs changes, and the number after each."""
    moves = events[events["event"].isin(["admit", "depart", "abandon"])]
    after = moves["in_system"].to_numpy() + np.where(moves["event"] == "admit", 1, -1)
    return moves["time"].to_numpy(), after.astype(float)


def servers_in_time(system: qu.System, events: pd.DataFrame, end: float) -> tuple[FloatArray, FloatArray]:
    """How many servers are there: on duty, and not broken down."""
    changes = events[events["event"].isin(["breakdown", "repair"])]
    times = np.concatenate([[0.0], changes["time"].to_numpy()])
    down = np.concatenate([[0], np.where(changes["event"] == "breakdown", 1, -1)]).cumsum()
    if isinstance(system.servers, qu.Shifts):
        times = np.linspace(0.0, end, 2001)
        return times, np.array([float(system.servers.at(time)) for time in times.tolist()])
    return np.append(times, end), np.append(float(system.servers) - down, float(system.servers) - down[-1])


def served_shares(system: qu.System, events: pd.DataFrame) -> FloatArray:
    """Of all jobs of a class that came, the share whose service ended."""
    kinds = events.groupby(["job_class", "event"], observed=True).size().unstack(fill_value=0)
    came = sum(kinds[event] for event in ("admit", "reject", "block") if event in kinds)
    return np.asarray((kinds["depart"] / came).reindex(list(system.class_names)).to_numpy(), dtype=float)


def draw(name: str, found: qu.BestTable) -> bytes:
    """The number of jobs in a stretch of time, who is served, and the money; the plan and the best found. PNG."""
    scenario, shown = qu.load_scenario(name), WORLDS[name]
    begin, end = shown.stretch
    figure = Figure(figsize=(9.0, 3.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[2.4, 1.2, 1.2])
    tables = {"M/M plan": (found.plan, VERMILION), "best found": (found.policy, BLUE)}
    for k, (label, (policy, colour)) in enumerate(tables.items()):
        events = qu.simulate(scenario.system, policy, horizon=end, seed=scenario.settings.seed, log=True).events
        if k == 0:
            times, counts = servers_in_time(scenario.system, events, end)
            left.step(times, counts, where="post", color=GREY, linewidth=1.4, label="servers")
        times, jobs = path_of(events)
        left.step(times, jobs, where="post", color=colour, linewidth=0.7, label=label)
        bars = np.arange(len(scenario.system.classes)) + (0.4 * k - 0.2)
        middle.bar(bars, 100.0 * served_shares(scenario.system, events), 0.36, color=colour, label=label)
    unit = scenario.units.time
    left.set_title("jobs in the system, on the same arrivals", fontsize=10)
    left.set(xlim=shown.stretch, xlabel=unit, ylabel="jobs", ylim=(0.0, None))
    left.set_xticks(np.arange(begin, end + 1e-9, shown.ticks))
    middle.set_title("served, in percent of who came", fontsize=10)
    middle.set(ylim=(0.0, 100.0), ylabel="% of who came")
    middle.set_xticks(range(len(scenario.system.classes)), scenario.system.class_names, fontsize=8)
    _money(right, found)
    right.set_ylabel(shown.money)
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=8)
    return figure_bytes(figure)


def _money(axes: Axes, found: qu.BestTable) -> None:
    """Promised, earned, and earned by the best found, with 95 % intervals."""
    assert found.promised is not None
    axes.plot([0], [found.promised], "D", color=ORANGE)
    for k, (gain, colour) in enumerate(((found.plan_gain, VERMILION), (found.gain, BLUE)), start=1):
        axes.errorbar([k], [gain.mean], yerr=[gain.half_width], fmt="o", color=colour, capsize=4)
    axes.set_xticks([0, 1, 2], ["plan\npromises", "plan\nearns", "best found\nearns"])
    axes.set_title("earned, with 95 % intervals", fontsize=10)
    axes.set(xlim=(-0.5, 2.5))


# --- the pages --------------------------------------------------------------------------------------------------------


def put(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """The text between its marks on a page."""
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(begin)
    _, after = rest.split(end, 1)
    path.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")


def put_row(path: Path, name: str, line: str) -> None:
    """The line of this world in the table of the page."""
    page = path.read_text(encoding="utf-8")
    changed, times = re.subn(rf"^\| \[{name}\]\(.*$", line, page, flags=re.MULTILINE)
    assert times == 1
    path.write_text(changed, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, unless they are named: {', '.join(WORLDS)}")
    parser.add_argument("--write", action="store_true", help="into docs/")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in WORLDS]
    if unknown:
        parser.error(f"no such world: {unknown[0]}")
    for name in options.names or WORLDS:
        found = find(name)
        print(f"{printed(name, found)}\n{row(name, found)}\n", flush=True)
        if options.write:
            put(DOCS / f"world-{name}.md", printed(name, found))
            put_row(DOCS / "worlds.md", name, row(name, found))
            (DOCS / f"world-{name}.png").write_bytes(draw(name, found))


if __name__ == "__main__":
    main()
