"""The promise behind the regret bound: the truth is in the confidence set, and then the model is optimistic."""

import numpy as np
import pytest
from generators import paper_queue
from scipy import stats

import queueing_ucrl as qu

ERROR = 1e-3  # each test fails for one seed in a thousand if the promise just holds, and more rarely if it holds amply
REPLICATIONS = 2000


def three_classes():
    """Shares that differ, one class rare; costs that change the order of the classes with the state."""
    classes = [
        qu.JobClass("a", 0.2, 9.0, qu.Linear(1.5)),
        qu.JobClass("b", 0.8, 5.0, qu.Linear(0.2)),
        qu.JobClass("c", 1.0, 2.0),
    ]
    return qu.Queue(2, 8, 0.8, classes)


@pytest.mark.parametrize(
    ("queue", "bounds", "first"),
    [(paper_queue(), (1.0, 4.0), 10.0), (three_classes(), (1.9, 2.1), 1.5)],
    ids=["paper", "three classes"],
)
def test_the_truth_is_covered_as_promised_and_then_the_gain_is_optimistic(queue, bounds, first):
    """The set of episode k + 1 is built with delta_k = 1 / (mu t_k): Lambda and p are each missed with probability
    delta_k at most, so both are inside with probability 1 - 2 delta_k at least.
    """
    best = qu.solve(queue)
    controller = qu.UcrlAc(bounds, first)
    horizon = first * 2**6
    missed = np.zeros(7, dtype=int)
    for replication in range(REPLICATIONS):
        run = qu.simulate(queue, controller, horizon=horizon, seed=61, replication=replication, grid=[horizon])
        for k, (episode, solve) in enumerate(zip(run.ledger.episodes, run.solve_records, strict=True)):
            assert solve.time == episode.start
            if episode.truth_inside:
                assert solve.gain >= best.gain - 1e-9
            else:
                missed[k] += 1
    assert missed[0] == 0  # everything is possible at first
    assert missed.sum() > 0  # the sets are not so wide that they promise nothing
    lengths = [first, *(first * 2**k for k in range(5))]
    allowed = np.minimum(1.0, 2.0 / (queue.service_rate * np.array(lengths)))
    assert allowed[-1] < 0.25
    p = stats.binom.sf(missed[1:] - 1, REPLICATIONS, allowed)  # so many or more, at the promised rate
    assert p.min() * len(p) > ERROR
