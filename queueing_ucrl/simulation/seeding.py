"""Where random numbers come from: a generator for each purpose of each class in each replication, from one seed.

Every purpose has its own stream, so that one choice never shifts another's numbers: numpy SeedSequences with spawn
keys (replication, purpose, class).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# words of an arrival process's own are numbered by their letters
PURPOSES = {
    "gaps": 0,
    "services": 1,
    "controller": 2,
    "ticks": 3,
    "thinning": 4,
    "marks": 5,
    "patience": 6,
    "setup": 7,
    "uptimes": 8,
    "downtimes": 9,
    "environment": 10,
    "initial services": 11,
    "initial patience": 12,
    "initial setup": 13,
    "join": 14,
    "pay": 15,
    "initial pay": 16,
}
NOT_FOR_ARRIVALS = tuple(purpose for purpose in PURPOSES if purpose not in ("gaps", "thinning", "marks"))


@dataclass(frozen=True)
class Randomness:
    """The random numbers of one replication."""

    seed: int
    replication: int

    def __post_init__(self) -> None:
        for name in ("seed", "replication"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}")

    def rng(self, job_class: int, purpose: str) -> np.random.Generator:
        """A generator for one purpose of one class."""
        number = PURPOSES[purpose] if purpose in PURPOSES else int.from_bytes(b"own:" + purpose.encode())
        key = (int(self.replication), number, job_class)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(self.seed), spawn_key=key)))

    def for_arrivals(self, job_class: int, purpose: str) -> np.random.Generator:
        """A generator for a purpose of the class's arrival process, which may be any word."""
        if purpose in NOT_FOR_ARRIVALS:
            raise ValueError(f"an arrival process cannot take the random numbers of {purpose!r}: choose another word")
        return self.rng(job_class, purpose)

    def controller(self) -> np.random.Generator:
        """The controller's own."""
        return self.rng(0, "controller")
