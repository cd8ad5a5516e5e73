"""Studies of made-up numbers, of any size and with any names, to be drawn and printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import queueing_ucrl as qu
from queueing_ucrl.accounts.measures import MEASURES
from queueing_ucrl.accounts.regret import CAUSES
from queueing_ucrl.experiments.cell import Cell
from queueing_ucrl.experiments.study import Study
from queueing_ucrl.experiments.trial import TrialResult
from queueing_ucrl.scenario import Scenario
from queueing_ucrl.units import Units


def made_study(names, *, size=1.0, replications=3, horizon=1e4, classes=("a", "b"), points=1):
    """A study whose rewards are of the order of `size` for each unit of time."""
    rng = np.random.default_rng(5)
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass(name, 1.0, size) for name in classes])
    times = np.geomspace(horizon / 1e3, horizon, 50)
    settings = qu.RunSettings(horizon, replications)
    cells, results = [], []
    for point in range(points):
        for k, name in enumerate(names):
            values = {"queue.servers": point + 1} if points > 1 else {}
            cells.append(Cell(point, values, name, queue, None, settings))
            results.append([_result(rng, point, name, r, times, size * (k + 1), classes) for r in range(replications)])
    return Study(cells, results)


def _result(rng, point, name, r, times, size, classes):
    curve = 0.01 * size * times**0.5 * rng.uniform(0.8, 1.2)
    regret = {"gap": curve, "pseudo": 1.1 * curve, "expected": curve + size * rng.normal(0, 100, times.size)}
    regret["realised"] = regret["expected"] + size
    jobs = {"arrivals": 1000, "admitted": 900, "rejected": 60, "blocked": 40, "mean_wait": 0.5, "wait_95": 2.0}
    jobs |= {"reward": size, "cost": 0.1 * size}
    summary = {
        "controller": name,
        "horizon": float(times[-1]),
        "replication": r,
        "engine": "compiled",
        "optimal_gain": size,
        "no_optimum": "",
        "expected_reward": size * float(times[-1]) - float(regret["expected"][-1]),
        "gain": 0.97 * size * rng.uniform(0.99, 1.01),
        "reward": 0.97 * size * times[-1] * rng.uniform(0.99, 1.01),
        "regret": {kind: float(values[-1]) for kind, values in regret.items()},
        "utilisation": 0.8,
        "measures": {m: [0.8] * (1 if m == "utilisation" else 1 + len(classes)) for m in MEASURES},
        "classes": [{"name": c, **jobs} for c in classes],
        "unfinished": {"waiting": 1, "in_service": 2},
        "cautions": [],
    }
    causes = {cause: np.zeros((times.size, len(classes))) for cause in CAUSES}
    earned = size * times
    rewards = {f"{kind}_reward": earned - regret[kind] for kind in ("expected", "realised")}
    return TrialResult(point, name, r, times, rewards, regret, causes, summary, b"")


def made_scenario(study, title="A made-up study", units=None):
    return Scenario(title, study.cells[0].queue, Path("x.toml"), units=units or Units())
