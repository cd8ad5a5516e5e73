"""The path of an environment is the one that its random numbers make, however it is asked for, to the last bit."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import queueing_ucrl as qu
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.simulation.environment_path import environment_path
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.variates import Exponentials, Uniforms

RANDOMNESS = Randomness(11, 4)
COUNT = 3000  # jumps, which are drawn some hundreds at a time
RATES = {
    "two states": [[0.0, 1.0], [0.3, 0.0]],
    "a ring, and a way back": [[0.0, 2.0, 0.5], [0.0, 0.0, 1.0], [4.0, 0.25, 0.0]],
    "of very different speeds": [[0.0, 1e-3, 1e2], [1e2, 0.0, 1e-3], [1.0, 1.0, 0.0]],
}


def environment(name: str) -> qu.Environment:
    return qu.Environment(RATES[name], np.ones(len(RATES[name])), start=1)


def drawn(name: str) -> tuple[FloatArray, IntArray]:
    """Jump by jump: a sojourn is an exponential number over the rate out; a uniform number chooses the next state."""
    sojourns, uniforms = np.empty(COUNT), np.empty(COUNT)
    Exponentials(RANDOMNESS.rng(0, "environment")).fill(sojourns)
    Uniforms(RANDOMNESS.rng(1, "environment")).fill(uniforms)
    now, state, rates = 0.0, 1, RATES[name]
    times, states = [], []
    for sojourn, uniform in zip(sojourns.tolist(), uniforms.tolist(), strict=True):
        out = 0.0
        for rate in rates[state]:
            out += rate
        now, below = now + sojourn / out, uniform * out
        for f, rate in enumerate(rates[state]):
            if rate > 0.0:
                chosen = f
                below -= rate
                if below < 0.0:
                    break
        state = chosen
        times.append(now)
        states.append(state)
    return np.array(times), np.array(states)


@pytest.mark.parametrize("name", RATES)
def test_jumps_are_those_of_the_chain(name: str) -> None:
    times, states = drawn(name)
    path, found = environment_path(environment(name), RANDOMNESS), []
    while sum(map(len, (block for block, _ in found))) < len(times):
        found.append(path.jumps())
    given, entered = (np.concatenate(columns)[: len(times)] for columns in zip(*found, strict=True))
    assert np.array_equal(given, times)
    assert np.array_equal(entered, states)
    assert set(states.tolist()) == set(range(len(RATES[name])))


@pytest.mark.parametrize("name", RATES)
def test_the_state_at_a_time_is_that_after_the_last_jump(name: str) -> None:
    """Asked for in stretches, at jumps and between them; a copy and a pickle go on as the path does."""
    times, states = drawn(name)
    random, until = np.random.default_rng(3), float(times[-1])
    asked = np.sort(np.concatenate([random.uniform(0.0, until, 4000), random.choice(times, 500), [0.0]]))
    asked = asked[asked < until]
    expected = np.append(1, states)[np.searchsorted(times, asked, side="right")]
    path = environment_path(environment(name), RANDOMNESS)
    cuts = np.unique(random.integers(1, asked.size, 40))
    for stretch, known in zip(np.split(asked, cuts), np.split(expected, cuts), strict=True):
        twins = copy.deepcopy(path), pickle.loads(pickle.dumps(path))
        for one in (path, *twins):
            assert np.array_equal(one.at(stretch), known)
    assert path.at(np.array([math.inf])).size == 1  # an infinite time is never reached, and not waited for


def test_a_chain_of_one_state_stays_there() -> None:
    path = environment_path(qu.Environment([[0.0]], [1.0]), RANDOMNESS)
    assert path.at(np.array([0.0, 1e9, 1e300])).tolist() == [0, 0, 0]
    assert np.all(path.jumps()[0] == math.inf)


def test_what_lies_behind_is_forgotten() -> None:
    path = environment_path(environment("two states"), RANDOMNESS)
    sizes = [len((path.at(np.linspace(t, t + 1.0, 5)), path.times)[1]) for t in np.arange(0.0, 5000.0)]
    assert max(sizes[1000:]) <= max(sizes[:1000])
