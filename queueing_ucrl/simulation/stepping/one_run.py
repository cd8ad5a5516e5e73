"""A compiled run that stops before each arrival that has room, and is told what to do with it.

The loops are those of the compiled engine: they come back before such an arrival where the decision about it is left
open (`kernel_state`). Seed, replication and decisions make the path: it is the one of `simulate` with the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from queueing_ucrl.accounts.totals import Comparator
from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.learning.fixed_policies import AdmitAll
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.simulation import general_loop, patient_loop
from queueing_ucrl.simulation.changes import Changes
from queueing_ucrl.simulation.control_loop import ControlLoop
from queueing_ucrl.simulation.event_log import EventSink
from queueing_ucrl.simulation.kernel import Kernel
from queueing_ucrl.simulation.kernel_state import (
    ADMITTED,
    ASKED,
    FULL,
    OPEN,
    REFILL,
    REJECTED,
    PatientState,
    earliest,
)
from queueing_ucrl.simulation.ledger import DEPARTED, STARTED, Ledger
from queueing_ucrl.simulation.seeding import Randomness
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.sources import job_sources


class SteppedKernel(Kernel):
    """Asks about each arrival that has room: `to_arrival`, then `decide`, in turn, up to the horizon."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self._begin()
        self.clock["decision"] = OPEN
        classes = self.system.classes
        self._paid_at_start = np.array([c.reward_at == "start" for c in classes])
        self._paid_at_end = np.array([c.reward_at == "end" for c in classes])
        self._earned_from = self._paying() if not self.system.pays_differ else self.ledger.paid[0].copy()
        self._charged = 0  # of the buffer's waits, how many `earned` has told
        self._flushed: list[tuple[IntArray, FloatArray]] = []  # waits that it has not, and that are not there any more

    @classmethod
    def at_time_0(
        cls, comparator: Comparator, settings: RunSettings, replication: int, log: EventSink | None = None
    ) -> SteppedKernel:
        """The run of `simulate` with this horizon, seed and replication."""
        system, randomness = comparator.system, Randomness(settings.seed, replication)
        ledger = Ledger(comparator, np.array([settings.horizon]))
        control = ControlLoop(AdmitAll(), randomness.controller(), ledger)
        sources = job_sources(system, randomness, settings.horizon)
        return cls(control, sources, Changes(system, randomness, settings.horizon), settings, log)

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
            self.now = self.horizon
            return None
        time, job_class = earliest(self.state.arrivals.next)
        return time, int(self.clock["in_system"]), job_class

    def decide(self, admit: bool) -> None:
        """What is done with the job that `to_arrival` has found."""
        self.clock["decision"] = ADMITTED if admit else REJECTED

    def earned(self) -> float:
        """What was paid less what was charged since the last call: the payments class by class, then the costs one by
        one, in the order in which jobs joined a server or gave up.
        """
        now = self.ledger.paid[0].copy() if self.system.pays_differ else self._paying()
        since, self._earned_from = now - self._earned_from, now
        paid = charged = 0.0
        for amount in (since if self.system.pays_differ else since * self.system.job_rewards).tolist():
            paid += amount
        for job_class, wait in (*self._flushed, self._untold_waits()):
            for cost in self.ledger.waits.costs(job_class, wait).tolist():
                charged += cost
        self._flushed, self._charged = [], int(self.clock["used_waits"])
        return paid - charged

    def _paying(self) -> IntArray:
        """How many jobs have paid so far, by class."""
        counts = self.counts_so_far() if self._paid_at_end.any() else self.ledger.counts
        at_admission = self.ledger.admitted.sum(axis=0)
        return np.where(
            self._paid_at_end, counts[DEPARTED], np.where(self._paid_at_start, counts[STARTED], at_admission)
        )

    def show_rows_of(self, policy: Policy) -> None:
        """From now on `table_row` is that of this policy, which decides nothing; at time 0."""
        self.control.policy = policy
        self._find_row(policy)

    @property
    def table_row(self) -> int:
        """The row of the table of the policy in force, or shown."""
        policy = self.control.policy
        return int(self.clock["table_row" if policy is not None and policy.sees_more else "in_system"])

    def counts_so_far(self) -> IntArray:
        """The ledger's counts by class, those that departed among them (which the plain loop does not count)."""
        if isinstance(self.state, PatientState):
            ends = self.state.services.ends
            patient_loop.count_departed(self.state.tallied.counts, self.state.servers, ends.time)
        return self.ledger.counts

    def _untold_waits(self) -> tuple[IntArray, FloatArray]:
        buffers, told = self.state.buffers, slice(self._charged, int(self.clock["used_waits"]))
        return buffers.wait_class[told], buffers.wait[told]

    def _flush(self) -> None:
        self._flushed.append(tuple(column.copy() for column in self._untold_waits()))  # type: ignore[arg-type]
        super()._flush()
        self._charged = 0
