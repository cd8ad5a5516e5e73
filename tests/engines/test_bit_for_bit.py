"""The SimPy world and its compiled twin leave the same things behind, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from generators import paper_queue
from twin_engines import any_controller, differing, engine_queue, is_compiled_once, left_behind, new_engine, tallies

import queueing_ucrl as qu
from queueing_ucrl.simulation.event_log import ADMIT, BLOCK, DEPART, REJECT, REVIEW, ROW, START
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.patient_loop import advance
from queueing_ucrl.simulation.world import World

ARRIVALS = 1200  # of a run, on average


@pytest.mark.parametrize("tens", range(20))
def test_logs_curves_tallies_and_unfinished_jobs_are_equal_on_random_queues(tens: int) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        random = np.random.default_rng([4, number])
        queue = engine_queue(random, number)
        horizon = ARRIVALS / queue.total_arrival_rate
        controller, latency = any_controller(number, queue, horizon, random)
        grid = np.sort(random.uniform(0.0, horizon, 9))
        results = []
        for kind in (World, Kernel):
            engine = new_engine(kind, queue, controller, horizon=horizon, seed=number, latency=latency, grid=grid)
            results.append(left_behind(engine, engine.run()))
        assert differing(*results) == [], f"queue {number}: {queue}, {controller}"
        assert len(results[0]["log"]) > ROW.itemsize * ARRIVALS / 2


def test_the_runs_hold_reviews_waits_and_every_kind_of_event() -> None:
    """The comparison above is worth something only if there is something to compare."""
    seen, reviews, waiting = set(), 0, 0
    for number in range(20):
        random = np.random.default_rng([4, number])
        queue = engine_queue(random, number)
        horizon = ARRIVALS / queue.total_arrival_rate
        controller, latency = any_controller(number, queue, horizon, random)
        engine = new_engine(Kernel, queue, controller, horizon=horizon, seed=number, latency=latency)
        unfinished = engine.run()
        rows = np.concatenate(engine.log.blocks)  # type: ignore[union-attr]
        seen |= set(rows["event"].tolist())
        reviews += len(tallies(engine))
        waiting += sum(job.waiting for job in unfinished)
    assert seen == {ADMIT, REJECT, BLOCK, START, DEPART, REVIEW}
    assert reviews > 100
    assert waiting > 10


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_the_path_does_not_depend_on_the_log_the_grid_or_the_progress(engine: str) -> None:
    queue, ucrl = paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0)
    plain = qu.simulate(queue, ucrl, horizon=500.0, seed=3, engine=engine, grid=[500.0])
    told: list[float] = []
    full = qu.simulate(queue, ucrl, horizon=500.0, seed=3, engine=engine, log=True, on_progress=told.append)
    assert plain.summary() == full.summary()
    assert len(told) > 90


def test_frames_of_both_engines_are_equal() -> None:
    queue, ucrl = paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0)
    world, twin = (qu.simulate(queue, ucrl, horizon=2000.0, seed=1, engine=e, log=True) for e in ("simpy", "compiled"))
    for name in ("events", "episodes", "unfinished"):
        assert getattr(world, name).equals(getattr(twin, name)), name
    for kind in ("realised", "expected", "gap", "pseudo"):
        assert world.regret(kind).equals(twin.regret(kind))
    assert {**world.summary(), "engine": ""} == {**twin.summary(), "engine": ""}


def test_auto_picks_the_twin_unless_the_controller_decides_each_arrival() -> None:
    class Doorman(qu.Controller):
        name = "doorman"
        decides_each_arrival = True

        def begin(self, knowledge, rng):  # type: ignore[no-untyped-def]
            class Session:
                def first(self) -> qu.Plan:
                    return qu.Plan(policy=qu.Policy.admit_all(knowledge.capacity, knowledge.class_count))

                def decide(self, job_class: int, in_system: int, now: float) -> bool:
                    return job_class == 0

            return Session()

    queue = paper_queue()
    run = qu.simulate(queue, Doorman(), horizon=50.0, seed=0)
    assert run.engine == "simpy"
    assert "each arrival" in run.engine_reason
    assert run.summary()["classes"][1]["admitted"] == 0
    assert qu.simulate(queue, "admit-all", horizon=50.0, seed=0).engine == "compiled"
    with pytest.raises(ValueError, match="simpy' only"):
        qu.simulate(queue, Doorman(), horizon=50.0, seed=0, engine="compiled")


def test_machine_code_is_compiled_once_whatever_the_queue_and_the_policy() -> None:
    for number in range(12):
        random = np.random.default_rng(number)
        queue = engine_queue(random, number)
        horizon = 50 / queue.total_arrival_rate
        controller, latency = any_controller(number, queue, horizon, random)
        new_engine(Kernel, queue, controller, horizon=horizon, latency=latency).run()
        qu.simulate(queue, "random", horizon=horizon, seed=0)
    assert is_compiled_once(advance)


def test_a_policy_laid_out_by_columns_needs_no_other_machine_code() -> None:
    policy = qu.Policy(np.asfortranarray(np.ones((20, 2), dtype=bool)))
    assert policy.admits.flags.c_contiguous
