"""Logs of counts: what cannot be tested is said, and days on which nobody comes are no days."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.arrivals_fit import _days, _pattern, fit_arrivals
from queueing_ucrl.data.rates import StepPattern
from queueing_ucrl.data.tables import Columns, read_jobs

SLOT = 5  # minutes


def counted(rng: np.random.Generator, weeks: int, an_hour: float, day_cv: float, pairs: bool = False) -> pd.DataFrame:
    """Weekdays from 8 to 18, counts by five minutes; days have a gamma factor. pairs: callers come in twos."""
    days = pd.bdate_range("2024-01-01", periods=5 * weeks)
    slots = pd.to_timedelta(np.arange(8 * 60, 18 * 60, SLOT), unit="min")
    stamps = (days.to_numpy()[:, None] + slots.to_numpy()[None, :]).ravel()
    levels = np.repeat(rng.gamma(1.0 / day_cv**2, day_cv**2, len(days)) if day_cv else np.ones(len(days)), len(slots))
    mean = an_hour * SLOT / 60.0 * levels
    counts = 2 * rng.poisson(0.5 * mean) if pairs else rng.poisson(mean)
    return pd.DataFrame({"at": pd.Series(stamps).dt.strftime("%Y-%m-%d %H:%M:%S"), "calls": counts})


@pytest.mark.parametrize(("pairs", "index"), [(False, 1.0), (True, 2.0)])
def test_stamps_that_are_too_coarse_are_not_tested(pairs: bool, index: float) -> None:
    """Moved at random within five minutes, callers who come in twos would pass every test in shorter windows."""
    log = counted(np.random.default_rng(1), 3, 1500.0, 0.0, pairs)
    found = qu.fit(log, "at", count="calls", time_unit="hours")
    fit = found.arrivals["job"]
    assert fit.tests == ()
    assert "too coarse to test" in fit.words
    assert fit.gaps is None
    assert fit.dispersion is not None
    assert fit.dispersion.low < index < fit.dispersion.high
    assert fit.is_poisson is not pairs


def test_stamps_that_are_fine_enough_are_tested() -> None:
    log = counted(np.random.default_rng(2), 3, 20.0, 0.0)  # a hundred callers in five hours
    table = read_jobs(log, Columns("at", count="calls"), time_unit="hours")
    assert len(fit_arrivals(table, "job").tests) == 6
    few = replace(table, resolution=1.0)
    assert len(fit_arrivals(few, "job").tests) == 2


def test_a_day_of_which_rounding_expects_a_trace_is_no_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days that differ by chance are no change for good, whatever rounding leaves of a Sunday."""
    log = counted(np.random.default_rng(3), 8, 400.0, 0.1)
    table = read_jobs(log, Columns("at", count="calls"), time_unit="hours")
    pattern = _pattern(table, table.times)
    assert pattern is not None
    whole, exact = _days(table, table.times, pattern), StepPattern.expected

    def with_traces(self: StepPattern, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        found = exact(self, begins, ends)
        return np.where(found < 1e-6, 1e-10, found)

    monkeypatch.setattr(StepPattern, "expected", with_traces)
    traced = _days(table, table.times, pattern)
    assert traced == whole
    assert whole[0] is not None
    assert whole[0].days == 40
    assert whole[1] is not None
    assert whole[1].points == ()
