"""A compiled run that stops before each arrival that has room, and is told what to do with it.

The loops are those of the compiled engine: they come back before such an arrival where the decision about it is left
open (`kernel_state`). Seed, replication and decisions make the path: it is the one of `simulate` with the same.
"""

from __future__ import annotations

from typing import Any

from queueing_ucrl.simulation import general_loop, patient_loop
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.kernel_state import ADMITTED, ASKED, FULL, OPEN, REFILL, REJECTED, earliest


class SteppedKernel(Kernel):
    """Asks about each arrival that has room: `to_arrival`, then `decide`, in turn, up to the horizon."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._begin()
        self.clock["decision"] = OPEN

    def to_arrival(self) -> tuple[float, int, int] | None:
        """(time, jobs in the system, class) of the next arrival with room; None if none comes before the horizon."""
        assert self.control.policy is not None
        table = self.control.policy.admits
        advance: Any = patient_loop.advance if self.plain else general_loop.advance
        while (reason := advance(self.state, table, self.horizon, False, self.control.memory)) in (REFILL, FULL):
            if reason == REFILL:
                self._fill(int(self.clock["empty"]))
            else:
                self._flush()
        if reason != ASKED:
            return None
        time, job_class = earliest(self.state.arrivals.next)
        return time, int(self.clock["in_system"]), job_class

    def decide(self, admit: bool) -> None:
        """What is done with the job that `to_arrival` has found."""
        self.clock["decision"] = ADMITTED if admit else REJECTED
