"""How often the 95 % intervals of `fit` hold the truth, in logs of every world of the folder: docs/fitting.md.

    python analysis/interval_coverage.py [WORLD ...] [--replications 200] [--seconds 60] [--write docs/fitting.md]

Each world is simulated, its event log fitted, and each interval compared with the number that the world has. Seeds are
fixed: the same numbers come out again. `--seconds` bounds the time for a world: the table says how many logs there
were. `--write` puts the table between the marks of the page; lines of worlds that are not named stay as they are.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import queueing_ucrl as qu
from queueing_ucrl.data.round_trip import HELD, MISSED, NO_INTERVAL, coverage, log_length, seeds_of
from queueing_ucrl.paper.work import markdown_table

FOLDER = Path(__file__).parents[1] / "scenarios"
BEGIN, END = "<!-- interval coverage: begin -->\n", "<!-- interval coverage: end -->\n"
KINDS = ("arrivals", "service", "patience")


def in_time(seeds: range, seconds: float) -> Iterator[int]:
    """Seeds until the time is over, one at least."""
    begin = time.monotonic()
    for seed in seeds:
        if seed > seeds[0] and time.monotonic() - begin > seconds:
            return
        yield seed


def row(name: str, replications: int, seconds: float) -> list[str]:
    """A line of the table."""
    scenario = qu.load_scenario(FOLDER / f"{name}.toml")
    found = coverage(scenario, in_time(seeds_of(name, replications), seconds))
    logs = max(sum(counts.values()) for counts in found.values())
    system = scenario.system
    jobs = log_length(system) * system.total_arrival_rate
    cells = []
    for kind in KINDS:
        own = {what.split(" of ", 1)[1]: counts for what, counts in found.items() if what.startswith(kind)}
        cells.append("; ".join(f"{name} {told(counts)}" for name, counts in own.items()) or "-")
    return [name, f"{logs}", f"{jobs:,.0f}", *cells]


def told(counts: dict[str, int]) -> str:
    """Percent of the intervals given that hold the truth; how many logs gave none."""
    given = counts[HELD] + counts[MISSED]
    share = f"{100 * counts[HELD] / given:.1f}" if given else "-"
    return f"{share} ({counts[NO_INTERVAL]} without)" if counts[NO_INTERVAL] else share


def kept(path: Path) -> list[list[str]]:
    """The lines of the table that is on the page."""
    inside = path.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in inside.splitlines()[2:]]


def written(path: Path, table: str) -> None:
    """The page with this table between its marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help="all, unless they are named")
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each world")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", qu.GuaranteeWarning)
    names = options.worlds or sorted(path.stem for path in FOLDER.glob("*.toml"))
    rows = []
    for name in names:
        rows.append(row(name, options.replications, options.seconds))
        print(" | ".join(rows[-1]), flush=True)
    if options.write:
        rows = sorted([*rows, *(line for line in kept(options.write) if line[0] not in names)])
    table = markdown_table(["world", "logs", "jobs in a log", *KINDS], rows).rstrip("\n") + "\n"
    if options.write:
        written(options.write, table)
    else:
        print(table)


if __name__ == "__main__":
    main()
