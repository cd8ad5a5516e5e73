"""The path of an observed environment, drawn before anybody decides; whoever needs it draws the same one."""

from __future__ import annotations

import math

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.chain_path import jumps
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
        times, states = jumps(self.rates, self.now, self.state, stays, choices)
        self.now, self.state = float(times[-1]), int(states[-1])
        return times, states

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
