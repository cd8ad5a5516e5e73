"""Numbers as people read them: what is printed is the number, to the digits that mean something."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from queueing_ucrl.report.numbers import number, percent, tick_labels, with_interval

SIZES = st.floats(min_value=-20, max_value=20)
SIGNS = st.sampled_from([-1.0, 1.0])


@st.composite
def sizes(draw):
    """Numbers of every size, as likely small as large."""
    return draw(SIGNS) * 10.0 ** draw(SIZES)


def read(words: str) -> tuple[Decimal, Decimal, Decimal]:
    """(mean, half-width, value of the last digit) of a printed interval."""
    found = re.fullmatch(r"\(?(-?[\d,]+(?:\.\d+)?) ±([\d,]+(?:\.\d+)?)\)?(?:e(-?\d+))?", words)
    assert found, words
    assert words.startswith("(") == (found.group(3) is not None)
    power = Decimal(10) ** int(found.group(3) or 0)
    mean, half = (found.group(k).replace(",", "") for k in (1, 2))
    decimals = [len(text.partition(".")[2]) for text in (mean, half)]
    assert decimals[0] == decimals[1]  # the same for both
    return Decimal(mean) * power, Decimal(half) * power, power / Decimal(10) ** decimals[0]


@given(sizes(), sizes())
def test_a_printed_interval_is_the_true_one_to_two_digits_of_its_half_width(mean, half):
    half = abs(half)
    assume(half > 1e-13 * abs(mean))
    shown_mean, shown_half, last = read(with_interval(mean, half))
    assert last <= Decimal(half) / 10 or last == 1  # two significant digits at least
    assert last <= Decimal(half) / 10 or half >= 10
    slack = Decimal("0.500001") * last
    assert abs(shown_mean - Decimal(mean)) <= slack
    assert abs(shown_half - Decimal(half)) <= slack
    assert shown_half > 0


@given(sizes(), sizes())
def test_what_is_of_a_readable_size_has_no_power_of_ten(mean, half):
    size = max(abs(mean), abs(half))
    if size < 1e9 and abs(half) >= 1e-4:
        assert "e" not in with_interval(mean, abs(half))


@given(sizes(), sizes())
def test_no_interval_is_longer_than_the_digits_it_needs(mean, half):
    half = abs(half)
    assume(half > 1e-13 * abs(mean))
    digits = max(0, math.log10(abs(mean) / half)) + 3  # of the mean
    assert len(with_interval(mean, half)) <= 2 * digits + 22


@pytest.mark.parametrize(
    ("mean", "half", "words"),
    [
        (47446.2, 1021.8, "47,446 ±1,022"),
        (19.4, 7.91, "19.4 ±7.9"),
        (1.2e-5, 3.4e-7, "(1.200 ±0.034)e-5"),
        (4.790477e12, 2.887e9, "(4.7905 ±0.0029)e12"),
        (1e9, 1.0, "1,000,000,000.0 ±1.0"),
        (-0.001, 5.0, "0.0 ±5.0"),
        (0.0, 0.0, "0 ±0"),
        (24.1775, 1e-17, "24.1775 ±0"),
        (3.0, None, "3"),
        (1e-5, None, "1e-5"),
        (None, None, "-"),
        (None, 1.0, "-"),
        (math.nan, 1.0, "-"),
        (math.inf, math.inf, "inf ±inf"),
    ],
)
def test_examples(mean, half, words):
    assert with_interval(mean, half) == words


@given(sizes(), st.integers(2, 10))
def test_a_lone_number_is_right_to_its_digits(value, digits):
    words = number(value, digits)
    shown = float(words.replace(",", ""))
    assert shown == pytest.approx(value, rel=0.5000001 * 10.0 ** (1 - digits), abs=0)
    assert not re.search(r"\.\d*0(e|$)", words)  # no zeros that say nothing
    assert re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d+)?|-?\d(\.\d+)?e-?\d+", words)


def test_nothing_and_zero():
    assert [number(value) for value in (None, math.nan, 0.0, math.inf)] == ["-", "-", "0", "inf"]
    assert [percent(share) for share in (None, 0.0, 0.5, 2e-6, 1.92e-27, 1.0)] == [
        "-",
        "0%",
        "50%",
        "0.0002%",
        "<0.01%",
        "100%",
    ]


@given(sizes(), st.floats(-4, 4), st.sampled_from([1.0, 2.0, 2.5, 5.0]), st.integers(2, 9))
def test_the_marks_of_an_axis_differ_and_are_right(size, shift, step, count):
    step *= 10.0 ** math.floor(math.log10(abs(size)))
    first = round(shift * 10) * step
    values = [first + k * step for k in range(count)]
    labels = tick_labels(values)
    assert len(set(labels)) == count
    for value, label in zip(values, labels, strict=True):
        assert float(label.replace(",", "")) == pytest.approx(value, abs=1e-6 * step)
    assert max(map(len, labels)) <= 14
