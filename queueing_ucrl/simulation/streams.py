"""Randomness: every purpose its own stream, so that one choice never shifts another's numbers.

Streams are numpy SeedSequences with spawn keys (replication, purpose, class). Each class has a stream of gaps between
arrivals and one of service times, and a service time is drawn for every arrival, admitted or not: job n of class i is
the same job under every controller, so controllers are compared on common random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from queueing_ucrl.model.waits import FloatArray
from queueing_ucrl.variates import Exponentials, Uniforms

GAPS, SERVICES, CONTROLLER, TICKS, THINNING = range(5)
BLOCK = 4096  # numbers drawn at a time; the numbers do not depend on it


@dataclass(frozen=True)
class Streams:
    """The random numbers of one replication."""

    seed: int
    replication: int

    def __post_init__(self) -> None:
        for name in ("seed", "replication"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}")

    def _generator(self, purpose: int, job_class: int) -> np.random.Generator:
        key = (int(self.replication), purpose, job_class)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int(self.seed), spawn_key=key)))

    def jobs(self, job_class: int) -> JobStream:
        """The jobs of one class: gaps and service times in units of their means."""
        return JobStream(*(Exponentials(self._generator(purpose, job_class)) for purpose in (GAPS, SERVICES)))

    def thinning(self, job_class: int) -> np.random.Generator:
        """Uniform numbers that choose the jobs among the candidates, where the arrival rate changes in time."""
        return self._generator(THINNING, job_class)

    def uniforms(self, job_class: int) -> Iterator[float]:
        """The numbers of `thinning`, one by one."""
        generator = self.thinning(job_class)
        while True:
            yield from generator.random(BLOCK).tolist()

    def ticks(self) -> JobStream:
        """Candidates for ticks of the uniformized chain at which nothing happens."""
        return JobStream(Exponentials(self._generator(TICKS, 0)), Uniforms(self._generator(TICKS, 1)))

    def controller(self) -> np.random.Generator:
        """The controller's own chance."""
        return self._generator(CONTROLLER, 0)


class Source(Protocol):
    """Numbers of one kind, one stretch after the other."""

    def fill(self, out: FloatArray) -> None:
        """The next numbers, written into `out`."""
        ...


@dataclass
class JobStream:
    """Standard exponential gaps and service times, in blocks (of ticks: uniform numbers in place of service times)."""

    gaps: Source
    services: Source

    def fill(self, gaps: FloatArray, services: FloatArray) -> None:
        """The next numbers, written into two arrays."""
        self.gaps.fill(gaps)
        self.services.fill(services)

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """The numbers of one job after the other."""
        gaps, services = np.empty(BLOCK), np.empty(BLOCK)
        while True:
            self.fill(gaps, services)
            yield from zip(gaps.tolist(), services.tolist(), strict=True)
