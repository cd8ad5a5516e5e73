"""A legal model always gets its best policy: on queues and models of every family, and against exact arithmetic."""

import numpy as np
import pytest
from exact import RationalModel, precise_value, rational_optimum, rational_value
from generators import FAMILIES, model_of, random_policy

import queueing_ucrl as qu
from queueing_ucrl.solvers.policy_iteration import TIE, evaluation_error
from queueing_ucrl.solvers.trunk_search import LARGEST_SEARCH

GAIN_CLAIM = 1e-9  # relative
MOST_ITERATIONS = 60  # twice what any of them takes: levels that creep would take hundreds


def two_classes(system, first, second):
    """A queue of (servers, capacity, service rate) with classes a and b of (arrival rate, reward, holding cost)."""
    return qu.Queue(*system, [qu.JobClass("a", *first), qu.JobClass("b", *second)])


DEADLINES = [
    qu.Queue(1, 300, 1.0, [qu.JobClass("a", 2.0, 10.0, qu.Deadline(5.0, 210.0))]),
    qu.Queue(10, 150, 1.0, [qu.JobClass("a", 15.0, 10.0, qu.Deadline(8.0, 13.5))]),
    two_classes(
        (13, 150, 4.5),
        (14.0, 5.58, qu.Power(1.0, 2.0)),
        (94.5, 5.61, qu.PiecewiseLinear([(3.0, 0.0), (6.0, 1.7)])),
    ),
]
RARE, FLOOD = qu.JobClass("rare", 1e-9, 1e9), qu.JobClass("flood", 1e6, 1.0, qu.Linear(1e-3))
FORTUNES = qu.Queue(2, 12, 1.0, [RARE, FLOOD, qu.JobClass("third", 1.0, 1.5, qu.Linear(0.03))])


def assert_solved(model):
    """PI-B answers, its gain is that of PI, and the levels did not creep."""
    solution, plain = qu.solve(model), qu.solve(model, "pi")
    assert abs(solution.gain - plain.gain) <= GAIN_CLAIM * abs(plain.gain)
    assert max(solution.iterations, plain.iterations) <= MOST_ITERATIONS
    return solution


def solve_chunk(family, seeds):
    for seed in seeds:
        model = model_of(family, [9, seed])
        policy = assert_solved(model).policy
        if seed % 10 == 0:
            random = np.random.default_rng(seed)
            assert qu.solve(model, start=random_policy(random, *model.rewards.shape, random.random())).policy == policy
            order = random.permutation(model.class_count)
            turned = qu.AdmissionModel(model.arrival_rates[:, order], model.rewards[:, order], model.service_rates)
            assert np.array_equal(qu.solve(turned).policy.admits, policy.admits[:, order])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_model_is_solved(family):
    solve_chunk(family, range(40))


CHUNK = 500
COUNTS = {"overloaded, with a deadline": 4000, "two classes, flat at first": 4000}  # of the others 2,000 each


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "first"), [(f, first) for f in FAMILIES for first in range(0, COUNTS.get(f, 2000), CHUNK)]
)
def test_every_one_of_22_000_models_is_solved(family, first):
    solve_chunk(family, range(1000 + first, 1000 + first + CHUNK))


# --- against exact arithmetic ----------------------------------------------------------------------------------------


def gain_left(model, policy):
    """In digits to spare: (rho, an upper bound on rho* - rho).

    rho* - rho = sum_s p*(s) sum_i lambda_i(s) (what deciding otherwise in s for i would gain) for the best policy's
    p*, and that is at most its largest term.
    """
    value = precise_value(model, policy.admits)
    gained = np.where(policy.admits, -1.0, 1.0) * (model.rewards - value.relative_bias[:, None])
    return value.gain, float((model.arrival_rates * np.maximum(gained, 0.0)).sum(axis=1).max())


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("rewards over twelve decades", "any model")])
def test_exact_arithmetic_finds_no_better_policy(family):
    for seed in range(6):
        model = model_of(family, [1, seed])
        rho, left = gain_left(model, qu.solve(model).policy)
        assert left <= GAIN_CLAIM * rho


def as_table(policy):
    return tuple(map(tuple, policy.admits.tolist()))


def assert_best_in_rationals(model):
    """The gain is the best one's up to a few TIE, the exact ties are admitted, and the rest are nearly ties."""
    exact = RationalModel.of(model)
    best, value = rational_optimum(exact)
    admits = qu.solve(model).policy.admits
    gain = rational_value(exact, as_table(qu.Policy(admits))).gain
    assert value.gain - gain <= 10 * TIE * abs(value.gain)
    bias = np.array([float(g) for g in value.relative_bias])[:, None]
    near = np.abs(model.rewards - bias) <= 1e-9 * (np.abs(model.rewards) + np.abs(bias))
    assert np.all((admits == np.array(best)) | near)
    return admits, np.array(best)


@pytest.mark.parametrize("family", ["rewards over twelve decades", "small", "any queue", "any model"])
def test_small_models_have_the_policy_that_rationals_find(family):
    tried = 0
    for seed in range(200):
        model = model_of(family, [2, seed])
        if model.capacity <= 12:
            assert_best_in_rationals(model)
            tried += 1
    assert tried >= 40


@pytest.mark.parametrize("queue", DEADLINES)
@pytest.mark.parametrize("method", ["pi-b", "pi", "vi-ae", "lp", "trunk-search"])
def test_queues_whose_places_are_worth_what_they_pay(queue, method):
    """r - g falls below rounding in many states: all methods end, those that admit ties with the same policy."""
    model, best = queue.model, qu.solve(queue)
    if method == "trunk-search" and (queue.capacity + 1) ** len(queue.classes) * model.rewards.size > LARGEST_SEARCH:
        pytest.skip("too many policies")
    solution = qu.solve(queue, method)
    assert solution.gain == pytest.approx(best.gain, rel=1e-10)
    if method != "pi":
        assert solution.policy == best.policy
    rho, left = gain_left(model, solution.policy)
    assert left <= GAIN_CLAIM * rho


@pytest.mark.parametrize("method", ["pi-b", "pi", "vi-ae", "lp", "trunk-search"])
def test_a_fortune_that_hardly_ever_comes_does_not_blur_the_rest(method):
    """Equal is of the numbers compared: 1e-11 of the largest reward is a hundredth of what the others pay."""
    admits, best = assert_best_in_rationals(FORTUNES.model)
    assert np.array_equal(admits, best)
    solution = qu.solve(FORTUNES, method)
    assert np.array_equal(solution.policy.admits, best)
    assert solution.gain == pytest.approx(3.4698035, rel=1e-7)


LATE = qu.PiecewiseLinear([(2.7022093653772536, 0.0), (7.800233650724933, 565646.903258307)])
FLOODS = [
    two_classes(
        (7, 71, 1.1721260608658088),
        (2954875.055588342, 426732.5980427791, LATE),
        (13.989635314612478, 85562.5019118545),
    ),
    two_classes(
        (3, 60, 1.9136023722848146),
        (2815881.0013644453, 11930.834778263159, qu.Deadline(6814.317446158973, 6.597370327139996)),
        (4.262696227594549, 1758.5934876163374),
    ),
]


@pytest.mark.parametrize("method", ["pi-b", "pi"])
@pytest.mark.parametrize("queue", FLOODS)
def test_more_jobs_than_can_be_served_do_not_multiply_what_is_taken_for_equal(queue, method):
    """Half a million times as many: 1e-11 of g in a state, times so many arrivals, would be 1e-6 of the gain."""
    rho, left = gain_left(queue.model, qu.solve(queue, method).policy)
    assert left <= GAIN_CLAIM * rho


BENT = qu.PiecewiseLinear([(4.935028313206627, 0.0), (9.870056626413254, 1.1576708976277732)])
CLOSED = [  # the improved policy closes a state in the middle; above it its bias is rounding, as large as 1e34
    two_classes(
        (16, 875, 3.1458772203854943),
        (80.29193939253966, 3.5463576316719583, BENT),
        (193.29793559212624, 3.791047839253265, qu.Deadline(6.98620635279518, 4.416393366174227)),
    ),
    two_classes(
        (31, 1463, 1.10220505346267),
        (63.20209067052208, 5.543733844007636, qu.Deadline(8.14113559050595, 18.20677052198128)),
        (15.313778272626708, 5.02212086854426, qu.Power(1.494191367875831e-06, 4.0)),
    ),
]


@pytest.mark.parametrize("queue", CLOSED)
def test_who_ties_by_rounding_alone_is_turned_away_again(queue):
    solution = qu.solve(queue)
    assert solution.policy.is_trunk_reservation
    assert solution.gain == pytest.approx(qu.solve(queue, "pi").gain, rel=1e-10)
    rho, left = gain_left(queue.model, solution.policy)
    assert left <= GAIN_CLAIM * rho


# --- the allowance ---------------------------------------------------------------------------------------------------


def bias_and_error(model, policy):
    value = qu.evaluate(model, policy)
    birth = np.append((policy.admits * model.arrival_rates).sum(axis=1), 0.0)
    earned = np.append((policy.admits * model.arrival_rates * model.rewards).sum(axis=1), 0.0)
    error = np.empty(model.capacity)
    law, bias = value.stationary, value.relative_bias
    evaluation_error(birth, model.service_rates, earned, value.gain, law, bias, error)
    return bias, error


@pytest.mark.parametrize("family", FAMILIES)
def test_the_error_of_the_evaluation_is_within_what_is_allowed_for_it(family):
    """Best policies and random ones, against exact values: |g - exact| <= e, and e is no wild exaggeration."""
    shares = []
    for seed in range(4):
        model = model_of(family, [3, seed])
        random = np.random.default_rng(seed)
        for policy in (qu.solve(model).policy, random_policy(random, *model.rewards.shape, 0.8)):
            exact = precise_value(model, policy.admits).relative_bias
            bias, error = bias_and_error(model, policy)
            known = np.isfinite(bias) & (np.abs(exact) < 1e250)
            wrong = np.abs(bias - exact)[known]
            assert np.all(wrong <= error[known])
            shares.append((wrong / np.where(wrong > 0, error[known], 1.0)).max(initial=0.0))
    assert max(shares) > 1e-3


# --- what cannot be waited for ---------------------------------------------------------------------------------------


def queue_of_two_rates(first, second):
    cost = qu.Linear(0.1)
    return qu.Queue(2, 12, 1.0, [qu.JobClass("a", first, 3.0, cost), qu.JobClass("b", second, 2.0, cost)])


def gain_or_reason(queue, method):
    try:
        return qu.solve(queue, method).gain
    except qu.SolverError as error:
        return str(error)


@pytest.mark.parametrize("method", ["vi", "vi-ae"])
@pytest.mark.parametrize("rates", [(1e-9, 1e9), (1e9, 1e-9), (1.0, 1e18), (1e-18, 1.0)])
def test_value_iteration_ends_on_rates_over_18_decades(method, rates, monkeypatch):
    """With an answer, or with the reason why there is none."""
    monkeypatch.setattr("queueing_ucrl.solvers.value_iteration.MOST_WORK", 10**7)
    queue = queue_of_two_rates(*rates)
    answer = gain_or_reason(queue, method)
    assert answer == pytest.approx(qu.solve(queue).gain, rel=1e-9) or "use pi-b" in str(answer)


@pytest.mark.parametrize("method", ["vi", "vi-ae"])
def test_value_iteration_says_what_its_sweeps_cannot_do(method, monkeypatch):
    monkeypatch.setattr("queueing_ucrl.solvers.value_iteration.MOST_WORK", 10**6)
    with pytest.raises(qu.SolverError, match=r"has not ended after \d+ sweeps.*1 / 1e\+09.*slowest.*1e-09: use pi-b"):
        qu.solve(queue_of_two_rates(1e9, 1e-9), method)
