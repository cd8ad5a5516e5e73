"""What the plan for the M/M/c/S queue of the same means promises, and what it earns in the world that was fitted.

The plan suffers little from laws that are not exponential and arrivals that are not Poisson; the promise suffers more.
Both are reported, the second with its interval, by a short simulation on the compiled engine. Where services are so
long against the time between arrivals that a replication would have more than MOST_ARRIVALS, it is not measured.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queueing_ucrl.accounts.steady_state import Estimate, estimate
from queueing_ucrl.data.finding import Finding
from queueing_ucrl.experiments.optimise import mm_plan, replication_length
from queueing_ucrl.experiments.racing import TableRun, earned_per_time
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import Queue, System
from queueing_ucrl.simulation.settings import RunSettings
from queueing_ucrl.simulation.simulate import GuaranteeWarning

REPLICATIONS = 20
MOST_ARRIVALS = 2_000_000  # in a replication


@dataclass(frozen=True)
class Promise(Finding):
    """The plan's gain: promised and earned."""

    policy: Policy
    promised: float | None  # None: no trustworthy answer in double precision
    earned: Estimate | None  # None: the promise is exact, or was not measured
    horizon: float
    replications: int
    unmeasured: str = ""  # why it was not measured

    @property
    def share(self) -> float:
        """How much of what it earns the plan promises too much; 0 where the promise is exact."""
        if self.promised is None or self.earned is None or not self.earned.mean:
            return 0.0
        return self.promised / self.earned.mean - 1.0

    @property
    def is_kept(self) -> bool:
        """Whether what it earns cannot be told from what it promises."""
        if self.promised is None or self.earned is None:
            return self.promised is not None and not self.unmeasured
        return abs(self.promised - self.earned.mean) <= self.earned.half_width

    def plain_data(self) -> dict[str, Any]:
        """For JSON."""
        earned = None if self.earned is None else self.earned.plain_data()
        levels = None if self.policy.control_levels is None else list(self.policy.control_levels)
        found = {"promised": self.promised, "earned": earned, "control_levels": levels, "horizon": self.horizon}
        return {**found, "unmeasured": self.unmeasured} if self.unmeasured else found


def promise_of(system: System, *, seed: int = 0, on_step: Callable[[int, int], None] | None = None) -> Promise:
    """Promise and earnings of the M/M plan; on_step is told (replications done, of how many)."""
    policy, promised = mm_plan(system)
    if isinstance(system, Queue) and not system.drifts:
        return Promise(policy, promised, None, 0.0, 0)
    horizon, warm_up = replication_length(system, None, None)
    arrivals = horizon * system.total_arrival_rate
    if arrivals > MOST_ARRIVALS:
        why = f"a run that forgets how it began would need {arrivals:,.2g} arrivals, services are so long"
        return Promise(policy, promised, None, 0.0, 0, why)
    grid = (warm_up, horizon) if warm_up > 0.0 else (horizon,)
    settings = RunSettings(horizon, seed=seed, engine="compiled", grid=grid)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        for replication in range(REPLICATIONS):
            values.append(earned_per_time(TableRun(system, policy, settings, replication)))
            if on_step is not None:
                on_step(replication + 1, REPLICATIONS)
    found = estimate(values)
    assert math.isfinite(found.mean)
    return Promise(policy, promised, found, horizon, REPLICATIONS)
