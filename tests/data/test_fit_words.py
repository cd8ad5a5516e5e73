"""Sentences of a fit can be read: no nan, no powers of ten, one is one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.balking import BalkingTest
from queueing_ucrl.data.service_laws import moments


@pytest.mark.parametrize(("rates", "said"), [([1.0, 3.0], "1 change"), ([1.0, 3.0, 0.5], "2 changes")])
def test_changes_are_counted_in_words(rates: list[float], said: str) -> None:
    rng = np.random.default_rng(1)
    times = np.concatenate([np.sort(rng.uniform(0.0, 300.0, int(300 * r))) + 300.0 * k for k, r in enumerate(rates)])
    found = qu.fit(pd.DataFrame({"t": times, "k": "p"}), "t", "k")
    (row,) = [test for test in found.tested if test.what == "the level never changes for good"]
    assert row.verdict == f"rejected: {said}"


def test_equal_services_vary_by_nothing() -> None:
    """0.1 is no binary fraction, and the mean of many is off by a rounding error."""
    found = moments(np.full(700, 0.1))
    assert found.cv2 == 0.0
    log = pd.DataFrame({"t": np.cumsum(np.random.default_rng(1).exponential(1.0, 700)), "s": np.full(700, 0.1)})
    fit = qu.fit(log, "t", service="s")
    assert "nan" not in " ".join([*fit.words, *(test.effect for test in fit.tested)])
    (row,) = [test for test in fit.tested if test.what.startswith("service is exponential")]
    assert row.effect == "cv² 0"


@pytest.mark.parametrize(
    ("per_job", "words"), [(-0.9999, "-100 %"), (-0.1, "-10 %"), (0.0096, "+0.96 %"), (31.4, "+3,140 %")]
)
def test_percents_are_no_powers_of_ten(per_job: float, words: str) -> None:
    found = BalkingTest(math.log1p(per_job), -1.0, 1.0, 0.5, per_job, 1.0, 0, 1, (), (), ())
    assert found.per_job_words == words
