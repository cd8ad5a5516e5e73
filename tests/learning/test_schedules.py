"""When a policy is reviewed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueing_ucrl.learning.schedules import DOUBLING, Clock, Geometric, Periodic


def _walk(clock: Clock, reviews: int) -> list[tuple[float, float]]:
    found = []
    for _ in range(reviews):
        found.append((clock.end, clock.length))
        clock.advance(clock.end)
    return found


def test_doubling_is_the_papers() -> None:
    """T_k = 2^(k-1) t_1; t_1, then t_k = 2^(k-2) t_1: exactly."""
    t1 = 3.7
    steps = _walk(Clock(DOUBLING, t1), 20)
    assert [end for end, _ in steps] == [2.0 ** (k - 1) * t1 for k in range(1, 21)]
    assert [length for _, length in steps] == [t1] + [2.0 ** (k - 2) * t1 for k in range(2, 21)]


def test_a_grid_has_its_ratio() -> None:
    ends = [end for end, _ in _walk(Clock(Geometric(1.1), 2.0), 146)]
    assert ends[1] / ends[0] == pytest.approx(1.1)
    assert ends[-1] == pytest.approx(2.0 * 1.1**145)
    assert ends[-1] > 1e6


def test_a_capped_grid_becomes_a_period() -> None:
    steps = _walk(Clock(Geometric(1.5, longest=4.0), 1.0), 30)
    lengths = [length for _, length in steps]
    assert lengths[1] == pytest.approx(0.5)
    assert max(lengths) == pytest.approx(4.0)
    assert lengths[-1] == pytest.approx(4.0)


def test_an_infinite_ratio_is_a_period_from_the_start() -> None:
    capped, periodic = Clock(Geometric(math.inf, longest=0.3), 0.3), Clock(Periodic(0.3), 0.3)
    assert _walk(capped, 50) == _walk(periodic, 50)


def test_an_answer_that_took_longer_than_an_episode_skips_reviews() -> None:
    clock = Clock(DOUBLING, 10.0)
    clock.advance(35.0)
    assert (clock.start, clock.end, clock.length) == (20.0, 40.0, 20.0)


@given(
    st.one_of(
        st.floats(1.0, 100.0, exclude_min=True).map(Geometric),
        st.builds(Geometric, st.just(1.1), st.floats(1e-9, 1e3)),
        st.floats(1e-12, 1e12).map(Periodic),
    ),
    st.floats(1e-9, 1e15),
)
def test_the_next_review_is_always_later(schedule: Geometric | Periodic, time: float) -> None:
    assert schedule.after(time) > time


@pytest.mark.parametrize("wrong", [{"ratio": 1.0}, {"ratio": math.nan}, {"longest": 0.0}])
def test_a_grid_that_stands_still_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Geometric(**wrong)


@pytest.mark.parametrize("period", [0.0, -1.0, math.inf, math.nan])
def test_a_period_must_be_positive(period: float) -> None:
    with pytest.raises(ValueError, match="period"):
        Periodic(period)
