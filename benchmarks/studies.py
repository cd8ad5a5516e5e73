"""Studies: what a small replication costs, where reviews and notes are most of it; and what it costs to run a finished
study again, when everything is read, checked and written anew.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter

import queueing_ucrl as qu
from benchmarks import queues
from benchmarks.timing import Line, Measured, race
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.report.study_figure import write_figures
from queueing_ucrl.scenario import ControllerChoice, Scenario

TRIALS = 2000


def _run(scenario: Scenario, folder: Path) -> tuple[float, float]:
    """Seconds on the wall, and of the processor, in this process alone."""
    began, spent = perf_counter(), sum(os.times()[:2])
    study, kept = run_scenario(scenario, folder, jobs=1)
    write_figures(study, scenario, kept)
    return perf_counter() - began, sum(os.times()[:2]) - spent


def small_replication(smoke: bool) -> Measured:
    """The paper's first queue to time 100: 200 times of the grid and some 50 reviews."""
    queue = queues.paper(20)
    sides = {
        name: lambda name=name: qu.simulate(queue, name, horizon=100.0, seed=1)
        for name in ("certainty-equivalent", "oracle")
    }
    seconds = race(sides, 3 if smoke else 200)
    reviews = len(qu.simulate(queue, "certainty-equivalent", horizon=100.0, seed=1).episodes) - 1
    note = f"certainty-equivalent, {reviews} reviews; without any: {1e3 * seconds['oracle']:.2f} ms"
    return Measured([Line("a small replication", 1e3 * seconds["certainty-equivalent"], "ms", at_most=4, note=note)])


def finished_study(smoke: bool) -> Measured:
    """The paper's first queue under two controllers to time 100: 200 times and some 50 episodes a trial."""
    count = 20 if smoke else TRIALS
    names = ("certainty-equivalent", "oracle")
    choices = tuple(ControllerChoice(name, {}, qu.make_controller(name)) for name in names)
    settings = qu.RunSettings(100.0, count // len(names), seed=1)
    scenario = Scenario("A finished study", queues.paper(20), Path("finished.toml"), choices, settings)
    with tempfile.TemporaryDirectory() as name:
        fresh, fresh_work = _run(scenario, Path(name) / "out")
        again = [_run(scenario, Path(name) / "out") for _ in range(1 if smoke else 3)]
    wall, work = (min(times) for times in zip(*again, strict=True))
    note = (
        f"{count} trials, processor time; on the wall {wall:.2f} s; made: {fresh_work:.2f} s, {fresh:.2f} s on the wall"
    )
    return Measured(
        [
            Line("a finished study, run again", work, "s", at_most=2.5, note=note),
            Line("  again / made", work / fresh_work, "x", at_most=0.5),
        ]
    )


MEASURES = [small_replication, finished_study]
