"""The path of a Markov chain in continuous time, laid out as far as it is asked for."""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.variates import Exponentials, Uniforms

JUMPS_AT_A_TIME = 256  # the path does not depend on it


class ChainPath:
    """From state e to f at rates[e, f] (the diagonal does not count), from `start` at time 0 on.

    It is read forward, by who asks for the states `at` times or by who takes all its `jumps`, not by both. What lies
    before the last time that was asked for is forgotten, so memory stays flat. Can be copied and pickled at any time.
    """

    def __init__(self, rates: FloatArray, start: int, sojourns: np.random.Generator, jumps: np.random.Generator):
        self.rates = np.where(np.eye(len(rates), dtype=bool), 0.0, rates)
        self.sojourns, self.uniforms = Exponentials(sojourns), Uniforms(jumps)
        self.now, self.state = 0.0, start  # as far as it is laid out
        self.times, self.states = np.zeros(1), np.array([start], dtype=np.int64)  # states[k] from times[k] on

    def at(self, times: FloatArray) -> IntArray:
        """The states at these times, which never decrease, not below those asked for before.

        At a jump, the state after it; at an infinite time, the last state that is known.
        """
        while self.times[-1] <= times[-1] < math.inf:
            jumped, states = self.jumps()
            self.times, self.states = np.concatenate([self.times, jumped]), np.concatenate([self.states, states])
        places = np.searchsorted(self.times, times, side="right") - 1
        found = self.states[places]
        self.times, self.states = self.times[places[-1] :], self.states[places[-1] :]
        return found

    def jumps(self) -> tuple[FloatArray, IntArray]:
        """The next jumps: when, and to which states."""
        sojourns, uniforms = np.empty(JUMPS_AT_A_TIME), np.empty(JUMPS_AT_A_TIME)
        self.sojourns.fill(sojourns)
        self.uniforms.fill(uniforms)
        times, states = next_jumps(self.rates, self.now, self.state, sojourns, uniforms)
        self.now, self.state = float(times[-1]), int(states[-1])
        return times, states


@compiled
def next_jumps(
    rates: FloatArray, now: float, state: int, sojourns: FloatArray, uniforms: FloatArray
) -> tuple[FloatArray, IntArray]:
    """When the chain jumps next, and where to: from standard exponential sojourns and uniform numbers."""
    times = np.empty(sojourns.size)
    states = np.empty(sojourns.size, dtype=np.int64)
    for k in range(sojourns.size):
        out = 0.0
        for f in range(len(rates)):
            out += rates[state, f]
        now = now + sojourns[k] / out if out > 0.0 else math.inf
        below = uniforms[k] * out
        last = state
        for f in range(len(rates)):
            if rates[state, f] > 0.0:
                last = f
                below -= rates[state, f]
                if below < 0.0:
                    break
        state = last
        times[k] = now
        states[k] = state
    return times, states
