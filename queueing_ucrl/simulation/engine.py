"""What an engine is: it runs a system under a controller to the horizon, job by job, and writes into the ledger.

An engine knows nothing of laws, patterns or regrets: it takes jobs from the sources, policies from the control loop,
and counts. Which engine runs: `choose_engine`.

At equal times departures come first (the older job's before the younger's), then those who give up (the older first),
then what comes by the clock (`changes`), then reviews, then arrivals, class by class: in SimPy by the priorities at the
head of `world`, in compiled code by the comparisons of the loops.

Servers have numbers from 0, and those with a number below the count of the moment are on duty. A job starts if fewer
servers are busy than are on duty and up; it takes the one that became idle last. The line is in the order of job
numbers: a job that was interrupted stands before all who have not started.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from queueing_ucrl.learning.controller import Controller
from queueing_ucrl.model.servers import Shifts
from queueing_ucrl.model.system import System
from queueing_ucrl.simulation.changes import Changes
from queueing_ucrl.simulation.control_loop import ControlLoop
from queueing_ucrl.simulation.ledger import Ledger, Unfinished
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.sources import Source

if TYPE_CHECKING:
    from queueing_ucrl.simulation.event_log import EventSink

OnProgress = Callable[[float], None]  # is told the simulated time now and then
PROGRESS_STEPS = 100


def server_count(system: System) -> int:
    """Servers that have a number: no more than there can be jobs, if all of them are there at all times."""
    return system.most_servers if system.unsteady else min(system.most_servers, system.capacity)


def posts_at_first(system: System) -> int:
    """Servers on duty at time 0."""
    if isinstance(system.servers, Shifts):
        return system.servers.at(0.0)
    if system.environment is not None and system.environment.servers is not None:
        return system.environment.servers[system.environment.start]
    return server_count(system)


def hands_over(system: System) -> bool:
    """Whether a server that leaves hands over its job: then jobs are served by min(s, c(t)) servers at all times."""
    return system.servers.leaving == "hand-over" if isinstance(system.servers, Shifts) else True


class Engine(ABC):
    """A run that is about to begin, or under way."""

    name: ClassVar[str]

    def __init__(
        self,
        control: ControlLoop,
        sources: Sequence[Source],
        changes: Changes,
        settings: RunSettings,
        log: EventSink | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """sources: a source of jobs for each class; for controllers that see ticks, one of idle ticks after them.

        changes: what happens by the clock, and the jobs that are there at time 0.
        """
        self.control = control
        self.system = control.system
        self.ledger: Ledger = control.ledger
        self.sources = sources
        self.changes = changes
        self.horizon = settings.horizon
        self.solver_latency = settings.solver_latency
        self.log = log
        self.on_progress = on_progress

    @staticmethod
    @abstractmethod
    def refuses(system: System, controller: Controller) -> str | None:
        """Why it cannot run this, as what the controller does or the system has ("decides ..."); None where it can."""

    @abstractmethod
    def run(self) -> list[Unfinished]:
        """Run to the horizon; the jobs that are still in the system then."""

    @abstractmethod
    def flush_log(self) -> None:
        """Hand on the rows of the event log that are buffered; also when the run is stopped."""

    def progress_times(self) -> list[float]:
        """The times, before the horizon, at which somebody is told how far the run is."""
        steps = PROGRESS_STEPS if self.on_progress is not None else 0
        return [self.horizon * k / PROGRESS_STEPS for k in range(1, steps)]
