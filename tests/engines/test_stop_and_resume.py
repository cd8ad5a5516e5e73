"""The kernel may be stopped anywhere, copied or pickled, and goes on as if nothing had been."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from generators import paper_queue
from twin_engines import any_controller, differing, engine_queue, is_compiled_once, left_behind, new_engine

import queueing_ucrl as qu
from queueing_ucrl.simulation import kernel as kernel_module
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.patient_loop import advance


def in_pieces(kernel: Kernel, pauses: Any, random: np.random.Generator) -> dict[str, Any]:
    """Run to each of the pauses, there often put the kernel away and go on with a fresh one made from it."""
    for time in pauses:
        kernel.go_on(float(time))
        chance = random.integers(3)
        if chance == 0:
            kernel = pickle.loads(pickle.dumps(kernel))
        elif chance == 1:
            kernel = copy.deepcopy(kernel)
    return left_behind(kernel, kernel.run())


@pytest.mark.parametrize("tens", range(6))
def test_stopping_at_random_times_leaves_no_trace(tens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        random = np.random.default_rng([5, number])
        queue = engine_queue(random, number)
        horizon = 800 / queue.total_arrival_rate
        controller, latency = any_controller(number, queue, horizon, random)
        grid = np.sort(random.uniform(0.0, horizon, 5))
        settings = {"horizon": horizon, "seed": number, "latency": latency, "grid": grid}
        straight = new_engine(Kernel, queue, controller, **settings)
        expected = left_behind(straight, straight.run())
        with monkeypatch.context() as small:
            small.setattr(kernel_module, "ROWS", int(random.integers(2, 40)))
            small.setattr(kernel_module, "WAITS", int(random.integers(1, 20)))
            small.setattr(kernel_module, "JOBS_AT_A_TIME", int(random.integers(1, 60)))
            kernel = new_engine(Kernel, queue, controller, **settings)
            pauses = np.sort(random.uniform(0.0, horizon, 12))
            assert isinstance(kernel, Kernel)
            assert differing(expected, in_pieces(kernel, pauses, random)) == [], f"queue {number}"


def test_stops_at_the_very_times_of_events_and_reviews_leave_no_trace() -> None:
    queue, ucrl = paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0)
    straight = new_engine(Kernel, queue, ucrl, horizon=300.0)
    expected = left_behind(straight, straight.run())
    times = np.concatenate(straight.log.blocks)["time"]  # type: ignore[union-attr]
    pauses = np.unique(np.concatenate([times, np.nextafter(times, 0.0), np.nextafter(times, np.inf)]))
    kernel = new_engine(Kernel, queue, ucrl, horizon=300.0)
    assert isinstance(kernel, Kernel)
    for time in pauses[pauses < 300.0]:
        kernel.go_on(float(time))
    assert differing(expected, left_behind(kernel, kernel.run())) == []


def test_the_original_and_its_copy_go_on_independently() -> None:
    kernel = new_engine(Kernel, paper_queue(), qu.UcrlAc((1.0, 4.0), 10.0), horizon=300.0)
    assert isinstance(kernel, Kernel)
    kernel.go_on(123.4)
    twin = pickle.loads(pickle.dumps(kernel))
    first = left_behind(kernel, kernel.run())
    assert differing(first, left_behind(twin, twin.run())) == []


def test_a_kernel_that_was_pickled_needs_no_other_machine_code() -> None:
    kernel = new_engine(Kernel, paper_queue(), qu.AdmitAll(), horizon=300.0)
    assert isinstance(kernel, Kernel)
    kernel.go_on(100.0)
    pickle.loads(pickle.dumps(kernel)).run()
    copy.deepcopy(kernel).run()
    assert is_compiled_once(advance)
