"""The path of an observed environment, drawn before anybody decides; whoever needs it draws the same one."""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.compiled import compiled
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.variates import Exponentials, Uniforms

JUMPS_AT_A_TIME = 256  # the path does not depend on it


class EnvironmentPath:
    """The jumps of the chain, one stretch after the other. Can be copied and pickled at any time."""

    def __init__(self, environment: Environment, randomness: Randomness) -> None:
        self.rates: FloatArray = np.array(environment.rates)
        self.state = environment.start
        self.now = 0.0
        self.stays = Exponentials(randomness.rng(0, "environment"))
        self.choices = Uniforms(randomness.rng(1, "environment"))
        self.times, self.states = np.empty(0), np.empty(0, dtype=np.int64)  # of jumps that `states_at` has not passed
        self.before = environment.start  # the state before the first of them

    def jumps(self) -> tuple[FloatArray, IntArray]:
        """The next jumps: when, and to which states."""
        stays, choices = np.empty(JUMPS_AT_A_TIME), np.empty(JUMPS_AT_A_TIME)
        self.stays.fill(stays)
        self.choices.fill(choices)
        states = np.empty(JUMPS_AT_A_TIME, dtype=np.int64)
        self.now = _walk(self.rates, self.state, self.now, stays, choices, states)
        self.state = int(states[-1])
        return stays, states

    def states_at(self, times: FloatArray) -> IntArray:
        """The state at each of the times, which never go back; at a jump, the state after it."""
        while times[-1] < math.inf and (not self.times.size or self.times[-1] <= times[-1]):
            found = self.jumps()
            self.times, self.states = np.append(self.times, found[0]), np.append(self.states, found[1])
        passed = np.searchsorted(self.times, times, side="right")
        found_states = np.append(self.before, self.states)[passed]
        done = int(passed[-1]) if times[-1] < math.inf else 0
        if done:
            self.before = int(self.states[done - 1])
            self.times, self.states = self.times[done:], self.states[done:]
        return found_states


@compiled
def _walk(rates: FloatArray, state: int, now: float, stays: FloatArray, choices: FloatArray, states: IntArray) -> float:
    """Turn standard exponential stays into times of jumps, and uniform numbers into states; the last time."""
    for k in range(stays.size):
        out = 0.0
        for f in range(rates.shape[1]):
            out += rates[state, f]
        now = now + stays[k] / out if out > 0.0 else math.inf
        stays[k] = now
        rest, following = choices[k] * out, state
        for f in range(rates.shape[1]):
            if rates[state, f] > 0.0:
                following = f
                rest -= rates[state, f]
                if rest < 0.0:
                    break
        state = following
        states[k] = state
    return now
