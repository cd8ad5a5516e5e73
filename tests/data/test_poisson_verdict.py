"""Near enough to Poisson is what lies within 0.8 and 1.25; what may be chance is not called near."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from queueing_ucrl.data.arrivals_fit import ArrivalsFit, fit_arrivals
from queueing_ucrl.data.poisson_tests import Dispersion
from queueing_ucrl.data.poisson_verdict import PoissonVerdict, poisson_findings
from queueing_ucrl.data.tables import Columns, read_jobs

TESTS = poisson_findings(np.arange(100.0), np.array([[0.0, 100.0]]), 0.0).tests


@pytest.mark.parametrize(
    ("p", "index", "of_index", "word"),
    [
        (0.3, 0.5, 0.2, "kept"),
        (0.01, 0.81, 0.2, "rejected, near enough"),
        (0.01, 1.24, 0.001, "rejected, near enough"),
        (0.01, 0.27, 0.2, "rejected, size unknown"),
        (0.01, 1.5, 0.2, "rejected, size unknown"),
        (0.01, 0.27, 0.01, "rejected"),
        (0.01, None, None, "rejected, size unknown"),
    ],
)
def test_a_verdict_for_each_size(p: float, index: float | None, of_index: float, word: str) -> None:
    spread = None if index is None else Dispersion(index, 0.0, 9.0, of_index, 10, 10.0, 1.0)
    verdict = PoissonVerdict(TESTS, p, spread)
    assert verdict.in_a_word == word
    assert ("near enough" in verdict.words) == verdict.is_near == (word == "rejected, near enough")
    assert ("too few to tell by how much" in verdict.words) == (word == "rejected, size unknown")
    assert "nan" not in verdict.words


def test_where_nothing_was_tested_nothing_is_rejected() -> None:
    assert PoissonVerdict((), math.nan, None).passes
    assert not PoissonVerdict((), math.nan, Dispersion(3.0, 2.0, 4.0, 0.001, 10, 10.0, 1.0)).passes


def fits_of(shape: float, arrivals: int, logs: int) -> list[ArrivalsFit]:
    """Logs of gamma gaps."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(logs):
        times = np.cumsum(rng.gamma(shape, 1.0 / shape, arrivals))
        found.append(fit_arrivals(read_jobs(pd.DataFrame({"t": times}), Columns(time="t")), "job"))
    return found


def test_short_logs_of_regular_gaps_are_never_called_near_where_they_are_not() -> None:
    """Erlang-2 gaps: half the variance of Poisson counts. 60 arrivals make six windows, which tell little of that."""
    found = fits_of(2.0, 60, 40)
    unsure = [fit for fit in found if fit.poisson.in_a_word == "rejected, size unknown"]
    assert len(unsure) > 10
    for fit in unsure:
        assert "from the spread of" in fit.interval or "no interval holds" in fit.interval
        assert "too few to tell by how much" in fit.words
    assert sum(fit.gaps is not None for fit in unsure) > 0.8 * len(unsure)
    near = [fit for fit in found if not fit.is_poisson and fit.is_near]
    assert all(fit.dispersion is not None and 0.8 <= fit.dispersion.index <= 1.25 for fit in near)
