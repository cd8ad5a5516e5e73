"""The pages: what the report of a large study costs and weighs, and that of a long log, of which no peak is lost.

Seconds are of the processor: a busy machine does not make a page longer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import queueing_ucrl as qu
from benchmarks import queues
from benchmarks.timing import Line, Measured
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.report.log_scan import LogScan
from queueing_ucrl.report.study_figure import write_figures
from queueing_ucrl.report.study_page import write_study_page
from queueing_ucrl.scenario import ControllerChoice, Scenario

NAMES = ("ucrl-ac", "certainty-equivalent", "thompson", "oracle")
EVENTS_A_TIME = 5.0  # about, of the paper's first queue: two rates of 1, and what became of the jobs
LONG = 10_000_000


def _study(names: tuple[str, ...], horizon: float, replications: int, folder: Path, *, log: bool) -> Path:
    options = {"ucrl-ac": {"arrival_rate_bounds": (1.0, 4.0), "first_episode": 10.0}}
    choices = tuple(
        ControllerChoice(name, options.get(name, {}), qu.make_controller(name, options.get(name, {}))) for name in names
    )
    settings = qu.RunSettings(horizon, replications, seed=1)
    scenario = Scenario("A study with a page", queues.paper(20), Path("page.toml"), choices, settings)
    study, kept = run_scenario(scenario, folder, jobs=2, log=log)
    write_figures(study, scenario, kept)
    return kept.path


def large_study(smoke: bool) -> Measured:
    """Four controllers, 100 replications to time 10^4."""
    count, horizon = (3, 100.0) if smoke else (100, 1e4)
    with tempfile.TemporaryDirectory() as name:
        folder = _study(NAMES, horizon, count, Path(name) / "out", log=False)
        write_study_page(folder)  # the script of the charts is made once, and kept
        began = process_time()
        page = write_study_page(folder)
        seconds, size = process_time() - began, page.stat().st_size
    note = f"{count} replications of {len(NAMES)} controllers"
    return Measured(
        [
            Line("the page of a large study", seconds, "s", at_most=20, note=note),
            Line("  its size", size / 1e6, "MB", at_most=5),
        ]
    )


def long_log(smoke: bool) -> Measured:
    """One run with a log of ten million events; every extreme of the queue is on the page."""
    wanted = 20_000 if smoke else LONG
    with tempfile.TemporaryDirectory() as name:
        folder = _study(("oracle",), wanted / EVENTS_A_TIME, 1, Path(name) / "out", log=True)
        log = next((folder / "events").rglob("*.parquet"))
        write_study_page(folder)
        began = process_time()
        page = write_study_page(folder)
        seconds, size = process_time() - began, page.stat().st_size
        events, lost = _lost_peaks(log, wanted / EVENTS_A_TIME)
    if lost:
        raise AssertionError(f"{lost} stretches of the log have a peak that is not on the page")
    return Measured(
        [
            Line("the page of a long log", seconds, "s", at_most=60, note=f"{events:,} events"),
            Line("  its size", size / 1e6, "MB", at_most=5),
        ]
    )


def _lost_peaks(log: Path, horizon: float) -> tuple[int, int]:
    """Events, and the stretches of the page's chart whose extremes are not those of the whole log."""
    import pyarrow.parquet as pq

    table = pq.read_table(log, columns=["time", "event", "in_system"])
    kinds = table.column("event").to_numpy(zero_copy_only=False).astype(str)
    after = table.column("in_system").to_numpy() + (kinds == "admit") - (kinds == "depart")
    found = LogScan(log, ["class 0", "class 1"], horizon, [np.inf, np.inf]).extremes
    place = np.minimum((table.column("time").to_numpy() * (found.count / horizon)).astype(int), found.count - 1)
    most = np.zeros(found.count, dtype=int)
    np.maximum.at(most, place, after)
    return len(after), int(np.sum(found.high < most))


MEASURES = [large_study, long_log]
