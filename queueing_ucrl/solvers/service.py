"""The solver service: controllers send it a model and get the best policy; every solve is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from queueing_ucrl.model.admission_model import AdmissionModel
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.solvers.solution import Solution
from queueing_ucrl.solvers.solve import METHODS, solve


@dataclass(frozen=True)
class SolveRequest:
    """A model to be solved, and how."""

    model: AdmissionModel
    method: str = "pi-b"
    epsilon: float = 1e-9  # for vi
    uniformization: float | None = None  # for vi and vi-ae

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")


class SolveRecord(NamedTuple):
    """One solve."""

    time: float  # simulated
    method: str
    iterations: int
    seconds: float
    gain: float  # of the answer, in the model that was asked about
    states: int
    classes: int


class SolverService:
    """Answers requests, each from a warm start where the last answer fits, and keeps a record."""

    keeps = True  # records; without them memory does not grow with the number of solves

    def __init__(self) -> None:
        self.records: list[SolveRecord] = []
        self._last: Policy | None = None

    def answer(self, request: SolveRequest, now: float) -> Solution:
        """The best policy of the request's model."""
        model = request.model
        warm = self._last if self._last is not None and self._last.admits.shape == model.rewards.shape else None
        solution = solve(
            model, request.method, start=warm, epsilon=request.epsilon, uniformization=request.uniformization
        )
        self._last = solution.policy
        if self.keeps:
            self.records.append(
                SolveRecord(
                    now, solution.method, solution.iterations, solution.seconds, solution.gain, *model.rewards.shape
                )
            )
        return solution
