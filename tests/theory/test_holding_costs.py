"""Expected holding costs under Erlang waits, against exact arithmetic: every kind, every state, far tails."""

import math

import numpy as np
import pytest
from exact import PreciseWaits, largest_relative_error
from generators import random_queue

import queueing_ucrl as qu
from queueing_ucrl.model.waits import ErlangWaits

CLAIM = 1e-12
CUSTOM_CLAIM = 1e-9
SERVERS_AND_RATES = [(1, 1.0), (3, 0.7), (5, 0.3), (40, 1e-3), (7, 1e4)]
STAGES = [1, 2, 30, 3000]


def both_waits(servers, service_rate, stages):
    return ErlangWaits(servers, service_rate, stages), PreciseWaits(servers, service_rate, stages)


def assert_all_states_exact(cost, exact, waits, smallest="1e-250"):
    expected = cost.expected(waits)
    assert expected.shape == (waits.stages,)
    assert np.all(expected >= 0)
    assert largest_relative_error(expected, exact, smallest) <= CLAIM


@pytest.mark.parametrize("stages", [*STAGES, 10_000])
@pytest.mark.parametrize(("servers", "rate"), SERVERS_AND_RATES)
def test_linear_cost_is_exact(servers, rate, stages):
    waits, exact = both_waits(servers, rate, stages)
    assert_all_states_exact(qu.Linear(1.0), exact.mean(), waits)
    assert largest_relative_error(waits.mean, exact.mean()) <= CLAIM


@pytest.mark.parametrize("exponent", [0.01, 0.5, 1.0, 1.5, 2.0, 3.7, 12.0, 40.5])
@pytest.mark.parametrize("stages", [*STAGES, 10_000])
@pytest.mark.parametrize(("servers", "rate"), [(1, 1.0), (5, 0.3), (40, 1e-3)])
def test_power_cost_is_exact(servers, rate, stages, exponent):
    waits, exact = both_waits(servers, rate, stages)
    assert_all_states_exact(qu.Power(1.0, exponent), exact.moment(exponent), waits)


def test_power_cost_with_exponent_one_is_linear():
    waits = ErlangWaits(5, 0.3, 500)
    np.testing.assert_allclose(qu.Power(0.1, 1.0).expected(waits), qu.Linear(0.1).expected(waits), rtol=CLAIM)


@pytest.mark.parametrize("decay", [1e-12, 1e-3, 0.3, 1.0, 50.0, 1e6])
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize(("servers", "rate"), SERVERS_AND_RATES)
def test_saturating_cost_is_exact(servers, rate, stages, decay):
    waits, exact = both_waits(servers, rate, stages)
    assert_all_states_exact(qu.Saturating(1.0, decay), exact.transform_complement(decay), waits)


# due dates by nu * t: from certain to be late to a chance of 1e-250 and below, at the mean and far from it
SCALED_TIMES = [1e-9, 0.1, 1.0, 7.3, 15.9, 16.0, 25.0, 100.0, 333.3, 571.0, 700.0, 745.0, 900.0, 2500.0, 4200.0]


@pytest.mark.parametrize("scaled", SCALED_TIMES)
@pytest.mark.parametrize(("servers", "rate"), SERVERS_AND_RATES)
def test_deadline_cost_is_exact_down_to_the_far_tail(servers, rate, scaled):
    waits, exact = both_waits(servers, rate, 3000)
    due = scaled / (servers * rate)
    assert_all_states_exact(qu.Deadline(1.0, due), exact.survival(due), waits)


@pytest.mark.parametrize("scaled", [500.0, 5000.0, 9990.0, 10_500.0, 11_585.36, 12_960.55, 13_500.0])
@pytest.mark.parametrize(("servers", "rate"), [(5, 0.3), (28, 36.28626123741474)])
def test_deadline_cost_is_exact_with_ten_thousand_stages(servers, rate, scaled):
    waits, exact = both_waits(servers, rate, 10_000)
    due = scaled / (servers * rate)
    assert_all_states_exact(qu.Deadline(1.0, due), exact.survival(due), waits)


def test_every_wait_is_late_for_a_deadline_of_zero():
    assert qu.Deadline(3.0, 0.0).expected(ErlangWaits(2, 1.0, 9)).tolist() == [3.0] * 9


@pytest.mark.parametrize("scaled", SCALED_TIMES)
@pytest.mark.parametrize(("servers", "rate"), SERVERS_AND_RATES)
def test_cost_that_starts_late_is_exact(servers, rate, scaled):
    """(t - d)^+: nothing up to d, then linear."""
    waits, exact = both_waits(servers, rate, 3000)
    late = scaled / (servers * rate)
    points = [(0.0, 0.0), (late, 0.0), (2 * late, late)]
    assert_all_states_exact(qu.PiecewiseLinear(points), exact.piecewise_linear(points), waits)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.1, 1.0, 4.0, 30.0, 400.0])
@pytest.mark.parametrize("scaled", [0.0, 0.5, 7.3, 60.0, 333.3, 700.0, 2500.0])
def test_a_ramp_of_any_width_is_exact(scaled, width):
    """Nothing up to d, a ramp of the given width (in departures), flat after it."""
    servers, rate = 5, 0.3
    waits, exact = both_waits(servers, rate, 3000)
    nu = servers * rate
    start, end = scaled / nu, (scaled + width) / nu
    points = [(0.0, 0.0), *([(start, 0.0)] if start else []), (end, 1.0), (end + 1.0, 1.0)]
    assert_all_states_exact(qu.PiecewiseLinear(points), exact.piecewise_linear(points), waits)


@pytest.mark.parametrize("shift", [1.0, 100.0, 1000.0])
def test_a_ramp_is_exact_with_ten_thousand_stages(shift):
    waits, exact = both_waits(1, 1.0, 10_000)
    points = [(0.0, 0.0), (9000.0, 0.0), (9000.0 + shift, 2.0), (9001.0 + shift, 2.0)]
    assert_all_states_exact(qu.PiecewiseLinear(points), exact.piecewise_linear(points), waits)


def test_a_cost_of_many_pieces_is_exact():
    random = np.random.default_rng(8)
    for _ in range(20):
        times = np.cumsum(10.0 ** random.uniform(-4, 2, 8))
        values = np.cumsum(random.choice([0.0, 1.0], 8) * 10.0 ** random.uniform(-3, 3, 8))
        points = [(0.0, 0.0), *zip(times.tolist(), values.tolist(), strict=True)]
        waits, exact = both_waits(int(random.integers(1, 9)), float(10.0 ** random.uniform(-1, 1)), 400)
        assert_all_states_exact(qu.PiecewiseLinear(points), exact.piecewise_linear(points), waits)


def test_free_waiting_costs_nothing():
    assert qu.Free().expected(ErlangWaits(2, 1.0, 3)).tolist() == [0.0, 0.0, 0.0]


# --- any function ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "breaks", "known"),
    [
        (lambda t: 0.1 * t, (), qu.Linear(0.1)),
        (lambda t: t**3, (), qu.Power(1.0, 3.0)),
        (lambda t: 2.0 * t**2.5, (), qu.Power(2.0, 2.5)),
        (lambda t: -4.0 * math.expm1(-0.3 * t), (), qu.Saturating(4.0, 0.3)),
        (lambda t: 5.0 if t > 3.0 else 0.0, (3.0,), qu.Deadline(5.0, 3.0)),
        (lambda t: max(0.0, t - 2.0), (2.0,), qu.PiecewiseLinear([(2.0, 0.0), (3.0, 1.0)])),
        (lambda t: min(t, 6.0), (6.0,), qu.PiecewiseLinear([(6.0, 6.0), (7.0, 6.0)])),
    ],
    ids=["linear", "cube", "power", "saturating", "jump", "kink", "ceiling"],
)
@pytest.mark.parametrize(("servers", "rate", "stages"), [(1, 1.0, 15), (5, 0.3, 45), (3, 2.0, 2000)])
def test_any_function_agrees_with_the_closed_form(function, breaks, known, servers, rate, stages):
    waits = ErlangWaits(servers, rate, stages)
    expected = qu.Custom(function, breaks).expected(waits)
    np.testing.assert_allclose(expected, known.expected(waits), rtol=CUSTOM_CLAIM)


def test_a_jump_and_a_kink_together_agree_with_the_closed_form():
    waits = ErlangWaits(4, 0.5, 300)
    cost = qu.Custom(lambda t: 0.5 * t + (3.0 if t > 2.0 else 0.0) + max(0.0, t - 20.0), breaks=(2.0, 20.0))
    parts = [qu.Linear(0.5), qu.Deadline(3.0, 2.0), qu.PiecewiseLinear([(20.0, 0.0), (21.0, 1.0)])]
    np.testing.assert_allclose(cost.expected(waits), sum(p.expected(waits) for p in parts), rtol=CUSTOM_CLAIM)


def test_exponential_growth_below_the_rate_of_service_has_its_mean():
    """E[e^{aW}] = (nu / (nu - a))^k for a < nu."""
    waits = ErlangWaits(2, 1.0, 12)
    expected = qu.Custom(lambda t: math.expm1(0.5 * t)).expected(waits)
    exact = np.array([(2.0 / 1.5) ** k - 1.0 for k in range(1, 13)])
    np.testing.assert_allclose(expected, exact, rtol=CUSTOM_CLAIM)


def test_a_jump_that_is_not_named_is_refused():
    with pytest.raises(ValueError, match="a jump or a kink that is not among its breaks"):
        qu.Custom(lambda t: 5.0 if t > 3.0 else 0.0).expected(ErlangWaits(1, 1.0, 15))


def test_a_decreasing_function_is_refused():
    with pytest.raises(ValueError, match="must not be negative or decrease"):
        qu.Custom(lambda t: t * (10.0 - t)).expected(ErlangWaits(1, 1.0, 15))


def test_a_negative_function_is_refused():
    with pytest.raises(ValueError, match="must not be negative or decrease"):
        qu.Custom(lambda t: -t).expected(ErlangWaits(1, 1.0, 15))


def test_a_function_that_does_not_start_at_zero_is_refused():
    with pytest.raises(ValueError, match=r"C\(0\) must be 0, got 1\.0"):
        qu.Custom(lambda t: 1.0 + t)


@pytest.mark.parametrize("growth", [1.0, 1.0001, 1.5, 3.0])
def test_exponential_growth_without_a_mean_is_refused(growth):
    """E[e^{aW}] is infinite for a >= nu, whether the function overflows to inf or raises."""
    waits = ErlangWaits(1, 1.0, 5)
    with pytest.raises(ValueError, match="custom cost: not finite at a wait of"):
        qu.Custom(lambda t: math.expm1(growth * t)).expected(waits)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="custom cost: not finite at a wait of"):
        qu.Custom(lambda t: float(np.expm1(growth * t))).expected(waits)


def test_a_function_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite at a wait of"):
        qu.Custom(lambda t: math.inf if t > 2.0 else t).expected(ErlangWaits(1, 1.0, 5))


def test_an_error_in_a_cost_names_its_class():
    queue = qu.Queue(1, 9, 1.0, [qu.JobClass("odd", 1.0, 5.0, lambda t: t * (3.0 - t))])
    with pytest.raises(ValueError, match="class 'odd': custom cost: must not be negative or decrease"):
        _ = queue.rewards


# --- in the queue ----------------------------------------------------------------------------------------------------


def test_rewards_are_the_reward_less_the_expected_cost_of_the_departures_ahead():
    """In state s >= c a job waits for s - c + 1 departures: r(s) = R - 0.1 (s - c + 1) / (c mu)."""
    queue = qu.Queue(3, 10, 0.5, [qu.JobClass("a", 1.0, 20.0, qu.Linear(0.1)), qu.JobClass("b", 1.0, 7.0)])
    waits = [max(0, s - 3 + 1) / 1.5 for s in range(10)]
    np.testing.assert_allclose(queue.mean_waits, waits, rtol=1e-15)
    np.testing.assert_allclose(queue.rewards[:, 0], [20.0 - 0.1 * w for w in waits], rtol=1e-15)
    assert queue.rewards[:, 1].tolist() == [7.0] * 10


@pytest.mark.parametrize("servers", [6, 7, 100])
@pytest.mark.parametrize(
    "cost",
    [
        qu.Free(),
        qu.Linear(9.0),
        qu.Power(9.0, 2.5),
        qu.Saturating(9.0, 1.0),
        qu.Deadline(9.0, 0.0),
        qu.PiecewiseLinear([(1.0, 9.0)]),
        qu.Custom(lambda t: 9.0 * t),
    ],
    ids=lambda cost: type(cost).__name__,
)
def test_nobody_waits_with_a_server_for_every_place(cost, servers):
    queue = qu.Queue(servers, 6, 1.0, [qu.JobClass("a", 1.0, 5.0, cost)])
    assert queue.rewards.tolist() == [[5.0]] * 6
    assert queue.mean_waits.tolist() == [0.0] * 6
    assert queue.service_rates.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert queue.max_service_rate == 6.0


def test_rewards_never_rise_with_the_state():
    random = np.random.default_rng(4)
    for _ in range(200):
        rewards = random_queue(random, largest_capacity=80).rewards
        assert np.all(np.diff(rewards, axis=0) <= 1e-13 * np.abs(rewards[0]))


def test_costs_follow_their_definition():
    t = np.array([0.0, 1.0, 2.0, 4.0])
    assert qu.Free()(t).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert qu.Linear(0.5)(t).tolist() == [0.0, 0.5, 1.0, 2.0]
    assert qu.Power(3.0, 2.0)(t).tolist() == [0.0, 3.0, 12.0, 48.0]
    np.testing.assert_allclose(qu.Saturating(2.0, math.log(2.0))(t), [0.0, 1.0, 1.5, 1.875], rtol=1e-15)
    assert qu.Deadline(5.0, 2.0)(t).tolist() == [0.0, 0.0, 0.0, 5.0]
    assert qu.PiecewiseLinear([(1.0, 0.0), (3.0, 4.0)])(t).tolist() == [0.0, 0.0, 2.0, 6.0]
    assert qu.Custom(lambda x: x * x)(t).tolist() == [0.0, 1.0, 4.0, 16.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qu.Linear(-0.1), "linear cost: rate must be a number that is not negative, got -0.1"),
        (lambda: qu.Linear(math.nan), "linear cost: rate"),
        (lambda: qu.Power(1.0, 0.0), "power cost: exponent must be a positive number, got 0.0"),
        (lambda: qu.Power(-1.0, 2.0), "power cost: coefficient"),
        (lambda: qu.Saturating(1.0, 0.0), "saturating cost: rate must be a positive number"),
        (lambda: qu.Saturating(math.inf, 1.0), "saturating cost: ceiling"),
        (lambda: qu.Deadline(1.0, -1.0), "deadline cost: due"),
        (lambda: qu.PiecewiseLinear([]), "piecewise-linear cost: points must hold"),
        (lambda: qu.PiecewiseLinear([(0.0, 0.0)]), "piecewise-linear cost: points must hold"),
        (lambda: qu.PiecewiseLinear([(0.0, 1.0), (1.0, 2.0)]), "waits must increase from 0"),
        (lambda: qu.PiecewiseLinear([(1.0, 2.0), (1.0, 3.0)]), "waits must increase"),
        (lambda: qu.PiecewiseLinear([(1.0, 2.0), (2.0, 1.0)]), "costs must not decrease, got 1.0 after 2.0"),
        (lambda: qu.Custom(lambda t: t, breaks=(-1.0,)), "custom cost: a break"),
    ],
)
def test_bad_costs_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_cost_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match=r"linear cost: rate must be a number, got '0\.1'"):
        qu.Linear("0.1")
