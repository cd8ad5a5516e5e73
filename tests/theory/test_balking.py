"""Arrival rates that depend on the number of jobs: the model, and everything that is computed from it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact import RationalModel, all_policies, rational_optimum, rational_value
from generators import balking_queue, queue_as_system, seeds
from hypothesis import given, settings
from linear_programs import linprog

import queueing_ucrl as qu
from queueing_ucrl.accounts.learner_limits import Flip
from queueing_ucrl.model.balking import LEAST
from queueing_ucrl.model.tabular_bounds import local_diameters, tick_laws

FEW = settings(max_examples=25, deadline=None)


def test_each_kind_is_its_formula() -> None:
    assert qu.GeometricBalking(0.5).joins(4) == [1.0, 0.5, 0.25, 0.125]
    assert qu.GeometricBalking(0.5, above=2).joins(5) == [1.0, 1.0, 1.0, 0.5, 0.25]
    assert qu.GeometricBalking(0.0).joins(3) == [1.0, 0.0, 0.0]
    assert qu.LinearBalking(4).joins(6) == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    assert qu.LinearBalking(2, above=1).joins(5) == [1.0, 1.0, 0.5, 0.0, 0.0]
    assert qu.BalkingTable([0.2, 0.9]).joins(4) == [0.2, 0.9, 0.9, 0.9]


def test_what_no_uniform_number_can_be_below_is_zero() -> None:
    """A uniform number is a multiple of 2^-53: model and engines agree that nobody comes there."""
    probabilities = qu.GeometricBalking(2.0**-26).probabilities(4)
    assert probabilities.tolist() == [1.0, 2.0**-26, 2.0**-52, 0.0]
    assert LEAST == 2.0**-53


def test_rates_by_state_are_a_rate_and_a_table() -> None:
    job = qu.JobClass("a", arrival_rates=[0.5, 2.0, 1.0], reward=1.0)
    assert job == qu.JobClass("a", 2.0, 1.0, balking=qu.BalkingTable([0.25, 1.0, 0.5]))
    queue = qu.Queue(1, 5, 1.0, [job])
    assert queue.model.arrival_rates[:, 0].tolist() == [0.5, 2.0, 1.0, 1.0, 1.0]
    assert queue.plain_data()["classes"][0]["balking"] == {"kind": "table", "probability": (0.25, 1.0, 0.5)}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: qu.GeometricBalking(1.5), "balking: ratio must be from 0 to 1, got 1.5"),
        (lambda: qu.GeometricBalking(0.5, above=-1), "balking: above must be a whole number of at least 0"),
        (lambda: qu.LinearBalking(0.0), "balking: limit must be a positive finite number"),
        (lambda: qu.BalkingTable([]), "probability must hold at least one number"),
        (lambda: qu.BalkingTable([0.0, 0.0]), "a probability at least must be positive"),
        (lambda: qu.BalkingTable([0.5, 2.0]), "probability 1 must be from 0 to 1"),
        (lambda: qu.JobClass("a", 1.0, 1.0, balking=0.5), "class 'a': balking must be such as GeometricBalking"),
        (lambda: qu.JobClass("a", reward=1.0, arrival_rates=[0.0]), "must hold a positive rate at least"),
        (lambda: qu.JobClass("a", 2.0, 1.0, arrival_rates=[1.0]), "arrival_rates and arrival_rate must not both"),
        (
            lambda: qu.JobClass("a", reward=1.0, arrival_rates=[1.0], balking=qu.LinearBalking(3)),
            "arrival_rates and balking must not both be given",
        ),
        (
            lambda: qu.Queue(1, 1, 1.0, [qu.JobClass("a", reward=1.0, arrival_rates=[0.0, 1.0])]),
            "class 'a': balking: none of its jobs ever joins fewer than 1",
        ),
    ],
)
def test_what_is_wrong_is_named(make, words) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_a_balking_of_ones_own_is_checked() -> None:
    class Odd(qu.Balking):
        def joins(self, states):
            return [1.0, 2.0]

    with pytest.raises(ValueError, match="must give 4 probabilities, got 2"):
        qu.Queue(1, 4, 1.0, [qu.JobClass("a", 1.0, 1.0, balking=Odd())])
    with pytest.raises(ValueError, match="probability to join 1 jobs must be from 0 to 1"):
        Odd().probabilities(2)


def test_the_optimum_is_the_best_of_all_policies_in_exact_arithmetic() -> None:
    """Two classes, three places: all 64 policies."""
    classes = [
        qu.JobClass("a", 1.0, 5.0, balking=qu.BalkingTable([1.0, 0.5, 0.25])),
        qu.JobClass("b", arrival_rates=[0.5, 1.0, 2.0], reward=2.0),
    ]
    queue = qu.Queue(1, 3, 1.0, classes)
    lam = [[Fraction(1), Fraction(1, 2)], [Fraction(1, 2), Fraction(1)], [Fraction(1, 4), Fraction(2)]]
    model = RationalModel(lam, [[Fraction(5), Fraction(2)]] * 3, [Fraction(0), *[Fraction(1)] * 3])
    best = max(rational_value(model, table).gain for table in all_policies(3, 2))
    assert rational_optimum(model)[1].gain == best
    for method in ("pi-b", "pi", "vi", "vi-ae", "lp"):
        assert qu.solve(queue, method).gain == pytest.approx(float(best), rel=1e-8)


@given(seeds)
@FEW
def test_measures_balance_what_comes_with_what_leaves(seed: int) -> None:
    queue = balking_queue(np.random.default_rng(seed))
    policy = qu.solve(queue).policy
    law, rates = qu.evaluate(queue, policy).stationary, queue.rates_by_state
    seen = qu.performance(queue, policy)
    asks = law @ rates
    np.testing.assert_allclose(seen.asking * queue.arrival_rates, asks, rtol=1e-9)
    everybody = seen.admission + seen.rejection + law[-1] * queue.joins[-1] / seen.asking
    np.testing.assert_allclose(everybody, 1.0, rtol=1e-9)
    served = queue.service_rate * float(law @ np.minimum(np.arange(law.size), queue.servers))
    assert seen.throughput == pytest.approx(served, rel=1e-8)
    assert seen.gain == pytest.approx(
        float((law[:-1, None] * rates[:-1] * policy.admits * queue.rewards).sum()), rel=1e-6, abs=1e-9
    )


@given(seeds)
@FEW
def test_other_ways_to_the_optimum_agree(seed: int) -> None:
    """In time with constant rates, in an environment that changes nothing, as a system: one number."""
    queue = balking_queue(np.random.default_rng(seed))
    best, system = qu.solve(queue), queue_as_system(queue)
    assert system.not_markov == ""
    assert qu.solve(system).gain == pytest.approx(best.gain, rel=1e-12)
    assert qu.Drift(queue).gain(best.policy) == pytest.approx(best.gain, rel=1e-8, abs=1e-9 * queue.max_reward)
    nothing = qu.Environment([[0.0, 1.0], [2.0, 0.0]], [1.0, 1.0])
    seen = qu.solve(replace(system, environment=nothing))
    assert seen.gain == pytest.approx(best.gain, rel=1e-8, abs=1e-9 * queue.max_reward)


def test_in_time_the_best_policy_of_constant_rates_is_the_optimum() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    assert qu.solve_periodic(queue).gain == pytest.approx(qu.solve(queue).gain, rel=1e-8)
    changing = [replace(c, pattern=qu.Sinusoid(0.6, 60.0)) for c in queue.classes]
    drifting = qu.Queue(5, 20, 0.3, changing)
    best = qu.solve_periodic(drifting)
    for policy in best.policies:
        assert best.gain >= qu.Drift(drifting).gain(policy) - 1e-7 * best.gain


def test_by_counts_classes_of_equal_service_are_one_chain() -> None:
    rates = ([2.0, 1.0, 0.5, 0.25], [0.5, 1.0, 1.5])
    classes = [
        qu.JobClass(f"class {i}", arrival_rates=table, reward=reward, service=qu.Exponential(1.0 + 1e-12 * i))
        for i, (table, reward) in enumerate(zip(rates, (3.0, 1.0), strict=True))
    ]
    system = qu.System(4, 4, classes)  # no waiting room; a hair apart, so that it goes by counts
    alike = qu.Queue(4, 4, 1.0, [replace(c, service=None) for c in classes])
    assert system.not_markov
    assert qu.solve(system).gain == pytest.approx(qu.solve(alike).gain, rel=1e-9)


@given(seeds)
@FEW
def test_the_diameter_is_that_of_first_step_equations(seed: int) -> None:
    queue = balking_queue(np.random.default_rng(seed))
    S, total = queue.capacity, queue.rates_by_state[:-1].sum(axis=1)
    U = queue.total_arrival_rate + queue.max_service_rate
    if np.any(total == 0.0):
        assert qu.diameter(queue) == np.inf
        return
    up, exact = Fraction(0), Fraction(0)
    for s in range(S):
        up = (1 + Fraction(float(queue.service_rates[s])) * up) / Fraction(float(total[s]))
        exact += up
    down = sum(1 / Fraction(float(mu)) for mu in queue.service_rates[1:])
    assert float(np.log10(float(max(exact, down)))) + np.log10(U) == pytest.approx(qu.log10_diameter(queue), rel=1e-9)


@given(seeds)
@FEW
def test_ticks_are_those_of_the_uniformized_chain(seed: int) -> None:
    """Who balks is a tick at which nothing happens: rows are laws, and their drift that of the rates."""
    queue = balking_queue(np.random.default_rng(seed))
    laws, U = tick_laws(queue), queue.total_arrival_rate + queue.max_service_rate
    np.testing.assert_allclose(laws.sum(axis=2), 1.0, rtol=1e-12)
    np.testing.assert_allclose(laws[:-1, -1, 2] * U, queue.rates_by_state[:-1].sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(laws[:, 0, 0] * U, queue.service_rates, rtol=1e-9)
    assert local_diameters(queue).shape == (queue.capacity + 1,)


def test_what_holds_for_constant_rates_only_refuses() -> None:
    queue = qu.load_scenario("lunch-counter").queue
    refused = "for arrival rates that are the same in all states, but jobs of this queue balk"
    with pytest.raises(ValueError, match=refused):
        qu.policy_iteration_bound(queue, 1.0, (1.0, 4.0), 10.0)
    with pytest.raises(ValueError, match=refused):
        qu.diameter_lower_bound(queue)
    with pytest.raises(ValueError, match=refused):
        Flip.between(queue, qu.Policy.admit_all(20, 2))
    with pytest.raises(ValueError, match=refused):
        qu.simulate(queue, "oracle", horizon=100.0).decomposition()


ODD = {
    "nobody from 2 on": [1.0, 0.5, 0.0],
    "only one who is alone": [1.0, 0.0],
    "only where somebody is": [0.0, 1.0],
    "a gap": [1.0, 0.0, 1.0],
    "longer than the room": [1.0] * 3 + [0.5] * 60,
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("capacity", [1, 2, 5])
@pytest.mark.parametrize("unit", [1.0, 2.0**-40, 2.0**40])
def test_odd_tables_have_the_exact_optimum_in_any_unit(name: str, capacity: int, unit: float) -> None:
    """Every policy in exact arithmetic; powers of two change no digit."""
    probability = ODD[name]
    table = [probability[min(s, len(probability) - 1)] for s in range(capacity)]
    classes = [qu.JobClass("a", 2.0 * unit, 5.0 / unit, qu.Linear(1.0), balking=qu.BalkingTable(probability))]
    if not any(table):
        with pytest.raises(ValueError, match="none of its jobs ever joins fewer than"):
            qu.Queue(2, capacity, 1.0 * unit, classes)
        return
    queue = qu.Queue(2, capacity, 1.0 * unit, classes)
    model = RationalModel.of(queue.model)
    best = max(rational_value(model, policy).gain for policy in all_policies(capacity, 1))
    for method in ("pi-b", "pi", "vi", "vi-ae", "lp"):
        assert qu.solve(queue, method).gain == pytest.approx(float(best), rel=1e-8, abs=1e-12)
    mean_up = sum(1.0 / rate if rate else np.inf for rate in (2.0 * unit * b for b in table))
    assert (qu.diameter(queue) == np.inf) == (mean_up == np.inf)


@given(seeds)
@FEW
def test_the_optimum_by_state_is_that_of_a_linear_program(seed: int) -> None:
    """max sum x(s, a) reward over the laws of balance: states and sets of admitted classes, each its own variable."""
    random = np.random.default_rng(seed)
    S, m = int(random.integers(1, 7)), int(random.integers(1, 3))
    rates = random.uniform(0.0, 2.0, (S, m)) * (random.random((S, m)) < 0.8)
    rates[0, 0] += 0.1
    rewards, service = random.uniform(-3.0, 10.0, (S, m)), np.append(0.0, random.uniform(0.2, 3.0, S))
    sets = list(itertools.product([0, 1], repeat=m))
    variables = [(s, chosen) for s in range(S) for chosen in sets] + [(S, sets[0])]
    up = np.array([rates[s] @ chosen if s < S else 0.0 for s, chosen in variables])
    gain = np.array([(rates[s] * rewards[s]) @ chosen if s < S else 0.0 for s, chosen in variables])
    balance = np.zeros((S + 1, len(variables)))
    for k, (s, _) in enumerate(variables):
        balance[S, k] = 1.0
        if s < S:
            balance[s, k] += up[k]  # across the cut between s and s + 1
        if s > 0:
            balance[s - 1, k] -= service[s]
    answer = linprog(-gain, A_eq=balance, b_eq=np.append(np.zeros(S), 1.0), bounds=(0.0, None))
    model = qu.AdmissionModel(rates, rewards, service)
    assert qu.solve(model).gain == pytest.approx(-answer.fun, rel=1e-7, abs=1e-7)
    policy = qu.Policy(random.random((S, m)) < 0.6)
    exact = rational_value(RationalModel.of(model), policy.admits.tolist())
    assert qu.evaluate(model, policy).gain == pytest.approx(float(exact.gain), rel=1e-10, abs=1e-12)
