"""`python -m benchmarks [SUITE ...] [--smoke] [--full] [--json FILE] [--figure FILE.png]`.

Exits with 1 if anything failed to run or gave a wrong answer; a claim that does not hold is only printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import traceback
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks import SUITES
from benchmarks.timing import Line, Panel

HEADER = f"{'measure':<50} {'value':>9} {'':<3} {'claim':<7} {'holds':<5}  note"


def written(line: Line, smoke: bool) -> str:
    """A row of the table; the small sizes of a smoke run are no test of a claim."""
    value = "-" if math.isnan(line.value) else f"{line.value:.3g}" if line.value < 1000 else f"{line.value:.0f}"
    claim, holds = (line.claim, {True: "yes", False: "NO", None: ""}[line.holds]) if not smoke else ("", "")
    if math.isnan(line.value):
        holds = ""
    return f"{line.measure:<50} {value:>9} {line.unit:<3} {claim:<7} {holds:<5}  {line.note}".rstrip()


def draw(panels: list[Panel], path: Path) -> None:
    """All panels side by side, log-log."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5.6 * columns, 4.2 * rows), squeeze=False, layout="constrained")
    for axes, panel in zip(grid.flat, panels, strict=False):
        for marker, (name, (x, y)) in zip("os^vDP*X" * len(panel.curves), panel.curves.items(), strict=False):
            axes.loglog(x, y, marker=marker, label=name)
        axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
        axes.grid(which="major", alpha=0.4)
        axes.set_ylim(top=axes.get_ylim()[1] * 5)  # room for the legend
        axes.legend(loc="upper left", ncols=3)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(path, dpi=130)


def as_json(results: dict[str, list[Line]], smoke: bool) -> str:
    """The lines, and the machine they were measured on."""
    machine = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
    }
    suites = {
        suite: [
            {
                "measure": line.measure.strip(),
                "value": None if math.isnan(line.value) else line.value,
                "unit": line.unit,
                "claim": None if smoke else line.claim or None,
                "holds": None if smoke or math.isnan(line.value) else line.holds,
                "note": line.note,
            }
            for line in lines
        ]
        for suite, lines in results.items()
    }
    return json.dumps({"machine": machine, "smoke": smoke, "suites": suites}, indent=2) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Times, each against a reference.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--full", action="store_true", help="also what takes minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--figure", type=Path, metavar="FILE.png", help="draw how times grow")
    arguments = parser.parse_args()
    unknown = [suite for suite in arguments.suites if suite not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there is {', '.join(SUITES)}")
    results: dict[str, list[Line]] = {}
    panels: list[Panel] = []
    failed = False
    began = perf_counter()
    for suite in arguments.suites or SUITES:
        print(f"{suite}\n{HEADER}", flush=True)
        results[suite] = []
        module = import_module(SUITES[suite])
        for measure in module.MEASURES + (getattr(module, "FULL", []) if arguments.full else []):
            try:
                measured = measure(arguments.smoke)
            except Exception:
                failed = True
                print(f"{measure.__name__} failed:\n{traceback.format_exc()}", flush=True)
                continue
            results[suite] += measured.lines
            panels += measured.panels
            for line in measured.lines:
                print(written(line, arguments.smoke), flush=True)
    print(f"{perf_counter() - began:.0f} s" + (", small sizes: claims are not judged" if arguments.smoke else ""))
    if arguments.json:
        arguments.json.write_text(as_json(results, arguments.smoke))
    if arguments.figure and panels:
        draw(panels, arguments.figure)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
