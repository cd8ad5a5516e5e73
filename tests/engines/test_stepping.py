"""A run that asks at each arrival with room has the path of the SimPy world under the same table, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generators import any_queue, random_policy, random_system

import queueing_ucrl as qu
from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.learning.fixed_policies import AdmitAll
from queueing_ucrl.simulation.changes import Changes
from queueing_ucrl.simulation.control_loop import ControlLoop
from queueing_ucrl.simulation.event_log import MemoryLog
from queueing_ucrl.simulation.ledger import Ledger
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.sources import job_sources
from queueing_ucrl.simulation.stepping.one_run import SteppedKernel


def stepped(system: qu.System, policy: qu.Policy, horizon: float, seed: int) -> tuple[SteppedKernel, Any]:
    randomness, log = Randomness(seed, 3), MemoryLog(system, 3, ())
    ledger = Ledger(Comparator(system), np.array([horizon]))
    control = ControlLoop(AdmitAll(), randomness.controller(), ledger)
    sources, changes = job_sources(system, randomness, horizon), Changes(system, randomness, horizon)
    engine = SteppedKernel(control, sources, changes, RunSettings(horizon, seed=seed), log)
    while (asked := engine.to_arrival()) is not None:
        time, s, i = asked
        assert time < horizon
        engine.decide(bool(policy.admits[s, i]))
    engine.flush_log()
    log.close()
    return engine, log


@pytest.mark.parametrize("number", range(24))
def test_decisions_made_at_the_door_give_the_path_of_the_table(number: int) -> None:
    random = np.random.default_rng([15, number])
    system = any_queue(random, 12) if number % 3 == 0 else random_system(random, coarse=number % 3 == 1)
    policy = random_policy(random, system.capacity, len(system.classes))
    horizon = 300.0 / sum(c.peak_rate for c in system.classes)
    run = qu.simulate(system, policy, horizon=horizon, seed=number, replication=3, engine="simpy", log=True)
    engine, log = stepped(system, policy, horizon, number)
    assert len(run.events) > 50
    for name in run.events:
        assert run.events[name].equals(log.frame()[name]), name
    assert np.array_equal(engine.ledger.admitted, run.ledger.admitted)
