"""A cell of a study: one controller at one point of a sweep, to be run a number of times."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queueing_ucrl.accounts.regret import CAUSES, KINDS, REWARDS, checked_accounts
from queueing_ucrl.accounts.totals import Account, Comparator
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.simulation.control_loop import begin_session, first_answer
from queueing_ucrl.simulation.event_log import EventTable, LogColumn
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import cautions, check_run
from queueing_ucrl.solvers.optimum import optimum
from queueing_ucrl.solvers.service import SolverService

LARGEST_CELL = 10**8  # numbers in the curves of all replications of a cell: 800 MB


@dataclass(frozen=True)
class Cell:
    """One controller at one point of a sweep."""

    point: int
    values: dict[str, Any]  # the swept values
    name: str  # of the controller within the study
    system: System
    controller: Any  # a Controller
    settings: RunSettings
    accounts: tuple[Account, ...] = ()  # of one's own
    log_columns: tuple[LogColumn, ...] = ()  # likewise, where there is an event log
    origin: dict[str, Any] = field(default_factory=dict)  # title and units of the scenario, for event logs

    def value_columns(self, count: int) -> dict[str, list[Any]]:
        """The swept values as columns of `count` rows; a value may itself be a list."""
        return {key: [value] * count for key, value in self.values.items()}

    @property
    def log_about(self) -> dict[str, Any]:
        """What an event log says of where it is from; by `label` readers tell the study's controllers apart."""
        swept = ", ".join(f"{key} = {value}" for key, value in self.values.items())
        return {**self.origin, "label": f"{self.name} ({swept})" if swept else self.name}

    @property
    def queue(self) -> Queue:
        """The system as an M/M/c/S queue."""
        return self.system.queue

    @property
    def numbers(self) -> int:
        """In the curves of all its replications."""
        accounts = 1 + len(KINDS) + len(REWARDS) + len(CAUSES) * len(self.system.classes) + len(self.accounts)
        return max(1, len(self.settings.times)) * accounts * self.settings.replications

    @property
    def cautions(self) -> list[str]:
        """Why its controller's guarantee does not hold on its queue, if it has one."""
        return [f"{self.name}: {caution}" for caution in cautions(self.system, self.controller)]

    def check(self) -> None:
        """Let a controller that cannot work on its queue say so now, before anything is run or written."""
        check_run(self.system, self.controller, self.settings)
        if self.accounts:
            checked_accounts(self.accounts, Comparator(self.system, *optimum(self.system)))
        if self.log_columns:
            EventTable(self.system, 0, self.log_columns)
        settings, each = self.settings, self.numbers // self.settings.replications
        count = max(settings.replications, settings.most_replications if settings.precision > 0.0 else 0)
        if each * count > LARGEST_CELL:
            raise ValueError(
                f"{count} replications of {len(settings.times)} times are too many for the memory that their tables "
                f"take: at most {LARGEST_CELL // each} replications, or fewer times (run.grid_points)"
            )
        plan = first_answer(begin_session(self.system, self.controller, np.random.default_rng(0)), self.controller.name)
        if getattr(plan, "request", None) is not None:
            SolverService().answer(plan.request, 0.0)

    def check_that_it_travels(self) -> None:
        """Say in words that it cannot be sent to another process."""
        try:
            pickle.dumps((self.system, self.controller, self.accounts, self.log_columns))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{self.name}: its queue or controller cannot be sent to worker processes ({error}); "
                "define functions and classes at the top level of a module, or use jobs=1"
            ) from error
