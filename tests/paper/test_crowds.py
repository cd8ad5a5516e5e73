"""`reproduce crowds`: its queues, its numbers, and all of it at a tiny scale."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.paper import crowds


def test_what_a_pooled_learner_loses_is_what_it_loses_in_a_run() -> None:
    """On the lunch counter, after its first tenth: within 5 % of it."""
    queue = qu.load_scenario("lunch-counter").queue
    with pytest.warns(qu.GuaranteeWarning):
        run = qu.simulate(queue, qu.CertaintyEquivalent(), horizon=2e4, seed=1, grid=[2e3, 2e4])
    lost = np.diff(run.regret("pseudo")["regret"])[0] / 1.8e4 / qu.solve(queue).gain
    assert crowds.pooled_loss(queue) == pytest.approx(lost, rel=0.05)


def test_where_nobody_balks_constant_rates_lose_nothing() -> None:
    assert crowds.pooled_loss(qu.load_scenario("quickstart").queue) == pytest.approx(0.0, abs=1e-9)


def test_a_median_lies_between_two_order_statistics() -> None:
    """Of 20 numbers between the 6th and the 15th: P(Binomial(20, 1/2) <= 5) = 0.0207."""
    values = np.random.default_rng(1).permutation(20.0 * np.arange(20))
    assert crowds.median_interval(values.tolist()) == (190.0, 100.0, 280.0)
    assert crowds.median_interval([1.0, 2.0]) == (1.5, -math.inf, math.inf)


def test_at_a_tiny_scale(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(crowds, "RANDOM_QUEUES", 2)
    monkeypatch.setattr(crowds, "GROWING", (10, 20))
    out = tmp_path / "out"
    arguments = ["reproduce", "crowds", "--horizon", "500", "--replications", "2", "--jobs", "1", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet(out / "crowds.parquet")
    assert frame.groupby("study").size().to_dict() == {
        "all": 4,
        "constant": 54,
        "crowd": 4,
        "exponents": 6,
        "random": 14,
        "room": 12,
    }
    assert np.all(frame[frame["learner"] == crowds.POOLED]["difference"] == 0.0)
    text = (out / "crowds.md").read_text(encoding="utf-8")
    for words in ("% of pooled's", "optimistic-any", "gold fills the house", "more than pooled"):
        assert words in text
    assert (out / "crowds.png").stat().st_size > 10_000
