"""The Bayes optimum by dynamic programming, against a recursion over whole histories in exact fractions."""

from __future__ import annotations

from fractions import Fraction as F
from functools import cache

import numpy as np
import pytest

from queueing_ucrl.solvers.bayes import BayesProblem, ShareEstimate, SlottedQueue

REWARDS = [[F(10), F(3)], [F(8), F(2)], [F(5), F(-1)]]
DEPARTURE = F(1, 5)
SERVERS = 2


def problem(prior: tuple[int, ...], horizon: int) -> BayesProblem:
    rewards = np.array([[float(r) for r in row] for row in REWARDS])
    return BayesProblem(SlottedQueue(SERVERS, rewards, float(DEPARTURE)), np.array(prior, dtype=float), horizon)


def likelihood(prior: tuple[int, ...], history: tuple[int, ...]) -> F:
    """The probability of a whole sequence of arrivals (0, 1 or 2 for nobody) under the prior: prod B(alpha + n) / B."""

    def rising(a: int, n: int) -> F:
        value = F(1)
        for k in range(n):
            value *= a + k
        return value

    counts = [history.count(i) for i in range(3)]
    top = F(1)
    for a, n in zip(prior, counts, strict=True):
        top *= rising(a, n)
    return top / rising(sum(prior), len(history))


def slot_value(prior: tuple[int, ...], history: tuple[int, ...], s: int, decide, value) -> F:  # type: ignore[no-untyped-def]
    """The mean over the next slot; decide(i, s') says whether to let in, value(history, s) what follows."""
    mean = F(0)
    leave = DEPARTURE * min(s, SERVERS)
    for chance, here in ((leave, s - 1), (1 - leave, s)):
        if chance == 0:
            continue
        for i in range(3):
            now = (*history, i)
            p = likelihood(prior, now) / likelihood(prior, history)
            if i < 2 and here < len(REWARDS) and decide(i, here):
                mean += chance * p * (REWARDS[here][i] + value(now, here + 1))
            else:
                mean += chance * p * value(now, here)
    return mean


@pytest.mark.parametrize("prior", [(1, 1, 1), (1, 2, 5)])
@pytest.mark.parametrize("horizon", [1, 3, 5])
def test_the_best_learner_against_all_histories(prior: tuple[int, ...], horizon: int) -> None:
    """The same by brute force: a value for every sequence of what came, not for its counts."""

    @cache
    def best(history: tuple[int, ...], s: int) -> F:
        if len(history) == horizon:
            return F(0)

        def pays(i: int, here: int) -> bool:
            now = (*history, i)
            return REWARDS[here][i] + best(now, here + 1) >= best(now, here)

        return slot_value(prior, history, s, pays, best)

    assert problem(prior, horizon).best_value() == pytest.approx(float(best((), 0)), rel=1e-12)


@pytest.mark.parametrize("weights", [(F(1), F(2), F(8)), (F(0), F(0), F(0))])
def test_a_learner_with_an_estimate_against_all_histories(weights: tuple[F, ...]) -> None:
    prior, horizon = (1, 2, 5), 5

    def planned(p: tuple[F, F], slots: int) -> list[F]:
        values = [F(0)] * (len(REWARDS) + 1)
        for _ in range(slots):
            through = []
            for s in range(len(values)):
                mean = (1 - sum(p)) * values[s]
                for i in range(2):
                    let_in = REWARDS[s][i] + values[s + 1] if s < len(REWARDS) else values[s]
                    mean += p[i] * max(values[s], let_in)
                through.append(mean)
            leave = [DEPARTURE * min(s, SERVERS) for s in range(len(values))]
            values = [leave[s] * through[max(s - 1, 0)] + (1 - leave[s]) * through[s] for s in range(len(values))]
        return values

    @cache
    def earned(history: tuple[int, ...], s: int) -> F:
        if len(history) == horizon:
            return F(0)
        seen = len(history) + weights[2]
        p = tuple((history.count(i) + weights[i]) / seen if seen else F(0) for i in range(2))
        values = planned((p[0], p[1]), horizon - len(history) - 1)
        return slot_value(
            prior, history, s, lambda i, here: REWARDS[here][i] + values[here + 1] >= values[here], earned
        )

    found = problem(prior, horizon).value_of_learner(ShareEstimate(*map(float, weights)))
    assert found == pytest.approx(float(earned((), 0)), rel=1e-12)


def test_nobody_does_better_than_the_best_and_nobody_than_who_is_told() -> None:
    """Told > best learner > posterior mean > plain estimate: a chain that a wrong sign anywhere would break."""
    for prior in ((2, 2, 8), (1, 1, 10), (3, 1, 4)):
        given = problem(prior, 60)
        told, best = given.value_when_known(), given.best_value()
        mean = given.value_of_learner(ShareEstimate(prior[0], prior[1], sum(prior)))
        plain = given.value_of_learner(ShareEstimate(0.0, 0.0, 0.0))
        assert told > best > mean > plain
        assert told - mean < 1.06 * (told - best)


def test_the_quadrature_is_exact_enough() -> None:
    given = problem((2, 2, 8), 40)
    assert given.value_when_known(25) == pytest.approx(given.value_when_known(60), rel=1e-5)


def test_the_surer_the_prior_the_less_is_left_to_learn() -> None:
    """Ten times the weights, about a tenth of what is lost by not being told."""
    left = []
    for scale in (1, 10, 100):
        given = problem((2 * scale, scale, 7 * scale), 30)
        left.append(given.value_when_known() - given.best_value())
    assert left[0] > 3.0 * left[1] > 9.0 * left[2] > 0.0
