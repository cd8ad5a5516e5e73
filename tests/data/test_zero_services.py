"""Services of 0 are told; many of them make no exponential law, and all of them make none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data.refit import refitted
from queueing_ucrl.report.fit_page import fit_html


def fitted(zeros: int, jobs: int = 1000) -> qu.Fit:
    rng = np.random.default_rng(3)
    works = rng.exponential(2.0, jobs)
    works[rng.permutation(jobs)[:zeros]] = 0.0
    log = pd.DataFrame({"t": np.cumsum(rng.exponential(1.0, jobs)), "s": works})
    return qu.fit(log, "t", service="s", servers=2, capacity=10, rewards={"job": 1.0})


def test_half_of_services_of_0_are_no_exponential_law(tmp_path: Path) -> None:
    found = fitted(500)
    (part,) = found.services.parts
    said = next(words for words in found.words if "service" in words)
    assert "0.5 of service times are 0" in said
    assert "pass as exponential" not in " ".join(found.words)
    assert isinstance(part.law, qu.Empirical)
    assert part.law.mean == pytest.approx(part.mean)
    assert np.mean(part.law.values == 0.0) == pytest.approx(0.5, abs=0.01)
    assert part.law.cv**2 == pytest.approx(part.fit.moments.cv2, rel=0.05)
    assert part.interval.startswith("Student's")
    rows = [test for test in found.tested if test.what.startswith("service is exponential")]
    assert [row.verdict for row in rows] == ["rejected: zeros"]
    path = tmp_path / "x.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    read = qu.load_scenario(path).system
    assert read.law(0).mean == pytest.approx(part.mean, rel=1e-4)
    assert found.promise is not None
    assert found.promise.earned is not None
    assert b"empirical" in fit_html(found, "x.toml", "x.parquet")
    means = [refitted(part.law, 1000, np.random.default_rng(k)).mean for k in range(200)]
    assert np.std(means, ddof=1) == pytest.approx(part.law.cv * part.mean / np.sqrt(1000), rel=0.25)


def test_a_few_services_of_0_are_told() -> None:
    found = fitted(10)
    assert "service times, the 10 of 0 left out, pass as exponential" in " ".join(found.words)
    assert "of 0 left out" not in " ".join(fitted(0).words)


def test_all_services_of_0_are_told() -> None:
    found = fitted(1000)
    assert "the log does not tell how long services take: all 1,000 that it has take 0" in found.words
    assert [one.key for one in found.missing] == ["queue.service_rate"]
