"""What a solver answers."""

from __future__ import annotations

from dataclasses import dataclass

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.policy import Policy


@dataclass(frozen=True)
class Solution(ReadOnlyArrays):
    """A best policy, its worth, and how it was found."""

    policy: Policy
    gain: float  # rho, reward per unit of time
    relative_bias: FloatArray  # g(s) = h(s) - h(s+1), s = 0 .. S - 1
    stationary: FloatArray  # probability of s = 0 .. S
    method: str
    iterations: int
    seconds: float
