"""The measures of a study as tables for the terminal: a table a controller, a row a measure, a column a class."""

from __future__ import annotations

from rich.console import Console

from queueing_ucrl.accounts.measures import EVERYBODY, MEASURES, QUANTILES
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.report.layout import Table, print_line, print_words
from queueing_ucrl.report.numbers import NOTHING, number, with_interval
from queueing_ucrl.units import Units

SHARES = ("admitted", "rejected", "blocked", "abandoned", "service_level", "utilisation")


def measure_words(measure: str, target: float, units: Units) -> str:
    """What a row is called."""
    per = f"per {units.per_time}"
    words = {
        "arrivals": f"arrivals {per}",
        "throughput": f"joined a server {per}",
        "admitted": "admitted (%)",
        "rejected": "rejected (%)",
        "blocked": "blocked (%)",
        "abandoned": "gave up (% of admitted)",
        "wait": units.timed("mean wait"),
        "service_level": f"served within {number(target)} (%)" if target else "served at once (%)",
        "utilisation": "servers busy (%)",
        "revenue": units.paid(f"revenue {per}"),
        "cost": units.paid(f"cost {per}"),
        "earned": units.paid(f"earned {per}"),
        "in_system": "mean number in the system",
        "in_queue": "mean number waiting",
    }
    if measure in QUANTILES:
        return units.timed(f"{round(100 * QUANTILES[measure])}% wait")
    return words[measure]


def print_measures(console: Console, study: Study, units: Units) -> None:
    """All measures with their intervals."""
    for cell, result in zip(study.cells, study.summary(), strict=True):
        names, count = (EVERYBODY, *cell.system.class_names), result["replications"]
        table = Table(f"measures of {cell.name}", *names)
        for measure in MEASURES:
            factor = 100.0 if measure in SHARES else 1.0
            shown = []
            found = result["measures"][measure]
            for spread in (found[EVERYBODY], *found["classes"]):
                if spread["mean"] is None:
                    shown.append(NOTHING)
                    continue
                half = None if count < 2 else factor * (spread["high"] - spread["mean"])
                shown.append(with_interval(factor * spread["mean"], half))
            impatient = any(cell.system.patience_of(i) is not None for i in range(len(cell.system.classes)))
            if any(entry != NOTHING for entry in shown) and (impatient or measure != "abandoned"):
                words = measure_words(measure, cell.settings.target_wait, units)
                table.add(words, *shown, *[NOTHING] * (len(names) - len(shown)))
        print_line(console)
        if cell.values:
            print_words(console, ", ".join(f"{key} = {value}" for key, value in cell.values.items()), style="bold")
        table.print(console)
    print_words(
        console,
        "means over the whole run, from the empty system on; waits are of jobs that joined a server",
        style="dim",
    )
