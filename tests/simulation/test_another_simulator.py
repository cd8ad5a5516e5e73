"""Ciw, a simulator by others, sees the same queue: blocking and mean waits from an empty start to the same horizon."""

import ciw
import numpy as np
import pytest
from statistics_of import worst_difference

import queueing_ucrl as qu

ERROR = 1e-3  # the test fails for one seed in a thousand if both are right
HORIZON = 300.0
REPLICATIONS = 40


def class_measures(records):
    """(class, blocked, wait) of each job that was blocked or has left -> by class, share blocked and mean wait."""
    row = []
    for name in sorted({name for name, _, _ in records}):
        blocked = np.array([b for n, b, _ in records if n == name])
        waits = [w for n, b, w in records if n == name and not b]
        row += [blocked.mean(), np.mean(waits)]
    return row


def ciw_replication(queue, seed):
    ciw.seed(seed)
    network = ciw.create_network(
        arrival_distributions={c.name: [ciw.dists.Exponential(c.arrival_rate)] for c in queue.classes},
        service_distributions={c.name: [ciw.dists.Exponential(queue.service_rate)] for c in queue.classes},
        number_of_servers=[queue.servers],
        queue_capacities=[queue.capacity - queue.servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(HORIZON)
    return class_measures(
        [(r.customer_class, r.record_type == "rejection", r.waiting_time) for r in simulation.get_all_records()]
    )


def our_replication(queue, replication):
    events = qu.simulate(queue, "admit-all", horizon=HORIZON, seed=41, replication=replication, log=True).events
    blocked = events[events["event"] == "block"]
    waits = events[events["event"] == "start"].set_index("job")["wait"]
    left = events[events["event"] == "depart"]
    return class_measures(
        [(name, True, np.nan) for name in blocked["job_class"]]
        + list(zip(left["job_class"], [False] * len(left), waits[left["job"]], strict=True))
    )


@pytest.mark.parametrize(
    "queue",
    [
        qu.Queue(1, 4, 1.0, [qu.JobClass("a", 0.9, 1.0)]),
        qu.Queue(4, 10, 0.5, [qu.JobClass("a", 2.2, 1.0)]),
        qu.Queue(3, 8, 0.5, [qu.JobClass("a", 0.8, 3.0), qu.JobClass("b", 1.0, 1.0)]),
    ],
    ids=["M/M/1/4", "M/M/4/10", "two classes, M/M/3/8"],
)
def test_ciw_gives_the_same_blocking_and_waits(queue):
    theirs = np.array([ciw_replication(queue, 100 + r) for r in range(REPLICATIONS)])
    ours = np.array([our_replication(queue, r) for r in range(REPLICATIONS)])
    assert worst_difference(ours, theirs) > ERROR
