"""Value objects check themselves: every number, text and list of each, and nobody can change their arrays."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import queueing_ucrl as qu
from queueing_ucrl.messages import is_one_line, printable, shortened, shown
from queueing_ucrl.model.system import FASTEST, LONGEST_RUN, SLOWEST

CLASS = qu.JobClass("a", 1.0, 2.0, qu.Linear(0.5))
QUEUE = qu.Queue(2, 6, 1.0, [CLASS, qu.JobClass("b", 0.5, 1.0, qu.Deadline(3.0, 0.5))])
COSTS = [qu.Linear(0.5), qu.Power(1.0, 2.0), qu.Saturating(3.0, 0.5), qu.Deadline(3.0, 0.5)]
OBJECTS = [CLASS, QUEUE, *COSTS, qu.Steps([1.0], [0.5, 1.5], 2.0), qu.Sinusoid(0.5, 24.0, 0.0)]
NUMBERS = [
    pytest.param(thing, field.name, id=f"{type(thing).__name__}.{field.name}")
    for thing in OBJECTS
    for field in fields(thing)
    if get_type_hints(type(thing))[field.name] in (int, float)
]
ARRAYS = [np.array(1.0), np.array([1.0]), np.datetime64("2024-01-01")]
TEXTS = ["1", b"1", "x" * 10**6]
NO_NUMBERS = [None, True, False, np.True_, 1j, Decimal(1), Decimal("nan"), *ARRAYS, *TEXTS]
NO_NUMBERS += [[1.0], (1.0,), {"a": 1}, object(), lambda: 1.0, float]
NANS = [math.nan, np.float64("nan"), np.float32("nan"), np.longdouble("nan")]
NOT_FINITE = [*NANS, -math.inf, np.float64("-inf"), 10**400, -(10**400), Fraction(10**400)]


def told(error: BaseException) -> str:
    message = str(error)
    assert 0 < len(message) < 400
    assert message.isprintable()
    return message


@pytest.mark.parametrize(("thing", "name"), NUMBERS)
def test_what_is_no_finite_number_is_refused_by_name(thing, name):
    for value in [*NO_NUMBERS, *NOT_FINITE]:
        with pytest.raises((TypeError, ValueError)) as error:
            replace(thing, **{name: value})
        assert name in told(error.value)


@pytest.mark.parametrize(("thing", "name"), NUMBERS)
def test_a_negative_number_is_refused_where_it_makes_no_sense(thing, name):
    if name == "phase":
        assert replace(thing, phase=-1).phase == -1.0
        return
    for value in (-1, -1e-300, np.float64(-1.0), np.int64(-1), Fraction(-1, 3)):
        with pytest.raises(ValueError, match=name) as error:
            replace(thing, **{name: value})
        told(error.value)


@pytest.mark.parametrize(("thing", "name"), NUMBERS)
def test_numbers_of_every_kind_mean_the_same(thing, name):
    kinds = [np.int64, np.int8, np.uint16, int]
    if isinstance(getattr(thing, name), float):
        kinds += [np.float32, np.float64, np.longdouble, Fraction, float]
    one = replace(thing, **{name: 1.0 if isinstance(getattr(thing, name), float) else 1}) if name != "period" else thing
    for kind in kinds:
        value = kind(2 if name == "period" and isinstance(thing, qu.Steps) else 24 if name == "period" else 1)
        made = replace(thing, **{name: value})
        assert made == one
        assert type(getattr(made, name)) is type(getattr(thing, name))


@pytest.mark.parametrize(
    ("make", "values", "name"),
    [
        (lambda v: qu.Queue(1, 5, 1.0, v), [CLASS], "classes"),
        (lambda v: qu.PiecewiseLinear(v), [(1.0, 2.0), (3.0, 4.0)], "point"),
        (lambda v: qu.Steps(v, [1.0, 2.0], 9.0), [1.0], "time"),
        (lambda v: qu.Steps([1.0], v, 9.0), [1.0, 2.0], "factor"),
        (lambda v: qu.Policy.trunk_reservation(v, 6), [1, 2], "level"),
        (lambda v: qu.Custom(abs, v), [1.0, 2.0], "break"),
    ],
)
def test_a_list_may_be_anything_that_can_be_gone_through(make, values, name):
    wanted = make(values)
    for kind in (tuple, iter, lambda v: (x for x in v), np.array if name != "classes" else tuple):
        assert make(kind(values)) == wanted
    for wrong in (None, 3, "12", b"12", object(), [None], ["1"], [math.nan], [math.inf], [True], [[1.0]], [1j]):
        with pytest.raises((TypeError, ValueError)) as error:
            make(wrong)
        assert name in told(error.value)


@pytest.mark.parametrize(
    "level", [2.5, 2.0, np.float64(2.0), Fraction(5, 2), "2", None, True, math.nan, -1, 7, 10**400]
)
def test_control_levels_are_whole_numbers_within_the_queue(level):
    with pytest.raises((TypeError, ValueError), match=r"control level") as error:
        qu.Policy.trunk_reservation([3, level], 6)
    told(error.value)


NO_TRUTH_VALUES = [*([[one]] for one in ("yes", None, 0.5, 2, math.nan, 1j)), np.array([["1"]]), np.array([ARRAYS[2:]])]
NO_TABLES = [None, 3, "ab", [[True], [True, False]], [[[True]]], [], [[]], {}, iter([[True]])]


@pytest.mark.parametrize("table", NO_TRUTH_VALUES + NO_TABLES)
def test_a_policy_is_a_table_of_true_and_false(table):
    with pytest.raises((TypeError, ValueError), match="admits must") as error:
        qu.Policy(table)
    told(error.value)


NO_ENTRIES = ["1", None, True, 1j, math.inf, math.nan, 10**400]


@pytest.mark.parametrize("name", ["arrival_rates", "rewards", "service_rates"])
@pytest.mark.parametrize("table", [None, "ab", [], [Decimal(1)], [[1.0], [1.0, 2.0]], *([[one]] for one in NO_ENTRIES)])
def test_a_model_s_tables_are_finite_numbers(name, table):
    good = {"arrival_rates": [[1.0]], "rewards": [[1.0]], "service_rates": [0.0, 1.0]}
    with pytest.raises((TypeError, ValueError), match=name) as error:
        qu.AdmissionModel(**{**good, name: table})
    told(error.value)


# Texts

CONTROLS = "\x00 \x07 \x1b[31m \n \r \t \x7f \x85 \x9b"
BEYOND_ASCII = "\u2028 \u2029 \u202e \u2066 \u200e \ufeff \ud800 \udcff \ue000 \U000e0001 \ufffe"
STEERING = [*CONTROLS.split(" "), *BEYOND_ASCII.split(" ")]


@pytest.mark.parametrize("steering", STEERING, ids=[ascii(c) for c in STEERING])
def test_a_name_that_would_steer_a_terminal_is_refused(steering):
    for name in (steering, f"a{steering}b", f"{steering}a", f"a{steering}"):
        with pytest.raises(ValueError, match="name") as error:
            qu.JobClass(name, 1.0, 1.0)
        told(error.value)


@pytest.mark.parametrize("name", [None, 3, b"a", ["a"], "", " ", " a", "a ", "a" * 41, "a" * 10**6, "\u3000"])
def test_a_name_is_a_short_text(name):
    with pytest.raises((TypeError, ValueError), match="name") as error:
        qu.JobClass(name, 1.0, 1.0)
    told(error.value)


@pytest.mark.parametrize(
    "name", ["שלום", "مرحبا", "می\u200cخواهم", "日本語 ñ", "क्\u200dष", "👩\u200d🚒", "e\u0301", "[red]", "x" * 40]
)
def test_a_name_may_be_of_any_script(name):
    assert qu.JobClass(name, 1.0, 1.0).name == name


@given(st.text(st.characters(), max_size=50))
def test_what_is_shown_is_short_and_prints(text):
    for words in (shown(text), printable(text), printable(shortened(text, 10))):
        assert all(c.isprintable() or c in "\n\u200c\u200d" for c in words)
    assert "\n" not in shown(text)
    assert printable(text).isprintable() or not text.isprintable()
    if is_one_line(text):
        assert printable(text) == text


# Rates that leave the range of a double, runs that would not end


@pytest.mark.parametrize(
    ("rate", "pattern"),
    [
        (1e200, qu.Steps([1.0], [1e200, 1.0])),
        (1e-200, qu.Steps([1.0], [1e-200, 0.0])),
        (5e-324, qu.Steady()),
        (1e308, qu.Sinusoid(1.0, 24.0)),
        (1e160, qu.Steps([1.0], [1e-100, 0.0])),
        (1e149, qu.Steps([1.0], [1.0, 1e5])),
    ],
)
def test_a_rate_that_is_infinite_or_nothing_is_refused_when_the_class_is_made(rate, pattern):
    with pytest.raises(ValueError, match=r"class 'a': arrival_rate.* must lie between 1e-150 and 1e\+150") as error:
        qu.JobClass("a", rate, 1.0, pattern=pattern)
    told(error.value)


@given(st.floats(-160, 160), st.lists(st.floats(-160, 160), min_size=1, max_size=3), st.floats(-160, 160))
def test_a_queue_that_is_made_has_rates_that_can_be_used(rate, factors, service):
    """Whatever was not refused has finite rates and mean times at every moment, and a model."""
    try:
        pattern = qu.Steps([float(k + 1) for k in range(len(factors) - 1)], [10.0**f for f in factors])
        job_class = qu.JobClass("a", 10.0**rate, 1.0, pattern=pattern)
        queue = qu.Queue(1, 3, 10.0**service, [job_class])
    except ValueError as error:
        told(error)
        return
    assert SLOWEST <= job_class.peak_rate <= FASTEST
    for time in (0.0, 1.5, 9.0):
        at = queue.at(time)
        assert np.all((at.arrival_rates > 0) & np.isfinite(at.arrival_rates) & np.isfinite(1.0 / at.arrival_rates))
    assert math.isfinite(1.0 / queue.max_service_rate)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("pattern", [qu.Steady(), qu.Steps([1e300], [1e3, 1.0])])
def test_a_run_that_would_never_end_is_refused_at_once(engine, pattern):
    queue = qu.Queue(1, 5, 1.0, [replace(CLASS, pattern=pattern)])
    rate = pattern.ceiling
    for horizon in (1e300, 1e14, math.nextafter(LONGEST_RUN / rate, math.inf) * 1.001):
        with pytest.raises(ValueError, match=r"horizon .* arrivals per unit of time") as error:
            qu.simulate(queue, "admit-all", horizon=horizon, engine=engine)
        told(error.value)
    for horizon in [*NO_NUMBERS, *NOT_FINITE, 0, -1.0, math.inf]:
        with pytest.raises((TypeError, ValueError), match="horizon"):
            qu.simulate(queue, "admit-all", horizon=horizon, engine=engine)


def test_a_long_horizon_of_a_slow_queue_is_no_mistake():
    slow = qu.Queue(1, 5, 1e-100, [replace(CLASS, arrival_rate=1e-100)])
    assert qu.simulate(slow, "admit-all", horizon=1e102).summary()["classes"][0]["arrivals"] > 10


# Arrays


def handed_out() -> list[object]:
    solution = qu.solve(QUEUE)
    policy = solution.policy
    solved = [solution, policy, qu.solve(QUEUE, "vi"), qu.solve(QUEUE, "lp")]
    valued = [qu.evaluate(QUEUE, policy), qu.evaluate(QUEUE, policy, "dense"), qu.performance(QUEUE, policy)]
    return [QUEUE, QUEUE.model, QUEUE.waits, qu.Knowledge.of(QUEUE), *solved, *valued]


def arrays(thing: object) -> dict[str, np.ndarray]:
    names = [name for name in dir(thing) if not name.startswith("_")]
    found = {name: getattr(thing, name) for name in names if isinstance(getattr(thing, name), np.ndarray)}
    assert found
    return found


COPIES = {
    "itself": lambda thing: thing,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_nobody_can_change_an_array_of_a_value_object(copied):
    for thing in handed_out():
        arrays(thing)  # whatever is computed once and kept is there before the copy
        for name, array in arrays(copied(thing)).items():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            while isinstance(array.base, np.ndarray):
                array = array.base
                assert not array.flags.writeable, name


def test_a_model_does_not_change_with_the_arrays_it_was_made_from():
    rates, rewards, service = np.ones((6, 2)), np.ones((6, 2)), np.append(0.0, np.ones(6))
    for given_ in ((rates, rewards, service), tuple(a[...] for a in (rates, rewards, service))):
        model = qu.AdmissionModel(*given_)
        before = qu.solve(model).gain
        for array in (rates, rewards, service):
            array[1:] *= 7.0
        assert qu.solve(model).gain == before
        assert all(a.flags.writeable for a in (rates, rewards, service))
        for array in (rates, rewards, service):
            array[1:] /= 7.0


def test_a_read_only_view_of_an_array_that_can_be_written_to_is_copied():
    rates = np.ones((1, 1))
    view = rates[...]
    view.setflags(write=False)
    model = qu.AdmissionModel(view, np.ones((1, 1)), np.array([0.0, 1.0]))
    rates[0] = 9.0
    assert model.arrival_rates[0, 0] == 1.0
