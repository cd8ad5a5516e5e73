"""What waits cost where they depend on the servers of the future: by moments and transforms, which obey equations."""

from __future__ import annotations

import numpy as np

from queueing_ucrl.arrays import FloatArray, IntArray
from queueing_ucrl.model.costs import Free, Linear, Power, Saturating
from queueing_ucrl.model.system import JobClass, System

MOMENT, TRANSFORM = range(2)  # E[W^p], 1 - E[e^{-bW}]
HIGHEST_MOMENT = 8


def giving_up_rate(system: System) -> float:
    """The rate at which a job that waits gives up."""
    law = system.patience_of(0)
    return 0.0 if law is None else 1.0 / law.mean


def wait_costs(system: System) -> tuple[FloatArray, IntArray, FloatArray]:
    """What waits cost by their moments E[W^p] and transforms 1 - E[e^{-bW}]: weights by class, kinds, and p or b.

    Of jobs that give up at rate theta, theta E[W] do so. A ValueError names a class whose cost is none of these.
    """
    theta = giving_up_rate(system)
    moments = max([1 if theta else 0, *(_moment(c) for c in system.classes)])
    transforms = sorted({c.holding_cost.rate for c in system.classes if isinstance(c.holding_cost, Saturating)})
    weights = np.zeros((len(system.classes), moments + len(transforms)))
    for i, c in enumerate(system.classes):
        cost = c.holding_cost
        if theta:
            weights[i, 0] += theta * (c.abandonment_cost + (0.0 if c.reward_at == "admission" else c.reward))
        if isinstance(cost, Linear):
            weights[i, 0] += cost.rate
        elif isinstance(cost, Power):
            weights[i, _moment(c) - 1] += cost.coefficient
        elif isinstance(cost, Saturating):
            weights[i, moments + transforms.index(cost.rate)] += cost.ceiling
    kinds = np.array([MOMENT] * moments + [TRANSFORM] * len(transforms), dtype=np.int64)
    numbers = np.array([*range(1, moments + 1), *transforms], dtype=np.float64)
    return weights, kinds, numbers


def _moment(job_class: JobClass) -> int:
    """The highest moment of its wait that a class's cost needs; a ValueError where moments will not do."""
    cost = job_class.holding_cost
    if isinstance(cost, Power) and cost.exponent.is_integer() and cost.exponent <= HIGHEST_MOMENT:
        return int(cost.exponent)
    if not isinstance(cost, Free | Linear | Saturating):
        raise ValueError(
            f"class {job_class.name!r}: where servers come and go the best policy is known for costs that are "
            f"free, linear, saturating, or whole powers up to {HIGHEST_MOMENT}, not for a {cost.kind} one"
        )
    return 1 if isinstance(cost, Linear) else 0
