"""The work that comes is told in servers; what can hardly be is cautioned against, and nothing runs for ever."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import queueing_ucrl as qu
from queueing_ucrl.data import promise
from queueing_ucrl.report.fit_page import promise_words


def log(mean: float, cv_shape: float = 3.0, jobs: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    works = rng.gamma(cv_shape, mean / cv_shape, jobs)
    return pd.DataFrame({"t": np.sort(rng.uniform(0.0, 10.0, jobs)), "s": works})


def fitted(frame: pd.DataFrame) -> qu.Fit:
    return qu.fit(frame, "t", service="s", time_unit="days", servers=5, capacity=20, rewards={"job": 1.0})


def test_the_work_that_comes_is_told_in_servers() -> None:
    found = fitted(log(0.1))
    assert found.load is not None
    rate = found.arrivals["job"].mean_rate
    assert found.load.work == pytest.approx(rate * found.services.parts[0].mean)
    assert found.load.cautions == ()
    assert f"the work that comes keeps {found.load.work:,.3g} servers busy, of 5" in found.words
    assert found.plain_data()["load"]["servers"] == 5
    assert found.promise is not None
    assert found.promise.earned is not None


def test_services_in_another_unit_are_cautioned_against_and_not_simulated_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Days against seconds: 20 million arrivals a replication took minutes."""
    monkeypatch.setattr(promise, "earned_per_time", lambda run: pytest.fail("was simulated"))
    found = fitted(log(210.0))
    said = " ".join(found.words)
    assert "is longer than the log" in said
    assert "times what the servers can do" in said
    assert not any(words.endswith("?") or "e+" in words for words in found.words)
    assert found.promise is not None
    assert found.promise.earned is None
    assert not found.promise.is_kept
    assert "arrivals" in found.promise.unmeasured
    (words,) = promise_words(found)
    assert "was not measured: a run that forgets how it began would need" in words
    assert found.plain_data()["promise"]["unmeasured"]


def test_a_number_that_stands_for_not_known_is_cautioned_against(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promise, "earned_per_time", lambda run: pytest.fail("was simulated"))
    frame = log(0.1, jobs=200)
    frame.loc[100, "s"] = 1e7
    found = fitted(frame)
    assert any("longer than the log" in words for words in found.words)


def test_what_was_not_measured_is_said_in_the_terminal() -> None:
    from rich.console import Console

    from queueing_ucrl.report.fit_tables import print_fit

    out = io.StringIO()
    print_fit(Console(file=out, width=200), fitted(log(210.0)), [])
    assert "was not measured" in out.getvalue()
