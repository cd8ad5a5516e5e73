"""What an operator sees of a queue under a policy: who gets in, who waits, how busy the servers are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queueing_ucrl.arrays import FloatArray
from queueing_ucrl.model.checks import ReadOnlyArrays
from queueing_ucrl.model.evaluation import evaluate
from queueing_ucrl.model.policy import Policy
from queueing_ucrl.model.system import System


@dataclass(frozen=True)
class Performance(ReadOnlyArrays):
    """Long-run measures; by class where an array. Arrivals see the stationary law (PASTA).

    Where jobs balk, an arrival is one that asks to be let in: it sees s with a probability in proportion to the
    stationary one times b_i(s).
    """

    gain: float  # reward per unit of time
    blocking: float  # probability that an arrival finds the system full
    rejection: FloatArray  # probability that an arrival of the class is turned away by the policy
    admission: FloatArray  # probability that it is let in
    served: FloatArray  # probability that it is let in and served
    abandonment: FloatArray  # probability that a job of the class that was let in gives up; nan where none is
    mean_wait: FloatArray  # time in queue of the admitted jobs of the class; nan where none is admitted
    mean_in_system: float
    mean_waiting: float
    utilisation: float  # mean share of the servers that are busy
    throughput: float  # jobs served per unit of time
    abandonments: float  # jobs that give up per unit of time
    asking: FloatArray  # probability that a job of the class that comes asks to be let in: 1 where nobody balks


def performance(queue: System, policy: Policy) -> Performance:
    """The long-run measures of a Markov `queue` under `policy`, from the stationary law. O(mS)."""
    value = evaluate(queue, policy)
    law, admits = value.stationary, policy.admits
    seen, asking, blocking = law[:-1, None], np.ones(len(queue.classes)), float(law[-1])  # by who asks
    if queue.balks:
        asking = law @ queue.joins
        seen = law[:-1, None] * queue.joins[:-1] / asking
        asks = law @ queue.rates_by_state  # jobs of each class that ask, per unit of time
        blocking = float(law[-1] * queue.rates_by_state[-1].sum() / asks.sum())
    admission = (seen * admits).sum(axis=0) if queue.balks else law[:-1] @ admits
    states = np.arange(queue.capacity + 1)
    busy = np.minimum(states, queue.most_servers)
    with np.errstate(invalid="ignore"):
        waits = queue.queue.mean_waits
        waited = (seen * waits[:, None] * admits).sum(axis=0) if queue.balks else (law[:-1] * waits) @ admits
        mean_wait = np.where(admission > 0, waited / admission, np.nan)
    abandonment = queue.queue.patience_rate * mean_wait  # P(abandon) = theta E[W]
    lost = np.where(admission > 0, abandonment, 0.0)
    served = admission * (1.0 - lost)
    return Performance(
        gain=value.gain,
        blocking=blocking,
        rejection=(seen * ~admits).sum(axis=0) if queue.balks else law[:-1] @ ~admits,
        admission=admission,
        served=served,
        abandonment=abandonment,
        mean_wait=mean_wait,
        mean_in_system=float(law @ states),
        mean_waiting=float(law @ (states - busy)),
        utilisation=float(law @ busy) / queue.most_servers,
        throughput=float(served @ (queue.arrival_rates * asking)),
        abandonments=float((admission * lost) @ (queue.arrival_rates * asking)),
        asking=asking,
    )
