"""What beliefs about arrival rates are measured against: nothing is called true that is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from page_studies import QUEUE, RUN, stored

import queueing_ucrl as qu
from queueing_ucrl.experiments.campaign import run_scenario
from queueing_ucrl.model.rate_patterns import Sinusoid, Steps
from queueing_ucrl.report.learning_sections import beliefs_section
from queueing_ucrl.report.numbers import number
from queueing_ucrl.report.state_beliefs import stairs
from queueing_ucrl.report.study_view import StudyView
from queueing_ucrl.report.true_rates import TrueRate, stairs_by_state, together, true_rate, truth_words

pytestmark = pytest.mark.filterwarnings("ignore::queueing_ucrl.GuaranteeWarning")

BALKS = 'balking = { kind = "geometric", ratio = 0.8, above = 2 }\n'
BY_STATE = """
[[controller]]
name = "certainty-equivalent"
arrivals = "state-dependent"

[[controller]]
name = "certainty-equivalent"
label = "one rate"

[[controller]]
name = "ucrl-ac-states"
arrival_rate_bounds = [0.0, 4.0]

[[controller]]
name = "ucrl-ac"
arrival_rate_bounds = [1.0, 4.0]
first_episode = 10.0
"""


@pytest.fixture(scope="module")
def balking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("balking")
    classes = QUEUE.replace("reward = 20.0\n", "reward = 20.0\n" + BALKS)
    (folder / "balking.toml").write_text('title = "Balking"\n' + classes + BY_STATE + RUN)
    run_scenario(qu.load_scenario(folder / "balking.toml"), folder / "study", jobs=1)
    return StudyView(stored(folder / "study"), 0)


def inline(chart):
    """The layers with data of their own: what is true."""
    layers = [layer for layer in chart.spec["layer"] if "values" in layer.get("data", {})]
    return [[(row["x"], row["y"]) for row in layer["data"]["values"]] for layer in layers]


def test_no_one_rate_is_called_true_where_it_depends_on_the_state(balking):
    by_name = {chart.title: chart for chart in beliefs_section(balking).charts}
    pooled = by_name["one rate"]
    assert "gold" in pooled.words
    assert f"in truth from {number(0.7 * 0.8**5)} to 0.7, by the number of jobs" in pooled.words  # 7 jobs at most
    assert len(inline(pooled)) == 1  # of the class that does not balk alone
    assert not inline(by_name["ucrl-ac"])
    assert "no one rate is true" in " ".join(beliefs_section(balking).words)


def test_rates_by_state_are_drawn_beside_the_truth(balking):
    """lambda(s) = 0.7 * 0.8^(s - 2)^+ of the class that balks, and the learner's own last numbers."""
    by_name = {chart.title: chart for chart in beliefs_section(balking).charts}
    for name, column in (("certainty-equivalent", "rate_estimates"), ("ucrl-ac-states", "rate_limits")):
        chart = by_name[f"{name}: rates by the number of jobs"]
        gold, basic = inline(chart)
        wanted = [0.7 * 0.8 ** max(0, s - 2) for s in range(8)]
        np.testing.assert_allclose([y for _, y in gold], [*wanted, wanted[-1]], rtol=1e-5)
        assert {y for _, y in basic} == {0.9}
        last = balking.episodes(name)[f"{column}_by_state"].dropna().iloc[-1]
        drawn = [m for m, who in zip(chart.data["mean"], chart.data["who"], strict=True) if who == "gold"]
        np.testing.assert_allclose(drawn[:-1], [row["rates"][0] for row in last], rtol=1e-5)


def test_a_rate_that_moves_in_time_is_drawn_as_it_moves(study_folder):
    """0.7 times 0.5 until 8, 1.5 until 18, then 1, again after 24; the other class has one rate."""
    view = StudyView(stored(study_folder("drifting")), 0)
    chart = next(c for c in beliefs_section(view).charts if c.title == "certainty-equivalent")
    gold, basic = inline(chart)
    assert {y for _, y in basic} == {0.9}
    day = {0.5: 0.35, 8.5: 1.05, 17.9: 1.05, 18.1: 0.7, 23.9: 0.7, 24.1: 0.35, 32.5: 1.05}
    for time, rate in day.items():
        assert rate == pytest.approx([y for x, y in gold if x <= max(time, gold[0][0])][-1])
    assert "in truth from 0.35 to 1.05 in time" in chart.words
    assert [key.words for key in chart.legend if key.look.dashes == (1, 1.5)] == ["the true rate"]


def test_steps_that_never_begin_again_end_with_their_last_factor(study_folder):
    from dataclasses import replace

    view = StudyView(stored(study_folder("drifting")), 0)
    queue = qu.Queue(2, 8, 0.5, [qu.JobClass("a", 1.0, 1.0, pattern=Steps((10.0,), (1.0, 3.0)))])
    once = StudyView(replace(view.study, manifest={"identity": {"points": [{"queue": queue.plain_data()}]}}), 0)
    assert once.mean_rates == [3.0] == queue.on_average().arrival_rates.tolist()
    assert together(once.true_rates, 0.0, 20.0) == [(0.0, 1.0), (10.0, 3.0), (20.0, 3.0)]


def test_the_words_name_what_moves_the_rate():
    wave = Sinusoid(0.5, 24.0)
    assert truth_words([TrueRate(2.0)]) == "in truth 2"
    assert truth_words([TrueRate(2.0), TrueRate(1.0, wave)]) == "in truth from 2.5 to 3.5 in time, 3 in the mean"
    assert truth_words([TrueRate(2.0, is_random=True)]) == "in truth 2 in the mean"
    assert truth_words([TrueRate(2.0, balks=True)]) == "in truth by the number of jobs in the system"
    table = {"arrival_rate": 2.0, "balking": {"kind": "table", "probability": [1.0, 0.5]}}
    assert truth_words([true_rate(table, 2.0, None, 4)]) == "in truth from 1 to 2, by the number of jobs in the system"


def test_the_truth_of_a_sinusoid_follows_it_and_a_fast_one_has_its_ends():
    rate = TrueRate(2.0, Sinusoid(0.5, 24.0))
    for time, value in together([rate], 1.0, 100.0):
        assert value == pytest.approx(2.0 * (1.0 + 0.5 * math.sin(2.0 * math.pi * time / 24.0)))
    assert together([rate], 0.0, 1e6) is None
    assert rate.ends == (1.0, 3.0)


def test_balking_of_ones_own_is_not_guessed():
    rate = true_rate({"arrival_rate": 1.0, "balking": {"kind": "custom"}}, 1.0, None, 4)
    assert rate.balks
    assert rate.joins is None
    assert stairs_by_state(rate, 4) is None
    assert stairs_by_state(TrueRate(3.0), 2) == [(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]


def test_stairs_reach_the_capacity():
    rows = [{"from_state": 0, "rates": [2.0, 1.0]}, {"from_state": 3, "rates": [0.5, 0.25]}]
    assert stairs(rows, 1, 6) == [(0, 1.0), (3, 0.25), (6, 0.25)]
