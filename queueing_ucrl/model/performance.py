"""What an operator sees of a queue under a policy: who gets in, who waits, how busy the servers are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queueing_ucrl.model.birth_death import evaluate
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.queue import Queue
from queueing_ucrl.model.waits import FloatArray


@dataclass(frozen=True)
class Performance(ReadOnlyArrays):
    """Long-run measures; by class where an array. Arrivals see the stationary law (PASTA)."""

    gain: float  # reward per unit of time
    blocking: float  # probability that an arrival finds the system full
    rejection: FloatArray  # probability that an arrival of the class is turned away by the policy
    admission: FloatArray  # probability that it is let in
    mean_wait: FloatArray  # of the admitted jobs of the class; nan where none is admitted
    mean_in_system: float
    mean_waiting: float
    utilisation: float  # mean share of the servers that are busy
    throughput: float  # admitted jobs per unit of time


def performance(queue: Queue, policy: Policy) -> Performance:
    """The long-run measures of `queue` under `policy`, from the stationary law. O(mS)."""
    value = evaluate(queue, policy)
    law, admits = value.stationary, policy.admits
    admission = law[:-1] @ admits
    states = np.arange(queue.capacity + 1)
    busy = np.minimum(states, queue.servers)
    with np.errstate(invalid="ignore"):
        mean_wait = np.where(admission > 0, (law[:-1] * queue.mean_waits) @ admits / admission, np.nan)
    return Performance(
        gain=value.gain,
        blocking=float(law[-1]),
        rejection=law[:-1] @ ~admits,
        admission=admission,
        mean_wait=mean_wait,
        mean_in_system=float(law @ states),
        mean_waiting=float(law @ (states - busy)),
        utilisation=float(law @ busy) / queue.servers,
        throughput=float(admission @ queue.arrival_rates),
    )
