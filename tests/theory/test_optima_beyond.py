"""Optima of chains that are not birth-death: counts by class where nobody waits, and an observed environment."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import queueing_ucrl as qu
from queueing_ucrl.solvers.controlled_chain import ControlledChain
from queueing_ucrl.solvers.environment_chain import environment_chain
from queueing_ucrl.solvers.multi_count import count_chain


def job(name: str, rate: float, reward: float, service: float, cost: qu.HoldingCost | None = None) -> qu.JobClass:
    return qu.JobClass(name, rate, reward, cost or qu.Free(), service=qu.Exponential(service))


def loss_system(capacity: int = 6, *, servers: int | None = None, sharing: bool = False) -> qu.System:
    classes = [job("short", 3.0, 5.0, 2.0), job("long", 1.0, 6.0, 0.25)]
    discipline = "processor-sharing" if sharing else "fifo"
    return qu.System(servers or capacity, capacity, classes, discipline=discipline)


def in_environment(rates, factors, servers=None, cost=None, **options) -> qu.System:
    classes = [job("a", 3.0, 10.0, 1.0, cost or qu.Linear(1.0)), job("b", 4.0, 4.0, 1.0, qu.Linear(0.5))]
    environment = qu.Environment(rates, factors, servers=servers)
    return qu.System(4, 10, classes, environment=environment, **options)


def exact_gain(chain: ControlledChain, admits: np.ndarray) -> Fraction:
    """The gain in rationals, by elimination of the balance equations."""
    n = len(chain.up)
    q = [[Fraction(0)] * n for _ in range(n)]
    reward = [Fraction(0)] * n
    for (x, y), speed in zip(chain.moves.tolist(), chain.speeds.tolist(), strict=True):
        q[x][y] += Fraction(speed)
    for x, i in product(range(n), range(chain.up.shape[1])):
        if admits[x, i] and chain.up[x, i] >= 0:
            q[x][int(chain.up[x, i])] += Fraction(float(chain.rates[x, i]))
            reward[x] += Fraction(float(chain.rates[x, i])) * Fraction(float(chain.rewards[x, i]))
    for x in range(n):
        q[x][x] = -sum(q[x])
    rows = [[q[x][y] for x in range(n)] + [Fraction(0)] for y in range(n - 1)] + [[Fraction(1)] * (n + 1)]
    for k in range(n):
        pivot = next(r for r in range(k, n) if rows[r][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for r in range(n):
            if r != k and rows[r][k] != 0:
                rows[r] = [a - rows[r][k] * b for a, b in zip(rows[r], rows[k], strict=True)]
    return sum((rows[x][n] * reward[x] for x in range(n)), Fraction(0))


@pytest.mark.parametrize("sharing", [False, True])
def test_the_best_of_all_policies_by_counts_in_exact_arithmetic(sharing):
    system = loss_system(2, servers=1 if sharing else 2, sharing=sharing)
    chain, counts = count_chain(system)
    room = np.flatnonzero(counts.sum(axis=1) < 2)
    best = max(
        exact_gain(chain, _decisions(len(counts), room, bits)) for bits in product([False, True], repeat=2 * room.size)
    )
    found = qu.solve(system)
    assert found.gain == pytest.approx(float(best), rel=1e-13)
    decisions = np.array([found.policy.at(n) for n in counts.tolist()])
    assert float(exact_gain(chain, decisions)) == pytest.approx(float(best), rel=1e-13)


def _decisions(states: int, room: np.ndarray, bits: tuple[bool, ...]) -> np.ndarray:
    admits = np.zeros((states, 2), dtype=bool)
    admits[room] = np.array(bits).reshape(-1, 2)
    return admits


@pytest.mark.parametrize("sharing", [False, True])
def test_classes_that_do_not_differ_need_only_the_number_of_jobs(sharing):
    classes = [job("a", 3.0, 10.0, 1.0), job("b", 4.0, 4.0, 1.0), job("c", 2.0, 7.0, 1.0)]
    servers = 3 if sharing else 8
    alike = qu.solve(qu.System(servers, 8, classes))
    counts = qu.solve(qu.System(servers, 8, classes, discipline="processor-sharing" if sharing else "fifo"))
    other = count_chain(qu.System(8, 8, classes))[0].best()[1].gain
    assert counts.gain == pytest.approx(alike.gain, rel=1e-12)
    assert sharing or other == pytest.approx(alike.gain, rel=1e-12)


def test_admitting_everybody_loses_what_erlang_says():
    """B by Erlang's recursion; with a processor shared by all, the law of the number of jobs is geometric (PS)."""
    chain, counts = count_chain(loss_system(7))
    load, blocked = 3.0 / 2.0 + 1.0 / 0.25, 1.0
    for n in range(1, 8):
        blocked = load * blocked / (n + load * blocked)
    value = chain.evaluate(chain.up >= 0)
    assert value.gain == pytest.approx((3.0 * 5.0 + 1.0 * 6.0) * (1 - blocked), rel=1e-13)
    assert value.stationary[counts.sum(axis=1) == 7].sum() == pytest.approx(blocked, rel=1e-12)

    chain, counts = count_chain(loss_system(7, servers=1, sharing=True))
    law = load ** np.arange(8)
    value = chain.evaluate(chain.up >= 0)
    for n in range(8):
        assert value.stationary[counts.sum(axis=1) == n].sum() == pytest.approx(law[n] / law.sum(), rel=1e-12)


def test_a_table_by_the_number_of_jobs_is_a_weaker_comparator():
    """The best of all 2^8 tables of a small system is found; it earns less than the best policy by counts."""
    system = loss_system(4)
    found = qu.solve(system)
    chain, counts = count_chain(system)
    level = counts.sum(axis=1)
    gains = []
    for bits in product([False, True], repeat=8):
        table = np.vstack([np.array(bits).reshape(4, 2), [[False, False]]])
        gains.append(chain.evaluate(table[level] & (chain.up >= 0)).gain)
    policy, gain = found.best_table
    assert gain == pytest.approx(max(gains), rel=1e-12)
    assert policy.admits.shape == (4, 2)
    assert gain < found.gain


def test_the_policy_by_counts_knows_its_rows():
    policy = qu.solve(loss_system(3)).policy
    assert policy.class_strides == (1, 3)
    assert policy.at((2, 1)) == (False, False)
    assert policy.admits[1 * 1 + 1 * 3].tolist() == list(policy.at((1, 1)))
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert again.class_strides == policy.class_strides
    assert policy.capacity == 3


def test_what_has_no_optimum_is_refused_with_the_reason_and_what_to_do():
    with pytest.raises(ValueError, match=r"order matters.*|differ.*optimise"):
        qu.solve(loss_system(6, servers=2))
    slow = qu.System(2, 2, [qu.JobClass("a", 1.0, 1.0, service=qu.Deterministic(1.0))])
    with pytest.raises(ValueError, match=r"not exponential.*optimise"):
        qu.solve(slow)
    with pytest.raises(ValueError, match="solve_periodic"):
        qu.solve(qu.System(qu.Shifts([1.0], [1, 2], 3.0), 4, [job("a", 1.0, 1.0, 1.0)]))
    with pytest.raises(ValueError, match="at most 1,000,000"):
        qu.solve(qu.System(60, 60, [job(str(i), 1.0, 1.0, 1.0 + i) for i in range(8)]))


@pytest.mark.parametrize("servers", [None, [4, 4, 4]])
@pytest.mark.parametrize("cost", [qu.Linear(1.0), qu.Power(0.3, 2.0), qu.Saturating(4.0, 0.7)])
def test_an_environment_that_changes_nothing_is_none(servers, cost):
    system = in_environment(np.ones((3, 3)), [1.0] * 3, servers, cost)
    alone = qu.solve(qu.System(4, 10, system.classes))
    found = qu.solve(system)
    assert found.gain == pytest.approx(alone.gain, rel=1e-12)
    assert found.relative_bias[1] == pytest.approx(alone.relative_bias, rel=1e-9)
    assert found.stationary.sum(axis=0) == pytest.approx(alone.stationary, rel=1e-9)
    assert all(found.policy.at(e) == alone.policy for e in range(3))


def test_an_environment_of_one_state_is_none():
    alone = qu.solve(qu.System(4, 10, in_environment([[0.0]], [1.0]).classes))
    assert qu.solve(in_environment([[0.0]], [1.0])).gain == pytest.approx(alone.gain, rel=1e-13)


def test_an_environment_that_changes_slowly_earns_the_mean_of_its_states():
    factors, duty = (0.5, 1.5), (2, 6)
    gains = []
    for factor, count in zip(factors, duty, strict=True):
        classes = [job("a", 3.0 * factor, 10.0, 1.0, qu.Linear(1.0)), job("b", 4.0 * factor, 4.0, 1.0, qu.Linear(0.5))]
        gains.append(qu.solve(qu.System(count, 10, classes)).gain)
    slow = in_environment([[0.0, 1e-6], [3e-6, 0.0]], factors, duty)
    assert qu.solve(slow).gain == pytest.approx(0.75 * gains[0] + 0.25 * gains[1], rel=1e-4)


def test_an_environment_that_changes_fast_is_its_mean():
    """Rates and busy servers on average; nobody waits where one of the states has a server free."""
    fast = qu.solve(in_environment([[0.0, 1e6], [1e6, 0.0]], [0.5, 1.5], [2, 6])).gain
    s = np.arange(11)
    death = 0.5 * (np.minimum(s, 2) + np.minimum(s, 6))
    waits = np.where(s[:-1] >= 6, (s[:-1] - 5) / 4.0, 0.0)
    rewards = np.array([10.0, 4.0]) - waits[:, None] * np.array([1.0, 0.5])
    mean = qu.AdmissionModel(np.tile([3.0, 4.0], (10, 1)), rewards, death)
    assert fast == pytest.approx(qu.solve(mean).gain, rel=1e-4)


def test_waits_in_an_environment_are_those_of_a_chain_that_stops():
    """E[W] and E[W^2] of a job that joins, by a dense solve of the equations of the states in which it waits."""
    rates, duty = np.array([[0.0, 0.4], [0.7, 0.0]]), (3, 5)
    chain = environment_chain(in_environment(rates, [1.0, 1.0], duty, qu.Power(0.01, 2.0)))
    waiting = [(s, e) for s in range(11) for e in range(2) if s >= duty[e]]
    matrix = np.zeros((len(waiting), len(waiting)))
    for k, (s, e) in enumerate(waiting):
        for other, rate in (((s - 1, e), float(duty[e])), ((s, 1 - e), rates[e, 1 - e])):
            matrix[k, k] += rate
            if other in waiting:
                matrix[k, waiting.index(other)] -= rate
    first = np.linalg.solve(matrix, np.ones(len(waiting)))
    second = np.linalg.solve(matrix, 2.0 * first)
    for k, (s, e) in enumerate(waiting):
        expected = [10.0 - 0.01 * second[k], 4.0 - 0.5 * first[k]]
        assert chain.rewards[2 * s + e] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_policy_in_the_environment_earns_more(seed):
    rng = np.random.default_rng(seed)
    system = in_environment([[0.0, 0.4], [0.7, 0.0]], [0.3, 2.0], [3, 5])
    chain, best = environment_chain(system), qu.solve(system)
    decisions = np.zeros((22, 2), dtype=bool)
    for s, e in product(range(10), range(2)):
        decisions[2 * s + e] = best.policy.at(e).admits[s]
    assert chain.evaluate(decisions).gain == pytest.approx(best.gain, rel=1e-13)
    for _ in range(30):
        other = decisions ^ (rng.random(decisions.shape) < 0.1)
        assert chain.evaluate(other & (chain.up >= 0)).gain <= best.gain * (1 + 1e-12)


def test_the_value_of_decisions_in_an_environment_is_that_of_the_balance_equations():
    system = in_environment([[0.0, 0.4], [0.7, 0.0]], [0.3, 2.0], [3, 5])
    small = qu.System(2, 3, system.classes, environment=system.environment)
    chain = environment_chain(small)
    admits = (chain.up >= 0) & (np.arange(8)[:, None] + np.arange(2) < 6)
    assert chain.evaluate(admits).gain == pytest.approx(float(exact_gain(chain, admits)), rel=1e-13)
