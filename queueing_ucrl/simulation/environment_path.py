"""The path of an observed environment, drawn before anybody decides; whoever needs it draws the same one."""

from __future__ import annotations

from queueing_ucrl.model.chain_path import ChainPath
from queueing_ucrl.model.environment import Environment
from queueing_ucrl.simulation.seeding import Randomness


def environment_path(environment: Environment, randomness: Randomness) -> ChainPath:
    """From its start, with random numbers of its own."""
    sojourns, jumps = (randomness.rng(which, "environment") for which in range(2))
    return ChainPath(environment.rates, environment.start, sojourns, jumps)
