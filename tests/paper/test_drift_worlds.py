"""`reproduce drift`: its worlds repeat and have a best policy in time; its losses are paired with that policy's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.paper import drift


@pytest.mark.parametrize("name", ["jumps", pytest.param("trend", marks=pytest.mark.slow)])
def test_the_best_policy_in_time_is_above_following_and_staying(name):
    """rho of the optimum is above that of the best single policy for the mean rates, by the exact long-run gain."""
    queue = drift.worlds()[name].queue
    best = qu.solve_periodic(queue, accuracy=1e-6)
    assert best.period == pytest.approx(drift.worlds()[name].horizon)
    single = qu.solve(queue.on_average()).policy
    from queueing_ucrl.solvers.periodic import periodic_gain

    assert best.gain > periodic_gain(queue, [0.0, best.period], [single])


@pytest.mark.slow
def test_losses_are_paired_with_the_optimum(tmp_path):
    arguments = ["reproduce", "drift", "--horizon", "100", "--replications", "2", "--jobs", "1", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]["drift"]["rows"]
    assert {row["world"] for row in rows} == set(drift.worlds())
    assert [row["controller"] for row in rows[: len(drift.LOOKS)]] == list(drift.LOOKS)
    (row,) = [row for row in rows if (row["world"], row["controller"]) == ("rush hours", "window")]
    queue, learner = drift.worlds()["rush hours"].queue, qu.CertaintyEquivalent(memory=4.0, forgetting="window")
    study = qu.replicate(queue, [drift.BEST, learner], horizon=100.0, replications=2, seed=1)
    best, own = (study.samples(k, "expected_reward")[:, -1] for k in (0, 1))
    assert row["lost"] == pytest.approx((best - own).mean(), abs=1e-9)
    assert row["quantile_50"] == pytest.approx(np.median(best - own), abs=1e-9)
    assert row["quantile_50"] <= row["quantile_90"] <= row["quantile_99"]
