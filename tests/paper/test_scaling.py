"""`reproduce scaling`: the bound's terms add up, the settings change what they say, exponents have honest intervals."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from generators import paper_queue
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

import queueing_ucrl as qu
from queueing_ucrl.cli import app
from queueing_ucrl.model.bounds import policy_iteration_terms
from queueing_ucrl.paper import scaling

TINY = ("--horizon", "150", "--replications", "2", "--jobs", "1")


@given(
    st.integers(1, 60),
    st.integers(0, 100),
    st.integers(1, 9),
    st.floats(0.1, 10.0),
    st.floats(1.0, 5.0),
    st.floats(1.01, 1e3),
    st.floats(1.0, 1e6),
)
@settings(max_examples=60, deadline=None)
def test_the_terms_add_up_to_the_bound(servers, room, classes, rate, width, first, longer):
    queue = scaling.the_queue(servers, servers + room, classes, rate)
    bounds, gain, first = (rate / width, rate * width), qu.solve(queue).gain, first / queue.service_rate
    times = np.array([first, first * longer])
    terms = policy_iteration_terms(queue, gain, bounds, first, times)
    assert sum(terms.values()) == pytest.approx(qu.policy_iteration_bound(queue, gain, bounds, first)(times), rel=1e-12)
    assert all(np.all(term >= 0) for term in terms.values())


def test_each_term_is_the_display_of_the_theorem():
    queue = paper_queue()
    gain, T = qu.solve(queue).gain, 1e5
    terms = policy_iteration_terms(queue, gain, (1.0, 4.0), 10.0, T)
    root, episodes = math.sqrt(T * math.log(2 * 0.3 * T)), 1 + math.log2(T / 10.0)
    worth = 14 * (1 + 4.0 / 1.5) * 20.0 * root
    assert terms["rate"] == pytest.approx(worth * 4 * 16.0 / (1.0 * math.sqrt(2.0)))
    assert terms["shares"] == pytest.approx(worth * math.sqrt(2 * 2.0))
    assert terms["start"] == pytest.approx(episodes * 20 * 4.0 * 20.0 / 1.5)
    assert terms["doubt"] == pytest.approx(episodes * (4 / 0.3 + 14 / 2.0) * gain)
    assert terms["first episode"] == pytest.approx(10.0 * gain)


def test_the_base_of_every_sweep_is_the_papers_first_queue():
    base = scaling.Setting(scaling.the_queue())
    paper = paper_queue()
    np.testing.assert_array_equal(base.queue.model.rewards, paper.model.rewards)
    np.testing.assert_array_equal(base.queue.model.arrival_rates, paper.model.arrival_rates)
    for name, value in (("S", 20), ("m", 2), ("width", 2.0), ("t_1", 10.0)):
        assert scaling.SWEEPS[name].setting(value) == base, name
        assert value in scaling.SWEEPS[name].values


def test_the_term_of_each_sweep_grows_as_the_theorem_says():
    """Over the whole range: S and t_1 in proportion, m as a root, the width as its cube at least; c = S: not at all."""
    expected = {"S": 1.0, "c": -1.0, "c = S": 0.0, "m": 0.5, "t_1": 1.0}
    for name, exponent in expected.items():
        one = scaling.SWEEPS[name]
        curve = np.array([one.setting(v).terms(np.array([1e5]))[one.term][0] for v in one.values])
        if name == "m":
            curve = curve / curve[0]
            assert curve == pytest.approx(np.sqrt(one.values), rel=1e-12)
        elif name == "t_1":  # rho* t_1, with the same rho*
            assert curve / curve[0] == pytest.approx(np.array(one.values) / one.values[0], rel=1e-12)
        else:
            assert curve / curve[0] == pytest.approx((np.array(one.values) / one.values[0]) ** exponent, rel=1e-12)
    one = scaling.SWEEPS["width"]
    curve = [one.setting(v).terms(np.array([1e5]))["rate"][0] for v in one.values]
    for (a, low), (b, high) in pairwise(zip(one.values, curve, strict=True)):
        assert (b / a) ** 3 < high / low < (b / a) ** 4


@given(st.floats(-3.0, 3.0), st.floats(1e-3, 1e3), st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_the_exponent_of_a_power_is_its_own(power, scale, count):
    values = np.cumprod(np.full(count, 1.7))
    slope, half = scaling.growth(values, np.tile(scale * values**power, (3, 1)))
    assert slope == pytest.approx(power, abs=1e-9)
    assert half == pytest.approx(0.0, abs=1e-9)


def test_no_exponent_where_nothing_is_lost():
    assert all(map(math.isnan, scaling.growth(np.array([1.0, 2.0]), np.array([[0.0, 1.0], [0.0, 2.0]]))))
    assert all(map(math.isnan, scaling.growth(np.array([1.0]), np.array([[2.0], [3.0]]))))


def test_the_interval_of_an_exponent_covers_as_often_as_it_says():
    """Gamma samples of power-law means, paired by a common factor, 20 replications, 2000 times: 95 % up to the error of

    the delta method and of counting. The binomial bounds have an error of 1e-4 for a true coverage of 0.93 to 0.965.
    """
    rng, values, power, studies = np.random.default_rng(7), np.array([1.0, 2.0, 4.0, 8.0]), 0.5, 2000
    covered = 0
    for _ in range(studies):
        common = rng.gamma(20.0, 1 / 20.0, (20, 1))
        samples = values**power * common * rng.gamma(10.0, 1 / 10.0, (20, 4))
        slope, half = scaling.growth(values, samples)
        covered += abs(slope - power) <= half
    assert stats.binom.ppf(5e-5, studies, 0.93) <= covered <= stats.binom.isf(5e-5, studies, 0.965)


def test_the_command_writes_values_and_exponents(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "scaling", *TINY, "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["results"]["scaling"]["rows"]
    values = [row for row in rows if row["table"] == "values"]
    exponents = [row for row in rows if row["table"] == "exponents"]
    assert [row["quantity"] for row in exponents] == ["T", *scaling.SWEEPS]
    (row,) = [row for row in values if (row["quantity"], row["value"]) == ("width", 4.0)]
    runs = [
        qu.simulate(paper_queue(), qu.UcrlAc((0.5, 8.0), 10.0), horizon=150.0, seed=1, replication=r) for r in range(2)
    ]
    assert row["ucrl_ac"] == np.mean([run.regret("gap")["regret"].iloc[-1] for run in runs])
    bound = qu.policy_iteration_bound(paper_queue(), qu.solve(paper_queue()).gain, (0.5, 8.0), 10.0)
    assert row["bound"] == pytest.approx(float(bound(150.0)), rel=1e-12)
    assert max(r["value"] for r in values if r["quantity"] == "t_1") <= 150.0  # no first episode beyond the horizon
    assert (tmp_path / "out" / "scaling.png").stat().st_size > 10_000
