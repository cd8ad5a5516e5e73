"""The figures of docs/plots.md, and those of docs/model.md and docs/impatience.md: all by `qu.plot`.

python analysis/plots.py [--out docs] [--only NAME]
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


def who_is_let_in() -> bytes:
    """The best policy of the call centre, in which a class is turned away from a number on: docs/model.md."""
    queue = qu.load_scenario("call-centre").queue
    axes = qu.plot.policy(qu.solve(queue), class_names=queue.class_names)
    axes.figure.set_size_inches(8, 2.4)
    return figure_bytes(axes.figure)


def waits_of_the_impatient() -> bytes:
    """Waits of jobs that were served, and their law, of the queue of docs/impatience.md."""
    classes = [
        qu.JobClass("gold", 3.0, 20.0, qu.Linear(1.0), abandonment_cost=2.0, reward_at="end"),
        qu.JobClass("basic", 3.0, 10.0, qu.Linear(1.0)),
    ]
    queue = qu.Queue(5, 20, 1.0, classes, patience=qu.Exponential(0.5))
    axes = qu.plot.waits(qu.simulate(queue, "oracle", horizon=1_000, seed=7))
    axes.figure.set_size_inches(8, 4.2)
    return figure_bytes(axes.figure)


FIGURES = {
    "plots-overview": overview,
    "plots-queue": long_log,
    "model-policy": who_is_let_in,
    "impatience-waits": waits_of_the_impatient,
}


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--only", choices=tuple(FIGURES))
    options = parser.parse_args()
    for name, make in FIGURES.items():
        if options.only in (None, name):
            (options.out / f"{name}.png").write_bytes(make())


if __name__ == "__main__":
    main()
