"""A system on both engines: the same event log, tallies of the classes and curves, bit for bit."""

from __future__ import annotations

from typing import Any

import pandas as pd

import queueing_ucrl as qu
from queueing_ucrl.simulation.run import Run

ENGINES = ("simpy", "compiled")


def on_both(system: qu.System, controller: Any, *, horizon: float, seed: int = 0, **more: Any) -> Run:
    """The run on the compiled engine, after it was found to be that of the SimPy world."""
    slow, fast = (
        qu.simulate(system, controller, horizon=horizon, seed=seed, engine=engine, log=True, **more)
        for engine in ENGINES
    )
    pd.testing.assert_frame_equal(slow.events, fast.events, check_exact=True)
    pd.testing.assert_frame_equal(slow.rewards("realised_reward"), fast.rewards("realised_reward"), check_exact=True)
    assert {**slow.summary(), "engine": ""} == {**fast.summary(), "engine": ""}
    assert fast.events.shape[0] > 0
    return fast


def studies_agree(system: qu.System, controllers: list[Any], kinds: list[str], **more: Any) -> qu.Study:
    """A study in worker processes, after it was found to be the same as in this one."""
    here, there = (qu.replicate(system, controllers, replications=3, jobs=jobs, **more) for jobs in (1, 2))
    for kind in kinds:
        one, other = (s.rewards(kind) if kind.endswith("_reward") else s.regret(kind) for s in (here, there))
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert here.summary() == there.summary()
    return there
