"""How often the 95 % intervals of `fit` hold the truth, in logs of every world of the folder: docs/fitting.md.

    python analysis/interval_coverage.py [WORLD ...] [--replications 200] [--seconds 3600] [--keep counts.json]
                                         [--write docs/fitting.md]

Each world is simulated, its event log fitted, and each interval compared with the number that the world has. Seeds are
fixed: the same numbers come out again. Worlds take turns, so that `--seconds`, after which no more logs are begun,
leaves each with as many; the table says how many. `--keep` keeps the counts in a file after each log and goes on from
those that are there. `--write` puts the table between the marks of the page; lines of worlds that are not named stay as
they are.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

from scipy.stats import beta

import queueing_ucrl as qu
from queueing_ucrl.data.round_trip import HELD, MISSED, NO_INTERVAL, log_length, log_of, seeds_of, verdicts
from queueing_ucrl.files import write_atomically
from queueing_ucrl.paper.work import markdown_table

FOLDER = Path(__file__).parents[1] / "scenarios"
BEGIN, END = "<!-- interval coverage: begin -->\n", "<!-- interval coverage: end -->\n"
KINDS = ("arrivals", "service", "patience")
Counts = dict[str, dict[str, dict[str, int]]]  # by world and interval: how many logs it held the truth in, and so on


def logs_of(found: dict[str, dict[str, int]]) -> int:
    """How many logs of a world are counted."""
    return max((sum(counts.values()) for counts in found.values()), default=0)


def count(names: list[str], replications: int, seconds: float, keep: Path | None) -> Counts:
    """Logs of all worlds in turn."""
    found: Counts = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    begin = time.monotonic()
    for k in range(replications):
        for name in names:
            mine = found.setdefault(name, {})
            if logs_of(mine) > k or time.monotonic() - begin > seconds:
                continue
            scenario = qu.load_scenario(FOLDER / f"{name}.toml")
            for what, verdict in verdicts(scenario, log_of(scenario, seeds_of(name, replications)[k])).items():
                one = mine.setdefault(what, {HELD: 0, MISSED: 0, NO_INTERVAL: 0})
                one[verdict] += 1
            if keep is not None:
                write_atomically(keep, json.dumps(found, indent=1).encode())
    return found


def row(name: str, found: dict[str, dict[str, int]]) -> list[str]:
    """A line of the table."""
    system = qu.load_scenario(FOLDER / f"{name}.toml").system
    jobs = log_length(system) * system.total_arrival_rate
    cells = []
    for kind in KINDS:
        own = {what.split(" of ", 1)[1]: counts for what, counts in found.items() if what.startswith(kind)}
        cells.append("; ".join(f"{name} {told(counts)}" for name, counts in own.items()) or "-")
    return [name, f"{logs_of(found)}", f"{jobs:,.0f}", *cells]


def told(counts: dict[str, int]) -> str:
    """How many of the intervals given hold the truth, with the exact 95 % interval of that share in percent (Clopper
    and Pearson); how many logs gave none.
    """
    held, given = counts[HELD], counts[HELD] + counts[MISSED]
    if not given:
        return f"- ({counts[NO_INTERVAL]} without)"
    low = 0.0 if held == 0 else float(beta.ppf(0.025, held, given - held + 1))
    high = 1.0 if held == given else float(beta.ppf(0.975, held + 1, given - held))
    without = f", {counts[NO_INTERVAL]} without" if counts[NO_INTERVAL] else ""
    return f"{held}/{given} ({100 * low:.0f}-{100 * high:.0f} %{without})"


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
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no more logs are begun")
    parser.add_argument("--keep", type=Path, help="a file of counts, to go on from")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", qu.GuaranteeWarning)
    names = options.worlds or sorted(path.stem for path in FOLDER.glob("*.toml"))
    found = count(names, options.replications, options.seconds, options.keep)
    rows = [row(name, found[name]) for name in names if found[name]]
    if options.write:
        rows = sorted([*rows, *(line for line in kept(options.write) if line[0] not in names)])
    table = markdown_table(["world", "logs", "jobs in a log", *KINDS], rows).rstrip("\n") + "\n"
    if options.write:
        written(options.write, table)
    else:
        print(table)


if __name__ == "__main__":
    main()
