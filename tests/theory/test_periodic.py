"""The best policy in time, against constant rates, other formulations of the same thing, and simulation."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from generators import random_queue
from scipy.integrate import solve_ivp

import queueing_ucrl as qu
from queueing_ucrl.solvers.periodic import _Sweeper
from queueing_ucrl.solvers.repeating_chain import RepeatingChain

RUSH = (
    qu.JobClass("members", 8.0, 12.0, qu.Linear(2.0), qu.Steps([5.0, 7.0, 9.0], [0.5, 1.0, 2.0, 0.9], 24.0)),
    qu.JobClass("visitors", 6.0, 7.0, qu.Deadline(3.0, 0.2), qu.Sinusoid(0.6, 12.0, -2.0)),
)
HUB = qu.Queue(6, 12, 4 / 3, RUSH)


def drifting(rng: np.random.Generator) -> qu.Queue:
    """A small queue whose classes have periods of 1 to 3 units."""
    unit = float(rng.uniform(2.0, 20.0))
    patterns = [
        qu.Sinusoid(float(rng.uniform(0.3, 1.0)), unit * int(rng.integers(1, 4)), float(rng.uniform(-3, 3))),
        qu.Steps([0.4 * unit], [float(rng.uniform(0, 1)), float(rng.uniform(1, 3))], unit),
    ]
    classes = [
        qu.JobClass(name, float(rng.uniform(0.5, 3.0)), float(rng.uniform(2, 20)), qu.Linear(1.0), pattern)
        for name, pattern in zip("ab", patterns, strict=True)
    ]
    return qu.Queue(int(rng.integers(1, 4)), int(rng.integers(3, 10)), 1.0, classes)


def on_shifts(counts: list[int], leaving: str, **options: object) -> qu.System:
    classes = [
        qu.JobClass("a", 3.0, 10.0, qu.Linear(1.0), service=qu.Exponential(1.0)),
        qu.JobClass("b", 2.0, 4.0, qu.Linear(1.0), qu.Sinusoid(0.8, 12.0), service=qu.Exponential(1.0)),
    ]
    return qu.System(qu.Shifts([5.0], counts, 12.0, leaving), 8, classes, **options)


@pytest.mark.parametrize("seed", range(12))
def test_constant_rates_give_the_steady_optimum(seed):
    queue = random_queue(np.random.default_rng(seed))
    steady, best = qu.solve(queue), qu.solve_periodic(queue)
    assert best.gain == pytest.approx(steady.gain, rel=1e-9, abs=1e-12 * queue.total_arrival_rate * queue.max_reward)
    assert len(best.policies) == 1
    assert best.best_reward([0.0, 1.5, 100.0]) == pytest.approx([0.0, 1.5 * steady.gain, 100.0 * steady.gain], rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_never_below_following_or_the_best_that_never_changes(seed):
    queue = drifting(np.random.default_rng(seed))
    best = qu.solve_periodic(queue)
    slack = 1e-7 * best.gain
    assert best.gain >= qu.best_stationary(queue)[1] - slack
    edges = qu.Drift(queue).edges
    following = [qu.solve(queue.at(0.5 * (a + b))).policy for a, b in pairwise(edges)]
    assert best.gain >= qu.periodic_gain(queue, edges, following) - slack
    assert best.table_gain == best.gain
    assert qu.periodic_gain(queue, best.edges, best.policies) == pytest.approx(best.gain, rel=1e-9)


def test_a_policy_that_never_changes_earns_what_the_law_of_the_queue_says():
    policy = qu.Policy.trunk_reservation((12, 6), 12)
    law = qu.Drift(HUB, pieces=512).gain(policy)
    assert qu.periodic_gain(HUB, [0.0, 24.0], [policy]) == pytest.approx(law, rel=1e-9)


def test_one_more_policy_iteration_finds_nothing_better():
    """No decision moved alone for a stretch of time earns more (a sample of twenty)."""
    best = qu.solve_periodic(HUB)
    rng = np.random.default_rng(0)
    for _ in range(20):
        k = int(rng.integers(len(best.policies)))
        admits = best.policies[k].admits.copy()
        s, i = rng.integers(12), rng.integers(2)
        admits[s, i] = not admits[s, i]
        policies = [*best.policies[:k], qu.Policy(admits), *best.policies[k + 1 :]]
        assert qu.periodic_gain(HUB, best.edges, policies) <= best.gain * (1 + 1e-10)


def test_a_plain_discretisation_comes_to_the_same():
    """Value iteration with slots of 1/500 and 1/1000 of a unit; Richardson takes off the first order."""
    patterns = {"a": qu.Steps([2.0], [0.3, 2.0], 5.0), "b": qu.Sinusoid(0.8, 10.0, 1.0)}
    queue = qu.Queue(2, 4, 1.0, [qu.JobClass(n, 1.5, ord(n) - 92.0, qu.Linear(1.0), p) for n, p in patterns.items()])
    period = 10.0

    def slotted(slots: int) -> float:
        length = period / slots
        factors = np.array([[c.pattern.factor((k + 0.5) * length) for c in queue.classes] for k in range(slots)])
        rates = factors * queue.arrival_rates * length
        death, h = queue.service_rates * length, np.zeros(5)
        for _ in range(12):
            before = h.copy()
            for k in range(slots - 1, -1, -1):
                g = h[:-1] - h[1:]
                moved = np.append((rates[k] * np.maximum(queue.rewards - g[:, None], 0.0)).sum(axis=1), 0.0)
                h = h + moved + death * np.append(0.0, g)
            increments = h - before
        assert np.ptp(increments) < 1e-8 * increments[0]
        return float(increments[0] / period)

    coarse, fine = slotted(round(500 * period)), slotted(round(1000 * period))
    assert qu.solve_periodic(queue).gain == pytest.approx(2 * fine - coarse, rel=1e-6)


def test_halving_the_steps_divides_the_error_by_sixteen():
    """The order 4 of the method, switches or not; the error that is told bounds the true one."""
    chain = RepeatingChain.of(HUB)
    gains = []
    for refinement in (1, 2, 4, 8):
        sweeper = _Sweeper(chain, None)
        h = chain.start()
        sweeper._settle(h, np.zeros((0, 13)), 1)
        gains.append(sweeper._settle(h, np.zeros((0, 13)), refinement)[0])
    errors = np.abs(np.diff(gains))
    assert errors[1] < errors[0] / 12
    assert errors[2] < errors[1] / 12
    rough = qu.solve_periodic(HUB, accuracy=1e-4)
    assert abs(rough.gain - gains[-1]) <= rough.error < 1e-4 * rough.gain


def test_tables_are_by_time_and_switch_before_the_rush():
    best = qu.solve_periodic(HUB)
    assert best.edges[0] == 0.0
    assert best.edges[-1] == best.period == 24.0
    for k, (a, b) in enumerate(pairwise(best.edges)):
        for turn in (0, 3):
            assert best.at(0.5 * (a + b) + 24.0 * turn) == best.policies[k]
            assert best.next_switch(0.5 * (a + b) + 24.0 * turn) in (
                b + 24.0 * turn,
                24.0 * turn + 24.0 + best.edges[1],
            )
    assert best.at(6.9).control_levels[1] < best.at(5.5).control_levels[1]  # the rush comes at 7


@pytest.mark.parametrize("leaving", ["finish", "hand-over"])
@pytest.mark.parametrize("cost", [qu.Linear(0.7), qu.Power(0.4, 2.0), qu.Power(0.2, 3.0), qu.Saturating(6.0, 0.7)])
def test_shifts_that_never_change_are_no_shifts(leaving, cost):
    classes = [
        qu.JobClass("a", 3.0, 10.0, cost, service=qu.Exponential(1.0)),
        qu.JobClass("b", 2.0, 4.0, qu.Linear(0.5), service=qu.Exponential(1.0)),
    ]
    steady = qu.solve(qu.System(3, 8, classes))
    best = qu.solve_periodic(qu.System(qu.Shifts([2.0], [3, 3], 5.0, leaving), 8, classes))
    assert best.gain == pytest.approx(steady.gain, rel=1e-9)


@pytest.mark.parametrize("reward_at", ["admission", "start"])
def test_jobs_that_give_up_fit_in(reward_at):
    """Erlang-A: constant rates as a drifting queue, and as shifts that never change, give its optimum."""
    about = {"abandonment_cost": 2.0, "reward_at": reward_at}
    classes = [
        qu.JobClass(name, rate, reward, qu.Linear(0.5), service=qu.Exponential(1.0), **about)
        for name, rate, reward in (("a", 3.0, 10.0), ("b", 2.0, 4.0))
    ]
    steady = qu.solve(qu.System(3, 8, classes, patience=qu.Exponential(0.4))).gain
    queue = qu.System(3, 8, classes, patience=qu.Exponential(0.4)).queue
    shifts = qu.System(qu.Shifts([2.0], [3, 3], 5.0), 8, classes, patience=qu.Exponential(0.4))
    assert qu.solve_periodic(queue).gain == pytest.approx(steady, rel=1e-9)
    assert qu.solve_periodic(shifts).gain == pytest.approx(steady, rel=1e-9)


def queue_length_gain(system: qu.System, policy: qu.Policy) -> float:
    """The gain with one linear cost for all, another way: rewards less the cost of everybody who waits, by the forward
    equations of the law of (jobs, busy servers) over a few periods, with scipy's integrator.
    """
    shifts, capacity = system.servers, system.capacity
    most = shifts.most
    index = {(s, b): s * (most + 1) + b for s in range(capacity + 1) for b in range(most + 1)}
    theta = 0.0 if system.patience is None else 1.0 / system.patience.mean

    def generator(t: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        q, earns = np.zeros((len(index), len(index))), np.zeros(len(index))

        def move(x: int, jobs: int, busy: int, rate: float) -> None:
            q[x, index[jobs, busy]] += rate
            q[x, x] -= rate

        for (s, b), x in index.items():
            if b < min(s, count) or b > s:
                continue
            earns[x] -= (s - b) * (system.classes[0].holding_cost.rate + theta * system.classes[0].abandonment_cost)
            if b:
                move(x, s - 1, b - 1 if b > count else min(s - 1, count), b * 1.0)
            if s > b:
                move(x, s - 1, b, (s - b) * theta)
            for i, c in enumerate(system.classes):
                if s < capacity and policy.admits[s, i]:
                    rate = c.arrival_rate * c.pattern.factor(t)
                    earns[x] += rate * c.reward
                    move(x, s + 1, b + 1 if b < count else b, rate)
        return q, earns

    def slope(t: float, y: np.ndarray, count: int) -> np.ndarray:
        q, earns = generator(t, count)
        return np.append(y[:-1] @ q, y[:-1] @ earns)

    law, edges, earned = np.zeros(len(index)), (0.0, *shifts.times, shifts.period), []
    law[0] = 1.0
    for _ in range(4):
        earned.append(0.0)
        for count, (begin, end) in zip(shifts.counts, pairwise(edges), strict=True):
            shifted = np.zeros_like(law)
            for (s, b), x in index.items():
                shifted[index[s, max(b, min(s, count))]] += law[x]
            moved = solve_ivp(slope, (begin, end), np.append(shifted, 0.0), args=(count,), rtol=1e-9, atol=1e-12)
            law, earned[-1] = moved.y[:-1, -1], earned[-1] + moved.y[-1, -1]
    assert earned[-1] == pytest.approx(earned[-2], rel=1e-6)
    return earned[-1] / shifts.period


@pytest.mark.parametrize(("counts", "patience"), [([3, 1], None), ([0, 2], 0.6)])
def test_waits_that_depend_on_the_hour_cost_what_everybody_who_waits_costs(counts, patience):
    """E[W] of each job when it joins, against the length of the queue at all times: the same money."""
    system = on_shifts(counts, "finish", patience=None if patience is None else qu.Exponential(patience))
    policy = qu.Policy.trunk_reservation((8, 4), 8)
    gain = qu.periodic_gain(system, [0.0, 12.0], [policy])
    assert gain == pytest.approx(queue_length_gain(system, policy), rel=1e-6)


def mean_wait(shifts: qu.Shifts, jobs: int, time: float) -> float:
    """E[W] of a job that finds so many ahead, servers handing over, mu = 1: W > u if at the end of every stretch of c
    servers up to u no more than jobs - c have left, who leave by a Poisson process of rate c. By the trapezoidal rule.
    """
    step, total, law = 1e-3, 0.0, np.zeros(jobs + 1)
    law[0] = 1.0
    for k in range(60_000):
        count = shifts.at(time + (k + 0.5) * step)
        law[max(0, jobs - count + 1) :] = 0.0  # they have started
        before = law.sum()
        pmf = [math.exp(-count * step) * (count * step) ** n / math.factorial(n) for n in range(5)]
        law = np.convolve(law, pmf)[: jobs + 1]
        law[max(0, jobs - count + 1) :] = 0.0
        total += 0.5 * step * (before + law.sum())
        if before < 1e-12:
            break
    return total


@pytest.mark.parametrize("counts", [[3, 1], [0, 2]])
def test_waits_of_servers_who_hand_over_are_a_time_change_of_a_poisson_process(counts):
    system = on_shifts(counts, "hand-over")
    sweeper = _Sweeper(RepeatingChain.of(system), None)
    moments = np.zeros((1, 9))
    sweeper._settle_waits(moments)
    for jobs in (0, 1, 4, 7):
        assert moments[0, jobs] == pytest.approx(mean_wait(system.servers, jobs, 0.0), rel=1e-6)


def test_with_servers_that_finish_first_tables_by_the_number_of_jobs_lose_little():
    best = qu.solve_periodic(on_shifts([4, 1], "finish"))
    assert best.gain * (1 - 1e-3) < best.table_gain <= best.gain + 2 * best.error
    handed = qu.solve_periodic(on_shifts([4, 1], "hand-over"))
    assert handed.gain < best.gain  # who finishes first works longer


def test_the_unit_of_time_and_of_money_does_not_matter():
    hours = qu.solve_periodic(drifting(np.random.default_rng(1)))
    queue = drifting(np.random.default_rng(1))
    classes = []
    for c in queue.classes:
        pattern = c.pattern
        if isinstance(pattern, qu.Sinusoid):
            pattern = qu.Sinusoid(pattern.amplitude, pattern.period * 3600, pattern.phase)
        else:
            pattern = qu.Steps([t * 3600 for t in pattern.times], pattern.factors, pattern.period * 3600)
        classes.append(qu.JobClass(c.name, c.arrival_rate / 3600, c.reward * 1e9, qu.Linear(1e9 / 3600), pattern))
    seconds = qu.solve_periodic(qu.Queue(queue.servers, queue.capacity, 1 / 3600, classes))
    assert seconds.gain == pytest.approx(hours.gain * 1e9 / 3600, rel=1e-9)
    assert seconds.policies == hours.policies
    assert seconds.edges == pytest.approx(hours.edges * 3600, rel=1e-6)


@pytest.mark.parametrize(
    ("system", "words"),
    [
        (qu.Queue(1, 2, 1.0, [qu.JobClass("a", 1.0, 1.0, pattern=qu.Steps([3.0], [1.0, 2.0]))]), "does not come back"),
        (
            qu.Queue(
                1,
                2,
                1.0,
                [qu.JobClass(n, 1.0, 1.0, pattern=qu.Sinusoid(0.5, p)) for n, p in (("a", 1.0), ("b", math.pi))],
            ),
            "no common period",
        ),
        (
            qu.System(
                qu.Shifts([1.0], [1, 2], 3.0),
                4,
                [qu.JobClass("a", 1.0, 1.0, qu.Deadline(1.0, 1.0), service=qu.Exponential(1.0))],
            ),
            "deadline",
        ),
        (
            qu.System(2, 4, [qu.JobClass(n, 1.0, 1.0, service=qu.Exponential(r)) for n, r in (("a", 1.0), ("b", 2.0))]),
            "service times differ",
        ),
        (on_shifts([2, 1], "hand-over", patience=qu.Exponential(1.0)), "hand over"),
    ],
)
def test_what_has_no_best_policy_in_time_is_refused(system, words):
    with pytest.raises(ValueError, match=words):
        qu.solve_periodic(system)


def test_its_tables_earn_its_gain_in_simulation():
    """40 replications of 30 days; the mean within 4.5 standard errors: error rate about 1e-4 (Student's t)."""
    best = qu.solve_periodic(HUB)
    earned = []
    for r in range(40):
        run = qu.simulate(HUB, "oracle-anticipating", horizon=720.0, seed=11, replication=r, grid=[720.0])
        earned.append(run.summary()["expected_reward"])
    # from empty, and in some state at the end: h(0) - h(S) at most
    slack = best.relative_bias[0].sum()
    error = 4.5 * np.std(earned, ddof=1) / math.sqrt(40)
    assert best.best_reward([720.0])[0] - error < np.mean(earned) < best.best_reward([720.0])[0] + slack + error
