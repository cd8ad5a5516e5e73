"""The figures of docs/plots.md.

python analysis/plots.py [--out docs]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt

import queueing_ucrl as qu
from queueing_ucrl.report.drawing import figure_bytes


def overview() -> bytes:
    """Regret, policy, beliefs and waits of the quickstart queue."""
    queue = qu.load_scenario("quickstart").queue
    ucrl = qu.UcrlAc(arrival_rate_bounds=(1.0, 4.0), first_episode=10.0)
    study = qu.replicate(queue, [ucrl, "thompson", "admit-all"], horizon=20_000, replications=10, seed=7)
    run = qu.simulate(queue, "thompson", horizon=1_000, seed=7)
    figure, panels = plt.subplots(2, 2, figsize=(13, 8.5), layout="constrained")
    qu.plot.regret(study, ax=panels[0, 0])
    qu.plot.policy(qu.solve(queue), ax=panels[0, 1], class_names=queue.class_names)
    qu.plot.beliefs(run, ax=panels[1, 0])
    qu.plot.waits(run, ax=panels[1, 1])
    return figure_bytes(figure)


def long_log() -> bytes:
    """The number of jobs while arrival rates change in time."""
    scenario = qu.load_scenario("rush-hours")
    run = qu.simulate(scenario.system, "admit-all", horizon=120.0, seed=7, log=True)
    axes = qu.plot.queue(run.events, units=scenario.units)
    axes.figure.set_size_inches(11, 4.2)
    return figure_bytes(axes.figure)


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    out = parser.parse_args().out
    (out / "plots-overview.png").write_bytes(overview())
    (out / "plots-queue.png").write_bytes(long_log())


if __name__ == "__main__":
    main()
