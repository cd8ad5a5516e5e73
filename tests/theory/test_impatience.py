"""Erlang-A: times in queue with abandonment, against exact arithmetic; rewards, rates, measures, optima and bounds."""

import itertools
import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from exact import PreciseImpatientWaits, RationalModel, largest_relative_error, rational_optimum
from generators import random_cost, random_queue

import queueing_ucrl as qu
from queueing_ucrl.model.impatience import ImpatientWaits
from queueing_ucrl.model.waits import ErlangWaits

CLAIM = 1e-12
STAGES = 250
# theta / (c mu) from 1e-12, where nobody gives up, to 1e4, where hardly anybody is served
RATES = [(1, 1.0, 1.0), (5, 0.3, 0.05), (5, 0.3, 3.0), (1, 1.0, 1e4), (20, 1.0, 1e-6), (20, 1.0, 1e-12), (7, 1e4, 3.0)]
TIMES = [1e-9, 0.01, 0.3, 1.0, 2.0, 10.0, 50.0]  # of the mean time in queue of the middle stage


def both(servers, rate, theta, stages=STAGES):
    return ImpatientWaits(servers, rate, theta, stages), PreciseImpatientWaits(servers, rate, theta, stages)


@pytest.mark.parametrize(("servers", "rate", "theta"), RATES)
def test_tails_and_means_are_exact(servers, rate, theta):
    waits, exact = both(servers, rate, theta)
    assert largest_relative_error(waits.mean, exact.mean()) <= CLAIM
    np.testing.assert_allclose(waits.abandonment, theta * waits.mean, rtol=1e-14)
    np.testing.assert_allclose(waits.served + waits.abandonment, 1.0, rtol=1e-14)
    for share in TIMES:
        time = share * float(waits.mean[STAGES // 2])
        for found, wanted in ((waits.survival, exact.survival), (waits.mean_excess, exact.mean_excess)):
            values, known = found(time), wanted(time)
            if max(known) > Decimal("1e-100"):  # the exact ones have 140 digits, of which a difference takes some
                assert largest_relative_error(values, known, "1e-100") <= CLAIM
            assert np.all(values[[x < Decimal("1e-100") for x in known]] < 1e-99)


@pytest.mark.parametrize("width", [1e-6, 0.01, 0.09, 0.3, 2.0, 30.0])
@pytest.mark.parametrize(("servers", "rate", "theta"), RATES)
def test_a_ramp_of_any_width_is_exact(servers, rate, theta, width):
    waits, exact = both(servers, rate, theta)
    for share in (0.0, 0.1, 1.0, 3.0):
        start, end = (x * float(waits.mean[STAGES // 2]) for x in (share, share + width))
        points = [(0.0, 0.0), *([(start, 0.0)] if start else []), (end, 1.0), (end + 1.0 / rate, 1.0)]
        expected = qu.PiecewiseLinear(points).expected(waits)
        assert largest_relative_error(expected, exact.piecewise_linear(points), "1e-80") <= CLAIM


@pytest.mark.parametrize(("servers", "rate", "theta"), RATES)
def test_moments_and_transforms_are_exact(servers, rate, theta):
    waits, exact = both(servers, rate, theta)
    for order in (1, 2, 3, 12):
        assert largest_relative_error(qu.Power(1.0, order).expected(waits), exact.moment(order)) <= CLAIM
    for decay in (1e-9, 0.1, 1.0, 40.0):
        a = decay * servers * rate
        assert largest_relative_error(qu.Saturating(1.0, a).expected(waits), exact.transform_complement(a)) <= CLAIM


@pytest.mark.parametrize(("servers", "rate", "theta"), [(1, 1.0, 1.0), (5, 0.3, 0.05), (5, 0.3, 3.0)])
def test_moments_that_are_not_whole_are_exact(servers, rate, theta):
    waits, exact = both(servers, rate, theta, 12)
    for p, k in itertools.product((0.3, 2.5), (1, 12)):
        assert largest_relative_error(waits.moment(p)[k - 1 : k], [exact.fractional_moment(p, k)]) <= CLAIM


@pytest.mark.parametrize(
    ("function", "breaks", "known"),
    [
        (lambda t: 2.0 * t**2.5, (), qu.Power(2.0, 2.5)),
        (lambda t: t**0.5, (), qu.Power(1.0, 0.5)),
        (lambda t: -4.0 * math.expm1(-0.3 * t), (), qu.Saturating(4.0, 0.3)),
        (lambda t: 5.0 if t > 3.0 else 0.0, (3.0,), qu.Deadline(5.0, 3.0)),
        (lambda t: max(0.0, t - 2.0), (2.0,), qu.PiecewiseLinear([(2.0, 0.0), (3.0, 1.0)])),
    ],
    ids=["power", "root", "saturating", "jump", "kink"],
)
@pytest.mark.parametrize(("servers", "rate", "theta"), [(1, 1.0, 0.3), (5, 0.3, 8.0), (3, 2.0, 1e-7)])
def test_any_function_agrees_with_the_closed_form(function, breaks, known, servers, rate, theta):
    waits = ImpatientWaits(servers, rate, theta, 60)
    np.testing.assert_allclose(qu.Custom(function, breaks).expected(waits), known.expected(waits), rtol=1e-11)


def test_growth_below_the_rate_of_leaving_has_its_mean_and_beyond_it_is_refused():
    """E[e^{bW}] is finite for b < c mu + theta: 1 + b/(c mu + theta - b) for k = 1."""
    waits = ImpatientWaits(1, 1.0, 2.0, 4)
    assert qu.Custom(lambda t: math.expm1(0.5 * t)).expected(waits)[0] == pytest.approx(0.5 / 2.5, rel=1e-11)
    with pytest.raises(ValueError, match="not finite at a wait of"):
        qu.Custom(lambda t: math.expm1(3.5 * t)).expected(waits)
    with pytest.raises(ValueError, match="a jump or a kink"):
        qu.Custom(lambda t: 5.0 if t > 0.3 else 0.0).expected(waits)


@pytest.mark.parametrize("theta", [1e-13, 1e-30, 1e-140])
def test_jobs_that_hardly_ever_give_up_wait_as_if_they_never_did(theta):
    random = np.random.default_rng(4)
    patient, waits = ErlangWaits(3, 0.7, 60), ImpatientWaits(3, 0.7, theta, 60)
    for _ in range(40):
        cost = random_cost(random, 5.0, 8.0)
        np.testing.assert_allclose(cost.expected(waits), cost.expected(patient), rtol=2e-11, atol=1e-200)
    classes = [qu.JobClass("a", 2.0, 5.0, qu.Power(0.1, 1.5)), qu.JobClass("b", 2.0, 2.0, qu.Linear(0.1))]
    late = [replace(c, reward_at="end", abandonment_cost=3.0) for c in classes]
    queue = qu.Queue(3, 30, 0.7, classes)
    limit = qu.Queue(3, 30, 0.7, late, patience=qu.Exponential(theta))
    np.testing.assert_allclose(limit.rewards, queue.rewards, rtol=1e-11)
    np.testing.assert_allclose(limit.service_rates, queue.service_rates, rtol=1e-11)
    assert qu.solve(limit).policy == qu.solve(queue).policy
    assert qu.solve(limit).gain == pytest.approx(qu.solve(queue).gain, rel=1e-11)


# --- the queue -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reward_at", ["admission", "start", "end"])
def test_rewards_and_rates_by_their_formulas(reward_at):
    """c = 2, mu = 0.5, theta = 0.25, gamma = 0.3, a = 4: k = s - 1 from s = 2 on."""
    a = qu.JobClass("a", 1.0, 10.0, qu.Linear(0.3), abandonment_cost=4.0, reward_at=reward_at)
    queue = qu.Queue(2, 6, 0.5, [a], patience=qu.Exponential(0.25))
    assert queue.service_rates.tolist() == [0.0, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0]
    assert queue.max_service_rate == 2.0
    assert queue.load == 1.0
    for s in range(6):
        k = max(0, s - 1)
        wait = k / (1.0 + 0.25 * k)
        paid = 1.0 if reward_at == "admission" else 1.0 / (1.0 + 0.25 * k)
        assert queue.rewards[s, 0] == pytest.approx(10.0 * paid - (0.3 + 4.0 * 0.25) * wait, rel=1e-14)


def test_measures_of_an_erlang_a_queue_in_rationals():
    """c = 2, S = 6, lambda = 3, mu = 1, theta = 1/2: weights 1, 3, 9/2, then 3 over 5/2, 3, 7/2, 4 a step."""
    queue = qu.Queue(2, 6, 1.0, [qu.JobClass("a", 3.0, 1.0)], patience=qu.Exponential(0.5))
    weights = [Fraction(1)]
    for s in range(1, 7):
        weights.append(weights[-1] * 3 / (min(s, 2) + Fraction(max(0, s - 2), 2)))
    p = [w / sum(weights) for w in weights]
    waiting = sum(max(0, s - 2) * p[s] for s in range(7))
    seen = qu.performance(queue, qu.Policy.admit_all(6, 1))
    assert seen.blocking == pytest.approx(float(p[6]), rel=1e-13)
    assert seen.mean_waiting == pytest.approx(float(waiting), rel=1e-13)
    assert seen.abandonments == pytest.approx(float(waiting / 2), rel=1e-13)
    assert seen.abandonment[0] == pytest.approx(float(waiting / 2 / (3 * (1 - p[6]))), rel=1e-13)
    assert seen.throughput == pytest.approx(float(sum(min(s, 2) * p[s] for s in range(7))), rel=1e-13)
    assert seen.served[0] == pytest.approx(seen.throughput / 3, rel=1e-13)
    assert seen.mean_wait[0] == pytest.approx(float(waiting / (3 * (1 - p[6]))), rel=1e-13)


def small_rational_queue(number):
    """Linear costs and whole numbers: rewards and rates are rationals that doubles hold or nearly hold."""
    random = np.random.default_rng([31, number])
    servers, capacity = int(random.integers(1, 4)), int(random.integers(2, 9))
    mu, theta = (float(random.integers(1, 9)) / 4 for _ in range(2))
    classes = [
        qu.JobClass(
            name,
            float(random.integers(1, 13)) / 4,
            float(random.integers(1, 20)),
            qu.Linear(float(random.integers(0, 8)) / 4),
            abandonment_cost=float(random.integers(0, 5)),
            reward_at=str(random.choice(["admission", "start", "end"])),
        )
        for name in "ab"
    ]
    return qu.Queue(servers, capacity, mu, classes, patience=qu.Exponential(theta))


def rational_model(queue):
    """The same from the formulas of the queue, without a rounding."""
    c, mu, theta = queue.servers, Fraction(queue.service_rate), Fraction(queue.patience_rate)
    rewards = []
    for s in range(queue.capacity):
        k = max(0, s - c + 1)
        wait = k / (c * mu + k * theta)
        rewards.append(
            tuple(
                Fraction(j.reward) * (1 - (j.reward_at != "admission") * theta * wait)
                - (Fraction(j.holding_cost.rate) + Fraction(j.abandonment_cost) * theta) * wait
                for j in queue.classes
            )
        )
    rates = (tuple(Fraction(j.arrival_rate) for j in queue.classes),) * queue.capacity
    death = tuple(min(s, c) * mu + max(0, s - c) * theta for s in range(queue.capacity + 1))
    return RationalModel(rates, tuple(rewards), death)


def test_every_solver_finds_the_optimum_that_rationals_find():
    for number in range(60):
        queue = small_rational_queue(number)
        _, value = rational_optimum(rational_model(queue))
        for method in ("pi-b", "pi", "vi-ae", "lp"):
            assert qu.solve(queue, method).gain == pytest.approx(float(value.gain), rel=1e-10)
        assert qu.solve(queue, "vi", epsilon=1e-6).gain >= float(value.gain) - 1e-6
        assert qu.solve(queue, "trunk-search").gain <= float(value.gain) * (1 + 1e-12)


def test_trunk_reservation_need_not_be_optimal_where_jobs_give_up():
    """theta = mu: b pays at once and is let in only behind others, where it will give up before it takes a server."""
    a, b = qu.JobClass("a", 2.0, 4.0, reward_at="start"), qu.JobClass("b", 4.0, 1.0)
    queue = qu.Queue(1, 4, 1.0, [a, b], patience=qu.Exponential(1.0))
    best = qu.solve(queue)
    assert best.policy.admits.T.tolist() == [[True] * 4, [False, False, True, True]]
    _, value = rational_optimum(rational_model(replace_costs(queue)))
    assert best.gain == pytest.approx(float(value.gain), rel=1e-12)
    assert qu.solve(queue, "trunk-search").gain < 0.97 * best.gain
    patient = qu.Queue(1, 4, 1.0, [a, b])
    assert qu.solve(patient).policy.is_trunk_reservation


def replace_costs(queue):
    classes = [replace(c, holding_cost=qu.Linear(0.0)) for c in queue.classes]
    return qu.Queue(queue.servers, queue.capacity, queue.service_rate, classes, patience=queue.patience)


LOSSES = Path(__file__).parents[2] / "docs" / "impatience.md"


def test_what_ignoring_it_costs_as_the_page_says():
    """docs/impatience.md: each row of the table of losses."""
    rows = re.findall(r"^\| (admission|start) \| (\d+), (\d+) \| ([\d.]+) \|(.*)\|$", LOSSES.read_text(), re.MULTILINE)
    assert len(rows) == 6
    for reward_at, servers, capacity, load, losses in rows:
        rate = 0.5 * float(load) * int(servers)
        classes = [qu.JobClass(n, rate, r, qu.Linear(1.0), reward_at=reward_at) for n, r in (("a", 20.0), ("b", 10.0))]
        patient = qu.Queue(int(servers), int(capacity), 1.0, classes)
        for theta, told in zip((0.1, 0.3, 1.0, 3.0), losses.split("|"), strict=True):
            queue = qu.Queue(int(servers), int(capacity), 1.0, classes, patience=qu.Exponential(theta))
            earned = qu.evaluate(queue, qu.solve(patient).policy).gain
            assert 100 * (1 - earned / qu.solve(queue).gain) == pytest.approx(float(told), abs=0.0501)


# --- bounds and the rest -------------------------------------------------------------------------------------------


def test_the_bounds_take_the_servers_rate_and_no_best_policy_exceeds_its_bias():
    """g(s) <= rho / (min(S, c) mu) <= Lambda R_max / mu_max, also of V, for any theta."""
    random, tried = np.random.default_rng(8), 0
    for _ in range(200):
        queue = random_queue(random)
        if not queue.abandons:
            continue
        tried += 1
        solution = qu.solve(queue)
        served = min(queue.servers, queue.capacity) * queue.service_rate
        total, first = queue.total_arrival_rate, 2.0 / queue.service_rate
        bound = qu.policy_iteration_bound(queue, solution.gain, (0.5 * total, total), first)
        of_an_episode = (4.0 / queue.service_rate + 14.0 / total) * solution.gain
        span = solution.relative_bias.sum()
        assert span <= bound.b - of_an_episode + 1e-9 * abs(span)
        assert bound.b - of_an_episode == pytest.approx(queue.capacity * total * queue.max_reward / served, rel=1e-9)
        assert (
            solution.relative_bias.max()
            <= qu.value_iteration_bound(queue, solution.gain, (0.5 * total, total), first).b
        )
    assert tried > 60


def test_a_queue_with_patience_as_plain_data_and_as_a_value():
    queue = qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)], patience=qu.Exponential(0.5))
    assert queue.plain_data()["patience"] == {"kind": "exponential", "rate": 0.5}
    assert queue.with_arrival_rates([3.0]).patience_rate == 0.5
    assert queue != qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)])
    for rate in (1e-200, 1e200):
        with pytest.raises(ValueError, match="patience must have a rate between"):
            qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)], patience=qu.Exponential(rate))
    with pytest.raises(ValueError, match="a System takes others"):
        qu.Queue(2, 5, 1.0, [qu.JobClass("a", 1.0, 1.0)], patience=qu.Deterministic(1.0))


def test_a_system_whose_classes_share_a_patience_is_the_queue():
    law, patience = qu.Exponential(0.7), qu.Exponential(0.3)
    classes = [qu.JobClass("a", 1.0, 5.0, qu.Linear(0.1), abandonment_cost=1.0, reward_at="end")]
    queue = qu.Queue(2, 9, 0.7, classes, patience=patience)
    system = qu.System(2, 9, [replace(classes[0], service=law, patience=patience)])
    np.testing.assert_array_equal(system.model.rewards, queue.rewards)
    np.testing.assert_array_equal(system.model.service_rates, queue.service_rates)
