"""Fits of every kind, and a search, for their pages."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from page_studies import HOSTILE

import queueing_ucrl as qu
from queueing_ucrl.data.fit import Fit, fit

FITS = ("daily", "plain", "short", "hostile")
RUSH = qu.Steps((8.0, 18.0), (0.4, 1.8, 0.8), 24.0)


def _log(names: list[str], jobs: int) -> pd.DataFrame:
    """Jobs of a queue of three servers, with rush hours and patience that ends; columns as people have them."""
    from queueing_ucrl.data.synthetic import synthetic_log

    law = qu.LogNormal(0.6, 1.3)
    classes = [
        qu.JobClass(name, 5.0 / len(names) + 0.2 * k, 10.0 - k, pattern=RUSH, service=law)
        for k, name in enumerate(names)
    ]
    system = qu.System(3, 12, classes, patience=qu.Exponential(0.7))
    return synthetic_log(system, jobs=jobs, controller="admit-all", seed=3)


@cache
def moving_fit() -> Fit:
    """A log of little more than a day with rush hours: nothing tells the hours from a rate that moves."""
    from queueing_ucrl.data.synthetic import synthetic_log

    names = ("gold", "basic")
    classes = [qu.JobClass(name, 40.0, 10.0, pattern=RUSH, service=qu.Exponential(2.0)) for name in names]
    log = synthetic_log(qu.System(60, 100, classes), jobs=2500, controller="admit-all", seed=3)
    more = {"start": "start", "end": "end", "decision": "decision", "time_unit": "hours"}
    return fit(log, "time", job_class="job_class", **more)  # type: ignore[arg-type]


@cache
def made_fit(kind: str) -> Fit:
    """A fit; made once."""
    return new_fit(kind)


def new_fit(kind: str) -> Fit:
    """A fit: with a clock and abandonments; of times alone; of a few jobs; with names that bite and values missing."""
    if kind == "plain":
        times = np.cumsum(np.random.default_rng(1).exponential(1.0, 400))
        return fit(pd.DataFrame({"t": times}), "t")
    if kind == "short":
        times = np.cumsum(np.random.default_rng(2).exponential(1.0, 24))
        return fit(pd.DataFrame({"t": times, "s": np.full(24, 2.0)}), "t", service="s")
    names = HOSTILE if kind == "hostile" else ["gold", "basic"]
    frame = _log(names, 1500 if kind == "daily" else 600)
    frame = frame.assign(time=frame["time"].astype(object))
    frame.loc[frame.index[5], "time"] = "<i>never</i>"
    more: dict[str, object] = {"job_class": "job_class", "start": "start", "end": "end", "abandoned": "abandoned"}
    more |= {"decision": "decision", "time_unit": "hours"}
    if kind == "daily":
        more |= {"servers": 3, "capacity": 12, "rewards": {"gold": 10.0, "basic": 9.0}}
        more |= {"holding_costs": {"gold": 0.0, "basic": 0.0}}
    return fit(frame, "time", **more)  # type: ignore[arg-type]


@cache
def made_search(names: tuple[str, ...] = ("gold", "basic")) -> qu.BestTable:
    """A search in a queue whose services are not exponential, from a bad start."""
    classes = [qu.JobClass(name, 0.8, 6.0 / (1 + k), service=qu.LogNormal(1.5, 1.2)) for k, name in enumerate(names)]
    system = qu.System(2, 8, classes)
    start = qu.Policy.trunk_reservation([4, *[8] * (len(names) - 1)], 8)
    return qu.optimise(system, start=start, horizon=300.0, precision=0.1, jobs=1, seed=2, surface=True)
