"""Thm 5.2 in practice: the regret of UCRL-AC stays below the bound, above zero, and grows like a root at most."""

import numpy as np
import pytest
from generators import paper_queue
from scipy import stats

import queueing_ucrl as qu

ERROR = 1e-3  # each comparison has an interval of confidence 1 - ERROR, all times together
FIRST = 10.0
ENDS = FIRST * 2.0 ** np.arange(17)  # T_1 .. T_17 = 655,360


def curves(replications, seed):
    """Mean-bearing accounts at every T_k, a row a replication."""
    queue = paper_queue()
    runs = [
        qu.simulate(queue, qu.UcrlAc((1.0, 4.0), FIRST), horizon=ENDS[-1], seed=seed, replication=r, grid=ENDS)
        for r in range(replications)
    ]
    return {kind: np.array([run.curve.total(kind) for run in runs]) for kind in ("gap", "expected")}


@pytest.fixture(scope="module")
def few():
    return curves(24, seed=81)


def limits(samples):
    """Below and above the mean at each time, with confidence 1 - ERROR for all times together."""
    count, times = samples.shape
    half = stats.t.ppf(1 - ERROR / (2 * times), count - 1) * samples.std(axis=0, ddof=1) / np.sqrt(count)
    return samples.mean(axis=0) - half, samples.mean(axis=0) + half


def test_the_regret_is_below_the_bound_and_above_zero_at_every_doubling(few):
    queue = paper_queue()
    bound = qu.policy_iteration_bound(queue, qu.solve(queue).gain, (1.0, 4.0), FIRST)(ENDS)
    for kind, samples in few.items():
        assert (limits(samples)[1] < bound).all(), kind
    assert (limits(few["gap"])[0] > 0).all()
    assert (limits(few["expected"])[0][4:] > 0).all()  # the noisier account cannot tell before a few arrivals


def growth_at_most(samples):
    """What mean R(4T) / mean R(T) is below, for the last T and 4T, with confidence 1 - ERROR: R(4T) - x R(T) has a
    negative mean for that x.
    """
    early, late = samples[:, -3], samples[:, -1]
    for x in np.arange(1.0, 10.0, 0.05):
        if stats.ttest_1samp(late - x * early, 0.0, alternative="less").pvalue < ERROR:
            return x
    return np.inf


def test_from_t_to_4t_late_in_the_run_the_regret_grows_nearer_2_than_4(few):
    """sqrt(T) gives 2, linear growth 4. Measured: about 1.3 from 163,840 to 655,360."""
    assert growth_at_most(few["gap"]) < 3.0


def test_early_in_the_run_the_regret_is_nearly_linear(few):
    """The power of the test above: before the confidence sets bite, a factor above 3 is told from one below."""
    early, late = few["gap"][:, 7], few["gap"][:, 9]  # 1,280 and 5,120
    assert stats.ttest_1samp(late - 3.0 * early, 0.0, alternative="greater").pvalue < ERROR


@pytest.mark.slow
def test_with_more_replications_and_in_both_accounts():
    samples = curves(150, seed=82)
    assert growth_at_most(samples["gap"]) < 1.5
    assert growth_at_most(samples["expected"]) < 3.0
    assert (limits(samples["expected"])[0][1:] > 0).all()
